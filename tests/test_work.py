"""The counter of work: what has no end fails, whatever the code under test catches."""

import itertools
import sys

import pytest

from work import at_most


def endless():
    for k in itertools.count():
        try:
            str.upper(next(iter(lambda: "a", "b"))), abs(k), (lambda: k)()
        except Exception:  # noqa: S112  (code under test may do so)
            continue


def test_what_has_no_end_fails():
    with pytest.raises(pytest.fail.Exception, match="more than 1,000 calls"), at_most(1_000):
        endless()
    assert sys.gettrace() is None


def test_what_ends_in_time_passes():
    with at_most(11):
        assert sum((lambda k=k: k)() for k in range(4)) == 6
