"""The estimator as a function of the published value: one cubic spline, f itself far out.

Knots are dense near bounds and kinks and grow outwards. Beyond a bound the spline is constant. Far
from the bounds, where even f(x) has a bias of a hundredth of what is allowed, g is f: the spline
takes over its value, slope and curvature there, so that g is C² on the whole line.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import scipy.sparse
import sympy
from scipy.interpolate import BSpline, PPoly

from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque
from trueup.formula.text import text
from trueup.inverse.jets import derivative
from trueup.inverse.ranges import Walk
from trueup.inverse.signs import KINKED
from trueup.kernels.blocks import evaluate
from trueup.near.spline import Spline

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from trueup.near.nodes import Law
    from trueup.near.question import Question

    Floats = NDArray[np.float64]

Side = Literal["inside", "below", "above"]
DEGREE = 3
MARGIN = 4.0
"""g is the spline within so many units of a bound or a kink at least, …"""

ACCURATE = 0.01
"""… and f farther out, where the bias of f(x) is below this part of what is allowed."""

PIECES, CALM, GROWTH = 3, 4.0, 0.2
"""Pieces of the spline a unit of noise, up to so many units from a bound; how they grow then."""

SMOOTH = 0.005
"""A piece is no wider than a spline of f allows, to this part of the bias allowed."""

REACH, _NEGLIGIBLE = 9.0, 1e-10
"""The spline ends so many units beyond a bound at most, or where the noise hardly reaches."""

TABLE = 15.0
"""On the integers, up to so many units every integer near a bound is a knot."""

ROWS = 3
"""True values looked at, for each piece."""

MOST = 400
"""Knots of one spline."""

_FINE = 80
"""Cells beyond a join in which |g‴| is bounded one by one."""

_FAR, _TINY = 1e100, 1e-250
"""Published values are read up to 1e100. Beyond 1e20 no bias is looked at relative to an |f| below
1e-250: doubles end soon after.
"""


class Tail:
    """f and its derivatives where g is f (or what takes its place): the far ends of the line."""

    def __init__(self, f: sympy.Expr, symbol: sympy.Symbol) -> None:
        self.symbol, self.jet = symbol, [f]
        for _ in range(4):
            found = derivative(self.jet[-1], symbol, 1)
            rational = found.is_rational_function() and not found.atoms(sympy.Float)
            self.jet.append(sympy.factor(found) if rational else found)

    def __call__(self, x: Floats, order: int = 0) -> Floats:
        """Return f, or a derivative, at points."""
        return evaluate(self.jet[order], {self.symbol: np.atleast_1d(np.asarray(x, float))})

    def bound(self, order: int, low: Floats, high: Floats) -> Floats:
        """Return a bound on |f|, or a derivative, over cells; infinite where it may not exist."""
        walk = Walk({self.symbol: (np.asarray(low, float), np.asarray(high, float))})
        least, greatest, sure = walk.range(self.jet[order])
        largest = np.maximum(np.abs(least), np.abs(greatest)) + np.zeros(np.shape(low))
        return np.where(sure, largest, np.inf)


def cells_beyond(base: float, unit: float, side: int) -> Floats:
    """Return edges from a point to where numbers end, a quarter of a unit away, then ever wider."""
    count = math.ceil(math.log(_FAR / unit) / math.log(1.1))
    steps = unit / 4 * (1.1 ** np.arange(count + 1.0) - 1) / 0.1
    edges = np.unique(base + side * np.append(steps[steps < _FAR], _FAR))
    return edges if side > 0 else edges[::-1]


class Mesh(NamedTuple):
    """The knots, and on either side the tail that takes over there; None where g is constant."""

    edges: Floats
    left: Tail | None
    right: Tail | None

    @property
    def side(self) -> Side:
        """Where the spline is: below or above a join; inside if there are two, or none."""
        if (self.left is None) == (self.right is None):
            return "inside"
        return "below" if self.left is None else "above"

    @property
    def joins(self) -> tuple[float, float]:
        """Between which numbers g is the spline."""
        low = self.edges[0] if self.left else -math.inf
        high = self.edges[-1] if self.right else math.inf
        return float(low), float(high)


def mesh(question: Question, law: Law) -> Mesh:
    """Return the knots for a question."""
    low, high = question.low, question.high
    beyond = reach(law)
    right, end = _settled(question, law, 1)
    left, start = _settled(question, law, -1) if math.isinf(low) else (None, low)
    if (right is None and math.isinf(high)) or (left is None and math.isinf(low)):
        side = "above" if right is None and math.isinf(high) else "below"
        raise TrueupError(
            f"the domain {question.domain} is unbounded, and the bias of {text(question.f)} under "
            f"{question.noise!r} does not settle there",
            f"give a domain that is bounded {side}",
        )
    if right is not None and end + 2 * beyond > high:
        right = None
    first = start if left else low - beyond
    last = end if right else high + beyond
    if question.noise.lattice:
        first, last = math.floor(first), math.ceil(last)
    made = Mesh(np.array([first, last]), left, right)
    edges = _steps(question, first, last, _widths(question, law, made, CALM))
    if len(edges) < 5:  # a cubic that is flat at its ends needs four pieces
        edges = list(np.linspace(first, max(last, first + 4.0), 5))
    digits = 1 - math.floor(math.log10(min(np.diff(edges))))  # few, for short formulas
    return made._replace(edges=np.round(edges, max(digits, 0)))


def true_values(question: Question, law: Law, mesh: Mesh) -> Floats:
    """Return the true values at which the bias is bounded: close together where noise reaches."""
    edges, beyond = mesh.edges, reach(law)
    low = question.low if mesh.left is None else max(question.low, edges[0] - beyond)
    high = question.high if mesh.right is None else min(question.high, edges[-1] + beyond)
    steps = _steps(question, low, high, _widths(question, law, mesh, CALM + beyond / law.unit))
    q = np.append(np.linspace(steps[:-1], steps[1:], ROWS, endpoint=False), question.kinks)
    if question.whole:
        low, high, q = math.ceil(low), math.floor(high), np.rint(q)
    return np.unique(np.concatenate([[low, high], q[(q > low) & (q < high)]]))


def reach(law: Law) -> float:
    """Return how far beyond a bound the spline goes."""
    ends = law.noise.quantile([_NEGLIGIBLE, 1 - _NEGLIGIBLE])
    return float(min(np.abs(ends).max(), REACH * law.unit))


def _settled(question: Question, law: Law, side: int) -> tuple[Tail | None, float]:
    """Return f far out on one side, and from where on f(x) is accurate enough to infinity."""
    ends = [question.low, *question.kinks] if side > 0 else [question.high, *question.kinks]
    finite = [e for e in ends if math.isfinite(e)] or [0.0]
    base = max(finite) if side > 0 else min(finite)
    away = base + side * MARGIN * law.unit
    f = question.between(*(away, side * math.inf)[::side])
    if f.has(Opaque, *KINKED) or not law.has_variance:
        return None, base
    tail, edges = Tail(f, question.symbol), cells_beyond(base, law.unit, side)
    low, high = (edges[:-1], edges[1:])[::side]
    mean, square = law.moments
    with np.errstate(all="ignore"):
        off = square / 2 * tail.bound(2, low, high)
        off += mean * tail.bound(1, low, high) if mean else 0.0
        size = question.least_size(low, high)
        good = off <= ACCURATE * question.max_bias * size
    bad = np.flatnonzero(~(good | out_of_doubles(question, size, edges[:-1])))
    if len(bad) and bad[-1] == len(good) - 1:
        return None, base
    first = edges[bad[-1] + 1] if len(bad) else base
    return tail, float(side * max(side * first, side * away))


def out_of_doubles(question: Question, size: Floats, x: Floats) -> NDArray[np.bool_]:
    """Return where |f| is too small, far out, for a relative error to mean anything."""
    far: NDArray[np.bool_] = (size < _TINY) & (np.abs(x) > _TINY ** (-1 / 12.5))
    return far & question.relative


def _widths(question: Question, law: Law, mesh: Mesh, calm: float) -> Callable[[float], float]:
    """Return how wide a piece may be, as a function of where it is.

    The pieces grow from so many units from bounds and kinks on.
    """
    ends = ((mesh.left, question.low), (mesh.right, question.high))
    anchors = np.array([*question.kinks, *(end for tail, end in ends if tail is None)])
    least = law.unit / PIECES
    if question.noise.lattice:
        least = 1.0 if law.unit < TABLE else math.floor(least)
    smooth = not question.f.has(Opaque, *KINKED)
    bend = Tail(question.f, question.symbol) if smooth else None

    def width(x: float) -> float:
        far = float(np.abs(anchors - x).min()) if len(anchors) else 0.0
        step = max(least, GROWTH * (far - calm * law.unit))
        step = step if len(anchors) else max(law.unit, least)
        if bend is not None and step > least:
            at = np.clip([x, x + step], question.low, question.high)
            curved = float(np.abs(bend(at, 4)).max())
            allowed = SMOOTH * question.max_bias * float(question.size(at).min())
            if curved > 0:
                step = min(step, max(least, (384 * allowed / curved) ** 0.25))
        return float(math.ceil(step)) if question.noise.lattice else step

    return width


def _steps(
    question: Question, low: float, high: float, width: Callable[[float], float]
) -> list[float]:
    """Return points from one end to the other."""
    edges = [low]
    while edges[-1] < high:
        if len(edges) > MOST:
            raise TrueupError(
                f"a spline for {text(question.f)} on {question.domain} under {question.noise!r} "
                f"has more than {MOST} knots",
                "narrow the domain, or allow more bias",
            )
        step = width(edges[-1])
        edges.append(edges[-1] + min(step, width(edges[-1] + step)))
    if len(edges) > 2:  # the rest is joined to the last piece, or halved with it
        edges[-1] = high
        middle = (edges[-3] + high) / 2
        edges[-2] = round(middle) if question.noise.lattice else middle
    return edges


# -- the unknowns of the programme -----------------------------------------------------------------


class Basis:
    """The spline as a linear function of its unknowns: B-splines, those at the ends tied.

    ``tie`` maps unknowns to coefficients, ``fixed`` holds those that a tail gives.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh, edges = mesh, mesh.edges
        self._knots = np.concatenate([[edges[0]] * DEGREE, edges, [edges[-1]] * DEGREE])
        count = len(edges) - 1 + DEGREE
        owner, self.fixed = np.arange(count), np.zeros(count)
        for tail, end, own in (
            (mesh.left, edges[0], slice(None, DEGREE)),
            (mesh.right, edges[-1], slice(-DEGREE, None)),
        ):
            if tail is None:
                owner[own] = owner[own][-1 if end == edges[0] else 0]  # slope and curvature are 0
            else:
                self.fixed[own] = self._joined(tail, float(end), np.arange(count)[own])
                owner[own] = -1
        free = np.flatnonzero(owner >= 0)
        owner[free] -= owner[free].min()
        shape = (count, int(owner.max()) + 1)
        self.tie = scipy.sparse.csr_array((np.ones(len(free)), (free, owner[free])), shape=shape)

    def _joined(self, tail: Tail, end: float, own: NDArray[np.int_]) -> Floats:
        """Return the three coefficients that give value, slope and curvature of the tail."""
        unit = np.eye(len(self.mesh.edges) - 1 + DEGREE)
        scale = float(self.mesh.edges[1] - self.mesh.edges[0])
        parts = [BSpline(self._knots, unit[j], DEGREE) for j in own]
        rows = [[float(p(end, nu=k)) * scale**k for p in parts] for k in range(DEGREE)]
        jet = [float(tail(np.array([end]), k)[0]) * scale**k for k in range(DEGREE)]
        return np.linalg.solve(np.array(rows), jet)

    def matrix(self, x: Floats) -> tuple[scipy.sparse.csr_array, Floats]:
        """Return B and b such that g(x) = B·u + b."""
        low, high = self.mesh.joins
        inside = np.flatnonzero((x >= low) & (x <= high))
        near = np.clip(x[inside], self.mesh.edges[0], self.mesh.edges[-1])
        some = scipy.sparse.coo_array(BSpline.design_matrix(near, self._knots, DEGREE))
        matrix = scipy.sparse.csr_array(
            (some.data, (inside[some.row], some.col)), shape=(len(x), len(self.fixed))
        )
        rest = np.asarray(matrix @ self.fixed)
        for tail, rows in ((self.mesh.left, x < low), (self.mesh.right, x > high)):
            if tail is not None and rows.any():
                rest[rows] = tail(x[rows])
        return scipy.sparse.csr_array(matrix @ self.tie), rest

    def start(self, base: Callable[[Floats], Floats]) -> Floats:
        """Return unknowns that follow a given function."""
        points = np.convolve(self._knots[1:-1], np.ones(DEGREE) / DEGREE, "valid")
        values: Floats = (self.tie.T @ base(points)) / np.asarray(self.tie.sum(axis=0)).ravel()
        return values

    def curve(self, unknowns: Floats) -> Curve:
        """Return the function with these unknowns."""
        coefficients = self.tie @ unknowns + self.fixed
        pieces = PPoly.from_spline((self._knots, coefficients, DEGREE))
        kept = np.diff(pieces.x) > 0
        rows = pieces.c[::-1, kept].T
        return Curve(self.mesh, Spline(self.mesh.edges, rows), float(np.abs(coefficients).max()))


@dataclasses.dataclass(frozen=True)
class Curve:
    """g(x): the spline between the joins, a tail beyond; ``largest`` bounds the spline."""

    mesh: Mesh
    spline: Spline
    largest: float

    def __call__(self, x: Floats) -> Floats:
        """Return the estimate at published values."""
        return self.derivative(x, 0)

    def derivative(self, x: Floats, order: int) -> Floats:
        """Return a derivative of the estimate, of order 2 at most."""
        x = np.asarray(x, float)
        low, high = self.mesh.joins
        out = np.asarray(self._derivatives[order](x), float)
        for tail, rows in ((self.mesh.left, x < low), (self.mesh.right, x > high)):
            if tail is not None and rows.any():
                out[rows] = tail(x[rows], order)
        return out

    @cached_property
    def _derivatives(self) -> list[Spline]:
        return [self.spline.derivative(k) for k in range(DEGREE)]

    @property
    def knots(self) -> Floats:
        """Where g is not smooth."""
        return self.mesh.edges

    def magnitude(self, low: Floats, high: Floats) -> Floats:
        """Return bounds on |g| over intervals of x."""
        out = np.full(np.shape(low), self.largest)
        first, last = self.mesh.joins
        for tail, start, stop in (
            (self.mesh.left, low, np.minimum(high, first)),
            (self.mesh.right, np.maximum(low, last), high),
        ):
            rows = start < stop
            if tail is not None and rows.any():
                out[rows] = np.maximum(out[rows], tail.bound(0, start[rows], stop[rows]))
        return out

    def thirds(self, unit: float) -> tuple[Floats, Floats]:
        """Return cells of the line and a bound on |g‴| in each."""
        edges, bounds = self.mesh.edges, 6 * np.abs(self.spline.coefficients[:, 3])
        for tail, end, side in ((self.mesh.left, edges[0], -1), (self.mesh.right, edges[-1], 1)):
            cells, own = np.array([end, side * _FAR]), np.zeros(1)
            if tail is not None:
                cells = np.delete(cells_beyond(float(end), unit, side), slice(_FINE, -1))
                own = tail.bound(3, *(cells[:-1], cells[1:])[::side])
            edges = np.concatenate([cells[:0:-1], edges] if side < 0 else [edges, cells[1:]])
            bounds = np.concatenate([own[::-1], bounds] if side < 0 else [bounds, own])
        return edges, bounds
