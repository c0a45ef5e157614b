"""``python -m prove``: the deep run, which writes RELIABILITY.md and keeps what it finds.

``--case N`` shows one case again, by the seed that stands behind a disagreement.

Without ``--write`` only the cases are run, and nothing is kept. The exit code is not 0 if a case
disagrees, or if a section has found a fault, which is **bold** on the page.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

from prove import growth, inputs, kept, privacy, published
from prove.grammar import Case, draw
from prove.reliability import written
from prove.runner import Figures, examined, run, smallest

MOST = 40
"""Disagreements shrunk in one run: more of them have a cause in common."""


def main() -> None:
    """Run, keep, write."""
    parser = argparse.ArgumentParser(prog="prove", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--texts", type=int, default=10**6, help="read only with --write")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--write",
        type=Path,
        help="run the other sections too and write the page, e.g. RELIABILITY.md; what is found is "
        "kept in tests/prove/kept.json and inputs.json",
    )
    parser.add_argument("--case", type=int, metavar="N", help="ask one case everything, and stop")
    options = parser.parse_args()
    if options.cases < 1 or options.processes < 1:
        parser.error("--cases and --processes are at least 1")
    if options.case is not None:
        _show(draw(options.case))
    print(f"{options.cases} cases, seed {options.seed}", flush=True)
    figures = run(options.seed, options.cases, options.processes)
    for finding in figures.findings:
        print(finding, f"(seed {finding.case.seed})", flush=True)
    faults: list[str] = []
    if options.write:
        _keep(figures)
        sections = {
            "texts": inputs.figures(options.processes, options.texts, options.seed),
            "privacy": privacy.figures(options.processes),
            "published elsewhere": published.figures(options.seed),
            "growth": growth.figures(options.processes),
        }
        options.write.write_text(written(figures, kept.kept(), sections), "utf-8")
        faults = [fault for section in sections.values() for fault in section.faults]
    print("\n".join([*faults, f"{len(figures.findings)} disagreements in {figures.cases} cases"]))
    raise SystemExit(bool(figures.findings or faults))


def _show(case: Case) -> None:
    """Show a case with what comes of it, and end."""
    report = examined(case)
    print(case, report.outcome, *report.findings, sep="\n")
    raise SystemExit(bool(report.findings))


def _again(record: dict[str, Any]) -> dict[str, Any]:
    """Return a kept record after another look; a reason is only needed while it is open."""
    still = any(f.check == record["check"] for f in examined(kept.case_of(record)).findings)
    return {**{k: v for k, v in record.items() if still or k != "why"}, "open": still}


def _keep(figures: Figures) -> None:
    """Look at the kept cases again, and keep new ones as small as they get."""
    records = [_again(r) for r in kept.kept()]
    new = [kept.record_of(f.check, smallest(f), True) for f in figures.findings[:MOST]]
    kept.write(records + new)


if __name__ == "__main__":
    main()
