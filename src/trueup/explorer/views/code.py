"""The same estimator elsewhere: Python, the command line, SQL."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.explorer.families import DIALECTS, FAMILIES, OUTPUTS
from trueup.explorer.views.form import Form, Statistic, choice, read
from trueup.formula.text import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.exact import Exact


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the code to copy.

    Examples
    --------
    >>> shown = answer({"formula": "1/n", "statistics": {"n": {"scale": "2", "low": "1"}}})
    >>> print(shown["python"])
    import trueup as tu
    <BLANKLINE>
    est = tu.unbiased("1/n", tu.Laplace(2), domain=(1, None))
    est(21.4), est.stderr(21.4)  # at a published n
    """
    form = read(request)
    return {"python": python(form), "command": command(form), **_sql(form, request)}


def python(form: Form, function: str = "unbiased", *more: str) -> str:
    """Return the estimator as Python that runs, at a published value of each statistic."""
    several = len(form.statistics) > 1
    noise = ", ".join(f"{_key(s, several)}{_python_noise(s)}" for s in form.statistics)
    bounded = [s for s in form.statistics if s.domain.bounds != (None, None)]
    domain = ", ".join(f"{_key(s, several)}{_python_bounds(s)}" for s in bounded)
    if several:
        noise, domain = f"{{{noise}}}", f"{{{domain}}}" if domain else ""
    if form.known and function == "unbiased":
        domain = _quoted(", ".join([*(shell_bounds(form, s) for s in bounded), form.known]))
    if form.empty is not None and function == "unbiased":
        more = (f"empty={literal(form.empty)}", *more)
    given = [_quoted(form.text.strip()), noise, *([f"domain={domain}"] if domain else []), *more]
    one_line = f"est = tu.{function}({', '.join(given)})"
    if len(one_line) > 78:
        one_line = f"est = tu.{function}(\n    " + ",\n    ".join(given) + ",\n)"
    values = _arguments(form)
    names = ", ".join(s.name for s in form.statistics)
    use = f"est({values}), est.stderr({values})  # at a published {names}"
    return f"import trueup as tu\n\n{one_line}\n{use}"


def command(form: Form) -> str:
    """Return the estimator as a command over a file."""
    parts = ["trueup debias IN.csv OUT.csv", shlex.quote(f"estimate = {form.text.strip()}")]
    for s in form.statistics:
        parts.append(f"--noise {shlex.quote(f'{_name(form, s)}={shell_noise(s)}')}")
        bounds = shell_bounds(form, s)
        if bounds:
            parts.append(f"--domain {shlex.quote(bounds)}")
    if form.known:
        parts.append(f"--domain {shlex.quote(form.known)}")
    if form.empty is not None:
        parts.append(f"--empty {form.empty}")
    return " \\\n  ".join(parts)


def shell_noise(s: Statistic) -> str:
    """Return the noise as the command line writes it: laplace(epsilon=1/2, sensitivity=1)."""
    family = next(k for k, f in FAMILIES.items() if f is s.family)
    given = ", ".join(f"{name}={value}" for name, value in s.parameters.items())
    return f"{family}({given})"


def shell_bounds(form: Form, s: Statistic) -> str:
    """Return the bounds as the command line writes them: 1<=n<=500, or nothing."""
    low, high = s.domain.bounds
    name = _name(form, s)
    if low is None:
        return "" if high is None else f"{name}<={high}"
    return f"{name}>={low}" if high is None else f"{low}<={name}<={high}"


def _name(form: Form, s: Statistic) -> str:
    return text(form.symbol(s.name))


def _key(s: Statistic, several: bool) -> str:
    return f"{_quoted(s.name)}: " if several else ""


def _python_noise(s: Statistic) -> str:
    given = ", ".join(
        literal(v) if name == "scale" and len(s.parameters) == 1 else f"{name}={literal(v)}"
        for name, v in s.parameters.items()
    )
    budget = s.way != "scale" and s.family.constructor != "Staircase"
    return f"tu.{s.family.constructor}{'.from_budget' if budget else ''}({given})"


def _python_bounds(s: Statistic) -> str:
    low, high = ("None" if b is None else literal(b) for b in s.domain.bounds)
    return f"({low}, {high})"


def _arguments(form: Form) -> str:
    """Return a published value of each statistic, as arguments of a call."""
    values = {s.name: _published(s) for s in form.statistics}
    if len(values) == 1:
        return next(iter(values.values()))
    if all(name.isidentifier() for name in values):
        return ", ".join(f"{name}={value}" for name, value in values.items())
    return "**{" + ", ".join(f"{_quoted(n)}: {v}" for n, v in values.items()) + "}"


def _published(s: Statistic) -> str:
    low, high = s.domain.bounds
    start = float(low or 0)
    value = start + 7.2 * s.spread if high is None else (start + float(high)) / 2
    return str(round(value)) if s.noise.lattice else f"{value:.3g}"


def _quoted(words: str) -> str:
    """Return a text as a Python literal, in double quotes where that is simple."""
    simple = words.isprintable() and not {'"', "\\"} & set(words)
    return f'"{words}"' if simple else repr(words)


def literal(value: Exact) -> str:
    """Return a number as Python writes it where only tu is imported."""
    return repr(value) if isinstance(value, (int, float)) else f"tu.{value!r}"


def _sql(form: Form, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the SQL, or why there is none."""
    dialect = choice(request.get("dialect", DIALECTS[0]), DIALECTS, "dialect")
    output = choice(request.get("output", OUTPUTS[0]), OUTPUTS, "output")
    try:
        return {"sql": form.estimator.sql(dialect, output)}
    except TrueupError as error:
        return {"sql": None, "reason": error.message, "hint": error.hint}
