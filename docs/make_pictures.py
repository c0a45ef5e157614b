"""Draw the pictures of the documentation: ``python docs/make_pictures.py``."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot

import trueup as tu
from trueup import plots
from trueup.mechanisms import PerRecordSum

HERE = Path(__file__).parent / "pictures"
LAPLACE = tu.unbiased("1/n", tu.Laplace(2), domain=(1, None))
INTEGER = tu.unbiased("1/n", tu.DiscreteLaplace(2), domain=(1, None))
ROUGH = tu.unbiased("1/n", tu.Laplace(2), domain=(1, None), extension=3)


def pictures():
    """Yield every picture's name and axes."""
    yield "estimate", INTEGER.plot(np.arange(-5, 26), unit="persons", value_unit="1/persons")
    yield "risk", plots.risk(LAPLACE, ROUGH, labels=["optimal", "degree 3"], unit="persons")
    yield "calibration", plots.calibration(INTEGER, q=range(2, 20), unit="persons")
    roots = PerRecordSum("root:2", 2), PerRecordSum("root:3", 1)
    yield "policy", plots.policy(*roots, PerRecordSum("log", 0.1, offset=100), unit="dollars")
    trade = tu.frontier("1/n", tu.DiscreteGaussian(2), (3, 150))
    yield "frontier", plots.frontier(trade)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name, axes in pictures():
        figure = (axes[0] if isinstance(axes, tuple) else axes).figure
        figure.savefig(HERE / f"{name}.png", dpi=110, metadata={"Software": "trueup"})
        pyplot.close(figure)
