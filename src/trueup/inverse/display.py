"""The estimator as mathematics and in words."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long
from trueup.formula.opaque import Opaque, Table
from trueup.formula.substitution import real
from trueup.formula.text import text
from trueup.inverse.extended import Extended
from trueup.inverse.on_integers import OnIntegers
from trueup.noise.extension import LaguerreExtension

if TYPE_CHECKING:
    from trueup.inverse.component import Cell, Component, Region
    from trueup.inverse.solve import Inverse

INTERVALS = {
    "exact": "exact: the noise is inverted and mapped through f",
    "ratio": "ratio r: numerator − r·denominator is noise alone, which is inverted (Fieller)",
    "projection": "a box around the noise is mapped through f; conservative",
}
"""What is said of intervals that cover as often as they say."""

_SHORT = 4
_LONG = 60
_EXPLICIT = 60
"""Extensions up to this degree are written out as polynomials."""


def piecewise(inverse: Inverse, what: str) -> sympy.Expr:
    """Return value or variance as one expression, cases first, the inside last."""
    return sympy.Add(*(_cases(component, what) for component in inverse.components))


def _cases(component: Component, what: str) -> sympy.Expr:
    regions = sorted(component.regions(), key=lambda r: -sum(b != 0 for b in r))
    cases = [
        (_explicit(getattr(component, what)(region)), _condition(component, region))
        for region in regions
    ]
    return cases[0][0] if len(cases) == 1 else sympy.Piecewise(*cases)


def _condition(component: Component, region: Region) -> Any:
    tests = [_test(cell, b) for cell, b in zip(component.cells, region, strict=True)]
    return sympy.And(*tests)


def _test(cell: Cell, branch: int) -> Any:
    side = cell.operator.branches[branch].side
    if side == "below":
        return cell.symbol <= cell.operator.starts[0]
    if side == "above":
        return cell.symbol >= cell.operator.starts[1]
    return sympy.true


def _explicit(expr: sympy.Expr) -> sympy.Expr:
    return expr.replace(
        lambda e: isinstance(e, LaguerreExtension) and e.args[0] <= _EXPLICIT,
        lambda e: e.polynomial(),
    )


def explain(estimator: Any) -> str:
    """Return the report behind :meth:`Estimator.explain`."""
    inverse = estimator._inverse
    rows = [
        ("published", f"{s.symbol.name} + {s.noise!r}, true value in {s.domain}")
        for s in estimator._statistics
    ]
    rows += [("known", condition) for condition in estimator.conditions]
    rows += [("theorem", theorem) for theorem in inverse.theorems]
    rows += [("estimate", line) for line in _lines(inverse, "value")]
    if inverse.infinite:
        rows.append(("variance", f"infinite or unknown: {inverse.infinite}"))
    else:
        rows += [("variance", line) for line in _variance_lines(inverse)]
    otherwise = "normal approximation, estimate ± z·stderr"
    rows.append(("interval", INTERVALS.get(estimator.interval_method, otherwise)))
    if estimator._source.note:
        rows.append(("note", estimator._source.note))
    return "\n".join([f"Unbiased estimator of {text(estimator.estimand)}", *table(rows)])


def _variance_lines(inverse: Inverse) -> list[str]:
    try:
        return [f"{line}, unbiased" for line in _lines(inverse, "variance")]
    except TrueupError as error:
        return [error.message]


def table(rows: list[tuple[str, str]]) -> list[str]:
    """Return labelled lines; a label that repeats is left blank."""
    lines, last = [], ""
    for label, content in rows:
        lines.append(f"  {label + ':' if label != last else '':<12}{content}")
        last = label
    return lines


def _lines(inverse: Inverse, what: str, most: int = 9) -> list[str]:
    """Return one line per region, with its condition."""
    lines = []
    for component in inverse.components:
        regions = sorted(component.regions(), key=lambda r: sum(b != 0 for b in r))
        for region in islice(regions, most):
            where = _condition(component, region)
            expr = getattr(component, what)(region)
            formula = _shown(component, expr)
            lines.append(formula if where == sympy.true else f"{formula}   where {where}")
        if len(regions) > most:
            lines.append(f"… and {len(regions) - most} more cases")
    return lines if len(inverse.components) == 1 else [f"+ {line}" for line in lines]


def _shown(component: Component, expr: sympy.Expr) -> str:
    """Write an expression, or name what is long of it."""
    if isinstance(component, Extended) and isinstance(expr, sympy.Piecewise):
        *near, (far, _) = expr.args
        return "; ".join([_named(far), *(f"{_named(v)} where {text(test)}" for v, test in near)])
    return (_named if isinstance(component, (Extended, OnIntegers)) else _readable)(expr)


def _named(expr: sympy.Expr) -> str:
    """Name a table, or a sum of many terms, instead of writing it out."""
    tables = [e.implementation for e in expr.atoms(Opaque) if isinstance(e.implementation, Table)]
    if tables:
        last = max(t.low + len(t.values) - 3 for t in tables)
        return f"a table on {min(t.low for t in tables)}..{last}, constant beyond"
    return "long, see the formula" if is_long(expr, _LONG) else _readable(expr)


def _readable(expr: sympy.Expr) -> str:
    """Write an expression with irrational constants as decimals; only name a long extension."""
    degree = max((int(e.args[0]) for e in expr.atoms(LaguerreExtension)), default=0)
    if degree > _SHORT:
        return f"a polynomial of degree {degree}, see the formula"
    shown = _explicit(expr)
    tree = sympy.preorder_traversal(shown)
    constants: dict[sympy.Expr, sympy.Expr] = {}
    for node in tree:
        if getattr(node, "is_number", False):
            tree.skip()
            if not node.is_Rational:
                constants[node] = _six_digits(node)
    shown = shown.xreplace(constants)  # which multiplies some of them
    return text(shown.xreplace({x: _six_digits(x) for x in shown.atoms(sympy.Float)}))


def _six_digits(number: sympy.Expr) -> sympy.Expr:
    value = real(number, 20)
    if value is None:  # in a case that is never reached
        return sympy.Symbol("undefined")
    return sympy.Float(float(f"{float(value):.6g}"))
