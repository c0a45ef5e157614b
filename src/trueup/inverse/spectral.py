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

MAX_TERMS = 2_000  # pairs of terms in one product: sympy multiplies so many in a second
_CANCELS = 1e-3  # powers of q lose more than three digits near the roots: then they are centred
_ZERO = sympy.Integer(0)
_NOTHING: Complex = (_ZERO, _ZERO)
_WAVES = (sympy.sin, sympy.cos, sympy.sinh, sympy.cosh)


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
    used = f.free_symbols & set(symbols)
    if f.is_polynomial(*symbols) and (len(used) < 2 or f.is_Add):
        polynomial = centred(f, *used) if len(used) == 1 else f
        return {(_ZERO,) * len(symbols): (polynomial, _ZERO)}
    if f.is_Add:
        return _sum(_modes(term, symbols) for term in f.args)
    if f.is_Mul:
        return reduce(_times, (_modes(factor, symbols) for factor in f.args))
    if f.is_Pow and f.exp.is_Integer and f.exp > 0:
        return reduce(_times, [_modes(f.base, symbols)] * int(f.exp))
    base, exponent = f.as_base_exp()
    if base.is_number and base.is_positive:
        return _exponential(exponent * sympy.log(base), symbols)
    if isinstance(f, _WAVES):
        return _wave(f, symbols)
    return None


def _exponential(exponent: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Modes | None:
    """Return e^{c·s + r} as a mode."""
    found = _linear(exponent, symbols)
    return None if found is None else {found[0]: (sympy.exp(found[1]), _ZERO)}


def _wave(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> Modes | None:
    """Return sin, cos, sinh or cosh of c·s + r as two modes."""
    found = _linear(f.args[0], symbols)
    if found is None:
        return None
    c, r = found
    if isinstance(f, (sympy.sin, sympy.cos)):
        c = tuple(sympy.I * x for x in c)
        re, im = sympy.cos(r) / 2, sympy.sin(r) / 2
        ahead, back = ((im, -re), (im, re)) if isinstance(f, sympy.sin) else ((re, im), (re, -im))
    else:
        sign = -1 if isinstance(f, sympy.sinh) else 1
        ahead, back = (sympy.exp(r) / 2, _ZERO), (sign * sympy.exp(-r) / 2, _ZERO)
    return _sum([{c: ahead}, {tuple(-x for x in c): back}])


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
    """Return the degree in one symbol; what stands beside its powers is not multiplied out.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> degree(s**2 / (1 + n**2) ** 9 + (s + n) ** 3, s), degree(n**2, s)
    (3, 0)
    """
    if symbol not in polynomial.free_symbols:
        return 0
    found = sympy.degree(_only(polynomial, symbol, {}), symbol)
    return int(found) if found.is_finite else 0  # all of it cancels


def _only(
    expr: sympy.Expr, symbol: sympy.Symbol, names: dict[sympy.Expr, sympy.Symbol]
) -> sympy.Expr:
    """Replace all that does not depend on a symbol, but numbers, by names."""
    if symbol in expr.free_symbols:
        return expr if expr == symbol else expr.func(*(_only(a, symbol, names) for a in expr.args))
    return expr if expr.is_Rational else names.setdefault(expr, sympy.Dummy(real=True))


def centred(polynomial: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """Write a polynomial in powers of the distance from the mean of its roots, if it saves digits.

    Powers of q cancel near roots that lie together far from 0: (q − 100)⁶ expanded has terms of
    size 10¹², and no digit of its value at 97 is left in double precision.

    Examples
    --------
    >>> s = sympy.Symbol("s", real=True)
    >>> centred(s**2 - 200 * s + 10001, s), centred(s**2 - 2 * s, s)
    ((s - 100)**2 + 1, s**2 - 2*s)
    """
    if polynomial.free_symbols != {symbol}:
        return polynomial
    poly = sympy.Poly(polynomial, symbol)
    n = poly.degree()
    centre = sympy.cancel(-poly.nth(n - 1) / (n * poly.LC())) if n > 1 else _ZERO
    if not centre.is_Rational or not centre:
        return poly.as_expr()
    moved = poly.compose(sympy.Poly(symbol + centre, symbol))
    lower = [(k, abs(float(c / poly.LC()))) for (k,), c in moved.terms() if k < n]
    radius = max((c ** (1 / (n - k)) for k, c in lower), default=0.0)
    if (radius / abs(float(centre))) ** n > _CANCELS:
        return poly.as_expr()
    return sympy.Add(*(c * (symbol - centre) ** k for (k,), c in moved.terms()))


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
    return tuple(v if v.is_real else sympy.Add(*_parts(v)) for v in found)


def _parts(value: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    re, im = value.as_real_imag()
    return re, sympy.I * im


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
    if not (c.is_real or sympy.re(c).is_zero):  # growing waves: exact complex numbers only clutter
        m = [value.evalf(30) for value in m]
    elif order > _SHORT and not m[0].free_symbols and (m[order] / m[0]).has(sympy.exp):
        m = [value.evalf(60) for value in m]
    return m[: order + 1]


_SHORT = 2
"""Up to this order series in exponentials stay short; of a higher order they have 60 digits."""

_DIGITS = 1e-14
"""How near a frequency has to be to a zero of M, relative to its size, to be taken for it."""


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
