"""Conditions between statistics at the speed of the plain quotient: best of five, taken in turn.

Run with ``python benchmarks/joint.py [ROWS]``; the table goes to benchmarks/joint.md.
"""

from __future__ import annotations

import platform
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from arrays import versus
from trueup.kernels.blocks import cores

ROWS = 10_000_000


def drawn(rows: int) -> dict[str, Any]:
    """Return published counts of cells of which many are small, as doubles."""
    rng = np.random.default_rng(1)
    law = tu.DiscreteLaplace(2)
    n = 1 + rng.negative_binomial(0.5, 0.03, rows)
    s = rng.binomial(n, 0.4)
    truth = {"n": n, "s": s, "a": n - s, "b": s}
    return {name: (q + law.sample(rows, rng=rng)).astype(float) for name, q in truth.items()}


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    columns, law = drawn(rows), tu.DiscreteLaplace(2)
    cases = [
        ("b/(a + b)", "ab", "a >= 0, b >= 0, a + b >= 1", "a >= 1, b >= 0", 2),
        ("s/n", "sn", "0 <= s <= n, n >= 1", "s >= 0, n >= 1", 3),
    ]
    lines = [
        "# Conditions between statistics",
        "",
        f"`python benchmarks/joint.py`; {rows:,} rows, best of five, one run on "
        f"{platform.machine()} with {cores()} cores. The baseline is the same quotient with bounds "
        "of each statistic alone.",
        "",
        "| formula | condition | trueup | plain quotient | ratio | target |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for formula, names, tied, plain, most in cases:
        noise, read = dict.fromkeys(names, law), {name: columns[name] for name in names}
        ours, theirs = (tu.unbiased(formula, noise, domain) for domain in (tied, plain))
        taken, base = versus(partial(ours, **read), partial(theirs, **read))
        lines.append(
            f"| {formula} | {tied} | {taken:.3g} s | {base:.3g} s | {taken / base:.2f} | ≤ {most} |"
        )
    table = "\n".join(lines) + "\n"
    if rows == ROWS:
        Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
