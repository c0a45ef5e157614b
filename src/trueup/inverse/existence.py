"""Whether an unbiased estimator exists, why not, and whether its variance does."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import TYPE_CHECKING

import sympy

from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.formula.opaque import Opaque
from trueup.formula.substitution import at
from trueup.formula.text import text
from trueup.inverse import spectral
from trueup.inverse.growth import growth
from trueup.inverse.jets import derivative
from trueup.inverse.on_values import OnValues
from trueup.inverse.refusals import no_number_at, refusal, refusal_at
from trueup.inverse.signs import is_defined_on
from trueup.inverse.smooth import Kind, Trouble, ends_of, troubles, undefined_near

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trueup.domain import Interval
    from trueup.formula.linear import Condition
    from trueup.formula.source import Source
    from trueup.inverse.component import Cell, Component

    Box = Mapping[sympy.Symbol, Interval]


def check(component: Component) -> str | None:
    """Refuse what has no unbiased estimator; return why the variance is infinite, if it is."""
    reasons = [*_waves(component), *_smooth(component), *_tails(component)]
    component.check_work()
    return reasons[0] if reasons else None


# -- smoothness inside the domain ------------------------------------------------------------------


_FLAT = 1e-3  # of an exponent that is read from values
_MOST_TROUBLES = 4  # that prove nothing, looked at before one is told
_WIDEST = math.nextafter(1e3, math.inf)
"""Beyond, the rounding of a second difference, times λ, is more than 1e-9 of f."""


def _smooth(component: Component) -> Iterator[str]:
    """Refuse what could not be shown to be smooth; yield what makes the variance infinite."""
    f, cells = component.f, component.cells
    box = {c.symbol: c.domain for c in cells}
    orders = {c.symbol: c.operator.order for c in cells if c.operator.order}
    if not orders and not any(c.is_lattice for c in cells):
        return  # known numbers: f is read where they are
    left: list[Trouble] = []
    for found in troubles(f, box, orders, component.tied):
        if found.kind is Kind.MILD:
            yield from _mild(component, found)
            continue
        left.append(found)
        if found.proved or len(left) == _MOST_TROUBLES:
            break
    if left:
        raise refusal_at(f, max(left, key=lambda found: found.proved), box)
    for c in cells:
        scale = float(getattr(c.noise, "scale", 0))
        if scale >= widest(f, c):
            raise TrueupError(
                f"{c.noise!r} is too wide for {text(f)}: its second difference, "
                f"times {scale**2:.1g}, has too few digits",
                f"use Laplace({scale:g}): at this scale the two are alike to {scale**-2:.0e}",
            )
    place = undefined_near(f, box) if f.has(Opaque) else None
    if place:
        raise no_number_at(f, place)


def widest(f: sympy.Expr, cell: Cell) -> float:
    """Return below which scale of integer noise second differences of f keep their digits."""
    bounded = cell.is_lattice and not f.is_polynomial(cell.symbol)
    return _WIDEST if bounded else math.inf


def _mild(component: Component, found: Trouble) -> Iterator[str]:
    """Say why the variance is infinite, if it is, where the last derivative that matters is."""
    (cell,) = (c for c in component.cells if c.symbol == found.symbol)
    order, beyond = cell.operator.order, [b for b in cell.operator.branches if b.at is not None]
    at_bound = order == 2 and found.exact in ends_of(cell.domain)
    if at_bound and found.exponent < -_FLAT and any((2, 0) in b.taps for b in beyond):
        raise NoUnbiasedEstimator(
            f"infinite curvature of {text(component.f)} at the bound {found.point:g}: no "
            "polynomial extension of degree k matches it",
            "use extension='optimal', which needs only the slope at the bound",
            proved=False,
        )
    if found.exponent <= -0.5 + _FLAT:
        yield (
            f"the derivative of order {order} of {text(component.f)} is not square-integrable at "
            f"{text(cell.symbol)} = {found.point:g}"
        )


# -- the formula as it is written ------------------------------------------------------------------


def check_as_written(f: Source, box: Box, tied: Sequence[Condition]) -> None:
    """Refuse what needs roots of negative numbers and the like, though its simpler form does not.

    ``sqrt(q)**2`` is q for sympy. A common factor of polynomials is cancelled.
    """
    for part in f.partial:
        if part.free_symbols <= set(box) and not is_defined_on(part, box, tied):
            raise refusal(
                text(f.expr),
                f"as it is written it could not be shown that {text(part)} is a real number "
                "everywhere inside the domain",
                "bound the domain to where the formula is real, or write it as simply as it is "
                "meant",
                proved=False,
            )


# -- growth on unbounded sides ---------------------------------------------------------------------


def _tails(component: Component) -> Iterator[str]:
    ways = [
        (cell, direction)  # sides without a bound, of what is not known
        for cell in component.cells
        for direction, end in ((1, cell.operator.high), (-1, cell.operator.low))
        if math.isinf(float(end)) and not math.isinf(cell.noise.mgf_radius)
    ]
    for cell, direction in ways:
        yield from _tail(component, cell, direction)
    _check_rays(component, ways)


_SLOPES = ((1, 1), (1, 2), (2, 1))


def _check_rays(component: Component, ways: Sequence[tuple[Cell, int]]) -> None:
    """Refuse exponentials of several statistics that outgrow the noises where all are large."""
    f, t = component.f, sympy.Dummy("t", real=True)
    exponents = [e.args[-1] for e in f.atoms(sympy.exp, sympy.sinh, sympy.cosh)]
    exponents += [p.exp * p.base for p in f.atoms(sympy.Pow) if p.exp.free_symbols]
    if not any(len(e.free_symbols & {cell.symbol for cell, _ in ways}) > 1 for e in exponents):
        return
    for ((a, up), (b, right)), (i, j) in product(combinations(ways, 2), _SLOPES):
        steps = {a.symbol: up * i, b.symbol: right * j}
        named = {s.name: k for s, k in steps.items()}
        pulls = [sum(c * named.get(n, 0) for n, c in tie.terms) for tie in component.tied]
        if a.symbol == b.symbol or any(pull < 0 for pull in pulls):  # it leaves the domain
            continue
        size = growth(at(f, {s: k * t for s, k in steps.items()}), t, 1)
        if not size.below(a.noise.mgf_radius * i + b.noise.mgf_radius * j, 0):
            raise refusal(
                text(f),
                "it could not be shown not to outgrow the noises where "
                f"{text(a.symbol)} and {text(b.symbol)} are large",
                "bound the domain, or use less noise",
                proved=False,
            )


def growing(component: Component, cell: Cell) -> sympy.Expr:
    """Return what grows like g along a statistic: sums of values of f at integers grow like f."""
    if component.reads_integers or isinstance(cell.operator.branches[0], OnValues):
        return component.f
    return component.main.value(tuple(0 for _ in component.cells))


def _tail(component: Component, cell: Cell, direction: int) -> Iterator[str]:
    """Refuse what outgrows the noise on a side: f, its slope, or the estimator g."""
    f, symbol, noise, rate = component.f, cell.symbol, cell.noise, cell.noise.mgf_radius
    orders = (0,) if cell.is_lattice else (0, 1)
    parts = component.far_out(symbol, direction)
    sizes = [growth(derivative(e, symbol, n), symbol, direction) for n in orders for e in parts]
    wrong = [size for size in sizes if not size.below(rate, 0)]
    if not wrong and not component.reads_integers:
        g = growing(component, cell)
        sizes = [growth(g, symbol, direction)]
        if not sizes[0].carried(rate):  # perhaps leading terms cancel
            sizes = [growth(sympy.expand(g), symbol, direction)]
        wrong = [size for size in sizes if not size.carried(rate)]
    side = "right" if direction > 0 else "left"
    if wrong:
        sharp = rate > 0 and any(size.sharp for size in wrong)  # 0: the tail is not known
        how = "it outgrows" if sharp else "it could not be shown not to outgrow"
        raise refusal(
            text(f),
            f"{how} the noise on the {side}, whose tail under {noise!r} only carries growth below "
            f"e^({rate:g}·|{text(symbol)}|)",
            f"bound the domain on the {side}, or use less noise",
            proved=sharp,
        )
    if not all(size.raised(2).carried(rate) for size in sizes):
        yield (
            f"{text(f)} grows too fast on the {side}: the square of its estimator has no "
            f"expectation under {noise!r}"
        )


# -- statistics under noise known by its generating function ---------------------------------------


def _waves(component: Component) -> Iterator[str]:
    """Refuse moments that a noise does not have; yield why the square has no expectation."""
    for frequencies, mode in component.modes.items():
        degrees = component.degrees(mode)
        for wave, c, degree in zip(component.waves, frequencies, degrees, strict=True):
            rate, noise = abs(float(sympy.re(c))), wave.noise
            try:
                noise.tilted(c, degree)
            except TrueupError as error:
                raise refusal(text(component.f), error.message, error.hint, proved=False) from None
            spectral.reciprocal(noise, c, degree)
            highest = noise.highest_moment
            if rate and 2 * rate >= noise.mgf_radius:
                yield f"the square of e^({c}·q) outgrows {noise!r}"
            elif not rate and highest is not None and 2 * degree > highest:
                yield (
                    f"it needs the moment of order {2 * degree}, which {noise!r} does not have or "
                    "know"
                )
