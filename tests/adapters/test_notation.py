"""What options say: noise, bounds and names, read without evaluating anything."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trueup as tu
from trueup.adapters.notation import assignment
from trueup.errors import TrueupError
from trueup.noise.reading import known_families


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("laplace(2)", tu.Laplace(2)),
        ("Laplace( 2 )", tu.Laplace(2)),
        ("DiscreteLaplace(1/3)", tu.DiscreteLaplace(Fraction(1, 3))),
        ("discrete_laplace(scale=0.5)", tu.DiscreteLaplace(0.5)),
        ("gaussian(1e-2)", tu.Gaussian(0.01)),
        ("discrete_gaussian(3)", tu.DiscreteGaussian(3)),
        ("rounded_laplace(2)", tu.RoundedLaplace(2)),
        ("rounded_gaussian(2)", tu.RoundedGaussian(2)),
        ("staircase(1, 1)", tu.Staircase(1, 1)),
        ("staircase(1, gamma=none)", tu.Staircase(1)),
        ("student_t(5, scale=2)", tu.StudentT(5, 2)),
        ("uniform(3)", tu.Uniform(3)),
        ("moments([0, 2, -1/3])", tu.Moments([0, 2, Fraction(-1, 3)])),
        ("scipy(norm, scale=2)", tu.ScipyNoise("norm", scale=2)),
        ("noiseless", tu.Noiseless()),
        ("laplace(epsilon=0.5, sensitivity=1)", tu.Laplace(2)),
        ("discrete_laplace(epsilon=1/2)", tu.DiscreteLaplace(2)),
        ("gaussian(rho=1/8)", tu.Gaussian(2)),
        ("gaussian(epsilon=1, delta=1e-5)", tu.Gaussian.from_budget(epsilon=1, delta=1e-5)),
        ("laplace(1) + laplace(2)", tu.Laplace(1) + tu.Laplace(2)),
    ],
)
def test_noise(text, noise):
    assert tu.noise(text) == noise


def test_every_family_can_be_written():
    names = {name for name in tu.__all__ if isinstance(getattr(tu, name), type)}
    noises = {n for n in names if issubclass(getattr(tu, n), tu.Noise)} - {"Noise", "SumNoise"}
    assert {family.__name__ for family in known_families().values()} == noises


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lplace(2)", "did you mean laplace"),
        ("normal(2)", "did you mean gaussian"),
        ("geometric(2)", "did you mean discrete_laplace"),
        ("laplace(2", "never closed"),
        ("laplace()", "scale must be a number, got None"),
        ("laplace(-2)", "must be positive, got -2"),
        ("laplace(wrong=3)", "laplace(scale) or laplace(epsilon, sensitivity)"),
        ("laplace(1/0)", "divide by 0"),
        ("laplace(2)(3)", "expected a noise family"),
        ("laplace(scale=1, scale=2)", "given twice"),
        ("laplace(scale=1, 2)", "follows keyword"),
        ("laplace(x)", "must be a number"),
        ("__import__('os').system('true')", "expected a noise family"),
        ("noise(2)", "no noise family"),
        ("", "invalid syntax"),
        ("2", "expected a noise family"),
        ("laplace(" + "9" * 1000 + ")", "beyond double precision or 40 digits"),
        ("laplace(2, epsilon=1)", "Laplace: scale and epsilon exclude each other"),
        ("laplace(2, sensitivity=3)", "Laplace: scale and sensitivity exclude each other"),
    ],
    ids=range(19),
)
def test_bad_noise_is_refused(text, problem):
    with pytest.raises(TrueupError, match=r"(?s)cannot read.*Hint: ") as caught:
        tu.noise(text)
    assert problem in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(TrueupError):  # and no other error
        tu.noise(text)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("mean = s/n", ("mean", "s/n")),
        ("mean=s/n", ("mean", "s/n")),
        ("s/n", (None, "s/n")),
        ("where(n == 1, 0, 1)", (None, "where(n == 1, 0, 1)")),
        ("x <= 3", (None, "x <= 3")),
        ("`a = b` = 1/n", ("a = b", "1/n")),
        ("`q``r`=3", ("q`r", "3")),
    ],
)
def test_assignment(text, pair):
    assert assignment(text) == pair


@pytest.mark.parametrize(
    "text",
    ["moments(" + "[" * 500, "moments(" + "[" * 100_000, "laplace(1e999)", "laplace(" + "9" * 999],
)
def test_noise_without_end_is_refused(text):
    with pytest.raises(TrueupError):
        tu.noise(text)


@pytest.mark.parametrize("text", ["1E-9999999", "0.00e-999", "3e-400/7", "1e400"])
def test_a_number_that_no_double_holds_is_not_read_as_zero(text):
    if text.startswith("0"):
        with pytest.raises(TrueupError, match="must be positive"):
            tu.noise(f"laplace({text})")
        return
    with pytest.raises(TrueupError, match="is beyond double precision"):
        tu.noise(f"laplace({text})")


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("laplace(scal=5)", "no parameter 'scal'", "did you mean scale?"),
        ("laplace(epsilo=5)", "no parameter 'epsilo'", "did you mean epsilon?"),
        ("laplace(scale=5, epsilon=1)", "scale and epsilon exclude each other", "or the privacy"),
        ("gaussian(sigma=5)", "no parameter 'sigma'", "write gaussian("),
    ],
)
def test_a_slip_in_the_parameters_is_named(text, said, hint):
    with pytest.raises(tu.TrueupError) as caught:
        tu.noise(text)
    assert said in caught.value.message
    assert hint in caught.value.hint
