"""A smaller case that shows the same disagreement."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator

from prove import reading
from prove.grammar import Case

TRIES = 60
"""Cases tried for one disagreement: each costs a tenth of a second or so."""


def shrunk(case: Case, shows: Callable[[Case], bool], tries: int = TRIES) -> Case:
    """Return a case that still shows the disagreement, as small as greedy steps make it."""
    while tries > 0:
        for smaller in _smaller(case):
            tries -= 1
            if shows(smaller):
                case = smaller
                break
            if tries <= 0:
                break
        else:
            break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for formula in sorted(set(_formulas(case.formula)), key=len):
        used = reading.names(reading.read(formula))
        if used and len(formula) < len(case.formula):
            noises = {n: t for n, t in case.noises.items() if n in used}
            domain = {n: b for n, b in case.domain.items() if n in used}
            yield dataclasses.replace(case, formula=formula, noises=noises, domain=domain)
    for name, text in case.noises.items():
        simple = "DiscreteLaplace(1)" if "Discrete" in text else "Laplace(1)"
        if text not in ("DiscreteLaplace(1)", "Laplace(1)"):
            yield dataclasses.replace(case, noises={**case.noises, name: simple})
    for name, bounds in case.domain.items():
        for i in (0, 1):
            if bounds[i] is not None:
                wider = (*bounds[:i], None, *bounds[i + 1 :])
                yield dataclasses.replace(case, domain={**case.domain, name: wider})


def _formulas(text: str) -> Iterator[str]:
    """Yield the formula with one part replaced by a part of that, or by 1."""
    tree = reading.read(text)
    parts = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and _is_value(n)]
    for part in parts:
        inner = [n for n in ast.iter_child_nodes(part) if isinstance(n, ast.expr) and _is_value(n)]
        for new in [*inner, ast.Constant(1)]:
            if ast.dump(new) != ast.dump(part):
                yield ast.unparse(_Replace(part, new).visit(tree))


def _is_value(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not)
    return isinstance(node, ast.BinOp | ast.Call | ast.Name | ast.Constant) and not (
        isinstance(node, ast.Name) and node.id in _FUNCTIONS
    )


_FUNCTIONS = {"where", "min", "max", "abs", "exp", "log", "sqrt", "sin", "cos", "tan"} | {
    *("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
}


class _Replace(ast.NodeTransformer):
    """Copy a tree with one node exchanged; the tree itself is shared by everyone who read it."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.old:
            return self.new
        fields = {
            name: [self.visit(v) if isinstance(v, ast.AST) else v for v in value]
            if isinstance(value, list)
            else self.visit(value)
            if isinstance(value, ast.AST)
            else value
            for name, value in ast.iter_fields(node)
        }
        return type(node)(**fields)
