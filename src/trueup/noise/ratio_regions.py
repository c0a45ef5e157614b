"""Regions of two independent noises that every half-plane of small probability leaves alone.

With h(u) the smallest t such that P(u·Z > t) ≤ β the number u·x, x = q + Z, exceeds u·q by more
than h(u) with probability β at most, in every direction u. A ratio r = s/n is the direction
(1, −r), in which u·q is 0 whatever n is: so r is believed unless u·x > h(u) or u·(−x) > h(−u)
(Fieller), and the ratios believed are those of the points of x − K as soon as K is convex with a
support function of at least h.

K is a polygon of :data:`EDGES` edges. Its support function is linear between the directions of two
edges; the least such function above h (on average over the edges) is a linear programme. h is
bounded on cells of directions, from above: for r in [r₀, r₁] and Y in [y₀, y₁] the product r·Y is
at most y₁·r₁ or y₁·r₀. Under two Laplace or two Gaussian noises h is convex, and its values at the
edges are enough.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
from scipy.optimize import elementwise

from trueup.noise.gaussian import Gaussian
from trueup.noise.laplace import Laplace
from trueup.noise.mass import Mass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from trueup.noise.base import Noise
    from trueup.noise.elementwise import Floats

    Tail = Callable[[Floats], Floats]
    Indices = NDArray[np.signedinteger[Any]]
    Beyond = Callable[[Floats, Indices], Floats]

EDGES = 48
"""A polygon around a circle with so many edges is 0.2 % larger."""

CELLS = 192
"""Cells of directions in an eighth of the circle: on one of them h grows by half a percent."""

BINS = 1024
"""Pieces of a continuous law, the finer the nearer to its middle."""

NEGLIGIBLE = 1e-9
"""What is cut off the ends of a law, as a share of β; it is counted as if it were beyond."""

CUSHION = 1e-6
"""By this share h is made larger: the linear programme is solved to 1e-7."""

_CLOSE = 1e-8  # relative to the bracket: CUSHION makes up for ten times as much
_PER_EIGHTH = EDGES // 8
_SIGNS = ((1, 1), (1, -1), (-1, 1), (-1, -1))


class Law(NamedTuple):
    """A law as it is summed: P(Z > t), its extent, and its pieces with their ends and masses."""

    tail: Tail
    unit: float
    low: Floats
    high: Floats
    mass: Floats
    lattice: bool
    symmetric: bool

    def mirrored(self) -> Law:
        """Return the law of −Z; on the integers P(−Z > t) = P(Z < −t) = 1 − P(Z > ⌈−t⌉ − 1)."""
        tail, whole = self.tail, self.lattice

        def below(t: Floats) -> Floats:
            return 1 - tail(np.ceil(-t) - 1 if whole else -t)

        return self._replace(tail=below, low=-self.high, high=-self.low)


class Region(NamedTuple):
    """A polygon: its corners in order, and edges u·z ≤ h."""

    corners: Floats
    directions: Floats
    heights: Floats


@lru_cache(maxsize=256)
def region(first: Noise, second: Noise, tail: float) -> Region:
    """Return K: half-planes beside it have at most the probability ``tail``.

    Examples
    --------
    >>> corners = region(Gaussian(1), Gaussian(2), 0.025).corners
    >>> corners.shape, (corners.max(axis=0) / [1, 2]).round(2)
    ((48, 2), array([1.96, 1.96]))
    """
    exact = _closed(first, second)
    if exact is not None:
        unit = np.array([reach(n, tail)[1] for n in (first, second)])
        return around(lambda u: exact(u / unit, tail), unit)
    return of_laws(law(first, tail), law(second, tail), tail)


def of_laws(first: Law, second: Law, tail: float) -> Region:
    """Return K for two laws."""
    directions, heights = _bounds(first, second, tail)
    unit = np.array([first.unit, second.unit])
    return _polygon(_least(directions, heights) * (1 + CUSHION), unit)


def around(support: Callable[[Floats], Floats], unit: Floats) -> Region:
    """Return the polygon around a convex region with this support function, in these units."""
    return _polygon(support(_edges()) * (1 + CUSHION), unit)


def _polygon(heights: Floats, unit: Floats) -> Region:
    u = _edges()
    v, other = np.roll(u, -1, axis=0), np.roll(heights, -1)
    turn = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    x = (heights * v[:, 1] - other * u[:, 1]) / turn
    y = (other * u[:, 0] - heights * v[:, 0]) / turn
    return Region(np.stack([x, y], axis=1) * unit, u / unit, heights)


def reach(noise: Noise, tail: float) -> tuple[float, float]:
    """Return ends that Z is beyond with probability ``tail`` at most, on each side.

    Examples
    --------
    >>> [round(end, 4) for end in reach(Laplace(1), 0.025)]
    [-2.9957, 2.9957]
    """
    known = with_quantiles(noise)
    if known.symmetric:  # 1 − tail is rounded where tail is tiny
        return float(known.quantile(tail)), -float(known.quantile(tail))
    return float(known.quantile(tail)), float(known.quantile(1 - tail))


def with_quantiles(noise: Noise) -> Noise:
    """Return a noise with quantiles: a sum of noises on the integers by its masses."""
    parts = getattr(noise, "parts", ())
    return _summed(noise) if parts and all(part.lattice for part in parts) else noise


@lru_cache(maxsize=64)
def _summed(noise: Noise) -> Noise:
    return Mass.of(noise)


# -- laws ------------------------------------------------------------------------------------------


def law(noise: Noise, tail: float) -> Law:
    """Return a noise as it is summed, but for a negligible share of the tail at its ends."""
    known = with_quantiles(noise)
    low, high = reach(known, tail * NEGLIGIBLE)
    unit = max(map(abs, reach(known, tail))) or 1.0
    if low == high or (known.lattice and high - low < BINS):
        edges = np.arange(math.floor(low) - 1.0, math.ceil(high) + 1)
        ends = edges[1:], edges[1:]
    else:
        fine = np.sinh(np.linspace(-1, 1, BINS + 1) * math.asinh(4 * (high - low) / unit))
        edges = low + (high - low) * (fine / fine[-1] + 1) / 2
        ends = edges[:-1], edges[1:]

    def beyond(t: Floats) -> Floats:
        return np.asarray(1 - known._cdf(t))

    slow = getattr(known, "parts", ())  # a sum of Laplace noises
    mass = np.diff(np.asarray(known._cdf(edges)))
    return Law(
        _tabulated(beyond, low, high) if slow else beyond,
        unit,
        *ends,
        mass,
        known.lattice,
        known.symmetric,
    )


def _tabulated(beyond: Tail, low: float, high: float) -> Tail:
    """Return a tail read from a table, at the next point below."""
    points = np.linspace(low, high, 8 * BINS)
    values = np.concatenate([[1.0], beyond(points)])
    return lambda t: np.asarray(values[np.searchsorted(points, t, side="right")])


def _closed(first: Noise, second: Noise) -> Callable[[Floats, float], Floats] | None:
    """Return h as a function of the direction where it has a closed form, and so is convex."""
    if isinstance(first, Gaussian) and isinstance(second, Gaussian):
        scales = np.array([float(first.scale), float(second.scale)])
        one = Gaussian(1)
        return lambda u, tail: -one.quantile(tail) * np.hypot(*(u * scales).T)
    if isinstance(first, Laplace) and isinstance(second, Laplace):
        scales = np.array([float(first.scale), float(second.scale)])
        return lambda u, tail: _two_laplace(np.abs(u * scales), tail)
    return None


def _two_laplace(scales: Floats, tail: float) -> Floats:
    """Return where P(a·Z₁ + b·Z₂ > t) falls to ``tail``, Z Laplace of scale 1; (a, b) are rows.

    It is ½(a²e^{−t/a} − b²e^{−t/b})/(a² − b²); with c = b/a ≤ 1 and t in units of a,
    ½e^{−t}·(1 + c²/(1 + c)·(1 − e^{−t(1/c − 1)})/(1 − c)), where the last quotient is t at c = 1.
    """
    large = scales.max(axis=1)
    c = scales.min(axis=1) / large

    def beyond(t: Floats, rows: Indices) -> Floats:
        own = c[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = -np.expm1(-t * ((1 - own) / own)) / (1 - own)
        rise = np.where(own == 1, t, rise)
        return np.asarray(np.exp(-t) / 2 * (1 + own * own / (1 + own) * rise))

    reached = np.full(c.shape, 4 - 4 * math.log(tail))  # far beyond: e^{−t}(1 + t) < tail
    return np.asarray(large * solved(beyond, tail, 0 * reached, reached))


# -- bounds on h -----------------------------------------------------------------------------------


def _bounds(first: Law, second: Law, tail: float) -> tuple[Floats, Floats]:
    """Return directions all around, in units of the laws, with upper bounds of h there."""
    r = np.linspace(0.0, 1.0, CELLS + 1)
    symmetric = first.symmetric and second.symmetric
    found: list[tuple[Floats, Floats]] = []
    for signs in _SIGNS[:1] if symmetric else _SIGNS:
        a, b = (x if s > 0 else x.mirrored() for x, s in zip((first, second), signs, strict=True))
        for main, other in ((a, b), (b, a)):
            heights = _on_cells(main, other, r, tail)
            for ends in (r[:-1], r[1:]):
                u = np.stack([np.ones_like(ends), ends], axis=1)
                found.append((u[:, :: 1 if main is a else -1] * signs, heights))
    if symmetric:
        found = [(u * s, h) for u, h in found for s in _SIGNS]
    return np.concatenate([u for u, _ in found]), np.concatenate([h for _, h in found])


def _on_cells(main: Law, other: Law, r: Floats, tail: float) -> Floats:
    """Return an upper bound of h on every cell [r₀, r₁]: of Y₁ + r·Y₂, in units of the laws."""
    divided = main.lattice and not other.lattice  # pieces of a lattice are points: no loss
    pieces, smooth = (main, other) if divided else (other, main)
    y, mass = pieces.high / pieces.unit, pieces.mass
    left_out = max(0.0, 1 - float(mass.sum()))

    def multiplied(t: Floats, rows: Indices) -> Floats:
        low, high = r[rows, None], r[rows + 1, None]
        most = np.where(y > 0, y * high, y * low)
        return np.asarray(smooth.tail((t[:, None] - most) * smooth.unit) @ mass + left_out)

    def quotient(t: Floats, rows: Indices) -> Floats:
        low, high = r[rows, None], r[rows + 1, None]
        rest = t[:, None] - y
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.where(rest > 0, rest / high, rest / low)
        least = np.where((rest == 0) | np.isnan(least), 0.0, least)
        return np.asarray(smooth.tail(least * smooth.unit) @ mass + left_out)

    ends = np.full(len(r) - 1, 64.0)  # units: a tail of that length is found by doubling
    return solved(quotient if divided else multiplied, tail, -ends / 16, ends / 16)


def solved(beyond: Beyond, tail: float, low: Floats, high: Floats) -> Floats:
    """Return the smallest t of every row at which a falling function is at most ``tail``.

    The function takes points and the rows they belong to; its logarithm is nearly a line in the
    tails, so few evaluations are needed. The end that is returned is above.

    Examples
    --------
    >>> solved(lambda t, _: np.exp(-t), 0.5, np.array([0.0]), np.array([1.0])).round(6)
    array([0.693147])
    """
    rows, step = np.arange(len(high)), high - low

    def excess(t: Floats, rows: Indices) -> Floats:
        return np.log(np.maximum(beyond(t, rows), np.finfo(float).tiny) / tail)

    while (short := excess(high, rows) > 0).any() | (over := excess(low, rows) <= 0).any():
        low, high = np.where(over, low - step, low), np.where(short, high + step, high)
        step = 2 * step
    found = elementwise.find_root(
        excess,
        (low, high),
        args=(rows,),
        tolerances={"xatol": float(step.max()) * _CLOSE, "xrtol": _CLOSE, "fatol": 0, "frtol": 0},
    )
    left, right = found.bracket
    ends = np.where(found.f_bracket[0] <= 0, left, right)
    return np.asarray(ends)


# -- the polygon -----------------------------------------------------------------------------------


def _edges() -> Floats:
    """Return the directions of the edges, all around; each is the end of a cell."""
    slopes = np.tan(np.arange(_PER_EIGHTH + 1) * math.pi / 4 / _PER_EIGHTH)
    r = np.rint(slopes * CELLS) / CELLS
    near = np.stack([np.ones_like(r), r], axis=1)
    turned = [np.concatenate([near, near[-2:0:-1, ::-1]])]
    for _ in range(3):
        turned.append(np.stack([-turned[-1][:, 1], turned[-1][:, 0]], axis=1))
    return np.concatenate(turned)


def _least(directions: Floats, bounds: Floats) -> Floats:
    """Return heights of the edges whose polygon has a support function above all bounds."""
    u = _edges()
    before, after = np.roll(np.arange(EDGES), 1), np.roll(np.arange(EDGES), -1)
    angle = np.arctan2(u[:, 1], u[:, 0]) % (2 * math.pi)
    own = np.arctan2(directions[:, 1], directions[:, 0]) % (2 * math.pi)
    left = np.searchsorted(angle, own + 1e-12) - 1
    rows = _weights(u, left, after[left], directions)
    bend = _weights(u, before, after, u)
    bend[np.arange(EDGES), np.arange(EDGES)] -= (
        1  # an edge is no higher than its neighbours make it
    )
    found = scipy.optimize.linprog(
        np.ones(EDGES),
        A_ub=-np.concatenate([rows, bend]),
        b_ub=-np.concatenate([bounds, np.zeros(EDGES)]),
        bounds=(None, None),
    )
    return np.asarray(found.x)


def _weights(u: Floats, left: Indices, right: Indices, v: Floats) -> Floats:
    """Return matrix rows a, b with v = a·u_left + b·u_right."""
    p, q = u[left], u[right]
    turn = p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]
    rows = np.zeros((len(v), len(u)))
    index = np.arange(len(v))
    rows[index, left] = (v[:, 0] * q[:, 1] - v[:, 1] * q[:, 0]) / turn
    rows[index, right] += (p[:, 0] * v[:, 1] - p[:, 1] * v[:, 0]) / turn
    return rows
