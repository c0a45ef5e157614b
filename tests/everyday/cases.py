"""What people compute from noisy counts and totals, as data: formula, noise, domain.

Each of them is accepted, quick to build, unbiased, has a variance, ``sd``, an interval that covers,
and SQL. A noise is text in the names of ``trueup``; ``tests/prove/laws.py`` reads the same text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import trueup as tu


@dataclasses.dataclass(frozen=True)
class Case:
    """One formula with the noises of its statistics and what is known of them."""

    formula: str
    noises: Mapping[str, str]
    domain: str
    integers: bool = False
    """Whether the statistic is known to be an integer although its noise is continuous."""

    @property
    def name(self) -> str:
        """The case in one line, which is also the name of its tests."""
        noises = ", ".join(f"{s} {text}" for s, text in self.noises.items())
        integers = ", integers" if self.integers else ""
        return f"{self.formula} | {noises} | {self.domain or 'no bounds'}{integers}"

    def noise(self) -> dict[str, tu.Noise]:
        """Return the noises as objects."""
        return {name: noise(text) for name, text in self.noises.items()}

    def build(self) -> tu.Estimator:
        """Return the estimator."""
        if self.integers:
            (name,) = self.noises
            return tu.unbiased(self.formula, self.noise(), {name: tu.Integers(1, None)})
        return tu.unbiased(self.formula, self.noise(), self.domain or None)


def noise(text: str) -> tu.Noise:
    """Return the noise of a text like ``Laplace(2) + Gaussian(1)``."""
    parts = []
    for part in text.split(" + "):
        family, _, scale = part.removesuffix(")").partition("(")
        parts.append(getattr(tu, family)(float(scale)))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def alike(names: str, text: str) -> dict[str, str]:
    """Return the same noise for each of some statistics."""
    return dict.fromkeys(names.split(), text)


ONE_COUNT = """1/n · 1/n**2 · n**2 · sqrt(n) · log(n) · log(n+1) · 1/(n+1) · exp(-n/50) · n*log(n)
 · 1/sqrt(n) · n/(n+10) · 100000/n · (n-1)/n · n**1.5"""
KINKS = """max(n,1) · min(n,100) · abs(n-5) · where(n>0,1/n,0) · where(n>=10,1,0) · max(n-10,0)
 · 1/max(n,1) · where(n<5,0,n)"""
TOTAL_AND_COUNT = """s/n · s/n-1 · 100*(s/n-1) · (s/n)**2 · s*n · s/n**2 · s/(n+1) · s/sqrt(n)
 · (s-n)/n · s**2/n"""
TWO_COUNTS = """log(s/n) · log(s)-log(n) · s/(s+n) · sqrt(s/n) · 2*(s-n)/(s+n) · s/n+n/s
 · s*log(s/n)"""


def listed(text: str) -> list[str]:
    """Return the formulas of a list."""
    return [formula.strip() for formula in text.split("·")]


def everyday() -> Iterator[Case]:
    """Yield every case."""
    yield from _one()
    yield from _two()
    yield from _more()
    yield from _without_bounds()


def _one() -> Iterator[Case]:
    for formula in listed(ONE_COUNT):
        for text in ("Laplace(2)", "DiscreteLaplace(2)", "DiscreteLaplace(5)"):
            yield Case(formula, {"n": text}, "n >= 1")
        yield Case(formula, {"n": "Laplace(2)"}, "n >= 1", integers=True)
    for formula in listed(KINKS):
        yield Case(formula, {"n": "DiscreteLaplace(2)"}, "n >= 0")
    for formula in ("1/n", "log(n)", "max(n,1)"):
        for text in ("DiscreteLaplace(2) + DiscreteLaplace(3)", "RoundedLaplace(2)"):
            yield Case(formula, {"n": text}, "n >= 1")


def _two() -> Iterator[Case]:
    for formula in listed(TOTAL_AND_COUNT):
        for text in ("DiscreteLaplace(3)", "Laplace(3)"):
            yield Case(formula, {"s": "Laplace(20)", "n": text}, "n >= 1")
    for formula in listed(TWO_COUNTS):
        for text in ("DiscreteLaplace(3)", "Laplace(3)"):
            yield Case(formula, alike("s n", text), "s >= 1, n >= 1")
    for formula in ("s/max(n,1)", "where(n>0,s/n,0)", "min(s/max(n,1),1)"):
        yield Case(formula, alike("s n", "DiscreteLaplace(3)"), "s >= 0, n >= 0")
    for formula in ("s/n", "s/n*(1-s/n)", "exp(s/n)"):
        yield Case(formula, alike("s n", "DiscreteLaplace(2)"), "0 <= s <= n, n >= 1")
    yield Case("log(s)-log(n)", alike("s n", "DiscreteLaplace(2)"), "1 <= s <= n")
    yield Case("b/(a+b)", alike("a b", "DiscreteLaplace(1)"), "a >= 0, b >= 0, a + b >= 1")
    yield Case("b/(a+b)", alike("a b", "Laplace(1)"), "a >= 1, b >= 1")
    yield Case("sxy/sxx", alike("sxy sxx", "Laplace(10)"), "sxx >= 20")
    for text in ("DiscreteLaplace(2)", "DiscreteLaplace(10)"):
        yield Case("1e5*d/p", alike("d p", text), "p >= 100")


def _more() -> Iterator[Case]:
    count = {"n": "DiscreteLaplace(3)"}
    yield Case("s2/n-(s/n)**2", alike("s2 s", "Laplace(20)") | count, "n >= 1")
    yield Case("sxy/n-sx*sy/n**2", alike("sxy sx sy", "Laplace(20)") | count, "n >= 1")
    counts = alike("n1 n2", "DiscreteLaplace(3)")
    for formula in ("s1/n1-s2/n2", "0.3*s1/n1+0.7*s2/n2"):
        for text in ("Laplace(20)", "DiscreteLaplace(20)"):
            yield Case(formula, alike("s1 s2", text) | counts, "n1 >= 1, n2 >= 1")
    noises = {"s1": "Laplace(20)", "s2": "DiscreteLaplace(3)"} | counts
    yield Case("(s1/n1)/(s2/n2)", noises, "n1 >= 1, n2 >= 1, s2 >= 1")
    for formula in ("a*d/(b*c)", "log(a*d/(b*c))", "(a+b)/(c+d)", "(c-d)/(a+b+c+d)"):
        bounds = "a >= 1, b >= 1, c >= 1, d >= 1"
        yield Case(formula, alike("a b c d", "DiscreteLaplace(2)"), bounds)
    formula = "(a**2+b**2+c**2)/(a+b+c)**2"
    yield Case(formula, alike("a b c", "DiscreteLaplace(2)"), "a >= 1, b >= 1, c >= 1")


def _without_bounds() -> Iterator[Case]:
    for text in ("Gaussian(2)", "DiscreteGaussian(2)", "Staircase(1)"):
        for formula in ("q**2", "q**3-2*q", "exp(q/10)"):
            yield Case(formula, {"q": text}, "")
        yield Case("a*b-c", alike("a b c", text), "")


CASES = tuple(everyday())
