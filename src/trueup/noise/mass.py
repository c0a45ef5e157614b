"""Noise on the integers given by its mass function, as a table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import Exact, number
from trueup.noise.base import Noise
from trueup.noise.series import exp

if TYPE_CHECKING:
    from trueup.noise.elementwise import Floats

SLACK = 1e-9
"""Masses that sum to 1 up to this are divided by their sum."""

NEGLIGIBLE = 1e-20
"""Masses below this, beyond all larger ones, are left out of a table made from another noise."""

MAX_MASSES = 2**20

_HINT = "give {integer: probability}, e.g. {-1: 0.25, 0: 0.5, 1: 0.25}"


@dataclasses.dataclass(frozen=True, repr=False, init=False)
class Mass(Noise):
    """State a law on the integers by the mass of each, {k: P(Z = k)}.

    Parameters
    ----------
    masses
        Non-negative and of sum 1; exact if given as fractions. Zeros may be left out. Floats that
        miss the sum 1 by no more than 1e-9 are divided by it.

    Examples
    --------
    >>> Mass({-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}).variance
    Fraction(1, 2)
    """

    lattice: ClassVar[bool] = True

    masses: tuple[tuple[int, Exact], ...]

    def __init__(self, masses: Mapping[int, Exact] | Iterable[tuple[int, Exact]]) -> None:
        try:
            items = list(masses.items() if isinstance(masses, Mapping) else masses)
            pairs = [(k, p) for k, p in items]
        except (TypeError, ValueError):
            raise TrueupError(f"masses must be a table, got {masses!r}", _HINT) from None
        object.__setattr__(self, "masses", _checked(pairs))

    def __repr__(self) -> str:
        return f"Mass({dict(self.masses)!r})"

    @property
    def mgf_radius(self) -> float:
        """∞: sums of finitely many terms."""
        return math.inf

    @cached_property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether P(Z = k) = P(Z = −k) for every k."""
        known = dict(self.masses)
        return all(known.get(-k, 0) == p for k, p in self.masses)

    def breaks(self, reach: float) -> list[float]:
        """Return the integers with a mass: there may be gaps between them."""
        return [float(k) for k, _ in self.masses if abs(k) <= reach]

    def _moments(self, order: int) -> list[Exact]:
        pairs = [(k, Fraction(p)) for k, p in self.masses]
        values = [sum((k**j * p for k, p in pairs), Fraction(0)) for j in range(order + 1)]
        floats = any(isinstance(p, float) for _, p in self.masses)
        return [float(m) if m else 0 for m in values] if floats else [*values]

    def _generating(self, number: Callable[[Any], Any], scale: Any = None) -> Callable[[Any], Any]:
        """Return t ↦ Σ e^{tk} P(Z = k), of sum 1 to the last digit at 0."""
        total = sum(Fraction(p) for _, p in self.masses)
        terms = [(k, number(Fraction(p) / total)) for k, p in self.masses]
        return lambda t: sum(exp(t * k) * p for k, p in terms)

    @cached_property
    def _table(self) -> Table:
        first, last = self.masses[0][0], self.masses[-1][0]
        masses = np.zeros(last - first + 1)
        for k, p in self.masses:
            masses[k - first] = float(p)
        return Table(first, masses)

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithms of the masses, −∞ beside them."""
        return self._table.log(x)

    def _cdf(self, x: Floats) -> Floats:
        return self._table.cdf(x)

    def _quantile(self, p: Floats) -> Floats:
        return self._table.quantile(p)


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """The masses of the integers from the first on, of sum 1."""

    first: int
    masses: Floats

    @cached_property
    def _below(self) -> Floats:
        """P(Z ≤ k) for all integers of the table but the last."""
        above = np.cumsum(self.masses[:0:-1])[::-1]
        return np.where(above < 0.5, 1 - above, np.cumsum(self.masses)[:-1])

    def log(self, x: Floats) -> Floats:
        """Return the logarithm of the mass at the integer below x."""
        with np.errstate(divide="ignore"):
            return np.log(self._read(np.concatenate([[0.0], self.masses, [0.0]]), x))

    def cdf(self, x: Floats) -> Floats:
        """Return P(Z ≤ x)."""
        return self._read(np.concatenate([[0.0], self._below, [1.0]]), x)

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest k with P(Z ≤ k) ≥ p."""
        return np.where(np.isnan(p), p, self.first + np.searchsorted(self._below, p).astype(float))

    def _read(self, values: Floats, x: Floats) -> Floats:
        """Return values, that before the table first and that after it last, at ⌊x⌋."""
        index = np.clip(np.nan_to_num(np.floor(x) - self.first + 1), 0, len(values) - 1)
        return np.where(np.isnan(x), x, values[index.astype(np.intp)])


def _checked(pairs: list[tuple[Any, Any]]) -> tuple[tuple[int, Exact], ...]:
    """Return integers with their masses in order, zeros left out, or refuse them."""
    known: dict[int, Exact] = {}
    for k, p in pairs:
        place, mass = number(k, "a place in the table"), number(p, f"the mass at {k}")
        if not isinstance(place, int) or abs(place) > MAX_MASSES:
            raise TrueupError(f"masses are at integers up to {MAX_MASSES}, got one at {k!r}", _HINT)
        if mass < 0:
            raise TrueupError(f"the mass at {place} is negative, got {p!r}", _HINT)
        if place in known:
            raise TrueupError(f"two masses at {place}: {known[place]!r} and {p!r}", _HINT)
        known[place] = mass
    return tuple((k, p) for k, p in sorted(_of_sum_one(known).items()) if p)


def _of_sum_one(masses: dict[int, Exact]) -> dict[int, Exact]:
    """Return masses of sum 1: exact ones as they are, floats divided by a sum close to 1."""
    exact = not any(isinstance(p, float) for p in masses.values())
    total = sum((Fraction(p) for p in masses.values()), Fraction(0))
    gap = abs(float(total - 1))
    if gap > (0 if exact else SLACK):
        raise TrueupError(
            f"the masses sum to {total if exact else float(total)}, not to 1",
            "divide them by their sum, if none is missing",
        )
    if exact or gap <= 1e-15:  # dividing once is enough: repr evaluates back
        return masses
    return {k: float(p / total) for k, p in masses.items()}


def support(noise: Noise) -> tuple[int, Floats]:
    """Return the first integer that matters and the masses from it on, of sums too.

    What is left out is below 1e-20 of the largest.

    Examples
    --------
    >>> first, masses = support(Mass({-1: 0.25, 0: 0.5, 1: 0.25}))
    >>> first, masses.tolist()
    (-1, [0.25, 0.5, 0.25])
    """
    if isinstance(noise, Mass):
        return noise._table.first, noise._table.masses
    if summands := getattr(noise, "parts", ()):
        tables = [support(part) for part in summands]
        return sum(k for k, _ in tables), reduce(np.convolve, (p for _, p in tables))
    middle, reach = noise._middle, 8
    while reach <= MAX_MASSES:
        k = np.arange(middle - reach, middle + reach + 1.0)
        masses = np.asarray(noise.pmf(k))
        kept = np.flatnonzero(masses >= NEGLIGIBLE * masses.max())
        if not len(kept):  # a mass is not a number
            break
        if kept[0] > 0 and kept[-1] < len(k) - 1:
            masses = masses[kept[0] : kept[-1] + 1]
            if abs(masses.sum() - 1) <= SLACK:
                return int(k[kept[0]]), masses / masses.sum()
            break
        reach *= 2
    raise TrueupError(
        f"{noise!r} is too wide for a table of masses, or they do not sum to 1",
        "use a continuous family of the same scale",
    )
