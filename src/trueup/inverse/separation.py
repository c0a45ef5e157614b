"""Write f as a sum of products: functions of one statistic times functions of the others."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

import sympy

from trueup.inverse.signs import sign

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trueup.domain import Interval

    Box = Mapping[sympy.Symbol, Interval]

Products = list[tuple[sympy.Expr, sympy.Expr]]
"""Pairs (a, h): a free of the statistic, h a function of it alone."""

MAX_PRODUCTS = 12
_MOST = 200


def separated(f: sympy.Expr, n: sympy.Symbol) -> Products | None:
    """Return f = Σ a·h(n) with as few terms as are easily seen, None if there is no such sum.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> separated((s - n) ** 2 / n, n)
    [(1, n), (-2*s, 1), (s**2, 1/n)]
    >>> separated(1 / (s + n), n) is None
    True
    """
    terms = _products(f, n)
    if terms is None:
        return None
    by_function: dict[sympy.Expr, sympy.Expr] = {}
    for a, h in terms:
        number, h = h.as_coeff_Mul()
        by_function[h] = by_function.get(h, sympy.Integer(0)) + number * a
    by_factor: dict[sympy.Expr, sympy.Expr] = {}
    for h, a in by_function.items():
        by_factor[a] = by_factor.get(a, sympy.Integer(0)) + h
    found = [(a, h) for a, h in by_factor.items() if a != 0]
    found.sort(key=lambda pair: (str(pair[0].free_symbols), str(pair[1])))
    return found if len(found) <= MAX_PRODUCTS else None


def parted(f: sympy.Expr, box: Box) -> sympy.Expr:
    """Return f with logarithms and powers of products taken apart by statistics.

    log(u·v) = log(u) + log(v) and (u·v)^p = u^p·v^p where u and v are positive on the whole box
    (a power may be 0).

    Examples
    --------
    >>> from trueup.domain import Interval
    >>> s, n = sympy.symbols("s n", real=True)
    >>> parted(sympy.log(s / n) + sympy.sqrt(s * n), dict.fromkeys((s, n), Interval(1, None)))
    sqrt(n)*sqrt(s) - log(n) + log(s)
    >>> parted(sympy.log(s * n), dict.fromkeys((s, n), Interval()))
    log(n*s)
    """
    if isinstance(f, (sympy.Add, sympy.Mul)):
        return f.func(*(parted(g, box) for g in f.args))
    if isinstance(f, sympy.log) or (isinstance(f, sympy.Pow) and f.exp.is_number):
        logarithm = isinstance(f, sympy.log)
        factors = [g for _, g in apart(sympy.Mul.make_args(parted(f.args[0], box)))]
        if len(factors) > 1 and all(sign(g, box, strict=logarithm) > 0 for g in factors):
            powers = [_power(g, box) for g in factors]
            if logarithm:
                return sympy.Add(*(p * sympy.log(base) for base, p in powers))
            return sympy.Mul(*(base ** (p * f.exp) for base, p in powers))
    return f


def _power(g: sympy.Expr, box: Box) -> tuple[sympy.Expr, sympy.Expr]:
    """Return the base and the exponent of a power of something positive, or g and 1."""
    base, exponent = g.as_base_exp()
    plain = exponent.is_number and sign(base, box) > 0
    return (base, exponent) if plain else (g, sympy.Integer(1))


def apart(parts: Iterable[sympy.Expr]) -> list[tuple[set[sympy.Basic], sympy.Expr]]:
    """Return factors multiplied together as far as they share a symbol, with their symbols.

    Examples
    --------
    >>> s, n, m = sympy.symbols("s n m", real=True)
    >>> [g for _, g in apart([s, n + 1, s + m])]
    [n + 1, s*(m + s)]
    """
    groups: list[tuple[set[sympy.Basic], sympy.Expr]] = []
    for factor in parts:
        symbols, whole = set(factor.free_symbols), factor
        for group in [g for g in groups if g[0] & symbols or not g[0]]:
            groups.remove(group)
            symbols, whole = symbols | group[0], group[1] * whole
        groups.append((symbols, whole))
    return groups


def factors_of(f: sympy.Expr) -> list[sympy.Expr]:
    """Return f as a product; what all cases of it share, and they do not ask about, is a factor.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> factors_of(sympy.Piecewise((2 * s / n, n > 0), (0, True)))
    [s, Piecewise((2/n, n > 0), (0, True))]
    >>> factors_of(sympy.exp(s + n))
    [exp(n), exp(s)]
    """
    if not isinstance(f, sympy.Piecewise):
        parts = _powers(f) or sympy.Mul.make_args(f)
        return [f] if len(parts) == 1 else [g for part in parts for g in factors_of(part)]
    asked = {s for _, condition in f.args for s in condition.free_symbols}
    cases = [set(sympy.Mul.make_args(e)) for e, _ in f.args if e != 0]
    shared = [g for g in set.intersection(*cases) if g.free_symbols and not g.free_symbols & asked]
    if not shared:
        return [f]
    shared.sort(key=str)
    whole = sympy.Mul(*shared)
    return [*shared, sympy.Piecewise(*((e / whole, condition) for e, condition in f.args))]


def by_term(
    cases: Sequence[tuple[sympy.Expr, sympy.Basic]], symbols: Sequence[sympy.Symbol]
) -> sympy.Expr:
    """Return cases that ask about other statistics only as a sum, each coefficient by cases.

    Examples
    --------
    >>> s, n = sympy.symbols("s n", real=True)
    >>> by_term([((s + 1) / n, n > 0), (s, sympy.true)], [s])
    s*Piecewise((1/n, n > 0), (1, True)) + Piecewise((1/n, n > 0), (0, True))
    """
    whole = sympy.Piecewise(*cases, evaluate=False)
    own = set(symbols)
    if not whole.free_symbols & own or any(c.free_symbols & own for _, c in cases):
        return whole
    by_factor: dict[sympy.Expr, list[sympy.Expr]] = defaultdict(
        lambda: [sympy.Integer(0)] * len(cases)
    )
    for i, (value, _) in enumerate(cases):
        for term in sympy.Add.make_args(sympy.expand(value)):
            number, factor = term.as_independent(*symbols, as_Add=False)
            if factor.free_symbols - own:  # may have no value in the other cases
                return whole
            by_factor[factor][i] += number
    conditions = [condition for _, condition in cases]
    return sympy.Add(
        *(
            factor * sympy.Piecewise(*zip(numbers, conditions, strict=True), evaluate=False)
            for factor, numbers in by_factor.items()
        )
    )


def _powers(f: sympy.Expr) -> list[sympy.Expr]:
    """Return the factors of c^{u + v}, c > 0 a number, and none of what is no such power."""
    base, exponent = f.as_base_exp()
    if not (base.is_number and base.is_positive):
        return []
    return [base**term for term in sympy.Add.make_args(sympy.expand(exponent))]


def _products(f: sympy.Expr, n: sympy.Symbol) -> Products | None:
    if n not in f.free_symbols:
        return [(f, sympy.Integer(1))]
    if f.free_symbols == {n}:
        return [(sympy.Integer(1), f)]
    if isinstance(f, sympy.Add):
        parts = [_products(term, n) for term in f.args]
        return None if None in parts else [pair for part in parts for pair in part or ()]
    if isinstance(f, sympy.Pow) and f.exp.is_Integer and 1 < f.exp <= MAX_PRODUCTS:
        return _times([_products(f.base, n)] * int(f.exp))
    factors = f.args if isinstance(f, sympy.Mul) else _powers(f)
    return _times([_products(g, n) for g in factors]) if len(factors) > 1 else None


def _times(factors: list[Products | None]) -> Products | None:
    """Multiply sums of products out."""

    def both(left: Products | None, right: Products | None) -> Products | None:
        if left is None or right is None or len(left) * len(right) > _MOST:
            return None
        return [(a * b, h * k) for (a, h), (b, k) in product(left, right)]

    return reduce(both, factors)
