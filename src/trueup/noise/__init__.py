"""Noise families: what was added to a published number, as a value that states its formulas.

::

    base, series                    what every noise knows · M(t) in any arithmetic
    laplace, gaussian               with their laws on the integers, discrete and rounded
    staircase, student_t, uniform, noiseless
    mass, moments, scipy_noise      tables of masses · moments only · laws of scipy
    sum                             sums of noises

    operator, deconvolution         the inverse as data · of Laplace and discrete Laplace noise
    extension                       of degree k beyond a bound
    budget                          scales from privacy budgets
    reading                         as text, which calling this package reads: noise("laplace(2)")
    record, elementwise             as JSON · numbers and arrays, quantiles of integers
    ratio_regions                   two noises for ratios
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from trueup.noise.base import Noise as Noise
from trueup.noise.gaussian import DiscreteGaussian as DiscreteGaussian
from trueup.noise.gaussian import Gaussian as Gaussian
from trueup.noise.gaussian import RoundedGaussian as RoundedGaussian
from trueup.noise.laplace import DiscreteLaplace as DiscreteLaplace
from trueup.noise.laplace import Laplace as Laplace
from trueup.noise.laplace import RoundedLaplace as RoundedLaplace
from trueup.noise.mass import Mass as Mass
from trueup.noise.moments import Moments as Moments
from trueup.noise.noiseless import Noiseless as Noiseless
from trueup.noise.scipy_noise import ScipyNoise as ScipyNoise
from trueup.noise.staircase import Staircase as Staircase
from trueup.noise.student_t import StudentT as StudentT
from trueup.noise.sum import SumNoise as SumNoise
from trueup.noise.uniform import Uniform as Uniform


def families() -> dict[str, type[Noise]]:
    """Return the families imported above by name: JSON, the command line and ``trueup`` read this.

    Examples
    --------
    >>> families()["Laplace"](2)
    Laplace(2)
    """
    classes = {n: c for n, c in globals().items() if isinstance(c, type) and issubclass(c, Noise)}
    return {name: classes[name] for name in sorted(classes) if name != "Noise"}


class _Package(ModuleType):
    """The families, and what reads one from text."""

    def __call__(self, text: str) -> Noise:
        """Return the noise that a text describes (:func:`trueup.noise.reading.read_noise`)."""
        from trueup.noise.reading import read_noise  # which knows all families

        return read_noise(text)


sys.modules[__name__].__class__ = _Package

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = sorted(["Noise", *families()])
