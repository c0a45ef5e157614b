"""Noise families: what was added to a published number, as a value that states its formulas.

::

    base                            what every noise knows, and what a family states
    laplace, discrete_laplace, gaussian, discrete_gaussian, rounded, staircase, student_t, uniform
    mass, moments, scipy_noise      tables of masses · moments only · laws of scipy
    noiseless, sum                  numbers published as they are · sums of noises

    operator, deconvolution         the inverse as data · of Laplace and discrete Laplace noise
    extension                       of degree k beyond a bound
    rescaled                        a scale that differs from row to row
    scale_families, budget, privacy   scales from budgets · exact profiles of Gaussian noises
    record                          as JSON

    ratio_regions, many               two noises for ratios · sums over many cells
    cumulant_function, cumulants    log M and its slopes · of laws on the integers
    closed_forms, theta, laplace_sums   sums and integrals that have a formula
    integration, standard, tails    those that have none · scipy's laws · how fast tails fall
    lattice, elementwise, fields    quantiles of integers · arrays · symbols or digits
"""

from trueup.noise.base import Noise
from trueup.noise.discrete_gaussian import DiscreteGaussian
from trueup.noise.discrete_laplace import DiscreteLaplace
from trueup.noise.gaussian import Gaussian
from trueup.noise.laplace import Laplace
from trueup.noise.mass import Mass
from trueup.noise.moments import Moments
from trueup.noise.noiseless import Noiseless
from trueup.noise.rounded import RoundedGaussian, RoundedLaplace
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
