"""What the page computes, against independent references; and errors beside their fields."""

import inspect
import io
import itertools
import math
import re
import shlex
import sqlite3
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from contextlib import closing, redirect_stdout

import numpy as np
import pytest
from scipy import integrate, stats

import trueup as tu
from explorer.cases import MEAN, RECIPROCAL
from trueup.cli.notation import known_families
from trueup.explorer.families import FAMILIES
from trueup.explorer.refused import Refusal
from trueup.explorer.views import code, overview
from trueup.explorer.worker import answer
from trueup.sql.dialects import DIALECTS


def at(form, name, **fields):
    """A form with some fields of a statistic changed."""
    statistics = {**form["statistics"], name: {**form["statistics"][name], **fields}}
    return {**form, "statistics": statistics}


def test_the_curve_is_the_closed_form():
    answered = answer("curve", RECIPROCAL)
    shown, (low, high) = answered["curve"], answered["range"]
    for x, estimate, plugin in zip(shown["x"], shown["estimate"], shown["plugin"], strict=True):
        assert estimate == pytest.approx(best(x), rel=1e-4)
        if plugin is None:  # near the pole, far outside the picture
            assert not low < 1 / x < high
        else:
            assert plugin == pytest.approx(1 / x, rel=1e-4)


def moment(g, q, power):
    """E g(q + Z)^power for Laplace noise of scale 2, by quadrature."""
    law = stats.laplace(loc=q, scale=2)
    middle = max(q, 1.001)
    return sum(
        integrate.quad(lambda x: g(x) ** power * law.pdf(x), *ends, limit=400)[0]
        for ends in ((-80, 1), (1, middle), (middle, q + 120))
    )


def best(x):
    return 3 if x <= 1 else 1 / x - 8 / x**3


def clamped(x):
    return 1 / max(x, 1)


@pytest.mark.parametrize(("who", "g"), [("estimate", best), ("plugin", clamped)])
def test_bias_and_sd_agree_with_quadrature(who, g):
    risk = answer("risk", RECIPROCAL)
    for i in (0, 9, 20):
        q = risk["q"][i]
        mean, square = moment(g, q, 1), moment(g, q, 2)
        assert risk[who]["bias"][i] == pytest.approx(mean - 1 / q, abs=1e-7)
        assert risk[who]["sd"][i] == pytest.approx(math.sqrt(square - mean**2), rel=1e-6)


def test_the_error_is_bias_and_noise_together():
    risk = answer("risk", RECIPROCAL)
    near = answer("near", {**RECIPROCAL, "bias": "0.2"})
    i = 9
    for who, g in (("estimate", best), ("plugin", clamped)):
        q = risk["q"][i]
        squared = moment(lambda x, g=g, q=q: g(x) - 1 / q, q, 2)  # E (g − f)²
        assert risk[who]["rmse"][i] == pytest.approx(math.sqrt(squared), rel=1e-6)
    bias, sd, both = (near["risk"][what][i] for what in ("bias", "sd", "rmse"))
    assert both == pytest.approx(math.sqrt(bias**2 + sd**2), rel=1e-5)
    assert near["risk"]["sd"][0] < risk["estimate"]["sd"][0]  # what the bias is for
    assert both != pytest.approx(sd, rel=1e-4)


def test_cells_choose_the_bias():
    few, many = (answer("near", {**MEAN, "cells": cells}) for cells in ("10", "10000"))
    assert few["bound"] > 10 * many["bound"] > 0  # noise averages out, bias does not
    names = {}
    exec(many["python"], names)  # noqa: S102  (what the page offers to copy)
    assert names["est"].bias_bound == pytest.approx(many["bound"], rel=1e-6)
    assert answer("near", {**MEAN, "cells": "0"})["error"]["hint"]
    assert answer("near", {**JOINT, "bias": "0.1"})["error"]["field"] == "bias"


def test_only_a_field_that_must_be_filled_is_missing():
    asked = {**at(RECIPROCAL, "n", low=""), "from": "", "to": "", "known": " ", "empty": ""}
    assert answer("curve", asked)["error"]["kind"] == "none"  # a pole, and no field is to blame
    assert answer("curve", at(RECIPROCAL, "n", scale=""))["error"]["kind"] == "missing"
    assert answer("near", {**NEARLY, "bias": "-1"})["error"]["kind"] != "missing"


def test_hints_speak_of_the_page():
    for formula, law in [("1/n", {"family": "gaussian"}), ("1/n", {}), ("abs(n)", {})]:
        hint = answer("curve", {"formula": formula, "statistics": {"n": law}})["error"]["hint"]
        assert not {"=", "--", "nearly_unbiased", "Fraction"} & {
            *re.findall(r"[a-z_]{4,}|=|--", hint)
        }


TABLE = {
    "measures": "n = count\nwage = mean(`hourly wage`, 0, 100)\nsex = share(sex, ['f', 'm'])",
    "epsilon": "2", "by": "state, my industry", "keys": "my groups.csv",
    "unit": "person", "at_most": "3", "weights": "wage = 2",
}  # fmt: skip


def test_the_plan_of_a_table_has_the_errors_of_its_noise():
    shown = answer("table", TABLE)
    by_name = {m["name"]: m for m in shown["measures"]}
    assert [m["epsilon"] for m in shown["measures"]] == [
        None,
        pytest.approx(4 / 3),
        pytest.approx(2 / 3),
    ]
    a = math.exp(-4 / 9)  # discrete Laplace noise of scale 3/(4/3) on each of two counts
    variance = 2 * a / (1 - a) ** 2
    b = math.exp(-2 / 9)  # and of scale 3/(2/3) on each share: the better of both counts of n
    other = 2 * 2 * b / (1 - b) ** 2
    both = 1 / (1 / (2 * variance) + 1 / other)
    assert by_name["n"]["errors"] == pytest.approx([math.sqrt(both)] * 4)
    # the delta method where one count is near 0 and yet far beyond the noise, and the rounding
    part = 6 * 9 / 4 / 10_000
    large = 100 * math.sqrt(variance * ((1 - part) ** 2 + part**2) + 1 / 12) / 10_000
    assert by_name["wage"]["errors"][-1] == pytest.approx(large, rel=1e-3)
    i = shown["counts"].index(shown["sizes"][0])
    assert by_name["sex"]["curve"][i] == by_name["sex"]["errors"][0]
    (pay,) = answer("table", {**TABLE, "measures": "p = per_record(p, root:3, 2)", "weights": ""})[
        "measures"
    ]
    assert pay["method"].endswith("its errors are at totals so large, not at so many records")


def test_the_command_and_the_plan_that_are_copied_release_that_table(tmp_path):
    from trueup.cli import build_parser
    from trueup.cli.plan_file import read_plan

    (tmp_path / "my groups.csv").write_text("state,my industry\nA,1\n")
    shown = answer("table", {**TABLE, "keys": str(tmp_path / "my groups.csv")})
    words = shlex.split(shown["command"].replace("\\\n", ""))
    (tmp_path / "plan.toml").write_text(shown["toml"])
    by_file = ["release", "IN", "OUT", "--spec", str(tmp_path / "plan.toml")]
    for given in (words[1:], by_file):
        design = read_plan(build_parser().parse_args(given)).reading.design
        assert design.by == ("state", "my industry")
        assert (design.unit, design.at_most) == ("person", 3)
        assert [float(e) for e in design.budget.values()] == pytest.approx([4 / 3, 2 / 3])
        assert design.measures["wage"].column == "hourly wage"


def test_the_weights_proposed_are_better():
    shown = answer("table", {**TABLE, "weights": ""})
    again = answer("table", {**TABLE, "weights": shown["weights"]})
    assert again["given"] == pytest.approx(shown["proposed"])
    assert shown["proposed"] != pytest.approx(shown["given"])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"measures": ""}, "measures"),
        ({"measures": "count"}, "measures"),
        ({"measures": "n = count\nn = count"}, "measures"),
        ({"measures": "wage = mean(wage, 9, 1)"}, "measures"),
        ({"measures": "wage = median(wage)"}, "measures"),
        ({"measures": "\n".join(f"a{i} = sum(a, 0, 1)" for i in range(13))}, "measures"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": ""}, "epsilon"),
        ({"weights": "pay = 2"}, "weights"),
        ({"weights": "wage = 0"}, "weights"),
        ({"weights": "2"}, "weights"),
        ({"at_most": "0"}, "at_most"),
        ({"at_most": ""}, "at_most"),
        ({"unit": ""}, "unit"),
        ({"size": "1.5"}, "size"),
    ],
)
def test_an_error_of_a_table_stands_beside_its_field(change, field):
    error = answer("table", {**TABLE, **change})["error"]
    assert (error["field"], error["kind"] == "ours") == (field, False)
    assert error["hint"]


def test_several_statistics_are_held_or_run():
    shown = answer("curve", {**MEAN, "vary": "s", "at": {"n": "10"}, "from": "0", "to": "30"})
    assert shown["axis"]["held"] == {"n": 10.0}
    curve = shown["curve"]
    lam = math.exp(-0.5) / (1 - math.exp(-0.5)) ** 2
    factor = 1 / 10 - lam * (1 / 11 - 2 / 10 + 1 / 9)
    assert curve["estimate"][100] == pytest.approx(curve["x"][100] * factor, rel=1e-4)


def test_a_budget_is_the_same_as_its_scale():
    by_scale = answer("curve", RECIPROCAL)
    fields = {"way": "epsilon", "epsilon": "0.5", "sensitivity": "1"}
    by_budget = answer("curve", at(RECIPROCAL, "n", **fields))
    assert by_budget["curve"] == by_scale["curve"]


def test_where_there_is_no_estimator_the_reason_and_the_plugin_are_shown():
    shown = answer("curve", {"formula": "abs(q)", "statistics": {"q": {"scale": "2"}}})
    assert shown["error"]["kind"] == "none"
    assert "kink at 0" in shown["error"]["message"]
    assert shown["curve"]["plugin"][0] == -shown["curve"]["x"][0]
    assert "estimate" not in shown["curve"]
    risk = answer("risk", {"formula": "abs(q)", "statistics": {"q": {"scale": "2"}}})
    assert max(risk["plugin"]["bias"]) == pytest.approx(2)  # b·e^{−|q|/b} at 0


NEARLY = {
    "formula": "1/n",
    "statistics": {"n": {"family": "gaussian", "scale": "2", "low": "6", "high": "60"}},
}


def test_the_nearly_unbiased_estimator_keeps_its_bound():
    assert answer("curve", NEARLY)["error"]["kind"] == "none"
    near = answer("near", {**NEARLY, "bias": "0.05", "from": "-14", "to": "80"})
    assert near["relative"]
    assert near["bound"] <= 0.05
    x, g = (np.array(near["curve"][key]) for key in ("x", "estimate"))
    points = zip(near["risk"]["q"], near["risk"]["bias"], near["risk"]["sd"], strict=True)
    for q, bias, sd in [p for p in points if p[0] < 55]:
        law = stats.norm.pdf(x, loc=q, scale=2)  # the drawn curve against the density
        mean = np.trapezoid(g * law, x)
        spread = math.sqrt(np.trapezoid((g - mean) ** 2 * law, x))
        assert mean - 1 / q == pytest.approx(bias, abs=2e-3 / q)
        assert abs(mean - 1 / q) <= 0.0525 / q
        assert spread == pytest.approx(sd, rel=1e-2)
    plain = 1 / np.maximum(x, 6)  # and the plug-in does not keep it
    assert abs(np.trapezoid(plain * stats.norm.pdf(x, 6, 2), x) - 1 / 6) > 0.05 / 6
    names = {}
    exec(near["python"], names)  # noqa: S102  (what the page offers to copy)
    assert names["est"].bias_bound <= near["bias"] == 0.05


def test_where_f_has_a_zero_the_bias_is_absolute():
    law = {"scale": "1", "low": "1", "high": "9"}
    near = answer("near", {"formula": "abs(n - 3)", "statistics": {"n": law}, "bias": "0.4"})
    assert not near["relative"]
    assert near["bound"] <= 0.4
    assert "relative" not in near["python"]


def test_the_frontier_falls_with_the_bias():
    biases, largest, average, worst = zip(*answer("frontier", NEARLY)["points"], strict=True)
    assert len(biases) >= 3
    assert list(biases) == sorted(biases, reverse=True)
    assert list(largest) == sorted(largest)
    assert all(a <= b for a, b in zip(average, largest, strict=True))
    assert all(6 <= q <= 60 for q in worst)


@pytest.mark.parametrize(
    ("kind", "form", "field"),
    [
        ("frontier", {"formula": "abs(q)", "statistics": {"q": {"scale": "2"}}}, "frontier"),
        ("near", {"formula": "abs(q)", "statistics": {"q": {"scale": "2"}}}, "bias"),
        ("near", {**NEARLY, "bias": "much"}, "bias"),
        ("near", {**NEARLY, "bias": "-1"}, "bias"),
    ],
)
def test_what_no_small_bias_can_do_is_told(kind, form, field):
    error = answer(kind, form)["error"]
    assert error["field"] == field
    assert error["hint"]


def test_a_table_is_told_in_words():
    law = {"family": "discrete_gaussian", "scale": "1", "low": "3", "high": "12"}
    shown = answer("curve", {"formula": "1/n", "statistics": {"n": law}})
    assert shown["estimator"] == ""
    assert any("table" in words for label, words in shown["explanation"] if label == "estimate")


def test_infinite_variance_is_a_word_not_a_failure():
    form = {"formula": "exp(q/3)", "statistics": {"q": {"scale": "2"}}}
    shown = answer("curve", form)
    assert any("infinite" in words for label, words in shown["explanation"] if label == "variance")
    assert "stderr" not in shown["curve"]
    assert set(answer("risk", form)["estimate"]["sd"]) == {None}


def test_mathematics_is_well_formed_and_names_stay_text():
    name = "<img src=x onerror=alert(1)>&"
    form = {"formula": f"1/`{name}`", "statistics": {name: {"scale": "2", "low": "1"}}}
    shown = answer("curve", form)
    for markup in (shown["estimator"], shown["estimand"]):
        tree = ElementTree.fromstring(markup)  # noqa: S314  (our own)
        assert "img" not in {element.tag for element in tree.iter()}
        assert name in {element.text for element in tree.iter()}


@pytest.mark.parametrize(
    ("formula", "tags"),
    [
        ("where(q < 3, q, 4)*sqrt(q + 9)", {"mtable", "msqrt"}),
        ("exp(-q)/(1 + q**2) + abs(q + 2)", {"msup", "mfrac"}),
        ("q1 + q_2**2*pi", {"msub"}),
    ],
)
def test_mathematics_of_other_formulas(formula, tags):
    laws = {n: {"family": "discrete_laplace", "low": "0"} for n in ("q", "q1", "q_2")}
    shown = answer("curve", {"formula": formula, "statistics": laws})
    tree = ElementTree.fromstring(shown["estimator"])  # noqa: S314  (our own)
    assert tags <= {element.tag for element in tree.iter()}


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"formula": "1/("}, "formula"),
        ({"formula": "3 + 4"}, "formula"),
        ({"formula": 7}, "formula"),
        ({"formula": "a+b+c+d+e+f+g"}, "formula"),
        ({"formula": "__import__('os').system('true')"}, "formula"),
        (at(RECIPROCAL, "n", family="cauchy"), "n"),
        (at(RECIPROCAL, "n", scale="-1"), "n.scale"),
        (at(RECIPROCAL, "n", scale="many"), "n.scale"),
        (at(RECIPROCAL, "n", scale=""), "n.scale"),
        (at(RECIPROCAL, "n", scale="1e999"), "n.scale"),
        (at(RECIPROCAL, "n", scale={"a": 1}), "n.scale"),
        (at(RECIPROCAL, "n", low="x"), "n.low"),
        (at(RECIPROCAL, "n", high="0"), "n.high"),
        (at(RECIPROCAL, "n", family="discrete_laplace", low="1.2", high="1.7"), "n.low"),
        (at(RECIPROCAL, "n", way="epsilon", epsilon="0"), "n.epsilon"),
        (at(RECIPROCAL, "n", family="gaussian", way="epsilon", delta="3"), "n.delta"),
        ({**RECIPROCAL, "from": "9", "to": "3"}, "to"),
        ({**MEAN, "vary": "s", "at": {"n": "2.5"}}, "at.n"),
    ],
)
def test_an_error_stands_beside_its_field(form, field):
    error = answer("curve", form)["error"]
    assert error["field"] == field
    assert error["message"]
    assert error["hint"]
    assert error["kind"] != "ours"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"epsilon": "0"}, "plan.epsilon"),
        ({"count": "2.5"}, "plan.count"),
        ({"count": "3", "least": "9"}, "plan.count"),
        ({"count": "99999999999"}, "plan.count"),
        ({"low": "2", "high": "1"}, "plan.high"),
        ({"target": "-1"}, "plan.target"),
        ({"least": "x"}, "plan.least"),
    ],
)
def test_an_error_of_a_plan_stands_beside_its_field(change, field):
    assert answer("plan", change)["error"]["field"] == field


def test_a_plan_agrees_with_the_known_table(monkeypatch):
    monkeypatch.setattr(time, "monotonic", itertools.count(step=100.0).__next__)  # a slow machine
    shown = answer("plan", {"epsilon": "1", "count": "50", "low": "0", "high": "1"})
    sd = {o["name"]: o["sd"] for o in shown["options"]}
    assert [o["name"] for o in shown["options"]][:2] == ["group share, 0/1 records", "group mean"]
    assert [o["offered"] for o in shown["options"]][:2] == [False, True]
    assert shown["counts"] == sorted(set(shown["counts"]))
    i = shown["counts"].index(50)
    assert shown["curves"]["group mean"][i] == pytest.approx(sd["group mean"])
    for curve in shown["curves"].values():  # whole, however busy the machine is
        assert len(curve) == len(shown["counts"])
        assert None not in curve
    large = {"epsilon": "1", "count": "100000", "low": "0", "high": "1"}
    best = next(o for o in answer("plan", large)["options"] if o["offered"])
    noise = 2 * (0.1**2 + 0.9**2) / (4 * math.sinh(0.5) ** 2) + 1 / 12  # n²·variance at m = 0.1
    assert best["sd"] * 100000 == pytest.approx(math.sqrt(noise), rel=1e-3)


def test_a_plan_offers_nothing_that_can_only_be_simulated():
    shown = answer("plan", {"epsilon": "0.001", "count": "200", "low": "0", "high": "1"})
    first, *_ = shown["options"]
    assert first["name"] == "smooth sensitivity (M_SS)"
    assert not first["offered"]
    assert next(o for o in shown["options"] if o["offered"])["name"] == "group mean"


@pytest.mark.parametrize("form", [RECIPROCAL, MEAN, at(RECIPROCAL, "n", scale="1/3")])
def test_the_python_runs_and_gives_the_curve(form):
    shown = answer("code", form)["python"]
    names = {}
    lines = shown.splitlines()
    exec("\n".join(lines[:-1]), names)  # noqa: S102  (what the page offers to copy)
    curve = answer("curve", form)
    point = curve["curve"]["x"][200 % len(curve["curve"]["x"])]
    values = {curve["axis"]["name"]: point, **curve["axis"]["held"]}
    at_point = curve["curve"]["estimate"][200 % len(curve["curve"]["x"])]
    assert names["est"](**values) == pytest.approx(at_point, rel=1e-3)
    with redirect_stdout(io.StringIO()):
        exec(lines[-1], names)  # noqa: S102


@pytest.mark.parametrize("form", [RECIPROCAL, MEAN])
def test_the_sql_gives_the_curve(form):
    sql = answer("code", {**form, "dialect": "sqlite"})["sql"]
    shown = answer("curve", form)
    points = [0, 40, -1] if len(shown["curve"]["x"]) > 40 else [0, 9, -1]
    name, held = shown["axis"]["name"], shown["axis"]["held"]
    columns = ", ".join(f'? AS "{column}"' for column in (name, *held))
    with closing(sqlite3.connect(":memory:")) as database:
        for i in points:
            values = (shown["curve"]["x"][i], *held.values())
            (value,) = database.execute(f"SELECT {sql} FROM (SELECT {columns})", values).fetchone()  # noqa: S608
            assert value == pytest.approx(shown["curve"]["estimate"][i], rel=1e-4)


def test_the_page_offers_every_family_of_the_command_line():
    known, by_lists = known_families(), {"mass", "moments", "scipy"}
    assert FAMILIES.keys() <= known.keys() - by_lists
    for name, family in FAMILIES.items():
        assert getattr(tu, family.constructor) is known[name]
        for way, fields in family.ways.items():
            made = (
                known[name] if way == "scale" else getattr(known[name], "from_budget", known[name])
            )
            assert {f.name for f in fields} <= inspect.signature(made).parameters.keys()
        example = known[name](
            **{f.name: float(f.default) for f in next(iter(family.ways.values()))}
        )
        assert example.known or example.lattice == family.whole


def test_every_dialect_of_the_library_is_on_the_page():
    for dialect in DIALECTS:
        assert "n" in answer("code", {**RECIPROCAL, "dialect": dialect})["sql"]
    wrong = answer("code", {**RECIPROCAL, "dialect": "cobol"})["error"]
    assert wrong["field"] == "dialect"


def test_the_server_itself_stays_small():
    code = (
        "import sys\nfrom trueup.explorer.app import build\nbuild()\n"
        "heavy = {'numpy', 'scipy', 'sympy', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, b"")


JOINT = {
    "formula": "s/n",
    "known": "0 <= s <= n",
    "empty": "0.5",
    "statistics": {name: {"family": "discrete_laplace", "scale": "2"} for name in "sn"},
}


def test_conditions_and_a_value_for_empty_cells():
    noise = {"n": tu.DiscreteLaplace(2), "s": tu.DiscreteLaplace(2)}
    expected = tu.unbiased("s/n", noise, "0 <= s <= n", empty=0.5)
    shown = code.answer(JOINT)
    scope = {}
    exec(shown["python"], scope)  # noqa: S102
    assert scope["est"](n=3, s=5) == expected(n=3, s=5)
    assert "--domain '0 <= s <= n'" in shown["command"]
    assert "--empty 0.5" in shown["command"]
    assert ("known", "s <= n") in overview.answer(JOINT)["explanation"]


@pytest.mark.parametrize(
    ("field", "text"), [("known", "s == n"), ("known", "s <= t"), ("empty", "nothing")]
)
def test_what_is_said_of_several_is_checked(field, text):
    with pytest.raises(Refusal) as caught:
        code.answer({**JOINT, field: text})
    assert caught.value.record()["field"] == field
