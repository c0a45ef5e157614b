"""Tumult Analytics: what ``session._noise_info(query, budget)`` says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from trueup.adapters.attributes import law, parameter, refusal
from trueup.errors import TrueupError
from trueup.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Noise

SCALES = {"LAPLACE": Laplace, "GEOMETRIC": DiscreteLaplace}
"""Mechanisms whose parameter is a scale."""

SQUARES = {"GAUSSIAN": Gaussian, "DISCRETE_GAUSSIAN": DiscreteGaussian}
"""Mechanisms whose parameter is σ²."""


def from_tumult(noise_info: Any) -> Any:
    """Return the noise of a Tumult query from its noise information.

    The parameter of Laplace and geometric noise is its scale; that of (discrete) Gaussian noise is
    σ², not σ.

    Parameters
    ----------
    noise_info
        What ``session._noise_info(query, budget)`` returns, or one entry of it: a mapping with
        ``noise_mechanism`` and ``noise_parameter``. Call it before the query is evaluated.

    Returns
    -------
    Noise or list of Noise
        A noise for one entry. Several entries give a list, in order: the query publishes a number
        computed from several noisy ones (an average is a sum over a count). Its own error is none
        of them; ask for the sum and the count, and let trueup divide. A query that suppresses
        small results reports the noise before that: values that survived are biased.

    Examples
    --------
    >>> from_tumult([{"noise_mechanism": "GAUSSIAN", "noise_parameter": 9.0}])
    Gaussian(3)
    """
    if isinstance(noise_info, Mapping):
        return _noise(noise_info)
    if isinstance(noise_info, str) or not isinstance(noise_info, Iterable):
        hint = "pass what session._noise_info(query, budget) returns"
        raise TrueupError(f"noise information is a list of mappings, got {noise_info!r}", hint)
    noises = [_noise(entry) for entry in noise_info]
    if not noises:
        why, hint = "it names no mechanism", "ask for a count or a sum of a session's table"
        raise refusal("the noise information", why, hint)
    return noises[0] if len(noises) == 1 else noises


def _noise(entry: Any) -> Noise:
    """Return the noise of one entry."""
    if not (isinstance(entry, Mapping) and {"noise_mechanism", "noise_parameter"} <= set(entry)):
        hint = "pass what session._noise_info(query, budget) returns"
        raise TrueupError(f"an entry has noise_mechanism and noise_parameter, got {entry!r}", hint)
    mechanism = entry["noise_mechanism"]
    name = str(getattr(mechanism, "name", mechanism))
    value = parameter(entry["noise_parameter"], "noise_parameter")
    if name in SCALES:
        return law(SCALES[name], value)
    if name in SQUARES:
        return law(SQUARES[name], math.sqrt(value))
    why = "it selects a value, it does not add noise to one"
    if name != "EXPONENTIAL":
        why = "the mechanism is not known"
    raise refusal(f"Tumult's {name} mechanism", why, "ask for a count or a sum")
