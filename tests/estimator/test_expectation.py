"""Expectations over the noise: known numbers, sums that overflow, series beyond the bounds."""

from __future__ import annotations

import re

import pytest

import trueup as tu

KNOWN = [
    ("log(s + n)", (1, None)),
    ("s*log(n)", (0, None)),
    ("1/(s**2 + n)", (None, None)),
    ("sqrt(n)/(s + n)", (0, 9)),
    ("n**s", (0, 4)),
    ("exp(n)/(s**2 + n**2)", (1, None)),
]


@pytest.mark.parametrize(("f", "domain"), KNOWN, ids=str)
@pytest.mark.parametrize("noise", [tu.Laplace(1), tu.DiscreteLaplace(1)], ids=repr)
def test_a_known_number_is_like_a_constant(f: str, domain: tuple, noise: tu.Noise) -> None:
    known = tu.unbiased(f, {"s": noise, "n": tu.Noiseless()}, {"s": domain, "n": (1, None)})
    plain = tu.unbiased(re.sub(r"\bn\b", "3", f), {"s": noise}, {"s": domain})
    assert known(s=1, n=3) == pytest.approx(plain(s=1), rel=1e-12)
    assert known.variance(s=1, n=3) == pytest.approx(plain.variance(s=1), rel=1e-9)
    assert known.expectation(s=2, n=3) == pytest.approx(plain.expectation(s=2), rel=1e-9)
    assert known.sd(s=2, n=3) == pytest.approx(plain.sd(s=2), rel=1e-9)
