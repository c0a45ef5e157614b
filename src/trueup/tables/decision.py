"""Which estimator to take for how many cells: expected errors by size class, and the break-even.

An average of m cells of a class is off by √(B² + (M − B²)/m), with the average bias B and the
average squared error M of one cell. The unbiased one, B = 0, is ahead of the clipped one from
m = 1 + (M_unbiased − M_clipped)/B_clipped² on; a total is m times the average.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import TrueupError
from trueup.estimator import unbiased
from trueup.formula.text import text
from trueup.kernels.evaluate import evaluate
from trueup.near import NearlyUnbiased, nearly_unbiased
from trueup.tables.size_classes import shares, size_of
from trueup.tables.typical import Clipped, points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.estimator import Estimator
    from trueup.tables.size_classes import Shares
    from trueup.tables.typical import Counts, Points

    Floats = NDArray[np.float64]

KINDS = {"unbiased": "unbiased", "nearly_unbiased": "nearly unbiased", "clipped": "clipped"}
"""The estimators that are compared, and their names in words."""
_EQUAL = 1e-3  # squared errors that differ by less are the same for all purposes
_MOST = 1e12  # cells: more than there are anywhere


@dataclasses.dataclass(frozen=True)
class Line:
    """What is to be expected of the cells of one class of sizes, or of all.

    ``one`` and ``average`` are root mean squared errors of one cell and of the average of
    ``average_of`` cells, ``bias`` the average bias, by kind of estimator, None where there is none.
    """

    sizes: str
    low: float
    high: float
    cells: int
    value: float
    average_of: int
    one: dict[str, float | None]
    average: dict[str, float | None]
    bias: dict[str, float | None]
    break_even: int | None
    too_noisy: int

    @property
    def compared(self) -> bool:
        """Whether there are both an unbiased and a clipped estimator."""
        return self.one["unbiased"] is not None and self.one["clipped"] is not None

    @property
    def row(self) -> dict[str, Any]:
        """The line as plain data, for tables and JSON."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        after = {name: plain.pop(name) for name in ("break_even", "too_noisy")}
        errors = {name: plain.pop(name) for name in ("one", "average", "bias")}
        for name, values in errors.items():
            suffix = "" if name == "one" else f"_{name}"
            plain |= {f"{kind}{suffix}": values[kind] for kind in KINDS}
        return plain | after


@dataclasses.dataclass(frozen=True)
class Decision:
    """What speaks for which estimator of one formula, on one table."""

    name: str
    formula: str
    size: str
    clipped: str
    cells: int
    lines: tuple[Line, ...]
    overall: Line
    near: NearlyUnbiased | None
    notes: tuple[str, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each class, and one for all cells, as plain data."""
        return [{"estimate": self.name} | line.row for line in (*self.lines, self.overall)]

    @property
    def conclusions(self) -> list[str]:
        """What follows, in words."""
        every, given = self.overall, self.near
        errors = [f"{short(every.average[k])} {KINDS[k]}" for k in KINDS]
        said = [
            f"the expected error of the average of {every.average_of:,} such cells, about "
            f"{short(every.value)}, is {errors[0]}, {errors[1]}, {errors[2]} ({self.clipped})",
        ]
        if every.compared:
            said.append(_winning(every.break_even))
        if given is not None:
            made = "" if given.cells is None else f"made for cells={given.cells:g}, "
            said.append(f"nearly unbiased: {made}{given.certified}")
        share = f"{every.too_noisy:,} of {every.cells:,} cells are too noisy to use alone"
        said.append(f"{share}: the expected error exceeds the value")
        return [*said, *self.notes]


def _winning(cells: int | None) -> str:
    if cells is None:
        return "there is no number of cells from which on unbiased estimates beat clipped ones"
    if cells <= 1:
        return "unbiased estimates are as close as clipped ones from the first cell on"
    return f"from about {cells:,} such cells on the unbiased average, or total, beats the clipped"


def short(value: float | None) -> str:
    """Return three digits, or none after the point.

    Examples
    --------
    >>> short(1234.5), short(0.012345), short(None)
    ('1,234', '0.0123', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def decide(name: str, estimator: Estimator, counts: Counts, cells: float | None) -> Decision:
    """Return what is to be expected of estimators of one formula.

    Parameters
    ----------
    name, estimator
        The new column.
    counts
        The table, as sums in bins of the noisy size of its cells.
    cells
        How many cells are averaged or added up; None for those that a nearly unbiased estimator
        was made for, or else all.
    """
    size, rows = size_of(estimator), int(counts.cells.sum())
    found = shares(size, counts.bins, counts.cells)
    known = points(estimator, size, counts, found)
    count = int(cells or getattr(estimator, "cells", None) or rows)
    errors = _Errors(estimator, known, count)
    lines = [errors.line(found, rows, k) for k in _held(found, rows)]
    return Decision(
        name,
        text(estimator.estimand),
        size.name,
        text(Clipped(estimator).formula),
        rows,
        tuple(lines),
        errors.line(found, rows),
        errors.near,
        tuple(errors.notes),
    )


def _held(found: Shares, rows: int) -> list[int]:
    """Return the classes with a cell, or the one that most likely has the only cell."""
    held = [k for k, share in enumerate(found.shares) if round(share * rows)]
    return held or [int(np.argmax(found.shares))]


class _Errors:
    """Exact biases and mean squared errors at the typical true values."""

    def __init__(self, estimator: Estimator, known: Points, count: int) -> None:
        self.known, self.count = known, count
        self.notes: list[str] = []
        symbols = {s.symbol.name: s.symbol for s in estimator._statistics}
        self.f = evaluate(
            estimator.estimand, {symbols[s]: values for s, values in known.truth.items()}
        )
        self.near, exact = None, None
        f, noise, domain = estimator._recipe[:3]
        if isinstance(estimator, NearlyUnbiased):
            self.near = estimator
            exact = self._made("unbiased", partial(unbiased, f, noise, domain))
        else:
            exact, f = estimator, estimator.estimand if estimator._recipe[-1] is not None else f
            self.near = self._made(
                "nearly_unbiased", partial(nearly_unbiased, f, noise, domain, cells=count)
            )
        given = {"unbiased": exact, "nearly_unbiased": self.near}
        self.moments = {k: self._made(k, partial(self._of, e)) for k, e in given.items() if e}
        self.moments["clipped"] = self._made("clipped", partial(self._clipped, Clipped(estimator)))
        self.own = "nearly_unbiased" if self.near is estimator else "unbiased"

    def _made(self, kind: str, make: Any) -> Any:
        """Return what is made, or note why there is none."""
        try:
            return make()
        except TrueupError as error:
            self.notes.append(f"{KINDS[kind]}: {error.message}")
            return None

    def _of(self, estimator: Estimator) -> tuple[Floats, Floats]:
        """Return bias and mean squared error of an estimator."""
        bias = np.zeros(len(self.f))
        if isinstance(estimator, NearlyUnbiased):
            bias = self.known.at(estimator.bias)
        return bias, bias**2 + self.known.at(estimator.sd) ** 2

    def _clipped(self, clipped: Clipped) -> tuple[Floats, Floats]:
        mean, square = clipped.moments(**self.known.truth)
        return mean - self.f, np.maximum(square - 2 * self.f * mean + self.f**2, 0.0)

    def line(self, found: Shares, rows: int, k: int | None = None) -> Line:
        """Return what is to be expected of a class, or of all cells."""
        weight = self.known.weight * (1.0 if k is None else self.known.kind == k)
        weight = weight / weight.sum()
        cells = rows if k is None else max(round(found.shares[k] * rows), 1)
        count = self.count if k is None else cells
        one, average, biases, sums = {}, {}, {}, {}
        for kind in KINDS:
            bias, square = (
                (math.nan, math.nan)
                if self.moments.get(kind) is None
                else (float(weight @ np.where(weight > 0, m, 0.0)) for m in self.moments[kind])
            )
            sums[kind] = bias, square
            one[kind], biases[kind] = _known(math.sqrt(square)), _known(bias)
            average[kind] = _known(math.sqrt(bias**2 + max(square - bias**2, 0.0) / count))
        kinds = [found.classes[i] for i in _held(found, rows)] if k is None else [found.classes[k]]
        own = self.moments.get(self.own)
        noisy = np.zeros(len(weight)) if own is None else own[1] > self.f**2
        return Line(
            "all" if k is None else kinds[0].words,
            kinds[0].low,
            kinds[-1].high,
            cells,
            float(weight @ self.f),
            count,
            one,
            average,
            biases,
            _break_even(sums["unbiased"][1], *sums["clipped"]),
            round(float(weight @ noisy) * cells),
        )


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _break_even(unbiased: float, bias: float, clipped: float) -> int | None:
    """Return from how many cells on the unbiased average wins, None if from none.

    Examples
    --------
    >>> _break_even(4.0, 0.1, 1.0), _break_even(1.0, 0.1, 1.0), _break_even(4.0, 0.0, 1.0)
    (301, 1, None)
    """
    if unbiased <= clipped * (1 + _EQUAL):
        return 1
    cells = 1 + (unbiased - clipped) / bias**2 if bias else math.inf
    return math.ceil(cells - 1e-9) if cells < _MOST else None
