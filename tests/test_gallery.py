"""The worked cases of the documentation: debiased figures hit the truth, plug-ins do not."""

import runpy
from pathlib import Path

import pytest

from extras import needs

matplotlib = needs("matplotlib", "the gallery draws with matplotlib")
matplotlib.use("Agg")

CASES = sorted((Path(__file__).parents[1] / "docs" / "gallery").glob("*.py"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case(case, capsys):
    from matplotlib import pyplot

    found = runpy.run_path(str(case))
    pyplot.close("all")
    assert abs(found["debiased"] - found["truth"]) < 4 * found["stderr"]
    assert abs(found["plug_in"] - found["truth"]) > 4 * found["stderr"]
    assert f"{'truth':<8}" in capsys.readouterr().out


def test_there_are_six():
    assert len(CASES) == 6
