"""The page that Streamlit runs: a head and three tabs, of which the open one is computed."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from trueup._version import __version__
from trueup.explorer import estimator_tab, file_tab, plan_tab

TABS = {"Estimator": estimator_tab.show, "File": file_tab.show, "Plan": plan_tab.show}

MARK = Path(__file__).with_name("mark.svg")
STYLE = """
<style>
.block-container { padding-top: 4.2rem; max-width: 1240px; }
[class*="st-key-card"] { background: light-dark(#ffffff, #1c2226); }
div:has(> [class*="st-key-run"]) { position: sticky; bottom: 0.5rem; z-index: 10; }
</style>
"""

st.set_page_config("trueup", MARK, layout="wide", menu_items={"about": f"trueup {__version__}"})
st.html(STYLE)
head = st.container(horizontal=True, vertical_alignment="center", gap="medium")
head.image(str(MARK), width=32)
head.subheader("trueup", anchor=False, width="content")
chosen = head.segmented_control(
    "Page", [*TABS], default="Estimator", required=True, key="tab", bind="query-params",
    label_visibility="collapsed",
)  # fmt: skip
TABS[str(chosen)]()
