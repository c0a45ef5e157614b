"""Computations are bounded in time and memory, remembered, replaced, and cancelled."""

import asyncio
import json

import pytest

from explorer.cases import RECIPROCAL
from extras import needs

needs("starlette")

from starlette.requests import Request  # noqa: E402

from trueup.explorer import allowances  # noqa: E402
from trueup.explorer.app import Page  # noqa: E402
from trueup.explorer.pool import Pool, _too_much  # noqa: E402
from trueup.explorer.refused import Refusal  # noqa: E402

LAW = {"family": "discrete_laplace", "scale": "2", "low": "1"}
ENDLESS = {"formula": "1/(a+b+c+d+e+n)*max(a,b,c,d)", "statistics": dict.fromkeys("abcden", LAW)}
"""Takes far longer than any limit."""


def test_what_takes_too_long_is_stopped_and_the_next_one_runs(monkeypatch):
    monkeypatch.setitem(allowances.SECONDS, "curve", 1.0)

    async def scenario():
        async with Pool(size=1) as pool:
            await pool.warm()
            with pytest.raises(Refusal, match="took more than 1 seconds"):
                await pool.run("curve", ENDLESS)
            monkeypatch.setitem(allowances.SECONDS, "curve", 600.0)
            return await pool.run("curve", RECIPROCAL)

    answer = asyncio.run(scenario())
    assert answer["curve"]["estimate"][0] == 3


def test_cancelling_kills_the_computation():
    async def scenario():
        async with Pool(size=1) as pool:
            await pool.warm()
            (worker,) = pool._idle
            task = asyncio.create_task(pool.run("curve", ENDLESS))
            await asyncio.sleep(0.2)
            assert worker.process.is_alive()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            worker.process.join(60)
            alive = worker.process.is_alive()
            return alive, await pool.run("curve", RECIPROCAL)

    alive, answer = asyncio.run(scenario())
    assert not alive
    assert "curve" in answer


def test_a_worker_killed_while_idle_says_nothing_of_the_next_question(monkeypatch):
    async def scenario():
        async with Pool(size=1) as pool:
            await pool.warm()
            (worker,) = pool._idle
            worker.process.kill()
            worker.process.join()
            monkeypatch.setattr(worker.process, "is_alive", lambda: True)  # not noticed yet
            return await pool.run("curve", RECIPROCAL)

    assert asyncio.run(scenario())["curve"]["estimate"][0] == 3


def test_memory_is_bounded():
    async def scenario():
        async with Pool(size=1, memory=2**20) as pool:
            start = {"formula": "1/n", "statistics": {"n": {"scale": "2", "low": "1"}}}
            grid = {**start, "statistics": {"n": {"scale": "0.01", "low": "1", "high": "900"}}}
            answers = []
            for request in (start, grid, ENDLESS):
                try:
                    answers.append(await pool.run("risk", request))
                except Refusal as refusal:
                    answers.append({"error": refusal.record()})
            return answers

    answers = asyncio.run(scenario())
    said = [a["error"]["message"] for a in answers if "error" in a]
    assert any("memory" in words for words in said)


def test_the_queue_is_bounded(monkeypatch):
    monkeypatch.setattr(allowances, "WAITING", 2)
    monkeypatch.setitem(allowances.SECONDS, "curve", 1.0)

    async def scenario():
        async with Pool(size=1) as pool:
            await pool.warm()
            tasks = [asyncio.create_task(pool.run("curve", ENDLESS)) for _ in range(6)]
            done = await asyncio.gather(*tasks, return_exceptions=True)
            return sorted(error.status for error in done)

    assert asyncio.run(scenario()) == [422, 422, 422, 503, 503, 503]


def test_workers_end_with_the_pool():
    async def scenario():
        async with Pool(size=2) as pool:
            await asyncio.gather(*(pool.run("curve", RECIPROCAL) for _ in range(4)))
            return [worker.process for worker in pool._all]

    processes = asyncio.run(scenario())
    assert 1 <= len(processes) <= 2
    assert not any(process.is_alive() for process in processes)


class Counting:
    """A pool that counts what it is asked, and answers when it is told to."""

    def __init__(self):
        self.asked, self.killed, self.go = 0, 0, asyncio.Event()

    async def run(self, kind, request):
        self.asked += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.killed += 1
            raise
        return {"asked": request}


def request(form, leaving):
    """A request whose sender goes away when an event is set."""
    body = iter([{"type": "http.request", "body": json.dumps(form).encode(), "more_body": False}])

    async def receive():
        message = next(body, None)
        if message is None:
            await leaving.wait()
            message = {"type": "http.disconnect"}
        return message

    headers = [(b"content-type", b"application/json")]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


def with_page(scenario):
    """Run a scenario with a page whose pool only counts."""

    async def run():
        page = Page(2**20)
        page.pool = Counting()
        return await scenario(page)

    return asyncio.run(run())


def test_the_same_request_is_computed_once():
    async def scenario(page):
        page.pool.go.set()
        forms = ({**RECIPROCAL, "view": view} for view in "abc")
        answers = [await page.compute("curve", request(f, asyncio.Event())) for f in forms]
        return page.pool.asked, {answer.body for answer in answers}

    asked, bodies = with_page(scenario)
    assert asked == 1
    assert len(bodies) == 1


def test_a_newer_request_of_the_same_view_replaces_the_one_before():
    async def scenario(page):
        ask = lambda form, view: asyncio.create_task(  # noqa: E731
            page.compute("curve", request({"formula": form, "view": view}, asyncio.Event()))
        )
        first, other = ask("1/n", "a"), ask("1/n", "b")
        await asyncio.sleep(0.01)
        second = ask("1/n**2", "a")
        with pytest.raises(Refusal) as refusal:
            await first
        killed = page.pool.killed
        page.pool.go.set()
        return refusal.value, killed, (await second).status_code, (await other).status_code

    refusal, killed, second, other = with_page(scenario)
    assert (refusal.status, refusal.kind) == (409, "superseded")
    assert killed == 1
    assert second == other == 200


def test_a_browser_that_goes_away_cancels_its_computation():
    async def scenario(page):
        leaving = asyncio.Event()
        task = asyncio.create_task(page.compute("curve", request(RECIPROCAL, leaving)))
        await asyncio.sleep(0.01)
        assert page.pool.killed == 0
        leaving.set()
        with pytest.raises(Refusal):
            await task
        return page.pool.killed, page._latest

    assert with_page(scenario) == (1, {})


@pytest.mark.parametrize(("kind", "field"), [("curve", "formula"), ("plan", "")])
def test_what_was_stopped_blames_the_formula_only_where_there_is_one(kind, field):
    refusal = _too_much(kind, "took more than 1 seconds")
    assert refusal.field == field
    assert ("formula" in refusal.hint) == bool(field)
    assert "library" in refusal.hint or "Python" in refusal.hint
