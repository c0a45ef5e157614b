"""Hostile requests get an answer of bounded size and time; the server stays up and small."""

import contextlib
import json
import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from explorer.cases import MEAN, RECIPROCAL, Server, wait_for
from extras import needs

GIBIBYTE = 2**30
PATIENCE = 1  # bombs are stopped as soon as in use
LAW = {"family": "discrete_laplace", "scale": "2", "low": "1"}
BOMBS = {
    "powers": "(((q+1)**99)**9)**9",
    "tower": "q**q**q**q**q**q",
    "product": "*".join(["(1+q)**100"] * 4),
    "brackets": "(" * 900 + "q" + ")" * 900,
    "calls": "exp(" * 300 + "q" + ")" * 300,
    "digits": "9" * 1990,
    "roots": "sqrt(2**0.5)" + "+sqrt(q+sqrt(2))" * 100,
    "cells": "1/(a+b+c+d+e+n)*max(a,b,c,d)",
    "choices": "where(q>1,q,2)*" * 100 + "q",
    "code": "().__class__.__bases__[0].__subclasses__()",
}


@pytest.fixture(scope="module")
def watched(server):
    """The server, and the most memory that it has taken while the tests ran."""
    needs("psutil")
    most, stop = [0], threading.Event()

    def watch():
        while not stop.wait(0.1):
            most[0] = max(most[0], server.memory)

    thread = threading.Thread(target=watch)
    thread.start()
    yield server, most
    stop.set()
    thread.join()


def is_well(server):
    """Whether it computes; on a busy machine that may take more than its limit now and then."""

    def answer():
        said = server.post("/api/curve", RECIPROCAL).json
        return None if "took more than" in said.get("error", {}).get("message", "") else said

    return wait_for(answer)["curve"]["estimate"][0] == 3


def malformed(count, rng):
    """Yield bodies that are not what the page sends."""
    whole = json.dumps(MEAN).encode()
    for i in range(count):
        kind = i % 5
        if kind == 0:
            yield rng.randbytes(rng.randrange(1, 3000))
        elif kind == 1:
            yield whole[: rng.randrange(len(whole))]
        elif kind == 2:
            damaged = bytearray(whole)
            for _ in range(4):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            yield bytes(damaged)
        elif kind == 3:
            value = rng.choice([None, 7, [], {}, [[]] * 50, "\ud800", {"n": {"n": {}}}, 1e308])
            key = rng.choice(["formula", "statistics", "vary", "at", "from", "view"])
            yield json.dumps({**MEAN, key: value}).encode()
        else:
            statistic = {
                rng.choice(["family", "scale", "low", "way"]): rng.choice([None, 1, [], {}])
            }
            yield json.dumps({**MEAN, "statistics": {"n": statistic, "s": 5}}).encode()


def test_a_hundred_malformed_bodies(watched):
    server, _ = watched
    kinds = ("curve", "code")
    for i, body in enumerate(malformed(100, random.Random(1))):
        path = f"/api/{kinds[i // 5 % 2]}"
        answer = server.ask("POST", path, body, {"content-type": "application/json"})
        assert answer.status in (200, 400, 409, 413, 422), (path, body, answer.text)
        assert len(answer.body) < 200_000
        assert answer.json.get("error", {}).get("kind") != "ours", (path, body, answer.text)
    assert is_well(server)


@pytest.mark.parametrize("name", BOMBS)
def test_a_formula_bomb_is_stopped(watched, name):
    server, _ = watched
    form = {"formula": BOMBS[name], "statistics": dict.fromkeys("abcdenq", LAW)}
    answer = server.post("/api/curve", form)
    assert answer.status in (200, 422)
    assert len(answer.body) < 300_000
    assert is_well(server)


def test_a_huge_upload_is_refused_while_it_comes(watched):
    server, _ = watched
    megabyte = b"x" * 2**20
    said = server.ask(
        "POST", "/api/files?name=a.csv", [megabyte] * 300, {"content-length": str(300 * 2**20)}
    )
    assert said.status == 413
    chunk = b"100000\r\n" + megabyte + b"\r\n"
    answer = server.ask(
        "POST", "/api/files?name=a.csv", [chunk] * 300, {"transfer-encoding": "chunked"}
    )
    assert answer.status == 413
    assert is_well(server)


def test_two_hundred_at_once(watched):
    server, _ = watched
    forms = [{**RECIPROCAL, "from": str(-i), "to": "50"} for i in range(200)]
    with ThreadPoolExecutor(200) as threads:
        answers = list(threads.map(lambda form: _try(server, form), forms))
    assert set(answers) <= {200, 429, 503}
    assert 200 in answers
    assert is_well(server)


def _try(server, form):
    try:
        return server.post("/api/curve", form).status
    except ConnectionError:  # more than the server takes at once
        return 503


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n{}",
        b"\r\n" * 2000,
        b"GET " + b"/" * 60_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["hosts", "no host", "proxy", "tls", "header", "lengths", "lines", "path"],
)
def test_raw_bytes(watched, sent):
    server, _ = watched
    name, _, port = server.host.partition(":")
    with socket.create_connection((name, int(port))) as line:
        try:
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
            answer = line.recv(200)
        except ConnectionError:
            answer = b""
    assert not answer or answer.split()[1][:1] == b"4"
    assert is_well(server)


def test_connections_that_say_nothing_do_not_block_others(watched):
    server, _ = watched
    name, _, port = server.host.partition(":")
    idle = [socket.create_connection((name, int(port))) for _ in range(40)]
    try:
        for line in idle:
            line.sendall(b"POST /api/curve HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert is_well(server)
    finally:
        for line in idle:
            line.close()


def test_half_open_connections_make_room_for_others(watched):
    server, _ = watched
    name, _, port = server.host.partition(":")
    idle = []
    try:
        for _ in range(130):
            idle.append(line := socket.create_connection((name, int(port))))
            line.sendall(b"POST /api/curve HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert is_well(server)
        with contextlib.suppress(ConnectionError):
            assert idle[0].recv(1) == b""  # the oldest was closed
    finally:
        for line in idle:
            line.close()


def test_the_server_stayed_below_a_gibibyte(watched):
    _, most = watched
    wait_for(lambda: most[0])  # it is looked at ten times a second
    assert 30 * 2**20 < most[0] < GIBIBYTE


def test_a_warning_beyond_this_machine_and_hosts_by_name():
    needs("uvicorn")
    server = Server("--host", "0.0.0.0", "--allow-host", "counts.example")  # noqa: S104
    try:
        port = server.host.rpartition(":")[2]
        server.address = f"http://127.0.0.1:{port}/"
        assert server.get("/", host=f"10.1.2.3:{port}").status == 200
        assert server.get("/", host=f"counts.example:{port}").status == 200
        assert server.get("/", host=f"evil.example:{port}").status == 403
    finally:
        _, said = server.stop()
    assert "warning: listening on 0.0.0.0" in said
    assert "Hint:" in said


def test_no_warning_and_a_clear_refusal_on_this_machine(server):
    assert server.address.startswith("http://127.0.0.1:")
    port = server.host.partition(":")[2]
    taken = Server("--port", port)
    assert taken.address == ""
    assert f"cannot listen on 127.0.0.1, port {port}" in taken.process.stderr.read()
    taken.stop()
