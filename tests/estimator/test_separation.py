"""How a formula is taken apart: what belongs together stays together."""

from __future__ import annotations

from itertools import permutations

import pytest
import sympy

import trueup as tu
from trueup.inverse.separation import by_term

S, N = sympy.symbols("s n", real=True)


@pytest.mark.parametrize(
    "cases",
    [
        [(S, S > 0), (2 * S, sympy.true)],
        [(S + 1, sympy.And(S > 0, N > 0)), (S, sympy.true)],
        [(N, N > 0), (sympy.Integer(0), sympy.true)],
    ],
)
def test_cases_that_ask_about_the_statistic_itself_stay_cases(cases: list) -> None:
    assert by_term(cases, [S]) == sympy.Piecewise(*cases, evaluate=False)


def test_terms_that_a_chain_of_statistics_ties_are_one() -> None:
    """In whatever order they come; x² − 2b² estimates q², with b² = 1/4 here."""
    for names in permutations("abcd"):
        w, x, y, z = names
        f = f"{w}*{x} + {x}*{y}**2 + {w}*{z}**2"
        est = tu.unbiased(f, dict.fromkeys(names, tu.Laplace(0.5)))
        value = dict(zip(names, (2.0, 3.0, 5.0, 7.0), strict=True))
        assert est(**value) == pytest.approx(6 + 3 * (25 - 0.5) + 2 * (49 - 0.5), rel=1e-12)
