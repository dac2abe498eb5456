"""A connection that says nothing, or little, or takes nothing, keeps nobody else out."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from made_patience import HANG_S

from twin.api.live.connections import Held, make_protocol
from twin.api.live.guard import BODY_S, BUSY, LARGEST_BODY, LEAST_BYTES_PER_S, Guard

uvicorn = pytest.importorskip("uvicorn")

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
PATIENCE_S = 60.0


class Loop:
    """Keeps what is to be called, and calls it when a test says so."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, SimpleNamespace]] = []

    def call_later(self, delay_s, call):
        timer = SimpleNamespace(call=call, cancelled=False)
        timer.cancel = lambda: setattr(timer, "cancelled", True)
        self.timers.append((delay_s, timer))
        return timer

    def create_task(self, coroutine, **_):
        coroutine.close()
        return Mock()

    def waiting(self):
        return [delay_s for delay_s, timer in self.timers if not timer.cancelled]

    def elapse(self, delay_s):
        for one, timer in self.timers:
            if one == delay_s and not timer.cancelled:
                timer.call()


class Wire(asyncio.Transport):
    """A transport that notes how it ended."""

    def __init__(self, peer: str) -> None:
        super().__init__({"peername": (peer, 1)})
        self.aborted, self.closed, self.sent = False, False, b""

    def abort(self):
        self.aborted = True

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed or self.aborted

    def write(self, data):
        self.sent += data

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


async def serve_nothing(scope, receive, send):
    """Answer with nothing."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@contextlib.contextmanager
def serve(app, held=None):
    """Serve an app over the wire; gives its address."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    server = uvicorn.Server(uvicorn.Config(
        app, log_level="critical", lifespan="off", limit_concurrency=12,
        http=make_protocol(held or Held())))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


def connect(held, peer="192.0.2.1"):
    from uvicorn.server import ServerState

    loop, wire = Loop(), Wire(peer)
    config = uvicorn.Config(Mock(), log_level="critical", lifespan="off", interface="asgi3")
    made = make_protocol(held)(config, ServerState(), {}, _loop=loop)
    made.connection_made(wire)
    return made, wire, loop


def test_a_head_has_a_time_that_what_drips_does_not_stretch() -> None:
    held = Held(head_s=7, stalled_s=9)
    made, wire, loop = connect(held)
    for byte in HEAD:
        made.data_received(bytes([byte]))
    assert loop.waiting() == [7] and not wire.aborted
    loop.elapse(7)
    assert wire.aborted and made not in held.open


def test_while_a_request_is_answered_only_the_peer_that_takes_nothing_is_timed() -> None:
    made, wire, loop = connect(Held(head_s=7, stalled_s=9))
    made.data_received(HEAD + b"\r\n")
    assert loop.waiting() == [] and not made.is_waiting
    made.pause_writing()
    assert loop.waiting() == [9]
    made.resume_writing()
    assert loop.waiting() == []
    made.pause_writing()
    loop.elapse(9)
    assert wire.aborted


def test_a_body_nobody_waits_for_any_more_is_timed_as_a_head_is() -> None:
    made, wire, loop = connect(Held(head_s=7))
    made.data_received(HEAD + b"Content-Length: 100\r\n\r\nxx")
    assert made.is_waiting and loop.waiting() == []  # The guard times it.
    made.cycle.response_complete = True
    made.on_response_complete()
    made.data_received(b"x")
    assert 7 in loop.waiting()
    loop.elapse(7)
    assert wire.aborted


def test_who_has_waited_longest_makes_room_and_who_is_answered_does_not() -> None:
    held = Held(most=4, most_of_a_peer=2)
    first, second, third = (connect(held, "192.0.2.1") for _ in range(3))
    assert first[1].aborted and not second[1].aborted and not third[1].aborted
    others = [connect(held, f"198.51.100.{place}") for place in (1, 2)]
    assert len(held.open) == 4
    second[0].data_received(HEAD + b"\r\n")
    connect(held, "203.0.113.1")
    assert not second[1].aborted and third[1].aborted
    for one, _, _ in others:
        one.data_received(HEAD + b"\r\n")
    last = next(reversed(held.open))
    last.data_received(HEAD + b"\r\n")
    assert connect(held, "203.0.113.9")[1].aborted and len(held.open) == 4
    second[0].connection_lost(None)
    assert not connect(held, "203.0.113.9")[1].aborted


def test_silent_connections_keep_nobody_out() -> None:
    """Over the wire: more of them than are held, from one address; then one that asks."""
    with serve(serve_nothing, Held(head_s=3600, most=8, most_of_a_peer=8)) as address:
        silent = [socket.create_connection(address, PATIENCE_S) for _ in range(30)]
        with socket.create_connection(address, PATIENCE_S) as asked:
            asked.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert asked.recv(100).startswith(b"HTTP/1.1 204")
        for one in silent[:20]:
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
        for one in silent:
            one.close()


def test_who_uploads_too_much_sees_the_answer() -> None:
    """Over the wire: a body left unread would reset the connection, and with it the answer."""
    limit = 1 << 20
    with serve(Guard(serve_nothing, bodies={"/api/models": limit})) as (host, port):
        for size, status in ((limit, 204), (8 * limit, 413)):
            for waits in (False, True):
                asked = http.client.HTTPConnection(host, port, timeout=HANG_S)
                asked.putrequest("POST", "/api/models")
                asked.putheader("content-type", "application/octet-stream")
                asked.putheader("content-length", str(size))
                if waits:
                    asked.putheader("expect", "100-continue")
                asked.endheaders()
                if not waits or status == 204:
                    asked.send(bytes(size))
                answer = asked.getresponse()
                assert answer.status == status and (status == 204 or b"1,048,576" in answer.read())
                asked.close()


def test_what_comes_before_the_answer_ends_the_connection() -> None:
    made, wire, _ = connect(Held())
    made.data_received(HEAD + b"\r\n")
    assert not wire.aborted
    made.data_received(HEAD)
    assert wire.aborted


def post(guard, messages, clock):
    """Send a request whose body comes as messages; return what was answered."""
    sent = []

    async def receive():
        size, later_s = next(messages)
        clock.now_s += later_s
        await asyncio.sleep(0)  # Where time has passed, the deadline is met here.
        await asyncio.sleep(0)
        return {"type": "http.request", "body": bytes(size), "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/api/models", "scheme": "http",
             "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
             "query_string": b""}

    async def run():
        asyncio.get_running_loop().time = lambda: clock.now_s
        await guard(scope, receive, send)

    asyncio.run(run())
    return sent[0]["status"], dict(sent[0]["headers"])


def test_a_body_that_drips_is_ended_and_one_that_comes_is_not() -> None:
    clock = SimpleNamespace(now_s=0.0)
    guard = Guard(serve_nothing, bodies={"/api/models": 4 << 20})
    status, headers = post(guard, iter(lambda: (1, 1.0), None), clock)
    assert status == 408 and clock.now_s < BODY_S + 3 and headers[b"connection"] == b"close"
    started_s, rate = clock.now_s, LEAST_BYTES_PER_S
    status, _ = post(guard, iter(lambda: (rate, 1.0), None), clock)
    assert status == 413 and clock.now_s - started_s > 4 * BODY_S
    assert guard.held_bytes == 0


def test_large_bodies_on_their_way_are_bounded_together(monkeypatch) -> None:
    from twin.api.live import guard as module

    monkeypatch.setattr(module, "MOST_HELD_BYTES", 2 * LARGEST_BODY)
    guard = Guard(serve_nothing, bodies={"/api/models": 1 << 30})
    status, headers = post(guard, iter(lambda: (LARGEST_BODY, 0.0), None),
                           SimpleNamespace(now_s=0.0))
    assert status == BUSY[0] and b"retry-after" in headers and guard.held_bytes == 0
