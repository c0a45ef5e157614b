"""Pay per employee from a noisy table: the plug-in, the unbiased estimate, and the truth."""

from __future__ import annotations

import numpy as np

import trueup as tu

EPSILON = 1.0
CELLS = 20_000
REGIONS = 8


def main() -> None:
    """Draw a release of small cells, debias it, and compare the national figures."""
    rng = np.random.default_rng(2026)
    employees = 1 + rng.negative_binomial(1.0, 0.15, CELLS)
    pay = rng.lognormal(3.7, 0.4, CELLS)  # thousand per employee and year
    payroll = employees * pay

    # What an agency publishes: integer noise on counts, Laplace noise on clipped totals.
    count_noise = tu.DiscreteLaplace.from_budget(epsilon=EPSILON)
    pay_noise = tu.Laplace.from_budget(epsilon=EPSILON, sensitivity=60)
    n = employees + count_noise.sample(CELLS, rng)
    s = payroll + pay_noise.sample(CELLS, rng)

    # What a user does with it. One line.
    mean = tu.unbiased("s/n", {"s": pay_noise, "n": count_noise}, domain={"n": (1, None)})

    print(f"{mean!r}\n{mean.formula}")
    print(f"\nAverage pay per cell, {CELLS:,} cells, median {int(np.median(employees))} employees")
    print(f"{'region':>8} {'truth':>9} {'plug-in s/n':>16} {'s/max(n,1)':>12} {'trueup':>18}")
    plug_in = np.divide(s, n, out=np.sign(s) * np.inf, where=n != 0)
    clipped = s / np.maximum(n, 1)
    estimate, variance = mean(s=s, n=n), mean.variance(s=s, n=n)
    region = rng.integers(REGIONS, size=CELLS)
    for r in [*range(REGIONS), None]:
        rows = slice(None) if r is None else region == r
        size = CELLS if r is None else int(rows.sum())
        error = np.sqrt(variance[rows].sum()) / size
        shown = f"{estimate[rows].mean():9.2f} ± {error:.2f}"
        with np.errstate(invalid="ignore"):
            naive = plug_in[rows].mean()
        print(
            f"{'all' if r is None else r:>8} {pay[rows].mean():9.2f} "
            f"{naive:16.2f} {clipped[rows].mean():12.2f} {shown:>18}"
        )
    print("\nDividing by a noisy count has no expectation, clipping it is biased and the bias does")
    print("not average out; the unbiased cells can be summed, and their errors are known.")


if __name__ == "__main__":
    main()
