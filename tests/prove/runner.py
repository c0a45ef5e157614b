"""Run many cases, on several processes, and say what came of them.

``python -m prove`` (with ``tests`` and ``src`` on the path, see ``make prove``) draws 20,000 cases,
shrinks and keeps every disagreement and writes RELIABILITY.md. The tests run a few hundred.
"""

from __future__ import annotations

import collections
import dataclasses
import multiprocessing

from prove.checks import Finding, Report, examine, tolerant
from prove.expectations import finer
from prove.grammar import Case, draw
from prove.shrink import shrunk
from work import TooMuchError, bounded

LINES = 300_000_000
"""Lines of Python for all that is asked of a case: what takes more counts as never ending."""
PER_WORKER = 400
"""Cases after which a process is replaced: sympy's caches grow with every formula."""


@dataclasses.dataclass
class Figures:
    """The sums over all cases."""

    seed: int
    processes: int = 1
    cases: int = 0
    outcomes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    compared: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    unsettled: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    found: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    findings: list[Finding] = dataclasses.field(default_factory=list)

    def add(self, report: Report) -> None:
        """Add one case."""
        self.cases += 1
        self.outcomes[report.outcome] += 1
        self.compared.update(report.compared)
        self.unsettled.update(report.unsettled)
        self.found.update({f.check for f in report.findings})
        self.findings += first_of_each(report.findings)


def first_of_each(findings: list[Finding]) -> list[Finding]:
    """Return the first finding of every check."""
    return list({f.check: f for f in reversed(findings)}.values())


def examined(case: Case, thorough: bool = True, only: str | None = None) -> Report:
    """Return the report of a case; one that does not come to an end is a finding."""
    try:
        return bounded(lambda: examine(case, thorough, only), LINES)
    except TooMuchError:
        report = Report("too long")
        report.findings.append(Finding("too long", case, "", f"within {LINES:,} lines", "none"))
        return report


def certain(finding: Finding) -> bool:
    """Whether the same check complains again: asked by a finer rule, ten times as tolerant."""
    with finer(), tolerant():
        return any(f.check == finding.check for f in examined(finding.case).findings)


def by_seed(seed: int) -> Report:
    """Draw and examine one case; what is dear is asked of some."""
    return examined(draw(seed), thorough=False)


def run(seed: int, count: int, processes: int = 1, start: int = 0) -> Figures:
    """Examine ``count`` cases, from the one with the number ``start`` on."""
    figures = Figures(seed, processes)
    first = seed * 10_000_000 + start
    seeds = range(first, first + count)
    if processes == 1:
        for one in seeds:
            figures.add(by_seed(one))
    else:
        context = multiprocessing.get_context("spawn")
        with context.Pool(processes, maxtasksperchild=PER_WORKER // 8) as pool:
            for report in pool.imap_unordered(by_seed, seeds, chunksize=8):
                figures.add(report)
    return figures


def smallest(finding: Finding) -> Case:
    """Return a small case on which the same check still fails."""

    def shows(case: Case) -> bool:
        return any(f.check == finding.check for f in examined(case, only=finding.check).findings)

    return shrunk(finding.case, shows)
