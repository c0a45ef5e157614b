"""Totals of debiased cells: Σ w·g with the error √(Σ w²·V̂), over Σ w for means.

What is summed, and how, is said here; sums are taken by NumPy or by narwhals in an engine
(:mod:`trueup.frames.total`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.tables.empty import NOTHING, empties_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.tables.request import Request

    Floats = NDArray[np.float64]

ROWS = "rows"
"""The column that says how many rows were summed."""

SIMULATION = "simulation"
"""The column that says in every row of a simulated table that it is not private."""

LARGEST = 1e100
"""Statistics and scales beyond it are missing, as in SQL: squares leave the range of floats."""


@dataclasses.dataclass(frozen=True)
class Totals:
    """What to sum: cells in groups ``by`` the values of columns, times known ``weights``.

    ``average`` divides by the sum of the weights, ``nonempty`` by that of the cells that are not
    empty; ``skip`` leaves out rows that miss a number, and
    does not refuse them. ``ratio`` asks for ratios of sums in place of sums of estimates, with
    intervals of a ``level`` unless that is None.
    """

    by: tuple[Any, ...] = ()
    weights: Any = None
    average: bool = False
    nonempty: bool = False
    skip: bool = False
    ratio: bool = False
    level: float | None = None


@dataclasses.dataclass(frozen=True)
class Nonempty:
    """Which cells are empty: the indicator of a request's denominator, and its mean in such cells.

    The average over the others is Σw(g − c·e) over Σw(1 − e), with e the unbiased indicator.
    """

    indicator: Request
    at_empty: float

    @classmethod
    def of(cls, request: Request) -> Nonempty:
        """Return what tells empty cells from others, or refuse a formula that does not."""
        found = empties_of([request])
        if len(found) != 1:
            raise TrueupError(
                f"{request.name}: which cells are empty is not known for this formula",
                "average='nonempty' needs one denominator, of counts with discrete Laplace noise; "
                "average=True takes all cells",
            )
        mean = request.estimator.expectation(**dict.fromkeys(request.columns, 0))
        return cls(found[0].indicator, float(mean) if abs(mean) > NOTHING else 0.0)


def summands(g: Any, variance: Any, e: Any, w: Any) -> dict[str, Any]:
    """Return what is summed of a row, arrays or expressions: None for what is not wanted."""
    found = {"g": w * g}
    if variance is not None:
        found["variance"] = w * w * variance
    if e is not None:
        found |= {"e": w * e, "ge": w * w * g * e, "ee": w * w * e * e, "wwe": w * w * e}
    return found


def averaged(sums: Mapping[str, Any], over: Any, nonempty: Nonempty | None) -> tuple[Any, Any, Any]:
    """Return an average, an unbiased estimate of its variance, and what was divided by.

    T/N varies as T − (T/N)·N over N, and cov(g, e) = E[g·e] − c·P(empty).
    """
    if nonempty is None:
        return sums["g"] / over, sums.get("variance"), over
    c = nonempty.at_empty
    cells = over - sums["e"]
    mean = (sums["g"] - c * sums["e"]) / cells
    if "variance" not in sums:
        return mean, None, cells
    r = mean - c
    together = 2 * r * (sums["ge"] - c * sums["wwe"]) + r * r * (sums["ee"] - sums["wwe"])
    return mean, sums["variance"] + together, cells


def read_average(value: Any) -> tuple[bool, bool]:
    """Return whether averages are wanted, and whether of the cells that are not empty."""
    if isinstance(value, bool) or (isinstance(value, str) and value == "nonempty"):
        return bool(value), value == "nonempty"
    raise TrueupError(
        f"average must be True, False or 'nonempty', got {value!r}",
        "'nonempty' leaves out cells that are empty, as far as the noise lets us know",
    )


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
