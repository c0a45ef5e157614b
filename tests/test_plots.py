"""Pictures: what is drawn are the numbers, labels say what they are, lines read without colour."""

import sys

import numpy as np
import pytest

import trueup as tu
from extras import needs

matplotlib = needs("matplotlib", "the pictures need matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

LAPLACE = tu.unbiased("1/n", tu.Laplace(2), (1, None))
INTEGER = tu.unbiased("1/n", tu.DiscreteLaplace(2), (1, None))
RATIO = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_estimate_draws_the_formula_and_the_plug_in():
    x = np.linspace(-3, 12, 31)
    drawn = lines(LAPLACE.plot(x))
    estimate = drawn["unbiased estimate"].get_ydata()
    with np.errstate(divide="ignore", invalid="ignore"):
        assert estimate == pytest.approx(np.where(x <= 1, 3, 1 / x - 8 / x**3))
        plug_in = drawn["plug-in f(x)"].get_ydata()
        shown = np.isfinite(plug_in)
        assert shown.sum() > 20
        assert plug_in[shown] == pytest.approx(1 / x[shown])


def test_default_range_covers_the_domain_and_its_noise():
    x = lines(LAPLACE.plot())["unbiased estimate"].get_xdata()
    sd = np.sqrt(8)
    assert x[0] == pytest.approx(1 - 3 * sd)
    assert x[-1] == pytest.approx(1 + 15 * sd)
    assert set(lines(INTEGER.plot())["unbiased estimate"].get_xdata() % 1) == {0.0}


def test_labels_carry_units():
    axes = LAPLACE.plot(unit="persons", value_unit="1/persons")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("published n (persons)", "1/n (1/persons)")


def test_several_statistics_need_one_to_vary():
    axes = RATIO.plot([5.0, 9.0], at={"s": 40})
    expected = [RATIO(s=40.0, n=5), RATIO(s=40.0, n=9)]
    assert lines(axes)["unbiased estimate"].get_ydata() == pytest.approx(expected)
    for wrong in ({}, {"at": {"s": 1, "n": 2}}, {"over": "z"}, {"at": {"z": 1}}):
        with pytest.raises(tu.TrueupError, match="one statistic"):
            RATIO.plot(**wrong)


def test_infinite_variance_has_no_band():
    est = tu.unbiased("exp(0.6*q)", tu.Laplace(1))
    assert not est.plot([0.0, 1.0]).collections
    assert LAPLACE.plot([2.0, 3.0]).collections


@pytest.mark.parametrize(
    "noise", [tu.StudentT(2), tu.StudentT(1.5), tu.Moments([0]), tu.Noiseless()], ids=repr
)
@pytest.mark.parametrize("domain", [None, (1, None), (None, 3), (0, 10)], ids=str)
def test_noise_without_a_variance_and_no_noise_have_a_picture(noise, domain):
    """A range of some width inside the domain and around it, and the estimates there."""
    est = tu.unbiased("2*q + 1", noise, domain)
    drawn = lines(est.plot())["unbiased estimate"]
    x = drawn.get_xdata()
    inside = [bound for bound in domain or () if bound is not None]
    assert x[-1] - x[0] > 4
    assert all(x[0] < bound < x[-1] for bound in inside)
    assert drawn.get_ydata() == pytest.approx(2 * x + 1)


def test_given_axes_are_used():
    _, (left, right) = pyplot.subplots(1, 2)
    assert LAPLACE.plot([2.0, 3.0], ax=left) is left
    assert INTEGER.plot([2.0, 3.0], ax=right) is right


def test_without_matplotlib_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(tu.MissingExtra, match=r"trueup\[plots\]"):
        LAPLACE.plot()


def test_the_picture_of_a_report_has_its_numbers():
    pl = needs("polars")
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"n": rng.integers(1, 60, 400) + tu.DiscreteLaplace(2).sample(400, rng)})
    found = tu.report(table, inverse=INTEGER)
    one, average = found.plot("inverse")
    rows, every = found.rows[:-1], found.rows[-1]
    for kind, label in (("unbiased", "unbiased"), ("clipped", "clipped")):
        assert lines(one)[label].get_ydata() == pytest.approx([row[kind] for row in rows])
        m, error = lines(average)[label].get_data()
        bias = every[f"{kind}_bias"]
        assert error**2 == pytest.approx(bias**2 + (every[kind] ** 2 - bias**2) / m)
    assert [t.get_text() for t in one.get_xticklabels()] == [row["sizes"] for row in rows]
    ahead = lines(average)["unbiased"].get_ydata() < lines(average)["clipped"].get_ydata()
    assert m[ahead][0] == pytest.approx(every["break_even"], rel=0.1)
    with pytest.raises(tu.TrueupError, match="there is no estimate 'pay'\nHint: there are inverse"):
        found.plot("pay")
