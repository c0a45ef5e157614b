"""PyDP, Google's library: Laplace and Gaussian noise, rounded to the integers for integers."""

from __future__ import annotations

from typing import Any

from trueup.adapters.attributes import attribute, kind, law, quotient, refusal
from trueup.errors import TrueupError
from trueup.noise import Gaussian, Laplace, Noise, RoundedGaussian, RoundedLaplace

AGGREGATES = {
    "BoundedMean": "its mean is a quotient, clamped to the bounds",
    "BoundedVariance": "its variance is computed from several noisy sums, and clamped",
    "BoundedStandardDeviation": "it is a root of several noisy sums, and clamped",
    "Max": "it selects a value, it does not add noise to one",
    "Min": "it selects a value, it does not add noise to one",
    "Median": "it selects a value, it does not add noise to one",
    "Percentile": "it selects a value, it does not add noise to one",
}


def from_pydp(mechanism: Any, integers: bool = True) -> Noise:
    """Return the noise that a PyDP mechanism adds.

    ``add_noise`` of an integer adds Laplace (Gaussian) noise rounded to the nearest integer, which
    is not discrete Laplace noise; ``add_noise`` of a float adds it as it is. The mechanism does not
    say which of the two was called.

    Parameters
    ----------
    mechanism
        A ``LaplaceMechanism`` or ``GaussianMechanism`` of ``pydp.algorithms.numerical_mechanisms``,
        or a ``Count``, which is always an integer.
    integers
        Whether the published numbers are integers: counts, and sums of integers. If they are not,
        an estimator made for integers says so when it meets one.

    Examples
    --------
    >>> class LaplaceMechanism:
    ...     diversity, epsilon, sensitivity = 2.0, 0.5, 1.0
    >>> from_pydp(LaplaceMechanism()), from_pydp(LaplaceMechanism(), integers=False)
    (RoundedLaplace(2), Laplace(2))
    """
    if not isinstance(integers, bool):
        hint = "say whether the published numbers are integers: True or False"
        raise TrueupError(f"integers must be True or False, got {integers!r}", hint)
    name = kind(mechanism)
    if name == "LaplaceMechanism":
        scale = attribute(mechanism, "diversity")
        return law(RoundedLaplace if integers else Laplace, scale)
    if name == "GaussianMechanism":
        scale = attribute(mechanism, "std")
        return law(RoundedGaussian if integers else Gaussian, scale)
    if name == "Count":
        changes = attribute(mechanism, "l0_sensitivity") * attribute(mechanism, "linf_sensitivity")
        return law(RoundedLaplace, quotient(changes, attribute(mechanism, "epsilon"), mechanism))
    raise _refusal(name)


def _refusal(name: str) -> TrueupError:
    """Return why the object of this class has no noise to read."""
    if name == "BoundedSum":
        why = "a BoundedSum does not keep its bounds"
        hint = (
            "its noise has the scale l0·linf·max(|lower|, |upper|)/ε: tu.Laplace(scale) for "
            "dtype='float', else tu.RoundedLaplace(scale)"
        )
        return refusal("PyDP's BoundedSum", why, hint)
    why = AGGREGATES.get(name, "it is neither a LaplaceMechanism, a GaussianMechanism nor a Count")
    hint = "publish a noisy sum and a noisy count and let trueup divide, e.g. 's/n'"
    return refusal(f"PyDP's {name}" if name in AGGREGATES else name, why, hint)
