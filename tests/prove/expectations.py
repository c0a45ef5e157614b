"""E h(q + Z) for a function that can only be called: adaptive quadrature and exact sums.

On the line panels begin and end at every mark (bounds, special points of the formula, steps of the
density), shrink towards them, and are halved where the Gauss and the Kronrod rule disagree. On the
integers it is a sum. An :class:`Answer` carries its own uncertainty, what may lie in the tails
included; :attr:`Answer.settled` is false where the integral was not resolved or does not exist, and
then nothing is concluded from it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from prove.laws import Law

Array = NDArray[np.float64]
Integrand = Callable[[Array], Array]
"""Takes published values (n,), returns rows (m, n): m integrands at once."""

ROUNDS = 44
"""A panel is halved at most so often: at a jump that is no mark it ends 1e-13 wide."""
PANELS = 6000
RESOLVED = 1e-6
"""An integral known less well than this, relative to E|h|, proves nothing."""
FINE = 1.0
"""How many times as many panels as usual: another rule, for a second opinion."""
GRADED = 5.0
FINEST = 1e-12

# Kronrod's 15 points and the 7 of Gauss among them (QUADPACK)
_K = np.array(
    [
        0.991455371120812639206854697526329,
        0.949107912342758524526189684047851,
        0.864864423359769072789712788640926,
        0.741531185599394439863864773280788,
        0.586087235467691130294144691693013,
        0.405845151377397166906606412076961,
        0.207784955007898467600689403773245,
        0.0,
    ]
)
_WK = np.array(
    [
        0.022935322010529224963732008058970,
        0.063092092629978553290700663189204,
        0.104790010322250183839876322541518,
        0.140653259715525918745189590510238,
        0.169004726639267902826583426598550,
        0.190350578064785409913256402421014,
        0.204432940075298892414161999234649,
        0.209482141084727828012999174891714,
    ]
)
_WG = np.array(
    [
        0.129484966168869693270611432679082,
        0.279705391489276667901467771423780,
        0.381830050505118944950369775488975,
        0.417959183673469387755102040816327,
    ]
)
NODES = np.concatenate([-_K[:-1], _K[::-1]])
KRONROD = np.concatenate([_WK[:-1], _WK[::-1]])
GAUSS = np.zeros(15)
GAUSS[1:14:2] = np.concatenate([_WG[:-1], _WG[::-1]])


@contextlib.contextmanager
def finer(times: float = 1.6) -> Iterator[None]:
    """Let integrals have more panels, at other places."""
    global FINE, POINTS
    before = FINE, POINTS
    FINE, POINTS = times, int(POINTS * times**3)
    try:
        yield
    finally:
        FINE, POINTS = before


@dataclasses.dataclass(frozen=True)
class Answer:
    """The mean of an integrand, E|h| and how far off the mean may be."""

    mean: float
    size: float
    error: float

    @property
    def settled(self) -> bool:
        """Whether the integral exists, as far as can be seen, and was resolved."""
        return math.isfinite(self.mean) and self.error <= RESOLVED * self.size


def expect(
    h: Integrand, law: Law, q: float, marks: Sequence[float] = (), growth: float = 0.0
) -> list[Answer]:
    """Return E h(q + Z) for every row of h; ``growth`` is the rate at which h may grow."""
    with np.errstate(all="ignore"):  # what overflows is not settled
        if law.lattice:
            return _sum(h, law, q, growth)
        return _integral(h, law, q, marks, growth)


# -- sums ------------------------------------------------------------------------------------------


def _sum(h: Integrand, law: Law, q: float, growth: float) -> list[Answer]:
    low, high = -math.ceil(law.reach(-1, growth)), math.ceil(law.reach(1, growth))
    k = np.arange(low, high + 1, dtype=float)
    mass = law.density(k)
    k, mass = k[mass > 0], mass[mass > 0]
    with np.errstate(all="ignore"):
        rows = np.atleast_2d(h(q + k)) * mass
    edge = max(1, len(k) // 16)
    answers = []
    for row in rows:
        size = float(np.abs(row).sum())
        ends = np.abs(np.concatenate([row[:edge], row[-edge:]])).sum()
        beyond = 0.0 if all(map(math.isfinite, law.support)) and law.unit < 2 else float(ends)
        total = math.fsum(row) if math.isfinite(size) else math.nan
        answers.append(Answer(total, size, beyond + 1e-14 * size))
    return answers


# -- integrals -------------------------------------------------------------------------------------


def _integral(
    h: Integrand, law: Law, q: float, marks: Sequence[float], growth: float
) -> list[Answer]:
    edges = _edges(law, q, marks, growth)
    done: list[Array] = []  # rows of (mean, size, error) of panels that are good enough
    left, right = edges[:-1], edges[1:]
    total: Array | None = None
    for turn in range(ROUNDS):
        mean, size, error = _panels(h, law, q, left, right)
        narrow = (right - left) <= 1e-14 * (np.abs(left) + np.abs(right))
        error = np.where(narrow, error + size, error)  # nodes are no longer where they should be
        whole = size.sum(axis=1) + (0 if total is None else total[1])
        hopeless = ~np.isfinite(whole)[:, None]  # it overflows, and no halving mends that
        good = (hopeless | (error <= 1e-13 * whole[:, None])).all(axis=0)
        good |= (right - left) <= 1e-15 * (np.abs(left) + np.abs(right))
        last = turn == ROUNDS - 1 or (~good).sum() > PANELS
        keep = np.ones_like(good) if last else good
        done.append(np.stack([part[:, keep].sum(axis=1) for part in (mean, size, error)]))
        total = np.sum(done, axis=0)
        left, right = left[~keep], right[~keep]
        if not len(left):
            break
        middle = (left + right) / 2
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    assert total is not None
    ends = _ends(h, law, q, edges)
    return [
        Answer(float(m), float(s), float(e) + float(beyond))
        for m, s, e, beyond in zip(*total, ends, strict=True)
    ]


def _panels(
    h: Integrand, law: Law, q: float, left: Array, right: Array
) -> tuple[Array, Array, Array]:
    middle, half = (left + right) / 2, (right - left) / 2
    x = middle[:, None] + half[:, None] * NODES
    weight = law.density((x - q).ravel()).reshape(x.shape) * half[:, None]
    rows = np.atleast_2d(h(x.ravel())).reshape(-1, *x.shape)
    with np.errstate(all="ignore"):  # an integrand that overflows is not settled
        rows = np.where(weight == 0, 0.0, rows * weight)
        mean, size = rows @ KRONROD, np.abs(rows) @ KRONROD
        return mean, size, np.abs(mean - rows @ GAUSS)


def _ends(h: Integrand, law: Law, q: float, edges: Array) -> Array:
    """Return how much may lie beyond the outermost panels: as much as the last unit within."""
    beyond: Array | float = 0.0
    for end, side in ((edges[0], -1), (edges[-1], 1)):
        if math.isfinite(law.support[side > 0]):
            continue
        width = abs(end - q) / 16
        near, far = sorted((end, end - side * width))
        _, size, _ = _panels(h, law, q, np.array([near]), np.array([far]))
        beyond = beyond + size.sum(axis=1) * (1 if law.rates[side > 0] else 16)
        if not law.rates[side > 0]:
            beyond = beyond + _without_end(h, law, q, end - q)
    return np.broadcast_to(beyond, np.atleast_2d(h(np.array([q]))).shape[:1])


def _without_end(h: Integrand, law: Law, q: float, away: float) -> Array:
    """Return ∞ where as much lies in a decade far beyond as in one farther in, 0 elsewhere."""
    ends = q + away * np.array([1e6, 1e7])
    size = _panels(h, law, q, *np.sort([ends, 1.1 * ends], axis=0))[1]
    return np.where(size[:, 1] > 0.9 * size[:, 0], math.inf, 0.0)


def _edges(law: Law, q: float, marks: Sequence[float], growth: float) -> Array:
    """Return the ends of the first panels."""
    low, high = (q + s * law.reach(s, growth) for s in (-1, 1))
    if math.isfinite(law.support[0]):
        low = q + law.support[0]
    if math.isfinite(law.support[1]):
        high = q + law.support[1]
    if law.rates[0] == 0:  # powers: as far as squares of powers stay small
        low, high = q - 1e9 * law.unit, q + 1e9 * law.unit
    cuts = [q + c for c in law.cuts if low < q + c < high]
    inner = {q, *(m for m in marks if low < m < high)}
    if len(cuts) <= 8:
        inner |= set(cuts)
    stops = np.array(sorted({low, high} | {m for m in inner if low < m < high}))
    ladders = [_between(a, b, law) for a, b in itertools.pairwise(stops)]
    return np.unique(np.concatenate([*ladders, cuts]))


def _between(a: float, b: float, law: Law) -> Array:
    """Return edges from a to b that are fine near both."""
    half = (b - a) / 2
    steps = _ladder(half, law)
    return np.concatenate([a + steps, b - steps])


def _ladder(length: float, law: Law) -> Array:
    widest = min(length, 2 * law.unit / FINE if law.rates[0] else length)
    first = min(widest, FINEST * max(1.0, law.unit) * 10)
    count = max(1, math.ceil(FINE * math.log(widest / first, GRADED))) if widest > first else 1
    graded = np.geomspace(first, widest, count + 1) if widest > first else np.array([widest])
    rest = length - widest
    equal = widest + np.linspace(0, rest, max(1, math.ceil(rest / widest)) + 1) if rest > 0 else []
    steps = np.concatenate([[0.0], graded, equal])
    return steps[steps <= length]


CELLS = 4000
"""Unit cells on each side at most."""


def expect_on_cells(h: Integrand, law: Law, q: float) -> list[Answer] | None:
    """Return E h(q + Z) for h smooth between integers, None if there are too many of them."""
    left, right = (min(law.reach(s), 60 * law.unit) for s in (-1, 1))
    if left + right > CELLS or law.rates[0] == 0:
        return None
    whole = np.arange(math.floor(q - left), math.ceil(q + right) + 1)
    cuts = [q + c for c in law.cuts if whole[0] < q + c < whole[-1]]
    parts = math.ceil(4 * FINE)
    fine = np.concatenate([whole + part / parts for part in range(parts)])
    edges = np.unique(np.concatenate([fine[fine <= whole[-1]], cuts]))
    mean, size, error = _panels(h, law, q, edges[:-1], edges[1:])
    ends = _ends(h, law, q, edges)
    return [
        Answer(float(m.sum()), float(s.sum()), float(e.sum() + beyond))
        for m, s, e, beyond in zip(mean, size, error, ends, strict=True)
    ]


# -- several statistics ----------------------------------------------------------------------------

_ORDER = 8
_GL = np.polynomial.legendre.leggauss(_ORDER)
POINTS = 1_500_000
"""The largest tensor grid: a second of work."""


def expect_jointly(
    h: Callable[..., Array],
    laws: Mapping[str, Law],
    q: Mapping[str, float],
    marks: Mapping[str, Sequence[float]],
) -> list[Answer] | None:
    """Return E h(q + Z) over independent noises by a tensor rule; None if that is too much work."""
    if any(law.rates[0] == 0 for law in laws.values()):
        return None  # tails like powers would need a grid of their own
    fine = {name: _rule(law, q[name], marks[name], 1.0) for name, law in laws.items()}
    if math.prod(len(x) for x, _ in fine.values()) > POINTS:
        return None
    answer = _tensor(h, fine)
    if all(law.lattice for law in laws.values()):
        return [Answer(m, s, 1e-13 * s + edge) for m, s, edge in answer]
    other = {name: _rule(law, q[name], marks[name], 1.7) for name, law in laws.items()}
    rough = _tensor(h, other)
    return [
        Answer(m, s, abs(m - n) + 1e-13 * s + edge)
        for (m, s, edge), (n, _, _) in zip(answer, rough, strict=True)
    ]


def _rule(law: Law, q: float, marks: Sequence[float], coarse: float) -> tuple[Array, Array]:
    """Return nodes and weights along one statistic."""
    if law.lattice:
        k = np.arange(-math.ceil(law.reach(-1)), math.ceil(law.reach(1)) + 1, dtype=float)
        mass = law.density(k)
        keep = mass > 1e-17
        return q + k[keep], mass[keep]
    ends = [q + s * min(law.reach(s), 60 * law.unit) for s in (-1, 1)]
    stops = sorted(
        {*ends, q, *(m for m in (*marks, *(q + c for c in law.cuts)) if ends[0] < m < ends[1])}
    )
    edges = np.unique(
        np.concatenate([_coarse(a, b, law, coarse) for a, b in itertools.pairwise(stops)])
    )
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    x = (middle[:, None] + half[:, None] * _GL[0]).ravel()
    return x, (half[:, None] * _GL[1]).ravel() * law.density(x - q)


def _coarse(a: float, b: float, law: Law, coarse: float) -> Array:
    widths = law.unit * np.array([0.0, 0.1, 0.5, 1.5, *np.arange(4.0, 60.0 * FINE, 3.0)])
    half, widths = (b - a) / 2, widths * coarse / FINE
    steps = np.append(widths[widths < half], half)
    return np.concatenate([a + steps, b - steps])


def _tensor(
    h: Callable[..., Array], rules: Mapping[str, tuple[Array, Array]]
) -> list[tuple[float, float, float]]:
    """Return the mean, E|h|, and the part of E|h| at the edge: more than lies beyond it."""
    names = list(rules)
    mesh = np.meshgrid(*(rules[n][0] for n in names), indexing="ij")
    weight, edge = np.ones(()), np.zeros((), bool)
    for i, name in enumerate(names):
        shape = [1] * len(names)
        shape[i] = -1
        weight = weight * rules[name][1].reshape(shape)
        edge = edge | _at_edge(rules[name][0]).reshape(shape)
    rows = np.atleast_2d(h(**{n: m.ravel() for n, m in zip(names, mesh, strict=True)}))
    flat = np.broadcast_to(weight, mesh[0].shape).ravel()
    with np.errstate(all="ignore"):
        outer = np.where(np.broadcast_to(edge, mesh[0].shape).ravel(), flat, 0.0)
        return [
            (float(row @ flat), float(np.abs(row) @ flat), float(np.abs(row) @ outer))
            for row in rows
        ]


def _at_edge(nodes: Array) -> NDArray[np.bool_]:
    """Return the nodes in the outermost sixteenth of the range on each side."""
    low, high = nodes[0], nodes[-1]
    width = (high - low) / 16
    return (nodes < low + width) | (nodes > high - width)
