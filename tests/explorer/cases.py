"""Forms that the tests ask for, and the server as a user starts it."""

import http.client
import json
import os
import subprocess
import sys
import time
from email.message import Message
from typing import NamedTuple
from urllib.parse import urlsplit

RECIPROCAL = {"formula": "1/n", "statistics": {"n": {"scale": "2", "low": "1"}}}
MEAN = {
    "formula": "s/n",
    "statistics": {
        "s": {"family": "laplace", "scale": "2"},
        "n": {"family": "discrete_laplace", "scale": "2", "low": "1"},
    },
}


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Message
    body: bytes

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)


PATIENT = 20
"""How many times as long as its users the tests wait: other tests keep the machine busy."""

COMMAND = """
import sys
from trueup.explorer import allowances
for kind in allowances.SECONDS:
    allowances.SECONDS[kind] *= float(sys.argv[1])
from trueup.cli import main
sys.exit(main(["explore", "--no-browser", *sys.argv[2:]]))
"""


class Server:
    """``trueup explore`` as a user starts it, but for its patience."""

    def __init__(self, *options, environment=None, patience=PATIENT):
        command = [sys.executable, "-c", COMMAND, str(patience)]
        self.process = subprocess.Popen(  # noqa: S603  (our own code)
            [*command, "--port", "0", "--max-upload", "1", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, **(environment or {})},
        )
        self.greeting = self.process.stdout.readline()
        self.address = self.greeting.split()[2] if "http" in self.greeting else ""

    def ask(self, method, path, body=None, headers=None, json_body=None):
        """Send a request as it is, path and all; return the answer."""
        given = {"host": self.host, **(headers or {})}
        if json_body is not None:
            body, given = json.dumps(json_body), {"content-type": "application/json", **given}
        connection = http.client.HTTPConnection(self.host)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if isinstance(body, str):
                body = body.encode()
            if isinstance(body, bytes) and "content-length" not in given:
                given["content-length"] = str(len(body))
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders()
            try:
                for piece in [body] if isinstance(body, bytes) else body or []:
                    connection.send(piece)
            except ConnectionError:  # it has answered already
                pass
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        """Ask for a path."""
        return self.ask("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, path, form, **headers):
        """Ask for a computation."""
        given = {k.replace("_", "-"): v for k, v in headers.items()}
        return self.ask("POST", path, headers=given, json_body=form)

    @property
    def host(self):
        """The name and port it listens on."""
        return urlsplit(self.address).netloc

    @property
    def memory(self):
        """Bytes in memory, all processes together; pages they share count in each."""
        import psutil

        total = 0
        for process in [p := psutil.Process(self.process.pid), *p.children(recursive=True)]:
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:  # it ended meanwhile
                continue
        return total

    def stop(self):
        """End it as Ctrl-C would; return its exit code and what it said."""
        self.process.terminate()
        try:
            _, err = self.process.communicate(timeout=600)
        finally:
            self.process.kill()
        return self.process.returncode, err


def wait_for(condition, seconds=600):
    """Wait until a condition holds, and return it; only what never comes fails."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not after {seconds} seconds"
        time.sleep(0.05)
    return value
