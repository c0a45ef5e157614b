"""The paper's degree-k extension below a bound, exactly and in O(k) (paper, Section 4).

With x = L − b·t the estimator left of L is a polynomial g(L − b·t) = Σ cₙ Lagₙ(t). Unbiasedness
fixes c₀ = f(L) − b·f′(L); matching f, f′, f″ at L gives two more equations,

    Σₙ₌₁..ₖ 2ⁿ⁻¹ cₙ = b·f′(L)        Σₙ₌₁..ₖ cₙ = b·f′(L) − b²·f″(L),

and the expected squared error is a constant plus Σₙ≥₁ cₙ² for every prior. So c is the least-norm
solution of two equations in k unknowns: linear in (b·f′, b²·f″) with coefficients that depend on
k alone, found here in exact rationals.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Any

import sympy

from trueup.errors import TrueupError

MAX_DEGREE = 1000


@lru_cache(maxsize=64)
def least_norm(k: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return (A, B) with cₙ = Aₙ·(b·f′) + Bₙ·(b²·f″), n = 1..k.

    Examples
    --------
    >>> least_norm(2)
    ((Fraction(1, 1), Fraction(0, 1)), (Fraction(-2, 1), Fraction(1, 1)))
    """
    # Gram matrix of the rows r1 = (1, 2, 4, ...) and r2 = (1, 1, ...).
    g11, g12, g22 = Fraction(4**k - 1, 3), Fraction(2**k - 1), Fraction(k)
    det = g11 * g22 - g12 * g12
    # Multipliers for the right-hand sides (1, 1), of b·f′, and (0, −1), of b²·f″.
    first = ((g22 - g12) / det, (g11 - g12) / det)
    second = (g12 / det, -g11 / det)
    rows = [Fraction(2 ** (n - 1)) for n in range(1, k + 1)]
    return (
        tuple(first[0] * r + first[1] for r in rows),
        tuple(second[0] * r + second[1] for r in rows),
    )


def check_degree(extension: object) -> int:
    """Return the degree k of an extension, or refuse it."""
    if isinstance(extension, bool) or not isinstance(extension, Integral):
        raise TrueupError(
            f"extension must be 'optimal' or a whole number, got {extension!r}",
            "'optimal' has the smallest variance; an integer k >= 2 is the paper's extension",
        )
    if not 2 <= int(extension) <= MAX_DEGREE:
        raise TrueupError(
            f"an extension has degree 2 to {MAX_DEGREE}, got {extension}",
            "value, slope and curvature must match at the bound: k = 2 is the least",
        )
    return int(extension)


class LaguerreExtension(sympy.Function):  # type: ignore[misc]
    """Σₙ Aₙ Lagₙ(t) for j = 1, Σₙ Bₙ Lagₙ(t) for j = 2: ``LaguerreExtension(k, j, t)``."""

    nargs = 3
    is_real = True

    @property
    def coefficients(self) -> tuple[Fraction, ...]:
        """The Laguerre coefficients, order 0 first."""
        k, j = int(self.args[0]), int(self.args[1])
        return (Fraction(0), *least_norm(k)[j - 1])

    def polynomial(self) -> sympy.Expr:
        """Return the extension as an ordinary polynomial in t."""
        t = self.args[2]
        terms = (
            sympy.Rational(c.numerator, c.denominator) * sympy.laguerre(n, t)
            for n, c in enumerate(self.coefficients)
        )
        return sympy.expand(sympy.Add(*terms))

    def inner(self, other: LaguerreExtension) -> sympy.Expr:
        """Return ∫ of the product under e^{−t}: Laguerre polynomials are orthonormal."""
        pairs = zip(self.coefficients, other.coefficients, strict=False)
        total = sum((a * b for a, b in pairs), Fraction(0))
        return sympy.Rational(total.numerator, total.denominator)

    def _eval_evalf(self, prec: int) -> Any:
        return self.polynomial()._eval_evalf(prec)


def orthogonal(expr: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Return the mean of an expression over an exponential t, quadratic in Laguerre series of t.

    Examples
    --------
    >>> x = sympy.Symbol("x", real=True)
    >>> a, b = LaguerreExtension(2, 1, -x), LaguerreExtension(2, 2, -x)
    >>> orthogonal(5 + 7 * a + a * b + b**2, x)  # 5 + ⟨a, b⟩ + ⟨b, b⟩ = 5 − 2 + 5
    8
    """
    series = [e for e in expr.atoms(LaguerreExtension) if symbol in e.free_symbols]
    if not series:
        return expr
    total = sympy.Integer(0)
    for powers, coefficient in sympy.Poly(expr, *series).terms():
        factors = [s for s, n in zip(series, powers, strict=True) for _ in range(n)]
        if len(factors) > 2:
            return expr
        if len(factors) != 1:  # one series alone has mean zero
            total += coefficient * (factors[0].inner(factors[1]) if factors else 1)
    return total
