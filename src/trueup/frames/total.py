"""`total()`: sums, weighted means and group-bys of debiased cells, with standard errors.

Cells are debiased to be summed: the bias of a plug-in adds up, noise averages out. Independent
cells add their variances; cells that share a published number add their covariances too
(:mod:`trueup.inverse.sharing`).
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from trueup.errors import TrueupError
from trueup.frames import of_narwhals
from trueup.frames.columns import Column, either, joined, whole
from trueup.frames.debias import eager_backend, engine_of, names_of
from trueup.frames.eager import compute, read, warn_beyond
from trueup.inverse.sharing import sharing
from trueup.kernels.grid import columns as evaluate
from trueup.tables.request import check_column, check_known, outputs_of, read_flag, read_requests
from trueup.tables.totals import (
    LARGEST,
    ROWS,
    Nonempty,
    Totals,
    averaged,
    check_copies,
    check_weights,
    missing_numbers,
    read_average,
    summands,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.frames.columns import Eager, Engine
    from trueup.inverse.sharing import Sharing
    from trueup.tables.request import Request

    Floats = NDArray[np.float64]

_BLOCK = 65_536


def total(
    frame: Any,
    by: Any = None,
    weights: Any = None,
    columns: Mapping[str, Any] | None = None,
    scales: Mapping[str, Any] | None = None,
    *,
    shared: Mapping[str, Any] | None = None,
    average: bool | str = False,
    missing: str = "raise",
    stderr: bool = True,
    clamped: Any = False,
    **estimators: Any,
) -> Any:
    """Return the sum of debiased cells with its standard error, over all rows or group by group.

    One row for each group: the columns of ``by``, the number of ``rows`` summed, and NAME and
    NAME_stderr for each estimator. The standard error is the root of an unbiased estimate of the
    variance, null where that is negative.

    Parameters
    ----------
    frame
        A table as for :func:`trueup.debias`; the same kind comes back.
    by
        A column, or a list of columns, to group by; None sums all rows. In memory groups come in
        the order in which they first appear; an engine gives them in any order.
    weights
        A column of known weights w: Σ w·g in place of Σ g. Weights that are noisy themselves are
        refused; :func:`trueup.ratio` is for them. So are copies of a noisy column, in memory; what
        was computed from one is not recognised, and gives biased sums.
    columns, scales
        As for :func:`trueup.debias`.
    shared
        ``{"n": "state"}``: rows with the same state hold one and the same noisy n, drawn once.
        Such cells are correlated, and their covariances are added. For tables in memory.
    average
        Divide by Σ w, or by the number of rows: weighted means, or means, of cells. Where Σ w is 0
        a mean is undefined: refused in memory, null in an engine. ``"nonempty"`` is for cells that
        may be empty: the sum over the others, divided by the unbiased number of them (discrete
        Laplace noise of the count), with its standard error. It is for many cells: null where the
        estimated number is not positive.
    missing
        What to do with rows that miss a number: ``"raise"``, or ``"skip"`` them. An engine cannot
        raise: without ``"skip"`` the total of their group is null. A number beyond ±1e100 counts as
        missing. A group whose rows are all skipped stays, with 0 rows and a sum of 0.
    stderr
        False leaves out the standard errors, which do not exist where a variance is infinite.
    clamped
        As for :func:`trueup.debias`.
    **estimators
        NAME = an estimator made by :func:`trueup.unbiased`.

    Examples
    --------
    >>> import polars as pl
    >>> from trueup import DiscreteLaplace, Laplace, total, unbiased
    >>> pay = unbiased("s/n", {"s": Laplace(2), "n": DiscreteLaplace(2)}, {"n": (1, None)})
    >>> cells = pl.DataFrame(
    ...     {"state": ["A", "A", "B"], "s": [51.7, 30.2, 88.0], "n": [103, 61, 90]}
    ... )
    >>> total(cells, by="state", pay=pay)
    shape: (2, 4)
    ┌───────┬──────┬──────────┬────────────┐
    │ state ┆ rows ┆ pay      ┆ pay_stderr │
    │ ---   ┆ ---  ┆ ---      ┆ ---        │
    │ str   ┆ i64  ┆ f64      ┆ f64        │
    ╞═══════╪══════╪══════════╪════════════╡
    │ A     ┆ 2    ┆ 0.99561  ┆ 0.059939   │
    │ B     ┆ 1    ┆ 0.976832 ┆ 0.043713   │
    └───────┴──────┴──────────┴────────────┘
    """
    other = of_narwhals.opened(frame)
    if other is not None:
        native, back = other
        options: dict[str, Any] = {"average": average, "missing": missing, "stderr": stderr}
        options |= {"shared": shared, "clamped": clamped, **estimators}
        return back(total(native, by, weights, columns, scales, **options))
    present, fold = names_of(frame)
    keys = keys_of(by, missing, present, fold)
    totals = Totals(keys, weights, *read_average(average), missing == "skip")
    requests = read_requests(
        *(present, columns, scales, estimators),
        outputs=outputs_of(stderr),
        kept=[*keys, ROWS],
        fold=fold,
    )
    if weights is not None:
        check_column(weights, present, "weights", "weights=…", fold)
        check_weights(weights, requests, fold)
    backend = eager_backend(frame)
    if shared and totals.nonempty:
        raise TrueupError(
            "average='nonempty' is for independent cells",
            "leave one of them out",
        )
    if backend is not None:
        ids = _read_shared(shared, requests, present)
        cells = Cells(backend, frame, requests, totals)
        warn_beyond(requests, cells.pieces, clamped=read_flag(clamped, "clamped"))
        return _in_memory(cells, requests, ids)
    if shared:
        raise TrueupError(
            "cells that share a statistic are summed in memory only",
            "collect the frame first, or leave out shared= for independent cells",
        )
    numbers = [*(c for r in requests for c in r.inputs), *([] if weights is None else [weights])]
    engine = engine_of(frame)
    engine.check(frame, numbers)
    return in_engine(engine, frame, requests, totals)


def keys_of(
    by: Any, missing: object, present: Sequence[Any], fold: Callable[[Any], Any]
) -> tuple[Any, ...]:
    """Return the columns that a table is grouped by, or say why it cannot be."""
    if missing not in ("raise", "skip"):
        raise TrueupError(f"missing must be 'raise' or 'skip', got {missing!r}", "see its help")
    keys = tuple(by) if isinstance(by, (list, tuple)) else () if by is None else (by,)
    once: dict[Any, Any] = {}
    for column in keys:
        check_column(column, present, "by", "by=…", fold)
        once.setdefault(fold(column), column)
    return tuple(once.values())


# -- cells in memory -------------------------------------------------------------------------------


class Cells:
    """The rows of a table in memory that are summed: numbers, weights and groups."""

    def __init__(
        self, backend: Eager, frame: Any, requests: Sequence[Request], totals: Totals
    ) -> None:
        self.backend, self.frame, self.totals = backend, frame, totals
        self.pieces = read(backend, frame, requests, skip=totals.skip or totals.ratio)
        keys, weights = totals.by, totals.weights
        names = dict.fromkeys(c for r in requests for c in r.inputs)
        self.inputs = {name: whole(self.pieces, name) for name in names}
        size = len(next(iter(self.inputs.values())))
        self.weight, named = np.ones(size), {}
        if weights is not None:
            self.weight = whole(list(backend.pieces(frame, [weights])), weights).astype(float)
            check_copies(weights, self.weight, self.inputs, requests)
            named = {weights: self.weight}
        self.kept = present_rows(self.inputs, named, skip=totals.skip)
        self.codes = backend.codes(frame, list(keys)) if keys else np.zeros(size, np.intp)
        self.groups = int(self.codes.max(initial=-1)) + 1 if keys else 1
        self.rows = np.bincount(self.codes[self.kept], minlength=self.groups)

    def output(self, w: Request, output: str) -> Floats:
        """Return estimates or variances of the rows that are kept."""
        parts = [compute(w, piece, (output,))[0] for piece in self.pieces]
        return joined(parts).values[self.kept]

    def sums(self, values: Floats) -> Floats:
        """Return the sum over each group of a number for each row that is kept."""
        return group_sums(self.codes[self.kept], values, self.groups)

    def codes_of(self, names: Sequence[Any]) -> NDArray[np.intp]:
        """Return which rows, of those kept, agree in the groups and in further columns."""
        every = list(dict.fromkeys([*self.totals.by, *names]))
        return self.backend.codes(self.frame, every)[self.kept]

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """The first row of each group; without keys there is none to show."""
        first = np.full(self.groups, len(self.codes))
        np.minimum.at(first, self.codes, np.arange(len(self.codes)))
        return first if self.totals.by else first[:0]

    def result(self, new: Mapping[str, Column]) -> Any:
        """Return a frame with the keys of the groups, their numbers of rows, and new columns."""
        rows = {ROWS: Column(self.rows.astype(np.int64))}
        return self.backend.make(self.frame, list(self.totals.by), self.first, {**rows, **new})


def present_rows(
    inputs: Mapping[Any, NDArray[Any]], weight: Mapping[Any, NDArray[Any]], *, skip: bool
) -> NDArray[np.intp]:
    """Return the rows where no number is missing; refuse others unless they are to be skipped."""
    largest = np.float64(LARGEST)  # single precision is compared in double
    gone = {n: ~(np.abs(v) <= largest) for n, v in inputs.items() if v.dtype.kind == "f"}
    gone |= {n: np.isnan(v) for n, v in weight.items()}
    absent = either(list(gone.values()))
    if absent is None:
        return np.arange(len(next(iter(inputs.values()))))
    if absent.any() and not skip:
        row = int(np.flatnonzero(absent)[0])
        name = next(n for n, missing in gone.items() if missing[row])
        value = {**inputs, **weight}[name][row]
        beyond = "" if np.isnan(value) else f" has {value:g}: beyond ±1e100 it counts as missing"
        first = f", the first is row {row} (column {name!r}{beyond})"
        raise missing_numbers(int(absent.sum()), len(absent), "missing='skip'", first)
    return np.flatnonzero(~absent)


def group_sums(codes: NDArray[np.intp], values: Floats, groups: int) -> Floats:
    """Return the sum of each group, added up in blocks so that rounding does not pile up.

    Examples
    --------
    >>> group_sums(np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), 2)
    array([4., 2.])
    """
    block, result = max(_BLOCK, groups), np.zeros(groups)
    for start in range(0, len(values), block):
        part = slice(start, start + block)
        result += np.bincount(codes[part], values[part], groups)
    return result


def _in_memory(cells: Cells, requests: Sequence[Request], ids: Mapping[str, Any]) -> Any:
    weight, totals = cells.weight[cells.kept], cells.totals
    over = cells.sums(weight) if totals.average else np.ones(cells.groups)
    if (over == 0).any():
        raise TrueupError(
            "a mean over weights that add up to 0 is undefined",
            "leave out average=True for sums, or groups without rows",
        )
    new = {}
    for w in requests:
        empty = Nonempty.of(w) if totals.nonempty else None
        e = None if empty is None else cells.output(empty.indicator, "value")
        variance = cells.output(w, "variance") if w.has_errors else None
        rows = summands(cells.output(w, "value"), variance, e, weight)
        sums = {name: cells.sums(x) for name, x in rows.items()}
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, spread, cell = averaged(sums, over, empty)
            new[w.name] = _known(mean, cell > 0 if totals.nonempty else cell != 0)
            if w.has_errors:
                spread = spread + covariances(cells, w, ids)
                new[f"{w.name}_stderr"] = _known(np.sqrt(spread) / np.abs(cell), spread >= 0)
    return cells.result(new)


def _known(values: Floats, known: NDArray[np.bool_]) -> Column:
    return Column(np.where(known, values, np.nan), None if known.all() else ~known)


# -- cells that share a statistic ------------------------------------------------------------------


def _read_shared(
    shared: Mapping[str, Any] | None, requests: Sequence[Request], present: Sequence[Any]
) -> dict[str, Any]:
    """Return the column that tells draws of each shared statistic apart."""
    check_known(shared or {}, "shared", {s for r in requests for s in r.columns})
    for name, column in (shared or {}).items():
        check_column(column, present, f"the draws of {name}", f"shared={{{name!r}: …}}")
    return dict(shared or {})


def covariances(cells: Cells, w: Request, ids: Mapping[str, Any]) -> Floats:
    """Return Σ wᵢwⱼ cov(gᵢ, gⱼ) over the pairs i ≠ j of each group that share a statistic.

    Pairs that agree in the id columns P and in no other are those that agree in P, less those that
    agree in more: a sum over the sets of id columns above P with alternating signs.
    """
    result = np.zeros(cells.groups)
    own = {s.symbol: ids[s.symbol.name] for s in w.statistics if s.symbol.name in ids}
    if not own:
        return result
    _check_draws(cells, w, ids)
    arrays = [cells.inputs[c][cells.kept] for c in w.inputs]
    for component in w.components:
        columns = list(dict.fromkeys(own[s] for s in component.statistics if s in own))
        for chosen in _subsets(columns):
            if len(np.unique(cells.codes_of(chosen))) == len(cells.kept):
                continue  # no two rows agree
            common = frozenset(s for s, column in own.items() if column in chosen)
            common_to = sharing(component, common, w.statistics, w.scale_symbols)
            keys = dict.fromkeys(key for pair in common_to.pairs for key in pair)
            phi = {k: _values(common_to.functional(k), arrays) for k in keys}
            for finer in _subsets(columns):
                if {*chosen} <= {*finer}:
                    sign = (-1) ** (len(finer) - len(chosen))
                    result += sign * _pairs(cells, common_to, phi, arrays, finer)
    return result


def _subsets(columns: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for size in range(1, len(columns) + 1):
        yield from combinations(columns, size)


def _pairs(
    cells: Cells,
    common_to: Sharing,
    phi: Mapping[Any, Floats],
    arrays: Sequence[Floats],
    finer: Sequence[Any],
) -> Floats:
    """Return Σ K(a, b)·a[φᵢ]·b[φⱼ] over all pairs i ≠ j that agree in some columns, by group."""
    _, first, codes = np.unique(cells.codes_of(finer), return_index=True, return_inverse=True)
    weight, draws = cells.weight[cells.kept], [a[first] for a in arrays]
    numbers = {key: weight * values for key, values in phi.items()}
    sums = {key: group_sums(codes, values, len(first)) for key, values in numbers.items()}
    total = np.zeros(len(first))
    for a, b in common_to.pairs:
        own = group_sums(codes, numbers[a] * numbers[b], len(first))
        total += _values(common_to.weight((a, b)), draws) * (sums[a] * sums[b] - own)
    return group_sums(cells.codes[cells.kept][first], total, cells.groups)


def _values(grid: Any, arrays: Sequence[Floats]) -> Floats:
    found: Floats = evaluate(grid, None, arrays, ("value",), np.dtype(float))[0]
    return found


def _check_draws(cells: Cells, w: Request, ids: Mapping[str, Any]) -> None:
    """Raise where rows said to share a number hold different ones."""
    for statistic, column in w.columns.items():
        if statistic not in ids:
            continue
        codes = cells.backend.codes(cells.frame, [ids[statistic]])[cells.kept]
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        for name in [column, *([w.scales[statistic]] if statistic in w.scales else [])]:
            values = cells.inputs[name][cells.kept]
            other = np.flatnonzero(values != values[first[inverse]])
            if len(other):
                row, twin = int(other[0]), int(first[inverse[other[0]]])
                raise TrueupError(
                    f"rows {cells.kept[twin]} and {cells.kept[row]} agree in {ids[statistic]!r}, "
                    f"so they share one draw of {statistic}, but the column {name!r} has "
                    f"{float(values[twin]):g} and {float(values[row]):g}",
                    "shared={statistic: column} names the column that tells the draws apart",
                )


# -- lazy frames and engines -----------------------------------------------------------------------


def in_engine(engine: Engine, frame: Any, requests: Sequence[Request], totals: Totals) -> Any:
    """Return one row for each group; a missing number makes its total null unless skipped."""
    taken = list(engine.names(frame))
    empty = {w.name: Nonempty.of(w) if totals.nonempty else None for w in requests}
    new: dict[str, tuple[Request, str]] = {}
    parts: dict[str, list[Any]] = {}
    for w in requests:
        told, of = empty[w.name], w.name
        asked = [(w, "value"), (w, "variance") if w.has_errors else None]
        asked.append(None if told is None else (told.indicator, "value"))
        names = [None if what is None else new_name(taken) for what in asked]
        new |= {n: what for n, what in zip(names, asked, strict=True) if n and what}
        parts[of] = [None if n is None else nw.col(n) for n in names]
    weighed = totals.weights is not None
    weight = nw.col(totals.weights).cast(nw.Float64()) if weighed else nw.lit(1.0)
    count = new_name(taken)
    named: dict[str, dict[str, str]] = {}
    rows: dict[str, Any] = {}
    for w in requests:
        g, variance, e = parts[w.name]
        made = summands(g, variance, e, weight)
        named[w.name] = {part: new_name(taken) for part in made}
        there = [within(column) for column in w.inputs]
        rows |= {named[w.name][part]: nw.when(*there).then(x) for part, x in made.items()}
    cells = nw.from_native(engine.extend(frame, new))
    cells = cells.select(*totals.by, **rows, **{count: weight})
    cells = present_cells(cells, [*rows, count]) if totals.skip else cells
    summed = engine_sums(cells, totals.by, [*rows, count], skip=totals.skip)
    over = nw.col(count) if totals.average else nw.lit(1.0)
    results = {ROWS: nw.col(ROWS).cast(nw.Int64())}
    for w in requests:
        sums = {part: nw.col(name) for part, name in named[w.name].items()}
        mean, spread, cell = averaged(sums, over, empty[w.name])
        all_there = (nw.col(f"{n}#") == nw.col(ROWS) for n in (*named[w.name].values(), count))
        known = [*all_there, cell > 0 if totals.nonempty else cell != 0]
        for name, output in w.written.items():
            if output == "value":
                results[name] = nw.when(*known).then(mean)
            elif output == "variance":
                results[name] = nw.when(*known).then(spread / (cell * cell))
            else:
                root = spread.abs().sqrt() / cell.abs()
                results[name] = nw.when(*known, spread >= 0).then(root)
    return summed.select(*totals.by, **results).to_native()


def new_name(taken: list[str]) -> str:
    """Return the name of a new column, and add it to those that are taken."""
    name: str = nw.generate_temporary_column_name(8, taken)
    taken.append(name)
    return name


def within(column: str) -> nw.Expr:
    """Return whether a number is there, and none that counts as missing."""
    return nw.col(column).cast(nw.Float64()).abs() <= LARGEST


def present_cells(cells: Any, names: Sequence[str]) -> Any:
    """Return all rows, without any number where one is missing: so every group stays."""
    there = [~nw.col(name).is_null() & ~nw.col(name).is_nan() for name in names]
    return cells.with_columns(**{n: nw.when(*there).then(nw.col(n)) for n in names})


def engine_sums(
    cells: Any, keys: Sequence[str], names: Sequence[str], *more: nw.Expr, skip: bool = False
) -> Any:
    """Return by group the rows, sums NAME, how many numbers NAME# they have, and what more is.

    With ``skip`` rows without numbers, as :func:`present_cells` leaves them, are not counted.
    """
    made = [nw.len().alias(ROWS), *(nw.col(name).sum() for name in names)]
    made += [nw.col(name).count().alias(f"{name}#") for name in names]
    summed = cells.group_by(*keys).agg(*made, *more) if keys else cells.select(*made, *more)
    return summed.with_columns(nw.col(f"{names[0]}#").alias(ROWS)) if skip else summed
