"""How large inputs may be: up to there no step of a formula leaves the range of doubles.

The limits hold in every target alike: where an input is larger than ``inputs``, or e^a is asked
for with |a| beyond ``exponent``, the answer is NaN (NULL in SQL).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from trueup.formula.opaque import Table
from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels.tape import Emitter, Tape, run

_INPUTS = [(i % 9 + 1) * 10.0 ** (i // 9) for i in range(901)]  # 1, 2, …, 9, 10, 20, …, 1e100
_BESIDE_EXPONENTIAL = (1e15, 1e9, 1e6, 1e4)  # beyond 2⁵³ a double holds no fraction
_EXPONENTS = range(1, 691)  # e^±690 is 1e±300
_WIDE = 230  # e^±230 is 1e±100: a wider exponent is not worth a smaller limit of inputs
_DOUBLES = 300.0  # decades within which a double has all its digits: 1e±308, with room to round
_LOST = 100.0  # decades that an underflow counts as: its error, 1e-308, grows to 1e-108 at most
_SMALL = 16.0  # decades below 1 of a function near its zero: rounding leaves no less but 0
_ANGLE = 15.0  # decades up to which sin and cos know where in its period a number is
_LN_10 = math.log(10)
_EXPONENTIAL = ("exp", "sinh", "cosh")

Range = tuple[float, float]


class Limits(NamedTuple):
    """Where a formula may be evaluated.

    Parameters
    ----------
    inputs
        The largest |x| of any input.
    exponent
        The largest |a| for which e^a, sinh a and cosh a are computed.
    vanishing
        Whether e^a counts as 0 for a below −``exponent``: nothing is divided by it.
    tiny
        The inputs of which |x| below 1/``inputs`` is beyond the limit, too, unless x = 0:
        something is divided by them, and the result may be infinite there.
    """

    inputs: float
    exponent: float = math.inf
    vanishing: bool = False
    tiny: frozenset[int] = frozenset()


@lru_cache(maxsize=1024)
def limits(tape: Tape, ranges: tuple[Range, ...]) -> Limits:
    """Return the limits of a tape whose inputs lie in given ranges.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> n = sympy.Symbol("n", real=True)
    >>> limits(lower([1 / n - 8 / n**3], [n]), ((1, math.inf),))
    Limits(inputs=1e+100, exponent=inf, vanishing=False, tiny=frozenset())
    >>> limits(lower([n / sympy.log(1 + sympy.exp(n))], [n]), ((1, math.inf),)).exponent
    690
    """
    near = [i for i, (low, high) in enumerate(ranges) if low <= 0 <= high]
    for tiny in map(frozenset[int], [(), *((i,) for i in near), near]):
        found = _searched(tape, partial(_fits, tape, ranges, tiny))
        if found.inputs:
            return found._replace(tiny=tiny)
    return Limits(0.0, 0.0)


def _searched(tape: Tape, fits: Callable[..., bool]) -> Limits:
    """Return the largest limits that fit."""
    if not any(step.op in _EXPONENTIAL for step in tape.steps):
        return Limits(_largest(_INPUTS, partial(fits, 0.0)))
    found = Limits(0.0, 0.0)
    for inputs in _BESIDE_EXPONENTIAL:
        exponent = _largest(_EXPONENTS, partial(fits, inputs=inputs))
        if exponent > found.exponent:
            found = Limits(inputs, exponent)
        if exponent >= _WIDE:
            break
    vanishing = found.inputs > 0 and fits(found.exponent, found.inputs, vanishing=True)
    return found._replace(vanishing=vanishing)


def _largest(sizes: Sequence[float], fits: Callable[[float], bool]) -> float:
    """Return the largest of ascending sizes that fits, 0 if none does."""
    place = bisect_left(sizes, True, key=lambda size: not fits(size))
    return sizes[place - 1] if place else 0.0


def guarded(tape: Tape, given: Limits) -> Tape:
    """Return a tape of one formula that is NaN beyond its limits.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> n = sympy.Symbol("n", real=True)
    >>> [step.op for step in guarded(lower([1 / n], [n]), Limits(1e100)).steps]
    ['input', 'const', 'div', 'abs', 'const', 'le', 'const', 'where']
    """
    tape = bounded(tape, given)
    new = Emitter(tape.steps)
    (result,) = tape.outputs
    for x in range(len(tape.inputs)):
        register = new.emit("input", data=x)
        result = new.within(register, given.inputs, result)
        if x in given.tiny:
            least, zero = (new.emit("const", data=c) for c in (1 / given.inputs, 0.0))
            seen = new.emit("ge", new.emit("abs", register), least)
            fits = new.emit("or", seen, new.emit("eq", register, zero))
            result = new.emit("where", fits, result, new.emit("const", data=math.nan))
    return Tape(tape.inputs, tuple(new.steps), (result,))


def bounded(tape: Tape, given: Limits) -> Tape:
    """Return a tape that is NaN, or 0 if it vanishes, where an exponent is beyond its limit."""
    if math.isinf(given.exponent):
        return tape
    new, places = Emitter(), list[int]()
    for op, args, data in tape.steps:
        register = new.emit(op, *(places[a] for a in args), data=data)
        if op in _EXPONENTIAL:
            register = new.within(places[args[0]], float(given.exponent), register)
        if op == "exp" and given.vanishing:
            least, zero = (new.emit("const", data=x) for x in (-float(given.exponent), 0.0))
            below = new.emit("lt", places[args[0]], least)
            register = new.emit("where", below, zero, register)
        places.append(register)
    return Tape(tape.inputs, tuple(new.steps), tuple(places[o] for o in tape.outputs))


class _Size(NamedTuple):
    """A number that is not 0 lies between 10^−down and 10^up in size."""

    up: float
    down: float
    positive: bool = False


_UNIT = _Size(0.0, 0.0, positive=True)


def _fits(
    tape: Tape,
    ranges: Sequence[Range],
    tiny: frozenset[int],
    exponent: float,
    inputs: float,
    *,
    vanishing: bool = False,
) -> bool:
    """Whether every step is in range. Divisors count as 0 only where the formula is undefined.

    ``tiny`` are the inputs that are at least 1/``inputs`` in size unless they are 0.
    """
    most = math.log10(inputs)
    given = [
        _input(low, high, most, most if i in tiny else math.inf)
        for i, (low, high) in enumerate(ranges)
    ]

    def exp(a: _Size) -> _Size:
        reach = min(exponent, 10 ** min(a.up, 3.0)) / _LN_10
        if vanishing:
            return _Size(max(reach, _LOST), math.inf, positive=True)
        return _Size(reach, reach, positive=True)

    own = {"exp": exp, "cosh": exp, "sinh": lambda a: _Size(exp(a).up, max(exp(a).up, a.down))}
    try:
        run(tape, given, {op: partial(_in_range, size) for op, size in (_SIZES | own).items()})
    except _OutOfRangeError:
        return False
    return True


class _OutOfRangeError(Exception):
    """A step may leave the range of doubles."""


def _in_range(size: Callable[..., _Size], *args: Any) -> _Size:
    found = size(*args)
    if found.up > _DOUBLES:
        raise _OutOfRangeError
    return found


def _input(low: float, high: float, most: float, near: float) -> _Size:
    least = max(low, -high)
    return _Size(most, -math.log10(least) if least > 0 else near, low >= 0)


def _const(c: float) -> _Size:
    if not (c and math.isfinite(c)):
        return _UNIT
    return _Size(math.log10(abs(c)), -math.log10(abs(c)), c > 0)


def _add(a: _Size, b: _Size) -> _Size:
    both = a.positive and b.positive
    return _Size(max(a.up, b.up) + 0.31, (min if both else max)(a.down, b.down), both)


def _union(a: _Size, b: _Size) -> _Size:
    return _Size(max(a.up, b.up), max(a.down, b.down), a.positive and b.positive)


def _factor(a: _Size) -> float:
    return max(a.up, _LOST) if _DOUBLES < a.down < math.inf else a.up


def _mul(a: _Size, b: _Size) -> _Size:
    up = 2 * a.up if a is b else _factor(a) + _factor(b)
    return _Size(up, a.down + b.down, a is b or (a.positive and b.positive))


def _pow(a: _Size, b: _Size) -> _Size:
    size = 10 ** min(b.up, 3.0) * max(abs(a.up), abs(a.down))
    return _Size(size, size)


def _log(a: _Size) -> _Size:
    if a.down > _DOUBLES:
        raise _OutOfRangeError
    return _Size(math.log10(max(abs(a.up), abs(a.down), 1) * _LN_10), _SMALL)


def _wave(a: _Size) -> _Size:
    if a.up > _ANGLE:
        raise _OutOfRangeError
    return _Size(_ANGLE, max(a.down, _SMALL))


def _laguerre(series: Sequence[float], t: _Size) -> _Size:
    powers = (len(series) - 1) * (max(t.up, 0.0) + 0.31)  # |Lagₙ(t)| ≤ (2t)ⁿ for t ≥ 1
    most = min(powers, 10 ** min(t.up, 4.0) / 4)  # and at most e^{t/2}
    return _Size(most + math.log10(sum(map(abs, series)) or 1.0), 4 * _SMALL)


def _call(function: Any, *_: _Size) -> _Size:
    if not isinstance(function, Table):
        return _UNIT  # a Python function looks after itself
    sizes = [math.log10(abs(v)) for v in function.values if v and math.isfinite(v)]
    return _Size(max(sizes, default=0.0), -min(sizes, default=0.0))


_SIZES: dict[str, Callable[..., _Size]] = {
    "const": _const,
    "add": _add,
    "sub": lambda a, b: _add(a, b._replace(positive=False)),
    "mul": _mul,
    "div": lambda a, b: _mul(a, _Size(b.down, b.up, b.positive)),
    "pow": _pow,
    "sqrt": lambda a: a._replace(up=a.up / 2, down=a.down / 2),
    "log": _log,
    "abs": lambda a: a._replace(positive=True),
    "max": _union,
    "min": _union,
    "where": lambda _, a, b: _union(a, b),
    "floor": lambda a: a._replace(down=0.0),
    **dict.fromkeys(["truth", "sign", *COMPARISONS, *CONNECTIVES], lambda *_: _UNIT),
    **dict.fromkeys(["sin", "cos", "tan"], _wave),
    **dict.fromkeys(
        ["atan", "tanh", "asin", "acos", "asinh", "acosh", "atanh"],
        lambda a: _Size(3.0, max(a.down, _SMALL)),
    ),
    "laguerre": _laguerre,
    "call": _call,
}
