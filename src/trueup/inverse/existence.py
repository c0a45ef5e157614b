"""Whether an unbiased estimator exists, why not, and whether its variance does."""

from __future__ import annotations

import dataclasses
import math
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from trueup.domain import Interval
from trueup.enclosure import zeros
from trueup.errors import NoUnbiasedEstimator, TrueupError
from trueup.formula.opaque import Opaque
from trueup.formula.substitution import at, real_at
from trueup.formula.text import text
from trueup.formula.unkinked import without_kinks
from trueup.inverse import spectral
from trueup.inverse.definite import definite
from trueup.inverse.extended import Extended
from trueup.inverse.finite import place, too_large_at, undefined_at, values_of
from trueup.inverse.growth import growth
from trueup.inverse.jets import derivative
from trueup.inverse.on_values import OnValues
from trueup.inverse.regularity import Guard, Singularity, guards, same, singularities
from trueup.inverse.scenes import scenes
from trueup.inverse.tidy import is_tidy
from trueup.kernels.evaluate import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from trueup.formula.linear import Condition
    from trueup.inverse.component import Component, Coordinate
    from trueup.noise.base import Noise

    Floats = NDArray[np.float64]

_REASONS = {
    "pole": "pole at {a} inside the domain: {f} is unbounded near {s} = {a}",
    "jump": "jump at {a}: the value of {f} jumps by {j:g} at {s} = {a}, inside the domain",
    "steep": "infinite slope at {a}: the slope of {f} is unbounded near {s} = {a}",
    "kink": "kink at {a}: the slope of {f} jumps by {k:g} at {s} = {a}, inside the domain",
    "rough": "not smooth enough at {a}: under a sum of noises {f} needs higher derivatives there",
    "point": "at {s} = {a} the value of {f} is not its limit {m:g}; expectations are continuous",
    "removable": "0/0 at {a}: {f} has a limit there, but could not be evaluated near it",
    "wild": "at {a} no limit of {f} and of its slope could be found",
    "undefined": "{f} is not a real number at {s} = {a}, inside the domain",
    "undecided": "{f} could not be shown to be smooth near {s} = {a}",
}
KINDS = tuple(_REASONS)
_ONE_SIDE = (
    "keep the domain on one side of {a}{e}; integer noise (DiscreteLaplace) has no such limit"
)
_HINTS = {
    "pole": "bound the domain away from {a}{e}",
    "jump": _ONE_SIDE,
    "steep": "move the bound away from {a}{e}",
    "kink": _ONE_SIDE,
    "rough": "bound the domain away from {a}, or give each cell its own bounds and noise{e}",
    "point": "give {f} its limit at {a}, or bound the domain away from {a}{e}",
    "removable": "cancel the common factor in the formula, or bound the domain away from {a}{e}",
    "wild": "bound the domain away from {a}{e}",
    "undefined": "bound the domain to where the formula is real{e}",
    "undecided": "bound the domain further, or write the formula more simply{e}",
}


def domain_of(coordinate: Coordinate) -> Interval:
    """Return where a coordinate can be: the sum of its cells' domains."""
    low = sympy.Add(*(c.operator.low for c in coordinate.cells))
    high = sympy.Add(*(c.operator.high for c in coordinate.cells))
    domain = Interval(low, high)
    return domain.integers() if is_lattice(coordinate) else domain


def is_lattice(coordinate: Coordinate) -> bool:
    """Whether a coordinate takes integer values only."""
    return all(c.noise.lattice or c.operator.whole for c in coordinate.cells)


def is_rough(coordinate: Coordinate) -> bool:
    """Whether f is differentiated along a coordinate, so that it must be smooth there."""
    return any(c.operator.order for c in coordinate.cells)


def check(component: Component) -> str | None:
    """Refuse what has no unbiased estimator; return why the variance is infinite, if it is."""
    component.check_work()
    smooth = _smooth(component) if not isinstance(component, Extended) else _tied(component)
    reasons = [*_waves(component), *smooth, *_tails(component)]
    return reasons[0] if reasons else None


# -- smoothness inside the domain ------------------------------------------------------------------


def _real_powers(component: Component) -> None:
    """Refuse a power of a negative constant unless its exponent is always a whole number."""
    whole = {c.symbol: sympy.Dummy(integer=True) for c in component.coordinates if is_lattice(c)}
    for power in component.f.atoms(sympy.Pow):
        exponent = power.exp.xreplace(whole)
        if power.base.is_negative and exponent.free_symbols and not exponent.is_integer:
            raise refusal(
                text(component.f),
                f"{text(power)} is a real number at whole exponents only",
                "use integer noise (DiscreteLaplace), or say cos(pi*q) for (-1)**q",
                proved=True,
            )


def _smooth(component: Component) -> Iterator[str]:
    _real_powers(component)
    box = {c.symbol: domain_of(c) for c in component.coordinates}
    rough = {c.symbol for c in component.coordinates if is_rough(c)}
    for coordinate in component.coordinates:
        if coordinate.symbol in rough:
            yield from _along(component, coordinate, box)
    lattice = {c.symbol for c in component.coordinates if is_lattice(c)}
    for guard in guards(component.f):
        symbols = guard.expr.free_symbols & set(box)
        partial = (guard.signed or guard.divides) and not symbols <= lattice
        if len(symbols) > 1 and (symbols & rough or partial):
            _definite(component, guard, box, rough)
    for coordinate in component.coordinates:
        if coordinate.symbol in lattice:
            _digits(component.f, coordinate)
    if lattice:
        _finite(component, box, {c.symbol for c in component.coordinates if not is_lattice(c)})


def _tied(component: Extended) -> Iterator[str]:
    """Check f where its statistics fulfil the conditions that tie them."""
    _real_powers(component)
    box = {c.symbol: domain_of(c) for c in component.coordinates}
    lattice = {c.symbol for c in component.coordinates if is_lattice(c)}
    for guard in guards(component.f):
        if guard.expr.free_symbols & (set(box) - lattice) and not _harmless_if_tied(
            guard, box, component.tied
        ):
            raise refusal(
                text(component.f),
                f"{text(guard.expr)} may be 0 where {', '.join(map(str, component.tied))}, a pole "
                "or kink there",
                f"bound the statistics so that {text(guard.expr)} keeps one sign",
                proved=False,
            )
    for coordinate in component.coordinates:
        if coordinate.symbol in lattice:
            _digits(component.f, coordinate)
    if lattice:
        _finite(component, box, set(box) - lattice)
    yield from ()


def _harmless_if_tied(
    guard: Guard, box: dict[sympy.Symbol, Interval], tied: tuple[Condition, ...]
) -> bool:
    """Whether a guard keeps its sign where conditions hold, with their excess as a statistic."""
    if _harmless(guard, box):
        return True
    excess = sympy.Dummy("t", real=True)
    for condition in tied:
        for name, c in condition.terms:
            symbol = sympy.Symbol(name, real=True)
            others = {s.name: s for s in box} | {name: sympy.Integer(0)}
            put = sympy.expand((excess - condition.excess(others)) / c)
            moved = guard._replace(expr=sympy.expand(guard.expr.xreplace({symbol: put})))
            if _harmless(moved, {**box, excess: Interval(0, None)}):
                return True
    return False


def _digits(f: sympy.Expr, coordinate: Coordinate) -> None:
    """Refuse integer noise so wide that second differences drown in rounding."""
    scale = max(float(getattr(cell.noise, "scale", 0)) for cell in coordinate.cells)
    if scale >= widest(f, coordinate):
        raise TrueupError(
            f"{coordinate.cells[0].noise!r} is too wide for {text(f)}: its second difference, "
            f"times {scale**2:.1g}, has too few digits",
            f"use Laplace({scale:g}): at this scale the two are alike to {scale**-2:.0e}",
        )


_WIDEST = math.nextafter(1e4, math.inf)


def widest(f: sympy.Expr, coordinate: Coordinate) -> float:
    """Return below which scale of integer noise second differences of f keep their digits."""
    if not is_lattice(coordinate) or f.is_polynomial(coordinate.symbol):
        return math.inf
    floats = bool(f.atoms(sympy.Float))
    rational = f.is_rational_function(coordinate.symbol) and (floats or is_tidy(f))
    return math.inf if rational else _WIDEST


def _along(
    component: Component, coordinate: Coordinate, box: dict[sympy.Symbol, Interval]
) -> Iterator[str]:
    """Check every suspicious point along one coordinate."""
    f, symbol, domain = component.f, coordinate.symbol, box[coordinate.symbol]
    order = sum(cell.operator.order for cell in coordinate.cells)
    for found in singularities(f, symbol, domain, order, box):
        if found.kind == "removable" and (symbol, found.point) in component.removed:
            continue
        if found.kind != "mild":
            raise _refusal(component, coordinate, found, box)
        at_bound = found.exact is not None and any(same(found.exact, b) for b in _ends(domain))
        if at_bound and found.exponent < 0 and order == 2 and _looks_at_curvature(coordinate):
            raise NoUnbiasedEstimator(
                f"infinite curvature of {text(f)} at the bound {found.point:g}: no polynomial "
                "extension of degree k matches it",
                "use extension='optimal', which needs only the slope at the bound",
                proved=False,
            )
        if found.exponent <= -0.5 + 1e-3:
            yield (
                f"the curvature of {text(f)} is not square-integrable at "
                f"{_name(symbol)} = {found.point:g}"
            )


def check_points(
    f: sympy.Expr, symbol: sympy.Symbol, order: int, box: dict[sympy.Symbol, Interval]
) -> None:
    """Refuse a function whose value at a single point is not its limit there."""
    for found in singularities(f, symbol, box[symbol], order, box):
        if found.kind == "point":
            raise refusal_at(f, symbol, box[symbol], found)


def refusal_at(
    f: sympy.Expr,
    symbol: sympy.Symbol,
    domain: Interval,
    found: Singularity,
    unless: tuple[str, ...] = (),
) -> NoUnbiasedEstimator:
    """Return the refusal for what happens at a point; some kinds may prove nothing."""
    words: dict[str, Any] = {"a": f"{found.point:.6g}", "f": text(f), "s": _name(symbol)}
    words |= {"j": found.jump, "k": found.slope, "m": found.middle, "e": ""}
    reason = _REASONS[found.kind].format(**words)
    if found.exact is not None and any(same(found.exact, b) for b in _ends(domain)):
        reason = reason.replace(" inside the domain", ", a bound of the domain", 1)
    return refusal(
        f"{text(f)} on {domain}",
        reason,
        _HINTS[found.kind].format(**words),
        proved=found.proved and found.kind not in unless,
    )


def _looks_at_curvature(coordinate: Coordinate) -> bool:
    """Whether f″ is read at a bound."""
    branches = [b for c in coordinate.cells for b in c.operator.branches]
    return any((2, 0) in b.taps for b in branches if b.at is not None)


def _refusal(
    component: Component,
    coordinate: Coordinate,
    found: Singularity,
    box: dict[sympy.Symbol, Interval],
) -> NoUnbiasedEstimator:
    f, symbol, domain = component.f, coordinate.symbol, box[coordinate.symbol]
    words: dict[str, Any] = {"a": f"{found.point:.6g}", "f": text(f), "s": _name(symbol)}
    words |= {"j": found.jump, "k": found.slope, "m": found.middle}
    reason = _REASONS[found.kind].format(**words)
    if math.isinf(found.point):  # no single point is to blame
        reason = f"{text(f)} could not be shown to be smooth on an unbounded domain"
    at_bound = any(found.exact is not None and same(found.exact, b) for b in _ends(domain))
    if at_bound and found.kind in ("pole", "steep"):
        what = {"pole": "pole", "steep": "infinite slope"}[found.kind]
        reason = f"{what} at the bound {words['a']}: {text(f)} has no finite slope there"
    if found.where and any(s in f.free_symbols for s in found.where) and found.proved:
        others = ", ".join(f"{_name(s)} = {float(v):.6g}" for s, v in found.where.items())
        reason += f" (e.g. with {others})" if f.has(sympy.Piecewise) else ""
    words["e"] = _example(component, coordinate, found, box)
    hint = _HINTS[found.kind].format(**words)
    return refusal(f"{text(f)} on {domain}", reason, hint, proved=found.proved)


def _ends(domain: Interval) -> list[Any]:
    return [bound for bound in domain.bounds if bound is not None]


def _example(
    component: Component,
    coordinate: Coordinate,
    found: Singularity,
    box: dict[sympy.Symbol, Interval],
) -> str:
    """Return a domain on which f is smooth along a coordinate, as the end of a hint.

    Below and above the point, one further, and half way to the bound are tried.
    """
    domain, symbol = box[coordinate.symbol], coordinate.symbol
    if len(coordinate.cells) > 1 or math.isinf(found.point):
        return ""
    order = sum(cell.operator.order for cell in coordinate.cells)
    for low, high in _beside(found, domain):
        near = Interval(low, high)
        inside = singularities(component.f, symbol, near, order, {**box, symbol: near})
        if all(p.kind == "mild" for p in inside):
            pair = "({}, {})".format(*(_bound(b) for b in near.bounds))
            return f", e.g. domain={{{symbol.name!r}: {pair}}}"
    return ""


def _beside(found: Singularity, domain: Interval) -> Iterator[tuple[Any, Any]]:
    """Yield parts of a domain beside a point."""
    a, (low, high) = float(f"{found.point:.6g}"), domain.bounds
    right = [a] if found.kind in ("kink", "jump") else []
    left = list(right)
    right += [a + 1] if high is None else [(a + float(high)) / 2]
    left += [a - 1] if low is None else [(a + float(low)) / 2]
    for start, stop in zip(right, left, strict=True):
        if high is None or start < high:
            yield start, high
        if low is None or stop > low:
            yield low, stop


def _bound(bound: Any) -> str:
    return "None" if bound is None else f"{float(bound):.12g}"


def refusal(what: str, reason: str, hint: str, *, proved: bool) -> NoUnbiasedEstimator:
    """Return the refusal of an estimator: there is none, or none was found."""
    verdict = "" if proved else " was found"
    return NoUnbiasedEstimator(
        f"no unbiased estimator of {what}{verdict}: {reason}", hint, proved=proved
    )


def unproved(error: NoUnbiasedEstimator) -> NoUnbiasedEstimator:
    """Return a refusal that claims less: none was found.

    Examples
    --------
    >>> unproved(NoUnbiasedEstimator("no unbiased estimator of |q|: kink at 0", "none")).message
    'no unbiased estimator of |q| was found: kink at 0'
    """
    what, _, reason = error.message.partition(": ")
    return NoUnbiasedEstimator(f"{what} was found: {reason}", error.hint, proved=False)


def _definite(
    component: Component, guard: Guard, box: dict[sympy.Symbol, Interval], rough: set[sympy.Symbol]
) -> None:
    """Refuse unless a guard in several statistics has one sign on the whole box."""
    f = component.f
    if _harmless(guard, box):
        return
    for coordinate in component.coordinates:
        if coordinate.symbol in rough & guard.expr.free_symbols:
            witness = _witness(f, coordinate, box)
            if witness:
                raise _refusal(component, coordinate, witness, box)
    sure = any(_fails(f, guard.expr, c, box) for c in component.coordinates if is_lattice(c))
    can = "can" if sure else "may"
    raise refusal(
        text(f),
        f"{text(guard.expr)} {can} be 0 inside the domain, a pole or kink there",
        f"bound the statistics so that {text(guard.expr)} keeps one sign",
        proved=sure,
    )


def _fails(
    f: sympy.Expr, guard: sympy.Expr, coordinate: Coordinate, box: dict[sympy.Symbol, Interval]
) -> bool:
    """Whether f is not a finite number at some integer at which a guard vanishes or is negative."""
    symbol, domain = coordinate.symbol, box[coordinate.symbol]
    for scene in scenes(without_kinks(f), symbol, box):
        ends = float(domain.low), float(domain.high)
        for zero in zeros(at(guard, scene.values), symbol, *ends).points if scene.real else ():
            for k in {math.floor(zero), math.ceil(zero)}:
                point = {**scene.values, symbol: sympy.Integer(k)}
                if k in domain and real_at(f, point) is None:
                    return True
    return False


def _witness(
    f: sympy.Expr, coordinate: Coordinate, box: dict[sympy.Symbol, Interval]
) -> Singularity | None:
    """Return what goes wrong along a coordinate while all others have some value of their own."""
    symbol = coordinate.symbol
    order = sum(cell.operator.order for cell in coordinate.cells)
    for scene in scenes(without_kinks(f), symbol, box):
        if scene.real:
            for found in singularities(at(f, scene.values), symbol, box[symbol], order):
                if found.proved:
                    return dataclasses.replace(found, where=scene.values)
    return None


def _finite(
    component: Component, box: dict[sympy.Symbol, Interval], free: set[sympy.Symbol]
) -> None:
    """Refuse if f is not a finite real number at an integer point of the domain.

    Points are tried near the bounds and near the zeros of guards that are not proven harmless.
    """
    open_guards = [g for g in guards(component.f) if not _harmless(g, box)]
    marks = [r for g in open_guards for r in _near(g, box)]
    if not marks and not component.f.has(Opaque):
        return
    axes = [
        [_inner(domain)] if s in free else _probes(domain, [m for t, m in marks if t == s])
        for s, domain in box.items()
    ]
    points = list(islice(product(*axes), _MOST_POINTS))
    for guard in open_guards:
        points += _integer_zeros(guard.expr, points, box, free)
    columns = {s: np.array([p[i] for p in points]) for i, s in enumerate(box)}
    if isinstance(component, Extended):
        columns = _allowed(component, box, free, columns)
        points = list(zip(*columns.values(), strict=True))
    others = component.f.free_symbols - set(box)
    columns |= {s: np.full(len(points), _INNER) for s in others}
    values, undefined = values_of(component.f, columns)
    names = [_name(s) for s in box]
    if undefined.any():
        raise undefined_at(component.f, place(names, points[int(np.argmax(undefined))]))
    beyond = np.isinf(values) & [max(map(abs, p), default=0.0) < _WHOLE for p in points]
    if beyond.any():
        list(_tails(component))  # that f outgrows the noise says more
        raise too_large_at(component.f, place(names, points[int(np.argmax(beyond))]))


def _allowed(
    component: Extended,
    box: dict[sympy.Symbol, Interval],
    free: set[sympy.Symbol],
    columns: dict[sympy.Symbol, Floats],
) -> dict[sympy.Symbol, Floats]:
    """Return the points that fulfil the conditions, real statistics moved to where they do."""
    columns = dict(columns)
    for condition in component.tied:
        for name, c in condition.terms:
            symbol = sympy.Symbol(name, real=True)
            if symbol in free:
                named = {s.name: column for s, column in columns.items()}
                lacking = float(condition.low) - sum(
                    float(k) * named[n] for n, k in condition.terms
                )
                step = np.where(lacking > 0, lacking / float(c) + np.sign(float(c)) * _INNER, 0.0)
                ends = float(box[symbol].low), float(box[symbol].high)
                columns[symbol] = np.clip(columns[symbol] + step, *ends)
    allowed = component.holds(columns)
    return {s: column[allowed] for s, column in columns.items()}


_WHOLE = 2.0**53  # from here on doubles skip integers, and zeros are those of rounded formulas
_MOST_POINTS = 100_000  # at which f is tried, a tenth of a second


def _harmless(guard: Guard, box: dict[sympy.Symbol, Interval]) -> bool:
    """Whether a guard is proven to have the sign it needs on the whole box."""
    proven = definite(guard.expr, box)
    return proven > 0 or bool(proven and not guard.signed)


def _integer_zeros(
    guard: sympy.Expr,
    points: list[tuple[float, ...]],
    box: dict[sympy.Symbol, Interval],
    free: set[sympy.Symbol],
) -> list[tuple[float, ...]]:
    """Return integer zeros of a guard that is linear in a count, the others as in the points.

    a + 3·b − 1000 vanishes far from all bounds.
    """
    found: dict[tuple[float, ...], None] = {}
    columns = {s: np.array([p[i] for p in points]) for i, s in enumerate(box)}
    for i, symbol in enumerate(box):
        if symbol not in guard.free_symbols - free or not guard.is_polynomial(symbol):
            continue
        slope, *rests = sympy.Poly(guard, symbol).all_coeffs()
        if len(rests) != 1 or not {*guard.free_symbols} <= {*box}:
            continue
        rest = rests[0]
        with np.errstate(all="ignore"):
            root = -evaluate(rest, columns) / evaluate(slope, columns)
        whole = (root == np.floor(root)) & box[symbol].contains(root)
        for k in np.flatnonzero(whole):
            found[*points[k][:i], float(root[k]), *points[k][i + 1 :]] = None
    return list(found)


def _near(guard: Guard, box: dict[sympy.Symbol, Interval]) -> Iterator[tuple[sympy.Symbol, float]]:
    """Yield the zeros of a guard that may spoil f, as (axis, place)."""
    for symbol in guard.expr.free_symbols & set(box):
        domain = box[symbol]
        if guard.expr.free_symbols == {symbol}:
            for expr in (guard.expr, *_phases(guard.expr)):
                for point in zeros(expr, symbol, float(domain.low), float(domain.high)).points:
                    yield symbol, point
        yield symbol, _inner(domain)


def _phases(expr: sympy.Expr) -> list[sympy.Expr]:
    """Return the arguments of waves: at integers 1/sin(q − 100) has its pole where they vanish."""
    return [wave.args[0] for wave in expr.atoms(sympy.sin, sympy.cos, sympy.tan)]


def _probes(domain: Interval, marks: list[float]) -> list[float]:
    """Return integers of a domain at which f is tried."""
    ends = [float(b) for b in domain.bounds if b is not None]
    steps = [(m, k * max(1.0, math.ulp(m))) for m in (*ends, *marks, 0.0) for k in range(-20, 22)]
    near = {float(math.floor(m) + step) for m, step in steps}
    return sorted(k for k in near if k in domain)


_INNER = 1.2345  # from a bound: a number at which nothing special happens


def _inner(domain: Interval) -> float:
    low, high = domain.bounds
    if low is None:
        return _INNER if high is None else float(high) - _INNER
    return float(low) + (_INNER if high is None else 0.617 * float(high - low))


# -- growth on unbounded sides ---------------------------------------------------------------------


def _tails(component: Component) -> Iterator[str]:
    for coordinate in component.coordinates:
        for direction, end in ((1, "high"), (-1, "low")):
            open_cells = [
                c for c in coordinate.cells if math.isinf(float(getattr(c.operator, end)))
            ]
            if open_cells:
                rate = min(c.noise.tail_rates[direction > 0] for c in open_cells)
                if math.isinf(rate):  # a known number
                    continue
                yield from _tail(component, coordinate, direction, rate)


def growing(component: Component, coordinate: Coordinate) -> sympy.Expr:
    """Return what grows like g along a coordinate: sums of neighbouring values grow like f."""
    if any(isinstance(c.operator.branches[0], OnValues) for c in coordinate.cells):
        return component.f
    return component.main.value(tuple(0 for _ in component.cells))


def grows_like_f(component: Component) -> bool:
    """Whether g is a sum of values of f at neighbouring integers: it grows no faster than f."""
    return not component.waves and all(map(is_lattice, component.coordinates))


def _tail(
    component: Component, coordinate: Coordinate, direction: int, rate: float
) -> Iterator[str]:
    f, symbol, statistic = component.f, coordinate.symbol, coordinate.cells[0].symbol
    noise, side = coordinate.cells[0].noise, "right" if direction > 0 else "left"
    orders = (0,) if is_lattice(coordinate) else (0, 1)
    sizes = [growth(derivative(f, symbol, n), symbol, direction) for n in orders]
    if not all(size.below(rate, 0) for size in sizes):
        sharp = any(size.sharp and size.formal for size in sizes if not size.below(rate, 0))
        how = "it outgrows" if sharp else "it could not be shown not to outgrow"
        less = ", or use less noise" if all(size.rate < math.inf for size in sizes) else ""
        raise refusal(
            text(f),
            f"{how} the noise on the {side}, whose tail under {noise!r} only carries growth below "
            f"e^({rate:g}·|{_name(symbol)}|)",
            f"bound the domain on the {side}{less}",
            proved=sharp,
        )
    if grows_like_f(component) and sizes[0].raised(2).carried(rate):
        return
    g = growing(component, coordinate)
    size = growth(g, statistic, direction)
    if not size.carried(rate):  # perhaps leading terms cancel
        size = growth(sympy.expand(g), statistic, direction)
    if not size.carried(rate):
        sure = size.sharp and size.formal
        missing = "does not exist" if sure else "could not be shown to exist"
        raise refusal(
            text(f),
            f"the integral of f − b²·f″ against {noise!r} {missing} on the {side}",
            f"bound the domain on the {side}, or use less noise",
            proved=sure,
        )
    if not size.raised(2).carried(rate):
        yield (
            f"{text(f)} grows too fast on the {side}: the square of its estimator has no "
            f"expectation under {noise!r}"
        )


# -- statistics under noise known by its generating function ---------------------------------------


def _waves(component: Component) -> Iterator[str]:
    for frequencies, mode in component.modes.items():
        degrees = component.degrees(mode)
        for wave, c, degree in zip(component.waves, frequencies, degrees, strict=True):
            for noise in wave.noises:
                try:
                    noise.tilted(c, degree)
                except TrueupError as error:
                    raise refusal(
                        text(component.f), error.message, error.hint, proved=False
                    ) from None
                spectral.reciprocal(noise, c, degree)
                reason = _second(noise, c, degree)
                if reason:
                    yield reason


def _second(noise: Noise, c: sympy.Expr, degree: int) -> str | None:
    """Return why the square of an estimator has no expectation, if it has none."""
    rate = float(sympy.re(c))
    if rate and 2 * abs(rate) >= noise.tail_rates[rate > 0]:
        return f"the square of e^({c}·q) outgrows {noise!r}"
    highest = noise.highest_moment
    if not rate and highest is not None and 2 * degree > highest:
        return f"it needs the moment of order {2 * degree}, which {noise!r} does not have or know"
    return None


def _name(symbol: sympy.Symbol) -> str:
    return text(symbol)
