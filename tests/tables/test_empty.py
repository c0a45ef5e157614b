"""Empty cells of a table: how many there are, and bounds that deny them."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import trueup as tu
from extras import needs
from trueup.cli import main
from trueup.tables.empty import empties_of
from trueup.tables.request import Request

LAW = tu.DiscreteLaplace(2)


def asked(estimator, **columns):
    return [Request("mean", estimator, columns, {}, ("value",))]


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_the_indicator_is_unbiased(count):
    est = tu.unbiased("s/n", {"s": LAW, "n": LAW}, "n >= 1")
    (empty,) = empties_of(asked(est, s="s", n="n"))
    alpha, k = math.exp(-1 / 2), np.arange(-90, 91)
    mass = (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)
    g = empty.indicator.estimator(count + k)
    assert mass @ g == pytest.approx(float(count == 0), abs=1e-12)
    assert mass @ (g * g - g) == pytest.approx(mass @ g**2 - (mass @ g) ** 2, abs=1e-10)


def test_denominators_of_several_counts_are_looked_at_once():
    noise = {"a": LAW, "b": LAW}
    share = tu.unbiased("b/(a + b)", noise, "a >= 0, b >= 0, a + b >= 1")
    other = tu.unbiased("a/(a + b)", noise, "a >= 0, b >= 0", empty=0.5)
    (empty,) = empties_of([*asked(share, a="a", b="b"), *asked(other, a="a", b="b")])
    assert (empty.denominator, empty.denied) == ("a + b", True)
    assert not empties_of(asked(other, a="a", b="b"))[0].denied
    continuous = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    assert empties_of(asked(continuous, n="n")) == []


@pytest.fixture(scope="module")
def cells():
    """Return a table of which 900 of 3000 cells are empty."""
    rng = np.random.default_rng(7)
    n = rng.permutation(np.repeat([0, 3, 12], [900, 1100, 1000]))
    noisy = {c: q + LAW.sample(3000, rng=rng) for c, q in (("s", n // 3), ("n", n))}
    return {c: np.asarray(x, np.int64) for c, x in noisy.items()}


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"]
)
def test_a_bound_that_denies_empty_cells_is_doubted(cells, kind):
    noise = {"s": LAW, "n": LAW}
    with pytest.warns(tu.BoundWarning, match="cells are empty, but the stated bounds"):
        tu.debias(kind(cells), mean=tu.unbiased("s/n", noise, "n >= 1"))
    assert tu.debias(kind(cells), mean=tu.unbiased("s/n", noise, "n >= 0", empty=0)) is not None


def test_logarithms_of_empty_cells_are_doubted_too(cells):
    frame = pd.DataFrame(cells)
    with pytest.warns(tu.BoundWarning, match=r"never 0\nHint: .* where\(n == 0, value, ...\)"):
        tu.debias(frame, x=tu.unbiased("log(n)", LAW, "n >= 1"))
    tu.debias(frame, x=tu.unbiased("where(n == 0, 0, log(n))", LAW, "n >= 0"))


def test_of_many_rows_it_says_how_many_were_looked_at(cells):
    many = pd.DataFrame({name: np.tile(x, 30) for name, x in cells.items()})
    with pytest.warns(tu.BoundWarning, match=r"of 45,000 cells looked at are empty"):
        tu.debias(many, mean=tu.unbiased("s/n", {"s": LAW, "n": LAW}, "n >= 1"))


def test_the_convention_may_be_given_with_the_table(cells):
    noise = {"s": LAW, "n": LAW}
    zero = tu.unbiased("s/n", noise, "n >= 0", empty=0)
    one = tu.unbiased("s/n", noise, "n >= 0", empty=1)
    frame = pd.DataFrame(cells)
    pd.testing.assert_frame_equal(tu.debias(frame, mean=zero, empty=1), tu.debias(frame, mean=one))
    count = tu.unbiased("n", {"n": LAW})
    assert "count" in tu.debias(frame, count=count, empty=1)


def test_no_number_of_cells_is_negative():
    est = tu.unbiased("s/n", {"s": LAW, "n": LAW}, "n >= 1")
    (empty,) = empties_of(asked(est, s="s", n="n"))
    assert empty.words(-8.2, 72.8, 300) == "n = 0: none seen (± 9) of 300 cells"
    assert empty.words(0.0, 0.0, 3) == "n = 0: none seen of 3 cells"
    assert empty.words(12.4, 37.4, 300) == "n = 0: about 12 ± 5 of 300 cells"


def test_few_rows_prove_nothing():
    with_one = pd.DataFrame({"s": [1, 2], "n": [-1, 0]})
    est = tu.unbiased("s/n", {"s": LAW, "n": LAW}, "n >= 1")
    assert len(tu.debias(with_one, mean=est)) == 2


def test_chance_is_told_from_empty_cells_as_often_as_stated():
    """One false alarm in a thousand tables, also where every cell is next to 0."""
    law, rng = tu.DiscreteLaplace(5), np.random.default_rng(14)
    (empty,) = empties_of(asked(tu.unbiased("s/n", {"s": law, "n": law}, "n >= 1"), s="s", n="n"))

    def told(tables, n):
        up, down = rng.geometric(1 - math.exp(-1 / 5), (2, tables, len(n)))
        noisy = (rng.permutation(n) + up - down).astype(float)
        return (
            sum(
                empty.doubt(g.sum(), g @ g, len(g), g, [x]) is not None
                for x, g in zip(noisy, empty.indicator.estimator(noisy), strict=True)
            )
            / tables
        )

    large = np.floor(5001 ** np.linspace(0, 0.999, 2000)).astype(int)
    assert told(400, large) <= 0.005
    assert told(200, np.ones(2000, int)) <= 0.005
    assert told(40, np.append(large, np.zeros(4000, int))) > 0.5


def test_where_all_is_zero_there_nothing_need_be_said():
    """E of the estimate of s/n at s = n = 0, summed over the noise: 0 unless s is bounded away."""
    noise, k = {"s": LAW, "n": LAW}, np.arange(-80, 81)
    masses = np.outer(LAW.pmf(k), LAW.pmf(k))
    for domain, free in (("n >= 1", True), ("s >= 0, n >= 1", True), ("s >= 1, n >= 1", False)):
        est = tu.unbiased("s**2/n" if not free else "s/n", noise, domain)
        mean = np.sum(masses * est(s=k[:, None], n=k[None, :]))
        assert (abs(mean) < 1e-9) == free
        (empty,) = empties_of(asked(est, s="s", n="n"))
        g = np.resize([9.0, 0, -2], 3000)
        hint = empty.doubt(900.0, 9000.0, 3000, g, [np.arange(3000.0)]).split("Hint: ")[1]
        assert hint.startswith("where s, n are all 0" if free else "say what the estimate is")


def test_one_draw_repeated_in_many_cells_proves_nothing():
    est = tu.unbiased("s/n", {"s": LAW, "n": LAW}, "n >= 1")
    frame = pd.DataFrame({"s": np.arange(500), "n": np.repeat([-1, 7], 250)})
    assert len(tu.debias(frame, mean=est)) == 500


@pytest.mark.parametrize("order", ["n", "sorted"])
def test_a_sorted_table_is_doubted_like_any_other(cells, order):
    """Equal numbers stand together: by n, or both columns sorted."""
    est = tu.unbiased("s/n", {"s": LAW, "n": LAW}, "n >= 1")
    frame = pd.DataFrame(cells).sort_values(["n"] if order == "n" else ["n", "s"])
    with pytest.warns(tu.BoundWarning, match="cells are empty, but the stated bounds"):
        tu.debias(frame, mean=est)
    rng = np.random.default_rng(2)
    none = np.sort(np.repeat([1, 3, 12], 1000) + LAW.sample(3000, rng=rng))
    assert len(tu.debias(frame.assign(n=none), mean=est)) == 3000


@pytest.mark.parametrize("order", [None, "n"])
def test_the_command_line_says_how_many_and_warns(cells, order, tmp_path, capsys):
    needs("duckdb", "the command line over files needs the extra tables")
    cells = pd.DataFrame(cells)
    cells = cells if order is None else cells.sort_values(order)
    cells.to_csv(tmp_path / "cells.csv", index=False)
    files = [str(tmp_path / name) for name in ("cells.csv", "out.csv")]
    call = ["debias", *files, "mean = s/n", "--noise", "discrete_laplace(2)"]
    assert main([*call, "--domain", "n>=1"]) == 0
    told = capsys.readouterr().err
    (line,) = [line for line in told.splitlines() if line.startswith("n = 0: about")]
    assert 600 < float(line.split()[4].replace(",", "")) < 1200
    assert "warning: about" in told
    assert main([*call, "--domain", "n>=0", "--empty", "0", "--force"]) == 0
    told = capsys.readouterr().err
    assert line in told.splitlines()
    assert "warning" not in told
