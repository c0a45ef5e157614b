"""Serve the page to this machine: where it listens, what it is told, and that it tells nobody."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from trueup.errors import TrueupError
from trueup.extras import optional

PORT = 8765
HOSTS = ("127.0.0.1", "localhost")
"""Under which names the page may be asked for: a name of somebody else's is an attack."""

_CONNECTIONS = 96
"""Connections at once; a browser opens about ten."""

_INK, _ACCENT, _PLUGIN, _NEAR = "#1f2529", "#14606b", "#b8561b", "#6b4fa0"
_LIGHT = {
    "primaryColor": _ACCENT,
    "backgroundColor": "#f7f6f2",
    "secondaryBackgroundColor": "#ffffff",
    "textColor": _INK,
    "borderColor": "#d9d5cb",
    "codeBackgroundColor": "#efede7",
}
_DARK = {
    "primaryColor": "#2f8f94",
    "backgroundColor": "#14181b",
    "secondaryBackgroundColor": "#1c2226",
    "textColor": "#e8e6e1",
    "borderColor": "#3a444b",
    "codeBackgroundColor": "#1f262a",
}
_SETTINGS: dict[str, Any] = {
    "browser.gatherUsageStats": False,  # the environment variable alone does not turn it off
    "client.showErrorDetails": "none",
    "client.toolbarMode": "minimal",
    "server.fileWatcherType": "none",
    "theme.baseRadius": "medium",
    "theme.headingFont": "Palatino, Georgia, serif",
    "theme.headingFontSizes": ["1.5rem", "1.35rem", "1.2rem", "1.1rem", "1rem", "0.9rem"],
    "theme.showWidgetBorder": True,
    **{f"theme.light.{name}": value for name, value in _LIGHT.items()},
    **{f"theme.dark.{name}": value for name, value in _DARK.items()},
}


def serve(port: int | None = None, *, upload: int = 256, browse: bool = True) -> None:
    """Serve the page on this machine until interrupted.

    Parameters
    ----------
    port
        Where to listen, by default at 8765 or, if that is taken, at a free port.
    upload
        The largest upload in megabytes.
    browse
        Whether to open a browser.
    """
    for package in ("streamlit", "plotly"):
        optional(package, "explorer", "trueup explore")
    uvicorn = optional("uvicorn", "explorer", "trueup explore")
    app, listening = build(upload), listen(port)
    address = f"http://localhost:{listening.getsockname()[1]}/"
    print(f"trueup explore: {address}  (Ctrl-C ends it)", flush=True)
    if browse:
        webbrowser.open(address)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=2,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again
    with (
        tempfile.TemporaryDirectory(prefix="trueup-explore-", ignore_cleanup_errors=True) as own,
        contextlib.suppress(KeyboardInterrupt),  # Ctrl-C is how it ends
    ):
        tempfile.tempdir = own  # uploads are gone with the server, whatever it was doing
        uvicorn.Server(config).run(sockets=[listening])


def build(upload: int = 256) -> Any:
    """Return the application; its uploads have at most so many megabytes."""
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from streamlit import config
    from streamlit.starlette import App

    for name, value in (_SETTINGS | {"server.maxUploadSize": upload}).items():
        config.set_option(name, value)
    guard = Middleware(TrustedHostMiddleware, allowed_hosts=[*HOSTS], www_redirect=False)
    return App(Path(__file__).with_name("page.py"), middleware=[guard])


def listen(port: int | None) -> socket.socket:
    """Return a listening socket of this machine; without a port, at 8765 or a free one.

    Examples
    --------
    >>> with listen(0) as bound:
    ...     bound.getsockname()[0]
    '127.0.0.1'
    """
    problem = ""
    for candidate in (PORT, 0) if port is None else (port,):
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if sys.platform != "win32":
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((HOSTS[0], candidate))
            bound.listen(128)
        except (OSError, OverflowError) as error:
            bound.close()
            problem = f"cannot listen on port {candidate}: {error}"
        else:
            return bound
    raise TrueupError(problem, "choose another --port, or leave it out for a free one")
