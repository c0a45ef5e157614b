"""A formula with |·|, min, max and sign as cases, so that derivatives carry no point masses.

No condition ever holds cases: sympy multiplies those out, and may not come back. Inside conditions
|·|, min and max stay as they are (nothing is differentiated there), and a ``where`` inside one of
them is drawn outside first: max(where(c, x, y), z) is where(c, max(x, z), max(y, z)).
"""

from __future__ import annotations

from functools import lru_cache

import sympy

from trueup.errors import FormulaError
from trueup.formula.build import UnfitError, stable
from trueup.formula.limits import is_long
from trueup.formula.substitution import at
from trueup.formula.text import text

PARTS = 3_000
"""Parts of the cases written out: each takes sympy some 0.1 ms in every later step."""

_KINKED = (sympy.Abs, sympy.sign, sympy.Min, sympy.Max)


@lru_cache(maxsize=256)
def without_kinks(f: sympy.Expr) -> sympy.Expr:
    """Return the formula with its kinks as cases.

    Examples
    --------
    >>> q = sympy.Symbol("q", real=True)
    >>> without_kinks(sympy.Abs(q - 1) + sympy.Max(0, q))
    Piecewise((q, q >= 0), (0, True)) + Piecewise((q - 1, q >= 1), (1 - q, True))
    """
    return _Unkinking(f).plain(f)


class _Unkinking:
    """One formula on its way, with a count of the parts written so far."""

    def __init__(self, f: sympy.Expr) -> None:
        self.f, self.parts = f, 0

    def plain(self, expr: sympy.Expr) -> sympy.Expr:
        """Return an expression without kinks outside its conditions."""
        self.parts += 1
        if self.parts > PARTS:
            raise self.refusal()
        if not expr.args or not expr.has(*_KINKED):
            return expr
        if isinstance(expr, sympy.Piecewise):
            return sympy.Piecewise(*((self.plain(value), test) for value, test in expr.args))
        if not isinstance(expr, _KINKED):
            return self.folded(expr.func(*map(self.plain, expr.args)))
        cases = next(iter(_outer_cases(expr)), None)
        if cases is not None:
            drawn = ((self.plain(at(expr, {cases: value})), test) for value, test in cases.args)
            return sympy.Piecewise(*drawn)
        return self.kink(expr)

    def folded(self, expr: sympy.Expr) -> sympy.Expr:
        """Return a power, of which sympy makes cases with new kinks: of (q**2)**1.5 it is |q|³."""
        cases = expr.args if isinstance(expr, sympy.Piecewise) else ()
        return self.plain(expr) if any(value.has(*_KINKED) for value, _ in cases) else expr

    def kink(self, expr: sympy.Expr) -> sympy.Expr:
        """Return |·|, sign, min or max of expressions without cases as cases."""
        first, others, last = expr.args[0], expr.args[:-1], expr.args[-1]
        if isinstance(expr, sympy.Abs):
            inner = self.plain(first)
            return self.choice(sympy.Ge, first, sympy.S.Zero, inner, -inner)
        if isinstance(expr, sympy.sign):
            below = self.choice(sympy.Lt, first, sympy.S.Zero, sympy.S.NegativeOne, sympy.S.Zero)
            return self.choice(sympy.Gt, first, sympy.S.Zero, sympy.S.One, below)
        wins = sympy.Ge if isinstance(expr, sympy.Max) else sympy.Le
        best = others[0] if len(others) == 1 else expr.func(*others, evaluate=False)
        return self.choice(wins, last, best, self.plain(last), self.plain(best))

    def choice(
        self, kind: type, left: sympy.Expr, right: sympy.Expr, yes: sympy.Expr, no: sympy.Expr
    ) -> sympy.Expr:
        """Return one value where the comparison holds and another elsewhere."""
        try:
            test = stable(kind(left, right))
        except (UnfitError, TypeError):  # the two are never real numbers together
            raise self.refusal() from None
        found = sympy.Piecewise((yes, test), (no, True))
        if is_long(found, PARTS - 1):
            raise self.refusal()
        return found

    def refusal(self) -> FormulaError:
        return FormulaError(
            f"{text(self.f)[:200]} has too many cases inside one another",
            "nest abs, min, max and where less deeply, or split the formula",
        )


def _outer_cases(expr: sympy.Basic) -> list[sympy.Piecewise]:
    """Return the cases inside an expression that lie in no other."""
    if isinstance(expr, sympy.Piecewise):
        return [expr]
    return [cases for arg in expr.args for cases in _outer_cases(arg)]
