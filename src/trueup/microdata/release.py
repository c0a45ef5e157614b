"""`release()`: microdata in, a private, unbiased and documented table out."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from narwhals import dependencies

from trueup.errors import TrueupError
from trueup.exact import number
from trueup.extras import optional
from trueup.frames import of_spark
from trueup.mechanisms.sampling import generator
from trueup.microdata import engines
from trueup.microdata.design import Design
from trueup.microdata.ledger import Ledger
from trueup.microdata.measures import Count, Mean, PerRecord, Share, Sum, key_text
from trueup.microdata.noisy_totals import LARGEST, truths
from trueup.microdata.privacy_notice import Privacy, sidecar
from trueup.microdata.private_table import PrivateTable, check_noise, columns, noisy
from trueup.microdata.public_keys import Keys, read_by, read_keys
from trueup.microdata.report_text import plan_lines, report
from trueup.microdata.totals import DROP, Reading

_KINDS = {bool: "boolean", int: "bigint", float: "double", str: "string"}  # as Spark says


def release(
    data: Any,
    by: Any = None,
    keys: Any = None,
    epsilon: Any = None,
    *,
    unit: str | None = None,
    at_most: int | None = None,
    missing: Any = None,
    on_error: str = "refuse",
    weights: Mapping[str, Any] | None = None,
    size: int | None = None,
    ledger: Any = None,
    rng: Any = None,
    **measures: Any,
) -> PrivateTable:
    """Release a table of groups and measures, private and without bias.

    Parameters
    ----------
    data
        Microdata, one row for each record: a pandas, Polars or pyarrow table, a DuckDB relation, a
        Spark DataFrame, or the path of a CSV or Parquet file, a pattern or a folder.
    by
        The columns that make the groups; none for one group of everything.
    keys
        The groups to publish, which must be public knowledge: a list, ``{"state": [...], "sex":
        [...]}`` of which all combinations are taken, a table, or the path of a file. Rows of other
        groups are left out; groups without rows are published like any other.
    epsilon
        The privacy budget of the whole table.
    unit, at_most
        Whose privacy is protected, if a person can have several rows: the column that tells them
        apart, and how many rows of each are used, chosen at random. The noise grows with it.
    missing
        What to do about missing values: "drop" leaves out rows in which any column that a measure
        reads is missing; a number stands for missing numbers; ``{"sex": "unknown"}`` by column.
    on_error
        What to do about values that cannot be used: "refuse" says what is wrong and releases
        nothing; "drop" leaves such rows out, as if they were not there. A refusal is a function of
        the data, so that who sees it learns something of them; with "drop" there is none.
    weights
        How the budget is split between measures, e.g. ``{"wage": 2}``; 1 for all others. A count
        beside means and shares of two categories costs nothing, unless it has a weight.
    size
        How many records a group has, roughly and by public knowledge. With many means in large
        groups one count is then made to divide them all, where that is more accurate.
    ledger
        ``{"file": "ledger.toml", "dataset": "survey-2026", "cap": 3}``: where the budget is written
        down before noise is drawn, and refused beyond the cap.
    rng
        None draws secure noise; a NumPy generator or a seed only simulates, and the table says so.
    **measures
        NAME = "count", "mean(wage, 0, 120000)", "share(sex, ['f', 'm'])", "sum(wage, 0, 120000)" or
        "per_record(pay, root:3, 10)". A count is added to means and shares.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"state": ["A", "A", "B"] * 100, "wage": [30.0, 50.0, 40.0] * 100})
    >>> out = release(people, by="state", keys=["A", "B", "C"], epsilon=2, rng=1,
    ...               n="count", wage="mean(wage, 0, 100)")
    >>> out
    <simulation of a private table: 3 groups, epsilon 2; not private>
    >>> list(out.table.columns)[:5]
    ['state', 'n', 'n_stderr', 'wage_low_noisy', 'wage_high_noisy']
    """
    request = {"by": by, "keys": keys, "epsilon": epsilon, "unit": unit, "at_most": at_most}
    request |= {"missing": missing, "on_error": on_error, "weights": weights, "size": size}
    reading, listed = read(request, measures)
    if ledger is None:
        return run(data, reading, listed, rng)
    book, design = Ledger.read(ledger), reading.design
    if rng is not None:
        raise TrueupError("a simulation spends no budget for a ledger to count", "leave one out")
    book.check(design)
    return run(data, reading, listed, None, lambda: book.spend(design, "in Python"))


def read(request: Mapping[str, Any], measures: Any) -> tuple[Reading, Keys]:
    """Return what is asked for, checked as far as that can be done without data.

    ``request`` has the arguments of :func:`release`, by name.
    """
    unit, epsilon, on_error = (request.get(name) for name in ("unit", "epsilon", "on_error"))
    if unit is not None and not (isinstance(unit, str) and unit):
        raise TrueupError(f"unit is the name of a column, got {unit!r}", "e.g. unit='person_id'")
    if epsilon is None:
        raise TrueupError("epsilon is not given", "the privacy budget of the whole table, e.g. 1")
    if on_error not in (None, "refuse", DROP):
        raise TrueupError(
            f"on_error must be 'refuse' or 'drop', got {on_error!r}",
            "'drop' leaves rows out that cannot be used",
        )
    by, at_most, size = (request.get(name) for name in ("by", "at_most", "size"))
    design = Design.read(
        measures, epsilon, read_by(by), request.get("weights"), unit, at_most, size
    )
    gaps = read_missing(request.get("missing"), design)
    reading = Reading(design, gaps, drop_errors=on_error == DROP)
    return reading, read_keys(request.get("keys"), design.by)


def run(
    data: Any,
    reading: Reading,
    keys: Keys,
    rng: Any = None,
    spend: Callable[[], None] | None = None,
) -> PrivateTable:
    """Add up, check, spend the budget, and only then draw the noise."""
    design, source = reading.design, generator(rng)
    simulated = source is not None
    _ = design.estimators
    if not simulated:
        check_noise(design)
    privacy = Privacy.of(design, simulated=simulated)
    spec, errors = sidecar(design, privacy), plan_lines(design)
    _check_writable(data, keys, spec)
    totals = engines.totals(data, reading, keys, _secret(source), simulated=simulated)
    wholes = truths(design.statistics, dict(zip(design.totals, totals, strict=True)), source)
    if spend is not None:
        spend()
    published = noisy(design, wholes, source)
    found = columns(design, keys, published, simulated=simulated)
    words = report(design, keys, found, privacy, errors)
    return PrivateTable(like(data, found), spec, privacy, words, design, found)


def _check_writable(data: Any, keys: Keys, spec: str) -> None:
    """Refuse keys that make no column of a table, and text that makes no file."""
    try:
        spec.encode()
        if keys.by:
            like(data, keys.columns())
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).split("\n", 1)[0]
        raise TrueupError(
            f"the table could not be written: {reason}",
            "make the keys of a column of one kind, e.g. all text; nothing was released",
        ) from None


def _secret(rng: np.random.Generator | None) -> str:
    """Return the key of the order in which the rows of a unit are used."""
    return secrets.token_hex(32) if rng is None else rng.bytes(32).hex()


def read_missing(missing: Any, design: Design) -> dict[str, Any]:
    """Return what stands for missing values, by column."""
    units = () if design.unit is None else (design.unit,)
    if missing is None:
        return {}
    if missing == "drop":
        return dict.fromkeys((*design.columns, *units), "drop")
    reading = [m for m in design.measures.values() if not isinstance(m, Count)]
    if not isinstance(missing, Mapping):
        value = number(missing, "missing")
        missing = {m.column: value for m in reading if not isinstance(m, Share)}
    for name, value in missing.items():
        if name not in design.columns and not (name in units and value == "drop"):
            raise TrueupError(
                f"missing names {name!r}, which no measure reads",
                f"the columns are {', '.join(design.columns) or 'none'}",
            )
        for measure in reading:
            if measure.column == name and value != "drop":
                _check_filling(measure, value)
    return dict(missing)


def _check_filling(measure: Mean | Share | Sum | PerRecord, value: Any) -> None:
    """Refuse what a measure would not take as it is."""
    name = measure.column
    if isinstance(measure, Share):
        if key_text(value) not in measure.categories:
            raise TrueupError(
                f"missing[{name!r}] = {value!r} is not one of its categories",
                f"they are {', '.join(measure.categories)}; or 'drop'",
            )
        return
    exact = number(value, f"missing[{name!r}]")
    low, high = (0, LARGEST) if isinstance(measure, PerRecord) else measure.bounds
    if not low <= exact <= high:
        raise TrueupError(
            f"{value} would stand for a missing {name}, beyond the bounds {low} and {high}",
            "name a value within the bounds, or 'drop'",
        )


def like(data: Any, found: Mapping[str, list[Any]]) -> Any:
    """Return columns as the kind of table that the data was; else as a pyarrow table."""
    if of_spark.is_frame(data):
        return _spark(data, found)
    pyarrow = optional("pyarrow", "tables", "releasing tables")
    table = pyarrow.table(dict(found))
    if dependencies.is_duckdb_relation(data):
        return optional("duckdb", "tables", "a DuckDB relation").from_arrow(table)
    if dependencies.is_pandas_dataframe(data):
        return table.to_pandas()
    if dependencies.is_polars_dataframe(data) or dependencies.is_polars_lazyframe(data):
        return dependencies.get_polars().from_arrow(table)
    return table


def _spark(data: Any, found: Mapping[str, list[Any]]) -> Any:
    """Return a Spark DataFrame; the types are told, as a column may be of None only."""
    kinds = []
    for name, values in found.items():
        kind = next((type(v) for v in values if v is not None), float)
        kinds.append(f"`{name.replace('`', '``')}` {_KINDS.get(kind, 'string')}")
    rows = [
        tuple(v if isinstance(v, tuple(_KINDS)) or v is None else str(v) for v in row)
        for row in zip(*found.values(), strict=True)
    ]
    return data.sparkSession.createDataFrame(rows, ", ".join(kinds))
