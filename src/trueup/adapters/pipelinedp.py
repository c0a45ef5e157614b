"""PipelineDP: Laplace and Gaussian noise of Google's library, always on floats."""

from __future__ import annotations

from typing import Any

from trueup.adapters.attributes import attribute, kind, law, refusal
from trueup.noise import Gaussian, Laplace, Noise

FAMILIES = {"LAPLACE": Laplace, "GAUSSIAN": Gaussian}
REASONS = {
    "ThresholdingMechanism": "it publishes only counts above a threshold, which biases them",
    "ExponentialMechanism": "it selects a value, it does not add noise to one",
}


def from_pipelinedp(mechanism: Any) -> Any:
    """Return the noise that a PipelineDP mechanism adds.

    Parameters
    ----------
    mechanism
        A ``LaplaceMechanism`` or ``GaussianMechanism`` of ``pipeline_dp.dp_computations`` (what
        ``create_additive_mechanism`` returns), or a ``MeanMechanism``.

    Returns
    -------
    Noise or dict
        A noise; for a ``MeanMechanism`` the noises of its ``count`` and ``normalized_sum``. The
        mean that it computes is their quotient with the count clamped at 1, which is biased, but
        ``compute_mean`` gives back what is needed to undo that: the normalized sum is
        ``(mean - middle) * max(1, count)``.

    Examples
    --------
    >>> class LaplaceMechanism:
    ...     noise_kind, noise_parameter, std = "LAPLACE", 2.0, 2.8284271247461903
    >>> from_pipelinedp(LaplaceMechanism())
    Laplace(2)
    """
    if kind(mechanism) == "MeanMechanism":
        return {
            "count": _noise(getattr(mechanism, "_count_mechanism", None)),
            "normalized_sum": _noise(getattr(mechanism, "_sum_mechanism", None)),
        }
    return _noise(mechanism)


def _noise(mechanism: Any) -> Noise:
    """Return the noise of an additive mechanism."""
    noise_kind = getattr(mechanism, "noise_kind", None)
    name = str(getattr(noise_kind, "name", noise_kind))
    if name in FAMILIES:
        return law(FAMILIES[name], attribute(mechanism, "noise_parameter"))
    why = REASONS.get(kind(mechanism), "it is not one of its additive mechanisms")
    hint = "pass what pipeline_dp.dp_computations.create_additive_mechanism returns"
    raise refusal(kind(mechanism), why, hint)
