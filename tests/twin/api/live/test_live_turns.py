"""Whose turn it is at the workers: no client holds all of them, and who left holds none."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path

import pytest
from made_patience import HANG_S

from twin.api.live.guard import Guard
from twin.api.live.pool import CLIENT, MOST_WAITING, Pool
from twin.errors import WorkerError

AT_ONCE, NEVER = 0.0, 1e9


class MadeWorker:
    """Answers what is quick before it can be killed, the rest when it is let go on."""

    def __init__(self) -> None:
        self.unwanted, self.started, self.killed = threading.Event(), [], 0
        self._changed, self._may_end = threading.Condition(), False

    def ask(self, request, deadline_s):
        if request["do"] == "ready":
            return {}
        self.started.append(request["name"])
        if not request["name"].startswith("quick"):
            with self._changed:
                assert self._changed.wait_for(
                    lambda: self._may_end or self.unwanted.is_set(), HANG_S)
                self._may_end = False
            if self.unwanted.is_set():
                raise WorkerError("was ended")
        return {"name": request["name"]}

    def finish(self) -> None:
        with self._changed:
            self._may_end = True
            self._changed.notify_all()

    def kill(self) -> None:
        with self._changed:
            self.killed += 1
            self.unwanted.set()
            self._changed.notify_all()

    close = kill


class Queue:
    """A pool of made workers, and what was asked of it."""

    def __init__(self, long_s: float) -> None:
        self.workers = MadeWorker(), MadeWorker()
        self.pool = Pool(Path("none"), self.workers, long_s=long_s)
        self.asked: dict[str, asyncio.Task] = {}

    async def ask(self, name, client="a", do="predict", about=None):
        async def run():
            CLIENT.set(client)
            return await self.pool.ask({"do": do, "name": name}, about or name)

        self.asked[name] = asyncio.create_task(run())
        await asyncio.sleep(0)

    async def until(self, condition):
        async with asyncio.timeout(HANG_S):
            while not condition():
                await asyncio.sleep(0)

    async def started(self, *names):
        await self.until(lambda: set(names) <= {
            name for worker in self.workers for name in worker.started})

    def at(self, name):
        return next(worker for worker in self.workers if worker.started[-1:] == [name])


@contextlib.asynccontextmanager
async def open_queue(long_s):
    queue = Queue(long_s)
    try:
        yield queue
    finally:
        for task in queue.asked.values():
            task.cancel()
        queue.pool.close()
        await asyncio.gather(*queue.asked.values(), return_exceptions=True)


def in_loop(test):
    """Run an asynchronous test."""
    def run(*arguments):
        asyncio.run(test(*arguments))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_loop
async def test_sixteen_heavy_requests_of_one_client_keep_nobody_out() -> None:
    async with open_queue(AT_ONCE) as queue:
        for number in range(16):
            await queue.ask(f"heavy{number}")
        await queue.ask("quick", client="b")
        assert await queue.asked["quick"] == {"name": "quick"}
        await queue.ask("quick of the same address")
        assert await queue.asked["quick of the same address"]
        assert sum(task.done() for task in queue.asked.values()) <= 2 + 16 + 2 - MOST_WAITING


@in_loop
async def test_a_long_request_is_begun_again_when_the_one_before_is_done() -> None:
    async with open_queue(AT_ONCE) as queue:
        await queue.ask("first")
        await queue.ask("second")
        await queue.started("first", "second")
        first = queue.at("first")
        await queue.ask("quick")
        assert await queue.asked["quick"]
        assert first.killed == 0 and not queue.asked["second"].done()
        first.finish()
        assert await queue.asked["first"] == {"name": "first"}
        await queue.until(lambda: sum(one.started.count("second") for one in queue.workers) == 2)
        queue.at("second").finish()
        assert await queue.asked["second"] == {"name": "second"}


@in_loop
async def test_who_left_the_queue_is_never_begun_and_a_worker_of_nobody_is_freed() -> None:
    async with open_queue(AT_ONCE) as queue:
        for name in ("first", "second", "third"):
            await queue.ask(name, about="same", do="reprice" if name == "third" else "predict")
        await queue.started("first", "second")
        second = queue.at("second")
        for name in ("second", "third"):
            queue.asked[name].cancel()
        await asyncio.wait([queue.asked["second"], queue.asked["third"]])
        assert second.killed == 0  # Nobody waits: what it makes is kept there.
        await queue.ask("quick", client="b")
        assert await queue.asked["quick"] and second.killed == 1
        assert not any("third" in worker.started for worker in queue.workers)
        assert queue.at("first").killed == 0


@in_loop
async def test_turns_go_to_who_has_least_and_to_the_newest_of_an_address() -> None:
    async with open_queue(NEVER) as queue:
        for name in ("a1", "a2", "quick a3", "quick a4"):
            await queue.ask(name)
        await queue.ask("quick b", client="b")
        await queue.started("a1", "a2")
        worker = queue.at("a1")
        worker.finish()
        await asyncio.gather(*(queue.asked[name] for name in ("quick a3", "quick a4", "quick b")))
        assert worker.started == ["a1", "quick b", "quick a4", "quick a3"]


@in_loop
async def test_a_full_queue_refuses_the_oldest_of_the_busiest_client() -> None:
    async with open_queue(NEVER) as queue:
        for number in range(2 + MOST_WAITING):
            await queue.ask(f"a{number}")
        await queue.ask("b", client="b")
        with pytest.raises(WorkerError, match="ask again"):
            await queue.asked["a2"]
        assert not any(task.done() for name, task in queue.asked.items() if name != "a2")


@in_loop
async def test_a_drag_waits_for_the_worker_that_makes_what_it_is_priced_from() -> None:
    async with open_queue(AT_ONCE) as queue:
        await queue.ask("a", about="kws")
        await queue.ask("quick drag", about="kws", do="reprice")
        await queue.started("a")
        worker = queue.at("a")
        assert worker.killed == 0 and worker.started == ["a"]
        worker.finish()
        assert await queue.asked["quick drag"] and worker.started == ["a", "quick drag"]


@in_loop
async def test_a_client_that_leaves_ends_what_is_served_to_it() -> None:
    serving, ended, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def serve(scope, receive, send):
        assert CLIENT.get() == "192.0.2.7" and (await receive())["body"] == b"{}"
        serving.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    messages = iter([{"type": "http.request", "body": b"{}"}])

    async def receive():
        for message in messages:
            return message
        await left.wait()
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "POST", "path": "/api/predict", "scheme": "http",
             "client": ("192.0.2.7", 1), "query_string": b"",
             "headers": [(b"host", b"[::1]:1"), (b"content-type", b"application/json")]}
    served = asyncio.create_task(Guard(serve)(scope, receive, None))
    await serving.wait()
    assert not served.done()
    left.set()
    await served
    assert ended.is_set()
