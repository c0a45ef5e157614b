"""What f does at a point where it is not analytic: one-sided values and slopes along a line."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import sympy
from sympy.core.relational import Relational

from trueup.errors import FormulaError
from trueup.exact import symbolic
from trueup.formula.build import UnfitError, is_long, stable
from trueup.formula.substitution import at, decimal, real_at
from trueup.formula.text import text
from trueup.inverse.jets import derivative
from trueup.inverse.ranges import difference, guards

if TYPE_CHECKING:
    from trueup.domain import Interval

KINKED = (sympy.Abs, sympy.sign, sympy.floor, sympy.Min, sympy.Max, sympy.Piecewise)
"""What f may be made of that picks cases."""

_SPLIT = (sympy.Abs, sympy.sign, sympy.Min, sympy.Max)
_PARTS = 3_000  # of the cases written out: each takes sympy some 0.1 ms in every later step
_BESIDE = sympy.Rational(
    4, 10**15
)  # relative: comparisons are read there, a bound may be an ulp off
_BESIDE_ZERO = sympy.Rational(1, 10**30)


@lru_cache(maxsize=256)
def without_kinks(f: sympy.Expr) -> sympy.Expr:
    """Return f with |·|, sign, min and max as cases, whose derivatives have no point masses.

    A ``where`` inside one of them is drawn outside: sympy cannot compare cases.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> without_kinks(sympy.Abs(q - 1) + sympy.Max(0, q))
    Piecewise((q, q >= 0), (0, True)) + Piecewise((q - 1, q >= 1), (1 - q, True))
    """
    if not f.has(*_SPLIT):
        return f
    try:
        found = _written_out(f)
    except (UnfitError, TypeError):  # what is compared is never a real number
        found = None
    if found is None or is_long(found, _PARTS):
        raise FormulaError(
            f"{text(f)[:200]} has too many cases inside one another",
            "nest abs, min, max and where less deeply, or split the formula",
        )
    return found


def _written_out(f: sympy.Expr) -> sympy.Expr:
    if isinstance(f, sympy.Piecewise):
        return sympy.Piecewise(*((without_kinks(value), test) for value, test in f.args))
    if not isinstance(f, _SPLIT):
        found = f.func(*map(without_kinks, f.args))
        cases = found.args if isinstance(found, sympy.Piecewise) else ()
        again = any(value.has(*_SPLIT) for value, _ in cases)  # of (q**2)**1.5 sympy makes |q|³
        return without_kinks(found) if again else found
    inner = next((e for e in sympy.preorder_traversal(f) if isinstance(e, sympy.Piecewise)), None)
    if inner is None:
        return _cases_of(f)
    drawn = ((without_kinks(at(f, {inner: value})), test) for value, test in inner.args)
    return sympy.Piecewise(*drawn)


def _cases_of(f: sympy.Expr) -> sympy.Expr:
    """Return |·|, sign, min or max as cases."""
    first, *others = f.args
    if isinstance(f, sympy.sign):
        below = _choice(sympy.Lt(first, 0), sympy.S.NegativeOne, sympy.S.Zero)
        return _choice(sympy.Gt(first, 0), sympy.S.One, below)
    plain = without_kinks(first)
    if isinstance(f, sympy.Abs):
        return _choice(sympy.Ge(first, 0), plain, -plain)
    rest = others[0] if len(others) == 1 else f.func(*others, evaluate=False)
    wins = sympy.Ge if isinstance(f, sympy.Max) else sympy.Le
    return _choice(wins(rest, first), without_kinks(rest), plain)


def _choice(test: sympy.Basic, yes: sympy.Expr, no: sympy.Expr) -> sympy.Expr:
    return sympy.Piecewise((yes, stable(test)), (no, True))


def beside(f: sympy.Expr, point: Mapping[sympy.Symbol, tuple[sympy.Expr, int]]) -> sympy.Expr:
    """Return the case of f that holds beside a point, given as {symbol: (value, side)}.

    Comparisons that depend on other symbols too stay.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> beside(abs(q - 3), {q: (sympy.Integer(3), -1)})
    3 - q
    """
    near = {
        symbol: value + side * (_BESIDE * abs(value) or _BESIDE_ZERO) * (1 + sympy.Rational(i, 7))
        for i, (symbol, (value, side)) in enumerate(point.items())
    }
    return chosen(f, near)


def chosen(f: sympy.Expr, near: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    """Return f with every case picked that holds at a point, as far as it decides.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> chosen(sympy.Max(n, 1) * abs(s), {n: sympy.Integer(5)})
    n*Piecewise((s, s >= 0), (-s, True))
    """
    smooth = without_kinks(f)
    tests = [t for t in smooth.atoms(Relational) if t.free_symbols <= set(near)]
    signs = {t: real_at(difference(t), near, _MANY, 400) for t in tests}
    return at(smooth, {t: t.func(value, 0) for t, value in signs.items() if value is not None})


class Kind(enum.Enum):
    """What f does at a point where it is not analytic."""

    POLE = "f is unbounded"
    JUMP = "the value jumps"
    STEEP = "the slope is unbounded"
    KINK = "the slope jumps"
    ROUGH = "a higher derivative that matters jumps or is unbounded"
    POINT = "the value at the point is not the limit"
    UNDEFINED = "f is not a real number"
    UNDECIDED = "nothing could be shown"
    MILD = "harmless for unbiasedness"


@dataclasses.dataclass(frozen=True)
class Trouble:
    """A place where f is not analytic, and what it looks like there.

    ``gap`` is by how much the value jumps, or the derivative that is named, and ``middle`` the mean
    of the one-sided values; ``exponent`` is the order |q − a|^exponent of f at a pole, of its last
    derivative that matters otherwise. ``where`` are values of other statistics.
    """

    kind: Kind
    symbol: sympy.Symbol | None
    exact: sympy.Expr | None
    gap: float = 0.0
    middle: float = 0.0
    exponent: float = 0.0
    where: Mapping[sympy.Symbol, sympy.Expr] = dataclasses.field(default_factory=dict)

    @property
    def point(self) -> float:
        """The place along the statistic."""
        return math.nan if self.exact is None else float(self.exact)

    @property
    def proved(self) -> bool:
        """Whether it proves that no unbiased estimator exists."""
        return self.kind not in (Kind.MILD, Kind.UNDECIDED)


_STEPS = tuple(sympy.Rational(1, 10**k) for k in (12, 22, 32))
DIGITS = 40
_MANY = 60  # digits in which comparisons beside a point are read
ALIKE = 1e-14  # relative to f nearby: less is what rounded decimals leave
_ALIKE_EXACT = 1e-28
AWAY = sympy.Dummy("t", nonnegative=True)
"""The distance from a point: on its left (-q)**1.5 is t**1.5, whose slope is a number at 0."""
_FARTHER = sympy.Rational(1, 1000)
_FAINT = 1e-9  # of f so far away: a pole of decimals that cancel is 1e-16 of it, and none
_DIVERGES = (Kind.POLE, Kind.STEEP, Kind.ROUGH)
_JUMPS = (Kind.JUMP, Kind.KINK, Kind.ROUGH)
"""What it is called if the value, the slope or a higher derivative diverges, or jumps."""


class _Tendency(NamedTuple):
    """The limit from one side, None if none is known, and the order |q − a|^exponent."""

    limit: sympy.Expr | None
    diverges: bool
    exponent: float


def _tendency(case: sympy.Expr, size: sympy.Expr) -> _Tendency:
    """Return what an expression without cases does as the distance from a point goes to 0."""
    values = [real_at(case, {AWAY: h * size}, DIGITS, 400) for h in _STEPS]
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return _Tendency(None, False, -math.inf)
    first, second, third = map(abs, known)
    exponent = math.inf
    if first and third:
        exponent = float(sympy.log(first / third) / sympy.log(_STEPS[0] / _STEPS[2]))
    limit = real_at(case, {AWAY: sympy.S.Zero}, DIGITS, 400)
    if limit is not None and 2 * abs(known[2] - limit) <= abs(known[0] - limit):
        return _Tendency(limit, False, exponent)  # a change may halve: |q − a|^(1/33)
    if not (third > second > first > 0 and third - second > (second - first) / 2):
        return _Tendency(None, False, exponent)
    away = abs(real_at(case, {AWAY: _FARTHER * size}, DIGITS, 400) or 0)
    faint = first * (_STEPS[0] / _FARTHER) ** -sympy.Float(exponent) < _FAINT * away
    return _Tendency(None, not faint, exponent)


class Line(NamedTuple):
    """F along one statistic near a point, all other statistics held: what is looked at there."""

    f: sympy.Expr
    symbol: sympy.Symbol
    here: sympy.Expr
    sides: tuple[int, ...]
    order: int

    def case(self, side: int) -> sympy.Expr:
        """Return the case of f that holds on a side, as a function of the distance."""
        step = sympy.Rational(1, 10**35) * max(sympy.S.One, abs(self.here))
        case = chosen(self.f, {self.symbol: self.here + side * step})
        return at(case, {self.symbol: self.here + side * AWAY})

    def judged(self) -> Trouble:
        """Return what f does at the point: the first thing that goes wrong."""
        cases = {side: self.case(side) for side in self.sides}
        size = max(sympy.S.One, abs(self.here))
        found = Trouble(Kind.MILD, self.symbol, self.here)
        for k in range(self.order + 1):
            parts = {side: side**k * derivative(case, AWAY, k) for side, case in cases.items()}
            row = [_tendency(part, size) for part in parts.values()]
            lowest = min((v.exponent for v in row), default=0.0)
            if k == self.order:
                return dataclasses.replace(found, exponent=lowest)
            limits = [v.limit for v in row if v.limit is not None]
            if len(limits) < len(row):
                kind = Kind.UNDEFINED if not k and lowest == -math.inf else Kind.UNDECIDED
                kind = _DIVERGES[min(k, 2)] if any(v.diverges for v in row) else kind
                return dataclasses.replace(found, kind=kind, exponent=lowest)
            if not k:
                middle = float(sympy.Add(*limits) / max(len(limits), 1))
                found = dataclasses.replace(found, middle=middle)
            if gap := _gap(limits):
                return dataclasses.replace(found, kind=_JUMPS[min(k, 2)], gap=gap)
        return found


def _gap(limits: Sequence[sympy.Expr]) -> float:
    """Return by how much two one-sided limits differ, 0 if they are alike."""
    if len(limits) < 2:
        return 0.0
    left, right = limits
    scale = max(abs(left), abs(right), sympy.S.One)
    return float(right - left) if abs(right - left) > _ALIKE_EXACT * scale else 0.0


def ends_of(domain: Interval) -> tuple[sympy.Expr, sympy.Expr]:
    """Return the bounds of a domain as the numbers that are written."""
    return decimal(symbolic(domain.low)), decimal(symbolic(domain.high))


def place(
    f: sympy.Expr, s: sympy.Symbol, ends: tuple[float, float], domain: Interval
) -> sympy.Expr | None:
    """Return the number in a tiny cell at which a guard of f vanishes, exactly or to 50 digits."""
    low, high = ends
    own = [g for g in guards(f) if g.free_symbols == {s}]
    middle = low / 2 + high / 2
    plain = [sympy.Rational(f"{middle:.{n}g}") for n in range(1, 16)]
    bounds = [end for end in ends_of(domain) if low <= float(end) <= high]
    for x in dict.fromkeys((*bounds, sympy.S.Zero, *plain)):
        if low <= float(x) <= high and any(at(g, {s: x}) == 0 for g in own):
            return x
    for guard in own:
        try:
            root = sympy.nsolve(guard, s, middle, prec=50, verify=False)
        except (ValueError, ZeroDivisionError, TypeError, ArithmeticError):
            continue
        if root.is_real and low <= float(root) <= high:
            return root
    return bounds[0] if bounds else None
