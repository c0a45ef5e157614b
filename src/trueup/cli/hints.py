"""Hints of the library, which speaks Python, in the words of the command line.

::

    domain={'n': (1, None)}         --domain "n>=1"
    DiscreteLaplace(2)              discrete_laplace(2)
    Fraction(1, 2)                  1/2
    sd(q) at …                      trueup explain --at …
    empty=value                     --empty VALUE
    nearly_unbiased(…)              in Python: tu.nearly_unbiased(…)

This is the one place that knows both: whoever words a hint writes it for Python.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from trueup.cli.notation import known_families

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.errors import TrueupError

_NEST = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"  # three deep: f(Laplace(Fraction(1, 2)))
_FAMILIES = {family.__name__: name for name, family in known_families().items()}
_WORDS: list[tuple[str, Callable[[str], str]]] = [
    (rf"nearly_unbiased{_NEST}", lambda call: f"(in Python) tu.{call}"),
    (r"domain=\{[^{}]*\}", lambda text: _options(text.removeprefix("domain="))),
    (rf"\b(?:{'|'.join(_FAMILIES)})\b(?!\.)", lambda name: _FAMILIES[name]),
    (r"\bempty=value\b", lambda _: "--empty VALUE"),
    (r"\bFraction\(-?\d+, \d+\)", lambda text: text[9:-1].replace(", ", "/")),
    (r"\bsd\((?:q|\.\.\.)\) at", lambda _: "trueup explain --at"),
]
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


def reworded(hint: str) -> str:
    """Return a hint in the words of the command line.

    Examples
    --------
    >>> reworded("use Laplace(Fraction(1, 2)), or nearly_unbiased(f, Laplace(2), max_bias=...)")
    'use laplace(1/2), or (in Python) tu.nearly_unbiased(f, Laplace(2), max_bias=...)'
    """
    return _PYTHON.sub(lambda m: _WORDS[(m.lastindex or 0) - 1][1](m[0]), hint)


def _options(domain: str) -> str:
    r"""Return bounds as options; in double quotes a shell would run what is in backticks.

    Examples
    --------
    >>> _options("{'n': (1, None), 'a b': (0, 2.5)}")
    '--domain "n>=1" --domain \'0<=`a b`<=2.5\''
    """
    bounds = ast.literal_eval(domain).items()
    texts = [_bound(name, *pair) for name, pair in bounds]
    return " ".join(f"--domain '{t}'" if "`" in t else f'--domain "{t}"' for t in texts)


def _bound(name: str, low: float | None, high: float | None) -> str:
    shown = name if name.isidentifier() else f"`{name}`"
    if low is None or high is None:
        return f"{shown}<={high}" if low is None else f"{shown}>={low}"
    return f"{low}<={shown}<={high}"
