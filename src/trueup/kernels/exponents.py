"""Run a tape on arrays of numbers m·2ᵏ with k of their own: doubles that never overflow.

No digit more than a double has, but all of them where e^{50q} is no double and a quotient of two
such is. For nodes of integrals, of which there are too many for :mod:`trueup.kernels.digits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup.formula.operations import COMPARISONS, CONNECTIVES
from trueup.kernels.interpreted import UFUNCS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from trueup.kernels.tape import Step, Tape

    Floats = NDArray[np.float64]

_LOG_2 = 0.693147180369123816490  # 33 bits: a million times it is exact
_REST = 1.90821492927058770002e-10  # ln 2 is the sum of the two, to 100 bits
_FARTHEST = 1e15  # of larger exponents a double holds no fraction: e to them is not known
_POWERS = 64  # larger ones are taken by the logarithm


class Scaled(NamedTuple):
    """Numbers m·2ᵏ with ½ ≤ |m| < 1, or m = 0, ∞ or NaN."""

    m: Any
    k: Any


def run(tape: Tape, columns: Sequence[Floats]) -> Floats:
    """Return the values of a tape as doubles, NaN where a comparison is with what is not known.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> x = sympy.Symbol("x", real=True)
    >>> run(lower([sympy.exp(x) / (1 + sympy.exp(x))], [x]), [np.array([-2.0, 900.0])]).round(3)
    array([0.119, 1.   ])
    """
    rows = len(columns[0])
    registers: list[Any] = []
    unknown = np.zeros(rows, bool)
    with np.errstate(all="ignore"):
        for node in tape.steps:
            args = [registers[a] for a in node.args]
            if node.op in COMPARISONS:
                gap = _add(args[0], _negative(args[1])).m
                unknown |= np.isnan(gap)
                registers.append(UFUNCS[node.op](gap, 0.0))
            else:
                registers.append(_step(node, args, columns, rows))
        return np.where(unknown, np.nan, _double(registers[tape.outputs[0]]))


def possible(tape: Tape) -> bool:
    """Tell whether all operations of a tape are known here."""
    return all(n.op in UFUNCS or n.op in ("input", "const", "truth", "where") for n in tape.steps)


def _step(node: Step, args: list[Any], columns: Sequence[Floats], rows: int) -> Any:
    if node.op == "input":
        return _scaled(columns[node.data])
    if node.op == "const":
        return _scaled(np.full(rows, float(node.data)))
    if node.op == "truth":
        return np.full(rows, bool(node.data))
    if node.op == "where":
        test, yes, no = args
        return Scaled(np.where(test, yes.m, no.m), np.where(test, yes.k, no.k))
    if node.op in CONNECTIVES:
        return UFUNCS[node.op](*args)
    own = _OPERATIONS.get(node.op)
    return own(*args) if own else _scaled(UFUNCS[node.op](*map(_double, args)))


def _scaled(x: Any) -> Scaled:
    m, k = np.frexp(x)
    return Scaled(m, k.astype(np.int64))


def _double(x: Scaled) -> Any:
    return np.ldexp(x.m, np.clip(x.k, -4000, 4000).astype(np.int32))


def _normal(m: Any, k: Any) -> Scaled:
    found, more = np.frexp(m)
    return Scaled(found, k + more)


def _negative(x: Scaled) -> Scaled:
    return Scaled(-x.m, x.k)


def _add(a: Scaled, b: Scaled) -> Scaled:
    k = np.where(a.m == 0, b.k, np.where(b.m == 0, a.k, np.maximum(a.k, b.k)))
    return _normal(sum(_double(Scaled(x.m, x.k - k)) for x in (a, b)), k)


def _mul(a: Scaled, b: Scaled) -> Scaled:
    return _normal(a.m * b.m, a.k + b.k)


def _div(a: Scaled, b: Scaled) -> Scaled:
    return _normal(a.m / b.m, a.k - b.k)


def _sqrt(a: Scaled) -> Scaled:
    odd = a.k % 2
    return _normal(np.sqrt(np.ldexp(a.m, odd.astype(np.int32))), (a.k - odd) // 2)


def _exp(a: Scaled) -> Scaled:
    x = _double(a)
    x = np.where(np.abs(x) <= _FARTHEST, x, np.nan)
    k = np.rint(x / (_LOG_2 + _REST))
    return _normal(np.exp((x - k * _LOG_2) - k * _REST), np.nan_to_num(k).astype(np.int64))


def _log(a: Scaled) -> Scaled:
    return _scaled((np.log(a.m) + a.k * _REST) + a.k * _LOG_2)


def _pow(a: Scaled, b: Scaled) -> Scaled:
    exponent = _double(b)
    whole = exponent.flat[0]
    if whole == np.rint(whole) and abs(whole) <= _POWERS and (exponent == whole).all():
        power = _scaled(np.ones_like(a.m))
        for _ in range(int(abs(whole))):
            power = _mul(power, a)
        return power if whole >= 0 else _div(_scaled(np.ones_like(a.m)), power)
    return _exp(_mul(b, _log(a)))


def _hyperbolic(op: str, sign: float) -> Callable[[Scaled], Scaled]:
    """Return sinh or cosh: (eˣ ± e⁻ˣ)/2 where nothing cancels."""

    def apply(a: Scaled) -> Scaled:
        x, rest = _double(a), _exp(_negative(a))
        near, far = _scaled(UFUNCS[op](x)), _add(_exp(a), Scaled(sign * rest.m, rest.k))
        small = np.abs(x) < 1
        return Scaled(np.where(small, near.m, far.m), np.where(small, near.k, far.k - 1))

    return apply


def _extremum(sign: float) -> Callable[[Scaled, Scaled], Scaled]:
    def pick(a: Scaled, b: Scaled) -> Scaled:
        gap = _add(a, _negative(b)).m
        first = (gap * sign >= 0) | np.isnan(a.m)  # NaN stays NaN, as NumPy has it
        return Scaled(np.where(first, a.m, b.m), np.where(first, a.k, b.k))

    return pick


_OPERATIONS: dict[str, Callable[..., Scaled]] = {
    "add": _add,
    "sub": lambda a, b: _add(a, _negative(b)),
    "mul": _mul,
    "div": _div,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "sinh": _hyperbolic("sinh", -1.0),
    "cosh": _hyperbolic("cosh", 1.0),
    "pow": _pow,
    "abs": lambda a: Scaled(np.abs(a.m), a.k),
    "max": _extremum(1.0),
    "min": _extremum(-1.0),
}
