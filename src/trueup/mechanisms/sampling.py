"""Publish numbers with noise: through OpenDP's samplers, or, for simulation, through NumPy.

A private release is made of whole numbers only: the values are whole multiples of a step, OpenDP
draws its noise exactly as a whole number of steps, and Python adds the two exactly. On grids as
fine as these the noise has the continuous law that the estimators assume, up to the rounding of a
double.
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import MissingExtra, TrueupError
from trueup.mechanisms.records import float_above
from trueup.mechanisms.whole_numbers import Whole, step_under
from trueup.noise import DiscreteLaplace, Gaussian, Laplace
from trueup.noise.base import read_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.noise import Noise

_WIDEST = 2.0**52
"""OpenDP's integers end at 2⁶³, which noise of this scale passes with probability e^−2048."""


def generator(rng: Any) -> np.random.Generator | None:
    """Return one generator for a whole release, None for a secure one.

    A release draws several noises; a seed must not start them all at the same place.
    """
    return None if rng is None else read_generator(rng)


def below(bound: int, rng: np.random.Generator | None = None) -> int:
    """Return a whole number from 0 up to below a bound, all alike: securely, or simulated.

    Examples
    --------
    >>> below(1)
    0
    """
    return secrets.randbelow(bound) if rng is None else int(rng.integers(bound))


def publish(values: Sequence[float] | Whole, noise: Noise, rng: Any = None) -> NDArray[Any]:
    """Return the values with independent noise added to each.

    Parameters
    ----------
    values
        The true numbers, as whole multiples of a step; others are rounded to the finest grid for
        the noise, to integers under integer noise.
    noise
        Laplace, DiscreteLaplace or Gaussian.
    rng
        None samples securely through OpenDP; a NumPy generator or a seed only simulates.

    Examples
    --------
    >>> publish([3, 4], DiscreteLaplace(2), rng=1).dtype
    dtype('int64')
    """
    if rng is not None:
        return np.asarray(np.asarray(values) + noise.sample(len(values), rng))
    exact = values if isinstance(values, Whole) else _rounded(values, noise)
    moved = exact.plus(_draw(noise, exact.step, len(exact)))
    return np.array(moved.multiples if noise.lattice else list(moved))


def _rounded(values: Sequence[float], noise: Noise) -> Whole:
    """Return plain numbers on the grid of the noise; whole numbers stay what they are."""
    step = Fraction(1) if noise.lattice else min(Fraction(1), step_under(_scale(noise)))
    return Whole(tuple(round(Fraction(v) / step) for v in values), step)


def _scale(noise: Noise) -> Any:
    if isinstance(noise, (Laplace, DiscreteLaplace, Gaussian)):
        return noise.scale
    raise TrueupError(
        f"OpenDP has no sampler for {noise!r}", "use Laplace, Gaussian or integer noise"
    )


def _draw(noise: Noise, step: Fraction, size: int) -> list[int]:
    """Return noise as whole numbers of steps, from OpenDP's exact samplers."""
    scale = float_above(Fraction(_scale(noise)) / step)
    if scale > _WIDEST:
        raise TrueupError(
            f"the noise {noise!r} is too wide to be drawn in whole numbers of 64 bits",
            "a scale up to 2**52 times the sensitivity can be: raise epsilon",
        )
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtra(
            "a private release needs OpenDP's samplers, and opendp is not installed",
            "pip install 'trueup[private]'; for a simulation pass rng=numpy.random.default_rng()",
        ) from None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if isinstance(noise, Gaussian):
        sampler = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    else:
        sampler = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return [int(z) for z in sampler([0] * size)]
