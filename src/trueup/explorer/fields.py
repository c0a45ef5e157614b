"""Fields that the tabs share: formulas in, the noise and bounds of their statistics, estimators."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import streamlit as st

import trueup
from trueup.adapters.notation import read_number
from trueup.errors import TrueupError
from trueup.formula.grammar import parse
from trueup.formula.linear import conditions
from trueup.noise.reading import read_noise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trueup.estimator import Estimator
    from trueup.exact import Exact
    from trueup.noise import Noise

NOISES = (
    "laplace(2)",
    "laplace(epsilon=0.5)",
    "discrete_laplace(2)",
    "discrete_laplace(epsilon=0.5)",
    "gaussian(2)",
    "gaussian(rho=1/8)",
    "discrete_gaussian(2)",
    "discrete_gaussian(rho=1/8)",
    "rounded_laplace(2)",
    "staircase(epsilon=1)",
    "student_t(8, 1)",
    "uniform(4)",
    "noiseless",
)
"""Offered to begin with; any noise can be typed in the same notation."""

FORMULA = 2_000
"""Characters of a formula, of conditions, and of the lines of a text."""

_KEPT = 200  # estimators that are not made again when a field changes back


@dataclasses.dataclass(frozen=True)
class Known:
    """What is known of the statistics: texts, as they were typed."""

    noise: Mapping[str, str]
    domain: str
    empty: str

    @property
    def laws(self) -> dict[str, Noise]:
        """The noise of each statistic."""
        return {name: read_noise(text) for name, text in self.noise.items()}

    def of(self, formula: str) -> tuple[str, tuple[tuple[str, str], ...], str]:
        """Return formula, noises and conditions of the statistics that it reads, as texts."""
        names = {s.name for s in parse(formula).free_symbols}
        parts = [p.strip() for p in self.domain.split(",") if p.strip()]
        own = [p for p in parts if self._speaks_of(p) <= names]
        return formula, tuple((n, self.noise[n]) for n in sorted(names)), ", ".join(own)

    def _speaks_of(self, part: str) -> set[str]:
        """Return the statistics in a condition, those that are given only."""
        box, tied = conditions(part)
        found = {*box}.union(*(c.names for c in tied))
        strange = sorted(found - {*self.noise})
        if strange:
            raise TrueupError(
                f"no formula reads {', '.join(strange)}",
                f"the statistics are {', '.join(self.noise)}",
            )
        return found

    def estimator(self, formula: str) -> Estimator:
        """Return the unbiased estimator, or the reason why there is none."""
        return _unbiased(*self.of(formula), self.empty)

    def nearly(self, formula: str, **allowed: Any) -> Estimator:
        """Return the estimator of least variance with ``max_bias``, or the best for ``cells``."""
        if self.empty:
            raise TrueupError(
                "a value in empty cells and an allowed bias exclude each other",
                "clear “Value in empty cells”",
            )
        return _nearly(*self.of(formula), tuple(sorted(allowed.items())))


@st.cache_resource(max_entries=_KEPT, show_spinner="Computing…")
def _unbiased(
    formula: str, noise: tuple[tuple[str, str], ...], domain: str, empty: str
) -> Estimator:
    laws = {name: read_noise(text) for name, text in noise}
    value = read_number(empty) if empty else None
    return trueup.unbiased(formula, laws, domain or None, empty=value)


@st.cache_resource(max_entries=_KEPT, show_spinner="Computing…")
def _nearly(
    formula: str,
    noise: tuple[tuple[str, str], ...],
    domain: str,
    allowed: tuple[tuple[str, Any], ...],
) -> Estimator:
    laws = {name: read_noise(text) for name, text in noise}
    return trueup.nearly_unbiased(formula, laws, domain or None, **dict(allowed))


def ask_known(names: Iterable[str], key: str) -> Known:
    """Ask for the noise of each statistic and for what is known of the true values."""
    names = sorted(names)
    noise = {
        name: st.selectbox(
            f"Noise of **{name}**",
            NOISES,
            accept_new_options=True,
            key=f"{key}noise-{name}",
            bind="query-params",
            help="choose one, or type any other: gaussian(epsilon=1, delta=1e-6), "
            "laplace(1) + laplace(2)",
        )
        for name in names
    }
    usual = ", ".join(f"{name} >= 1" for name in names if name in ("n", "m", "emp"))
    domain = st.text_input(
        "Known of the true values",
        usual,
        max_chars=FORMULA,
        key=f"{key}known",
        bind="query-params",
        placeholder="n >= 1, 0 <= s <= n",
        help="conditions between commas; bounds of one statistic or of sums of them",
    )
    empty = st.text_input(
        "Value in empty cells",
        key=f"{key}empty",
        bind="query-params",
        placeholder="no denominator is 0",
        help="what a quotient is, by convention, where its denominator is 0 (integer noise)",
    )
    return Known({n: str(text) for n, text in noise.items()}, domain or "", (empty or "").strip())


def heading(text: str) -> None:
    """Show the heading of a card."""
    st.subheader(text, anchor=False)


@contextmanager
def refusals_shown() -> Iterator[None]:
    """Show a refusal where it was asked for, with what to do, and go on after the block."""
    try:
        yield
    except TrueupError as error:
        show_refusal(error)


def show_refusal(error: TrueupError) -> None:
    """Show what is wrong and what to do."""
    st.error(escaped(error.message), icon=":material/error:")
    st.info(escaped(error.hint), icon=":material/lightbulb:")


def escaped(text: str) -> str:
    r"""Return a text that Markdown shows as it is.

    Examples
    --------
    >>> print(escaped("a*b [1]"))
    a\*b \[1\]
    """
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>#$|~:" else sign for sign in text)


def number_of(text: str, name: str) -> Exact | None:
    """Return the number in a field that may be empty."""
    if not text.strip():
        return None
    try:
        return read_number(text)
    except TrueupError as error:
        raise TrueupError(f"{name}: {error.message}", error.hint) from None
