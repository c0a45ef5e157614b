"""Hostile text: an answer or a `FormulaError`, after little work, nothing executed."""

import pytest

from trueup.errors import FormulaError
from trueup.formula.grammar import parse
from trueup.formula.text import text
from work import at_most

CALLS = 2_500_000
"""835,000 were counted at most."""


def nested(layer, times, core="q"):
    for k in range(times):
        core = layer.replace("@", core).replace("#", str(k + 2))
    return core


def series(term, times, sign="+"):
    return sign.join(term.replace("#", str(k + 2)) for k in range(times))


REFUSED = {
    "attribute": "q.__class__.__mro__[1].__subclasses__()",
    "import": "__import__('os').system('true')",
    "exec": "exec(q)",
    "eval": "eval(q)",
    "sympy's door": "sympify(q)",
    "lambda": "lambda q: q",
    "comprehension": "[q for q in s]",
    "generator": "sum(q for q in s)",
    "string": "'q'",
    "braces": "{q}",
    "index": "q[0]",
    "if": "q if s else n",
    "semicolon": "q; s",
    "assignment": "q = 1",
    "walrus": "(q := 1)",
    "keyword": "exp(x=1)",
    "star": "max(*q)",
    "hex": "0x10",
    "underscore": "1_000",
    "imaginary": "1j",
    "ellipsis": "...",
    "comment": "q # s",
    "backslash": "q \\ s",
    "nul": "q\0",
    "nul in a name": "`q\0`",
    "surrogate": "q + \ud800",
    "surrogate in a name": "`\ud800`",
    "emoji": "😀",
    "bidi": "q \u202e + s",
    "digits of another script": "٣",
    "two dots": "q··s",
    "empty": "",
    "blank": " \t\n",
    "5,000 brackets": "(" * 5_000 + "q" + ")" * 5_000,
    "100 brackets": "(" * 100 + "q" + ")" * 100,
    "open brackets": "(" * 2_000,
    "100,000 characters": "q+" * 50_000 + "q",
    "10,000 minuses": "-" * 10_000 + "q",
    "1,000 minuses": "-" * 1_000 + "q",
    "1,000 nots": "where(" + "not " * 450 + "q < 1, 1, 0)",
    "tower": "9**9**9**9",
    "tower of brackets": "((q**50)**50)**50",
    "tower of sums": "(((q+1)**100)**100)**100",
    "tower on the right": "10**100**100",
    "tower of fractions": "(((4/3)**100/3117982410207)**100*7)**100",
    "long fractions": series("1/1#00000000000000000000000000000007", 40),
    "roots of long numbers": "sqrt((10**60 + 7)*10**60 + 9)",
    "300 arguments": "max(" + series("q+#", 300, ",") + ")",
    "nested maxima": nested("max(@ + 1, min(s*# - q, #))", 12),
    "many joined": "where(" + series("(q > # and s < #)", 30, " or ") + ", 1, 0)",
    "where in conditions": nested("where(@ < #, 1, #)", 20),
    "deep where": nested("where(q < #, @, # * q)", 60),
    "huge exponent digits": "1e" + "9" * 1_900,
    "huge product": series("1e300", 300, "*"),
    "distributed factorials": nested("#*(@ + a#)", 50),
    "zero over zero": "(q - q)/(s - s)",
}

READ = {
    "many terms": series("sin(#*q)", 40),
    "many names": series("a#*b#", 65),
    "nested abs": nested("abs(@ - #)", 12),
    "nested abs of products": nested("abs(@*s - n*#)", 12),
    "abs of abs": nested("abs(@)", 12),
    "wide abs": "abs(" + series("a#*b#", 90) + ")",
    "abs of a product": "abs(" + series("(a# - b#)", 60, "*") + ")",
    "abs of powers": nested("abs((@)**(s - #))", 12),
    "abs beyond the reals": nested("abs(exp(sqrt(@)))", 4),
    "abs of logarithms": "abs(" + series("log(q + #)", 50, "*") + ")",
    "eight maxima": "max(" + series("sin(q*#)*s**#", 8, ",") + ")",
    "maxima of abs": "max(" + series("abs(abs(q - #) - s)", 8, ",") + ")",
    "else where": nested("where(q < #, #*q + s, @)", 33),
    "same cases": nested("where(q < # and s > #, 1, @)", 8),
    "alternating cases": nested("where(q < # and s > #, 1, where(q < -#, 0, @))", 7),
    "powers of powers": nested("(@)**s", 55),
    "tower of names": "**".join(["q"] * 58),
    "continued fraction": nested("1/(1 + @)", 59),
    "distributed": nested("#*(@ + a#)", 30),
    "exponentials": nested("2**(@ + 1)", 29),
    "nested logs": nested("log(@ + #)", 12),
    "nested atanh": nested("atanh(@/2 - s*#)", 12),
    "nested acosh": nested("acosh(@/2 - s*#)", 12),
    "nested sqrt": nested("sqrt(@ + #*s)", 12),
    "constant roots": nested("(@ + #)**(1/3)", 30, "2"),
    "constant sines": nested("sin(@ + #)", 12, "2"),
    "angles": series("sin(pi/#)", 58),
    "tangents": series("tan(pi/#/3)", 50),
    "many cases": series("where(q*s - sin(q*#) < #, 1, s)", 25),
    "product of cases": series("where(q < #, #, s)", 45, "*"),
    "wide power": "(" + series("a#", 150) + ")**100",
    "wide comparison": "where(" + series("a#*b#", 45) + " < " + series("c#", 45) + ", 1, 0)",
    "wide equation": "where(" + series("a#*b#", 45) + " == " + series("c#", 45) + ", 1, 0)",
    "names that look like code": "`__import__('os')` + `q; s`",
}


def read(given):
    try:
        with at_most(CALLS):
            return parse(given)
    except FormulaError as error:
        assert "\nHint: " in str(error)  # noqa: PT017
        assert len(str(error)) < 700  # noqa: PT017
        return None


@pytest.fixture(scope="module", autouse=True)
def _warm():
    """Leave the first import of sympy's lazy parts out of the counts."""
    parse("where(q < 1, max(q, 1), abs(q)) + exp(q)*sin(q)**0.5 + log(q)")


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    assert read(REFUSED[name]) is None


@pytest.mark.parametrize("name", READ)
def test_read_with_little_work(name):
    expr = read(READ[name])
    assert expr is not None
    with at_most(CALLS):
        assert text(expr)
