"""The routes of the page, and what each one answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from trueup._version import __version__
from trueup.explorer import allowances
from trueup.explorer.families import DIALECTS, FAMILIES, OUTPUTS
from trueup.explorer.guard import Guard, json_body, pieces_of, refused
from trueup.explorer.pool import Pool
from trueup.explorer.refused import Refusal
from trueup.explorer.uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request

COMPUTED = ("curve", "risk", "near", "frontier", "code", "columns", "plan", "table")

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def build(
    names: Iterable[str] = (), *, loopback: bool = True, upload: int = allowances.UPLOAD
) -> Starlette:
    """Return the application.

    Parameters
    ----------
    names
        Names under which the page may be asked for, besides ``localhost``.
    loopback
        Whether it listens to this machine only.
    upload
        The largest upload in bytes.

    Examples
    --------
    >>> [route.path for route in build().routes][:2]
    ['/', '/static/{name}']
    """
    page = Page(upload)
    routes = [
        Route("/", page.static, methods=["GET"]),
        Route("/static/{name}", page.static, methods=["GET"]),
        Route("/api/options", page.options, methods=["GET"]),
        *(
            Route(f"/api/{kind}", partial(page.compute, kind), methods=["POST"])
            for kind in COMPUTED
        ),
        Route("/api/files", page.receive, methods=["POST"]),
        Route("/api/files/{id}", page.file, methods=["GET", "POST", "DELETE"]),
        Route("/api/files/{id}/result", page.result, methods=["GET"]),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, names=tuple(names), loopback=loopback, script=page.script)],
        exception_handlers={Refusal: _refusal, HTTPException: _plain, Exception: _unexpected},
        lifespan=page.lifespan,
    )
    app.router.redirect_slashes = False
    return app


class Page:
    """One running page: its workers, its answers so far, its uploads."""

    def __init__(self, upload: int) -> None:
        self.upload = upload
        self._answers: dict[str, bytes] = {}
        self._latest: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self._files = _static()
        self.script = self._files["plotly.min.js"].read_text(encoding="utf-8")

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Start the workers, and end them."""
        async with Pool() as self.pool, Uploads(self.upload) as self.uploads:
            warming = asyncio.create_task(self.pool.warm())
            try:
                yield
            finally:
                warming.cancel()
                await asyncio.wait([warming])

    async def static(self, request: Request) -> Response:
        """Answer with the page, or with one of its files; there are no others."""
        name = request.path_params.get("name", "index.html")
        path = self._files.get(name)
        if path is None:
            raise HTTPException(404)
        kind = _TYPES[name.rpartition(".")[2]]
        return FileResponse(path, media_type=kind, headers={"Cache-Control": "no-cache"})

    async def options(self, request: Request) -> Response:
        """Answer with what the page offers to choose from."""
        return JSONResponse(
            {
                "version": __version__,
                "families": {name: asdict(family) for name, family in FAMILIES.items()},
                "dialects": DIALECTS,
                "outputs": OUTPUTS,
                "upload": self.upload,
            }
        )

    async def receive(self, request: Request) -> Response:
        """Keep an uploaded file; answer with its columns and first rows."""
        name = request.query_params.get("name", "")
        upload = await self.uploads.receive(name, pieces_of(request, self.upload))
        return JSONResponse(upload.record(), 201)

    async def file(self, request: Request) -> Response:
        """Answer with the state of a file; POST debiases it, DELETE removes it."""
        upload = self.uploads.find(request.path_params["id"])
        if request.method == "DELETE":
            await self.uploads.remove(upload.id)
            return Response(status_code=204)
        if request.method == "POST":
            asked = await json_body(request)
            asked |= {"header": upload.table["columns"], "file": f"“{upload.name}”"}
            job = await self.pool.run("job", asked)
            if "error" in job:
                return JSONResponse(job, 422)
            self.uploads.start(self.uploads.find(upload.id), job)
        return JSONResponse(upload.record(), 202 if upload.running else 200)

    async def result(self, request: Request) -> Response:
        """Answer with the debiased file."""
        upload = self.uploads.find(request.path_params["id"])
        if not upload.result:
            raise Refusal("this file is not debiased yet", "wait for it", 409, "file")
        return FileResponse(
            upload.output, media_type="application/octet-stream", filename=f"debiased-{upload.name}"
        )

    async def compute(self, kind: str, request: Request) -> Response:
        """Answer with a computation: remembered, or done by a worker.

        That a formula has no estimator is an answer like any other, so that browsers do not take it
        for a failure.
        """
        asked = await json_body(request)
        view = str(asked.pop("view", ""))[:40]
        key = f"{kind} {json.dumps(asked, sort_keys=True)}"
        answer = self._answers.get(key) or await self._computed(kind, view, asked, request)
        remember(self._answers, key, answer)
        return Response(answer, media_type="application/json")

    async def _computed(
        self, kind: str, view: str, asked: dict[str, Any], request: Request
    ) -> bytes:
        """Let a worker compute until it is done, replaced by a newer request, or not awaited."""
        task = asyncio.create_task(self.pool.run(kind, asked))
        before = self._latest.get((view, kind)) if view else None
        if before:
            before.cancel()
        self._latest[view, kind] = task
        leaving = asyncio.create_task(_gone(request))
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            task.cancel()  # unless it is done
            answer = await task
        except asyncio.CancelledError:
            if task.cancelled():
                newer = "a newer request of the same view replaced it"
                raise Refusal(newer, "nothing to do", 409, kind="superseded") from None
            raise
        finally:
            task.cancel()
            leaving.cancel()
            if self._latest.get((view, kind)) is task:
                del self._latest[view, kind]
        return json.dumps(answer).encode()


def remember(
    answers: dict[str, bytes], key: str, answer: bytes, size: int = allowances.CACHE
) -> None:
    """Keep an answer as the latest, and forget the oldest ones beyond so many bytes.

    Examples
    --------
    >>> answers = {"a": b"12345678"}
    >>> remember(answers, "b", b"12345678", 10)
    >>> answers
    {'b': b'12345678'}
    """
    answers.pop(key, None)
    answers[key] = answer
    while sum(len(k) + len(a) for k, a in answers.items()) > size:
        del answers[next(iter(answers))]


async def _gone(request: Request) -> None:
    """Return when the browser has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _static() -> dict[str, Any]:
    """Return the files of the page by name, plotly's script among them."""
    folder = files("trueup.explorer") / "static"
    found = {entry.name: entry for entry in folder.iterdir() if entry.is_file()}
    script = files("plotly") / "package_data" / "plotly.min.js"
    return {**found, "plotly.min.js": script}


async def _refusal(request: Request, error: Any) -> Response:
    return refused(error)


async def _plain(request: Request, error: Any) -> Response:
    there = Refusal("there is nothing here", "open the page at /", error.status_code, kind="path")
    return refused(there)


async def _unexpected(request: Request, error: Exception) -> Response:
    problem = f"an error of ours: {type(error).__name__}"
    return refused(Refusal(problem, "please report it", 500, kind="ours"))
