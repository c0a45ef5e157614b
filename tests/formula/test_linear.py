"""Conditions between statistics: implied bounds against the corners of the polygon they cut out."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import TrueupError
from trueup.formula.linear import conditions, possible, tightened

SIDE = 9
BOX = ((1, 0, -SIDE), (-1, 0, -SIDE), (0, 1, -SIDE), (0, -1, -SIDE))
"""a·x + b·y >= c."""

rows = st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(-12, 12)).filter(
    lambda row: row[0] and row[1]
)


def corners(given_rows):
    """Yield where two borders meet and everything holds, in fractions."""
    for (a, b, c), (d, e, f) in combinations((*BOX, *given_rows), 2):
        size = a * e - b * d
        if not size:
            continue
        x, y = Fraction(c * e - b * f, size), Fraction(a * f - c * d, size)
        if all(p * x + q * y >= r for p, q, r in (*BOX, *given_rows)):
            yield x, y


def as_text(given_rows):
    own = [f"{a}*x + {b}*y >= {c}" for a, b, c in given_rows]
    return ", ".join([f"-{SIDE} <= x <= {SIDE}, -{SIDE} <= y <= {SIDE}", *own])


@given(st.lists(rows, min_size=1, max_size=4))
def test_implied_bounds_are_those_of_the_corners_or_wider(given_rows):
    """One condition says all; of several, each is put to use by itself."""
    found = [*corners(given_rows)]
    try:
        box, _ = tightened(*conditions(as_text(given_rows)), set())
    except TrueupError:
        assert not found
        return
    for i, name in enumerate("xy"):
        low, high = (end(corner[i] for corner in found) for end in (min, max))
        assert -SIDE <= box[name].low <= low <= high <= box[name].high <= SIDE
        assert len(given_rows) > 1 or box[name].bounds == (low, high)


@given(st.lists(rows, min_size=1, max_size=4))
def test_integers_are_counted(given_rows):
    points = [
        (x, y)
        for x in range(-SIDE, SIDE + 1)
        for y in range(-SIDE, SIDE + 1)
        if all(a * x + b * y >= c for a, b, c in given_rows)
    ]
    try:
        box, tied = tightened(*conditions(as_text(given_rows)), {"x", "y"})
    except TrueupError:
        assert not points
        return
    assert possible(box, tied) == bool(points)
    assert all(x in box["x"] and y in box["y"] for x, y in points)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("s*n >= 0", "'s\\*n >= 0' is not a linear condition"),
        ("s >= ", "is not a condition"),
        ("s = n", "is not a condition"),
        ("a + b >= 3, a + b <= 2", "no true value|leave no value"),
    ],
)
def test_what_is_no_condition_is_refused(text, refused):
    with pytest.raises(TrueupError, match=refused):
        tightened(*conditions(text), set())
