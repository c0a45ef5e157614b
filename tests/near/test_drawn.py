"""Certificates of 200 drawn questions, everyday formulas among them, on dense grids."""

import math

import numpy as np
import pytest

import depth
import trueup as tu
from near.laws import Gaussian, discrete_gaussian, mean

FORMULAS = {
    "1/n": lambda n: 1 / n,
    "1/n**2": lambda n: n**-2.0,
    "sqrt(n)": np.sqrt,
    "log(n)": np.log,
    "log(n + 1)": np.log1p,
    "n*log(n)": lambda n: n * np.log(n),
    "1/sqrt(n)": lambda n: n**-0.5,
    "n/(n + 10)": lambda n: n / (n + 10),
    "100000/n": lambda n: 1e5 / n,
    "(n - 1)/n": lambda n: 1 - 1 / n,
    "n**1.5": lambda n: n**1.5,
    "1/(n + 1)": lambda n: 1 / (n + 1),
}


class DiscreteLaplace:
    """Masses in proportion to e^{−|k|/b}."""

    def __init__(self, b):
        self.k = np.arange(-math.ceil(46 * b), math.ceil(46 * b) + 1)
        mass = np.exp(-np.abs(self.k) / b)
        self.mass = mass / mass.sum()


def expectation(g, noise, q):
    """Return E g(q + Z): sums for integer noise, panels for Gaussian noise."""
    if isinstance(noise, tu.Gaussian):
        return mean(g, Gaussian(float(noise.scale)), q)
    if isinstance(noise, tu.DiscreteGaussian):
        k, mass = discrete_gaussian(float(noise.scale))
    else:
        law = DiscreteLaplace(float(noise.scale))
        k, mass = law.k, law.mass
    return np.array([mass @ g(n + k) for n in q])


def drawn():
    """Return formula, noise, bounds, and how much bias or for how many cells."""
    rng = np.random.default_rng(26)
    cases = []
    while len(cases) < 200:
        f = str(rng.choice([*FORMULAS]))
        noise = [tu.DiscreteGaussian, tu.DiscreteLaplace, tu.Gaussian][int(rng.integers(3))]
        scale = int(rng.integers(1, 6))
        low = int(scale * rng.uniform(1.5, 6)) + 1
        high = None if rng.random() < 0.6 else low + int(scale * rng.uniform(4, 60))
        relative = f not in ("log(n)", "n*log(n)", "(n - 1)/n") and rng.random() < 0.6
        size = 1.0 if relative else abs(float(FORMULAS[f](float(low + scale))))
        wish = {"max_bias": float(f"{rng.choice([0.2, 0.1, 0.05]) * size:.2g}")}
        if rng.random() < 0.3:
            wish = {"cells": int(rng.choice([5, 50, 1000]))}
        cases.append((f, noise(scale), (low, high), relative, wish))
    return cases


@pytest.mark.parametrize("case", drawn()[: depth.examples(200)], ids=str)
def test_no_true_value_beats_the_bound(case):
    f, noise, (low, high), relative, wish = case
    est = tu.nearly_unbiased(f, noise, (low, high), relative=relative, **wish)
    assert est.bias_bound <= wish.get("max_bias", math.inf)
    scale = float(noise.scale)
    end = min(high or math.inf, low + 60 * scale)
    q = np.arange(low, end + 1) if noise.lattice else np.linspace(low, end, 400)
    far = low + scale * np.geomspace(60, 1e5, 40)
    q = np.append(q, np.rint(far)) if high is None else q
    truth = FORMULAS[f](q)
    size = np.abs(truth) if relative else 1.0
    biases = (expectation(est, noise, q) - truth) / size
    assert np.abs(biases).max() <= est.bias_bound * (1 + 1e-7) + 1e-12
