"""How work and memory grow with the question, and where the library says no.

Each ladder is one kind of question in growing sizes: longer formulas, more statistics, wider noise,
more rows. On every rung the estimator is built, called, written as SQL and asked for its standard
deviation. What takes more calls of functions or memory than the budget must be refused, with the
reason, within the budget: ``figures`` lists what is not.

``python -m prove.growth`` (with ``tests`` and ``src`` on the path) prints every rung.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sympy.core.cache import clear_cache

import trueup as tu
from prove.inputs import forget_peak, peak
from prove.section import Section
from work import TooMuchError, counted

CALLS: Mapping[str, int] = {
    **dict.fromkeys(("build", "call", "rows", "SQL"), 10**7),
    "sd": 2 * 10**7,
}
"""Calls of functions: a second or two of them. A call is the first one, of value and variance,
which writes both down as programs. Rows are a million at most."""
MEMORY = 500 * 2**20

Question = tuple[str, dict[str, tu.Noise], dict[str, Any], dict[str, float]]
"""A formula, noises, a domain, and a true value."""


@dataclasses.dataclass(frozen=True)
class Ladder:
    """One kind of question, in growing sizes."""

    name: str
    sizes: tuple[int, ...]
    question: Callable[[int], Question]
    rows: Callable[[int], int] = lambda _: 1000


@dataclasses.dataclass
class Step:
    """What one thing asked of one question took."""

    ladder: str
    size: int
    step: str
    calls: int
    memory: int
    outcome: str = ""

    @property
    def is_beyond(self) -> bool:
        """Whether it took more than its budget, refused or not."""
        too_much = self.calls > CALLS[self.step] or self.memory > MEMORY
        return too_much or self.outcome.startswith("raised")

    def __str__(self) -> str:
        took = f"{self.step} {self.calls:,} calls, {self.memory >> 20} MiB"
        return f"{self.ladder}, {self.size:,}: {took} {self.outcome}".strip()


# -- the ladders -----------------------------------------------------------------------------------


def _one(formula: str, noise: tu.Noise, domain: Any = (1, None), truth: float = 7.0) -> Question:
    return formula, {"q": noise}, {"q": domain}, {"q": truth}


def _several(formula: str, count: int, noise: tu.Noise, domain: Any = (1, None)) -> Question:
    names = [f"a{i}" for i in range(count)]
    return (
        formula,
        dict.fromkeys(names, noise),
        dict.fromkeys(names, domain),
        {name: 5.0 + i for i, name in enumerate(names)},
    )


def _joined(term: str, count: int, sign: str = " + ") -> str:
    return sign.join(term.replace("#", str(i)) for i in range(count))


def _fraction(depth: int) -> str:
    text = "q"
    for k in range(depth):
        text = f"1/({k + 1} + {text})"
    return text


def _cases(count: int) -> str:
    text = "q**2"
    for k in range(count):
        text = f"where(q < {count - k}, {text}, q + {k})"
    return text


_L, _D, _G = tu.Laplace, tu.DiscreteLaplace, tu.Gaussian
_SCALES = (1, 10**2, 10**4, 10**6, 10**9)
_ROWS = (10**3, 10**4, 10**5, 10**6)


def _terms(term: str, noise: tu.Noise, domain: Any = (1, None)) -> Callable[[int], Question]:
    return lambda k: _one(_joined(term, k), noise, domain)


def _inside(outer: str, noise: tu.Noise, sign: str = " + ") -> Callable[[int], Question]:
    return lambda k: _several(outer.replace("@", _joined("a#", k, sign)), k, noise)


def _scaled(
    family: Callable[[int], tu.Noise], domain: Any = (1, None), formula: str = "1/q"
) -> Callable[[int], Question]:
    return lambda k: _one(formula, family(k), domain)


def _many_parts(k: int) -> Question:
    return _one("1/q", sum((_L(i) for i in range(2, k + 1)), _L(1)))


LADDERS = (
    Ladder("terms q**k, Laplace", (5, 20, 60, 90), _terms("q**#/9", _L(2))),
    Ladder("terms q**k, Gaussian", (5, 20, 60), _terms("q**#/9", _G(2), None)),
    Ladder("terms sin(k·q), Gaussian", (2, 8, 25), _terms("sin(q*#/9)", _G(2), None)),
    Ladder("terms 1/(q + k), Laplace", (2, 8, 25, 60), _terms("1/(q+#)", _L(2))),
    Ladder("terms 1/(q + k), discrete", (2, 8, 25, 60), _terms("1/(q+#)", _D(2))),
    Ladder("terms log(q + k)·exp(−q)", (2, 8, 25), _terms("log(q+#)*exp(-q)", _L(0.5))),
    Ladder("factors (q + k)", (5, 20, 60), lambda k: _one(_joined("(q+#)", k, "*"), _L(2))),
    Ladder("nested fractions", (3, 10, 30, 55), lambda k: _one(_fraction(k), _L(2))),
    Ladder("cases, discrete", (2, 5, 10, 20), lambda k: _one(_cases(k), _D(2), (0, None))),
    Ladder("sum of statistics, squared", (2, 4, 8, 20, 60), _inside("(@)**2", _L(2))),
    Ladder("product of statistics", (2, 4, 8, 20, 60), _inside("@", _L(2), "*")),
    Ladder("1 over a sum, Laplace", (1, 2, 3, 4, 5, 6, 7), _inside("1/(@)", _L(2))),
    Ladder("1 over a sum, discrete", (1, 2, 3, 4, 5, 6, 7), _inside("1/(@)", _D(2))),
    Ladder("log of a product", (1, 2, 3, 4, 5), _inside("log(1 + @)", _D(1), "*")),
    Ladder("root of a sum, Laplace", (1, 2, 3, 4), _inside("sqrt(@)", _L(1))),
    Ladder("scale, Laplace", _SCALES, _scaled(_L)),
    Ladder("scale, discrete Laplace", _SCALES, _scaled(_D)),
    Ladder("scale, Laplace on integers", (1, 10, 100, 1000), _scaled(_L, tu.Integers(1, 500))),
    Ladder("scale, rounded Laplace", (1, 10, 100, 1000, 10**4), _scaled(tu.RoundedLaplace)),
    Ladder("scale, discrete Gaussian", (1, 3, 10, 100), _scaled(tu.DiscreteGaussian, (1, 200))),
    Ladder("scale, uniform", (1, 10, 10**3, 10**6), _scaled(tu.Uniform)),
    Ladder(
        "scale, q**2, staircase",
        (1, 10, 10**3, 10**6),
        _scaled(lambda k: tu.Staircase(1, sensitivity=k), None, "q**2"),
    ),
    Ladder(
        "width of the domain, discrete Gaussian",
        (10, 100, 1000, 10**4, 10**6),
        lambda k: _one("1/q", tu.DiscreteGaussian(2), (1, k)),
    ),
    Ladder("parts of a sum of noises", (2, 5, 20, 60), _many_parts),
    Ladder("rows, 1/q", _ROWS, lambda _: _one("1/q", _L(2)), lambda k: k),
    Ladder("rows, logistic", _ROWS, lambda _: _one("1/(1+exp(-q))", _L(1), None), lambda k: k),
    Ladder("rows, a/b", _ROWS, lambda _: _several("a0/a1", 2, _D(2)), lambda k: k),
)


# -- measuring -------------------------------------------------------------------------------------


def climbed(place: int) -> list[Step]:
    """Return what every rung of a ladder takes."""
    ladder = LADDERS[place]
    warm()
    return [step for size in ladder.sizes for step in rung(ladder, size)]


def rung(ladder: Ladder, size: int) -> Iterator[Step]:
    """Yield what everything asked of one question takes; after a refusal to build it nothing."""
    formula, noises, domain, truth = ladder.question(size)
    clear_cache()
    gc.collect()
    answers: list[Any] = []
    step = measured(
        ladder.name, size, "build", lambda: tu.unbiased(formula, noises, domain), answers
    )
    yield step
    if not answers:
        return
    (est,) = answers
    rng = np.random.default_rng(1)
    columns = {n: np.floor(q + rng.laplace(0, 3, ladder.rows(size))) for n, q in truth.items()}
    for name, action in (
        ("call", lambda: (est(**truth), est.variance(**truth))),
        ("rows", lambda: (est(**columns), est.stderr(**columns))),
        ("SQL", lambda: (est.sql(), est.sql(output="stderr"))),
        ("sd", lambda: est.sd(**truth)),
    ):
        yield measured(ladder.name, size, name, action)


def measured(
    ladder: str, size: int, step: str, action: Callable[[], Any], answers: list[Any] | None = None
) -> Step:
    """Do something and return what it took; its answer is added to the list."""
    forget_peak()
    floor, outcome = peak(), ""
    with counted(CALLS[step], calls=True) as count:
        try:
            answer = action()
            if answers is not None:
                answers.append(answer)
        except tu.TrueupError as error:
            outcome = f"refused: {error.message}"
        except TooMuchError:
            outcome = "not at its end"
        except Exception as error:
            outcome = f"raised {type(error).__name__}: {error}"
    return Step(ladder, size, step, CALLS[step] - count.left, peak() - floor, outcome)


def warm() -> None:
    """Import what is imported when first needed."""
    for noise in (tu.Laplace(1), tu.DiscreteLaplace(1), tu.Gaussian(1)):
        with contextlib.suppress(tu.TrueupError):
            est = tu.unbiased("q**2", noise)
            est.sd(1.0), est.variance(1.0), est.sql(), est.stderr(np.ones(3))
    tu.Noise.from_scipy  # noqa: B018
    with contextlib.suppress(tu.TrueupError):
        tu.unbiased("1/q", tu.RoundedLaplace(1), (1, 9)).sd(1.0)


# -- figures ---------------------------------------------------------------------------------------


def measure(processes: int) -> list[Step]:
    """Climb all ladders, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, maxtasksperchild=1) as pool:
        return [step for steps in pool.imap(climbed, range(len(LADDERS)), 1) for step in steps]


def beyond(steps: list[Step]) -> list[Step]:
    """Return what went on beyond its budget."""
    return [step for step in steps if step.is_beyond]


def figures(processes: int) -> Section:
    """Measure, and return what is beyond the budget."""
    steps = measure(processes)
    drawn = (
        f"{len(LADDERS)} kinds of questions in growing sizes, {len(steps)} steps, each answered "
        f"or refused within {CALLS['build']:,} calls ({CALLS['sd']:,} for `sd`) and "
        f"{MEMORY >> 20} MiB"
    )
    return Section(drawn, [str(step) for step in beyond(steps)])


if __name__ == "__main__":
    print(*measure(int(sys.argv[1]) if len(sys.argv) > 1 else 2), sep="\n")
