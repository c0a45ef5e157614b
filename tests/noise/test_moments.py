"""Noise of which only moments are known."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noise.conftest import mgf
from trueup.errors import TrueupError
from trueup.noise import Moments


def test_what_is_known():
    noise = Moments([1, 3, Fraction(1, 2)])
    assert noise.values == (1, 3, Fraction(1, 2))
    assert [noise.moment(k) for k in range(4)] == [1, 1, 3, Fraction(1, 2)]
    assert noise.variance == 2
    assert noise.highest_moment == 3
    assert noise.mgf_radius == 0
    assert Moments(m for m in (0, 2)) == Moments(np.array([0, 2]))
    with pytest.raises(TrueupError, match="has no known moment of order 4"):
        noise.moment(4)
    with pytest.raises(TrueupError, match="has no known moment of order 2"):
        _ = Moments([0]).variance
    assert [str(m) for m in noise.tilted(0, 3)] == ["1", "1", "3", "1/2"]


@pytest.mark.parametrize(
    "use",
    [
        lambda n: n.pdf(0),
        lambda n: n.cdf(0),
        lambda n: n.quantile(0.5),
        lambda n: n.sample(3),
        lambda n: mgf(n, 0.1),
        lambda n: mgf(n, 1j),
        lambda n: n.tilted(1, 0),
    ],
)
def test_what_is_not_known(use):
    with pytest.raises(TrueupError, match=r"of Moments\(\[0, 2\]\) is not known"):
        use(Moments([0, 2]))


@pytest.mark.parametrize(
    "bad", [[], "12", None, 3, [0, math.nan], [0, math.inf], [0, "2"], [None], [True], {1: 2}, [1j]]
)
def test_bad_lists(bad):
    with pytest.raises(TrueupError, match="moment") as caught:
        Moments(bad)
    assert "Hint: " in str(caught.value)


@pytest.mark.parametrize(
    "impossible",
    [
        [1, Fraction(1, 2)],
        [0, -1],
        [0, 1, 0, Fraction(1, 2)],
        [0, 1, 1, 1.5],
        [0.5, 0.2],
        [0, 0, 1],
        [0, 0, 0, 1],
        [0.0, 0.0, 1.5],
        [0, 1, 0, 3, 0, 8],
    ],
)
def test_impossible_moments(impossible):
    with pytest.raises(TrueupError, match="no distribution has the moments"):
        Moments(impossible)


@pytest.mark.parametrize(
    "possible",
    [
        [0],
        [5, 25],
        [5, 25, 125],
        [0, 1, 0, 1, 0, 1, 0],
        [0.1, 0.1 * 0.1],
        [0 if k % 2 else math.factorial(k) * 3**k for k in range(1, 41)],
        [0.0 if k % 2 else math.prod(range(1, k, 2)) * 0.3**k for k in range(1, 21)],
    ],
)
def test_possible_moments(possible):
    assert Moments(possible).highest_moment == len(possible)


laws = st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 9)), min_size=1, max_size=5)


@settings(deadline=None, max_examples=60)
@given(laws, st.integers(1, 8), st.booleans())
def test_moments_of_a_law_are_accepted(law, count, floats):
    total = sum(w for _, w in law)
    moments = [Fraction(sum(w * x**k for x, w in law), total) for k in range(1, count + 1)]
    values = [float(m) for m in moments] if floats else moments
    assert Moments(values).moment(count) == (
        pytest.approx(float(moments[-1])) if floats else moments[-1]
    )


def test_nothing_but_zero_has_no_spread():
    """E Z² = 0 only if Z is 0, in exact numbers and in floats."""
    assert Moments([0, 0, 0]).variance == 0
    for impossible in ([1, 0], [0.5, 0], [0, 0, 1]):
        with pytest.raises(TrueupError, match="no distribution has the moments"):
            Moments(impossible)
