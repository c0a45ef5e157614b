"""A tape rewritten for text: every product one quotient of powers, every long sum a balanced tree.

SQL has no variables: a register that is read twice is written twice. 1/x − 8/x³ costs a tape one
division, as text it is best as 1/x − 8/x/x/x. The operation ``power`` (an integer exponent in
its data) stands for repeated factors. Functions that an engine lacks are composed from those that
it has where this keeps the digits, and refused by name otherwise.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from trueup.errors import TrueupError
from trueup.formula.operations import FUNCTIONS
from trueup.kernels.tape import Emitter, Step, Tape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.sql.dialects import Dialect

_CHAIN = 4  # the highest power of a column that is written as a product
_LONG = 8  # terms of a sum up to which it stays a chain


def rewrite(tape: Tape, dialect: Dialect) -> Tape:
    """Return the tape rewritten for a dialect.

    Examples
    --------
    >>> import sympy
    >>> from trueup.kernels.tape import lower
    >>> from trueup.sql.dialects import DIALECTS
    >>> x = sympy.Symbol("x", real=True)
    >>> short = rewrite(lower([1 / x - 8 / x**3], [x]), DIALECTS["duckdb"])
    >>> [node.op for node in short.steps]
    ['input', 'const', 'div', 'const', 'div', 'div', 'div', 'sub']
    """
    steps, output = _Rewriting(tape, dialect).finish()
    return Tape(tape.inputs, steps, (output,))


class _Product(NamedTuple):
    """c · Π aⁿ / Π bᵐ with registers a, b of the new tape."""

    c: float
    above: Counter[int]
    below: Counter[int]

    def times(self, other: _Product) -> _Product | None:
        """Return the product; None if the constants leave the doubles."""
        c = self.c * other.c
        if not 1e-200 < abs(c) < 1e200:
            return None
        return _Product(c, self.above + other.above, self.below + other.below)

    def inverse(self) -> _Product:
        """Return one over the product."""
        return _Product(1 / self.c, self.below, self.above)

    def scaled(self, c: float) -> _Product:
        """Return c times the product."""
        return self._replace(c=c * self.c)


class _Rewriting(Emitter):
    """The state of one rewriting."""

    def __init__(self, tape: Tape, dialect: Dialect) -> None:
        super().__init__()
        self.tape, self.dialect = tape, dialect
        self.products: dict[int, _Product] = {}
        self.registers: dict[int, int] = {}
        self.inner = _inner_sums(tape)
        self.addends: dict[int, list[_Product]] = {}
        self.inputs = [self.emit("input", data=i) for i in range(len(tape.inputs))]

    def finish(self) -> tuple[tuple[Step, ...], int]:
        for i in _needed(self.tape.steps, self.tape.outputs[0]):
            node = self.tape.steps[i]
            if node.op in ("mul", "div", "const"):
                self.products[i] = self._product(node)
            elif i not in self.inner:
                self.registers[i] = self._plain(i, node)
        return _pruned(self.steps, self.register(self.tape.outputs[0]), len(self.inputs))

    def number(self, x: float) -> int:
        return self.emit("const", data=x)

    # -- products ------------------------------------------------------------------------------

    def _product(self, node: Step) -> _Product:
        if node.op == "const":
            return _Product(node.data, Counter(), Counter())
        left, right = (self._factors(a) for a in node.args)
        if node.op == "div":
            right = (right if right.c else self._bare(right)).inverse()
        whole = left.times(right) or self._bare(left).times(self._bare(right))
        assert whole is not None  # noqa: S101  (constants are registers now)
        return whole

    def _factors(self, i: int) -> _Product:
        if i in self.products:
            return self.products[i]
        return _Product(1.0, Counter([self.register(i)]), Counter())

    def _bare(self, product: _Product) -> _Product:
        """Return a product whose constant is one of its factors."""
        constant = [self.number(product.c)] if product.c != 1 else []
        return _Product(1.0, product.above + Counter(constant), product.below)

    def register(self, i: int) -> int:
        """Return where the value of an old register is on the new tape."""
        if i not in self.registers:
            found = self.products.get(i)
            self.registers[i] = self._sum(i) if found is None else self._written(found)
        return self.registers[i]

    def _written(self, product: _Product) -> int:
        above = [f for r, n in product.above.items() for f in self._repeated(r, n)]
        if product.c != 1 or not above:
            above.insert(0, self.number(product.c))
        below = [f for r, n in product.below.items() for f in self._repeated(r, n)]
        top = self.product(above)
        if len(product.below) == 1:  # one after the other: every step is between first and last
            for factor in below:
                top = self.emit("div", top, factor)
            return top
        return self.emit("div", top, self.product(below)) if below else top

    def _repeated(self, register: int, n: int) -> list[int]:
        """Return the factors of a power: a column a few times, or one power."""
        if self.steps[register].op == "input" and n <= _CHAIN:
            return [register] * n
        return [self._power(register, n)]

    def _power(self, register: int, n: int) -> int:
        return register if n == 1 else self.emit("power", register, data=n)

    # -- sums ----------------------------------------------------------------------------------

    def _terms(self, i: int) -> list[tuple[int, int]]:
        """Return the signed terms of a sum, old registers, the inner sums opened."""
        terms: list[tuple[int, int]] = []
        stack = [(1, i)]
        while stack:
            sign, j = stack.pop()
            node = self.tape.steps[j]
            if j == i or j in self.inner:
                stack += [(-sign if node.op == "sub" else sign, node.args[1]), (sign, node.args[0])]
            else:
                terms.append((sign, j))
        return terms

    def _sum(self, i: int) -> int:
        found = [self._factors(j).scaled(sign) for sign, j in self._terms(i)]
        gathered = [f for f in self._gathered(self._opened(found)) if f.c]
        total = self._added([self._signed(f) for f in gathered])
        self.addends[total] = gathered
        return total

    def _added(self, terms: list[tuple[int, int]]) -> int:
        """Return a sum of signed registers, the positive ones first."""
        if not terms:
            return self.number(0.0)
        if len(terms) > _LONG:
            sign, total = self._balanced(terms)
            return total if sign > 0 else self.emit("mul", self.number(-1.0), total)
        terms.sort(key=lambda term: -term[0])
        sign, total = terms[0]
        if sign < 0:
            total = self.emit("mul", self.number(-1.0), total)
        for sign, register in terms[1:]:
            total = self.emit("add" if sign > 0 else "sub", total, register)
        return total

    def _signed(self, product: _Product) -> tuple[int, int]:
        sign = -1 if product.c < 0 else 1
        return sign, self._written(product.scaled(sign))

    def _opened(self, found: list[_Product]) -> list[_Product]:
        """Multiply c·(x + y) out where x or y is there already: c·x + x is one term."""
        for k, product in enumerate(found):
            inner = self._addends(product)
            others = found[:k] + found[k + 1 :]
            apart = len(self._gathered(others)) + len(inner)
            if inner and len(self._gathered(others + inner)) < apart:
                return self._opened(others[:k] + inner + others[k:])
        return found

    def _addends(self, product: _Product) -> list[_Product]:
        """Return the terms of a number times a sum; none for other products."""
        if len(product.above) != 1 or product.below:
            return []
        (register, n), *_ = product.above.items()
        inner = self.addends.get(register, []) if n == 1 else []
        return [term.scaled(product.c) for term in inner]

    def _gathered(self, terms: list[_Product]) -> list[_Product]:
        """Return the terms with like ones added up."""
        found: dict[object, _Product] = {}
        for term in terms:
            if not term.c:
                continue
            key = (frozenset(term.above.items()), frozenset(term.below.items()))
            found[key] = term.scaled(1 + found[key].c / term.c) if key in found else term
        return list(found.values())

    def _balanced(self, terms: list[tuple[int, int]]) -> tuple[int, int]:
        if len(terms) == 1:
            return terms[0]
        half = len(terms) // 2
        (s, a), (t, b) = self._balanced(terms[:half]), self._balanced(terms[half:])
        if s == t:
            return s, self.emit("add", a, b)
        return 1, self.emit("sub", a, b) if s > 0 else self.emit("sub", b, a)

    # -- everything else -----------------------------------------------------------------------

    def _plain(self, i: int, node: Step) -> int:
        if node.op == "input":
            number: int = node.data
            return self.inputs[number]
        if node.op in ("add", "sub"):
            return self._sum(i)
        args = [self.register(a) for a in node.args]
        if node.op in FUNCTIONS and node.op not in self.dialect.has:
            return self._composed(node.op, args[0])
        return self.emit(node.op, *args, data=node.data)

    def _composed(self, op: str, z: int) -> int:
        if op == "sinh":
            return self._sinh(z)
        if op == "cosh":
            total = self.emit("add", self.emit("exp", z), self.emit("exp", self._negative(z)))
            return self.emit("mul", self.number(0.5), total)
        if op == "tanh":
            return self._tanh(z)
        raise TrueupError(
            f"{self.dialect.name} has no function {op}",
            "compute this estimator in another engine, or in Python",
        )

    def _negative(self, z: int) -> int:
        return self.emit("mul", self.number(-1.0), z)

    def _below_one(self, z: int) -> int:
        return self.emit("lt", self.emit("abs", z), self.number(1.0))

    def _sinh(self, z: int) -> int:
        """Return (eᶻ − e⁻ᶻ)/2, for |z| < 1 its series."""
        minus = self.emit("exp", self._negative(z))
        far = self.emit("mul", self.number(0.5), self.emit("sub", self.emit("exp", z), minus))
        return self.emit("where", self._below_one(z), self._odd_series(z), far)

    def _odd_series(self, z: int) -> int:
        """Return z·(1 + z²/(2·3)·(1 + z²/(4·5)·(…))), to 17 digits for |z| < 1."""
        one, square = self.number(1.0), self.emit("power", z, data=2)
        total = one
        for n in range(8, 0, -1):
            step = self.emit("mul", self.number(1 / (2 * n * (2 * n + 1))), square)
            total = self.emit("add", one, step if total == one else self.emit("mul", step, total))
        return self.emit("mul", z, total)

    def _tanh(self, z: int) -> int:
        """Return ±(1 − e)/(1 + e) with e = e^{−2|z|}, for |z| < 1 by the series of sinh."""
        one = self.number(1.0)
        e = self.emit("exp", self.emit("mul", self.number(-2.0), self.emit("abs", z)))
        far = self.emit("div", self.emit("sub", one, e), self.emit("add", one, e))
        near = self.emit("div", self._odd_series(z), self._composed("cosh", z))
        far = self.emit("mul", self.emit("sign", z), far)
        return self.emit("where", self._below_one(z), near, far)


def _needed(nodes: Sequence[Step], output: int) -> list[int]:
    """Return the registers that the output depends on, in order."""
    needed, stack = set[int](), [output]
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            stack += nodes[i].args
    return sorted(needed)


def _pruned(nodes: Sequence[Step], output: int, inputs: int) -> tuple[tuple[Step, ...], int]:
    """Return the nodes that matter, the inputs among them, and where the output is."""
    kept = sorted({*range(inputs), *_needed(nodes, output)})
    place = {old: new for new, old in enumerate(kept)}
    moved = (nodes[i]._replace(args=tuple(place[a] for a in nodes[i].args)) for i in kept)
    return tuple(moved), place[output]


def _inner_sums(tape: Tape) -> set[int]:
    """Return the sums that are only terms of the next one."""
    uses = Counter(a for node in tape.steps for a in node.args)
    sums = {i for i, node in enumerate(tape.steps) if node.op in ("add", "sub")}
    terms = {
        a
        for i in sums
        for a in (tape.steps[i].args if tape.steps[i].op == "add" else tape.steps[i].args[:1])
    }
    return {i for i in sums & terms if uses[i] == 1}
