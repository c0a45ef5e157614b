"""Plan a release before any data: a private mean, or a private table."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from trueup.adapters.notation import assignment
from trueup.errors import TrueupError
from trueup.explorer.charts import Line, points
from trueup.explorer.fields import FORMULA, heading, number_of, refusals_shown

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.microdata.design import Design

_COUNTS = 13
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_MEASURES = "n = count\nwage = mean(wage, 0, 120000)\nfemale = share(sex, ['f', 'm'])"


def show() -> None:
    """Show the tab."""
    kind = st.segmented_control(
        "Plan", ("a private mean", "a private table"), default="a private mean", required=True,
        key="planned", bind="query-params", label_visibility="collapsed",
    )  # fmt: skip
    side, main = st.columns([1, 2.3], gap="medium")
    with side, refusals_shown():
        (_plan_mean if kind == "a private mean" else _plan_table)(main)


def _needed(text: str | None, name: str) -> Exact:
    found = number_of(text or "", name)
    if found is None:
        raise TrueupError(f"{name} is missing", "write a number, e.g. 1")
    return found


def _plan_mean(main: Any) -> None:
    from trueup.mechanisms.planning import plan, worst_sd

    with st.container(border=True, key="card-mean"):
        heading("A private mean")
        epsilon = _needed(st.text_input("Budget ε", "1", key="epsilon"), "the budget")
        count = st.number_input("Records, about", 1, 10**7, 200, key="count")
        low = _needed(st.text_input("Smallest value", "0", key="low"), "the smallest value")
        high = _needed(st.text_input("Largest value", "1", key="high"), "the largest value")
        least = _needed(st.text_input("Records at least", "1", key="least"), "the least count")
    made = plan(epsilon, int(count), (low, high), count_at_least=least)
    first, last = max(math.ceil(least), 1), max(4 * int(count), 10 * max(math.ceil(least), 1))
    counts = np.unique(np.geomspace(first, last, _COUNTS).round().astype(int))
    lines = [
        Line(o.name, np.array([worst_sd(o.mechanism, int(n), made.means) for n in counts]))
        for o in made.options
    ]
    with main:
        with st.container(border=True, key="card-mechanisms"):
            heading("Mechanisms, best first")
            st.code(str(made), language=None)
        with st.container(border=True, key="card-mean-chart"):
            heading("Standard deviation by the number of records")
            steps = [f"{n:,}" for n in counts]
            points("mean-chart", steps, lines, "records", "worst sd of the mean")
        st.code(
            "import trueup as tu\n\n"
            f"plan = tu.mechanisms.plan({epsilon}, {count}, ({low}, {high}), "
            f"count_at_least={least})\n"
            "plan.best.mechanism.release(values)  # private and unbiased"
        )


def _plan_table(main: Any) -> None:
    from trueup.microdata.expected import SIZES, error, expected, proposed
    from trueup.microdata.privacy_notice import Privacy
    from trueup.microdata.report_text import method

    with st.container(border=True, key="card-table"):
        heading("A private table")
        lines = st.text_area("Measures", _MEASURES, max_chars=FORMULA, key="measures")
        epsilon = _needed(st.text_input("Budget ε", "1", key="table-epsilon"), "the budget")
        by = st.text_input("A row for each, e.g. state, industry", key="table-by") or ""
        weights = st.text_input("Weights, e.g. wage = 2, n = 1", key="weights") or ""
        unit = st.text_input("Column of the person, if one has several rows", key="unit") or None
        rows = _needed(st.text_input("Rows of a person, at most", "1", key="at-most"), "the rows")
        size = st.number_input("Records in a usual group", 1, 10**9, 100, key="size")
    design = read_design(str(lines), epsilon, by, weights, unit, rows if unit else None)
    errors, better = expected(design, SIZES), proposed(design, int(size))
    with main:
        with st.container(border=True, key="card-table-errors"):
            heading("Standard errors to expect, by records in a group")
            listed = [
                {"measure": name, "by": method(design, name)}
                | {f"{n:,}": e for n, e in zip(SIZES, errors[name], strict=True)}
                for name in design.measures
            ]
            st.dataframe(listed, hide_index=True)
            drawn = [
                Line(name, np.array([error(design, name, n) for n in _SIZES], float))
                for name in design.measures
            ]
            points("table-chart", [f"{n:,}" for n in _SIZES], drawn, "records", "standard error")
            told = ", ".join(f"{name} = {float(w):g}" for name, w in better.weights.items())
            st.caption(f"Weights proposed for groups of {int(size):,} records: {told}")
        with st.container(border=True, key="card-privacy"):
            heading("What is private")
            st.text(str(Privacy.of(design, simulated=False)))
        st.code(command(design), language="bash")


def read_design(
    lines: str, epsilon: Exact, by: str, weights: str, unit: str | None, at_most: Exact | None
) -> Design:
    """Return the design that the fields describe.

    Examples
    --------
    >>> design = read_design("n = count", 1, "state", "", None, None)
    >>> [*design.measures], design.by
    (['n'], ('state',))
    """
    from trueup.microdata.design import Design

    measures: dict[str, Any] = {}
    for line in filter(str.strip, lines.splitlines()):
        name, what = assignment(line)
        if not name or name in measures:
            problem = f"two measures have the name {name!r}" if name else f"{line!r} has no name"
            raise TrueupError(problem, "write e.g. wage = mean(wage, 0, 120000)")
        measures[name] = what
    given: dict[str, Any] = {}
    for part in filter(str.strip, weights.split(",")):
        name, value = assignment(part)
        if not name:
            raise TrueupError(f"{part.strip()!r} names no measure", "write e.g. wage = 2")
        given[name] = number_of(value, f"the weight of {name}")
    groups = [name.strip() for name in by.split(",") if name.strip()]
    return Design.read(measures, epsilon, groups, given, unit, at_most)


def command(design: Design) -> str:
    r"""Return the command that releases the table.

    Examples
    --------
    >>> print(command(read_design("n = count", 1, "state", "", None, None)))
    trueup release PEOPLE.parquet TABLE.csv \
      'n = count' \
      --by state \
      --keys groups.csv \
      --epsilon 1 \
      --weight n=1
    """
    from trueup.microdata.privacy_notice import words

    parts = ["trueup release PEOPLE.parquet TABLE.csv"]
    parts += [shlex.quote(f"{name} = {words(m)}") for name, m in design.measures.items()]
    if design.by:
        parts += [f"--by {shlex.quote(','.join(design.by))}", "--keys groups.csv"]
    parts.append(f"--epsilon {design.epsilon}")
    if design.unit is not None:
        parts.append(f"--unit {shlex.quote(design.unit)} --at-most {design.at_most}")
    unusual = {n: w for n, w in design.weights.items() if w != 1 or n == design.count}
    parts += [f"--weight {shlex.quote(f'{n}={w}')}" for n, w in unusual.items()]
    return " \\\n  ".join(parts)
