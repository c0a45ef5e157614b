"""diffprivlib: mechanisms as objects; what their scale means differs from class to class."""

from __future__ import annotations

import math
from typing import Any

from trueup.adapters.attributes import attribute, kind, law, quotient, refusal
from trueup.adapters.clamping import unclamped
from trueup.domain import Interval
from trueup.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Noise,
    Noiseless,
    Staircase,
    Uniform,
)

CLAMPED = {"LaplaceTruncated": "Laplace", "GeometricTruncated": "Geometric"}
"""Mechanisms that clamp what another one gives."""

FOLDED = "values beyond the bounds are folded back, so the noise depends on the truth"
REASONS = {
    "LaplaceFolded": FOLDED,
    "GeometricFolded": FOLDED,
    "LaplaceBoundedDomain": "values beyond the bounds are drawn again, so the noise depends on the "
    "truth",
    "LaplaceBoundedNoise": "truncated Laplace noise is not among trueup's families",
    "Snapping": "its values are rounded to a coarse grid and clamped",
}
SELECTS = "it does not add noise to a number"


def from_diffprivlib(mechanism: Any, domain: Any = None) -> Noise:
    """Return the noise that a diffprivlib mechanism adds.

    Parameters
    ----------
    mechanism
        An object of ``diffprivlib.mechanisms``: Laplace, Geometric, Gaussian, GaussianAnalytic,
        GaussianDiscrete, Staircase, Uniform; LaplaceTruncated and GeometricTruncated if their
        bounds do not cut into the domain.
    domain
        Where the true value lies, as for ``tu.unbiased``; needed only for truncated mechanisms.

    Examples
    --------
    >>> class Geometric:
    ...     epsilon, sensitivity, _scale = 0.5, 1, -0.5
    >>> from_diffprivlib(Geometric())
    DiscreteLaplace(2)
    """
    name = kind(mechanism)
    if name in CLAMPED:
        noise = _noise(mechanism, CLAMPED[name])
        clamp = Interval(getattr(mechanism, "lower", None), getattr(mechanism, "upper", None))
        stated = None if domain is None else Interval.read(domain)
        return unclamped(noise, clamp, stated, f"diffprivlib's {name}")
    return _noise(mechanism, name)


def _noise(mechanism: Any, name: str) -> Noise:
    """Return the noise that a mechanism of this name adds before any clamping."""
    match name:
        case "Laplace":
            epsilon, delta = attribute(mechanism, "epsilon"), attribute(mechanism, "delta")
            budget = epsilon - math.log1p(-delta) if delta else epsilon
            sensitivity = attribute(mechanism, "sensitivity")
            return law(Laplace, quotient(sensitivity, budget, mechanism))
        case "Geometric":
            sensitivity, epsilon = (attribute(mechanism, a) for a in ("sensitivity", "epsilon"))
            return law(DiscreteLaplace, quotient(sensitivity, epsilon, mechanism))
        case "Gaussian" | "GaussianAnalytic":
            return law(Gaussian, attribute(mechanism, "_scale"))
        case "GaussianDiscrete":
            return law(DiscreteGaussian, attribute(mechanism, "_scale"))
        case "Staircase":
            parameters = [attribute(mechanism, a) for a in ("epsilon", "sensitivity", "gamma")]
            return Staircase(*parameters) if parameters[1] else Noiseless()
        case "Uniform":
            delta, sensitivity = attribute(mechanism, "delta"), attribute(mechanism, "sensitivity")
            return law(Uniform, quotient(sensitivity, delta, mechanism))
        case _:
            hint = "use its Laplace, Geometric, Gaussian, GaussianDiscrete or Staircase mechanism"
            raise refusal(f"diffprivlib's {name}", REASONS.get(name, SELECTS), hint)
