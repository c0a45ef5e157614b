"""The routes: what they answer, to whom, and what they refuse."""

import base64
import hashlib
import re

import pytest

from explorer.cases import RECIPROCAL
from extras import needs
from trueup.explorer import allowances

JSON = {"content-type": "application/json"}


def test_the_page_and_its_parts_are_there_and_nothing_comes_from_elsewhere(server):
    page = server.get("/").text
    parts = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
    assert {"/static/style.css", "/static/main.js", "/static/plotly.min.js"} <= parts
    seen = {"/"}
    while parts - seen:
        part = (parts - seen).pop()
        seen.add(part)
        answer = server.get(part)
        assert answer.status == 200, part
        if "plotly" in part:
            continue
        parts |= {f"/static/{name}" for name in re.findall(r'from "\./([\w.]+)"', answer.text)}
        links = re.findall(r"https?://[^\s\"'<)]+", page + answer.text)
        assert all(link.startswith("http://www.w3.org/") for link in links), links
    assert len(seen) >= 10


def test_no_script_or_style_stands_in_the_page(server):
    page = server.get("/").text
    assert re.findall(r"<script(?![^>]*src=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page) == []


@pytest.mark.parametrize("mark", "'\"`")
def test_the_sheet_of_another_plotly_is_let_through(mark):
    """Minified like versions 6.5 and 7.1; the one that is installed runs in the browser's tests."""
    sheet = ".map{font:12px/20px Arial}\n.canvas{left:0}"
    script = (
        'n||(n=document.createElement("style"),n.setAttribute("id",i),n.appendChild(x("")));'
        f'var e=document.createElement("style");e.id="ce8d46",e.textContent={mark}{sheet}{mark},'
        'document.head.appendChild(e);t.textContent="other"'
    )
    needs("starlette")
    from trueup.explorer.guard import content_security_policy

    sums = [base64.b64encode(hashlib.sha256(x).digest()).decode() for x in (b"", sheet.encode())]
    styles = " ".join(f"'sha256-{text}'" for text in sums)
    assert f"style-src 'self' {styles}" in content_security_policy(script).split("; ")


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/options", "/nothing"])
def test_every_answer_has_the_headers(server, path):
    headers = server.get(path).headers
    policy = headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "192.168.1.9:8765",
        "localhost.evil",
        "",
        "[::1",
        "a@b",
    ],
)
def test_a_foreign_host_is_refused(server, host):
    answer = server.get("/", host=host)
    assert answer.status == 403
    assert answer.json["error"]["kind"] == "host"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1234", "[::1]:8765", "127.8.8.8"])
def test_this_machine_by_any_of_its_names(server, host):
    assert server.get("/", host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_request_from_another_site_is_refused(server, method, headers):
    path = "/api/options" if method == "get" else "/api/curve"
    answer = server.ask(method.upper(), path, headers={**JSON, **headers})
    assert answer.status == 403
    assert answer.json["error"]["kind"] == "origin"


def test_a_link_from_another_site_opens_the_page(server):
    headers = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert server.get("/", **headers).status == 200
    assert server.get("/static/main.js", sec_fetch_site="cross-site").status == 403


def test_our_own_origin_is_served(server):
    headers = {"origin": f"http://{server.host}", "sec_fetch_site": "same-origin"}
    assert server.post("/api/curve", RECIPROCAL, **headers).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/errors.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/static/%00",
        "/static/index.html%00.js",
        "/static/",
        "/../../etc/passwd",
        "//etc/passwd",
        "/api/files/../../etc/passwd",
        "/api/files/..%2f..%2fetc%2fpasswd/result",
        "/api/curve/",
        "/%ff%fe",
    ],
)
def test_path_tricks_find_nothing(server, path):
    answer = server.get(path)
    assert 400 <= answer.status < 500
    assert "root:" not in answer.text
    assert "import" not in answer.text


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'"text"', "application/json", 400),
        (b"\xff\xfe{}", "application/json", 400),
        (b'{"formula": NaN}', "application/json", 400),
        (b"[" * 20_000, "application/json", 400),
        (b"formula=1/n", "application/x-www-form-urlencoded", 415),
        (b"{}", "text/plain", 415),
        (b" " * (allowances.BODY + 1), "application/json", 413),
        (b'{"formula": "' + b"q+" * 12_000 + b'q"}', "application/json", 200),
        (b'{"statistics": [], "formula": "q"}', "application/json", 200),
    ],
)
def test_bodies_that_are_refused(server, body, kind, status):
    answer = server.ask("POST", "/api/curve", body, {"content-type": kind})
    assert answer.status == status
    assert "curve" in answer.json or answer.json["error"]["message"]


def test_a_body_that_does_not_say_its_length(server):
    pieces = [b"1000\r\n" + b" " * 4096 + b"\r\n"] * 20
    answer = server.ask("POST", "/api/curve", pieces, {**JSON, "transfer-encoding": "chunked"})
    assert answer.status == 413


def test_a_length_that_is_no_length(server):
    answer = server.ask("POST", "/api/curve", b"{}", {**JSON, "content-length": "-5"})
    assert answer.status == 400


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(server, method):
    assert server.ask(method, "/api/curve").status == 405


def test_an_error_is_an_answer(server):
    answer = server.post("/api/curve", {"formula": "1/"})
    assert answer.status == 200  # a browser would tell its console of any other
    error = answer.json["error"]
    assert error["field"] == "formula"
    assert "end of the formula" in error["message"]


def test_options_name_families_that_exist(server):
    import trueup

    options = server.get("/api/options").json
    assert {"laplace", "discrete_laplace", "gaussian", "staircase"} <= set(options["families"])
    for family in options["families"].values():
        assert hasattr(trueup, family["constructor"])


def test_every_family_and_way_computes(server):
    families = server.get("/api/options").json["families"]
    for name, family in families.items():
        for way in family["ways"]:
            stated = {"family": name, "way": way}
            answer = server.post("/api/curve", {"formula": "q**2", "statistics": {"q": stated}})
            assert answer.status == 200, (name, way, answer.text[:300])
