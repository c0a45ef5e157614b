"""What sympy objects to deep inside is told as a reason; faults of our own are not hidden."""

import pytest
import sympy

import trueup as tu
from trueup.formula.objections import objections

Q = sympy.Symbol("q", real=True)


def test_sympys_objections_are_reasons():
    reason = pytest.raises(tu.NoUnbiasedEstimator, match=r"was found: .*could not be analysed")
    with reason as info, objections(Q):
        sympy.Max(sympy.I, 1)
    assert not info.value.proved
    assert info.value.__cause__ is not None


def test_other_errors_pass():
    with pytest.raises(TypeError, match="unsupported"), objections(Q):
        _ = 1 + None


@pytest.mark.parametrize(
    ("f", "noise", "domain"),
    [
        (
            "atan(where(n <= (-2), min(where(not ((n <= (-2) or n > (-2))), 3, n), "
            "abs((n - (-2)))**3, acosh(n)), exp(n)))",
            tu.Laplace(3),
            (None, -2),
        ),
        (
            "where(not (q == 100), max((10 / ((q - 100)) - 1.5), acos((q * q)), max(1.5, q)), q)",
            tu.Laplace(1.7),
            None,
        ),
    ],
)
def test_formulas_that_sympy_objects_to(f, noise, domain):
    with pytest.raises(tu.NoUnbiasedEstimator):
        tu.unbiased(f, noise, domain)
