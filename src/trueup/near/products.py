"""Several statistics: f as a sum of products, each factor exact or nearly unbiased.

E of a product of independent factors is the product of their expectations, so a product whose
factors are off by ρᵢ·|hᵢ| at most is off by (Π(1 + ρᵢ) − 1)·|Πhᵢ|, and a·h with h off by β is off
by |a|·β. A tolerance for the whole is shared out among the factors, and the certificate is put
together again from theirs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import BoundWarning, MissingExtra, NoUnbiasedEstimator, TrueupError
from trueup.estimator import Estimator
from trueup.formula.text import text
from trueup.inverse import spectral
from trueup.inverse.grids import grid
from trueup.inverse.ranges import Walk
from trueup.inverse.separation import parted, separated
from trueup.inverse.solve import Inverse
from trueup.near.answer import Exact, Near, NearLaw, Term
from trueup.near.question import Asked, Question, for_cells, never_zero, read_prior
from trueup.near.solve import Profile, Solution, construct, of_unbiased
from trueup.noise.moments import Moments

if TYPE_CHECKING:
    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic
    from trueup.kernels.grid import Grid

    Box = Mapping[sympy.Symbol, Any]

_ROOM = 1 - 1e-9
"""Part of a tolerance that is shared out: the rest is for rounding."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """An estimator as a sum of terms with its certificate; ``exact`` if no bias is traded."""

    f: sympy.Expr
    statistics: tuple[Statistic, ...]
    terms: tuple[Term, ...]
    exact: Estimator | None
    bound: float
    relative: bool
    relative_to: sympy.Expr
    untraded: str = ""
    """Why nothing is traded, where it should be."""
    profile: Profile | None = None
    """Standard deviations over the domain of one statistic."""

    @property
    def inverse(self) -> Inverse:
        """The terms, in the shape of an exact inverse."""
        if self.exact is not None:
            return self.exact._inverse
        return Inverse(self.f, self.terms, (), None)  # type: ignore[arg-type]

    @cached_property
    def law(self) -> Any:
        """What the noise makes of the estimator at a given truth."""
        if self.exact is not None:
            return self.exact._law
        return NearLaw(self.f, self.terms)

    @property
    def factors(self) -> list[Near]:
        """All nearly unbiased factors."""
        return [f for term in self.terms for f in term.factors if isinstance(f, Near)]

    def variance_grid(self) -> Grid:
        """Return the estimate of the variance, ready for numbers and arrays."""
        seen: set[sympy.Symbol] = set()
        for term in self.terms:
            if seen & {*term.statistics}:
                raise TrueupError(
                    f"the variance of {text(self.f)} cannot be estimated: its terms share "
                    "statistics",
                    "use sd(...) at plausible true values",
                )
            seen |= {*term.statistics}
        return grid(self.terms, self.statistics, "variance")  # type: ignore[arg-type]


def answer(
    f: sympy.Expr, statistics: tuple[Statistic, ...], asked: Asked, tied: Sequence[Condition]
) -> Answer:
    """Return the estimator of least error under bounded bias, or the best for many cells."""
    if asked.max_bias is None and asked.cells is None:
        raise TrueupError(
            "max_bias is missing",
            "say how much bias is allowed, e.g. max_bias=0.01, relative=True, or of how many cells "
            "the average should be most accurate, e.g. cells=400",
        )
    made = _of_one(f, statistics, asked) if len(statistics) == 1 else _of_many(f, statistics, asked)
    if asked.max_bias is not None and not made.bound <= asked.max_bias:
        raise TrueupError(
            f"the bias of the product is bounded by {made.bound:.3g} only, {asked.max_bias:g} was "
            "asked",
            "allow a little more bias",
        )
    if not made.factors:
        made = dataclasses.replace(made, terms=(), exact=_exact(f, statistics, tied), bound=0.0)
        if made.untraded:
            _warn(
                f"no bias of {text(f)} can be traded, this is its unbiased estimator: "
                f"{made.untraded}"
            )
        return made
    return _with_conditions(made, asked.cells or 1.0, tied) if tied else made


def _warn(message: str) -> None:
    warnings.warn(message, BoundWarning, stacklevel=7)  # nearly_unbiased() is called by the user


def _exact(
    f: sympy.Expr, statistics: Sequence[Statistic], tied: Sequence[Condition] = ()
) -> Estimator:
    domains: dict[str, Any] = {s.symbol.name: s.domain for s in statistics}
    noises = {s.symbol.name: s.noise for s in statistics}
    return Estimator(f, noises, domains | {c.key: (c.low, None) for c in tied})


def _with_conditions(made: Answer, cells: float, tied: Sequence[Condition]) -> Answer:
    """Return the better of an answer that uses no condition and the unbiased one, which does.

    Compared are bias² + variance/m at true values, near the bounds and away from them.
    """
    unused = f"{tied[0]} is not used where a bias is allowed"
    try:
        exact = _exact(made.f, made.statistics, tied)
        sds = [exact._law.sd(point) for point in _points(made.statistics, tied)]
    except TrueupError:
        _warn(unused)
        return made
    ratios = []
    for point, sd in zip(_points(made.statistics, tied), sds, strict=True):
        own = made.law.bias(point) ** 2 + made.law.sd(point) ** 2 / cells
        if own > 0 and sd > 0:
            ratios.append(math.log(sd**2 / cells / own))
    times = math.exp(sum(ratios) / max(len(ratios), 1))
    if times > 1:
        _warn(
            f"{unused}; the unbiased estimator uses it, but has {times:.3g} times the mean squared "
            "error\nHint: compare their sd(...) at plausible true values"
        )
        return made
    _warn(
        f"{unused}: this is the unbiased estimator, which uses it and has {times:.3g} times the "
        "mean squared error of a biased one\nHint: it is unbiased() that made it"
    )
    return dataclasses.replace(made, terms=(), exact=exact, bound=0.0)


def _points(
    statistics: Sequence[Statistic], tied: Sequence[Condition]
) -> list[dict[sympy.Symbol, float]]:
    """Return true values that meet the conditions."""
    axes = []
    for s in statistics:
        low = float(s.domain.low) if math.isfinite(s.domain.low) else 0.0
        unit = max(math.sqrt(float(s.noise.variance)), 1.0)
        own = {low + round(k * unit) for k in (0.5, 3)}
        axes.append([q for q in sorted(own) if q <= s.domain.high])
    points = [
        dict(zip((s.symbol for s in statistics), q, strict=True)) for q in itertools.product(*axes)
    ]

    def allowed(point: dict[sympy.Symbol, float], c: Condition) -> bool:
        own = {s.name: q for s, q in point.items()}
        return bool(sum(float(w) * own[n] for n, w in c.terms) >= c.low + c.strict)

    return [p for p in points if all(allowed(p, c) for c in tied)]


def _of_one(f: sympy.Expr, statistics: tuple[Statistic, ...], asked: Asked) -> Answer:
    """Return the answer for one statistic."""
    question = dataclasses.replace(
        question_of(statistics[0], f, asked.prior),
        max_bias=asked.max_bias or 1.0,
        relative=bool(asked.relative),
    )
    if asked.cells is not None:
        relative = never_zero(question) if asked.relative is None else asked.relative
        question = for_cells(dataclasses.replace(question, relative=relative), asked.cells)
    found, given = construct(question), (question.relative, f)
    if isinstance(found, Estimator):
        return Answer(f, statistics, (), None, 0.0, *given, profile=of_unbiased(found, question))
    term, bound = Term(f, None, (Near(found),)), found.certificate.bound
    return Answer(f, statistics, (term,), None, bound, *given, profile=found.profile)


def question_of(statistic: Statistic, h: sympy.Expr, prior: Any) -> Question:
    """Return what is asked of a function of one statistic; how much bias is open.

    The prior is its own, or one of those given by name.
    """
    if isinstance(prior, Mapping) and all(isinstance(k, str) for k in prior):
        prior = prior.get(statistic.symbol.name)
    if isinstance(statistic.noise, Moments):
        raise TrueupError(
            f"only moments of the noise are known, {statistic.noise!r}: no bias can be bounded",
            "give its law, e.g. Gaussian(scale); unbiased() treats polynomials",
        )
    whole = statistic.noise.lattice or statistic.domain.lattice
    weights = read_prior(prior, statistic.domain, whole)
    return Question(h, statistic.symbol, statistic.noise, statistic.domain, weights)


# -- f as a sum of products ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Product:
    """One term: the exact factor, and functions of one statistic each that stand apart."""

    exact: sympy.Expr
    near: tuple[tuple[Statistic, sympy.Expr], ...]

    @property
    def traded(self) -> int:
        """How many of the functions are worth a bias."""
        return sum(traded(h, s) for s, h in self.near)

    @property
    def without(self) -> sympy.Expr:
        """The factors that stay unbiased."""
        return sympy.Mul(self.exact, *(h for s, h in self.near if not traded(h, s)))

    @property
    def expr(self) -> sympy.Expr:
        """The term as a formula."""
        return sympy.Mul(self.exact, *(h for _, h in self.near))


def traded(h: sympy.Expr, statistic: Statistic) -> bool:
    """Whether a function of one statistic is worth a bias: all but exponential polynomials are."""
    if statistic.symbol not in h.free_symbols or statistic.noise.known:
        return False
    return spectral.decompose(h, [statistic.symbol]) is None


def _invertible(statistic: Statistic) -> bool:
    """Whether every smooth function of a statistic has an unbiased estimator."""
    return statistic.noise.inverse(statistic.domain) is not None


def split(f: sympy.Expr, statistics: Sequence[Statistic], kept: bool = False) -> list[Product]:
    """Write f as a sum of products, each function that is traded alone with its statistic.

    What does not separate stays as it is where it has an unbiased estimator; if ``kept``, so does
    everything that has one.
    """
    products = [Product(parted(f, {s.symbol: s.domain for s in statistics}), ())]
    for statistic in statistics:
        if kept and _invertible(statistic):
            continue
        if any(traded(p.exact, statistic) for p in products):
            products = [q for p in products for q in _apart(f, p, statistic)]
    return products


def _apart(f: sympy.Expr, p: Product, statistic: Statistic) -> list[Product]:
    """Take the functions of one statistic out of a product."""
    pairs = separated(p.exact, statistic.symbol)
    if pairs is None and _invertible(statistic):
        return [p]
    if pairs is None:
        name = statistic.symbol.name
        raise NoUnbiasedEstimator(
            f"no estimator of {text(f)} was found: it is no sum of products of a function "
            f"of {name} and functions of the other statistics, and under {statistic.noise!r} only "
            f"functions of {name} alone can be treated",
            "publish what f depends on as one statistic, e.g. a total with a noise of its own",
            proved=False,
        )
    return [
        Product(a, (*p.near, (statistic, h))) if h.free_symbols else Product(a * h, p.near)
        for a, h in pairs
    ]


# -- their bias ------------------------------------------------------------------------------------


def _of_many(f: sympy.Expr, statistics: tuple[Statistic, ...], asked: Asked) -> Answer:
    """Return the answer for several statistics.

    Where the bias of the whole cannot be bounded (s/n with s unbounded has no bound of its own),
    what has an unbiased estimator keeps it.
    """
    usual = asked.cells is not None and asked.relative is None
    error: TrueupError | None = None
    inseparable = TrueupError(
        "it is no sum of products of functions of one statistic each",
        "a total published as one statistic, or unbiased(), which is the same",
    )
    smooth = spectral.decompose(f, [s.symbol for s in statistics]) is not None
    for kept in (False, True):
        products = split(f, statistics, kept)
        if not any(p.traded for p in products):
            reason = "" if smooth else str(error or inseparable)
            return Answer(f, statistics, (), None, 0.0, bool(asked.relative), f, reason)
        for relative in (True, False) if usual else (bool(asked.relative),):
            try:
                return _shared_out(f, statistics, products, asked._replace(relative=relative))
            except MissingExtra:
                raise
            except TrueupError as reason:
                error = error or reason
        if not any(map(_invertible, statistics)):
            break
    raise error or inseparable


def _shared_out(
    f: sympy.Expr,
    statistics: tuple[Statistic, ...],
    products: Sequence[Product],
    asked: Asked,
) -> Answer:
    """Return the products with the bias shared out among those that can be traded."""
    box, relative = {s.symbol: s.domain for s in statistics}, bool(asked.relative)
    near = [p for p in products if p.traded]
    measure = _against(f, near) if relative else f
    budget = (asked.max_bias or 1.0) * _ROOM / (1 if relative else len(near))
    terms, total = [], 0.0
    for p in products:
        alone = p.traded == 1 and not relative  # the bias of h, not relative to it
        size = 1.0 if relative or not p.traded else _multiplied(p, box, alone)
        each = budget / size
        each = each if alone else math.expm1(math.log1p(each) / max(p.traded, 1))
        factors = tuple(_factor(p, s, h, each, not alone, asked) for s, h in p.near)
        offs = [x.solution.certificate.bound for x in factors if isinstance(x, Near)]
        total += (sum(offs) if alone else math.prod(1 + x for x in offs) - 1) * size
        terms.append(Term(p.expr, _rest(p.exact, statistics), factors))
    return Answer(f, statistics, tuple(terms), None, total, relative, measure)


def _against(f: sympy.Expr, near: Sequence[Product]) -> sympy.Expr:
    """Return what a relative bias is relative to: f, or the one product traded; of m/n − 1, m/n."""
    measure = near[0].expr
    if len(near) == 1 and not (rest := sympy.expand(f - measure)).free_symbols:
        return f if rest == 0 else measure
    raise TrueupError(
        f"the bias of {text(f)} cannot be bounded relative to it: its terms may cancel",
        "use relative=False with bounds on all statistics, or estimate the terms one by one",
    )


def _multiplied(p: Product, box: Box, alone: bool) -> float:
    """Return what the bias of a term's factors is multiplied by in the bias of the whole.

    That is sup|t|, the bias of the factors being relative; a single factor needs only the sup of
    what it is multiplied by.
    """
    times = p.without if alone else p.expr
    cells = {s: (np.array([float(box[s].low)]), np.array([float(box[s].high)])) for s in box}
    low, high, _ = Walk(cells).range(times)
    size = max(abs(float(np.min(low))), abs(float(np.max(high))))
    if not math.isfinite(size):
        raise TrueupError(
            f"the bias is multiplied by {text(times)}, which is not bounded on the domain",
            "use relative=True, or bound every statistic in the domain",
        )
    return max(size, 1e-300)


def _factor(
    p: Product, statistic: Statistic, h: sympy.Expr, each: float, relative: bool, asked: Asked
) -> Exact | Near:
    """Return the estimator of a function of one statistic, with a bias if that is worth it."""
    if not traded(h, statistic):
        return Exact(_exact(h, [statistic]))
    beside = len(p.near) > 1 or bool(p.exact.free_symbols)
    question = dataclasses.replace(
        question_of(statistic, h, asked.prior), max_bias=each, relative=relative, beside=beside
    )
    found = construct(
        question if asked.cells is None else for_cells(question, asked.cells), part=True
    )
    return Near(found) if isinstance(found, Solution) else Exact(found)


def _rest(exact: sympy.Expr, statistics: Sequence[Statistic]) -> Exact | None:
    """Return the estimator of what is not traded, None for 1."""
    used = [s for s in statistics if s.symbol in exact.free_symbols]
    return Exact(_exact(exact, used or statistics[:1])) if used or exact != 1 else None
