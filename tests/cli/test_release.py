"""``trueup release``: a table and its sidecar, read back by ``trueup debias``."""

import csv
import re
import tomllib

import pytest

from microdata.people import people

PLAN = """\
epsilon = 1
by = ["state"]
missing = "drop"

[keys]
state = ["A", "B", "empty"]

[measures]
n = "count"
wage = "mean(wage, -10, 120000)"
sex = "share(sex, ['f', 'm', 'x'])"
job = "share(job, ['yes', 'no'])"
hours = "sum(hours, 0, 60)"
pay = "per_record(pay, root:3, 2, offset=1)"

[weights]
wage = 2
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = people(120)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data)
        writer.writerows(zip(*data.values(), strict=True))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("secure", [True, False], ids=["private", "simulated"])
def test_a_reader_gets_the_same_numbers(here, run, secure):
    if secure:
        pytest.importorskip("opendp")
    seed = () if secure else ("--seed", 3)
    done = run("release", "people.csv", "table.csv", "--spec", "plan.toml", *seed)
    assert done.code == 0, done.err
    assert ("NOT private" in done.err) == (not secure)
    assert run("debias", "table.csv", "again.csv", "--spec", "table.toml").code == 0
    again = rows(here / "again.csv")
    assert [row["state"] for row in again] == ["A", "B", "empty"]
    for row in again:
        assert row.get("simulation") == (None if secure else "not private")
        for name in ("n", "wage", "sex_f", "sex_m", "sex_x", "job_yes", "job_no", "hours", "pay"):
            for end in ("", "_stderr"):
                mine, read = row[f"{name}{end}"], row[f"{name}_debiased{end}"]
                assert (mine == "") == (read == "")
                if mine:
                    assert float(read) == pytest.approx(float(mine), rel=1e-9)
    told = tomllib.loads((here / "table.toml").read_text())["privacy"]
    assert told["simulation"] == (not secure)
    assert sum(m.get("epsilon", 0) for m in told["measures"].values()) == pytest.approx(1)
    assert {p.name for p in here.iterdir()} == {
        *("people.csv", "plan.toml", "table.csv", "table.toml", "again.csv")
    }


def test_a_reader_finds_the_categories_by_the_names_of_their_columns(here, run):
    lines = ["c", *["0"] * 12, *["1"] * 3, *["a\tb"] * 7]
    (here / "c.csv").write_text("\n".join(lines))
    asked = ("c = share(c, ['0', '1', 'a\tb'])", "--epsilon", "1000", "--seed", "1", "--quiet")
    assert run("release", "c.csv", "s.csv", *asked).code == 0
    counts = "ones = c_1_noisy", "none = c_0_noisy", "rest = c_category3_noisy"
    done = run("debias", "s.csv", "t.csv", *counts, "--spec", "s.toml", "--quiet")
    assert done.code == 0, done.err
    (row,) = rows(here / "t.csv")
    assert [float(row[k]) for k in ("none", "ones", "rest")] == [12, 3, 7]


def test_the_report_is_a_page_of_its_own(here, run):
    asked = ("n = count", "wage = mean(wage, 0, 9)", "--epsilon", "1", "--seed", "1", "--quiet")
    done = run("release", "people.csv", "t.csv", *asked, "--report", "page.html")
    assert (done.code, done.err) == (0, "")
    page = (here / "page.html").read_text()
    assert page.count("<svg") == 2
    assert "white-space: pre-wrap" in page
    lines = re.findall(r'<path d="([^"]*)"', page)
    assert max(line.count("L") for line in lines) == 8  # nine sizes are joined
    assert "NOT private" in page
    assert not re.search(r"""(src|href)=["'](?!#)|url\((?!#)|@import|<script""", page)
    for name in ("u.csv", "u.toml"):
        done = run("release", "people.csv", "u.csv", *asked, "--report", name)
        assert "is the table or its sidecar" in done.err
    assert not (here / "u.csv").exists()


def test_planning_touches_no_data(here, run):
    (here / "people.csv").unlink()
    done = run("release", "people.csv", "t.csv", "--spec", "plan.toml", "--plan", "--sizes", "9,99")
    assert done.code == 0, done.err
    assert "Weights proposed for groups of 99 records" in done.out
    assert "refused" not in done.out
    assert re.search(r"  total +10,000 .*\n  pay  ", done.out)  # it depends on no number of records
    assert not (here / "t.csv").exists()


def test_a_plan_tells_what_the_release_would_refuse(here, run):
    (here / "t.csv").write_text("mine")
    done = run("release", "people.csv", "t.csv", "--spec", "plan.toml", "--plan")
    assert "would be refused: t.csv exists already" in done.out
    book = ("--ledger", "l.toml", "--dataset", "d", "--cap", "1")
    asked = ("n = count", "--epsilon", "2", "--plan", *book)
    done = run("release", "people.csv", "u.csv", *asked)
    assert "would be refused: d has 1 to spend" in done.out
    assert not (here / "l.toml").exists()


def test_options_are_enough(here, run):
    (here / "keys.csv").write_text("state\nA\nB\n")
    done = run(
        *("release", "people.csv", "t.parquet", "n = count", "wage = mean(wage, 0, 9)"),
        *("--by", "state", "--keys", "keys.csv", "--epsilon", "1/2", "--weight", "wage=3"),
        *("--weight", "n=1", "--unit", "person", "--at-most", "2", "--seed", "1", "--quiet"),
    )
    assert (done.code, done.err) == (0, "")
    told = tomllib.loads((here / "t.toml").read_text())["privacy"]
    assert (told["unit"], told["at_most"], told["epsilon"]) == ("person", 2, 0.5)
    assert told["measures"]["wage"]["epsilon"] == 0.375


def test_a_run_that_fails_leaves_the_files_of_another_run(here, run, monkeypatch):
    from trueup.microdata import writing

    def meanwhile(*given, **named):
        (here / "t.csv").write_text("theirs")
        (here / "t.toml").write_text("theirs")
        return released(*given, **named)

    released = writing.run
    monkeypatch.setattr(writing, "run", meanwhile)
    done = run("release", "people.csv", "t.csv", "n=count", "--epsilon", "1", "--seed", "1")
    assert "t.toml exists already" in done.err
    assert (here / "t.csv").read_text() == (here / "t.toml").read_text() == "theirs"


LEDGER = ("n=count", "--epsilon", "1", "--dataset", "d", "--cap", "3", "--ledger")
REFUSED = {
    "a new ledger as the sidecar": (["t.csv", *LEDGER, "t.toml"], "t.toml would be written over"),
    "a new ledger as the page": (
        ["t.csv", *LEDGER, "l.html", "--report", "l.html"],
        "l.html would be written over",
    ),
    "a link to a ledger": (["t.csv", *LEDGER, "link"], "t.toml would be written over"),
    "an existing table": (["table.csv", "--spec", "plan.toml"], "table.csv exists already"),
    "an existing sidecar": (["other.csv", "--spec", "plan.toml"], "other.toml exists already"),
    "the plan": (["plan.csv", "--spec", "plan.toml", "--force"], "plan.toml would be written over"),
    "the input": (["people.csv", "--spec", "plan.toml", "--force"], "is the input"),
    "a pipe": (["-", "--spec", "plan.toml"], "written to a file"),
    "no folder": (["no/t.csv", "--spec", "plan.toml"], "there is no folder no"),
    "no format": (["t.xlsx", "--spec", "plan.toml"], "format of t.xlsx cannot be told"),
    "a plan with a wrong key": (["t.csv", "--spec", "wrong.toml"], "no key 'epsilom'"),
    "a damaged plan": (["t.csv", "--spec", "damaged.toml"], "damaged.toml is not TOML"),
    "no plan": (["t.csv", "--spec", "nowhere.toml"], "there is no file nowhere.toml"),
    "a measure without a name": (["t.csv", "count"], "the measure 'count' has no name"),
    "a seed with a ledger": (
        ["t.csv", "n=count", "--epsilon", "1", "--seed", "1", "--ledger", "l.toml"],
        "a simulation spends no budget",
    ),
    "sizes of no plan": (["t.csv", "n=count", "--epsilon", "1", "--sizes", "9"], "for --plan"),
    "no number": (["t.csv", "n=count", "--epsilon", "one"], "--epsilon needs one number, got"),
    "missing": (["t.csv", "n=count", "--epsilon", "1", "--missing", "foo"], "--missing needs drop"),
    "bad rows": (
        [
            *("t.csv", "m=mean(sex, 0, 1)", "--epsilon", "1", "--ledger", "l.toml"),
            *("--dataset", "d", "--cap", "3"),
        ],
        "sex has values that are infinite or no numbers",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_nothing_behind(here, run, what):
    (here / "table.csv").write_text("mine")
    (here / "other.toml").write_text("mine")
    (here / "wrong.toml").write_text("epsilom = 1")
    (here / "damaged.toml").write_text("epsilon = ")
    (here / "link").symlink_to("t.toml")
    before = {p.name: p.is_file() and p.read_bytes() for p in here.iterdir()}
    argv, message = REFUSED[what]
    done = run("release", "people.csv", *argv)
    assert done.code == 1
    assert message in done.err
    assert "Hint: " in done.err
    assert {p.name: p.is_file() and p.read_bytes() for p in here.iterdir()} == before


def test_a_ledger_in_the_plan_is_kept_beside_it(here, run):
    pytest.importorskip("opendp")
    (here / "plan.toml").write_text(
        'epsilon = 2\n[measures]\nn = "count"\n[ledger]\nfile = "l.toml"\ndataset = "d"\ncap = 3\n'
    )
    assert run("release", "people.csv", "one.csv", "--spec", "plan.toml").code == 0
    done = run("release", "people.csv", "two.csv", "--spec", "plan.toml")
    assert done.code == 1
    assert "d has 3 to spend, 2 is spent, and 2 more would exceed it" in done.err
    assert not (here / "two.csv").exists()
    entry = tomllib.loads((here / "l.toml").read_text())["d"]
    assert [(r["epsilon"], r["table"]) for r in entry["releases"]] == [(2, "one.csv")]
