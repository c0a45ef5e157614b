"""Hints of the library, which speaks Python, in the words of the command line.

::

    domain={'n': (1, None)}         --domain "n>=1", also of domain="n >= 1"
    DiscreteLaplace(2)              discrete_laplace(2)
    Fraction(1, 2)                  1/2
    sd(q) at …                      trueup explain --at …
    empty=value, at_most=3          --empty VALUE, --at-most 3
    nearly_unbiased(…)              --max-bias 0.05
    tu.ratio(...)                   --ratio
    frontier()                      (in Python) tu.frontier()

This is the one place that knows both: whoever words a hint writes it for Python.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from trueup.noise.reading import known_families

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.errors import TrueupError

_NEST = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"  # three deep: f(Laplace(Fraction(1, 2)))
_FAMILIES = {family.__name__: name for name, family in known_families().items()}
_NAMED = "at_most|cells|interval|max_bias|missing|unit"  # spelt alike, but for the dash
_WORDS: list[tuple[str, Callable[[str], str]]] = [
    (rf"nearly_unbiased{_NEST}", lambda _: "--max-bias 0.05"),
    (r"domain=\{[^{}]*\}", lambda text: _options(text.removeprefix("domain="))),
    (r'domain="[^"]*"', lambda text: _domain(text[8:-1])),
    (r"\(low, high\) with low <= high; None on a side means", lambda _: _ENDS),
    (r"e\.g\. 0\.01 with relative=True; for none use unbiased\(\)", lambda _: _NO_BIAS),
    (r"use relative=False, or ", lambda _: "use "),
    (rf"\b(?:{_NAMED})=(?:'[^']*'|[\w.]*\w)", lambda text: _option(*text.split("="))),
    (r"missing=\{'[^']*': …\}", lambda text: f"[missing] {text[10:-5]} = … in the plan"),
    (r"keys=\['A', 'B'\], keys=\{.*\}, a table, or a file", lambda _: _KEYS),
    (r"by=\[[^\]]*\]", lambda _: "--by state,industry"),
    (r"ledger=\{[^{}]*\}", lambda _: "--ledger ledger.toml --dataset survey-2026 --cap 3"),
    (r"\bn='count'", lambda _: '"n = count"'),
    (r"bias=True gives the bound of each group; ", lambda _: ""),
    (r"\bclamped=True\b", lambda _: "--clamped"),
    (r"\bstderr=False\b", lambda _: "--no-stderr"),
    (r"\btu\.ratio\(\.\.\.\)", lambda _: "--ratio"),
    (r"\btu\.total\b", lambda _: "--total"),
    (r"\bfrontier\(\)", lambda _: "(in Python) tu.frontier()"),
    (r"\bscipy\.stats\.norm\(scale=2\)", lambda _: "scipy(norm, scale=2)"),
    (rf"\b(?:{'|'.join(_FAMILIES)})\b(?!\.)", lambda name: _FAMILIES[name]),
    (r"\bempty=value\b", lambda _: "--empty VALUE"),
    (r"\bFraction\(-?\d+, \d+\)", lambda text: text[9:-1].replace(", ", "/")),
    (r"\bsd\((?:q|\.\.\.)\) at", lambda _: "trueup explain --at"),
]
_ENDS = '"low<=n<=high" with low <= high; leave out a side that is'
_NO_BIAS = "e.g. --max-bias 0.01; leave it out for none"
_KEYS = '--keys groups.csv, or in the plan [keys] state = ["A", "B"]'
_PYTHON = re.compile("|".join(f"({python})" for python, _ in _WORDS))


def in_shell(error: TrueupError) -> str:
    """Return an error as the command line says it.

    Examples
    --------
    >>> from trueup.errors import TrueupError
    >>> print(in_shell(TrueupError("a pole at 0", "bound it, e.g. domain={'n': (1, None)}")))
    a pole at 0
    Hint: bound it, e.g. --domain "n>=1"
    """
    return f"{error.message}\nHint: {reworded(error.hint)}"


def told(warning: str) -> str:
    r"""Return a warning as the command line says it: its hint, if it has one, is reworded.

    Examples
    --------
    >>> print(told("cells are empty\nHint: say what they are, empty=value"))
    cells are empty
    Hint: say what they are, --empty VALUE
    """
    message, mark, hint = warning.partition("\nHint: ")
    return f"{message}{mark}{reworded(hint)}"


def reworded(hint: str) -> str:
    """Return a hint in the words of the command line.

    Examples
    --------
    >>> reworded("use Laplace(Fraction(1, 2)), or nearly_unbiased(f, Laplace(2), max_bias=...)")
    'use laplace(1/2), or --max-bias 0.05'
    """
    return _PYTHON.sub(lambda m: _WORDS[(m.lastindex or 0) - 1][1](m[0]), hint)


def _option(name: str, value: str) -> str:
    """Return a named argument as an option.

    Examples
    --------
    >>> _option("unit", "'person_id'")
    '--unit person_id'
    """
    return f"--{name.replace('_', '-')} {value.strip(chr(39))}"


def _options(domain: str) -> str:
    r"""Return bounds as options; in double quotes a shell would run what is in backticks.

    Examples
    --------
    >>> _options("{'n': (1, None), 'a b': (0, 2.5)}")
    '--domain "n>=1" --domain \'0<=`a b`<=2.5\''
    """
    bounds = ast.literal_eval(domain).items()
    return " ".join(_domain(_bound(name, *pair)) for name, pair in bounds)


def _domain(bound: str) -> str:
    """Return a bound as an option.

    Examples
    --------
    >>> _domain("n >= 0"), _domain("`a b`>=0")
    ('--domain "n>=0"', "--domain '`a b`>=0'")
    """
    bound = bound.replace(" >= ", ">=")
    return f"--domain '{bound}'" if "`" in bound else f'--domain "{bound}"'


def _bound(name: str, low: float | None, high: float | None) -> str:
    shown = name if name.isidentifier() else f"`{name}`"
    if low is None or high is None:
        return f"{shown}<={high}" if low is None else f"{shown}>={low}"
    return f"{low}<={shown}<={high}"
