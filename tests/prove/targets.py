"""The same estimator on every target: scalars, arrays, frames, SQL engines, read back from JSON."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import trueup as tu
from prove import reading

SAME = 1e-8
"""Relative to |f| + |g|: other targets order sums differently and lose other digits."""
SINGLE = 2e-3
"""float32 has seven digits and formulas that cancel leave four; a wrong branch is far off."""

FEW = 1e-60
"""The fifth power of what is smaller is no double: derivatives have such powers."""

Row = Mapping[str, float]


def disagreements(e: Any, est: Any, points: Sequence[Row]) -> Iterator[tuple[str, Row, float, Any]]:
    """Yield (target, point, what scalars say, what the target says)."""
    points = [x for x in points if not _is_at_the_last_digit(e, x) and not _is_lost(e, x)]
    if not points:
        return
    scalars = [_scalar(est, x) for x in points]
    columns = {n: np.array([x[n] for x in points]) for n in e.names}
    with np.errstate(all="ignore"):
        sizes = reading.sizes(e.tree, columns)
    for name, answers in _answers(e, est, columns):
        for x, truth, size, got in zip(points, scalars, sizes, answers, strict=True):
            e.report.compared[name] += 1
            if name in ENGINES and got is None and runs_out(e, x):
                e.report.unsettled["NULL in SQL where doubles run out"] += 1
            elif not same(truth, got, 0 if math.isnan(size) else size, e.least):
                yield name, x, truth, got
    yield from _single(e, est, points)


def _is_at_the_last_digit(e: Any, x: Row) -> bool:
    """Whether a value is a bound but for its last digit, which engines may read as the bound."""
    ends = ((v, end) for n, v in x.items() for end in e.ends(n) if math.isfinite(end))
    return any(0 < abs(v - end) <= 1e-15 * abs(end) for v, end in ends)


def _is_lost(e: Any, x: Row) -> bool:
    """Whether doubles lose f at a value: sin(1e155) is any number to every target."""
    try:
        reading.value(e.tree, {n: e.inwards(n, v) for n, v in x.items()})
    except reading.BeyondError as error:
        return "wave" in str(error)
    except (reading.UndefinedError, OverflowError):
        return False
    return bool(e.loses(x))


def _scalar(est: Any, x: Row) -> float:
    return float(est(**x))


def same(truth: float, got: Any, size: float, rounding: float) -> bool:
    """Whether a target agrees: null and NaN stand for what is not a finite number."""
    got = math.nan if got is None else float(got)
    if not math.isfinite(truth):
        return not math.isfinite(got)
    if abs(truth) > 1e290:
        return True
    return abs(got - truth) <= SAME * (abs(truth) + min(size, 1e290)) + rounding


def runs_out(e: Any, x: Row) -> bool:
    """Whether a part of the formula is so large or small that its powers are no doubles.

    The powers of such parts leave the range of doubles: the answer is NaN, or NULL in SQL, as is
    documented.
    """
    return any(p != 0 and not FEW < abs(p) < 1 / FEW for p in reading.parts(e.tree, x))


def _answers(e: Any, est: Any, columns: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    yield "array", est(**columns)
    if all((c == np.rint(c)).all() and (abs(c) < 2**53).all() for c in columns.values()):
        yield "int64", est(**{n: c.astype(np.int64) for n, c in columns.items()})
    if e.asks("JSON"):
        yield "json", tu.Estimator.from_json(est.to_json())(**columns)
    if e.asks("frames"):
        for frame, read in (_pandas(columns), _polars(columns)):
            yield f"{frame.__class__.__module__.split('.')[0]}", read(_debiased(frame, est))
    for engine, run in ENGINES.items() if e.asks("SQL") else ():
        try:
            text = est.sql(engine)
        except tu.TrueupError:  # too long for a query: said in words
            e.report.unsettled["refused as SQL"] += 1
            continue
        yield engine, run(text, columns)


def _debiased(frame: Any, est: Any) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tu.BoundWarning)  # rows are far beyond the bounds
        return tu.debias(frame, g_of_x=est)


def _pandas(columns: Mapping[str, Any]) -> tuple[Any, Any]:
    import pandas as pd

    return pd.DataFrame(dict(columns)), lambda out: list(out["g_of_x"])


def _polars(columns: Mapping[str, Any]) -> tuple[Any, Any]:
    import polars as pl

    return pl.DataFrame(dict(columns)), lambda out: out["g_of_x"].to_list()


@lru_cache(maxsize=1)
def _duck() -> Any:
    import duckdb

    return duckdb.connect()


def _duckdb(text: str, columns: Mapping[str, Any]) -> list[Any]:
    import pyarrow as pa

    con = _duck()
    order = np.arange(len(next(iter(columns.values()))))
    table = pa.table({**columns, "row of the table": order})
    con.register("t", table)
    rows = con.execute(f'SELECT {text} FROM t ORDER BY "row of the table"').fetchall()  # noqa: S608
    return [row[0] for row in rows]


def _sqlite(text: str, columns: Mapping[str, Any]) -> list[Any]:
    con = sqlite3.connect(":memory:")
    try:
        con.execute(f"CREATE TABLE t ({', '.join(f'{n} REAL' for n in columns)})")
        rows = list(zip(*(map(float, c) for c in columns.values()), strict=True))
        con.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)  # noqa: S608
        return [row[0] for row in con.execute(f"SELECT {text} FROM t ORDER BY rowid")]  # noqa: S608
    finally:
        con.close()


ENGINES = {"duckdb": _duckdb, "sqlite": _sqlite}


def _single(e: Any, est: Any, points: Sequence[Row]) -> Iterator[tuple[str, Row, float, Any]]:
    """Yield where float32 arrays disagree with doubles: a value at a bound is at the bound."""
    if any(len({np.float32(b) for b in e.ends(n)}) < len(set(e.ends(n))) for n in e.names):
        return  # two bounds that are one in single precision
    columns = {n: np.array([x[n] for x in points], np.float32) for n in e.names}
    answers = np.asarray(est(**columns), float)
    for i, got in enumerate(answers):
        x = {n: _as_bound(e, n, columns[n][i]) for n in e.names}
        steps = [(n, s * 2.0**-23) for n in e.names for s in (-1, 1)]
        near = [x, *({**x, n: e.beside(n, x[n], step)} for n, step in steps)]
        rounded = {n: float(c[i]) for n, c in columns.items()}
        truths = [_scalar(est, p) for p in near]
        finite = [t for t in truths if math.isfinite(t) and abs(t) < 1e30]
        if len(finite) < len(truths) or not math.isfinite(got):
            continue
        size = float(reading.sizes(e.tree, {n: np.array([v]) for n, v in x.items()})[0])
        size = 0.0 if math.isnan(size) else size
        e.report.compared["float32"] += 1
        slack = SINGLE * (abs(truths[0]) + size) + 8 * (max(truths) - min(truths))
        slack += 8 * (_moved(e, x, rounded) + _change(e, est, rounded))
        if not abs(got - truths[0]) <= slack + e.least:
            yield "float32", x, truths[0], got


def _change(e: Any, est: Any, rounded: Row) -> float:
    """Return how far the estimate moves from one float32 to the next, not across a bound."""
    steps = [{**rounded, n: e.beside(n, v, 2.0**-23)} for n, v in rounded.items()]
    moved = [abs(_scalar(est, step) - _scalar(est, rounded)) for step in steps]
    return max((m for m in moved if math.isfinite(m)), default=0.0)


def _moved(e: Any, x: Row, rounded: Row) -> float:
    """Return how far f moves where a bound is rounded to float32."""
    places = {n: np.array([x[n], rounded[n]]) for n in e.names}
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(np.abs(np.diff(reading.values(e.tree, places)))[0]))


def _as_bound(e: Any, name: str, x: np.float32) -> float:
    """Return the double meant: a bound rounded to float32 is that bound."""
    for end in e.ends(name):
        if math.isfinite(end) and np.float32(end) == x:
            return float(end)
    return float(x)
