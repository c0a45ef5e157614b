"""``trueup paper``: the printed numbers, the files, and the reasons, against theory.md."""

import contextlib
import csv
import io
import os
import re
import struct
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy

import misprints
import trueup as tu
import trueup.paper
from newton_step import NewtonStep, Slips, over_priors
from trueup.cli import main
from trueup.paper import excess, output, printed, skewed_sums
from trueup.paper.comparison import documented, report
from trueup.plots import paper_figures, style

HAS_PLOTS = find_spec("matplotlib") is not None or bool(os.environ.get("TRUEUP_REQUIRE_ALL"))
needs_plots = pytest.mark.skipif(not HAS_PLOTS, reason="matplotlib is not installed")

THEORY = {  # theory.md, section 5: n → sds
    "m_ss": {1: "6.000", 5: "5.079", 13: "3.639", 20: "2.719", 115: "0.05217"},
    "m_u_k10": {1: "10.55", 5: "5.171", 13: "1.333", 20: "0.3718", 115: "0.02752"},
    "m_u_umvue": {1: "7.249", 5: "3.605", 13: "0.9429", 20: "0.2839", 115: "0.02752"},
    "centred": {10: "0.410", 20: "0.0782", 50: "0.0283"},
    "two_totals": {10: "0.1189", 20: "0.05153", 50: "0.02009"},
    "two_totals_5": {10: "0.1143", 20: "0.05153", 50: "0.02009"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run the command once, as a user would, and keep what it computed."""
    folder = tmp_path_factory.mktemp("paper") / "out"
    kept, compute, text = [], trueup.paper.reproduce, io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(text):
        patch.setattr(trueup.paper, "reproduce", lambda: kept.append(compute()) or kept[0])
        plots = [] if HAS_PLOTS else ["--no-plots"]
        code = main(["paper", "--out", str(folder), *plots])
    return SimpleNamespace(code=code, folder=folder, text=text.getvalue(), results=kept[0])


@pytest.fixture
def again(run, monkeypatch):
    """Run the command with what the first run computed."""
    monkeypatch.setattr(trueup.paper, "reproduce", lambda: run.results)
    return lambda *argv: main(["paper", *map(str, argv)])


def read(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def digits(text):
    return len(text.split(".")[1])


# -- what it prints ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantity", "paper", "exact", "best"),
    [
        ("M_U has the smaller sd from n =", "13", "6", "3"),
        ("both sds above 1 up to n =", "19", "14", "12"),
        ("largest sd(M_SS)/sd(M_U)", "near 15", "15.93", "16.22"),
        ("reached at n =", "–", "33", "31"),
        ("sd(M_SS)/sd(M_U) at n = 115", "about 1.9", "1.896", "1.896"),
        ("and settles there from n =", "115", "115", "115"),
    ],
)
def test_published_numbers_stand_beside_the_exact_ones(run, quantity, paper, exact, best):
    pattern = r"\s{2,}".join(map(re.escape, (quantity, paper, exact, best)))
    assert re.search(rf"^\s+{pattern}$", run.text, re.MULTILINE)
    (row,) = [r for r in read(run.folder / "numbers.csv") if r["quantity"] == quantity]
    assert (row["paper"], row["exact_k10"], row["umvue"]) == (paper, exact, best)


def test_it_succeeds_and_fits_the_page(run):
    assert run.code == 0
    report_text = report(run.results)
    assert max(map(len, report_text.splitlines())) <= 100
    assert not re.search(r"DIFFERS|NOT all|not reproduced|nan", report_text)


def test_large_n_limits_agree_with_theory(run):
    keys = [c.key for c in run.results.curves.contenders]
    half, one = (dict(zip(keys, run.results.far[m], strict=True)) for m in (0.5, 1.0))
    limits = {
        "m_ss": (6, 6),
        "m_u_k10": (10**0.5, 4),
        "m_u_umvue": (10**0.5, 4),
        "centred": (2**0.5, 2),
        "two_totals": (1, 1.5**0.5),
        "two_totals_5": (1, 1.5**0.5),
    }
    for key, (middle, end) in limits.items():
        assert half[key] == pytest.approx(middle, rel=1e-5)
        assert one[key] == pytest.approx(end, rel=2e-4 if "totals" in key else 1e-5)


# -- why the numbers differ ----------------------------------------------------------------------


def test_published_facts_imply_an_excess_of_147_to_198(run):
    low, high = excess.interval(run.results.bounds)
    assert (round(low), round(high)) == (147, 198)
    for x in (low + 0.01, high - 0.01):
        facts = misprints.facts_with(run.results.curves, x)
        assert facts.ahead_from == printed.AHEAD_FROM
        assert facts.both_above_one_up_to == printed.BOTH_ABOVE_ONE_UP_TO
        assert round(facts.peak) == printed.PEAK_RATIO
    for x in (low - 0.01, high + 0.01):
        facts = misprints.facts_with(run.results.curves, x)
        assert facts[:2] != (printed.AHEAD_FROM, printed.BOTH_ABOVE_ONE_UP_TO)


@pytest.mark.parametrize(
    ("k", "expected"),
    [(3, "130.857"), (5, "44.194"), (10, "14.2570835958854"), (20, "5.882"), (50, "2.128")],
)
def test_excess_by_degree_is_that_of_theory(run, k, expected):
    assert f"{run.results.by_degree[k]:.{digits(expected)}f}" == expected


@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_correct_newton_step_agrees_with_the_closed_form(run, k):
    step = NewtonStep(misprints.INVERSE, low=1, scale=2, degree=k)
    for prior in (sympy.Rational(1, 7), sympy.Rational(9, 10)):
        left = step.left(prior)
        assert left.mean == 3
        assert float(left.excess) == pytest.approx(run.results.by_degree[k], rel=1e-10)


def test_printed_constraints_are_biased():
    mean, _ = over_priors(NewtonStep(misprints.INVERSE, 1, 2, 10, Slips(powers=True)))
    assert (round(mean[0], 2), round(mean[1], 2)) == (2.00, 2.19)


def test_range_over_priors_holds_between_its_samples():
    step = NewtonStep(misprints.INVERSE, 1, 2, 10, Slips(half=True, short=True, sign=True))
    _, (low, high) = over_priors(step)
    values = [float(step.left(sympy.Rational(i, 16)).excess) for i in range(17)]
    assert low <= min(values)
    assert max(values) <= high * (1 + 1e-15)


@pytest.fixture(scope="module")
def scenarios(run):
    return misprints.scenarios(run.results.curves)


@pytest.fixture(scope="module")
def mixtures(run):
    return misprints.mixtures(excess.interval(run.results.bounds))


def test_printed_step_with_its_powers_reproduces_the_published_numbers(run, scenarios, mixtures):
    s = scenarios[-1]
    low, high = excess.interval(run.results.bounds)
    assert low < s.excess[0] <= s.excess[1] < high
    assert s.facts[:2] == (printed.AHEAD_FROM, printed.BOTH_ABOVE_ONE_UP_TO)
    assert round(s.facts.peak, 1) == printed.PEAK_RATIO
    assert (mixtures.tried, len(mixtures.fitting)) == (32, 6)
    assert mixtures.shared == {"half", "twice"}


def test_what_is_told_of_the_newton_step_is_computed(run, scenarios, mixtures):
    assert documented("newton_step") == misprints.newton_text(scenarios, mixtures)
    assert documented("newton_step") in run.text


def test_what_is_told_of_other_misprints_is_computed(run):
    assert documented("misprints") == misprints.misprints_text()
    assert documented("misprints") in run.text


# -- the Remark, the Example, per-record sums, misprints -----------------------------------------


def test_absolute_value_remark(run):
    assert run.results.bias.gap < 1e-12
    for q, paper, ours, integral in run.results.bias.rows:
        assert paper == pytest.approx(2 * np.exp(-abs(q) / 2), rel=1e-14)
        assert ours == pytest.approx(paper, rel=1e-12)
        assert integral == pytest.approx(paper, abs=1e-10)


def test_power_functions_and_multiples(run):
    assert [p.k for p in run.results.powers] == list(range(9))
    assert all(p.agrees for p in run.results.powers)
    assert all(m.ours == m.paper for m in run.results.multiples)
    assert run.results.powers[4].formula == "x^4 - 48·x^2"


def test_per_record_guarantees_are_matched(run):
    rows = run.results.per_record
    for laplace, gaussian in zip(rows[::2], rows[1::2], strict=True):
        assert laplace.transform == gaussian.transform
        assert laplace.high_loss == pytest.approx(1)
        for name in ("median_loss", "high_loss", "largest_loss"):
            loss = getattr(laplace, name)
            assert getattr(gaussian, name) == pytest.approx(skewed_sums.matched(loss, "gaussian"))
        assert laplace.share_low == pytest.approx(gaussian.share_low)
        assert laplace.sd > gaussian.sd


def test_per_record_rows_against_the_definitions(run):
    records = np.random.default_rng(skewed_sums.SEED).lognormal(3, 1.5, 10_000)
    high = np.quantile(records, 0.95)
    roots = [r for r in run.results.per_record if r.noise == "laplace" and "root" in r.transform]
    for k, row in enumerate(roots, start=1):
        assert row.largest_loss == pytest.approx((records.max() / high) ** (1 / k))
        assert row.share_low == np.mean(records <= high / 2**k)
    assert roots[0].sd == pytest.approx(2**0.5 * high, rel=1e-6)
    losses, sds = [r.largest_loss for r in roots], [r.sd for r in roots]
    assert losses == sorted(losses, reverse=True)
    assert sds == sorted(sds)


def test_misprints_come_with_evidence():
    evidence = {m.where: m.evidence for m in misprints.misprints()}
    assert "loss 5, printed 10" in evidence["Section 6, policy of roots"]
    found = [float(x) for x in re.findall(r"0\.\d{5}", evidence["Section 5, Var M_U"])]
    exact, printed, right = found
    assert exact == right
    assert abs(printed / exact - 1) > 0.5
    assert "= ∞" in evidence["Theorem, f − b²f″"]


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", THEORY)
def test_figure1_csv_has_the_table_of_theory(run, key):
    rows = read(run.folder / "figure1.csv")
    assert [int(r["n"]) for r in rows] == list(range(1, 151))
    for n, expected in THEORY[key].items():
        assert f"{float(rows[n - 1][key]):.{digits(expected)}f}" == expected


def test_figure2_and_figure3_csv_follow_from_figure1(run):
    first, second, third = (read(run.folder / f"figure{i}.csv") for i in (1, 2, 3))
    assert second == [row for row in first if int(row["n"]) >= 20]
    for row, ratio in zip(first, third, strict=True):
        assert ratio["n"] == row["n"]
        assert float(ratio["m_ss_over_m_u_umvue"]) == pytest.approx(
            float(row["m_ss"]) / float(row["m_u_umvue"])
        )
        assert (row["two_totals_5"] == "") == (int(row["n"]) < 5)


def test_per_record_csv(run):
    rows = read(run.folder / "per_record.csv")
    assert [float(r["sd"]) for r in rows] == [r.sd for r in run.results.per_record]


def test_the_report_is_saved_as_printed(run):
    printed, written = run.text.split("\n\nWritten to ")
    assert (run.folder / "report.txt").read_text(encoding="utf-8") == f"{printed}\n"
    assert "report.txt" in written


@needs_plots
def test_figures_are_png_of_publishable_size(run):
    assert sorted(p.name for p in run.folder.iterdir()) == output.names(plots=True)
    for name in output.FIGURES:
        content = (run.folder / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        assert width >= 1400
        assert height >= 900


@needs_plots
def test_drawing_leaves_matplotlib_as_it_was(run):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    paper_figures.draw(run.results)
    assert dict(mpl.rcParams) == before


def test_no_plots_needs_no_matplotlib(again, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert again("--out", tmp_path / "out", "--no-plots") == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == output.names(plots=False)
    assert "15.93" in capsys.readouterr().out


def test_missing_matplotlib_is_refused_before_anything_is_done(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(trueup.paper, "reproduce", lambda: pytest.fail("computed"))
    assert main(["paper", "--out", str(tmp_path / "out")]) == 1
    assert "pip install 'trueup[plots]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(tu.MissingExtra):
        style.require()


def test_existing_files_are_refused_without_force(again, tmp_path, capsys):
    mine = tmp_path / "figure1.csv"
    mine.write_text("precious")
    assert again("--out", tmp_path, "--no-plots") == 1
    err = capsys.readouterr().err
    assert "figure1.csv" in err
    assert "--force" in err
    assert mine.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["figure1.csv"]


def test_force_overwrites_ours_and_nothing_else(again, tmp_path):
    (tmp_path / "figure1.csv").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    assert again("--out", tmp_path, "--no-plots", "--force") == 0
    assert len(read(tmp_path / "figure1.csv")) == 150
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert {p.name for p in tmp_path.iterdir()} == {*output.names(plots=False), "notes.txt"}


def test_a_failed_write_leaves_the_old_file_and_no_litter(again, tmp_path, monkeypatch, capsys):
    (tmp_path / "figure1.csv").write_text("old")

    def full(self, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", full)
    assert again("--out", tmp_path, "--no-plots", "--force") == 1
    assert "No space left" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["figure1.csv"]
    assert (tmp_path / "figure1.csv").read_text() == "old"


def test_a_file_in_place_of_the_folder_is_refused(again, tmp_path, capsys):
    (tmp_path / "out").write_text("")
    assert again("--out", tmp_path / "out", "--no-plots") == 1
    assert "not a folder" in capsys.readouterr().err
