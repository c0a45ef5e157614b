"""A Python function receives its statistics by name, and its derivatives are compared with it."""

import functools
import math

import numpy as np
import pytest

import trueup as tu

NOISE = {"n": tu.DiscreteLaplace(2), "s": tu.DiscreteLaplace(3)}


def plain(s, n):
    return s / (n * n + 1)


def positional(s, n, /):
    return plain(s, n)


def by_keyword(*, s, n):
    return plain(s, n)


def with_default_between(s, k=2, n=9):
    return s / (n**k + 1)


def collecting(**given):
    return plain(given["s"], given["n"])


class Callable:
    def __call__(self, s, n):
        return plain(s, n)


FUNCTIONS = [
    plain,
    by_keyword,
    with_default_between,
    collecting,
    Callable(),
    functools.partial(with_default_between, k=2),
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: getattr(f, "__name__", type(f).__name__))
@pytest.mark.parametrize("order", [("n", "s"), ("s", "n")])
def test_statistics_are_passed_by_name_whatever_their_order(f, order):
    noise = {name: NOISE[name] for name in order}
    est, formula = tu.unbiased(f, noise), tu.unbiased("s/(n*n + 1)", noise)
    assert est(n=3, s=10) == pytest.approx(formula(n=3, s=10), rel=1e-12)
    several = {"n": np.array([3, -1]), "s": np.array([10, 4])}
    assert est(**several) == pytest.approx(formula(**several), rel=1e-12)
    assert est.variance(n=3, s=10) == pytest.approx(formula.variance(n=3, s=10), rel=1e-10)


def test_the_plug_in_binds_by_name_too():
    by_function = tu.plugin_bias(plain, NOISE)(n=3, s=10)
    assert by_function == pytest.approx(tu.plugin_bias("s/(n*n + 1)", NOISE)(n=3, s=10), rel=1e-9)


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda a, b: a / b, "required argument: 'a'"),
        (lambda s: s, "unexpected keyword argument 'n'"),
        (lambda s, n, k: s * n * k, "required argument: 'k'"),
        (lambda *x: x[0], "unexpected keyword argument"),
        (positional, "argument|positional"),
        (math.hypot, "argument|no signature"),
        (np.hypot, "argument|no signature"),  # old NumPy has no names for them
    ],
)
def test_what_does_not_match_is_refused(f, reason):
    with pytest.raises(tu.TrueupError, match=reason):
        tu.unbiased(f, NOISE)


@pytest.mark.parametrize("f", [lambda a, b: a, lambda: 1.0, lambda *, k: k, lambda *, q: q])
def test_one_statistic_needs_a_function_of_one_argument(f):
    with pytest.raises(tu.TrueupError, match=r"function of one argument"):
        tu.unbiased(f, tu.DiscreteLaplace(1))
    with pytest.raises(tu.TrueupError, match=r"function of one argument"):
        tu.mechanisms.OptimalRelease(f, (0, 3), 1)


def test_one_statistic_may_have_any_name():
    assert tu.unbiased(lambda anything: 2 * anything, {"n": tu.DiscreteLaplace(1)})(
        3
    ) == pytest.approx(6)


def minus_sin(x):
    return -math.sin(x)


@pytest.mark.parametrize(
    ("f", "domain", "derivatives"),
    [
        (math.sin, None, (math.cos, math.sin)),
        (math.sin, None, (lambda x: -math.cos(x), minus_sin)),
        (math.sin, None, (minus_sin, math.cos)),
        (lambda x: 1 / x, (1, None), (lambda x: -1 / x**2, lambda x: -2 / x**3)),
        (lambda x: x**3, (None, 4), (lambda x: 3 * x**2, lambda x: 6 * x + 1)),
        (math.log, (10**6, 10**9), (lambda x: 1 / x, lambda x: -1 / x)),
        (lambda x: 5.0, None, (lambda x: 1.0, lambda x: 0.0)),
    ],
)
def test_derivatives_that_contradict_the_function_are_refused(f, domain, derivatives):
    with pytest.raises(tu.TrueupError, match=r"derivatives\[[01]\]"):
        tu.unbiased(f, tu.Laplace(1), domain, derivatives=derivatives)


@pytest.mark.parametrize(
    ("f", "domain", "derivatives"),
    [
        (math.sin, None, (math.cos, minus_sin)),
        (
            lambda x: math.sin(100 * x),
            None,
            (lambda x: 100 * math.cos(100 * x), lambda x: -10_000 * math.sin(100 * x)),
        ),
        (lambda x: x * abs(x), None, (lambda x: 2 * abs(x), lambda x: 2 * np.sign(x))),
        (lambda x: 1e9 + x, None, (lambda x: 1.0, lambda x: 0.0)),
        (lambda x: np.float32(math.sin(x)), None, (math.cos, minus_sin)),
        (math.log, (10**6, 10**9), (lambda x: 1 / x, lambda x: -1 / x**2)),
        (np.exp, (None, 3), (np.exp, np.exp)),
        (math.sqrt, (1, None), (lambda x: 0.5 / math.sqrt(x), lambda x: -0.25 * x**-1.5)),
    ],
)
def test_derivatives_that_agree_are_taken(f, domain, derivatives):
    assert tu.unbiased(f, tu.Laplace(1), domain, derivatives=derivatives).estimand is not None


def zero(q):
    return 0.0 * q


@pytest.mark.parametrize(
    ("f", "domain", "derivatives", "goes"),
    [
        (lambda q: abs(q - 3.7), (1, None), (lambda q: np.sign(q - 3.7), zero), "f', .* -1 .* 1 "),
        (
            lambda q: np.where(q > 1e5, 7.0, q),
            (1, None),
            (lambda q: 1.0 * (q <= 1e5), zero),
            "f, which goes from 44722.* to 7 ",
        ),
        (abs, None, (np.sign, zero), "f', .* -1 at .* to -?0 at"),
        (np.floor, (0.5, 9), (zero, zero), "f, which goes from 0 at .* to 1 "),
        (lambda q: abs(q + 5e6), (None, -1), (lambda q: np.sign(q + 5e6), zero), "f', .* -1 .* 1 "),
        (lambda q: q + (q > 40), (0, 100), (lambda q: 1 + 0 * q, zero), "f, which goes"),
    ],
)
def test_derivatives_that_do_not_integrate_to_the_function_are_refused(
    f, domain, derivatives, goes
):
    with pytest.raises(tu.TrueupError, match=rf"derivatives\[[01]\] does not explain {goes}"):
        tu.unbiased(f, tu.Laplace(1), domain, derivatives=derivatives)


@pytest.mark.parametrize(
    ("f", "domain", "derivatives"),
    [
        (np.sin, None, (np.cos, lambda q: -np.sin(q))),
        (lambda q: q * q * abs(q), None, (lambda q: 3 * q * abs(q), lambda q: 6 * abs(q))),
        (np.sqrt, (1e-9, None), (lambda q: 0.5 / np.sqrt(q), lambda q: -0.25 * q**-1.5)),
        (  # derivatives by differences have few digits
            np.log,
            (1, None),
            (
                lambda q: (np.log(q + 1e-4) - np.log(q - 1e-4)) / 2e-4,
                lambda q: (np.log(q + 1e-4) - 2 * np.log(q) + np.log(q - 1e-4)) / 1e-8,
            ),
        ),
        (np.exp, None, (np.exp, np.exp)),
    ],
)
def test_wavy_and_rough_derivatives_are_taken(f, domain, derivatives):
    assert tu.unbiased(f, tu.Laplace(0.25), domain, derivatives=derivatives).estimand is not None


def test_one_statistic_has_the_name_of_the_parameter():
    noise = tu.DiscreteLaplace(1)
    assert tu.unbiased(lambda n: 2 * n, noise).statistics == ("n",)
    assert tu.unbiased(lambda n: 2 * n, noise, {"n": (1, None)})(n=3) == pytest.approx(6)
    assert tu.unbiased(lambda n, k=2: k * n, noise).statistics == ("n",)
    for nameless in (np.exp2, math.exp, lambda *given: 2 * given[0], lambda _: 1.0):
        assert tu.unbiased(nameless, tu.DiscreteLaplace(0.2), (0, 9)).statistics == ("q",)


@pytest.mark.parametrize("domain", [{"n": (1, None)}, {"n": (1, None), "s": tu.Integers(0, None)}])
def test_a_function_of_several_statistics_is_pointed_to_formulas_only(domain):
    noise = {"s": tu.Laplace(5), "n": tu.DiscreteLaplace(2)}
    with pytest.raises(tu.TrueupError, match=r"formula$") as refusal:
        tu.unbiased(lambda s, n: s / n, noise, domain)
    assert "derivatives=" not in str(refusal.value)
    assert "Integers" not in str(refusal.value).partition("Hint")[2]
