"""Reference laws in mpmath: densities typed in anew, summed or integrated to 40 digits."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mass,
    Noise,
    RoundedGaussian,
    RoundedLaplace,
    Staircase,
    StudentT,
    Uniform,
)

mpf = mpmath.mpf


@dataclasses.dataclass(frozen=True)
class Law:
    """A noise of the library beside a density that does not come from it."""

    noise: Noise
    density: Callable[[Any], Any]
    pieces: Callable[[], list[Any]]
    """Where to cut the half line (continuous), or the integers to sum over (lattice)."""
    strip: tuple[Any, ...] = (0.1,)
    """Real tilts that the law bears."""

    def expect(self, f: Callable[[Any], Any]) -> Any:
        """Return E f(Z)."""
        with mpmath.workdps(DIGITS):
            return mpmath.fsum(f(z) * weight for z, weight in self.rule())

    def below(self, x: float) -> Any:
        """Return P(Z ≤ x)."""
        with mpmath.workdps(DIGITS):
            return mpmath.fsum(weight for z, weight in self.rule(x) if z <= x)

    def tilted(self, c: Any, order: int) -> list[Any]:
        """Return E[Zʲ e^{cZ}] for j = 0..order."""
        with mpmath.workdps(DIGITS):
            terms = [(z, mpmath.exp(c * z) * weight) for z, weight in self.rule()]
            return [mpmath.fsum(z**j * term for z, term in terms) for j in range(order + 1)]

    @functools.cache  # noqa: B019
    def rule(self, cut: float | None = None) -> list[tuple[Any, Any]]:
        """Return points and weights that sum up to expectations, cut at one more point."""
        with mpmath.workdps(DIGITS):
            return self.points(cut)

    def points(self, cut: float | None) -> list[tuple[Any, Any]]:
        """Return the rule in the working precision."""
        if self.noise.lattice:
            return [(mpf(k), self.density(mpf(k))) for k in self.pieces()]
        half = self.pieces()
        cuts = [-x for x in half[:0:-1]] + half
        if cut is not None and abs(cut) < half[-1]:
            cuts = sorted({*cuts, mpf(cut)})
        return [node for ends in itertools.pairwise(cuts) for node in self.piece(*ends)]

    @functools.cache  # noqa: B019
    def piece(self, low: Any, high: Any) -> list[tuple[Any, Any]]:
        """Return the rule on one piece, with the density in the weights."""
        return [(x, w * self.density(x)) for x, w in gauss(low, high)]


DIGITS = 34


def mgf(noise: Noise, t: Any) -> Any:
    """Return E e^{tZ}, a float for real t."""
    value = noise.tilted(t, 0)[0]
    return float(value) if value.is_real else complex(value)


@functools.cache
def legendre() -> list[tuple[Any, Any]]:
    """Return the nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""
    with mpmath.workdps(DIGITS + 10):
        start = np.polynomial.legendre.leggauss(20)[0]
        nodes = [mpmath.findroot(lambda x: mpmath.legendre(20, x), mpf(x)) for x in start]
        slopes = [20 * mpmath.legendre(19, x) / (1 - x**2) for x in nodes]
        return [(x, 2 / ((1 - x**2) * s**2)) for x, s in zip(nodes, slopes, strict=True)]


def gauss(low: Any, high: Any) -> list[tuple[Any, Any]]:
    """Return the rule on [low, high]."""
    middle, radius = (mpf(high) + low) / 2, (mpf(high) - low) / 2
    return [(middle + radius * x, radius * w) for x, w in legendre()]


def steps(unit: Any, reach: int) -> list[Any]:
    """Return 0, unit, 2 unit, … up to the reach."""
    return [unit * k for k in range(reach + 1)]


def doubling(unit: Any) -> list[Any]:
    """Return distances that double, for power tails."""
    return [*steps(unit / 4, 7), *(unit * mpf(2) ** (k / mpf(2)) for k in range(2, 200))]


def laplace(scale: Any, **options: Any) -> Law:
    with mpmath.workdps(60):
        b = mpf(Fraction(scale).numerator) / Fraction(scale).denominator
    density = lambda x: mpmath.exp(-abs(x) / b) / (2 * b)  # noqa: E731
    return Law(Laplace(scale), density, lambda: steps(b, 100), **options)


def gaussian(scale: Any) -> Law:
    s = mpf(scale)
    density = lambda x: mpmath.exp(-((x / s) ** 2) / 2) / (s * mpmath.sqrt(2 * mpmath.pi))  # noqa: E731
    return Law(Gaussian(scale), density, lambda: steps(s / 2, 30))


def uniform(width: Any) -> Law:
    w = mpf(width)
    density = lambda x: 1 / w if abs(x) <= w / 2 else mpf(0)  # noqa: E731
    return Law(Uniform(width), density, lambda: steps(w / 2, 1), strip=(0.1, 3.0))


def student_t(df: Any, scale: Any) -> Law:
    nu, s = mpf(df), mpf(scale)
    with mpmath.workdps(60):
        top = mpmath.gammaprod([(nu + 1) / 2], [nu / 2]) / mpmath.sqrt(nu * mpmath.pi) / s

    def density(x: Any) -> Any:
        return top * (1 + (x / s) ** 2 / nu) ** (-(nu + 1) / 2)

    return Law(StudentT(df, scale), density, lambda: doubling(s), strip=())


def staircase(epsilon: Any, sensitivity: Any, gamma: Any = None) -> Law:
    e, d = mpf(epsilon), mpf(sensitivity)

    @functools.cache
    def first_step() -> Any:
        with mpmath.workdps(DIGITS):
            return 1 / (1 + mpmath.exp(e / 2)) if gamma is None else mpf(gamma)

    def density(x: Any) -> Any:
        g, r = first_step(), mpmath.exp(-e)
        top = (1 - r) / (2 * d * (g + r * (1 - g)))
        whole = mpmath.floor(abs(x) / d)
        return top * r ** (whole + (abs(x) / d - whole >= g))

    def pieces() -> list[Any]:
        steps = range(int(75 / epsilon) + 2)
        cuts = sorted({(k + g) * d for k in steps for g in (mpf(0), first_step())})
        return [x for x, y in zip(cuts, [*cuts[1:], mpf("inf")], strict=True) if y > x]

    return Law(Staircase(epsilon, sensitivity, gamma), density, pieces, strip=(0.3,))


def discrete(noise: Noise, weight: Callable[[Any], Any], reach: int) -> Law:
    ks = range(-reach, reach + 1)

    @functools.cache
    def total() -> Any:
        with mpmath.workdps(DIGITS):
            return mpmath.fsum(weight(mpf(k)) for k in ks)

    return Law(noise, lambda k: weight(k) / total(), lambda: list(ks), strip=(0.1, 0.4))


def discrete_laplace(scale: float) -> Law:
    reach = int(110 * scale * (1 / (1 - 0.4 * scale) if scale < 2 else 5)) + 3
    return discrete(DiscreteLaplace(scale), lambda k: mpmath.exp(-abs(k) / mpf(scale)), reach)


def discrete_gaussian(scale: float) -> Law:
    weight = lambda k: mpmath.exp(-((k / mpf(scale)) ** 2) / 2)  # noqa: E731
    return discrete(DiscreteGaussian(scale), weight, int(16 * scale) + 4)


def rounded(noise: Noise, tail: Callable[[Any], Any], reach: int) -> Law:
    """Return the law of a symmetric number with this upper tail, rounded."""
    half = mpf(1) / 2

    def density(k: Any) -> Any:
        size = abs(k)
        return 1 - 2 * tail(half) if size == 0 else tail(size - half) - tail(size + half)

    return Law(noise, density, lambda: list(range(-reach, reach + 1)), strip=(0.1, 0.4))


def rounded_laplace(scale: float) -> Law:
    reach = int(110 * scale * (1 / (1 - 0.4 * scale) if scale < 2 else 5)) + 3
    tail = lambda x: mpmath.exp(-x / mpf(scale)) / 2  # noqa: E731
    return rounded(RoundedLaplace(scale), tail, reach)


def rounded_gaussian(scale: float) -> Law:
    tail = lambda x: mpmath.erfc(x / mpf(scale) / mpmath.sqrt(2)) / 2  # noqa: E731
    return rounded(RoundedGaussian(scale), tail, int(16 * scale) + 4)


def table(masses: dict[int, Any]) -> Law:
    density = lambda k: mpmath.mpmathify(masses.get(int(k), 0))  # noqa: E731
    return Law(Mass(masses), density, lambda: sorted(masses), strip=(0.1, 3.0))


LAWS = [
    laplace(2),
    laplace(Fraction(1, 3)),
    laplace(0.7),
    gaussian(3),
    gaussian(0.25),
    uniform(2),
    uniform(0.3),
    student_t(3, 1),
    student_t(7.5, 2),
    staircase(1, 1),
    staircase(3, 2),
    staircase(2, 1, 0),
    staircase(2, 0.5, 0.7),
    staircase(2, 1, 1),
    discrete_laplace(2),
    discrete_laplace(0.05),
    discrete_laplace(0.8),
    discrete_gaussian(0.3),
    discrete_gaussian(0.45),
    discrete_gaussian(1),
    discrete_gaussian(6.5),
    rounded_laplace(2),
    rounded_laplace(0.05),
    rounded_laplace(0.8),
    rounded_gaussian(0.3),
    rounded_gaussian(0.45),
    rounded_gaussian(1),
    rounded_gaussian(6.5),
    table({-2: 0.125, 0: 0.75, 2: 0.125}),
    table({-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}),
]


@pytest.fixture(params=[law for law in LAWS if law.strip], ids=lambda law: repr(law.noise))
def light_law(request: pytest.FixtureRequest) -> Law:
    """One noise with a generating function after the other."""
    return request.param


@pytest.fixture(params=LAWS, ids=lambda law: repr(law.noise))
def law(request: pytest.FixtureRequest) -> Law:
    """One noise after the other, with its reference."""
    return request.param
