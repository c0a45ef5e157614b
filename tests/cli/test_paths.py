"""Names of files and folders are only names; folders are columns when asked; pipes are read."""

import csv
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from extras import needs

pa, pq = needs("pyarrow"), needs("pyarrow.parquet")
ipc = needs("pyarrow.ipc")

NAMES = [
    *("~", "~root", "*", "a?", "[a]", "[!a]", "{a,b}", "a:b", "file:", "s3:", "%41", "a b", " a "),
    *("it's", 'say "a"', "-a", "new\nline", "$HOME", "a#b", "n=7", "é"),
]
TABLE = {"s": [9.0, 8.0], "n": [3, 2]}
MEANS = [9 / 3 - 2 * 9 / 27, 8 / 2 - 2 * 8 / 8]
LAPLACE = ("--noise", "s=laplace(1)", "--noise", "n=laplace(1)", "--domain", "n>=1")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Work in an empty folder, with a home of its own."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def write(path, table=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(TABLE if table is None else table)
    if path.suffix == ".parquet":
        with path.open("wb") as file:
            pq.write_table(table, file)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(
                [table.column_names, *zip(*table.to_pydict().values(), strict=True)]
            )
    else:
        make = ipc.new_file if path.suffix == ".arrow" else ipc.new_stream
        with path.open("wb") as file, make(file, table.schema) as writer:
            writer.write_table(table)


def read(path):
    """Return the columns of a file as lists."""
    with path.open("rb") as file:
        if path.suffix == ".parquet":
            return pq.read_table(file).to_pydict()
        if path.suffix != ".csv":
            make = ipc.open_file if path.suffix == ".arrow" else ipc.open_stream
            return make(file).read_all().to_pydict()
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("form", ["parquet", "csv", "arrow", "arrows"])
@pytest.mark.parametrize("first", ["~", "~root", "file:", "s3:"])
def test_every_name_is_only_a_name(first, form, tmp_path, home, run):
    folder = Path(first, *NAMES)
    write(folder / f"in.{form}")
    done = run("debias", folder / f"in.{form}", folder / f"out.{form}", "mean = s/n", *LAPLACE)
    assert done.code == 0, done.err
    assert done.err.startswith("2 rows\n")
    found = read(folder / f"out.{form}")
    assert [*found] == ["s", "n", "mean", "mean_stderr"]
    assert [*map(float, found["mean"])] == pytest.approx(MEANS)
    assert sorted(p.name for p in folder.iterdir()) == [f"in.{form}", f"out.{form}"]
    assert list(home.iterdir()) == []


def test_backslashes(tmp_path, debias):
    write(tmp_path / "a\\b" / "in.csv")
    out = tmp_path / "a\\b" / "out.parquet"
    assert debias(tmp_path / "a\\b" / "in.csv", out, noise=LAPLACE).code == 0
    assert read(out)["mean"] == pytest.approx(MEANS)
    write(tmp_path / "a\\b" / "in*.csv")
    refused = debias(tmp_path / "a\\b" / "in*.csv", tmp_path / "out.csv", noise=LAPLACE)
    assert "it has both" in refused.err


def test_files_of_such_names_in_a_folder(home, run):
    for name in NAMES:
        write(Path(f"{name}.csv"))
    done = run("debias", ".", "../out.parquet", "mean = s/n", *LAPLACE)
    assert done.code == 0, done.err
    assert read(Path("../out.parquet"))["mean"] == pytest.approx(MEANS * len(NAMES))
    done = run("debias", "[~]*.csv", "~.csv", "mean = s/n", *LAPLACE, "--force")
    assert "the output ~.csv is the input" in done.err


def test_names_that_are_no_text_are_refused(tmp_path, debias):
    folder = os.fsencode(tmp_path) + b"/\xe9"
    os.mkdir(folder)  # noqa: PTH102
    with open(folder + b"/in.csv", "wb") as file:  # noqa: PTH123
        file.write(b"s,n\n1,2\n")
    done = debias(os.fsdecode(folder + b"/in.csv"), tmp_path / "out.csv")
    assert done.code == 1
    assert "is not UTF-8 text" in done.err


# -- folders called key=value ----------------------------------------------------------------------


@pytest.mark.parametrize("form", ["parquet", "csv", "arrow", "arrows"])
def test_folders_are_columns_only_when_asked(form, tmp_path, debias):
    for state in ("01", "02"):
        write(tmp_path / "cells" / f"state={state}" / f"part.{form}")
    for source in (tmp_path / "cells", tmp_path / "cells" / f"*/part.{form}"):
        out = tmp_path / "plain.csv"
        assert debias(source, out, "--force", noise=LAPLACE).code == 0
        assert [*read(out)] == ["s", "n", "mean", "mean_stderr"]
        out = tmp_path / "hive.csv"
        done = debias(source, out, "--hive", "--force", noise=LAPLACE)
        assert done.code == 0, done.err
        found = read(out)
        assert [*found] == ["s", "n", "state", "mean", "mean_stderr"]
        assert found["state"] == ["01", "01", "02", "02"]


@pytest.mark.parametrize("form", ["parquet", "csv", "arrow", "arrows"])
def test_a_folder_never_overwrites_a_column(form, tmp_path, debias, monkeypatch):
    source, out = tmp_path / "n=7" / "N=8" / f"in.{form}", tmp_path / "out.csv"
    write(source)
    assert debias(source, out, "--quiet", noise=LAPLACE).code == 0
    assert [*map(float, read(out)["n"])] == [3, 2]
    assert [*map(float, read(out)["mean"])] == pytest.approx(MEANS)
    refused = debias(source, out, "--hive", "--force", noise=LAPLACE)
    assert refused.code == 1
    assert "'n' is a column of the files and the key of a folder" in refused.err
    monkeypatch.chdir(source.parent)  # the folders above are not asked for
    write(source.parent / "state=01" / f"in.{form}")
    refused = debias("state=01", out, "--hive", "--force", noise=LAPLACE)
    assert refused.code == 1
    assert "key of a folder above" in refused.err


def test_the_summary_counts_the_rows_written(tmp_path, debias):
    # The rows that were written are counted in a part whose folder is called like a column.
    write(tmp_path / "in.parquet")
    (tmp_path / "n=-7").mkdir()
    done = debias(tmp_path / "in.parquet", tmp_path / "n=-7" / "out[1].parquet", noise=LAPLACE)
    assert done.err.startswith("2 rows\nn: 0 below 1\n")


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["a/x.csv"], "no folder in"),
        (["a=1/x.csv", "b=1/x.csv"], "different keys: a and b"),
        (["a=1/x.csv", "x.csv"], "different keys"),
        (["a=1/A=2/x.csv"], "differ in case only"),
    ],
)
def test_folders_that_make_no_columns(paths, problem, tmp_path, home, run):
    for path in paths:
        write(tmp_path / "work" / "cells" / path)
    done = run("debias", "cells", "out.csv", "mean = s/n", *LAPLACE, "--hive")
    assert done.code == 1
    assert problem in done.err


# -- pipes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pipe", "pipe.csv", "pipe.csv.gz"])
def test_named_pipes_are_read(name, cells, tmp_path, debias, expected):
    import gzip

    pipe, out = tmp_path / name, tmp_path / "out.csv"
    os.mkfifo(pipe)
    content = cells.read_bytes()
    body = gzip.compress(content) if name.endswith(".gz") else content
    writer = threading.Thread(target=pipe.write_bytes, args=(body,), daemon=True)
    writer.start()
    done = debias(pipe, out)
    writer.join(10)
    assert done.code == 0, done.err
    assert float(read(out)["mean"][0]) == pytest.approx(expected(51.7, 103)[0])


@pytest.mark.parametrize("redirected", [False, True], ids=["pipe", "file"])
def test_standard_input_by_its_name(redirected, cells, tmp_path, expected):
    command = [sys.executable, "-m", "trueup", "debias", "/dev/stdin", "-", "mean = s/n"]
    command += ["--noise", "s=laplace(2)", "--noise", "n=discrete_laplace(2)", "--domain", "n>=1"]
    with cells.open("rb") as file:
        given = {"stdin": file} if redirected else {"input": cells.read_bytes()}
        done = subprocess.run(command, capture_output=True, check=False, **given)  # noqa: S603
    assert done.returncode == 0, done.stderr
    row = next(csv.DictReader(done.stdout.decode().splitlines()))
    assert float(row["mean"]) == pytest.approx(expected(51.7, 103)[0])


def test_pipes_and_lost_links_in_a_folder_are_not_passed_over(tmp_path, debias):
    write(tmp_path / "cells" / "a.csv")
    (tmp_path / "cells" / "b.csv").symlink_to(tmp_path / "nowhere")
    assert "is a link that leads nowhere" in debias(tmp_path / "cells", tmp_path / "out.csv").err
    (tmp_path / "cells" / "b.csv").unlink()
    os.mkfifo(tmp_path / "cells" / "b.csv")
    for source in (tmp_path / "cells", tmp_path / "cells" / "*.csv"):
        assert "is no file, but a pipe" in debias(source, tmp_path / "out.csv").err


def test_a_pipe_lies_in_no_folder(tmp_path, debias):
    os.mkfifo(tmp_path / "pipe")
    assert "leave --hive out" in debias(tmp_path / "pipe", tmp_path / "out.csv", "--hive").err


@pytest.mark.parametrize("options", [[], ["--force"]], ids=["plain", "force"])
def test_a_named_pipe_as_output_is_refused_for_what_it_is(options, cells, tmp_path, debias):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    done = debias(cells, pipe, *options)
    assert "is not a file" in done.err
    assert f"- > {pipe}" in done.err
    assert "--force" not in done.err
