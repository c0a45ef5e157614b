"""The inverse of a noise as data: which derivatives or shifts, with which weights, where.

A family on which every smooth function (Laplace) or every function at all (discrete Laplace) can
be made unbiased publishes an :class:`Operator`. It says, for x below, inside and above the known
bounds, how the estimator is a weighted sum of derivatives and differences of f at one point.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import sympy

X = sympy.Dummy("x", real=True)
"""Stands for the published value inside a weight."""

Side = Literal["below", "inside", "above"]

Key = tuple[int, int]
"""(n, 0) is the derivative Dⁿf, (0, s) the difference f ↦ f(· + s) − f; (0, 0) is f."""

Taps = dict[Key, sympy.Expr]
"""A weighted sum of such functionals."""

IDENTITY: Key = (0, 0)


@dataclasses.dataclass(frozen=True)
class Branch:
    """What the operator does where x ≤ low (``below``), between, or where x ≥ high (``above``).

    It looks at f at a bound, or at x itself (None), with weights that may depend on ``X``.
    """

    side: Side
    at: sympy.Expr | None
    taps: Taps


@dataclasses.dataclass(frozen=True)
class Operator:
    """The inverse of one noise on [low, high]: its branches, inside first, and the theorem why.

    ``edges`` says where the outer branches begin, if not at the bounds. An operator that reads f at
    integers only has ``jumps``, the fraction of an integer at which the estimator may jump.
    """

    branches: tuple[Branch, ...]
    theorem: str
    low: sympy.Expr = -sympy.oo
    high: sympy.Expr = sympy.oo
    edges: tuple[sympy.Expr, sympy.Expr] | None = None
    jumps: float | None = None

    @property
    def whole(self) -> bool:
        """Whether it reads f at integers only, though the published value is a real number."""
        return self.jumps is not None

    @property
    def starts(self) -> tuple[sympy.Expr, sympy.Expr]:
        """Where the branches below and above begin: x ≤ the first, x ≥ the second."""
        return self.edges or (self.low, self.high)

    @property
    def order(self) -> int:
        """The highest derivative of f that the operator looks at."""
        return max((n for branch in self.branches for n, _ in branch.taps), default=0)
