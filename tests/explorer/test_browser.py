"""The page in a real browser: what a person sees, and that nothing leaves the machine."""

import csv
from urllib.parse import urlsplit

import pytest

import depth
from explorer.cases import wait_for

MEAN = "#f=s%2Fn&s.scale=2&n.family=discrete_laplace&n.scale=2&n.low=1"


@pytest.fixture
def page(browser, server):
    """A fresh page; every request it makes stays on this machine, and no script fails."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.address)
    page = context.new_page()
    page.set_default_timeout(600_000)
    requests, failures = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("console", lambda said: failures.extend(told(said)))
    yield page
    hosts = {urlsplit(url).netloc for url in requests if not url.startswith(("data:", "blob:"))}
    assert hosts == {server.host}
    assert failures == []
    context.close()


def told(said):
    """What the console calls an error; a file that was refused is one by its status."""
    refused = "/api/files" in said.location["url"] and "status of 4" in said.text
    return [said.text] if said.type == "error" and not refused else []


def open_page(page, server, address="", ready=True):
    page.goto("about:blank")
    page.goto(server.address + address)
    if ready:
        page.wait_for_selector("html[data-ready=true]")
        page.wait_for_selector("#results[aria-busy=false]", state="attached")
    return page


def curve(page, name="unbiased", chart="chart-curve"):
    """The points of a line, as drawn."""
    return page.evaluate(
        """([chart, name]) => {
            const trace = (document.getElementById(chart).data ?? []).find((t) => t.name === name);
            return trace ? trace.x.map((x, i) => [x, trace.y[i]]) : null;
        }""",
        [chart, name],
    )


def no_sideways_scrolling(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_formula_to_curve(page, server):
    open_page(page, server)
    page.fill("#formula", "n**2")
    page.get_by_label("n has a lower bound").uncheck()
    page.get_by_label("scale b", exact=True).fill("3")
    wait_for(
        lambda: page.evaluate(
            "document.querySelector('#explanation').textContent.includes('n + Laplace(3)')"
        )
    )
    wait_for(lambda: (points := curve(page)) and points[0][0] < -20)
    for x, y in curve(page):
        assert y == pytest.approx(x**2 - 18, rel=1e-4, abs=1e-4)  # q² − 2b²
    assert page.locator("#math math mn").all_text_contents() == ["2", "18"]
    drawn = page.locator("#chart-curve .scatterlayer path.js-line")
    assert drawn.count() >= 2
    page.wait_for_selector("#chart-bias .scatterlayer path.js-line", state="attached")
    assert {y for _, y in wait_for(lambda: curve(page, "unbiased", "chart-bias"))} == {0}
    assert curve(page, "plug-in", "chart-bias")[5][1] == pytest.approx(18)  # 2b²


def test_the_slider_moves_the_curve(page, server):
    open_page(page, server)
    before = curve(page)
    slider = page.get_by_role("slider", name="scale b of n, slider")
    slider.focus()
    for _ in range(20):
        slider.press("ArrowRight")
    wait_for(lambda: curve(page) != before)
    assert float(page.get_by_label("scale b", exact=True).input_value()) > 2


def test_a_new_statistic_gets_its_own_card(page, server):
    open_page(page, server)
    page.fill("#formula", "s/n")
    page.wait_for_selector("fieldset[data-name=s]")
    assert page.locator("fieldset.statistic").count() == 2
    page.locator("fieldset[data-name=s] select").select_option("gaussian")
    wait_for(
        lambda: page.evaluate(
            "document.querySelector('#explanation').textContent.includes('s + Gaussian(2)')"
        )
    )


def test_errors_stand_beside_their_fields(page, server):
    open_page(page, server)
    page.fill("#formula", "1/(n")
    error = page.locator("#error-formula")
    error.get_by_text("The bracket of '(' is open").wait_for()
    assert page.locator("#formula").get_attribute("aria-invalid") == "true"
    page.fill("#formula", "1/n")
    wait_for(lambda: error.inner_text() == "")
    assert page.locator("#formula").get_attribute("aria-invalid") is None
    scale = page.get_by_label("scale b", exact=True)
    scale.fill("-3")
    page.locator('[data-error="n.scale"]').get_by_text("Scale must be positive, got -3").wait_for()
    assert scale.get_attribute("aria-invalid") == "true"
    described = scale.get_attribute("aria-describedby")
    assert "positive" in page.locator(f"#{described}").inner_text()


def test_where_no_unbiased_estimator_exists_the_page_says_why(page, server):
    open_page(page, server, "#f=abs(q)&q.scale=2")
    page.locator("#none").get_by_text("kink at 0").wait_for()
    assert page.locator("#math").inner_text() == ""
    assert curve(page) is None
    assert curve(page, "plug-in f(x)")[0][1] > 0
    error = page.locator('[data-error="bias"]')
    wait_for(error.inner_text)
    assert page.locator('[data-field="bias"]').get_attribute("aria-invalid") is None  # it is empty
    page.fill("#formula", "q**2")
    wait_for(lambda: curve(page))
    assert error.inner_text() == ""
    assert page.locator("#none").is_hidden()
    page.fill("#formula", "q**")
    page.locator("#error-formula").get_by_text("end of the formula").wait_for()
    assert page.locator("#risk-note").inner_text() == ""


def test_what_a_little_bias_buys(page, server):
    open_page(page, server, "#f=1/n&n.family=gaussian&n.scale=2&n.low=6&n.high=60")
    near = wait_for(lambda: curve(page, "nearly unbiased"))
    x, y = min(near, key=lambda point: abs(point[0] - 20))
    assert y == pytest.approx(1 / x, rel=0.1)
    assert len(wait_for(lambda: curve(page, "largest sd", "chart-frontier"))) >= 3
    assert wait_for(lambda: curve(page, "nearly unbiased", "chart-sd"))
    bias = page.locator('[data-field="bias"]')
    bias.fill("nothing")
    page.locator('[data-error="bias"]').get_by_text("Not a finite number").wait_for()
    bias.fill("0.02")
    page.locator("#frontier-code").get_by_text("max_bias=0.02").wait_for()
    assert "bias=0.02" in page.evaluate("location.hash")
    slider = page.get_by_role("slider", name="largest bias")
    slider.fill("150")
    wait_for(lambda: "bias=0.18" in page.evaluate("location.hash"))
    page.get_by_label("cells added up").check()
    page.locator("#frontier-code").get_by_text("cells=100").wait_for()


def test_three_errors_in_one_chart_to_copy_and_to_save(page, server):
    open_page(page, server)
    names = ["unbiased", "nearly unbiased", "plug-in, clamped"]
    lines = wait_for(lambda: all(x := [curve(page, n, "chart-rmse") for n in names]) and x)
    at_bound = [points[0][1] for points in lines]
    assert at_bound[1] < at_bound[0]  # what a little bias buys
    card = page.locator("#card-rmse")
    card.get_by_role("button", name="Copy numbers").click()
    copied = wait_for(lambda: page.evaluate("navigator.clipboard.readText()")).splitlines()
    assert copied[0] == "line\tx\ty"
    assert {row.split("\t")[0] for row in copied[1:]} == {*names}
    assert len(copied) == 1 + sum(map(len, lines))
    with page.expect_download() as download:
        card.get_by_role("button", name="Save picture").click()
    assert download.value.suggested_filename == "trueup-rmse.png"
    assert download.value.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_charts_of_the_state_before_cannot_be_taken_for_those_of_the_new_one(page, server):
    """While the errors of 2n are not there, those of n are old: no buttons, no new lines."""

    def errors():
        lines = ("unbiased", "plug-in", "nearly unbiased")
        found = [curve(page, name, "chart-rmse") for name in lines]
        return all(found) and found

    open_page(page, server, "#f=n&n.scale=2")
    before, near = wait_for(errors), curve(page, "nearly unbiased")
    copy = page.locator("#card-rmse").get_by_role("button", name="Copy numbers")
    assert copy.is_visible()
    held = []
    page.route("**/api/risk", lambda route: held.append(route))
    page.fill("#formula", "2*n")
    wait_for(lambda: curve(page, "nearly unbiased") not in (None, near) and held)
    assert errors() == before
    assert not copy.is_visible()
    old = ("chart-rmse", "chart-bias", "chart-sd", "numbers")
    assert all(page.locator(f"#{place}.old").count() for place in old)
    for route in held:
        route.fulfill(json={"error": {"kind": "value", "message": "Nothing.", "field": ""}})
    wait_for(page.locator("#chart-bias.empty").get_by_text("Nothing.").is_visible)
    page.unroute("**/api/risk")
    page.fill("#formula", "3*n")
    (_, rmse), *_ = wait_for(errors)[0]
    assert rmse == pytest.approx(3 * before[0][0][1])
    assert copy.is_visible()
    wait_for(lambda: page.locator(".old:visible").count() == 0)


def test_code_to_copy(page, server):
    open_page(page, server, MEAN)
    code = page.locator("#code")
    code.get_by_text("import trueup as tu").wait_for()
    page.get_by_role("tab", name="Shell").click()
    assert "--domain 'n>=1'" in code.inner_text()
    page.get_by_role("tab", name="SQL").click()
    wait_for(
        lambda: page.evaluate("document.querySelector('#code').textContent.includes('CASE WHEN')")
    )
    page.locator("#dialect").select_option("sqlite")
    wait_for(lambda: page.evaluate("document.querySelector('#code').innerText.includes('REAL')"))
    page.locator("[data-copy=code]").click()
    copied = wait_for(lambda: page.evaluate("navigator.clipboard.readText()"))
    assert copied == code.inner_text()


def test_a_link_restores_the_view(page, server, browser):
    open_page(page, server, MEAN)
    page.get_by_label("Noise of s", exact=True).select_option("staircase")
    page.get_by_label("n has an upper bound").check()
    page.locator("#axis-card summary").click()
    page.locator("#vary").select_option("s")
    page.get_by_role("tab", name="Shell").click()
    title = "document.querySelector('#chart-curve').layout.xaxis.title.text"
    wait_for(lambda: page.evaluate(title).startswith("published s"))
    page.click("#share")
    link = wait_for(lambda: page.evaluate("navigator.clipboard.readText()"))
    assert link.startswith(server.address)
    before = curve(page)
    other = browser.new_page()
    try:
        open_page(other, server, link.removeprefix(server.address))
        wait_for(lambda: curve(other))
        assert curve(other) == before
        assert other.input_value("#formula") == "s/n"
        assert other.get_by_label("Noise of s", exact=True).input_value() == "staircase"
        assert other.get_by_role("tab", name="Shell").get_attribute("aria-selected") == "true"
        assert "<" not in other.evaluate("location.hash")
    finally:
        other.close()


def test_a_hostile_link_is_only_text(page, server):
    name = "%3Cimg%20src%3Dx%20onerror%3Ddocument.title%3D1%3E"
    open_page(page, server, f"#f=1/`{name}`&{name}.low=1&{name}.scale=2&__proto__.scale=7&tab=x")
    page.locator("legend", has_text="<img src=x").wait_for()
    assert page.locator("main img").count() == 0
    assert page.title() == "trueup"
    assert page.evaluate("({}).scale") is None


BY_BIRTH = ["constructor", "__proto__", "toString", "hasOwnProperty"]  # functions but the second


@pytest.mark.parametrize("name", depth.few(BY_BIRTH, 2))
def test_names_that_objects_have_by_birth(page, server, name):
    open_page(page, server)
    page.fill("#formula", f"s + {name}")
    wait_for(lambda: len(page.query_selector_all("#statistics > *")) == 2)
    page.wait_for_selector("#results[aria-busy=false]", state="attached")
    wait_for(lambda: f"{name}.scale=2" in page.url)
    assert "function" not in page.url
    open_page(page, server, f"#f=s%2B{name}&vary=s&{name}.scale=3")
    held = page.locator(f'[data-field="at.{name}"]')
    assert held.input_value() == ""
    assert "function" not in held.get_attribute("placeholder")
    open_page(page, server, f"#f=s%2B{name}&vary=s&{name}.scale=3&at%3A{name}=7")
    assert held.input_value() == "7"
    assert f"at%3A{name}=7" in page.url
    assert page.evaluate("({}).scale === undefined")


def test_upload_to_download(page, server, tmp_path):
    source = tmp_path / "cells.csv"
    source.write_text("town,s,emp\nAy,51.7,103\nBe,20.0,50\n", "utf-8")
    open_page(page, server, f"{MEAN}&tab=file")
    page.set_input_files("#file", source)
    page.locator("#preview").get_by_text("51.7").wait_for()
    page.click("#debias")
    page.locator('[data-error="columns.n"]').get_by_text("“cells.csv” has no column").wait_for()
    page.get_by_label("n", exact=True).select_option("emp")
    assert page.locator('[data-error="columns.n"]').inner_text() == ""
    page.fill("#formulas", "mean = s/n\ntwice = 2*t")
    page.locator("fieldset[data-name=t]").wait_for()  # whose noise is not known yet
    page.fill("#formulas", "mean = s/n")
    page.locator("fieldset[data-name=t]").wait_for(state="detached")
    page.click("#debias")
    page.wait_for_selector("#ready:not([hidden])")
    assert page.locator("#bar").evaluate("bar => bar.value") == 1
    assert page.locator("#preview th.new").all_inner_texts() == ["mean", "mean_stderr"]
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == "debiased-cells.csv"
    with download.value.path().open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["mean"]) == pytest.approx(0.501571, abs=1e-6)
    page.locator("#sums").select_option("total")
    page.wait_for_selector("#ready", state="hidden")  # it was made of something else
    page.get_by_label("town", exact=True).check()
    page.fill("#formulas", "mean = s/n\nsize = n")
    page.locator("#file-estimands").get_by_text("size").wait_for()
    page.click("#debias")
    page.wait_for_selector("#ready:not([hidden])")
    shown = ["town", "rows", "mean", "mean_stderr", "size", "size_stderr"]
    assert page.locator("#preview th").all_inner_texts() == shown
    page.locator("#card-preview").get_by_role("button", name="Copy table").click()
    copied = wait_for(lambda: page.evaluate("navigator.clipboard.readText()"))
    assert copied.splitlines()[0].split("\t") == shown
    assert copied.splitlines()[1].startswith("Ay\t1\t0.501571")
    page.click("#remove")
    page.wait_for_selector("#mapping", state="hidden")
    assert page.locator("#preview").is_hidden()


def test_blanks_in_the_names_of_columns_are_seen(page, server, tmp_path):
    source = tmp_path / "cells.csv"
    source.write_text("emp, emp\n9,103\n")
    open_page(page, server, f"{MEAN}&tab=file")
    page.set_input_files("#file", source)
    page.locator("#preview th").nth(1).wait_for()
    page.locator("#columns select").first.locator("option").nth(2).wait_for(state="attached")
    shown = ["emp", '"\u00a0emp"']
    assert page.locator("#preview th").all_text_contents() == shown
    assert page.locator("#columns select").first.locator("option").all_text_contents()[1:] == shown


def test_a_file_that_cannot_be_read_is_refused_beside_it(page, server, tmp_path):
    source = tmp_path / "broken.parquet"
    source.write_bytes(b"PAR1nothing")
    open_page(page, server, f"{MEAN}&tab=file")
    page.set_input_files("#file", source)
    page.locator('[data-error="file"]').get_by_text(
        "“broken.parquet” cannot be read as Parquet"
    ).wait_for()


def test_a_plan(page, server):
    open_page(page, server, f"{MEAN}&tab=plan&plan:epsilon=1&plan:count=50")
    page.locator("#best").get_by_text("group mean").wait_for()
    assert page.locator("#options tbody tr").count() == 7
    assert page.locator("#chart-plan .scatterlayer path.js-line").count() == 7
    page.get_by_label("largest value").fill("-1")
    page.locator('[data-error="plan.high"]').get_by_text("Must exceed").wait_for()
    page.get_by_role("radio", name="A private table").check()
    page.locator("#table-errors").get_by_text("1.9").first.wait_for()
    page.get_by_role("button", name="+ share").click()
    page.locator("#table-errors").get_by_text("share(sex").wait_for()
    assert page.locator("#table-errors").evaluate("e => e.scrollWidth <= e.clientWidth")
    page.get_by_role("button", name="Use these weights").click()
    page.locator("#release-code").get_by_text("--weight sex=").wait_for()
    page.get_by_role("tab", name="Plan", exact=True).last.click()
    page.locator("[data-copy=release-code]").click()
    copied = wait_for(lambda: page.evaluate("navigator.clipboard.readText()"))
    assert "[weights]" in copied.splitlines()
    page.fill("#measures", "n = count of all")
    page.locator('[data-error="measures"]').get_by_text("count").wait_for()
    page.fill("#measures", "n = count")
    wait_for(lambda: page.locator('[data-error="measures"]').inner_text() == "")


def test_tabs_by_keyboard(page, server):
    open_page(page, server)
    page.get_by_role("tab", name="Estimator").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-file"
    assert page.locator("#view-file").is_visible()
    assert page.locator("#view-estimator").is_hidden()
    page.keyboard.press("End")
    assert page.locator("#view-plan").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator("#view-estimator").is_visible()


@pytest.mark.parametrize("tab", ["estimator", "file", "plan"])
def test_every_field_has_a_name_and_no_id_twice(page, server, tab):
    open_page(page, server, f"{MEAN}&tab={tab}")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("main input, main select, main button")]
            .filter((e) => !e.labels?.length && !e.ariaLabel && !e.textContent.trim())
            .map((e) => e.outerHTML)"""
    )
    assert nameless == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("tab", ["estimator", "file", "plan"])
def test_phone_width(page, server, tab):
    page.set_viewport_size({"width": 400, "height": 800})
    open_page(page, server, f"{MEAN}&tab={tab}&plan:epsilon=1&plan:count=50")
    if tab == "plan":
        page.locator("#best").get_by_text("group mean").wait_for()
    else:
        page.wait_for_selector("#chart-sd .scatterlayer path.js-line", state="attached")
    assert no_sideways_scrolling(page)
    page.set_viewport_size({"width": 360, "height": 700})
    wait_for(lambda: no_sideways_scrolling(page))
    if tab == "plan":
        page.get_by_role("radio", name="A private table").check()
        page.wait_for_selector("#chart-table .scatterlayer path.js-line", state="attached")
        wait_for(lambda: no_sideways_scrolling(page))


def test_light_and_dark(page, server):
    page.emulate_media(color_scheme="dark")
    open_page(page, server)
    ground = "getComputedStyle(document.body).backgroundColor"
    line = (
        "document.querySelector('#chart-curve').data.find((t) => t.name === 'unbiased').line.color"
    )
    dark, dark_line = page.evaluate(ground), page.evaluate(line)
    page.get_by_role("button", name="Switch between light and dark").click()
    light, light_line = page.evaluate(ground), page.evaluate(line)
    assert max(map(int, dark[4:-1].split(", "))) < 60
    assert min(map(int, light[4:-1].split(", "))) > 200
    assert dark_line != light_line
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    assert page.evaluate(ground) == light
