"""What is asked of an estimator and of a refusal, and how far an answer may be off.

:func:`examine` puts one case to the library and every answer to the oracle. The estimator is only
called. Each check is one function that yields a :class:`Finding` per disagreement and counts in the
:class:`Report` what it compared and what it could not settle.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import dataclasses
import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

import trueup as tu
from prove import closed_form, functions, reading, targets, verdict, witness
from prove.expectations import Answer, expect, expect_jointly, expect_on_cells, finer
from prove.grammar import Case
from prove.laws import Law, law
from prove.reading import BeyondError, UndefinedError
from prove.specials import specials

VALUE = 1e-8
"""Value against closed form, relative to |f| + b²|f″|: formulas lose digits where they cancel
(1 − cos beside 0), a wrong weight, side or sign is off by far more."""
MEAN = 1e-8
"""E g against f, relative to E|g|: the integrals are good to 1e-12, g to VALUE."""
SPREAD = 1e-6
"""Variances are squares of it, with the same digits lost twice."""
ROUNDING = 1e-13
"""A variance cannot be told from 0 below this part of (E|g|)²: g itself has 16 digits, and a few
are lost where a formula cancels."""
LOST = 1e-9
"""A formula that is off by this part of its terms in doubles is not what is written."""
UNSEEN = 1e-15
"""Tails with less than 1e-18 of the noise are not looked at, by the library neither; g may be large
there."""
NOTHING = 1e-25
"""A power 1.5 of the distance to a bound has slope 0 there, and 1e-30 where the oracle looks."""
MEANT = 4e-15
"""A bound this close to a special point, as a computed one may be, is meant to be that point."""
LARGE = 1e250
"""Beyond it squares overflow and no finite answer is owed."""


SHARES = {
    "expectation": 1 / 2,
    "sd": 1 / 6,
    "estimated variance": 1 / 6,
    "coverage": 1 / 3,
    "joint coverage": 1 / 2,
    "frames": 1 / 6,
    "JSON": 1 / 4,
    "SQL": 1 / 8,
    "functions": 1 / 8,
    "answers": 1 / 8,
}
"""Of how many cases what is costly is asked; the rest is asked of all."""


LIMITS = (
    "have more than 6000 parts",
    "too many to write down",
    "parts in all are possible",
    "products of derivatives and differences",
    "has a point in every period that an integral must break at",
    "unit cells is too long",
    "could not be summed with 64 terms and a series",
    "beyond 1.8e308, the largest double",
)
"""What is said of what is too long to be written down, integrated or held, when first needed."""


@contextlib.contextmanager
def tolerant(times: float = 10.0) -> Iterator[None]:
    """Let answers be off by so many times as much."""
    global VALUE, MEAN, SPREAD
    before = VALUE, MEAN, SPREAD
    VALUE, MEAN, SPREAD = (t * times for t in before)
    try:
        yield
    finally:
        VALUE, MEAN, SPREAD = before


@dataclasses.dataclass(frozen=True)
class Finding:
    """The library and the oracle disagree."""

    check: str
    case: Case
    at: Any
    expected: Any
    got: Any

    def __str__(self) -> str:
        c = self.case
        return (
            f"{self.check}: {c.formula!r} under {c.noises} on {c.domain} at {self.at}: "
            f"expected {self.expected}, got {self.got}"
        )


@dataclasses.dataclass
class Report:
    """What became of one case."""

    outcome: str = ""
    reason: str = ""
    findings: list[Finding] = dataclasses.field(default_factory=list)
    compared: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    unsettled: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)


class Examination:
    """One case before the oracle: what it is made of, read without the library."""

    def __init__(self, case: Case, thorough: bool = True) -> None:
        self.case, self.thorough = case, thorough
        self.tree: ast.expr = reading.read(case.formula)
        self.names = tuple(case.noises)
        self.known = {name: law(text) for name, text in case.noises.items()}
        laws = {name: found for name, found in self.known.items() if found}
        self.laws = laws if len(laws) == len(self.known) else None
        whole = any("integers" in bounds for bounds in case.domain.values())
        self.rounding = 1e-15 if "pi" in case.formula or whole else NOTHING
        """sin(π) is 1.2e-16 in double precision, and so is a mixture of tanh where it vanishes."""
        self.rng = random.Random(case.seed + 3)
        self.report = Report()

    def asks(self, what: str) -> bool:
        """Whether a dear question is asked of this case: always, or as often as its share says."""
        drawn = random.Random(f"{self.case.seed} {what}").random()
        return self.thorough or drawn < SHARES.get(what, 1.0)

    @cached_property
    def ties(self) -> list[tuple[ast.expr, tuple[float, float]]]:
        """Conditions between statistics: what must lie between which bounds."""
        return [
            (reading.read(key), (-math.inf if b[0] is None else b[0], math.inf))
            for key, b in self.case.domain.items()
            if key not in self.case.noises
        ]

    def meets_ties(self, q: Mapping[str, float]) -> bool:
        """Whether true values fit together."""
        return all(low <= float(reading.value(tree, q)) <= high for tree, (low, high) in self.ties)

    @property
    def single(self) -> bool:
        return len(self.names) == 1

    def whole(self, name: str) -> bool:
        """Whether the true value is an integer."""
        return self.on_integers(name) or self.lattice(name)

    def lattice(self, name: str) -> bool:
        """Whether the noise is an integer."""
        noise = self.known[name]
        return noise is not None and noise.lattice

    def unit(self, name: str) -> float:
        noise = self.known[name]
        return 1.0 if noise is None else noise.unit

    def on_integers(self, name: str) -> bool:
        return "integers" in self.case.domain[name][2:]

    def ends(self, name: str) -> tuple[float, float]:
        """Return the bounds, ±∞ where there is none, whole where the true value is."""
        low, high = self.case.domain[name][:2]
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        if self.whole(name):
            low = math.ceil(low) if math.isfinite(low) else low
            high = math.floor(high) if math.isfinite(high) else high
        return low, high

    def bounds(self, name: str) -> tuple[float | None, float | None]:
        low, high = self.ends(name)
        return (None if math.isinf(low) else low, None if math.isinf(high) else high)

    @cached_property
    def judged(self) -> verdict.Verdict:
        """Whether an estimator exists, for one statistic."""
        if not self.single or self.laws is None or self.on_integers(self.names[0]):
            return verdict.Verdict("open")
        (name,) = self.names
        asked = (self.tree, name, self.laws[name], *self.bounds(name))
        found, self.marks_found = verdict.judge(*asked)
        return found

    @cached_property
    def sure(self) -> verdict.Verdict:
        """What is judged; open where it hangs on whether 0.1 is a tenth or the double beside it."""
        found = self.judged
        if found.answer == "open" or all(map(_is_a_double, reading.constants(self.tree))):
            return found
        (name,) = self.names
        with reading.as_doubles():
            asked = (self.tree, name, self.known[name], *self.bounds(name))
            again, _ = verdict.judge(*asked)  # type: ignore[arg-type]
        return found if again.answer == found.answer else verdict.Verdict("open")

    @cached_property
    def marks(self) -> dict[str, list[float]]:
        """Where the formula may be special along every statistic, others at a typical value."""
        if self.single:
            _ = self.judged
            return {self.names[0]: getattr(self, "marks_found", [])}
        middle = {n: self.inside(n) for n in self.names}
        found = {}
        for name in self.names:
            others = {n: v for n, v in middle.items() if n != name}
            found[name] = [float(p) for p in specials(self.tree, name, others, *self.ends(name))]
        return found

    # -- where to ask ------------------------------------------------------------------------------

    def inside(self, name: str) -> float:
        """Return a random true value inside the domain, within a few scales of its lower end."""
        low, high = self.ends(name)
        unit = self.unit(name)
        start = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
        way = 1 if math.isfinite(low) or not math.isfinite(high) else -1
        q = start + way * self.rng.choice((0.3, 1.0, 3.0)) * unit * self.rng.random() * 2
        q = min(max(q, low), high)
        return float(min(max(round(q), low), high)) if self.whole(name) else float(q)

    def truths(self, name: str) -> list[float]:
        """Return true values inside: ends, just inside, beside special points, random."""
        low, high = self.ends(name)
        ends = [e for e in (low, high) if math.isfinite(e)]
        marks = self.marks[name][:2]
        if self.whole(name):
            near = [*ends, *(e + s for e in ends for s in (1, -1)), *map(round, marks)]
        else:
            near = [*ends, *marks]
            near += [m + s for m in (*ends, *marks) for s in (1e-7, -1e-7, 0.21, -0.21)]
        near = [float(q) for q in near if low <= q <= high]
        self.rng.shuffle(near)
        chosen = [*map(float, ends), *near[:3], self.inside(name), self.inside(name)]
        if not self.whole(name):  # integers are what they are
            chosen = [q for q in chosen if not any(0 < abs(q - m) <= MEANT * abs(m) for m in marks)]
        return list(dict.fromkeys(chosen))

    def outside(self, name: str) -> list[float]:
        """Return true values beyond the bounds."""
        low, high = self.ends(name)
        unit = self.unit(name)
        far = [e + s * unit * self.rng.random() * 2 for e, s in ((low, -1), (high, 1))]
        far = [q for q in far if math.isfinite(q)]
        if self.whole(name):
            far = [float(math.floor(q) if q < low else math.ceil(q)) for q in far]
        return [q for q in far if q < low or q > high]

    def published(self, name: str) -> list[float]:
        """Return published values: at, beside and beyond bounds and special points, and far."""
        low, high = self.ends(name)
        ends = [float(e) for e in (low, high) if math.isfinite(e)]
        if self.lattice(name):
            near = {e + k for e in ends for k in (-3, -1, 0, 1, 2)}
            near |= {round(m) + k for m in self.marks[name][:3] for k in (-1, 0, 1)}
            near |= {round(self.inside(name)) + k for k in (0, 4)}
            return [float(x) for x in near] + [self.rng.choice((40.0, -40.0, 358.0, -358.0))]
        steps = (0.0, 1e-9, -1e-9, 1e-4, -1e-4, 0.3, -0.3, 2.0, -2.0)
        near = {e + s for e in ends for s in steps}
        near |= {m + s for m in self.marks[name][:3] for s in steps[1:]}
        near |= {math.nextafter(e, s) for e in ends for s in (math.inf, -math.inf)}
        near |= {self.inside(name), self.inside(name)}
        chosen = [*near, self.rng.choice((40.0, -40.0, 358.0, -358.0, 1e4))]
        self.rng.shuffle(chosen)
        return list(dict.fromkeys([*ends, *chosen[:14]]))

    def beside(self, name: str, x: float, step: float) -> float:
        """Return the value a relative step beside x; x itself rather than one across a bound."""
        low, high = self.ends(name)
        near = x * (1 + step)
        inside = low < x < high and low < near < high
        return near if inside and not self.lattice(name) else x

    def steps(self, name: str) -> list[float]:
        """Return where g may begin anew: at integers, and under noise of a bounded support.

        That is as far from a bound, or from a special point of f, as the support is wide.
        """
        noise, ends = self.known[name], [b for b in self.ends(name) if math.isfinite(b)]
        if self.on_integers(name) and not self.lattice(name):
            middle, reach = ends[0] if ends else 0.0, 20 * self.unit(name)
            low, high = self.ends(name)
            first, last = max(low, middle - reach), min(high, middle + reach)
            return [float(k) for k in range(math.ceil(first), math.floor(last) + 1)]
        if noise is None or noise.lattice or not all(map(math.isfinite, noise.support)):
            return []
        width = noise.support[1] - noise.support[0]
        begins = [*ends, *self.marks[name][:3]]
        return [b + c + k * width for b in begins for c in noise.support for k in range(-6, 7)]

    def size(self, q: Mapping[str, float]) -> float:
        """Return the size of the terms that f is the sum of, 0 where that is not a number."""
        found = float(reading.sizes(self.tree, {n: np.float64(v) for n, v in q.items()}))
        return found if math.isfinite(found) else 0.0

    @cached_property
    def is_lost_in_doubles(self) -> bool:
        """Whether f is another function in doubles: cos(n**9) where n**9 has twenty digits."""
        return any(map(self.loses, self.places))

    def loses(self, x: Mapping[str, float]) -> bool:
        """Whether doubles lose f at a value, or at the true one next to it."""
        near = {n: self.inwards(n, v) for n, v in x.items()}
        f = self.f(near)
        rough = float(reading.values(self.tree, {n: np.float64(v) for n, v in near.items()}))
        return f is not None and LOST * (self.size(near) + self.typical) < abs(rough - f) < LARGE

    @cached_property
    def places(self) -> list[dict[str, float]]:
        """True values all over the domain, and beside the numbers that the formula names.

        1/(1 + exp(-50*(s - 3))) is nothing on one side of 3 and 1 on the other.
        """
        named = [c for c in reading.constants(self.tree) if abs(c) < 1e3]
        axes = {
            n: [self.inwards(n, x) for x in self.published(n)]
            + [self.inwards(n, c + s * self.unit(n)) for c in named for s in (-1, 0, 1)]
            for n in self.names
        }
        count = max(map(len, axes.values()))
        return [{n: axis[i % len(axis)] for n, axis in axes.items()} for i in range(count)]

    @cached_property
    def typical(self) -> float:
        """How large f is where it is not extreme: what is far below it is rounding."""
        sizes = sorted({self.size(near) for near in self.places})
        most = max(1.0, 1e3 * sizes[len(sizes) * 3 // 4 if len(sizes) > 1 else 0])
        return max((s for s in sizes if s <= most), default=0.0)

    @property
    def least(self) -> float:
        """Below it two ways to compute the same differ by rounding."""
        return self.rounding + ROUNDING * self.typical

    @property
    def is_solved_for(self) -> bool:
        """Whether g is a table, one system for all true values: met to the rounding of the largest.

        Where f is 0 beside values of 2, E g is off by as much as doubles beside 2 are apart.
        """
        return any(
            law is not None and law.lattice and not law.closed and None not in self.bounds(n)
            for n, law in self.known.items()
        )

    def is_beside_a_mark(self, x: Mapping[str, float]) -> bool:
        """Whether a value is so close to a special point that formulas cancel."""
        return any(0 < abs(v - m) < 1e-3 for n, v in x.items() for m in self.marks[n])

    def inwards(self, name: str, q: float) -> float:
        """Return the nearest true value that can be."""
        low, high = self.ends(name)
        return float(min(max(round(q) if self.whole(name) else q, low), high))

    def f(self, q: Mapping[str, float]) -> float | None:
        at = {n: reading.exact(v) if v in self.ends(n) else v for n, v in q.items()}
        try:
            return float(reading.value(self.tree, at))
        except (UndefinedError, BeyondError, OverflowError):
            return None


def _is_a_double(number: float) -> bool:
    """Whether what is written is what a double holds."""
    return Fraction(repr(number)) == Fraction(number)


def examine(case: Case, thorough: bool = True, only: str | None = None) -> Report:
    """Put one case to the library and its answer to the oracle; costly questions may be drawn.

    With ``only`` just the check is made that such findings come from.
    """
    e = Examination(case, thorough)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", tu.BoundWarning)  # a condition that is of no use is told
        try:
            est = case.build()
        except tu.NoUnbiasedEstimator as error:
            e.report.outcome, e.report.reason = "refused", error.message
            e.report.findings += _guarded(refusal, e, error)
        except tu.BoundWarning:  # a statistic cancels, and a condition with it
            e.report.outcome = "accepted"
            e.report.unsettled["a statistic cancels"] += 1
        except tu.TrueupError as error:
            e.report.outcome, e.report.reason = "not found", error.message
            e.report.findings += _guarded(not_found, e, error)
        except Exception as error:
            e.report.outcome = "raised"
            e.report.findings.append(
                Finding("raised", case, "build", "an answer", repr(error)[:300])
            )
        else:
            e.report.outcome = "accepted"
            if set(est.statistics) != set(e.names):  # some cancel, and are not asked for
                e.report.unsettled["a statistic cancels"] += 1
                return e.report
            lost = e.is_lost_in_doubles
            e.report.unsettled["doubles do not hold the formula"] += lost
            for check in ACCEPTED if not lost else (exists,):
                if only in ACCEPTED[check] or only not in set().union(*ACCEPTED.values()):
                    e.report.findings += _guarded(check, e, est)
    return e.report


def _guarded(check: Any, e: Examination, est: Any) -> list[Finding]:
    """Return the findings of a check; what the library raises meanwhile is one of them."""
    found: list[Finding] = []
    e.rng = random.Random(f"{e.case.seed} {check.__name__}")  # whatever is asked before
    try:
        found.extend(check(e, est))
    except tu.InfiniteVariance:
        e.report.unsettled["no variance"] += 1
    except tu.TrueupError as error:
        if any(limit in error.message for limit in LIMITS):
            e.report.unsettled["a formula beyond the stated size"] += 1
        else:
            told = error.message[:200]
            found.append(Finding("refused", e.case, check.__name__, "an answer", told))
    except (FloatingPointError, RuntimeWarning, UserWarning) as warning:
        found.append(Finding("warned", e.case, check.__name__, "silence", repr(warning)[:300]))
    except Exception as error:
        found.append(Finding("raised", e.case, check.__name__, "an answer", _where(error)))
    return found


def _where(error: BaseException) -> str:
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r}"[:250] + f" in {last.filename.rsplit('/', 1)[-1]}:{last.lineno}"


# -- refusals --------------------------------------------------------------------------------------


def refusal(e: Examination, error: tu.TrueupError) -> Iterator[Finding]:
    """Check a claim that nothing exists: by construction, and by the witness that it names."""
    found = e.sure
    if not _claims(error):
        e.report.unsettled["not found though it exists"] += found.answer == "exists"
        return
    seen = witness.confirmed(e, error.message)
    if found.answer == "exists" and not seen:
        yield Finding("existence", e.case, "build", "an estimator", error.message[:200])
        return
    e.report.compared["refusal confirmed"] += found.answer == "none"
    if seen is None:
        e.report.unsettled["witness"] += 1
        return
    e.report.compared["witness"] += 1
    if not seen:
        yield Finding("witness", e.case, "build", "what the message names", error.message[-200:])


def _claims(error: tu.TrueupError) -> bool:
    """Whether an error says that no estimator exists, rather than that none was found."""
    return isinstance(error, tu.NoUnbiasedEstimator) and error.proved


def not_found(e: Examination, error: tu.TrueupError) -> Iterator[Finding]:
    """Count what is refused for other reasons although an estimator exists."""
    if e.judged.answer == "exists":
        e.report.unsettled["not found though it exists"] += 1
    return iter(())


# -- accepted estimators ---------------------------------------------------------------------------


def exists(e: Examination, est: Any) -> Iterator[Finding]:
    """What was accepted exists."""
    found = e.sure if e.judged.answer == "none" else e.judged
    if found.answer == "none":
        yield Finding("existence", e.case, found.at, f"a refusal: {found.reason}", "accepted")
    elif found.answer == "exists":
        e.report.compared["existence"] += 1


def value(e: Examination, est: Any) -> Iterator[Finding]:
    """Value and variance agree with the closed form, for Laplace and discrete Laplace noises."""
    if e.laws is None or any(e.on_integers(n) and not e.laws[n].lattice for n in e.names):
        return
    if e.ties or not all(closed_form.applies(e.laws[n], *e.bounds(n)) for n in e.names):
        return
    bounds = {n: e.bounds(n) for n in e.names}
    finite = _has_variance(est, e)
    for x in _points(e):
        try:
            g, v = closed_form.estimate(e.tree, e.laws, bounds, x)
        except (UndefinedError, BeyondError):
            e.report.unsettled["value"] += 1
            continue
        for check, truth, asked in (("value", g, est), ("variance", v, est.variance)):
            if (
                abs(truth.value) > LARGE
                or truth.size > LARGE
                or (check == "variance" and not finite)
            ):
                continue
            got = asked(**x)
            if math.isnan(got) and targets.runs_out(e, x):
                e.report.unsettled["NaN where doubles run out"] += 1
                continue
            e.report.compared[check] += 1
            tolerance = VALUE * float(truth.size) + e.rounding
            if e.is_beside_a_mark(x):
                tolerance += VALUE * (_square(e.typical) if check == "variance" else e.typical)
            if not abs(got - float(truth.value)) <= tolerance and not _blurred(
                e, bounds, x, got, check
            ):
                yield Finding(check, e.case, x, float(truth.value), got)
            if check == "variance" and got >= 0:
                e.report.compared["stderr"] += 1
                root, said = math.sqrt(got), est.stderr(**x)
                if not abs(said - root) <= VALUE * root:
                    yield Finding("stderr", e.case, x, root, said)


def _points(e: Examination) -> list[dict[str, float]]:
    axes = {n: e.published(n) for n in e.names}
    if e.single:
        return [{e.names[0]: x} for x in axes[e.names[0]]]
    return [{n: e.rng.choice(axes[n]) for n in e.names} for _ in range(6)]


def _blurred(e: Examination, bounds: Any, x: dict[str, float], got: float, check: str) -> bool:
    """Whether the answer is right for numbers that differ by a few units in the last place."""
    assert e.laws is not None
    seen = []
    for ends, near in _beside(e, bounds, x):
        try:
            pair = closed_form.estimate(e.tree, e.laws, ends, near)
        except (UndefinedError, BeyondError):
            return True
        seen.append(float(pair[check == "variance"].value))
    spread = max(abs(s - seen[0]) for s in seen)
    with contextlib.suppress(UndefinedError, BeyondError):
        lost = closed_form.rounding(e.tree, e.laws, bounds, x) + ROUNDING * e.size(x)
        spread += lost * (abs(float(pair[0].value)) + lost if check == "variance" else 1)
    return abs(got - seen[0]) <= 8 * spread


LAST = 2.0**-50
"""A few units in the last place of a double."""


def _beside(
    e: Examination, bounds: Any, x: dict[str, float]
) -> Iterator[tuple[Any, dict[str, float]]]:
    """Yield the question and those beside it: values moved within the domain, bounds inwards."""
    yield bounds, x
    for step in (LAST, -LAST):
        yield bounds, {n: e.beside(n, v, step) for n, v in x.items()}
    inwards = dict(bounds)
    for n, (low, high) in bounds.items():
        if not e.lattice(n) and low != high:
            if low is not None and x[n] <= low:
                inwards[n] = (low + LAST * abs(low), high)
            elif high is not None and x[n] >= high:
                inwards[n] = (low, high - LAST * abs(high))
    yield inwards, x


def _has_variance(est: Any, e: Examination) -> bool:
    try:
        est.variance(**dict.fromkeys(e.names, 1.0))
    except tu.InfiniteVariance:
        return False
    return True


def mean(e: Examination, est: Any) -> Iterator[Finding]:
    """E g = f inside; expectation, bias and sd agree inside and outside; E V̂ = Var g."""
    if e.laws is None:
        return
    finite = _has_variance(est, e)
    infinite: list[Finding | None] = []
    for q, within in _true_points(e):
        f = e.f(q)
        answers = _moments(e, est, q, f, finite)
        if answers is None:
            e.report.unsettled["too large"] += 1
            continue
        found = list(_compare(e, est, q, f, within, answers, finite))
        if found:  # a kink between the last node of a panel and its end is seen by no rule
            with finer():
                again = _moments(e, est, q, f, finite)
            found = found if again is None else list(_compare(e, est, q, f, within, again, finite))
        yield from found
        if not finite and not math.isnan(est.sd(**q)):  # NaN: scipy does not state the moments
            infinite.append(_finite_after_all(e, q, answers))
    if infinite and None not in infinite:
        yield from infinite[:1]  # type: ignore[misc]


def _finite_after_all(e: Examination, q: dict[str, float], answers: list[Answer]) -> Finding | None:
    """Return that a variance said to be infinite is not: at one true value that may be missed."""
    first, second = answers[:2]
    seen = second.mean > ROUNDING * _square(first.size)  # otherwise it is lost in the digits of g
    if not (first.settled and second.settled and seen):
        return None
    return Finding("sd", e.case, q, f"E (g − c)² = {second.mean}", "an infinite variance")


def _true_points(e: Examination) -> list[tuple[dict[str, float], bool]]:
    if e.single:
        (name,) = e.names
        points = [({name: q}, True) for q in e.truths(name)]
        return points[:5] + [({name: q}, False) for q in e.outside(name)[:1]]
    axes = {n: e.truths(n) for n in e.names}
    points = [{n: e.rng.choice(axes[n]) for n in e.names} for _ in range(12 if e.ties else 3)]
    points.insert(0, {n: axes[n][0] for n in e.names})
    return [(q, True) for q in points if e.meets_ties(q)][:4]


def _moments(
    e: Examination, est: Any, q: Mapping[str, float], f: float | None, finite: bool
) -> list[Answer] | None:
    """Return E g, E (g − c)² and E V̂ with c near E g."""
    assert e.laws is not None
    centre = f if f is not None else 0.0

    def rows(**x: Any) -> Any:
        with np.errstate(all="ignore"):
            g = np.asarray(est(**x), float)
            parts = [g, (g - centre) ** 2]
            if finite and e.asks("estimated variance"):
                parts.append(np.asarray(est.variance(**x), float))
            return np.stack(parts)

    marks = {n: [m for m in (*e.marks[n], *e.bounds(n)) if m is not None] for n in e.names}
    for n in e.names:
        marks[n] += [c for c in reading.constants(e.tree) if abs(c) < 1e3]
        marks[n] += e.steps(n)
    if not e.single:
        return expect_jointly(rows, e.laws, q, marks)
    (name,) = e.names
    if e.on_integers(name) and not e.lattice(name):  # g is another function between integers
        return expect_on_cells(lambda x: rows(**{name: x}), e.laws[name], q[name])
    growth = 0.4 * max(e.laws[name].rates) if math.isfinite(max(e.laws[name].rates)) else 1.0
    return expect(lambda x: rows(**{name: x}), e.laws[name], q[name], marks[name], growth)


def _compare(
    e: Examination,
    est: Any,
    q: dict[str, float],
    f: float | None,
    within: bool,
    answers: list[Answer],
    finite: bool,
) -> Iterator[Finding]:
    first = answers[0]
    if not first.settled or (f and not first.size and _underflows(e, est, q)):
        e.report.unsettled["mean"] += 1
        return
    size = e.typical if e.is_solved_for else e.size(q)
    slack = MEAN * first.size + 4 * first.error + e.rounding + ROUNDING * size
    if within and f is not None:
        e.report.compared["unbiased"] += 1
        if not abs(first.mean - f) <= slack:
            yield Finding("unbiased", e.case, q, f, first.mean)
    if e.asks("expectation"):
        yield from _expectation(e, est, q, f, first.mean, slack + ROUNDING * e.typical)
    yield from _spread(e, est, q, f, within, answers, finite)


def _underflows(e: Examination, est: Any, q: dict[str, float]) -> bool:
    """Whether g is 0 in doubles where the noise is, and not farther out."""
    steps = np.concatenate([-np.arange(200.0), np.arange(200.0)])
    away = {n: np.rint(steps * e.unit(n)) if e.lattice(n) else steps * e.unit(n) for n in e.names}
    with np.errstate(all="ignore"):
        return any(
            bool(np.any(est(**{n: v + away[n] * (n == far) for n, v in q.items()})))
            for far in e.names
        )


def _expectation(
    e: Examination, est: Any, q: dict[str, float], f: float | None, mean: float, slack: float
) -> Iterator[Finding]:
    e.report.compared["expectation"] += 1
    said = est.expectation(**q)
    if not abs(said - mean) <= slack:
        yield Finding("expectation", e.case, q, mean, said)
    if f is not None:
        said = est.bias(**q)
        moved = e.f({n: v if e.whole(n) else v * (1 + LAST) for n, v in q.items()})
        slack += 0.0 if moved is None else abs(moved - f)  # a bound of 1.1 is the double beside it
        if not abs(said - (mean - f)) <= slack:
            yield Finding("bias", e.case, q, mean - f, said)


def _spread(
    e: Examination,
    est: Any,
    q: dict[str, float],
    f: float | None,
    within: bool,
    answers: list[Answer],
    finite: bool,
) -> Iterator[Finding]:
    first, second = answers[:2]
    sd = est.sd(**q) if e.asks("sd") and finite else None
    if not second.settled:
        e.report.unsettled["variance"] += 1
        return
    variance = second.mean - _square(first.mean - (f or 0.0))
    rounding = ROUNDING * _square(first.size + abs(f or 0.0)) + UNSEEN * _square(e.typical)
    slack = SPREAD * second.size + 4 * second.error + rounding + e.rounding
    if sd is not None:
        e.report.compared["sd"] += 1
        if not abs(_square(sd) - variance) <= slack:
            yield Finding("sd", e.case, q, math.sqrt(max(variance, 0)), sd)
    if within and len(answers) > 2:
        third = answers[2]
        if not third.settled:
            e.report.unsettled["estimated variance"] += 1
            return
        e.report.compared["estimated variance"] += 1
        slack += SPREAD * third.size + 4 * third.error
        if not abs(third.mean - variance) <= slack:
            yield Finding("estimated variance", e.case, q, variance, third.mean)


def _square(x: float) -> float:
    """Return x², infinite where that is no double."""
    return x * x


def coverage(e: Examination, est: Any) -> Iterator[Finding]:
    """An exact interval covers f(q) as often as it says, or more."""
    if e.laws is None or not e.single or not e.asks("coverage"):
        return
    if est.interval_method != "exact":
        return
    (name,) = e.names
    for q in e.truths(name)[:3]:
        f = e.f({name: q})
        if f is None or abs(f) > LARGE:
            continue
        level = e.rng.choice((0.5, 0.8, 0.95))
        moved = e.f({name: q * (1 + 2.0**-50)})
        slack = 1e-9 * abs(f) + 1e-300  # q + z rounds, and so do the bounds at the edge
        slack += 8 * abs(moved - f) if moved is not None else 0.0
        covered = _covered(e.laws[name], est, q, level, f, slack)
        e.report.compared["coverage"] += 1
        if covered < level - 2e-3:  # the bins of the sum are this coarse
            yield Finding("coverage", e.case, {name: q, "level": level}, f"≥ {level}", covered)


def _covered(noise: Law, est: Any, q: float, level: float, f: float, slack: float) -> float:
    """Return the probability of noises whose interval holds f; an open bin counts as covered."""
    if noise.lattice:
        z = np.arange(-math.ceil(noise.reach(-1)), math.ceil(noise.reach(1)) + 1, dtype=float)
        mass = noise.density(z)
    else:
        spread = 40 * noise.unit if noise.rates[0] else 2e4 * noise.unit
        z = noise.unit * np.sinh(np.linspace(-1, 1, 8001) * math.asinh(spread / noise.unit))
        z = z[(z >= noise.support[0]) & (z <= noise.support[1])]
        width = np.gradient(z)
        mass = noise.density(z) * width
    low, high = est.interval(q + z, level=level)
    inside = (low <= f + slack) & (high >= f - slack)
    return float(mass[inside].sum() / mass.sum())


def targets_agree(e: Examination, est: Any) -> Iterator[Finding]:
    """Scalars, arrays of every dtype, frames, SQL engines and the JSON form say the same."""
    for check, at, expected, got in targets.disagreements(e, est, _points(e)):
        yield Finding(check, e.case, at, expected, got)


def functions_agree(e: Examination, est: Any) -> Iterator[Finding]:
    """The same f as a Python function: bound by name; its derivatives are believed if true."""
    if e.asks("functions"):
        for check, at, expected, got in functions.disagreements(e, est, _points(e)):
            yield Finding(check, e.case, at, expected, got)


def joint_coverage(e: Examination, est: Any) -> Iterator[Finding]:
    """An interval from two statistics covers f as often as it says, or more."""
    if e.laws is None or len(e.names) != 2 or not e.asks("joint coverage"):
        return
    if est.interval_method not in ("ratio", "projection"):
        return
    for q, _ in _true_points(e)[:2]:
        f, moved = e.f(q), e.f({n: v * (1 + 2.0**-50) for n, v in q.items()})
        if f is None or abs(f) > LARGE:
            continue
        slack = 1e-9 * abs(f) + 1e-300 + (8 * abs(moved - f) if moved is not None else 0.0)
        level = e.rng.choice((0.5, 0.8))
        covered = _jointly_covered(e, est, q, level, f, slack)
        e.report.compared["joint coverage"] += 1
        if covered < level - 1e-2:  # so coarse are the cells
            yield Finding("joint coverage", e.case, {**q, "level": level}, f"≥ {level}", covered)


CELLS = 250
"""Parts of equal probability that a continuous noise is cut into, one point of each."""


def _jointly_covered(
    e: Examination, est: Any, q: Mapping[str, float], level: float, f: float, slack: float
) -> float:
    """Return the probability of pairs of noises whose interval holds f."""
    assert e.laws is not None
    cells = {n: _cells(e.laws[n]) for n in e.names}
    z = np.meshgrid(*(points for points, _ in cells.values()), indexing="ij")
    mass = np.multiply.outer(*(share for _, share in cells.values())).ravel()
    x = {n: q[n] + some.ravel() for n, some in zip(cells, z, strict=True)}
    with np.errstate(all="ignore"):
        low, high = est.interval(**x, level=level)
    inside = (low <= f + slack) & (high >= f - slack)  # an end that is not a number covers nothing
    return float(mass[inside].sum() / mass.sum())


def _cells(noise: Law) -> tuple[Any, Any]:
    """Return points of a noise and the probability that each stands for."""
    if noise.lattice:
        z = np.arange(-math.ceil(noise.reach(-1)), math.ceil(noise.reach(1)) + 1, dtype=float)
        mass = noise.density(z)
        return z[mass > 1e-6], mass[mass > 1e-6]
    spread = 40 * noise.unit if noise.rates[0] else 2e4 * noise.unit
    z = noise.unit * np.sinh(np.linspace(-1, 1, 8001) * math.asinh(spread / noise.unit))
    z = z[(z >= noise.support[0]) & (z <= noise.support[1])]
    below = np.cumsum(noise.density(z) * np.gradient(z))
    at = (np.arange(CELLS) + 0.5) / CELLS
    return np.interp(at, below / below[-1], z), np.full(CELLS, 1 / CELLS)


def answers(e: Examination, est: Any) -> Iterator[Finding]:
    """What is in words, the formula, intervals and SQL come, or are refused with the reason."""
    if not e.asks("answers"):
        return
    questions: list[Callable[[], Any]] = [
        est.explain,
        lambda: est.formula,
        lambda: est.sql(output="variance"),
        *(lambda x=x: est.interval(**x) for x in e.case.published()),
        *(lambda q=q: (est.expectation(**q), est.sd(**q)) for q in e.case.truths()),
    ]
    for question in questions:
        e.report.compared["answers"] += 1
        with contextlib.suppress(tu.TrueupError):
            question()
    yield from ()


ACCEPTED = {
    exists: {"existence"},
    value: {"value", "variance", "stderr"},
    mean: {"unbiased", "expectation", "bias", "sd", "estimated variance"},
    coverage: {"coverage"},
    targets_agree: {"array", "int64", "float32", "json", "pandas", "polars", "duckdb", "sqlite"},
    functions_agree: {"function", "derivatives", "false derivatives"},
    joint_coverage: {"joint coverage"},
    answers: {"answers"},
}
"""Every check of an accepted estimator, cheap ones first, and the findings that come from it."""
