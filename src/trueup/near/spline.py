"""Piecewise polynomials, as sympy and the kernels see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import sympy

Floats = npt.NDArray[np.float64]


class Spline:
    """A polynomial on each of n pieces; beyond the ends it keeps the value that it has there.

    Parameters
    ----------
    edges
        The n + 1 ends of the pieces, in order.
    coefficients
        One row a piece: c₀ + c₁t + c₂t² + …, where t is the distance from its left end.

    Examples
    --------
    >>> steps = Spline([0, 1, 3], [[10.0, 0.0], [10.0, 5.0]])
    >>> steps(np.array([-5.0, 2.0, 99.0])), steps(1.0)
    (array([10., 15., 20.]), 10.0)
    """

    def __init__(self, edges: npt.ArrayLike, coefficients: npt.ArrayLike) -> None:
        self.edges: Floats = np.asarray(edges, float)
        self.coefficients: Floats = np.array(coefficients, dtype=float, ndmin=2)

    def __call__(self, x: Any) -> Any:
        """Return the value at x, a number or an array."""
        y = np.clip(np.asarray(x, float), self.edges[0], self.edges[-1])
        piece = np.searchsorted(self.edges[1:-1], y, "right")
        t, total = y - self.edges[piece], np.zeros(y.shape)
        for column in self.coefficients.T[::-1]:
            total = total * t + column[piece]
        return total if total.shape else float(total)

    def derivative(self, order: int) -> Spline:
        """Return a derivative; beyond the ends it is 0 only if it vanishes there.

        Examples
        --------
        >>> Spline([0, 2], [[0.0, 0.0, 1.0]]).derivative(1)(1.0)
        2.0
        """
        rows = self.coefficients
        for _ in range(order):
            rows = rows[:, 1:] * np.arange(1.0, rows.shape[1])
        return Spline(self.edges, rows) if order else self

    def cases(self, x: sympy.Expr, *, whole: bool = False) -> sympy.Expr:
        """Return the function of x as nested cases: a tree, as deep as log₂ of the pieces.

        If x is a ``whole`` number, pieces between neighbouring integers are constants.

        Examples
        --------
        >>> Spline([0, 1], [[1.0, 2.0]]).cases(sympy.Symbol("x", real=True), whole=True)
        Piecewise((1.0, x < 1.0), (3.0, True))
        """
        edges = self.edges.tolist()
        first, last = (sympy.Float(self(end)) for end in (edges[0], edges[-1]))
        leaves = [first, *(self._piece(i, x, whole) for i in range(len(edges) - 1)), last]
        flat = whole and edges[1] - edges[0] == 1  # the first piece begins with what is below
        return _tree(x, leaves[1:], edges[1:]) if flat else _tree(x, leaves, edges)

    def _piece(self, i: int, x: sympy.Expr, whole: bool) -> sympy.Expr:
        low, high = self.edges[i : i + 2].tolist()
        coefficients = self.coefficients[i].tolist()
        if whole and low.is_integer() and high - low == 1:
            return sympy.Float(coefficients[0])
        total: sympy.Expr = sympy.S.Zero
        for coefficient in reversed(coefficients):
            total = total * (x - sympy.Float(low)) + sympy.Float(coefficient)
        return total


def _tree(x: sympy.Expr, leaves: list[sympy.Expr], edges: list[float]) -> sympy.Expr:
    """Return the cases: leaf i + 1 begins at edge i."""
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    left = _tree(x, leaves[:half], edges[: half - 1])
    right = _tree(x, leaves[half:], edges[half:])
    test = x < sympy.Float(edges[half - 1])
    return sympy.Piecewise((left, test), (right, True), evaluate=False)
