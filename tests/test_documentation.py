"""The documentation is built and read in a browser that has no network."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from extras import needs

ROOT = Path(__file__).parents[1]
CASES = [case.stem for case in (ROOT / "docs" / "gallery").glob("*.py")]
TEX = ("$$", "\\frac", "\\(", "\\[", "\\mathbb", "\\operatorname", "\\ge", "{align")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages, as ``make docs`` builds them; a warning is an error."""
    for module in ("sphinx", "myst_parser", "furo", "sphinx_gallery", "latex2mathml", "matplotlib"):
        needs(module, "the documentation is built with it")
    folder = tmp_path_factory.mktemp("site")
    source = folder / "docs"  # a copy: the gallery is written among its pages
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("cases", "sg_*"))
    for beside in ("examples", "benchmarks"):
        (folder / beside).symlink_to(ROOT / beside)
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", source,
         folder / "html"],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "html"


READ = """() => {
    const page = (document.querySelector('article') || document.body).cloneNode(true);
    page.querySelectorAll('code, pre, annotation').forEach(part => part.remove());
    return page.textContent;
}"""
"""What a reader sees besides code."""


def test_every_page_reads_without_a_network(site, browser):
    asked, said, formulas = [], [], 0
    page = browser.new_context(offline=True).new_page()
    page.on("requestfailed", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else 0)
    pages = sorted(site.rglob("*.html"))
    for file in pages:
        page.goto(file.as_uri())
        shown = page.evaluate(READ)
        assert shown.strip(), file.name
        assert not [tex for tex in TEX if tex in shown], file.name
        formulas += page.locator("math").count()
    assert len(pages) > 20
    assert formulas > 40
    assert not asked
    assert not said
    _has_pictures(site / "_images")


def _has_pictures(images):
    """Every case of the gallery has drawn something, and no thumbnail is a placeholder."""
    for case in CASES:
        assert (images / f"sphx_glr_{case}_001.png").stat().st_size > 5_000, case
    thumbs = {(images / f"sphx_glr_{case}_thumb.png").read_bytes() for case in CASES}
    assert len(thumbs) == len(CASES)
