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

from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels.tape import Emitter, Tape, run

_INPUTS = (1e100, 1e60, 1e40, 1e30, 1e25, 1e20, 1e15, 1e12, 1e9, 1e6, 1e4, 1e3, 500, 200, 50, 10, 2)
_BESIDE_EXPONENTIAL = (1e15, 1e9, 1e6, 1e4)  # beyond 2⁵³ a double holds no fraction
_EXPONENTS = range(690, 0, -1)  # e^±690 is 1e±300
_WIDE = 230  # e^±230 is 1e±100: a wider exponent is not worth a smaller limit of inputs
_LEAST = -690.0  # below which e^a counts as 0 where nothing is divided by it
_DOUBLES = 300.0  # decades within which a double has all its digits: 1e±308, with room to round
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
        Whether e^a is computed for every a below, and is 0 from −690 on: nothing is divided by it.
    tiny
        The inputs of which |x| below 1/``inputs`` is beyond the limit, too, unless x = 0:
        something is divided by them, and the result may be infinite there.
    """

    inputs: float
    exponent: float = math.inf
    vanishing: bool = False
    tiny: frozenset[int] = frozenset()


@lru_cache(maxsize=1024)
def limits(tape: Tape, ranges: tuple[Range, ...], *, floors: bool = False) -> Limits:
    """Return the limits of a tape whose inputs lie in given ranges.

    Parameters
    ----------
    tape
        The formulas.
    ranges
        Where each input lies.
    floors
        Whether no step may underflow even if that does no harm: some SQL engines stop there.

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
    may_vanish = not floors and any(step.op == "exp" for step in tape.steps)
    for tiny in map(frozenset[int], [near] if floors else [(), *((i,) for i in near), near]):
        for vanishing in (True, False) if may_vanish else (False,):
            start = Limits(0.0, math.inf, vanishing, tiny)
            found = _widest(tape, partial(_fits, tape, ranges), start)
            if found.inputs and (found.exponent >= _WIDE or not vanishing):
                return found
    return Limits(0.0, 0.0)


def _widest(tape: Tape, fits: Callable[[Limits], bool], given: Limits) -> Limits:
    """Return the widest limits that fit, 0 if none do."""
    if not any(step.op in _EXPONENTIAL for step in tape.steps):
        inputs = _largest([given._replace(inputs=x) for x in _INPUTS], fits)
        return inputs or given
    found = given._replace(exponent=0.0)
    for x in _BESIDE_EXPONENTIAL:
        wide = _largest([given._replace(inputs=x, exponent=a) for a in _EXPONENTS], fits)
        if wide and wide.exponent > found.exponent:
            found = wide
        if found.exponent >= _WIDE:
            break
    return found


def _largest(limits: Sequence[Limits], fits: Callable[[Limits], bool]) -> Limits | None:
    """Return the first that fits: what fits is followed by what does."""
    place = bisect_left(limits, True, key=fits)
    return limits[place] if place < len(limits) else None


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
    for i in range(len(tape.inputs)):
        x = new.emit("input", data=i)
        size = new.emit("abs", x)
        result = new.within(size, given.inputs, result)
        if i in given.tiny:
            least, zero, nan = (
                new.emit("const", data=c) for c in (1 / given.inputs, 0.0, math.nan)
            )
            fits = new.emit("or", new.emit("ge", size, least), new.emit("eq", x, zero))
            result = new.emit("where", fits, result, nan)
    return Tape(tape.inputs, tuple(new.steps), (result,))


def bounded(tape: Tape, given: Limits) -> Tape:
    """Return a tape that is NaN, or 0 if it vanishes, where an exponent is beyond its limit."""
    new, places = Emitter(), list[int]()
    for op, args, data in tape.steps:
        register = new.emit(op, *(places[a] for a in args), data=data)
        if op in _EXPONENTIAL:
            exponent, vanishes = places[args[0]], op == "exp" and given.vanishing
            size = exponent if vanishes else new.emit("abs", exponent)
            register = new.within(size, float(given.exponent), register)
            if vanishes:
                least, zero = (new.emit("const", data=c) for c in (_LEAST, 0.0))
                register = new.emit("where", new.emit("lt", exponent, least), zero, register)
        places.append(register)
    return Tape(tape.inputs, tuple(new.steps), tuple(places[o] for o in tape.outputs))


# -- how large and how small steps can get ---------------------------------------------------------


class _Size(NamedTuple):
    """A number that is not 0 lies between 10^−down and 10^up in size."""

    up: float
    down: float
    positive: bool = False


_UNIT = _Size(0.0, 0.0, positive=True)


def _fits(tape: Tape, ranges: Sequence[Range], given: Limits) -> bool:
    """Whether no step leaves the range of doubles within the limits.

    What is divided by is 0 only where the formula is undefined.
    """
    most = math.log10(given.inputs)
    inputs = []
    for i, (low, high) in enumerate(ranges):
        least = max(low, -high)
        nearest = most if i in given.tiny else math.inf
        inputs.append(_Size(most, -math.log10(least) if least > 0 else nearest, low >= 0))

    def exp(a: _Size) -> _Size:
        reach = min(given.exponent, 10 ** min(a.up, 3.0)) / _LN_10
        return _Size(reach, math.inf if given.vanishing else reach, positive=True)

    def sinh(a: _Size) -> _Size:
        return _Size(exp(a).up, max(exp(a).up, a.down))

    own = {"exp": exp, "cosh": exp, "sinh": sinh}
    try:
        run(tape, inputs, {op: _in_range(size) for op, size in (_SIZES | own).items()})
    except OverflowError:
        return False
    return True


def _in_range(size: Callable[..., _Size]) -> Callable[..., _Size]:
    """Return a rule that raises where numbers are too large, or too small but for 0."""

    def checked(*args: Any) -> _Size:
        found = size(*args)
        if found.up > _DOUBLES or _DOUBLES < found.down < math.inf:
            raise OverflowError
        return found

    return checked


def _const(c: float) -> _Size:
    if not (c and math.isfinite(c)):
        return _UNIT
    return _Size(math.log10(abs(c)), -math.log10(abs(c)), c > 0)


def _add(a: _Size, b: _Size) -> _Size:
    both = a.positive and b.positive
    return _Size(max(a.up, b.up) + 0.31, (min if both else max)(a.down, b.down), both)


def _union(a: _Size, b: _Size) -> _Size:
    return _Size(max(a.up, b.up), max(a.down, b.down), a.positive and b.positive)


def _mul(a: _Size, b: _Size) -> _Size:
    return _Size(a.up + b.up, a.down + b.down, a is b or (a.positive and b.positive))


def _pow(a: _Size, b: _Size) -> _Size:
    size = 10 ** min(b.up, 3.0) * max(abs(a.up), abs(a.down))
    return _Size(size, size)


def _log(a: _Size) -> _Size:
    if math.isinf(a.down):
        raise OverflowError
    return _Size(math.log10(max(abs(a.up), a.down, 1) * _LN_10), _SMALL)


def _wave(a: _Size) -> _Size:
    if a.up > _ANGLE:
        raise OverflowError
    return _Size(_ANGLE, max(a.down, _SMALL))


def _laguerre(series: Sequence[float], t: _Size) -> _Size:
    powers = (len(series) - 1) * (max(t.up, 0.0) + 0.31)  # |Lagₙ(t)| ≤ (2t)ⁿ for t ≥ 1
    most = min(powers, 10 ** min(t.up, 4.0) / 4)  # and at most e^{t/2}
    return _Size(most + math.log10(sum(map(abs, series)) or 1.0), 4 * _SMALL)


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
    **dict.fromkeys(["truth", "sign", "call", *COMPARISONS, *CONNECTIVES], lambda *_: _UNIT),
    **dict.fromkeys(["sin", "cos", "tan"], _wave),
    **dict.fromkeys(
        ["atan", "tanh", "asin", "acos", "asinh", "acosh", "atanh"],
        lambda a: _Size(3.0, max(a.down, _SMALL)),
    ),
    "laguerre": _laguerre,
}
