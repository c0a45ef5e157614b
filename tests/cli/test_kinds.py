"""Columns that no formula reads come out as they went in, or are refused."""

import datetime as dt
import re
import uuid
from decimal import Decimal

import pytest

from extras import needs
from trueup.files.duck import Duck

pa, pq = needs("pyarrow"), needs("pyarrow.parquet")
ipc = needs("pyarrow.ipc")

SQUARE = {"formulas": ("square = n*n",), "noise": ("--noise", "laplace(1)")}
WIDE = Decimal("12345678901234567890123456789012345678901234567890.12")
PLACES = [uuid.UUID(int=5).bytes, uuid.UUID(int=2**127).bytes]

KEPT = {
    "decimal": pa.array([Decimal("1.50"), Decimal(f"{'9' * 36}.99")], pa.decimal128(38, 2)),
    "time32": pa.array([1, 2], pa.time32("s")),
    "time64": pa.array([1, 2], pa.time64("ns")),
    "timestamp": pa.array([1, 2], pa.timestamp("ns")),
    "seconds": pa.array([1, 2], pa.timestamp("s")),
    "zoned": pa.array([1, 2], pa.timestamp("us", "America/New_York")),
    "date": pa.array([dt.date(2024, 2, 29), None], pa.date32()),
    "date64": pa.array([86_400_000, None], pa.date64()),
    "float32": pa.array([1.5, 0.1], pa.float32()),
    "null": pa.nulls(2),
    "boolean": pa.array([True, None]),
    "byte": pa.array([1, None], pa.uint8()),
    "long": pa.array([2**64 - 1, 0], pa.uint64()),
    "dictionary": pa.array(["a", "b"]).dictionary_encode(),
    "large_string": pa.array(["a", ""], pa.large_string()),
    "string_view": pa.array(["a", "b" * 40], pa.string_view()),
    "binary": pa.array([b"a\0", b"\xff"], pa.binary()),
    "large_binary": pa.array([b"a\0", b"\xff"], pa.large_binary()),
    "fixed_binary": pa.array([b"ab", b"\0\xff"], pa.binary(2)),
    "list": pa.array([[1], [2, None]]),
    "large_list": pa.array([[1], []], pa.large_list(pa.int64())),
    "fixed_list": pa.array([[1, 2], [2, 3]], pa.list_(pa.int64(), 2)),
    "struct": pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array(PLACES, pa.binary(16)))
    if hasattr(pa, "uuid")
    else pa.array(PLACES, pa.binary(16)),
}
LOST = {
    "decimal256": pa.array([WIDE, None], pa.decimal256(60, 2)),
    "decimals": pa.array([[WIDE], None], pa.list_(pa.decimal256(60, 2))),
    "duration": pa.array([1, 2], pa.duration("ns")),
    "durations": pa.array([{"a": 1}, None], pa.struct([("a", pa.duration("s"))])),
}
LOST_OF_ARROW = {
    "interval": pa.array([(1, 2, 3001), None], pa.month_day_nano_interval()),
    "float16": pa.array([1.5, None], pa.float16()),
}


def write(path, columns):
    table = pa.table({"n": [3.0, 4.0], **columns})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        make = ipc.new_file if path.suffix == ".arrow" else ipc.new_stream
        with make(path, table.schema) as writer:
            writer.write_table(table)


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path)
    return (ipc.open_file if path.suffix == ".arrow" else ipc.open_stream)(path).read_all()


@pytest.mark.parametrize("there", ["parquet", "arrow", "arrows"])
@pytest.mark.parametrize("here", ["parquet", "arrow", "arrows"])
def test_columns_are_kept(here, there, tmp_path, debias):
    source, out = tmp_path / f"in.{here}", tmp_path / f"out.{there}"
    write(source, KEPT)
    done = debias(source, out, "--quiet", **SQUARE)
    assert done.code == 0, done.err
    before, after = read(source), read(out)
    assert after.column_names == [*before.column_names, "square", "square_stderr"]
    for name in KEPT:
        assert after[name].to_pylist() == before[name].to_pylist(), name
        types = [_plain(table[name].type) for table in (before, after)]
        assert types[0] == types[1] or there == "parquet" or name == "dictionary"


def _plain(kind):
    """Return a type without the names that writers give to what is inside lists and maps."""
    return re.sub(r" \('\w+'\)|(?<=<)\w*:", "", str(kind))


@pytest.mark.parametrize("there", ["parquet", "arrow", "csv"])
@pytest.mark.parametrize("here", ["parquet", "arrow", "arrows"])
@pytest.mark.parametrize("name", [*LOST, *LOST_OF_ARROW])
def test_columns_that_would_change_are_refused(name, here, there, tmp_path, debias):
    if here == "parquet" and name in LOST_OF_ARROW:
        return  # there are none in Parquet, or it has the type
    source, out = tmp_path / f"in.{here}", tmp_path / f"out.{there}"
    write(source, {"odd": (LOST | LOST_OF_ARROW)[name]})
    done = debias(source, out, **SQUARE)
    assert done.code == 1
    assert "the column 'odd' has the type" in done.err
    assert not out.exists()


def test_what_is_not_written_may_have_any_type(tmp_path, debias):
    source = tmp_path / "in.parquet"
    write(source, LOST)
    done = debias(source, "-", "--total", **SQUARE)
    assert done.code == 0, done.err
    assert debias(source, "-", "--total", "--by", "decimal256", **SQUARE).code == 1


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_files_of_several_types(form, tmp_path, debias):
    folder, out = tmp_path / "cells", tmp_path / f"out.{form}"
    folder.mkdir()
    write(folder / f"a.{form}", {"x": pa.array([1, 2], pa.int32())})
    write(folder / f"b.{form}", {"x": pa.array([2**53 + 1, 2], pa.int64())})
    assert debias(folder, out, "--quiet", **SQUARE).code == 0
    assert read(out)["x"].to_pylist() == [1, 2, 2**53 + 1, 2]
    write(folder / f"a.{form}", {"x": [0.5, 2.0]})  # both as doubles would round the other's
    done = debias(folder, out, "--force", **SQUARE)
    assert done.code == 1
    assert "'x' is double in" in done.err


# -- text to types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("12345678901234567891", "-98765432109876543210", "1_000", "007", "0x1A", "00.5"),
        *("2024-01-31 10:00:00+02", "2024-01-31T10:00:00.123456789", "2024-01-31T10:00:00Z"),
        *("2024/01/31", "2024-1-31", "epoch", "true", "1 000"),
    ],
)
def test_text_that_a_type_would_change_stays_text(text, tmp_path, debias):
    source, out = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text(f"n,x\n3,{text}\n4,\n")
    assert debias(source, out, "--quiet", **SQUARE).code == 0
    assert read(out)["x"].to_pylist() in ([text, None], [text, ""])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("-12", -12), (" 5 ", 5), (str(2**63 - 1), 2**63 - 1), ("1.50", 1.5), ("-.5", -0.5)),
        *(("1e-3", 0.001), ("+7", 7.0), ("9007199254740993.5", 9007199254740994.0)),
        *(("inf", float("inf")), ("2024-01-31", dt.date(2024, 1, 31))),
        *(("2024-01-31 10:00", dt.datetime(2024, 1, 31, 10)),),
        *(("2024-01-31T10:00:00.25", dt.datetime(2024, 1, 31, 10, 0, 0, 250_000)),),
    ],
)
def test_text_of_a_type_takes_it(text, value, tmp_path, debias):
    source, out = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text(f"n,x\n3,{text}\n4,\n")
    assert debias(source, out, "--quiet", **SQUARE).code == 0
    assert read(out)["x"].to_pylist() == [value, None]


def test_types_of_many_columns_are_guessed_in_small_steps(tmp_path, debias, monkeypatch):
    # The engine plans a query in a time that grows like the square of what it selects.
    counts, ask = [], Duck.ask

    def counted(self, sql):
        counts.append(sql.count("COUNT_IF"))
        return ask(self, sql)

    monkeypatch.setattr(Duck, "ask", counted)
    source, out = tmp_path / "in.csv", tmp_path / "out.parquet"
    for columns in (100, 200):
        names = [f"x{i}" for i in range(columns)]
        source.write_text(f"n,{','.join(names)}\n3,{','.join('5' * columns)}\n")
        counts.clear()
        assert debias(source, out, "--force", "--quiet", **SQUARE).code == 0
        assert str(read(out)["x99"].type) == "int64"
        assert max(counts) <= 200
        assert len(counts) <= 6 + columns / 25
