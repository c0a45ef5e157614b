"""What the page offers: noise families, the ways to state them and their fields; SQL dialects.

The server reads this, and imports no NumPy: what it shows of a family stands here, not with the
family. A test compares both.
"""

from __future__ import annotations

import dataclasses

from trueup.sql.dialects import DIALECTS as SQL


@dataclasses.dataclass(frozen=True)
class Field:
    """A parameter as the page shows it; its slider runs from low to high, evenly in its logarithm.

    Examples
    --------
    >>> Field("scale", "scale b", "2").default
    '2'
    """

    name: str
    label: str
    default: str
    low: float = 0.1
    high: float = 100.0


@dataclasses.dataclass(frozen=True)
class Family:
    """A family: its class in ``trueup``, and its fields by the way it is stated."""

    label: str
    constructor: str
    ways: dict[str, tuple[Field, ...]]
    whole: bool = False


_EPSILON = Field("epsilon", "epsilon ε", "0.5", 0.01, 10)
_SHIFT = Field("sensitivity", "sensitivity Δ", "1", 0.1, 1000)
_DELTA = Field("delta", "delta δ", "1e-6", 1e-12, 0.1)
_RHO = Field("rho", "rho ρ", "0.125", 0.001, 10)
_PURE = {"scale": (Field("scale", "scale b", "2"),), "epsilon": (_EPSILON, _SHIFT)}
_NORMAL = {
    "scale": (Field("scale", "scale σ", "2"),),
    "epsilon": (_EPSILON, _DELTA, _SHIFT),
    "rho": (_RHO, _SHIFT),
}

FAMILIES = {
    "laplace": Family("Laplace", "Laplace", _PURE),
    "discrete_laplace": Family("discrete Laplace", "DiscreteLaplace", _PURE, whole=True),
    "gaussian": Family("Gaussian", "Gaussian", _NORMAL),
    "discrete_gaussian": Family("discrete Gaussian", "DiscreteGaussian", _NORMAL, whole=True),
    "staircase": Family("staircase", "Staircase", {"epsilon": (_EPSILON, _SHIFT)}),
    "rounded_laplace": Family("rounded Laplace", "RoundedLaplace", _PURE, whole=True),
    "rounded_gaussian": Family("rounded Gaussian", "RoundedGaussian", _NORMAL, whole=True),
    "student_t": Family(
        "Student t",
        "StudentT",
        {
            "scale": (
                Field("df", "degrees of freedom ν", "8", 1, 100),
                Field("scale", "scale", "1"),
            )
        },
    ),
    "uniform": Family("uniform", "Uniform", {"scale": (Field("width", "width", "4"),)}),
    "noiseless": Family("none: published exactly", "Noiseless", {"scale": ()}),
}
"""By the names used on the command line: all families but those stated by lists of numbers."""

DIALECTS = tuple(SQL)
OUTPUTS = ("value", "variance", "stderr")
