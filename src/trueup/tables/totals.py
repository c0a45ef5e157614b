"""Totals of debiased cells: Σ w·g with the error √(Σ w²·V̂), over Σ w for means.

What is summed, and how, is said here; sums are taken by NumPy or by lazy frames
(:mod:`trueup.frames.total`), or by an engine that is told SQL.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.tables.request import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.tables.request import Request

    Floats = NDArray[np.float64]

ROWS = "rows"
"""The column that says how many rows were summed."""

LARGEST = 1e100
"""Statistics and scales beyond it are missing, as in SQL: squares leave the range of floats."""


@dataclasses.dataclass(frozen=True)
class Totals:
    """What to sum: cells in groups ``by`` the values of columns, times known ``weights``.

    ``average`` divides by the sum of the weights; ``skip`` leaves out rows that miss a number, and
    does not refuse them. ``ratio`` asks for ratios of sums in place of sums of estimates, with
    intervals of a ``level`` unless that is None.
    """

    by: tuple[Any, ...] = ()
    weights: Any = None
    average: bool = False
    skip: bool = False
    ratio: bool = False
    level: float | None = None

    def summed(self, requests: Sequence[Request]) -> list[tuple[Request, str]]:
        """Return what is summed: estimates, and variances where errors are wanted."""
        return [(r, o) for r in requests for o in ("value", "variance")[: 1 + r.has_errors]]

    def sql(
        self,
        rows: str,
        requests: Sequence[Request],
        prefix: str,
        quote: Callable[[str], str],
    ) -> str:
        """Return the query over rows that hold what is summed, and the weight.

        They are called by ``prefix``, as ``_value_pay``, ``_variance_pay`` and ``_w``; the last
        column, ``_missing``, has the number of rows left out. FSUM makes good what rounding loses.
        """
        sums = [quote(f"{prefix}{output}_{r.name}") for r, output in self.summed(requests)]
        weight = quote(f"{prefix}w")
        known = " AND ".join(f"{name} IS NOT NULL" for name in [*sums, weight])
        kept = f"FILTER (WHERE {known})"
        over = f"NULLIF(FSUM({weight}) {kept}, 0)" if self.average else "1"
        keys = [quote(name) for name in self.by]
        columns = [*keys, f"COUNT(*) {kept} AS {quote(ROWS)}"]
        for r in requests:
            value, spread = quote(f"{prefix}value_{r.name}"), quote(f"{prefix}variance_{r.name}")
            spread = f"COALESCE(FSUM({weight} * {weight} * {spread}) {kept}, 0) / POW({over}, 2)"
            results = {
                "value": f"COALESCE(FSUM({weight} * {value}) {kept}, 0) / {over}",
                "stderr": f"CASE WHEN {spread} >= 0 THEN SQRT({spread}) END",
                "variance": spread,
            }
            columns += [f"{results[o]} AS {quote(r.name + SUFFIXES[o])}" for o in r.outputs]
        columns.append(f"COUNT(*) - COUNT(*) {kept} AS {quote(f'{prefix}missing')}")
        group = f"\nGROUP BY {', '.join(keys)}" if keys else ""
        return "SELECT\n  " + ",\n  ".join(columns) + f"\nFROM (\n{rows}\n){group}"


def check_weights(
    weights: Any, requests: Sequence[Request], fold: Callable[[Any], Any] = lambda name: name
) -> None:
    """Refuse weights that are themselves noisy: E w·g is not w·f when both have one noise."""
    for request in requests:
        for statistic, column in request.columns.items():
            noise = request.estimator.noise[statistic]
            if fold(column) == fold(weights) and not noise.known:
                raise noisy_weights(weights, f"{statistic} + {noise!r}")


def check_copies(
    weights: Any, values: Floats, inputs: Mapping[Any, Floats], requests: Sequence[Request]
) -> None:
    """Refuse weights that are a noisy column under another name: many numbers, all the same."""
    known = values[~np.isnan(values)]
    for request in requests if known.size and np.ptp(known) > 0 else ():
        for statistic, column in request.columns.items():
            noise = request.estimator.noise[statistic]
            if not noise.known and np.array_equal(inputs[column], values, equal_nan=True):
                raise noisy_weights(weights, f"a copy of {column!r}: {statistic} + {noise!r}")


def noisy_weights(weights: Any, published: str) -> TrueupError:
    """Return the refusal of weights that are published with noise."""
    return TrueupError(
        f"the weights {weights!r} are noisy themselves ({published}): a sum weighted by them is "
        "biased",
        "for the mean over all cells take a ratio of sums: tu.ratio(...); weights must be "
        "known numbers",
    )


def missing_numbers(missing: int, rows: int, option: str, which: str = "") -> TrueupError:
    """Return the refusal of rows that miss a number; ``option`` leaves them out."""
    return TrueupError(
        f"{missing:,} of {rows:,} rows miss a number{which}: their total is unknown",
        f"{option} sums the other rows, and counts them in the column {ROWS}",
    )
