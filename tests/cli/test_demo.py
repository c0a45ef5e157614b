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
    page = (DEMO.parents[1] / "README.md").read_text(encoding="utf-8")
    for line in re.findall(r"^(?:pay|employees) per .*$", done.stdout, re.M):
        assert f"| {' | '.join(re.split(r'  +', line.strip()))} |" in page
    assert "simulated" in done.stdout.lower()
    assert {p.name for p in tmp_path.iterdir()} == {
        *("release.parquet", "release.toml", "debiased.parquet", "nation.csv"),
        *("people.parquet", "plan.toml", "wages.csv", "wages.toml", "read.csv"),
    }
    told = re.findall(r"^ +([1-4])((?: +(?:[-+.e\d]+|–)){5})$", done.stdout, re.M)[-4:]
    assert [region for region, _ in told] == ["1", "2", "3", "4"]
    for region, numbers in told:
        _, _, wage, error, again = numbers.split()
        assert float(wage) == float(again)
        assert (error == "–") == (region == "4")  # nobody lives there
