"""`debias()`: a table with noisy columns in, the same kind of table with unbiased columns out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narwhals import dependencies

from trueup.errors import TrueupError
from trueup.estimator import Estimator, unbiased
from trueup.formula.substitution import denominators
from trueup.frames import (
    eager,
    of_arrow,
    of_duckdb,
    of_narwhals,
    of_pandas,
    of_polars,
    of_polars_lazy,
    of_spark,
)
from trueup.near.estimator import nearly_unbiased
from trueup.tables.request import level_of, outputs_of, read_flag, read_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trueup.frames.columns import Eager, Engine


def debias(
    frame: Any,
    columns: Mapping[str, Any] | None = None,
    scales: Mapping[str, Any] | None = None,
    *,
    stderr: bool = True,
    empty: Any = None,
    interval: Any = None,
    clamped: Any = False,
    **estimators: Any,
) -> Any:
    """Return a table with a column of unbiased estimates, and one of standard errors, for each.

    The same kind of table comes back with NAME and NAME_stderr added; nothing else is touched,
    rows keep their order and index, nulls stay null.

    Parameters
    ----------
    frame
        A pandas, Polars (eager or lazy) or pyarrow table, a DuckDB relation, a Spark DataFrame, or
        another table in memory that narwhals knows. In memory the columns go through the compiled
        kernels without a copy, those of a lazy frame batch by batch when it is collected; engines
        compute SQL of their own.
    columns
        ``{"n": "emp"}``: which column holds a statistic; otherwise the one of the same name.
    scales
        ``{"n": "emp_scale"}``: the columns with the noise scale of each row, in place of the scale
        of the estimator's noise. A scale that is missing, zero or negative is refused in memory;
        lazy frames and engines give null for that row. A nearly unbiased estimator is made anew
        for each scale, up to 20, but not in engines.
    stderr
        False leaves out the standard errors. A standard error is null where the unbiased variance
        is negative, which can happen with several statistics.
    empty
        What quotients are, by convention, where their denominator is 0, for all estimators: see
        :func:`trueup.unbiased`.
    interval
        A level such as 0.95: NAME_low and NAME_high are added, the ends of
        :meth:`trueup.Estimator.interval`. Engines compute them where they have a formula, and
        refuse them otherwise: integer noise with a scale per row, functions that go up and down.
    clamped
        True says that published values were moved to a bound, as ``max(x, 0)``. Without it values
        that end as no noise ends raise a :class:`trueup.SelectionWarning`: rows were dropped by
        their noisy value, or values clamped.
    **estimators
        NAME = an estimator made by :func:`trueup.unbiased`.

    Examples
    --------
    >>> import polars as pl
    >>> from trueup import DiscreteLaplace, Laplace, debias, unbiased
    >>> mean = unbiased("s/n", {"s": Laplace(2), "n": DiscreteLaplace(2)}, {"n": (1, None)})
    >>> debias(pl.DataFrame({"s": [51.7, None], "n": [103, 25]}), mean=mean)
    shape: (2, 4)
    ┌──────┬─────┬──────────┬─────────────┐
    │ s    ┆ n   ┆ mean     ┆ mean_stderr │
    │ ---  ┆ --- ┆ ---      ┆ ---         │
    │ f64  ┆ i64 ┆ f64      ┆ f64         │
    ╞══════╪═════╪══════════╪═════════════╡
    │ 51.7 ┆ 103 ┆ 0.501571 ┆ 0.030638    │
    │ null ┆ 25  ┆ null     ┆ null        │
    └──────┴─────┴──────────┴─────────────┘
    """
    if isinstance(empty, Estimator):  # a name like any other
        empty, estimators = None, {"empty": empty, **estimators}
    if isinstance(interval, Estimator):
        interval, estimators = None, {"interval": interval, **estimators}
    if isinstance(clamped, Estimator):
        clamped, estimators = False, {"clamped": clamped, **estimators}
    level = level_of(interval) or 0.95
    if empty is not None:
        estimators = {name: _with_empty(e, empty) for name, e in estimators.items()}
    other = of_narwhals.opened(frame)
    if other is not None:
        native, back = other
        options: dict[str, Any] = {"interval": interval, "clamped": clamped, **estimators}
        return back(debias(native, columns, scales, stderr=stderr, **options))
    present, fold = names_of(frame)
    requests = read_requests(
        *(present, columns, scales, estimators),
        outputs=outputs_of(stderr, interval),
        level=level,
        fold=fold,
    )
    backend = eager_backend(frame)
    if backend is not None:
        return eager.debias(backend, frame, requests, clamped=read_flag(clamped, "clamped"))
    engine = engine_of(frame)
    for request in requests:
        engine.check(frame, request.inputs)
    return engine.extend(frame, {n: (r, o) for r in requests for n, o in r.written.items()})


def _with_empty(estimator: Any, empty: object) -> Any:
    """Return an estimator with a value for empty cells, or itself if it divides by nothing."""
    if not isinstance(estimator, Estimator) or not denominators(estimator.estimand):
        return estimator
    make: Any = unbiased if type(estimator) is Estimator else nearly_unbiased
    return make(*estimator._recipe[: 5 if make is unbiased else None], empty=empty)


def names_of(frame: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """Return the names of the columns, and what makes two spellings one where the engine does."""
    backend = eager_backend(frame)
    if backend is not None:
        return backend.names(frame), lambda name: name
    engine = engine_of(frame)
    return engine.names(frame), engine.fold


def eager_backend(frame: Any) -> Eager | None:
    """Return what reads and writes a frame in memory, None for lazy frames and engines."""
    if dependencies.is_pandas_dataframe(frame):
        return of_pandas
    if dependencies.is_polars_dataframe(frame):
        return of_polars
    if dependencies.is_pyarrow_table(frame) or _is_batch(frame):
        return of_arrow
    return None


def _is_batch(frame: Any) -> bool:
    pa = dependencies.get_pyarrow()
    return pa is not None and isinstance(frame, pa.RecordBatch)


def engine_of(frame: Any) -> Engine:
    """Return what extends a lazy frame or an engine, or refuse the object."""
    if dependencies.is_duckdb_relation(frame):
        return of_duckdb
    if of_spark.is_frame(frame):
        return of_spark
    if of_polars_lazy.is_frame(frame):
        return of_polars_lazy
    raise TrueupError(
        f"unsupported table type: {type(frame).__name__}",
        "give a pandas, Polars or pyarrow table, a DuckDB relation or a Spark DataFrame (collect "
        "other lazy frames, or use DuckDB); for arrays call the estimator itself",
    )
