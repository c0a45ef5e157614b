"""`ratio()`: ratios of sums of noisy cells, without bias, with standard errors and intervals.

Sums are taken where the table is; the ratios, one for each group, are computed in memory.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from trueup.errors import BoundWarning, TrueupError
from trueup.extras import optional
from trueup.frames import of_narwhals
from trueup.frames.columns import Column, joined
from trueup.frames.debias import engine_of
from trueup.frames.same_kind import same_kind
from trueup.frames.total import group_sums, groups_of, present_rows
from trueup.tables.ratios import SHOWN, RatioOfSums, RatioRequest, computed, too_small
from trueup.tables.request import level_of, outputs_of, read_requests
from trueup.tables.totals import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.frames.columns import Eager

    Floats = NDArray[np.float64]


_WHOLE = "check the column, or describe the noise as continuous, e.g. Laplace(scale)"


def ratio(
    frame: Any,
    by: Any = None,
    columns: Mapping[str, Any] | None = None,
    scales: Mapping[str, Any] | None = None,
    *,
    noise: Any = None,
    domain: Any = None,
    missing: str = "raise",
    stderr: bool = True,
    interval: Any = None,
    **estimators: Any,
) -> Any:
    """Return Σs/Σn without bias, over all rows or group by group, with its standard error.

    The ratio of sums is what one wants of a group: pay per head over all of its cells. It
    has the noise of two sums, which hardly matters where they are large: no bound for single
    cells is needed, and cells may be empty. One row comes back for each group: the columns of
    ``by``, the number of ``rows``, NAME and NAME_stderr.

    Parameters
    ----------
    frame
        A table as for :func:`trueup.debias`; the same kind comes back. An engine adds up, and the
        ratios of its groups are computed in memory.
    by
        A column, or a list of columns, to group by; None takes all rows.
    columns, scales
        As for :func:`trueup.debias`.
    noise, domain
        What is known of the statistics of formulas given as text, as for :func:`trueup.unbiased`.
    missing
        What to do with rows that miss a number: ``"raise"``, or ``"skip"`` them. An engine cannot
        raise: without ``"skip"`` the ratio of their group is null.
    stderr
        False leaves out the standard errors.
    interval
        A level such as 0.95: NAME_low and NAME_high are added, ends that cover at least that often.
    **estimators
        NAME = an estimator of a quotient made by :func:`trueup.unbiased`, or its formula.

    Notes
    -----
    The estimate is unbiased up to 1e-9 of its standard error. Where the denominator is too small
    for its noise, groups of one cell or a few (up to eight, discrete Laplace noise of scale 5 four)
    have an exact estimate if its domain allows one, as a cell has. In other groups it is missing,
    with a warning; the interval is not.

    Where bounds keep the denominator away from 0 intervals are finite however small it is, and
    elsewhere about 1 % longer than without bounds: a small share of the error is kept for that.

    Examples
    --------
    >>> import polars as pl
    >>> from trueup import Laplace, ratio
    >>> data = {"state": ["A", "A", "B"], "s": [51.7, 30.2, 88.0], "n": [103, 61, 190]}
    >>> cells = pl.DataFrame(data)
    >>> ratio(cells, by="state", noise={"s": Laplace(1), "n": Laplace(1)}, pay="s/n")
    shape: (2, 4)
    ┌───────┬──────┬──────────┬────────────┐
    │ state ┆ rows ┆ pay      ┆ pay_stderr │
    │ ---   ┆ ---  ┆ ---      ┆ ---        │
    │ str   ┆ i64  ┆ f64      ┆ f64        │
    ╞═══════╪══════╪══════════╪════════════╡
    │ A     ┆ 2    ┆ 0.499316 ┆ 0.013628   │
    │ B     ┆ 1    ┆ 0.463132 ┆ 0.008202   │
    └───────┴──────┴──────────┴────────────┘
    """
    if of_narwhals.is_wrapped(frame):
        native = ratio(
            frame.to_native(), by, columns, scales,
            noise=noise, domain=domain, missing=missing, stderr=stderr, interval=interval,
            **estimators,
        )  # fmt: skip
        return of_narwhals.wrapped(native, frame)
    backend, present, fold, keys = groups_of(frame, by, missing)
    asked = {name: RatioOfSums.read(f, noise, domain) for name, f in estimators.items()}
    made = read_requests(
        *(present, columns, scales, asked),
        outputs=outputs_of(stderr, interval),
        level=level_of(interval) or 0.95,
        kept=[*keys, ROWS],
        fold=fold,
    )
    requests = [RatioRequest(**vars(request)) for request in made]
    skip = missing == "skip"
    if backend is not None:
        return _in_memory(backend, frame, requests, keys, skip=skip)
    engine_of(frame).check(frame, [c for r in requests for c in r.inputs])
    return _in_engine(frame, requests, keys, skip=skip)


# -- tables in memory ------------------------------------------------------------------------------


def _in_memory(
    backend: Eager, frame: Any, requests: Sequence[RatioRequest], keys: Sequence[Any], *, skip: bool
) -> Any:
    names = list(dict.fromkeys(c for r in requests for c in r.inputs))
    pieces = list(backend.pieces(frame, names))
    inputs = {n: joined([piece.columns[n] for piece in pieces]).values.astype(float) for n in names}
    for request in requests:
        _check_numbers(request, inputs)
    kept = present_rows(inputs, skip=skip)
    every = backend.codes(frame, list(keys)) if keys else np.zeros(len(inputs[names[0]]), np.intp)
    codes, groups = every[kept], int(every.max(initial=-1)) + 1 if keys else 1
    values = {name: column[kept] for name, column in inputs.items()}
    rows = np.bincount(codes, minlength=groups)
    new = {ROWS: Column(rows.astype(np.int64))}
    first = np.full(groups, len(every))
    np.minimum.at(first, every, np.arange(len(every)))
    for r in requests:
        sums = {s: group_sums(codes, values[c], groups) for s, c in r.columns.items()}
        levels = {s: _levels(codes, values[c], groups) for s, c in r.scales.items()}
        found = computed(r, rows.astype(float), sums, levels)
        _warn(r, found, rows, lambda few: _keys(backend, frame, keys, first[few]))
        for name, output in r.written.items():
            gone = np.isnan(found[output])
            new[name] = Column(found[output], gone if gone.any() else None)
    return backend.make(frame, list(keys), first if keys else first[:0], new)


def _check_numbers(request: RatioRequest, inputs: Mapping[Any, Floats]) -> None:
    """Refuse broken numbers under integer noise, and scales that are not positive."""
    for statistic, column in request.columns.items():
        x = inputs[column]
        broken = np.flatnonzero((np.floor(x) != x) & np.isfinite(x))
        if request.ratio.noise[statistic].lattice and len(broken):
            row = int(broken[0])
            raise TrueupError(
                f"the column {column!r} has {float(x[row])!r} at row {row}, but {statistic} has "
                "integer noise: its published values are whole numbers",
                _WHOLE,
            )
    for statistic, column in request.scales.items():
        bad = np.flatnonzero(inputs[column] <= 0)
        if len(bad):
            raise _not_positive(statistic, column, inputs[column][bad[0]], f" at row {bad[0]}")


def _not_positive(statistic: str, column: Any, scale: float, where: str) -> TrueupError:
    return TrueupError(
        f"the noise scale of {statistic} is {scale:g}{where} (column {column!r}), "
        "it must be positive",
        "give every published number the scale of its noise, or leave these rows out",
    )


def _keys(backend: Eager, frame: Any, keys: Sequence[Any], rows: NDArray[Any]) -> list[Any]:
    """Return the keys of a few groups, given a row of each."""
    made = backend.make(frame, list(keys), rows, {})
    return list(zip(*(map(str, made[key]) for key in keys), strict=True))


def _levels(codes: NDArray[np.intp], scale: Floats, groups: int) -> list[list[tuple[float, int]]]:
    """Return the scales in each group, and how many cells have each."""
    pairs, counts = np.unique(np.stack([codes, scale], axis=1), axis=0, return_counts=True)
    found: list[list[tuple[float, int]]] = [[] for _ in range(groups)]
    for (code, value), count in zip(pairs.tolist(), counts.tolist(), strict=True):
        found[int(code)].append((value, count))
    return found


def _warn(
    r: RatioRequest,
    found: Mapping[str, Floats],
    rows: NDArray[Any],
    keys: Callable[[NDArray[np.intp]], list[Any]],
) -> None:
    gone = np.flatnonzero(np.isnan(found["value"]) & (rows > 0))
    if len(gone):
        named = keys(gone[:SHOWN]) if len(rows) > 1 else []
        said = too_small(named, len(gone), len(rows))
        warnings.warn(f"{r.name}: {said}", BoundWarning, stacklevel=4)


# -- lazy frames and engines -----------------------------------------------------------------------


def _in_engine(
    frame: Any, requests: Sequence[RatioRequest], keys: Sequence[Any], *, skip: bool
) -> Any:
    names = list(dict.fromkeys(c for r in requests for c in r.inputs))
    cells = (
        nw.from_native(frame)
        .lazy()
        .select(*keys, *(nw.col(n).cast(nw.Float64()).alias(f"{n}#") for n in names))
    )
    numbers = [f"{n}#" for n in names]
    if skip:
        cells = cells.drop_nulls(numbers).filter(*(~nw.col(n).is_nan() for n in numbers))
    sums = [nw.col(n).sum().alias(n) for n in numbers]
    known = [nw.col(n).count().alias(f"{n}#") for n in numbers]
    rows = nw.len().alias(ROWS)
    broken = {c for r in requests for s, c in r.columns.items() if r.ratio.noise[s].lattice}
    parts = [f"{n}#" for n in names if n in broken]
    marked = [_broken(nw.col(n)).alias(f"{n}~") for n in parts]
    marks = [nw.col(f"{n}~").max() for n in parts]
    every = cells.with_columns(*marked) if marked else cells
    table = _summed(every, keys, [rows, *sums, *known, *marks])
    table = table.sort(*keys) if keys else table  # engines return groups in any order
    groups = {name: table[name].to_list() for name in table.columns}
    order = {_key(key): i for i, key in enumerate(zip(*(groups[k] for k in keys), strict=True))}
    _check_broken([n for n in names if any(groups.get(f"{n}#~", ()))], requests)
    counts = np.array(groups[ROWS], float)
    total = {n: np.array(groups[f"{n}#"], float) for n in names}  # None becomes NaN
    whole = {n: (np.array(groups[f"{n}##"], float) == counts) & ~np.isnan(total[n]) for n in names}
    new: dict[str, Floats] = {}
    for r in requests:
        usable = np.logical_and.reduce([whole[column] for column in r.inputs])
        published = {s: np.where(usable, total[c], math.nan) for s, c in r.columns.items()}
        levels = {s: _engine_levels(cells, keys, (s, c), order) for s, c in r.scales.items()}
        found = computed(r, counts, published, levels)
        _warn(r, found, counts * usable, lambda few: [[*order][i] for i in few])
        new |= {name: found[output] for name, output in r.written.items()}
    return _returned(frame, table.select(*keys), keys, counts, new)


def _broken(x: nw.Expr) -> nw.Expr:
    """Return 1 where a number is not whole."""
    return ((x.floor() != x) & ~x.is_nan()).cast(nw.Float64())


def _check_broken(columns: Sequence[Any], requests: Sequence[RatioRequest]) -> None:
    for column in columns:
        names = [s for r in requests for s, c in r.columns.items() if c == column]
        raise TrueupError(
            f"the column {column!r} has numbers that are not whole, but {names[0]} has integer "
            "noise: its published values are whole numbers",
            _WHOLE,
        )


def _summed(cells: Any, keys: Sequence[str], made: Sequence[nw.Expr]) -> Any:
    found = cells.group_by(*keys).agg(*made) if keys else cells.select(*made)
    return found.collect("pyarrow")


def _key(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the key of a group such that it equals itself: NaN is a group too."""
    return tuple("nan" if value != value else value for value in values)


def _engine_levels(
    cells: Any, keys: Sequence[str], scaled: tuple[str, str], order: Mapping[Any, int]
) -> Any:
    """Return the scales in each group, and how many cells have each; missing ones are left out."""
    statistic, column = scaled
    scale = f"{column}#"
    table = _summed(cells, [*keys, scale], [nw.len().alias(ROWS)])
    found: list[list[tuple[float, int]]] = [[] for _ in range(max(1, len(order)))]
    columns = [table[name].to_list() for name in (*keys, scale, ROWS)]
    for *key, value, count in zip(*columns, strict=True):
        if value is None or math.isnan(value):
            continue
        if value <= 0:
            raise _not_positive(statistic, column, value, f" in {count} row{'s' * (count != 1)}")
        found[order[_key(key)] if keys else 0].append((value, int(count)))
    return found


def _returned(
    frame: Any, groups: Any, keys: Sequence[str], rows: Floats, new: Mapping[str, Floats]
) -> Any:
    """Return groups and results as a table of the same kind."""
    arrow = optional("pyarrow", "tables", "ratios of a lazy frame")
    results = {ROWS: arrow.array(rows.astype(np.int64))}
    for name, values in new.items():
        results[name] = arrow.array(values, mask=np.isnan(values))
    table = groups.to_native() if keys else None
    columns = {k: table[k] for k in keys} | results if table is not None else results
    return same_kind(frame, arrow.table(columns), keys)
