"""Noise families: what was added to a published number, as a value that states its formulas.

::

    base, series                    what every noise knows · M(t) in any arithmetic
    laplace, gaussian               with their laws on the integers, discrete and rounded
    staircase, student_t, uniform, noiseless
    mass, moments, scipy_noise      tables of masses · moments only · laws of scipy
    sum                             sums of noises

    operator, deconvolution         the inverse as data · of Laplace and discrete Laplace noise
    extension                       of degree k beyond a bound
    budget, theta                   scales from budgets, exact profiles · sums of e^{−k²/(2σ²)}
    record, elementwise             as JSON · numbers and arrays, quantiles of integers
    ratio_regions                   two noises for ratios
"""

from trueup.noise.base import Noise
from trueup.noise.gaussian import DiscreteGaussian, Gaussian, RoundedGaussian
from trueup.noise.laplace import DiscreteLaplace, Laplace, RoundedLaplace
from trueup.noise.mass import Mass
from trueup.noise.moments import Moments
from trueup.noise.noiseless import Noiseless
from trueup.noise.scipy_noise import ScipyNoise
from trueup.noise.staircase import Staircase
from trueup.noise.student_t import StudentT
from trueup.noise.sum import SumNoise
from trueup.noise.uniform import Uniform

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Mass",
    "Moments",
    "Noise",
    "Noiseless",
    "RoundedGaussian",
    "RoundedLaplace",
    "ScipyNoise",
    "Staircase",
    "StudentT",
    "SumNoise",
    "Uniform",
]
