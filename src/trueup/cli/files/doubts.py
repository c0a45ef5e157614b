"""How many values lie beyond a bound, and whether the noise can have taken them there.

If every true value is at least L, then of n rows at most a share p has P(Z ≤ x − L) ≤ p, up to
chance, for every p. Counts that break this with odds of one in a million mean that the bound, or
the noise, is not what was said.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

from trueup.errors import TrueupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trueup.cli.files.statement import Statement
    from trueup.noise import Noise

ODDS = 1e-6
_LEVELS = (1e-2, 1e-4)


@dataclasses.dataclass(frozen=True)
class Bound:
    """One bound of one statistic.

    Parameters
    ----------
    statistic, column
        What is bounded, and where it is.
    noise
        Its noise.
    bound, side
        Where the bound is; −1 for a lower, 1 for an upper one.
    value, scale
        The SQL of the values, and of their noise scales if each row has its own.
    """

    statistic: str
    column: str
    noise: Noise
    bound: float
    side: int
    value: str
    scale: str | None

    def counts(self) -> dict[str, str]:
        """Return the aggregates: values beyond the bound, far beyond, and how far at most."""
        x, sign = self.value, "<" if self.side < 0 else ">"
        z = x if self.scale is None else f"({x} - ({self.bound!r})) / {self.scale}"
        start, unit = (self.bound, 1.0) if self.scale is None else (0.0, self._own)
        number = "" if self.side < 0 else f" AND {x} <= CAST('Infinity' AS DOUBLE)"  # NaN is above
        counts = {"known": f"COUNT({x})", "beyond": f"COUNT_IF({x} {sign} {self.bound!r}{number})"}
        if self.limits:
            most = f"MIN({z})" if self.side < 0 else f"MAX(CASE WHEN TRUE{number} THEN {z} END)"
            counts["farthest"] = f"({most} - ({start!r})) * {unit!r}"
        for p, limit in self.limits.items():
            counts[f"at {p:g}"] = f"COUNT_IF({z} {sign}= {start + limit / unit!r}{number})"
        return counts

    @property
    def _own(self) -> float:
        return float(getattr(self.noise, "scale", 1))

    @cached_property
    def limits(self) -> dict[float, float]:
        """From where on the noise is with probability p or less, for some p; empty if unknown."""
        if self.scale is not None and (self.noise.lattice or not hasattr(self.noise, "scale")):
            return {}
        try:
            return {p: self._limit(p) for p in _LEVELS}
        except TrueupError:  # only moments are known
            return {}

    def _limit(self, p: float) -> float:
        """Return the nearest z beyond which the noise is with probability p at most."""
        k = float(self.noise.quantile(p if self.side < 0 else 1 - p))
        if not self.noise.lattice:
            return k
        if self.side > 0:
            return k + 1
        return k if float(self.noise.cdf(k)) <= p else k - 1

    def _tail(self, z: float) -> float:
        """Return the probability that the noise is at z or beyond."""
        if self.side < 0:
            return float(self.noise.cdf(z))
        return 1 - float(self.noise.cdf(z - 1 if self.noise.lattice else z))

    def doubts(self, counts: Mapping[str, float | None]) -> Iterator[str]:
        """Yield a warning if the counts are more than the noise explains."""
        known, farthest = int(counts["known"] or 0), counts.get("farthest")
        if not known or farthest is None:
            return
        nearest = self._tail(float(self.side) if self.noise.lattice else 0.0)
        shares = {"beyond": nearest, **{f"at {p:g}": p for p in self.limits}}
        for name, p in shares.items():
            found = int(counts[name] or 0)
            if _surprise(found, known, p) > -math.log(ODDS):
                yield self._doubt(found, known, p, far=p < nearest)
                return
        if known * self._tail(farthest) < ODDS and farthest * self.side > 0:
            yield self._doubt(1, known, self._tail(farthest), far=True)

    def _doubt(self, found: int, known: int, p: float, *, far: bool) -> str:
        return (
            f"{found:,} of {known:,} values of {self.column} lie {'far ' * far}{self._where} the "
            f"bound {self.bound:g} of {self.statistic}; if every true value were at the bound, "
            f"{self.noise!r} would take {p * known:.3g} of them there\n"
            "Hint: estimates are biased beyond a wrong bound; check it, and the noise"
        )

    @property
    def _where(self) -> str:
        return "below" if self.side < 0 else "above"

    def line(self, counts: Mapping[str, float | None]) -> str:
        """Return how many values are beyond the bound."""
        known, beyond = int(counts["known"] or 0), int(counts["beyond"] or 0)
        share = f" ({100 * beyond / known:.2g} %)" if beyond else ""
        return f"{self.statistic}: {beyond:,}{share} {self._where} {self.bound:g}"


def _surprise(found: int, known: int, p: float) -> float:
    """Return how much the count is above chance: P(Binomial(n, p) ≥ k) ≤ e^{−n·KL(k/n, p)}.

    Examples
    --------
    >>> _surprise(50, 100, 0.5), round(_surprise(90, 100, 0.5), 2)
    (0.0, 36.81)
    """
    share = found / known
    if share <= p:
        return 0.0
    rest = (1 - share) * math.log((1 - share) / (1 - p)) if share < 1 else 0.0
    return known * (share * math.log(share / p) + rest) if p > 0 else math.inf


def bounds_of(statement: Statement) -> list[Bound]:
    """Return the bounds of all statistics, each once."""
    found = {}
    for task in statement.plan.tasks:
        for name, domain in task.estimator.domain.items():
            column = task.columns[name]
            scale = statement.scales.get(task.scales.get(name, ""))
            for bound, side in zip(domain.bounds, (-1, 1), strict=True):
                if bound is not None and math.isfinite(bound):
                    value = statement.quote(statement.numbers[column])
                    found[name, column, side, bound, scale] = Bound(
                        name,
                        column,
                        task.estimator.noise[name],
                        float(bound),
                        side,
                        value,
                        None if scale is None else statement.quote(scale),
                    )
    return list(found.values())
