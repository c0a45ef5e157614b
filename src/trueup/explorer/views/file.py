"""An uploaded file: what is asked of it, its first rows, and its debiasing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.explorer import limits
from trueup.explorer.refusal import Refusal
from trueup.explorer.views.form import read
from trueup.explorer.views.preview import preview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ELSEWHERE = "use trueup debias in a terminal"


def check(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked of a file with this ``header``, every field checked.

    Examples
    --------
    >>> asked = {"formula": "1/n", "statistics": {"n": {"scale": "2", "low": "1"}}}
    >>> check({**asked, "header": ["town", "emp"], "columns": {"n": "emp"}, "output": "inverse"})
    {'formula': '1/n', ..., 'name': 'inverse', 'columns': {'n': 'emp'}, 'scales': {}}
    """
    form = read(request)
    _ = form.estimator  # refuse here, beside the field
    known = [name for name in request.get("header", []) if isinstance(name, str)]
    names = [s.name for s in form.statistics]
    scales = {name: _column(request, "scales", name, known) for name in names}
    return {
        "formula": form.text,
        "statistics": request.get("statistics"),
        "known": form.known,
        "empty": request.get("empty"),
        "name": _name(request, known),
        "columns": {name: _column(request, "columns", name, known) for name in names},
        "scales": {name: column for name, column in scales.items() if column},
    }


def _column(request: Mapping[str, Any], which: str, name: str, known: list[str]) -> str:
    """Return the column that holds a statistic, or its scales; those may have none."""
    given = request.get(which)
    column = given.get(name, "") if isinstance(given, dict) else ""
    optional = which == "scales"
    column = column if column or optional else name
    if column in known or (optional and not column):
        return str(column)
    raise Refusal(
        f"the file has no column {str(column)[:60]!r} for {name}",
        "choose the column that holds it",
        field=f"{which}.{name}",
    )


def _name(request: Mapping[str, Any], known: list[str]) -> str:
    name = request.get("output", "estimate")
    name = name.strip() if isinstance(name, str) else ""
    if not 0 < len(name) <= 60 or not name.isprintable() or "`" in name:
        problem = f"not a name for a column: {name[:60]!r}"
        raise Refusal(problem, "write a short name, e.g. estimate", field="output")
    present = {column.lower() for column in known}  # SQL does not tell mean from Mean
    taken = next((n for n in (name, f"{name}_stderr") if n.lower() in present), None)
    if taken:
        problem = f"the file has a column {taken!r} already"
        raise Refusal(problem, "choose another name", field="output")
    return name


def look(request: Mapping[str, Any], watch: Callable[[float], None]) -> dict[str, Any]:
    """Return the columns and first rows of the file at ``source``."""
    return _named(request, lambda: preview(Path(request["source"])))


def debias(request: Mapping[str, Any], watch: Callable[[float], None]) -> dict[str, Any]:
    """Debias the file at ``source`` into ``target``; return its first rows and the summary.

    The request is what :func:`check` has returned; ``watch`` is told the share done.
    """
    from trueup.files.job import Job, run_job

    def work() -> dict[str, Any]:
        job = Job(
            request["source"],
            request["target"],
            {request["name"]: read(request).estimator},
            request["columns"],
            request["scales"],
            memory=limits.DUCKDB,
            watch=lambda percent: watch(min(percent, 100.0) / 100) if percent > 0 else None,
        )
        lines = run_job(job)
        return {**preview(Path(request["target"])), "summary": "\n".join(lines).splitlines()}

    return _named(request, work)


def _named(request: Mapping[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do work; a refusal calls the files what the user calls them."""
    try:
        return work()
    except TrueupError as error:
        message, hint = error.message, error.hint
    except OSError as error:
        message, hint = error.strerror or str(error), _ELSEWHERE
    for path, name in request.get("names", {}).items():
        message, hint = message.replace(path, name), hint.replace(path, name)
    raise Refusal(message, hint, field="file")
