"""Rules of the library's own integrals, against integrals known otherwise."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import trueup as tu
from trueup.inverse.expectation import panels


@pytest.mark.parametrize("b", [0.15, 0.4, 0.8, 6.0, 60.0])
def test_what_jumps_at_integers_is_integrated_by_the_first_rule(b: float) -> None:
    """∫ tanh²((x − ⌊x⌋ − ½)/b) dP over [−3, 4], cell by cell in 30 digits."""
    q, start, stop = 0.3, -3, 4
    rule = panels(tu.Laplace(b), q, (start, stop), (), 0, 0.0)
    height = np.tanh((rule.nodes - np.floor(rule.nodes) - 0.5) / b) ** 2
    with mpmath.workdps(30):
        exact = mpmath.mpf(0)
        for k in range(start, stop):
            inner = [k, k + q, k + 1] if k == math.floor(q) else [k, k + 1]
            exact += mpmath.quad(lambda x, k=k: _height(x, k, q, b), inner)
    assert rule.weights @ height == pytest.approx(float(exact), rel=3e-14, abs=0)


def _height(x: mpmath.mpf, k: int, q: float, b: float) -> mpmath.mpf:
    return mpmath.tanh((x - k - 0.5) / b) ** 2 * mpmath.exp(-abs(x - q) / b) / (2 * b)
