"""Run a tape with as many digits as it takes: no overflow, no underflow, and a bound on the error.

Every register is a ball (v, e): the true number lies within 2^e of v. A ball that comes out too
wide is computed again with more bits. It is slow, tens of microseconds per operation, and meant for
the few rows where doubles fail on the way to a number that is a double again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mpmath import libmp

from trueup.formula.operations import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.kernels.tape import Step, Tape

_BITS = (96, 256, 1024, 4096)  # the last one is enough for 1 − cos of the least double
_ENOUGH = 58  # bits of the result, five more than a double has
_LEAST = -1080  # below 2 to this power every double is zero
_FARTHEST = 4000  # the exponential of ±2 to this power is beyond every use: a double squared twice
_EXACT = -(2**6000)  # an error of 2 to this power is none; what is added to it changes nothing


class Ball(NamedTuple):
    """A number of mpmath's, and the logarithm to base 2 of a bound on its error."""

    v: Any
    e: int


class _Fault(NamedTuple):
    """Why a register has no number; more bits help if it is merely lost."""

    lost: bool


_LOST, _UNDEFINED = _Fault(lost=True), _Fault(lost=False)
Register = Ball | _Fault | bool


class DigitsProgram:
    """A tape, lowered with exact constants, as a function of numbers that is right to the end."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.possible = all(n.op in _OPERATIONS or n.op in _CHOSEN for n in tape.steps)

    def __call__(self, values: Sequence[float]) -> float:
        """Return the function at one point; NaN if it has no value, or none that was found."""
        if not self.possible:
            return math.nan
        for bits in _BITS:
            result = self._run(values, bits)
            if isinstance(result, Ball):
                size = magnitude(result.v)
                if result.e <= size - _ENOUGH or max(result.e, size) < _LEAST:
                    return float(libmp.to_float(result.v, rnd="n"))
            elif not (isinstance(result, _Fault) and result.lost):
                return math.nan
        return math.nan

    def _run(self, values: Sequence[float], bits: int) -> Register:
        registers: list[Register] = []
        for node in self.tape.steps:
            args = [registers[a] for a in node.args]
            registers.append(_step(node, args, values, bits))
        return registers[self.tape.outputs[0]]


_CHOSEN = ("input", "const", "truth", "where")  # what no number is computed for


def _step(node: Step, args: list[Any], values: Sequence[float], bits: int) -> Register:
    if node.op == "input":
        return Ball(libmp.from_float(values[node.data]), _EXACT)
    if node.op == "const":
        return _constant(node.data, bits)
    if node.op == "truth":
        return bool(node.data)
    if node.op == "where":
        return args[0] if isinstance(args[0], _Fault) else args[1] if args[0] else args[2]
    for a in args:
        if isinstance(a, _Fault):
            return a
    result: Register = _OPERATIONS[node.op](bits, *args)
    return result


@lru_cache(maxsize=4096)
def _constant(value: Any, bits: int) -> Register:
    if isinstance(value, float):
        return Ball(libmp.from_float(value), _EXACT) if math.isfinite(value) else _UNDEFINED
    if value.is_Integer:
        return Ball(libmp.from_int(int(value)), _EXACT)
    number = value.evalf(math.ceil(bits * 0.302) + 3)
    if not (number.is_Float and number.is_finite):
        return Ball(libmp.fzero, _EXACT) if number == 0 else _UNDEFINED
    v = number._mpf_
    return Ball(v, _EXACT if value.is_Float else magnitude(v) - bits)


def magnitude(v: Any) -> int:
    """Return the least m with |v| < 2^m."""
    return int(v[2] + v[3]) if v[1] else _EXACT


def _is_exact(a: Ball) -> bool:
    return a.e < _EXACT // 4


def _rounded(v: Any, e: int, bits: int) -> Ball:
    """Return a ball with the error of one rounding added."""
    return Ball(v, max(e, magnitude(v) - bits + 2) + 1)


def _add(bits: int, a: Ball, b: Ball, sign: int = 1) -> Register:
    other = b.v if sign > 0 else libmp.mpf_neg(b.v)
    gap = abs(magnitude(a.v) - magnitude(b.v)) if a.v[1] and b.v[1] else 0
    if _is_exact(a) and _is_exact(b) and gap < bits:
        v = libmp.mpf_add(a.v, other)
        if v[3] <= bits:
            return Ball(v, _EXACT)
    return _rounded(libmp.mpf_add(a.v, other, bits), max(a.e, b.e) + 1, bits)


def _sub(bits: int, a: Ball, b: Ball) -> Register:
    return _add(bits, a, b, -1)


def _mul(bits: int, a: Ball, b: Ball) -> Register:
    if _is_exact(a) and _is_exact(b) and a.v[3] + b.v[3] <= bits:
        return Ball(libmp.mpf_mul(a.v, b.v), _EXACT)
    e = max(a.e + magnitude(b.v), b.e + magnitude(a.v), a.e + b.e) + 2
    return _rounded(libmp.mpf_mul(a.v, b.v, bits), e, bits)


def _nonzero(b: Ball) -> _Fault | None:
    """Return what is wrong with dividing by a ball, or with its logarithm."""
    if b.v[1] == 0 and _is_exact(b):
        return _UNDEFINED
    return _LOST if magnitude(b.v) - 2 <= b.e else None


def _div(bits: int, a: Ball, b: Ball) -> Register:
    fault = _nonzero(b)
    if fault:
        return fault
    size = magnitude(b.v) - 1
    e = max(a.e - size, magnitude(a.v) + b.e - 2 * size) + 2
    return _rounded(libmp.mpf_div(a.v, b.v, bits), e, bits)


def _exp(bits: int, a: Ball) -> Register:
    if a.e > -2:
        return _LOST
    if magnitude(a.v) > _FARTHEST:
        return _UNDEFINED
    v = libmp.mpf_exp(a.v, bits)
    return _rounded(v, a.e + magnitude(v) + 1, bits)


def _log(bits: int, a: Ball) -> Register:
    fault = _nonzero(a)
    if fault or a.v[0]:
        return fault or _UNDEFINED
    return _rounded(libmp.mpf_log(a.v, bits), a.e - magnitude(a.v) + 3, bits)


def _root(e: int) -> int:
    """Return the logarithm of the root of 2^e, rounded up."""
    return -(-e // 2)


def _sqrt(bits: int, a: Ball) -> Register:
    if a.v[1] == 0 and _is_exact(a):
        return a
    fault = _nonzero(a)
    if fault or a.v[0]:
        return fault or _UNDEFINED
    return _rounded(libmp.mpf_sqrt(a.v, bits), a.e - magnitude(a.v) // 2 + 2, bits)


def _gentle(function: Callable[..., Any], flat: int = 0) -> Callable[..., Register]:
    """Return a function whose slope is at most 1, and at most |x|^−flat."""

    def apply(bits: int, a: Ball) -> Register:
        size = magnitude(a.v)
        if not flat and size > 4 * _FARTHEST:
            return _UNDEFINED
        far = max(size - 2, 0) if a.e <= size - 2 else 0
        return _rounded(function(a.v, bits), a.e - flat * far, bits)

    return apply


def _tan(bits: int, a: Ball) -> Register:
    sine, cosine = _gentle(libmp.mpf_sin)(bits, a), _gentle(libmp.mpf_cos)(bits, a)
    if isinstance(sine, Ball) and isinstance(cosine, Ball):
        return _div(bits, sine, cosine)
    return _UNDEFINED


def _steep(function: Callable[..., Any]) -> Callable[..., Register]:
    """Return sinh or cosh, whose slopes are below e^|x|."""

    def apply(bits: int, a: Ball) -> Register:
        if a.e > -2:
            return _LOST
        if magnitude(a.v) > _FARTHEST:
            return _UNDEFINED
        slope = magnitude(libmp.mpf_cosh(a.v, 32))
        return _rounded(function(a.v, bits), a.e + slope + 1, bits)

    return apply


def _rooted(function: Callable[..., Any], inside: Callable[[int, Ball], Register]) -> Any:
    """Return asin, acos or acosh, which change at most like a root: |Δy| ≤ 2·√|Δx|."""

    def apply(bits: int, a: Ball) -> Register:
        room = inside(bits, a)
        if isinstance(room, Ball) and room.v[0]:
            return _LOST if magnitude(room.v) <= room.e + 1 else _UNDEFINED
        return _rounded(function(a.v, bits), _root(a.e) + 2, bits)

    return apply


_ONE = Ball(libmp.fone, _EXACT)


def _below_one(bits: int, a: Ball) -> Register:
    return _sub(bits, _ONE, Ball(libmp.mpf_abs(a.v), a.e))


def _above_one(bits: int, a: Ball) -> Register:
    return _sub(bits, a, _ONE)


def _atanh(bits: int, a: Ball) -> Register:
    room = _below_one(bits, a)
    fault = _nonzero(room) if isinstance(room, Ball) else _UNDEFINED
    if fault or not isinstance(room, Ball) or room.v[0]:
        return fault or _UNDEFINED
    return _rounded(libmp.mpf_atanh(a.v, bits), a.e - magnitude(room.v) + 3, bits)


def _pow(bits: int, a: Ball, b: Ball) -> Register:
    if a.v[1] == 0 and _is_exact(a):
        fault = _nonzero(b)
        return fault or (_UNDEFINED if b.v[0] else a)
    negative = a.v[0]
    if negative and not (_is_exact(b) and b.v[2] >= 0):
        return _UNDEFINED
    log = _log(bits, Ball(libmp.mpf_abs(a.v), a.e))
    exponent = log if isinstance(log, _Fault) else _mul(bits, log, b)  # type: ignore[arg-type]
    result = exponent if isinstance(exponent, _Fault) else _exp(bits, exponent)  # type: ignore[arg-type]
    odd = negative and b.v[2] == 0 and b.v[1] % 2
    return Ball(libmp.mpf_neg(result.v), result.e) if odd and isinstance(result, Ball) else result


def _signum(a: Ball) -> int:
    return 0 if a.v[1] == 0 else -1 if a.v[0] else 1


def _compared(compare: Callable[[int, int], bool]) -> Callable[..., Register]:
    """Return a comparison, decided by that of the sign of a − b with 0."""

    def apply(bits: int, a: Ball, b: Ball) -> Register:
        gap = _sub(bits, a, b)
        if not isinstance(gap, Ball) or (not _is_exact(gap) and magnitude(gap.v) <= gap.e + 1):
            return _LOST
        return compare(_signum(gap), 0)

    return apply


def _larger(sign: int) -> Callable[..., Register]:
    def apply(bits: int, a: Ball, b: Ball) -> Register:
        first = libmp.mpf_cmp(a.v, b.v) * sign >= 0
        return Ball(a.v if first else b.v, a.e if a.e == b.e else max(a.e, b.e))

    return apply


def _sign(bits: int, a: Ball) -> Register:
    if not _is_exact(a) and magnitude(a.v) <= a.e + 1:
        return _LOST
    return Ball(libmp.from_int(_signum(a)), _EXACT)


def _floor(bits: int, a: Ball) -> Register:
    if _is_exact(a):
        return Ball(libmp.mpf_floor(a.v), _EXACT)
    error = libmp.mpf_shift(libmp.fone, int(a.e))
    ends = [libmp.mpf_floor(f(a.v, error)) for f in (libmp.mpf_sub, libmp.mpf_add)]
    return Ball(ends[0], _EXACT) if libmp.mpf_eq(*ends) else _LOST


_OPERATIONS: dict[str, Callable[..., Register]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "sin": _gentle(libmp.mpf_sin),
    "cos": _gentle(libmp.mpf_cos),
    "tan": _tan,
    "asin": _rooted(libmp.mpf_asin, _below_one),
    "acos": _rooted(libmp.mpf_acos, _below_one),
    "atan": _gentle(libmp.mpf_atan, 2),
    "sinh": _steep(libmp.mpf_sinh),
    "cosh": _steep(libmp.mpf_cosh),
    "tanh": _gentle(libmp.mpf_tanh, 2),
    "asinh": _gentle(libmp.mpf_asinh, 1),
    "acosh": _rooted(libmp.mpf_acosh, _above_one),
    "atanh": _atanh,
    "abs": lambda bits, a: Ball(libmp.mpf_abs(a.v), a.e),
    "sign": _sign,
    "floor": _floor,
    "max": _larger(1),
    "min": _larger(-1),
    **{name: _compared(row.numeric) for name, row in COMPARISONS.items()},
    "and": lambda bits, a, b: a and b,
    "or": lambda bits, a, b: a or b,
    "not": lambda bits, a: not a,
}
