"""Noise families: what was added to a published number, as a value that states its formulas."""

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
