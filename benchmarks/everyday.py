"""How long the estimators of everyday formulas take to build: processor time of one process.

Run with ``make bench``; the table goes to benchmarks/everyday.md. The cases are those of
tests/everyday. Sympy's memory is emptied before each, so that no formula profits from another.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

from sympy.core.cache import clear_cache

sys.path[0] = str(Path(__file__).parents[1] / "tests")  # this file is named like a folder there

import trueup as tu  # noqa: E402
from everyday.cases import CASES, Case  # noqa: E402

LIMIT, LIMIT_JOINT = 50, 200
"""Milliseconds that a build may take; the second with joint bounds or four statistics."""


def limit(case: Case) -> int:
    joint = "<= s <=" in case.domain or "a + b" in case.domain
    return LIMIT_JOINT if joint or len(case.noises) > 3 else LIMIT


def built(case: Case) -> float | None:
    """Return the milliseconds that a build takes, None where it is refused."""
    clear_cache()
    began = time.process_time()
    try:
        case.build()
    except tu.TrueupError:
        return None
    return 1000 * (time.process_time() - began)


def main() -> None:
    tu.unbiased("1/q", tu.Laplace(1), (1, None))
    times = {case.name: built(case) for case in CASES}
    groups: dict[str, list[float]] = defaultdict(list)
    for case in CASES:
        if (spent := times[case.name]) is not None:
            kind = f"{len(case.noises)} statistics" if len(case.noises) > 1 else "1 statistic"
            groups[f"{kind}, at most {limit(case)} ms"].append(spent)
    slow = [c for c in CASES if (times[c.name] or 0) > limit(c)]
    refused = [c.name for c in CASES if times[c.name] is None]
    lines = [
        "# Building everyday estimators",
        "",
        f"Processor time of one process on Python {platform.python_version()}, trueup "
        f"{tu.__version__}; sympy's memory is emptied before each of {len(CASES)} cases.",
        "",
        "| cases | number | median | largest |",
        "| --- | --: | --: | --: |",
        *(
            f"| {name} | {len(spent)} | {statistics.median(spent):.1f} ms | {max(spent):.0f} ms |"
            for name, spent in sorted(groups.items())
        ),
        "",
        f"Beyond the limit: {len(slow)}.",
        *(f"- `{c.name}`: {times[c.name]:.0f} ms".replace(" | ", "; ") for c in slow),
        *(f"- `{name}` is refused".replace(" | ", "; ") for name in refused),
        "",
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
