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
from trueup.exact import symbolic

MAX_DEGREE = 1000


@lru_cache(maxsize=64)
def least_norm(k: int, j: int) -> tuple[Fraction, ...]:
    """Return 0, A₁, …, Aₖ (j = 1) or 0, B₁, …, Bₖ (j = 2) of cₙ = Aₙ·(b·f′) + Bₙ·(b²·f″).

    Examples
    --------
    >>> [str(b) for b in least_norm(2, 2)]
    ['0', '-2', '1']
    """
    # Gram matrix of the rows (1, 2, 4, ...) and (1, 1, ...), right-hand sides (1, 1) and (0, −1)
    g11, g12, g22 = Fraction(4**k - 1, 3), Fraction(2**k - 1), Fraction(k)
    first, second = (g22 - g12, g11 - g12) if j == 1 else (g12, -g11)
    rows = (first * 2 ** (n - 1) + second for n in range(1, k + 1))
    return (Fraction(0), *(row / (g11 * g22 - g12 * g12) for row in rows))


def check_degree(extension: object) -> int:
    """Return the degree k of an extension, or refuse it."""
    if isinstance(extension, Integral) and 2 <= int(extension) <= MAX_DEGREE:  # True is 1
        return int(extension)
    raise TrueupError(
        f"extension must be 'optimal' or a whole number from 2 to {MAX_DEGREE}, got {extension!r}",
        "'optimal' has the smallest variance; an integer k >= 2 is the paper's extension",
    )


class LaguerreExtension(sympy.Function):  # type: ignore[misc]
    """Σₙ Aₙ Lagₙ(t) for j = 1, Σₙ Bₙ Lagₙ(t) for j = 2: ``LaguerreExtension(k, j, t)``."""

    nargs = 3
    is_real = True

    @property
    def coefficients(self) -> tuple[Fraction, ...]:
        """The Laguerre coefficients, order 0 first."""
        return least_norm(int(self.args[0]), int(self.args[1]))

    def polynomial(self) -> sympy.Expr:
        """Return the extension as an ordinary polynomial in t."""
        t = self.args[2]
        terms = (symbolic(c) * sympy.laguerre(n, t) for n, c in enumerate(self.coefficients))
        return sympy.expand(sympy.Add(*terms))

    def inner(self, other: LaguerreExtension) -> sympy.Expr:
        """Return ∫ of the product under e^{−t}: Laguerre polynomials are orthonormal."""
        pairs = zip(self.coefficients, other.coefficients, strict=False)
        return symbolic(sum((a * b for a, b in pairs), Fraction(0)))

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
