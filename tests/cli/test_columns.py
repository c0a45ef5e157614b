"""Which columns an option means: to the letter where it can be told, refused where it cannot."""

import csv
import io
import shlex

import pytest

from trueup.cli import main

LAPLACE = ("--noise", "n=laplace(1)", "--domain", "n>=1")
INVERSE = {5.0: 1 / 5 - 2 / 125, 100.0: 1 / 100 - 2 / 10**6}  # f - b²f'' of 1/n, by hand


@pytest.fixture
def inverse(tmp_path, debias):
    """Return a function that debiases 1/n in a table with one row, and returns what is said."""

    def inverse(header, *options):
        path = tmp_path / "in.csv"
        path.write_text(f"{header}\n100,5\n")
        return debias(path, "-", *options, formulas=("x = 1/n",), noise=LAPLACE)

    return inverse


def value(done):
    assert done.code == 0, done.err
    return float(next(csv.DictReader(io.StringIO(done.out)))["x"])


@pytest.mark.parametrize(
    ("header", "option", "number"),
    [
        ("emp, emp", "n=emp", 100.0),
        ("emp, emp", "n=` emp`", 5.0),
        ("other, emp", "n= emp", 5.0),
        ("emp,other", "n = emp ", 100.0),
    ],
)
def test_blanks_around_a_column(header, option, number, inverse):
    assert value(inverse(header, "--column", option)) == pytest.approx(INVERSE[number])


@pytest.mark.parametrize(
    "options",
    [
        ["--column", "n= emp"],
        ["--column", "n=`emp`", "--scale", "n= emp"],
        ["--column", "n=`emp`", "--total", "--by", " emp"],
        ["--column", "n=`emp`", "--total", "--weights", " emp"],
        ["--column", "n=`emp`", "--text", " emp"],
    ],
    ids=lambda options: options[-2],
)
def test_which_column_cannot_be_told(options, inverse):
    done = inverse("emp, emp", *options)
    assert done.code == 1
    assert "has the columns ' emp' and 'emp'" in done.err
    exact = f"{options[-1].replace(' emp', '` emp`')}"
    assert done.err.endswith(f"Hint: in backticks it is to the letter: {options[-2]} '{exact}'\n")
    assert "does not say which" not in inverse("emp, emp", *options[:-1], exact).err


@pytest.mark.parametrize("option", ["--by", "--weights", "--text"])
def test_columns_that_are_not_there(option, inverse):
    done = inverse("n,state", *["--total"] * (option != "--text"), option, "stat")
    assert done.code == 1
    assert f"no column 'stat' for {option}; it has n, state" in done.err
    assert f"did you mean {option} state?" in done.err


@pytest.mark.parametrize(
    "options",
    [["--total", "--by", "state"], ["--total", "--weights", "state"], ["--column", "n=state"]],
    ids=lambda options: options[-2],
)
def test_names_of_folders_are_proposed_as_columns(options, tmp_path, debias):
    (tmp_path / "cells" / "state=01").mkdir(parents=True)
    (tmp_path / "cells" / "state=01" / "part.csv").write_text("n\n5\n")
    told = debias(tmp_path / "cells", "-", *options, formulas=("x = 1/n",), noise=LAPLACE)
    assert told.code == 1
    assert "Hint: add --hive: there are folders called state=…" in told.err
    done = debias(tmp_path / "cells", "-", *options, "--hive", formulas=("x = 1/n",), noise=LAPLACE)
    assert done.code == 0, done.err


def test_the_hint_for_a_name_with_spaces_at_its_ends_can_be_followed(tmp_path, capsys):
    (tmp_path / "in.csv").write_text("emp, emp\n1,2\n")
    arguments = ["debias", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), "r = 2*` emp `"]
    arguments += ["--noise", "` emp `=laplace(2)"]
    assert main(arguments) != 0
    hint = capsys.readouterr().err.partition("did you mean ")[2].strip()
    assert hint.endswith("?")
    assert main([*arguments, *shlex.split(hint[:-1])]) == 0
