"""`nearly_unbiased()`: the least variance there is under a certified bias."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import sympy

from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.estimator import Estimator
from trueup.exact import number
from trueup.formula.text import text
from trueup.inverse.solve import Inverse
from trueup.near.question import Asked

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from trueup.inverse.scaled import Scaled
    from trueup.kernels.grid import Grid
    from trueup.near.products import Answer
    from trueup.near.solve import Profile
    from trueup.noise.base import Noise


MOST_LEVELS = 20
"""Noise scales in a table: each takes about a second."""


_NONE = 1e-12
"""A bias that only the unbiased estimator stays below."""

_NO_EMPTY = (
    "bound the denominator away from 0, at least 1: where it and the numerator are both 0 the "
    "estimate is 0 on average; another value in empty cells goes without an allowed bias only"
)


def nearly_unbiased(
    f: object,
    noise: Noise | Mapping[str, Noise],
    domain: object = None,
    max_bias: Any = None,
    relative: bool | None = None,
    prior: object = None,
    cells: Any = None,
    empty: object = None,
) -> NearlyUnbiased:
    """Return the estimator of f(q) of least variance whose bias is at most ``max_bias``.

    Where no unbiased estimator exists, or only one with a large variance: |E g(q + Z) − f(q)| is at
    most τ(q) for *every* true value of the domain, and among all such g (cubic splines, and f
    itself far from the bounds) this is the one whose variance, averaged over the prior, is
    smallest; far out no bias is used beyond some times that of f(x). The bound is a certificate: it
    is computed from the finished estimator and does not trust the solver. If the unbiased estimator
    is no worse it is returned.

    Parameters
    ----------
    f
        ``"1/n"``, a sympy expression, and whatever else :func:`unbiased` takes.
    noise
        The noise, or ``{"s": noise, "n": noise}`` for several independent statistics.
    domain
        Where the true value lies, ``(low, high)``; None on a side where f bends ever less.
    max_bias
        τ, or τ/|f(q)| if ``relative``.
    relative
        Whether bias and standard deviation count relative to |f(q)|. None: not with ``max_bias``;
        with ``cells`` if f, or each factor of it that is traded, is nowhere zero. Of a growth
        rate, m/n − 1, which has zeros, relative to what is traded, m/n: ``relative_to`` says so.
    prior
        What the variance is averaged over: ``"uniform"``, ``"log-uniform"``, a function of the true
        value, or weights on the integers. None is log-uniform on a positive domain, else uniform.
    cells
        In place of ``max_bias``: m, if estimates of m like cells will be averaged or added up.
        Noise averages out and bias does not, so bias² + variance/m, averaged over the prior, is
        made as small as can be: both relative to f², which weighs all sizes alike, or as they are
        with ``relative=False``, which is for averages in which large estimates count for more.
        ``bias_bound`` says how large the bias became; it also holds in a table with a noise scale
        per row.
    empty
        Refused: with a jump at empty cells no bias can be bounded. Bound the denominator, n >= 1:
        where s and n are 0 an estimate of s/n averages 0.

    Notes
    -----
    In a product such as s/n the polynomial s stays unbiased and 1/n is traded; the product has the
    relative bias of 1/n. How noisy s is relative to itself is not known: it counts as noisy as 1/n.
    Traded are functions of one statistic each. Where there are none that stand apart, as in
    s/(m + n), the estimator is the unbiased one, and a ``BoundWarning`` says so. Conditions between
    statistics are used by the unbiased estimator only: the better of the two is returned.

    Examples
    --------
    >>> from trueup import DiscreteGaussian
    >>> est = nearly_unbiased("1/n", DiscreteGaussian(3), (12, 400), max_bias=0.01, relative=True)
    >>> est.bias_bound <= 0.01
    True
    >>> round(est(20), 4), round(est.sd(20) * 20, 2)
    (0.0495, 0.15)
    >>> nearly_unbiased("1/n", DiscreteGaussian(3), (3, 400), cells=50)
    <nearly unbiased estimator of 1/n (n: DiscreteGaussian(3) on {3..400}; |bias| ≤ 0.083...·|f|)>
    """
    if empty is not None:
        raise TrueupError(f"empty={empty!r} does not go with a bias that is allowed", _NO_EMPTY)
    return NearlyUnbiased(f, noise, domain, max_bias, relative, prior, cells)


class NearlyUnbiased(Estimator):
    """An estimator with a certified small bias. Use :func:`nearly_unbiased` to make one.

    It is an ordinary :class:`Estimator`. ``expectation``, ``bias`` and ``sd`` are computed at any
    true value; ``variance`` estimates Var g from the published value, itself with a small bias,
    ``variance_bias``, relative to Var g.
    """

    def __init__(
        self,
        f: object,
        noise: Noise | Mapping[str, Noise],
        domain: object = None,
        max_bias: Any = None,
        relative: bool | None = None,
        prior: object = None,
        cells: Any = None,
    ) -> None:
        self.max_bias = None if max_bias is None else _read_bias(max_bias)
        self.cells = None if cells is None else _read_cells(cells)
        if cells is not None and max_bias is not None:
            raise TrueupError(
                f"max_bias={max_bias!r} and cells={cells!r} exclude each other",
                "cells chooses the bias; bias_bound says how large it became",
            )
        self.prior = prior
        self._asked = Asked(self.max_bias, self.cells, relative, prior)
        self._levels: dict[tuple[tuple[str, float], ...], NearlyUnbiased] = {}
        super().__init__(f, noise, domain)
        recipe = (f, noise, domain, max_bias, relative, prior, cells)
        self._recipe = recipe  # type: ignore[assignment]

    def _invert(self, extension: object) -> Inverse:
        from trueup.near.products import answer  # with its solvers, only where one is made

        given = self._source.expr, self._statistics, self._asked, self._tied
        try:
            self._answer: Answer = answer(*given)
        except NoUnbiasedEstimator as error:
            if "empty=" in error.hint:
                raise NoUnbiasedEstimator(error.message, _NO_EMPTY) from None
            raise
        return self._answer.inverse

    @property
    def relative(self) -> bool:
        """Whether bias and standard deviation count relative to |f(q)|, or to a part of it."""
        return self._answer.relative

    @property
    def relative_to(self) -> sympy.Expr:
        """What a relative bias is relative to: f, or of m/n − 1, say, the part traded, m/n."""
        return self._answer.relative_to

    @property
    def measure(self) -> str:
        """What a relative bias is relative to, as text: "f" if it is f itself."""
        return "f" if self.relative_to == self.estimand else text(self.relative_to)

    # -- the certificate ---------------------------------------------------------------------------

    @property
    def bias_bound(self) -> float:
        """A bound on |E g(q + Z) − f(q)| over the domain, relative to |f(q)| if asked so.

        Sums and what lies between the true values looked at are bounded; integrals over continuous
        noise are computed, at each of these values with two rules of quadrature.
        """
        return self._answer.bound

    @property
    def certified(self) -> str:
        """The bound on the bias, in words."""
        bound = self.bias_bound
        whole = "the true value" if self.measure == "f" else self.measure
        size = f"{100 * bound:.3g} % of {whole}" if self.relative else f"{bound:.3g}"
        return f"bias at most {size}, certified"

    @cached_property
    def max_sd(self) -> float:
        """The largest standard deviation over the domain, relative to |f(q)| if asked so."""
        return self._profile.largest[0]

    @cached_property
    def worst(self) -> float:
        """The true value at which the standard deviation is largest."""
        return self._profile.largest[1]

    @cached_property
    def average_sd(self) -> float:
        """The root of the variance averaged over the prior, relative to f(q)² if asked so."""
        return self._profile.average

    @property
    def _profile(self) -> Profile:
        if self._answer.profile is None:
            raise TrueupError(
                "the largest standard deviation is for one statistic, here are several "
                f"({', '.join(self.statistics)})",
                "ask sd(...) at true values",
            )
        return self._answer.profile

    @property
    def variance_bias(self) -> float:
        """The largest bias of ``variance`` relative to Var g, where it was looked at."""
        return max((factor.solution.spread.bias for factor in self._answer.factors), default=0.0)

    @property
    def untraded(self) -> str:
        """Why no bias is traded, where one was allowed; empty if it is, or need not be."""
        return self._answer.untraded

    # -- from published values ---------------------------------------------------------------------

    def variance(self, /, *x: ArrayLike, **statistics: ArrayLike) -> Any:
        """Return a nearly unbiased estimate of Var g.

        q ↦ Var g(q + Z) is a known function, and this is its estimator by the same programme, with
        a bias of at most 12 % of it where that is possible; ``variance_bias`` says how much, at the
        true values that were looked at.

        Examples
        --------
        >>> from trueup import DiscreteGaussian
        >>> est = nearly_unbiased("1/n", DiscreteGaussian(3), (12, 400), 0.01, relative=True)
        >>> round(est.variance(50) ** 0.5 * 50, 3), round(est.sd(50) * 50, 3)
        (0.06, 0.061)
        """
        return super().variance(*x, **statistics)

    @cached_property
    def _variance(self) -> Grid:
        return super()._variance if self._answer.exact else self._answer.variance_grid()

    def _around(self, center: Any, error: Any, level: float) -> tuple[Any, Any]:
        low, high = super()._around(center, error, level)
        bias = self.bias_bound * (abs(center) if self.relative else 1)
        return low - bias, high + bias

    @cached_property
    def _law(self) -> Any:
        return self._answer.law

    # -- the formula -------------------------------------------------------------------------------

    @cached_property
    def formula(self) -> sympy.Expr:
        """The estimator as a sympy expression; splines stand there by name."""
        exact = self._answer.exact
        return exact.formula if exact else sympy.Add(*(t.formula for t in self._answer.terms))

    @property
    def variance_formula(self) -> NoReturn:
        """Refused: the variance is a spline near the bounds."""
        raise TrueupError(
            "the variance of a nearly unbiased estimator has no formula near the bounds",
            "use variance(x), or sql(output='variance')",
        )

    def explain(self) -> str:
        """Return what is estimated, how, and what is certified, in words.

        Examples
        --------
        >>> from trueup import DiscreteGaussian
        >>> print(nearly_unbiased("1/n", DiscreteGaussian(2), (1, 150), 0.05, True).explain())
        Nearly unbiased estimator of 1/n
          published:  n + DiscreteGaussian(2), true value in {1..150}
          bias:       at most 4.999 % of |f| (asked: 5 %), certified on the whole domain
          theorem:    least variance under bounded bias: ...
        ...
        """
        from trueup.near.words import explain

        return explain(self, self._answer)

    def __repr__(self) -> str:
        given = ", ".join(f"{s.symbol.name}: {s.noise!r} on {s.domain}" for s in self._statistics)
        bound = f"{self.bias_bound:.3g}{f'·|{self.measure}|' if self.relative else ''}"
        return f"<nearly unbiased estimator of {text(self.estimand)} ({given}; |bias| ≤ {bound})>"

    # -- what it cannot do -------------------------------------------------------------------------

    def to_json(self) -> str:
        """Refuse: the estimator is the solution of a programme, not a formula."""
        raise TrueupError(
            "a nearly unbiased estimator has no JSON form",
            "write down f, noise, domain and max_bias, and make it again",
        )

    def _scaled(self, names: tuple[str, ...]) -> Scaled:
        raise TrueupError(
            "a nearly unbiased estimator is made for one noise scale, and has no formula in it",
            "collect the table: in memory one is made for each scale; or split it by scale, or use "
            "unbiased() where that exists",
        )

    def _at_scales(self, scales: Mapping[str, float]) -> NearlyUnbiased:
        """Return the estimator for other noise scales, made once for each.

        The bias that ``cells`` choose for more noise may be larger: the bound stated here holds.
        """
        key = tuple(scales.items())
        if key not in self._levels:
            if len(self._levels) == MOST_LEVELS:
                raise TrueupError(
                    f"more than {MOST_LEVELS} different noise scales: a nearly unbiased estimator "
                    "is the solution of a programme for each",
                    "round the scales up to fewer levels, or use unbiased() where that exists",
                )
            recipe: Any = self._recipe
            f, noise, domain, max_bias, _, prior, cells = recipe
            given = noise if isinstance(noise, Mapping) else dict.fromkeys(self.statistics, noise)
            own = {n: z.at_scale(scales[n]) if n in scales else z for n, z in given.items()}
            rest = (self.relative, prior)
            made = NearlyUnbiased(f, own, domain, max_bias, *rest, cells)
            if cells is not None and made.bias_bound > self.bias_bound:
                made = NearlyUnbiased(f, own, domain, self.bias_bound or _NONE, *rest)
            self._levels[key] = made
        return self._levels[key]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (NearlyUnbiased, self._recipe)


def _read_cells(value: object) -> float:
    cells = number(value, "cells", infinite=False)
    if cells >= 1:
        return float(cells)
    raise TrueupError(
        f"cells must be at least 1, got {value!r}",
        "give the number of cells whose estimates will be averaged or added up, e.g. cells=400",
    )


def _read_bias(value: object) -> float:
    bias = number(value, "max_bias", infinite=False)
    if bias > 0:
        return float(bias)
    raise TrueupError(
        f"max_bias must be positive, got {value!r}",
        "give the largest bias you can bear, e.g. 0.01 with relative=True; for none use unbiased()",
    )
