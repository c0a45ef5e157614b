"""The estimator as mathematics and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from trueup.errors import TrueupError
from trueup.formula.build import is_long
from trueup.formula.opaque import Opaque, Table
from trueup.formula.substitution import real
from trueup.formula.text import text
from trueup.noise.extension import LaguerreExtension

if TYPE_CHECKING:
    from trueup.inverse.component import Component, Region
    from trueup.inverse.solve import Inverse

INTERVALS = {
    "exact": "exact: the noise is inverted and mapped through f",
    "ratio": "ratio r: numerator − r·denominator is noise alone, which is inverted (Fieller)",
    "projection": "a box around the noise is mapped through f; conservative",
}
"""What is said of intervals that cover as often as they say."""

_LONG = 100  # parts of a formula that is still written out
_EXPLICIT = 60
"""Extensions up to this degree are written out as polynomials."""
_MOST_REGIONS = 9


def piecewise(inverse: Inverse, what: str) -> sympy.Expr:
    """Return value or variance as one expression, cases first, the inside last."""
    return sympy.Add(*(_cases(component, what) for component in inverse.components))


def _cases(component: Component, what: str) -> sympy.Expr:
    regions = sorted(component.regions(), key=lambda r: -sum(b != 0 for b in r))
    cases = [
        (_explicit(component.worked_out(what, region)), _condition(component, region))
        for region in regions
    ]
    return cases[0][0] if len(cases) == 1 else sympy.Piecewise(*cases)


def _condition(component: Component, region: Region) -> Any:
    tests = []
    for cell, branch in zip(component.cells, region, strict=True):
        side, (low, high) = cell.operator.branches[branch].side, cell.operator.starts
        if side != "inside":
            tests.append(cell.symbol <= low if side == "below" else cell.symbol >= high)
    return sympy.And(*tests)


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
    try:
        inverse.check_variance()
        rows += [("variance", f"{line}, unbiased") for line in _lines(inverse, "variance")]
    except TrueupError as error:
        unknown = f"infinite or unknown: {inverse.infinite}" if inverse.infinite else error.message
        rows.append(("variance", unknown))
    otherwise = "normal approximation, estimate ± z·stderr"
    rows.append(("interval", INTERVALS.get(estimator.interval_method, otherwise)))
    if estimator._source.note:
        rows.append(("note", estimator._source.note))
    return "\n".join([f"Unbiased estimator of {text(estimator.estimand)}", *table(rows)])


def table(rows: list[tuple[str, str]]) -> list[str]:
    """Return labelled lines; a label that repeats is left blank."""
    lines, last = [], ""
    for label, content in rows:
        lines.append(f"  {label + ':' if label != last else '':<12}{content}")
        last = label
    return lines


def _lines(inverse: Inverse, what: str) -> list[str]:
    """Return one line per region, with its condition."""
    lines = []
    for component in inverse.components:
        regions = sorted(component.regions(), key=lambda r: sum(b != 0 for b in r))
        for region in regions[:_MOST_REGIONS]:
            where = _condition(component, region)
            formula = _shown(_explicit(component.worked_out(what, region)))
            lines.append(formula if where == sympy.true else f"{formula}   where {where}")
        if len(regions) > _MOST_REGIONS:
            lines.append(f"… and {len(regions) - _MOST_REGIONS} more cases")
    return lines if len(inverse.components) == 1 else [f"+ {line}" for line in lines]


def _shown(expr: sympy.Expr) -> str:
    """Write an expression, constants in six digits; name what is long of it, case by case."""
    tables = [e.implementation for e in expr.atoms(Opaque) if isinstance(e.implementation, Table)]
    if isinstance(expr, sympy.Piecewise) and (tables or is_long(expr, _LONG)):
        *near, (far, _) = expr.args
        return "; ".join([_shown(far), *(f"{_shown(v)} where {text(test)}" for v, test in near)])
    if tables:
        last = max(t.low + len(t.values) - 3 for t in tables)
        return f"a table on {min(t.low for t in tables)}..{last}, constant beyond"
    if is_long(expr, _LONG):
        return "long, see the formula"
    constants: dict[sympy.Expr, sympy.Expr] = {}
    tree = sympy.preorder_traversal(expr)
    for node in tree:
        if getattr(node, "is_number", False):
            tree.skip()
            if not node.is_Rational:
                constants[node] = _six_digits(node)
    shown = expr.xreplace(constants)  # which multiplies some of them
    return text(shown.xreplace({x: _six_digits(x) for x in shown.atoms(sympy.Float)}))


def _six_digits(number: sympy.Expr) -> sympy.Expr:
    value = real(number, 20)
    if value is None:  # in a case that is never reached
        return sympy.Symbol("undefined")
    return sympy.Float(float(f"{float(value):.6g}"))
