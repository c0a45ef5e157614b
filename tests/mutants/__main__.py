"""``python -m mutants``: how many small faults the tests of four packages notice.

With ``tests`` and ``src`` on the path, see ``make mutants``. First every test is run once to see
which statements it reaches, then every mutant of the sample, then TABLE.md is written. Both are
kept in ``build/mutants``, so a run that was stopped goes on where it was, and a verdict stands as
long as the file of its mutant does; after writing tests for the survivors, ``--again`` maps the new
tests and tries the survivors only.

For a first look, ``--packages near --own --number 8 --budget 10`` draws a few mutants of one
package and prints the table. What is committed stays as it is: only the whole sample goes there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mutants import reach as reaching
from mutants.operators import Mutant, drawn
from mutants.suite import ROOT, SOURCE, Suite, collected
from mutants.table import TABLE, written
from mutants.trial import Verdict, tried

PACKAGES = {
    "noise": ("tests/noise", "src/trueup/noise"),
    "inverse": ("tests/estimator", "src/trueup/inverse"),
    "mechanisms": ("tests/mechanisms", "src/trueup/mechanisms"),
    "near": ("tests/near", "src/trueup/near"),
}
"""Where the tests of each package are: they are run first."""

OTHERS = (
    "tests/prove",
    "tests/test_plugin.py",
    "tests/frames/test_total.py",
    "tests/frames/test_scales.py",
)
"""The short proof, and tests of what is computed by the inverse only."""

NUMBER = 600
"""Mutants of the committed sample. A run of fewer is a look: it draws its own and prints."""
KEPT = ROOT / "build" / "mutants"
SAMPLE = TABLE.with_name("sample.json")
"""The mutants that were drawn, so that another run tries the same."""


def main() -> None:
    """Map, draw, try, write."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), choices=list(PACKAGES))
    parser.add_argument("--own", action="store_true", help="only the tests of these packages")
    parser.add_argument("--cases", type=int, default=10**6, help="of a test with parameters")
    parser.add_argument("--longest", type=float, default=20, help="seconds of one test")
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests for one mutant")
    parser.add_argument("--again", action="store_true", help="try those that survived last time")
    parser.add_argument("--map-only", action="store_true")
    parser.add_argument("--write", type=Path, help=f"where the table goes: {TABLE.name}, or shown")
    options = parser.parse_args()
    others = () if options.own else OTHERS
    paths = [*(p for name in options.packages for p in PACKAGES[name]), *others]
    collected(paths, lambda suite: _work(suite, options))


def _work(suite: Suite, options: argparse.Namespace) -> None:
    packages = list(PACKAGES)
    reach = reaching.read(KEPT / "reach.json", packages)
    names = reaching.thinned(list(suite.items), options.cases)
    for _ in reaching.extend(suite, reach, packages, names, options.longest, options.processes):
        reaching.write(KEPT / "reach.json", reach)
    if options.map_only:
        return
    mutants = sample(options)
    record = KEPT / f"verdicts-{options.seed}.json"
    found = json.loads(record.read_text("utf-8")) if record.exists() else {}
    files = {m.path: reaching.version_of([SOURCE / m.path]) for m in mutants}
    stale = {m.key for m in mutants if found.get(m.key, {}).get("file") != files[m.path]}
    found = {key: verdict for key, verdict in found.items() if key not in stale}
    settled = {key for key, v in found.items() if v["killed"] or not options.again}
    wanted = [m for m in mutants if m.path.split("/")[0] in options.packages]
    wanted = [m for m in wanted if m.key not in settled]
    trials = tried(suite, wanted, reach, PACKAGES, options.budget, options.processes)
    for done, verdict in enumerate(trials, 1):
        _print(verdict, done, len(wanted))
        found[verdict.mutant.key] = {
            "killed": verdict.killed, "outcome": verdict.outcome, "by": verdict.by,
            "tests": verdict.tests, "file": files[verdict.mutant.path],
        }  # fmt: skip
        record.write_text(json.dumps(found, indent=1, ensure_ascii=False), "utf-8")
    page, whole = written(mutants, found, options.seed), options.number >= NUMBER
    if options.write or whole:
        (options.write or TABLE).write_text(page, "utf-8")
    else:
        print(page)


def sample(options: argparse.Namespace) -> list[Mutant]:
    """Return the committed sample, as it fits the code by now; of a look a few of its packages."""
    if options.number < NUMBER:
        return drawn(SOURCE, options.packages, options.number, options.seed)
    known = json.loads(SAMPLE.read_text("utf-8")) if SAMPLE.exists() else []
    mutants = drawn(SOURCE, list(PACKAGES), options.number, options.seed, known)
    if not options.write:
        keys = [m.key for m in mutants]
        SAMPLE.write_text(json.dumps(keys, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return mutants


def _print(verdict: Verdict, done: int, of: int) -> None:
    m = verdict.mutant
    print(
        f"{done}/{of} {verdict.outcome} ({verdict.tests} tests) {m.path}:{m.line} "
        f"{m.scope}: {m.before} → {m.after} [{verdict.by}]",
        flush=True,
    )


if __name__ == "__main__":
    main()
