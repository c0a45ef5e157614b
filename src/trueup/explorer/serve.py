"""Serve the page: where it listens, what it warns of, and the limits of the server."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import sys
import webbrowser
from typing import TYPE_CHECKING

from trueup.errors import TrueupError
from trueup.explorer import allowances
from trueup.extras import optional

if TYPE_CHECKING:
    from collections.abc import Sequence

PORT = 8765
_HEADERS = 16_384


def serve(
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    names: Sequence[str] = (),
    upload: int = allowances.UPLOAD,
    browse: bool = True,
) -> None:
    """Serve the page until interrupted.

    Parameters
    ----------
    host, port
        Where to listen. The default is this machine only, at port 8765 or, if that is taken, at a
        free one.
    names
        Names under which the page may be asked for, when it listens beyond this machine.
    upload
        The largest upload in bytes.
    browse
        Whether to open a browser.
    """
    for package in ("starlette", "plotly"):
        optional(package, "explorer", "trueup explore")
    uvicorn = optional("uvicorn", "explorer", "trueup explore")
    from trueup.explorer.app import build
    from trueup.explorer.connections import Patience

    loopback = is_loopback(host)
    listening = listen(host, port)
    app = build((host, *names), loopback=loopback, upload=upload)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    if not loopback:
        print(warning(host), file=sys.stderr)
    print(f"trueup explore: {address}  (Ctrl-C ends it)", flush=True)
    if browse:
        webbrowser.open(address)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=allowances.CONNECTIONS,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=_HEADERS,
            http=Patience,
        )
    )
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
        server.run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and reachable from nowhere else.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # another name
        return False


def warning(host: str) -> str:
    """Return what to say when the page can be reached from other machines."""
    return (
        f"trueup: warning: listening on {host}: everyone who can reach this machine can use the "
        "page and its processor, and traffic is not encrypted\n"
        "Hint: leave --host out to listen on this machine only"
    )


def listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket; without a port, at 8765 or a free one.

    Examples
    --------
    >>> with listen("127.0.0.1", 0) as bound:
    ...     bound.getsockname()[0]
    '127.0.0.1'
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem = ""
    for candidate in (PORT, 0) if port is None else (port,):
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            if sys.platform != "win32":
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, candidate))
            bound.listen(128)
        except (OSError, OverflowError) as error:
            bound.close()
            problem = f"cannot listen on {host}, port {candidate}: {error}"
        else:
            return bound
    raise TrueupError(problem, "choose another --port, or leave it out for a free one")
