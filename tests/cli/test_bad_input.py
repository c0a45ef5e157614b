"""Bad input: a clear message, exit 1 or 2, no output file, the input untouched."""

import os
import resource
import subprocess
import sys

import pytest

from extras import needs
from trueup.cli import main

pa, pq = needs("pyarrow"), needs("pyarrow.parquet")

LAPLACE = ("--noise", "laplace(2)")
TRUEUP = (sys.executable, "-m", "trueup", "debias")


@pytest.fixture
def refused(tmp_path, debias, hidden):
    """Return a function that runs, demands a refusal, and returns the message."""

    def refused(source, *argv, target="out.csv", code=1, **options):
        before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
        done = debias(source, tmp_path / target, *argv, **options)
        assert (done.code, done.out) == (code, "")
        assert "Traceback" not in done.err
        assert "\nHint: " in done.err or code == 2
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
        assert hidden(tmp_path) == []
        return done.err

    return refused


@pytest.fixture
def text(tmp_path):
    def text(content):
        path = tmp_path / "in.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return text


# -- files -----------------------------------------------------------------------------------------


def test_missing_file(tmp_path, refused):
    assert "there is no file" in refused(tmp_path / "no.csv")
    assert "no data file matches" in refused(tmp_path / "*.parquet")
    (tmp_path / "empty").mkdir()
    assert "no data file matches" in refused(tmp_path / "empty")
    assert "is not a local file" in refused("https://example.org/cells.csv")


def test_unknown_format(tmp_path, refused):
    (tmp_path / "in.xlsx").write_text("x")
    assert "cannot be told from its name" in refused(tmp_path / "in.xlsx")


def test_unreadable_file(tmp_path, debias, cells, monkeypatch):
    def denied(self, *args, **options):
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(type(cells), "open", denied)  # root may read everything
        done = debias(cells, tmp_path / "out.csv")
    assert done.code == 1
    assert done.err.startswith(f"trueup: {cells}: Permission denied\nHint: ")
    assert [p.name for p in tmp_path.iterdir()] == ["cells.csv"]


@pytest.mark.parametrize("damage", ["truncated", "text", "empty", "middle"])
def test_damaged_parquet(damage, tmp_path, refused):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"s": [1.5] * 50_000, "n": range(50_000)}), path, compression="none")
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(
        {
            "truncated": data[:half],
            "text": b"s,n\n1,2\n",
            "empty": b"",
            "middle": data[:30] + b"\xff" * (half - 30) + data[half:],
        }[damage]
    )
    assert str(path) in refused(path, target="out.parquet")


@pytest.mark.parametrize("name", ["in.arrow", "in.arrows", "in.csv.gz", "in.csv.zst"])
def test_damaged_others(name, tmp_path, refused):
    (tmp_path / name).write_bytes(b"this is not what the name says\n")
    assert "cannot be read as" in refused(tmp_path / name)


def test_truncated_gzip(tmp_path, refused):
    import gzip

    data = gzip.compress(b"s,n\n" + b"".join(b"%d.25,%d\n" % (i * i, i) for i in range(200_000)))
    (tmp_path / "in.csv.gz").write_bytes(data[: len(data) // 2])
    assert "in.csv.gz" in refused(tmp_path / "in.csv.gz")


def test_empty_file(text, refused):
    assert "is empty" in refused(text(""))


def test_files_that_differ(tmp_path, refused):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("s,n\n1,2\n")
    (folder / "b.csv").write_text("s,m\n1,2\n")
    assert "b.csv lacks 'n'" in refused(folder)
    (folder / "b.csv").write_text("n,s\n1,2\n")
    assert "another order" in refused(folder)
    (folder / "b.csv").write_text("s,n,extra\n1,2,3\n")
    assert "a.csv lacks 'extra'" in refused(folder)
    (folder / "b.csv").unlink()
    pq.write_table(pa.table({"s": [1.0], "n": [2]}), folder / "b.parquet")
    assert "several formats: csv, parquet" in refused(folder)


# -- text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.arrow"])
def test_text_in_a_number_column(target, text, refused):
    lines = "".join(f"{i},{i + 3}\n" for i in range(30_000))
    message = refused(text(f"s,n\n{lines}1,abc\n2,5\n3,x\n"), target=target)
    assert "line 30002, column 'n': 'abc' is no number (2 rows like it)" in message
    assert "--null 'abc'" in message


def test_line_numbers_count_lines_not_records(text, refused):
    message = refused(text('note,s,n\n"two\nlines",1,2\n\nx,oops,3\n'))
    assert "line 5, column 's': 'oops' is no number" in message


def test_text_in_a_parquet_column(tmp_path, refused):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"s": ["1.5", "x"], "n": [3, 4]}), path)
    assert "in.parquet, row 2, column 's': 'x' is no number" in refused(path)


def test_a_type_that_later_rows_do_not_have(text, refused):
    lines = "".join(f"{i},{i + 3},{i + 10}\n" for i in range(30_000))
    message = refused(text(f"s,n,code\n{lines}1,2,012\n"), target="out.parquet")
    assert "line 30002, column 'code': 012 does not fit the type BIGINT" in message
    assert "--text code" in message


def test_ragged_and_foreign_lines(text, refused):
    assert "line 3" in refused(text("s,n\n1,2\n3\n4,5\n"))
    assert "line 3" in refused(text("s,n\n1,2\n4,5,6\n"))
    assert "line 2" in refused(text('s,n\n1,"2\n3,4\n'))
    assert "UTF-8" in refused(text(b"s,n\n1,2\n\xff\xfe,4\n"))
    assert "UTF-8" in refused(text("s,n\n1,2\n".encode("utf-16")))


def test_header_without_names(text, refused):
    assert "column 2 has no name" in refused(text("s,,n\n1,2,3\n"))


# -- columns ---------------------------------------------------------------------------------------


def test_missing_column(text, refused):
    message = refused(text("s,N\n1,2\n"))
    assert "has no column 'n'; it has s, N" in message
    assert "did you mean --column n=N?" in message
    assert "--scale n=…" in refused(text("s,n\n1,2\n"), "--scale", "n=budget")


def test_duplicate_column(text, tmp_path, refused):
    assert "the column 's' occurs 2 times" in refused(text("s,n,s\n1,2,3\n"))
    assert "'n', 'N' differ in case only" in refused(text("s,n,N\n1,2,3\n"))
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table([[1.0], [2], [3]], names=["s", "n", "s"]), path)
    assert "the column 's' occurs 2 times" in refused(path)


def test_names_that_are_taken(text, refused):
    source = text("s,n,Mean\n1,2,3\n")
    assert "there is a column 'Mean' already" in refused(source)
    assert "already" in refused(source, formulas=["a = s", "A = n"])
    assert "already" in refused(source, formulas=["a = s", "a_stderr = n"])


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["out.csv", "out.parquet"])
def test_broken_numbers_under_integer_noise(target, text, refused):
    message = refused(text("s,n\n1,2\n1,3.5\n1,4.25\n"), target=target)
    assert "line 3, column 'n': 3.5 is not a whole number" in message
    assert "(2 rows like it)" in message


def test_broken_numbers_in_parquet_parts(tmp_path, refused):
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(pa.table({"s": [1.0, 2.0], "n": [2.0, 3.0]}), folder / "a.parquet")
    pq.write_table(pa.table({"s": [1.0, 2.0], "n": [2.0, 3.5]}), folder / "b.parquet")
    assert "b.parquet, row 2, column 'n': 3.5 is not" in refused(folder)


@pytest.mark.parametrize("bad", ["0", "-1", "", "nan", "inf"])
def test_bad_scales(bad, text, refused):
    message = refused(text(f"s,n,b\n1,2,1\n3,4,{bad}\n5,6,{bad}\n"), "--scale", "n=b")
    shown = bad or "NULL"
    assert "line 3, column 'b': a noise scale must be positive and below 1000 for" in message
    assert f"this formula, got {shown}" in message
    assert "(2 rows like it)" in message


def test_scale_beyond_what_the_formula_bears(text, refused):
    message = refused(
        text("s,b\n1,0.2\n2,0.7\n"),
        *("--scale", "s=b"),
        formulas=["e = exp(s)"],
        noise=("--noise", "s=laplace"),
    )
    assert "line 3, column 'b': a noise scale must be positive and below 0.5" in message


# -- outputs ---------------------------------------------------------------------------------------


def test_output_equal_to_input(tmp_path, text, refused):
    source = text("s,n\n1,2\n")
    (tmp_path / "soft.csv").symlink_to(source)
    (tmp_path / "hard.csv").hardlink_to(source)
    for target in ("in.csv", "soft.csv", "hard.csv", "../" + tmp_path.name + "/in.csv"):
        assert "is the input" in refused(source, "--force", target=target)
    assert "is the input" in refused(tmp_path / "*.csv", "--force", target="hard.csv")


def test_existing_output(tmp_path, text, refused):
    source = text("s,n\n1,2\n")
    (tmp_path / "out.csv").write_text("precious")
    assert "exists already" in refused(source)


def test_bad_places(tmp_path, text, refused):
    source = text("s,n\n1,2\n")
    (tmp_path / "folder").mkdir()
    assert "is a folder" in refused(source, target="folder")
    assert "there is no folder" in refused(source, target="no/out.csv")
    assert "cannot be told from its name" in refused(source, target="out")
    assert "is not a file" in refused(source, "--force", "--to", "csv", target="/dev/null")


def test_unwritable_folder(tmp_path, text, debias, monkeypatch):
    source = text("s,n\n1,2\n")
    if os.geteuid() == 0:  # root may write everywhere but here
        target = "/proc/trueup.csv"
    else:
        (tmp_path / "closed").mkdir(mode=0o500)
        target = tmp_path / "closed" / "out.csv"
    done = debias(source, target)
    assert done.code == 1
    assert "Hint: check the path, its permissions" in done.err


@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.arrow"])
def test_no_space_left(target, tmp_path, hidden):
    """Files may grow to 64 KiB: the system refuses the rest, as on a full disk."""
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"s": [i**0.5 for i in range(200_000)]}), source)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    done = subprocess.run(  # noqa: S603  (our own code)
        [*TRUEUP, str(source), str(tmp_path / target), "x = s**2", *LAPLACE],
        preexec_fn=limit,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,  # an engine that waits for ever is a failure, not a suite without an end
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{target}: File too large\nHint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


def test_no_space_left_in_a_pipe(tmp_path, text):
    source = text("s,n\n1,2\n")
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(  # noqa: S603  (our own code)
            [*TRUEUP, str(source), "-", "x = s**2", *LAPLACE],
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


# -- usage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["--compression", "best"],
        ["--to", "xlsx"],
        ["--nonsense"],
        ["--by", "state"],
        ["--average"],
    ],
    ids=lambda argv: argv[0],
)
def test_wrong_usage_is_2(argv, text, refused):
    refused(text("s,n\n1,2\n"), *argv, code=2)


def test_no_formula_is_2(text, refused):
    assert "there is no formula" in refused(text("s,n\n1,2\n"), code=2, formulas=[])


def test_formulas_that_cannot_be(text, refused):
    source = text("s,n\n1,2\n")
    assert "kink at 0" in refused(source, formulas=["a = abs(s)/n"])
    assert "cannot read '^'" in refused(source, formulas=["a = s^2/n"])
    assert "has no name" in refused(source, formulas=["s/n"])
    assert "no noise is given for m" in refused(source, formulas=["a = m*s/n"])
    assert "no formula reads the statistic" in refused(source, formulas=["a = 2"])


def test_estimators_too_long_for_sql(text, refused, monkeypatch):
    monkeypatch.setattr("trueup.sql.statement.MAX_QUERY", 300)
    message = refused(text("s,n\n1,2\n"), noise=("--noise", "laplace(1)", "--domain", "1<=n<=60"))
    assert "mean, stderr: the estimator is too long for SQL" in message
    assert "add --no-stderr" in message


def test_a_line_that_cannot_be_read_after_a_value_that_is_no_number(text, refused):
    rows = ["3;,1", *["2,1"] * 3000, "3"]
    message = refused(
        text("\n".join(["s,n", *rows])), noise=("--noise", "s=laplace(1)"), formulas=["x = s**2"]
    )
    assert "line 3003: Expected Number of Columns: 2 Found: 1" in message


def test_missing_extra(text, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    message = refused(text("s,n\n1,2\n"))
    assert "the engine duckdb needs the package duckdb" in message
    assert "Hint: pip install 'trueup[tables]'" in message


def test_missing_extra_for_parquet(tmp_path, refused, monkeypatch):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"s": [1.0], "n": [2]}), path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "Hint: pip install 'trueup[tables]'" in refused(path)


def test_bad_delimiters_and_compressions(text, refused):
    source = text("s,n\n1,2\n")
    assert "a delimiter is one sign, got ';;'" in refused(source, "--delimiter", ";;")
    assert "csv files have no --compression zstd" in refused(source, "--compression", "zstd")
    message = refused(source, "--compression", "gzip", target="out.arrow")
    assert "arrow files have no --compression gzip\nHint: one of zstd, lz4, none" in message


def test_bad_memory(text, refused):
    assert "refuses --memory much" in refused(text("s,n\n1,2\n"), "--memory", "much")


def test_what_should_not_happen_is_no_traceback(text, refused, monkeypatch):
    from trueup.files import job

    def broken(*args):
        raise RuntimeError("oh")

    monkeypatch.setattr(job, "types", broken)
    assert "this should not happen: RuntimeError: oh" in refused(text("s,n\n1,2\n"))


def test_a_quote_that_is_never_closed_is_named(tmp_path, capsys):
    (tmp_path / "bad.csv").write_text('n,m\n1,"unclosed\n3,4\n')
    arguments = ["debias", str(tmp_path / "bad.csv"), str(tmp_path / "out.csv"), "r = 2*n"]
    assert main([*arguments, "--noise", "n=laplace(2)"]) != 0
    said = capsys.readouterr().err
    assert "line 2: a quote is opened there and never closed" in said
    assert "as many fields" not in said


def test_a_decimal_comma_is_asked_for(refused, text, debias, tmp_path):
    source = text("s;n\n8,5;20\n")
    assert "--decimal ," in refused(source)
    assert debias(source, tmp_path / "out.parquet", "--decimal", ",").code == 0
    row = pq.read_table(tmp_path / "out.parquet").to_pylist()[0]
    assert (row["s"], row["n"]) == (8.5, 20)
    (tmp_path / "out.parquet").unlink()
    assert "no number" in refused(text("s;n\n1.008,5;20\n"), "--decimal", ",")
