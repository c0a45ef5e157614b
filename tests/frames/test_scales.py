"""Noise scales per row: the symbolic scale against one estimator for each level."""

import dataclasses
import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup as tu
from extras import needs
from frames.backends import same
from trueup.kernels.grid import columns

KINDS = {
    "laplace": ("1/q", tu.Laplace(2), (1, None), "optimal"),
    "laplace between": ("log(q)", tu.Laplace(2), (1, 30), "optimal"),
    "laplace line": ("q**3", tu.Laplace(2), None, "optimal"),
    "degree 7": ("1/q", tu.Laplace(2), (1, None), 7),
    "discrete": ("1/q", tu.DiscreteLaplace(2), (1, None), "optimal"),
    "discrete kink": ("abs(q - 4)", tu.DiscreteLaplace(2), (0, 9), "optimal"),
    "gaussian": ("q**4 - q", tu.Gaussian(2), None, "optimal"),
    "gaussian growth": ("exp(q/10)*q", tu.Gaussian(2), None, "optimal"),
    "student": ("q**2", tu.StudentT(9, 2), None, "optimal"),
    "uniform": ("q**4", tu.Uniform(2), None, "optimal"),
}
LEVELS = [Fraction(1, 4), Fraction(1), Fraction(5, 2), Fraction(40)]


def on_arrays(grid, *arrays):
    return columns(grid, None, arrays, ("value",))[0]


def at_level(noise, level):
    name = "width" if isinstance(noise, tu.Uniform) else "scale"
    return dataclasses.replace(noise, **{name: level})


@pytest.mark.parametrize("kind", KINDS)
def test_one_formula_for_all_levels(kind):
    f, noise, domain, extension = KINDS[kind]
    scaled = tu.unbiased(f, noise, domain, extension)._scaled(("q",))
    x = np.arange(-30.0, 60.0)
    for level in LEVELS:
        if f.startswith("exp(") and level > 3:
            continue
        single = tu.unbiased(f, at_level(noise, level), domain, extension)
        b = np.full(len(x), float(level))
        for what, want in (("value", single(x)), ("variance", single.variance(x))):
            got = on_arrays(scaled.grid(what), x, b)
            assert np.allclose(got, want, rtol=1e-11, atol=1e-12 * np.abs(want).max())
    off = on_arrays(scaled.grid("value"), x, b * 1.001)
    assert not np.allclose(off, single(x), rtol=1e-11)


def test_several_statistics_and_some_scales():
    noise = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(3)}
    est = tu.unbiased("s/n", noise, {"n": (1, None)})
    s, n = np.meshgrid(np.linspace(-5, 5, 11), np.arange(-3.0, 20.0))
    s, n = s.ravel(), n.ravel()
    for names in (("s",), ("n",), ("n", "s")):
        scaled = est._scaled(names)
        new = noise | {name: at_level(noise[name], Fraction(7, 5)) for name in names}
        single = tu.unbiased("s/n", new, {"n": (1, None)})
        scales = [np.full(len(s), 1.4) for _ in names]
        for what, want in (("value", single(s=s, n=n)), ("variance", single.variance(s=s, n=n))):
            got = on_arrays(scaled.grid(what), s, n, *scales)
            assert np.allclose(got, want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("b", [0.05, 0.3, 1.0, 30.0, 1e3])
def test_discrete_scales_keep_their_digits(b):
    """Against the formulas of the discrete Laplace inverse, summed with 50 digits."""
    scaled = tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None))._scaled(("n",))
    with mpmath.workdps(50):
        alpha = mpmath.exp(-1 / mpmath.mpf(b))
        lam, kappa = alpha / (1 - alpha) ** 2, alpha / (1 - alpha)

        def f(k):
            return 1 / mpmath.mpf(k)

        for x in (-7, 1, 2, 3, 50, 10**6):
            if x <= 1:
                g, v = f(1) - kappa * (f(2) - f(1)), lam * (f(2) - f(1)) ** 2
            else:
                up, down = f(x + 1) - f(x), f(x - 1) - f(x)
                g = f(x) - lam * (up + down)
                v = lam * (up**2 + down**2) + lam**2 * (up + down) ** 2
            size = abs(f(max(x, 1))) + abs(g)
            assert abs(scaled.grid("value").number(float(x), b) - g) <= 1e-9 * size
            assert abs(scaled.grid("variance").number(float(x), b) - v) <= 1e-9 * v


@pytest.mark.parametrize(
    "noise",
    [tu.DiscreteGaussian(2), tu.Staircase(1), tu.Moments([0, 1, 0, 3]), tu.Noiseless()],
    ids=lambda n: type(n).__name__,
)
def test_families_without_a_scale_are_refused(noise):
    with pytest.raises(tu.TrueupError, match=r"(?s)no scale that could differ.*one estimator per"):
        tu.unbiased("q", noise)._scaled(("q",))


@pytest.mark.parametrize("noise", [tu.Uniform(2), tu.Gaussian(2)], ids=repr)
def test_waves_are_refused(noise):
    with pytest.raises(tu.TrueupError, match=r"cannot be debiased.*but no waves"):
        tu.unbiased("cos(q)", noise)._scaled(("q",))


def test_growth_limits_the_scale():
    scaled = tu.unbiased("exp(q/5)", tu.Laplace(2))._scaled(("q",))
    assert scaled.largest("value") == {"q": 5.0}
    assert scaled.largest("variance") == {"q": 2.5}
    decaying = tu.unbiased("exp(-q)", tu.Laplace(2), (0, None))._scaled(("q",))
    assert decaying.largest("variance") == {"q": math.inf}


# -- in tables -------------------------------------------------------------------------------------


@functools.cache
def mean_under(bs, bn):
    noise = {"s": tu.Laplace(bs), "n": tu.DiscreteLaplace(bn)}
    return tu.unbiased("s/n", noise, {"n": (1, None)})


MEAN = mean_under(2, 2)
DATA = {
    "s": [51.7, 3.0, None, -2.5, 8.0],
    "n": [103, 25, 7, -4, 2],
    "bs": [1.0, 2.5, 1.0, 0.5, 4.0],
    "bn": [2.0, 0.5, 2.0, 3.0, 2.0],
}


def test_scales_in_a_table(constructor):
    frame = constructor(DATA)
    out = constructor.read(tu.debias(frame, scales={"s": "bs", "n": "bn"}, mean=MEAN))
    for s, n, bs, bn, value, error in zip(
        *(out[c] for c in ("s", "n", "bs", "bn", "mean", "mean_stderr")), strict=True
    ):
        if s is None:
            assert value is None
            assert error is None
            continue
        own = mean_under(bs, bn)
        assert same(value, own(s=s, n=float(n)), 1e-11)
        want = own.stderr(s=s, n=float(n))
        assert same(error, None if math.isnan(want) else want, 1e-10)


def test_one_scale_the_other_declared(constructor):
    out = constructor.read(tu.debias(constructor(DATA), scales={"n": "bn"}, mean=MEAN))
    own = mean_under(2, 0.5)
    assert same(out["mean"][1], own(s=3.0, n=25.0), 1e-11)
    assert same(out["mean_stderr"][1], own.stderr(s=3.0, n=25.0), 1e-10)


@pytest.mark.parametrize("scale", [0.0, -1.0, None], ids=["zero", "negative", "null"])
def test_bad_scales_are_refused_in_memory(eager_constructor, scale):
    frame = eager_constructor(DATA | {"bn": [2.0, 0.5, 2.0, scale, 2.0]})
    what = "missing" if scale is None else f"{scale:g}"
    with pytest.raises(tu.TrueupError, match=f"scale of n is {what} at row 3 .column 'bn'"):
        tu.debias(frame, scales={"n": "bn"}, mean=MEAN)


def test_bad_scales_give_null_in_an_engine(lazy_constructor):
    data = {"s": [51.7, 3.0, -2.5, 8.0, 8.0], "n": [103, 25, -4, 2, 2]}
    frame = lazy_constructor(data | {"bn": [2.0, 0.0, -1.0, None, 2.0]})
    out = lazy_constructor.read(tu.debias(frame, scales={"n": "bn"}, mean=MEAN))
    assert [v is None for v in out["mean"]] == [False, True, True, True, False]
    assert [v is None for v in out["mean_stderr"]] == [False, True, True, True, False]


def test_a_scale_may_be_missing_where_the_number_is(eager_constructor):
    frame = eager_constructor(DATA | {"bs": [1.0, 2.5, None, 0.5, 4.0]})
    out = eager_constructor.read(tu.debias(frame, scales={"s": "bs"}, mean=MEAN))
    assert [v is None for v in out["mean"]] == [False, False, True, False, False]


def test_scales_beyond_the_growth_limit(constructor):
    steep = tu.unbiased("exp(q/5)", tu.Laplace(2))
    frame = constructor({"q": [1.0, 2.0, 3.0], "b": [1.0, 3.0, 6.0]})
    if constructor.eager:
        with pytest.raises(tu.TrueupError, match=r"3 at row 1 .*variance exists only for .* 2\.5"):
            tu.debias(frame, scales={"q": "b"}, e=steep)
        with pytest.raises(tu.TrueupError, match=r"6 at row 2 .*estimator exists only for .* 5"):
            tu.debias(frame, scales={"q": "b"}, e=steep, stderr=False)
    else:
        out = constructor.read(tu.debias(frame, scales={"q": "b"}, e=steep, stderr=False))
        want = math.exp(2 / 5) * (1 - 9 / 25)
        assert out["e"][2] is None
        assert same(out["e"][1], want, 1e-12)


@pytest.mark.filterwarnings("ignore::trueup.BoundWarning")
@settings(max_examples=12)
@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.integers(-20, 200), st.floats(0.1, 20.0)),
        min_size=1,
        max_size=6,
    )
)
def test_drawn_scales(rows):
    pl = needs("polars")
    s, n, b = map(list, zip(*rows, strict=True))
    frame = pl.DataFrame({"s": s, "n": n, "b": b})
    eager = tu.debias(frame, scales={"n": "b"}, stderr=False, mean=MEAN)["mean"].to_list()
    lazy = tu.debias(frame.lazy(), scales={"n": "b"}, stderr=False, mean=MEAN).collect()["mean"]
    for si, ni, bi, value, expression in zip(s, n, b, eager, lazy.to_list(), strict=True):
        want = mean_under(2, bi)(s=si, n=float(ni))
        assert math.isclose(value, want, rel_tol=1e-9, abs_tol=1e-9)
        assert math.isclose(expression, want, rel_tol=1e-9, abs_tol=1e-9)


@functools.cache
def near_ratio(b):
    noise = {"s": tu.Laplace(b), "n": tu.DiscreteLaplace(b)}
    return tu.nearly_unbiased("s/n", noise, {"n": (1, 200)}, 0.2, relative=True)


def test_nearly_unbiased_estimators_are_made_for_each_scale(eager_constructor):
    near = near_ratio(1.0)
    data = {"s": [51.7, 3.0, 8.0, None], "n": [103, 2, 25, 7], "b": [1.0, 2.0, 2.0, 1.0]}
    options = {"scales": {"s": "b", "n": "b"}, "interval": 0.9, "mean": near}
    found = eager_constructor.read(tu.debias(eager_constructor(data), **options))
    for i, (s, n, b) in enumerate(zip(*data.values(), strict=True)):
        own = near_ratio(b)
        names = ("mean", "mean_stderr", "mean_low", "mean_high")
        if s is None:
            assert all(found[name][i] is None for name in names)
            continue
        at = {"s": s, "n": n}
        expected = (own(**at), own.stderr(**at), *own.interval(level=0.9, **at))
        got = [math.nan if found[name][i] is None else found[name][i] for name in names]
        assert got == pytest.approx(expected, nan_ok=True)


def test_too_many_scales_and_engines_are_refused_for_nearly_unbiased_ones(monkeypatch):
    near = near_ratio(1.0)
    monkeypatch.setattr("trueup.near.estimator.MOST_LEVELS", len(near._levels))
    pl = needs("polars")
    frame = pl.DataFrame({"s": [1.0], "n": [2], "b": [0.125]})
    with pytest.raises(tu.TrueupError, match="different noise scales"):
        tu.debias(frame, scales={"n": "b"}, mean=near)
    with pytest.raises(tu.TrueupError, match=r"one noise scale.*\nHint: collect the table"):
        near.sql(scales={"n": "b"})
