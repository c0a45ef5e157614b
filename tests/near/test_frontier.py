"""What a small bias costs."""

import numpy as np
import pytest

import trueup as tu
from extras import needs
from near.laws import sums


@pytest.fixture(scope="module")
def steep():
    return tu.frontier("1/n", tu.DiscreteGaussian(5), (1, 100), biases=[0.05, 0.2, 0.0001])


def test_rows_are_estimators(steep):
    assert steep.biases.tolist() == [0.2, 0.05, 0.0001]
    for i in (0, 1):
        bias = float(steep.biases[i])
        est = tu.nearly_unbiased("1/n", tu.DiscreteGaussian(5), (1, 100), bias, relative=True)
        assert steep.bounds[i] == pytest.approx(est.bias_bound)
        q = np.arange(1, 101)
        deviations = np.sqrt(sums(est, 5, 1, 100)[1]) * q
        assert steep.largest_sd[i] == pytest.approx(deviations.max(), rel=1e-6)
        assert steep.worst[i] == q[deviations.argmax()]
        average = np.sqrt(((deviations**2) / q).sum() / (1 / q).sum())
        assert steep.average_sd[i] == pytest.approx(average, rel=0.05)
    assert 14 < steep.largest_sd[1] < 53  # down to 1 at 5 %: what the theory says
    assert np.isnan(steep.bounds[2])
    assert "cannot be reached" in repr(steep)


def test_where_bias_costs_more_than_none_the_unbiased_estimator_is_a_point():
    front = tu.frontier("1/n", tu.Laplace(2), (1, None), biases=[0.2, 1e-4, 1e-6])
    exact = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    n = np.linspace(1, 20, 400)
    deviations = exact.sd(n) * n
    for i in (1, 2):
        assert front.bounds[i] <= front.biases[i]
        assert front.largest_sd[i] <= deviations.max() * (1 + 1e-4)
    assert front.bounds[2] == 0
    assert front.largest_sd[2] == pytest.approx(deviations.max(), rel=1e-3)
    assert front.largest_sd[0] < 0.5 * deviations.max()


def test_words_about_a_frontier_solve_nothing(steep, monkeypatch):
    monkeypatch.setattr("trueup.near.programme._solve", None)
    assert "bias bound" in repr(steep)
    assert "bias bound" in steep._repr_html_()


def test_absolute_bias_and_the_picture():
    needs("matplotlib")
    front = tu.frontier("log(n)", tu.Gaussian(2), (1, None), biases=[0.1, 0.02])
    assert (np.diff(front.largest_sd) > 0).all()
    axes = front.plot()
    assert axes.get_xlabel() == "bias bound"
    assert len(axes.get_lines()) == 2


def test_bad_input():
    with pytest.raises(tu.TrueupError, match="biases is empty"):
        tu.frontier("1/n", tu.Gaussian(1), (2, 9), biases=[])
    with pytest.raises(tu.TrueupError, match="a bias must be positive, got -1"):
        tu.frontier("1/n", tu.Gaussian(1), (2, 9), biases=[-1])
    noise = dict.fromkeys("smn", tu.Gaussian(1))
    for f in ("s/n + m", "s/(m*n)"):
        with pytest.raises(tu.TrueupError, match="for one function that is traded"):
            tu.frontier(f, noise, dict.fromkeys("mn", (2, 9)))


def test_a_ratio_shows_from_how_many_cells_on_a_bound_is_best():
    """Its cells: where bias² + variance/m of one row, averaged over the prior, meets the last."""
    law = tu.DiscreteLaplace(5)
    front = tu.frontier("s/n", {"s": law, "n": law}, {"n": (1, 60)}, biases=[0.5, 0.2, 0.05])
    assert repr(front).startswith("Frontier of 1/n, as in s/n, under ")
    assert "; the noise of s comes on top\n" in repr(front)
    assert front.question.relative
    assert front.cells[0] == 1
    assert (np.diff(front.cells) > 0).all()
    masses = law.pmf(np.arange(-200, 201))
    n = np.arange(1, 61)
    x = (n[:, None] + np.arange(-200, 201)).astype(float)
    prices = []
    for bias in front.biases[:2]:
        est = tu.nearly_unbiased(
            "s/n", {"s": law, "n": law}, {"n": (1, 60)}, float(bias), relative=True
        )
        h = n[:, None] * est(s=np.ones(x.size), n=x.ravel()).reshape(x.shape)
        mean = h @ masses
        both = 1 + float(law.variance) / n**2  # s as noisy, relative to itself, as n
        prices.append(((mean - 1) ** 2 @ (1 / n), (both * (h**2 @ masses) - mean**2) @ (1 / n)))
    (square, variance), (less, more) = prices
    assert front.cells[1] == pytest.approx((more - variance) / (square - less), rel=0.05)
    assert "best from" in repr(front)
    with pytest.raises(tu.TrueupError, match="not bounded"):
        tu.frontier("1/n", tu.Gaussian(1), (0, 9))


def test_bounds_as_text():
    law = {"s": tu.DiscreteLaplace(5), "n": tu.DiscreteLaplace(5)}
    given = tu.frontier("s/n", law, "n >= 1", biases=[0.2])
    assert str(given) == str(tu.frontier("s/n", law, {"n": (1, None)}, biases=[0.2]))
    with pytest.raises(tu.TrueupError, match="not s <= n"):
        tu.frontier("s/n", law, "0 <= s <= n, n >= 1", biases=[0.2])
