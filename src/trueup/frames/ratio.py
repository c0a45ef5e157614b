"""`ratio()`: ratios of sums of noisy cells, without bias, with standard errors and intervals.

Sums are taken where the table is; the ratios, one for each group, are computed in memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from trueup.errors import TrueupError
from trueup.extras import optional
from trueup.frames import of_narwhals
from trueup.frames.columns import Column
from trueup.frames.debias import eager_backend, engine_of, names_of
from trueup.frames.eager import WHOLE, check_whole, not_positive, warn_selected_in
from trueup.frames.ends import warn_selected
from trueup.frames.total import Cells, engine_sums, keys_of, new_name, present_cells, within
from trueup.tables.bounds import warn
from trueup.tables.ratios import SHOWN, TOLD, RatioOfSums, RatioRequest, computed, too_small
from trueup.tables.request import check_formulas, level_of, outputs_of, read_flag, read_requests
from trueup.tables.totals import ROWS, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.frames.columns import Engine

    Floats = NDArray[np.float64]


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
    bias: bool = False,
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
        raise: without ``"skip"`` the ratio of their group is null. A number beyond ±1e100 counts as
        missing.
    stderr
        False leaves out the standard errors.
    interval
        A level such as 0.95: NAME_low and NAME_high are added, ends that cover at least that often.
    bias
        True adds NAME_bias: what the bias is at most, as a share of the ratio; 0 where it is below
        1e-9 of the standard error.
    **estimators
        NAME = an estimator of a quotient made by :func:`trueup.unbiased`, or its formula.

    Notes
    -----
    Every group has an estimate, whatever was published: to show groups by their noisy denominators
    would bias those that are shown. It is unbiased up to 1e-9 of its standard error, or exactly, as
    that of a cell, in groups of one cell or a few (up to eight, discrete Laplace noise of scale 5
    four) if the domain allows it. Where the denominator may be small for its noise the estimate is
    nearly unbiased: ``bias`` gives the bound, by what is known of the cells and, but for odds of
    1e-12, by what was published. From 1 % on a warning tells it.

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
    other = of_narwhals.opened(frame)
    if other is not None:
        native, back = other
        options = {"missing": missing, "stderr": stderr, "interval": interval, "bias": bias}
        given = {"noise": noise, "domain": domain, **options, **estimators}
        return back(ratio(native, by, columns, scales, **given))
    present, fold = names_of(frame)
    keys = keys_of(by, missing, present, fold)
    check_formulas(
        estimators, "by, columns, scales, noise, domain, missing, stderr, interval, bias"
    )
    asked = {name: RatioOfSums.read(f, noise, domain) for name, f in estimators.items()}
    made = read_requests(
        *(present, columns, scales, asked),
        outputs=outputs_of(stderr, interval) + ("bias",) * read_flag(bias, "bias"),
        level=level_of(interval) or 0.95,
        kept=[*keys, ROWS],
        fold=fold,
    )
    requests = [RatioRequest(**vars(request)) for request in made]
    totals = Totals(keys, skip=missing == "skip", ratio=True)
    backend = eager_backend(frame)
    if backend is not None:
        cells = Cells(backend, frame, requests, totals)
        warn_selected_in(cells.pieces, requests)
        return _in_memory(cells, requests)
    engine = engine_of(frame)
    engine.check(frame, [c for r in requests for c in r.inputs])
    warn_selected(nw.from_native(frame).lazy(), requests)
    return _in_engine(engine, frame, requests, totals)


# -- tables in memory ------------------------------------------------------------------------------


def _in_memory(cells: Cells, requests: Sequence[RatioRequest]) -> Any:
    for r in requests:
        for piece in cells.pieces:
            check_whole(r, piece)
    codes, new = cells.codes[cells.kept], {}
    x = {name: column[cells.kept] for name, column in cells.inputs.items()}
    for r in requests:
        sums = {s: cells.sums(x[c]) for s, c in r.columns.items()}
        levels = {s: _levels(codes, x[c], cells.groups) for s, c in r.scales.items()}
        found = computed(r, cells.rows.astype(float), sums, levels)
        _warn(r, found, cells.rows, lambda few: _keys(cells, few))
        for name, output in r.written.items():
            gone = np.isnan(found[output])
            new[name] = Column(found[output], gone if gone.any() else None)
    return cells.result(new)


def _keys(cells: Cells, few: NDArray[np.intp]) -> list[Any]:
    """Return the keys of a few groups."""
    keys = cells.totals.by
    made = cells.backend.make(cells.frame, list(keys), cells.first[few], {})
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
    doubtful = np.flatnonzero((found["bias"] > TOLD) & (rows > 0))
    if len(doubtful):
        named = keys(doubtful[:SHOWN]) if len(rows) > 1 else []
        largest = float(found["bias"][doubtful].max())
        warn(f"{r.name}: {too_small(named, len(doubtful), len(rows), largest)}")


# -- lazy frames and engines -----------------------------------------------------------------------


def _in_engine(engine: Engine, frame: Any, requests: Sequence[RatioRequest], totals: Totals) -> Any:
    arrow = optional("pyarrow", "tables", "ratios of a lazy frame")
    names, keys = list(dict.fromkeys(c for r in requests for c in r.inputs)), totals.by
    taken = list(engine.names(frame))
    own = {n: new_name(taken) for n in names}
    broken = {c for r in requests for s, c in r.columns.items() if r.ratio.noise[s].lattice}
    mark = {n: new_name(taken) for n in names if n in broken}
    numbers = {own[n]: nw.when(within(n)).then(nw.col(n).cast(nw.Float64())) for n in names}
    marks = {name: _broken(numbers[own[n]]) for n, name in mark.items()}
    cells = nw.from_native(frame).lazy().select(*keys, **numbers, **marks)
    cells = present_cells(cells, list(numbers)) if totals.skip else cells
    any_broken = (nw.col(name).max() for name in marks)
    table = engine_sums(cells, keys, list(numbers), *any_broken, skip=totals.skip)
    table = table.collect("pyarrow")
    table = table.sort(*keys) if keys else table  # engines return groups in any order
    groups = {name: table[name].to_list() for name in table.columns}
    order = {_key(key): i for i, key in enumerate(zip(*(groups[k] for k in keys), strict=True))}
    _check_broken([n for n, name in mark.items() if any(groups[name])], requests)
    counts = np.array(groups[ROWS], float)
    total = {n: np.array(groups[own[n]], float) for n in names}  # None becomes NaN
    known = {n: np.array(groups[f"{own[n]}#"], float) for n in names}
    whole = {n: (known[n] == counts) & ~np.isnan(total[n]) for n in names}
    native = table.to_native()
    made = {k: native[k] for k in keys} | {ROWS: arrow.array(counts.astype(np.int64))}
    for r in requests:
        usable = np.logical_and.reduce([whole[column] for column in r.inputs])
        published = {s: np.where(usable, total[c], math.nan) for s, c in r.columns.items()}
        scales = {s: (s, column, own[column]) for s, column in r.scales.items()}
        levels = {s: _engine_levels(cells, keys, scale, order) for s, scale in scales.items()}
        found = computed(r, counts, published, levels)
        _warn(r, found, counts * usable, lambda few: [[*order][i] for i in few])
        for name, output in r.written.items():
            made[name] = arrow.array(found[output], mask=np.isnan(found[output]))
    return engine.returned(frame, arrow.table(made), keys)


def _broken(x: nw.Expr) -> nw.Expr:
    """Return 1 where a number is not whole."""
    return ((x.floor() != x) & ~x.is_nan()).cast(nw.Float64())


def _check_broken(columns: Sequence[Any], requests: Sequence[RatioRequest]) -> None:
    for column in columns:
        names = [s for r in requests for s, c in r.columns.items() if c == column]
        raise TrueupError(
            f"the column {column!r} has numbers that are not whole, but {names[0]} has integer "
            "noise: its published values are whole numbers",
            WHOLE,
        )


def _key(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the key of a group such that it equals itself: NaN is a group too."""
    return tuple("nan" if value != value else value for value in values)


def _engine_levels(
    cells: Any, keys: Sequence[str], scaled: tuple[str, str, str], order: Mapping[Any, int]
) -> Any:
    """Return the scales in each group, and how many cells have each; missing ones are left out."""
    statistic, column, scale = scaled
    table = engine_sums(cells, [*keys, scale], []).collect("pyarrow")
    found: list[list[tuple[float, int]]] = [[] for _ in range(max(1, len(order)))]
    columns = [table[name].to_list() for name in (*keys, scale, ROWS)]
    for *key, value, count in zip(*columns, strict=True):
        if value is None or math.isnan(value):
            continue
        if value <= 0:
            where = f"{value:g} in {count} row{'s' * (count != 1)}"
            raise not_positive(statistic, column, where)
        found[order[_key(key)] if keys else 0].append((value, int(count)))
    return found
