"""The maps of ARCHITECTURE.md and of the packages name all that is there, and nothing else."""

import ast
import re
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "trueup"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
MAP = TEXT.split("```")[1].strip().splitlines()


def head(line):
    """Return the names before the description: what stands two blanks away is prose."""
    return re.split(r"\s{2,}", line.strip())[0].removesuffix(" +")


def outline():
    """Return (package, module) for each name at the left of the map."""
    package = ""
    for line in MAP:
        names = [name.strip() for name in re.split(r"[,·]", head(line))]
        if not line.startswith(" "):
            package = names[0].rstrip("/")
            yield from (("", name.rstrip("/")) for name in names)
        elif not line.startswith("   "):
            yield from ((package, name.rstrip("/")) for name in names)


def own_map(folder):
    """Return the names in the map of a package's docstring, None if it has none."""
    doc = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    _, _, rest = doc.partition("::\n\n")
    lines = [*takewhile(lambda line: not line or line.startswith("    "), rest.splitlines())]
    names = {name.strip().rstrip("/") for line in lines for name in head(line).split(",")} - {""}
    return names or None


def on_the_map(package):
    """Return what stands alone between the signs of a package's part of the map, as names do."""
    found, inside = set(), False
    for line in MAP:
        if not line.startswith(" "):
            inside = head(line).rstrip("/") == package
        if inside:
            found |= {phrase.strip() for phrase in re.split(r"\s{2,}|[,·:;()]", line)}
    return found


def modules(folder):
    return {p.stem for p in folder.iterdir() if p.suffix == ".py" and not p.stem.startswith("_")}


def test_every_package_and_every_module_beside_them_is_on_the_map():
    packages = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    named = {name for package, name in outline() if not package}
    assert named == packages | modules(PACKAGE)


def test_every_module_on_the_map_exists():
    for package, name in outline():
        if package:
            folder = PACKAGE / package
            assert name in modules(folder) or (folder / name).is_dir(), f"{package}/{name}"


FOLDERS = sorted(p.parent for p in PACKAGE.rglob("*/__init__.py"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.relative_to(PACKAGE).as_posix())
def test_every_module_is_on_the_map_of_its_package(folder):
    """In its docstring, which then names nothing else, or in ARCHITECTURE.md."""
    own = own_map(folder)
    if own is None:
        assert modules(folder) <= on_the_map(folder.name)
    else:
        assert own - {p.name for p in folder.iterdir() if p.is_dir()} == modules(folder)


def test_the_map_marks_packages_that_have_their_own():
    marked = {
        name.strip().rstrip("/")
        for line in MAP
        if not line.startswith(" ") and re.split(r"\s{2,}", line)[0].endswith(" +")
        for name in head(line).split("·")
    }
    assert marked == {f.name for f in FOLDERS if f.parent == PACKAGE and own_map(f)}


def test_every_theorem_has_its_module_and_its_test():
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) >= 40
    for row in rows:
        for path in re.findall(r"`([\w/.]+)`", row):
            base = ROOT if path.startswith("tests/") else PACKAGE
            assert (base / path).exists(), path
