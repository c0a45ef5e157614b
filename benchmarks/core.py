"""Speed of the core against what a user would write instead: ratios of best-of-five, one run.

Run with ``make bench``; the table goes to benchmarks/core.md.
"""

from __future__ import annotations

import platform
import timeit
from pathlib import Path

import numpy as np
import sympy

import trueup as tu

ROWS = 2_000_000


def best(function, number=1, repeat=5):
    return min(timeit.repeat(function, number=number, repeat=repeat)) / number


def array_rows():
    rng = np.random.default_rng(1)
    n = rng.uniform(-5, 200, ROWS)
    s = rng.uniform(0, 500, ROWS)
    one = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    ratio = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.Laplace(2)}, {"n": (1, None)})
    one(n[:10]), one.variance(n[:10]), ratio(s=s[:10], n=n[:10])
    hand = best(lambda: np.where(n < 1, 3, 1 / n - 8 / n**3))
    hand_variance = best(lambda: np.where(n < 1, 4, 8 / n**4 + 64 / n**6))
    hand_ratio = best(lambda: np.where(n < 1, 3 * s, s / n - 8 * s / n**3))
    yield "1/n on n ≥ 1: est(x)", "np.where(n < 1, 3, 1/n - 8/n**3)", best(lambda: one(n)), hand
    yield (
        "1/n: est.variance(x)",
        "np.where(n < 1, 4, 8/n**4 + 64/n**6)",
        best(lambda: one.variance(n)),
        hand_variance,
    )
    yield (
        "s/n: est(s=, n=)",
        "np.where(n < 1, 3*s, s/n - 8*s/n**3)",
        best(lambda: ratio(s=s, n=n)),
        hand_ratio,
    )


def scalar_rows():
    one = tu.unbiased("1/n", tu.Laplace(2), (1, None))
    yield "scalar call est(4.0)", "5 µs", best(lambda: one(4.0), 20_000), 5e-6
    fresh = iter(range(3, 1000))
    yield (
        "build, formula seen before",
        "10 ms",
        best(lambda: tu.unbiased("1/n", tu.Laplace(next(fresh)), (1, None)), 20),
        10e-3,
    )

    def build():
        sympy.core.cache.clear_cache()
        return tu.unbiased(f"1/(n + {next(fresh)})", tu.Laplace(2), (1, None))

    yield "build, formula not seen", "100 ms", best(build), 100e-3


def main() -> None:
    with np.errstate(all="ignore"):
        rows = [*array_rows(), *scalar_rows()]
    lines = [
        "# Core benchmarks",
        "",
        f"`make bench`; {ROWS:,} float64 rows, best of five, one run on {platform.machine()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}.",
        "",
        "| trueup | against | trueup | baseline | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    for ours, theirs, time, base in rows:
        unit, factor = ("ms", 1e3) if max(time, base) > 1e-4 else ("µs", 1e6)
        lines.append(
            f"| {ours} | `{theirs}` | {time * factor:.2f} {unit} | {base * factor:.2f} {unit} "
            f"| {time / base:.2f} |"
        )
    table = "\n".join(lines) + "\n"
    Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
