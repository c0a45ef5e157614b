"""What formulas do beside points that are no fractions, told from values in high precision."""

from __future__ import annotations

import math

import pytest

import trueup as tu


@pytest.mark.parametrize("power", [1.55, 1.8, 1.95])
def test_curvature_of_integrable_square_at_an_irrational_point_has_a_variance(power: float) -> None:
    """|q² − 2|^p has the curvature |q − √2|^(p−2) there; V̂ is 2b²f′² + b⁴f″² elsewhere."""
    est = tu.unbiased(f"abs(q**2 - 2)**{power}", tu.Laplace(0.5), (0.5, 3))
    u, x = 1.2**2 - 2, 1.2
    slope = power * abs(u) ** (power - 1) * math.copysign(2 * x, u)
    bend = power * (power - 1) * abs(u) ** (power - 2) * 4 * x**2
    bend += power * abs(u) ** (power - 1) * math.copysign(2, u)
    assert est.variance(x) == pytest.approx(2 * 0.25 * slope**2 + 0.0625 * bend**2, rel=1e-12)


@pytest.mark.parametrize("power", [1.2, 1.45])
def test_steeper_curvature_at_an_irrational_point_has_none(power: float) -> None:
    est = tu.unbiased(f"abs(q**2 - 2)**{power}", tu.Laplace(0.5), (0.5, 3))
    assert est.sd(1.0) == math.inf
    with pytest.raises(tu.InfiniteVariance):
        est.variance(1.2)


@pytest.mark.parametrize(
    "f", ["tanh(cosh(0.1/q))", "tanh(cosh((q - 0.1)/q)**1.5)", "exp(-cosh(1/q))"]
)
def test_what_cannot_be_computed_beside_a_point_is_not_called_a_pole(f: str) -> None:
    """All are bounded: nothing is proved by values that are beyond reach."""
    with pytest.raises(tu.NoUnbiasedEstimator, match="no limit") as refused:
        tu.unbiased(f, tu.Laplace(1))
    assert not refused.value.proved
