"""The map of ARCHITECTURE.md names what is there, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "trueup"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
MAP = TEXT.split("```")[1].strip().splitlines()


def head(line):
    """Return the names before the description: what stands two blanks away is prose."""
    return re.split(r"\s{2,}", line.strip())[0]


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


def test_every_theorem_has_its_module_and_its_test():
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) >= 40
    for row in rows:
        for path in re.findall(r"`([\w/.]+)`", row):
            base = ROOT if path.startswith("tests/") else PACKAGE
            assert (base / path).exists(), path
