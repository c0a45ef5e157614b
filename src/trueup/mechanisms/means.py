"""Unbiased means of a data set whose size is not public."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.estimator import unbiased
from trueup.exact import number
from trueup.mechanisms.inverse_count import inverse_moments
from trueup.mechanisms.quadrant import Quadrant
from trueup.mechanisms.records import (
    float_above,
    read_bounds,
    read_mean,
    read_outside,
    read_records,
    read_size,
)
from trueup.mechanisms.released import MeanRelease, Mechanism, root, rounding, square_of
from trueup.mechanisms.sampling import generator, publish
from trueup.mechanisms.whole_numbers import Grid, Whole
from trueup.noise import DiscreteLaplace, Laplace

if TYPE_CHECKING:
    from trueup.estimator import Estimator
    from trueup.exact import Exact
    from trueup.noise import Noise


class Mean(Mechanism):
    """Release a noisy count and a noisy sum, and debias their ratio (Algorithm 1, M_U).

    With ``centred=False, extension=10`` this is the paper's mechanism. Centred at the middle of the
    bounds the sum has half the sensitivity, which pays for all but small data sets.

    Parameters
    ----------
    epsilon_count, epsilon_sum
        The privacy budget of the count and of the sum; together the ε of the release.
    bounds
        Where the values lie; others are clipped (or refused, with ``outside="raise"``).
    count_at_least
        A public lower bound of the number of records.
    centred
        Whether the sum is of deviations from the middle of the bounds.
    extension
        How to go on below ``count_at_least``: "optimal", or a degree k for the paper's way.
    count_noise
        "laplace", as in the paper, or "discrete": better, and what libraries add to counts.

    Examples
    --------
    >>> mechanism = Mean(0.5, 0.5)
    >>> round(mechanism.sd(n=20, mean=0.5), 4)
    0.0782
    >>> mechanism.release([0.2, 0.9] * 100, rng=1)
    <mean 0.5615 ± 0.0071, count 200.0; simulation: not private>
    """

    def __init__(
        self,
        epsilon_count: Exact,
        epsilon_sum: Exact,
        bounds: tuple[Exact, Exact] = (0, 1),
        count_at_least: Exact = 1,
        centred: bool = True,
        extension: str | int = "optimal",
        count_noise: str = "laplace",
        outside: str = "clip",
    ) -> None:
        self.bounds = read_bounds(bounds)
        self.outside = read_outside(outside)
        self.count_at_least = number(count_at_least, "count_at_least", positive=True)
        self.epsilon = number(epsilon_count, "epsilon_count", positive=True) + number(
            epsilon_sum, "epsilon_sum", positive=True
        )
        if count_noise not in ("laplace", "discrete"):
            raise TrueupError(
                f"count_noise must be 'laplace' or 'discrete', got {count_noise!r}",
                "'discrete' adds whole numbers, which is better",
            )
        family = Laplace if count_noise == "laplace" else DiscreteLaplace
        low, high = (Fraction(b) for b in self.bounds)
        self.middle: Fraction = (low + high) / 2 if centred else Fraction(0)
        self.reach: Fraction = max(high - self.middle, self.middle - low)
        self.noise: dict[str, Noise] = {
            "s": Laplace.from_budget(epsilon_sum, _shown(self.reach, self.bounds)),
            "n": family.from_budget(epsilon_count),
        }
        self.extension = extension
        if extension != "optimal":
            _ = self.estimator  # refuses what is no extension

    @cached_property
    def estimator(self) -> Estimator:
        """The unbiased s/n."""
        domain = {"n": (self.count_at_least, None)}
        return unbiased("s/n", self.noise, domain, self.extension)

    def release(self, values: Any, rng: Any = None) -> MeanRelease:
        """Return a private count and mean; with an ``rng`` it is only a simulation."""
        records, rng = read_records(values, self.bounds, self.outside), generator(rng)
        grid = self.grid
        total = Whole((grid.total(records),), self.reach / grid.steps)
        count = publish([len(records)], self.noise["n"], rng)[0]
        noisy = {"n": float(count), "s": float(publish(total, self.noise["s"], rng)[0])}
        mean = float(self.middle) + self.estimator(**noisy)
        variance = float(self.estimator.variance(**noisy))
        return MeanRelease(
            float(count),
            mean,
            variance,
            {"sum": self.noise["s"], "count": self.noise["n"]},
            rng is not None,
            (noisy["s"], noisy["n"]),
            rounding(mean, root(variance)),
        )

    @property
    def grid(self) -> Grid:
        """The records as whole numbers: their deviations from the middle, at most the reach."""
        scale = Fraction(self.noise["s"].scale) / self.reach  # type: ignore[attr-defined]
        return Grid.under(scale, self.bounds, self.middle, self.reach)

    def sd(self, n: int, mean: Exact) -> float:
        """Return the exact standard deviation of the mean for n records with a given mean."""
        size, total = self._truth(n, mean)
        if self.extension != "optimal":
            return float(self.estimator.sd(s=total, n=size))
        noise = self.noise["n"]
        centre, spread = inverse_moments(size, noise, float(self.count_at_least))
        error = float(self.noise["s"].variance) * (spread + centre**2)
        return math.sqrt(error + total**2 * spread)

    def sd_count(self, n: int, mean: Exact) -> float:
        """Return the standard deviation of the published count."""
        return math.sqrt(float(self.noise["n"].variance))

    def bias(self, n: int, mean: Exact) -> float:
        """Return the exact bias: zero from ``count_at_least`` records on."""
        size, total = self._truth(n, mean)
        return float(self.estimator.bias(s=total, n=size))

    def _truth(self, n: object, mean: object) -> tuple[float, float]:
        """Return the number of records and the sum of their deviations from the middle."""
        size = float(read_size(n))
        return size, size * float(read_mean(mean, self.bounds) - self.middle)


def _shown(reach: Fraction, bounds: tuple[Exact, Exact]) -> Exact:
    """Return a sensitivity as exact as the bounds are, rounded to the private side."""
    return float_above(reach) if any(isinstance(b, float) for b in bounds) else reach


class SmoothSensitivityMean(Mechanism):
    """Add Student noise scaled to a smooth bound of the sensitivity (Algorithm 2, M_SS).

    The paper's yardstick: no exact sampler of its noise is known, so that every release is a
    simulation for comparison, never private, with or without an ``rng``.

    Parameters
    ----------
    epsilon_count, epsilon_mean
        The privacy budget of the count and of the mean.
    bounds
        Where the values lie.
    beta, tau
        Positive with epsilon_mean = 4·beta + 2/(√3·tau); by default epsilon_mean/12 and
        √3/epsilon_mean; one of them determines the other.

    Examples
    --------
    >>> round(SmoothSensitivityMean(0.5, 0.5).sd(n=20, mean=0.5), 3)
    2.719
    """

    is_private = False

    def __init__(
        self,
        epsilon_count: Exact,
        epsilon_mean: Exact,
        bounds: tuple[Exact, Exact] = (0, 1),
        beta: float | None = None,
        tau: float | None = None,
    ) -> None:
        self.bounds = read_bounds(bounds)
        self.epsilon_mean = number(epsilon_mean, "epsilon_mean", positive=True)
        self.epsilon = number(epsilon_count, "epsilon_count", positive=True) + self.epsilon_mean
        self.beta, self.tau = _smoothing(float(self.epsilon_mean), beta, tau)
        self.count_noise = Laplace.from_budget(epsilon_count)

    def scale(self, n: float) -> float:
        """Return the factor of the Student noise for n records."""
        size = float(read_size(n))
        smooth = max(math.exp(-self.beta * (size - 1)), 1 / max(size, 1.0))
        return self.tau * smooth * float(_span(self.bounds)[1])

    def sd(self, n: float, mean: float) -> float:
        """Return the exact standard deviation √3·scale(n); it does not depend on the mean."""
        read_mean(mean, self.bounds)
        return math.sqrt(3) * self.scale(n)

    def sd_count(self, n: float, mean: float) -> float:
        """Return the standard deviation of the published count."""
        return math.sqrt(float(self.count_noise.variance))

    def release(self, values: Any, rng: Any = None) -> MeanRelease:
        """Return a count and mean for comparison; the standard error is itself an estimate.

        Student noise in floats is not private: the release always says that it is a simulation,
        with ``rng=None`` from a new generator.
        """
        records = read_records(values, self.bounds)
        rng = np.random.default_rng() if rng is None else generator(rng)
        n = len(records)
        grid = Grid.under(1, self.bounds, *_span(self.bounds))
        share = Fraction(grid.total(records), grid.steps * n) if n else 1
        mean = float(grid.origin + share * grid.reach)
        count = float(publish([n], self.count_noise, rng)[0])
        student = rng.standard_t(3)
        return MeanRelease(
            count,
            mean + float(student) * self.scale(n),
            self.sd(max(count, 1.0), mean) ** 2,
            None,
            True,
            (),
            "for comparison, not for publication; the error is estimated from the noisy count",
        )


def _smoothing(epsilon: float, beta: object, tau: object) -> tuple[float, float]:
    """Return (β, τ) with ε = 4β + 2/(√3 τ)."""
    hint = (
        "they must satisfy epsilon_mean = 4*beta + 2/(sqrt(3)*tau); leave both out for the default"
    )
    if beta is None and tau is None:
        return epsilon / 12, math.sqrt(3) / epsilon
    b = None if beta is None else float(number(beta, "beta", positive=True))
    t = None if tau is None else float(number(tau, "tau", positive=True))
    if b is None and t is not None:
        b = (epsilon - 2 / (math.sqrt(3) * t)) / 4
    elif t is None and b is not None and epsilon > 4 * b:
        t = 2 / (math.sqrt(3) * (epsilon - 4 * b))
    if b is None or t is None or b <= 0:
        raise TrueupError(f"no budget is left: beta = {beta}, tau = {tau} at {epsilon}", hint)
    if not math.isclose(4 * b + 2 / (math.sqrt(3) * t), epsilon, rel_tol=1e-9):
        raise TrueupError(f"beta = {beta} and tau = {tau} do not add up to {epsilon}", hint)
    return b, t


class TwoTotalsMean(Mechanism):
    """Release Σc and Σ(1 − c) for c scaled to [0, 1]: one ε serves both, the count comes free.

    A record moves the two totals by (c, 1 − c), by 1 in all. The mean is ½ + ½·(A − B)/(A + B), and
    its estimate uses that no total is negative. Where totals need not be published as real numbers,
    :class:`GroupMean` is better for few records.

    Parameters
    ----------
    epsilon
        The privacy budget of the whole release.
    bounds
        Where the values lie; others are clipped (or refused, with ``outside="raise"``).
    count_at_least
        A public lower bound of the number of records.

    Examples
    --------
    >>> mechanism = TwoTotalsMean(1)
    >>> round(mechanism.sd(n=50, mean=0.5), 5)
    0.02009
    """

    def __init__(
        self,
        epsilon: Exact,
        bounds: tuple[Exact, Exact] = (0, 1),
        count_at_least: Exact = 1,
        outside: str = "clip",
    ) -> None:
        self.bounds = read_bounds(bounds)
        self.outside = read_outside(outside)
        self.epsilon = number(epsilon, "epsilon", positive=True)
        self.count_at_least = number(count_at_least, "count_at_least", positive=True)
        self.noise = Laplace.from_budget(self.epsilon)

    @cached_property
    def quadrant(self) -> Quadrant:
        """The unbiased A/(A + B)."""
        return Quadrant(float(self.noise.scale), float(self.count_at_least))

    def release(self, values: Any, rng: Any = None) -> MeanRelease:
        """Return a private count and mean; with an ``rng`` it is only a simulation."""
        records, rng = read_records(values, self.bounds, self.outside), generator(rng)
        grid = self.grid
        total, unit = grid.total(records), square_of(grid.reach)
        totals = Whole((total, len(records) * grid.steps - total), Fraction(1, grid.steps))
        above, below = (float(x) for x in publish(totals, self.noise, rng))
        mean = float(grid.origin + grid.reach * Fraction(float(self.quadrant.value(below, above))))
        variance = unit * float(self.quadrant.variance(below, above))
        return MeanRelease(
            above + below,
            mean,
            variance,
            {"sum": self.noise, "complement": self.noise},
            rng is not None,
            (above, below),
            rounding(mean, root(variance)),
        )

    @property
    def grid(self) -> Grid:
        """The records as whole numbers: their distances from the lower bound, at most the width."""
        return Grid.under(self.noise.scale, self.bounds, *_span(self.bounds))

    def _moments(self, n: int, mean: Exact) -> tuple[float, float, float]:
        """Return the mean on the scale of [0, 1], and that and the variance of the estimate."""
        low, width = _span(self.bounds)
        share = (read_mean(mean, self.bounds) - low) / width
        size = Fraction(read_size(n))
        return float(share), *self.quadrant.moments(float(size * (1 - share)), float(size * share))

    def sd(self, n: int, mean: Exact) -> float:
        """Return the exact standard deviation of the mean for n records with a given mean."""
        variance = self._moments(n, mean)[2]
        if variance < 0:
            raise TrueupError(
                f"the standard deviation for {n} records is lost in rounding",
                "try a larger epsilon",
            )
        return float(_span(self.bounds)[1]) * math.sqrt(variance)

    def sd_count(self, n: int, mean: Exact) -> float:
        """Return the standard deviation of the published count, the sum of the totals."""
        return math.sqrt(2 * float(self.noise.variance))

    def bias(self, n: int, mean: Exact) -> float:
        """Return the exact bias: zero from ``count_at_least`` records on."""
        share, found, _ = self._moments(n, mean)
        return float(_span(self.bounds)[1]) * (found - share) if n < self.count_at_least else 0.0


def _span(bounds: tuple[Exact, Exact]) -> tuple[Fraction, Fraction]:
    """Return the lower bound and the width, exactly."""
    low, high = (Fraction(b) for b in bounds)
    return low, high - low
