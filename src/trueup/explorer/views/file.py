"""An uploaded file: what is asked of it, its first rows, and its debiasing.

The request has ``formulas``, one in a line, and the fields of the estimator's form; ``columns`` and
``scales`` by statistic; ``sums`` with ``by`` for totals, averages or ratios of sums in place of
rows; and how numbers are written: ``decimal``, ``nulls``.
"""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.explorer import allowances
from trueup.explorer.refused import Refusal, in_page
from trueup.explorer.views.form import Form, beside, choice, filled, lines_of, plain, read
from trueup.explorer.views.mathml import mathml
from trueup.explorer.views.preview import preview
from trueup.formula.grammar import assignment, parse
from trueup.formula.substitution import denominators
from trueup.tables.totals import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trueup.estimator import Estimator
    from trueup.files.job import Job

SUMS = ("", "total", "average", "ratio")
"""What is written: the rows, or in their place sums, averages, or ratios of sums."""

_ELSEWHERE = "use trueup debias in a terminal"
_ENDS = ("", "_stderr", "_low", "_high")
_KEPT = ("formulas", "statistics", "known", "empty", "bias", "cells")


def columns(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the lines of formulas say: each as mathematics, and the statistics of all.

    Examples
    --------
    >>> shown = columns({"formulas": "mean = s/n", "statistics": {"n": {"low": "1"}}})
    >>> [formula["name"] for formula in shown["formulas"]]
    ['mean']
    >>> [(s["name"], s["noise"], s["domain"]) for s in shown["statistics"]]
    [('n', 'Laplace(2)', '[1, ∞)'), ('s', 'Laplace(2)', '(-∞, ∞)')]
    """
    forms = _forms(request)
    statistics = {s.name: s for form in forms.values() for s in form.statistics}
    _estimators(request, forms)  # refuse here, beside the field
    return {
        "formulas": [
            {"name": name, "estimand": mathml(form.expr, block=False)}
            for name, form in forms.items()
        ],
        "statistics": [
            {"name": name, "noise": repr(s.noise), "domain": str(s.domain)}
            for name, s in sorted(statistics.items())
        ],
    }


def _forms(request: Mapping[str, Any]) -> dict[str, Form]:
    """Return the form of each line; the name is the new column, ``estimate`` if it has none."""
    lines = lines_of(request, "formulas", "mean = s/n")
    named = [(name or "estimate", formula) for name, formula in map(assignment, lines)]
    twice = next((n for i, (n, _) in enumerate(named) if n in dict(named[:i])), None)
    if twice is not None:
        raise Refusal(f"two formulas have the name {twice!r}", "rename one", field="formulas")
    others: set[str] = set()
    for name, formula in named:
        with _in_line(name), beside("formulas"):
            others |= {s.name for s in parse(formula).free_symbols}
    forms: dict[str, Form] = {}
    for name, formula in named:
        with _in_line(name):
            divides = bool(denominators(parse(formula)))  # else no cell is empty
            own = {"formula": formula, "empty": request.get("empty") if divides else None}
            forms[name] = read({**request, **own}, others)
    return forms


@contextlib.contextmanager
def _in_line(name: str) -> Iterator[None]:
    """Let a refusal of one formula say which of the lines it is."""
    try:
        yield
    except Refusal as refusal:
        if refusal.field not in ("formula", "formulas", "bias"):
            raise
        message = f"{name}: {refusal.message}"
        raise Refusal(message, refusal.hint, field="formulas", kind=refusal.kind) from None


def _estimators(request: Mapping[str, Any], forms: Mapping[str, Form]) -> dict[str, Estimator]:
    """Return the estimators, those of quotients with as much bias as is allowed."""
    bias, cells = filled(request, "bias"), filled(request, "cells")
    made: dict[str, Estimator] = {}
    for name, form in forms.items():
        with _in_line(name):
            if (cells is bias is None) or not denominators(form.expr):
                made[name] = form.estimator
            elif cells is not None:
                made[name] = form.near(cells=cells)
            else:
                made[name] = form.near(max_bias=bias, relative=True)
    return made


def check(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked of a file with this ``header``, every field checked.

    Examples
    --------
    >>> asked = {"formulas": "inverse = 1/n", "statistics": {"n": {"scale": "2", "low": "1"}}}
    >>> check({**asked, "header": ["town", "emp"], "columns": {"n": "emp"}})["columns"]
    {'n': 'emp'}
    """
    forms = _forms(request)
    made = _estimators(request, forms)
    known = [name for name in request.get("header", []) if isinstance(name, str)]
    names = sorted({name for estimator in made.values() for name in estimator.statistics})
    sums = choice(request.get("sums", ""), SUMS, "sums")
    by = request.get("by")
    groups = [column for column in by if column in known] if isinstance(by, list) else []
    for name in forms:
        _check_name(name, [ROWS, *groups] if sums else known)
    scales = {name: _column(request, "scales", name, known) for name in names}
    nulls = request.get("nulls")
    return {
        **{key: request.get(key) for key in _KEPT},
        "columns": {name: _column(request, "columns", name, known) for name in names},
        "scales": {name: column for name, column in scales.items() if column},
        "sums": sums,
        "by": groups,
        "skip": request.get("skip") is True,
        "stderr": request.get("stderr") is not False,
        "interval": _level(request),
        "decimal": choice(request.get("decimal", "."), (".", ","), "decimal"),
        "nulls": nulls.split() if isinstance(nulls, str) else [],
    }


def _level(request: Mapping[str, Any]) -> float | None:
    """Return how often an interval covers, None for none."""
    level = filled(request, "interval")
    if level is not None and not 0 < level < 1:
        raise Refusal(
            f"an interval covers with a probability below 1, got {level}",
            "write e.g. 0.95",
            field="interval",
        )
    return None if level is None else float(level)


def _column(request: Mapping[str, Any], which: str, name: str, known: list[str]) -> str:
    """Return the column that holds a statistic, or its scales; those may have none."""
    given = request.get(which)
    column = given.get(name, "") if isinstance(given, dict) else ""
    if which == "columns":
        column = column or name
    if column in known or not column:
        return str(column or "")
    raise Refusal(
        f"{request.get('file', 'the file')} has no column {str(column)[:60]!r} for {name}",
        "choose the column that holds it",
        field=f"{which}.{name}",
        kind="missing",
    )


def _check_name(name: str, kept: list[str]) -> None:
    """Refuse a name that no column can have, or that one of those kept has already."""
    if not 0 < len(name) <= 60 or not name.isprintable() or "`" in name:
        problem = f"not a name for a column: {name[:60]!r}"
        raise Refusal(problem, "write a short name, e.g. mean = s/n", field="formulas")
    present = {column.lower() for column in kept}  # SQL does not tell mean from Mean
    taken = next((name + end for end in _ENDS if (name + end).lower() in present), None)
    if taken:
        problem = f"there is a column {taken!r} already"
        raise Refusal(problem, "choose another name", field="formulas")


def look(request: Mapping[str, Any], watch: Callable[[float], None]) -> dict[str, Any]:
    """Return the columns and first rows of the file at ``source``."""
    with _named(request):
        return preview(Path(request["source"]))


def debias(request: Mapping[str, Any], watch: Callable[[float], None]) -> dict[str, Any]:
    """Debias the file at ``source`` into ``target``; return its first rows and the summary.

    The request is what :func:`check` has returned; ``watch`` is told the share done.
    """
    from trueup.files.job import run_job

    with _named(request):
        job = _job(request, watch)
        told = [in_page(line) for line in "\n".join(run_job(job)).splitlines()]
        return {
            **preview(Path(request["target"])),
            "kept": len(request["by"]) if request["sums"] else None,
            "summary": told,
            "report": expected_errors(job),
        }


def expected_errors(job: Job) -> dict[str, Any]:
    """Return the report on the input of a job as plain data, or why there is none."""
    from trueup.files.job import report_job

    numbered = {f"column {i}": made for i, made in enumerate(job.estimators.values())}  # any names
    try:
        found = report_job(dataclasses.replace(job, estimators=numbered, outputs=("value",)))
    except TrueupError as error:
        return {"decisions": [], "reason": f"{error.message}; {in_page(error.hint)}"}
    decisions = [
        {
            "name": name,
            "size": decision.size,
            "rival": decision.rival,
            "rows": [{key: plain(v) for key, v in row.items()} for row in decision.rows],
            "conclusions": [in_page(line) for line in decision.conclusions],
        }
        for name, decision in zip(job.estimators, found.decisions, strict=True)
    ]
    return {"decisions": decisions, "reason": ""}


def _job(request: Mapping[str, Any], watch: Callable[[float], None]) -> Job:
    from trueup.files.job import Job
    from trueup.inverse.projection import ENDS
    from trueup.tables.totals import Totals

    sums, by, level = request["sums"], tuple(request["by"]), request["interval"]
    totals = Totals(
        by,
        average=sums == "average",
        skip=request["skip"],
        ratio=sums == "ratio",
        level=level if sums == "ratio" else None,
    )
    return Job(
        request["source"],
        request["target"],
        _estimators(request, _forms(request)),
        request["columns"],
        request["scales"],
        outputs=(
            "value",
            *["stderr"] * request["stderr"],
            *ENDS * (level is not None and not sums),
        ),
        level=level or 0.95,
        decimal=request["decimal"],
        nulls=tuple(request["nulls"]),
        memory=allowances.DUCKDB,
        totals=totals if sums else None,
        watch=lambda percent: watch(min(percent, 100.0) / 100) if percent > 0 else None,
    )


@contextlib.contextmanager
def _named(request: Mapping[str, Any]) -> Iterator[None]:
    """Let a refusal call the files what the user calls them."""
    try:
        yield
    except TrueupError as error:
        message, hint = error.message, error.hint
    except OSError as error:
        message, hint = error.strerror or str(error), _ELSEWHERE
    else:
        return
    for path, name in request.get("names", {}).items():
        message, hint = message.replace(path, name), hint.replace(path, name)
    raise Refusal(message, hint, field="file")
