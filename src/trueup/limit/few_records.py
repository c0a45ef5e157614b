"""The limit for means: the best unbiased ε-DP release of the mean of a few 0/1 records."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.limit.graph import (
    GraphCone,
    GraphProgramme,
    best_masses,
    edges_of,
    exact_rows,
    proven,
    wrong_pair,
)
from trueup.limit.table import Row, exp_below

if TYPE_CHECKING:
    from trueup.exact import Exact
    from trueup.limit.interior import Point
    from trueup.limit.rays import Floats

MOST_RECORDS = 16
LEAST_EPSILON, MOST_EPSILON = 0.1, 8
_ROOMS = (1e-5, 1e-3)  # of e^ε for the rounding errors of the masses
_CLOSE = 0.01  # of a step: labels as near as that are one, or the programme is singular
_LABELS = (25, 61)  # fewer leave too large a gap, more take minutes


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
        self.lower_bound = 0.0
        if not any(self._is_solved(values, room) for room in _ROOMS):
            raise TrueupError(
                f"the programme at epsilon = {epsilon} could not be solved exactly",
                "try fewer records, or an epsilon nearer to 1",
            )

    def _is_solved(self, values: list[Fraction], room: float) -> bool:
        """Solve the programme for a little less than e^ε; tell whether the exact rows keep it."""
        ratio, ones = exp_below(Fraction(self.epsilon)), [Fraction(1)] * len(values)
        programme = GraphProgramme(
            np.array([float(v) for v in values]),
            self.prior,
            float(ratio) * (1 - room),
            np.ones(len(values)),
            edges_of(self.databases),
        )
        labels, point = _solved(programme, float(self.epsilon))
        above = dataclasses.replace(programme, ratio=float(ratio) * (1 + 1e-15))
        step = float(np.diff(labels).max())  # rounding a label to the grid adds at most step²/4
        self.lower_bound = max(self.lower_bound, proven(above, labels, point) - step**2 / 4)
        exact = exact_rows(labels, point, programme, values, ones)
        if exact is None:
            return False
        self.labels, self.rows = exact
        masses = [[Fraction(w, row.total) for w in row.weights] for row in self.rows]
        positive = all(min(row.weights) >= 0 for row in self.rows)
        return positive and wrong_pair(masses, programme.edges, ratio) is None

    def _row(self, zeros: int, ones: int) -> Row:
        if (zeros, ones) not in self.databases:
            raise TrueupError(
                f"there are {zeros} zeros and {ones} ones, more than {self.most} records",
                "raise most: it must hold every group that can occur",
            )
        return self.rows[self.databases.index((zeros, ones))]

    def variance(self, zeros: int, ones: int) -> float:
        """Return the exact variance of the published mean."""
        row, n = self._row(zeros, ones), zeros + ones
        mean = ones / n if n else 0.5
        parts = zip(self.labels, row.weights, strict=True)
        return sum((y - mean) ** 2 * (w / row.total) for y, w in parts)

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
        return self.labels[self._row(zeros, ones).draw(rng)]

    def __repr__(self) -> str:
        return (
            f"<optimal mean of up to {self.most} records, epsilon={self.epsilon}: "
            f"average variance {self.average_variance:.4g}, at least {self.lower_bound:.4g}>"
        )


def _solved(programme: GraphProgramme, epsilon: float) -> tuple[Floats, Point]:
    """Return a grid of labels beyond which none can help, and the best masses on it."""
    guess = 0.16 * (epsilon**-2.2 if epsilon < 1 else math.exp(1.75 * (1 - epsilon)))
    alpha = math.exp(-epsilon)
    kappa = alpha / (1 - alpha)
    lam = kappa / (1 - alpha)
    near = (1 - alpha) * (1 + kappa + lam + kappa * lam / 3) / 2  # the label of two small counts
    reach = max(0.75 / epsilon + 0.1, 1.02 * near if epsilon > 0.6 else 0.0)
    for _ in range(4):
        count = int(np.clip(reach / math.sqrt(0.003 * guess), *_LABELS))
        labels = 0.5 + np.linspace(-reach, reach, 2 * (count // 2) + 1)
        if count == _LABELS[1]:  # and more would be better
            labels = _with(labels, programme.values)
        point = best_masses(programme, labels)
        if _is_settled(programme, labels, point):
            return labels, point
        reach *= 1.4
    raise TrueupError(f"no bound was proved at epsilon = {epsilon}", "take one nearer to 1")


def _with(labels: Floats, values: Floats) -> Floats:
    """Return labels and the true means, of which little noise publishes hardly anything else."""
    close = _CLOSE * (labels[1] - labels[0])
    apart = np.abs(np.subtract.outer(np.unique(values), labels)).min(axis=1) > close
    return np.sort(np.concatenate([labels, np.unique(values)[apart]]))


def _is_settled(programme: GraphProgramme, labels: Floats, point: Point) -> bool:
    """Tell whether prices only rise from the ends of the grid outwards, for every private mass."""
    cone = GraphCone(programme, labels[[0, -1]])
    slopes = 2 * programme.prior[:, None] * cone.off - point.dual.mean[:, None]
    rows = -np.concatenate(cone.slack(np.eye(len(programme.values))))
    for slope in (-slopes[:, 0], slopes[:, 1]):
        least = linprog(
            slope,
            A_ub=rows,
            b_ub=np.zeros(len(rows)),
            A_eq=np.ones((1, len(slope))),
            b_eq=[1],
        )
        if least.status != 0 or float(least.fun or 0) < -1e-12:
            return False
    return True
