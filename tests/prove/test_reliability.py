"""The deep run in small: every section is asked for and stands on the page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from prove import __main__ as deep
from prove import growth, hygiene, inputs, kept, privacy, published
from prove.checks import Finding
from prove.faults import FAULT
from prove.grammar import Case
from prove.growth import Step
from prove.inputs import Fault, Tally
from prove.published import Wrong
from prove.runner import Figures

BAD = Fault("noise", "laplace(", "ValueError: planted", "outside")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every section be of little work, and nothing be kept."""
    monkeypatch.setattr(privacy, "SUBJECTS", {"Shares": privacy.SUBJECTS["Shares, 2 categories"]})
    monkeypatch.setattr(privacy, "TABLES", {})
    monkeypatch.setattr(published, "CASES", 3)
    monkeypatch.setattr(growth, "measure", lambda _: [Step("planted", 4, "sd", 0.5, 0)])
    monkeypatch.setattr(inputs, "keep", lambda _: None)
    monkeypatch.setattr(hygiene, "FILE", Path("no such file"))
    monkeypatch.setattr(kept, "kept", list)
    monkeypatch.setattr(kept, "write", lambda _: None)


def run(page: Path, monkeypatch: pytest.MonkeyPatch, figures: Figures | None = None) -> object:
    """Run it and return its exit code."""
    if figures is not None:
        monkeypatch.setattr(deep, "run", lambda *_: figures)
    words = ["--cases", "4", "--texts", "40", "--processes", "1", "--seed", "3", "--write"]
    monkeypatch.setattr(sys, "argv", ["prove", *words, str(page)])
    with pytest.raises(SystemExit) as left:
        deep.main()
    return left.value.code


@pytest.mark.usefixtures("quick")
def test_every_section_stands_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opendp", reason="private releases need OpenDP")
    page = tmp_path / "R.md"
    assert not run(page, monkeypatch)
    titles = [line for line in page.read_text("utf-8").splitlines() if line.startswith("#")]
    assert titles == [
        "# Reliability",
        "## Drawn cases",
        "## Texts that nobody expects",
        "## Privacy",
        "## Published elsewhere",
        "## Growth and limits",
        "## Mutants",
        "## Packages and Pythons",
    ]
    assert FAULT not in page.read_text("utf-8")


def _late(_: int) -> list[Step]:
    return [Step("planted", 4, "sd", 99.0, 0)]


@pytest.mark.parametrize(
    ("section", "part", "fault", "told"),
    [
        (growth, "measure", _late, "**1** of 1 steps went on beyond the budget"),
        (inputs, "run", lambda *_: {"noise": Tally(faults=[BAD])}, "| **1** |"),
        (published, "found", lambda *_: [Wrong("count", 1, "n at 0", 0, 1)], "**2**"),
        (privacy, "halved", lambda m: m, "**not noticed**"),
        (privacy, "owns_up", lambda _: False, "**no**"),
        (privacy, "table_is_private", lambda *_: True, "**yes**"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
@pytest.mark.usefixtures("quick")
def test_what_a_section_finds_is_bold_and_in_the_exit_code(
    section: Any, part: str, fault: Any, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opendp", reason="private releases need OpenDP")
    monkeypatch.setattr(section, part, fault)
    monkeypatch.setattr(inputs, "smallest", lambda f: f)
    assert run(tmp_path / "R.md", monkeypatch, Figures(3, cases=4))
    assert told in (tmp_path / "R.md").read_text("utf-8")


@pytest.mark.usefixtures("quick")
def test_a_disagreement_is_on_the_page_and_in_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opendp", reason="private releases need OpenDP")
    case = Case("1/q", {"q": "Laplace(2)"}, {"q": (1, None)}, 1)
    figures = Figures(3, cases=4)
    figures.findings.append(Finding("value", case, {"q": 1.0}, 1.0, 2.0))
    figures.found["value"] += 1
    page = tmp_path / "R.md"
    assert run(page, monkeypatch, figures)
    (row,) = [line for line in page.read_text("utf-8").splitlines() if "its closed form" in line][
        :1
    ]
    assert row.endswith("| 1 |")
