"""Exponential polynomials Σ e^{c·s} P(s): what every noise with a generating function can invert.

With M(t) = E e^{tZ} the inverse is (1/M)(D), on one term a finite sum of derivatives,

    (1/M)(D) [e^{cs} P(s)] = e^{cs} Σⱼ νⱼ(c)/j! · DʲP(s),     1/M(c + t) = Σ νⱼ(c) tʲ/j!.

For c = 0 this is the paper's Section 7; c imaginary gives sines and cosines.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache, reduce
from itertools import product
from typing import TYPE_CHECKING

import sympy

from trueup.errors import NoUnbiasedEstimator
from trueup.inverse.jets import derivative
from trueup.inverse.separation import by_term
from trueup.noise.series import Series

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trueup.noise.base import Noise

Frequencies = tuple[sympy.Expr, ...]
"""One exponent c per statistic."""

Complex = tuple[sympy.Expr, sympy.Expr]
"""A real and an imaginary part, each a real expression."""

Modes = dict[Frequencies, Complex]

_SHORT = 2  # up to this order series in exponentials stay short
_EVALUATED = 60  # digits of longer ones
_DIGITS = 1e-14  # a frequency is a zero of M if it is as near to one, relative to its size
MAX_TERMS = 2_000  # pairs of terms in one product: sympy multiplies so many in a second
_ZERO = sympy.Integer(0)
_NOTHING: Complex = (_ZERO, _ZERO)


def decompose(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Modes | None:
    """Write f as Σ e^{c·s}·P(s) with P polynomial in the symbols; None if it is not of that form.

    Examples
    --------
    >>> s = sympy.Symbol("s", real=True)
    >>> decompose(s**2 * sympy.exp(3 * s), [s])
    {(3,): (s**2, 0)}
    """
    if not symbols:
        return {(): (f, _ZERO)}
    modes = _modes(f.replace(sympy.Piecewise, lambda *c: by_term(c, symbols)), symbols)
    if modes is None:
        return None
    found = {c: p for c, p in modes.items() if any(sympy.expand(part) != 0 for part in p)}
    return found or {(_ZERO,) * len(symbols): _NOTHING}


def _modes(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Modes | None:
    few = len(f.free_symbols & set(symbols)) < 2
    if f.is_polynomial(*symbols) and (few or f.is_Add):
        return {(_ZERO,) * len(symbols): (f, _ZERO)}
    if f.is_Add:
        return _sum(_modes(term, symbols) for term in f.args)
    if f.is_Mul:
        return reduce(_times, (_modes(factor, symbols) for factor in f.args))
    if f.is_Pow and f.exp.is_Integer and f.exp > 0:
        return reduce(_times, [_modes(f.base, symbols)] * int(f.exp))
    base, exponent = f.as_base_exp()
    if base.is_number and base.is_positive:
        return _exponential(exponent * sympy.log(base), symbols)
    if isinstance(f, (sympy.sinh, sympy.cosh)):
        return _modes(f.rewrite(sympy.exp), symbols)
    if isinstance(f, (sympy.sin, sympy.cos)):
        return _wave(f, symbols)
    return None


def _exponential(exponent: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Modes | None:
    """Return e^{c·s + r} as a mode."""
    found = _linear(exponent, symbols)
    return None if found is None else {found[0]: (sympy.exp(found[1]), _ZERO)}


def _wave(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Modes | None:
    """Return sin or cos of c·s + r as two modes: sin x is cos(x − π/2)."""
    found = _linear(f.args[0], symbols)
    if found is None:
        return None
    c, r = (tuple(sympy.I * x for x in found[0]), found[1])
    r = r - sympy.pi / 2 if isinstance(f, sympy.sin) else r
    re, im = sympy.cos(r) / 2, sympy.sin(r) / 2
    return _sum([{c: (re, im)}, {tuple(-x for x in c): (re, -im)}])


def _linear(
    expr: sympy.Expr, symbols: Sequence[sympy.Symbol]
) -> tuple[Frequencies, sympy.Expr] | None:
    """Return c and r if an expression is c·s + r with numbers c."""
    expr = sympy.expand(expr)
    c = tuple(expr.diff(s) for s in symbols)
    if not all(x.is_number for x in c):
        return None
    rest = sympy.expand(expr - sympy.Add(*(x * s for x, s in zip(c, symbols, strict=True))))
    return None if rest.has(*symbols) else (c, rest)  # where(s > 0, 1, 2) has the slope 0


def _sum(several: Iterable[Modes | None]) -> Modes | None:
    total: Modes = defaultdict(lambda: _NOTHING)
    for modes in several:
        if modes is None:
            return None
        for c, (re, im) in modes.items():
            total[c] = (total[c][0] + re, total[c][1] + im)
    return dict(total)


def _times(left: Modes | None, right: Modes | None) -> Modes | None:
    if left is None or right is None or len(left) * len(right) > MAX_TERMS:
        return None
    return _sum(
        {tuple(a + b for a, b in zip(c, d, strict=True)): times(p, r)}
        for (c, p), (d, r) in product(left.items(), right.items())
    )


def degree(polynomial: sympy.Expr, symbol: sympy.Symbol) -> int:
    """Return the degree in one symbol, by derivatives: nothing is multiplied out.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> degree(s**2 / (1 + n**2) ** 9 + (s + n) ** 3, s), degree(n**2, s)
    (3, 0)
    """
    order = 0
    while derivative(polynomial, symbol, order + 1) != 0:
        order += 1
    return order


@lru_cache(maxsize=512)
def reciprocal(noise: Noise, c: sympy.Expr, order: int) -> tuple[sympy.Expr, ...]:
    """Return νⱼ(c)/j!, j = 0..order: the coefficients of 1/M(c + t).

    Examples
    --------
    >>> from trueup.noise.gaussian import Gaussian
    >>> reciprocal(Gaussian(2), sympy.Integer(0), 4)
    (1, 0, -2, 0, 2)
    """
    moments = _moments(noise, c, order)
    found = map(sympy.sympify, (1 / Series.of_moments(moments)).coefficients)
    return tuple(v if v.is_real else v.expand(complex=True) for v in found)


def _moments(noise: Noise, c: sympy.Expr, order: int) -> list[sympy.Expr]:
    """Return E[Zʲ e^{cZ}], j = 0..order; refuse M(c) = 0.

    How small M is says nothing: wide noise leaves e^{−50} of a wave, and that can be undone. But a
    frequency is known to its last digits only, and so is M.
    """
    waves = not c.is_real and noise.highest_moment is None  # elsewhere M > 0
    m = noise.tilted(c, max(order, 1) if waves else order)
    vanishes = m[0].is_zero
    if waves and not m[0].free_symbols:  # a scale as a symbol meets zeros at single scales at most
        vanishes = abs(sympy.N(m[0], 20)) <= _DIGITS * abs(sympy.N(c * m[1], 20))
    if vanishes:
        raise NoUnbiasedEstimator(
            f"{noise} averages the wave of frequency {sympy.im(c)} to zero: M({c}) = 0",
            "use another frequency or another noise",
            proved=False,
        )
    grows = not (c.is_real or sympy.re(c).is_zero)  # a wave: exact complex numbers only clutter
    long = order > _SHORT and not m[0].free_symbols and (m[order] / m[0]).has(sympy.exp)
    return [value.evalf(_EVALUATED) if grows or long else value for value in m[: order + 1]]


def realise(modes: dict[Frequencies, Complex], symbols: Sequence[sympy.Symbol]) -> sympy.Expr:
    """Return Re Σ e^{c·s}·P as a real expression."""
    terms = []
    for frequency, (re, im) in modes.items():
        growing = sympy.Add(*(sympy.re(c) * s for c, s in zip(frequency, symbols, strict=True)))
        turning = sympy.Add(*(sympy.im(c) * s for c, s in zip(frequency, symbols, strict=True)))
        wave = re * sympy.cos(turning) - im * sympy.sin(turning)
        terms.append(sympy.exp(growing) * wave)
    return sympy.Add(*terms)


def times(a: Complex, b: Complex) -> Complex:
    """Return the product of two complex expressions."""
    if a[1].is_zero and b[1].is_zero:
        return (a[0] * b[0], sympy.Integer(0))
    return (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0])


def total(terms: Iterable[Complex]) -> Complex:
    """Return a sum of complex expressions, added up in one go."""
    parts = list(terms)
    return sympy.Add(*(re for re, _ in parts)), sympy.Add(*(im for _, im in parts))
