"""Sphinx: MyST pages, the reference from docstrings, and a gallery that is run at every build."""

import sys
from pathlib import Path

from docutils import nodes

import trueup

sys.path.insert(0, str(Path(__file__).parent))  # the renderer of mathematics beside this file

project = "trueup"
author = "the trueup developers"
copyright = "the trueup developers"  # noqa: A001
release = version = trueup.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
root_doc = "index"
exclude_patterns = ["_build", "gallery"]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "trueup"
html_static_path: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "github-dark"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "cases",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "reset_modules": (),
    "abort_on_example_error": True,
}
suppress_warnings = ["config.cache"]


def _bars(app, what, name, obj, options, lines):
    """Keep |x| an absolute value: reStructuredText would look for a substitution."""
    code = (">>>", "...")
    lines[:] = [x if x.lstrip().startswith(code) else x.replace("|", r"\|") for x in lines]


def _trimmed(app, doctree):
    """Leave out the empty line that ends a doctest: on a page it is only space."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    """Register the hooks."""
    app.connect("autodoc-process-docstring", _bars)
    app.connect("doctree-read", _trimmed)
