"""What the tabs show, by Streamlit's own test harness: no browser, every number as it is drawn."""

import math
from pathlib import Path

import numpy as np
import pytest

import trueup as tu
from extras import needs

PAGE = Path(tu.__file__).parent / "explorer" / "page.py"


@pytest.fixture
def page():
    """What opens the page at a state, which the address holds."""
    testing = needs("streamlit.testing.v1")

    def opened(**state):
        test = testing.AppTest.from_file(str(PAGE), default_timeout=600)
        for key, value in state.items():
            test.query_params[key.replace("__", "-")] = value
        test.run()
        assert not test.exception
        return test

    return opened


def texts(test):
    """Return all that is said on a page, formulas and code among it."""
    parts = [*test.code, *test.caption, *test.error, *test.info, *test.latex, *test.text]
    return "\n".join(str(part.value) for part in [*parts, *test.markdown])


def drawn(test, key):
    """Return the lines of a chart by name."""
    import json

    (found,) = [c for c in test.get("plotly_chart") if c.proto.id.endswith(f"-{key}")]
    lines = json.loads(found.proto.spec)["data"]
    return {line["name"]: line for line in lines}


def numbers(values):
    """Return numbers of a chart, which may be packed."""
    import base64

    if isinstance(values, dict):
        values = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return np.array([math.nan if v is None else v for v in values], float)


def test_the_curve_is_that_of_the_estimator(page):
    line = drawn(page(f="1/n", known="n >= 5"), "curve")["unbiased"]
    est = tu.unbiased("1/n", tu.Laplace(2), (5, None))
    x, y = numbers(line["x"]), numbers(line["y"])
    assert np.allclose(y, est(x), rtol=1e-9)


def test_bias_and_sd_are_exact_and_beside_those_of_the_plug_in(page):
    test = page(f="1/n", noise__n="discrete_laplace(3)", known="n >= 1", near="bias allowed")
    est = tu.unbiased("1/n", tu.DiscreteLaplace(3), (1, None))
    sd = drawn(test, "sd")
    q = numbers(sd["unbiased"]["x"])
    assert np.allclose(numbers(sd["unbiased"]["y"]), est.sd(q), rtol=1e-9)
    bias = drawn(test, "bias")
    assert not numbers(bias["unbiased"]["y"]).any()
    k = np.arange(-200, 201)
    exact = [(est.noise["n"].pmf(k) / np.maximum(v + k, 1)).sum() - 1 / v for v in q]
    assert np.allclose(numbers(bias["plug-in, clamped"]["y"]), exact, atol=1e-9)
    assert np.abs(numbers(bias["nearly unbiased"]["y"]) * q).max() <= 0.05
    assert "a bias of at most" in texts(test)


def test_what_has_no_estimator_is_refused_with_the_reason(page):
    said = texts(page(f="abs(q)"))
    assert "kink at 0" in said
    assert not page(f="abs(q)").get("plotly_chart")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"f": "1/"}, "invalid syntax"),
        ({"f": "2"}, "names no published number"),
        ({"f": "__import__('os')"}, "cannot read"),
        ({"f": "1/n", "noise__n": "lplace(2)"}, "did you mean laplace"),
        ({"f": "1/n", "known": "m >= 1"}, "no formula reads m"),
        ({"f": "1/n", "known": "n >= 1", "empty": "x"}, "'x' is no number"),
        (
            {"f": "1/n", "known": "n >= 0", "noise__n": "discrete_laplace(2)"},
            "not a finite number at n = 0",
        ),
        ({"f": "+".join(["n"] * 1500)}, "more than"),
    ],
)
def test_bad_fields_are_refused_in_words(page, state, said):
    test = page(**state)
    assert test.error
    assert test.info
    assert said in texts(test).replace("\\", "")


def test_code_to_copy_makes_the_same_estimator(page):
    test = page(f="s/n", noise__n="discrete_laplace(3)", known="n >= 1, 0 <= s <= n",
                noise__s="discrete_laplace(3)")  # fmt: skip
    (source,) = [c.value for c in test.code if c.value.startswith("import trueup")]
    space = {}
    exec(compile(source.replace("est(", "found = est(", 1), "copied", "exec"), space)  # noqa: S102
    noise = {"s": tu.DiscreteLaplace(3), "n": tu.DiscreteLaplace(3)}
    est = tu.unbiased("s/n", noise, "n >= 1, 0 <= s <= n")
    assert space["est"](s=3, n=9) == est(s=3, n=9)


def test_the_frontier_is_that_of_the_library(page):
    test = page(f="1/n", noise__n="discrete_gaussian(3)", known="12 <= n <= 60", frontier="true")
    line = drawn(test, "frontier-chart")["largest sd"]
    front = tu.frontier("1/n", tu.DiscreteGaussian(3), (12, 60), relative=True, biases=[0.05])
    found = dict(zip(line["x"], numbers(line["y"]), strict=True))
    assert found["5 %"] == pytest.approx(front.largest_sd[0], rel=1e-6)


def test_a_plan_lists_the_mechanisms(page):
    test = page(tab="Plan")
    plan = tu.mechanisms.plan(1, 200, (0, 1))
    assert str(plan) in [c.value for c in test.code]
    assert "group mean" in drawn(test, "mean-chart")


def test_a_private_table_is_planned_as_it_is_released(page):
    test = page(tab="Plan", planned="a private table")
    (command,) = [c.value for c in test.code if c.value.startswith("trueup release")]
    assert "'wage = mean(wage, 0, 120000)'" in command
    assert "epsilon" in texts(test)
    (frame,) = test.dataframe
    assert list(frame.value["measure"]) == ["n", "wage", "female"]
