"""The deep run in small: every part is asked, and what it finds is on the page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from prove import __main__ as deep
from prove import growth, inputs, kept, privacy, published
from prove.checks import Finding
from prove.grammar import Case
from prove.growth import Step
from prove.inputs import Fault, Tally
from prove.published import Wrong
from prove.runner import Figures

BAD = Fault("noise", "laplace(", "ValueError: planted", "outside")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every part be of little work, and nothing be kept."""
    pytest.importorskip("opendp", reason="private releases need OpenDP")
    monkeypatch.setattr(privacy, "SUBJECTS", {"Shares": privacy.SUBJECTS["Shares, 2 categories"]})
    monkeypatch.setattr(privacy, "TABLES", {})
    monkeypatch.setattr(privacy, "MEANS_OF_FEW", {})
    monkeypatch.setattr(published, "CASES", 3)
    monkeypatch.setattr(growth, "measure", lambda _: [Step("planted", 4, "sd", 5, 0)])
    monkeypatch.setattr(inputs, "run", lambda *_: {"noise": Tally(1, 1, 7)})
    monkeypatch.setattr(inputs, "keep", lambda _: None)
    monkeypatch.setattr(inputs, "smallest", lambda f: f)
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


def test_every_part_stands_on_a_page_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "R.md"
    assert not run(page, monkeypatch)
    text = page.read_text("utf-8")
    for part in ("4 cases", "| texts |", "| privacy |", "| published elsewhere |", "| growth |"):
        assert part in text
    assert "**" not in text
    assert len(text) < 5_000


@pytest.mark.parametrize(
    ("section", "part", "fault", "told"),
    [
        (growth, "measure", lambda _: [Step("planted", 4, "sd", 10**9, 0)], "planted, 4: sd"),
        (inputs, "run", lambda *_: {"noise": Tally(faults=[BAD])}, "ValueError: planted"),
        (published, "found", lambda *_: [Wrong("count", 1, "n at 0", 0, 1)], "n at 0"),
        (privacy, "halved", lambda m: m, "half the noise is not noticed"),
        (privacy, "owns_up", lambda _: False, "says that it is private"),
    ],
    ids=["growth", "texts", "published", "privacy", "simulations"],
)
def test_what_a_part_finds_is_on_the_page_and_in_the_exit_code(
    section: Any, part: str, fault: Any, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(section, part, fault)
    assert run(tmp_path / "R.md", monkeypatch, Figures(3, cases=4))
    assert told in (tmp_path / "R.md").read_text("utf-8")


def test_a_disagreement_is_on_the_page_and_in_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("1/q", {"q": "Laplace(2)"}, {"q": (1, None)}, 1)
    figures = Figures(3, cases=4)
    figures.findings.append(Finding("value", case, {"q": 1.0}, 1.0, 2.0))
    figures.found["value"] += 1
    page = tmp_path / "R.md"
    assert run(page, monkeypatch, figures)
    rows = [line for line in page.read_text("utf-8").splitlines() if "its closed form" in line]
    assert rows[0].endswith("| 1 |")
