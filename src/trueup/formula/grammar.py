r"""Read a formula: a whitelist of Python's syntax tree, nothing is executed.

::

    formula    = sums, products and powers of numbers, names, pi, f(a), min(a, b, …), max(a, b, …)
               | where(condition, a, b)
    condition  = comparisons with < <= > >= == !=, joined by and, or, not
    name       = identifier | "`" anything "`"

The text is cut into tokens, whose order and number are checked. Python then parses the same signs
with a placeholder for every number and name, so precedence is Python's: ``-q**2`` is −(q²),
``2**-1`` is a half, ``**`` groups to the right.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import sympy

from trueup.errors import FormulaError
from trueup.formula import build, limits
from trueup.formula.build import UnfitError
from trueup.formula.operations import CHOICE, EXTREMA
from trueup.formula.refusal import quoted, refusal
from trueup.formula.tokens import Kind, Token, tokens

_Built = TypeVar("_Built")

_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_BINARY = ("+", "-", "*", "/", "**", "and", "or", *_SIGNS.values())
_SUMS, _PRODUCTS = (ast.Add, ast.Sub), (ast.Mult, ast.Div)


def parse(text: str) -> sympy.Expr:
    """Return the formula as a sympy expression in real symbols.

    Parameters
    ----------
    text
        Names, numbers, ``+ - * / **``, brackets, ``abs min max exp log sqrt``, trigonometric and
        hyperbolic functions and their inverses, ``pi``, ``where(condition, a, b)``. Names that
        are not identifiers go between backticks.

    Examples
    --------
    >>> parse("-q**2/3 + max(q, 0)")
    -q**2/3 + Max(0, q)
    >>> parse("where(n >= 1, `pay roll`/n, 0)")
    Piecewise((pay roll/n, n >= 1), (0, True))
    """
    if not isinstance(text, str):
        hint = 'give the formula as text, e.g. "1/q"'
        raise FormulaError(f"a formula must be text, got {quoted(repr(text))}", hint)
    return written(str(text)).expr


class Written(NamedTuple):
    """A formula as sympy has it, and parts as written that are not real numbers everywhere."""

    expr: sympy.Expr
    partial: tuple[sympy.Expr, ...]


@lru_cache(maxsize=512)
def written(text: str) -> Written:
    """Return the formula, and which parts must be real numbers as it is written.

    Examples
    --------
    >>> written("sqrt(q)**2")
    Written(expr=q, partial=(sqrt(q),))
    """
    if len(text) > limits.CHARACTERS:
        problem = f"the formula has {len(text)} characters, more than {limits.CHARACTERS}"
        raise FormulaError(f"{problem}: {quoted(text)}", "shorten it")
    return read(text)


def read(text: str) -> Written:
    """Return the formula of a text of any length."""
    if not text.strip():
        raise FormulaError(f"the formula is empty, got {text!r}", 'write one, e.g. "1/q"')
    reader = _Reader(text)
    expr = reader.formula()
    partial = [part for part in dict.fromkeys(reader.partial) if part.free_symbols]
    if not expr.has(sympy.Abs, sympy.Min, sympy.Max, sympy.Piecewise):  # no case hides a part
        shown = set(sympy.preorder_traversal(expr))
        partial = [part for part in partial if part not in shown]
    return Written(expr, tuple(partial))


def _check_order(text: str, found: Sequence[Token]) -> None:
    """Refuse the first token that cannot stand where it does: Python's errors say less."""
    open_: list[Token] = []
    operand, count = True, 0  # whether an operand comes next, and the parts so far
    for before, token in zip((found[-1], *found), found, strict=False):
        count += token.value not in (")", ",", "")
        if len(open_) > limits.DEPTH:
            raise _too_deep(text, token.start, limits.DEPTH)
        if count > limits.NODES:
            raise _too_many(text, token.start, limits.NODES, "parts")
        if operand:
            if token.kind is Kind.SIGN and token.value == "(":
                open_.append(before if before.kind is Kind.CALL else token)
            elif token.kind is Kind.END or (
                token.kind is Kind.SIGN and token.value not in ("+", "-", "not")
            ):
                raise _unexpected(text, token)
            operand = token.kind in (Kind.SIGN, Kind.CALL)
        elif token.kind is Kind.SIGN and token.value == ")" and open_:
            open_.pop()
        elif token.kind is Kind.SIGN and (
            token.value in _BINARY
            or (token.value == "," and bool(open_) and open_[-1].kind is Kind.CALL)
        ):
            operand = True
        elif token.kind is not Kind.END or open_:
            problem = f"the bracket of {quoted(open_[-1].value)} is open" if open_ else ""
            raise _unexpected(text, token, problem)


_PARTIAL = ("sqrt", "log", "asin", "acos", "acosh", "atanh")  # not real numbers everywhere


class _Reader:
    """A text, its syntax tree, and what is built of it, node by node."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.partial: list[sympy.Expr] = []
        self.counts: Counter[str] = Counter()
        found = list(tokens(text))
        _check_order(text, found)
        self.starts: dict[int, Token] = {}
        self.ends: dict[int, Token] = {}
        self.code = ""
        for token in found[:-1]:
            self.starts[len(self.code)] = token
            self.code += token.value if token.kind is Kind.SIGN else "_"
            self.ends[len(self.code)] = token
            self.code += " "

    def formula(self) -> sympy.Expr:
        """Return the formula."""
        try:
            tree = ast.parse(self.code, mode="eval").body
        except SyntaxError as error:  # of what is left only a `not` in the midst of a sum
            found = self.starts.get((error.offset or 1) - 1, self.starts[0])
            raise _unexpected(self.text, found) from None
        return self.build(tree, build.settle, self.value(tree, 0))

    def value(self, node: ast.expr, depth: int) -> sympy.Expr:
        """Return the value of a node, or refuse a condition."""
        self.check_depth(node, depth)
        match node:
            case ast.Name():
                return self.leaf(node)
            case ast.BinOp(op=ast.Pow()):
                return self.power(node, depth)
            case ast.BinOp():
                return self.chain(node, depth)
            case ast.Call():
                return self.call(node, depth + 1)
            case ast.UnaryOp(op=ast.USub()):
                return self.build(node, build.negative, self.value(node.operand, depth + 1))
            case ast.UnaryOp(op=ast.UAdd()):
                return self.value(node.operand, depth + 1)
        problem = f"the condition {self.shown(node)} stands where a value is needed"
        raise self.refusal(node, problem, "write where(condition, 1, 0)")

    def leaf(self, node: ast.Name) -> sympy.Expr:
        """Return a number, π or a variable."""
        token = self.starts[node.col_offset]
        if token.kind is Kind.NAME:
            return build.variable(token.value)
        return sympy.pi if token.value == "pi" else self.build(node, build.literal, token.value)

    def chain(self, node: ast.BinOp, depth: int) -> sympy.Expr:
        """Return a sum or a product as a whole, so that sympy sees all parts at once."""
        kinds = _SUMS if isinstance(node.op, _SUMS) else _PRODUCTS
        links: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp) and isinstance(first.op, kinds):
            links.insert(0, first)
            first = first.left
        parts = [self.value(first, depth)]
        for link in links:
            part = self.value(link.right, depth)
            if isinstance(link.op, ast.Sub):
                part = self.build(link.right, build.negative, part)
            elif isinstance(link.op, ast.Div):
                cancels = part.is_rational_function()
                part = self.build(link, build.reciprocal, part)
                self.partial += [] if cancels else [part]
            parts.append(part)
        return self.build(node, build.total if kinds is _SUMS else build.product, parts)

    def power(self, node: ast.BinOp, depth: int) -> sympy.Expr:
        """Return a power."""
        base, exponent = self.value(node.left, depth), self.value(node.right, depth + 1)
        found = self.build(node, build.power, base, exponent)
        real = exponent.is_Integer and (exponent > 0 or base.is_rational_function())
        self.partial += [] if real or exponent.free_symbols else [found]
        return found

    def call(self, node: ast.Call, depth: int) -> sympy.Expr:
        """Return what a function makes of its arguments."""
        name, count = self.starts[node.col_offset].value, len(node.args)
        if name == CHOICE and count == 3:
            return self.choice(node, depth)
        if name == CHOICE or (count < 2 if name in EXTREMA else count != 1):
            several = "condition, a, b" if name == CHOICE else "a, b, ..."
            usage = f"{name}({several if name in (CHOICE, *EXTREMA) else 'a'})"
            problem = f"{name} cannot take {count} argument{'s' if count > 1 else ''}"
            raise self.refusal(node, problem, f"write {usage}")
        self.counts["inside"] += 1
        if self.counts["inside"] > limits.CALLS:
            raise _too_deep(self.text, self.start(node), limits.CALLS)
        values = [self.value(arg, depth) for arg in node.args]
        self.counts["inside"] -= 1
        if name in EXTREMA:
            self.count(node, 1, limits.EXTREMA, "calls of min and max")
            return self.build(node, build.extremum, name, values)
        found = self.build(node, build.call, name, values[0])
        self.partial += [found] if name in _PARTIAL else []
        return found

    def choice(self, node: ast.Call, depth: int) -> sympy.Expr:
        """Return one value where a condition holds and another elsewhere."""
        test = self.condition(node.args[0], depth)
        values = []
        for arg, case in zip(node.args[1:], (test, sympy.Not(test)), strict=True):
            before = len(self.partial)
            values.append(self.value(arg, depth))
            self.under(before, case)
        return self.build(node, build.choose, test, *values)

    def condition(self, node: ast.expr, depth: int) -> sympy.Basic:
        """Return the condition of a node, or refuse a value."""
        self.check_depth(node, depth)
        match node:
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.BoolOp():
                return self.connected(node, depth)
            case ast.UnaryOp(op=ast.Not()):
                return sympy.Not(self.condition(node.operand, depth + 1))
        problem = f"the value {self.shown(node)} stands where a condition is needed"
        raise self.refusal(node, problem, "compare it, e.g. where(q > 0, 1, 0)")

    def comparison(self, node: ast.Compare, depth: int) -> sympy.Basic:
        """Return one comparison, or a chain of them, 0 < q <= 1, joined by `and`."""
        values = [self.value(side, depth) for side in (node.left, *node.comparators)]
        found = [
            self.build(node, build.compare, _SIGNS[type(op)], left, right)
            for op, left, right in zip(node.ops, values, values[1:], strict=False)
        ]
        if len(found) > 1:
            self.count(node, len(found), limits.JOINED, _JOINED)
        return sympy.And(*found)

    def connected(self, node: ast.BoolOp, depth: int) -> sympy.Basic:
        """Return conditions joined by `and` or by `or`."""
        self.count(node, len(node.values), limits.JOINED, _JOINED)
        conjunction = isinstance(node.op, ast.And)
        kind = sympy.And if conjunction else sympy.Or
        parts: list[sympy.Basic] = []
        for value in node.values:
            before = len(self.partial)
            parts.append(self.condition(value, depth))
            if len(self.partial) > before:
                test = kind(*parts[:-1])
                self.under(before, test if conjunction else sympy.Not(test))
        return kind(*parts)

    def under(self, before: int, case: sympy.Basic) -> None:
        """Say of parts since then that they are only looked at in a case."""
        self.partial[before:] = [
            sympy.Piecewise((part, case), (sympy.S.One, True)) for part in self.partial[before:]
        ]

    def build(self, node: ast.expr, make: Callable[..., _Built], *args: Any) -> _Built:
        """Build a part; where it is unfit, say where it stands."""
        try:
            return make(*args)
        except UnfitError as unfit:
            raise self.refusal(node, f"{self.shown(node)} {unfit.reason}", unfit.hint) from None

    def count(self, node: ast.expr, more: int, most: int, plural: str) -> None:
        """Refuse too many parts of a kind."""
        self.counts[plural] += more
        if self.counts[plural] > most:
            raise _too_many(self.text, self.start(node), most, plural)

    def check_depth(self, node: ast.expr, depth: int) -> None:
        if depth > limits.DEPTH:
            raise _too_deep(self.text, self.start(node), limits.DEPTH)

    def start(self, node: ast.expr) -> int:
        """Return where a node begins in the text."""
        return self.starts[node.col_offset].start

    def shown(self, node: ast.expr) -> str:
        """Return the text of a node, as shown in messages."""
        return quoted(self.text[self.start(node) : self.ends[node.end_col_offset or 0].end])

    def refusal(self, node: ast.expr, problem: str, hint: str) -> FormulaError:
        return refusal(self.text, self.start(node), problem, hint)


_JOINED = "comparisons joined by and, or"


def _too_deep(text: str, start: int, most: int) -> FormulaError:
    problem = f"the formula is nested more than {most} deep"
    return refusal(text, start, problem, "remove brackets or split it")


def _too_many(text: str, start: int, most: int, plural: str) -> FormulaError:
    problem = f"the formula has more than {most} {plural}"
    return refusal(text, start, problem, "split the formula or simplify it")


def _unexpected(text: str, token: Token, problem: str = "") -> FormulaError:
    """Return the error for a token that does not belong there."""
    found = "the end of the formula" if token.kind is Kind.END else quoted(token.value)
    problem = f"{problem}, found {found}" if problem else f"did not expect {found}"
    value = token.kind in (Kind.NUMBER, Kind.NAME, Kind.CALL) or token.value == "("
    hint = "write * to multiply" if value else "a name, a number or a bracket is missing here"
    return refusal(text, token.start, problem, hint)
