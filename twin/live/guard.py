"""What stands between the wire and the app: who may ask, how much, and what answers carry.

Pages of other sites are kept out by the names a request may come under (a name an attacker points
at this machine is none of them), by where it says it comes from, and by types of content no form
can send.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

LOOPBACK = ("localhost", "127.0.0.1", "::1")

LARGEST_BODY = 64 << 10
"""Of a request, where its path is not given more."""

MOST_IN_FLIGHT = 12
"""Requests of the interface at once; others are told to come again."""

BODY_S, LEAST_BYTES_PER_S = 10.0, 64 << 10
"""A body has come in so long, and as much longer as what has come takes at that rate."""

MOST_HELD_BYTES = 128 << 20
"""Of bodies larger than `LARGEST_BODY` that are on their way at once."""

LONGEST_QUERY = 4096

BUSY = 503, "busy with other requests; ask again"

TYPES = ("application/json", "application/octet-stream")
"""Of a body: what a form of another site cannot send unasked."""


class Guard:
    """An ASGI app around another.

    Parameters
    ----------
    app : ASGI app
        What is guarded.
    hosts : iterable of str
        Names a request may come under.
    any_address : bool
        Whether any address is such a name: no attacker's name is one.
    bodies : mapping of str to int
        Bytes a body may have, by path.
    """

    def __init__(self, app: App, *, hosts: Iterable[str] = LOOPBACK, any_address: bool = False,
                 bodies: MutableMapping[str, int] | None = None) -> None:
        self.app = app
        self.hosts = frozenset(one.lower() for one in hosts)
        self.any_address = any_address
        self.bodies = dict(bodies or {})
        self.in_flight = 0
        self.held_bytes = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive,
                       send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refuse(scope)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        if not scope["path"].startswith("/api/"):
            await self.app(scope, receive, _with_headers(send))
            return
        body = await self._read(scope, receive)
        if isinstance(body, tuple):
            await _answer(send, *body)
            return
        if self.in_flight >= MOST_IN_FLIGHT:
            await _answer(send, *BUSY)
            return
        self.in_flight += 1
        try:
            await self.app(scope, _replay(body, receive), _with_headers(send))
        finally:
            self.in_flight -= 1

    def _refuse(self, scope: MutableMapping[str, Any]) -> tuple[int, str] | None:
        """Return why a request is refused by its head alone; None where it is not."""
        heads = [(name.decode("latin-1"), value.decode("latin-1"))
                 for name, value in scope["headers"]]
        named = [value for name, value in heads if name == "host"]
        if len(named) != 1 or not self._is_ours(named[0]):
            return 421, "this server does not go by that name"
        if len(scope.get("query_string", b"")) > LONGEST_QUERY:
            return 414, f"a query of more than {LONGEST_QUERY:,} characters"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "accepted: GET and POST"
        if scope["method"] != "POST":
            return None
        held = dict(heads)
        origin, site = held.get("origin"), held.get("sec-fetch-site", "same-origin")
        if (origin is not None and origin.lower() != f"{scope['scheme']}://{named[0]}".lower()) \
                or site not in ("same-origin", "none"):
            return 403, "a page of another site may not ask"
        if held.get("content-type", "").partition(";")[0].strip().lower() not in TYPES:
            return 415, f"accepted: a body of type {' or '.join(TYPES)}"
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this server."""
        name = host.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif name.count(":") == 1:
            name = name.partition(":")[0]
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.any_address

    async def _read(self, scope: MutableMapping[str, Any],
                    receive: Receive) -> bytes | tuple[int, str]:
        """Return the body, or why it is refused; more than it may have is not read."""
        largest = self.bodies.get(scope["path"], LARGEST_BODY)
        too_large = 413, f"a body of more than {largest:,} bytes"
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > largest:
            return too_large
        parts, size, held = [], 0, 0
        clock = asyncio.get_running_loop().time
        begun_s = clock()
        try:
            async with asyncio.timeout(BODY_S) as deadline:
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return 400, "the connection ended before the body"
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > largest:
                        return too_large
                    if not message.get("more_body"):
                        return b"".join(parts)
                    if size > LARGEST_BODY:
                        if self.held_bytes + size - held > MOST_HELD_BYTES:
                            return BUSY
                        self.held_bytes += size - held
                        held = size
                    deadline.reschedule(begun_s + BODY_S + size / LEAST_BYTES_PER_S)
        except TimeoutError:
            return 408, f"the body came slower than {LEAST_BYTES_PER_S:,} bytes/s"
        finally:
            self.held_bytes -= held


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a body that has come as the one message the app reads."""
    left = [body]

    async def read() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return read


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name, value) for name, value in message.get("headers", [])
                   if name.decode("latin-1").lower() not in HEADERS]
            message["headers"] = own + _HEADERS
        await send(message)

    return wrapped


_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


async def _answer(send: Send, status: int, error: str) -> None:
    """Send a refusal; what is left of a body is not read."""
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"),
               (b"content-length", str(len(body)).encode()), *_HEADERS]
    headers.append((b"retry-after", b"1") if status == BUSY[0] else (b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
