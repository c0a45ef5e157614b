"""How long a connection may keep the server waiting: for a request, or to take an answer.

uvicorn waits for the head of a first request for ever, and for a reader that does not read. Such
connections count among those that it allows, and enough of them would shut everyone else out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from trueup.explorer import allowances
from trueup.explorer.guard import refused
from trueup.explorer.refused import Refusal

if TYPE_CHECKING:
    import asyncio


class Patience(H11Protocol):
    """HTTP/1.1 whose connections are closed when nothing comes of them.

    A connection that has not sent a whole head for two looks is closed, and so is one that has
    taken nothing of its answer between two looks. Of those that have yet to send a head, only the
    latest few are kept: a browser sends it at once.
    """

    _silent: ClassVar[dict[Patience, None]] = {}  # in the order of their coming
    _requests = 0
    _seen: tuple[int, int] | None = None
    _look: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        """Count connections here: what uvicorn answers beyond its limit is no JSON."""
        super().__init__(*args, **options)
        given, most, self.limit_concurrency = self.app, self.limit_concurrency, None

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if most is not None and max(len(self.connections), len(self.tasks)) >= most:
                busy = Refusal("too many connections are open", "try again in a moment", 503)
                await refused(busy)(scope, receive, send)
            else:
                await given(scope, receive, send)

        self.app = app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Watch a new connection, and let the oldest silent one go if there are too many."""
        super().connection_made(transport)
        self._look_again()
        self._silent[self] = None
        while len(self._silent) > allowances.SILENT:
            oldest = next(iter(self._silent))
            del self._silent[oldest]
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take note of the first whole request."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._requests += 1
            self._silent.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        super().connection_lost(exc)
        self._silent.pop(self, None)
        if self._look is not None:
            self._look.cancel()

    def _look_again(self) -> None:
        self._look = self.loop.call_later(allowances.QUIET_SECONDS, self.look)

    def look(self) -> None:
        """Close the connection if nothing has come of it since the last look."""
        unsent = self.transport.get_write_buffer_size()
        working = self.cycle is not None and not self.cycle.response_complete
        now = (self._requests, unsent)
        if now == self._seen and (unsent or not working):
            self.transport.abort()
            return
        self._seen = now
        self._look_again()
