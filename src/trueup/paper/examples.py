"""The paper's Remark on |q| and its Example on power functions, checked against the library."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import sympy
from scipy import integrate

from trueup.estimator import unbiased
from trueup.noise import Laplace
from trueup.plugin import plugin_bias

_SCALES = (Fraction(1, 3), Fraction(1), Fraction(2))
_SHOWN_SCALE = 2
_Q = sympy.Symbol("q", real=True)


@dataclass(frozen=True)
class Bias:
    """The bias of |x| at a few q: the paper's formula, ours, quadrature; and the largest gap."""

    scale: int
    rows: list[tuple[float, float, float, float]]
    gap: float
    points: int


@dataclass(frozen=True)
class Power:
    """The estimator of qᵏ, and whether it is the paper's at every scale tried."""

    k: int
    formula: str
    agrees: bool


@dataclass(frozen=True)
class Multiple:
    """A function whose estimator is α·f(x), with α by the paper's equation and ours."""

    f: str
    formula: str
    paper: str
    ours: str


def absolute_bias() -> Bias:
    """Compare b·e^{−|q|/b} with the bias that :func:`plugin_bias` finds for |q|."""
    scale = _SHOWN_SCALE
    q = np.concatenate([np.linspace(-10, 10, 41), [0.1, 25.0]])
    bias = plugin_bias("abs(q)", Laplace(scale))
    paper, ours = scale * np.exp(-np.abs(q) / scale), np.asarray(bias(q))
    shown = [np.flatnonzero(q == x)[0] for x in (0.0, 1.0, 2.0, 5.0, 10.0)]
    rows = [
        (float(q[i]), float(paper[i]), float(ours[i]), _integral(float(q[i]), scale)) for i in shown
    ]
    return Bias(scale, rows, float(np.abs(paper - ours).max()), len(q))


def _integral(q: float, scale: int) -> float:
    """Return E|q + Z| − |q| by quadrature between the kinks of density and function."""
    noise = Laplace(scale)
    ends = sorted({q - 50 * scale, 0.0, q, q + 50 * scale})
    parts = [
        integrate.quad(lambda x: abs(x) * float(noise.pdf(x - q)), low, high, epsabs=1e-13)[0]
        for low, high in pairwise(ends)
    ]
    return float(sum(parts)) - abs(q)


def powers() -> list[Power]:
    """Compare xᵏ − b²k(k−1)x^{k−2} with the estimator's formula, symbol by symbol."""
    return [_power(k) for k in range(9)]


def _power(k: int) -> Power:
    found = {b: unbiased(_Q**k, {"q": Laplace(b)}).formula for b in _SCALES}
    agrees = all(sympy.expand(g - _paper_power(k, b)) == 0 for b, g in found.items())
    return Power(k, _text(found[Fraction(_SHOWN_SCALE)]), agrees)


def _paper_power(k: int, b: Fraction) -> sympy.Expr:
    square = sympy.Rational(b.numerator, b.denominator) ** 2
    return _Q**k - (square * k * (k - 1) * _Q ** (k - 2) if k >= 2 else 0)


def multiples() -> list[Multiple]:
    """Compare the factor α = 1 − b²c² of the paper's self-reproducing functions with ours.

    Lines have α = 1: they are their own unbiased estimators.
    """
    rows = [  # f, and c² in f″ = c²f
        (_Q, 0),
        (3 * _Q + 2, 0),
        (sympy.exp(_Q / 4), sympy.Rational(1, 16)),
        (sympy.cosh(_Q / 4), sympy.Rational(1, 16)),
        (sympy.cos(3 * _Q), -9),
        (sympy.sin(3 * _Q), -9),
    ]
    found = [(f, unbiased(f, Laplace(_SHOWN_SCALE)).formula, square) for f, square in rows]
    return [
        Multiple(str(f), _text(g), str(1 - _SHOWN_SCALE**2 * square), str(sympy.simplify(g / f)))
        for f, g, square in found
    ]


def self_unbiased_curve() -> str:
    """Return what the plug-in of q² gets wrong, as an example of a function that is not a line."""
    return _text(unbiased(_Q**2, Laplace(_SHOWN_SCALE)).formula - _Q**2)


def _text(formula: sympy.Expr) -> str:
    """Write a formula in x, the published value."""
    return str(formula.subs(_Q, sympy.Symbol("x", real=True))).replace("**", "^").replace("*", "·")
