"""Rows dropped by their noisy value, and values that were clamped."""

import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import trueup as tu
from trueup.cli import main

NOISE = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}
SIZE = tu.unbiased("1/n", NOISE["n"], {"n": (1, None)})
PAY = tu.unbiased("s/n", NOISE, {"n": (1, None)})


def release(seed, rows=4000, noise=NOISE["n"]):
    """A table like one of counties and industries: 9 % of the cells are empty, the median is 13."""
    rng = np.random.default_rng(seed)
    n = np.floor(np.exp(rng.normal(np.log(13), 1.6, rows)))
    n[rng.random(rows) < 0.09] = 0
    s = 0.5 * n + np.asarray(tu.Laplace(2).sample(rows, rng=rng))
    return pd.DataFrame(
        {"s": s, "n": n + noise.sample(rows, rng=rng), "state": np.arange(rows) % 9}
    )


def selections(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(w.message) for w in caught if w.category is tu.SelectionWarning]


def everywhere(table):
    """All ways to ask of a table, by name."""
    relation = duckdb.from_df(table)
    return {
        "pandas": lambda: tu.debias(table, pay=PAY),
        "polars": lambda: tu.debias(pl.from_pandas(table), pay=PAY),
        "total": lambda: tu.total(table, by="state", pay=PAY),
        "ratio": lambda: tu.ratio(table, by="state", pay=PAY),
        "ratio in an engine": lambda: tu.ratio(relation, pay=PAY),
    }


def test_dropped_rows_are_told_everywhere():
    table = release(1)
    table = table[table.n >= 10]
    reports = {"report": lambda: tu.report(duckdb.from_df(table), size=SIZE)}
    for name, work in (everywhere(table) | reports).items():
        (told,) = selections(work)
        assert "end at 10 as DiscreteLaplace(2) cannot" in told, name
        assert "dropped by their noisy value" in told
        assert "clamped" in told
        assert "Hint: take all rows" in told


def test_whole_tables_are_not_doubted():
    for name, work in everywhere(release(2)).items():
        assert not selections(work), name


@pytest.mark.parametrize("total", [(), ("--total",), ("--ratio",)], ids=["rows", "total", "ratio"])
def test_files_tell_it_too(tmp_path, capsys, total):
    table = release(3)
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    table[table.n > 0].to_csv(source, index=False)
    laws = ["--noise", "s=laplace(2)", "--noise", "n=discrete_laplace(2)", "--domain", "n>=1"]
    assert main(["debias", str(source), str(target), "pay = s/n", *laws, *total]) == 0
    assert "end at 1 as DiscreteLaplace(2) cannot" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["loguniform", "county", "alike", "small", "few"])
@pytest.mark.parametrize(
    "noise",
    [tu.DiscreteLaplace(1), tu.DiscreteLaplace(5), tu.Laplace(2), tu.DiscreteGaussian(3)],
    ids=repr,
)
def test_false_alarms_are_rare(kind, noise):
    """Not one in fifty tables of each shape, which are a thousand: see the power below."""
    rng = np.random.default_rng(7)
    est = tu.unbiased("n", noise)
    for rows in np.resize([50, 500, 5000], 50):
        n = {
            "loguniform": np.floor(np.exp(rng.uniform(0, 8.5, rows))),
            "county": release(rows)["n"].sample(rows, replace=True, random_state=1).round().abs(),
            "alike": np.full(rows, 40),
            "small": rng.integers(0, 4, rows),
            "few": rng.poisson(30, rows),
        }[kind]
        table = pd.DataFrame({"n": n + np.asarray(noise.sample(rows, rng=rng), float)})
        assert not selections(lambda table=table: tu.debias(table, x=est))


@pytest.mark.parametrize("noise", [tu.DiscreteLaplace(b) for b in (2, 5, 10)], ids=repr)
def test_cuts_are_found(noise):
    """Where at least 2 % of the cells stood at the value at which 2,000 were cut."""
    rng, est, found = np.random.default_rng(11), tu.unbiased("n", noise), 0
    for seed in range(100):
        n = release(seed, 2000, noise).n.round()
        values, counts = np.unique(n, return_counts=True)
        cut = rng.choice(values[(counts >= 0.02 * len(n)) & (values < 40)])
        found += len(
            selections(lambda n=n, cut=cut: tu.debias(pd.DataFrame({"n": n[n >= cut]}), x=est))
        )
    assert found >= 99


def test_a_number_that_stands_in_many_rows_is_one_draw():
    rng = np.random.default_rng(5)
    states = np.floor(np.exp(rng.normal(7, 1, 50))) + tu.DiscreteLaplace(2).sample(50, rng=rng)
    est = tu.unbiased("n", tu.DiscreteLaplace(2))
    for n in (np.tile(states, 100), np.repeat(states, 100)):
        assert not selections(lambda n=n: tu.debias(pd.DataFrame({"n": n}), x=est))


class TestClamped:
    """`clamped=True`: estimates are constant beyond a bound, under Laplace noise."""

    def test_clamped_beyond_the_bound_is_harmless(self):
        table = release(4)
        clamped = table.assign(n=np.maximum(table.n, 0))
        assert "clamped there" in selections(lambda: tu.debias(clamped, pay=PAY))[0]
        assert not selections(lambda: tu.debias(clamped, clamped=True, pay=PAY))
        assert not selections(lambda: tu.total(clamped, clamped=True, pay=PAY))
        assert not selections(lambda: tu.report(clamped, clamped=True, size=SIZE))
        assert (PAY(s=clamped.s, n=clamped.n) == PAY(s=table.s, n=table.n)).all()

    @pytest.mark.parametrize(
        ("noise", "domain"),
        [(tu.DiscreteLaplace(2), (-5, None)), (tu.DiscreteLaplace(2), None),
         (tu.RoundedLaplace(2), (1, None))],
        ids=["inside", "no bound", "another noise"],
    )  # fmt: skip
    def test_clamped_inside_the_bounds_is_refused(self, noise, domain):
        n = np.maximum(release(5, noise=noise).n, 0)
        est = tu.unbiased("n**2", noise, domain)
        with pytest.raises(tu.TrueupError, match="were clamped at 0"):
            tu.debias(pd.DataFrame({"n": n}), clamped=True, x=est)

    def test_sidecar_and_option(self, tmp_path, capsys):
        table = release(6)
        source, target, spec = (tmp_path / n for n in ("in.csv", "out.csv", "r.toml"))
        table.assign(n=np.maximum(table.n, 0)).to_csv(source, index=False)
        spec.write_text(
            'clamped = true\n[noise]\ns = "laplace(2)"\n[noise.n]\nfamily = "discrete_laplace(2)"\n'
            'bounds = [1, inf]\n[estimate]\npay = "s/n"\n'
        )
        assert tu.read_spec(spec).clamped
        assert main(["debias", str(source), str(target), "--spec", str(spec)]) == 0
        assert "clamped" not in capsys.readouterr().err
        spec.write_text(spec.read_text().replace("clamped = true\n", ""))
        again = ["debias", str(source), str(target), "--spec", str(spec), "--force"]
        assert main(again) == 0
        assert "--clamped" in capsys.readouterr().err
        assert main([*again, "--clamped"]) == 0
        assert "clamped" not in capsys.readouterr().err

    def test_it_is_true_or_false(self):
        with pytest.raises(tu.TrueupError, match="clamped must be True or False, got 1"):
            tu.debias(release(7), clamped=1, pay=PAY)
