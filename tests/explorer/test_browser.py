"""The page in chromium: what a person does, on a desk and on a phone."""

import csv
import io
from urllib.parse import urlsplit

import pytest

import trueup as tu

CELLS = "town,s,n\nAy,51.7,103\nBe,8.5,20\nCe,3.0,1\n"
WAIT = 120_000  # milliseconds, for a machine that is busy


@pytest.fixture
def view(browser, address):
    """What opens the page, and looks at every request: none may leave this machine."""
    asked, pages = set(), []

    def opened(query="", width=1240, height=840):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(WAIT)
        page.on("request", lambda request: asked.add(urlsplit(request.url).hostname))
        page.goto(address + query)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert {host for host in asked if host} == {"localhost"}


def test_formula_to_sql(view):
    page = view()
    formula = page.get_by_role("textbox", name="Formula of published numbers")
    formula.fill("log(n)")
    formula.press("Enter")
    page.get_by_text("Unbiased estimator of log(n)").wait_for()
    page.get_by_text("SQL", exact=True).click()
    page.get_by_text("THEN").first.wait_for()
    assert "f=log" in page.url


def test_upload_to_download(view):
    page = view("?tab=File&file-noise-n=discrete_laplace(2)")
    upload = {"name": "cells.csv", "mimeType": "text/csv", "buffer": CELLS.encode()}
    page.locator("input[type=file]").set_input_files(upload)
    page.get_by_text("First rows").wait_for()
    button = page.get_by_role("button", name="Debias the file")
    assert button.bounding_box()["y"] < 840  # it is seen without scrolling
    button.click()
    with page.expect_download() as arriving:
        page.get_by_role("button", name="Download debiased-cells.csv").click()
    rows = [*csv.DictReader(io.StringIO(arriving.value.path().read_text()))]
    est = tu.unbiased("s/n", {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}, "n >= 1")
    assert float(rows[0]["mean"]) == pytest.approx(est(s=51.7, n=103), rel=1e-12)
    assert [row["town"] for row in rows] == ["Ay", "Be", "Ce"]


def test_a_file_that_is_too_large_is_refused(view):
    page = view("?tab=File")
    large = {"name": "large.csv", "mimeType": "text/csv", "buffer": b"s,n\n" + b"1,2\n" * 300_000}
    page.locator("input[type=file]").set_input_files(large)
    page.get_by_text("must be 1.0MB or smaller").or_(page.get_by_text("exceeds")).first.wait_for()


def test_a_phone_has_no_sideways_scrolling(view):
    for tab in ("Estimator", "File", "Plan"):
        page = view(f"?tab={tab}", 400, 860)
        page.locator("h3").nth(1).wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
