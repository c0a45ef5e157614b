"""The two noises that every smooth function, or every function at all, can be freed from.

Laplace noise of scale b has M(t) = 1/(1 − b²t²), so its inverse is the differential operator
1 − b²D². Discrete Laplace noise has, in the same way, 1 − λ(S − 2 + S⁻¹) with the shift S and
λ = α/(1 − α)², α = e^{−1/b}. Beyond a known bound the data only ever enter through one number, so
the best extension is a constant (Jensen): with it the estimator is the uniformly
minimum-variance unbiased one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import sympy
from sympy.polys.matrices import DomainMatrix

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.noise.extension import LaguerreExtension, check_degree
from trueup.noise.operator import IDENTITY, Branch, Operator, Side, Taps, X

if TYPE_CHECKING:
    from collections.abc import Callable

    from trueup.domain import Interval
    from trueup.exact import Exact

_ONE = sympy.Integer(1)


def laplace(b: sympy.Expr, domain: Interval, extension: object = "optimal") -> Operator:
    """Return the inverse of Laplace noise of scale b on an interval [L, U].

    Inside, g = f − b²f″. Outside, with the optimal extension, g = f(L) − b·f′(L) for x ≤ L and
    g = f(U) + b·f′(U) for x ≥ U; with degree k, the least-norm polynomial of the paper.
    """

    def beyond(t: sympy.Expr, outward: int) -> Taps:
        if extension == "optimal":
            return {IDENTITY: _ONE, (1, 0): outward * b}
        k = check_degree(extension)
        slope, curvature = LaguerreExtension(k, 1, t / b), LaguerreExtension(k, 2, t / b)
        return {IDENTITY: _ONE, (1, 0): outward * b * (1 - slope), (2, 0): b**2 * curvature}

    theorem = "Laplace noise (paper, Section 3): g = f − b²·f″"
    if domain.bounds == (None, None):
        theorem += ", the only unbiased one"
    elif extension != "optimal":
        theorem += f" inside, the least-norm polynomial of degree {extension} beyond (Section 4)"
    elif domain.lattice:
        theorem += " inside, constant beyond a bound: unbiased on all numbers, hence on integers"
    else:
        theorem += (
            " inside, constant beyond a bound; the uniformly minimum-variance unbiased estimator"
        )
    return _operator({IDENTITY: _ONE, (2, 0): -(b**2)}, beyond, domain, theorem)


def discrete_laplace(b: sympy.Expr, domain: Interval) -> Operator:
    """Return the inverse of discrete Laplace noise of scale b on {L..U}.

    Inside, g = f − λ(f(x+1) − 2f(x) + f(x−1)); outside, with κ = α/(1 − α),
    g = f(L) − κ(f(L+1) − f(L)) for x ≤ L and g = f(U) + κ(f(U) − f(U−1)) for x ≥ U.
    """
    half = 1 / (2 * b)
    lam = 1 / (4 * sympy.sinh(half) ** 2)
    kappa = sympy.exp(-half) / (2 * sympy.sinh(half))
    return _operator(
        {IDENTITY: _ONE, (0, 1): -lam, (0, -1): -lam},
        lambda _, outward: {IDENTITY: _ONE, (0, -outward): -kappa},
        domain,
        "discrete Laplace noise: g = f − λ·(second difference of f), constant beyond a bound",
    )


def _operator(
    inside: Taps, beyond: Callable[[sympy.Expr, int], Taps], domain: Interval, theorem: str
) -> Operator:
    """Return an inverse from its weights inside, and those at distance t beyond a bound."""
    branches = [Branch("inside", None, inside)]
    sides: tuple[tuple[Side, int, Exact], ...]
    sides = (("below", -1, domain.low), ("above", 1, domain.high))
    for side, outward, bound in sides:
        if math.isfinite(bound):
            at = symbolic(bound)
            branches.append(Branch(side, at, beyond(outward * (X - at), outward)))
    return Operator(tuple(branches), theorem, symbolic(domain.low), symbolic(domain.high))


MAX_SCALES = 8
"""Different scales in a sum under a bound: with ten a thousand rows take ten seconds."""


def laplace_sum(scales: list[sympy.Expr], domain: Interval) -> Operator:
    """Return the inverse of a sum of Laplace noises when only the total is bounded.

    Inside, g = Π(1 − bᵢ²D²) f. Beyond a bound the data enter through m numbers, the transform
    ∫ g e^{−st} dt (and its derivatives) at the m poles s = 1/bᵢ; they are fixed by f and its
    derivatives at the bound. Among all solutions this is the one of least norm under the weight
    e^{−t/max b}: the best for true values far from the bound. No choice is best everywhere.
    For its form, not for its conditions, scales within 5 % of each other count as equal.
    """
    exact = [b if b.is_Rational else sympy.Rational(*float(b).as_integer_ratio()) for b in scales]
    if len(set(exact)) > MAX_SCALES and domain.bounds != (None, None):
        raise TrueupError(
            f"a sum of Laplace noises of {len(set(exact))} different scales under a bound, at most "
            f"{MAX_SCALES} are possible: the estimator beyond the bound would take minutes",
            "publish the total with a noise of its own, or leave the bound out",
        )

    def beyond(t: sympy.Expr, outward: int) -> Taps:
        taps = _least_norm(exact, outward, t)
        # fractions of floats only clutter
        return taps if exact == scales else {key: w.evalf() for key, w in taps.items()}

    theorem = (
        f"sum of {len(scales)} Laplace noises, only the total bounded: g = Π(1 − bᵢ²D²) f inside, "
        "least norm beyond a bound"
    )
    inside = {(n, 0): c for (n,), c in _inside(scales).terms()}
    return _operator(inside, beyond, domain, theorem)


_D = sympy.Symbol("D")

ALIKE = sympy.Rational(21, 20)
"""Scales up to this ratio share a shape beyond a bound: weights of e^{−t/b}, one for each, would
be the larger, and of opposite signs, the nearer the scales are."""


def _inside(scales: list[sympy.Expr]) -> sympy.Poly:
    """Return Π(1 − bᵢ²D²)."""
    return sympy.Poly(sympy.Mul(*(1 - b**2 * _D**2 for b in scales)), _D)


def _grouped(scales: list[sympy.Rational]) -> list[list[sympy.Rational]]:
    """Return groups of scales that share a shape, the largest first."""
    groups: list[list[sympy.Rational]] = []
    for scale in sorted(scales, reverse=True):
        if groups and groups[-1][0] <= scale * ALIKE:
            groups[-1].append(scale)
        else:
            groups.append([scale])
    return groups


def _least_norm(scales: list[sympy.Rational], outward: int, t: sympy.Expr) -> Taps:
    """Return the weights of Dᵏf at a bound for x at distance t beyond it.

    The conditions are met exactly, in rational numbers: near scales make them nearly dependent.
    """
    polynomial = _inside(scales)
    top = max(scales)
    poles = [(b, r) for b in dict.fromkeys(scales) for r in range(scales.count(b))]
    # the shapes tʳ·e^{−t/b}, b the largest of its like
    groups = _grouped(scales)
    shapes = [(1 / g[0] - 1 / top, r) for g in groups for r in range(len(g))]
    rows = [
        [sympy.factorial(r + j) / (1 / b + rate) ** (r + j + 1) for rate, j in shapes]
        for b, r in poles
    ]
    inverse = DomainMatrix.from_Matrix(sympy.Matrix(rows)).convert_to(sympy.QQ).inv().to_Matrix()
    basis = [t**r * sympy.exp(-rate * t) for rate, r in shapes]
    # ∫ g tʳ e^{−st} dt = (−∂ₛ)ʳ of the boundary polynomial Σ φ⁽ᵏ⁾(0) Bₖ(s), φ(t) = f(L ± t).
    taps: Taps = {}
    for k in range(polynomial.degree()):
        moments = [_boundary(polynomial, k, 1 / b, r) for b, r in poles]
        weights = inverse * sympy.Matrix(moments)
        taps[k, 0] = outward**k * sympy.Add(*(w * e for w, e in zip(weights, basis, strict=True)))
    return taps


def _boundary(polynomial: sympy.Poly, k: int, s: sympy.Expr, r: int) -> sympy.Expr:
    """Return (−∂ₛ)ʳ of what φ⁽ᵏ⁾(0) contributes to the transform of P(∂)φ, −Σₙ>ₖ pₙ s^{n−1−k}."""
    powers = [(n - 1 - k, c) for (n,), c in polynomial.terms() if n - 1 - k >= r]
    return (-1) ** (r + 1) * sympy.Add(*(c * sympy.ff(m, r) * s ** (m - r) for m, c in powers))
