"""Signs on boxes, proved cell by cell: near 0, over many decades, and far out."""

from __future__ import annotations

import pytest
import sympy

from trueup.domain import Interval
from trueup.inverse.definite import definite

Q = sympy.Symbol("q", real=True)


SIGNS = [
    (Q - Q**2 + sympy.Rational(1, 10), (0, 1), 1),
    (Q**2 + Q - sympy.Rational(1, 10), (-1, 0), -1),
    (Q - Q**2, (1e-200, 0.5), 1),
    (Q + Q**2, (-0.5, -1e-200), -1),
    (Q - 10**200 * Q**2, (1e-300, 1e-201), 1),
    (sympy.exp(Q) * sympy.cos(Q) + sympy.Rational(1, 3), (None, -1), 1),
    (sympy.exp(-Q) * sympy.cos(Q) + sympy.Rational(1, 3), (1, None), 1),
    (sympy.exp(Q) * sympy.cos(Q) + sympy.Rational(1, 30), (None, -1), 0),
]


@pytest.mark.parametrize(("expr", "bounds", "sign"), SIGNS, ids=str)
def test_a_sign_is_proved_where_it_takes_smaller_cells(expr, bounds, sign) -> None:
    assert definite(expr, {Q: Interval(*bounds)}) == sign
    assert definite(-expr, {Q: Interval(*bounds)}) == -sign
