"""Exponential polynomials Σ e^{c·s} P(s): what every noise with a generating function can invert.

With M(t) = E e^{tZ} the inverse is (1/M)(D), on one term a finite sum of derivatives,

    (1/M)(D) [e^{cs} P(s)] = e^{cs} Σⱼ νⱼ(c)/j! · DʲP(s),     1/M(c + t) = Σ νⱼ(c) tʲ/j!.

For c = 0 this is the paper's Section 7; c imaginary gives sines and cosines.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy

from trueup.errors import NoUnbiasedEstimator
from trueup.inverse.separation import by_term
from trueup.noise.series import Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.noise.base import Noise

Frequencies = tuple[sympy.Expr, ...]
"""One exponent c per statistic."""

Complex = tuple[sympy.Expr, sympy.Expr]
"""A real and an imaginary part, each a real expression."""

MAX_TERMS = 2_000
_CANCELS = 1e-3  # powers of q lose more than three digits near the roots: then they are centred
_EXPONENTIAL = (sympy.sin, sympy.cos, sympy.sinh, sympy.cosh)


def decompose(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> dict[Frequencies, Complex] | None:
    """Write f as Σ e^{c·s}·P(s) with P polynomial in the symbols; None if it is not of that form.

    Examples
    --------
    >>> s = sympy.Symbol("s", real=True)
    >>> decompose(s**2 * sympy.exp(3 * s) + 1, [s])
    {(0,): (1, 0), (3,): (s**2, 0)}
    """
    if not symbols:
        return {(): (f, sympy.Integer(0))}
    foreign: dict[sympy.Expr, sympy.Symbol] = {}
    f = _without(f.replace(sympy.Piecewise, lambda *c: by_term(c, symbols)), set(symbols), foreign)
    if _degree(f, symbols) > MAX_TERMS:
        return None
    centres = _centres(f, symbols)
    f = f.xreplace({s: s + a for s, a in centres.items()})
    masks: dict[sympy.Expr, sympy.Symbol] = {}
    kept = {*symbols, *foreign.values()}
    expanded = sympy.expand(_masked(_as_exponentials(f, symbols), kept, masks))
    shown = {mask: expr for expr, mask in masks.items()}
    terms = sympy.Add.make_args(expanded)
    if len(terms) > MAX_TERMS or expanded.has(*foreign.values()):
        return None
    modes: dict[Frequencies, Complex] = defaultdict(lambda: (sympy.Integer(0), sympy.Integer(0)))
    for term in terms:
        mode = _mode(term, symbols)
        if mode is None:
            return None
        if centres and any(mode[0]):  # e^{c(s + a)} was expanded: back to e^{cs}
            shift = [c * centres.get(s, 0) for c, s in zip(mode[0], symbols, strict=True)]
            mode = _mode(term * sympy.exp(-sympy.Add(*shift)), symbols)
            if mode is None:
                return None
        frequency, (re, im) = mode
        modes[frequency] = (modes[frequency][0] + re, modes[frequency][1] + im)
    if centres:
        back = {s: s - a for s, a in centres.items()}
        modes = {c: (re.xreplace(back), im.xreplace(back)) for c, (re, im) in modes.items()}
    elif len(symbols) == 1:
        modes = {c: (centred(re, *symbols), centred(im, *symbols)) for c, (re, im) in modes.items()}
    found = {c: (re.xreplace(shown), im.xreplace(shown)) for c, (re, im) in modes.items()}
    return {c: p for c, p in found.items() if p != (0, 0)} or {_zeros(symbols): _NOTHING}


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
    return int(sympy.degree(_only(polynomial, symbol, {}), symbol))


def _only(
    expr: sympy.Expr, symbol: sympy.Symbol, masks: dict[sympy.Expr, sympy.Symbol]
) -> sympy.Expr:
    """Replace all that does not depend on a symbol, but numbers, by names."""
    if symbol in expr.free_symbols:
        return expr if expr == symbol else expr.func(*(_only(a, symbol, masks) for a in expr.args))
    return expr if expr.is_Rational else masks.setdefault(expr, sympy.Dummy(real=True))


def _centres(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> dict[sympy.Symbol, sympy.Rational]:
    """Return a where f is written in powers of s − a: it is expanded about there."""
    found: dict[sympy.Symbol, sympy.Rational] = {}
    for symbol in symbols:
        bases = [p.base for p in f.atoms(sympy.Pow) if symbol in p.base.free_symbols]
        centres = [c for c in (_root(base, symbol) for base in bases) if c is not None]
        if centres and symbol not in bases:
            found[symbol] = max(centres, key=centres.count)
    return found


def _root(base: sympy.Expr, symbol: sympy.Symbol) -> sympy.Rational | None:
    """Return the root of a linear expression, if it is a rational number other than 0."""
    if not base.is_polynomial(symbol) or sympy.degree(base, symbol) != 1:
        return None
    root = -base.coeff(symbol, 0) / base.coeff(symbol, 1)
    return root if root.is_Rational and root else None


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
    if not polynomial.is_polynomial(symbol) or not polynomial.has(symbol):
        return polynomial
    poly = sympy.Poly(polynomial, symbol)
    n = poly.degree()
    if n < 2:
        return polynomial
    top, next_one = poly.coeff_monomial(symbol**n), poly.coeff_monomial(symbol ** (n - 1))
    centre = sympy.cancel(-next_one / (n * top))
    if not centre.is_Rational or not centre:
        return polynomial
    moved = poly.compose(sympy.Poly(symbol + centre, symbol))
    lower = [(k, c / top) for (k,), c in moved.terms() if k < n]
    if not all(c.is_number for _, c in lower):
        return polynomial
    radius = max((float(abs(c)) ** (1 / (n - k)) for k, c in lower), default=0.0)
    if (radius / abs(float(centre))) ** n > _CANCELS:
        return polynomial
    return sympy.Add(*(c * (symbol - centre) ** k for (k,), c in moved.terms()))


def _without(
    expr: sympy.Expr, symbols: set[sympy.Symbol], foreign: dict[sympy.Expr, sympy.Symbol]
) -> sympy.Expr:
    """Replace functions of the symbols that are no exponentials by names: cases, logarithms, ...

    What is left of them after expansion says that f is not of the form; until then nobody looks
    inside.
    """
    if not expr.args or not expr.free_symbols & symbols:
        return expr
    if isinstance(expr, (sympy.Add, sympy.Mul, sympy.Pow, sympy.exp, *_EXPONENTIAL)):
        return expr.func(*(_without(a, symbols, foreign) for a in expr.args))
    return foreign.setdefault(expr, sympy.Dummy(real=True))


def _masked(
    expr: sympy.Expr,
    symbols: set[sympy.Symbol],
    masks: dict[sympy.Expr, sympy.Symbol],
    exponent: bool = False,
) -> sympy.Expr:
    """Replace what does not depend on the symbols by names, so that expansion leaves it alone.

    Sums in denominators too, but for exponents, where they are frequencies: multiplied out, e − 1/e
    takes in the exponentials beside it.
    """
    if not isinstance(expr, sympy.Expr) or not expr.args:
        return expr
    if expr.is_number:
        keep = exponent or not _has_quotient(expr) or expr.has(sympy.I)
        return expr if keep else masks.setdefault(expr, sympy.Dummy(real=True))
    if not expr.free_symbols & symbols and not expr.has(sympy.I):
        return masks.setdefault(expr, sympy.Dummy(real=True))
    if expr.is_Add or expr.is_Mul:
        fixed = [a for a in expr.args if not a.free_symbols & symbols and not a.has(sympy.I)]
        if len(fixed) > 1:
            rest = [_masked(a, symbols, masks, exponent) for a in expr.args if a not in fixed]
            return expr.func(_masked(expr.func(*fixed), symbols, masks, exponent), *rest)
    if not isinstance(expr, (sympy.Add, sympy.Mul, sympy.Pow, sympy.exp)):
        return expr
    exponent = exponent or isinstance(expr, sympy.exp)
    return expr.func(*(_masked(a, symbols, masks, exponent) for a in expr.args))


def _has_quotient(expr: sympy.Expr) -> bool:
    """Whether something is divided by a sum."""
    return any(p.base.is_Add and p.exp.is_negative for p in expr.atoms(sympy.Pow))


_NOTHING: Complex = (sympy.Integer(0), sympy.Integer(0))


def _zeros(symbols: Sequence[sympy.Symbol]) -> Frequencies:
    return tuple(sympy.Integer(0) for _ in symbols)


def _degree(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> int:
    """Return a bound on how many terms an expansion can have, without expanding."""
    if f in symbols:
        return 1
    if not f.args or not set(symbols) & f.free_symbols:
        return 0
    if f.is_Pow and f.exp.is_Integer:
        return _degree(f.base, symbols) * abs(int(f.exp)) * (len(f.base.args) or 1)
    degrees = [_degree(a, symbols) for a in f.args]
    return sum(degrees) if f.is_Mul else max(degrees)


def _as_exponentials(f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> sympy.Expr:
    """Write sines, cosines and powers aˢ in the symbols as exponentials."""

    def of_symbols(node: sympy.Basic) -> bool:
        return bool(node.free_symbols & set(symbols))

    f = f.replace(
        lambda e: isinstance(e, _EXPONENTIAL) and of_symbols(e), lambda e: e.rewrite(sympy.exp)
    )
    return f.replace(
        lambda e: e.is_Pow and e.base.is_number and e.base.is_positive and of_symbols(e.exp),
        lambda e: sympy.exp(e.exp * sympy.log(e.base)),
    )


def _mode(term: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> tuple[Frequencies, Complex] | None:
    """Split one product into its frequency and its (complex) polynomial factor."""
    frequency, factors = list(_zeros(symbols)), []
    for factor in sympy.Mul.make_args(term):
        if isinstance(factor, sympy.exp) and factor.free_symbols & set(symbols):
            for part in sympy.Add.make_args(sympy.expand(factor.args[0])):
                hit = _linear(part, symbols)
                if hit is None:
                    factors.append(sympy.exp(part))
                else:
                    frequency[hit[0]] += hit[1]
        else:
            factors.append(factor)
    if not all(f.is_polynomial(*symbols) for f in factors):
        return None
    polynomial: Complex = (sympy.Integer(1), sympy.Integer(0))
    for factor in factors:
        complex_factor = (
            factor.as_real_imag() if factor.has(sympy.I) else (factor, sympy.Integer(0))
        )
        polynomial = times(polynomial, complex_factor)
    return tuple(frequency), polynomial


def _linear(part: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> tuple[int, sympy.Expr] | None:
    """Return (i, c) if the part of an exponent is c·sᵢ with a number c."""
    for i, symbol in enumerate(symbols):
        c = part / symbol
        if c.is_number:
            return i, c
    return None


@lru_cache(maxsize=512)
def reciprocal(noise: Noise, c: sympy.Expr, order: int) -> tuple[sympy.Expr, ...]:
    """Return νⱼ(c)/j!, j = 0..order: the coefficients of 1/M(c + t).

    Examples
    --------
    >>> from trueup.noise.gaussian import Gaussian
    >>> reciprocal(Gaussian(2), sympy.Integer(0), 4)
    (1, 0, -2, 0, 2)
    """
    found = (1 / Series.of_moments(_moments(noise, c, order))).coefficients
    return tuple(v if v.is_real else sum_parts(v) for v in map(sympy.sympify, found))


def _moments(noise: Noise, c: sympy.Expr, order: int) -> list[sympy.Expr]:
    """Return E[Zʲ e^{cZ}], j = 0..order; refuse M(c) = 0."""
    waves = not c.is_real and noise.highest_moment is None  # elsewhere M > 0
    m = noise.tilted(c, max(order, 1) if waves else order)
    if waves and _vanishes(m[0], m[1], c):
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


def _vanishes(value: sympy.Expr, slope: sympy.Expr, c: sympy.Expr) -> bool:
    """Whether M(c) is 0, or c is as near to a zero of M as the last digits of a frequency.

    How small M is says nothing: wide noise leaves e^{−50} of a wave, and that can be undone.
    """
    if value.is_zero or value.free_symbols:  # with a scale as a symbol, at single scales at most
        return bool(value.is_zero)
    size, reach = (abs(sympy.N(v, 20)) for v in (value, c * slope))
    return bool(size <= _DIGITS * reach)


_SHORT = 2
"""Up to this order series in exponentials stay short; of a higher order they have 60 digits."""

_DIGITS = 1e-14
"""How near a frequency has to be to a zero of M, relative to its size, to be taken for it."""


def sum_parts(value: sympy.Expr) -> sympy.Expr:
    """Return a complex number as a + b·i."""
    re, im = value.as_real_imag()
    return re + sympy.I * im


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
