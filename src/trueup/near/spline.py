"""Piecewise polynomials on even pieces, as values and as cases of sympy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import sympy

Floats = npt.NDArray[np.float64]


class Spline:
    """A polynomial on each of n pieces of one width, constant beyond the ends.

    Parameters
    ----------
    start, width
        Where the first piece begins, and how wide each is.
    coefficients
        One row a piece: c₀ + c₁t + c₂t² + …, where t runs from 0 to 1 over the piece. A table of
        values on the integers is the case of width 1 and one coefficient.

    Examples
    --------
    >>> table = Spline(3, 1, [[10.0], [20.0], [30.0]])
    >>> table(np.array([-5.0, 3.0, 4.0, 99.0])), table(5.0)
    (array([10., 10., 20., 30.]), 30.0)
    """

    def __init__(self, start: float, width: float, coefficients: npt.ArrayLike) -> None:
        self.start, self.width = float(start), float(width)
        self.coefficients: Floats = np.array(coefficients, dtype=float, ndmin=2)

    @property
    def edges(self) -> Floats:
        """The ends of the pieces."""
        return self.start + self.width * np.arange(len(self.coefficients) + 1.0)

    @property
    def is_table(self) -> bool:
        """Whether it is a table of values on the integers."""
        return len(self.coefficients[0]) == 1

    def __call__(self, x: Any) -> Any:
        """Return the value at x, a number or an array."""
        last = len(self.coefficients) - 1.0
        y = np.clip((np.asarray(x, float) - self.start) / self.width, 0.0, last + 1)
        piece = np.minimum(np.nan_to_num(y), last).astype(np.intp)
        t, total = y - piece, np.zeros(y.shape)
        for column in self.coefficients.T[::-1]:
            total = total * t + column[piece]
        return total if total.shape else float(total)

    def derivative(self, order: int) -> Spline:
        """Return a derivative; beyond the ends it is 0 only if it vanishes there.

        Examples
        --------
        >>> Spline(0, 2, [[0.0, 0.0, 4.0]]).derivative(1)(1.0)
        2.0
        """
        rows = self.coefficients
        for _ in range(order):
            rows = rows[:, 1:] * np.arange(1.0, rows.shape[1]) / self.width
        return Spline(self.start, self.width, rows) if order else self

    def cases(self, x: sympy.Expr, sides: str = "both") -> sympy.Expr:
        """Return the function of x as nested cases: a tree, as deep as log₂ of the pieces.

        ``sides`` says beyond which end x may lie: "below", "above" or "both".

        Examples
        --------
        >>> Spline(0, 1, [[1.0], [2.0]]).cases(sympy.Symbol("x", real=True))
        Piecewise((1.0, x < 1.0), (2.0, True))
        """
        edges, inside = self.edges.tolist(), x
        if not self.is_table:
            inside = sympy.Max(inside, edges[0]) if sides != "above" else inside
            inside = sympy.Min(inside, edges[-1]) if sides != "below" else inside
        leaves = [self._piece(i, inside - sympy.Float(edge)) for i, edge in enumerate(edges[:-1])]
        return _tree(x, leaves, edges[1:-1])

    def _piece(self, i: int, from_edge: sympy.Expr) -> sympy.Expr:
        total: sympy.Expr = sympy.S.Zero
        for power, coefficient in reversed([*enumerate(self.coefficients[i].tolist())]):
            total = total * from_edge + sympy.Float(coefficient / self.width**power)
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
