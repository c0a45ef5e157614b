"""Connections of which nothing comes are closed; those that work are left alone."""

import asyncio
import json
import socket
import threading

import pytest

from explorer.cases import wait_for
from extras import needs

uvicorn = needs("uvicorn")

from trueup.explorer import allowances  # noqa: E402
from trueup.explorer.connections import Patience  # noqa: E402

HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"
SIZE = 64 * 2**20  # more than the system keeps for a reader that does not read


async def application(scope, receive, send):
    """Answer after a while, or with more than fits."""
    if scope["type"] != "http":
        return
    await asyncio.sleep(1.0 if scope["path"] == "/slow" else 0.0)
    body = b"x" * SIZE if scope["path"] == "/large" else b"done"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port(monkeypatch):
    """A server that looks at its connections often."""
    monkeypatch.setattr(allowances, "QUIET_SECONDS", 0.1)
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    config = uvicorn.Config(
        application, http=Patience, lifespan="off", log_level="critical", limit_concurrency=8
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    yield bound.getsockname()[1], server.server_state.connections
    server.should_exit = True
    thread.join()
    bound.close()


def connected(port):
    return socket.create_connection(("127.0.0.1", port[0]))


def rest(line):
    """Return what still comes until the server closes."""
    found = b""
    try:
        while piece := line.recv(2**20):
            found += piece
    except ConnectionError:
        pass
    return found


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b"\r\n" + HEAD], ids=["none", "half", "second"])
def test_heads_that_do_not_end(sent, port):
    with connected(port) as line:
        line.sendall(sent)
        assert rest(line).count(b"done") == sent.count(b"\r\n\r\n")  # and the end came


def test_heads_that_drip(port):
    with connected(port) as line:
        line.sendall(HEAD)
        sent = 0
        try:
            while sent < 2**14:  # in a minute
                sent += line.send(b"X: y\r\n")
                threading.Event().wait(0.02)
        except ConnectionError:
            return
    pytest.fail("the head was waited for")


def test_answers_that_are_not_read(port):
    with connected(port) as line:
        line.sendall(HEAD.replace(b"/ ", b"/large ") + b"\r\n")
        line.recv(1)
        wait_for(lambda: not port[1])
        assert len(rest(line)) < SIZE


def test_those_that_work_are_left_alone(port):
    with connected(port) as line:
        line.sendall(HEAD.replace(b"/ ", b"/slow ") + b"Connection: close\r\n\r\n")
        assert b"done" in rest(line)


def test_too_many_connections_are_refused_as_the_page_reads_it(port, monkeypatch):
    """The script of the page reads every answer as JSON."""
    monkeypatch.setattr(allowances, "QUIET_SECONDS", 60)
    waiting = [connected(port) for _ in range(8)]
    with connected(port) as one:
        one.sendall(HEAD + b"Connection: close\r\n\r\n")
        head, _, body = b"".join(iter(lambda: one.recv(65536), b"")).partition(b"\r\n\r\n")
    for other in waiting:
        other.close()
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"application/json" in head
    assert json.loads(body)["error"]["hint"] == "try again in a moment"
