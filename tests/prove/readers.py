"""Everything that reads text, and valid texts for it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import trueup as tu
from prove import grammar, texts
from trueup.adapters.notation import Name, assignment, names, read_numbers
from trueup.cli import build_parser
from trueup.cli.debias import read_job
from trueup.cli.sidecar import read_release
from trueup.files.job import Job, run_job
from trueup.files.sources import opened
from trueup.formula.grammar import parse
from trueup.formula.linear import conditions

_DRAWN = 4000  # seeds of drawn formulas and cases: enough that each is spoilt a hundred times


def _words(text: str) -> list[str]:
    return text.split()


@dataclasses.dataclass(frozen=True)
class Reader:
    """One thing that reads text.

    Parameters
    ----------
    name, share
        What it is called, and how many of a million inputs it gets: the dearer, the fewer.
    read
        What is done with a text; it may raise a TrueupError and nothing else.
    valid
        Returns a text that it takes.
    words, ways
        What may stand in such a text, and changes that know its structure.
    """

    name: str
    share: int
    read: Callable[[str], object]
    valid: Callable[[random.Random], str]
    words: Sequence[str] = ()
    ways: Sequence[texts.Change] = ()

    def draw(self, seed: int) -> str:
        """Return the text of a seed: a valid one now and then, mostly a spoilt one."""
        rng = random.Random(f"{self.name} {seed}")
        text = self.valid(rng)
        if rng.random() < 0.05:
            return text
        return texts.changed(rng, text, self.words, [self.valid(rng)], self.ways)


# -- formulas --------------------------------------------------------------------------------------

_FORMULAS = ("s/n", "1/q", "q**2", "sqrt(q)", "`pay roll`/n", "where(q > 1, 1/q, 7)", "a·b − c")
_FORMULA_WORDS = (
    *_words("q s n + - * / ** ( ) , < <= > >= == != and or not where min max abs exp log sqrt sin"),
    *_words("cos tan asin acos atan sinh cosh tanh asinh acosh atanh pi e I oo zoo nan E lambda"),
    *(
        "exp(",
        "where(",
        "`a b`",
        "__class__",
        "eval",
        "if",
        "else",
        "q.real",
        "[0]",
        "**100",
        "**s",
    ),
)


@cache
def _drawn_formulas() -> list[str]:
    cases = grammar.cases(11, _DRAWN)
    return [case.formula for case in cases if len(case.formula) < 50]


def _formula(rng: random.Random) -> str:
    return rng.choice(_FORMULAS if rng.random() < 0.3 else _drawn_formulas())


# -- options ---------------------------------------------------------------------------------------

_FAMILIES = (
    *("laplace", "discrete_laplace", "gaussian", "discrete_gaussian", "rounded_laplace"),
    *("rounded_gaussian", "staircase", "student_t", "uniform", "moments", "mass", "scipy"),
    *("noiseless", "sum_noise", "noise"),
)
_NOISES = (
    *("laplace(2)", "discrete_laplace(1/3)", "gaussian(0.5)", "discrete_gaussian(3)"),
    *("rounded_laplace(2)", "rounded_gaussian(2)", "staircase(1)", "staircase(0.5, sensitivity=2)"),
    *("student_t(5, 2)", "uniform(3)", "moments([0, 2, 0, 24])", "mass([[0, 0.5], [1, 0.5]])"),
    *("laplace(epsilon=0.5, sensitivity=3)", "gaussian(rho=1/2)", "noiseless", "noiseless()"),
    *("gaussian(epsilon=1, delta=1e-6)", "scipy(norm, scale=2)", "scipy(zipf, 3)"),
    *("scipy(t, 5)", "scipy(betabinom, 10, 2, 3)", "laplace(1) + laplace(2)"),
    *("discrete_laplace(1) + mass([[0, 0.5], [1, 0.5]])", "uniform(1) + gaussian(2)"),
)
_NOISE_WORDS = (
    *_FAMILIES,
    *_words("scale epsilon sensitivity rho delta gamma df width loc name shapes masses parts"),
    *_words("( ) [ ] , = + - / none None inf norm zipf poisson hypergeom levy cauchy beta gamma t"),
    *(
        "laplace(",
        "mass([[0, 1]])",
        "1e9",
        "10**9",
        "rv_histogram",
        "__class__",
        "mro",
        "multinomial",
    ),
)
_BOUNDS = (
    *("n >= 1", "1 <= n <= 500", "n in [1, 500]", "n <= 1/3", "-inf <= s", "`a b` >= 0", "n ≥ 1"),
    *("1, 5/2, -3", "1,5,20", "state, `a, b`,", "mean = s/n", "`a b`=where(n == 1, 0, 1)", "emp"),
)
_BOUND_WORDS = _words("n s ` `` = == <= >= < > in [ ] , - / inf ∞ 1 500 `a` and where")


def _read_option(text: str) -> None:
    for read in (conditions, read_numbers, assignment, names, Name):
        with contextlib.suppress(tu.TrueupError):
            read(text)


# -- files -----------------------------------------------------------------------------------------

_SIDECARS = (
    '[noise.n]\nfamily = "discrete_laplace"\nscale = 2\nbounds = [1, inf]\ncolumn = "emp"\n'
    'scale_column = "emp_scale"\n\n[noise]\ns = "laplace(2)"\n\n[estimate]\nmean = "s/n"\n',
    '[noise]\ns = "laplace(epsilon=0.5, sensitivity=3)"\n[estimate]\nm = "s**2"\nk = "exp(s/9)"\n',
    '[noise.a]\nfamily = "moments"\nmoments = [0, 2, 0, 24]\nbounds = [-1.5, 3]\n'
    '[noise.b]\nfamily = "mass"\nmasses = [[0, 0.5], [1, 0.5]]\n[estimate]\n"a b" = "a*b"\n',
    '[noise.x]\nfamily = "scipy"\nname = "norm"\nscale = 2\n[estimate]\nv = "x**2"\n',
)
_SIDECAR_WORDS = (
    *_NOISE_WORDS,
    *_words("[noise] [estimate] [noise.n] [[noise]] family bounds column scale_column = true"),
    *('"laplace(2)"', '"s/n"', "'''", '"""', "#", "\n", "{", "}", ".", "1979-05-27", "0o7", "+inf"),
)


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="trueup-inputs-"))


def _file(name: str, text: str) -> Path:
    path = _folder() / name
    path.write_bytes(texts.as_bytes(text))
    return path


def _read_sidecar(text: str) -> None:
    release = tu.read_spec(_file("release.toml", text))
    release.check_used(release.formulas.values())


_TABLES = (
    'zip,state,s,n,note\n01001,MA,51.70,103,"a, b"\n02139,MA,,5,"say ""hi"""\n10001,NY,5,-1,é\n',
    "n\n7\n8.5\n\n-1e3\n",
    "n;s\n7;1,5\n8;2\n",
    "a,n,a b,`c`\n1,2,3,4\nNA,nan,inf,-inf\n",
    "n,d\n1,2020-01-01\n2,\n3,2020-02-30\n",
)
_TABLE_WORDS = (
    *_words('n s , ; | " "" NA NULL nan inf -inf 1e309 0x1 1,5 \\N'),
    "\n",
    "\r\n",
    "\t",
    " n",
)


def _read_header(text: str) -> None:
    with opened(str(_file("header.csv", text)), None, None):
        pass


@cache
def _job(target: str) -> Job:
    words = ["debias", str(_folder() / "table.csv"), str(_folder() / target), "m = n**2"]
    args = build_parser().parse_args([*words, "--noise", "n=laplace(2)", "--no-stderr", "--force"])
    return read_job(args, read_release(args, args.formulas))


def _read_table(text: str) -> None:
    _file("table.csv", text)
    run_job(_job("out.parquet" if len(text) % 3 == 0 else "out.csv"))


# -- JSON ------------------------------------------------------------------------------------------

_NOISE_RECORDS = (
    {"family": "Laplace", "scale": 2},
    {"family": "Laplace", "scale": "1/3"},
    {"family": "DiscreteLaplace", "scale": 2},
    {"family": "Gaussian", "scale": 0.5},
    {"family": "DiscreteGaussian", "scale": 2},
    {"family": "RoundedLaplace", "scale": 1},
    {"family": "Moments", "moments": [0, 2, 0, 24]},
    {"family": "Mass", "masses": [[0, 0.5], [1, "1/2"]]},
    {"family": "Uniform", "width": 2},
    {"family": "StudentT", "df": 5, "scale": 1},
    {"family": "Staircase", "epsilon": 1, "sensitivity": 1, "gamma": 0.3},
    {"family": "ScipyNoise", "name": "norm", "shapes": [], "loc": 0, "scale": 2},
    {"family": "ScipyNoise", "name": "poisson", "shapes": [4], "loc": 0, "scale": 1},
    {"family": "SumNoise", "parts": [{"family": "Laplace", "scale": 1}] * 2},
)
_JSON_FORMULAS: tuple[Any, ...] = (
    "1/q",
    "q**2",
    "q",
    "exp(-q)",
    "abs(q)",
    {"table": [1, [2, 0.5]]},
)
_DOMAINS = ([None, None], ["1", None], ["1", "9"], ["0", "40", "integers"], ["1/3", "1e-05"])


@cache
def _short_formulas() -> list[str]:
    cases = grammar.cases(12, _DRAWN)
    return [case.formula for case in cases if {*case.noises} == {"q"} and len(case.formula) < 30]


def _estimator(rng: random.Random) -> str:
    record = {
        "trueup": 1,
        "formula": rng.choice(_JSON_FORMULAS if rng.random() < 0.7 else _short_formulas()),
        "noise": {"q": rng.choice(_NOISE_RECORDS)},
        "domain": {"q": rng.choice(_DOMAINS)},
        "extension": rng.choice(("optimal", "optimal", "optimal", 3)),
    }
    return json.dumps(record)


_JSON_WORDS = (
    *_words("{ } [ ] , : null true false NaN Infinity -Infinity q family scale masses table"),
    *(
        '"formula"',
        '"noise"',
        '"domain"',
        '"extension"',
        '"integers"',
        '"optimal"',
        '"1/0"',
        "1e999",
    ),
    *('"Laplace"', '"Mass"', '"ScipyNoise"', '"SumNoise"', '"Noise"', '"Noiseless"', '"__class__"'),
)


def _atom(kind: str) -> dict[str, Any]:
    return {"__function__": "atom_domain", "__kwargs__": {"T": kind, "bounds": None, "nan": False}}


def _measurement(rng: random.Random) -> str:
    noise = {
        "__function__": rng.choice(("make_laplace", "make_gaussian", "make_geometric")),
        "__kwargs__": {"scale": 2.0, "k": None, "input_domain": _atom(rng.choice(("i32", "f64")))},
    }
    wrapped = {"__function__": "make_composition", "__kwargs__": {"measurements": [noise, noise]}}
    summary = {
        "column": ["len", "x"],
        "aggregate": ["Frame Length", "Sum"],
        "distribution": ["Integer Laplace", "Float Gaussian"],
        "scale": [4.0, 2.0],
        "threshold": [None, None],
    }
    return json.dumps(rng.choice((noise, noise, wrapped, summary)))


_OPENDP_WORDS = (
    *_JSON_WORDS,
    *(
        '"__function__"',
        '"__kwargs__"',
        '"__tuple__"',
        '"make_noise"',
        '"make_chain_mt"',
        '"bounds"',
    ),
    *('"scale"', '"k"', '"column"', '"u8"', '"measurements"', '"input_domain"', '"T"', "[0, 10]"),
)

_TRANSFORMS = ("root:2", "root:3", "log", "root:1", "root:10")

READERS = (
    Reader("formula", 350_000, parse, _formula, _FORMULA_WORDS),
    Reader("noise", 180_000, tu.noise, lambda rng: rng.choice(_NOISES), _NOISE_WORDS),
    Reader(
        "bounds and names", 262_000, _read_option, lambda rng: rng.choice(_BOUNDS), _BOUND_WORDS
    ),
    Reader(
        "transform",
        20_000,
        lambda text: tu.mechanisms.PerRecordSum(text, 1, offset=1),
        lambda rng: rng.choice(_TRANSFORMS),
        ("root", "log", ":", "sqrt", "root:", "1/2"),
    ),
    Reader(
        "sidecar",
        80_000,
        _read_sidecar,
        lambda rng: rng.choice(_SIDECARS),
        _SIDECAR_WORDS,
        (texts.spoilt_lines,),
    ),
    Reader(
        "estimator in JSON",
        30_000,
        tu.Estimator.from_json,
        _estimator,
        _JSON_WORDS,
        (texts.spoilt_json,) * 3,
    ),
    Reader(
        "OpenDP's JSON",
        45_000,
        tu.from_opendp,
        _measurement,
        _OPENDP_WORDS,
        (texts.spoilt_json,) * 3,
    ),
    Reader(
        "header of a CSV file",
        31_000,
        _read_header,
        lambda rng: rng.choice(_TABLES),
        _TABLE_WORDS,
        (texts.spoilt_table,) * 3,
    ),
    Reader(
        "CSV file, to CSV and Parquet",
        2_000,
        _read_table,
        lambda rng: rng.choice(_TABLES),
        _TABLE_WORDS,
        (texts.spoilt_table,) * 3,
    ),
)
"""Shares add up to a million."""
