"""Noise laws read from text, typed in by hand: densities and masses, without the library.

``law("Laplace(2) + Gaussian(1)")`` walks the text with a whitelist. A :class:`Law` has a density on
the line or masses on the integers, where it is not smooth, and how fast its tails fall.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, gammaln, ndtr

Array = NDArray[np.float64]

FAR = 745.0
"""e^{−745} is the smallest double: no tail is seen further out."""


@dataclasses.dataclass(frozen=True)
class Law:
    """The law of one noise."""

    density: Callable[[Array], Array]
    """Density, or mass at integers."""
    unit: float
    """The size of its middle."""
    rates: tuple[float, float]
    """Left and right: tails fall like e^{−rate·|z|}; inf for faster, 0 for slower."""
    lattice: bool = False
    cuts: tuple[float, ...] = (0.0,)
    """Where the density is not smooth."""
    support: tuple[float, float] = (-math.inf, math.inf)
    laplaces: tuple[float, ...] = ()
    """The scales b, if the noise is a sum of Laplace noises (or discrete ones)."""
    closed: bool = False
    """Whether the library owes the closed form: the family is named, not read from scipy."""
    jumps: bool = False
    """Whether the density jumps, so that E g(q + Z) is continuous in q and need not be C¹."""

    def reach(self, side: int, growth: float = 0.0) -> float:
        """Return how far out e^{growth·|z|} times the tail still counts for 1e-18 of all."""
        end = abs(self.support[side > 0])
        rate = self.rates[side > 0]
        if math.isinf(rate):
            return min(end, 13 * self.unit + self.unit**2 * max(growth, 0) * 2)
        if rate == 0:
            return end
        return min(end, 45 / max(rate - growth, rate / 16) + 10 * self.unit)


def _laplace(b: float) -> Law:
    rates = (1 / b, 1 / b)
    return Law(lambda z: np.exp(-np.abs(z) / b) / (2 * b), b, rates, laplaces=(b,), closed=True)


def _gaussian(s: float) -> Law:
    top = s * math.sqrt(2 * math.pi)
    smooth = (math.inf, math.inf)
    return Law(lambda z: np.exp(-((z / s) ** 2) / 2) / top, s, smooth, cuts=())


def _discrete_laplace(b: float) -> Law:
    top = math.tanh(1 / (2 * b))
    rates = (1 / b, 1 / b)
    return Law(
        lambda k: top * np.exp(-np.abs(k) / b), max(b, 1), rates, True, laplaces=(b,), closed=True
    )


def _on_integers(
    mass: Callable[[Array], Array],
    unit: float,
    rate: float = math.inf,
    support: tuple[float, float] = (-math.inf, math.inf),
) -> Law:
    return Law(mass, unit, (rate, rate), True, support=support)


def _discrete_gaussian(s: float) -> Law:
    far = np.arange(1, math.ceil(40 * s) + 2)
    total = 1 + 2 * math.fsum(np.exp(-((far / s) ** 2) / 2))
    return _on_integers(lambda k: np.exp(-((k / s) ** 2) / 2) / total, max(s, 1))


def _rounded_laplace(b: float) -> Law:
    def mass(k: Array) -> Array:
        side = math.sinh(1 / (2 * b)) * np.exp(-np.abs(k) / b)
        return np.where(k == 0, -math.expm1(-1 / (2 * b)), side)

    return _on_integers(mass, max(b, 1), 1 / b)


def _rounded_gaussian(s: float) -> Law:
    def mass(k: Array) -> Array:
        away = np.abs(k)
        return ndtr(-(away - 0.5) / s) - ndtr(-(away + 0.5) / s)

    return _on_integers(mass, max(s, 1))


def _staircase(epsilon: float, sensitivity: float = 1.0, gamma: float | None = None) -> Law:
    e, d = epsilon, sensitivity
    g = 1 / (1 + math.exp(e / 2)) if gamma is None else gamma
    top = (1 - math.exp(-e)) / (2 * d * (g + math.exp(-e) * (1 - g)))

    def density(z: Array) -> Array:
        steps = np.abs(z) / d
        whole = np.floor(steps)
        return top * np.exp(-e * (whole + (steps - whole >= g)))

    whole = d * np.arange(math.ceil(60 / e))
    half = np.unique(np.concatenate([whole, whole + g * d]))
    cuts = tuple(np.concatenate([-half[:0:-1], half]))
    return Law(density, d / e, (e / d, e / d), cuts=cuts, jumps=True)


def _student(df: float, scale: float = 1.0) -> Law:
    top = gammaln((df + 1) / 2) - gammaln(df / 2) - math.log(df * math.pi) / 2 - math.log(scale)

    def density(z: Array) -> Array:
        return np.exp(top - (df + 1) / 2 * np.log1p((z / scale) ** 2 / df))

    return Law(density, scale, (0.0, 0.0), cuts=())


def _uniform(w: float) -> Law:
    ends = (-w / 2, w / 2)

    def density(z: Array) -> Array:
        return np.where(np.abs(z) <= w / 2, 1 / w, 0.0)

    return Law(density, w, (math.inf, math.inf), cuts=ends, support=ends, jumps=True)


def _mass(table: dict[int, float]) -> Law:
    def mass(k: Array) -> Array:
        return np.array([table.get(int(j), 0.0) for j in k])

    return _on_integers(mass, 1.0, support=(min(table), max(table)))


# -- scipy's, as the generator writes them ---------------------------------------------------------


def _normal(loc: float, scale: float) -> Law:
    base = _gaussian(scale)
    return dataclasses.replace(base, density=lambda z: base.density(z - loc))


def _expon(loc: float = 0.0, scale: float = 1.0) -> Law:
    def density(z: Array) -> Array:
        return np.where(z >= loc, np.exp(-np.maximum(z - loc, 0) / scale) / scale, 0.0)

    rates, support = (math.inf, 1 / scale), (loc, math.inf)
    return Law(density, scale, rates, cuts=(loc,), support=support, jumps=True)


def _logistic(scale: float = 1.0) -> Law:
    def density(z: Array) -> Array:
        fall = np.exp(-np.abs(z) / scale)
        return fall / (scale * (1 + fall) ** 2)

    return Law(density, scale, (1 / scale, 1 / scale), cuts=())


def _triangular(c: float, loc: float, scale: float) -> Law:
    low, mode, high = loc, loc + c * scale, loc + scale

    def density(z: Array) -> Array:
        up, down = (z - low) / (mode - low), (high - z) / (high - mode)
        return 2 / scale * np.maximum(np.minimum(up, down), 0)

    ends = (low, high)
    return Law(density, scale, (math.inf, math.inf), cuts=(low, mode, high), support=ends)


def _skellam(a: float, b: float) -> Law:
    from scipy.special import ive

    def mass(k: Array) -> Array:
        away = ive(np.abs(k), 2 * math.sqrt(a * b)) * math.exp(2 * math.sqrt(a * b) - a - b)
        return away * (a / b) ** (k / 2)

    return _on_integers(mass, math.sqrt(a + b))


_FAMILIES: dict[str, Callable[..., Law]] = {
    "Laplace": _laplace,
    "DiscreteLaplace": _discrete_laplace,
    "Gaussian": _gaussian,
    "DiscreteGaussian": _discrete_gaussian,
    "RoundedLaplace": _rounded_laplace,
    "RoundedGaussian": _rounded_gaussian,
    "Staircase": _staircase,
    "StudentT": _student,
    "Uniform": _uniform,
    "Mass": _mass,
    "norm": _normal,
    "expon": _expon,
    "logistic": _logistic,
    "triang": _triangular,
    "dlaplace": lambda a: dataclasses.replace(_discrete_laplace(1 / a), closed=False),
    "skellam": _skellam,
}


# -- sums ------------------------------------------------------------------------------------------


def _sum(first: Law, second: Law) -> Law | None:
    """Return the law of a sum of independent noises, None where none is written down."""
    if first.lattice and second.lattice:
        return _lattice_sum(first, second)
    if not (first.lattice or second.lattice):
        return _continuous_sum(first, second)
    return None


def _rates(first: Law, second: Law) -> tuple[float, float]:
    left, right = (min(a, b) for a, b in zip(first.rates, second.rates, strict=True))
    return left, right


def _lattice_sum(first: Law, second: Law) -> Law:
    both = (first, second)
    half = min(4000, math.ceil(max(2 * law.reach(side) for law in both for side in (-1, 1))))
    k = np.arange(-half, half + 1, dtype=float)
    table = np.convolve(first.density(k), second.density(k))

    def mass(j: Array) -> Array:
        index = np.asarray(j, int) + 2 * half
        inside = (index >= 0) & (index < len(table))
        return np.where(inside, table[np.clip(index, 0, len(table) - 1)], 0.0)

    unit = math.hypot(first.unit, second.unit)
    scales = (*first.laplaces, *second.laplaces) if all(law.laplaces for law in both) else ()
    left, right = (a + b for a, b in zip(first.support, second.support, strict=True))
    return Law(mass, unit, _rates(first, second), True, support=(left, right), laplaces=scales)


def _continuous_sum(first: Law, second: Law) -> Law | None:
    if len(first.laplaces) == len(second.laplaces) == 1:
        a, b = sorted((*first.laplaces, *second.laplaces), reverse=True)
        base = _two_laplaces(a, b)
        return Law(base, math.hypot(a, b), (1 / a, 1 / a), laplaces=(a, b))
    laplace, other = (first, second) if first.laplaces else (second, first)
    if len(laplace.laplaces) != 1:
        return None
    b = laplace.laplaces[0]
    if other.cuts == () and math.isinf(other.rates[0]):
        density = _laplace_gaussian(b, other.unit)
    elif math.isfinite(other.support[0]) and len(other.cuts) == 2:
        density = _laplace_uniform(b, other.unit)
    else:
        return None
    cuts = other.cuts
    unit = math.hypot(b, other.unit)
    return Law(density, unit, (1 / b, 1 / b), cuts=cuts)


def _two_laplaces(a: float, b: float) -> Callable[[Array], Array]:
    """Return (a e^{−|z|/a} − b e^{−|z|/b})/(2(a² − b²)), a ≥ b, in a form that survives a → b."""

    def density(z: Array) -> Array:
        z = np.abs(z)
        near = (a - b) / (a * b)
        share = z / a if near == 0 else -np.expm1(-z * near) * b / (a - b)
        return np.exp(-z / a) * (1 + share) / (2 * (a + b))

    return density


def _laplace_gaussian(b: float, s: float) -> Callable[[Array], Array]:
    def density(z: Array) -> Array:
        u, ratio = z / s, s / b
        parts = [erfcx((ratio + sign * u) / math.sqrt(2)) for sign in (-1, 1)]
        far = [np.isinf(p) for p in parts]  # e^{x²} overflows where the plain Laplace tail is left
        total = np.where(far[0] | far[1], 0.0, sum(parts)) * np.exp(-(u**2) / 2) / (4 * b)
        tail = np.exp(ratio**2 / 2 - np.abs(u) * ratio) / (2 * b)
        return np.where(far[0] | far[1], tail, total)

    return density


def _laplace_uniform(b: float, w: float) -> Callable[[Array], Array]:
    def density(z: Array) -> Array:
        z = np.abs(z)
        inside = 1 - np.exp(-w / (2 * b)) * np.cosh(np.minimum(z, w / 2) / b)
        outside = np.exp(-z / b) * math.sinh(w / (2 * b))
        return np.where(z <= w / 2, inside, outside) / w

    return density


# -- reading ---------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=512)
def law(text: str) -> Law | None:
    """Return the law of a noise; None if only moments are known, or no density is written down."""
    return _law(ast.parse(text.strip(), mode="eval").body)


def _law(node: ast.expr) -> Law | None:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _law(left), _law(right)
            return None if first is None or second is None else _sum(first, second)
        case ast.Call(func=ast.Attribute(attr="from_scipy"), args=[inner]):
            return _law(inner)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=more):
            if name not in _FAMILIES:
                return None
            given = {k.arg: _number(k.value) for k in more if k.arg}
            return _FAMILIES[name](*map(_number, args), **given)
    raise ValueError(f"not a noise: {ast.dump(node)}")


def _number(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(inner)
        case ast.BinOp(left=a, op=ast.Div(), right=b):
            return _number(a) / _number(b)
        case ast.BinOp(left=a, op=ast.Add(), right=b):
            return _number(a) + _number(b)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {int(_number(k)): _number(v) for k, v in pairs if k is not None}
    raise ValueError(f"not a number: {ast.dump(node)}")
