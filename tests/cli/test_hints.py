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


@pytest.mark.parametrize("formula", ["1/n", "sqrt(n)"])
@pytest.mark.parametrize("noise", ["gaussian(2)", "discrete_gaussian(3)"])
def test_a_small_bias_is_an_option(formula, noise, run):
    call = ["explain", formula, "--noise", f"n={noise}", "--domain", "n>=1", "--no-sql"]
    done = run(*call)
    assert done.code == 1
    (option,) = re.findall("--max-bias [0-9.]+", done.err.split("\nHint: ")[1])
    again = run(*call, *option.split())
    assert again.code == 0, again.err
    assert "certified" in again.out


FILES = {
    "c.csv": "s,n,g,sc\n3,4,a,2\n0,-1,a,-1\n12,20,b,2\n",
    "far.csv": "s,n\n" + "".join(f"{i},{-3 - i % 3}\n" for i in range(400)),
    "people.csv": "area,wage,who\nA,10,1\nA,,1\nB,30,2\n",
    "keys.toml": 'epsilon = 1\nby = "area"\n[keys]\narea = ["A", "B"]\n',
}
ON_N, PEOPLE = "--noise laplace(2) --domain n>=1", "release people.csv o.csv --spec keys.toml"
WRONG = {
    "explain abs(n) --noise uniform(2)": "--max-bias 0.05",
    "explain 1/n --noise laplace(2) --domain 5<=n<=1": "check the conditions",
    "explain 1/n --noise laplace(2) --domain -1<=n<=9": "--domain",
    "explain s/n --noise discrete_laplace(2) --domain n>=0": "--empty VALUE",
    "explain 1/n --noise laplace(0) --domain n>=1": "1/3",
    "explain 1/n --noise scipy(nosuch) --domain n>=1": "scipy(norm, scale=2)",
    "explain 1/n --noise gaussian(epsilon=1) --domain n>=1": "epsilon and delta",
    "explain 1/n --noise discrete_gaussian(5) --domain 1<=n<=60 --max-bias 0": "--max-bias 0.01",
    "explain 1/n --noise discrete_gaussian(5) --domain n>=1 --cells 0": "--cells 400",
    "explain n-3+1/n --noise gaussian(5) --domain 1<=n<=60 --max-bias 0.1": "a domain on which",
    f"debias c.csv out.csv m=s/n {ON_N} --total --weights n": "--ratio",
    f"debias c.csv out.csv m=s**2/n {ON_N} --ratio": "--total",
    f"debias c.csv out.csv m=s/n {ON_N} --ratio --interval 95": "--interval 0.95",
    f"debias c.csv out.csv m=1/n {ON_N} --scale n=sc": "correct their scale",
    "debias c.csv out.csv m=exp(n/3) --noise laplace(2)": "--no-stderr",
    f"debias c.csv out.csv m=1/q {ON_N.replace('n>', 'q>')}": "--column q=",
    "debias c.csv out.csv m=s/n --noise laplace(2) --ratio --by g": "--total",
    "debias far.csv out.csv m=s/n --noise discrete_laplace(2) --domain n>=1": "check it",
    f"{PEOPLE} n=count m=mean(wage,0,40)": "--missing drop",
    f"{PEOPLE} u=share(union)": "e.g. share(union, ['yes', 'no'])",
    f"{PEOPLE} u=share(union,yes,no)": "e.g. share(union, ['yes', 'no'])",
    f"{PEOPLE} u=share(party,red,green,blue)": "e.g. share(party, ['red', 'green', 'blue'])",
    f"{PEOPLE} m=sum(wages,0,40)": "did you mean wage? Nothing was released",
    "explain ln(n) --noise laplace(2) --domain n>=1": "did you mean log?",
    "explain n --noise laplace(2) --dialect snowflak": "did you mean snowflake?",
    PEOPLE: '"n = count"',
    f"{PEOPLE} n=count --at-most 3": "--unit person_id",
    f"{PEOPLE} n=count --unit who": "--at-most m",
    f"{PEOPLE} n=count --unit who --at-most 0": "--at-most 3",
    f"{PEOPLE} n=count --ledger l.toml": "--dataset",
    "release people.csv o.csv --epsilon 1 --by area n=count": "--keys groups.csv",
}
SHELL = re.compile(r"""--[a-z-]+ (?:"[^"]*"|'[^']*'|\S+)|scipy\(norm, scale=2\)|"[^"]*\"""")


@pytest.mark.parametrize("line", WRONG)
def test_no_hint_is_in_python(line, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    done = run(*line.split())
    assert "\nHint: " in done.err
    hints = done.err.split("\nHint: ")[1:]
    assert WRONG[line] in " ".join(hints)
    for hint in hints:
        plain = SHELL.sub("", hint.split("\n")[0])
        assert re.search(r"\w=|\bNone\b|\b[A-Z][A-Za-z]+\(|\btu\.|\bsd\(", plain) is None, hint
    if line.startswith(PEOPLE) and "mean" in line:
        assert done.err.startswith("trueup: people.csv: wage is missing in some rows")


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("e.g. domain={'n': (None, -2.5)}", 'e.g. --domain "n<=-2.5"'),
        ("e.g. domain={'a b': (0, 1)}", "e.g. --domain '0<=`a b`<=1'"),
        ("use Laplace(Fraction(7, 2)): alike", "use laplace(7/2): alike"),
        ("integer noise (DiscreteLaplace) has", "integer noise (discrete_laplace) has"),
        (
            "or nearly_unbiased('1/n', DiscreteGaussian(Fraction(1, 2)), Integers(1, 9), ...)",
            "or --max-bias 0.05",
        ),
        ("missing={'wage': …} names a value", "[missing] wage = … in the plan names a value"),
        ("frontier() shows", "(in Python) tu.frontier() shows"),
        ("use sd(q) at plausible true values", "use trueup explain --at plausible true values"),
    ],
)
def test_words(python, shell):
    assert reworded(python) == shell
