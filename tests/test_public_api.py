"""The names outside callers rely on, and what importing them costs."""

import subprocess
import sys

import pytest

import trueup as tu

CONTRACT = [
    "DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Integers", "Laplace", "Mass", "Moments",
    "NoUnbiasedEstimator", "Noise", "RoundedGaussian", "RoundedLaplace", "Staircase", "StudentT",
    "SelectionWarning", "TrueupError", "Uniform", "noise", "read_spec",
    "from_census", "from_diffprivlib", "from_opendp", "from_pipelinedp", "from_pydp", "from_tumult",
    "debias", "frontier", "mechanisms", "nearly_unbiased", "noisy", "plugin_bias", "published",
    "ratio", "release", "report", "total", "unbiased", "where",
]  # fmt: skip
HEAVY = ("pandas", "polars", "matplotlib", "numba", "duckdb", "pyarrow", "scipy.stats")


@pytest.mark.parametrize("name", CONTRACT)
def test_contract_names_are_exported(name):
    assert name in tu.__all__
    assert getattr(tu, name)


def test_all_is_sorted_and_complete():
    assert tu.__all__ == sorted(tu.__all__)
    assert all(hasattr(tu, name) for name in tu.__all__)


def test_import_loads_nothing_heavy():
    code = f"import sys, trueup; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603  (our own code)
    assert out.stdout.strip() == "[]"


def test_every_error_is_a_value_error_with_a_hint():
    with pytest.raises(ValueError, match=r"(?s)scale must be positive, got -1.*\nHint: ") as caught:
        tu.Laplace(-1)
    assert isinstance(caught.value, tu.TrueupError)


@pytest.mark.parametrize(
    "noise",
    [
        tu.Laplace(tu.Fraction(1, 3)),
        tu.DiscreteLaplace(0.7),
        tu.Gaussian(2),
        tu.DiscreteGaussian(3),
        tu.RoundedLaplace(tu.Fraction(1, 3)),
        tu.RoundedGaussian(0.7),
        tu.Mass({-1: tu.Fraction(1, 4), 0: tu.Fraction(1, 2), 2: tu.Fraction(1, 4)}),
        tu.Mass({0: 0.3, 1: 0.7}),
        tu.Staircase(1, 2, 0.25),
        tu.StudentT(5, 2),
        tu.Uniform(3),
        tu.Moments([0, 2]),
        tu.ScipyNoise("logistic", loc=0, scale=2),
        tu.Noiseless(),
    ],
    ids=repr,
)
def test_repr_evaluates_back(noise):
    names = {name: getattr(tu, name) for name in tu.__all__}
    assert eval(repr(noise), names) == noise  # noqa: S307  (our own repr)
