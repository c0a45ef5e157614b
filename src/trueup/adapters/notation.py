"""What the options say: ``laplace(2)``, ``1 <= n <= 500``, ``mean = s/n``. Nothing is evaluated.

::

    noise     = law { "+" law }
    law       = family [ "(" [ argument { "," argument } ] ")" ]
    argument  = [ word "=" ] value
    value     = number | word | "[" value { "," value } "]"
    number    = [ "-" ] digits [ "/" digits ]
    domain    = number "<=" name [ "<=" number ] | name ( "<=" | ">=" ) number
              | name "in" "[" number "," number "]"
    name      = word | "`" anything "`"

A family is any of trueup's in lower case with underscores, e.g. ``discrete_laplace(2)``, with the
parameters of the Python class or of its ``from_budget``: ``laplace(epsilon=0.5, sensitivity=3)``.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import re
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import FormulaError, TrueupError, quoted
from trueup.formula.build import CHARACTERS
from trueup.formula.grammar import WORD
from trueup.noise import Noise, SumNoise, families
from trueup.noise.record import snake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TOKEN = re.compile(
    rf"""\s*(?:
        (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<word>{WORD})
      | `(?P<quoted>(?:[^`]|``)+)`
      | (?P<sign><=|>=|≤|≥|[-−+/=,()\[\]<>∞])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_SPELLINGS = {"≤": "<=", "≥": ">=", "−": "-"}
_BACKTICKED = re.compile(r"`((?:[^`]|``)+)`", re.DOTALL)
_LISTED = re.compile(r"\s*`(?:[^`]|``)+`\s*(?=,|$)|[^,]+", re.DOTALL)
_NOISE_HINT = 'e.g. "n=discrete_laplace(2)" or "s=laplace(epsilon=0.5, sensitivity=3)"'
_DOMAIN_HINT = 'e.g. "n>=1", "1<=n<=500" or "n in [1, 500]"'

_DIGITS = 40  # characters of a number: a double has 17 digits
_NESTED = 3  # lists in lists: moments are one list, a table of masses is a list of pairs
_SOME_SCALE = Fraction(1, 100)  # small: what can be estimated at all, can be at this scale

Number = int | Fraction | float


class Bound(NamedTuple):
    """What a domain says of one statistic."""

    name: str
    low: Number | None
    high: Number | None


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return a hint at the known word that is spelt most alike, "" if there is none.

    Examples
    --------
    >>> nearest("lplace", ["laplace", "gaussian"])
    'did you mean laplace?'
    """
    near = difflib.get_close_matches(word, [*known], 1, alike)
    return f"did you mean {near[0]}?" if near else ""


def known_families() -> dict[str, type[Noise]]:
    """Return every noise family by the name the command line has for it."""
    named = {snake(name): family for name, family in families().items() if family is not SumNoise}
    named["scipy"] = named.pop("scipy_noise")
    return dict(sorted(named.items()))


class Name(str):
    """The name of a column as an option gives it: without blanks around it, unless in backticks.

    ``letters`` has the blanks: where a table has both, it cannot be told which one is meant.

    Examples
    --------
    >>> Name(" emp "), Name(" emp ").letters, Name("` emp`"), Name("` emp`").letters
    ('emp', ' emp ', ' emp', ' emp')
    """

    letters: str

    def __new__(cls, text: str) -> Name:
        """Read the name from the text of an option."""
        match = _BACKTICKED.fullmatch(text.strip())
        self = super().__new__(cls, text.strip() if match is None else match[1].replace("``", "`"))
        self.letters = text if match is None else str(self)
        return self


def names(text: str) -> tuple[Name, ...]:
    """Return names between commas; one in backticks may have commas and blanks of its own.

    Examples
    --------
    >>> names("state, `a, b`,")
    ('state', 'a, b')
    """
    return tuple(Name(part[0]) for part in _LISTED.finditer(text) if part[0].strip())


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
    reader = _Reader(text, _NOISE_HINT, scaled)
    total = reader.law()
    while reader.accept("+"):
        total = total + reader.law()
    reader.finish()
    return total


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
        hint = nearest(snake(family), known) or f"one of {', '.join(known)}"
        raise TrueupError(f"there is no noise family {quoted(family)}", hint)
    fields = dataclasses.fields(found)
    own = {f.name for f in fields}
    mixed = not named.keys() <= own
    if scaled and "scale" in own and not positional and "epsilon" not in named:
        named = {"scale": _SOME_SCALE, **named}
    budget = getattr(found, "from_budget", None)
    make: Any = budget if budget and mixed else found
    _check_names(family, found, [*[f.name for f in fields][: len(positional) * mixed], *named])
    try:
        inspect.signature(make).bind(*positional, **named)
    except TypeError as error:
        raise TrueupError(f"{snake(family)}: {error}", f"write {_usage(family, found)}") from None
    noise: Noise = make(*positional, **named)
    return noise


def _check_names(name: str, family: type[Noise], named: Iterable[str]) -> None:
    """Refuse a parameter that no way to write the family has, and two of different ways."""
    ways = [list(inspect.signature(way).parameters) for way in _ways(family)]
    for key in named:
        if not any(key in way for way in ways):
            hint = nearest(key, [p for way in ways for p in way])
            hint = hint or f"write {_usage(name, family)}"
            raise TrueupError(f"{snake(name)} has no parameter {quoted(key)}", hint)
    for one, two in combinations(named, 2):
        if not any(one in way and two in way for way in ways):
            raise TrueupError(
                f"{snake(name)}: {one} and {two} exclude each other, each says how large the noise "
                "is",
                f"leave one out; write {_usage(name, family)}",
            )


def _ways(family: type[Noise]) -> list[Any]:
    """Return what makes a noise of a family: its own parameters, or those of a privacy budget."""
    return [way for way in (family, getattr(family, "from_budget", None)) if way is not None]


def _usage(name: str, family: type[Noise]) -> str:
    """Return the ways to write a family."""
    ways = [", ".join(inspect.signature(way).parameters) for way in _ways(family)]
    return " or ".join(f"{snake(name)}({way})" for way in dict.fromkeys(ways))


def read_domain(text: str) -> Bound:
    """Return what a text says of a statistic.

    Examples
    --------
    >>> read_domain("n >= 1")
    Bound(name='n', low=1, high=None)
    >>> read_domain("1 <= n <= 500") == read_domain("n in [1, 500]")
    True
    """
    reader = _Reader(text, _DOMAIN_HINT)
    bound = reader.domain()
    reader.finish()
    return bound


def read_numbers(text: str) -> list[Number]:
    """Return numbers separated by commas.

    Examples
    --------
    >>> read_numbers("1, 5/2, -3")
    [1, Fraction(5, 2), -3]
    """
    reader = _Reader(text, "give numbers separated by commas, e.g. 1,5,20")
    numbers = [reader.number()]
    while reader.accept(","):
        numbers.append(reader.number())
    reader.finish()
    return numbers


def read_number(text: str) -> Number:
    """Return one number.

    Examples
    --------
    >>> read_number("5/2")
    Fraction(5, 2)
    """
    reader = _Reader(text, "give one number, with a point before its decimals, e.g. 2 or 0.5")
    number = reader.number()
    reader.finish()
    return number


class _Reader:
    """The tokens of one text, read from the left."""

    def __init__(self, text: str, hint: str, scaled: bool = False) -> None:
        self.text, self.hint, self.scaled = text, hint, scaled
        self.position = 0
        if len(text) > CHARACTERS:
            problem = f"the text has {len(text)} characters, more than {CHARACTERS}"
            raise FormulaError(f"{problem}: {quoted(text)}", hint)
        self.kind, self.value, self.start = "", "", 0
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            gap = len(self.text) - len(self.text[self.position :].lstrip())
            raise self.refuse(f"cannot read {quoted(self.text[gap:], 10)}", gap)
        self.kind = str(match.lastgroup)
        self.value = _SPELLINGS.get(match[self.kind], match[self.kind])
        self.start, self.position = match.start(self.kind), match.end()

    def refuse(self, problem: str, start: int | None = None) -> FormulaError:
        start = self.start if start is None else start
        return FormulaError.at(self.text, start, problem, self.hint)

    def accept(self, *signs: str) -> str:
        """Step over one of the signs, and return it, if it comes next."""
        if self.kind not in ("sign", "word") or self.value not in signs:
            return ""
        taken = self.value
        self.advance()
        return taken

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.refuse(f"expected '{sign}'")

    def finish(self) -> None:
        if self.kind != "end":
            raise self.refuse(f"did not expect {quoted(self.value)}")

    # -- noise -------------------------------------------------------------------------------------

    def law(self) -> Noise:
        if self.kind != "word":
            raise self.refuse("expected a noise family")
        family, start = self.value, self.start
        self.advance()
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if self.accept("("):
            while not self.accept(")"):
                self.argument(positional, named)
                if not self.accept(","):
                    self.expect(")")
                    break
        try:
            return make_noise(family, positional, named, scaled=self.scaled)
        except TrueupError as error:
            raise FormulaError.at(self.text, start, error.message, error.hint) from None

    def argument(self, positional: list[Any], named: dict[str, Any]) -> None:
        start, value = self.start, self.argument_value()
        if not (isinstance(value, str) and self.accept("=")):
            if named:
                raise self.refuse("a parameter without a name after one with a name", start)
            positional.append(value)
            return
        if value in named:
            raise self.refuse(f"{quoted(value)} is given twice", start)
        named[value] = self.argument_value()

    def argument_value(self, depth: int = 0) -> Any:
        if depth > _NESTED:
            raise self.refuse(f"lists are nested more than {_NESTED} deep")
        if self.kind == "word":
            word = self.value
            self.advance()
            return None if word.lower() == "none" else word
        if not self.accept("["):
            return self.number()
        values = []
        while not self.accept("]"):
            values.append(self.argument_value(depth + 1))
            if not self.accept(","):
                self.expect("]")
                break
        return values

    def number(self) -> Number:
        sign = -1 if self.accept("-") else 1
        if self.accept("∞", "inf"):
            return sign * float("inf")
        top = self.digits()
        if not self.accept("/"):
            return sign * top
        start, bottom = self.start, self.digits()
        if bottom == 0:
            raise self.refuse("cannot divide by 0", start)
        return sign * Fraction(top) / Fraction(bottom)

    def digits(self) -> Number:
        if self.kind != "number":
            raise self.refuse("expected a number")
        start, text = self.start, self.value
        self.advance()
        if len(text) > _DIGITS:
            raise self.refuse(f"a number of {len(text)} characters, more than {_DIGITS}", start)
        value = int(text) if text.isdigit() else float(text)
        lost = value == 0 and text.lower().partition("e")[0].strip("0.")
        if value == math.inf or lost:
            raise self.refuse(f"{text} is beyond double precision", start)
        return value

    # -- domain ------------------------------------------------------------------------------------

    def domain(self) -> Bound:
        if self.kind in ("word", "quoted") and self.value != "inf":
            name = self.name()
            return self.membership(name) if self.accept("in") else self.one_sided(name)
        first, sign = self.number(), self.comparison()
        name = self.name()
        second = self.number() if self.accept(sign) else None
        low, high = (first, second) if sign == "<=" else (second, first)
        return Bound(name, low, high)

    def name(self) -> str:
        if self.kind not in ("word", "quoted"):
            raise self.refuse("expected the name of a statistic")
        name = self.value.replace("``", "`") if self.kind == "quoted" else self.value
        self.advance()
        return name

    def comparison(self) -> str:
        sign = self.accept("<=", ">=")
        if not sign:
            strict = self.value in ("<", ">")
            raise self.refuse(
                f"a bound is closed: write {self.value}= and the last value that can occur"
                if strict
                else "expected <= or >="
            )
        return sign

    def one_sided(self, name: str) -> Bound:
        sign, value = self.comparison(), self.number()
        return Bound(name, value, None) if sign == ">=" else Bound(name, None, value)

    def membership(self, name: str) -> Bound:
        self.expect("[")
        low = self.number()
        self.expect(",")
        high = self.number()
        self.expect("]")
        return Bound(name, low, high)
