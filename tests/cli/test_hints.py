"""Hints on the command line are in its own words, and what they propose works."""

import re
import shlex

import pytest

from trueup.cli.hints import reworded

PYTHON = re.compile(r"\bdomain=|\bNone\b|\b[A-Z][A-Za-z]+\(|\bsd\(")

REFUSED = [
    ["1/n", "--noise", "n=laplace(2)"],
    ["s + 1/n", "--noise", "laplace(2)"],
    ["s/n", "--noise", "laplace(2)"],
    ["1/`pay roll`", "--noise", "laplace(2)"],
    ["1/(n - 5/2)", "--noise", "n=laplace(2)", "--domain", "0<=n<=9"],
    ["abs(n)", "--noise", "n=laplace(2)"],
]


@pytest.mark.parametrize("argv", REFUSED, ids=lambda argv: argv[0])
def test_what_a_hint_proposes_is_taken(argv, run):
    done = run("explain", *argv, "--no-sql")
    assert done.code == 1
    hint = done.err.split("\nHint: ")[1]
    assert PYTHON.search(hint) is None
    proposed = shlex.split(hint[hint.index("--domain ") :].split(";")[0])
    formula, noise = argv[0], argv[1:3]
    again = run("explain", formula, *noise, *proposed, "--no-sql")
    assert again.code == 0, again.err


@pytest.mark.parametrize("noise", ["gaussian(2)", "discrete_gaussian(2)", "discrete_gaussian(1/2)"])
def test_what_only_python_has_is_said_to_be_there(noise, run):
    done = run("explain", "1/n", "--noise", f"n={noise}", "--domain", "n>=1")
    assert done.code == 1
    assert "(in Python) tu.nearly_unbiased(" in done.err.split("\nHint: ")[1]


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("e.g. domain={'n': (None, -2.5)}", 'e.g. --domain "n<=-2.5"'),
        ("e.g. domain={'a b': (0, 1)}", "e.g. --domain '0<=`a b`<=1'"),
        ("use Laplace(Fraction(7, 2)): alike", "use laplace(7/2): alike"),
        ("integer noise (DiscreteLaplace) has", "integer noise (discrete_laplace) has"),
        (
            "or nearly_unbiased('1/n', DiscreteGaussian(Fraction(1, 2)), Integers(1, 9), ...)",
            "or (in Python) tu.nearly_unbiased('1/n', DiscreteGaussian(Fraction(1, 2)), "
            "Integers(1, 9), ...)",
        ),
        ("use sd(q) at plausible true values", "use trueup explain --at plausible true values"),
    ],
)
def test_words(python, shell):
    assert reworded(python) == shell
