"""Read the form: every field checked by itself, so that an error can stand beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy

import trueup
from trueup import exact
from trueup.domain import Interval
from trueup.errors import FormulaError, NoUnbiasedEstimator, TrueupError
from trueup.explorer import allowances
from trueup.explorer.families import FAMILIES, Family
from trueup.explorer.refused import Refusal
from trueup.formula.grammar import parse
from trueup.formula.linear import conditions, together

if TYPE_CHECKING:
    from trueup.estimator import Estimator
    from trueup.exact import Exact
    from trueup.near.estimator import NearlyUnbiased
    from trueup.noise.base import Noise

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_FRACTION = re.compile(r"([+-]?\d+)\s*/\s*(\d+)", re.ASCII)
_DEFAULT = {"family": "laplace", "way": "scale", "scale": "2"}


@dataclasses.dataclass(frozen=True)
class Statistic:
    """One published statistic: its noise, how the noise was stated, and its bounds."""

    name: str
    family: Family
    way: str
    parameters: dict[str, Exact]
    noise: Noise
    domain: Interval

    @property
    def spread(self) -> float:
        """About the standard deviation of the noise, for the width of a picture."""
        with contextlib.suppress(TrueupError):
            return math.sqrt(float(self.noise.variance)) or 1.0
        return float(self.noise.quantile(0.84))


@dataclasses.dataclass(frozen=True)
class Form:
    """What the page asks for: a formula and its statistics."""

    text: str
    expr: sympy.Expr
    statistics: tuple[Statistic, ...]
    known: str = ""
    empty: Exact | None = None

    @cached_property
    def given(self) -> tuple[Any, Any, Any]:
        """Formula, noise and domain as the library takes them."""
        box: dict[str, Any] = {s.name: s.domain for s in self.statistics}
        if self.known:
            with beside("known"):
                whole = {s.name for s in self.statistics if s.noise.lattice}
                found = together(box, self.known, whole)
            box = {key: found[key] for key in found if key in box or _is_of(key, box)}
        return self.expr, {s.name: s.noise for s in self.statistics}, box

    @cached_property
    def estimator(self) -> Estimator:
        """The unbiased estimator, or the reason why there is none."""
        with beside("formula"):
            return trueup.unbiased(*self.given, empty=self.empty)

    def near(self, **bias: Any) -> NearlyUnbiased:
        """Return the estimator of least variance with ``max_bias``, or the best for ``cells``."""
        if self.empty is not None:
            raise Refusal(
                "a value in empty cells and a bias that is allowed exclude each other",
                "clear “Value in empty cells”",
                field="bias",
            )
        with beside("bias"):
            return trueup.nearly_unbiased(*self.given, **bias)

    def symbol(self, name: str) -> sympy.Symbol:
        """Return the symbol of a statistic."""
        return sympy.Symbol(name, real=True)


@contextlib.contextmanager
def beside(field: str) -> Iterator[None]:
    """Put an error of the library beside a field.

    Examples
    --------
    >>> with beside("n.scale"):
    ...     trueup.Laplace(-1)
    Traceback (most recent call last):
    trueup.explorer.refused.Refusal: scale must be positive, got -1
    """
    try:
        yield
    except NoUnbiasedEstimator as error:
        raise Refusal(error.message, error.hint, field=field, kind="none") from None
    except TrueupError as error:
        raise Refusal(error.message, error.hint, field=field) from None


def read(request: Mapping[str, Any], others: Collection[str] = ()) -> Form:
    """Return the form, every field checked; conditions may speak of ``others`` too.

    Examples
    --------
    >>> form = read({"formula": "1/n", "statistics": {"n": {"scale": "2", "low": "1"}}})
    >>> form.estimator(4.0)
    0.125
    """
    formula = request.get("formula")
    if not isinstance(formula, str):
        raise Refusal("the formula must be text", 'write one, e.g. "1/n"', field="formula")
    with beside("formula"):
        expr = parse(formula)
        names = sorted(s.name for s in expr.free_symbols)
        if not names:
            problem = f"the formula {formula.strip()!r} names no statistic"
            raise FormulaError(problem, "use a name for the published number, e.g. 1/n")
        if len(names) > allowances.STATISTICS:
            raise FormulaError(
                f"the formula has {len(names)} statistics, the page takes {allowances.STATISTICS}",
                "call the library, which has no such limit",
            )
    known, spoken = _known(request, names, others)
    given = request.get("statistics")
    stated = given if isinstance(given, Mapping) else {}
    statistics = tuple(_statistic(name, stated.get(name)) for name in spoken)
    return Form(formula, expr, statistics, known, filled(request, "empty"))


def _known(
    request: Mapping[str, Any], names: list[str], others: Collection[str]
) -> tuple[str, list[str]]:
    """Return the conditions between statistics, and those of which they or the formula speak."""
    text = request.get("known") or ""
    if not isinstance(text, str) or len(text) > allowances.FORMULA:
        raise Refusal("conditions must be text", 'write e.g. "0 <= s <= n"', field="known")
    with beside("known"):
        box, tied = conditions(text)
        strange = sorted(set(box).union(*(c.names for c in tied)) - {*names, *others})
        if strange:
            raise TrueupError(
                f"the formula does not read {', '.join(strange)}",
                f"its statistics are {', '.join(names)}",
            )
    return text.strip(), sorted({*names}.union(*(c.names for c in tied if c.names & {*names})))


def _is_of(key: str, names: Collection[str]) -> bool:
    """Whether the key of a domain is a sum of some statistics."""
    return {s.name for s in parse(key).free_symbols} <= {*names}


def lines_of(request: Mapping[str, Any], field: str, example: str) -> list[str]:
    """Return the lines of a field that are not empty, at least one."""
    text = request.get(field)
    if not isinstance(text, str) or not text.strip():
        raise Refusal("nothing is asked for", f"write e.g. {example}", field=field, kind="missing")
    if len(text) > allowances.FORMULA:
        problem = f"there are {len(text):,} characters, the page takes {allowances.FORMULA:,}"
        raise Refusal(problem, "ask for less at once", field=field)
    return [line.strip() for line in text.splitlines() if line.strip()]


def filled(request: Mapping[str, Any], key: str, of: str = "") -> Exact | None:
    """Return the number in a field that may be empty; ``of`` is what its name begins with."""
    text = request.get(key)
    blank = text is None or (isinstance(text, str) and not text.strip())
    return None if blank else number(text, of + key)


def _statistic(name: str, given: object) -> Statistic:
    fields = dict(given) if isinstance(given, Mapping) and given else dict(_DEFAULT)
    key = fields.get("family", "laplace")
    family = FAMILIES.get(key) if isinstance(key, str) else None
    if family is None:
        known = ", ".join(FAMILIES)
        raise Refusal(f"there is no noise {str(key)[:40]!r}", f"one of {known}", field=name)
    way = fields.get("way")
    if not isinstance(way, str) or way not in family.ways:
        way = next(iter(family.ways))
    parameters = {
        f.name: number(fields.get(f.name, f.default), f"{name}.{f.name}") for f in family.ways[way]
    }
    noise = _noise(name, family, way, parameters)
    ends = [filled(fields, side, f"{name}.") for side in ("low", "high")]
    with beside(f"{name}.high"):
        domain = Interval(*ends)
    if noise.lattice:
        with beside(f"{name}.low"):
            domain = domain.integers()
    return Statistic(name, family, way, parameters, noise, domain)


def _noise(name: str, family: Family, way: str, parameters: dict[str, Exact]) -> Noise:
    constructor = getattr(trueup, family.constructor)
    if way != "scale" and hasattr(constructor, "from_budget"):
        constructor = constructor.from_budget
    try:
        noise: Noise = constructor(**parameters)
    except TrueupError as error:
        guilty = next((p for p in parameters if error.message.startswith(p)), None)
        guilty = guilty or next((p for p in parameters if p in error.message), "")
        field = f"{name}.{guilty}" if guilty else name
        raise Refusal(error.message, error.hint, field=field) from None
    return noise


def number(text: object, field: str) -> Exact:
    """Return the number in a field: 2, 0.5, 1e-6 or 1/3.

    Examples
    --------
    >>> number("2", "n.scale"), number("1/3", "n.scale"), number(" -.5 ", "n.low")
    (2, Fraction(1, 3), -0.5)
    """
    written = text.strip() if isinstance(text, str) else None
    if written is None or not 0 < len(written) <= allowances.TEXT:
        problem = "a number is missing" if written == "" else f"not a number: {str(text)[:40]!r}"
        kind = "missing" if written == "" else "input"
        raise Refusal(problem, "write a number, e.g. 2, 0.5 or 1/3", field=field, kind=kind)
    written = written.replace("−", "-")
    ratio = _FRACTION.fullmatch(written)
    if ratio and int(ratio[2]):
        return exact.number(Fraction(int(ratio[1]), int(ratio[2])), field)
    value = float(written) if _NUMBER.fullmatch(written) else math.nan
    if not math.isfinite(value):
        raise Refusal(
            f"not a finite number: {written!r}", "write a number, e.g. 2, 0.5 or 1/3", field=field
        )
    return exact.number(value, field)


def choice(value: object, allowed: tuple[str, ...], field: str) -> str:
    """Return one of the allowed words.

    Examples
    --------
    >>> choice("a", ("a", "b"), "dialect")
    'a'
    """
    if isinstance(value, str) and value in allowed:
        return value
    raise Refusal(
        f"there is no {str(value)[:40]!r} here", f"one of {', '.join(allowed)}", field=field
    )


def plain(value: Any) -> Any:
    """Return numbers that JSON has: nothing for NaN and infinity.

    Examples
    --------
    >>> plain([1.0, math.inf, math.nan])
    [1.0, None, None]
    """
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value if not isinstance(value, float) or math.isfinite(value) else None
