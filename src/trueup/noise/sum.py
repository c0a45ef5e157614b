"""The noise of a sum of independently noisy numbers."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from trueup.errors import TrueupError
from trueup.exact import symbolic
from trueup.noise import deconvolution
from trueup.noise.base import Noise
from trueup.noise.deconvolution import alike
from trueup.noise.gaussian import Gaussian
from trueup.noise.laplace import Laplace
from trueup.noise.mass import Table
from trueup.noise.series import Series, digits_of, working_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import sympy

    from trueup.domain import Interval
    from trueup.exact import Exact
    from trueup.noise.elementwise import Floats
    from trueup.noise.operator import Operator

MAX_PARTS = 64

MILD = 1e4
"""Terms of a density that exceed it by no more are added in doubles: 12 digits are left."""


@dataclasses.dataclass(frozen=True, repr=False)
class SumNoise(Noise):
    """State the law of Z₁ + … + Zₘ, independent: M(t) = Π Mᵢ(t). Made by ``noise + noise``.

    Sums of Laplace noises have a closed density (:func:`log_of_laplace_sum`), sums on the integers
    a table of masses (:class:`~.mass.Table`). Other sums are known by their moments and generating
    function. Laplace noises whose scales differ by less than 1e-6 count as equal.

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
        if self._scales is None:
            return None
        return deconvolution.laplace_sum([symbolic(b) for b in self._scales], domain)

    @cached_property
    def _scales(self) -> list[Exact] | None:
        """The scales, equal where they count as equal, if all summands are Laplace."""
        scales = [p.scale for p in self.parts if isinstance(p, Laplace)]
        return alike(scales) if len(scales) == len(self.parts) else None

    @property
    def mgf_radius(self) -> float:
        """The smallest of the summands'."""
        return min(part.mgf_radius for part in self.parts)

    @property
    def highest_moment(self) -> int | None:
        """The smallest of the summands'."""
        known = [p.highest_moment for p in self.parts if p.highest_moment is not None]
        return min(known, default=None)

    @property
    def knows_few_moments(self) -> bool:
        """Whether one of the summands does."""
        return any(p.knows_few_moments for p in self.parts)

    @property
    def variance(self) -> Exact:
        """The sum of the variances."""
        return sum(part.variance for part in self.parts)

    def _moments(self, order: int) -> list[Exact]:
        """Return the moments of the sum in fractions, floats where one of the summands has them."""
        parts = [part.moments(order) for part in self.parts]
        exact = not any(isinstance(m, float) for row in parts for m in row)
        total: list[Exact] = math.prod(
            (Series.of_moments([Fraction(m) for m in row]) for row in parts[1:]),
            start=Series.of_moments([Fraction(m) for m in parts[0]]),
        ).moments
        return total if exact else [float(m) if m else 0 for m in total]

    def _generating(self, number: Callable[[Any], Any], scale: Any = None) -> Callable[[Any], Any]:
        """Return t ↦ Π Mᵢ(t)."""
        factors = [part._generating(number) for part in self.parts]
        return lambda t: math.prod(factor(t) for factor in factors)

    def _check_strip(self, c: sympy.Expr) -> None:
        for part in self.parts:
            part._check_strip(c)

    @property
    def rational(self) -> bool:  # type: ignore[override]
        """Whether all summands are."""
        return all(part.rational for part in self.parts)

    @property
    def _is_exact(self) -> bool:
        return all(part._is_exact for part in self.parts)

    # -- the law of a sum of Laplace noises, or of noises on the integers -----------------------

    @cached_property
    def _table(self) -> Table:
        """The masses of a sum on the integers."""
        return Table.of(self)

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of the density, far beyond where that underflows."""
        return self._table.log(x) if self.lattice else self._log(np.abs(x), 0)

    def _log(self, x: Floats, power: int) -> Floats:
        """Return the logarithm of the density (power 0) or of P(Z > x) (power 1) at x ≥ 0."""
        if self._scales is None:
            self._refuse("the density")
        return log_of_laplace_sum(tuple(self._scales), x, power)

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
    elif not all(
        abs(c) == 1 and noise.lattice and (c == 1 or noise.symmetric) for c, noise in members
    ):
        raise TrueupError("the law of a sum of these noises is not known", "give one noise for it")
    return reduce(add, noises)


def log_of_laplace_sum(scales: tuple[Exact, ...], x: Floats, power: int) -> Floats:
    """Return the logarithm of the density (power 0) or of P(Z > x) (power 1) of Σ Zᵢ at x ≥ 0.

    With rates rᵢ = 1/bᵢ and M(t) = Π 1/(1 − bᵢ²t²) the density at x > 0 is minus the sum of the
    residues of e^{−tx} M(t) at the rates, the tail the same for M(t)/t: Σ e^{−rx} Pᵣ(x), P a
    polynomial for equal scales. Near rates cancel; then the terms are summed with more digits.

    Examples
    --------
    >>> np.exp(log_of_laplace_sum((1,), np.array([0.0, 2.0]), 0))  # e^{−2}/2
    array([0.5       , 0.06766764])
    """
    terms, x = _terms(scales, power), np.asarray(x, float)
    slowest = float(terms[0][0])
    total, most = np.zeros_like(x), np.zeros_like(x)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for rate, polynomial in terms:
            row, decay = np.array(polynomial, float), np.exp(-(float(rate) - slowest) * x)
            total += np.polyval(row, x) * decay
            most += np.polyval(np.abs(row), x) * decay
        cancelled = np.isfinite(x) & ~(most <= MILD * total)
        total[cancelled] = [_with_digits(scales, v, power) for v in x[cancelled]]
        found = np.log(total) - slowest * x
    return np.where(x == np.inf, -np.inf, found)


def _with_digits(scales: tuple[Exact, ...], x: float, power: int) -> float:
    """Return Σ e^{−(r − r₁)x} Pᵣ(x), r₁ the slowest rate, with digits to spare."""
    terms = _terms(scales, power)
    with working_digits(_digits(scales)):
        parts = (mpmath.polyval(p, x) * mpmath.exp((terms[0][0] - r) * x) for r, p in terms)
        return float(mpmath.fsum(parts))


def _digits(scales: tuple[Exact, ...]) -> int:
    """Return how many digits are enough: two scales differ by 1e-6 at least, or not at all."""
    return 40 + 14 * len(scales)


@lru_cache(maxsize=256)
def _terms(scales: tuple[Exact, ...], power: int) -> list[tuple[Any, list[Any]]]:
    """Return the rates, the slowest first, with their polynomials, highest power first."""
    counts = Counter(sorted(scales, reverse=True))
    with working_digits(_digits(scales)):
        return [(1 / digits_of(b), _polynomial(b, counts, power)) for b in counts]


def _polynomial(scale: Exact, counts: Counter[Exact], power: int) -> list[Any]:
    """Return −e^{rx}·Res e^{−tx} M(t)/t^power at r = 1/scale, the highest power of x first."""
    n = counts[scale]
    t = Series.variable(1 / digits_of(scale), n - 1)
    rest = (t * 0 + 1) / t if power else t * 0 + 1
    for other, count in counts.items():
        b = digits_of(other)
        # 1 − bt = −b(t − r) at the own rate: its zero is divided out
        factor = (1 + t * b) * (-b if other == scale else 1 - t * b)
        rest = rest / factor**count
    row = enumerate(rest.coefficients)
    return [-c * (-1) ** (n - 1 - j) / math.factorial(n - 1 - j) for j, c in row]
