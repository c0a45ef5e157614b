"""Expectations written down from the definitions of the noises; no code of the library."""

import math

import numpy as np
from scipy import optimize

GAUSS = np.polynomial.legendre.leggauss(6)
PANELS = 8
"""Panels on each step of a staircase."""


def discrete_gaussian(sigma):
    """Return the integers that matter and their masses e^{−k²/(2σ²)}/Σ."""
    reach = math.ceil(11 * sigma)
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-((k / sigma) ** 2) / 2)
    return k, mass / mass.sum()


def sums(g, sigma, low, high):
    """Return mean and variance of g(q + Z), Z discrete Gaussian, at every integer q."""
    k, mass = discrete_gaussian(sigma)
    values = np.asarray(g(np.arange(low + k[0], high + k[-1] + 1)), float)
    mean = np.convolve(values, mass[::-1], "valid")
    return mean, np.convolve(values**2, mass[::-1], "valid") - mean**2


class Gaussian:
    """Density e^{−z²/(2σ²)}/(σ√(2π))."""

    def __init__(self, sigma):
        self.edges = sigma * np.linspace(-9.5, 9.5, 381)
        self.sigma = sigma

    def density(self, z):
        return np.exp(-((z / self.sigma) ** 2) / 2) / self.sigma / math.sqrt(2 * math.pi)


class Staircase:
    """Density a·e^{−kε} on [k, k + γ) and a·e^{−(k+1)ε} on [k + γ, k + 1), mirrored."""

    def __init__(self, epsilon):
        self.epsilon, self.gamma = epsilon, 1 / (1 + math.exp(epsilon / 2))
        steps = np.arange(0, math.ceil(40 / epsilon))
        parts = np.arange(PANELS) / PANELS
        low = steps[:, None] + self.gamma * parts
        high = steps[:, None] + self.gamma + (1 - self.gamma) * parts
        fine = np.concatenate([low.ravel(), high.ravel()])
        self.edges = np.unique(np.concatenate([-fine, fine]))

    def density(self, z):
        r = math.exp(-self.epsilon)
        top = (1 - r) / (2 * (self.gamma + r * (1 - self.gamma)))
        whole = np.floor(np.abs(z))
        return top * r ** (whole + (np.abs(z) - whole >= self.gamma))


def mean(g, law, q):
    """Return E g(q + Z) at every q by Gauss–Legendre panels."""
    half = np.diff(law.edges)[:, None] / 2
    z = (law.edges[:-1, None] + half * (1 + GAUSS[0])).ravel()
    weights = (half * GAUSS[1]).ravel() * law.density(z)
    return np.asarray(g(np.asarray(q, float)[:, None] + z), float) @ weights


def largest(bias, low, high, count=160, peaks=4):
    """Return the largest |bias| that a search over [low, high] can find."""
    q = np.unique(
        np.concatenate([np.linspace(low, high, count), low + np.geomspace(1e-3, high - low, 40)])
    )
    found = np.abs(bias(q))
    best = float(found.max())
    for i in np.argsort(found)[-peaks:]:
        bounds = (q[max(i - 1, 0)], q[min(i + 1, len(q) - 1)])
        top = optimize.minimize_scalar(
            lambda x: -float(np.abs(bias(np.array([x])))[0]), bounds=bounds, method="bounded"
        )
        best = max(best, -float(top.fun))
    return best
