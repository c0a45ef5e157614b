"""Cells on the line: a partition, halves, clusters, brackets around points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from trueup.enclosure.intervals import Floats, Mask

_WIDTH = 1e-13
_UNIFORM = 17
_WIDE = 2.0**40
_POWERS = 2.0 ** np.arange(-10, 997)


class Bracket(NamedTuple):
    """A stretch in which there is a zero, and a guess at it."""

    low: float
    high: float
    point: float


def partition(low: float, high: float) -> tuple[Floats, Floats]:
    """Return cells that cover [low, high]: powers of two outwards from 0, and equal parts.

    Examples
    --------
    >>> len(partition(0.0, 1.0)[0])
    22
    """
    if low >= high:
        edges = np.array([low] * (low == high))
        return edges, edges
    marks = np.concatenate([-_POWERS, [0.0], _POWERS])
    inside = marks[(marks > low) & (marks < high)]
    even = np.linspace(low, high, _UNIFORM) if high / 2 - low / 2 < _WIDE else [low, high]
    edges = np.unique(np.concatenate([even, inside]))
    return edges[:-1], edges[1:]


def tiny(low: Floats, high: Floats) -> Mask:
    """Tell cells that are not worth halving.

    Examples
    --------
    >>> tiny(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    array([False,  True])
    """
    return high - low <= _WIDTH * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))


def halves(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return both halves of every cell.

    Examples
    --------
    >>> halves(np.array([0.0]), np.array([1.0]))
    (array([0. , 0.5]), array([0.5, 1. ]))
    """
    middle = low / 2 + high / 2
    return np.concatenate([low, middle]), np.concatenate([middle, high])


def clusters(cells: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the runs of neighbouring cells.

    Examples
    --------
    >>> clusters([(2.0, 3.0), (0.0, 1.0), (1.0, 2.0), (5.0, 6.0)])
    [(0.0, 3.0), (5.0, 6.0)]
    """
    runs: list[tuple[float, float]] = []
    for low, high in sorted(cells):
        if runs and low <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(high, runs[-1][1]))
        else:
            runs.append((low, high))
    return runs


def merged(brackets: list[Bracket], value: Callable[[Floats], Floats]) -> list[float]:
    """Return one point for every run of overlapping brackets: where the value is smallest.

    Among equals the one in the middle counts: around a multiple zero the function looks flat.

    Examples
    --------
    >>> merged([Bracket(0.0, 0.5, 0.4), Bracket(0.2, 0.6, 0.3)], lambda x: x - 0.3)
    [0.3]
    """
    points = []
    for low, high in clusters((bracket.low, bracket.high) for bracket in brackets):
        guesses = [b.point for b in brackets if low <= b.point <= high]
        rounded = [float(f"{guess:.12g}") for guess in guesses]
        tried = np.array([*guesses, *rounded, low, high])
        tried = tried[(tried >= low) & (tried <= high)]
        order = np.lexsort([np.abs(tried - (low / 2 + high / 2)), np.abs(value(tried))])
        points.append(float(tried[order[0]]))
    return points
