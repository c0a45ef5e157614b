"""The worked cases of the documentation: debiased figures hit the truth, plug-ins do not."""

import runpy
from pathlib import Path

import pytest

from extras import needs

matplotlib = needs("matplotlib", "the gallery draws with matplotlib")
matplotlib.use("Agg")

REAL = {"pay_by_region": "emp", "crowded_blocks": "people"}
CASES = sorted((Path(__file__).parents[1] / "docs" / "gallery").glob("*.py"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case(case, capsys):
    from matplotlib import pyplot

    found = runpy.run_path(str(case))
    pyplot.close("all")
    assert abs(found["debiased"] - found["truth"]) < 4 * found["stderr"]
    assert abs(found["plug_in"] - found["truth"]) > 4 * found["stderr"]
    assert f"{'truth':<8}" in capsys.readouterr().out
    if case.stem in REAL:  # half of the cells are small, some are empty
        cells = found[REAL[case.stem]]
        assert sorted(cells)[len(cells) // 2] < 10
        assert 0.1 < (cells == 0).mean() < 0.3


def test_there_are_nine():
    assert len(CASES) == 9
