"""``python -m prove``: the deep run, which writes RELIABILITY.md and keeps what it finds."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from prove import kept
from prove.reliability import written
from prove.runner import examined, run, smallest

MOST = 40
"""Disagreements shrunk in one run: more of them have a cause in common."""


def main() -> None:
    """Run, keep, write."""
    parser = argparse.ArgumentParser(prog="prove", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", type=Path, help="where the figures go, e.g. RELIABILITY.md")
    options = parser.parse_args()
    print(f"{options.cases} cases, seed {options.seed}", flush=True)
    figures = run(options.seed, options.cases, options.processes)
    for finding in figures.findings:
        print(finding, f"(seed {finding.case.seed})")
    records = [
        {**r, "open": any(f.check == r["check"] for f in examined(kept.case_of(r)).findings)}
        for r in kept.kept()
    ]
    records += [kept.record_of(f.check, smallest(f), True) for f in figures.findings[:MOST]]
    if options.write:
        kept.write(records)
        options.write.write_text(written(figures, kept.kept()), "utf-8")
    print(f"{len(figures.findings)} disagreements in {figures.cases} cases")
    raise SystemExit(bool(figures.findings))


if __name__ == "__main__":
    main()
