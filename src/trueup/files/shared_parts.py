"""Compute once what several SQL expressions share: layers of columns, each built on the last.

Engines do not look for common parts inside CASE, and a standard error mentions its variance
twice. Taking such parts out, as columns of a subquery, makes the arithmetic several times faster.
Only what cannot fail is taken out of a CASE: sums, products, quotients and comparisons of doubles.
Small powers, short as text, are products here: an engine takes logarithms for POWER, ten times as
long.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from trueup.extras import optional

if TYPE_CHECKING:
    from collections.abc import Mapping

Layers = list[dict[str, str]]

_PRODUCTS = {"2", "3", "4"}  # powers that are rounded as well as POWER's, by at most three products


def layered(expressions: Mapping[str, str], prefix: str) -> tuple[Layers, dict[str, str]]:
    """Return layers of shared parts, and the expressions in terms of them.

    Parameters
    ----------
    expressions
        SQL by name.
    prefix
        How the names of shared parts begin.
    dialect
        In which the SQL is written.

    Examples
    --------
    >>> layered({"a": "(x + 1e0) * (x + 1e0)", "b": "x + 1e0"}, "p")
    ([{'p1': 'x + 1e0'}], {'a': '("p1") * ("p1")', 'b': '"p1"'})
    >>> layered({"a": "CASE WHEN x > 0 THEN SQRT(x * x) END", "b": "SQRT(x * x)"}, "p")
    ([{'p1': 'x * x'}], {'a': 'CASE WHEN x > 0 THEN SQRT("p1") END', 'b': 'SQRT("p1")'})
    >>> layered({"a": "1 / POWER(x + 1e0, 2)"}, "p")
    ([{'p1': 'x + 1e0'}], {'a': '1 / (("p1") * ("p1"))'})
    """
    return _Sharing(prefix).divide(expressions)


class _Sharing:
    """Parts by their structure: equal structure is one part, with one number."""

    def __init__(self, prefix: str) -> None:
        self.sqlglot = optional("sqlglot", "tables", "writing SQL")
        self.prefix = prefix
        exp = self.sqlglot.exp
        self.leaves = (exp.Column, exp.Literal, exp.DataType, exp.Boolean, exp.Null)
        self.safe = (
            *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast, exp.Case, exp.If),
            *(exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ, exp.And, exp.Or, exp.Not, exp.Is),
            *(exp.Abs, exp.Nullif, exp.Between, exp.Greatest, exp.Least, exp.IsNan, exp.Floor),
        )
        self.cheap = (*self.leaves, exp.Paren, exp.If, exp.Neg)
        self.parts: dict[Any, int] = {}
        self.worth: list[bool] = []
        self.part: dict[int, int] = {}
        self.layers: Layers = []
        self.placed: dict[int, tuple[str, int]] = {}

    def divide(self, expressions: Mapping[str, str]) -> tuple[Layers, dict[str, str]]:
        exp = self.sqlglot.exp
        trees = {
            name: exp.Paren(
                this=self.sqlglot.parse_one(sql, dialect="duckdb").transform(self.multiplied)
            )
            for name, sql in expressions.items()
        }
        uses: Counter[int] = Counter()
        for tree in trees.values():
            self.number(tree)
            self.count(tree, uses)
        self.shared = {part for part, times in uses.items() if times > 1}
        for tree in trees.values():
            self.rewrite(tree)
        return self.layers, {name: tree.this.sql("duckdb") for name, tree in trees.items()}

    def multiplied(self, node: Any) -> Any:
        """Return a small power as a product, anything else as it is."""
        exp = self.sqlglot.exp
        if not isinstance(node, exp.Pow) or not self.is_small(node.expression):
            return node
        base, product = exp.Paren(this=node.this), None
        for _ in range(int(node.expression.name)):
            product = exp.Mul(this=product, expression=base.copy()) if product else base.copy()
        return exp.Paren(this=product)

    def is_small(self, power: Any) -> bool:
        """Whether a power is written as a small whole number: -2 has the name of 2, and a sign."""
        literal = isinstance(power, self.sqlglot.exp.Literal) and not power.is_string
        return literal and power.name in _PRODUCTS

    def children(self, node: Any) -> list[Any]:
        return [] if isinstance(node, self.leaves) else list(node.iter_expressions())

    def number(self, node: Any) -> tuple[int, bool]:
        """Return the number of a part, and whether it can be computed for every row."""
        if isinstance(node, self.leaves):
            key, safe = node.sql("duckdb"), True
        else:
            found = [(child.arg_key, *self.number(child)) for child in self.children(node)]
            flags = tuple((k, v) for k, v in node.args.items() if isinstance(v, (bool, str)))
            key = (type(node), flags, tuple(entry[:2] for entry in found))
            safe = isinstance(node, self.safe) and all(safe for *_, safe in found)
        part = self.parts.setdefault(key, len(self.parts))
        if part == len(self.worth):
            trivial = isinstance(node, self.cheap) or (
                isinstance(node, self.sqlglot.exp.Cast) and isinstance(node.this, self.leaves)
            )
            self.worth.append(safe and not trivial)
        self.part[id(node)] = part
        return part, safe

    def count(self, node: Any, uses: Counter[int]) -> None:
        """Count how often parts are used, inside a part that is shared only once."""
        part = self.part[id(node)]
        if self.worth[part]:
            uses[part] += 1
            if uses[part] > 1:
                return
        for child in self.children(node):
            self.count(child, uses)

    def rewrite(self, node: Any) -> int:
        """Put columns in the place of shared parts; return the layer after their last one."""
        depth = 0
        for child in self.children(node):
            if self.part[id(child)] in self.shared:
                name, layer = self.place(child)
                child.replace(self.sqlglot.exp.column(name, quoted=True))
                depth = max(depth, layer + 1)
            else:
                depth = max(depth, self.rewrite(child))
        return depth

    def place(self, node: Any) -> tuple[str, int]:
        """Return the column and the layer of a shared part."""
        part = self.part[id(node)]
        if part not in self.placed:
            layer = self.rewrite(node)
            self.layers += [{}] * (layer == len(self.layers))
            name = f"{self.prefix}{len(self.placed) + 1}"
            self.layers[layer][name] = node.sql("duckdb")
            self.placed[part] = name, layer
        return self.placed[part]
