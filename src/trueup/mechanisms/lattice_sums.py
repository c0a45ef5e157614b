"""Sums over very many whole numbers of functions that are smooth between some of them.

Under noise of a large scale b an expectation is a sum over some 80·b counts, and yet its terms
change little from one to the next. So the numbers are cut into blocks, each no longer than 2b and
than half the distance from 0, where the labels have their poles; a long block is summed from 16 of
its numbers, with weights that are right for every polynomial up to the 15th degree. What is left
out is below the last digits of a double: both a decay by e⁻⁴ and a pole at such a distance are
polynomials of that degree up to 10⁻¹⁴.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Nodes = tuple[NDArray[np.int64], NDArray[np.float64]]

_FEW = 2_000  # numbers that are simply all added
_NODES = 16  # read of a block
_SHORT = 64  # a block that is not longer is added: its 16 numbers could not be chosen freely
_BESIDE = 2  # numbers on each side of a break that are added one by one


def nodes(first: int, last: int, breaks: Iterable[int], scale: float, size: int = 0) -> Nodes:
    """Return (k, w) with Σ f(k) over first ≤ k ≤ last equal to Σ w·f(k) over those returned.

    Parameters
    ----------
    first, last
        The numbers to sum over.
    breaks
        Between which f is smooth; they are no more than a change of branch or two apart from it.
    scale
        Of the exponentials in f: e^{±2k/scale} at most.
    size
        f has poles near k = −size.

    Examples
    --------
    >>> k, w = nodes(-40_000, 40_000, [0], scale=1000)
    >>> bool(len(k) < 3000), round(float(w @ np.exp(-np.abs(k) / 1000)), 6)
    (True, 2000.000167)
    """
    if last - first < _FEW:
        k = np.arange(first, last + 1)
        return k, np.ones(len(k))
    alone = {b + i for b in breaks for i in range(-_BESIDE, _BESIDE + 1)}
    cuts = sorted({first, last + 1} | {c for a in alone for c in (a, a + 1) if first < c <= last})
    found = []
    for start, end in pairwise(cuts):
        found += _blocks(start, end, 2 * scale, size)
    return np.concatenate([k for k, _ in found]), np.concatenate([w for _, w in found])


def _blocks(start: int, end: int, longest: float, size: int) -> list[Nodes]:
    """Return the nodes of start ≤ k < end, on one side of the pole or on both."""
    if start < -size < end:
        return _blocks(start, -size, longest, size) + _blocks(-size, end, longest, size)
    found = []
    while start < end:
        if start + size >= 0:
            length = _length(end - start, longest, start + size)
            found.append(_block(start, length))
            start += length
        else:
            length = _length(end - start, longest, -(end - 1 + size))
            end -= length
            found.append(_block(end, length))
    return found


def _length(left: int, longest: float, distance: int) -> int:
    """Return the length of the next block: powers of two, so that there are few of them."""
    most = min(float(left), max(min(longest, distance / 2), float(_SHORT)))
    return 1 << (int(most).bit_length() - 1) if most > _SHORT else int(most)


def _block(start: int, length: int) -> Nodes:
    if length <= _SHORT:
        return np.arange(start, start + length), np.ones(length)
    places, weights = _rule(length)
    return start + places, weights


@lru_cache(maxsize=64)
def _rule(length: int) -> Nodes:
    """Return 16 of the numbers 0 … length − 1 and weights that sum polynomials exactly.

    Gram's polynomials are orthogonal over these numbers, so that all but the first add up to 0.
    """
    ends = np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))  # as Chebyshev's, dense at the ends
    places = np.rint((length - 1) * (1 - ends) / 2).astype(np.int64)
    x = 2 * places / (length - 1) - 1.0
    rows, before = [np.ones(_NODES)], np.zeros(_NODES)
    for j in range(_NODES - 1):
        here = rows[-1]
        rise = (2 * j + 1) * (length - 1) / (j + 1) / (length + j + 1)
        fall = j * (length - j) / (j + 1) / (length + j + 1)
        rows.append(rise * x * here - fall * before)
        before = here
    total = np.zeros(_NODES)
    total[0] = length
    return places, np.asarray(np.linalg.solve(np.array(rows), total), np.float64)
