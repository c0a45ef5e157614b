"""``--engine spark``: the same numbers, folders written whole, errors in our words."""

import csv
import math
import os
import shutil

import numpy as np
import pytest

import trueup as tu
from extras import missing, needs

needs("pyspark", "the engine spark needs the extra spark")
pq = needs("pyarrow.parquet")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    missing("Spark needs Java")

SPARK = ("--engine", "spark")


@pytest.fixture(scope="module", autouse=True)
def session():
    """Keep one session for all tests here; runs use the one that is there."""
    from trueup.files.spark import _session

    with _session() as spark:
        yield spark


def test_rows_totals_and_refusals(cells, tmp_path, debias, expected, hidden):
    out = tmp_path / "out.parquet"
    done = debias(cells, out, *SPARK)
    assert done.code == 0, done.err
    assert done.err.startswith("5 rows\nn: 1 (20 %) below 1\n")
    rows = pq.read_table(out).to_pylist()
    assert [r["zip"] for r in rows] == ["01001", "01002", "02139", "10001", "10002"]
    assert [r["note"] for r in rows] == ["a, b", None, 'say "hi"', "é", None]
    for row in rows:
        if row["s"] is None:
            assert row["mean"] is None
            continue
        value, variance = expected(float(row["s"]), float(row["n"]))
        assert row["mean"] == pytest.approx(value, rel=1e-12)
        assert row["mean_stderr"] == pytest.approx(math.sqrt(variance), rel=1e-9)

    again = debias(cells, out, *SPARK)
    assert again.code == 1
    assert "exists already" in again.err
    assert debias(cells, out, *SPARK, "--force", "--quiet").code == 0

    totals = tmp_path / "totals"
    by = ("--total", "--by", "state", "--to", "csv")
    refused = debias(cells, totals, *SPARK, *by)
    assert refused.code == 1
    assert "1 of 5 rows miss a number" in refused.err
    assert debias(cells, totals, *SPARK, *by, "--skip-missing").code == 0
    (part,) = totals.glob("*.csv")
    with part.open() as file:
        found = list(csv.DictReader(file))
    assert [(r["state"], r["rows"]) for r in found] == [("MA", "2"), ("NY", "2")]
    total = sum(expected(s, n)[0] for s, n in ((51.7, 103), (30.25, 61)))
    assert float(found[0]["mean"]) == pytest.approx(total)
    assert hidden(tmp_path) == []


def test_folders_with_partitions_and_scales(tmp_path, debias):
    for state, rows in {"01": "9,3,1\n", "02": "8,2,2\n"}.items():
        folder = tmp_path / "cells" / f"state={state}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text("s,n,b\n" + rows)
    out = tmp_path / "out"
    noise = ("--noise", "s=laplace(1)", "--noise", "n=laplace", "--domain", "n>=1")
    done = debias(tmp_path / "cells", out, *SPARK, "--scale", "n=b", "--hive", noise=noise)
    assert done.code == 0, done.err
    found = {r["state"]: r["mean"] for r in pq.read_table(out).to_pylist()}
    assert found == {
        "01": pytest.approx(9 / 3 - 2 * 9 / 27),
        "02": pytest.approx(8 / 2 - 2 * 4 * 8 / 8),
    }


ODD = ["~", "*", "a?", "[a]", "{a,b}", "%41", "a b", "it's", "a\\b", "n=7", "é"]


def test_names_are_only_names_and_folders_columns_when_asked(tmp_path, debias, monkeypatch):
    folder = tmp_path.joinpath(*ODD)
    folder.mkdir(parents=True)
    (folder / "in.csv").write_text("s,n\n9,3\n8,2\n")
    monkeypatch.chdir(tmp_path)
    source, out = folder.relative_to(tmp_path) / "in.csv", folder.relative_to(tmp_path) / "out"
    done = debias(source, out, *SPARK)
    assert done.code == 0, done.err
    parts = [pq.ParquetFile(part).read().to_pydict() for part in out.absolute().glob("*.parquet")]
    assert [part["n"] for part in parts] == [["3", "2"]]
    again = debias(out, tmp_path / "again", *SPARK, formulas=["again = s/n"])
    assert again.code == 0, again.err
    refused = debias(source, tmp_path / "no", *SPARK, "--hive")
    assert "'n' is a column of the files and the key of a folder" in refused.err
    (tmp_path / "plain.csv").write_text("s,n\n9,3\n")
    assert "no folder in" in debias("plain.csv", tmp_path / "no", *SPARK, "--hive").err


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("n,s,s", "the column 's' occurs 2 times"),
        ("n,s,S", "differ in case only"),
        ("n,s,", "column 3 has no name"),
    ],
)
def test_headers_that_spark_would_rename_are_refused(header, problem, tmp_path, debias):
    (tmp_path / "in.csv").write_text(f"{header}\n1,2,3\n")
    assert problem in debias(tmp_path / "in.csv", tmp_path / "out", *SPARK).err


def test_blanks_and_marks_in_headers_stay(tmp_path, debias):
    (tmp_path / "in.csv").write_text("\ufeffs, s,n\n9,1,3\n", encoding="utf-8")
    out = tmp_path / "out"
    done = debias(tmp_path / "in.csv", out, *SPARK, "--column", "s=` s`")
    assert done.code == 0, done.err
    (row,) = pq.read_table(out).to_pylist()
    assert [*row][:3] == ["s", " s", "n"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [("abc,2", "'abc' in a column of numbers is no number"), ("1,2.5", "a value that cannot be")],
    ids=["text", "broken"],
)
def test_bad_values(line, problem, tmp_path, debias, hidden):
    source, out = tmp_path / "in.csv", tmp_path / "out"
    source.write_text(f"s,n\n1,2\n{line}\n")
    done = debias(source, out, *SPARK)
    assert done.code == 1
    assert problem in done.err
    assert "Traceback" not in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


def test_ratios_and_intervals_are_those_of_duckdb(cells, tmp_path, debias):
    found, told = {}, {}
    options = (("rows", ()), ("ratio", ("--ratio", "--by", "state", "--skip-missing")))
    for engine in ("duckdb", "spark"):
        for name, more in options:
            out = tmp_path / f"{engine}-{name}.parquet"
            done = debias(cells, out, "--engine", engine, "--interval", "0.9", *more)
            assert done.code == 0, done.err
            columns = [f"mean{suffix}" for suffix in ("", "_stderr", "_low", "_high")]
            table = pq.read_table(out)
            found[engine, name] = [v for c in columns for v in table[c].to_pylist()]
            told[engine, name] = done.err
    for name, _ in options:
        known = [
            [math.nan if v is None else v for v in found[e, name]] for e in ("duckdb", "spark")
        ]
        assert known[0] == pytest.approx(known[1], rel=1e-10, nan_ok=True)
        assert not all(map(math.isnan, known[0]))
    assert told["duckdb", "ratio"] == told["spark", "ratio"]
    assert told["spark", "ratio"].startswith("5 rows in 2 groups\n")
    refused = debias(cells, tmp_path / "no", *SPARK, "--ratio")
    assert "1 of 5 rows miss a number" in refused.err


def test_what_spark_cannot_do(cells, tmp_path, debias):
    assert "not pipes" in debias(cells, "-", *SPARK).err
    assert "there is no file" in debias(tmp_path / "no.csv", tmp_path / "out", *SPARK).err
    assert "does not write arrow" in debias(cells, tmp_path / "out.arrow", *SPARK).err


def test_dry_run(cells, tmp_path, debias):
    done = debias(cells, tmp_path / "out", *SPARK, "--dry-run")
    assert done.code == 0
    assert "`n`" in done.out
    assert [p.name for p in tmp_path.iterdir()] == ["cells.csv"]


def test_the_summary_tells_empty_cells_and_warns_of_a_bound_that_denies_them(tmp_path, debias):
    """As DuckDB does: the same estimate, and the same warning."""
    law, rng = tu.DiscreteLaplace(2), np.random.default_rng(7)
    n = rng.permutation(np.repeat([0, 3, 12], [900, 1100, 1000]))
    columns = [np.asarray(q + law.sample(3000, rng=rng), int) for q in (n // 3, n)]
    rows = np.column_stack(columns)
    cells = tmp_path / "cells.csv"
    np.savetxt(cells, rows, "%d", ",", header="s,n", comments="")
    noise = ("--noise", "discrete_laplace(2)")
    told = {}
    for engine in ("duckdb", "spark"):
        for words in (("--domain", "n>=1"), ("--domain", "n>=0", "--empty", "0")):
            out = tmp_path / f"{engine} {len(words)}.parquet"
            done = debias(cells, out, "--engine", engine, noise=(*noise, *words))
            assert done.code == 0, done.err
            told[engine, len(words)] = done.err.splitlines()
        assert any(line.startswith("trueup: warning: about") for line in told[engine, 2])
        assert not any("warning" in line for line in told[engine, 4])
    lines = {
        key: [x for x in said if x.startswith(("n = 0: about", "trueup: warning: about"))]
        for key, said in told.items()
    }
    assert lines["spark", 2] == lines["duckdb", 2]
    assert lines["spark", 4] == lines["duckdb", 4] == lines["spark", 2][:1]
    assert 600 < float(lines["spark", 4][0].split()[4].replace(",", "")) < 1200
