"""Weights of the true values."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.domain import Interval
from trueup.errors import TrueupError
from trueup.near.question import read_prior

FOUR = Interval(2, 5)


def test_a_weight_may_be_zero_but_not_all():
    found = read_prior([1, 0, 2, 1], FOUR, True)(np.arange(2.0, 6.0))
    np.testing.assert_allclose(found, [0.25, 0, 0.5, 0.25])
    with pytest.raises(TrueupError, match="but all are"):
        read_prior([0, 0, 0, 0], FOUR, True)
    with pytest.raises(TrueupError, match="but one is -3"):
        read_prior([1, -3, 2, 5], FOUR, True)


def test_weights_by_true_value():
    found = read_prior({5: 3, 2: 1}, FOUR, True)(np.array([5.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, [0.75, 0.25, 0])
    for strange in (1, 6, "2"):
        with pytest.raises(TrueupError, match="which is not in"):
            read_prior({strange: 1, 3: 1}, FOUR, True)


def test_names_and_functions():
    q = np.array([1.0, 4.0])
    np.testing.assert_allclose(read_prior("log-uniform", Interval(1, None), False)(q), [1, 0.25])
    np.testing.assert_allclose(read_prior(None, Interval(0, None), False)(q), 1)
    np.testing.assert_allclose(read_prior(lambda x: x**2, FOUR, False)(q), [1, 16])
    one_by_one = read_prior(lambda x: float(np.max(x)), FOUR, False)
    np.testing.assert_allclose(one_by_one(q), [1, 4])


@pytest.mark.parametrize(
    ("prior", "domain", "whole"),
    [
        ("log-uniform", Interval(0, None), False),
        ("flat", FOUR, False),
        ([1, 2, 3], FOUR, True),
        ([1, 2, 3, 4], FOUR, False),
        ([1, 2], Interval(1, None), True),
        (7, FOUR, True),
    ],
    ids=str,
)
def test_what_is_no_prior(prior, domain, whole):
    with pytest.raises(TrueupError, match=r"prior|weights") as caught:
        read_prior(prior, domain, whole)
    assert "\nHint: " in str(caught.value)


def test_a_function_that_is_negative_somewhere():
    with pytest.raises(TrueupError, match=r"it is -1\.0 at 3"):
        read_prior(lambda x: 2 - x, FOUR, False)(np.array([1.0, 3.0]))
    with pytest.raises(TrueupError, match="zero on the whole domain"):
        read_prior(lambda x: 0 * x, FOUR, False)(np.array([1.0, 3.0]))
