"""Draw the pictures of the documentation: ``python docs/make_pictures.py``."""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import polars as pl
from matplotlib import pyplot

import trueup as tu
from trueup import plots
from trueup.plots.style import BLACK, BLUE, GREEN, ORANGE, canvas

HERE = Path(__file__).parent / "pictures"
sys.path.insert(0, str(HERE.parents[1] / "examples"))

import demo

RELEASES = 200
INTEGER = tu.unbiased("1/n", tu.DiscreteLaplace(2), domain=(1, None))


def hero():
    """Draw the national figure of the demo, of many releases of the same table."""
    truth = demo.simulate(np.random.default_rng(demo.SEED))
    pay, staff = (truth[name].to_numpy() for name in ("payroll", "employment"))
    noises = {"s": demo.NOISE["payroll"], "n": demo.NOISE["employment"]}
    debias = tu.unbiased("s/n", noises, {"n": (1, None)})
    rng, found = np.random.default_rng(1), []
    for _ in range(RELEASES):
        s, n = (
            q + z.sample(len(q), rng) for q, z in zip((pay, staff), noises.values(), strict=True)
        )
        found.append(
            ((s[n > 0] / n[n > 0]).mean(), (s / np.maximum(n, 1)).mean(), debias(s=s, n=n).mean())
        )
    axes = canvas(
        None, f"Average pay per employee of 24,000 cells, {RELEASES} releases of one table"
    )
    names = ("x/y, cells below 1 left out", "x/max(y, 1)", "debiased")
    bins = np.linspace(np.min(found), np.max(found), 60)
    for column, name, colour in zip(np.transpose(found), names, (ORANGE, GREEN, BLUE), strict=True):
        axes.hist(column, bins, color=colour, alpha=0.75, label=name)
    axes.axvline((pay / staff).mean(), color=BLACK, linewidth=1.5, label="truth")
    axes.set_xlabel("thousand a year")
    axes.set_ylabel("releases")
    axes.legend(frameon=False, fontsize=8.5)
    return axes


def report():
    """Draw the report of the guide "When not to debias"."""
    rng, noise, cells = np.random.default_rng(1), tu.DiscreteLaplace(5), 20_000
    n = np.floor(np.exp(rng.uniform(0, np.log(5001), cells)))
    table = {"s": 40 * n + noise.sample(cells, rng=rng), "n": n + noise.sample(cells, rng=rng)}
    pay = tu.unbiased("s/n", {"s": noise, "n": noise}, {"n": (1, None)})
    return tu.report(pl.DataFrame(table), pay=pay, cells=400).plot()


def pictures():
    """Yield every picture's name and axes."""
    yield "hero", hero()
    yield "estimate", INTEGER.plot(np.arange(-5, 26), unit="persons", value_unit="1/persons")
    trade = tu.frontier("1/n", tu.DiscreteGaussian(2), (3, 150))
    yield "frontier", plots.frontier(trade)
    yield "report", report()


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name, axes in pictures():
        figure = (axes[0] if isinstance(axes, tuple) else axes).figure
        figure.savefig(HERE / f"{name}.png", dpi=110, metadata={"Software": "trueup"})
        pyplot.close(figure)
