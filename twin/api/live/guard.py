"""What stands between the wire and the app: who may ask, how much, and what answers carry.

Pages of other sites are kept out by the names a request may come under (a name an attacker points
at this machine is none of them), by where it says it comes from, and by types of content no form
can send.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from twin.api.live.pool import CLIENT

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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

BODY_S, LEAST_BYTES_PER_S = 10.0, 64 << 10
"""A body has come in so long, and as much longer as what has come takes at that rate."""

MOST_DISCARDED_BYTES = 64 << 20
"""Of a body that is too large: read all the same, or its sender would not see the answer."""

MOST_HELD_BYTES = 128 << 20
"""Of bodies larger than `LARGEST_BODY` that are on their way at once."""

LONGEST_QUERY = 4096

BUSY = 503, "busy with other requests; ask again"

TYPES = ("application/json", "application/octet-stream")
"""Of a body: what a form of another site cannot send unasked."""

ONCE = ("host", "origin", "sec-fetch-site", "content-type")
"""Lines of a head that decide who may ask: none may stand there twice."""

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::\d{0,5})?")


class Guard:
    """An ASGI app around another.

    Parameters
    ----------
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
        self.held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        CLIENT.set((scope.get("client") or ("",))[0])
        await self._serve(scope, body, receive, send)

    async def _serve(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Serve a request that came whole; where its client leaves before, that is cancelled."""
        left = asyncio.ensure_future(receive())
        served = asyncio.ensure_future(self.app(scope, _replay(body, left), _with_headers(send)))
        try:
            await asyncio.wait((served, left), return_when=asyncio.FIRST_COMPLETED)
            if served.done():
                served.result()
        finally:
            left.cancel()
            served.cancel()

    def _refuse(self, scope: Scope) -> tuple[int, str] | None:
        """Return why a request is refused by its head alone; None where it is not."""
        heads = [(name.decode("latin-1"), value.decode("latin-1"))
                 for name, value in scope["headers"]]
        held = dict(heads)
        for name in ONCE:
            if sum(name == other for other, _ in heads) > 1:
                return 400, f"several lines {name}; accepted: one"
        host = _HOST.fullmatch(held.get("host", "").lower())
        if host is None:
            return 400, "the line host is not a name and port; accepted: one such as localhost:8787"
        if not self._is_ours(host[1] or host[2]):
            return 421, "this server does not go by that name"
        if len(scope.get("query_string", b"")) > LONGEST_QUERY:
            return 414, f"a query of more than {LONGEST_QUERY:,} characters"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "accepted: GET and POST"
        if scope["method"] != "POST":
            return None
        own = f"{scope['scheme']}://{host[0]}"
        if held.get("origin", own).lower() != own \
                or held.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "a page of another site may not ask"
        if held.get("content-type", "").partition(";")[0].strip().lower() not in TYPES:
            return 415, f"accepted: a body of type {' or '.join(TYPES)}"
        return None

    def _is_ours(self, name: str) -> bool:
        """Whether a name or an address is this server's."""
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.any_address

    async def _read(self, scope: Scope, receive: Receive) -> bytes | tuple[int, str]:
        """Return the body, or why it is refused; more than it may have is not kept."""
        largest = self.bodies.get(scope["path"], LARGEST_BODY)
        too_large = 413, f"a body of more than {largest:,} bytes"
        head = dict(scope["headers"])
        declared = head.get(b"content-length", b"0")
        is_large = not declared.isdigit() or len(declared) > 18 or int(declared) > largest
        if is_large and b"expect" in head:
            return too_large  # Its sender waits to be asked for the body.
        parts, size, held = list[bytes](), 0, 0
        clock = asyncio.get_running_loop().time
        started_s = clock()
        try:
            async with asyncio.timeout(BODY_S) as deadline:
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return 400, "the connection ended before the body"
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if is_large or size > largest:
                        is_large = True
                        parts.clear()
                    if not message.get("more_body") or size > largest + MOST_DISCARDED_BYTES:
                        return too_large if is_large else b"".join(parts)
                    if size > LARGEST_BODY and not is_large:
                        if self.held_bytes + size - held > MOST_HELD_BYTES:
                            return BUSY
                        self.held_bytes += size - held
                        held = size
                    deadline.reschedule(started_s + BODY_S + size / LEAST_BYTES_PER_S)
        except TimeoutError:
            return 408, f"the body came slower than {LEAST_BYTES_PER_S:,} bytes/s"
        finally:
            self.held_bytes -= held


def _replay(body: bytes, left: asyncio.Future[Message]) -> Receive:
    """Return a body that has come as the one message the app reads before its client left."""
    bodies = [body]

    async def read() -> Message:
        if bodies:
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}
        return await asyncio.shield(left)

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
