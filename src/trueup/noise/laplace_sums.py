"""The density and the tail of a sum of Laplace noises, to full relative accuracy.

With rates rᵢ = 1/bᵢ and M(t) = Π 1/(1 − bᵢ²t²) the density at x > 0 is minus the sum of the
residues of e^{−tx} M(t) at the rates, the tail the same for M(t)/t. Partial fractions, one term per
rate, cancel where rates are near: they are a divided difference. Those of a product split,

    (R·e^{−·x})[r₁..rₙ] = Σⱼ R[r₁..rⱼ] · e^{−·x}[rⱼ..rₙ],

where R, the rest of M, contributes numbers, and with λ = max rᵢ and complete homogeneous sums hₖ

    (−1)^{n−j} e^{−·x}[rⱼ..rₙ] = e^{−λx} Σₖ hₖ(λ − rⱼ, …, λ − rₙ) x^{k+n−j}/(k + n − j)!

has positive terms only. In this way n rates give e^{−λx} Σₚ Cₚ xᵖ/p!, whether they are equal (a
polynomial of degree n − 1), equal up to rounding, near, or a few times each other.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from trueup.noise.fields import Digits, working_digits

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats

MILD = 100.0
"""Partial fractions whose terms exceed their sum by no more lose two digits at most."""

FORGOTTEN = 50.0
"""A term e^{50} times smaller than another, powers aside, is beyond the last digit of the sum."""

BLOCK = 2**20
"""Terms computed at once."""


class Cluster(NamedTuple):
    """e^{−λx} Σₚ cₚ (s·x)ᵖ/p! with λ = ``fastest``: what some of the rates contribute for x > 0."""

    fastest: float
    step: float
    coefficients: Floats


class LaplaceSum:
    """The law of Σ Zᵢ, Zᵢ Laplace of scale bᵢ, at x ≥ 0; it is symmetric.

    Examples
    --------
    >>> law = LaplaceSum((1, 1))
    >>> np.exp(law.log_density(np.array([0.0, 2.0]))), np.exp(law.log_tail(np.array([0.0])))
    (array([0.25      , 0.10150146]), array([0.5]))
    """

    def __init__(self, scales: tuple[Exact, ...]) -> None:
        self.counts = Counter(sorted(scales, reverse=True))
        self._digits = 50 + 20 * len(scales)
        self._octaves: dict[tuple[int, int], list[Cluster]] = {}

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of the density at x ≥ 0."""
        return self._log(x, 0)

    def log_tail(self, x: Floats) -> Floats:
        """Return log P(Σ Zᵢ > x) at x ≥ 0."""
        return self._log(x, 1)

    def _log(self, x: Floats, power: int) -> Floats:
        """Return log of ∓Σ Res e^{−tx} M(t)/t^power; −∞ far beyond what floats can hold."""
        x = np.asarray(x, float)
        flat = np.ravel(x)
        result = np.where(np.isnan(flat), np.nan, -np.inf)
        fastest = 1 / min(map(float, self.counts))
        with np.errstate(divide="ignore", over="ignore"):
            octave = np.maximum(np.ceil(np.log2(flat * fastest)), 0.0)
        if self._separate[power] is not None:
            octave[np.isfinite(octave)] = 0.0
        for e in np.unique(octave[np.isfinite(octave)]):
            chosen = octave == e
            clusters = self._separate[power] or self._near(int(e), power)
            result[chosen] = _log_sum(clusters, 1 / max(map(float, self.counts)), flat[chosen])
        return result.reshape(x.shape)

    @cached_property
    def _separate(self) -> list[list[Cluster] | None]:
        """One cluster for each scale that is unlike the others, None if they would cancel."""
        found: list[list[Cluster] | None] = []
        for power in (0, 1):
            groups = [[b] * n for b, n in self.counts.items()]
            clusters = [self._cluster(group, 0.0, power) for group in groups]
            first = [c.coefficients[0] for c in clusters]
            mild = sum(map(abs, first)) <= MILD * abs(sum(first))
            found.append(clusters if mild else None)
        return found

    def _near(self, octave: int, power: int) -> list[Cluster]:
        """Return what matters for x between 2^{e−1} and 2ᵉ times the least scale, made once."""
        if (octave, power) not in self._octaves:
            self._octaves[octave, power] = [self._slowest(octave, power)]
        return self._octaves[octave, power]

    def _slowest(self, octave: int, power: int) -> Cluster:
        """Return the slowest rates, up to a gap so wide that all faster ones are forgotten."""
        scales = list(self.counts.elements())
        reach = float(scales[-1]) * 2.0**octave
        with working_digits(self._digits):
            rates = [1 / Digits().number(b) for b in scales]
            gaps = [float(right - left) for left, right in itertools.pairwise(rates)]
        wide = [gap * reach / 2 >= FORGOTTEN + 4 * len(scales) for gap in gaps]
        return self._cluster(scales[: [*wide, True].index(True) + 1], reach, power)

    def _cluster(self, scales: list[Exact], reach: float, power: int) -> Cluster:
        """Return what some scales, the largest first, contribute for x up to a reach."""
        with working_digits(self._digits):
            rates = [1 / Digits().number(b) for b in scales]
            distances = [float(rates[-1] - r) for r in rates]
            fastest, spread = float(rates[-1]), distances[0] * reach
            step = distances[0] if spread > 1 else fastest
            powers = range(1 - len(scales), 1)
            weights = [
                float(w * Digits().number(step) ** k)
                for w, k in zip(self._weights(scales, rates, power), powers, strict=True)
            ]
        terms = len(rates)
        if distances[0]:  # a Poisson variable of mean μ stays below μ + 9√μ + 40
            terms += math.ceil(spread + 9 * math.sqrt(spread) + 40)
        # Σⱼ Aⱼ z^{n−j} Πᵢ≥ⱼ 1/(1 − dᵢz) by Horner's rule
        series = np.zeros(terms)
        for weight, distance in zip(weights, distances, strict=True):
            series = np.concatenate([[weight], series[:-1]])
            series = scipy.signal.lfilter([1.0], [1.0, -distance / step], series)
        return Cluster(fastest, step, series)

    def _weights(self, scales: list[Exact], rates: list[Any], power: int) -> list[Any]:
        """Return (−1)^{j+1} R[r₁..rⱼ] Π rᵢ for j = 1..n, R the rest of M(t)/t^power.

        R[r₁], R[r₁, r₂], … is the first row of R(T), T with the rates on its diagonal and ones
        above it (Opitz); R is a product of (α + βt)⁻¹, so it is made by substitutions.
        """
        rest = self.counts - Counter(scales)
        b = [Digits().number(s) for s in self.counts.elements()]
        factors = [(1, s) for s in b] + [(1, -Digits().number(s)) for s in rest.elements()]
        factors += [(0, 1)] * power
        row: list[Any] = [Digits().number(1)] + [Digits().number(0)] * (len(rates) - 1)
        for alpha, beta in factors:
            for j, rate in enumerate(rates):
                before = row[j - 1] if j else 0
                row[j] = (row[j] - beta * before) / (alpha + beta * rate)
        scale = math.prod(rates)
        return [(-1) ** j * value * scale for j, value in enumerate(row)]


def _log_sum(clusters: list[Cluster], slowest: float, x: Floats) -> Floats:
    """Return the logarithm of the sum of the clusters at x ≥ 0."""
    total = np.zeros(len(x))
    for fastest, step, coefficients in clusters:
        p = np.arange(float(len(coefficients)))
        with np.errstate(divide="ignore"):
            heights = np.log(np.abs(coefficients)) - scipy.special.gammaln(p + 1)
        size = max(1, BLOCK // len(p))
        for i in range(0, len(x), size):
            rows = x[i : i + size, None]
            logs = heights + scipy.special.xlogy(p, step * rows) - (fastest - slowest) * rows
            total[i : i + size] += np.exp(logs) @ np.sign(coefficients)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(total, 0.0)) - slowest * x)
