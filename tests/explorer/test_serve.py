"""The server: this machine only, and nobody is told."""

import socket
from urllib.parse import urlsplit

import pytest

from extras import needs
from trueup.errors import TrueupError
from trueup.explorer.serve import build, listen

UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


def status(address, host, *headers, path="/"):
    """Return the status that a request is answered with."""
    there = urlsplit(address)
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *(headers or ("Connection: close",))]
    with socket.create_connection(("127.0.0.1", there.port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize(
    ("host", "expected"), [("localhost", 200), ("127.0.0.1", 200), ("evil.example", 400)]
)
def test_only_names_of_this_machine_are_answered(address, host, expected):
    assert status(address, host) == expected


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("localhost", "http://localhost", 101),
        ("evil.example", "http://evil.example", 400),
        ("localhost", "http://evil.example", 403),
    ],
    ids=["own", "foreign host", "foreign origin"],
)
def test_websockets_are_guarded_too(address, host, origin, expected):
    """DNS rebinding reaches the port under a foreign name, another page under our own."""
    port = urlsplit(address).port
    asked = (*UPGRADE, f"Origin: {origin}:{port}")
    assert status(address, f"{host}:{port}", *asked, path="/_stcore/stream") == expected


def test_nothing_is_collected_and_uploads_are_bounded():
    config = needs("streamlit.config")
    build(7)
    assert config.get_option("browser.gatherUsageStats") is False
    assert config.get_option("server.maxUploadSize") == 7


def test_a_port_that_is_taken_is_refused_and_the_usual_one_replaced():
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TrueupError, match=f"cannot listen on port {port}.*\nHint: choose"):
            listen(port)
    with pytest.raises(TrueupError, match="cannot listen on port 99999"):
        listen(99_999)
