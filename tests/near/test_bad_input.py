"""What cannot be had is refused, with what can."""

import math
import sys

import numpy as np
import pytest

import depth
import trueup as tu
from trueup.near import programme

NOISE = tu.DiscreteGaussian(2)
LAPLACE = tu.DiscreteLaplace(3)


@pytest.mark.parametrize("bias", [0, -0.1, math.nan, math.inf, "small", True], ids=repr)
def test_a_bias_bound_is_a_positive_number(bias):
    with pytest.raises(tu.TrueupError, match=r"(?s)max_bias must be .*, got.*\nHint: "):
        tu.nearly_unbiased("1/n", NOISE, (1, 50), bias)


@pytest.mark.parametrize(
    ("f", "noise", "domain"),
    [
        ("1/n", NOISE, (0, 50)),
        ("1/n", tu.Gaussian(2), (0, 50)),
        ("1/n", tu.Gaussian(2), (-3, 50)),
        ("1/(n - 20)", NOISE, (1, 50)),
        ("log(n)", tu.Gaussian(2), (0, 5)),
        ("sqrt(n - 20)", tu.Gaussian(2), (1, 50)),
    ],
    ids=str,
)
def test_f_is_bounded_on_the_domain(f, noise, domain):
    with pytest.raises(tu.TrueupError, match=r"(?s)is not bounded on .*larger lower bound"):
        tu.nearly_unbiased(f, noise, domain, 0.1)


@pytest.mark.parametrize("noise", [NOISE, tu.Gaussian(2)], ids=repr)
def test_nothing_is_small_relative_to_zero(noise):
    with pytest.raises(tu.TrueupError, match=r"(?s)log\(n\) is zero at 1: .*relative=False"):
        tu.nearly_unbiased("log(n)", noise, (1, 50), 0.1, relative=True)
    with pytest.raises(tu.TrueupError, match="is zero at 5"):
        tu.nearly_unbiased("n - 5", noise, (1, 50), 0.1, relative=True)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("flat", "no prior is called 'flat'"),
        (5, "weights of the true values, got 5"),
        ([1, 2], "2 prior weights for 50 true values"),
        ([0] * 50, "not all zero"),
        ([-1, *[1] * 49], "one is -1"),
        ({200: 1}, "200, which is not in"),
        ({1: math.inf}, "the prior at 1 must be finite"),
        (lambda q: -q, "it is -1.0 at 1"),
        (lambda q: 0 * q, "zero on the whole domain"),
        (lambda q: q * math.nan, "it is nan at 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_prior_has_a_positive_sum(prior, message):
    with pytest.raises(tu.TrueupError, match=message):
        tu.nearly_unbiased("1/n", NOISE, (1, 50), 0.1, relative=True, prior=prior)


def test_priors_need_the_right_domain():
    with pytest.raises(tu.TrueupError, match="integer true values on a bounded domain"):
        tu.nearly_unbiased("1/n", tu.Gaussian(2), (1, 50), 0.1, prior={3: 1})
    with pytest.raises(tu.TrueupError, match="needs a positive domain"):
        tu.nearly_unbiased("n", NOISE, (0, 50), 0.1, prior="log-uniform")


@pytest.mark.parametrize("noise", depth.few([tu.DiscreteGaussian(5), tu.Gaussian(5)], 1), ids=repr)
def test_what_can_be_reached_is_said(noise):
    with pytest.raises(
        tu.TrueupError, match=r"cannot be reached .* least that was reached is"
    ) as e:
        tu.nearly_unbiased("1/n", noise, (1, 60), 1e-5, relative=True)
    works = float(e.value.hint.split("max_bias=")[1].split(" ")[0])
    assert 1e-5 < works < 0.1
    est = tu.nearly_unbiased("1/n", noise, (1, 60), works, relative=True)
    assert est.bias_bound <= works
    assert works < 1.3 * float(e.value.args[0].split("was reached is ")[1].split("\n")[0])


@pytest.mark.parametrize(
    ("f", "noise", "domain", "side"),
    [
        ("1/n", tu.StudentT(2), (5, None), "above"),
        ("n**3.5", tu.DiscreteGaussian(2), (1, None), "above"),
        ("exp(q/5)*log(q)", tu.Gaussian(2), (2, None), "above"),
        ("exp(-q/5)*log(9 - q)", tu.Gaussian(2), (None, 2), "below"),
        (lambda n: 1 / n, NOISE, (1, None), "above"),
    ],
    ids=["no variance", "bending", "growing", "growing down", "function"],
)
def test_on_an_unbounded_domain_f_has_to_settle(f, noise, domain, side):
    with pytest.raises(tu.TrueupError, match=f"a domain that is bounded {side}"):
        tu.nearly_unbiased(f, noise, domain, 1e-4)


def test_a_pole_of_a_case_that_begins_at_the_next_integer_is_none():
    est = tu.nearly_unbiased("where(n > 0, 1/n, 0)", tu.DiscreteLaplace(2), (0, None), cells=100)
    assert 0.1 < est.bias_bound < 0.5


def test_a_square_is_zero_at_0_on_all_integers_too():
    with pytest.raises(tu.TrueupError, match="is zero at 0"):
        tu.nearly_unbiased("n**2", NOISE, None, 0.1, relative=True)


def test_a_pole_between_infinite_ends():
    with pytest.raises(tu.TrueupError, match=r"not bounded on .*: at 0 it is infinite"):
        tu.nearly_unbiased("1/n", NOISE, None, 0.01)


def test_a_solver_that_fails_is_no_estimator(monkeypatch):
    monkeypatch.setattr(programme, "_solve", lambda *args: None)
    with pytest.raises(tu.TrueupError, match="was found"):
        tu.nearly_unbiased("1/n", NOISE, (1, 50), 0.05, relative=True)


def test_a_solver_that_lies_is_no_estimator(monkeypatch):
    honest = programme._solve

    def sloppy(*args):
        found = honest(*args)
        return None if found is None else found * 1.5

    monkeypatch.setattr(programme, "_solve", sloppy)
    with pytest.raises(tu.TrueupError, match=r"cannot be reached|was found"):
        tu.nearly_unbiased("1/n", NOISE, (1, 50), 0.05, relative=True)


def test_no_noise_no_programme():
    with pytest.raises(tu.TrueupError, match="adds nothing"):
        tu.nearly_unbiased("1/n", tu.Noiseless(), (1, 50), 0.1)


def test_too_many_knots():
    with pytest.raises(tu.TrueupError, match="more than 400 knots"):
        tu.nearly_unbiased("1/(1 + q**2)", tu.Gaussian(0.01), None, 1e-5)


def test_noise_of_which_only_moments_are_known():
    with pytest.raises(tu.TrueupError, match=r"(?s)only moments of the noise are known.*its law"):
        tu.nearly_unbiased("1/q", tu.Moments([0, 2, 0, 24]), (5, 20), 0.05, relative=True)


def test_terms_that_may_cancel():
    noise = {"s": tu.Laplace(0.01), "n": NOISE, "m": NOISE}
    for f in ("10/n - s", "s/n + s/m"):
        used = {name: law for name, law in noise.items() if name in f}
        with pytest.raises(tu.TrueupError, match="its terms may cancel"):
            tu.nearly_unbiased(f, used, dict.fromkeys(used, (5, 20)), 0.02, relative=True)


def test_the_solver_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(tu.MissingExtra, match=r"pip install 'trueup\[near\]'"):
        tu.nearly_unbiased("1/n", NOISE, (1, 50), 0.05, relative=True)


def test_the_refusal_of_unbiased_points_here():
    with pytest.raises(tu.NoUnbiasedEstimator, match="nearly_unbiased"):
        tu.unbiased("1/n", tu.Gaussian(2), (1, None))


def test_values_in_empty_cells_are_refused_with_a_way_out():
    noise, hint = (
        {"s": LAPLACE, "n": LAPLACE},
        r"\nHint: bound the denominator away from 0, at least 1",
    )
    with pytest.raises(tu.TrueupError, match=r"empty=0 does not go with .*" + hint):
        tu.nearly_unbiased("s/n", noise, {"n": (0, None)}, cells=400, empty=0)
    with pytest.raises(tu.NoUnbiasedEstimator, match=r"n = 0.*" + hint):
        tu.nearly_unbiased("s/n", noise, {"n": (0, None)}, cells=400)
    advised = tu.nearly_unbiased("s/n", noise, {"n": (1, None)}, cells=400)
    k = np.arange(-120, 121)
    masses = np.outer(LAPLACE.pmf(k), LAPLACE.pmf(k))
    assert abs(np.sum(masses * advised(s=k[:, None], n=k[None, :]))) < 1e-9
