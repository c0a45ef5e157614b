"""A bound that is missed is tightened, and f is looked at on its domain only."""

from __future__ import annotations

import math

import numpy as np
import pytest

import trueup as tu
from near.laws import sums
from trueup.near.construct import tightened


def solver(bounds):
    """Return a solver whose bounds come one after the other, and the list of what it was asked."""
    asked = []

    def solve(shrink):
        asked.append(shrink)
        bound = bounds[len(asked) - 1]
        return None if bound is None else (f"with {bound}", bound)

    return solve, asked


@pytest.mark.parametrize(
    ("bounds", "found", "tries"),
    [
        ([0.09], "with 0.09", 1),
        ([0.101, 0.0995], "with 0.0995", 2),
        ([0.101, None], 0.101, 2),
        ([None], None, 1),
        ([0.2], 0.2, 1),
        ([0.101, 0.3], 0.3, 2),
        ([math.inf], math.inf, 1),
        ([0.119] * 5, 0.119, 5),
    ],
    ids=["at once", "second", "lost", "none", "far off", "worse", "infinite", "never"],
)
def test_a_near_miss_is_tightened_and_what_is_far_off_is_not(bounds, found, tries):
    solve, asked = solver(bounds)
    assert tightened(solve, 0.01, 0.1) == found
    assert len(asked) == tries
    assert asked == sorted(asked)


def test_tightening_aims_just_below_what_is_allowed():
    """A bound proportional to 1 − shrink is met at the second try, by a two-thousandth."""
    reached = []

    def solve(shrink):
        reached.append(0.105 * (1 - shrink))
        return "found", reached[-1]

    assert tightened(solve, 0.0, 0.1) == "found"
    assert reached == pytest.approx([0.105, 0.1 * (1 - 5e-4)])


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
@pytest.mark.parametrize(
    ("f", "truth"),
    [
        ("1/(31 - n)", lambda n: 1 / (31 - n)),
        ("1/(n - 19)", lambda n: 1 / (n - 19)),
        ("log(32 - n)", lambda n: np.log(32 - n)),
    ],
    ids=["infinite above", "infinite below", "zero above"],
)
def test_beyond_the_domain_f_may_be_infinite_or_zero(f, truth, relative):
    est = tu.nearly_unbiased(f, tu.DiscreteGaussian(1), (20, 30), 0.2, relative=relative)
    n = np.arange(20, 31)
    off = np.abs(sums(est, 1, 20, 30)[0] - truth(n)) / (np.abs(truth(n)) if relative else 1)
    assert off.max() <= est.bias_bound * (1 + 1e-8)
    assert est.bias_bound <= 0.2
