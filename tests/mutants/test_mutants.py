"""The mutants themselves: what is drawn, what is left out, and that one is noticed."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from mutants.operators import Mutant, drawn, of_file
from mutants.reach import Reach, thinned
from mutants.suite import ROOT, SOURCE
from mutants.table import written
from mutants.trial import chosen


def changes(tmp_path: Path, source: str) -> set[tuple[str, str]]:
    """Return every change of a small module."""
    file = tmp_path / "p" / "m.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(textwrap.dedent(source), "utf-8")
    return {(m.before, m.after) for m in of_file(tmp_path, file)}


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("a < b", "a < b", {"a <= b", "a >= b"}),
        ("a + b", "a + b", {"a - b"}),
        ("a ** b", "a ** b", {"a * b"}),
        ("a and b", "a and b", {"a or b"}),
        ("not a", "not a", {"a"}),
        ("-a", "-a", {"a"}),
        ("f(7)", "7", {"8", "6"}),
        ("min(a)", "min", {"max"}),
        ("a[b:]", "b:", {"b + 1:", "b - 1:", "b:-1"}),
        ("a if b else c", "b", {"not b"}),
        ("True", "True", {"False"}),
    ],
)
def test_changes(tmp_path: Path, code: str, before: str, after: set[str]) -> None:
    found = changes(tmp_path, f"def f(a, b, c):\n    return {code}\n")
    assert {y for x, y in found if x == before} == after


def test_statements_are_left_out(tmp_path: Path) -> None:
    found = changes(
        tmp_path,
        """
        def f(a):
            if a:
                return b
            g(a)
            for x in a:
                total += x
        """,
    )
    assert {x for x, y in found if y == "pass"} == {"if a: return b", "g(a)", "total += x"}


def test_what_is_written_for_people_stays_as_it_is(tmp_path: Path) -> None:
    found = changes(
        tmp_path,
        '''
        """Text 1 < 2."""
        _MOST = 4096
        def f(a: list[1 + 1]) -> str:
            return "x" if a < 3 else "y"
        def g(a):
            """Text 1 < 2."""
            raise TrueupError(f"{a + 1}", "hint" + "2")
        class A:
            def __repr__(self):
                return 1 + 1
        ''',
    )
    assert found == set()


def test_the_sample_is_the_same_for_the_same_code(tmp_path: Path) -> None:
    changes(tmp_path, "def f(a):\n    return a[1:9] + 7 * a < 3\n")
    samples = [drawn(tmp_path, ["p"], 6, seed) for seed in (3, 3, 4)]
    assert samples[0] == samples[1] != samples[2]
    names = [m.key for m in samples[0]]
    assert {m.key for m in drawn(tmp_path, ["p"], 6, 4, names)} == set(names)
    changes(tmp_path, "def f(a):\n    return a[1:9] + 8 * a < 3\n")
    moved = {m.key for m in drawn(tmp_path, ["p"], 6, 4, names)}
    assert len(moved) == 6
    assert moved >= {name for name in names if "7" not in name} != set(names)
    assert len({m.key for m in drawn(tmp_path, ["p"], 99, 1)}) == len(drawn(tmp_path, ["p"], 99, 1))


@pytest.mark.parametrize("path", ["noise/uniform.py", "inverse/joint.py", "near/curve.py"])
def test_a_mutant_differs_from_the_library_in_one_place(path: str) -> None:
    source = (SOURCE / path).read_text("utf-8")
    before = Counter(ast.unparse(ast.parse(source)).splitlines())
    for mutant in [*of_file(SOURCE, SOURCE / path)][::5]:
        after = Counter(ast.unparse(mutant.tree(source)).splitlines())
        assert sum((after - before).values()) == 1
        compile(mutant.tree(source), path, "exec")


def test_tests_of_the_package_come_first_and_the_fastest_of_them() -> None:
    seconds = {"tests/a::slow": 9.0, "tests/a::fast": 1.0, "tests/b::x": 0.1, "tests/b::y": 50.0}
    reach = Reach("", seconds, {"p/m.py": {3: list(seconds)}}, [])
    mutant = Mutant("p/m.py", 0, 0, 4, 3, "f", 1, "a", "b")
    assert chosen(mutant, reach, ("tests/a",), 20, seconds) == [
        "tests/a::fast",
        "tests/a::slow",
        "tests/b::x",
    ]
    elsewhere = Mutant("p/m.py", 0, 0, 9, 9, "f", 1, "a", "b")
    assert chosen(elsewhere, reach, ("tests/a",), 20, seconds) == []


def test_cases_are_thinned_evenly() -> None:
    names = [f"t.py::f[{k}]" for k in range(9)] + ["t.py::g"]
    assert thinned(names, 3) == ["t.py::f[0]", "t.py::f[3]", "t.py::f[6]", "t.py::g"]


def test_the_table_counts_survivors_that_no_reason_excuses() -> None:
    mutants = [Mutant("p/m.py", k, 0, 4, 3, "f", 1, "a", str(k)) for k in range(4)]
    verdicts = {m.key: {"killed": m.place > 0, "outcome": "survived"} for m in mutants}
    page = written(mutants, verdicts, 1)
    assert "| p | 4 | 3 | 0 | 1 | 75.0 % |" in page
    assert "| p/m.py:4 f | `a` → `0` | **survived** |" in page


PLANTED = """
from mutants import reach
from mutants.operators import of_file
from mutants.suite import SOURCE, collected
from mutants.trial import tried

PLACES = [
    ("Laplace.generating", "1 + t * scale * (t * scale)"),
    ("Laplace._upper", "np.exp(-x / float(self.scale)) * 2"),
]

def work(suite):
    known = reach.read(SOURCE / "no such file", ["noise"])
    list(reach.extend(suite, known, ["noise"], list(suite.items), 20, 1))
    found = of_file(SOURCE, SOURCE / "noise/laplace.py")
    wanted = [m for m in found if (m.scope, m.after) in PLACES]
    for verdict in tried(suite, wanted, known, {"noise": ("tests",)}, 20, 1):
        print(verdict.mutant.scope, verdict.outcome)

collected(["src/trueup/noise/laplace.py", "src/trueup/noise/series.py"], work)
"""


def test_a_planted_fault_is_noticed_by_the_tests_that_reach_it() -> None:
    """Only the docstrings of one file are run: they ask for moments, not for probabilities."""
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PLANTED],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": f"{ROOT}/src:{ROOT}/tests", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert "Laplace.generating killed" in run.stdout, run.stdout + run.stderr
    assert "Laplace._upper unreached" in run.stdout
