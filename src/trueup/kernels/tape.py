"""One walk lowers a formula to a tape: a list of elementary operations on numbered registers.

Every target (numbers, NumPy, numba, SQL) reads the same tape. Common subexpressions share a
register, constants are folded to correctly rounded doubles, and integer powers become products.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from trueup.errors import TrueupError
from trueup.formula.opaque import Opaque
from trueup.formula.operations import OF_CLASS, OPERATIONS
from trueup.noise.extension import LaguerreExtension

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_OPERATIONS = 20_000
"""The evaluation cost of a formula, in elementary operations per row."""

_FOLDED = ("max", "min", "and", "or")


class Step(NamedTuple):
    """One operation: its name, the registers it reads, and what else it needs to know."""

    op: str
    args: tuple[int, ...] = ()
    data: Any = None


class Tape(NamedTuple):
    """Formulas as straight-line code: register i holds the result of step i.

    ``outputs`` are the registers that hold the results, one for each formula.
    """

    inputs: tuple[sympy.Symbol, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]


def lower(exprs: Sequence[sympy.Expr], inputs: Sequence[sympy.Symbol]) -> Tape:
    """Return the tape that computes expressions from their inputs.

    Examples
    --------
    >>> x = sympy.Symbol("x", real=True)
    >>> [step.op for step in lower([1 / x - 8 / x**3], [x]).steps]
    ['input', 'const', 'div', 'const', 'mul', 'mul', 'mul', 'sub']
    """
    walk = _Walk(inputs)
    outputs = tuple(walk.visit(expr) for expr in exprs)
    return Tape(tuple(inputs), tuple(walk.steps), outputs)


def run(tape: Tape, inputs: Sequence[Any], ops: Mapping[str, Callable[..., Any]]) -> list[Any]:
    """Return the results of a tape in the arithmetic of a table of operations.

    Parameters
    ----------
    tape
        The formulas.
    inputs
        One value for each input: a number, an array, a column of a table, …
    ops
        What each operation does to such values. What a step knows beyond its arguments comes
        first: ``ops["const"](number)``, ``ops["truth"](True)``,
        ``ops["laguerre"](coefficients, t)``, ``ops["call"](function, *args)``. A value that is
        read no more is let go.

    Examples
    --------
    >>> import operator
    >>> x, y = sympy.symbols("x y", real=True)
    >>> arithmetic = {"const": lambda c: c, "add": operator.add, "mul": operator.mul}
    >>> run(lower([2 * x + y, 2 * x], [x, y]), [3.0, 0.5], arithmetic)
    [6.5, 6.0]
    """
    values: list[Any] = []
    last = {a: i for i, step in enumerate(tape.steps) for a in step.args}
    last |= dict.fromkeys(tape.outputs, len(tape.steps))
    for i, (op, args, data) in enumerate(tape.steps):
        if op == "input":
            values.append(inputs[data])
        else:
            known = () if data is None else (data,)
            values.append(ops[op](*known, *[values[a] for a in args]))
        for a in args:
            if last[a] == i:
                values[a] = None
    return [values[register] for register in tape.outputs]


class Emitter:
    """Steps so far, each made once: what is computed twice shares a register."""

    def __init__(self, most: int | None = None) -> None:
        self.steps: list[Step] = []
        self.numbers: dict[Step, int] = {}
        self.most = MAX_OPERATIONS if most is None else most

    def emit(self, op: str, *args: int, data: Any = None) -> int:
        """Return the register of an operation."""
        step = Step(op, args, data)
        if step not in self.numbers:
            self.numbers[step] = len(self.steps)
            self.steps.append(step)
        if len(self.steps) > self.most:
            raise TrueupError(
                f"the formula needs more than {self.most} operations per row",
                "write it more simply, or debias its parts one by one",
            )
        return self.numbers[step]

    def const(self, number: float) -> int:
        """Return the register of a number."""
        return self.emit("const", data=number)

    def inputs(self, count: int) -> list[int]:
        """Return the registers of so many inputs."""
        return [self.emit("input", data=i) for i in range(count)]

    def fold(self, op: str, registers: Sequence[int]) -> int:
        """Return the register of a sum, a product, …, from the left to the right."""
        return reduce(lambda total, register: self.emit(op, total, register), registers)

    def within(self, x: int, most: float, value: int) -> int:
        """Return the register of a value where x is at most a number, else NaN."""
        fits = self.emit("le", x, self.const(most))
        return self.emit("where", fits, value, self.const(math.nan))

    @property
    def ops(self) -> dict[str, Callable[..., int]]:
        """The operations on registers: to run a tape with them is to write its steps here."""

        def given(op: str) -> Callable[..., int]:
            return lambda data, *args: self.emit(op, *args, data=data)

        plain = {op: partial(self.emit, op) for op in (*OPERATIONS, "where")}
        return plain | {op: given(op) for op in ("const", "truth", "laguerre", "call")}


class _Walk(Emitter):
    """The state of one lowering: steps so far, and where each expression's value is."""

    def __init__(self, inputs: Sequence[sympy.Symbol]) -> None:
        super().__init__()
        self.varying: dict[sympy.Basic, bool] = {}
        registers = self.inputs(len(inputs))
        self.memo: dict[sympy.Basic, int] = dict(zip(inputs, registers, strict=True))

    def visit(self, expr: sympy.Basic) -> int:
        if expr not in self.memo:
            self.memo[expr] = self.lower(expr)
        return self.memo[expr]

    def lower(self, expr: sympy.Basic) -> int:
        if expr in (sympy.true, sympy.false):
            return self.emit("truth", data=bool(expr))
        if not self.varies(expr):
            return self.const(as_float(expr))
        if isinstance(expr, sympy.Add):
            return self.add(expr)
        if isinstance(expr, sympy.Mul):
            return self.mul(expr)
        if isinstance(expr, sympy.Pow):
            return self.pow(expr)
        if isinstance(expr, sympy.Piecewise):
            return self.piecewise(expr)
        return self.function(expr)

    def varies(self, expr: sympy.Basic) -> bool:
        """Whether an expression is no constant; asked once of each, however often it occurs."""
        if expr not in self.varying:
            own = expr.is_Symbol or isinstance(expr, Opaque)
            self.varying[expr] = own or any(map(self.varies, expr.args))
        return self.varying[expr]

    def merged(self, expr: sympy.Expr) -> list[sympy.Expr]:
        """Return terms or factors, numbers made into one: what is left of e^{1e-18} − 1 is no 0."""
        numbers = [e for e in expr.args if not self.varies(e)]
        rest = [e for e in expr.args if self.varies(e)]
        return [expr.func(*numbers, evaluate=False), *rest] if len(numbers) > 1 else numbers + rest

    def add(self, expr: sympy.Add) -> int:
        terms = sorted(self.merged(expr), key=lambda t: (_negative(t), not self.varies(t)))
        first, *rest = terms
        total = self.visit(first)
        for term in rest:
            op, size = ("sub", -term) if _negative(term) else ("add", term)
            total = self.emit(op, total, self.visit(size))
        return total

    def mul(self, expr: sympy.Mul) -> int:
        factors = self.merged(expr)
        below = [f for f in factors if f.is_Pow and f.exp == -1 and f not in self.memo]
        above = [self.visit(f) for f in factors if f not in below]
        if not below:
            return self.fold("mul", above)
        one = self.const(1.0)
        bases = [self.visit(f.base) for f in below]
        rest = [b for b in bases if Step("div", (one, b)) not in self.numbers]
        above += [self.emit("div", one, b) for b in bases if b not in rest]  # 1/b is there already
        top = self.fold("mul", above) if above else one
        return self.emit("div", top, self.fold("mul", rest)) if rest else top

    def pow(self, expr: sympy.Pow) -> int:
        base, exponent = expr.args
        if exponent.is_Integer:
            if exponent > 0:
                return self.power(self.visit(base), int(exponent))
            inverse = self.emit("div", self.const(1.0), self.visit(base))
            return self.power(inverse, -int(exponent))
        if abs(exponent) == sympy.Rational(1, 2):
            root = self.emit("sqrt", self.visit(base))
            one = self.const(1.0)
            return root if exponent > 0 else self.emit("div", one, root)
        if self.varies(exponent):
            power = self.emit("mul", self.visit(exponent), self.visit(sympy.log(base)))
            return self.emit("exp", power)
        return self.emit("pow", self.visit(base), self.visit(exponent))

    def power(self, register: int, n: int) -> int:
        """Multiply out xⁿ by squaring, sharing the squares."""
        if n == 1:
            return register
        half = self.power(register, n // 2)
        square = self.emit("mul", half, half)
        return self.emit("mul", square, register) if n % 2 else square

    def piecewise(self, expr: sympy.Piecewise) -> int:
        *branches, (last, condition) = expr.args
        result = self.visit(last) if condition == True else None  # noqa: E712  (sympy.true)
        if result is None:
            branches = [*branches, (last, condition)]
            result = self.const(float("nan"))
        for value, condition in reversed(branches):
            result = self.emit("where", self.visit(condition), self.visit(value), result)
        return result

    def function(self, expr: sympy.Basic) -> int:
        if isinstance(expr, LaguerreExtension):
            series = tuple(float(c) for c in expr.coefficients)
            return self.emit("laguerre", self.visit(expr.args[2]), data=series)
        if isinstance(expr, Opaque):
            return self.emit("call", *map(self.visit, expr.args), data=expr.implementation)
        if isinstance(expr, sympy.ITE):
            test, yes, no = expr.args
            return self.visit(sympy.Or(sympy.And(test, yes), sympy.And(sympy.Not(test), no)))
        op = OF_CLASS.get(type(expr))
        if op in _FOLDED:
            return self.fold(op, [self.visit(a) for a in expr.args])
        if op is not None:
            return self.emit(op, *map(self.visit, expr.args))
        raise TrueupError(f"{expr} cannot be evaluated", "use the functions listed in the README")


@lru_cache(maxsize=4096)  # the regions of an estimator share most of their constants
def as_float(expr: sympy.Expr) -> float:
    """Return a constant, correctly rounded; what is not real becomes NaN.

    Examples
    --------
    >>> as_float(sympy.exp(sympy.Rational(-1, 2)))
    0.6065306597126334
    """
    if expr.is_Float or expr.is_Rational:
        return float(expr)
    value = expr.evalf(25)
    return float(value) if value.is_number and value.is_extended_real else float("nan")


def _negative(term: sympy.Expr) -> bool:
    return bool(term.could_extract_minus_sign() and term.as_coeff_Mul()[0].is_negative)
