"""Rigorous bounds on formulas over boxes: their range, their sign, all their zeros.

Every operation is interval arithmetic on arrays, rounded outwards, so what is proven stays proven
in double precision.
"""

from __future__ import annotations

from trueup.enclosure.ranges import Box, enclose
from trueup.enclosure.roots import Zeros, zeros
from trueup.enclosure.signs import sign

__all__ = ["Box", "Zeros", "enclose", "sign", "zeros"]
