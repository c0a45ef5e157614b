"""The ledger: a budget is written before noise is drawn, and never exceeded."""

import datetime
import os
import threading
import tomllib

import pytest

import trueup as tu
from extras import needs
from trueup.microdata.design import Design
from trueup.microdata.ledger import Ledger
from work import at_most

COUNT = {"n": "count"}


@pytest.fixture
def book(tmp_path):
    needs("opendp")
    return {"file": tmp_path / "ledger.toml", "dataset": "survey 2026", "cap": 0.3}


def spent(book):
    entry = tomllib.loads(book["file"].read_text())[book["dataset"]]
    return [r["epsilon"] for r in entry["releases"]]


def released(book, epsilon=0.1, **asked):
    frame = needs("pandas").DataFrame({"x": [1.0], "id": [1], "row": [1]})
    return tu.release(frame, epsilon=epsilon, ledger=book, **{**COUNT, **asked})


def test_releases_add_up_in_decimals_until_the_cap(book):
    for _ in range(3):
        released(book)
    assert spent(book) == [0.1, 0.1, 0.1]
    with pytest.raises(
        tu.TrueupError, match=r"0.3 to spend, 0.3 is spent, and 0.1 more.*\n.*nothing is left"
    ):
        released(book)
    assert spent(book) == [0.1, 0.1, 0.1]
    released({**book, "dataset": "another"})
    assert spent(book) == [0.1, 0.1, 0.1]


def test_a_link_to_a_ledger_is_the_same_ledger(book, tmp_path):
    (tmp_path / "folder").mkdir()
    linked = {**book, "file": tmp_path / "folder" / "link.toml"}
    linked["file"].symlink_to(book["file"])
    for given in (linked, book, linked):
        released(given)
    assert linked["file"].is_symlink()
    assert spent(book) == [0.1, 0.1, 0.1]
    for given in (linked, book):
        with pytest.raises(tu.TrueupError, match=r"0\.3 is spent"):
            released(given)


def test_a_budget_is_spent_before_noise_is_drawn(book, monkeypatch):
    def killed(*_):
        assert spent(book) == [0.2]
        raise KeyboardInterrupt

    monkeypatch.setattr("trueup.microdata.release.noisy", killed)
    with pytest.raises(KeyboardInterrupt):
        released(book, 0.2)
    assert spent(book) == [0.2]
    monkeypatch.undo()
    with pytest.raises(tu.TrueupError, match=r"0\.2 is spent"):
        released(book, 0.2)


def test_many_at_once_do_not_exceed_the_cap(book):
    design, refused = Design.read(COUNT, 0.1), []

    def spend():
        try:
            Ledger.read(book).spend(design, "")
        except tu.TrueupError as error:
            refused.append(error)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spent(book) == [0.1] * 3
    assert len(refused) == 5


@pytest.mark.parametrize(
    ("given", "asked", "message"),
    [
        ({"cap": None}, {}, "no cap for survey 2026"),
        ({"cap": 0}, {}, "cap must be positive"),
        ({"dataset": ""}, {}, "needs the name of the data set"),
        ({"file": None}, {}, "needs a file"),
        ({"budget": 3}, {}, "a file and the name"),
        ({}, {"rng": 1}, "a simulation spends no budget"),
        ({}, {"pay": "per_record(x, root:2, 1)"}, "a ledger counts ε"),
    ],
    ids=["no cap", "cap zero", "no name", "no file", "a key", "a simulation", "per record"],
)
def test_what_a_ledger_cannot_count_is_refused(book, given, asked, message):
    with pytest.raises(tu.TrueupError, match=message):
        released({**book, **given}, **asked)
    assert not book["file"].exists()


def test_another_unit_or_cap_is_refused(book):
    released(book)
    with pytest.raises(tu.TrueupError, match="such budgets do not add up"):
        released(book, unit="id", at_most=1)
    with pytest.raises(tu.TrueupError, match=r"protect one row \(a column\)"):
        released(book, unit="row", at_most=1)
    with pytest.raises(tu.TrueupError, match=r"has the cap 0.3 .* not 5"):
        released({**book, "cap": 5})
    released({**book, "cap": None})
    assert spent(book) == [0.1, 0.1]


@pytest.mark.parametrize("text", ["releases", "[survey]\ncap = 'x'", "[survey]\ncap = nan\n"])
def test_a_damaged_ledger_is_refused_and_kept(book, text):
    book["file"].write_text(text)
    with pytest.raises(tu.TrueupError, match="the ledger"):
        released(book)
    assert book["file"].read_text() == text


def test_an_entry_says_when_of_which_plan_and_by_which_version(book):
    released(book)
    released(book)
    released(book, n="count", x="sum(x, 0, 1)")
    entries = tomllib.loads(book["file"].read_text())[book["dataset"]]["releases"]
    assert [e["version"] for e in entries] == [tu.__version__] * 3
    assert [e["table"] for e in entries] == ["in Python"] * 3
    first, second, third = (e["plan"] for e in entries)
    assert first == second != third
    assert all(datetime.datetime.fromisoformat(e["date"]).tzinfo for e in entries)


def test_who_may_read_a_ledger_stays_the_same(book):
    released(book)
    book["file"].chmod(0o640)
    released(book)
    assert book["file"].stat().st_mode & 0o777 == 0o640


def test_a_ledger_with_two_names_is_refused(book, tmp_path):
    released(book)
    os.link(book["file"], tmp_path / "another.toml")
    for name in ("ledger.toml", "another.toml"):
        with pytest.raises(tu.TrueupError, match="has 2 names"):
            released({**book, "file": tmp_path / name})
    assert spent(book) == [0.1]


@pytest.mark.parametrize("name", ["Survey 2026", "survey-2026", "survey 2026 ", "ｓurvey_2026"])
def test_a_name_that_differs_in_case_or_signs_is_not_another_data_set(book, name):
    released(book)
    with pytest.raises(tu.TrueupError, match="but one called 'survey 2026'"):
        released({**book, "dataset": name})
    released({**book, "dataset": "survey 2025"})
    assert spent(book) == [0.1]


@pytest.mark.parametrize("number", ["1e999999999", "0." + "1" * 500])
def test_a_number_without_end_is_refused(book, number):
    book["file"].write_text(f"[d]\ncap = {number}\nunit = ''\nreleases = []\n")
    with at_most(200_000), pytest.raises(tu.TrueupError, match="beyond double precision"):
        released(book)


def test_a_ledger_that_is_no_ledger_is_not_read(book):
    book["file"].write_bytes(b" " * (2**20 + 1))
    with pytest.raises(tu.TrueupError, match="1,048,577 bytes, more than 1,048,576"):
        released(book)
