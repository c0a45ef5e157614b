"""What the real libraries publish, read through the adapters, averages to the truth.

Every case also says how the noise is easily misread: the same draws must reject that reading. The
libraries draw without a seed: a value outside four standard errors is looked at again with four
times as many draws, which a real bias fails for certain.
"""

import functools
import math
import tempfile
from dataclasses import dataclass

import numpy as np
import pytest

import trueup as tu
from adapters.environment import releases

WITHIN, BEYOND = 4, 5


@dataclass(frozen=True)
class Case:
    """What is published of which truth: 1/q of a positive one, q² of 0."""

    noise: tu.Noise
    misread: tuple[tu.Noise, ...]
    domain: tuple[int | None, int | None] | None = None

    @property
    def f(self):
        return "q**2" if self.domain is None else "1/q"

    @property
    def target(self):
        return 0.0 if self.domain is None else 0.5

    def plug_in(self, x):
        return x**2 if self.domain is None else 1 / np.clip(x, *self.domain)


COUNT = (1, None)
OPENDP = {
    "laplace": Case(tu.DiscreteLaplace(0.7), (tu.Laplace(0.7),), COUNT),
    "geometric": Case(tu.DiscreteLaplace(0.7), (tu.DiscreteLaplace(1),), (1, 50)),
    "unsigned": Case(tu.DiscreteLaplace(1), (tu.DiscreteLaplace(0.7),), COUNT),
    "gaussian": Case(tu.DiscreteGaussian(0.5), (tu.Gaussian(0.5),)),
    "float laplace": Case(tu.Laplace(1.5), (tu.Laplace(1.7), tu.Laplace(1.5 * 2**0.5))),
    "float gaussian": Case(tu.Gaussian(1.5), (tu.Gaussian(1.65), tu.Gaussian(1.5**2))),
    "composed first": Case(tu.DiscreteLaplace(0.7), (tu.DiscreteLaplace(1.2),), COUNT),
    "composed second": Case(tu.DiscreteLaplace(1.2), (tu.DiscreteLaplace(0.7),), COUNT),
    "polars length": Case(tu.DiscreteLaplace(0.5), (tu.Laplace(0.5),), COUNT),
    "polars sum": Case(tu.Laplace(0.5), (tu.Laplace(0.7),), COUNT),
}
PYDP = {
    "laplace": Case(tu.RoundedLaplace(0.5), (tu.Laplace(0.5), tu.DiscreteLaplace(0.5))),
    "float laplace": Case(tu.Laplace(0.5), (tu.Laplace(0.65),), COUNT),
    "gaussian": Case(tu.RoundedGaussian(0.6), (tu.Gaussian(0.6), tu.DiscreteGaussian(0.6))),
    "float gaussian": Case(tu.Gaussian(0.6), (tu.Gaussian((0.36 + 1 / 12) ** 0.5),)),
    "count": Case(tu.RoundedLaplace(0.5), (tu.Laplace(0.5), tu.DiscreteLaplace(0.5)), COUNT),
}
PIPELINEDP = {
    "laplace": Case(tu.Laplace(1), (tu.Laplace(1.2), tu.Laplace(2**0.5)), COUNT),
    "gaussian": Case(tu.Gaussian(3.732421875), (tu.Gaussian(3.5),)),
    "mean: count": Case(tu.Laplace(1), (tu.Laplace(1.2), tu.Laplace(2**0.5)), COUNT),
}
DIFFPRIVLIB = {
    "laplace": Case(tu.Laplace(1 / (1 - math.log(0.8))), (tu.Laplace(1),), COUNT),
    "geometric": Case(
        tu.DiscreteLaplace(2 / 3), (tu.DiscreteLaplace(1.5), tu.Laplace(2 / 3)), COUNT
    ),
    "gaussian": Case(tu.Gaussian(math.sqrt(2 * math.log(12.5))), (tu.Gaussian(2),)),
    "analytic": Case(tu.Gaussian(0.7319552433306878), (tu.Gaussian(0.8),)),
    "discrete": Case(tu.DiscreteGaussian(0.3736690282821655), (tu.Gaussian(0.3737),)),
    "staircase": Case(tu.Staircase(4, 1, 0.6), (tu.Laplace(0.25), tu.Staircase(4))),
    "uniform": Case(tu.Uniform(2.5), (tu.Uniform(2.3),)),
    "truncated": Case(tu.Laplace(1), (tu.Laplace(0.8),), (1, 60)),
}
LIBRARIES = {
    "opendp": (OPENDP, 20_000),
    "pydp": (PYDP, 60_000),
    "pipelinedp": (PIPELINEDP, 20_000),
    "diffprivlib": (DIFFPRIVLIB, 20_000),
}


def errors_off(values, truth):
    """Return how many standard errors an average is away from the truth."""
    return abs(values.mean() - truth) / (values.std() / values.size**0.5)


def accepted(case, noise, x):
    """Return whether the draws agree with a reading of their noise."""
    estimates = np.asarray(tu.unbiased(case.f, noise, domain=case.domain)(x), float)
    return errors_off(estimates, case.target) < WITHIN


def misreadings(case, x):
    """Return the wrong readings that the draws do not reject."""
    found = {"plug-in": case.plug_in(x)}
    found |= {repr(n): tu.unbiased(case.f, n, domain=case.domain)(x) for n in case.misread}
    return [name for name, values in found.items() if errors_off(values, case.target) < BEYOND]


@functools.cache
def drawn(library, draws):
    """Return what a library releases, drawn once for the tests of a process."""
    with tempfile.TemporaryDirectory(prefix="trueup-releases-") as folder:
        return releases(library, draws, folder)


@pytest.mark.parametrize("library", LIBRARIES)
def test_releases_average_to_the_truth(library):
    cases, draws = LIBRARIES[library]
    found = drawn(library, draws)
    for name, case in cases.items():
        noise, x = found[name]
        assert type(noise) is type(case.noise), (name, noise)
        assert float(noise.variance) == pytest.approx(float(case.noise.variance), rel=1e-6), name
        assert not misreadings(case, x.astype(float)), name
    doubtful = [name for name, case in cases.items() if not accepted(case, *found[name])]
    again = drawn(library, 4 * draws) if doubtful else {}
    assert all(accepted(cases[name], *again[name]) for name in doubtful), doubtful


def test_a_shipped_mean_is_undone():
    """PipelineDP's mean gives its noisy numerator back; divided by us it has no bias."""
    for draws in (20_000, 80_000):
        found = drawn("pipelinedp", draws)
        (count, n), (total, s), (_, shipped) = (
            found[f"mean: {k}"] for k in ("count", "sum", "mean")
        )
        assert errors_off(shipped, 0.9) > BEYOND
        est = tu.unbiased("0.5 + s/n", {"s": total, "n": count}, domain={"n": COUNT})
        if (off := errors_off(est(s=s, n=n), 0.9)) < WITHIN:
            break
    assert off < WITHIN
