"""Unbiased numbers from differentially private releases, and how sure they are."""

import importlib
from fractions import Fraction
from typing import Any

from trueup._version import __version__
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
from trueup.noisy import Noisy, noisy, where
from trueup.plugin import PluginBias, plugin_bias

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


def __getattr__(name: str) -> Any:
    """Load the mechanisms when they are first asked for."""
    if name == "mechanisms":
        return importlib.import_module("trueup.mechanisms")
    raise AttributeError(f"module 'trueup' has no attribute {name!r}")
