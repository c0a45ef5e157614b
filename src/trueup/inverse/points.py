"""What f does at a point where it is not analytic: one-sided values and slopes along a line."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import sympy
from sympy.core.relational import Relational

from trueup.formula.substitution import at, real_at
from trueup.inverse.cells import guards
from trueup.inverse.jets import derivative

if TYPE_CHECKING:
    from trueup.domain import Interval

KINKED = (sympy.Abs, sympy.sign, sympy.floor, sympy.Min, sympy.Max, sympy.Piecewise)
"""What f may be made of that picks cases."""

_BESIDE = sympy.Rational(4, 10**15)
"""How far beside a point comparisons are read, relative to it: a bound may be off by one ulp."""

_BESIDE_ZERO = sympy.Rational(1, 10**30)
_MANY = 60  # digits in which comparisons beside a point are read


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


def chosen(f: sympy.Basic, near: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Basic:
    """Return f with every case picked that holds at a point, as far as it decides.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> chosen(sympy.Max(n, 1) * abs(s), {n: sympy.Integer(5)})
    n*Abs(s)
    """
    if not f.args or not f.has(*KINKED, Relational):
        return f
    args = [chosen(a, near) for a in f.args]
    if isinstance(f, sympy.sign):
        return _chosen_sign(args[0], near)
    if isinstance(f, (sympy.Abs, Relational)):
        gap = args[0] - args[1] if isinstance(f, Relational) else args[0]
        side = _side_at(gap, near)
        if side is not None:
            return side * args[0] if isinstance(f, sympy.Abs) else f.func(side, 0)
    if isinstance(f, (sympy.Min, sympy.Max)):
        values = [real_at(a, near, _MANY, 400) for a in args]
        known = [v for v in values if v is not None]
        if len(known) < len(args):
            return f.func(*args, evaluate=False)
        return args[values.index(max(known) if isinstance(f, sympy.Max) else min(known))]
    return f.func(*args)


def _chosen_sign(arg: sympy.Expr, near: Mapping[sympy.Symbol, sympy.Expr]) -> sympy.Expr:
    side = _side_at(arg, near)
    return sympy.sign(arg) if side is None else sympy.Integer(side)


def _side_at(gap: sympy.Expr, near: Mapping[sympy.Symbol, sympy.Expr]) -> int | None:
    if not gap.free_symbols <= set(near):
        return None
    value = real_at(gap, near, _MANY, 400)
    return None if value is None else int(sympy.sign(value))


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

    ``jump`` and ``slope`` are the jumps of f and f′ along ``symbol``, ``middle`` the mean of the
    one-sided values; ``exponent`` is the order |q − a|^exponent of f at a pole, of its last
    derivative that matters otherwise. ``where`` are values of other statistics.
    """

    kind: Kind
    symbol: sympy.Symbol | None
    exact: sympy.Expr | None
    jump: float = 0.0
    slope: float = 0.0
    middle: float = 0.0
    exponent: float = 0.0
    where: Mapping[sympy.Symbol, sympy.Expr] = dataclasses.field(default_factory=dict)
    both_sides: bool = True

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
_SLOWEST = 0.5  # of one change the next may be this part where there is a limit: |q − a|^(1/33)
ALIKE = 1e-14  # relative to f nearby: less is what rounded decimals leave
_ALIKE_EXACT = 1e-28
_AWAY = sympy.Rational(1, 1000)
_FAINT = 1e-9  # of f so far away: a pole of decimals that cancel is 1e-16 of it, and none


class _Tendency(NamedTuple):
    """The limit from one side, None if none is known, and the order |q − a|^exponent."""

    limit: sympy.Expr | None
    diverges: bool
    exponent: float


def _tendency(case: sympy.Expr, symbol: sympy.Symbol, here: sympy.Expr, side: int) -> _Tendency:
    """Return what an expression without cases does beside a point."""
    size = max(sympy.S.One, abs(here))
    values = [real_at(case, {symbol: here + side * h * size}, DIGITS, 400) for h in _STEPS]
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return _Tendency(None, False, -math.inf)
    first, second, third = known
    exponent = math.inf
    if first and third:
        exponent = float(sympy.log(abs(first / third)) / sympy.log(_STEPS[0] / _STEPS[2]))
    at_point = real_at(case, {symbol: here}, DIGITS, 400)
    near = at_point is not None and (abs(third - at_point) <= _SLOWEST * abs(first - at_point))
    if near:  # it does tend there; beside an irrational pole a value is large, but finite
        return _Tendency(at_point, False, exponent)
    before, after = second - first, third - second
    if abs(after) > _SLOWEST * abs(before) and abs(after) > sympy.Float("1e-9") * abs(third):
        grows = abs(third) > abs(second) > abs(first)
        away = real_at(case, {symbol: here + side * _AWAY * size}, DIGITS, 400)
        faint = abs(first) * (_STEPS[0] / _AWAY) ** -sympy.Float(exponent) < _FAINT * abs(away or 0)
        return _Tendency(None, grows and not faint, exponent)
    limit = third - after**2 / (after - before) if after != before else third
    return _Tendency(limit, False, exponent)


class Line(NamedTuple):
    """F along one statistic near a point, all other statistics held: what is looked at there."""

    f: sympy.Expr
    symbol: sympy.Symbol
    here: sympy.Expr
    sides: tuple[int, ...]
    order: int

    def case(self, side: int) -> sympy.Expr:
        """Return the case of f that holds on a side."""
        step = sympy.Rational(1, 10**35) * max(sympy.S.One, abs(self.here))
        return chosen(self.f, {self.symbol: self.here + side * step})

    def judged(self) -> Trouble:
        """Return what f does at the point."""
        cases = {side: self.case(side) for side in self.sides}
        rows = [
            [
                _tendency(derivative(case, self.symbol, k), self.symbol, self.here, side)
                for side, case in cases.items()
            ]
            for k in range(self.order + 1)
        ]
        return self._named(rows)

    def _named(self, rows: list[list[_Tendency]]) -> Trouble:
        """Return the first thing that goes wrong: value, slope, then higher derivatives."""
        found = Trouble(Kind.MILD, self.symbol, self.here, both_sides=len(self.sides) > 1)
        values, slopes = rows[0], rows[1] if len(rows) > 1 else []
        if any(v.diverges for v in values):
            exponent = min(v.exponent for v in values)
            return dataclasses.replace(found, kind=Kind.POLE, exponent=exponent)
        if any(v.limit is None for v in values):
            missing = any(math.isinf(v.exponent) and v.exponent < 0 for v in values)
            return dataclasses.replace(found, kind=Kind.UNDEFINED if missing else Kind.UNDECIDED)
        jump, slope = self._gap(values), self._gap(slopes)
        middle = float(sympy.Add(*(v.limit for v in values)) / max(len(values), 1))
        exponent = min((v.exponent for v in rows[-1]), default=0.0)
        found = dataclasses.replace(found, jump=jump, slope=slope, middle=middle, exponent=exponent)
        return dataclasses.replace(found, kind=self._kind(rows, jump, slope))

    def _kind(self, rows: list[list[_Tendency]], jump: float, slope: float) -> Kind:
        if jump:
            return Kind.JUMP
        for k, row in enumerate(rows[1:-1], 1):
            if any(v.diverges for v in row):
                return Kind.STEEP if k == 1 else Kind.ROUGH
            if any(v.limit is None for v in row):
                return Kind.UNDECIDED
            if self._gap(row):
                return Kind.KINK if k == 1 else Kind.ROUGH
        return Kind.MILD

    def _gap(self, row: list[_Tendency]) -> float:
        """Return by how much two one-sided limits differ, 0 if they are alike."""
        limits = [v.limit for v in row if v.limit is not None]
        if len(limits) < 2:
            return 0.0
        left, right = limits
        scale = max(abs(left), abs(right), sympy.S.One)
        return float(right - left) if abs(right - left) > _ALIKE_EXACT * scale else 0.0


def exact(end: object) -> sympy.Expr:
    """Return a bound as the number that is written."""
    if isinstance(end, float):
        return (
            sympy.Rational(repr(end))
            if math.isfinite(end)
            else sympy.oo * int(math.copysign(1, end))
        )
    return sympy.Rational(end)


def place(
    f: sympy.Expr, s: sympy.Symbol, ends: tuple[float, float], domain: Interval
) -> sympy.Expr | None:
    """Return the number in a tiny cell at which a guard of f vanishes, exactly or to 50 digits."""
    low, high = ends
    own = [g for g in guards(f) if g.free_symbols == {s}]
    middle = low / 2 + high / 2
    plain = [sympy.Rational(f"{middle:.{n}g}") for n in range(1, 16)]
    bounds = [exact(end) for end in (domain.low, domain.high) if low <= end <= high]
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
