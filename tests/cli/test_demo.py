"""``make demo``: the national figures of debiased cells agree with the truth, plug-ins do not."""

import re
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_demo(tmp_path):
    done = subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, str(DEMO), str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    number = r"\s+([\d.]+)"
    figures = re.findall(rf"^(pay|employees) per \w+{number * 4} ± ([\d.]+)$", done.stdout, re.M)
    assert [name for name, *_ in figures] == ["pay", "employees"]
    for _, *numbers in figures:
        truth, dropped, clipped, debiased, error = map(float, numbers)
        assert abs(debiased - truth) < 3 * error
        assert abs(dropped - truth) > 2 * error
        assert abs(clipped - truth) > 5 * error
    assert "simulated" in done.stdout.lower()
    assert {p.name for p in tmp_path.iterdir()} == {
        *("release.parquet", "release.toml", "debiased.parquet", "nation.csv"),
    }
