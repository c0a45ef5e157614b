"""Records and their bounds: what is read, forgiven and refused."""

from __future__ import annotations

import sys
from fractions import Fraction

import pytest

from trueup.errors import TrueupError
from trueup.mechanisms import GroupMean, Mean, Shares, TwoTotalsMean
from trueup.mechanisms.records import near_whole, read_bounds

LARGEST = sys.float_info.max


@pytest.mark.parametrize("make", [GroupMean, TwoTotalsMean, lambda e, b: Mean(e, e, bounds=b)])
@pytest.mark.parametrize(
    "bounds",
    [(-LARGEST, LARGEST), (-1, LARGEST), (0, 1e-310), (1, 1 + Fraction(1, 2**1001))],
    ids=["too far apart", "by one", "too near", "too near, far from 0"],
)
def test_bounds_are_apart_by_a_double(make, bounds):
    with pytest.raises(TrueupError, match="on the scale of floats") as caught:
        make(1, bounds)
    assert "\nHint: measure the records in another unit" in str(caught.value)


@pytest.mark.parametrize(
    "bounds",
    [(0, LARGEST), (-LARGEST, 0), (-LARGEST / 2, LARGEST / 2), (0, 2.0**-1000), (-LARGEST, -1e308)],
    ids=str,
)
def test_bounds_as_far_or_near_as_doubles_can_be_are_served(bounds):
    assert read_bounds(bounds) == bounds


@pytest.mark.parametrize(("n", "off"), [(10, 15), (1000, 12), (10**6, 12)])
def test_a_total_is_whole_only_if_it_is_nearer_than_doubles_can_say(n, off):
    """10⁻⁹ of a record is forgiven, and the last bit of a share: 10⁻⁶ of 10¹⁰ records."""
    share = Fraction(3, 10)
    near, far = (share + Fraction(k, 10**10 * n) for k in (8, off))
    mechanism = Shares(1, ["a", "b"])
    assert mechanism.sd(n, near) == mechanism.sd(n, share)
    with pytest.raises(TrueupError, match="no category can have the share"):
        mechanism.sd(n, far)
    assert near_whole(10**10 * (share + Fraction(1, 2**53)), 10**10) == 3 * 10**9
