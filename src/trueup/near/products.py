"""Several statistics: f as a sum of products, each factor exact or nearly unbiased.

E of a product of independent factors is the product of their expectations, so a product whose
factors are off by ρᵢ·|hᵢ| at most is off by (Π(1 + ρᵢ) − 1)·|Πhᵢ|, and a·h with h off by β is off
by |a|·β. A tolerance for the whole is shared out among the factors, and the certificate is put
together again from theirs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.errors import MissingExtra, NoUnbiasedEstimator, TrueupError
from trueup.estimator import Estimator
from trueup.formula.text import text
from trueup.inverse import spectral
from trueup.inverse.ranges import Walk
from trueup.inverse.separation import parted, separated
from trueup.near.component import Factor, Term
from trueup.near.construct import construct, exact
from trueup.near.plan import for_cells
from trueup.near.question import Question, Wish, read_prior
from trueup.near.series import graded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.solve import Statistic

    Floats = NDArray[np.float64]

_CELLS = {1: 4096, 2: 160, 3: 32}


@dataclasses.dataclass(frozen=True)
class Product:
    """One term: the exact factor, and functions of one statistic each that stand apart."""

    exact: sympy.Expr
    near: tuple[tuple[Statistic, sympy.Expr], ...]

    @property
    def helped(self) -> int:
        """How many of the functions are no exponential polynomials: they are traded."""
        return sum(wild(h, s) for s, h in self.near)

    @property
    def expr(self) -> sympy.Expr:
        """The term as a formula."""
        return sympy.Mul(self.exact, *(h for _, h in self.near))

    @property
    def without_help(self) -> sympy.Expr:
        """The factors that stay unbiased."""
        return sympy.Mul(self.exact, *(h for s, h in self.near if not wild(h, s)))


def wild(h: sympy.Expr, statistic: Statistic) -> bool:
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
        if any(wild(p.exact, statistic) for p in products):
            products = [q for p in products for q in _apart(f, p, statistic)]
    return products


def _apart(f: sympy.Expr, p: Product, statistic: Statistic) -> list[Product]:
    """Take the functions of one statistic out of a product."""
    pairs = separated(p.exact, statistic.symbol)
    if pairs is None and _invertible(statistic):
        return [p]
    if pairs is None:
        raise _inseparable(f, statistic)
    return [
        Product(a, (*p.near, (statistic, h))) if h.free_symbols else Product(a * h, p.near)
        for a, h in pairs
    ]


def _inseparable(f: sympy.Expr, statistic: Statistic) -> NoUnbiasedEstimator:
    name = statistic.symbol.name
    return NoUnbiasedEstimator(
        f"no estimator of {text(f)} was found: it is no sum of products of a function "
        f"of {name} and functions of the other statistics, and under {statistic.noise!r} only "
        f"functions of {name} alone can be treated",
        "publish what f depends on as one statistic, e.g. a total with a noise of its own",
        proved=False,
    )


@dataclasses.dataclass(frozen=True)
class Composed:
    """The terms of an estimator, the certificate of their sum, and what that is relative to."""

    terms: tuple[Term, ...]
    bound: float
    relative_to: sympy.Expr
    untraded: str = ""
    """Why nothing is traded, if something is worth it."""


def compose(
    f: sympy.Expr,
    statistics: Sequence[Statistic],
    wish: Wish,
    tied: Sequence[Condition] = (),
) -> Composed:
    """Return the nearly unbiased estimator of a function of several statistics.

    Where the bias of the whole cannot be bounded (s/n with s unbounded has no bound of its own),
    what has an unbiased estimator keeps it.
    """
    products = split(f, statistics)
    try:
        made = _traded(f, statistics, products, wish, tied)
    except MissingExtra:
        raise
    except TrueupError as error:
        products = split(f, statistics, kept=True)
        if not any(map(_invertible, statistics)):
            raise
        made, reason = _traded(f, statistics, products, wish, tied), error
    else:
        reason = TrueupError(
            "it is no sum of products of functions of one statistic each",
            "a total published as one statistic, or unbiased(), which is the same",
        )
    smooth = spectral.decompose(f, [s.symbol for s in statistics]) is not None
    traded = smooth or any(p.helped for p in products)
    return made if traded else dataclasses.replace(made, untraded=str(reason))


def _traded(
    f: sympy.Expr,
    statistics: Sequence[Statistic],
    products: Sequence[Product],
    wish: Wish,
    tied: Sequence[Condition],
) -> Composed:
    """Return the products with the bias shared out among those that can be traded."""
    box, relative = {s.symbol: s.domain for s in statistics}, bool(wish.relative)
    near = [p for p in products if p.helped]
    measure, share = _against(f, near, box) if relative and near else (f, 1.0)
    max_bias = wish.max_bias or 1.0
    budget = max_bias if relative else max_bias / max(len(near), 1)
    terms, total = [], 0.0
    for p in products:
        size = _multiplied(p, box) if p.helped and not relative else share
        alone = p.helped == 1 and not relative
        each = budget / size * (1 - 1e-9) if alone else _each(budget, size, max(p.helped, 1))
        questions = [_question(p, s, h, each, not alone, wish) for s, h in p.near]
        factors = tuple(_factor(s, q) for (s, _), q in zip(p.near, questions, strict=True))
        terms.append(_term(p, statistics, factors, tied))
        offs = [x.solution.certificate.bound for x in factors]
        off = (max(offs) if alone else math.prod(1 + x for x in offs) - 1) if offs else 0.0
        total = max(total, off * size) if relative else total + off * size
    return Composed(tuple(terms), total, measure)


def _factor(statistic: Statistic, question: Question) -> Factor:
    traded = wild(question.f, statistic)
    return Factor(construct(question, part=True) if traded else exact(question))


def _each(max_bias: float, size: float, count: int) -> float:
    """Return the relative bias that each of several factors may have."""
    return math.expm1(math.log1p(max_bias / size) / count) * (1 - 1e-9)


def _against(
    f: sympy.Expr, near: Sequence[Product], box: Mapping[sympy.Symbol, Any]
) -> tuple[sympy.Expr, float]:
    """Return what a relative bias is relative to, and sup Σ|tₖ| over it, tₖ the terms traded.

    That is f; or, where f has zeros by a number that is added to them, Σtₖ: of m/n − 1 it is m/n.
    """
    traded = sympy.Add(*(p.expr for p in near))
    shifted = not sympy.expand(f - traded).free_symbols
    for whole in (f, traded) if shifted else (f,):
        alone = len(near) == 1 and sympy.expand(whole - traded) == 0
        if alone or _same_sign(whole, near, box):
            return whole, 1.0
        size = largest(sympy.Add(*(abs(p.expr) for p in near)) / abs(whole), box)
        if math.isfinite(size):
            return whole, max(size, 1e-300)
    raise TrueupError(
        f"the terms of {text(f)} cancel, and its bias cannot be bounded relative to it",
        "use relative=False with bounds on all statistics, or estimate the terms one by one",
    )


def _multiplied(p: Product, box: Mapping[sympy.Symbol, Any]) -> float:
    """Return what the bias of a term's factors is multiplied by in the bias of the whole.

    That is sup|t|, the bias of the factors being relative; a single factor h needs only the sup of
    what it is multiplied by.
    """
    times = p.expr if p.helped > 1 else p.without_help
    size = largest(times, box)
    if not math.isfinite(size):
        raise TrueupError(
            f"the bias is multiplied by {text(times)}, which is not bounded on the domain",
            "use relative=True, or bound every statistic in the domain",
        )
    return max(size, 1e-300)


def _same_sign(f: sympy.Expr, near: Sequence[Product], box: Mapping[sympy.Symbol, Any]) -> bool:
    """Whether f has no terms but these, and none that cancel each other."""
    whole = sympy.expand(f - sympy.Add(*(p.expr for p in near))) == 0
    if not whole:
        return False
    lows, highs = zip(*(_range(p.expr, box) for p in near), strict=True)
    return bool(min(lows) >= 0 or max(highs) <= 0)


def _range(expr: sympy.Expr, box: Mapping[sympy.Symbol, Any]) -> tuple[float, float]:
    low, high, _ = Walk(_cells(expr, box)).range(expr)
    return float(low.min()), float(high.max())


def largest(expr: sympy.Expr, box: Mapping[sympy.Symbol, Any]) -> float:
    """Return a bound on |expr| over a box."""
    if not expr.free_symbols:
        return abs(float(expr))
    low, high = _range(expr, box)
    return max(abs(low), abs(high))


def _cells(
    expr: sympy.Expr, box: Mapping[sympy.Symbol, Any]
) -> dict[sympy.Symbol, tuple[Floats, Floats]]:
    """Return a partition of the box into cells, finer towards its finite ends."""
    symbols = sorted(expr.free_symbols, key=str)
    count = _CELLS.get(len(symbols), 2)
    edges = []
    for symbol in symbols:
        low, high = float(box[symbol].low), float(box[symbol].high)
        if math.isfinite(low) and math.isfinite(high):
            own = np.linspace(low, high, count + 1)
        else:
            own = graded(low, high, 1.0)[:: max(1, 1500 // count)]
            ends = [low if math.isfinite(low) else -math.inf, high]
            own = np.unique(np.concatenate([own, ends]))
        edges.append(own)
    grids = np.meshgrid(*(np.arange(len(e) - 1) for e in edges), indexing="ij")
    return {
        s: (e[g.ravel()], e[g.ravel() + 1]) for s, e, g in zip(symbols, edges, grids, strict=True)
    }


def _question(
    p: Product, statistic: Statistic, h: sympy.Expr, each: float, relative: bool, wish: Wish
) -> Question:
    beside = len(p.near) > 1 or bool(p.exact.free_symbols)
    question = dataclasses.replace(
        question_of(statistic, h, wish.prior), max_bias=each, relative=relative, beside=beside
    )
    return question if wish.cells is None else for_cells(question, wish.cells)


def question_of(statistic: Statistic, h: sympy.Expr, prior: Any) -> Question:
    """Return what is asked of a function of one statistic: a relative bias, how small is open.

    The prior is its own, or one of those given by name.
    """
    if isinstance(prior, Mapping) and all(isinstance(k, str) for k in prior):
        prior = prior.get(statistic.symbol.name)
    whole = statistic.noise.lattice or statistic.domain.lattice
    weights = read_prior(prior, statistic.domain, whole)
    given = (h, statistic.symbol, statistic.noise, statistic.domain)
    return Question(*given, 1.0, True, weights)


def _term(
    p: Product,
    statistics: Sequence[Statistic],
    factors: tuple[Factor, ...],
    tied: Sequence[Condition],
) -> Term:
    used = [s for s in statistics if s.symbol in p.exact.free_symbols]
    noises = {s.symbol.name: s.noise for s in used}
    domains: dict[str, Any] = {s.symbol.name: s.domain for s in used}
    if not p.exact.is_polynomial():
        domains |= {c.key: (c.low, None) for c in tied if c.names <= {*noises}}
    rest: Estimator | None = None
    if used:
        rest = Estimator(p.exact, noises, domains)
    elif p.exact != 1:
        name = statistics[0].symbol.name
        rest = Estimator(p.exact, {name: statistics[0].noise}, {})
    return Term(p.expr, rest, factors)
