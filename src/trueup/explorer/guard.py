"""What reaches the page at all: Host and Origin, headers of every answer, bodies of bounded size.

A web site elsewhere may point a name of its own at this machine (DNS rebinding) or let a visitor's
browser send requests here (request forgery). The first carries its own name as Host, so names are
only accepted from a list, and addresses as numbers; the second carries its own Origin.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ipaddress
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from trueup.explorer import allowances
from trueup.explorer.refused import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
_OWN_SHEET = re.compile(
    r"""createElement\("style"\)[^`'"]*"\w+"[^`'"]*\.textContent=([`'"])(.*?)\1""", re.DOTALL
)

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_METHODS = ("GET", "HEAD", "POST", "DELETE")


def content_security_policy(script: str) -> str:
    """Return what the page may load: its own files, and the sheets that plotly's script adds.

    Those are an empty one, and one for maps, which the script holds and is another in each version.

    Examples
    --------
    >>> content_security_policy("").split("; ")[-1]
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    sheets = ["", *(text for _, text in _OWN_SHEET.findall(script))]
    sums = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in sheets]
    styles = " ".join(f"'sha256-{text.decode()}'" for text in sums)
    return "; ".join((*_POLICY, f"style-src 'self' {styles}"))


class Guard:
    """Refuse foreign requests before anything else sees them."""

    def __init__(
        self, app: ASGIApp, names: Iterable[str] = (), *, loopback: bool = True, script: str = ""
    ) -> None:
        self.app, self.loopback = app, loopback
        self.headers = {**HEADERS, "Content-Security-Policy": content_security_policy(script)}
        self.names = frozenset(name.lower() for name in ("localhost", *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, and add the headers to the answer."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self.check(scope["method"], scope["path"], Headers(scope=scope))
        except Refusal as refusal:
            await refused(refusal)(scope, receive, guarded)
        else:
            await self.app(scope, receive, guarded)

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Refuse a foreign Host, a foreign Origin, a foreign page's request.

        Examples
        --------
        >>> guard = Guard(lambda *_: None)
        >>> guard.check("GET", "/", Headers({"host": "127.0.0.1:8765"}))
        >>> guard.check("GET", "/", Headers({"host": "evil.example"}))
        Traceback (most recent call last):
        trueup.explorer.refused.Refusal: this page does not answer to the name 'evil.example'
        """
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else ""
        if not self._known(host):
            raise Refusal(
                f"this page does not answer to the name {host[:80]!r}",
                "open the address that trueup explore printed",
                403,
                kind="host",
            )
        if method not in _METHODS:
            raise Refusal(f"the method {method[:20]!r} is not known", "use GET or POST", 405)
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
        sites = ("same-origin",) if path.startswith("/api/") else ("same-origin", "none")
        site = headers.get("sec-fetch-site", "same-origin")
        navigates = headers.get("sec-fetch-mode") == "navigate" and not path.startswith("/api/")
        if foreign or (site not in sites and not navigates):
            raise Refusal(
                f"a request from another site, {(origin or site)[:80]!r}, is refused",
                "open the page itself",
                403,
                kind="origin",
            )

    def _known(self, host: str) -> bool:
        """Whether a Host is a name of ours or an address as a number."""
        try:
            parts = urlsplit(f"//{host}")
            name, _ = parts.hostname or "", parts.port  # which must be a number
            return name in self.names or ipaddress.ip_address(name).is_loopback or not self.loopback
        except ValueError:
            return False


def refused(refusal: Refusal) -> JSONResponse:
    """Return a refusal as an answer."""
    headers = {"Retry-After": "1"} if refusal.status == 503 else None
    return JSONResponse({"error": refusal.record()}, refusal.status, headers)


async def json_body(request: Request) -> dict[str, Any]:
    """Return the JSON object in a body of bounded size, or refuse it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(
            f"the body must be JSON, got {kind[:40]!r}", "send application/json", 415, kind="body"
        )
    try:
        async with asyncio.timeout(allowances.BODY_SECONDS):
            pieces = [piece async for piece in pieces_of(request, allowances.BODY)]
    except TimeoutError:
        raise Refusal("the body takes too long to arrive", "send it again", 408) from None
    try:
        value = json.loads(b"".join(pieces), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        problem = "the body is not JSON in UTF-8"
        raise Refusal(problem, "send a JSON object", 400, kind="body") from None
    if not isinstance(value, dict):
        raise Refusal("the body is not a JSON object", "send an object", 400, kind="body")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(name)


async def pieces_of(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the body piece by piece; refuse one that is too large, or that stops arriving."""
    declared = request.headers.get("content-length", "0")
    too_large = Refusal(
        f"the body is larger than {limit:,} bytes", "send less, or use the command line", 413
    )
    if not declared.isdigit() or len(declared) > 15:
        raise Refusal("the length of the body is not a number", "send Content-Length", 400)
    if int(declared) > limit:
        raise too_large
    seen = 0
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(allowances.BODY_SECONDS):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Refusal("the body stopped arriving", "send it again", 408) from None
        except ClientDisconnect:
            raise Refusal("the browser went away", "send it again", 400) from None
        seen += len(piece)
        if seen > limit:
            raise too_large
        yield piece
