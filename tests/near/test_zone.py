"""The unknowns near a bound: tables and splines, their ends and their joins."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.near.curve import Zone

X = np.linspace(-3.0, 8.0, 23)


def value(zone, unknowns, x, order=0):
    """Return a derivative of the spline with these unknowns."""
    return zone.spline(unknowns).derivative(order)(np.asarray(x, float))


@pytest.mark.parametrize("side", ["left", "right", "whole"])
def test_a_table_has_a_value_for_every_integer(side):
    zone = Zone(2, 6, 1.0, side, True)
    unknowns = np.array([5.0, -1.0, 4.0, 0.5, 9.0])
    assert zone.size == zone.pieces == 5
    x = np.arange(0.0, 9.0)
    matrix, fixed = zone.matrix(x)
    table = dict(zip(range(2, 7), unknowns, strict=True)) | {0: 5.0, 1: 5.0, 7: 9.0, 8: 9.0}
    held = {"left": x <= 6, "right": x >= 2, "whole": x > -1}[side]
    assert (zone.holds(x) == held).all()
    wanted = np.where(held, [table[int(k)] for k in x], 0.0)
    np.testing.assert_array_equal(matrix @ unknowns + fixed, wanted)
    np.testing.assert_array_equal(value(zone, unknowns, x[2:7]), unknowns)
    np.testing.assert_array_equal(zone.start(lambda x: x**2), [4.0, 9, 16, 25, 36])


@pytest.mark.parametrize(("side", "outer", "inner"), [("left", 0.0, 5.0), ("right", 5.0, 0.0)])
def test_a_spline_joins_the_series_and_ends_flat(side, outer, inner):
    join = (1.7, -0.4, 2.5)
    zone = Zone(0.0, 5.0, 0.6, side, False, join)
    assert zone.pieces == 9  # ⌈5 / 0.6⌉
    assert zone.size == zone.pieces + 3 - 3 - 2  # three are given, three are one
    unknowns = np.random.default_rng(1).normal(size=zone.size)
    at_join = [value(zone, unknowns, [inner], k)[0] for k in range(3)]
    np.testing.assert_allclose(at_join, join, atol=1e-10)
    flat = [value(zone, unknowns, [outer], k)[0] for k in range(3)]
    assert flat[0] == pytest.approx(unknowns[0 if side == "left" else -1])
    np.testing.assert_allclose(flat[1:], 0, atol=1e-9)


def test_a_spline_everywhere_ends_flat_on_both_sides():
    zone = Zone(-1.0, 3.0, 1.0, "whole", False)
    assert zone.pieces == 4
    assert zone.size == 4 + 3 - 4
    unknowns = np.array([2.0, -1.0, 0.5])
    for end, own in ((-1.0, 2.0), (3.0, 0.5)):
        found = [value(zone, unknowns, [end], k)[0] for k in range(3)]
        np.testing.assert_allclose(found, [own, 0, 0], atol=1e-12)


def test_few_pieces_are_four():
    assert Zone(0.0, 1.0, 10.0, "whole", False).pieces == 4


@pytest.mark.parametrize("join", [None, (0.3, 1.0, -2.0)], ids=["free", "joined"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_matrix_gives_the_values_of_the_spline(side, join):
    zone = Zone(0.0, 5.0, 0.9, side, False, join)
    unknowns = np.random.default_rng(2).normal(size=zone.size)
    matrix, fixed = zone.matrix(X)
    held = X <= 5 if side == "left" else X >= 0
    assert (zone.holds(X) == held).all()
    wanted = np.where(held, value(zone, unknowns, np.clip(X, 0, 5)), 0.0)
    np.testing.assert_allclose(matrix @ unknowns + fixed, wanted, atol=1e-12)


def test_splines_are_twice_differentiable():
    zone = Zone(0.0, 4.0, 0.5, "left", False, (1.0, 2.0, 3.0))
    unknowns = np.random.default_rng(3).normal(size=zone.size)
    for knot in zone.edges[1:-1]:
        for order in range(3):
            left, right = value(zone, unknowns, [knot - 1e-9, knot + 1e-9], order)
            assert left == pytest.approx(right, abs=1e-5)


def test_the_first_guess_follows_a_line():
    """Splines hold straight lines: the guess is one but for the piece that ends flat."""
    slope = 0.75
    zone = Zone(0.0, 6.0, 0.5, "left", False, (slope * 6, slope, 0.0))
    found = value(zone, zone.start(lambda x: slope * x), [2.0, 3.3, 5.9])
    np.testing.assert_allclose(found, slope * np.array([2.0, 3.3, 5.9]), atol=1e-12)
    flat = zone.start(np.ones_like)
    np.testing.assert_allclose(flat, 1)


def test_edges_are_even():
    np.testing.assert_allclose(Zone(1.0, 3.0, 0.5, "right", False).edges, [1, 1.5, 2, 2.5, 3])
