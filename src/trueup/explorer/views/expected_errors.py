"""Which estimator to take for an uploaded file: expected errors by size class, the break-even."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.explorer import limits
from trueup.explorer.refusal import in_page
from trueup.explorer.views.form import plain
from trueup.extras import optional

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trueup.estimator import Estimator


def expected_errors(
    request: Mapping[str, Any], estimators: Mapping[str, Estimator]
) -> dict[str, Any]:
    """Return the report on the file at ``source`` as plain data, or why there is none."""
    from trueup.frames.report import report

    numbered = {f"column {i}": made for i, made in enumerate(estimators.values())}  # any names
    try:
        with _table(request) as table:
            found = report(table, request["columns"], request["scales"], **numbered)
    except TrueupError as error:
        return {"decisions": [], "reason": f"{error.message}; {in_page(error.hint)}"}
    return {
        "decisions": [
            {
                "name": name,
                "size": decision.size,
                "rows": [{key: plain(v) for key, v in row.items()} for row in decision.rows],
                "conclusions": [in_page(line) for line in decision.conclusions],
            }
            for name, decision in zip(estimators, found.decisions, strict=True)
        ],
        "reason": "",
    }


@contextlib.contextmanager
def _table(request: Mapping[str, Any]) -> Iterator[Any]:
    """Give the file as a table of DuckDB, its numbers read as the page says they are written."""
    duckdb = optional("duckdb", "tables", "a report on a file")
    with duckdb.connect(config={"memory_limit": limits.DUCKDB, "threads": 1}) as connection:
        try:
            if request["source"].endswith(".parquet"):
                yield connection.read_parquet(request["source"])
            else:
                missing = ["", *request["nulls"]]
                yield connection.read_csv(
                    request["source"], header=True, decimal=request["decimal"], na_values=missing
                )
        except duckdb.Error as error:
            reason = str(error).splitlines()[0][:160]
            raise TrueupError(f"the file cannot be looked at: {reason}", "it is debiased") from None
