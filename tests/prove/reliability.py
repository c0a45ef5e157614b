"""RELIABILITY.md: what was drawn, what came of it, what is open, and the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mutants.table import commit
from prove.runner import Figures
from prove.section import Section

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
    "int64": "arrays of integers",
    "float32": "arrays of single precision, at bounds that it cannot hold too",
    "json": "the estimator read back from JSON",
    "pandas": "pandas",
    "polars": "Polars",
    "duckdb": "SQL in DuckDB",
    "sqlite": "SQL in SQLite",
    "answers": "explanations, formulas, intervals and SQL come, or are refused in words",
    "function": "f as a Python function, its statistics by name",
    "derivatives": "f as a Python function with its derivatives",
    "false derivatives": "derivatives that are not those of f are refused",
}
"""What is compared, one planted fault each in test_planted.py; besides, nothing may be raised but a
TrueupError, no warning, and nothing may be refused of what was accepted."""

COMMANDS = """## Commands

- `make prove`: all of this again, with other cases; `make prove SEED=…` the same ones.
- `python -m prove --case N` (with `src` and `tests` on the path) shows one case.
- `make test` replays every case in `tests/prove/kept.json` and draws 200 new ones.
- `make mutants`: small faults planted in the library: `tests/mutants/TABLE.md`.
- `make matrix`: the oldest and newest packages, every Python: `tests/matrix.json`.
"""


def written(
    figures: Figures, records: Sequence[Mapping[str, Any]], sections: Mapping[str, Section]
) -> str:
    """Return the page."""
    accepted, refused = figures.outcomes["accepted"], figures.cases - figures.outcomes["accepted"]
    disagreed = sum(figures.found.values())
    return "\n".join(
        [
            "# Reliability",
            "",
            f"Written by `make prove SEED={figures.seed}` on commit {commit()}.",
            "",
            f"{figures.cases:,} cases were drawn from a grammar of formulas, noises and domains: "
            f"{accepted:,} accepted, {refused:,} refused. Every answer was compared with an "
            "oracle that shares no code with the library (`tests/prove`): "
            f"{sum(figures.compared.values()):,} comparisons, {disagreed} disagreements, "
            f"{sum(figures.unsettled.values()):,} that the oracle left open.",
            "",
            "| compared | points | cases with a disagreement |",
            "| --- | --: | --: |",
            *_rows(figures),
            "",
            "| besides | |",
            "| --- | --- |",
            *(f"| {name} | {_told(section)} |" for name, section in sections.items()),
            "",
            "## Open",
            "",
            *_open(records),
            "",
            COMMANDS,
        ]
    )


def _rows(figures: Figures) -> list[str]:
    others = sorted(set(figures.found) - set(COMPARED))
    names = {**COMPARED, **{name: f"other faults: {name}" for name in others}}
    return [
        f"| {words} | {figures.compared[check]:,} | {figures.found[check]} |"
        for check, words in names.items()
    ]


def _told(section: Section) -> str:
    faults = "".join(f"<br>**{fault}**" for fault in section.faults)
    return f"{section.drawn}: {len(section.faults)} faults{faults}"


def _open(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how many disagreements are open, by check: each has its reason where it is kept."""
    still = [r["check"] for r in records if r["open"]]
    counts = ", ".join(f"{still.count(check)} {check}" for check in sorted(set(still)))
    return [
        f"{len(records)} disagreements found so far are kept in `tests/prove/kept.json`, "
        f"{len(still)} of them open, each with its reason there{': ' if still else ''}{counts}."
    ]
