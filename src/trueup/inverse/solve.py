"""From formula, noises and domains to the components of the unbiased estimator."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import sympy
from sympy.utilities.iterables import connected_components

from trueup.domain import Interval
from trueup.errors import InfiniteVariance, NoUnbiasedEstimator, TrueupError
from trueup.exact import symbolic
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse import joint, on_integers, spectral
from trueup.inverse.component import Cell, Component, Wave
from trueup.inverse.existence import check
from trueup.inverse.extended import Unextended
from trueup.inverse.on_integers import OnIntegers
from trueup.inverse.refusals import refusal, unproved
from trueup.inverse.separation import parted
from trueup.inverse.signs import inside, without_kinks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trueup.formula.linear import Condition
    from trueup.inverse.separation import Products
    from trueup.noise.base import Noise

MAX_CELLS = 6
"""Statistics in one non-linear term: every one of them triples the regions."""


@dataclasses.dataclass(frozen=True)
class Statistic:
    """What is known of one published number: its symbol, its noise, and where the truth lies."""

    symbol: sympy.Symbol
    noise: Noise
    domain: Interval


@dataclasses.dataclass(frozen=True)
class Inverse:
    """The unbiased estimator of f as a sum of components.

    ``infinite`` says why the variance does not exist, None if it does.
    """

    f: sympy.Expr
    components: tuple[Component, ...]
    theorems: tuple[str, ...]
    infinite: str | None

    @property
    def spread_is_unknown(self) -> bool:
        """Whether the variance may exist all the same: a noise has moments that are not known."""
        waves = [wave for part in self.components for wave in part.waves]
        return any(wave.noise.knows_few_moments for wave in waves)

    def check_variance(self) -> None:
        """Refuse a variance that does not exist, or may not."""
        if self.infinite:
            raise InfiniteVariance(
                f"the variance of the estimator of {text(self.f)} is infinite or unknown: "
                f"{self.infinite}",
                "the estimate is still unbiased; for a variance bound the domain, use less noise, "
                "or give more moments",
            )

    @cached_property
    def estimand(self) -> sympy.Expr:
        """F as it is inside the domain, where the expectation is this."""
        return sympy.Add(*(c.f for c in self.components))


def invert(
    f: sympy.Expr,
    statistics: Iterable[Statistic],
    extension: object = "optimal",
    tied: Sequence[Condition] = (),
) -> Inverse:
    """Return the inverse of the noise applied to f, or refuse with the reason.

    ``tied`` are conditions between statistics of f.
    """
    known = {s.symbol: s for s in statistics}
    points = [s for s in known.values() if s.domain.low == s.domain.high]
    pinned = {s.symbol: symbolic(s.domain.low) for s in points}
    tied = [c.at({s.name: value for s, value in pinned.items()}) for c in tied]
    groups = [{s for s in known if s.name in c.names} for c in tied]
    box = {symbol: s.domain for symbol, s in known.items()}
    terms = connected(parted(_pinned(f, pinned), box), set(known), groups)
    parts = [_component(term, known, extension, tied) for term in terms]
    infinite = [reason for part in parts if (reason := _checked(part, known))]
    theorems = [t for part in parts for t in _theorems(part)]
    if pinned:
        theorems.append("a statistic whose bounds coincide is known: nothing to estimate")
    unique = tuple(dict.fromkeys(theorems)) or ("a constant is its own estimator",)
    return Inverse(f, tuple(parts), unique, infinite[0] if infinite else None)


def invert_within(
    f: sympy.Expr,
    statistics: Sequence[Statistic],
    extension: object,
    tied: Sequence[Condition],
) -> tuple[Inverse, list[Unextended]]:
    """Return the inverse under the conditions that can be used, and why the others are not.

    What is unbiased on the whole box is so on a part of it.
    """
    left: list[Unextended] = []
    while True:
        try:
            return invert(f, statistics, extension, tied), left
        except Unextended as error:
            left.append(error)
            fewer = [c for c in tied if c not in error.tied]
            tied = fewer if len(fewer) < len(tied) else []  # one with a known number in it
        except NoUnbiasedEstimator as error:
            if not left:
                raise
            found = unproved(error) if error.proved else error
            message = "; ".join([found.message, *(e.message for e in left)])
            raise NoUnbiasedEstimator(message, found.hint, proved=False) from None


def _checked(part: Component, known: Mapping[sympy.Symbol, Statistic]) -> str | None:
    """Check a component; an integer taken for a real number proves nothing."""
    try:
        return check(part)
    except NoUnbiasedEstimator as error:
        real = (c.symbol for c in part.cells if not (c.operator.whole or c.noise.lattice))
        if error.proved and any(known[symbol].domain.lattice for symbol in real):
            raise unproved(error) from None
        raise


def on_the_line(
    inverse: Inverse, statistics: Sequence[Statistic], names: Iterable[str], extension: object
) -> Inverse:
    """Return the inverse that takes these statistics for real numbers, though they are integers."""
    whole = {c.symbol for part in inverse.components for c in part.cells if c.operator.whole}
    chosen = {s.symbol for s in statistics if s.symbol.name in set(names)} & whole
    if not chosen:
        return inverse
    relaxed = [
        dataclasses.replace(s, domain=Interval(*s.domain.bounds)) if s.symbol in chosen else s
        for s in statistics
    ]
    return invert(inverse.f, relaxed, extension)


def _pinned(f: sympy.Expr, known: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """Return f with the statistics that can have one value only, or refuse if it has none there."""
    if not known:
        return f
    found = at(f, known)
    point = ", ".join(f"{text(symbol)} = {value}" for symbol, value in known.items())
    _check_real(f, found, f"at {point}, the only value in the domain")
    return found


def _check_real(f: sympy.Expr, found: sympy.Expr, where: str) -> None:
    """Refuse constants that are not finite and real, met where f is simplified."""
    parts = (part for part in sympy.preorder_traversal(found) if isinstance(part, sympy.Expr))
    if found.has(sympy.nan) or any(p.is_number and p.is_real is False for p in parts):
        raise refusal(
            text(f),
            f"it is not a finite real number {where}",
            "bound the domain to where the formula is finite and real",
            proved=True,
        )


def connected(
    f: sympy.Expr, symbols: set[sympy.Symbol], groups: Sequence[set[sympy.Symbol]] = ()
) -> list[sympy.Expr]:
    """Split f into sums of terms that share no statistic, and no group of them.

    Examples
    --------
    >>> a, b, c = sympy.symbols("a b c", real=True)
    >>> connected(a * b + b + 1 / c, {a, b, c})
    [1/c, a*b + b]
    """
    terms = sympy.Add.make_args(f)
    used: list[set[Any]] = [
        (term.free_symbols & symbols).union(*(g for g in groups if g & term.free_symbols)) or {None}
        for term in terms
    ]
    pairs = [(i, j) for i, j in combinations(range(len(terms)), 2) if used[i] & used[j]]
    parts = connected_components((list(range(len(terms))), pairs))
    return sorted((sympy.Add(*(terms[i] for i in part)) for part in parts), key=str)


def _component(
    f: sympy.Expr,
    known: Mapping[sympy.Symbol, Statistic],
    extension: object,
    tied: Sequence[Condition] = (),
) -> Component:
    f = _cancelled(f)
    within = inside(f, {symbol: s.domain for symbol, s in known.items()}, tied)
    _check_real(f, within, "in some of the domain")
    f = within
    used = [s for s in known.values() if s.symbol in f.free_symbols]
    own = [c for c in tied if c.names & {s.symbol.name for s in used}]
    if own:
        names = {s.symbol.name for s in used}.union(*(c.names for c in own))
        return joint.component(f, [s for s in known.values() if s.symbol.name in names], own)
    chosen = on_integers.chosen(f, used, extension)
    if chosen is not None:
        return _tensor(f, *chosen, known, extension)
    operators = {s: s.noise.inverse(s.domain, extension) for s in used}
    cells = tuple(Cell(s.symbol, o, s.noise) for s, o in operators.items() if o is not None)
    waves = tuple(Wave(s.symbol, s.noise) for s, o in operators.items() if o is None)
    _check_size(f, cells)
    plain = f if all(c.noise.lattice for c in cells) else without_kinks(f)
    modes = spectral.decompose(plain, [w.symbol for w in waves])
    if modes is None:
        raise _not_exponential(plain, waves)
    return Component(f, cells, waves, modes)


def _tensor(
    f: sympy.Expr,
    own: Cell,
    products: Products,
    known: Mapping[sympy.Symbol, Statistic],
    extension: object,
) -> OnIntegers:
    """Return f = Σ aᵢ·hᵢ(n) as a tensor product, n read at integers.

    The factors aᵢ become components of the same cells: one for Σ aᵢ·ηᵢ, with 0 or 1 for each ηᵢ.
    """
    marks = [sympy.Dummy("η", real=True) for _ in products]
    mixed = sympy.Add(*(a * mark for (a, _), mark in zip(products, marks, strict=True)))
    others = {symbol: s for symbol, s in known.items() if symbol != own.symbol}
    rest = _component(mixed, others, extension)
    factors = tuple(
        rest.with_parameters({m: sympy.Integer(i == j) for j, m in enumerate(marks)})
        for i in range(len(marks))
    )
    functions = tuple(h for _, h in products)
    return OnIntegers(f, (*rest.cells, own), rest.waves, rest.modes, factors, functions)


def _cancelled(f: sympy.Expr) -> sympy.Expr:
    """Cancel common factors of a quotient in one variable: (q² − 1)/(q − 1) is q + 1."""
    if len(f.free_symbols) == 1 and f.is_rational_function() and not f.atoms(sympy.Float):
        above, below = sympy.fraction(sympy.together(f))
        if below.free_symbols and sympy.gcd(above, below).free_symbols:
            return sympy.cancel(f)
    return f


def _check_size(f: sympy.Expr, statistics: Sequence[Cell]) -> None:
    cells = sum(not f.is_polynomial(c.symbol) for c in statistics)
    branching = sum(len(c.operator.branches) > 1 for c in statistics)
    if max(cells, branching) > MAX_CELLS:
        raise TrueupError(
            f"{max(cells, branching)} noisy cells in one non-linear term, at most {MAX_CELLS} are "
            f"possible: each may lie below, inside or above its bounds, 3^{max(cells, branching)} "
            "formulas in all",
            "publish the total with a noise of its own, or debias parts that are then added",
        )


def _not_exponential(f: sympy.Expr, waves: Sequence[Wave]) -> NoUnbiasedEstimator:
    alone = (wave for wave in waves if spectral.decompose(f, [wave.symbol]) is None)
    wave = next(alone, waves[-1])
    return refusal(
        text(f),
        f"under {wave.noise!r} it is not a sum of terms {wave.symbol}^k·e^(c·{wave.symbol})",
        "under Laplace or DiscreteLaplace noise every smooth function works; here polynomials, "
        "exponentials, sines, cosines and their products do, and, where the law is known, "
        "nearly_unbiased(f, noise, domain, max_bias) finds the best estimator with a small bias",
        proved=False,
    )


def _theorems(part: Component) -> list[str]:
    found = [cell.operator.theorem for cell in part.cells] + part.facts
    for wave in part.waves:
        polynomial = all(not any(c) for c in part.modes)
        how = (
            "polynomials through known moments (paper, Section 7)"
            if polynomial
            else "exponential polynomials through the generating function, g = (1/M)(D) f"
        )
        found.append(f"{wave.noise!r}: {how}")
    if len(part.cells) + len(part.waves) > 1:
        found.append("independent statistics (paper, Section 7): the operators compose")
    return found
