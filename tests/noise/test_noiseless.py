"""A number that was published as it is: all mass at 0."""

import math

import numpy as np

from noise.conftest import mgf
from trueup.noise.noiseless import Noiseless


def test_the_law_is_a_point() -> None:
    known = Noiseless()
    x = np.array([-math.inf, -1.0, -1e-300, 0.0, 1e-300, 1.0, math.inf])
    assert known.pdf(x).tolist() == [0, 0, 0, math.inf, 0, 0, 0]
    assert known.cdf(x).tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert known.quantile([0.01, 0.5, 0.99]).tolist() == [0, 0, 0]
    assert known.sample((2, 3), rng=1).tolist() == [[0, 0, 0]] * 2
    assert mgf(known, 2.5) == 1
    assert [known.moment(k) for k in range(4)] == [1, 0, 0, 0]
