r"""Read a formula: a whitelist of Python's syntax tree, nothing is executed.

::

    formula    = sums, products and powers of numbers, names, pi, f(a), min(a, b, …), max(a, b, …)
               | where(condition, a, b)
    condition  = comparisons with < <= > >= == !=, joined by and, or, not
    name       = identifier | "`" anything "`"

Python parses the same signs with a placeholder of the same length for every number and name, so
precedence is Python's: ``-q**2`` is −(q²), ``2**-1`` is a half, ``**`` groups to the right.
"""

from __future__ import annotations

import ast
import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import sympy

from trueup.errors import FormulaError, quoted
from trueup.formula import build
from trueup.formula.build import UnfitError
from trueup.formula.operations import CALLABLE, CHOICE, COMPARISONS, EXTREMA, RESERVED

_Built = TypeVar("_Built")

SPELLINGS = {"−": "-", "·": " * ", "×": " * ", "⋅": " * ", "≤": "<=", "≥": ">=", "≠": "!="}
"""Signs that are read as the usual ones; two dots are no power."""

WORD = r"[^\W\d][^\s!-/:-@\[-^`{-~−·×⋅≤≥≠]*"
"""What is read as one word; it is a name if Python takes it for an identifier."""

_HINT = (
    "write ** for powers, only the right-hand side of =, and names with other characters in "
    "backticks, `a b`, a backtick inside as two; the rest is + - * / ( ) and functions"
)
_TOKEN = re.compile(
    rf"""\s* (?: (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<word>{WORD})
      | (?P<name>`(?:[^`]|``)+`)
      | (?P<sign>\*\*|<=|>=|==|!=|[-+*/(),<>]) )
    """,
    re.VERBOSE,
)
_RESPELT = re.compile(rf"`(?:[^`]|``)+`|[{''.join(SPELLINGS)}]")

_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)  # as in COMPARISONS
_SUMS, _PRODUCTS = (ast.Add, ast.Sub), (ast.Mult, ast.Div)
_PARTIAL = ("sqrt", "log", "asin", "acos", "acosh", "atanh")  # not real numbers everywhere


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
    if len(text) > build.CHARACTERS:
        problem = f"the formula has {len(text)} characters, more than {build.CHARACTERS}"
        raise FormulaError(f"{problem}: {quoted(text)}", "shorten it")
    return written(str(text))[0]


@lru_cache(maxsize=512)
def written(text: str) -> tuple[sympy.Expr, tuple[sympy.Expr, ...]]:
    """Return the formula, and the parts that must be real numbers as it is written.

    Examples
    --------
    >>> written("sqrt(q)**2")
    (q, (sqrt(q),))
    """
    if not text.strip():
        raise FormulaError(f"the formula is empty, got {text!r}", 'write one, e.g. "1/q"')
    reader = _Reader(_RESPELT.sub(lambda m: SPELLINGS.get(m[0], m[0]), text).strip())
    expr = reader.formula()
    partial = [part for part in dict.fromkeys(reader.partial) if part.free_symbols]
    if not expr.has(sympy.Abs, sympy.Min, sympy.Max, sympy.Piecewise):  # no case hides a part
        shown = set(sympy.preorder_traversal(expr))
        partial = [part for part in partial if part not in shown]
    return expr, tuple(partial)


class _Reader:
    """A text, the same with placeholders for Python, and what is built of it, node by node."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.partial: list[sympy.Expr] = []
        self.counts: Counter[str] = Counter()

    def formula(self) -> sympy.Expr:
        """Return the formula."""
        code = self.code()
        try:
            tree = ast.parse(code, mode="eval").body
        except SyntaxError as error:
            place = (error.offset or len(code) + 1) - 1  # 0 for the end
            hint = "a name, a number or a bracket is missing, or one too many"
            raise self.refusal(place, error.msg, hint) from None
        return self.build(tree, build.settle, self.value(tree, 0))

    def code(self) -> str:
        """Return the text for Python: signs as they are, and placeholders."""
        code, operand = "", False
        while len(code) < len(self.text):
            match = _TOKEN.match(self.text, len(code))
            if match is None:
                place = len(self.text) - len(self.text[len(code) :].lstrip())
                raise self.refusal(place, f"cannot read {quoted(self.text[place])}", _HINT)
            kind, value = str(match.lastgroup), match[match.lastgroup or 0]
            start, before = match.start(kind), operand
            operand = kind != "sign" and value not in ("and", "or", "not")
            if operand and before:
                raise self.refusal(start, f"did not expect {quoted(value)}", "write * to multiply")
            self.count(start, "parts", build.NODES, value not in (")", ","))
            depth = (value == "(") - (value == ")")
            self.count(start, "brackets inside one another", build.DEPTH, depth)
            code += " " * (start - len(code)) + ("_" * len(value) if operand else value)
        return code

    # -- values ------------------------------------------------------------------------------------

    def value(self, node: ast.expr, depth: int) -> sympy.Expr:
        """Return the value of a node, or refuse it."""
        self.check(node.col_offset, "parts inside one another", build.DEPTH, depth)
        match node:
            case ast.Name():
                return self.leaf(node)
            case ast.BinOp(op=ast.Pow()):
                return self.power(node, depth)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                return self.chain(node, depth)
            case ast.Call(func=ast.Name(), keywords=[]):
                return self.call(node, depth + 1)
            case ast.UnaryOp(op=ast.USub()):
                value = self.value(node.operand, depth + 1)
                return self.build(node, build.checked, sympy.Mul, sympy.S.NegativeOne, value)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.value(node.operand, depth + 1)
        problem = f"{quoted(self.source(node))} is not a value"
        hint = "write * to multiply, and where(condition, 1, 0) for the value of a condition"
        raise self.refusal(node.col_offset, problem, hint)

    def leaf(self, node: ast.Name) -> sympy.Expr:
        """Return a number, π or a variable."""
        word = self.source(node)
        if word[0] in ".0123456789":
            return self.build(node, build.literal, word)
        if word == "pi":
            return sympy.pi
        backticks = word[0] == "`"
        name = word[1:-1].replace("``", "`") if backticks else word
        control = any(unicodedata.category(c) in ("Cc", "Cs") for c in name)
        if name in RESERVED and not backticks:
            problem = f"{quoted(name)} is a word of the grammar, not a variable"
        elif control or not name.strip() or not (backticks or name.isidentifier()):
            problem = f"{quoted(name)} is not a name"
        else:
            return build.variable(name)
        hint = "write powers with **, e.g. q**2; put other names in backticks, `a b`"
        raise self.refusal(node.col_offset, problem, hint)

    def chain(self, node: ast.BinOp, depth: int) -> sympy.Expr:
        """Return a sum or a product as a whole, so that sympy sees all parts at once."""
        kinds = _SUMS if isinstance(node.op, _SUMS) else _PRODUCTS
        links: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp) and isinstance(first.op, kinds):
            links.insert(0, first)
            first = first.left
        kind, parts = sympy.Add if kinds is _SUMS else sympy.Mul, []
        if isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.USub) and kind is sympy.Mul:
            first, parts = first.operand, [sympy.S.NegativeOne]  # -(q + 1)/s, not (-q - 1)/s
        parts.append(self.value(first, depth))
        for link in links:
            part = self.value(link.right, depth)
            if isinstance(link.op, ast.Sub):
                part = self.build(link.right, build.checked, sympy.Mul, sympy.S.NegativeOne, part)
            elif isinstance(link.op, ast.Div):
                cancels = part.is_rational_function()
                part = self.build(link, build.reciprocal, part)
                self.partial += [] if cancels else [part]
            parts.append(part)
        return self.build(node, build.checked, kind, *parts)

    def power(self, node: ast.BinOp, depth: int) -> sympy.Expr:
        """Return a power."""
        base, exponent = self.value(node.left, depth), self.value(node.right, depth + 1)
        found = self.build(node, build.power, base, exponent)
        real = exponent.is_Integer and (exponent > 0 or base.is_rational_function())
        self.partial += [] if real or exponent.free_symbols else [found]
        return found

    def call(self, node: ast.Call, depth: int) -> sympy.Expr:
        """Return what a function makes of its arguments."""
        start, count, name = node.col_offset, len(node.args), self.source(node.func)
        if name not in CALLABLE:
            close = difflib.get_close_matches(name.lower().replace("ln", "log"), CALLABLE, 1)
            meant = f"did you mean {close[0]}? Otherwise, " if close else ""
            known = f"the functions are {', '.join(CALLABLE)}; write * to multiply"
            raise self.refusal(start, f"unknown function {quoted(name)}", meant + known)
        if name == CHOICE and count == 3:
            return self.choice(node, depth)
        if name == CHOICE or (count < 2 if name in EXTREMA else count != 1):
            problem = f"{name} cannot take {count} argument{'s' if count != 1 else ''}"
            raise self.refusal(start, problem, "write where(condition, a, b), max(a, b), exp(a)")
        self.count(start, "functions inside one another", build.CALLS)
        values = [self.value(arg, depth) for arg in node.args]
        self.counts["functions inside one another"] -= 1
        if name in EXTREMA:
            self.count(start, "calls of min and max", build.EXTREMA)
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

    # -- conditions --------------------------------------------------------------------------------

    def condition(self, node: ast.expr, depth: int) -> sympy.Basic:
        """Return the condition of a node, or refuse it."""
        self.check(node.col_offset, "parts inside one another", build.DEPTH, depth)
        match node:
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.BoolOp():
                return self.connected(node, depth)
            case ast.UnaryOp(op=ast.Not()):
                return sympy.Not(self.condition(node.operand, depth + 1))
        problem = f"{quoted(self.source(node))} is not a condition"
        raise self.refusal(node.col_offset, problem, "compare it, e.g. where(q > 0, 1, 0)")

    def comparison(self, node: ast.Compare, depth: int) -> sympy.Basic:
        """Return one comparison, or a chain of them, 0 < q <= 1, joined by `and`."""
        values = [self.value(side, depth) for side in (node.left, *node.comparators)]
        kinds = dict(zip(_COMPARED, COMPARISONS.values(), strict=True))
        found = [
            self.build(node, build.compare, kinds[type(op)].symbolic, left, right)
            for op, left, right in zip(node.ops, values, values[1:], strict=False)
        ]
        more = len(found) if len(found) > 1 else 0
        self.count(node.col_offset, "comparisons joined by and, or", build.JOINED, more)
        return sympy.And(*found)

    def connected(self, node: ast.BoolOp, depth: int) -> sympy.Basic:
        """Return conditions joined by `and` or by `or`."""
        more = len(node.values)
        self.count(node.col_offset, "comparisons joined by and, or", build.JOINED, more)
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

    # -- what is refused ---------------------------------------------------------------------------

    def build(self, node: ast.expr, make: Callable[..., _Built], *args: Any) -> _Built:
        """Build a part; where it is unfit, say where it stands."""
        try:
            return make(*args)
        except UnfitError as unfit:
            problem = f"{quoted(self.source(node))} {unfit}"
            raise self.refusal(node.col_offset, problem, build.HINT) from None

    def count(self, start: int, plural: str, most: int, more: int = 1) -> None:
        """Count parts of a kind; refuse too many."""
        self.counts[plural] += more
        self.check(start, plural, most, self.counts[plural])

    def check(self, start: int, plural: str, most: int, count: int) -> None:
        if count > most:
            problem = f"the formula has more than {most} {plural}"
            raise self.refusal(start, problem, "split the formula or simplify it")

    def source(self, node: ast.expr) -> str:
        """Return the text of a node."""
        return self.text[node.col_offset : node.end_col_offset]

    def refusal(self, start: int, problem: str, hint: str) -> FormulaError:
        return FormulaError.at(self.text, start, problem, hint)
