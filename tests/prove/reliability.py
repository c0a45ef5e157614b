"""RELIABILITY.md: the figures of a run, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from mutants.table import commit
from prove.checks import SHARES
from prove.runner import Figures

COMPARED = {
    "value": "the estimate, against its closed form in 200 digits",
    "variance": "the estimated variance, against its closed form in 200 digits",
    "stderr": "the standard error, against the root of the estimated variance",
    "unbiased": "E g(q + Z) = f(q), at bounds, beside special points and inside",
    "expectation": "`expectation` and `bias`, inside and outside the domain",
    "sd": "`sd`, against the variance of g by quadrature or exact sums",
    "estimated variance": "E V̂ = Var g",
    "coverage": "exact intervals cover as often as they say",
    "joint coverage": "intervals from two statistics cover as often as they say",
    "existence": "accepted, and an estimator exists",
    "refusal confirmed": "refused as proved, and no estimator exists",
    "witness": "refused as proved, and at the place that is named f is what is said of it",
    "array": "arrays of doubles agree with numbers",
    "int64": "arrays of whole numbers",
    "float32": "arrays of single precision, at bounds that it cannot hold too",
    "json": "the estimator read back from JSON",
    "pandas": "pandas",
    "polars": "Polars",
    "duckdb": "SQL in DuckDB",
    "sqlite": "SQL in SQLite",
    "function": "f as a Python function, its statistics by name",
    "derivatives": "f as a Python function with its derivatives",
    "false derivatives": "derivatives that are not those of f are refused",
}
"""What is compared, one planted fault each in test_planted.py; besides, nothing may be raised but a
TrueupError, no warning, nothing may be refused of what was accepted, and nothing may take 20 s."""
ASKED = {
    "expectation": "expectation",
    "sd": "sd",
    "estimated variance": "estimated variance",
    "coverage": "coverage",
    "joint coverage": "joint coverage",
    "json": "JSON",
    "pandas": "frames",
    "polars": "frames",
    "duckdb": "SQL",
    "sqlite": "SQL",
    "function": "functions",
    "derivatives": "functions",
    "false derivatives": "functions",
}
"""Which share of the cases a check is asked of, by its name in SHARES."""


def written(
    figures: Figures, records: list[dict[str, Any]], sections: Iterable[list[str]] = ()
) -> str:
    """Return the page."""
    return "\n".join(
        [
            "# Reliability",
            "",
            "Written by `make prove`; each section says what was done and what came of it.",
            "",
            "## Drawn cases",
            "",
            "Cases are drawn from a grammar (formulas with kinks, guards, poles, values at single",
            "points, steep and flat parts; all noise families and sums; bounds on, beside and far",
            "from special points, on sums and differences of two counts), put to the library, and",
            "every answer is compared with an oracle that shares no code with it (`tests/prove/`).",
            "What takes long is asked of a share of the cases, drawn with the case.",
            "",
            f"{figures.cases:,} cases on commit {commit()}, {figures.seconds / 60:.0f} minutes on "
            f"{figures.processes} processes; `make prove SEED={figures.seed}` draws them again.",
            "",
            *_table("outcome", figures.outcomes),
            *_compared(figures),
            *_table("could not be settled by the oracle", _by_kind(figures.unsettled)),
            *_others(figures),
            *_kept(records),
            *(line for section in sections for line in section),
        ]
    )


def _compared(figures: Figures) -> list[str]:
    rows = [
        f"| {words} | {_share(check)} | {figures.compared[check]:,} | {figures.found[check]:,} |"
        for check, words in COMPARED.items()
    ]
    head = ["| compared | of the cases | points | cases with a disagreement |"]
    return [*head, "| --- | --- | --- | --- |", *rows, ""]


def _share(check: str) -> str:
    share = SHARES.get(ASKED.get(check, ""), 1)
    return "all" if share == 1 else f"1 in {1 / share:.0f}"


def _others(figures: Figures) -> list[str]:
    """Return what was found besides: errors, warnings, late refusals, no end."""
    rest = Counter({k: n for k, n in figures.found.items() if k not in COMPARED})
    return _table("other cases with a fault", rest) or ["No other faults.", ""]


def _kept(records: list[dict[str, Any]]) -> list[str]:
    still = [r for r in records if r["open"]]
    return [
        f"{len(records)} disagreements found so far were shrunk and kept in",
        f"`tests/prove/kept.json`; {len(records) - len(still)} are mended and replayed by "
        f"`make test`{', the others are open:' if still else '.'}",
        "",
        *[
            f"- {r['check']}: `{r['formula']}` under {r['noises']} on {r['domain']}"
            f"{'. ' + r['why'] if r.get('why') else ''}"
            for r in still
        ],
        *([""] if still else []),
    ]


def _by_kind(counted: Counter[str]) -> Counter[str]:
    """Return the counts with the details of messages left out."""
    kinds: Counter[str] = Counter()
    for what, n in counted.items():
        kinds[":".join(what.split(":")[:2])] += n
    return kinds


def _table(title: str, counts: Counter[str]) -> list[str]:
    rows = [f"| {what} | {n:,} |" for what, n in counts.most_common() if n]
    return [f"| {title} | number |", "| --- | --- |", *rows, ""] if rows else []
