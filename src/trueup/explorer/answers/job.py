"""What to ask of the command line for a file: the arguments of ``trueup debias``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.explorer import limits
from trueup.explorer.answers.code import shell_bounds, shell_noise
from trueup.explorer.answers.form import read
from trueup.explorer.refusal import Refusal
from trueup.formula.text import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import sympy

    from trueup.explorer.answers.form import Form


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments after the paths.

    Examples
    --------
    >>> asked = {"formula": "1/n", "statistics": {"n": {"scale": "2", "low": "1"}}}
    >>> answer({**asked, "known": ["town", "emp"], "columns": {"n": "emp"}, "output": "inverse"})
    {'arguments': ['`inverse` = 1/n', '--noise=n=laplace(scale=2)', '--domain=n>=1', ...]}
    """
    form = read(request)
    _ = form.estimator  # refuse here, beside the field
    known = [name for name in request.get("known", []) if isinstance(name, str)]
    arguments = [f"`{_output(request, known)}` = {form.text.strip()}"]
    for s in form.statistics:
        arguments.append(f"--noise={_name(form, s.name)}={shell_noise(s)}")
        bounds = shell_bounds(form, s)
        arguments += [f"--domain={bounds}"] if bounds else []
        column = _column(request, "columns", s.name, known) or s.name
        scale = _column(request, "scales", s.name, known)
        arguments += [f"--column={_name(form, s.name)}={_exactly(column)}"]
        arguments += [f"--scale={_name(form, s.name)}={_exactly(scale)}"] if scale else []
    return {"arguments": [*arguments, f"--memory={limits.DUCKDB}"]}


def _name(form: Form, name: str) -> str:
    symbol: sympy.Symbol = form.symbol(name)
    return text(symbol)


def _exactly(column: str) -> str:
    """Return a name that the command line takes to the letter, blanks and all."""
    return f"`{column.replace('`', '``')}`"


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


def _output(request: Mapping[str, Any], known: list[str]) -> str:
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
