"""Functions known by their values only: Python callables and tables, as sympy sees them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from sympy.core.function import ArgumentIndexError

from trueup.errors import TrueupError

Implementation = Callable[..., Any]


class Opaque(sympy.Function):  # type: ignore[misc]
    """A function without a formula; its derivatives, if given, are opaque too."""

    implementation: Implementation
    derivative: type[Opaque] | None = None
    is_real = True

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Return the derivative that came with the function."""
        if self.derivative is None:
            raise ArgumentIndexError(self, argindex)
        return self.derivative(*self.args)

    @classmethod
    def eval(cls, *args: sympy.Expr) -> sympy.Expr | None:
        """Return the value at numbers."""
        if all(a.is_Number for a in args):
            return sympy.Float(value(cls.implementation, *map(float, args)))
        return None


def opaque(name: str, *implementations: Implementation) -> type[Opaque]:
    """Return the opaque function f whose derivatives f′, f″, … are the further implementations.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> f = opaque("f", np.cosh, np.sinh, np.cosh)
    >>> f(q).diff(q)
    f'(q)
    """
    derivative = None
    for order in reversed(range(len(implementations))):
        body = {
            "implementation": staticmethod(implementations[order]),
            "derivative": derivative,
            "__module__": __name__,
        }
        derivative = type(name + "'" * order, (Opaque,), body)
    assert derivative is not None  # noqa: S101  (at least one implementation is given)
    return derivative


def value(function: Implementation, *args: float) -> float:
    """Return a function's value, NaN where arithmetic gives none; refuse what is no number.

    Examples
    --------
    >>> value(lambda n: 1 / n, 4.0), value(lambda n: 1 / n, 0.0)
    (0.25, nan)
    """
    try:
        return math.ldexp(function(*args), 0)  # float() would read text
    except TrueupError:
        raise
    except ArithmeticError:
        return math.nan
    except Exception as error:
        place = ", ".join(f"{a:g}" for a in args)
        raise TrueupError(
            f"the Python function gives no number at {place}: {type(error).__name__}: {error}",
            "give a function of numbers that returns a real number",
        ) from error


class Table:
    """Values on the integers low, low + 1, …; NaN elsewhere."""

    def __init__(self, low: int, values: tuple[float, ...]) -> None:
        self.low = low
        self.values = np.array([np.nan, *values, np.nan])

    def __call__(self, k: Any) -> Any:
        """Return the value at k."""
        last = len(self.values) - 1
        index = np.clip(np.nan_to_num(np.asarray(k, float) - self.low + 1), 0, last)
        return self.values[index.astype(np.intp)]
