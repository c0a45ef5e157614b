"""The dataframe libraries as backends: a frame in, two columns more out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import trueup as tu
from backends.kinds import Column, Kind
from frames.backends import BACKENDS as LIBRARIES

CHOSEN = (
    "pandas",
    "pandas nullable",
    "pandas pyarrow",
    "polars",
    "polars lazy",
    "pyarrow",
    "duckdb",
)
"""What is left out is chunks and wrappers; tests/frames has them all."""


def by_frame(library: Any) -> Callable[[Kind, Sequence[str]], dict[str, Column]]:
    """Return the backend that runs ``tu.debias`` in a dataframe library."""

    def answer(kind: Kind, outputs: Sequence[str]) -> dict[str, Column]:
        table = scaled(kind) if library.eager else kind.table
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tu.BoundWarning)  # the rows are far beyond the bounds
            out = library.read(debiased(library(table), kind, outputs))
        return chosen(out, outputs)

    return answer


def scaled(kind: Kind) -> dict[str, Column]:
    """Return the table with no null among the scales, which is refused in memory.

    The statistics of such a row become null instead, and so do the results.
    """
    table = {name: list(column) for name, column in kind.table.items()}
    for scale in kind.scales.values():
        for row in (i for i, b in enumerate(table[scale]) if b is None):
            table[scale][row] = 1.0
            table[kind.est.statistics[0]][row] = None
    return table


def spark(kind: Kind, outputs: Sequence[str]) -> dict[str, Column]:
    """Run ``tu.debias`` on a Spark DataFrame."""
    from backends.engines import spark_session
    from frames.spark_frames import make, read

    frame = make(spark_session(), kind.table)
    return chosen(read(debiased(frame, kind, outputs)), outputs)


def debiased(frame: Any, kind: Kind, outputs: Sequence[str]) -> Any:
    level = 0.95 if "low" in outputs else None
    return tu.debias(frame, scales=kind.scales or None, g=kind.est, interval=level)


def chosen(out: dict[str, Column], outputs: Sequence[str]) -> dict[str, Column]:
    return {output: out["g" if output == "value" else f"g_{output}"] for output in outputs}


DATAFRAMES = {
    **{f"tu.debias on {x.name}": by_frame(x) for x in LIBRARIES if x.name in CHOSEN},
    "tu.debias on spark": spark,
}
