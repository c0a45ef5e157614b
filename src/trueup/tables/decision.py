"""Which estimator to take for how many cells: expected errors by size class, and the break-even.

An average of m cells of a class is off by √(B² + (M − B²)/m), with the average bias B and the
average squared error M of one cell. The unbiased one, B = 0, is ahead of the clipped one from
m = 1 + (M_unbiased − M_clipped)/B_clipped² on; a total is m times the average. The naive average
leaves cells out, so that its error is that of a quotient of sums, to the first order in 1/m. The
break-even is with the rival that is beaten last.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import BoundWarning, TrueupError
from trueup.estimator import unbiased
from trueup.formula.text import text
from trueup.kernels.blocks import evaluate
from trueup.near.estimator import NearlyUnbiased, nearly_unbiased
from trueup.tables.size_classes import EMPTY, shares, size_of
from trueup.tables.typical import Clipped, countable, naive_moments, points, summed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trueup.estimator import Estimator
    from trueup.tables.size_classes import Shares, Size
    from trueup.tables.typical import Counts, Points

    Floats = NDArray[np.float64]

KINDS = {
    "unbiased": "unbiased",
    "nearly_unbiased": "nearly unbiased",
    "clipped": "clipped",
    "naive": "naive",
}
"""The estimators that are compared, and their names in words."""
_EQUAL = 1e-3  # squared errors that differ by less are the same for all purposes
_MOST = 1e12  # cells: more than there are anywhere


@dataclasses.dataclass(frozen=True)
class Line:
    """What is to be expected of the cells of one class of sizes, or of all.

    ``one`` and ``average`` are root mean squared errors of one cell and of the average of
    ``average_of`` cells, ``bias`` the average bias, by kind of estimator, None where there is none.
    ``break_even`` is with ``rival``, the one of the others that unbiased averages beat last.
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
    rival: str
    too_noisy: int

    @property
    def row(self) -> dict[str, Any]:
        """The line as plain data, for tables and JSON."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        after = {name: plain.pop(name) for name in ("break_even", "rival", "too_noisy")}
        errors = {name: plain.pop(name) for name in ("one", "average", "bias")}
        for name, values in errors.items():
            suffix = "" if name == "one" else f"_{name}"
            plain |= {f"{kind}{suffix}": values[kind] for kind in KINDS}
        return plain | after


@dataclasses.dataclass(frozen=True)
class Decision:
    """What speaks for which estimator of one formula, on one table.

    ``rivals`` says how the estimates are made that one would take otherwise, by kind.
    """

    name: str
    formula: str
    size: str
    rivals: dict[str, str]
    cells: int
    lines: tuple[Line, ...]
    overall: Line
    near: NearlyUnbiased | None
    own: str
    notes: tuple[str, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each class, and one for all cells, as plain data."""
        return [{"estimate": self.name} | line.row for line in (*self.lines, self.overall)]

    def compared(self, line: Line) -> bool:
        """Whether a line has errors of both the unbiased estimate and its rival."""
        return line.one["unbiased"] is not None and line.one[line.rival] is not None

    @property
    def conclusions(self) -> list[str]:
        """What follows, in words."""
        every, given = self.overall, self.near
        named = {kind: f" ({how})" for kind, how in self.rivals.items()}
        known = {kind: error for kind, error in every.average.items() if error is not None}
        errors = [f"{short(error)} {KINDS[k]}{named.get(k, '')}" for k, error in known.items()]
        said = [
            f"the expected error of the average of {every.average_of:,} such cells, about "
            f"{short(every.value)}, is {', '.join(errors) or 'infinite'}",
        ]
        if self.compared(every):
            said.append(_winning(every.break_even, every.rival))
        if len(known) > 1:
            closest = KINDS[min(known, key=lambda kind: known[kind])]
            said.append(f"closest for {every.average_of:,} cells: {closest}")
        if given is not None:
            said.append(f"nearly unbiased: {given.certified}{_made_for(given, every)}")
        share = f"{every.too_noisy:,} of {every.cells:,} cells are too noisy to use alone"
        said.append(f"{share}: the expected error of the {KINDS[self.own]} exceeds the value")
        return [*said, *self.notes]


def _made_for(near: NearlyUnbiased, every: Line) -> str:
    """Return for how many cells an estimator was made, and whether that was the best choice."""
    if near.cells is None:
        return ""
    known = {k: error for k, error in every.average.items() if error is not None}
    best = min(known, key=lambda k: known[k])
    words = f"; made for cells={near.cells:g}"
    if near.cells != every.average_of:
        words += f", not for the {every.average_of:,} looked at here"
    elif best != "nearly_unbiased":
        words += f"; {KINDS[best]} is closer here, with no bound on its bias"
    return words


def _winning(cells: int | None, rival: str) -> str:
    if cells is None:
        return f"there is no number of cells from which on unbiased estimates beat {rival} ones"
    if cells <= 1:
        return f"unbiased estimates are as close as {rival} ones from the first cell on"
    return f"from about {cells:,} such cells on the unbiased average, or total, beats the {rival}"


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
    """Return what is to be expected of estimators of one formula on a table, the column ``name``.

    ``cells`` says how many cells are averaged or added up; None stands for those that a nearly
    unbiased estimator was made for, or else all.
    """
    size, rows = size_of(estimator), int(counts.cells.sum())
    found = shares(size, counts.bins, counts.cells)
    known = points(estimator, size, counts, found)
    count = int(cells or getattr(estimator, "cells", None) or rows)
    errors = _Errors(estimator, size, known, count)
    lines = [errors.line(found, rows, k) for k in _held(found, rows)]
    doubts = [*_doubts(size.name, found, rows), *_below_zero(estimator, size, lines)]
    return Decision(
        name,
        text(estimator.estimand),
        size.name,
        errors.rivals,
        rows,
        tuple(lines),
        errors.line(found, rows),
        errors.near,
        errors.own,
        (*errors.notes, *doubts),
    )


def _doubts(size: str, found: Shares, rows: int) -> list[str]:
    if found.classes[0] is not EMPTY:
        return []
    return [
        f"the stated bounds say that {size} is never 0, but about {found.shares[0] * rows:,.0f} of "
        f"{rows:,} cells look empty; they are counted with the value 0"
    ]


def _below_zero(estimator: Estimator, size: Size, lines: list[Line]) -> list[str]:
    """Return what to say of negative sizes where a value in empty cells, but no bound, is given."""
    if estimator._recipe[-1] is None or all(line.low >= 0 for line in lines):
        return []
    name = " + ".join(text(s.symbol) for s in estimator._statistics if s.symbol.name in size.parts)
    return [
        f"true sizes below 0 are taken to be possible: a value in empty cells is no bound; if "
        f'{name} is a count, domain="{name} >= 0" says so, and errors are smaller'
    ]


def _held(found: Shares, rows: int) -> list[int]:
    """Return the classes with a cell, or the one that most likely has the only cell."""
    held = [k for k, share in enumerate(found.shares) if round(share * rows)]
    return held or [int(np.argmax(found.shares))]


class _Errors:
    """Exact biases and mean squared errors at the typical true values."""

    def __init__(self, estimator: Estimator, size: Size, known: Points, count: int) -> None:
        self.known, self.count = known, count
        self.notes: list[str] = []
        symbols = {s.symbol.name: s.symbol for s in estimator._statistics}
        self.f = evaluate(
            estimator.estimand, {symbols[s]: values for s, values in known.truth.items()}
        )
        self.f[known.empty] = 0.0
        f, noise, domain = estimator._recipe[:3]
        if isinstance(estimator, NearlyUnbiased):
            self.near: NearlyUnbiased | None = estimator
            exact = self._made("unbiased", partial(unbiased, f, noise, domain))
        else:
            near = partial(self._near, estimator, f, noise, domain)
            exact, self.near = estimator, self._made("nearly_unbiased", near)
        given = {"unbiased": exact, "nearly_unbiased": self.near}
        self.moments = {k: self._made(k, partial(self._of, e)) for k, e in given.items() if e}
        self.rivals = self._compare(estimator, size)
        self.own = "nearly_unbiased" if self.near is estimator else "unbiased"

    def _made(self, kind: str, make: Any) -> Any:
        """Return what is made, or note why there is none."""
        try:
            return make()
        except TrueupError as error:
            self.notes.append(f"{KINDS[kind]}: {error.message}")
            return None

    def _compare(self, estimator: Estimator, size: Size) -> dict[str, str]:
        """Compute the errors of estimates that one would take otherwise, and return how these are.

        Where no bound moves a published value nothing is clipped: that is the naive estimate.
        """
        clipped, rivals = Clipped(estimator), {}
        moves, counted = clipped.formula != estimator.estimand, size.divides and size.low >= 0
        if moves or not counted:
            kind = "clipped" if moves else "naive"
            self.moments[kind] = self._made(kind, partial(self._clipped, clipped))
            rivals[kind] = text(clipped.formula)
        naive = partial(naive_moments, estimator, size, self.known.truth)
        self.left_out = self._made("naive", naive) if counted else None
        return rivals | ({"naive": f"{size.name} ≤ 0 left out"} if counted else {})

    def _near(self, estimator: Estimator, f: Any, noise: Any, domain: Any) -> NearlyUnbiased:
        if estimator._recipe[-1] is not None:
            raise TrueupError("there is none for a value in empty cells", "state a bound above 0")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", BoundWarning)
            made = nearly_unbiased(f, noise, domain, cells=self.count)
        if made.untraded:
            raise TrueupError("no bias can be traded, it would be the unbiased one", "take that")
        self.notes += [f"nearly unbiased: {str(w.message).partition(chr(10))[0]}" for w in told]
        return made

    def _of(self, estimator: Estimator) -> tuple[Floats, Floats]:
        """Return bias and mean squared error of an estimator."""
        near = isinstance(estimator, NearlyUnbiased)
        if estimator.conditions and not near and countable(estimator.noise):
            mean, variance = self.known.at(partial(summed, estimator, estimator.noise))
            return mean - self.f, (mean - self.f) ** 2 + variance
        bias = np.zeros(len(self.f))
        if near or self.known.empty.any():
            bias = self.known.at(estimator.expectation) - self.f
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
            bias, square, spread = self._averaged(kind, weight)
            sums[kind] = bias, spread
            one[kind], biases[kind] = _known(math.sqrt(square)), _known(bias)
            average[kind] = _known(math.sqrt(bias**2 + max(spread, 0.0) / count))
        evens = {
            kind: _break_even(*sums["unbiased"], *sums[kind])
            for kind in self.rivals
            if one[kind] is not None
        }
        evens = evens or {next(iter(self.rivals)): None}
        last = max(evens, key=lambda kind: evens[kind] or math.inf)
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
            evens[last],
            last,
            round(float(weight @ noisy) * cells),
        )

    def _averaged(self, kind: str, weight: Floats) -> tuple[float, float, float]:
        """Return bias and squared error of one cell, and m times the variance of m cells' average.

        A naive average is Σwv/Σw; to the first order in 1/m it is off as an average of
        w(v − A)/P − (f − F) is, with A = E wv/P, P = E w and F = E f.
        """

        def mean(values: Floats) -> float:
            return float(weight @ np.where(weight > 0, values, 0.0))

        if found := self.moments.get(kind):
            bias, square = map(mean, found)
            return bias, square, square - bias**2
        if kind != "naive" or self.left_out is None:
            return math.nan, math.nan, math.nan
        f, (w, wv, wvv) = self.f, self.left_out
        share, true = mean(w), mean(f)
        a = mean(wv) / share
        square = mean(wvv - 2 * f * wv + f**2 * w) / share
        spread = mean(wvv - 2 * a * wv + a**2 * w) / share**2 + mean(f**2) - true**2
        return a - true, square, spread - 2 * mean(f * (wv - a * w)) / share


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _break_even(bias: float, spread: float, other: float, narrow: float) -> int | None:
    """Return from how many cells on the unbiased average wins, None if from none.

    ``bias`` is not 0 where a bound is wrong; ``other`` and ``narrow`` are those of the rival.

    Examples
    --------
    >>> _break_even(0, 4.0, 0.1, 0.99), _break_even(0, 1, 0.1, 0.99), _break_even(0, 4, 0, 1)
    (301, 1, None)
    """
    if spread + bias**2 <= (narrow + other**2) * (1 + _EQUAL):
        return 1
    gained = other**2 - bias**2
    cells = (spread - narrow) / gained if gained > 0 else math.inf
    return math.ceil(cells - 1e-9) if cells < _MOST else None
