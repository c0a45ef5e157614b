"""Write a fused program as Python source for a compiler: one loop per stage, names of our own.

Arithmetic is compiled; functions such as exp and log are left to NumPy between two stages, whose
vectorised loops are several times faster than the calls a compiler makes, and give the same digits.
Constants are an argument, so the text depends on the shape of the formula only.

Tables are read in loops of their own, a few rows at a time: a compiler cannot know that the results
do not lie where a table does, and would compute all else row by row, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trueup.formula.operations import OPERATIONS
from trueup.kernels.compiled import BROKEN, LOST
from trueup.kernels.ordinary import is_bounded, limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trueup.kernels.fused import Program
    from trueup.kernels.tape import Step

_TEMPLATES = {name: row.compiled for name, row in OPERATIONS.items() if row.compiled}
_TEMPLATES["where"] = "{1} if {0} else {2}"
_NUMBERS = ("const", "bound")
_AT_A_TIME = 512  # rows between two looks at tables: with their inputs they stay in the first cache
COMPILED = {*_TEMPLATES, *_NUMBERS, "truth", "input", "table", "laguerre"}
"""Operations that are compiled; those of NumPy that are not here run between two stages."""


class Call(NamedTuple):
    """A function of NumPy applied between two stages: its node, its name and its arguments."""

    node: int
    op: str
    args: tuple[int, ...]


class Stage(NamedTuple):
    """One compiled loop: the registers it reads and writes, then calls of NumPy's functions."""

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    calls: tuple[Call, ...]


class Source(NamedTuple):
    """The text of a module, how its functions follow one another, and the constants they take.

    ``numbers`` are the constants among the arguments of NumPy's functions, by register.
    """

    text: str
    stages: tuple[Stage, ...]
    constants: tuple[float, ...]
    numbers: dict[int, float]


def write(program: Program) -> Source:
    """Return the source of a program.

    Examples
    --------
    >>> from trueup.kernels.fused import Program
    >>> from trueup.kernels.tape import Step
    >>> nodes = (Step("input", data=0), Step("const", data=2.0), Step("div", (1, 0)))
    >>> source = write(Program(nodes, 1, (2,), (2,), ()))
    >>> print(source.text)
    \"\"\"A kernel written by trueup; it may be deleted at any time.\"\"\"
    ...
    def stage0(c, x0, y0):
        r1 = c[0]
        ...
        for i in range(y0.size):
            r0 = x0[i]
            r2 = r1 / r0
    ...
    >>> source.constants[0]
    2.0
    """
    constants = _Constants(program.steps)
    stages, bodies = [], []
    for number, calls in enumerate(_levels(program)):
        last = not calls
        given = {a for call in calls for a in call.args}
        writes = program.outputs if last else _computed(program.steps, given)
        needed = _needed(program.steps, {*writes, *program.results} if last else writes)
        reads = [r for r in needed if not _inner(program.steps[r])]
        if last:
            reads = sorted({*reads, *range(program.inputs)})
        stage = Stage(f"stage{number}", tuple(reads), writes, calls)
        stages.append(stage)
        if last and is_bounded(program.steps, needed):
            constants.ordinary = len(constants.values)
            constants.values += limits(program.steps, needed)
        if writes:
            bodies.append(_function(program, stage, needed, constants))
    numbers = {i: node.data for i, node in enumerate(program.steps) if node.op == "const"}
    text = "\n\n".join([_HEAD, *bodies])
    return Source(text, tuple(stages), tuple(constants.values), numbers)


_HEAD = '''"""A kernel written by trueup; it may be deleted at any time."""

from numpy import empty, floor, int32, nan, sqrt, uint32
'''


def _inner(node: Step) -> bool:
    """Whether a node is computed inside of a compiled loop."""
    return node.op in COMPILED and node.op != "input"


def _computed(nodes: Sequence[Step], registers: Iterable[int]) -> tuple[int, ...]:
    """Return the registers that a loop has to fill: neither given, nor numbers."""
    return tuple(sorted(r for r in registers if _inner(nodes[r]) and nodes[r].args))


def _levels(program: Program) -> list[tuple[Call, ...]]:
    """Return the calls of NumPy's functions that can be made together, level by level, then ()."""
    level: list[int] = []
    calls: dict[int, list[Call]] = {}
    for i, node in enumerate(program.steps):
        depth = max((level[a] for a in node.args), default=0)
        if node.op not in COMPILED:
            calls.setdefault(depth, []).append(Call(i, node.op, node.args))
            depth += 1
        level.append(depth)
    return [*(tuple(calls[depth]) for depth in sorted(calls)), ()]


def _needed(nodes: Sequence[Step], wanted: Iterable[int]) -> list[int]:
    """Return what has to be known for the registers wanted, up to what comes from outside."""
    found: set[int] = set()
    stack = list(wanted)
    while stack:
        register = stack.pop()
        if register not in found:
            found.add(register)
            if _inner(nodes[register]):
                stack += nodes[register].args
    return sorted(found)


class _Constants:
    """The numbers of a program in one array, and the names they have in the text."""

    def __init__(self, nodes: Sequence[Step]) -> None:
        self.values: list[float] = []
        self.ordinary: int | None = None  # where the sizes of ordinary inputs are
        self.first: dict[int, int] = {}
        for i, node in enumerate(nodes):
            if node.op in _NUMBERS:
                self.place(i, [float(node.data)])
            elif node.op == "laguerre":
                self.place(i, node.data)
        tables = [i for i, node in enumerate(nodes) if node.op == "table"]
        start = len(self.values) + 3 * len(tables)
        for i in tables:  # where it begins here, its lowest number, the index of its last entry
            table = nodes[i].data
            self.place(i, [float(start), float(table.low), float(len(table.values) - 1)])
            start += len(table.values)
        for i in tables:
            self.values += nodes[i].data.values.tolist()

    def place(self, register: int, numbers: Iterable[float]) -> None:
        self.first[register] = len(self.values)
        self.values += numbers


def _function(program: Program, stage: Stage, needed: Sequence[int], constants: _Constants) -> str:
    """Return the text of one stage."""
    columns = [f"x{r}" for r in stage.reads]
    targets = [f"y{i}" for i in range(len(stage.writes))]
    before: list[str] = []
    for register in needed:
        node = program.steps[register]
        if register in constants.first or node.op == "truth":
            before += _hoisted(register, node, constants.first.get(register, 0))
    if stage.calls == ():
        signs = [sign for r in needed for sign in _out_of_range(r, program.steps[r])]
        if constants.ordinary is not None:
            before += [f"least = c[{constants.ordinary}]", f"most = c[{constants.ordinary + 1}]"]
            signs = _unordinary(program, needed)
        end = _finish(program, stage, signs)
    else:
        end = _store(stage.writes)
    return "\n".join(
        [
            f"def {stage.name}(c, {', '.join([*columns, *targets])}):",
            *(f"    {line}" for line in before),
            "    state = 0",
            *(f"    {line}" for line in _loops(program.steps, stage, needed, end)),
            "    return state",
            "",
        ]
    )


def _loops(
    nodes: Sequence[Step], stage: Stage, needed: Sequence[int], end: Sequence[str]
) -> list[str]:
    """Return the loops of a stage: one, or before it, for some rows at a time, those of tables.

    The rows at a time are slices: a row of one is known not to be negative, and is read as it
    stands, in vectors; a row ``first + i`` of the whole column would be checked, and gathered.
    """
    rows = "range(y0.size)"
    given = [f"r{r} = x{r}[i]" for r in stage.reads]
    tables = _tables(nodes, needed)
    if not tables:
        return _loop(rows, [*given, *_statements(nodes, needed), *end])
    columns = [*(f"x{r}" for r in stage.reads), *(f"y{i}" for i in range(len(stage.writes)))]
    inside = [f"{name} = all_{name}[first : first + {_AT_A_TIME}]" for name in columns]
    for level in tables:
        steps = _needed(nodes, [a for t in level for a in nodes[t].args])
        own = [f"r{r} = x{r}[i]" for r in steps if not _inner(nodes[r])]
        places = [line for t in level for line in _place(t, nodes[t])]
        looked_up = [f"t{t}[i] = c[uint32(j{t}[i])]" for t in level]  # no sign: nothing is checked
        inside += _loop(rows, [*own, *_statements(nodes, steps), *places])
        inside += _loop(rows, looked_up)
    inside += _loop(rows, [*given, *_statements(nodes, needed), *end])
    every = [t for level in tables for t in level]
    return [
        *(f"all_{name} = {name}" for name in columns),
        *(f"j{t} = empty({_AT_A_TIME}, int32)" for t in every),
        *(f"t{t} = empty({_AT_A_TIME})" for t in every),
        *_loop(f"range(0, all_y0.size, {_AT_A_TIME})", inside, "first"),
    ]


def _loop(rows: str, lines: Iterable[str], index: str = "i") -> list[str]:
    return [f"for {index} in {rows}:", *(f"    {line}" for line in lines)]


def _tables(nodes: Sequence[Step], needed: Sequence[int]) -> list[list[int]]:
    """Return the tables that can be read together, level by level."""
    level: dict[int, int] = {}
    found: dict[int, list[int]] = {}
    for r in needed:
        args = nodes[r].args if _inner(nodes[r]) else ()
        level[r] = max((level[a] for a in args), default=0)
        if nodes[r].op == "table":
            found.setdefault(level[r], []).append(r)
            level[r] += 1
    return [found[depth] for depth in sorted(found)]


def _statements(nodes: Sequence[Step], registers: Iterable[int]) -> list[str]:
    """Return the statements that compute registers, in their order."""
    computed = ((r, nodes[r]) for r in registers if _inner(nodes[r]) and nodes[r].args)
    return [line for r, node in computed for line in _lines(r, node)]


def _place(register: int, node: Step) -> list[str]:
    """Return where an entry of a table is among the constants; beyond its ends there is one NaN."""
    k = f"k{register}"
    return [
        f"j = r{node.args[0]} - {k}_1 + 1.0",
        "j = j if j > 0.0 else 0.0",  # NaN too
        f"j = j if j < {k}_2 else {k}_2",
        f"j{register}[i] = int32({k}_0 + j)",
    ]


def _hoisted(register: int, node: Step, first: int) -> list[str]:
    """Return what is read from the constants before the loop."""
    if node.op == "truth":
        return [f"r{register} = {bool(node.data)}"]
    if node.op in _NUMBERS:
        return [f"r{register} = c[{first}]"]
    count = 3 if node.op == "table" else len(node.data)
    return [f"k{register}_{j} = c[{first + j}]" for j in range(count)]


def _lines(register: int, node: Step) -> list[str]:
    """Return the statements of one node."""
    args = [f"r{a}" for a in node.args]
    if node.op == "table":
        return [f"r{register} = t{register}[i]"]
    if node.op == "laguerre":
        return _clenshaw(register, args[0], len(node.data))
    return [f"r{register} = {_TEMPLATES[node.op].format(*args)}"]


def _clenshaw(register: int, t: str, terms: int) -> list[str]:
    """Return the recurrence of :func:`trueup.kernels.laguerre.clenshaw`, written out."""
    first = second = f"0.0 * {t}"
    lines = []
    for n in range(terms - 1, -1, -1):
        name = f"s{register}_{n}" if n else f"r{register}"
        lines.append(
            f"{name} = k{register}_{n} + ({first}) * ({2 * n + 1}.0 - {t}) / {n + 1}.0"
            f" - ({second}) * {n + 1}.0 / {n + 2}.0"
        )
        first, second = name, first
    return lines


def _store(writes: Sequence[int]) -> list[str]:
    return [f"y{i}[i] = r{r}" for i, r in enumerate(writes)]


def _finish(program: Program, stage: Stage, signs: Sequence[str]) -> list[str]:
    """Return the end of the last stage: NaN for NaN, results stored, odd rows reported.

    A row is lost, and gets a second look, if a result is not finite, or if a step on the way left
    the range of doubles where the result does not show it.
    """
    unknown = " | ".join(f"(r{i} != r{i})" for i in range(program.inputs))
    lost = " | ".join(f"(r{r} - r{r} != 0.0)" for r in program.results)
    lines = [
        f"unknown = {unknown}",
        f"lost = {lost}",
        *(f"lost |= {sign}" for sign in signs),
        f"state |= {LOST} if lost & (not unknown) else 0",
        *(f"y{i}[i] = nan if unknown | lost else r{r}" for i, r in enumerate(stage.writes)),
    ]
    if program.whole:
        broken = " | ".join(f"((floor(r{i}) != r{i}) & (r{i} == r{i}))" for i in program.whole)
        lines += [f"broken = {broken}", f"state |= {BROKEN} if broken else 0"]
    return lines


def _out_of_range(register: int, node: Step) -> list[str]:
    """Return the signs of an overflow below a fraction bar, and of an underflow."""
    if node.op not in ("mul", "div"):
        return []
    a, b = node.args
    small = f"(abs(r{register}) < 1e-290) & (r{a} != 0.0)"
    if node.op == "mul":
        return [f"{small} & (r{b} != 0.0)"]
    return [small, f"abs(r{b}) > 1e300"]


def _unordinary(program: Program, needed: Sequence[int]) -> list[str]:
    """Return the signs of inputs so large or small that a step could leave the range of doubles.

    A division by zero is seen in the result, unless one divides by what it gave.
    """
    inputs = [r for r in needed if program.steps[r].op == "input"]
    sizes = [f"(abs(r{r}) > most) | ((abs(r{r}) < least) & (r{r} != 0.0))" for r in inputs]
    return sizes + [
        f"abs(r{node.args[1]}) > 1e300"
        for node in map(program.steps.__getitem__, needed)
        if node.op == "div"
        and any(program.steps[a].op == "div" for a in _needed(program.steps, [node.args[1]]))
    ]
