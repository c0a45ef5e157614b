"""Means and ratios of private counts and sums: the bias that libraries ship, and what trueup makes.

    make test                                    # once: builds .venv-adapters with the libraries
    .venv/bin/python benchmarks/shipped_bias.py

draws in the libraries' environment (or that of TRUEUP_ADAPTERS_PYTHON), and writes the table
benchmarks/shipped_bias.md and the picture benchmarks/shipped_bias.png.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

import trueup as tu

SIZES = (3, 5, 10, 30, 100, 1000)
MEAN, SHARE = 0.9, 0.4  # every record is 0.9; four in ten belong to the part
EPSILON = 0.5  # for each of the two numbers: 1 in total
DRAWS = 100_000
CELLS = 10_000
ROOT = Path(__file__).parents[1]
ONE, NONE = (1, None), (0, None)


# -- what the libraries publish --------------------------------------------------------------------
# Each function yields, for n records, (quantity, what the library makes of it, what trueup makes).


def estimate(f, noises, domain, **columns):
    return tu.unbiased(f, noises, domain=domain)(**columns)


def opendp():
    """Laplace sum / length as ``dp.mean`` on frames: a length is unsigned and stops at 0."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    atoms = dp.atom_domain(T="f64", nan=False), dp.atom_domain(T="u32")
    total, length = (
        (dp.vector_domain(atom), dp.l1_distance(T=kind)) >> dp.m.then_laplace(1 / EPSILON)
        for atom, kind in zip(atoms, ("f64", "u32"), strict=True)
    )
    s_noise, n_noise = tu.from_opendp(total), tu.from_opendp(length, domain=ONE)

    def draw(n):
        s, x = np.array(total([n * MEAN] * DRAWS)), np.array(length([n] * DRAWS))
        yield "mean", s / x, estimate("s/n", {"s": s_noise, "n": n_noise}, {"n": ONE}, s=s, n=x)
        a = np.array(length([part(n)] * DRAWS))
        noises = {"a": n_noise, "n": n_noise}
        yield "ratio", a / x, estimate("a/n", noises, {"a": NONE, "n": ONE}, a=a, n=x)

    return draw


def pydp():
    """Google's BoundedMean; trueup's from a centred sum and a count of its own mechanisms."""
    from pydp.algorithms.laplacian import BoundedMean
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    mean = BoundedMean(epsilon=2 * EPSILON, lower_bound=0, upper_bound=1, dtype="float")
    total, count = (LaplaceMechanism(epsilon=EPSILON, sensitivity=d) for d in (0.5, 1.0))
    s_noise, n_noise = tu.from_pydp(total, integers=False), tu.from_pydp(count)

    def draw(n):
        records = [MEAN] * n
        shipped = np.array([mean.quick_result(records) for _ in range(DRAWS)])
        s = np.array([total.add_noise(n * (MEAN - 0.5)) for _ in range(DRAWS)])
        x, a = (np.array([count.add_noise(k) for _ in range(DRAWS)]) for k in (n, part(n)))
        noises = {"s": s_noise, "n": n_noise}
        yield "mean", shipped, 0.5 + estimate("s/n", noises, {"n": ONE}, s=s, n=x)
        noises = {"a": n_noise, "n": n_noise}
        yield "ratio", a / x, estimate("a/n", noises, {"n": ONE}, a=a, n=x)

    return draw


def pipelinedp():
    """Centred sum / max(1, count): the numerator is found in what compute_mean gives back."""
    from pipeline_dp import NaiveBudgetAccountant
    from pipeline_dp import dp_computations as dp
    from pipeline_dp.aggregate_params import MechanismType

    accountant = NaiveBudgetAccountant(total_epsilon=2 * EPSILON, total_delta=0)
    for_count, for_sum = (accountant.request_budget(MechanismType.LAPLACE) for _ in range(2))
    accountant.compute_budgets()
    one, half = (dp.Sensitivities(l0=1, linf=d) for d in (1, 0.5))
    mean = dp.create_mean_mechanism(0.5, for_count, one, for_sum, half)
    noises = tu.from_pipelinedp(mean)
    count = dp.create_additive_mechanism(for_count, one)
    n_noise = tu.from_pipelinedp(count)

    def draw(n):
        rows = np.array([mean.compute_mean(n, n * (MEAN - 0.5)) for _ in range(DRAWS)])
        x, shipped = rows[:, 0], rows[:, 2]
        s = (shipped - 0.5) * np.maximum(1, x)
        both = {"s": noises["normalized_sum"], "n": noises["count"]}
        yield "mean", shipped, 0.5 + estimate("s/n", both, {"n": ONE}, s=s, n=x)
        x, a = (count.add_noise(np.full(DRAWS, k)) for k in (n, part(n)))
        both = {"a": n_noise, "n": n_noise}
        yield "ratio", a / np.maximum(1, x), estimate("a/n", both, {"n": ONE}, a=a, n=x)

    return draw


def diffprivlib():
    """A Laplace sum over a geometric count, divided by hand: its own mean takes n as public."""
    from diffprivlib.mechanisms import Geometric, Laplace

    total = Laplace(epsilon=EPSILON, sensitivity=1, random_state=1)
    count = Geometric(epsilon=EPSILON, sensitivity=1, random_state=2)
    s_noise, n_noise = tu.from_diffprivlib(total), tu.from_diffprivlib(count)

    def draw(n):
        s = np.array([total.randomise(n * MEAN) for _ in range(DRAWS)])
        x, a = (np.array([count.randomise(k) for _ in range(DRAWS)]) for k in (n, part(n)))
        yield "mean", s / x, estimate("s/n", {"s": s_noise, "n": n_noise}, {"n": ONE}, s=s, n=x)
        both = {"a": n_noise, "n": n_noise}
        yield "ratio", a / x, estimate("a/n", both, {"n": ONE}, a=a, n=x)

    return draw


LIBRARIES = {
    "OpenDP": opendp,
    "PyDP (Google)": pydp,
    "PipelineDP": pipelinedp,
    "diffprivlib": diffprivlib,
}
PACKAGES = ("opendp", "python-dp", "pipeline-dp", "diffprivlib", "numpy")


def part(n):
    return round(SHARE * n)


# -- how far it is off -----------------------------------------------------------------------------


def errors(values, truth):
    """Return bias and RMSE of the finite answers, their standard errors, and how many are not."""
    found = np.asarray(values, float) - truth
    kept = found[np.isfinite(found)]
    rmse, root = math.sqrt(np.mean(kept**2)), math.sqrt(kept.size)
    return {
        "bias": float(kept.mean()),
        "bias_error": float(kept.std() / root),
        "rmse": rmse,
        "rmse_error": float((kept**2).std() / root / (2 * rmse)),
        "lost": 1 - kept.size / found.size,
    }


def measure():
    """Return {library: {quantity: {n: {"shipped": …, "trueup": …}}}}, and what was used."""
    rows = {name: {"mean": {}, "ratio": {}} for name in LIBRARIES}
    for name, build in LIBRARIES.items():
        draw = build()
        for n in SIZES:
            with np.errstate(divide="ignore", invalid="ignore"):
                for quantity, shipped, ours in draw(n):
                    truth = MEAN if quantity == "mean" else part(n) / n
                    sides = {"shipped": errors(shipped, truth), "trueup": errors(ours, truth)}
                    rows[name][quantity][str(n)] = sides
    versions = {package: version(package) for package in PACKAGES}
    return {"rows": rows, "versions": versions, "seconds": time.process_time()}


def average(e):
    """Return the RMSE of the average of CELLS cells: the bias does not average out."""
    variance = e["rmse"] ** 2 - e["bias"] ** 2
    bias_squared = max(e["bias"] ** 2 - e["bias_error"] ** 2, 0)  # unbiased for a simulated bias
    return math.sqrt(bias_squared + variance / (CELLS * (1 - e["lost"])))


# -- the table and the picture ---------------------------------------------------------------------


def figure(x):
    return np.format_float_positional(x, precision=2, fractional=False, trim="-")


def bias_figure(e):
    if abs(e["bias"]) < 3 * e["bias_error"]:
        return f"0 ± {figure(e['bias_error'])}"
    return f"**{figure(e['bias'])}** ± {figure(e['bias_error'])}"


def table(title, rows, quantity, show):
    yield from ("", f"### {title}", "", f"| n | | {' | '.join(map(str, SIZES))} |")
    yield "| --- | --- |" + " --: |" * len(SIZES)
    for library, found in rows.items():
        for side in ("shipped", "trueup"):
            cells = [show(found[quantity][str(n)][side]) for n in SIZES]
            yield f"| {library if side == 'shipped' else ''} | {side} | {' | '.join(cells)} |"


def report(found):
    rows, versions = found["rows"], ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    yield from (
        "# The bias that is shipped",
        "",
        f"`python benchmarks/shipped_bias.py`; one run, {found['seconds'] / 60:.1f} minutes of one "
        f"core. Python {platform.python_version()}, trueup {tu.__version__}, {versions}.",
        "",
        f"n records, n not public, ε = {2 * EPSILON:g} in total. The mean: every record is {MEAN} "
        f"in [0, 1]. The ratio: the share of a part of about {SHARE} n records (n = 3: one), from "
        f"two private counts. {DRAWS:,} draws a figure.",
        "",
        "![Bias and error of shipped means and ratios, and of trueup's](shipped_bias.png)",
        "",
        "How to read the tables:",
        "",
        "- *shipped* is what the library answers, or where it has no such answer what its two "
        "published numbers give when divided; *trueup* is made of the same published numbers, with "
        "the noise that its adapter read, and the one assumption that n is at least 1.",
        "- OpenDP: a Laplace sum over a Laplace length, as on Polars frames. Lengths are unsigned "
        "and stop at 0; trueup's estimates allow for that.",
        "- PyDP: the mean is Google's `BoundedMean`, which publishes neither numerator nor "
        "denominator and is clamped to [0, 1]; trueup's is made of a sum and a count of PyDP's own "
        "mechanisms at the same ε, so here the draws are not the same. Its counts are rounded "
        "Laplace.",
        "- PipelineDP: its mean divides by max(1, count), and so does its ratio here. The mean's "
        "numerator is recovered from what `compute_mean` returns.",
        "- diffprivlib takes n as public in its own mean; here a user divides a sum by a count.",
        "- A bias below three standard errors is shown as 0, others in bold, all with their "
        "standard error. Infinite and undefined answers are left out and counted at the end.",
        "- trueup pays for having no bias with variance where n is near the bound: for one cell of "
        f"n ≤ 10 a biased answer is nearer. Over many cells the bias stays: see the average of "
        f"{CELLS:,} cells, √(bias² + variance/{CELLS:,}), where the bias of either is the "
        f"simulated one, known to sd/√{DRAWS:,}.",
    )
    for quantity in ("mean", "ratio"):
        yield from ("", f"## The {quantity}")
        yield from table("Bias", rows, quantity, bias_figure)
        yield from table("RMSE of one cell", rows, quantity, lambda e: figure(e["rmse"]))
        title = f"RMSE of the average of {CELLS:,} cells"
        yield from table(title, rows, quantity, lambda e: figure(average(e)))
        lost = {k: v for k, v in rows.items() if v[quantity]["3"]["shipped"]["lost"]}
        if lost:
            title = "Infinite or undefined answers, per 10,000 (left out above)"
            yield from table(title, lost, quantity, lambda e: f"{1e4 * e['lost']:.0f}")


def picture(rows, path):
    import matplotlib.pyplot as plt

    colours = {"shipped": "#D55E00", "trueup": "#0072B2"}
    styles = {"mean": ("-", "o"), "ratio": ("--", "s")}
    figure, axes = plt.subplots(2, len(rows), figsize=(13, 6.2), sharex=True, sharey="row")
    for (library, found), (above, below) in zip(rows.items(), axes.T, strict=True):
        for quantity, (line, marker) in styles.items():
            for side, colour in colours.items():
                cells = [found[quantity][str(n)][side] for n in SIZES]
                label, fill = f"{quantity}, {side}", colour if side == "shipped" else "white"
                style = {
                    "color": colour, "linestyle": line, "marker": marker, "mfc": fill, "ms": 6
                }  # fmt: skip
                bias, error = ([e[k] for e in cells] for k in ("bias", "bias_error"))
                above.errorbar(SIZES, bias, yerr=2 * np.array(error), capsize=3, **style)
                below.plot(SIZES, [average(e) for e in cells], label=label, **style)
        above.set_title(library)
        above.axhline(0, color="0.6", linewidth=0.8, zorder=0)
        below.set(xscale="log", yscale="log", xlabel="records n")
        below.set_xticks(SIZES, [str(n) for n in SIZES])
        below.minorticks_off()
        below.grid(axis="y", color="0.9")
    axes[0, 0].set_ylabel("bias (± 2 standard errors)")
    axes[1, 0].set_ylabel(f"RMSE of the average\nof {CELLS:,} cells")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False)
    figure.suptitle(f"Private means and ratios as shipped, and made unbiased (ε = {2 * EPSILON:g})")
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=130)


def main() -> None:
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(measure()))
        return
    default = ROOT / ".venv-adapters" / "bin" / "python"
    done = subprocess.run(  # noqa: S603  (this very file)
        [os.environ.get("TRUEUP_ADAPTERS_PYTHON", str(default)), __file__, "measure"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    text = "\n".join(report(found)) + "\n"
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    picture(found["rows"], Path(__file__).with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
