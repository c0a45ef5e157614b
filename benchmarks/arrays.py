"""Large arrays at the speed of memory: ratios of best-of-five, both sides taken in turn, one run.

Run with ``python benchmarks/arrays.py``; the table goes to benchmarks/arrays.md.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

import trueup as tu
from trueup.kernels.blocks import cores

ROWS = 20_000_000
BOTH = ("value", "stderr")


class Row(NamedTuple):
    ours: str
    theirs: str
    time: float
    base: float
    most: float | None


def versus(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Return the best of five of both, taken in turn so that a busy machine slows both."""
    times: tuple[list[float], list[float]] = ([], [])
    ours(), theirs()
    for _ in range(5):
        for function, found in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            function()
            found.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def array_rows() -> Iterator[Row]:
    rng = np.random.default_rng(1)
    n, s = rng.uniform(-5, 200, ROWS), rng.uniform(0, 500, ROWS)
    k = np.floor(n)
    i = k.astype(np.int64)
    laplace = {"s": tu.Laplace(2), "n": tu.Laplace(2)}
    one = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    log = tu.unbiased("log(n)", tu.Laplace(2), (1, None))
    mean = tu.unbiased("s/n", laplace, {"n": (1, None)})
    count = tu.unbiased("s/n", laplace | {"n": tu.DiscreteLaplace(2)}, {"n": (1, None)})
    hand = "np.where(n < 1, 3, 1/n - 8/n**3)"
    cases = [
        ("1/n: `est(n)`", lambda: one(n), "1/n", lambda: 1 / n, 0.85),
        (
            "1/n: `est(n)`",
            lambda: one(n),
            hand,
            lambda: np.where(n < 1, 3, 1 / n - 8 / n**3),
            0.1,
        ),
        ("1/n: value and stderr", lambda: one._columns([n], BOTH), "1/n", lambda: 1 / n, 1.3),
        ("s/n: `est(s=s, n=n)`", lambda: mean(s=s, n=n), "s/n", lambda: s / n, 0.75),
        ("s/n: value and stderr", lambda: mean._columns([s, n], BOTH), "s/n", lambda: s / n, 1),
        ("s/n, integer noise on n", lambda: count(s=s, n=k), "s/n", lambda: s / k, 1.3),
        ("the same, n of int64", lambda: count(s=s, n=i), "s/n", lambda: s / i, 1.3),
        (
            "the same, value and stderr",
            lambda: count._columns([s, i], BOTH),
            "s/n",
            lambda: s / i,
            2,
        ),
    ]
    for ours, run, theirs, base, most in cases:
        yield Row(ours, f"`{theirs}`", *versus(run, base), most)
    os.environ["TRUEUP_NUMBA"] = "0"
    alone = [
        ("1/n", lambda: one(n), 4),
        ("1/n, value and stderr", lambda: one._columns([n], BOTH), 8),
        ("log(n), value and stderr", lambda: log._columns([n], BOTH), 8),
    ]
    for ours, run, most in alone:
        yield Row(f"without numba: {ours}", "`1/n`", *versus(run, lambda: 1 / n), most)
    del os.environ["TRUEUP_NUMBA"]
    yield memory(lambda: one(n), "memory beyond the output: 1/n")
    yield memory(lambda: count._columns([s, i], BOTH), "the same: s/n, value and stderr, int64")


def engine_rows() -> Iterator[Row]:
    """Yield what SQL of ours takes in DuckDB, against what a person would write."""
    rng = np.random.default_rng(1)
    frame = {"s": rng.uniform(0, 500, ROWS), "n": rng.uniform(-5, 200, ROWS)}
    connection = duckdb.connect()
    connection.register("frame", frame)
    connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    laplace = {"s": tu.Laplace(2), "n": tu.Laplace(2)}
    mean = tu.unbiased("s/n", laplace, {"n": (1, None)})

    def asked(text: str) -> Callable[[], Any]:
        return lambda: connection.execute(f"SELECT sum({text}) FROM t").fetchall()  # noqa: S608

    by_hand = "sqrt(8/(n*n) + 8*s*s/(n*n*n*n))"
    for output, theirs, most in (("value", "s/n", 4), ("stderr", by_hand, 8)):
        times = versus(asked(mean.sql("duckdb", output)), asked(theirs))
        yield Row(f"DuckDB: {output} of s/n", f"`{theirs}`", *times, most)


def memory(run: Callable[[], Any], name: str) -> Row:
    """Return by how many bytes the peak of the process exceeds what is returned."""
    status = Path("/proc/self/status")
    if not status.exists():
        return Row(name, "not measured on this system", 0, 1, None)

    def kilobytes(field: str) -> int:
        lines = status.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field))

    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak so far
    before = kilobytes("VmRSS")
    made = run()
    size = sum(a.nbytes for a in (made if isinstance(made, list) else [made]))
    extra = max(0, (kilobytes("VmHWM") - before) * 1024 - size)
    return Row(name, "64 MiB", float(extra), 64 * 2**20, 1)


def process_rows() -> Iterator[Row]:
    one = tu.unbiased("1/n", tu.Laplace(2), (1, None))

    def calls() -> None:
        for _ in range(20_000):
            one(4.0)

    yield Row("scalar call `est(4.0)`", "5 µs", versus(calls, int)[0] / 20_000, 5e-6, 1)
    needed = python("-c", "import numpy, sympy")
    for ours in ("import trueup", "import trueup; trueup.unbiased"):
        times = versus(python("-c", ours), needed)
        yield Row(f"`{ours}`", "`import numpy, sympy`", *times, 1.3)
    yield Row("`trueup --help`", "0.5 s", versus(python("-m", "trueup", "--help"), int)[0], 0.5, 1)


def python(*arguments: str) -> Callable[[], Any]:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run(  # noqa: S603  (our own interpreter)
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=env
    )


def shown(row: Row) -> str:
    limit = max(row.time, row.base)
    units = (("MiB", 2**-20), ("s", 1), ("ms", 1e3), ("µs", 1e6))
    unit, factor = units[0 if limit > 1e3 else 1 if limit > 0.4 else 2 if limit > 1e-4 else 3]
    target = "" if row.most is None else f"≤ {row.most:g}"
    return (
        f"| {row.ours} | {row.theirs} | {row.time * factor:.3g} {unit} "
        f"| {row.base * factor:.3g} {unit} | {row.time / row.base:.2f} | {target} |"
    )


def main() -> None:
    with np.errstate(all="ignore"):
        rows = [*array_rows(), *engine_rows(), *process_rows()]
    lines = [
        "# Arrays",
        "",
        f"`python benchmarks/arrays.py`; {ROWS:,} float64 rows, best of five, one run on "
        f"{platform.machine()} with {cores()} cores, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, numba {version('numba')}, DuckDB {duckdb.__version__}. "
        "The baseline's code is in the second column; where it is a number, that is the limit.",
        "",
        "| trueup | against | trueup | baseline | ratio | target |",
        "| --- | --- | --- | --- | --- | --- |",
        *map(shown, rows),
    ]
    table = "\n".join(lines) + "\n"
    Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
