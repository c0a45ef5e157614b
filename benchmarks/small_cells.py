"""Totals of ratios over many small cells: which estimator is closest, for groups and for all.

20,000 cells in 50 groups, sizes log-uniform from 1 to 5,000, discrete Laplace noise of scale 5 on
both numbers of each cell, 100 releases. Run with ``python benchmarks/small_cells.py``; the table
goes to benchmarks/small_cells.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import trueup as tu

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ratio = Callable[[Floats, Floats], Floats]

CELLS, GROUPS, LARGEST, SCALE, RELEASES = 20_000, 50, 5_000, 5, 100
NOISE = tu.DiscreteLaplace(SCALE)
KINDS = {"pay per employee, about 40": 40.0, "a share, about one half": 0.5}


def drawn(usual: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the true numerators and sizes of all cells; ratios spread around the usual one."""
    n = np.floor(np.exp(rng.uniform(0, np.log(LARGEST + 1), CELLS)))
    s = np.rint(usual * np.exp(rng.normal(-0.02, 0.2, CELLS)) * n)
    return s, n


def naive(s: Floats, n: Floats) -> Floats:
    """Return s/n as published; where n is 0 there is no ratio, and the cell is left out."""
    return np.divide(s, n, out=np.zeros(len(s)), where=n != 0)


def clipped(s: Floats, n: Floats) -> Floats:
    """Return s/max(n, 1)."""
    return s / np.maximum(n, 1)


def library() -> dict[str, Ratio]:
    """Return the estimators that are compared, by name."""
    noise, domain = {"s": NOISE, "n": NOISE}, {"n": (1, None)}
    exact = tu.unbiased("s/n", noise, domain)
    found: dict[str, Ratio] = {"naive": naive, "clipped": clipped}
    found["unbiased"] = lambda s, n: np.asarray(exact(s=s, n=n))
    for cells in (CELLS // GROUPS, CELLS):
        near = tu.nearly_unbiased("s/n", noise, domain, cells=cells)
        name = f"cells={cells} (bias ≤ {near.bias_bound:.1%})"
        found[name] = lambda s, n, near=near: np.asarray(near(s=s, n=n))  # type: ignore[misc]
    return found


def errors(usual: float, ratios: dict[str, Ratio]) -> dict[str, tuple[float, float]]:
    """Return the RMSE of group means and of the mean of all cells, relative to the usual ratio."""
    rng = np.random.default_rng(7)
    s, n = drawn(usual, rng)
    truth = (s / n).reshape(GROUPS, -1)
    off: dict[str, list[Floats]] = {name: [] for name in ratios}
    for _ in range(RELEASES):
        noisy = [q + NOISE.sample(CELLS, rng=rng) for q in (s, n)]
        for name, ratio in ratios.items():
            gaps = ratio(*noisy).reshape(GROUPS, -1) - truth
            off[name].append(gaps.mean(axis=1) / usual)
    found = {}
    for name, parts in off.items():
        groups = np.array(parts)
        rms = [float(np.sqrt(np.mean(e**2))) for e in (groups, groups.mean(axis=1))]
        found[name] = (rms[0], rms[1])
    return found


def main() -> None:
    """Simulate, and write the table."""
    ratios = library()
    lines = [
        "# Totals over many small cells",
        "",
        f"`python benchmarks/small_cells.py`; {CELLS:,} cells in {GROUPS} groups, sizes "
        f"log-uniform from 1 to {LARGEST:,}, discrete Laplace noise of scale {SCALE} on s and n, "
        f"{RELEASES} releases. Root mean squared error of the average s/n, relative to its usual "
        f"size: of the {CELLS // GROUPS} cells of a group, and of all.",
    ]
    for kind, usual in KINDS.items():
        found = errors(usual, ratios)
        lines += ["", f"## s/n is {kind}", "", "| estimator | a group | all cells |"]
        lines += ["| --- | --- | --- |"]
        lines += [f"| {name} | {a:.2%} | {b:.2%} |" for name, (a, b) in found.items()]
    table = "\n".join(lines) + "\n"
    Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
