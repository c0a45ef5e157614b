"""The counter of work: what has no end fails, whatever the code under test catches."""

import itertools
import sys

import pytest

from work import TooMuchError, at_most, bounded, counted


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


def swallowing():
    """Loop, and take the interruption for an error of its own."""
    try:
        endless()
    except BaseException:
        return 7


@pytest.mark.parametrize("action", [endless, swallowing])
def test_what_takes_long_is_counted(action):
    with pytest.raises(TooMuchError):
        bounded(action, 10_000, long=0.05)
    assert sys.gettrace() is None


def test_what_takes_long_and_little_work_passes():
    seen = []

    def slow_once():
        seen.append(1)
        if len(seen) == 1:
            endless()
        return "answer"

    assert bounded(slow_once, 100, long=0.05) == "answer"


def test_calls_and_lines_are_counted():
    spent = []
    for calls in (True, False):
        with counted(1_000, calls) as count:
            [(lambda k=k: k)() for k in range(3)]
        spent.append(1_000 - count.left)
    assert 4 <= spent[0] < spent[1] < 100
