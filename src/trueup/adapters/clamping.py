"""Releases that stop at a bound: harmless outside the domain, wrong inside it.

Below the lower bound L of the domain the minimum-variance estimator under (discrete) Laplace noise
is constant, so a release that was clamped at c ≤ L gives the same estimates, and likewise above.
Clamped at c > L it is biased under every function of it. Rounded Laplace noise has that branch from
L − 1 down, but no library that is read here clamps it. Other noises have none: there the clamp must
be out of reach of the noise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trueup.adapters.attributes import refusal
from trueup.domain import Interval
from trueup.noise import DiscreteLaplace, Laplace, Noiseless

if TYPE_CHECKING:
    from trueup.noise import Noise

REACH = 10
"""So many standard deviations a Gaussian noise never goes: the odds are below 1e-22."""


def unclamped(noise: Noise, clamp: Interval, domain: Interval | None, what: str) -> Noise:
    """Return the noise of a clamped release if the clamp does not matter on the domain.

    Examples
    --------
    >>> unclamped(Laplace(2), Interval(0, None), Interval(1, None), "a count")
    Laplace(2)
    """
    if isinstance(noise, Noiseless) or clamp.bounds == (None, None):
        return noise
    sharp = isinstance(noise, (Laplace, DiscreteLaplace))
    margin = 0.0 if sharp else REACH * math.sqrt(float(noise.variance))
    if domain is None:
        inside = f"{REACH} standard deviations ({margin:.3g}) inside" if margin else "inside"
        hint = f"pass domain=, as to tu.unbiased; if it lies {inside} {clamp} the clamp is harmless"
        other = "; or release signed integers" if margin else ""
        raise refusal(what, f"its values are clamped to {clamp}", hint + other)
    if clamp.low + margin <= domain.low and domain.high <= clamp.high - margin:
        return noise
    if margin:
        why = f"its values are clamped to {clamp}, within reach of {noise!r} on the domain {domain}"
        hint = "release it unclamped, with signed integers, or with Laplace noise"
        raise refusal(what, why, hint)
    why = f"its values are clamped to {clamp}, inside the domain {domain}"
    raise refusal(what, why, "release it unclamped, or narrow the domain if you may")
