"""How large inputs may be: up to there no step of a formula leaves the range of doubles.

A pass over the tape bounds the size of every register. What is found holds in every target alike:
beyond ±``inputs``, and where eᵃ is asked for with |a| beyond ``exponent``, the answer is NaN, or
NULL in SQL. Nothing is computed a second time.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels.tape import Emitter, Tape, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FARTHEST = 100.0
"""Decades of the largest limit: nobody publishes 1e100, and 1e100² is a double."""
_BESIDE_EXPONENTIAL = (15, 9, 6, 4)  # decades, there: beyond 2⁵³ a double holds no fraction
_WIDE = 200.0  # decades: a wider exponent is not worth a smaller limit of inputs
_WORTHWHILE = 0.5  # decades: exponents are above 1 at least, or the next limit is tried
_DOUBLES = 300.0  # decades within which a double has all its digits: 1e±308, with room to round
_DIGITS = 16.0  # decades that a difference of two numbers can lose unless it is 0
_RANGE = 308.3  # decades of the largest double
_NEAR = 19.0  # decades below 1 of the least |sin x|
_ANGLE = 15.0  # decades up to which sin and cos know where in its period a number is
_NOTHING = -100.0  # decades of an error that no result shows
_EXPONENTIAL = ("exp", "sinh", "cosh")
_LN_10 = math.log(10)


class Limits(NamedTuple):
    """Where a formula may be evaluated.

    Parameters
    ----------
    inputs
        The largest |x| of any input.
    exponent
        The largest |a| for which eᵃ (and sinh a, cosh a) is computed.
    vanishing
        Whether eᵃ counts as 0 for a below −``exponent``: nothing is divided by it.
    tiny
        The inputs of which |x| below 1/``inputs`` is beyond the limit, too, unless x = 0.
    overflow
        Whether a step may overflow all the same; the result is infinite or NaN then.
    """

    inputs: float
    exponent: float = math.inf
    vanishing: bool = False
    tiny: frozenset[int] = frozenset()
    overflow: bool = False


Range = tuple[float, float]


def limits(tape: Tape, ranges: Sequence[Range] | None = None) -> Limits:
    """Return the limits of a tape whose inputs lie in given ranges (by default anywhere).

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> n = sympy.Symbol("n", real=True)
    >>> limits(lower([1 / n - 8 / n**3], [n]), [(1, math.inf)]).inputs
    1e+100
    >>> limits(lower([n / sympy.log(1 + sympy.exp(n))], [n]), [(1, math.inf)]).exponent
    689
    """
    return _limits(tape, tuple(ranges or ((-math.inf, math.inf),) * len(tape.inputs)))


def guarded(tape: Tape, given: Limits) -> Tape:
    """Return a tape of one formula that is NaN beyond its limits.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> n = sympy.Symbol("n", real=True)
    >>> [step.op for step in guarded(lower([1 / n], [n]), Limits(1e100)).steps]
    ['input', 'const', 'div', 'const', 'abs', 'const', 'le', 'where']
    """
    tape = bounded(tape, given)
    new = Emitter(tape.steps)
    (result,) = tape.outputs
    nan = new.emit("const", data=math.nan)
    for x in range(len(tape.inputs)):
        size = new.emit("abs", new.emit("input", data=x))
        fits = new.emit("le", size, new.emit("const", data=given.inputs))
        if x in given.tiny:
            seen = new.emit("ge", size, new.emit("const", data=1 / given.inputs))
            zero = new.emit("eq", size, new.emit("const", data=0.0))
            fits = new.emit("and", fits, new.emit("or", seen, zero))
        result = new.emit("where", fits, result, nan)
    return Tape(tape.inputs, tuple(new.steps), (result,))


def bounded(tape: Tape, given: Limits) -> Tape:
    """Return a tape that is NaN where an exponent is beyond its limit."""
    if math.isinf(given.exponent):
        return tape
    new, places = Emitter(), list[int]()
    for op, args, data in tape.steps:
        register = new.emit(op, *(places[a] for a in args), data=data)
        if op in _EXPONENTIAL:
            register = _within_exponent(new, op, places[args[0]], register, given)
        places.append(register)
    return Tape(tape.inputs, tuple(new.steps), tuple(places[o] for o in tape.outputs))


def _within_exponent(new: Emitter, op: str, a: int, power: int, given: Limits) -> int:
    """Return eᵃ within its limit, else NaN, or 0 where it vanishes."""
    most = new.emit("const", data=float(given.exponent))
    beyond = new.emit("const", data=math.nan)
    result = new.emit("where", new.emit("le", new.emit("abs", a), most), power, beyond)
    if op == "exp" and given.vanishing:
        below = new.emit("lt", a, new.emit("const", data=-float(given.exponent)))
        result = new.emit("where", below, new.emit("const", data=0.0), result)
    return result


def input_limit(tape: Tape) -> float:
    """Return the largest |x| of any input, wherever it lies."""
    return limits(tape).inputs


@lru_cache(maxsize=1024)
def _limits(tape: Tape, ranges: tuple[Range, ...]) -> Limits:
    exponential = any(step.op in _EXPONENTIAL for step in tape.steps)
    every = range(len(ranges))
    small = [frozenset(), *(frozenset([i]) for i in every), frozenset(every)]
    for overflow, tiny in product((False, True), small):
        fits = _Fits(tape, ranges, overflow, tiny)
        found = _with_exponential(fits) if exponential else _without(fits)
        if found is not None:
            return found
    return Limits(0.0, 0.0)  # nothing is in range


def _without(fits: _Fits) -> Limits | None:
    decades = _largest(fits, FARTHEST)
    return Limits(_rounded_down(decades), math.inf, False, *fits.given) if decades else None


def _with_exponential(fits: _Fits) -> Limits | None:
    """Return the limits with an exponent that is large enough, or else as large as can be."""
    found = [(_largest(partial(fits, far), _DOUBLES), far) for far in _BESIDE_EXPONENTIAL]
    exponent, far = max(found, key=lambda pair: (min(pair[0], _WIDE), pair[1]))
    if exponent < _WORTHWHILE:
        return None
    fits.vanishing = True
    return Limits(10.0**far, math.floor(exponent * _LN_10), fits(far, exponent), *fits.given)


def _rounded_down(decades: float) -> float:
    """Return 10^decades with one digit."""
    whole = math.floor(decades)
    return float(f"{math.floor(10 ** (decades - whole))}e{whole}")


def _largest(fits: Callable[[float], bool], most: float) -> float:
    """Return the largest number up to which something fits, to a hundredth; 0 if nothing does."""
    if fits(most):
        return most
    low, high = 0.0, most
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


class _Size(NamedTuple):
    """A register as log₁₀|x| for x ≠ 0: at least ``low``, at most ``high``.

    ``lost`` is log₁₀ of the error made where an x too small for a double is 0, or short of digits;
    ``sure`` is set where x is certainly not 0, ``positive`` where it is at least 0.
    """

    low: float
    high: float
    lost: float = -math.inf
    sure: bool = False
    positive: bool = False


_TRUTH = _Size(0.0, 0.0)


class _OutOfRangeError(Exception):
    """A step leaves the range of doubles, or divides by what may have underflowed."""


class _Fits:
    """Whether every step is within the range of doubles, given limits in decades.

    With ``overflow`` it is enough that what overflows is seen in the result.
    """

    def __init__(
        self, tape: Tape, ranges: Sequence[Range], overflow: bool, tiny: frozenset[int]
    ) -> None:
        self.tape, self.ranges, self.given = tape, ranges, (tiny, overflow)
        self.vanishing, self.exponent = False, 0.0
        sizes = _SIZES | {"exp": self.exp, "cosh": self.exp, "sinh": self.sinh}
        self.ops = sizes if overflow else {op: _bounded(f) for op, f in sizes.items()}

    def __call__(self, decades: float, exponent: float = 0.0) -> bool:
        self.exponent = exponent
        tiny, _ = self.given
        inputs = [_input(*ends, decades, i in tiny) for i, ends in enumerate(self.ranges)]
        try:
            return all(size.lost < _NOTHING for size in run(self.tape, inputs, self.ops))
        except _OutOfRangeError:
            return False

    def sinh(self, a: _Size) -> _Size:
        size = self.exp(a)
        return _Size(min(size.low, a.low), size.high)

    def exp(self, a: _Size) -> _Size:
        """Return the size of eᵃ or cosh a."""
        if a.lost > -2 * _DIGITS:  # below, eᵃ is right to the last digit
            raise _OutOfRangeError
        beyond = a.high > math.log10(max(self.exponent, 1e-9) * _LN_10)
        reach = self.exponent if beyond else 10**a.high / _LN_10
        lost = -reach if beyond and self.vanishing else -math.inf
        return _Size(-reach, reach + 0.1, lost, sure=True, positive=True)


def _input(low: float, high: float, decades: float, tiny: bool) -> _Size:
    """Return the size of an input between two numbers."""
    nearest = low if low > 0 else -high if high < 0 else 0.0
    least = math.log10(nearest) if nearest else -decades if tiny else -math.inf
    farthest = max(abs(low), abs(high))
    most = min(math.log10(farthest), decades) if farthest else 0.0
    return _Size(min(least, most), most, positive=low >= 0)


def _bounded(function: Callable[..., _Size]) -> Callable[..., _Size]:
    """Return a function that refuses what may overflow."""

    def size(*args: Any) -> _Size:
        found = function(*args)
        if found.high > _DOUBLES:
            raise _OutOfRangeError
        return found

    return size


def _marked(size: _Size) -> _Size:
    """Return a size, marked if it may underflow."""
    return size._replace(lost=max(size.lost, -_DOUBLES)) if size.low < -_DOUBLES else size


def _whole(*sizes: _Size) -> None:
    """Refuse registers that may have underflowed, or overflowed."""
    if any(s.lost > -math.inf or s.high > _DOUBLES for s in sizes):
        raise _OutOfRangeError


def _const(c: float) -> _Size:
    if not (c and math.isfinite(c)):
        return _TRUTH
    return _Size(math.log10(abs(c)), math.log10(abs(c)), sure=True, positive=c > 0)


def _add(a: _Size, b: _Size) -> _Size:
    """Return the size of a sum, which does not underflow."""
    high = max(a.high, b.high) + 0.31  # log₁₀ 2, and a little
    if not (a.positive and b.positive):
        return _sub(a, b)
    large = max((s for s in (a, b) if s.sure), key=lambda s: s.low, default=None)
    low = min(a.low, b.low) if large is None else large.low
    errors = [s.lost for s in (a, b) if large is None or s.lost + 3 * _DIGITS > large.low]
    return _Size(low, high, max(errors, default=-math.inf), large is not None, positive=True)


def _sub(a: _Size, b: _Size) -> _Size:
    """Return the size of a difference, of which digits may be left that were the last ones."""
    high = max(a.high, b.high) + 0.31
    for one, other in ((a, b), (b, a)):
        if one.lost + 3 * _DIGITS < other.low and other.sure and other.lost == -math.inf:
            # far below the other one is nothing, and so is the error that it has
            return _Size(max(min(one.low, other.low), other.low - _DIGITS) - _DIGITS, high)
    return _Size(min(a.low, b.low) - _DIGITS, high, max(a.lost, b.lost))


def _mul(a: _Size, b: _Size) -> _Size:
    lost = max(a.lost + min(b.high, _RANGE), b.lost + min(a.high, _RANGE))
    lost = a.lost if a is b else lost  # a² is small where a is
    positive = a is b or (a.positive and b.positive)
    return _marked(_Size(a.low + b.low, a.high + b.high, lost, a.sure and b.sure, positive))


def _div(a: _Size, b: _Size) -> _Size:
    _whole(b)
    positive = a.positive and b.positive
    lost = a.lost - b.low
    return _marked(_Size(a.low - b.high, a.high - b.low, lost, a.sure and b.sure, positive))


def _sqrt(a: _Size) -> _Size:
    _whole(a._replace(lost=-math.inf))
    return a._replace(low=a.low / 2, high=a.high / 2, lost=a.lost / 2)


def _pow(a: _Size, b: _Size) -> _Size:
    _whole(a, b)
    size = 10**b.high * max(abs(a.low), abs(a.high)) if b.high < 6 else math.inf
    return _marked(_Size(-size, size))


def _log(a: _Size) -> _Size:
    _whole(a)
    return _Size(-_DIGITS, math.log10(max(abs(a.low), abs(a.high), 1) * _LN_10))


def _union(*sizes: _Size) -> _Size:
    low, high = min(s.low for s in sizes), max(s.high for s in sizes)
    return _Size(low, high, max(s.lost for s in sizes))


def _truth(*sizes: _Size) -> _Size:
    _whole(*sizes)
    return _TRUTH


def _flat(high: float) -> Callable[[_Size], _Size]:
    """Return the size of a function bounded by 10^``high`` that is about linear at 0."""

    def size(a: _Size) -> _Size:
        _whole(a._replace(lost=-math.inf))
        return _Size(min(a.low, 0.0) - _DIGITS, high, a.lost)

    return size


def _wave(high: float) -> Callable[[_Size], _Size]:
    """Return the size of a periodic function; no double is nearer than 2e-19 to its zeros but 0."""

    def size(a: _Size) -> _Size:
        if a.high > _ANGLE:
            raise _OutOfRangeError
        return _Size(min(a.low, -_NEAR), high, a.lost)

    return size


def _laguerre(series: Sequence[float], t: _Size) -> _Size:
    total = sum(map(abs, series)) or 1.0
    powers = (len(series) - 1) * (max(t.high, 0.0) + 0.31)  # Σ (n choose k) tᵏ/k! ≤ (2t)ⁿ, t ≥ 1
    high = min(powers, 10 ** min(t.high, 4.0) / 4)  # and |Lagₙ(t)| ≤ e^{t/2} for t ≥ 0
    return _Size(-4 * _DIGITS, high + math.log10(total))


def _call(function: Any, *args: _Size) -> _Size:
    if not isinstance(function, Table):
        return _TRUTH  # a Python function looks after itself
    sizes = [math.log10(abs(v)) for v in function.values if v and math.isfinite(v)]
    return _Size(min(sizes), max(sizes)) if sizes else _TRUTH


_SIZES: dict[str, Callable[..., _Size]] = {
    "const": _const,
    "truth": lambda _: _TRUTH,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "sqrt": _sqrt,
    "log": _log,
    "abs": lambda a: a._replace(positive=True),
    "sign": _truth,
    "floor": lambda a: _Size(0.0, max(a.high, 0.0)),
    "max": _union,
    "min": _union,
    "where": lambda test, a, b: _truth(test) and _union(a, b),
    **dict.fromkeys([*COMPARISONS, *CONNECTIVES], _truth),
    **dict.fromkeys(["sin", "cos"], _wave(0.0)),
    "tan": _wave(_NEAR),
    **dict.fromkeys(["atan", "tanh", "asin", "acos"], _flat(0.5)),
    **dict.fromkeys(["asinh", "acosh"], _flat(3.0)),
    "atanh": _flat(2.0),
    "laguerre": _laguerre,
    "call": _call,
}
