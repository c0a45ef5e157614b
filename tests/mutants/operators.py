"""Mutants: one small change of the code each, drawn by rule from its syntax tree."""

from __future__ import annotations

import ast
import dataclasses
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMED = {
    "min": "max",
    "any": "all",
    "floor": "ceil",
    "minimum": "maximum",
    "Min": "Max",
    "argmin": "argmax",
    "real": "imag",
    "lower": "upper",
    "low": "high",
    "left": "right",
}
NAMED |= {other: name for name, other in NAMED.items()}
"""Names and attributes that are confused most easily."""

SPEED = re.compile(
    r"MOST|MAX|LARGEST|LONG|SHORT|FEW|MANY|BLOCK|SLAB|CELLS|LEVELS|ROUNDS|HALVINGS|DOUBLINGS|NODES"
    r"|SAMPLE|TRIE[SD]|EFFORTS|DIGITS|GUARD|WORK|FINE|PIECES|ROWS|SIMPLE|LOOK|PROBES|ORDERS"
)
"""Named constants that say how much work is done, or how many digits are carried: their values are
left out, one more or less of 4096 cells is no fault."""

TEXT = {"__repr__", "__str__", "_repr_latex_", "_repr_html_"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: which node of which file, counted in the order of the walk, and how."""

    path: str
    place: int
    variant: int
    line: int
    statement: int
    """The first line of the statement around it."""
    scope: str
    """The outermost function, as Python names it; empty where the module itself runs."""
    first: int
    """Its first line."""
    before: str
    after: str
    nth: int = 1
    """Which of the equal changes of the function, or of the module around functions."""

    @property
    def key(self) -> str:
        """What names the mutant as long as its function is not rewritten."""
        nth = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.path}::{self.scope}: {self.before} → {self.after}{nth}"

    def tree(self, source: str) -> ast.Module:
        """Return the module with the change made."""
        tree = ast.parse(source)
        site = next(s for s in sites(tree) if s.place == self.place)
        site.put(variants(site)[self.variant])
        return ast.fix_missing_locations(tree)


@dataclasses.dataclass
class Site:
    """A node and where it hangs."""

    place: int
    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    scope: Scope

    def put(self, node: ast.AST) -> None:
        """Hang another node there."""
        ast.copy_location(node, self.node)
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def drawn(
    root: Path, packages: list[str], number: int, seed: int, known: Iterable[str] = ()
) -> list[Mutant]:
    """Return a sample of all mutants of the packages, the same for the same code and seed.

    Those of an earlier sample that are still there stay in it, so that it moves with the code.
    """
    files = [f for p in packages for f in sorted((root / p).glob("*.py"))]
    found = {m.key: m for f in files for m in of_file(root, f)}
    stay = [key for key in known if key in found][:number]
    others = sorted(found.keys() - set(stay))
    new = random.Random(seed).sample(others, min(number - len(stay), len(others)))
    chosen = [found[key] for key in (*stay, *new)]
    return sorted(chosen, key=lambda m: (m.path, m.line, m.place, m.variant))


def of_file(root: Path, file: Path) -> Iterator[Mutant]:
    """Yield every mutant of one file."""
    path = file.relative_to(root).as_posix()
    seen: Counter[tuple[str, ...]] = Counter()
    for site in sites(ast.parse(file.read_text("utf-8"))):
        line = getattr(site.node, "lineno", 0)
        for k, changed in enumerate(variants(site)):
            function = (site.scope.name, site.scope.first) if site.scope.function else ("", 0)
            texts = _short(site.node), _short(changed)
            if texts[0] == texts[1]:
                continue
            seen[function[0], *texts] += 1
            where = path, site.place, k, line, site.scope.statement
            yield Mutant(*where, *function, *texts, seen[function[0], *texts])


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:60]} … {text[-27:]}"


# -- places ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Scope:
    """The function or class around a node, and the first line of its statement."""

    name: str = ""
    first: int = 0
    function: bool = False
    statement: int = 0

    def below(self, node: ast.AST) -> Scope:
        """Return the scope of what hangs below a node."""
        return (
            dataclasses.replace(self, statement=node.lineno) if isinstance(node, ast.stmt) else self
        )

    def opened(self, node: ast.FunctionDef | ast.ClassDef) -> Scope:
        """Return the scope of the body of a function or class."""
        if self.function:
            return self
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        name = f"{self.name}.{node.name}" if self.name else node.name
        return dataclasses.replace(
            self, name=name, first=first, function=isinstance(node, ast.FunctionDef)
        )


def sites(tree: ast.Module) -> Iterator[Site]:
    """Yield the nodes that may be changed, in the order of the text."""
    for place, site in enumerate(_below(tree, Scope(), Scope())):
        site.place = place
        yield site


def _below(node: ast.AST, scope: Scope, body: Scope) -> Iterator[Site]:
    """Yield the sites below a node; the defaults of a function belong to what is around it."""
    for field, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _left_out(field, child):
                continue
            here = (body if field == "body" else scope).below(child)
            yield Site(0, child, node, field, index, here)
            opens = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            yield from _below(child, here, here.opened(child) if opens else here)


def _left_out(field: str, child: ast.AST) -> bool:
    """Say whether a part of the code states wording, types or speed rather than mathematics."""
    return (
        field in ("annotation", "returns", "decorator_list", "type_comment")
        or isinstance(child, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert))
        or (isinstance(child, ast.FunctionDef) and _writes_text(child))
        or (isinstance(child, ast.Call) and _makes_error(child))
        or (isinstance(child, (ast.Assign, ast.AnnAssign)) and _is_constant_of_speed(child))
        or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
    )


def _writes_text(function: ast.FunctionDef) -> bool:
    """Say whether a function only writes: its wording is for people."""
    returned = ast.unparse(function.returns) if function.returns else ""
    return function.name in TEXT or returned in ("str", "str | None", "list[str]")


def _makes_error(call: ast.Call) -> bool:
    name = ast.unparse(call.func).split(".")[-1]
    return name.endswith(("Error", "Warning")) or name in (
        "NoUnbiasedEstimator", "InfiniteVariance", "MissingExtra", "cast", "TypeVar", "warn",
    )  # fmt: skip


def _is_constant_of_speed(statement: ast.Assign | ast.AnnAssign) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return bool(names) and all(
        name == "__all__" or (name.isupper() and bool(SPEED.search(name))) for name in names
    )


# -- changes ---------------------------------------------------------------------------------------


def variants(site: Site) -> list[ast.AST]:
    """Return what may stand in place of a node."""
    node = site.node
    found: list[ast.AST] = []
    if isinstance(node, ast.Compare):
        found += _comparisons(node)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        found.append(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.BinOp):
        found += _arithmetic(node)
    elif isinstance(node, ast.UnaryOp):
        found += _signs(node)
    elif isinstance(node, ast.Constant):
        found += _constants(node)
    elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        found += _names(node)
    elif isinstance(node, ast.Slice):
        found += _slices(node)
    elif isinstance(node, ast.stmt):
        found += _statements(node)
    if site.field in ("test", "ifs") and not isinstance(node, (ast.Compare, ast.UnaryOp)):
        found.append(ast.UnaryOp(ast.Not(), node))
    return found


def _comparisons(node: ast.Compare) -> Iterator[ast.AST]:
    for k, op in enumerate(node.ops):
        for other in COMPARED[type(op)]:
            yield ast.Compare(
                node.left, [*node.ops[:k], other(), *node.ops[k + 1 :]], node.comparators
            )


def _arithmetic(node: ast.BinOp) -> Iterator[ast.AST]:
    texts = [n for n in (node.left, node.right) if _is_text(n)]
    other = COMPUTED.get(type(node.op))
    if other and not texts:
        yield ast.BinOp(node.left, other(), node.right)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _signs(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield node.operand


def _constants(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)


def _names(node: ast.Name | ast.Attribute) -> Iterator[ast.AST]:
    name = node.id if isinstance(node, ast.Name) else node.attr
    if name not in NAMED:
        return
    other = NAMED[name]
    yield (
        ast.Name(other, ast.Load())
        if isinstance(node, ast.Name)
        else ast.Attribute(node.value, other, ast.Load())
    )


def _slices(node: ast.Slice) -> Iterator[ast.AST]:
    one = ast.Constant(1)
    for end in ("lower", "upper"):
        value: Any = getattr(node, end)
        if value is not None and not isinstance(value, (ast.Constant, ast.UnaryOp)):
            for op in (ast.Add(), ast.Sub()):
                ends = {"lower": node.lower, "upper": node.upper, "step": node.step}
                yield ast.Slice(**{**ends, end: ast.BinOp(value, op, one)})
    if node.lower is None and node.upper is not None:
        yield ast.Slice(one, node.upper, node.step)
    if node.upper is None and node.lower is not None:
        yield ast.Slice(node.lower, ast.UnaryOp(ast.USub(), one), node.step)


def _statements(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
        yield ast.AugAssign(node.target, COMPUTED[type(node.op)](), node.value)
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    early = isinstance(node, ast.If) and not node.orelse
    placed = isinstance(node, ast.Assign) and not isinstance(node.targets[0], (ast.Name, ast.Tuple))
    if call or early or placed or isinstance(node, (ast.AugAssign, ast.Continue, ast.Break)):
        yield ast.Pass()
