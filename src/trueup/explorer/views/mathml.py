"""An expression as MathML: sympy's printer, with cases, plain decimals and escaped names."""

from __future__ import annotations

import html
import re
from typing import Any
from xml.dom.minidom import Text

import sympy
from sympy.printing.mathml import MathMLPresentationPrinter

_NUMBERED = re.compile(r"([A-Za-z]+)_?(\d+)", re.ASCII)


def mathml(expr: sympy.Basic, *, block: bool = True) -> str:
    """Return a ``math`` element; every name in it is text.

    Examples
    --------
    >>> n = sympy.Symbol("n", real=True)
    >>> mathml(1 / n, block=False)
    '<math><mfrac><mn>1</mn><mi>n</mi></mfrac></math>'
    """
    shape = ' display="block"' if block else ""
    return f"<math{shape}>{_Printer().doprint(decimals(expr))}</math>"


def decimals(expr: sympy.Basic) -> sympy.Basic:
    """Return the expression with irrational constants as decimals of six digits.

    Examples
    --------
    >>> x = sympy.Symbol("x")
    >>> decimals(x * sympy.exp(-sympy.Rational(1, 4)) + x)
    1.7788*x
    """
    constants: dict[sympy.Basic, sympy.Basic] = {}
    tree = sympy.preorder_traversal(expr)
    for node in tree:
        if getattr(node, "is_number", False):
            tree.skip()
            if not node.is_Rational and node.is_finite:
                constants[node] = sympy.Float(float(node.evalf(20)))
    rounded = expr.xreplace(constants)
    return rounded.xreplace({x: _six_digits(x) for x in rounded.atoms(sympy.Float)})


def _six_digits(value: sympy.Float) -> sympy.Expr:
    short = float(f"{float(value):.6g}")
    return sympy.Integer(int(short)) if short.is_integer() else sympy.Float(short)


class _Printer(MathMLPresentationPrinter):  # type: ignore[misc]
    """Sympy's printer, which leaves names unescaped and piecewise functions unset."""

    def __init__(self) -> None:
        super().__init__()
        self.dom.createTextNode = self._text

    def doprint(self, expr: sympy.Basic) -> str:
        """Return the markup, every character its own."""
        markup: str = self._print(expr).toxml()
        return markup

    def _text(self, data: str) -> Text:
        node = Text()
        node.data = "−" if data == "-" else html.unescape(data)
        node.ownerDocument = self.dom
        return node

    def _element(self, tag: str, *children: Any, **attributes: str) -> Any:
        element = self.dom.createElement(tag)
        for name, value in attributes.items():
            element.setAttribute(name, value)
        for child in children:
            element.appendChild(self._text(child) if isinstance(child, str) else child)
        return element

    def _print_Symbol(self, symbol: sympy.Symbol, style: str = "plain") -> Any:  # noqa: N802
        numbered = _NUMBERED.fullmatch(symbol.name)
        if numbered:
            name, index = self._element("mi", numbered[1]), self._element("mn", numbered[2])
            return self._element("msub", name, index)
        return self._element("mi", symbol.name)

    def _print_Piecewise(self, expr: sympy.Piecewise) -> Any:  # noqa: N802
        rows = [
            self._element(
                "mtr",
                self._element("mtd", self._print(value), columnalign="left"),
                self._element("mtd", *self._case(condition), columnalign="left"),
            )
            for value, condition in _inside_first(expr.args)
        ]
        brace = self._element("mo", "{", stretchy="true", form="prefix")
        return self._element("mrow", brace, self._element("mtable", *rows))

    def _case(self, condition: sympy.Basic) -> tuple[Any, ...]:
        if condition == sympy.true:
            return (self._element("mtext", "otherwise"),)
        word = self._element("mtext", "if\N{NO-BREAK SPACE}")
        if isinstance(condition, sympy.And) and len(condition.args) == 2:
            above, below = sorted(condition.args, key=lambda c: isinstance(c, sympy.StrictLessThan))
            if above.lhs == below.lhs and isinstance(above, sympy.StrictGreaterThan):
                less = [self._element("mo", "<") for _ in range(2)]
                parts = (above.rhs, above.lhs, below.rhs)
                low, symbol, high = (self._print(part) for part in parts)
                return (word, low, less[0], symbol, less[1], high)
        return (word, self._print(condition))

    def _print_exp(self, expr: sympy.exp) -> Any:
        return self._element("msup", self._element("mi", "e"), self._print(expr.args[0]))

    def _print_Exp1(self, expr: sympy.Basic) -> Any:  # noqa: N802
        return self._element("mi", "e")


def _inside_first(cases: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Return value and condition of each case, first the one between the bounds of a statistic."""
    rows = [(case[0], case[1]) for case in cases]
    *beyond, (inside, last) = rows
    conditions = [condition for _, condition in beyond]
    simple = all(isinstance(c, (sympy.LessThan, sympy.GreaterThan)) for c in conditions)
    if last != sympy.true or not simple or len({c.lhs for c in conditions}) != 1:
        return rows
    within = sympy.And(*(sympy.Not(c) for c in conditions))
    return [(inside, within), *beyond]
