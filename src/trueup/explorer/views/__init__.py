"""What a worker computes: one module for each view, plain data in, plain data out.

::

    form                    what the form says, each field checked by itself
    overview, axis, mathml  the estimator: formula, words, curve · where to draw · as MathML
    risk, small_bias        bias and sd by true value · what a little bias buys
    code                    Python, command line and SQL to copy
    file, preview           an uploaded file: asked, looked at, debiased · its first rows
    mean_plan, table_plan   a private mean, a private table, before any data
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.explorer.views import code, file, mean_plan, overview, risk, small_bias, table_plan

if TYPE_CHECKING:
    from collections.abc import Callable

VIEWS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "curve": overview.answer,
    "risk": risk.answer,
    "near": small_bias.best,
    "frontier": small_bias.frontier,
    "code": code.answer,
    "columns": file.columns,
    "plan": mean_plan.answer,
    "table": table_plan.answer,
    "job": file.check,
}

FILE_VIEWS: dict[str, Callable[[dict[str, Any], Callable[[float], None]], dict[str, Any]]] = {
    "look": file.look,
    "debias": file.debias,
}
"""What is done to files, each time in a process of its own that tells how far it is."""
