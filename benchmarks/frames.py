"""Tables in memory: ``tu.debias`` against expressions and against the bare array call.

Run with ``python benchmarks/frames.py``; the table goes to benchmarks/frames.md.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import trueup as tu
from arrays import BOTH, ROWS, Row, versus

VALUE = "pl.when(n <= 1).then(3.0).otherwise(1/n - 8/n**3)"
STDERR = "pl.when(n <= 1).then(4.0).otherwise(8/n**4 + 64/n**6).sqrt()"


def rows() -> Iterator[Row]:
    """Yield every comparison."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-5, 200, ROWS)
    est = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    frame, n = pl.DataFrame({"n": x}), pl.col("n")
    value = pl.when(n <= 1).then(3.0).otherwise(1 / n - 8 / n**3).alias("v")
    stderr = pl.when(n <= 1).then(4.0).otherwise(8 / n**4 + 64 / n**6).sqrt().alias("v_stderr")
    assert np.allclose(
        frame.with_columns(value, stderr).select("v", "v_stderr").to_numpy(),
        tu.debias(frame, v=est).select("v", "v_stderr").to_numpy(),
    )
    yield Row(
        "Polars, value",
        f"`frame.with_columns({VALUE})`",
        *versus(lambda: tu.debias(frame, stderr=False, v=est), lambda: frame.with_columns(value)),
        1 / 3,
    )
    yield Row(
        "Polars, value and stderr",
        f"… and `{STDERR}`",
        *versus(lambda: tu.debias(frame, v=est), lambda: frame.with_columns(value, stderr)),
        1 / 5,
    )
    tables = {
        "pandas": pd.DataFrame({"n": x}),
        "pyarrow": pa.table({"n": x}),
        "Polars": frame,
    }
    for name, table in tables.items():
        one = versus(lambda t=table: tu.debias(t, stderr=False, v=est), lambda: est(x))
        yield Row(f"{name}, value", "`est(x)`", *one, 1.5)
        both = versus(lambda t=table: tu.debias(t, v=est), lambda: est._columns([x], BOTH))
        yield Row(f"{name}, value and stderr", "value and stderr of the array", *both, 1.5)


def main() -> None:
    """Measure and write the table."""
    packages = ", ".join(f"{p} {version(p)}" for p in ("polars", "pandas", "pyarrow", "numba"))
    lines = [
        "# Tables in memory",
        "",
        f"`python benchmarks/frames.py`; {ROWS:,} float64 rows, 1/n on n ≥ 1, Laplace(2), best "
        f"of five, both sides in turn, one run on {platform.machine()}, Python "
        f'{platform.python_version()}, {packages}. In the baseline\'s code n is `pl.col("n")`.',
        "",
        "| `tu.debias` on | against | trueup | baseline | ratio | target |",
        "| --- | --- | --: | --: | --: | --: |",
    ]
    for row in rows():
        ratio = row.time / row.base
        lines.append(
            f"| {row.ours} | {row.theirs} | {1e3 * row.time:.0f} ms | {1e3 * row.base:.0f} ms | "
            f"{ratio:.2f} | ≤ {row.most:.2f} |"
        )
        print(lines[-1])
    (Path(__file__).parent / "frames.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
