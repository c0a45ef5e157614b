"""Pictures: what is drawn are the numbers, labels say what they are, lines read without colour."""

import sys

import numpy as np
import pytest

import trueup as tu
from extras import needs
from trueup.mechanisms import PerRecordSum

matplotlib = needs("matplotlib", "the pictures need matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from trueup import plots  # noqa: E402

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


def test_risk_draws_exact_bias_and_sd():
    rough = tu.unbiased("1/n", tu.Laplace(2), (1, None), extension=3)
    bias, sd = plots.risk(LAPLACE, rough, q=[1, 2, 5], labels=["best", "rough"])
    assert lines(bias)["best"].get_ydata() == pytest.approx(0, abs=1e-9)
    assert lines(sd)["rough"].get_ydata() == pytest.approx([rough.sd(q) for q in (1.0, 2.0, 5.0)])
    assert lines(sd)["delta method"].get_ydata() == pytest.approx(np.sqrt(8) / [1, 4, 25])
    assert "plug-in: E f(x) does not exist" in lines(bias)
    smooth, _ = plots.risk(tu.unbiased("q**2", tu.Laplace(2)), q=[0, 3])
    assert lines(smooth)["plug-in f(x)"].get_ydata() == pytest.approx(8)


def test_every_curve_has_a_line_style_of_its_own():
    bias, _ = plots.risk(*[LAPLACE] * 4, q=[1, 2], labels=list("abcd"))
    styles = [str(lines(bias)[name]._unscaled_dash_pattern) for name in "abcd"]
    assert len({*styles}) == 4


def test_calibration_accepts_the_truth_and_shows_the_plug_in_wrong():
    error, cover = plots.calibration(INTEGER, q=[5, 9], draws=4000, rng=1)
    ours, naive = error.containers
    for drawn, unbiased in ((ours, True), (naive, False)):
        (bars,) = drawn.lines[2]
        crossing = [low <= 0 <= high for (_, low), (_, high) in bars.get_segments()]
        assert all(crossing) is unbiased
    covered = cover.containers[0].lines[0].get_ydata()
    assert min(covered) > 0.94
    with pytest.raises(tu.TrueupError, match="draws must be at least 2, got 1"):
        plots.calibration(INTEGER, draws=1)


def test_policy_draws_loss_and_sd():
    root, log = PerRecordSum("root:2", scale=2), PerRecordSum("log", 0.2, offset=100)
    top, bottom = plots.policy(root, log, records=[1, 100], totals=[10.0, 1000.0], unit="dollars")
    first = top.get_lines()[0]
    assert first.get_ydata() == pytest.approx([0.5, 5.0])
    assert bottom.get_lines()[1].get_ydata() == pytest.approx([log.sd(10) / 10, log.sd(1e3) / 1e3])
    assert top.get_xlabel() == "record (dollars)"
    assert (
        plots.policy(PerRecordSum("root:2", 2, noise="gaussian"))[0].get_ylabel().endswith("zCDP)")
    )


def test_given_axes_are_used():
    _, (left, right) = pyplot.subplots(1, 2)
    assert LAPLACE.plot([2.0, 3.0], ax=left) is left
    assert plots.risk(LAPLACE, q=[2], ax=(left, right)) == (left, right)


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
