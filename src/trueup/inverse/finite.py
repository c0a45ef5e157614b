"""Values of a formula at integers: finite, too large for a double, or none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sympy

from trueup.errors import NoUnbiasedEstimator
from trueup.formula.needs import denominators
from trueup.formula.opaque import Opaque
from trueup.formula.text import text
from trueup.kernels.blocks import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def values_of(
    f: sympy.Expr, columns: Mapping[sympy.Symbol, Floats]
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the values of f, and where it has none; elsewhere what is infinite is too large.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> values_of(sympy.exp(1 / q), {q: np.array([0.0, 1e-3, 1e3])})
    (array([       inf,        inf, 1.0010005]), array([ True, False, False]))
    """
    values = evaluate(f, columns)
    undefined = ~np.isfinite(values) if f.has(Opaque) else np.isnan(values)
    for part in _quotients(f):
        undefined |= ~np.isfinite(evaluate(part, columns))
    return values, undefined


def _quotients(f: sympy.Expr) -> Iterator[sympy.Expr]:
    """Yield the parts of f that may have a pole, each 0 in the cases that do not need it.

    As a double, 1/0 is infinite, and min(1/0, 0), tanh(1/0) and 1/(1 + 1/0) are numbers again.
    """
    if isinstance(f, sympy.Piecewise):
        for i, (value, test) in enumerate(f.args):
            before = [(0, other) for _, other in f.args[:i]]
            for part in _quotients(value):
                yield sympy.Piecewise(*before, (part, test), (0, True))
        return
    if isinstance(f, (sympy.log, sympy.atanh)) or (isinstance(f, sympy.Pow) and f.exp.is_negative):
        yield f
    for arg in f.args:
        yield from _quotients(arg)


def place(names: Sequence[str], point: Sequence[float]) -> str:
    """Return a point as messages show it, whole numbers in full.

    Examples
    --------
    >>> place(["s", "n"], [1e15 + 1, 2.5])
    's = 1000000000000001, n = 2.5'
    """
    shown = (f"{v:.17g}" if float(v).is_integer() else f"{v:g}" for v in point)
    return ", ".join(f"{name} = {v}" for name, v in zip(names, shown, strict=True))


def undefined_at(f: sympy.Expr, where: str) -> NoUnbiasedEstimator:
    """Return the refusal of a formula that has no value at a point."""
    empty = ", or say what it is in empty cells: empty=value" if denominators(f) else ""
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {text(f)}: it is not a finite number at {where} (a pole inside "
        "the domain, or undefined)",
        f"bound the domain to where the formula is finite{empty}",
    )


def too_large_at(f: sympy.Expr, where: str) -> NoUnbiasedEstimator:
    """Return the refusal of a formula whose value at a point is no double."""
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {text(f)} was found: its value at {where} is beyond 1.8e308, "
        "the largest double",
        "bound the domain to where the formula is a double",
        proved=False,
    )
