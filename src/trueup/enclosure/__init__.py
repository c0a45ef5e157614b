"""Rigorous bounds on formulas over boxes: their range, their sign, all their zeros.

Every operation is interval arithmetic on arrays, rounded outwards, so what is proven stays proven
in double precision.

::

    intervals   sums, products, powers and monotone functions of intervals
    turning     functions that turn: waves, cosh, sign, x^a·log x
    ranges      one walk over a formula: its range on many boxes
    signs       its sign, also where values leave the doubles
    search      branch and bound for zeros
    roots       all zeros in one variable
"""

from __future__ import annotations

from trueup.enclosure.ranges import Box, enclose
from trueup.enclosure.roots import Zeros, zeros
from trueup.enclosure.signs import sign

__all__ = ["Box", "Zeros", "enclose", "sign", "zeros"]
