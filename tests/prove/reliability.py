"""RELIABILITY.md: the figures of a run, in words."""

from __future__ import annotations

from collections import Counter
from typing import Any

from prove.runner import Figures

COMPARED = {
    "value": "the estimate, against its closed form in 200 digits",
    "variance": "the estimated variance, against its closed form in 200 digits",
    "unbiased": "E g(q + Z) = f(q), at bounds, beside special points and inside",
    "expectation": "`expectation` and `bias`, inside and outside the domain",
    "sd": "`sd`, against the variance of g by quadrature or exact sums",
    "estimated variance": "E V̂ = Var g",
    "coverage": "exact intervals cover as often as they say",
    "existence": "accepted, and an estimator exists",
    "refusal confirmed": "refused, and no estimator exists",
    "targets": "points at which scalars, arrays, float32, pandas, Polars and JSON agree",
    "SQL": "points at which DuckDB and SQLite agree as well",
}


def written(figures: Figures, records: list[dict[str, Any]]) -> str:
    """Return the page."""
    return "\n".join(
        [
            "# Reliability",
            "",
            "Written by `make prove`. Cases are drawn from a grammar (formulas with kinks, guards,",
            "poles, values at single points, steep and flat parts; all noise families and sums;",
            "bounds on, beside and far from special points), put to the library, and every answer",
            "is compared with an oracle that shares no code with it (`tests/prove/`).",
            "",
            f"{figures.cases:,} cases, seed {figures.seed}, {figures.seconds / 60:.0f} minutes on "
            "two processes.",
            "",
            *_table("outcome", figures.outcomes),
            *_table("compared", figures.compared, COMPARED),
            *_table("could not be settled by the oracle", _by_kind(figures.unsettled)),
            *_table("cases with a disagreement", figures.found),
            "## Kept",
            "",
            f"{len(records)} disagreements found so far were shrunk and kept in",
            f"`tests/prove/kept.json`; {sum(not r['open'] for r in records)} are mended and "
            "replayed by `make test`, the others are open:",
            "",
            *[
                f"- {r['check']}: `{r['formula']}` under {r['noises']} on {r['domain']}"
                for r in records
                if r["open"]
            ],
            "",
        ]
    )


def _by_kind(counted: Counter[str]) -> Counter[str]:
    """Return the counts with the details of messages left out."""
    kinds: Counter[str] = Counter()
    for what, n in counted.items():
        kinds[":".join(what.split(":")[:2])] += n
    return kinds


def _table(title: str, counts: Counter[str], words: dict[str, str] | None = None) -> list[str]:
    if not counts:
        return []
    rows = [f"| {(words or {}).get(k, k)} | {n:,} |" for k, n in counts.most_common() if n]
    return [f"| {title} | number |", "| --- | --- |", *rows, ""]
