"""The limit for means: the best unbiased ε-DP release of the mean of a few 0/1 records."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.limit.programme import Programme, best_table, edges_of
from trueup.limit.table import exp_below

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.limit.table import Row

MOST_RECORDS = 16
LEAST_EPSILON, MOST_EPSILON = 0.1, 8
_TOLERANCE = 0.005
"""The gap between the variance and its bound that is aimed at; a smaller one takes minutes."""
_LABELS = 25
"""Of the first grid."""


class OptimalMean:
    """The unbiased ε-DP mean of at most N records, each 0 or 1, with the least average variance.

    Databases are pairs (zeros, ones); neighbours differ by one record, and the empty database is
    one of them, with mean ½. The average is over sizes n with weight 1/n, and over all numbers of
    ones alike.
    No unbiased ε-DP release at all has an average below ``lower_bound``.

    Parameters
    ----------
    epsilon
        The privacy loss.
    most
        N, at most 16.

    Examples
    --------
    >>> best = OptimalMean(1, most=3)
    >>> round(best.average_variance, 2), best.gap < 0.02
    (0.23, True)
    """

    def __init__(self, epsilon: Exact, most: int = 10) -> None:
        self.epsilon = number(epsilon, "epsilon", positive=True)
        self.most = number(most, "most", positive=True)
        if not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON or self.most not in range(
            1, MOST_RECORDS + 1
        ):
            raise TrueupError(
                f"no limit is computed for epsilon = {epsilon!r} and {most!r} records",
                f"epsilon from {LEAST_EPSILON} to {MOST_EPSILON}, 1 to {MOST_RECORDS} records",
            )
        sizes = range(int(self.most) + 1)
        self.databases = [(n - ones, ones) for n in sizes for ones in range(n + 1)]
        values = [Fraction(b, a + b) if a + b else Fraction(1, 2) for a, b in self.databases]
        weights = np.array([1 / ((a + b) * (a + b + 1)) if a + b else 0 for a, b in self.databases])
        self.prior = weights / weights.sum()
        ones, sd = np.ones(len(values)), _guess(float(self.epsilon))
        programme = Programme(
            np.array([float(v) for v in values]) / sd,
            self.prior,
            math.exp(self.epsilon),
            ones,
            edges_of(self.databases),
        )
        reach = _reach(float(self.epsilon))
        even = np.linspace(0.5 - reach, 0.5 + reach, _LABELS) / sd
        labels = np.unique(np.concatenate([even, programme.values]))
        ratio = exp_below(Fraction(self.epsilon))
        self.table, self.lower_bound = best_table(
            self.databases, values, programme, ratio, labels, _TOLERANCE
        )

    def _row(self, zeros: int, ones: int) -> Row:
        if (zeros, ones) not in self.databases:
            raise TrueupError(
                f"there are {zeros} zeros and {ones} ones, more than {self.most} records",
                "raise most: it must hold every group that can occur",
            )
        return self.table.row((zeros, ones))

    def variance(self, zeros: int, ones: int) -> float:
        """Return the exact variance of the published mean."""
        self._row(zeros, ones)
        return float(self.table.variance((zeros, ones)))

    @property
    def average_variance(self) -> float:
        """The variance averaged over all databases: the least possible, up to ``gap``."""
        return self._average([self.variance(*s) for s in self.databases])

    def _average(self, variances: list[float]) -> float:
        return float(self.prior @ np.array(variances))

    @property
    def gap(self) -> float:
        """How far, relatively, the best release can be below this one."""
        return 1 - self.lower_bound / self.average_variance

    def efficiency(self, mechanism: Any) -> float:
        """Return the average variance of a mechanism with ``sd(n, mean)`` over that of this one.

        Both are for values between 0 and 1, whatever the bounds of the mechanism. As this one is
        best up to ``gap`` only, a ratio may be below 1 by so much.

        Examples
        --------
        >>> from trueup.mechanisms import GroupShare
        >>> 1 <= OptimalMean(1, most=2).efficiency(GroupShare(1)) < 1.02
        True
        """
        low, high = (Fraction(b) for b in getattr(mechanism, "bounds", (0, 1)))
        spent, least = (getattr(mechanism, k, None) for k in ("epsilon", "count_at_least"))
        if spent is not None and spent != self.epsilon:
            raise TrueupError(
                f"{mechanism!r} spends {spent}, this limit is of {self.epsilon}",
                f"OptimalRelease.of_means({spent}) is its limit",
            )
        if least is not None and least > 1:
            raise TrueupError(
                f"{mechanism!r} is unbiased from {least} records on, the limit is of fewer, too",
                "compare one without a promise",
            )
        points = [(a + b, low + (high - low) * Fraction(b, a + b)) for a, b in self.databases[1:]]
        own = [(mechanism.sd(n, mean) / float(high - low)) ** 2 for n, mean in points]
        return self._average([0.0, *own]) / self.average_variance

    def release(self, zeros: int, ones: int, rng: np.random.Generator | None = None) -> float:
        """Publish the mean: exactly and securely, or, with a NumPy generator, as a simulation."""
        return self.table.labels[self._row(zeros, ones).draw(rng)]

    def __repr__(self) -> str:
        return (
            f"<optimal mean of up to {self.most} records, epsilon={self.epsilon}: "
            f"average variance {self.average_variance:.4g}, at least {self.lower_bound:.4g}>"
        )


def _guess(epsilon: float) -> float:
    """Return about the standard deviation of the best release of means of few records."""
    return 0.4 * (epsilon**-1.1 if epsilon < 1 else math.exp(0.875 * (1 - epsilon)))


def _reach(epsilon: float) -> float:
    """Return how far from ½ the labels of the best release lie, or a little less."""
    alpha = math.exp(-epsilon)
    kappa = alpha / (1 - alpha)
    lam = kappa / (1 - alpha)
    near = (1 - alpha) * (1 + kappa + lam + kappa * lam / 3) / 2  # the label of two small counts
    return max(0.75 / epsilon + 0.1, 1.02 * near if epsilon > 0.6 else 0.0)
