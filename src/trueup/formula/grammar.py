r"""Read a formula: a whitelist of Python's syntax tree, nothing is executed.

::

    formula    = sums, products and powers of numbers, names, pi, f(a), min(a, b, …), max(a, b, …)
               | where(condition, a, b)
    condition  = comparisons with < <= > >= == !=, joined by and, or, not
    name       = identifier | "`" anything "`"

The text is cut into tokens, whose order, depth and number are checked. Python then parses the
same signs with a placeholder for every number and name, so precedence is Python's: ``-q**2`` is
−(q²), ``2**-1`` is a half, ``**`` groups to the right.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import sympy

from trueup.errors import FormulaError
from trueup.formula import build, limits, needs
from trueup.formula.build import UnfitError, Value
from trueup.formula.operations import CALLABLE, CHOICE, EXTREMA, FUNCTIONS, RESERVED
from trueup.formula.refusal import quoted, refusal
from trueup.formula.tokens import Kind, Token, tokens

_Built = TypeVar("_Built")

_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_BINARY = ("+", "-", "*", "/", "**", *_SIGNS.values())
_WORDS = ("and", "or", "not")

_ELSEWHERE = {"ln": "log", "greatest": "max", "least": "min", "if": "where", "ifelse": "where"}
"""What other languages call our functions, where that is spelt otherwise."""


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
    """A formula as sympy has it, and what it needs as written where that does not show."""

    expr: sympy.Expr
    needs: tuple[needs.Need, ...]


@lru_cache(maxsize=512)
def written(text: str) -> Written:
    """Return the formula, and what it needs as it is written.

    Examples
    --------
    >>> written("sqrt(q)**2")
    Written(expr=q, needs=(Need(expr=q, divides=False, where=True),))
    """
    if len(text) > limits.CHARACTERS:
        problem = f"the formula has {len(text)} characters, more than {limits.CHARACTERS}"
        raise FormulaError(f"{problem}: {quoted(text)}", "shorten it")
    return read(text)


def read(text: str) -> Written:
    """Return the formula of a text of any length."""
    if not text.strip():
        raise FormulaError(f"the formula is empty, got {text!r}", 'write one, e.g. "1/q"')
    syntax = _Syntax(text)
    builder = _Builder(syntax)
    value = builder.value(syntax.tree, 0)
    expr = builder.build(syntax.tree, build.settle, value.expr)
    return Written(expr, needs.lost(builder.needs, expr))


class _Syntax:
    """The syntax tree of a text, and where its nodes stand in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(tokens(text))
        _Order(text, self.tokens).check()
        parts = [t.value if _stays(t) else f"_{i}" for i, t in enumerate(self.tokens[:-1])]
        self.starts: dict[int, Token] = {}
        self.ends: dict[int, Token] = {}
        place = 0
        for token, part in zip(self.tokens, parts, strict=False):
            self.starts[place], self.ends[place + len(part)] = token, token
            place += len(part) + 1
        try:
            self.tree = ast.parse(" ".join(parts), mode="eval").body
        except SyntaxError as error:  # of what is left only a `not` in the midst of a sum
            found = self.starts.get((error.offset or 1) - 1, self.tokens[-1])
            raise _unexpected(text, found) from None

    def token(self, name: ast.Name) -> Token:
        """Return the number or the name behind a placeholder."""
        return self.tokens[int(name.id[1:])]

    def start(self, node: ast.expr) -> int:
        """Return where a node begins in the text."""
        return self.starts[node.col_offset].start

    def shown(self, first: ast.expr, last: ast.expr) -> str:
        """Return the text from one node to the end of another, as shown in messages."""
        return quoted(self.text[self.start(first) : self.ends[last.end_col_offset or 0].end])


def _stays(token: Token) -> bool:
    return token.kind is Kind.SIGN or (token.kind is Kind.WORD and token.value in _WORDS)


class _Order:
    """Whether operands and signs take turns and brackets match: Python's errors say less."""

    def __init__(self, text: str, found: Sequence[Token]) -> None:
        self.text, self.tokens = text, found
        self.open: list[Token] = []
        self.count = self.prefixes = 0

    def check(self) -> None:
        """Refuse the first token that cannot stand where it does."""
        operand_next, end = True, self.tokens[-1]
        for before, token, after in zip(
            (end, *self.tokens), self.tokens, (*self.tokens[1:], end), strict=False
        ):
            if operand_next:
                operand_next = self.operand(token, after)
            else:
                operand_next = self.operator(token, before)
            self.limit(token)

    def operand(self, token: Token, after: Token) -> bool:
        """Read a token where an operand begins; tell whether one is still to come."""
        if token.value == "(" and token.kind is Kind.SIGN:
            self.open.append(token)
            return True
        if token.value in ("+", "-") or (token.value == "not" and token.kind is Kind.WORD):
            self.prefixes += 1
            return True
        if token.kind in (Kind.SIGN, Kind.END):
            raise _unexpected(self.text, token)
        self.prefixes = 0
        if token.kind is Kind.WORD and token.value not in _WORDS:
            called = after.kind is Kind.SIGN and after.value == "("
            if called and token.value not in CALLABLE:
                raise _unknown(self.text, token)
            if called:
                return False
        if token.kind is Kind.WORD and token.value in RESERVED and token.value != "pi":
            problem = f"{quoted(token.value)} is a word of the grammar, not a variable"
            hint = f"put the name in backticks, `{token.value}`, if it is meant as a variable"
            raise refusal(self.text, token.start, problem, hint)
        return False

    def operator(self, token: Token, before: Token) -> bool:
        """Read a token after an operand; tell whether an operand comes next."""
        if token.kind is Kind.SIGN:
            if token.value in _BINARY:
                return True
            if token.value == "(" and before.kind is Kind.WORD and before.value in CALLABLE:
                self.open.append(before)
                return True
            if token.value == ")" and self.open:
                self.open.pop()
                return False
            if token.value == "," and self.open and self.open[-1].kind is Kind.WORD:
                return True
        if token.kind is Kind.WORD and token.value in ("and", "or"):
            return True
        if token.kind is Kind.END and not self.open:
            return False
        problem = f"the bracket of {quoted(self.open[-1].value)} is open" if self.open else ""
        raise _unexpected(self.text, token, problem)

    def limit(self, token: Token) -> None:
        """Refuse what is too long or nested too deeply."""
        self.count += token.value not in (")", ",", "")
        calls = sum(o.kind is Kind.WORD and o.value != CHOICE for o in self.open)
        for size, most in (
            (len(self.open) + self.prefixes, limits.DEPTH),
            (calls, limits.CALLS),
        ):
            if size > most:
                raise _too_deep(self.text, token.start, most)
        if self.count > limits.NODES:
            raise _too_many(self.text, token.start, limits.NODES, "parts")


class _Builder:
    """Build the value of a syntax tree, node by node."""

    def __init__(self, syntax: _Syntax) -> None:
        self.syntax = syntax
        self.extrema = self.joined = 0
        self.needs: list[needs.Need] = []

    def value(self, node: ast.expr, depth: int) -> Value:
        """Return the value of a node, or refuse a condition."""
        if depth > limits.DEPTH:
            raise _too_deep(self.syntax.text, self.syntax.start(node), limits.DEPTH)
        if isinstance(node, ast.Name):
            return self.leaf(node)
        if isinstance(node, ast.BinOp):
            of = self.power if isinstance(node.op, ast.Pow) else self.chain
            return of(node, depth)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node, self.syntax.token(node.func), depth + 1)
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            value = self.value(node.operand, depth + 1)
            minus = isinstance(node.op, ast.USub)
            return self.build(node, build.negative, value) if minus else value
        problem = f"the condition {self.syntax.shown(node, node)} stands where a value is needed"
        raise self.refusal(node, problem, "write where(condition, 1, 0)")

    def leaf(self, node: ast.Name) -> Value:
        """Return a number, π or a variable."""
        token = self.syntax.token(node)
        if token.kind is Kind.NUMBER:
            return self.build(node, build.literal, token.value)
        if token.kind is Kind.WORD and token.value == "pi":
            return build.constant(sympy.pi)
        return build.variable(token.value)

    def chain(self, node: ast.BinOp, depth: int) -> Value:
        """Return a sum or a product as a whole, so that sympy sees all parts at once."""
        additive = isinstance(node.op, (ast.Add, ast.Sub))
        kinds = (ast.Add, ast.Sub) if additive else (ast.Mult, ast.Div)
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
                self.needs += needs.of_power(part.expr, sympy.S.NegativeOne)
                part = self.build(link, build.reciprocal, part)
            parts.append(part)
        return self.build(node, build.total if additive else build.product, parts)

    def power(self, node: ast.BinOp, depth: int) -> Value:
        """Return a power."""
        base, exponent = self.value(node.left, depth), self.value(node.right, depth + 1)
        self.needs += needs.of_power(base.expr, exponent.expr)
        return self.build(node, build.power, base, exponent)

    def call(self, node: ast.Call, function: Token, depth: int) -> Value:
        """Return what a function makes of its arguments."""
        name, count = function.value, len(node.args)
        if name == CHOICE and count == 3:
            return self.choice(node, depth)
        if name in EXTREMA and count > 1:
            self.extrema += 1
            self.limit(node, self.extrema, limits.EXTREMA, "calls of min and max")
            values = [self.value(arg, depth) for arg in node.args]
            return self.build(node, build.extremum, name, values)
        if name in FUNCTIONS and count == 1:
            argument = self.value(node.args[0], depth)
            self.needs += needs.of_call(name, argument.expr)
            return self.build(node, build.call, name, argument)
        usage = f"{name}(a, b, ...)" if name in EXTREMA else f"{name}(a)"
        usage = "where(condition, a, b)" if name == CHOICE else usage
        problem = f"{name} cannot take {count} argument{'s' if count > 1 else ''}"
        raise self.refusal(node, problem, f"write {usage}")

    def choice(self, node: ast.Call, depth: int) -> Value:
        """Return one value where a condition holds and another elsewhere."""
        test = self.condition(node.args[0], depth)
        values = []
        for arg, case in zip(node.args[1:], (test, sympy.Not(test)), strict=True):
            before = len(self.needs)
            values.append(self.value(arg, depth))
            self.under(before, case)
        return self.build(node, build.choose, test, *values)

    def condition(self, node: ast.expr, depth: int) -> sympy.Basic:
        """Return the condition of a node, or refuse a value."""
        if depth > limits.DEPTH:
            raise _too_deep(self.syntax.text, self.syntax.start(node), limits.DEPTH)
        if isinstance(node, ast.Compare):
            return self.comparison(node, depth)
        if isinstance(node, ast.BoolOp):
            return self.connected(node, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return sympy.Not(self.condition(node.operand, depth + 1))
        problem = f"the value {self.syntax.shown(node, node)} stands where a condition is needed"
        raise self.refusal(node, problem, "compare it, e.g. where(q > 0, 1, 0)")

    def comparison(self, node: ast.Compare, depth: int) -> sympy.Basic:
        """Return one comparison, or a chain of them, 0 < q <= 1, joined by `and`."""
        sides = [node.left, *node.comparators]
        values = [self.value(side, depth) for side in sides]
        found = [
            self.build(node, build.compare, _SIGNS[type(op)], left, right)
            for op, left, right in zip(node.ops, values, values[1:], strict=False)
        ]
        if len(found) > 1:
            self.join(node, len(found))
        return sympy.And(*found)

    def connected(self, node: ast.BoolOp, depth: int) -> sympy.Basic:
        """Return conditions joined by `and` or by `or`."""
        self.join(node, len(node.values))
        conjunction = isinstance(node.op, ast.And)
        kind = sympy.And if conjunction else sympy.Or
        parts: list[sympy.Basic] = []
        for value in node.values:
            before = len(self.needs)
            parts.append(self.condition(value, depth))
            if len(self.needs) > before:
                test = kind(*parts[:-1])
                self.under(before, test if conjunction else sympy.Not(test))
        return kind(*parts)

    def join(self, node: ast.expr, count: int) -> None:
        """Count comparisons that are joined."""
        self.joined += count
        self.limit(node, self.joined, limits.JOINED, "comparisons joined by and, or")

    def under(self, before: int, case: sympy.Basic) -> None:
        """Say of what was needed since that it is only looked at in a case."""
        self.needs[before:] = [need.under(case) for need in self.needs[before:]]

    def build(self, node: ast.expr, make: Callable[..., _Built], *args: Any) -> _Built:
        """Build a part; where it is unfit, say where it stands."""
        try:
            return make(*args)
        except UnfitError as unfit:
            problem = f"{self.syntax.shown(node, node)} {unfit.reason}"
            raise self.refusal(node, problem, unfit.hint) from None

    def limit(self, node: ast.expr, count: int, most: int, plural: str) -> None:
        """Refuse too many parts of a kind."""
        if count > most:
            raise _too_many(self.syntax.text, self.syntax.start(node), most, plural)

    def refusal(self, node: ast.expr, problem: str, hint: str) -> FormulaError:
        return refusal(self.syntax.text, self.syntax.start(node), problem, hint)


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
    value = token.kind in (Kind.NUMBER, Kind.WORD, Kind.QUOTED) or token.value == "("
    hint = "write * to multiply" if value else "a name, a number or a bracket is missing here"
    return refusal(text, token.start, problem, hint)


def _unknown(text: str, token: Token) -> FormulaError:
    """Return the error for a function outside the grammar."""
    word = token.value.lower()
    close = [_ELSEWHERE.get(word), *difflib.get_close_matches(word, CALLABLE, 1)]
    meant = next((name for name in close if name), None)
    known = f"the functions are {', '.join(CALLABLE)}; write * to multiply"
    hint = f"did you mean {meant}? Otherwise, {known}" if meant else known
    return refusal(text, token.start, f"unknown function {quoted(token.value)}", hint)
