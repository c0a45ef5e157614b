"""Private means of n records, n not public: error and bias, ours against what others ship.

The other libraries get an environment of their own:

    python -m venv .venv-means
    .venv-means/bin/pip install -r benchmarks/requirements-means.txt
    .venv-means/bin/python benchmarks/means.py

The tables go to benchmarks/means.md. A library that is missing is reported, not required. With a
number, so many draws are made instead, and the tables are only printed.
"""

from __future__ import annotations

import math
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from trueup.mechanisms import GroupMean, Mean, SmoothSensitivityMean, TwoTotalsMean

SIZES = (3, 5, 10, 20, 50, 100, 200, 500, 1000)
MEANS = (0.1, 0.5, 0.9)
CELLS = 10_000
DRAWS = 100_000
NEAR, MORE = 5, 4  # so many times the draws of Google's mean where GroupMean is near it
GOOGLE, TWO_TOTALS = "Google BoundedMean", "trueup two totals, L = 1"
GROUP = "trueup group mean"
AHEAD = {0.1: 10, 0.5: 5, 0.9: 10}  # from which n on GroupMean has to be ahead of Google's mean
ROUNDING = 1e-12  # of quadratures of numbers below 1: a smaller bias is none
STEPS = 20  # totals between two whole numbers
MOST, AT = 0.72, 50  # what TwoTotalsMean has to reach against Google's mean, and where


@dataclass(frozen=True)
class Errors:
    """How far a mechanism is off, with the Monte-Carlo errors of the bias and (relative) RMSE.

    ``lost`` is the share of answers that are not finite; they are left out.
    """

    rmse: float
    bias: float
    bias_error: float = 0.0
    relative_error: float = 0.0
    lost: float = 0.0

    @property
    def average(self) -> float:
        """The RMSE of the average of CELLS independent cells; the bias does not average out."""
        variance = self.rmse**2 - self.bias**2
        bias_squared = max(self.bias**2 - self.bias_error**2, 0)  # of a simulated bias, unbiased
        return math.sqrt(bias_squared + variance / (CELLS * (1 - self.lost)))


def exact(mechanism):
    def errors(n, mean):
        bias = mechanism.bias(n, mean) if hasattr(mechanism, "bias") else 0.0  # M_SS: symmetric
        return Errors(math.hypot(mechanism.sd(n, mean), bias), bias)

    return errors


def simulated(draw):
    def errors(n, mean):
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.asarray(draw(n, mean)) - mean
        kept = found[np.isfinite(found)]
        rmse, root = math.sqrt(np.mean(kept**2)), math.sqrt(kept.size)
        return Errors(
            rmse,
            float(np.mean(kept)),
            float(np.std(kept)) / root,
            float(np.std(kept**2)) / root / (2 * rmse**2),
            1 - kept.size / found.size,
        )

    return errors


def google():
    """Sum of deviations and count, ε/2 each; the mean is clamped to the bounds."""
    from pydp.algorithms.laplacian import BoundedMean

    mechanism = BoundedMean(epsilon=1, lower_bound=0, upper_bound=1, dtype="float")

    def draw(n, mean, draws=None):
        records = [mean] * n
        draws = draws or DRAWS * (MORE if n == NEAR else 1)
        return [mechanism.quick_result(records) for _ in range(draws)]

    return draw


def opendp():
    """Noisy sum / noisy length, ε/2 each: the noises and types of ``dp.mean`` on Polars frames."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    total, length = (
        (dp.vector_domain(atom), dp.l1_distance(T=kind)) >> dp.m.then_laplace(2.0)
        for atom, kind in (
            (dp.atom_domain(T="f64", nan=False), "f64"),
            (dp.atom_domain(T="u32"), "u32"),  # unsigned: the noisy length stops at 0
        )
    )
    assert total.map(1.0) + length.map(1) == 1
    return lambda n, mean: np.array(total([n * mean] * DRAWS)) / np.array(length([n] * DRAWS))


def pipeline_dp():
    """Sum of deviations / max(1, count) + middle, ε/2 each."""
    from pipeline_dp import NaiveBudgetAccountant
    from pipeline_dp import dp_computations as dp
    from pipeline_dp.aggregate_params import MechanismType

    accountant = NaiveBudgetAccountant(total_epsilon=1, total_delta=0)
    count, total = (accountant.request_budget(MechanismType.LAPLACE) for _ in range(2))
    accountant.compute_budgets()
    mechanism = dp.create_mean_mechanism(
        0.5, count, dp.Sensitivities(l0=1, linf=1), total, dp.Sensitivities(l0=1, linf=0.5)
    )
    return lambda n, mean: [mechanism.compute_mean(n, n * (mean - 0.5))[2] for _ in range(DRAWS)]


def plug_in():
    """s / max(n, 1) with Laplace noise on both, ε/2 each."""
    rng = np.random.default_rng(1)

    def draw(n, mean):
        return (n * mean + rng.laplace(0, 2, DRAWS)) / np.maximum(n + rng.laplace(0, 2, DRAWS), 1)

    return draw


def two_totals(n, mean):
    """TwoTotalsMean, drawn rather than integrated: to check its exact error, and to clamp it."""
    rng, mechanism = np.random.default_rng(2), TwoTotalsMean(1)
    above, below = (n * m + rng.laplace(0, 1, 10 * DRAWS) for m in (mean, 1 - mean))
    return mechanism.quadrant.value(below, above)


OURS = {
    GROUP: GroupMean(1),
    "trueup M_U, k = 10 (the paper's)": Mean(0.5, 0.5, centred=False, extension=10),
    "trueup M_U, UMVUE": Mean(0.5, 0.5, centred=False),
    "trueup centred": Mean(0.5, 0.5),
    "trueup centred, discrete count": Mean(0.5, 0.5, count_noise="discrete"),
    TWO_TOTALS: TwoTotalsMean(1),
    "trueup two totals, L = 5": TwoTotalsMean(1, count_at_least=5),
    "trueup M_SS (smooth sensitivity)": SmoothSensitivityMean(0.5, 0.5),
}
THEIRS = {
    GOOGLE: google,
    "OpenDP sum / len": opendp,
    "PipelineDP mean": pipeline_dp,
    "plug-in s/max(n, 1)": plug_in,
}


def measure():
    """Return {name: {(n, mean): Errors}}, or {name: None} for what is not installed."""
    rows = {name: exact(mechanism) for name, mechanism in OURS.items()}
    for name, build in THEIRS.items():
        try:
            rows[name] = simulated(build())
        except ImportError:
            rows[name] = None
    points = [(n, mean) for mean in MEANS for n in SIZES]
    return {
        name: errors and {point: errors(*point) for point in points}
        for name, errors in rows.items()
    }


def figure(x):
    return np.format_float_positional(x, precision=3, fractional=False, trim="-")


def bias_figure(e):
    if abs(e.bias) < 3 * e.bias_error:
        return f"<{figure(3 * e.bias_error)}"
    return figure(e.bias) if abs(e.bias) > ROUNDING else "0"


def table(title, results, mean, show, best=False):
    yield from ("", f"### {title}", "", f"| n | {' | '.join(map(str, SIZES))} |")
    yield "| --- |" + " --: |" * len(SIZES)
    found = {
        name: [show(row[n, mean]) for n in SIZES]
        if row
        else ["not installed"] + [""] * (len(SIZES) - 1)
        for name, row in results.items()
    }
    numbers = zip(*(found[name] for name, row in results.items() if row), strict=True)
    least = [min(column, key=float) if best else None for column in numbers]
    for name, cells in found.items():
        marked = [f"**{c}**" if c == low else c for c, low in zip(cells, least, strict=True)]
        yield f"| {name} | {' | '.join(marked)} |"


def ahead_lines(results, mean):
    """Say where GroupMean has to be ahead of Google's mean, whether it is, and where it is not."""
    ours, theirs = results[GROUP], results[GOOGLE]
    ratios = {n: ours[n, mean].rmse / theirs[n, mean].rmse for n in SIZES}
    errors = {n: ratios[n] * theirs[n, mean].relative_error for n in SIZES}
    worst = max((n for n in SIZES if n >= AHEAD[mean]), key=ratios.__getitem__)
    verdict = "not to be told"
    if abs(ratios[worst] - 1) > 2 * errors[worst]:
        verdict = "ahead" if ratios[worst] < 1 else "not ahead there"
    yield (
        f"- From n = {AHEAD[mean]} on, mean {mean}: RMSE of GroupMean / RMSE of {GOOGLE} is at "
        f"most **{ratios[worst]:.3f}** ± {errors[worst]:.3f} (n = {worst}): {verdict}. "
        f"At n = {', '.join(map(str, SIZES))}: {', '.join(f'{r:.3f}' for r in ratios.values())}."
    )


def scattered_line(n, mean):
    """Say how the two compare where the total is any number within ½ of n·mean.

    GroupMean rounds totals to whole numbers; the dither spreads what that costs over all totals.
    """
    totals = n * mean - 0.5 + (np.arange(STEPS) + 0.5) / STEPS
    ours = math.sqrt(np.mean([GroupMean(1).sd(n, t / n) ** 2 for t in totals]))
    draw = google()
    squares = [np.mean((np.asarray(draw(n, t / n, DRAWS // STEPS)) - t / n) ** 2) for t in totals]
    theirs, error = math.sqrt(np.mean(squares)), np.std(squares) / math.sqrt(STEPS)
    yield (
        f"- n = {n}, records whose total lies anywhere within ½ of {n * mean:g}: RMSE of "
        f"GroupMean / RMSE of {GOOGLE} = {ours:.4f} / {theirs:.4f} = **{ours / theirs:.3f}** ± "
        f"{ours / theirs * error / theirs**2 / 2:.3f}."
    )


def ratio_lines(results):
    if not results[GOOGLE]:
        yield f"{GOOGLE}: not installed, so there is no ratio to report."
        return
    for mean in MEANS:
        yield from ahead_lines(results, mean)
    yield from scattered_line(5, 0.5)
    for mean in MEANS:
        ours, theirs = results[TWO_TOTALS][AT, mean].rmse, results[GOOGLE][AT, mean]
        drawn = two_totals(AT, mean)
        drawn, clamped = (math.sqrt(np.mean((x - mean) ** 2)) for x in (drawn, drawn.clip(0, 1)))
        ratio = ours / theirs.rmse
        error = ratio * theirs.relative_error
        verdict = "at most" if ratio + 2 * error <= MOST else "more than"
        if abs(ratio - MOST) < 2 * error:
            verdict = "too near to tell from"
        yield (
            f"- n = {AT}, mean {mean}: RMSE of TwoTotalsMean / RMSE of {GOOGLE} = {ours:.5f} / "
            f"{theirs.rmse:.5f} = **{ratio:.3f}** ± {error:.3f} (Monte Carlo), {verdict} {MOST}. "
            f"With TwoTotalsMean drawn too: {drawn / theirs.rmse:.3f}; clamped to [0, 1] as "
            f"Google's, so no longer unbiased: {clamped / theirs.rmse:.3f}."
        )


def versions():
    yield f"Python {platform.python_version()}"
    for package in ("trueup", "numpy", "python-dp", "opendp", "pipeline-dp"):
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"{package} not installed"


def report(results, seconds):
    rows = [row for row in results.values() if row]
    worst = max(e.relative_error for row in rows for e in row.values())
    usual = max(e.relative_error for row in rows for (n, _), e in row.items() if n >= AT)
    yield from (
        "# Private means",
        "",
        "`python benchmarks/means.py` in an environment made with "
        "`pip install -r benchmarks/requirements-means.txt`; "
        f"one run, {seconds / 60:.1f} minutes of one core. {', '.join(versions())}.",
        "",
        "n records in [0, 1], n not public, total ε = 1 for every mechanism.",
        "",
        *ratio_lines(results),
        "",
        "How to read the tables:",
        "",
        "- trueup's rows are exact. L is the public lower bound of n (1 where not given): at n = 3 "
        "the bound L = 5 is wrong, and that row shows what this costs.",
        f"- The other rows are {DRAWS:,} draws a figure, Google's at n = {NEAR} {MORE * DRAWS:,}. "
        "The standard error of an RMSE is at most "
        f"{worst:.1%} of it, from n = {AT} on {usual:.1%}; a bias below three standard errors is "
        "shown as < that. The libraries draw secure noise, which takes no seed, so another run "
        "differs by that much; the plug-in has a fixed seed.",
        "- Google's answers are clamped to [0, 1], which cuts the error of one cell at the price "
        "of a bias. At mean 0.5 its bias, like PipelineDP's, is 0 by symmetry; at 0.1 and 0.9 it "
        "shows.",
        "- OpenDP's noisy length stops at 0: sum/0 is infinite. Such answers are left out of its "
        "RMSE, bias and average, and counted in a line of their own.",
        f"- Average: RMSE of the mean of {CELLS:,} independent cells, √(bias² + variance/{CELLS:,})"
        "; what is left of a bias dominates it. The bias of a simulated row is known to "
        f"sd/√{DRAWS:,}.",
        "- Bold: the smallest figure of the column.",
    )
    for mean in MEANS:
        yield from ("", f"## Mean {mean}")
        yield from table("RMSE of one cell", results, mean, lambda e: figure(e.rmse), best=True)
        yield from table("Bias", results, mean, bias_figure)
        title = f"RMSE of the average of {CELLS:,} cells"
        yield from table(title, results, mean, lambda e: figure(e.average), best=True)
        lost = {name: row for name, row in results.items() if row and row[SIZES[0], mean].lost}
        if lost:
            title = "Infinite or undefined answers, per 10,000 (left out above)"
            yield from table(title, lost, mean, lambda e: f"{1e4 * e.lost:.0f}")


def main() -> None:
    global DRAWS
    DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    start = time.process_time()
    results = measure()
    text = "\n".join(report(results, time.process_time() - start)) + "\n"
    if len(sys.argv) == 1:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
