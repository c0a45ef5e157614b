"""How large inputs may be: up to there no step of a formula leaves the range of doubles.

The limits hold in every target alike: where an input is larger than ``inputs``, or e^a is asked
for with |a| beyond ``exponent``, the answer is NaN (NULL in SQL). They are found by a walk over the
tape in intervals, for one pair of limits after the other.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels.tape import Emitter, Tape, run

LEAST = 1e-15
"""The least size, but 0, of an input that is divided by."""
EXPONENTIAL = ("exp", "sinh", "cosh")

_DECADES = (*range(1, 17), 20, 25, 30, 37, 50, 75, 100)  # of the largest input, to be tried
_VANISHED = -690.0  # below which e^a counts as 0 where nothing is divided by it
_LARGEST, _SMALLEST = 1e300, 1e-300  # in between a double has all its digits, with room to round
_DIGITS = 1e15  # up to here a double knows where in the period of a wave it is


class Range(NamedTuple):
    """What is between ``low`` and ``high`` and a multiple of ``unit``, a power of two.

    The unit is 1 for integers and 0 where nothing is known. Sums of multiples are multiples: where
    terms cancel what is left is 0 or as large as the unit. Unless it is 0 its size is at least
    ``near``.
    """

    low: float = -math.inf
    high: float = math.inf
    unit: float = 0.0
    near: float = 0.0

    @property
    def least(self) -> float:
        """The least size but 0."""
        return max(self.low, -self.high, self.unit, self.near)

    @property
    def most(self) -> float:
        """The largest size."""
        return max(-self.low, self.high)


class Limits(NamedTuple):
    """Where a formula may be evaluated.

    Parameters
    ----------
    inputs
        The largest |x| of any input.
    exponent
        The largest |a| for which e^a, sinh a and cosh a are computed.
    vanishing
        Whether e^a is computed for every a below, and is 0 from −690 on: nothing is divided by it.
    tiny
        The inputs of which |x| below ``LEAST`` is beyond the limit, too, unless x = 0: something
        is divided by them, and the result may be infinite there.
    """

    inputs: float
    exponent: float
    vanishing: bool = False
    tiny: frozenset[int] = frozenset()

    def within(self, i: int, range: Range) -> Range:
        """Return the part of an input's range that is within the limits."""
        low, high = range[:2]
        if i in self.tiny:
            low, high = (0.0 if abs(end) < LEAST else end for end in (low, high))
        low, high = (min(max(end, -self.inputs), self.inputs) for end in (low, high))
        least = LEAST if i in self.tiny else max(low, -high)
        return Range(low, high, max(range.unit, _ulp(least)), least)


def limits(tape: Tape, ranges: Sequence[Range], *, floors: bool = False) -> Limits:
    """Return the widest limits of a tape whose inputs lie in given ranges, 0 if there are none.

    With ``floors`` no step may underflow even if that does no harm: some SQL engines stop there.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> n = sympy.Symbol("n", real=True)
    >>> limits(lower([1 / n - 8 / n**3], [n]), [Range(1)]).inputs
    1e+100
    >>> limits(lower([n / sympy.log(1 + sympy.exp(n))], [n]), [Range(1)]).exponent
    690.0
    """
    near = [i for i, r in enumerate(ranges) if r.least < LEAST]
    tiny = [*map(frozenset[int], [near] if floors else [(), *((i,) for i in near), near])]
    exponential = any(step.op in EXPONENTIAL for step in tape.steps)
    vanishing = (True, False) if exponential and not floors else (False,)

    def fitting(k: int) -> Limits | None:
        # beyond 2⁵³ a double holds no fraction, which an exponential would show
        inputs = float(f"1e{min(k, 15) if exponential else k}")
        tried = (Limits(inputs, 6.9 * k, v, t) for v in vanishing for t in tiny)
        return next((given for given in tried if _fit(tape, given, ranges, floors)), None)

    decades = range(1, 101) if exponential else _DECADES
    fit = bisect_left(decades, True, key=lambda k: fitting(k) is None)
    return (fitting(decades[fit - 1]) if fit else None) or Limits(0.0, 0.0)


def _fit(tape: Tape, given: Limits, ranges: Sequence[Range], floors: bool) -> bool:
    """Whether no step leaves the range of doubles, or divides by what may be too small."""

    def checked(rule: Callable[..., Range], *args: Any) -> Range:
        found = rule(*args)
        if not found.most <= _LARGEST or (floors and found.least < _SMALLEST):
            raise OverflowError
        return found

    ops = {op: partial(checked, rule) for op, rule in rules(given).items()}
    try:
        run(tape, [given.within(i, r) for i, r in enumerate(ranges)], ops)
    except (OverflowError, ZeroDivisionError):
        return False
    return True


def guarded(tape: Tape, given: Limits) -> Tape:
    """Return a tape of one formula that is NaN beyond its limits.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> n = sympy.Symbol("n", real=True)
    >>> [step.op for step in guarded(lower([1 / n], [n]), Limits(1e100, 690.0)).steps]
    ['input', 'const', 'div', 'abs', 'const', 'le', 'const', 'where']
    """
    new = Emitter()
    inputs = new.inputs(len(tape.inputs))
    (result,) = run(bounded(tape, given), inputs, new.ops)
    for i, x in enumerate(inputs):
        size = new.emit("abs", x)
        result = new.within(size, given.inputs, result)
        if i in given.tiny:
            zero, least, nan = map(new.const, (0.0, LEAST, math.nan))
            fits = new.emit("or", new.emit("ge", size, least), new.emit("eq", x, zero))
            result = new.emit("where", fits, result, nan)
    return Tape(tape.inputs, tuple(new.steps), (result,))


def bounded(tape: Tape, given: Limits) -> Tape:
    """Return a tape that is NaN, or 0 if it vanishes, where an exponent is beyond its limit."""
    if not any(step.op in EXPONENTIAL for step in tape.steps):
        return tape
    new = Emitter()

    def exponential(op: str, a: int) -> int:
        vanishes = op == "exp" and given.vanishing
        size = a if vanishes else new.emit("abs", a)
        value = new.within(size, given.exponent, new.emit(op, a))
        gone = new.emit("lt", a, new.const(_VANISHED))
        return new.emit("where", gone, new.const(0.0), value) if vanishes else value

    ops = new.ops | {op: partial(exponential, op) for op in EXPONENTIAL}
    outputs = run(tape, new.inputs(len(tape.inputs)), ops)
    return Tape(tape.inputs, tuple(new.steps), tuple(outputs))


# -- operations on ranges --------------------------------------------------------------------------


def rules(given: Limits) -> dict[str, Callable[..., Range]]:
    """Return the operations on ranges, exponents being within their limit."""

    def exp(a: Range) -> Range:
        low, high = (min(max(end, -given.exponent), given.exponent) for end in a[:2])
        low = 0.0 if given.vanishing else math.exp(low)
        return _from(low, math.exp(high), low)

    def sinh(a: Range) -> Range:
        most = exp(_size(a)).high
        return _from(-most, most, a.least)

    return _RULES | {"exp": exp, "sinh": sinh, "cosh": lambda a: exp(_size(a))._replace(low=1.0)}


def _from(low: float, high: float, least: float) -> Range:
    """Return a range of doubles that are 0 or no smaller than a number."""
    return Range(low, high, _ulp(least), least)


def _ulp(x: float) -> float:
    """Return a unit of all doubles from x > 0 on."""
    return math.ulp(x) if x > _SMALLEST else 0.0


_NOTHING = Range(0.0, 0.0, 2.0**1000, 2.0**1000)  # of NaN


def _const(x: float) -> Range:
    if not math.isfinite(x):
        return _NOTHING
    numerator, denominator = x.as_integer_ratio()
    return Range(x, x, (numerator & -numerator) / denominator if x else 1.0, abs(x))


def _sum(a: Range, b: Range) -> Range:
    near = min(a.least, b.least)
    if min(a.low, b.low) < 0 < max(a.high, b.high):  # of x − y a last digit of x/2 may be left
        near = min(near, _ulp(max(a.least, b.least) / 2))
    unit = max(min(a.unit, b.unit), _ulp(near))
    return Range(a.low + b.low, a.high + b.high, unit, near)


def _product(a: Range, b: Range) -> Range:
    ends = [x * y if x and y else 0.0 for x in a[:2] for y in b[:2]]
    least = a.least * b.least
    unit = max(a.unit * b.unit, _ulp(least))
    return Range(max(min(ends), 0.0) if a is b else min(ends), max(ends), unit, least)


def _quotient(a: Range, b: Range) -> Range:
    if b.low > 0 or b.high < 0:
        ends = [x / y for x in a[:2] for y in b[:2]]
    else:
        ends = [s * a.most / b.least for s in (1, -1)]
    return _from(min(ends), max(ends), a.least / b.most)


def _power(a: Range, b: Range) -> Range:
    """Return aᵇ for a > 0, and 0 for a = 0."""
    low, high = max(a.low, a.least if b.low < 0 else 0.0), max(a.high, 0.0)
    ends = [x**y for x in (low, high) for y in b[:2]]
    return _from(min(ends), max(ends), min(ends))


def _root(a: Range) -> Range:
    low, high = (math.sqrt(max(end, 0.0)) for end in a[:2])
    return _from(low, high, math.sqrt(a.least))


def _size(a: Range) -> Range:
    return Range(max(a.low, -a.high, 0.0), a.most, a.unit, a.near)


def _floor(a: Range) -> Range:
    low, high = (float(math.floor(end)) for end in a[:2])
    return Range(low, high, 1.0)


def _hull(a: Range, b: Range) -> Range:
    if _NOTHING in (a, b):
        return b if a == _NOTHING else a
    near = min(a.least, b.least)
    return Range(min(a.low, b.low), max(a.high, b.high), min(a.unit, b.unit), near)


def _extreme(choose: Callable[..., float], a: Range, b: Range) -> Range:
    ends, near = [choose(x, y) for x, y in zip(a[:2], b[:2], strict=True)], min(a.least, b.least)
    return Range(ends[0], ends[1], min(a.unit, b.unit), near)


def _log(a: Range) -> Range:
    if a.least < _SMALLEST:
        raise ZeroDivisionError
    low, high = (math.log(max(end, a.least)) for end in a[:2])
    return _from(low, high, 1e-16)


def _increasing(function: Callable[[float], float], low: float, high: float, a: Range) -> Range:
    """Return the range of a function on its domain, near 0 at least as large as its argument."""
    least, most = (function(min(max(end, low), high)) for end in a[:2])
    return _from(least, most, min(a.least, 1e-9) / 2)


def _wave(most: float, a: Range) -> Range:
    if a.most > _DIGITS:
        raise OverflowError
    return _from(-most, most, min(a.least, 1e-9) / _DIGITS)


def _call(function: Any, *_: Range) -> Range:
    """Return the range of a table; of other functions nothing is known: they are ordinary."""
    values = function.values.tolist() if isinstance(function, Table) else [-1.0, 1.0]
    return reduce(_hull, map(_const, values))


_RULES: dict[str, Callable[..., Range]] = {
    "const": _const,
    "add": _sum,
    "sub": lambda a, b: _sum(a, b._replace(low=-b.high, high=-b.low)),
    "mul": _product,
    "div": _quotient,
    "pow": _power,
    "sqrt": _root,
    "log": _log,
    "abs": _size,
    "sign": lambda _: Range(-1.0, 1.0, 1.0),
    "floor": _floor,
    "max": partial(_extreme, max),
    "min": partial(_extreme, min),
    "where": lambda _, a, b: _hull(a, b),
    **dict.fromkeys(["truth", *COMPARISONS, *CONNECTIVES], lambda *_: Range(0.0, 1.0, 1.0)),
    **dict.fromkeys(["sin", "cos"], partial(_wave, 1.0)),
    "tan": partial(_wave, 1e20),
    "atan": partial(_increasing, math.atan, -math.inf, math.inf),
    "tanh": partial(_increasing, math.tanh, -math.inf, math.inf),
    "asinh": partial(_increasing, math.asinh, -math.inf, math.inf),
    "acosh": partial(_increasing, math.acosh, 1.0, math.inf),
    "asin": partial(_increasing, math.asin, -1.0, 1.0),
    "acos": lambda a: _sum(_const(math.pi / 2), _increasing(math.asin, -1.0, 1.0, a)),
    "atanh": partial(_increasing, math.atanh, math.nextafter(-1.0, 0.0), math.nextafter(1.0, 0.0)),
    "laguerre": _call,  # nothing is divided by it: where it overflows all does
    "call": _call,
}
