"""A file: its columns, formulas for new ones, and the debiased table to take away."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import streamlit as st

from trueup.adapters.notation import assignment
from trueup.errors import TrueupError
from trueup.explorer.charts import Line, points
from trueup.explorer.fields import FORMULA, ask_known, escaped, heading, number_of, refusals_shown
from trueup.files.job import Job, report_job, run_job
from trueup.formula.grammar import parse
from trueup.formula.substitution import denominators
from trueup.inverse.projection import ENDS
from trueup.tables.decision import KINDS as ERRORS
from trueup.tables.request import level_of
from trueup.tables.totals import Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trueup.explorer.fields import Known

SUMS = {"every row": "", "totals": "total", "averages": "average", "ratios of sums": "ratio"}
KINDS = ("csv", "tsv", "parquet")

_MEMORY = "256MB"  # what the engine may take; the rest goes to the temporary folder
_ROWS = 8  # shown of a table
_SAME = "as stated, in every row"


def show() -> None:
    """Show the tab."""
    side, main = st.columns([1, 2.3], gap="medium")
    with side, refusals_shown():
        with st.container(border=True, key="card-upload"):
            heading("A published table")
            given = st.file_uploader("CSV or Parquet", KINDS, key="table")
        with tempfile.TemporaryDirectory() as folder:
            source = None if given is None else Path(folder, f"input{Path(given.name).suffix}")
            if source is not None and given is not None:
                source.write_bytes(given.getbuffer())
            header = [] if source is None else _columns_of(source)
            job = _ask(source, header)
            asked = st.container(key="run-debias").button(
                "Debias the file", type="primary", width="stretch", disabled=job is None
            )
            with main:
                if source is None:
                    st.info("Choose a file: its first rows appear here.", icon=":material/table:")
                    return
                if asked and job is not None:
                    _debias(job, str(given.name if given else ""))
                else:
                    _show_rows("First rows", source)


def _ask(source: Path | None, header: Sequence[str]) -> Job | None:
    """Return what is to be done with the file, None before there is one."""
    with st.container(border=True, key="card-formulas"):
        heading("New columns")
        lines = st.text_area(
            "One in each line", "mean = s/n", max_chars=FORMULA, key="formulas", bind="query-params"
        )
        formulas = read_formulas(str(lines))
    with st.container(border=True, key="card-file-known"):
        names = {s.name for text in formulas.values() for s in parse(text).free_symbols}
        known = ask_known(names, "file-")
        bias = st.text_input("Bias allowed to quotients, relative", key="file-bias")
    estimators = _estimators(formulas, known, bias or "")
    if source is None:
        return None
    with st.container(border=True, key="card-columns"):
        heading("Which column holds what?")
        columns, scales = _ask_columns(sorted(names), header)
    with st.container(border=True, key="card-output"):
        heading("What is written")
        return _ask_output(source, header, formulas, estimators, columns, scales)


def read_formulas(lines: str) -> dict[str, str]:
    r"""Return the formula of each new column; one without a name is called ``estimate``.

    Examples
    --------
    >>> read_formulas("mean = s/n\n\nn")
    {'mean': 's/n', 'estimate': 'n'}
    """
    found: dict[str, str] = {}
    for line in filter(str.strip, lines.splitlines()):
        name, formula = assignment(line)
        if (name or "estimate") in found:
            raise TrueupError(f"two formulas have the name {name or 'estimate'!r}", "rename one")
        found[name or "estimate"] = formula
    if not found:
        raise TrueupError("there is no formula", "write one, e.g. mean = s/n")
    return found


def _estimators(formulas: Mapping[str, str], known: Known, bias: str) -> dict[str, Any]:
    """Return the estimators; those of quotients have as much bias as is allowed."""
    most, found = number_of(bias, "the bias allowed"), {}
    for name, formula in formulas.items():
        try:
            if most is not None and denominators(parse(formula)):
                found[name] = known.nearly(formula, max_bias=most, relative=True)
            else:
                found[name] = known.estimator(formula)
        except TrueupError as error:
            raise type(error)(f"{name}: {error.message}", error.hint) from None
    return found


def _ask_columns(
    names: Sequence[str], header: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    columns, scales = {}, {}
    for name in names:
        usual = header.index(name) if name in header else 0
        columns[name] = str(st.selectbox(f"**{name}**", header, usual, key=f"column-{name}"))
        scale = st.selectbox(f"noise scale of **{name}**", [_SAME, *header], key=f"scale-{name}")
        if scale != _SAME:
            scales[name] = str(scale)
    return columns, scales


def _ask_output(
    source: Path,
    header: Sequence[str],
    formulas: Mapping[str, str],
    estimators: dict[str, Any],
    columns: dict[str, str],
    scales: dict[str, str],
) -> Job:
    sums = SUMS[str(st.selectbox("Write", [*SUMS], key="sums"))]
    by = st.multiselect("one for each", header, key="by") if sums else []
    stderr = st.checkbox("Standard errors", value=True, key="stderr")
    skip = bool(sums) and st.checkbox("Leave out rows without a number", key="skip")
    level = level_of(number_of(st.text_input("Intervals, e.g. 0.95", key="level") or "", "level"))
    decimal = st.selectbox("Decimals", (".", ","), key="decimal")
    nulls = st.text_input("Missing numbers, e.g. NA -", key="nulls") or ""
    if sums == "ratio":
        from trueup.tables.ratios import RatioOfSums

        noise, domain = _laws(estimators)
        estimators = {n: RatioOfSums.read(f, noise, domain) for n, f in formulas.items()}
    totals = Totals(
        tuple(by),
        average=sums == "average",
        skip=skip,
        ratio=sums == "ratio",
        level=level if sums == "ratio" else None,
    )
    ends = ENDS if level is not None and not sums else ()
    return Job(
        str(source),
        str(source.with_stem("output")),
        estimators,
        columns,
        scales,
        outputs=("value", *["stderr"] * stderr, *ends),
        level=level or 0.95,
        decimal=str(decimal),
        nulls=tuple(nulls.split()),
        memory=_MEMORY,
        totals=totals if sums else None,
    )


def _laws(estimators: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return noise and bounds of all statistics."""
    noise = {name: law for e in estimators.values() for name, law in e.noise.items()}
    domain = {name: d for e in estimators.values() for name, d in e.domain.items()}
    return noise, domain


def _debias(job: Job, name: str) -> None:
    """Do the job, and show what came of it."""
    bar = st.progress(0.0, "Debiasing…")
    with refusals_shown():
        told = run_job(_watched(job, lambda share: bar.progress(share, "Debiasing…")))
        bar.empty()
        with st.container(border=True, key="card-done"):
            heading("Done")
            st.text("\n".join(told))
            made = Path(job.output).read_bytes()
            st.download_button(
                f"Download debiased-{name}", made, f"debiased-{name}", type="primary"
            )
        _show_report(job)
        _show_rows("First rows, with the new columns", Path(job.output))


def _watched(job: Job, tell: Callable[[float], object]) -> Job:
    def watch(percent: float) -> None:
        tell(min(max(percent, 0.0) / 100, 1.0))

    return dataclasses.replace(job, watch=watch)


def _show_report(job: Job) -> None:
    """Show which errors to expect, by size, where that can be told."""
    with st.container(border=True, key="card-report"):
        heading("Expected errors by size")
        try:
            found = report_job(job)
        except TrueupError as error:
            st.caption(escaped(error.message))
            return
        for decision in found.decisions:
            *rows, _ = decision.rows  # the last one is of all cells
            sizes = [row["sizes"] for row in rows]
            kinds = [kind for kind in ERRORS if rows and rows[0].get(kind) is not None]
            lines = [Line(ERRORS[k], np.array([row[k] for row in rows], float)) for k in kinds]
            key, size = f"report-{decision.name}", f"true {decision.size}"
            points(key, sizes, lines, size, "error of one cell")
            st.dataframe(decision.rows, hide_index=True)
            st.markdown("\n".join(f"- {escaped(line)}" for line in decision.conclusions))


def _columns_of(path: Path) -> list[str]:
    return list(_relation(path).columns)


def _show_rows(title: str, path: Path) -> None:
    with st.container(border=True, key="card-rows"):
        heading(title)
        st.dataframe(_relation(path).limit(_ROWS).to_arrow_table(), hide_index=True)


def _relation(path: Path) -> Any:
    """Return a file as DuckDB reads it, text as it stands."""
    connection = duckdb.connect()
    try:
        if path.suffix == ".parquet":
            return connection.read_parquet(str(path))
        return connection.read_csv(str(path), all_varchar=True, header=True)
    except duckdb.Error as error:
        line = str(error).splitlines()[0][:160]
        raise TrueupError(f"the file cannot be read: {line}", "check its format") from None
