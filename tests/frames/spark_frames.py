"""Spark DataFrames in tests: rows keep their order by a number."""

from typing import Any

ROW = "row number"


def make(session: Any, data: dict[str, list[Any]]) -> Any:
    """Return a DataFrame of columns of numbers or text, with the number of each row."""
    kinds = {float: "double", int: "bigint", str: "string"}
    types = {}
    for name, values in data.items():
        known = {type(v) for v in values if v is not None} or {float}
        types[name] = kinds[float if known == {int, float} else known.pop()]
    convert = {"double": float, "bigint": int, "string": str}
    rows = [
        (i, *(None if v is None else convert[types[n]](v) for n, v in zip(data, row, strict=True)))
        for i, row in enumerate(zip(*data.values(), strict=True))
    ]
    columns = ", ".join(f"`{n.replace('`', '``')}` {kind}" for n, kind in types.items())
    return session.createDataFrame(rows, f"`{ROW}` bigint, {columns}")


def read(frame: Any) -> dict[str, list[Any]]:
    """Return the columns in the order of the rows, the number of rows left out."""
    rows = [row.asDict() for row in frame.collect()]
    if ROW in frame.columns:
        rows.sort(key=lambda row: row[ROW])
    return {name: [row[name] for row in rows] for name in frame.columns if name != ROW}
