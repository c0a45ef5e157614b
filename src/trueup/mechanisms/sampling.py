"""Publish numbers with noise: through OpenDP's samplers, or, for simulation, through NumPy.

OpenDP adds its noise itself, in exact arithmetic: integers get integer noise, floats are rounded
to the finest grid of doubles, so what is published has the law that the estimators assume.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.errors import MissingExtra, TrueupError
from trueup.noise import DiscreteLaplace, Gaussian, Laplace
from trueup.noise.base import read_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.noise import Noise


def generator(rng: Any) -> np.random.Generator | None:
    """Return one generator for a whole release, None for a secure one.

    A release draws several noises; a seed must not start them all at the same place.
    """
    return None if rng is None else read_generator(rng)


def publish(values: Sequence[float], noise: Noise, rng: Any = None) -> NDArray[Any]:
    """Return the values with independent noise added to each.

    Parameters
    ----------
    values
        The true numbers; whole ones under integer noise.
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
        return np.asarray(values + noise.sample(len(values), rng))
    return np.asarray(_measurement(noise)([_plain(v, noise) for v in values]))


def _plain(value: float, noise: Noise) -> float | int:
    return int(value) if noise.lattice else float(value)


def _measurement(noise: Noise) -> Any:
    """Return OpenDP's measurement that adds the noise to a vector."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtra(
            "a private release needs OpenDP's samplers, and opendp is not installed",
            "pip install 'trueup[private]'; for a simulation pass rng=numpy.random.default_rng()",
        ) from None
    dp.enable_features("contrib")
    kind: type = int if noise.lattice else float
    domain = dp.vector_domain(dp.atom_domain(T=kind, **({} if noise.lattice else {"nan": False})))
    if isinstance(noise, (Laplace, DiscreteLaplace)):
        return dp.m.make_laplace(domain, dp.l1_distance(T=kind), scale=float(noise.scale))
    if isinstance(noise, Gaussian):
        return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(noise.scale))
    raise TrueupError(
        f"OpenDP has no sampler for {noise!r}", "use Laplace, Gaussian or integer noise"
    )
