"""The noise of a sum of independently noisy numbers."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property, reduce
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.noise import deconvolution
from trueup.noise.base import Noise
from trueup.noise.gaussian import Gaussian
from trueup.noise.laplace import Laplace
from trueup.noise.laplace_sums import LaplaceSum
from trueup.noise.mass import Mass

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sympy

    from trueup.domain import Interval
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats
    from trueup.noise.fields import Field
    from trueup.noise.operator import Operator

MAX_PARTS = 64


@dataclasses.dataclass(frozen=True, repr=False)
class SumNoise(Noise):
    """State the law of Z₁ + … + Zₘ, independent: M(t) = Π Mᵢ(t). Made by ``noise + noise``.

    Sums of Laplace noises have a closed density (:mod:`~.laplace_sums`), sums on the integers a
    table of masses (:class:`~.mass.Mass`). Other sums are known by their moments and generating
    function.

    Examples
    --------
    >>> total = Laplace(1) + Laplace(2)
    >>> total, total.variance
    (Laplace(1) + Laplace(2), 10)
    """

    parts: tuple[Noise, ...]

    def __post_init__(self) -> None:
        if len(self.parts) > MAX_PARTS:
            raise TrueupError(
                f"a sum of {len(self.parts)} noises, at most {MAX_PARTS} are possible",
                "publish the total with a noise of its own",
            )

    @property
    def lattice(self) -> bool:  # type: ignore[override]
        """Whether all summands take integer values only."""
        return all(part.lattice for part in self.parts)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether all summands are."""
        return all(part.symmetric for part in self.parts)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def inverse(self, domain: Interval, extension: object = "optimal") -> Operator | None:
        """Return Π(1 − bᵢ²D²) inside the domain, least-norm beyond, for a sum of Laplace noises."""
        scales = self._scales
        if scales is None:
            return None
        return deconvolution.laplace_sum([symbolic(b) for b in scales], domain)

    @property
    def _scales(self) -> list[Exact] | None:
        """The scales, if all summands are Laplace."""
        scales = [p.scale for p in self.parts if isinstance(p, Laplace)]
        return scales if len(scales) == len(self.parts) else None

    @property
    def mgf_radius(self) -> float:
        """The smallest of the summands'."""
        return min(part.mgf_radius for part in self.parts)

    @property
    def tail_rates(self) -> tuple[float, float]:
        """The smallest of the summands', on each side."""
        left, right = zip(*(part.tail_rates for part in self.parts), strict=True)
        return min(left), min(right)

    @property
    def tail_power(self) -> float:
        """One less than the summands: a gamma-like tail."""
        return len(self.parts) - 1.0

    @property
    def highest_moment(self) -> int | None:
        """The smallest of the summands'."""
        known = [p.highest_moment for p in self.parts if p.highest_moment is not None]
        return min(known, default=None)

    @property
    def variance(self) -> Exact:
        """The sum of the variances."""
        return sum(part.variance for part in self.parts)

    def _moment(self, k: int) -> Exact:
        moments = [[part.moment(j) for j in range(k + 1)] for part in self.parts]
        total: Exact = _convolve(moments)[k]
        return total

    def _check_strip(self, c: sympy.Expr, order: int) -> None:
        for part in self.parts:
            part._check_strip(c, order)

    @property
    def _is_exact(self) -> bool:
        return all(part._is_exact and part.exact_tilt for part in self.parts)

    def _working_digits(self, c: sympy.Expr, order: int) -> int:
        return sum(part._working_digits(c, order) for part in self.parts)

    @property
    def _middle(self) -> Any:
        return sum(part._middle for part in self.parts)

    def _tilted(self, c: Any, order: int, field: Field) -> list[Any]:
        return _convolve([part._tilted(c, order, field) for part in self.parts])

    # -- the law of a sum of Laplace noises, or of noises on the integers -----------------------

    @cached_property
    def _table(self) -> Mass:
        """The masses of a sum on the integers."""
        return Mass.of(self)

    @cached_property
    def _law(self) -> LaplaceSum:
        """The law at x ≥ 0, if all summands are Laplace."""
        if self._scales is None:
            raise TrueupError(
                f"the density of {self!r} has no closed form", "use its moments, or simulate it"
            )
        return LaplaceSum(tuple(self._scales))

    def _density(self, x: Floats) -> Floats:
        if self.lattice:
            return self._table._density(x)
        return np.exp(self._law.log_density(np.abs(x)))

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of the density, far beyond where that underflows."""
        if self.lattice:
            return self._table.log_density(x)
        return self._law.log_density(np.abs(x))

    def _cdf(self, x: Floats) -> Floats:
        if self.lattice:
            return self._table._cdf(x)
        tail = np.exp(self._law.log_tail(np.abs(x)))
        return np.where(x < 0, tail, 1 - tail)

    def _quantile(self, p: Floats) -> Floats:
        if self.lattice:
            return self._table._quantile(p)
        return np.asarray(np.vectorize(self._quantile_of, otypes=[float])(p))

    def _quantile_of(self, p: float) -> float:
        """Return where the tail beyond falls to p or 1 − p."""
        side, tail = (1.0, 1 - p) if p > 0.5 else (-1.0, p)
        if tail == 0 or math.isnan(p):
            return side * (math.inf if tail == 0 else p)
        level = math.log(tail)

        def above(x: float) -> float:
            return float(self._law.log_tail(np.array([x]))[0]) - level

        if above(0.0) <= 1e-15:  # p = ½, or next to it
            return 0.0
        # P(Z > x) ≤ e^{0.3 − x/(2s)}, s the sum of the scales (Chernoff)
        reach = 2 * sum(float(b) for b in self._scales or ()) * (1 - level)
        from scipy import optimize

        return side * float(optimize.brentq(above, 0.0, reach, xtol=1e-14 * reach, rtol=1e-15))

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return sum(part._sample(shape, rng) for part in self.parts)


def add(left: Noise, right: Noise) -> Noise:
    """Return the noise of a sum, its summands sorted."""
    parts = [p for n in (left, right) for p in (n.parts if isinstance(n, SumNoise) else (n,))]
    return SumNoise(tuple(sorted(parts, key=repr)))


def weighted(members: Sequence[tuple[float, Noise]]) -> Noise:
    """Return the noise of Σ cᵢZᵢ, c₁ = 1, from pairs (cᵢ, Zᵢ), where its law is one of ours.

    Examples
    --------
    >>> weighted([(1.0, Gaussian(3)), (-2.0, Gaussian(2))])
    Gaussian(5)
    """
    noises = [noise for _, noise in members]
    if len(noises) == 1:
        return noises[0]
    scales = [abs(c) * float(noise.unit) for c, noise in members]
    if all(isinstance(noise, Gaussian) for noise in noises):
        return Gaussian(math.hypot(*scales))
    if all(isinstance(noise, Laplace) for noise in noises):
        noises = [Laplace(scale) for scale in scales]
    elif not all(
        abs(c) == 1 and noise.lattice and (c == 1 or noise.symmetric) for c, noise in members
    ):
        raise TrueupError("the law of a sum of these noises is not known", "give one noise for it")
    return reduce(add, noises)


def _convolve(sequences: list[list[Any]]) -> list[Any]:
    """Return the moments of a sum from the moments of its summands."""
    total = sequences[0]
    for other in sequences[1:]:
        total = [
            sum(comb(j, k) * total[k] * other[j - k] for k in range(j + 1))
            for j in range(len(total))
        ]
    return total
