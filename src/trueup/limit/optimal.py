"""The limit: the unbiased ε-DP release of f(q) that has the smallest variance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.inputs import read_arguments
from trueup.kernels.blocks import evaluate
from trueup.limit.few_records import OptimalMean
from trueup.limit.programme import Programme, best_table
from trueup.limit.table import Row, Table, exp_below
from trueup.noise.base import read_generator
from trueup.noise.laplace import DiscreteLaplace

if TYPE_CHECKING:
    from trueup.domain import Interval
    from trueup.exact import Exact
    from trueup.limit.programme import Floats

MOST_VALUES = 120
"""The largest number of true values for which the programme is solved."""

LEAST_EPSILON, MOST_EPSILON = 0.05, 10

_TOLERANCE = 4e-4
"""The gap between the variance and its bound that is aimed at; a smaller one costs a finer grid."""
_LABELS = 60
"""Evenly spread labels of the first grid, besides those of discrete Laplace noise."""

Variances = Sequence[float] | Mapping[int, float] | Callable[[int], float]
"""A number for each true value: in order, by true value, or as a function."""


@dataclasses.dataclass(frozen=True, repr=False)
class OptimalValue:
    """A published value: unbiased for f(q), ε-differentially private unless simulated."""

    value: float
    epsilon: Exact
    simulated: bool = False

    def __repr__(self) -> str:
        note = ", simulated: not private" if self.simulated else ""
        return f"OptimalValue({self.value!r}, epsilon={self.epsilon!r}{note})"


class OptimalRelease:
    """Release an unbiased f(q) with the least prior-averaged variance under ε-DP.

    The true value q is an integer of a bounded domain, and neighbours are one apart. Among all
    mechanisms with P(y|q) ≤ e^ε P(y|q ± 1) and Σ_y y P(y|q) = f(q), on any set of labels y, this
    one has the smallest Σ_q prior(q) Var(q), up to the gap between ``average_variance`` and
    ``lower_bound``. Its probabilities are rational and satisfy every constraint exactly.

    Parameters
    ----------
    f
        A formula such as ``"1/n"``, a Python function, or a table, as for ``unbiased``.
    domain
        ``(low, high)`` or ``Integers(low, high)``, bounded on both sides.
    epsilon
        The privacy loss, positive.
    prior
        Weights of the true values, in order or as ``{q: weight}``; None weighs all alike.

    Examples
    --------
    >>> best = OptimalRelease("n", domain=(0, 1), epsilon=Fraction(1, 2))
    >>> round(best.variance(0), 2), round(best.lower_bound, 2)
    (3.92, 3.92)
    >>> best.gap < 1e-3
    True
    >>> best.release(1).value in best.table.labels
    True
    """

    def __init__(self, f: object, domain: object, epsilon: object, prior: object = None) -> None:
        self.epsilon = _read_epsilon(epsilon)
        self.domain, values = _read_values(f, domain, self.epsilon)
        self.truths = tuple(range(int(self.domain.low), int(self.domain.high) + 1))
        self.prior = _read_prior(prior, self.truths)
        self.table, self.lower_bound = self._solved(values)

    @staticmethod
    def of_means(epsilon: Exact, most: int = 10) -> OptimalMean:
        """Return the best release of the mean of at most so many 0/1 records, n not public."""
        return OptimalMean(epsilon, most)

    # -- what it is worth --------------------------------------------------------------------------

    def variance(self, q: int) -> float:
        """Return the exact variance of the published value at a true value."""
        return float(self.table.variance(self._truth(q)))

    def sd(self, q: int) -> float:
        """Return the standard deviation of the published value at a true value."""
        return math.sqrt(self.variance(q))

    @property
    def average_variance(self) -> float:
        """The variance averaged over the prior: the least possible, up to ``gap``."""
        return sum(w * self.variance(q) for w, q in zip(self.prior, self.truths, strict=True))

    @property
    def gap(self) -> float:
        """How far, relatively, the best release on the real line can be below this one."""
        average = self.average_variance
        return 1 - self.lower_bound / average if average else 0.0

    def ratio(self, variances: Variances) -> float:
        """Return the prior-averaged variance of another release over that of this one.

        Examples
        --------
        >>> from trueup import DiscreteLaplace, unbiased
        >>> est = unbiased("abs(n - 2)", DiscreteLaplace(2), domain=(0, 4))
        >>> best = OptimalRelease("abs(n - 2)", (0, 4), 0.5)
        >>> round(best.ratio(lambda q: est.sd(q) ** 2), 3)
        3.102
        """
        given = [variances(q) for q in self.truths] if callable(variances) else variances
        hint = "give one variance for each true value"
        averaged = float(np.dot(self.prior, _per_truth(given, self.truths, "variances", hint)))
        least = self.average_variance
        if least <= 0:
            return 1.0 if averaged <= 0 else math.inf
        return averaged / least

    # -- releasing ---------------------------------------------------------------------------------

    def release(self, q: int, rng: Any = None) -> OptimalValue:
        """Publish f(q): by the operating system's randomness, exactly, or as a simulation.

        Parameters
        ----------
        q
            The true value, an integer of the domain.
        rng
            None for a private release; a NumPy generator or a seed for a simulation, not private.
        """
        row = self.table.row(self._truth(q))
        value = self.table.labels[row.draw(None if rng is None else read_generator(rng))]
        return OptimalValue(value, self.epsilon, simulated=rng is not None)

    def _truth(self, q: object) -> int:
        whole = number(q, "q")
        if not isinstance(whole, int) or whole not in self.domain:
            raise TrueupError(
                f"q must be an integer of {self.domain}, got {q!r}",
                "widen the domain: it must hold every true value that can occur",
            )
        return whole

    def __repr__(self) -> str:
        return (
            f"<optimal unbiased release on {self.domain}, epsilon={self.epsilon}: "
            f"{len(self.table.labels)} labels, average variance {self.average_variance:.6g}>"
        )

    def _solved(self, values: Floats) -> tuple[Table, float]:
        """Return the exact table and the bound."""
        size = len(values)
        if np.ptp(values) == 0:
            return Table(self.truths, (float(values[0]),), (Row((1,)),) * size), 0.0
        ratio, prior = exp_below(_rational(self.epsilon)), np.array(self.prior)
        noisy, sd = _discrete_laplace(values, float(ratio), prior)
        centre = (values.min() + values.max()) / 2
        edges = np.column_stack([np.arange(size - 1), np.arange(1, size)])
        programme = Programme((values - centre) / sd, prior, float(ratio), np.ones(size), edges)
        first = (np.concatenate([noisy, values]) - centre) / sd
        even = np.linspace(first.min() - 0.5, first.max() + 0.5, _LABELS)
        labels = np.unique(np.concatenate([first, even]))
        exact = [Fraction(float(v)) for v in values]
        return best_table(self.truths, exact, programme, ratio, labels, _TOLERANCE)


def _discrete_laplace(values: Floats, ratio: float, prior: Floats) -> tuple[Floats, float]:
    """Return the labels of discrete Laplace noise with its best estimator, and its sd.

    Clamped to the domain, that release has one label g(x) for each x.
    """
    alpha = 1 / ratio
    step = np.diff(values)
    kappa, lam = alpha / (1 - alpha), alpha / (1 - alpha) ** 2
    g = values.copy()
    g[1:-1] -= lam * np.diff(step)
    g[0] -= kappa * step[0]
    g[-1] += kappa * step[-1]
    q = np.arange(len(values))
    mass = alpha ** np.abs(q[:, None] - q) * (1 - alpha) / (1 + alpha)
    mass[[0, -1]] /= 1 - alpha
    variances = np.einsum("xq,xq->q", mass, (g[:, None] - values) ** 2)
    return g, float(np.sqrt(prior @ variances))


# -- reading the arguments -------------------------------------------------------------------------


def _read_epsilon(epsilon: object) -> Exact:
    value = number(epsilon, "epsilon", positive=True)
    if not LEAST_EPSILON <= value <= MOST_EPSILON:
        raise TrueupError(
            f"epsilon must lie between {LEAST_EPSILON} and {MOST_EPSILON}, got {epsilon!r}",
            "below, no release says anything; above, discrete Laplace noise is as good",
        )
    return value


def _rational(epsilon: Exact) -> Fraction:
    """Return the number that was written, never above the one that is stored."""
    return min(Fraction(epsilon), Fraction(str(epsilon)))


def _read_values(f: object, domain: object, epsilon: Exact) -> tuple[Interval, Floats]:
    """Return the domain and f on it, all checked."""
    noise = DiscreteLaplace(1 / epsilon if isinstance(epsilon, float) else Fraction(1, epsilon))
    source, (statistic,), _ = read_arguments(f, noise, domain)
    known = statistic.domain
    if None in known.bounds:
        raise TrueupError(
            f"the domain must be bounded on both sides, got {known}",
            f"give (low, high) with at most {MOST_VALUES} integers",
        )
    size = int(known.high) - int(known.low) + 1
    if size > MOST_VALUES:
        raise TrueupError(
            f"the domain {known} has {size} values, too many for the linear programme",
            f"give a domain of at most {MOST_VALUES} integers",
        )
    q = np.arange(int(known.low), int(known.high) + 1, dtype=float)
    values = evaluate(source.expr, {statistic.symbol: q})
    wrong = ~np.isfinite(values)
    if wrong.any():
        where = wrong.argmax()
        raise TrueupError(
            f"f is {values[where]} at {q[where]:.0f}", "leave that value out of the domain"
        )
    return known, values


def _per_truth(given: Any, truths: tuple[int, ...], name: str, hint: str) -> Floats:
    """Return one number for each true value, from a mapping or a sequence."""
    if isinstance(given, Mapping):
        if {*given} != {*truths}:
            raise TrueupError(f"{name} must name each q from {truths[0]} to {truths[-1]}", hint)
        given = [given[q] for q in truths]
    try:
        array = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        array = np.array(math.nan)
    if array.shape != (len(truths),):
        raise TrueupError(f"{name} must have {len(truths)} numbers, got {given!r}", hint)
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        bad = float(array[wrong.argmax()])
        raise TrueupError(f"{name} must be finite and not negative, got {bad!r}", hint)
    return array


def _read_prior(prior: object, truths: tuple[int, ...]) -> tuple[float, ...]:
    if prior is None:
        return (1 / len(truths),) * len(truths)
    hint = "give one weight for each integer of the domain, e.g. [1, 2, 1]"
    weights = _per_truth(prior, truths, "prior", hint)
    if not weights.sum() > 0:
        raise TrueupError(f"prior must have a positive sum, got {prior!r}", hint)
    return tuple((weights / weights.sum()).tolist())
