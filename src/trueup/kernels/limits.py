"""How large inputs may be: up to there no step of a formula leaves the range of doubles.

A pass over the tape bounds the size of every register. What is found holds in every target alike:
beyond ±``inputs``, and where eᵃ is asked for with |a| beyond ``exponent``, the answer is NaN, or
NULL in SQL. Nothing is computed a second time.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels.tape import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.kernels.tape import Tape

FARTHEST = 100.0
"""Decades of the largest limit: nobody publishes 1e100, and 1e100² is a double."""
_BESIDE_EXPONENTIAL = (15, 6, 3)  # decades, there: beyond 2⁵³ a double holds no fraction
_WORTHWHILE = 0.5  # decades: exponents are above 1 at least, or the next limit is tried
_DOUBLES = 300.0  # decades within which a double has all its digits: 1e±308, with room to round
_DIGITS = 16.0  # decades that a difference of two numbers can lose unless it is 0
_ANGLE = 15.0  # decades up to which sin and cos know where in its period a number is
_NOTHING = -100.0  # decades of an error that no result shows
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
        Whether |x| below 1/``inputs`` is beyond the limit, too, unless x = 0.
    """

    inputs: float
    exponent: float = math.inf
    vanishing: bool = False
    tiny: bool = False


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
    >>> limits(lower([n / sympy.log(1 + sympy.exp(n))], [n]), [(1, math.inf)])
    Limits(inputs=1000000000000000.0, exponent=689, vanishing=True, tiny=False)
    """
    return _limits(tape, tuple(ranges or ((-math.inf, math.inf),) * len(tape.inputs)))


def input_limit(tape: Tape) -> float:
    """Return the largest |x| of any input, wherever it lies."""
    return limits(tape).inputs


@lru_cache(maxsize=1024)
def _limits(tape: Tape, ranges: tuple[Range, ...]) -> Limits:
    if any(step.op in ("exp", "sinh", "cosh") for step in tape.steps):
        return _with_exponential(tape, ranges)
    for tiny in (False, True):
        fits = _Fits(tape, ranges, tiny=tiny)
        decades = _largest(fits, FARTHEST)
        if decades or tiny:
            break
    return Limits(_rounded_down(decades), tiny=tiny)


def _with_exponential(tape: Tape, ranges: tuple[Range, ...]) -> Limits:
    for tiny in (False, True):
        for vanishing in (True, False):
            fits = _Fits(tape, ranges, vanishing=vanishing, tiny=tiny)
            for far in _BESIDE_EXPONENTIAL:
                exponent = _largest(partial(fits, far), _DOUBLES)
                if exponent > _WORTHWHILE:
                    return Limits(float(10**far), math.floor(exponent * _LN_10), vanishing, tiny)
    return Limits(0.0, 0.0)  # nothing is in range


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
    ``sure`` is set where x is certainly not 0.
    """

    low: float
    high: float
    lost: float = -math.inf
    sure: bool = False


_TRUTH = _Size(0.0, 0.0)


class _OutOfRangeError(Exception):
    """A step leaves the range of doubles, or divides by what may have underflowed."""


class _Fits:
    """Whether every step is within the range of doubles, given limits in decades."""

    def __init__(
        self, tape: Tape, ranges: Sequence[Range], *, vanishing: bool = False, tiny: bool = False
    ) -> None:
        self.tape, self.ranges = tape, ranges
        self.vanishing, self.tiny = vanishing, tiny
        self.exponent = 0.0

    def __call__(self, decades: float, exponent: float = 0.0) -> bool:
        self.exponent = exponent
        inputs = [_input(low, high, decades, self.tiny) for low, high in self.ranges]
        try:
            ops = _SIZES | dict.fromkeys(["exp", "sinh", "cosh"], self.exp)
            return all(size.lost < _NOTHING for size in run(self.tape, inputs, ops))
        except _OutOfRangeError:
            return False

    def exp(self, a: _Size) -> _Size:
        """Return the size of eᵃ, cosh a or sinh a."""
        if a.lost > -2 * _DIGITS:  # below, eᵃ is right to the last digit
            raise _OutOfRangeError
        beyond = a.high > math.log10(max(self.exponent, 1e-9) * _LN_10)
        reach = self.exponent if beyond else 10**a.high / _LN_10
        lost = -reach if beyond and self.vanishing else -math.inf
        return _Size(-reach, reach + 0.1, lost, sure=True)


def _input(low: float, high: float, decades: float, tiny: bool) -> _Size:
    """Return the size of an input between two numbers."""
    nearest = low if low > 0 else -high if high < 0 else 0.0
    least = math.log10(nearest) if nearest else -decades if tiny else -math.inf
    farthest = max(abs(low), abs(high))
    most = min(math.log10(farthest), decades) if farthest else 0.0
    return _Size(min(least, most), most)


def _checked(size: _Size) -> _Size:
    """Return a size; what may underflow is marked, what may overflow is refused."""
    if size.high > _DOUBLES:
        raise _OutOfRangeError
    return size._replace(lost=max(size.lost, -_DOUBLES)) if size.low < -_DOUBLES else size


def _whole(*sizes: _Size) -> None:
    """Refuse registers that may have underflowed."""
    if any(s.lost > -math.inf for s in sizes):
        raise _OutOfRangeError


def _const(c: float) -> _Size:
    if not (c and math.isfinite(c)):
        return _TRUTH
    return _Size(math.log10(abs(c)), math.log10(abs(c)), sure=True)


def _add(a: _Size, b: _Size) -> _Size:
    high = max(a.high, b.high) + 0.31  # log₁₀ 2, and a little
    for one, other in ((a, b), (b, a)):
        if one.lost + 3 * _DIGITS < other.low and other.sure and other.lost == -math.inf:
            low = min(one.low, other.low) if one.lost == -math.inf else other.low
            return _checked(_Size(low - _DIGITS, high))  # beside it the error is nothing
    low = min(a.low, b.low) - _DIGITS
    return _checked(_Size(low, high))._replace(lost=max(a.lost, b.lost))  # sums do not underflow


def _mul(a: _Size, b: _Size) -> _Size:
    lost = a.lost if a is b else max(a.lost + b.high, b.lost + a.high)  # a² is small where a is
    return _checked(_Size(a.low + b.low, a.high + b.high, lost, a.sure and b.sure))


def _div(a: _Size, b: _Size) -> _Size:
    _whole(b)
    lost = a.lost - b.low
    return _checked(_Size(a.low - b.high, a.high - b.low, lost, a.sure and b.sure))


def _sqrt(a: _Size) -> _Size:
    return a._replace(low=a.low / 2, high=a.high / 2, lost=a.lost / 2)


def _pow(a: _Size, b: _Size) -> _Size:
    _whole(a, b)
    size = 10**b.high * max(abs(a.low), abs(a.high)) if b.high < 6 else math.inf
    return _checked(_Size(-size, size))


def _log(a: _Size) -> _Size:
    _whole(a)
    return _Size(-_DIGITS, math.log10(max(abs(a.low), abs(a.high), 1) * _LN_10))


def _union(*sizes: _Size) -> _Size:
    low, high = min(s.low for s in sizes), max(s.high for s in sizes)
    return _Size(low, high, max(s.lost for s in sizes))


def _truth(*sizes: _Size) -> _Size:
    _whole(*sizes)
    return _TRUTH


def _bounded(high: float, whole: bool = False) -> Callable[[_Size], _Size]:
    """Return the size of a function bounded by 10^``high``; of what is ``whole`` if it asks so."""

    def size(a: _Size) -> _Size:
        if whole:
            _whole(a)
        return _Size(min(a.low, 0.0) - _DIGITS, high, a.lost)

    return size


def _wave(high: float) -> Callable[[_Size], _Size]:
    """Return the size of a periodic function; a double is not nearer than 1e-32 to its zeros."""

    def size(a: _Size) -> _Size:
        if a.high > _ANGLE:
            raise _OutOfRangeError
        return _Size(min(a.low, -2 * _DIGITS), high, a.lost)

    return size


def _laguerre(series: Sequence[float], t: _Size) -> _Size:
    total = sum(map(abs, series)) or 1.0
    degree = len(series) - 1  # |Lagₙ(t)| ≤ e^{|t|/2} is of no use here: Σ (n choose k) |t|ᵏ/k! is
    return _checked(_Size(-4 * _DIGITS, degree * (max(t.high, 0.0) + 0.31) + math.log10(total)))


def _call(function: Any, *args: _Size) -> _Size:
    if not isinstance(function, Table):
        return _TRUTH  # a Python function looks after itself
    sizes = [math.log10(abs(v)) for v in function.values if v and math.isfinite(v)]
    return _Size(min(sizes), max(sizes)) if sizes else _TRUTH


_SIZES: dict[str, Callable[..., _Size]] = {
    "const": _const,
    "truth": lambda _: _TRUTH,
    "add": _add,
    "sub": _add,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "sqrt": _sqrt,
    "log": _log,
    "abs": lambda a: a,
    "sign": _truth,
    "floor": lambda a: _Size(0.0, max(a.high, 0.0)),
    "max": _union,
    "min": _union,
    "where": lambda test, a, b: _truth(test) and _union(a, b),
    **dict.fromkeys([*COMPARISONS, *CONNECTIVES], _truth),
    **dict.fromkeys(["sin", "cos"], _wave(0.0)),
    "tan": _wave(2 * _DIGITS),
    **dict.fromkeys(["atan", "tanh", "asin", "acos"], _bounded(0.5)),
    **dict.fromkeys(["asinh", "acosh"], _bounded(3.0)),
    "atanh": _bounded(2.0, whole=True),
    "laguerre": _laguerre,
    "call": _call,
}
