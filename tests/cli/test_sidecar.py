"""The sidecar, and what options do to it."""

import argparse

import pandas as pd
import pytest

import trueup as tu
from trueup.cli import main
from trueup.cli.sidecar import read_release
from trueup.errors import TrueupError

SPEC = """
[noise.n]
family = "discrete_laplace"
epsilon = 0.5
sensitivity = 1
bounds = [1, inf]
column = "emp"
scale_column = "emp_scale"

[noise.pay]
family = "laplace(epsilon=1, sensitivity=60)"

[noise]
s = "laplace(2)"

[estimate]
mean = "s/n"
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "release.toml"
    path.write_text(SPEC)
    return path


def options(spec=None, **given):
    lists = ("noise", "domain", "column", "scale", "empty", "max_bias", "cells")
    named = {name: given.get(name, []) for name in lists}
    return argparse.Namespace(spec=spec, clamped=False, **named)


def test_spec(spec):
    release = tu.read_spec(spec)
    n = release.statistics["n"]
    assert n.noise == tu.DiscreteLaplace(2)
    assert n.bounds == (1, float("inf"))
    assert (n.column, n.scale_column) == ("emp", "emp_scale")
    assert release.statistics["s"].noise == tu.Laplace(2)
    assert release.statistics["pay"].noise == tu.Laplace(60)
    assert release.formulas == {"mean": "s/n"}


def test_options_override_the_spec_statistic_by_statistic(spec):
    given = options(spec, noise=["n=laplace(3)"], domain=["n>=5"], column=["n=count"])
    release = read_release(given, [])
    n = release.statistics["n"]
    assert (n.noise, n.bounds, n.column) == (tu.Laplace(3), (5, None), "count")
    assert n.scale_column == "emp_scale"
    assert release.statistics["s"].noise == tu.Laplace(2)
    assert release.formulas == {"mean": "s/n"}


def test_formulas_replace_those_of_the_spec(spec):
    assert read_release(options(spec), ["inv = 1/n"]).formulas == {"inv": "1/n"}


def test_a_scale_column_needs_no_scale():
    release = read_release(options(noise=["n=laplace"], scale=["n=b"]), ["inv = 1/n**2"])
    assert isinstance(release.statistics["n"].noise, tu.Laplace)
    with pytest.raises(TrueupError, match="scale must be a number, got None"):
        read_release(options(noise=["n=laplace"]), [])


def test_one_noise_for_every_statistic():
    release = read_release(options(noise=["laplace(2)", "n=laplace(3)"], domain=["n>=1"]), [])
    assert release.estimator("s/n").noise == {"n": tu.Laplace(3), "s": tu.Laplace(2)}


def test_two_bounds_add_up():
    release = read_release(options(noise=["n=laplace(3)"], domain=["n>=1", "n<=9"]), [])
    assert release.statistics["n"].bounds == (1, 9)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"domain": ["n>=1", "1<=n<=9"]}, "a bound of 'n' is given twice"),
        ({"column": ["emp"]}, "--column needs a name and a column, got 'emp'"),
        ({"scale": ["n="]}, "--scale needs a name and a column"),
    ],
    ids=["bound twice", "column", "scale"],
)
def test_bad_options(given, problem):
    with pytest.raises(TrueupError, match=problem):
        read_release(options(**given), [])


@pytest.mark.parametrize(
    ("formulas", "problem"),
    [(["s/n"], "has no name"), (["a=s/n", "a=1/n"], "two formulas have the name 'a'")],
    ids=["nameless", "twice"],
)
def test_bad_formulas(formulas, problem):
    with pytest.raises(TrueupError, match=problem):
        read_release(options(), formulas)


@pytest.mark.parametrize("formula", ["n**2", "1/n"], ids=["fine without", "wrong without"])
@pytest.mark.parametrize(
    "given",
    [
        {"domain": ["m>=1"]},
        {"noise": ["m=laplace(2)"]},
        {"column": ["m=emp"]},
        {"scale": ["m=scale"]},
    ],
    ids=lambda given: next(iter(given)),
)
def test_a_misspelt_statistic_is_refused(given, formula):
    release = read_release(options(**given), [f"x = {formula}"])
    with pytest.raises(TrueupError, match="no formula reads the statistic 'm'"):
        _ = release.estimators


def test_a_statistic_without_noise_is_refused():
    release = read_release(options(noise=["s=laplace(2)"]), [])
    with pytest.raises(TrueupError, match="no noise is given for n in 's/n'"):
        release.estimator("s/n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[noise", "is not TOML"),
        ("\xff", "is not TOML"),
        ("[nois.n]\nfamily='laplace'", "did you mean noise"),
        ("noise = 3", "noise must be a table"),
        ("[noise]\nn = 3", "a noise is a table with a family"),
        ("[noise.n]\nscale = 2", "a noise is a table with a family"),
        ("[noise.n]\nfamily = 'lplace'\nscale = 2", "did you mean laplace"),
        ("[noise.n]\nfamily = 'laplace(2)'\nbound = [1, 2]", "did you mean bounds"),
        ("[noise.n]\nfamily = 'laplace'\nscale = 2\nbound = [1, 2]", "did you mean bounds"),
        ("[noise.n]\nfamily = 'laplace(2)'\nscale = 3", "'scale' stands beside it"),
        ("[noise.n]\nfamily = 'laplace'\nscal = 2", r"no parameter 'scal'"),
        ("[noise.n]\nfamily = 'laplace'\nscale = -2", "must be positive, got -2"),
        ("[noise.n]\nfamily = 'laplace'\nscale = 2\nbounds = [1]", "bounds are two numbers"),
        ("[noise.n]\nfamily = 'laplace'\nscale = 2\nbounds = ['a', 2]", "bounds are two numbers"),
        ("[noise.n]\nfamily = 'laplace'\nscale = 2\ncolumn = 3", "column is the name of a column"),
        ("[estimate]\nmean = 3", "a formula is text, got 3"),
    ],
    ids=range(16),
)
def test_bad_spec_says_where(tmp_path, text, problem):
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(TrueupError, match=r"bad\.toml") as caught:
        tu.read_spec(path)
    assert caught.match(problem)


@pytest.mark.parametrize("digits", [1_000, 5_000])
def test_bounds_of_a_thousand_digits_are_refused(tmp_path, digits):
    spec = tmp_path / "release.toml"
    spec.write_text(f"[noise.n]\nfamily = 'laplace'\nscale = 2\nbounds = [{'9' * digits}, inf]")
    with pytest.raises(TrueupError, match="digits"):
        tu.read_spec(spec)


def test_lists_without_end_are_refused(tmp_path):
    spec = tmp_path / "release.toml"
    spec.write_text(f"[noise.n]\nfamily = 'moments'\nmoments = {'[' * 50_000}")
    with pytest.raises(TrueupError, match="not TOML"):
        tu.read_spec(spec)


JOINT = """
conditions = ["0 <= s <= n"]

[noise]
s = "discrete_laplace(2)"
n = "discrete_laplace(2)"

[estimate]
mean = "s/n"
count = "n"

[empty]
mean = 0.5
"""


def test_conditions_and_empty_cells(tmp_path):
    path = tmp_path / "release.toml"
    path.write_text(JOINT)
    with pytest.warns(tu.BoundWarning, match="the formula does not read s"):
        made = tu.read_spec(path).estimators
    noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
    python = tu.unbiased("s/n", noise, "0 <= s <= n", empty=0.5)
    assert made["mean"](s=3, n=2) == pytest.approx(python(s=3, n=2), rel=1e-12)
    assert made["count"].domain["n"].low == 0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('conditions = "0 <= s <= n"', "conditions are a list of texts"),
        ('conditions = ["s*n >= 0"]', "conditions: 's\\*n >= 0' is not a linear condition"),
        ('empty = "nothing"', "a value in empty cells is a number"),
        ("empty = {other = 0}", "there is no estimate 'other'"),
        ("cells = {other = 9}", "there is no estimate 'other' to be given a number of cells"),
        ("max_bias = true", "a largest bias is a number"),
        ("max_bias = 0.2\nempty = 0", "leave one of them out"),
    ],
)
def test_conditions_and_values_are_checked(spec, line, reason):
    spec.write_text(line + "\n" + SPEC)
    with pytest.raises(TrueupError, match=reason):
        _ = tu.read_spec(spec).estimators


def test_options_tie_statistics_too(spec):
    noise = ["s=discrete_laplace(2)", "n=discrete_laplace(2)"]
    spec.write_text('[noise]\ns = "laplace(2)"\n')
    given = options(spec, noise=noise, domain=["0 <= s <= n", "n <= 500"], empty=["mean=1/4"])
    made = read_release(given, ["mean = s/n"]).estimators["mean"]
    assert made.conditions == ("s <= n",)
    assert made.domain == {"n": tu.Integers(0, 500), "s": tu.Integers(0, 500)}
    assert made.expectation(s=0, n=0) == pytest.approx(0.25, abs=1e-10)
    given = options(spec, noise=noise, domain=["s <= t"])
    with pytest.raises(TrueupError, match="no formula reads the statistic 't'"):
        _ = read_release(given, ["mean = s/n"]).estimators


@pytest.mark.parametrize("key", ["max_bias", "cells"])
def test_a_bias_may_be_chosen_for_quotients(tmp_path, key):
    """In the sidecar for one estimate, as an option for every quotient; a count stays unbiased."""
    number = {"max_bias": 0.5, "cells": 400}[key]
    noise = {"s": tu.DiscreteLaplace(2), "n": tu.DiscreteLaplace(2)}
    relative = True if key == "max_bias" else None
    python = tu.nearly_unbiased("s/n", noise, {"n": (1, None)}, relative=relative, **{key: number})
    path = tmp_path / "release.toml"
    path.write_text(JOINT.replace("[empty]\nmean = 0.5", f"[{key}]\nmean = {number}"))
    laws = ["s=discrete_laplace(2)", "n=discrete_laplace(2)"]
    by_option = options(None, noise=laws, domain=["n>=1"], **{key: [str(number)]})
    made = read_release(by_option, ["mean = s/n", "count = n"]).estimators
    assert made["mean"](s=3, n=2) == pytest.approx(python(s=3, n=2), rel=1e-12)
    assert made["mean"].bias_bound == python.bias_bound > 0
    assert type(made["count"]) is tu.Estimator
    path.write_text(path.read_text().replace('conditions = ["0 <= s <= n"]', ""))
    release = read_release(options(path, domain=["n>=1"]), [])
    assert release.estimators["mean"](s=3, n=2) == pytest.approx(python(s=3, n=2), rel=1e-12)


def test_a_run_with_a_bias_says_how_large_it_is(tmp_path, capfd):
    table, result = tmp_path / "in.csv", tmp_path / "out.csv"
    table.write_text("n,s\n3,100\n-2,40\n50,2000\n")
    law = ["--noise", "discrete_laplace(2)", "--domain", "n>=1", "--max-bias", "0.5"]
    assert main(["debias", str(table), str(result), "mean = s/n", *law]) == 0
    noise = dict.fromkeys("sn", tu.DiscreteLaplace(2))
    python = tu.nearly_unbiased("s/n", noise, {"n": (1, None)}, 0.5, relative=True)
    lines = [line.split(",") for line in result.read_text().splitlines()[1:]]
    for n, s, mean, stderr in lines:
        given = {"s": float(s), "n": float(n)}
        assert float(mean) == pytest.approx(python(**given), rel=1e-9)
        assert float(stderr) == pytest.approx(python.stderr(**given), rel=1e-9)
    assert "mean: bias at most 50 % of the true value, certified" in capfd.readouterr().err


def test_a_bad_formula_of_a_sidecar_is_named_with_file_and_key(tmp_path):
    path = tmp_path / "release.toml"
    path.write_text(SPEC.replace('"s/n"', '"s/(n"'))
    with pytest.raises(TrueupError, match=r"release\.toml, estimate\.mean: .*\n  s/\(n\n"):
        tu.read_spec(path)


@pytest.mark.parametrize("name", ["none.toml", "."], ids=["no file", "a folder"])
def test_a_sidecar_that_is_not_there(name, tmp_path, capsys):
    assert main(["explain", "n", "--spec", str(tmp_path / name)]) == 1
    said = capsys.readouterr().err
    assert said == f"trueup: there is no file {tmp_path / name}\nHint: check the path of the TOML\n"


def test_python_takes_all_that_a_sidecar_says(spec):
    known = tu.read_spec(str(spec))
    table = pd.DataFrame({"s": [51.7, 3.0], "emp": [103, 7], "emp_scale": [2.0, 3.0]})
    found = tu.debias(table, known.columns, known.scales, **known.estimators)
    noise = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}
    python = tu.unbiased("s/n", noise, {"n": (1, None)})
    assert found["mean"][0] == pytest.approx(python(s=51.7, n=103), rel=1e-12)
    assert known.noise == noise | {"pay": tu.Laplace(60)}
    assert known.columns == {"n": "emp", "s": "s"}
    assert known.scales == {"n": "emp_scale"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# " + "x" * 2**20, "1 MiB"),
        (".".join("a" * 50_000) + " = 1", "tables in tables"),
        (f"noise.{'.'.join('a' * 2000)} = 1", "tables in tables"),
        ("clamped = 1", "clamped is true or false"),
    ],
    ids=["long", "dotted key", "dotted noise", "flag"],
)
def test_a_sidecar_has_a_size(tmp_path, text, problem):
    path = tmp_path / "release.toml"
    path.write_text(text)
    with pytest.raises(TrueupError, match=problem):
        tu.read_spec(path)
