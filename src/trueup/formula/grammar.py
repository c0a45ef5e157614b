r"""Read a formula: a whitelisted grammar, no evaluation of Python.

::

    formula    = sum
    sum        = product { ("+" | "-") product }
    product    = signed { ("*" | "/") signed }
    signed     = { "+" | "-" } power
    power      = primary [ "**" signed ]
    primary    = number | name | "pi" | function "(" sum { "," sum } ")"
               | "where" "(" condition "," sum "," sum ")" | "(" sum ")"
    condition  = conjunction { "or" conjunction }
    conjunction= negation { "and" negation }
    negation   = { "not" } (comparison | "(" condition ")")
    comparison = sum ("<" | "<=" | ">" | ">=" | "==" | "!=") sum
    name       = identifier | "`" anything "`"

Precedence is Python's: ``-q**2`` is −(q²), ``2**-1`` is a half, ``**`` groups to the right.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import sympy

from trueup.errors import FormulaError
from trueup.formula import arithmetic, conditions, limits, needs
from trueup.formula.admission import admit, settle
from trueup.formula.nodes import Condition, UnfitError, Value
from trueup.formula.operations import CALLABLE, CHOICE, EXTREMA, FUNCTIONS, RESERVED, SIGNS
from trueup.formula.refusal import quoted, refusal
from trueup.formula.tokens import Token, tokens

__all__ = ["admit", "parse", "written"]

Node = Value | Condition
_Built = TypeVar("_Built")

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _POWER = range(1, 9)
_BINDING = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
_BINDING |= {"**": _POWER, **dict.fromkeys(SIGNS, _COMPARISON)}

_ELSEWHERE = {"ln": "log", "greatest": "max", "least": "min", "if": "where", "ifelse": "where"}
"""What other languages call our functions, where that is spelt otherwise."""

_COUNTED = {
    "nodes": (limits.NODES, "parts"),
    "extrema": (limits.EXTREMA, "calls of min and max"),
    "joined": (limits.JOINED, "comparisons joined by and, or"),
}


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
    if not text.strip():
        raise FormulaError(f"the formula is empty, got {text!r}", 'write one, e.g. "1/q"')
    return _Parser(text).formula()


class _Place(NamedTuple):
    """How deep the parser stands: in brackets, and in function calls."""

    depth: int = 0
    calls: int = 0

    def inside(self, *, call: bool = False) -> _Place:
        return _Place(self.depth + 1, self.calls + call)


class _Parser:
    """Precedence climbing over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(tokens(text))
        self.index = 0
        self.counts = dict.fromkeys(_COUNTED, 0)
        self.needs: list[needs.Need] = []

    def formula(self) -> Written:
        """Read the whole text."""
        node = self.expression(0, _Place())
        if self.next.kind != "end":
            raise self.unexpected(self.next)
        expr = self.build(0, settle, self.value(node, 0).expr)
        return Written(expr, needs.lost(self.needs, expr))

    @property
    def next(self) -> Token:
        return self.tokens[self.index]

    def expression(self, least: int, place: _Place) -> Node:
        """Read operators that bind at least so tightly."""
        start = self.next.start
        left = self.prefix(place)
        while (binding := self.binding()) and binding >= least:
            left = self.infix(left, start, binding, place)
        return left

    def binding(self) -> int:
        """Return how tightly the next operator binds, 0 if none comes next."""
        token = self.next
        return 0 if token.kind == "quoted" else _BINDING.get(token.value, 0)

    def infix(self, left: Node, start: int, binding: int, place: _Place) -> Node:
        """Read one operator, or a chain of its kind, and what follows."""
        if binding in (_SUM, _PRODUCT):
            return self.chain(self.value(left, start), start, binding, place)
        if binding in (_OR, _AND):
            return self.joined(self.condition(left, start), start, binding, place)
        if binding == _COMPARISON:
            return self.comparison(self.value(left, start), start, place)
        base = self.value(left, start)
        self.take()
        exponent = self.operand(_SIGN, place.inside())
        self.needs += needs.of_power(base.expr, exponent.expr)
        return self.build(start, arithmetic.power, base, exponent)

    def chain(self, first: Value, start: int, binding: int, place: _Place) -> Value:
        """Read a sum or a product as a whole, so that sympy sees all parts at once."""
        parts = [first]
        inverse = arithmetic.negative if binding == _SUM else arithmetic.reciprocal
        while self.binding() == binding:
            sign = self.take()
            at = start if binding == _PRODUCT else self.next.start
            part = self.operand(binding + 1, place)
            if sign.value == "/":
                self.needs += needs.of_power(part.expr, arithmetic.MINUS_ONE.expr)
            parts.append(self.build(at, inverse, part) if sign.value in "-/" else part)
        return self.build(start, arithmetic.total if binding == _SUM else arithmetic.product, parts)

    def joined(self, first: Condition, start: int, binding: int, place: _Place) -> Condition:
        """Read a chain of `and` or of `or`."""
        word = self.next.value
        parts = [first]
        while self.binding() == binding:
            self.count("joined", self.take(), 2 if len(parts) == 1 else 1)
            at, before = self.next.start, len(self.needs)
            part = self.condition(self.expression(binding + 1, place), at)
            self.decided(before, conditions.join(word, parts), word == "and")
            parts.append(part)
        return self.build(start, conditions.join, word, parts)

    def comparison(self, left: Value, start: int, place: _Place) -> Condition:
        """Read one comparison; a chain is refused."""
        sign = self.take()
        right = self.operand(_SUM, place)
        if self.binding() == _COMPARISON:
            problem = "comparisons cannot be chained"
            raise refusal(self.text, self.next.start, problem, "write (1 < q) and (q < 2)")
        return self.build(start, conditions.compare, sign.value, left, right)

    def operand(self, least: int, place: _Place) -> Value:
        """Read an operand that must be a value."""
        start = self.next.start
        return self.value(self.expression(least, place), start)

    def prefix(self, place: _Place) -> Node:
        """Read a number, a name, a call, a bracket, or a sign before one."""
        token = self.take()
        self.check_place(token, place)
        if token.kind == "number":
            return self.build(token.start, arithmetic.literal, token.value)
        if token.kind == "quoted":
            return arithmetic.variable(token.value)
        if token.kind == "word":
            return self.word(token, place)
        if token.value == "(":
            inner = self.expression(0, place.inside())
            self.close(token)
            return inner
        if token.value not in ("+", "-"):
            raise self.unexpected(token)
        value = self.operand(_SIGN, place.inside())
        return value if token.value == "+" else self.build(token.start, arithmetic.negative, value)

    def word(self, token: Token, place: _Place) -> Node:
        """Read a name, π, `not` or a function call."""
        if token.value == "not":
            start = self.next.start
            inner = self.condition(self.expression(_NOT, place.inside()), start)
            return self.build(token.start, conditions.opposite, inner)
        if token.value not in _BINDING and self.take_sign("("):
            return self.call(token, place)
        if token.value == "pi":
            return arithmetic.constant(sympy.pi)
        if token.value in RESERVED:
            problem = f"{quoted(token.value)} is a word of the grammar, not a variable"
            hint = f"put the name in backticks, `{token.value}`, if it is meant as a variable"
            raise refusal(self.text, token.start, problem, hint)
        return arithmetic.variable(token.value)

    def call(self, token: Token, place: _Place) -> Value:
        """Read the arguments of a function and the closing bracket."""
        name = token.value
        if name not in CALLABLE:
            raise self.unknown(token)
        first, *rest = self.arguments(name, place.inside(call=name != CHOICE))
        self.close(token)
        if isinstance(first, Condition):
            if len(rest) != 2:
                raise self.miscounted(token, len(rest) + 1)
            return self.build(token.start, conditions.choose, first, *rest)
        if name in EXTREMA and rest:
            self.count("extrema", token)
            return self.build(token.start, arithmetic.extremum, name, [first, *rest])
        if name in FUNCTIONS and not rest:
            self.needs += needs.of_call(name, first.expr)
            return self.build(token.start, arithmetic.call, name, first)
        raise self.miscounted(token, len(rest) + 1)

    def arguments(self, name: str, place: _Place) -> list[Any]:
        """Read arguments up to the closing bracket: values, the first of `where` a condition."""
        found: list[Node] = []
        while not found or self.take_sign(","):
            start, before = self.next.start, len(self.needs)
            node = self.expression(0, place)
            conditional = name == CHOICE and not found
            if name == CHOICE and found:
                self.decided(before, found[0], len(found) == 1)
            found.append((self.condition if conditional else self.value)(node, start))
        return found

    def decided(self, before: int, test: Node, holds: bool) -> None:
        """Say of what was read since that it is only looked at where a condition holds, or not."""
        if len(self.needs) > before:
            case = test.expr if holds else sympy.Not(test.expr)
            self.needs[before:] = [need.under(case) for need in self.needs[before:]]

    def close(self, opening: Token) -> None:
        """Step over the closing bracket."""
        if not self.take_sign(")"):
            raise self.unexpected(self.next, f"the bracket of {quoted(opening.value)} is open")

    def take(self) -> Token:
        """Step over the next token."""
        token = self.next
        self.index += 1
        self.count("nodes", token)
        return token

    def take_sign(self, sign: str) -> bool:
        """Step over the sign if it comes next."""
        found = self.next.kind == "sign" and self.next.value == sign
        self.index += found
        return found

    def value(self, node: Node, start: int) -> Value:
        """Return a node that is a value, or refuse the condition."""
        if isinstance(node, Value):
            return node
        problem = f"the condition {self.since(start)} stands where a value is needed"
        raise refusal(self.text, start, problem, "write where(condition, 1, 0)")

    def condition(self, node: Node, start: int) -> Condition:
        """Return a node that is a condition, or refuse the value."""
        if isinstance(node, Condition):
            return node
        problem = f"the value {self.since(start)} stands where a condition is needed"
        raise refusal(self.text, start, problem, "compare it, e.g. where(q > 0, 1, 0)")

    def build(self, start: int, make: Callable[..., _Built], *args: Any) -> _Built:
        """Build a node; where it is unfit, say where it stands."""
        try:
            return make(*args)
        except UnfitError as unfit:
            problem = f"{self.since(start)} {unfit.reason}"
            raise refusal(self.text, start, problem, unfit.hint) from None

    def since(self, start: int) -> str:
        """Return the text read since a place, as shown in messages."""
        return quoted(self.text[start : self.tokens[self.index - 1].end])

    def count(self, what: str, token: Token, by: int = 1) -> None:
        """Count towards a limit."""
        self.counts[what] += by
        limit, plural = _COUNTED[what]
        if self.counts[what] > limit:
            problem = f"the formula has more than {limit} {plural}"
            raise refusal(self.text, token.start, problem, "split the formula or simplify it")

    def check_place(self, token: Token, place: _Place) -> None:
        """Refuse what is nested too deeply."""
        for depth, limit in zip(place, (limits.DEPTH, limits.CALLS), strict=True):
            if depth > limit:
                problem = f"the formula is nested more than {limit} deep"
                raise refusal(self.text, token.start, problem, "remove brackets or split it")

    def unexpected(self, token: Token, problem: str = "") -> FormulaError:
        """Return the error for a token that does not belong there."""
        found = "the end of the formula" if token.kind == "end" else quoted(token.value)
        problem = f"{problem}, found {found}" if problem else f"did not expect {found}"
        value = token.kind in ("number", "word", "quoted") or token.value == "("
        hint = "write * to multiply" if value else "a name, a number or a bracket is missing here"
        return refusal(self.text, token.start, problem, hint)

    def unknown(self, token: Token) -> FormulaError:
        """Return the error for a function outside the grammar."""
        word = token.value.lower()
        close = [_ELSEWHERE.get(word), *difflib.get_close_matches(word, CALLABLE, 1)]
        meant = next((name for name in close if name), None)
        known = f"the functions are {', '.join(CALLABLE)}; write * to multiply"
        hint = f"did you mean {meant}? Otherwise, {known}" if meant else known
        return refusal(self.text, token.start, f"unknown function {quoted(token.value)}", hint)

    def miscounted(self, token: Token, given: int) -> FormulaError:
        """Return the error for too few or too many arguments."""
        name = token.value
        usage = f"{name}(a, b, ...)" if name in EXTREMA else f"{name}(a)"
        usage = "where(condition, a, b)" if name == CHOICE else usage
        problem = f"{name} cannot take {given} argument{'s' if given > 1 else ''}"
        return refusal(self.text, token.start, problem, f"write {usage}")
