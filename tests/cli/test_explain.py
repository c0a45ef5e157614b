"""``trueup explain``: formula, theorem, errors and SQL, or why there is none."""

import math
import re

import pytest

import trueup as tu
from extras import needs


def table(out):
    """Return the rows of the table of true values."""
    lines = out.split("At true values\n")[1].split("\n\n")[0].splitlines()
    return [line.split() for line in lines[1:] if re.match(r"\s*-?[\d.]", line)]


def test_one_statistic(run):
    done = run("explain", "1/n", "--noise", "n=laplace(2)", "--domain", "n>=1")
    assert (done.code, done.err) == (0, "")
    assert "uniformly minimum-variance unbiased" in done.out
    assert "1/n - 8/n**3" in done.out
    first = table(done.out)[0]
    assert first[:3] == ["1", "1", "none"]
    # E 1/max(x, 1) − 1 at q = 1, b = 2, and √Var: integrals done by hand with mpmath
    mp = needs("mpmath").mp
    density = lambda x: mp.exp(-abs(x - 1) / 2) / 4  # noqa: E731
    above = mp.quad(lambda x: density(x) / x, [1, 3, 9, mp.inf])
    assert float(first[3]) == pytest.approx(float(0.5 + above - 1), abs=1e-5)
    second = mp.quad(lambda x: density(x) * (1 / x - 8 / x**3) ** 2, [1, 2, 3, 9, mp.inf])
    assert float(first[4]) == pytest.approx(float(mp.sqrt(4.5 + second - 1)), rel=1e-4)


def test_several_statistics_at_given_values(run):
    done = run(
        *("explain", "s/n", "--noise", "s=laplace(2)", "--noise", "n=laplace(1)"),
        *("--domain", "n>=1", "--at", "n=2,5", "--at", "s=10", "--no-sql"),
    )
    assert [row[:3] for row in table(done.out)] == [["2", "10", "5"], ["5", "10", "2"]]
    assert "SQL" not in done.out


@pytest.mark.parametrize(
    "at", [["n=10"], ["n=10,11"], ["n=10", "n=11,12"], [f"n={','.join(map(str, range(1, 21)))}"]]
)
def test_each_value_is_shown_once(at, run):
    options = [word for text in at for word in ("--at", text)]
    done = run("explain", "n**2", "--noise", "n=laplace(2)", "--no-sql", *options)
    values = [value for text in at for value in text.removeprefix("n=").split(",")]
    assert [row[0] for row in table(done.out)] == values


def test_smooth_plug_in_has_its_bias(run):
    done = run("explain", "q**2", "--noise", "q=gaussian(3)", "--at", "q=0,10")
    assert [row[2] for row in table(done.out)] == ["9", "9"]
    sd = [math.sqrt(4 * 9 * q * q + 2 * 81) for q in (0, 10)]
    assert [float(row[3]) for row in table(done.out)] == pytest.approx(sd, rel=1e-5)


def test_sql_runs(run):
    needs("sqlglot")
    duckdb = needs("duckdb")
    done = run("explain", "1/n", "--noise", "n=laplace(2)", "--domain", "n>=1", "--column", "n=emp")
    value = done.out.split("  value:\n    ")[1].split("\n")[0]
    assert '"emp"' in value
    query = f"SELECT {value} FROM (VALUES (4), (0)) t(emp)"  # noqa: S608
    found = duckdb.connect().sql(query).fetchall()
    assert found == [(0.125,), (3.0,)]


@pytest.mark.parametrize("dialect", ["bigquery", "postgres", "spark"])
def test_dialects(dialect, run):
    done = run("explain", "n**2", "--noise", "laplace(2)", "--dialect", dialect)
    assert done.code == 0
    assert f"SQL ({dialect})" in done.out


def test_no_estimator_says_why_and_what_works(run):
    done = run("explain", "abs(q)", "--noise", "q=laplace(2)")
    assert (done.code, done.out) == (1, "")
    assert "kink at 0" in done.err
    assert "\nHint: " in done.err


def test_infinite_variance_is_told(run):
    done = run("explain", "exp(0.3*q)", "--noise", "q=laplace(2)", "--at", "q=0")
    assert done.code == 0
    assert table(done.out)[0][-1] == "infinite"
    assert "none: the variance" in done.out


def test_name_of_an_estimate_in_the_sidecar(run, tmp_path):
    spec = tmp_path / "release.toml"
    spec.write_text('[noise]\nn = "laplace(2)"\n[estimate]\nsquare = "n**2"\n')
    assert "estimator of n**2" in run("explain", "square", "--spec", spec).out


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["--at", "m=3"], "--at names no statistic"),
        (["--at", "n=1,x"], "'x' is no number"),
        (["--at", "s=1,2", "--at", "n=1,2,3"], "different lengths"),
        (["--dialect", "klingon"], "'klingon' is no SQL dialect"),
        (["--domain", "k>=1"], "no formula reads the statistic 'k'"),
        (["--spec", "no.toml"], "no.toml"),
        (["--empty", "1,2"], "is 2 numbers"),
        (["--max-bias", "five"], "Hint: give one number"),
        (["--noise", "nn=laplace(2)"], "Hint: one reads n: spell both alike"),
    ],
    ids=range(9),
)
def test_bad_options(argv, problem, run):
    done = run("explain", "s/n", "--noise", "laplace(2)", "--domain", "n>=1", *argv)
    assert done.code == 1
    assert problem in done.err
    assert "\nHint: " in done.err


def test_a_misspelt_bound_is_told_before_what_its_lack_does(run):
    done = run("explain", "1/n", "--noise", "n=laplace(2)", "--domain", "m>=1")
    assert "no formula reads the statistic 'm'" in done.err


def test_typical_values_respect_both_bounds(run):
    done = run("explain", "n", "--noise", "n=discrete_laplace(2)", "--domain", "n in [1, 4]")
    values = [float(row[0]) for row in table(done.out)]
    assert (values[0], values[-1]) == (1, 4)
    assert all(v.is_integer() for v in values)
    done = run("explain", "n", "--noise", "n=laplace(2)", "--domain", "n<=4")
    assert float(table(done.out)[0][0]) == 4


def test_a_bias_that_is_allowed_is_shown(run):
    law = tu.DiscreteLaplace(5)
    near = tu.nearly_unbiased("s/n", {"s": law, "n": law}, {"n": (1, None)}, cells=400)
    given = ("--noise", "discrete_laplace(5)", "--domain", "n>=1", "--at", "s=40", "--at", "n=1,10")
    done = run("explain", "s/n", *given, "--cells", "400", "--no-sql")
    assert "bias of the estimate  sd of the nearly unbiased estimate" in done.out
    for row, n in zip(table(done.out), (1, 10), strict=False):
        assert [float(x) for x in row[-2:]] == pytest.approx(
            [near.bias(s=40, n=n), near.sd(s=40, n=n)], rel=1e-4
        )
    assert "sd of the unbiased estimate" in run("explain", "s/n", *given, "--no-sql").out
