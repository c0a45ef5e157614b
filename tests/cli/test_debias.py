"""``trueup debias``: every format in and out, the right numbers, everything else untouched."""

import csv
import gzip
import io
import math
import subprocess
import sys

import numpy as np
import pytest

import trueup as tu
from extras import needs

duckdb, pa, pq = (needs(module) for module in ("duckdb", "pyarrow", "pyarrow.parquet"))
dataset, feather, ipc = (needs(f"pyarrow.{part}") for part in ("dataset", "feather", "ipc"))

TRUEUP = [sys.executable, "-m", "trueup", "debias"]
NOISE = ("--noise", "s=laplace(2)", "--noise", "n=discrete_laplace(2)", "--domain", "n>=1")
FORMATS = ["csv", "tsv", "csv.gz", "csv.zst", "parquet", "arrow", "feather", "arrows"]


def rows_of(path):
    """Return the rows of a file of any format as dicts, read by pyarrow."""
    name = path.name
    if ".csv" in name or ".tsv" in name:
        packed = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
        with pa.input_stream(str(path), compression=packed) as stream:
            text = stream.read().decode()
        delimiter = "\t" if ".tsv" in name else ","
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    if name.endswith(".arrows"):
        return ipc.open_stream(path.read_bytes()).read_all().to_pylist()
    if name.endswith(".parquet"):
        return pq.read_table(path).to_pylist()
    return feather.read_table(path).to_pylist()


def number(value):
    return None if value in (None, "") else float(value)


def check_rows(rows, expected):
    assert [r["zip"] for r in rows] == ["01001", "01002", "02139", "10001", "10002"]
    assert [r["note"] or None for r in rows] == ["a, b", None, 'say "hi"', "é", None]
    for row in rows:
        s, n = number(row["s"]), number(row["n"])
        if s is None:
            assert number(row["mean"]) is None
            assert number(row["mean_stderr"]) is None
            continue
        value, variance = expected(s, n)
        assert number(row["mean"]) == pytest.approx(value, rel=1e-12)
        assert number(row["mean_stderr"]) == pytest.approx(math.sqrt(variance), rel=1e-9)


@pytest.mark.parametrize("form", FORMATS)
def test_formats_out_and_in(form, cells, tmp_path, debias, expected):
    out, again = tmp_path / f"out.{form}", tmp_path / "again.csv"
    done = debias(cells, out)
    assert (done.code, done.out) == (0, "")
    check_rows(rows_of(out), expected)
    assert debias(out, again, formulas=["twice = 2*s/n"]).code == 0
    rows = rows_of(again)
    check_rows(rows, expected)
    for row in rows:
        assert number(row["twice"]) == pytest.approx(
            number(row["mean"]) and 2 * number(row["mean"])
        )


def test_text_is_kept_to_the_letter(cells, tmp_path, debias):
    out = tmp_path / "out.csv"
    assert debias(cells, out).code == 0
    added = [line.rsplit(",", 2)[0] for line in out.read_text(encoding="utf-8").splitlines()]
    assert added == cells.read_text(encoding="utf-8").splitlines()


def test_types_from_text_to_parquet(tmp_path, debias):
    source = tmp_path / "in.csv"
    source.write_text(
        "zip,n,s,day,code,big,empty\n01001,3,1.5,2024-01-31,1e3,99999999999999999999,\n"
        "10002,4,2,2024-02-01,7,1,\n"
    )
    out = tmp_path / "out.parquet"
    assert debias(source, out).code == 0
    schema = pq.read_schema(out)
    kinds = {name: str(schema.field(name).type) for name in schema.names[:7]}
    assert kinds == {
        "zip": "string",  # its zeros count
        "n": "int64",
        "s": "double",
        "day": "date32[day]",
        "code": "double",
        "big": "string",  # a double would round it
        "empty": "string",
    }
    assert debias(source, out, "--text", "day,code", "--force").code == 0
    assert str(pq.read_schema(out).field("day").type) == "string"
    assert pq.read_table(out).column("code").to_pylist() == ["1e3", "7"]


def test_parquet_types_and_nulls_are_kept(tmp_path, debias, expected):
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = pa.table(
        {
            "n": pa.array([3, None, 5], pa.int8()),
            "s": pa.array(["1.50", "2.25", None]).cast(pa.decimal128(10, 2)),
            "list": pa.array([[1, 2], [], None]),
            "when": pa.array([1, 2, 3], pa.timestamp("us")),
            "flag": [True, None, False],
        }
    )
    pq.write_table(table, source)
    assert debias(source, out).code == 0
    result = pq.read_table(out)
    assert result.select(table.column_names).to_pylist() == table.to_pylist()
    for name in ("n", "s", "when", "flag"):
        assert result.schema.field(name).type == table.schema.field(name).type
    assert result["mean"].to_pylist() == [pytest.approx(expected(1.5, 3)[0]), None, None]


def test_order_and_numbers_of_many_rows(tmp_path, debias):
    rng = np.random.default_rng(3)
    n = rng.integers(-4, 300, 400_000)
    s = rng.normal(100, 60, n.size)
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"row": np.arange(n.size), "n": n, "s": s}), source)
    done = debias(source, out)
    assert done.code == 0
    result = pq.read_table(out)
    assert (result["row"].to_numpy() == np.arange(n.size)).all()
    mean = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
    value, variance = mean(s=s, n=n), mean.variance(s=s, n=n)
    np.testing.assert_allclose(result["mean"].to_numpy(), value, rtol=1e-9)
    stderr = result["mean_stderr"].to_numpy(zero_copy_only=False)
    sure, known = np.abs(variance) > 1e-9 * value**2, variance >= 0
    np.testing.assert_allclose(stderr[sure & known] ** 2, variance[sure & known], rtol=1e-6)
    assert np.isnan(stderr[sure & ~known]).all()
    below = int((n < 1).sum())
    assert f"{n.size:,} rows" in done.err
    assert f"n: {below:,} (" in done.err
    assert f"mean: {np.isnan(stderr).sum():,} without a standard error" in done.err


def test_several_formulas_columns_scales(tmp_path, debias):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("est,emp,pay,b\n3,20,900,1\n5,2,80,2\n")
    done = debias(
        source,
        out,
        *("--column", "n=emp", "--column", "s=pay", "--column", "m=est", "--scale", "n=b"),
        "--variance",
        formulas=["pay_per_emp = s/n", "size = n/m"],
        noise=(
            *(
                "--noise",
                "s=laplace(30)",
                "--noise",
                "n=laplace",
                "--noise",
                "m=discrete_laplace(1)",
            ),
            *("--domain", "n>=1", "--domain", "m>=1"),
        ),
    )
    assert done.code == 0
    rows = rows_of(out)
    assert list(rows[0])[4:] == [
        *("pay_per_emp", "pay_per_emp_stderr", "pay_per_emp_variance"),
        *("size", "size_stderr", "size_variance"),
    ]
    for row, b in zip(rows, (1, 2), strict=True):  # below: s/n - 2b²s/n³, by hand
        n, s = float(row["emp"]), float(row["pay"])
        assert float(row["pay_per_emp"]) == pytest.approx(s / n - 2 * b**2 * s / n**3)


def test_no_stderr(cells, tmp_path, debias):
    out = tmp_path / "out.csv"
    assert debias(cells, out, "--no-stderr").code == 0
    assert out.read_text(encoding="utf-8").splitlines()[0] == "zip,state,s,n,note,mean"


def test_spec_and_formulas_after_options(cells, tmp_path, run):
    spec, out = tmp_path / "release.toml", tmp_path / "out.csv"
    spec.write_text(
        '[noise.n]\nfamily="discrete_laplace"\nscale=2\nbounds=[1, inf]\n'
        '[noise]\ns="laplace(2)"\n[estimate]\nmean="s/n"\n'
    )
    assert run("debias", cells, out, "--spec", spec).code == 0
    first = out.read_bytes()
    assert run("debias", cells, out, "--spec", spec, "--force", "mean = s/n").code == 0
    assert out.read_bytes() == first


# -- many files ------------------------------------------------------------------------------------


def test_globs_and_folders(cells, tmp_path, debias):
    folder = tmp_path / "2024"
    folder.mkdir()
    text = cells.read_text(encoding="utf-8")
    (folder / "a.csv").write_text(text, encoding="utf-8")
    (folder / "b.csv").write_text(text, encoding="utf-8")
    (folder / ".hidden.csv").write_text("nothing")
    (folder / "_SUCCESS").touch()
    for i, source in enumerate([folder, folder / "*.csv", tmp_path / "**" / "[ab].csv"]):
        out = tmp_path / f"out{i}.csv"
        assert debias(source, out).code == 0
        assert [r["zip"] for r in rows_of(out)] == [r["zip"] for r in rows_of(cells)] * 2


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_hive_folders(form, tmp_path, debias):
    table = pa.table({"state": ["01", "02", "01"], "s": [1.0, 2.0, 3.0], "n": [4, 5, 6]})
    dataset.write_dataset(
        table,
        tmp_path / "cells",
        format="ipc" if form == "arrow" else form,
        basename_template=f"part-{{i}}.{form}",
        partitioning=dataset.partitioning(pa.schema([("state", pa.string())]), flavor="hive"),
    )
    out = tmp_path / "out.parquet"
    assert debias(tmp_path / "cells", out, "--hive").code == 0
    rows = pq.read_table(out).to_pylist()
    assert sorted((r["state"], r["n"]) for r in rows) == [("01", 4), ("01", 6), ("02", 5)]


def test_names_that_look_like_patterns(cells, tmp_path, debias):
    odd, other = tmp_path / "a[1]*.csv", tmp_path / "a1b.csv"
    odd.write_bytes(cells.read_bytes())
    other.write_text("unrelated\n1\n")
    out = tmp_path / "it's [out].csv"
    assert debias(odd, out).code == 0
    assert len(rows_of(out)) == 5


def test_hostile_column_names(tmp_path, debias):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    names = ['say "n"', "it's; DROP TABLE x --", "größe", "a`b", "SELECT"]
    with source.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, [3, 4.5, 5, 6, 7]])
    done = debias(
        source,
        out,
        *("--column", 'n=say "n"', "--column", "s=it's; DROP TABLE x --"),
        formulas=['`a "result"\'; --` = s/n', "größe2 = größe**2", "b = 2*`a``b`"],
        noise=("--noise", "laplace(1)", "--domain", "n>=1"),
    )
    assert done.code == 0, done.err
    row = rows_of(out)[0]
    assert float(row['a "result"\'; --']) == pytest.approx(4.5 / 3 - 2 * 4.5 / 27)
    assert float(row["größe2"]) == pytest.approx(25 - 2)
    assert float(row["b"]) == 12


def test_helper_columns_do_not_clash(tmp_path, debias):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("_x1,__x2,s,n\n7,8,1,3\n")
    assert debias(source, out).code == 0
    assert [*rows_of(out)[0]] == ["_x1", "__x2", "s", "n", "mean", "mean_stderr"]


def test_bom_crlf_semicolons_blanks(tmp_path, debias, expected):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes('\ufeffs;n;note\r\n 1.5 ;3;"two\r\nlines"\r\n2;4;x\r\n'.encode())
    assert debias(source, out).code == 0
    rows = rows_of(out)
    assert [number(r["mean"]) for r in rows] == pytest.approx(
        [expected(1.5, 3)[0], expected(2, 4)[0]]
    )
    assert rows[0]["note"] == "two\r\nlines"


def test_delimiters(tmp_path, debias):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    for sign, option in (("\t", "\\t"), ("|", None), ("~", "~")):
        source.write_text(f"s{sign}n\n1{sign}3\n")
        options = [] if option is None else ["--delimiter", option]
        assert debias(source, out, "--force", *options).code == 0
        assert [*rows_of(out)[0]] == ["s", "n", "mean", "mean_stderr"]


def test_header_only(tmp_path, debias):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("s,n\n")
    done = debias(source, out)
    assert (done.code, out.read_text()) == (0, "s,n,mean,mean_stderr\n")
    assert done.err.startswith("0 rows\n")


def test_null_markers(tmp_path, debias):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("s,n\n1,3\nNA,4\n(S),5\n")
    assert debias(source, out, "--null", "NA", "--null", "(S)").code == 0
    rows = rows_of(out)
    assert [r["s"] for r in rows] == ["1", "NA", "(S)"]
    assert [bool(r["mean"]) for r in rows] == [True, False, False]
    typed = tmp_path / "out.parquet"
    assert debias(source, typed, "--null", "NA", "--null", "(S)").code == 0
    assert pq.read_table(typed)["s"].to_pylist() == [1, None, None]


# -- pipes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_and_output(packed, cells, debias, monkeypatch, expected):
    data = cells.read_bytes()
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(data) if packed else data))
    monkeypatch.setattr(sys, "stdin", stream)
    done = debias("-", "-")
    assert done.code == 0
    check_rows(list(csv.DictReader(io.StringIO(done.out))), expected)
    assert done.err.startswith("5 rows\n")


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_binary_pipes(form, cells, tmp_path, expected):
    command = [*TRUEUP, "-", "-", "--quiet"]
    first = subprocess.run(  # noqa: S603  (our own code)
        [*command, *NOISE, "mean = s/n", "--to", form],
        input=cells.read_bytes(),
        capture_output=True,
        check=True,
    )
    out = tmp_path / f"out.{form}"
    out.write_bytes(first.stdout)
    assert first.stderr == b""
    check_rows(rows_of(out), expected)


def test_appending_to_a_redirected_file(cells, tmp_path):
    """The output of a pipe must not truncate the file behind it."""
    out = tmp_path / "log.csv"
    out.write_text("kept\n")
    with out.open("a") as file:
        subprocess.run(  # noqa: S603  (our own code)
            [*TRUEUP, str(cells), "-", "x = 2*s", "--quiet", *NOISE[:2], "--no-stderr"],
            stdout=file,
            check=True,
        )
    assert out.read_text(encoding="utf-8").startswith("kept\nzip,state,s,n,note,x\n")


# -- what else it says -----------------------------------------------------------------------------


def test_no_bar_in_a_pipe_and_quiet(cells, tmp_path, debias):
    done = debias(cells, tmp_path / "out.csv")
    assert "[" not in done.err
    assert "\r" not in done.err
    assert debias(cells, tmp_path / "quiet.csv", "--quiet").err == ""


def test_too_many_values_below_a_bound_bring_a_warning(tmp_path, debias):
    rng = np.random.default_rng(5)
    noise = tu.DiscreteLaplace(2).sample(20_000, rng)
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    for truth, warned in ((1, False), (0, True), (-3, True)):
        pq.write_table(pa.table({"n": truth + noise, "s": 1.0 * noise}), source)
        done = debias(source, out, "--force")
        assert done.code == 0
        assert ("trueup: warning: " in done.err) == warned, (truth, done.err)
    pq.write_table(pa.table({"n": [50] * 1000 + [-80], "s": [1.0] * 1001}), source)
    done = debias(source, out, "--force")
    assert "1 of 1,001 values of n lie far below the bound 1 of n" in done.err


def test_infinite_variance_needs_no_stderr(cells, tmp_path, debias):
    arguments = {"formulas": ["e = exp(0.3*s)"], "noise": ("--noise", "s=laplace(2)")}
    done = debias(cells, tmp_path / "out.csv", **arguments)
    assert done.code == 1
    assert "add --no-stderr" in done.err
    assert debias(cells, tmp_path / "out.csv", "--no-stderr", **arguments).code == 0


def test_compression(cells, tmp_path, debias):
    for name in ("zstd", "none", "gzip", "lz4"):
        out = tmp_path / f"{name}.parquet"
        assert debias(cells, out, "--compression", name).code == 0
        codec = pq.ParquetFile(out).metadata.row_group(0).column(0).compression
        assert codec == {"none": "UNCOMPRESSED"}.get(name, name.upper())
    for name in ("zstd", "lz4", "none"):
        out = tmp_path / f"{name}.arrow"
        assert debias(cells, out, "--compression", name).code == 0
        assert len(rows_of(out)) == 5
