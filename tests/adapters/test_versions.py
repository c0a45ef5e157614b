"""The guide names the versions of the libraries that were read, and the Polars that OpenDP pins."""

import importlib.metadata
import re
from pathlib import Path

import pytest

from extras import missing

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "which_noise.md").read_text("utf-8")
PINS = dict(
    re.findall(
        r"^([\w-]+)==(\S+)$",
        (ROOT / "tests" / "adapters" / "requirements.txt").read_text("utf-8"),
        re.MULTILINE,
    )
)
LIBRARIES = {
    "OpenDP": "opendp",
    "PyDP (Google)": "python-dp",
    "PipelineDP": "pipeline-dp",
    "diffprivlib": "diffprivlib",
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_guide_names_the_version_that_was_read(library):
    assert f"| {library} | {PINS[LIBRARIES[library]]} |" in GUIDE


def test_the_guide_names_the_polars_that_opendp_pins():
    said = f"`opendp[polars]` {PINS['opendp']} wants Polars {PINS['polars']} and no other"
    assert said in " ".join(GUIDE.split())


def test_opendp_pins_that_polars():
    try:
        read = importlib.metadata.version("opendp") == PINS["opendp"]
    except importlib.metadata.PackageNotFoundError:
        missing("opendp is not installed")
    if not read:
        missing(f"opendp {PINS['opendp']}, the version that was read, is not installed")
    needed = "\n".join(importlib.metadata.requires("opendp") or [])
    assert f'polars=={PINS["polars"]}; extra == "polars"' in needed
