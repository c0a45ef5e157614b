"""The noise of a sum of independently noisy numbers."""

from __future__ import annotations

import dataclasses
import math
import operator
from fractions import Fraction
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.noise import deconvolution
from trueup.noise.base import Noise
from trueup.noise.gaussian import Gaussian
from trueup.noise.laplace import Laplace
from trueup.noise.mass import Table, support
from trueup.noise.series import Series

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.domain import Interval
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats
    from trueup.noise.operator import Operator

MAX_PARTS = 64

TERMS = 19
"""Of the exponential series up to 1: what is left out is below 1e-17."""

FAR = 1e5
"""Widest scales: further out the law is taken to be one exponential."""


@dataclasses.dataclass(frozen=True, repr=False)
class SumNoise(Noise):
    """State the law of Z₁ + … + Zₘ, independent: M(t) = Π Mᵢ(t). Made by ``noise + noise``.

    Sums of Laplace noises have a closed density (:func:`log_of_laplace_sum`), sums on the integers
    a table of masses (:class:`~.mass.Table`). Other sums are known by their moments and generating
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
        shared = {
            "lattice": all(part.lattice for part in self.parts),
            "symmetric": all(part.symmetric for part in self.parts),
            "rational": all(part.rational for part in self.parts),
            "knows_few_moments": any(part.knows_few_moments for part in self.parts),
        }
        for name, value in shared.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def inverse(self, domain: Interval, extension: object = "optimal") -> Operator | None:
        """Return Π(1 − bᵢ²D²) inside the domain, least-norm beyond, for a sum of Laplace noises."""
        if self._scales is None:
            return None
        return deconvolution.laplace_sum([symbolic(b) for b in self._scales], domain)

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
    def highest_moment(self) -> int | None:
        """The smallest of the summands'."""
        known = [p.highest_moment for p in self.parts if p.highest_moment is not None]
        return min(known, default=None)

    def _moments(self, order: int) -> list[Exact]:
        """Return the moments of the sum in fractions, floats where one of the summands has them."""
        rows = [part.moments(order) for part in self.parts]
        series = (Series.of_moments([Fraction(m) for m in row]) for row in rows)
        total: list[Exact] = reduce(operator.mul, series).moments
        floats = any(isinstance(m, float) for row in rows for m in row)
        return [float(m) if m else 0 for m in total] if floats else total

    def _generating(self, number: Callable[[Any], Any], scale: Any = None) -> Callable[[Any], Any]:
        """Return t ↦ Π Mᵢ(t)."""
        factors = [part._generating(number) for part in self.parts]
        return lambda t: math.prod(factor(t) for factor in factors)

    @property
    def _is_exact(self) -> bool:
        return all(part._is_exact for part in self.parts)

    # -- the law of a sum of Laplace noises, or of noises on the integers -----------------------

    @cached_property
    def _table(self) -> Table:
        """The masses of a sum on the integers."""
        return Table(*support(self))

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of the density, far beyond where that underflows."""
        return self._table.log(x) if self.lattice else self._log(np.abs(x), 0)

    def _log(self, x: Floats, power: int) -> Floats:
        """Return the logarithm of the density (power 0) or of P(Z > x) (power 1) at x ≥ 0."""
        if self._scales is None:
            self._refuse("the density")
        return log_of_laplace_sum(self._scales, x, power)

    def _cdf(self, x: Floats) -> Floats:
        return self._table.cdf(x) if self.lattice else super()._cdf(x)

    def _upper(self, x: Floats) -> Floats:
        return np.exp(self._log(x, 1))

    def _quantile(self, p: Floats) -> Floats:
        return self._table.quantile(p) if self.lattice else super()._quantile(p)

    def _sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        return sum(part.sample(shape, rng) for part in self.parts)


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
    elif not all(abs(c) == 1 and z.lattice and (c == 1 or z.symmetric) for c, z in members):
        raise TrueupError("the law of a sum of these noises is not known", "give one noise for it")
    return reduce(add, noises)


def log_of_laplace_sum(scales: Sequence[Exact], x: Floats, power: int) -> Floats:
    """Return the logarithm of the density (power 0) or of P(Z > x) (power 1) of Σ Zᵢ at x ≥ 0.

    Z = S⁺ − S⁻, each made of exponential steps of the rates 1/bᵢ one after the other. When S⁻ ends,
    j steps of S⁺ are done with chance startⱼ, and the others are Z, where it is positive: their law
    is start·e^{Gx}, G the generator of the steps. Nothing is ever subtracted: all digits stay,
    however near the scales are.

    Examples
    --------
    >>> np.exp(log_of_laplace_sum((1,), np.array([0.0, 2.0]), 0))  # e^{−2}/2
    array([0.5       , 0.06766764])
    """
    rates, x = 1 / np.array(scales, float), np.asarray(x, float)
    slow, fast, m = rates.min(), rates.max(), len(rates)
    chances = np.zeros((m + 1, m + 1))  # that i steps of S⁻ and j of S⁺ are done
    chances[0, 0] = 1
    for i, j in np.ndindex(m, m):
        chances[i + 1, j] += chances[i, j] * rates[i] / (rates[i] + rates[j])
        chances[i, j + 1] += chances[i, j] * rates[j] / (rates[i] + rates[j])
    # e^{(G + slow)x} by powers of G/fast + 1 ≥ 0 at a small x, which is then doubled
    at = np.minimum(np.nan_to_num(x, nan=0.0), FAR / slow)
    halvings = max(0, math.frexp(fast * at.max(initial=0.0))[1])
    powers = [np.eye(m)]
    for k in range(1, TERMS):
        powers.append(powers[-1] @ (np.diag(1 - rates / fast) + np.diag(rates[:-1] / fast, 1)) / k)
    small = np.ldexp(at, -halvings)[..., None]
    law = np.tensordot((fast * small) ** np.arange(TERMS), powers, 1)
    law *= np.exp((slow - fast) * small)[..., None]
    for _ in range(halvings):
        law, small = law @ law, 2 * small
        law[..., range(m), range(m)] = np.exp((slow - rates) * small)
    steps = chances[m, :m] @ law
    with np.errstate(divide="ignore"):
        found = np.log(steps.sum(-1) if power else steps[..., -1] * rates[-1])
    return np.asarray(found - slow * x)
