"""What the variance is averaged over: weights of the true values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.inverse import prior as default

if TYPE_CHECKING:
    from trueup.domain import Interval

Floats = NDArray[np.float64]

_HINT = (
    "give 'uniform', 'log-uniform' (a positive domain), a function of the true value, or one "
    "weight for each integer of the domain, in order or as {q: weight}"
)


@dataclasses.dataclass(frozen=True)
class Prior:
    """A weight for every true value, up to a factor."""

    name: str
    weight: Callable[[Floats], Any]

    def __call__(self, q: Floats) -> Floats:
        """Return the weights at true values, not negative and not all zero."""
        weights = np.asarray(self.weight(q), float)
        if weights.shape != q.shape:
            weights = np.array([float(self.weight(value)) for value in q])
        if not np.isfinite(weights).all() or (weights < 0).any():
            bad = float(q[~(np.isfinite(weights) & (weights >= 0))][0])
            raise TrueupError(
                f"the prior must be finite and not negative, but it is "
                f"{float(np.asarray(self.weight(np.array([bad]))).ravel()[0])!r} at {bad:g}",
                _HINT,
            )
        if not weights.sum() > 0:
            raise TrueupError(f"the prior ({self.name}) is zero on the whole domain", _HINT)
        return weights


def read_prior(prior: object, domain: Interval, whole: bool) -> Prior:
    """Return the prior meant by None, a name, a function, or weights on the integers.

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> read_prior(None, Interval(1, None), False).name
    'log-uniform'
    >>> read_prior({0: 1, 1: 3}, Interval(0, 1), True)(np.array([0.0, 1.0]))
    array([0.25, 0.75])
    """
    positive = domain.low > 0
    if prior is None:
        prior = default.name(domain)
    if isinstance(prior, str):
        return _named(prior, domain, positive)
    if callable(prior):
        return Prior(getattr(prior, "__name__", "a function"), prior)
    if isinstance(prior, (Mapping, Sequence, np.ndarray)):
        return _table(prior, domain, whole)
    raise TrueupError(f"prior must be weights of the true values, got {prior!r}", _HINT)


def _named(name: str, domain: Interval, positive: bool) -> Prior:
    if name == "uniform":
        return Prior(name, np.ones_like)
    if name == "log-uniform":
        if positive:
            return Prior(name, lambda q: 1 / q)
        raise TrueupError(f"a log-uniform prior needs a positive domain, got {domain}", _HINT)
    raise TrueupError(f"no prior is called {name!r}", _HINT)


def _table(prior: Any, domain: Interval, whole: bool) -> Prior:
    low, high = domain.bounds
    if not whole or low is None or high is None:
        raise TrueupError(
            f"a list of weights needs integer true values on a bounded domain, got {domain}", _HINT
        )
    count = int(high - low) + 1
    if not isinstance(prior, Mapping):
        if len(prior) != count:
            raise TrueupError(f"{len(prior)} prior weights for {count} true values", _HINT)
        prior = {int(low) + i: w for i, w in enumerate(prior)}
    strange = [q for q in prior if not isinstance(q, (int, float)) or q not in domain]
    if strange:
        raise TrueupError(f"the prior names {strange[0]!r}, which is not in {domain}", _HINT)
    weights = np.zeros(count)
    for q, w in prior.items():
        weights[int(q - low)] = float(number(w, f"the prior at {q}"))
    if (weights < 0).any() or not weights.sum() > 0:
        least = float(weights.min())
        what = f"but one is {least:g}" if least < 0 else "but all are"
        raise TrueupError(f"prior weights must not be negative and not all zero, {what}", _HINT)
    weights /= weights.sum()
    return Prior("given weights", lambda q: weights[(np.asarray(q) - float(low)).astype(int)])
