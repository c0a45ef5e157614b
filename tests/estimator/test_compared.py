"""What formulas compare must be real, and is not blamed for what else is not."""

from __future__ import annotations

import pytest

import trueup as tu


def test_of_many_places_one_near_0_is_named() -> None:
    with pytest.raises(tu.NoUnbiasedEstimator, match=r"at q = 0\.3\d*, inside"):
        tu.unbiased("max(1, asin((q - 1)/q))", tu.Laplace(1))


@pytest.mark.parametrize(
    ("compared", "blamed"),
    [
        ("min(1/(q**2 + 1), 2)", False),
        ("min(1/(2 + cos(q)), 2)", False),
        ("min(1/(-2 - cos(q)), 2)", False),
        ("where(log(q**2 + 1) > 1, 1, 0)", False),
        ("min(1/(q - 3), 2)", True),
        ("min(sqrt(q), 2)", True),
    ],
)
def test_comparisons_are_blamed_if_they_may_not_be_real(compared: str, blamed: bool) -> None:
    """The logarithm beside them is no number at −1."""
    with pytest.raises(tu.NoUnbiasedEstimator) as info:
        tu.unbiased(f"log(q) + {compared}", tu.DiscreteLaplace(1), (-1, None))
    assert ("compares" in info.value.message) == blamed
