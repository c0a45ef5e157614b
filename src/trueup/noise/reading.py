"""Noise as text: ``laplace(2)``, ``laplace(epsilon=1/2)``, ``laplace(1) + laplace(2)``.

A family is any of trueup's in lower case with underscores, or as Python has it, with the parameters
of its class or of its ``from_budget``. The text is read by Python's parser; nothing is evaluated.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from trueup.errors import TrueupError, quoted
from trueup.noise import Noise, SumNoise, families
from trueup.noise.record import snake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HINT = "e.g. discrete_laplace(2) or laplace(epsilon=0.5, sensitivity=3)"
_CHARACTERS = 2_000  # of the text
_DIGITS = 40  # characters of a number: a double has 17 digits
_SOME_SCALE = Fraction(1, 100)  # small: what can be estimated at all, can be at this scale
_TINY = re.compile(r"[0-9]+\.?[0-9]*[eE]-[0-9]+")
_SIGNS = str.maketrans({"−": "-", "∞": "inf"})

Number = int | Fraction | float


def read_noise(text: str, *, scaled: bool = False) -> Noise:
    """Return the noise that a text describes.

    ``scaled`` says that a column holds the scale of each row: the family alone is enough.

    Examples
    --------
    >>> read_noise("discrete_laplace(2)"), read_noise("laplace(epsilon=1/2, sensitivity=3)")
    (DiscreteLaplace(2), Laplace(6))
    >>> read_noise("laplace(1) + laplace(2)").variance
    10
    """
    try:
        return _law(parsed(text), scaled)
    except TrueupError as error:
        problem = f"cannot read the noise {quoted(str(text))}: {error.message}"
        raise TrueupError(problem, error.hint or _HINT) from None


def parsed(text: str) -> ast.expr:
    """Return a text as Python's parser reads it."""
    if not isinstance(text, str) or len(text) > _CHARACTERS:
        raise TrueupError(f"it is no text of at most {_CHARACTERS:,} characters", "")
    for number in _TINY.findall(text):
        if float(number) == 0 and number.lower().partition("e")[0].strip("0."):
            raise TrueupError(f"{number} is beyond double precision", "")
    try:
        return ast.parse(text.translate(_SIGNS).strip(), mode="eval").body
    except SyntaxError as error:
        raise TrueupError(f"{error.msg}, at character {error.offset or 0}", "") from None
    except (ValueError, RecursionError, MemoryError):
        raise TrueupError("it is nested too deeply, or holds a null character", "") from None


def number_of(node: ast.expr) -> Number:
    """Return a number: digits, perhaps with a sign, or a quotient of two such.

    Examples
    --------
    >>> number_of(parsed("-5/2")), number_of(parsed("inf"))
    (Fraction(-5, 2), inf)
    """
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            if value == math.inf or (isinstance(value, int) and value >= 10**_DIGITS):
                raise TrueupError("a number is beyond double precision or 40 digits", "")
            return value
        case ast.Name("inf"):
            return math.inf
        case ast.UnaryOp(ast.USub(), ast.Constant() | ast.Name() as value):
            return -number_of(value)
        case ast.BinOp(ast.Constant() | ast.UnaryOp() as top, ast.Div(), ast.Constant() as bottom):
            below = number_of(bottom)
            if below == 0:
                raise TrueupError("cannot divide by 0", "")
            return Fraction(number_of(top)) / Fraction(below)
    raise TrueupError(f"{_shown(node)} is no number", "")


def _law(node: ast.expr, scaled: bool) -> Noise:
    match node:
        case ast.BinOp(left, ast.Add(), right):
            return _law(left, scaled) + _law(right, scaled)
        case ast.Name(name):
            return make_noise(name, [], {}, scaled=scaled)
        case ast.Call(ast.Name(name), positional, named) if all(k.arg for k in named):
            given = {str(k.arg): _value(k.value) for k in named}
            if len(given) < len(named):
                raise TrueupError("a parameter is given twice", "")
            return make_noise(name, [_value(a) for a in positional], given, scaled=scaled)
    raise TrueupError(f"expected a noise family, got {_shown(node)}", "")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Name(word) if word != "inf":
            return None if word.lower() == "none" else word
        case ast.List(items) | ast.Tuple(items):
            return [_value(item) for item in items]
    return number_of(node)


def _shown(node: ast.expr) -> str:
    try:
        return quoted(ast.unparse(node))
    except RecursionError:
        return "what is nested so deeply"


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return a hint at the known word that is spelt most alike, "" if there is none.

    Examples
    --------
    >>> nearest("lplace", ["laplace", "gaussian"])
    'did you mean laplace?'
    """
    near = difflib.get_close_matches(word, [*known], 1, alike)
    return f"did you mean {near[0]}?" if near else ""


_OTHER_NAMES = {
    **dict.fromkeys(["normal", "gauss"], "gaussian"),
    **dict.fromkeys(["geometric", "twosidedgeometric"], "discrete_laplace"),
    **dict.fromkeys(["t", "student"], "student_t"),
}
"""What others call some families."""


def known_families() -> dict[str, type[Noise]]:
    """Return every noise family by the name that a text has for it."""
    named = {snake(name): family for name, family in families().items() if family is not SumNoise}
    named["scipy"] = named.pop("scipy_noise")
    return dict(sorted(named.items()))


def make_noise(
    family: str, positional: list[Any], named: Mapping[str, Any], *, scaled: bool = False
) -> Noise:
    """Return a noise by family, with its own parameters or those of a privacy budget.

    Examples
    --------
    >>> make_noise("laplace", [], {"epsilon": 2})
    Laplace(Fraction(1, 2))
    """
    known = known_families()
    key = family.replace("_", "").lower()
    found = {name.replace("_", ""): f for name, f in known.items()}.get(key)
    if found is None:
        meant = _OTHER_NAMES.get(key)
        hint = f"did you mean {meant}?" if meant else nearest(snake(family), known)
        hint = hint or f"one of {', '.join(known)}"
        raise TrueupError(f"there is no noise family {quoted(family)}", hint)
    fields = [f.name for f in dataclasses.fields(found)]
    if scaled and "scale" in fields and not positional and "epsilon" not in named:
        named = {"scale": _SOME_SCALE, **named}
    known_names = [p for way in _ways(found) for p in inspect.signature(way).parameters]
    for name in named:
        if name not in known_names:
            hint = nearest(name, known_names) or f"write {_usage(family, found)}"
            raise TrueupError(f"{snake(family)} has no parameter {quoted(name)}", hint)
    try:
        noise: Noise = found(*positional, **named)
    except TypeError as error:
        raise TrueupError(f"{snake(family)}: {error}", f"write {_usage(family, found)}") from None
    return noise


def _ways(family: type[Noise]) -> list[Any]:
    """Return what makes a noise of a family: its own parameters, or those of a privacy budget."""
    return [way for way in (family, getattr(family, "from_budget", None)) if way is not None]


def _usage(name: str, family: type[Noise]) -> str:
    """Return the ways to write a family."""
    ways = [", ".join(inspect.signature(way).parameters) for way in _ways(family)]
    return " or ".join(f"{snake(name)}({way})" for way in dict.fromkeys(ways))
