"""What is known of several statistics together, against sums and formulas of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

import trueup as tu

HALF = 1 / math.log(2)
"""The scale at which α = ½, so that estimators of fractions are fractions."""


def law(scale: float, reach: int) -> np.ndarray:
    """Return the masses of discrete Laplace noise from −reach to reach."""
    k = np.arange(-reach, reach + 1)
    alpha = math.exp(-1 / scale)
    return (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)


def moments(est, truth, scales, reach=60):
    """Return E g and its variance, summed over the noises of two statistics."""
    (a, q), (b, r) = truth.items()
    x, y = (np.arange(-reach, reach + 1) + v for v in (q, r))
    g = est(**{a: x[:, None].astype(float), b: y[None, :].astype(float)})
    p = law(scales[0], reach)[:, None] * law(scales[1], reach)[None, :]
    mean = (p * g).sum()
    return mean, (p * (g - mean) ** 2).sum()


@pytest.fixture(scope="module")
def share():
    """Return the share of b, by convention ½ in an empty cell."""
    noise = {"a": tu.DiscreteLaplace(HALF), "b": tu.DiscreteLaplace(HALF)}
    whole = {"a": (0, None), "b": (0, None)}
    return tu.unbiased("where(a + b > 0, b/(a + b), 1/2)", noise, whole)


class TestFormulasOnTheIntegers:
    @pytest.mark.parametrize(
        ("a", "b", "value"),
        [
            (0, 0, 1 / 2),
            (-3, 1, 17 / 6),
            (0, 2, 7 / 6),
            (0, 3, 71 / 60),
            (1, 2, 9 / 10),
            (1, 3, 3 / 4),
            (2, 3, 41 / 70),
            (2, 5, 289 / 420),
        ],
    )
    def test_a_case_of_several_statistics_has_the_known_values(self, share, a, b, value):
        assert share(a=a, b=b) == pytest.approx(value, rel=1e-12)

    @pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 1), (1, 1), (3, 0), (7, 4)])
    def test_it_is_unbiased_in_empty_cells_too(self, share, a, b):
        mean, variance = moments(share, {"a": a, "b": b}, (HALF, HALF))
        assert mean == pytest.approx(b / (a + b) if a + b else 0.5, abs=1e-12)
        assert share.sd(a=a, b=b) == pytest.approx(math.sqrt(variance), rel=1e-9)

    def test_a_denominator_without_a_whole_zero_is_allowed(self):
        noise = {"a": tu.DiscreteLaplace(1), "b": tu.DiscreteLaplace(1)}
        est = tu.unbiased("1/(2*a - 2*b + 1)", noise)
        assert moments(est, {"a": 4, "b": 4}, (1, 1))[0] == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("f", ["1/(a + 3*b - 1000)", "log(a - b)", "1/((a - 70)*b - 4)"])
    def test_what_is_undefined_at_whole_numbers_is_refused(self, f):
        noise = {"a": tu.DiscreteLaplace(1), "b": tu.DiscreteLaplace(1)}
        with pytest.raises(tu.NoUnbiasedEstimator, match="not a finite number") as caught:
            tu.unbiased(f, noise, {"a": (0, None), "b": (0, None)})
        assert caught.value.proved
