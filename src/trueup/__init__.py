"""Unbiased numbers from differentially private releases, and how sure they are."""

import importlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from trueup._version import __version__

if TYPE_CHECKING:
    from trueup import mechanisms
    from trueup.domain import Integers, Interval
    from trueup.errors import (
        FormulaError,
        InfiniteVariance,
        MissingExtra,
        NoUnbiasedEstimator,
        TrueupError,
    )
    from trueup.estimator import Estimator, unbiased
    from trueup.noise import (
        DiscreteGaussian,
        DiscreteLaplace,
        Gaussian,
        Laplace,
        Moments,
        Noise,
        Noiseless,
        ScipyNoise,
        Staircase,
        StudentT,
        SumNoise,
        Uniform,
    )
    from trueup.plugin import PluginBias, plugin_bias
    from trueup.values import Noisy, noisy, where

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Estimator",
    "FormulaError",
    "Fraction",
    "Gaussian",
    "InfiniteVariance",
    "Integers",
    "Interval",
    "Laplace",
    "MissingExtra",
    "Moments",
    "NoUnbiasedEstimator",
    "Noise",
    "Noiseless",
    "Noisy",
    "PluginBias",
    "ScipyNoise",
    "Staircase",
    "StudentT",
    "SumNoise",
    "TrueupError",
    "Uniform",
    "__version__",
    "mechanisms",
    "noisy",
    "plugin_bias",
    "unbiased",
    "where",
]

# Each name is loaded when it is first used: the command line answers at once.
_HOMES = {
    "trueup.domain": ("Integers", "Interval"),
    "trueup.errors": (
        "FormulaError",
        "InfiniteVariance",
        "MissingExtra",
        "NoUnbiasedEstimator",
        "TrueupError",
    ),
    "trueup.estimator": ("Estimator", "unbiased"),
    "trueup.noise": (
        "DiscreteGaussian",
        "DiscreteLaplace",
        "Gaussian",
        "Laplace",
        "Moments",
        "Noise",
        "Noiseless",
        "ScipyNoise",
        "Staircase",
        "StudentT",
        "SumNoise",
        "Uniform",
    ),
    "trueup.values": ("Noisy", "noisy", "where"),
    "trueup.plugin": ("PluginBias", "plugin_bias"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name == "mechanisms":
        return importlib.import_module("trueup.mechanisms")
    if name not in _HOME:
        raise AttributeError(f"module 'trueup' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
