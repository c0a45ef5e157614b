"""Which estimator to take for an uploaded file: expected errors by size class, the break-even."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError
from trueup.explorer.refused import in_page
from trueup.explorer.views.form import plain

if TYPE_CHECKING:
    from trueup.files.job import Job


def expected_errors(job: Job) -> dict[str, Any]:
    """Return the report on the input of a job as plain data, or why there is none."""
    from trueup.files.job import report_job

    numbered = {f"column {i}": made for i, made in enumerate(job.estimators.values())}  # any names
    try:
        found = report_job(dataclasses.replace(job, estimators=numbered, outputs=("value",)))
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
            for name, decision in zip(job.estimators, found.decisions, strict=True)
        ],
        "reason": "",
    }
