"""The estimator as a curve: bounds on it, on its bends, and where it is not smooth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy

from trueup.near.curve import Curve
from trueup.near.series import Exact
from trueup.near.spline import Spline

x = sympy.Symbol("x", real=True)
INF = math.inf
LEFT = Spline(-4.0, 2.0, [[1.0, -3.0, 0.5, 2.0], [0.5, 1.0, -2.0, 0.0]])
RIGHT = Spline(6.0, 1.0, [[1.0, 0.0, 0.0, -1.0]])
WAVE = Exact(x, sympy.sin(x) + x / 5)


@pytest.mark.parametrize(
    ("left", "right", "low", "high"),
    [(None, None, -INF, INF), (LEFT, None, 0.0, INF), (None, RIGHT, -INF, 6.0),
     (LEFT, RIGHT, 0.0, 6.0)],
    ids=["the line", "left", "right", "both"],
)  # fmt: skip
@pytest.mark.parametrize("unit", [0.5, 3.0])
def test_bounds_on_the_third_derivative(left, right, low, high, unit):
    """Cells of the series are at most a quarter of a unit wide, as far as the reach."""
    curve = Curve(x, WAVE, left, right, low, high)
    reach = 5 * unit
    edges, bounds = curve.turns(reach, unit)
    assert (edges[0], edges[-1]) == (-INF, INF)
    assert len(bounds) == len(edges) - 1
    within = np.linspace(0, reach - unit / 4, 200)[1:-1]
    ends = [(low, 1), (high, -1)] if left or right else [(0.0, 1), (0.0, -1)]
    near = np.concatenate([end + sign * within for end, sign in ends if math.isfinite(end)])
    near = near[(near > low) & (near < high)]
    cell = np.searchsorted(edges, near) - 1
    assert np.diff(edges)[cell].max() <= unit / 4 * (1 + 1e-9)
    thirds = np.abs(np.cos(near))
    assert (bounds[cell] >= thirds * (1 - 1e-12)).all()
    assert (bounds[cell] <= thirds + unit / 4 + 1e-9).all()  # |cos| moves no faster
    for spline in filter(None, (left, right)):
        inner = (spline.edges[1:] + spline.edges[:-1]) / 2
        wanted = np.abs(spline.derivative(3)(inner))
        np.testing.assert_allclose(bounds[np.searchsorted(edges, inner) - 1], wanted, atol=1e-12)


def test_a_formula_is_not_smooth_where_its_cases_meet():
    cases = sympy.Piecewise((x**2, x < 1), (abs(x - 3), True))
    curve = Curve(x, Exact(x, cases), None, Spline(5.0, 1.0, [[2.0]]), -INF, 5.0)
    np.testing.assert_allclose(curve.knots, [1, 3, 5, 6])
    assert Curve(x, WAVE, None, None, -INF, INF).knots.size == 0
