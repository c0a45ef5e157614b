"""`report()`: what the errors of a table's new columns will be, and which estimator to take."""

from __future__ import annotations

import dataclasses
import html
import math
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from trueup.errors import TrueupError
from trueup.estimator import Estimator
from trueup.exact import number
from trueup.extras import optional
from trueup.frames import of_narwhals
from trueup.frames.columns import Column, whole
from trueup.frames.debias import eager_backend, engine_of, names_of
from trueup.frames.eager import check_whole, compute, read, warn_beyond
from trueup.frames.ends import warn_selected
from trueup.frames.total import group_sums
from trueup.notebook import table
from trueup.tables.decision import KINDS, decide, short
from trueup.tables.empty import empties_of
from trueup.tables.request import read_flag, read_requests
from trueup.tables.size_classes import FINE, size_of
from trueup.tables.typical import Counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trueup.frames.columns import Eager
    from trueup.tables.decision import Decision
    from trueup.tables.empty import Empty
    from trueup.tables.request import Request
    from trueup.tables.size_classes import Size

_ALIKE = 1.5  # scales within it: the root mean square is off by at most a quarter
_LARGEST = 1e100  # beyond, squares leave the range of floats: the row counts as missing
_NOWHERE = -1e6  # the bin of rows that miss a number: others are within FINE·asinh(1e300)


def report(
    frame: Any,
    columns: Mapping[str, Any] | None = None,
    scales: Mapping[str, Any] | None = None,
    *,
    cells: Any = None,
    clamped: Any = False,
    **estimators: Any,
) -> Report:
    """Return what to expect of unbiased, nearly unbiased, clipped and naive estimates of cells.

    For every class of cell sizes: how many cells it has, the expected error of one cell and of
    the average of the class under each estimator, from how many cells on unbiased averages (or
    totals) are closer than the best of the others, and how many cells are too noisy to use alone.

    Parameters
    ----------
    frame
        A table as for :func:`trueup.debias`. An engine counts and adds up; no row leaves it.
    columns, scales
        As for :func:`trueup.debias`. Where noise scales differ from row to row their root mean
        square is taken.
    cells
        How many cells will be averaged or added up, say those of a state; None for all, or for the
        number that a nearly unbiased estimator was made for. One is made for that number.
    clamped
        As for :func:`trueup.debias`.
    **estimators
        NAME = an estimator made by :func:`trueup.unbiased` or :func:`trueup.nearly_unbiased`.

    Notes
    -----
    The size of a cell is the denominator of the formula, or else its first statistic. True sizes
    are not known: the cells of a class are counted by maximum likelihood from the noisy sizes and
    the law of the noise. Errors are exact, not simulated, at four true sizes of each class, each
    with its own share of the cells, and with the other statistics at the mean and spread that
    cells of the class have; errors of a class are their averages. "Clipped" is the formula at
    published values moved to the nearest bound, x/max(y, 1) for s/n with n ≥ 1; "naive" is the
    formula where the published denominator is above 0, other cells being left out; without bounds
    nothing is clipped, and it is the formula at all published values. Where bounds say that no cell
    is empty but the table has empty cells, they are a class, with the value 0. A cell is too noisy
    to use alone if the expected error of the estimator that was given is larger than the true
    value.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from trueup import DiscreteLaplace, report, unbiased
    >>> rng, noise = np.random.default_rng(1), DiscreteLaplace(5)
    >>> n = np.floor(np.exp(rng.uniform(0, 8, 5000)))
    >>> table = pd.DataFrame(
    ...     {"s": 40 * n + noise.sample(5000, rng=rng), "n": n + noise.sample(5000, rng=rng)}
    ... )
    >>> pay = unbiased("s/n", {"s": noise, "n": noise}, {"n": (1, None)})
    >>> found = report(table, pay=pay)
    >>> round(found.rows[-1]["break_even"], -4), found.rows[-1]["rival"]
    (380000, 'naive')
    >>> found.table[["sizes", "cells", "unbiased", "clipped"]].round().tail(1)
       sizes  cells  unbiased  clipped
    11   all   5000     277.0     50.0
    """
    if isinstance(cells, Estimator):  # a name like any other
        cells, estimators = None, {"cells": cells, **estimators}
    count = None if cells is None else _read_cells(cells)
    other = of_narwhals.opened(frame)
    if other is not None:
        made = report(other[0], columns, scales, cells=cells, clamped=clamped, **estimators)
        return dataclasses.replace(made, like=frame)
    present, fold = names_of(frame)
    requests = read_requests(
        *(present, columns, scales, estimators), outputs=("value",), kept=(), fold=fold
    )
    backend = eager_backend(frame)
    clamped = read_flag(clamped, "clamped")
    tables = (
        _in_memory(backend, frame, requests, clamped=clamped)
        if backend
        else _in_engine(frame, requests, clamped=clamped)
    )
    found = []
    for request, (estimator, counts, notes) in zip(requests, tables, strict=True):
        decision = decide(request.name, estimator, counts, count)
        found.append(dataclasses.replace(decision, notes=(*decision.notes, *notes)))
    return Report(tuple(found), frame)


def _read_cells(value: object) -> int:
    cells = number(value, "cells", infinite=False)
    if cells >= 1:
        return int(cells)
    raise TrueupError(
        f"cells must be at least 1, got {value!r}",
        "give the number of cells that will be averaged or added up, e.g. cells=400",
    )


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Report:
    """Expected errors by size class; made by :func:`report`. Printing it shows them.

    ``decisions`` has one entry for each estimator, ``like`` is the frame that was looked at.
    """

    decisions: tuple[Decision, ...]
    like: Any

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each class of each estimate and one for all cells, as plain data."""
        return [row for decision in self.decisions for row in decision.rows]

    @property
    def conclusions(self) -> dict[str, list[str]]:
        """What follows for each estimate, in words."""
        return {decision.name: decision.conclusions for decision in self.decisions}

    @property
    def table(self) -> Any:
        """The rows as the same kind of frame."""
        other = of_narwhals.opened(self.like)
        if other is not None:
            native, back = other
            return back(dataclasses.replace(self, like=native).table)
        names = list(self.rows[0])
        new = {name: _column([row[name] for row in self.rows]) for name in names}
        backend = eager_backend(self.like)
        if backend is not None:
            return backend.make(self.like, [], np.arange(0), new)
        arrow = optional("pyarrow", "tables", "the report on a lazy frame")
        made = {name: arrow.array(c.values, mask=c.null) for name, c in new.items()}
        return engine_of(self.like).returned(self.like, arrow.table(made), [])

    def plot(self, name: str | None = None, ax: Any = None) -> Any:
        """Draw the errors of one estimate, by default the first (:func:`trueup.plots.decision`).

        Returns two axes, of one cell and of averages: ``plot()[0].figure.savefig("report.png")``.
        """
        from trueup.plots.decision import decision as draw

        return draw(self, name, ax=ax)

    def __str__(self) -> str:
        return "\n\n".join(_text(decision) for decision in self.decisions)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(_html(decision) for decision in self.decisions)


def _column(values: Sequence[Any]) -> Column:
    """Return values as a column; numbers that may be missing are floats."""
    if isinstance(values[0], str):
        return Column(np.array(values, object))
    if all(isinstance(v, int) for v in values):
        return Column(np.array(values, np.int64))
    gone = np.array([v is None for v in values])
    numbers = np.array([math.nan if v is None else v for v in values], float)
    return Column(numbers, gone if gone.any() else None)


# -- words -----------------------------------------------------------------------------------------


def _title(decision: Decision) -> str:
    return (
        f"{decision.name} = {decision.formula}: {decision.cells:,} cells by true size "
        f"{decision.size}, estimated from noisy sizes; expected errors"
    )


def _cells(decision: Decision) -> Iterator[tuple[str, ...]]:
    """Yield the head and a line for each class, as text."""
    kinds = [words.replace("nearly unbiased", "nearly") for words in KINDS.values()]
    yield (decision.size, "cells", "value", *kinds, *kinds, "break-even", "too noisy")
    for line in (*decision.lines, decision.overall):
        errors = [*line.one.values(), *line.average.values()]
        numbers = [f"{line.cells:,}", short(line.value), *map(short, errors)]
        never = "never" if decision.compared(line) else "–"
        wins = never if line.break_even is None else f"{line.break_even:,}"
        yield (line.sizes, *numbers, wins, f"{line.too_noisy:,}")


def _text(decision: Decision) -> str:
    rows = list(_cells(decision))
    widths = [max(len(row[i]) for row in rows) + 2 * (i > 0) for i in range(len(rows[0]))]
    lines = [
        row[0].ljust(widths[0])
        + "".join(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    kinds = len(KINDS)
    start, one, average = (
        sum(widths[a:b]) for a, b in ((0, 3), (3, 3 + kinds), (3 + kinds, 3 + 2 * kinds))
    )
    over = f"{'error: one cell':>{one}}{'their average':>{average}}"
    said = [f"- {line}" for line in decision.conclusions]
    return "\n".join([_title(decision), " " * start + over, *lines, *said])


def _html(decision: Decision) -> str:
    head, *rows = _cells(decision)
    wide = f"<th colspan={len(KINDS)}>"
    top = f"<tr><th colspan=3></th>{wide}one cell</th>{wide}their average</th></tr>"
    said = "".join(f"<li>{html.escape(line)}</li>" for line in decision.conclusions)
    return f"{table(head, rows, _title(decision), top)}<ul>{said}</ul>"


# -- counting --------------------------------------------------------------------------------------


def _rescaled(request: Request, scales: Mapping[str, float]) -> tuple[Estimator, list[str]]:
    """Return the estimator with the usual noise scales of a table, and what to say of them."""
    estimator, given = request.estimator, request.estimator._recipe
    if not scales:
        return estimator, []
    noise = {
        s: law.at_scale(scales[s]) if s in scales else law for s, law in estimator.noise.items()
    }
    made = type(estimator)(given[0], noise, *given[2:])
    usual = ", ".join(f"{s} {scale:.3g}" for s, scale in scales.items())
    return made, [f"noise scales differ from row to row; their root mean square was taken: {usual}"]


def _check_alike(statistic: str, least: float, most: float) -> None:
    """Refuse scales of which no one stands for all: sizes are told from noise by its law."""
    if most > _ALIKE * least:
        raise TrueupError(
            f"the noise scales of {statistic} go from {least:.3g} to {most:.3g}; a report is for "
            "much the same noise in all rows",
            "make one for the rows of each scale",
        )


def _told(missing: int, empties: Sequence[tuple[Empty, float, float, int]]) -> list[str]:
    left = [f"{missing:,} rows miss a number and are left out"] if missing else []
    return [*left, *(e.words(total, squares, rows) for e, total, squares, rows in empties if rows)]


def _in_memory(
    backend: Eager, frame: Any, requests: Sequence[Request], *, clamped: bool
) -> Iterator[tuple[Estimator, Counts, list[str]]]:
    pieces = read(backend, frame, requests)
    warn_beyond(requests, pieces, clamped=clamped)
    for request in requests:
        for piece in pieces:
            check_whole(request, piece)
        x = {s: whole(pieces, c).astype(float) for s, c in request.columns.items()}
        known = np.logical_and.reduce([np.abs(v) < _LARGEST for v in x.values()])
        scales = {s: whole(pieces, c).astype(float)[known] for s, c in request.scales.items()}
        for s, v in scales.items():
            _check_alike(s, float(v.min(initial=math.inf)), float(v.max(initial=0)))
        usual = {s: float(np.sqrt(np.mean(v**2))) for s, v in scales.items()}
        estimator, notes = _rescaled(request, usual)
        size = size_of(estimator)
        _check_some(int(known.sum()))
        x = {s: v[known] for s, v in x.items()}
        bins, at, cells = np.unique(
            np.floor(FINE * np.arcsinh(sum(x[p] for p in size.parts) / size.unit)),
            return_inverse=True,
            return_counts=True,
        )
        sums = {s: group_sums(at, v, len(bins)) for s, v in x.items()}
        squares = {s: group_sums(at, v**2, len(bins)) for s, v in x.items()}
        empties = []
        for empty in empties_of([request]):
            parts = [compute(empty.indicator, piece, ("value",))[0].values for piece in pieces]
            g = np.concatenate(parts)[known]
            empties.append((empty, float(g.sum()), float(g @ g), len(g)))
        notes += _told(int((~known).sum()), empties)
        yield estimator, Counts(bins, cells.astype(float), sums, squares), notes


def _check_some(rows: int) -> None:
    if not rows:
        raise TrueupError("the table has no row with numbers", "check the columns")


def _in_engine(
    frame: Any, requests: Sequence[Request], *, clamped: bool
) -> Iterator[tuple[Estimator, Counts, list[str]]]:
    engine = engine_of(frame)
    engine.check(frame, [c for r in requests for c in r.inputs])
    warn_selected(nw.from_native(frame).lazy(), requests, clamped=clamped)
    for request in requests:
        estimator, notes = _rescaled(request, _usual_scales(frame, request))
        size, empties = size_of(estimator), empties_of([request])
        new = {f"trueup_empty_{i}": (e.indicator, "value") for i, e in enumerate(empties)}
        cells = nw.from_native(engine.extend(frame, new) if new else frame).lazy()
        found = _grouped(cells, request, size, list(new))
        every = {name: np.array(values, float) for name, values in found.items()}  # None is NaN
        known = every["bin"] != _NOWHERE
        _check_some(int(known.sum()))
        table = {name: values[known] for name, values in every.items()}
        sums = {s: table[f"sum {s}"] for s in request.columns}
        squares = {s: table[f"squares {s}"] for s in request.columns}
        told = []
        for n, e in zip(new, empties, strict=True):
            total, squared, rows = (table[f"{n} {w}"].sum() for w in ("sum", "squares", "count"))
            told.append((e, total, squared, int(rows)))
        notes += _told(int(every["rows"][~known].sum()), told)
        yield estimator, Counts(table["bin"], table["rows"], sums, squares), notes


def _usual_scales(frame: Any, request: Request) -> dict[str, float]:
    """Return root mean squares of the scales, over the rows that are looked at."""
    if not request.scales:
        return {}
    x = {s: nw.col(c).cast(nw.Float64()) for s, c in request.scales.items()}
    known = nw.all_horizontal(
        *(nw.col(c).cast(nw.Float64()).abs() < _LARGEST for c in request.columns.values()),
        ignore_nulls=False,
    )
    made = [(v**2).mean().alias(f"mean {s}") for s, v in x.items()]
    made += [v.min().alias(f"least {s}") for s, v in x.items()]
    made += [v.max().alias(f"most {s}") for s, v in x.items()]
    made += [
        nw.when((v > 0) & v.is_finite()).then(0.0).otherwise(1.0).max().alias(f"bad {s}")
        for s, v in x.items()
    ]
    rows = nw.from_native(frame).lazy().filter(known)
    found = rows.select(*made).collect().to_dict(as_series=False)
    for s, column in request.scales.items():
        if found[f"bad {s}"][0]:
            raise TrueupError(
                f"the column {column!r} has a noise scale of {s} that is missing or not positive",
                "give every published number the scale of its noise, or leave these rows out",
            )
        _check_alike(s, found[f"least {s}"][0] or 1.0, found[f"most {s}"][0] or 1.0)
    return {s: math.sqrt(found[f"mean {s}"][0] or 1.0) for s in x}


def _grouped(cells: Any, request: Request, size: Size, empties: Sequence[str]) -> dict[str, Any]:
    """Return sums of statistics and indicators in bins of the size, and in one for missing numbers.

    asinh(u) = log(|u| + √(u² + 1)), with the sign of u.
    """
    x = {s: nw.col(c).cast(nw.Float64()) for s, c in request.columns.items()}
    cells = cells.select(
        *(v.alias(f"sum {s}") for s, v in x.items()), *(nw.col(name) for name in empties)
    )
    x = {s: nw.col(f"sum {s}") for s in x}
    known = nw.all_horizontal(*(v.abs() < _LARGEST for v in x.values()), ignore_nulls=False)
    u = nw.sum_horizontal(*(x[p] for p in size.parts)) / size.unit
    grows = (u.abs() + (u * u + 1.0).sqrt()).log()
    signed = nw.when(u < 0).then(-grows).otherwise(grows)
    squares = [(v * v).alias(f"squares {s}") for s, v in x.items()]
    squares += [(nw.col(n) * nw.col(n)).alias(f"{n} squares") for n in empties]
    bins = nw.when(known).then((signed * FINE).floor()).otherwise(nw.lit(_NOWHERE)).alias("bin")
    cells = cells.with_columns(bins, *squares)
    names = [f"{kind} {s}" for kind in ("sum", "squares") for s in x]
    made = [nw.len().alias("rows"), *(nw.col(n).sum().alias(n) for n in names)]
    for name in empties:
        made += [
            nw.col(name).sum().alias(f"{name} sum"),
            nw.col(name).count().alias(f"{name} count"),
        ]
        made.append(nw.col(f"{name} squares").sum())
    table = cells.group_by("bin").agg(*made).collect().sort("bin")
    found: dict[str, Any] = table.to_dict(as_series=False)
    return found
