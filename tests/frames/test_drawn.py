"""Frames drawn by Hypothesis: eager kernels, lazy expressions and single calls agree."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueup as tu
from frames.backends import BACKENDS, same

pytestmark = pytest.mark.filterwarnings("ignore::trueup.BoundWarning")

ESTIMATORS = {
    "ratio": tu.unbiased(
        "s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, {"n": (1, None)}
    ),
    "root": tu.unbiased("sqrt(1 + s**2)", tu.Laplace(1)),
    "share": tu.unbiased("n/(n + m)", {"n": tu.Laplace(1), "m": tu.Laplace(1)},
                         {"n": (1, None), "m": (1, 40)}),
    "wave": tu.unbiased("s**2*exp(s/9) + cos(s)", tu.Gaussian(2)),
    "kink": tu.unbiased("max(n - 3, 0)", tu.DiscreteLaplace(1), (0, 20)),
}  # fmt: skip
CELL = st.tuples(
    st.one_of(st.none(), st.floats(-60, 60), st.just(math.nan)),
    st.one_of(st.none(), st.integers(-20, 80)),
    st.one_of(st.none(), st.integers(-20, 80)),
)


def direct(est, row):
    """One call of the estimator; null if a number is missing, (value, stderr)."""
    if any(row[s] is None for s in est.statistics):
        return None, None
    cell = {s: float(row[s]) for s in est.statistics}
    value, stderr = est(**cell), est.stderr(**cell)
    return value, None if math.isnan(stderr) and not math.isnan(value) else stderr


def close(a, b, nan_is_null, size=1.0):
    if nan_is_null and (a is None or b is None):
        return all(v is None or math.isnan(v) for v in (a, b))
    if a is None or b is None or math.isnan(a) or math.isnan(b):
        return same(a, b)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 * size)


@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
@settings(max_examples=4)
@given(
    rows=st.lists(CELL, min_size=2, max_size=12), some=st.sets(st.sampled_from(list(ESTIMATORS)))
)
def test_every_backend_agrees_with_single_calls(backend, rows, some):
    # a first full row gives every column its type
    rows = [(1.5, 30, 2), *rows]
    data = dict(zip("snm", map(list, zip(*rows, strict=True)), strict=True))
    chosen = {name: ESTIMATORS[name] for name in sorted(some) or ["ratio"]}
    out = backend.read(tu.debias(backend(data), **chosen))
    assert list(out) == ["s", "n", "m", *(c for n in chosen for c in (n, f"{n}_stderr"))]
    for name, est in chosen.items():
        for i, row in enumerate(rows):
            value, stderr = direct(est, dict(zip("snm", row, strict=True)))
            scale = 1 + abs(value) if value is not None and np.isfinite(value) else 1.0
            assert close(out[name][i], value, backend.nan_is_null, scale), (name, row)
            if stderr is not None and abs(stderr) < 1e-4:
                continue  # the root of a variance that cancels
            assert close(out[f"{name}_stderr"][i], stderr, backend.nan_is_null, scale), (name, row)
