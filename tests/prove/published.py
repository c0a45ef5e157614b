"""What is published elsewhere, drawn: OpenDP's counts, which may stop at 0, and shares of cells.

A count of OpenDP is a whole number plus noise, held by a type that may be unsigned or cut to
bounds. The library is given the description, the oracle the law: if a noise is read off it, the
estimates from what is really published must be unbiased on the domain that was stated, else it must
be refused. Shares of a histogram must sum to 1, in doubles, or the release must say that they do
not.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import random
from typing import Any

import numpy as np

import trueup as tu
from prove.laws import Law, law
from prove.section import Section

CASES = 400
"""Of each kind in a deep run: a hundredth of a second each."""
SAME = 1e-9
"""Relative to E|g|: the sums are exact but for rounding, and for 1e-18 of the tails."""


@dataclasses.dataclass(frozen=True)
class Wrong:
    """A question and what came out of it."""

    check: str
    seed: int
    asked: str
    expected: Any
    got: Any


# -- counts ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Count:
    """A count as it is described, its noise as it is, where it stops, and where the truth lies."""

    described: dict[str, Any]
    law: Law
    stops: tuple[float, float]
    domain: tuple[int, int | None]


def drawn_count(seed: int) -> Count:
    """Return the count of a seed."""
    rng = random.Random(f"count {seed}")
    scale, gaussian = rng.choice((0.5, 1.0, 2.0, 3.0)), rng.random() < 0.5
    noise = law(f"Discrete{'Gaussian' if gaussian else 'Laplace'}({scale})")
    assert noise is not None
    low = rng.choice((0, 0, 1, 3, 10, 30, 60))
    domain = (low, rng.choice((None, None, low + 5)))
    if rng.random() < 0.4:
        return Count(_summary(scale, gaussian), noise, (0, math.inf), domain)
    stops: tuple[float, float] = (-math.inf, math.inf)
    kind = rng.choice(("i32", "u32", "u64"))
    arguments: dict[str, Any] = {"scale": scale, "k": None, "input_domain": _atom(kind)}
    name = "make_gaussian" if gaussian else "make_laplace"
    if not gaussian and rng.random() < 0.4:
        name, end = "make_geometric", rng.choice((40, 80))
        stops = (0, end)
        arguments["bounds"] = {"__tuple__": [0, end]}
    elif kind.startswith("u"):
        stops = (0, math.inf)
    return Count({"__function__": name, "__kwargs__": arguments}, noise, stops, domain)


def _atom(kind: str) -> dict[str, Any]:
    return {"__function__": "atom_domain", "__kwargs__": {"T": kind, "bounds": None, "nan": False}}


def _summary(scale: float, gaussian: bool) -> dict[str, Any]:
    """Return the summary of ``dp.len()``, which is unsigned and does not say so."""
    return {
        "column": ["len"],
        "aggregate": ["Frame Length"],
        "distribution": [f"Integer {'Gaussian' if gaussian else 'Laplace'}"],
        "scale": [scale],
        "threshold": [None],
    }


def count(seed: int) -> Wrong | None:
    """Return a bias of what is made of a drawn count, if there is one."""
    drawn = drawn_count(seed)
    try:
        noise = tu.from_opendp(json.dumps(drawn.described), domain=drawn.domain)
    except tu.TrueupError:
        return None
    noise = noise["len"] if isinstance(noise, dict) else noise
    for f, truth in (("n", float), ("n**2", lambda n: float(n**2))):
        est = tu.unbiased(f, noise, drawn.domain)
        for n in (drawn.domain[0], drawn.domain[0] + 1, drawn.domain[0] + 5):
            mean, size = _mean(est, drawn, n)
            if abs(mean - truth(n)) > SAME * size:
                asked = f"{f} at {n} of {json.dumps(drawn.described)} on {drawn.domain}"
                return Wrong("count", seed, asked, truth(n), mean)
    return None


def _mean(est: Any, drawn: Count, n: int) -> tuple[float, float]:
    """Return E g and E|g| over what is published of n records."""
    far = math.ceil(max(drawn.law.reach(-1), drawn.law.reach(1)))
    z = np.arange(-far, far + 1.0)
    mass, g = drawn.law.density(z), est(np.clip(n + z, *drawn.stops))
    return math.fsum(mass * g), math.fsum(mass * np.abs(g))


# -- shares ----------------------------------------------------------------------------------------


def shares(seed: int) -> Wrong | None:
    """Return shares of drawn noisy counts that do not sum to 1 and do not say so."""
    rng = random.Random(f"shares {seed}")
    cells, largest = rng.choice((2, 3, 5, 13)), rng.choice((1, 1, 20, 10**4))
    counts = tuple(rng.choice((1, rng.randint(-1, largest))) for _ in range(cells))
    mechanism = _shares(rng.choice((0.01, 0.1, 1)), cells)
    release = mechanism._of(counts, mechanism.inverse, True)
    total = sum(release.shares.values())
    if total == 1 or release.note:
        return None
    return Wrong("shares", seed, f"shares of {counts} at ε = {mechanism.epsilon}", 1, total)


@functools.cache
def _shares(epsilon: float, cells: int) -> Any:
    return tu.mechanisms.Shares(epsilon, range(cells))


# -- figures ---------------------------------------------------------------------------------------

CHECKS = {"count": count, "shares": shares}


def found(check: str, seeds: range) -> list[Wrong]:
    """Return what is wrong with the cases of some seeds."""
    return [wrong for seed in seeds if (wrong := CHECKS[check](seed)) is not None]


def figures(seed: int) -> Section:
    """Draw counts and histograms."""
    first = seed * 10**6
    wrong = [w for check in CHECKS for w in found(check, range(first, first + CASES))]
    drawn = (
        f"{CASES} counts as OpenDP describes them, unbiased as they are published or refused; "
        f"{CASES} histograms whose shares sum to 1 or say that they do not"
    )
    return Section(drawn, [f"{w.check}, {w.asked}: {w.expected}, got {w.got}" for w in wrong])
