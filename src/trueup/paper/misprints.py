"""Misprints of the paper, each with what was computed here to tell.

Those of the appendix's Newton step are followed one by one in :mod:`trueup.paper.newton`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy

from trueup.errors import NoUnbiasedEstimator
from trueup.estimator import unbiased
from trueup.mechanisms import Mean, PerRecordSum
from trueup.noise import Laplace


@dataclass(frozen=True)
class Misprint:
    """What is printed where, what is right, and the evidence."""

    where: str
    printed: str
    right: str
    evidence: str


def misprints() -> list[Misprint]:
    """Return the misprints outside the Newton step's derivatives."""
    return [
        _coefficients(),
        _variance(),
        _policy(),
        Misprint(
            "Algorithm 2",
            "m_0 + T_3·…",
            "m_SS + T_3·…",
            "m_0 is defined nowhere; M_SS adds its noise to m_SS",
        ),
        Misprint(
            "Definition of PRDP",
            "Pr[S] < e^P·Pr[S]",
            "≤",
            "fails for events of probability 0, and wherever P(r) = 0",
        ),
        Misprint(
            "Appendix, test functions",
            "the indicator of [0, 1]",
            "a C^∞ bump",
            "a test function is C^∞; the indicator jumps",
        ),
        _theorem(),
    ]


def _coefficients() -> Misprint:
    """Compare coefficients of h − b²h″ with both formulas."""
    b, x = sympy.symbols("b x")
    c = sympy.symbols("b:8")
    h = sum(ci * x**i for i, ci in enumerate(c))
    g = sympy.Poly(sympy.expand(h - b**2 * sympy.diff(h, x, 2)), x)
    top = len(c) - 2
    right = sum(
        sympy.expand(g.coeff_monomial(x**i) - c[i] + b**2 * (i + 2) * (i + 1) * c[i + 2]) == 0
        for i in range(top)
    )
    printed = sum(
        sympy.expand(g.coeff_monomial(x**i) - c[i] + b**2 * i * (i - 1) * c[i + 2]) == 0
        for i in range(top)
    )
    return Misprint(
        "Appendix, a_i from b_i",
        "i(i−1) b_{i+2}",
        "(i+2)(i+1) b_{i+2}",
        f"h − b²h″ of degree {len(c) - 1}: right for {right} of {top} i, printed for {printed}",
    )


def _variance() -> Misprint:
    """Evaluate the variance of M_U with ε₁ ≠ ε₂ both ways."""
    first, second, n, m = 0.5, 2.0, 40, 0.5
    exact = Mean(first, second, centred=False).sd(n, m)
    g = unbiased("1/n", Laplace(1 / first), (1, None)).sd(n)
    ways = [_product_sd(n * m, 2 / e**2, n, g) for e in (first, second)]
    return Misprint(
        "Section 5, Var M_U",
        "2/ε₁²",
        "2/ε₂²",
        f"ε₁ = {first:g}, ε₂ = {second:g}, n = {n}: sd {exact:.5f}; "
        f"printed {ways[0]:.5f}, right {ways[1]:.5f}",
    )


def _product_sd(s: float, noise: float, n: int, g: float) -> float:
    return math.sqrt((s**2 + noise) * (1 / n**2 + g**2) - s**2 / n**2)


def _policy() -> Misprint:
    b, record = 2, 100.0
    loss = PerRecordSum("root:2", b).policy(record)
    return Misprint(
        "Section 6, policy of roots",
        "P(r) = r^(1/k)",
        "r^(1/k)/b",
        f"k = 2, b = {b}, r = {record:g}: loss {loss:g}, printed {math.sqrt(record):g}",
    )


def _theorem() -> Misprint:
    """Ask for an estimator that the theorem as stated promises."""
    scale = 0.7
    try:
        unbiased("sin(exp(q))", Laplace(scale))
    except NoUnbiasedEstimator:
        evidence = f"sin(e^q) is bounded and smooth, but at b = {scale:g} E|f − b²f″| = ∞"
    else:
        evidence = "not reproduced"
    return Misprint("Theorem, f − b²f″", "f tempered, f″ exists", "and E|f − b²f″| < ∞", evidence)
