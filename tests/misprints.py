"""What ``trueup paper`` tells of the paper's misprints, computed: each with the evidence.

Those of the appendix's Newton step are followed one by one in :mod:`newton_step`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import product, zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING

import sympy

from newton_step import NewtonStep, Slips, over_priors
from trueup.errors import NoUnbiasedEstimator
from trueup.estimator import unbiased
from trueup.mechanisms import Mean, PerRecordSum
from trueup.noise import Laplace
from trueup.paper import excess, printed
from trueup.paper.comparison import digits, paragraph, table, title
from trueup.paper.curves import facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.paper.curves import Curves, Facts


INVERSE = 1 / sympy.Symbol("q")


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


# -- the Newton step -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """What a Newton step with some misprints would have published."""

    name: str
    left_mean: tuple[float, float]
    excess: tuple[float, float]
    facts: Facts | None


@dataclass(frozen=True)
class Mixtures:
    """The mixtures of misprints that agree with the published facts, and what they share."""

    tried: int
    fitting: list[Slips]
    shared: set[str]


def scenarios(found: Curves) -> list[Scenario]:
    """Return what the appendix gives as printed, in part and not at all."""
    step = {"half": True, "short": True, "square": True, "twice": True, "sign": True}
    rows = [
        ("no misprint: the exact optimum", Slips()),
        ("only ½ missing in ∂a₂/∂aᵢ", Slips(half=True)),
        ("only ∂a₁/∂aᵢ a term short", Slips(short=True)),
        ("only 2 + L² in ∂a₀/∂aᵢ", Slips(square=True)),
        ("only α = β counted twice", Slips(twice=True)),
        ("only the sign of the f(q) terms", Slips(sign=True)),
        ("only the b^2l missing", Slips(powers=True)),
        ("as printed", Slips(powers=True, **step)),
        ("as printed, with the b^2l", Slips(**step)),
    ]
    return [_scenario(found, name, slips) for name, slips in rows]


def mixtures(allowed: tuple[float, float]) -> Mixtures:
    """Try every mixture of the misprints that leave g unbiased, under all priors."""
    names = [f.name for f in fields(Slips) if f.name != "powers"]
    tried = [
        Slips(**dict(zip(names, choice, strict=True)))
        for choice in product((False, True), repeat=len(names))
    ]
    ranges = [over_priors(_step(slips))[1] for slips in tried]
    fit = [
        slips
        for slips, (low, high) in zip(tried, ranges, strict=True)
        if allowed[0] <= low and high <= allowed[1]
    ]
    shared = {name for name in names if fit and all(getattr(s, name) for s in fit)}
    return Mixtures(len(tried), fit, shared)


def facts_with(found: Curves, size: float) -> Facts:
    """Return what the paper would have read off the curve with a given excess."""
    return facts(found.counts, found.sds["m_ss"], excess.sd_with(found, size))


def _scenario(found: Curves, name: str, slips: Slips) -> Scenario:
    mean, spread = over_priors(_step(slips))
    unbiased = all(math.isclose(m, excess.left_mean()) for m in mean)
    middle = facts_with(found, sum(spread) / 2) if unbiased else None
    return Scenario(name, mean, spread, middle)


def _step(slips: Slips) -> NewtonStep:
    scale = int(1 / printed.EPSILON_COUNT)
    return NewtonStep(INVERSE, printed.LEAST_COUNT, scale, printed.DEGREE, slips)


# -- as text ---------------------------------------------------------------------------------------


def newton_text(rows: list[Scenario], found: Mixtures) -> str:
    """Return the end of part 3 of the report."""
    opening = paragraph(
        """The appendix reaches the optimum by one Newton step from the parabola. Its formulas,
        evaluated in exact arithmetic with their misprints, one at a time and together; ranges are
        over all priors:"""
    )
    head = ["the Newton step", "mean below L", "excess", "ahead from", "above 1 to", "peak ratio"]
    body = table(head, [_row(s) for s in rows])
    return f"{opening}\n\n{body}\n\n{_verdict(rows, found)}"


def _row(s: Scenario) -> list[str]:
    cells = [s.name, span(*s.left_mean, 3), span(*s.excess)]
    if s.facts is None:
        return [*cells, "biased", "", ""]
    f = s.facts
    return [
        *cells,
        str(f.ahead_from),
        str(f.both_above_one_up_to),
        f"{digits(f.peak)} at {f.peak_at}",
    ]


_WORDS = {
    "half": "lack the ½",
    "short": "cut the sum short",
    "square": "have 2 + L²",
    "twice": "count α = β twice",
    "sign": "have the wrong sign",
}


def _verdict(rows: list[Scenario], found: Mixtures) -> str:
    """Say which misprints reproduce the published numbers."""
    if not found.fitting:
        return paragraph("No mixture of these misprints reproduces the published numbers.")
    shared = " and ".join(words for name, words in _WORDS.items() if name in found.shared)
    last = rows[-1]
    gives = ""
    if last.facts is not None:
        f = last.facts
        gives = f"""The appendix as printed, with only the powers b^2l put back (without them g is
        biased), gives n = {f.ahead_from}, n = {f.both_above_one_up_to} and a peak of
        {digits(f.peak)}, under every prior."""
    return paragraph(
        f"""{gives} Of the {found.tried} mixtures of the five other misprints
        {len(found.fitting)} agree with every published number; all of them {shared}. That is how
        the published curve can have come about; it is a reconstruction, not a proof."""
    )


def misprints_text() -> str:
    """Return part 7 of the report."""
    head = ["where", "printed", "right", "computed here"]
    rows = [[m.where, m.printed, m.right, m.evidence] for m in misprints()]
    note = paragraph("Those of the Newton step in the appendix are followed one by one in 3.")
    body = wrapped(head, rows, (25, 23, 19, 25))
    return f"{title('7. Other misprints')}\n{body}\n\n{note}"


def wrapped(head: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Lay out rows of text, each cell wrapped to the width of its column."""
    lines = []
    for row in [head, *rows]:
        cells = [wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            padded = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
            lines.append(("  " + "  ".join(padded)).rstrip())
    return "\n".join(lines)


def span(low: float, high: float, figures: int = 4) -> str:
    """Write a range, or one number if its ends look the same."""
    ends = digits(low, figures), digits(high, figures)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} – {ends[1]}"
