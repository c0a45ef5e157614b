"""TABLE.md: how many were drawn, killed and survived, and why each survivor does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from mutants.operators import Mutant
from mutants.suite import ROOT

REASONS = Path(__file__).with_name("reasons.json")
"""For the key of a mutant that survives, why: by hand."""
TABLE = REASONS.with_name("TABLE.md")
EQUIVALENT = "equivalent: "
"""How the reason of a mutant begins that computes the same."""

HEAD = """# Mutants

Written by `make mutants`. A mutant is the library with one small change: a comparison, a sign, an
operator, a constant ±1, a condition negated, a statement left out, a slice off by one, `min` for
`max`, `and` for `or`. A sample of all mutants of four packages is drawn; each is run against the
tests that reach its statement, those of its package first, then the short proof, until one fails. A
test that takes five times its time and two seconds more counts as failed. Left out when drawing,
by rule (`operators.py`): docstrings, annotations, imports, decorators, error texts and what else is
written for people (`__repr__`, functions that return text), and named constants that say how much
work is done.
"""


def written(mutants: list[Mutant], verdicts: dict[str, Any], seed: int) -> str:
    """Return the page."""
    reasons = json.loads(REASONS.read_text("utf-8")) if REASONS.exists() else {}
    drawn, mutants = len(mutants), [m for m in mutants if m.key in verdicts]
    left = [m for m in mutants if not verdicts[m.key]["killed"]]
    return "\n".join(
        [
            HEAD,
            f"{drawn} mutants drawn from commit {commit()}, seed {seed}; "
            f"{len(mutants)} were tried.",
            "",
            "| package | tried | killed | equivalent | other survivors | killed of those that "
            "are not equivalent |",
            "| --- | --- | --- | --- | --- | --- |",
            *_counts(mutants, left, reasons),
            "",
            "## Survivors",
            "",
            "| where | change | reason |",
            "| --- | --- | --- |",
            *(_row(m, verdicts, reasons) for m in left),
            "",
        ]
    )


def counts() -> list[str]:
    """Return the lines of the committed table that count, none if there is no table."""
    lines = TABLE.read_text("utf-8").splitlines() if TABLE.exists() else []
    return [line for line in lines if line.count(" | ") == 5 or "mutants drawn" in line]


def _counts(mutants: list[Mutant], left: list[Mutant], reasons: dict[str, str]) -> list[str]:
    packages = sorted({_package(m) for m in mutants})
    groups = {p: [m for m in mutants if _package(m) == p] for p in packages} | {"all": mutants}
    lines = []
    for name, drawn in groups.items():
        survivors = [m for m in drawn if m in left]
        same = sum(reasons.get(m.key, "").startswith(EQUIVALENT) for m in survivors)
        killed = len(drawn) - len(survivors)
        share = 100 * killed / max(1, len(drawn) - same)
        others = len(survivors) - same
        lines.append(f"| {name} | {len(drawn)} | {killed} | {same} | {others} | {share:.1f} % |")
    return lines


def _package(mutant: Mutant) -> str:
    return mutant.path.split("/")[0]


def _row(mutant: Mutant, verdicts: dict[str, Any], reasons: dict[str, str]) -> str:
    outcome = verdicts[mutant.key]["outcome"]
    reason = reasons.get(mutant.key, f"**{outcome}**")
    change = f"`{mutant.before}` → `{mutant.after}`".replace("|", "\\|")
    return f"| {mutant.path}:{mutant.line} {mutant.scope} | {change} | {reason} |"


def commit() -> str:
    """Return which commit this is."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    out = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    return out.stdout.strip() or "an unknown commit"
