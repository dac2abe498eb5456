"""The server: a socket, the app behind it, and an end by Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from collections.abc import Callable

from hwmodels.errors import need_extra, reworded
from twin.api.live.app import Service, make_app
from twin.api.live.connections import Held, make_protocol
from twin.api.live.guard import LOOPBACK
from twin.errors import UsageError

HIGHEST_PORT = 65535


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Open the socket.

    Parameters
    ----------
    host : str
        A name or an address.
    port : int
        0: any that is free.

    Raises
    ------
    UsageError
        When it cannot be had, naming another way.
    """
    if not 0 <= port <= HIGHEST_PORT:
        raise UsageError(f"--port {port}; accepted: 0 to {HIGHEST_PORT:,}, 0 being any free one")
    with reworded((OSError, UnicodeError), UsageError,
                  f"--host {host}: ",
                  "; accepted: an address of this machine, such as 127.0.0.1 or 0.0.0.0"):
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    opened = socket.socket(family, kind)
    try:
        if os.name == "posix":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(128)
    except OSError as error:
        opened.close()
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be had: {error.strerror}"
        raise UsageError(f"--port {port}: {host}:{port} {why}; accepted: another, or 0 for any "
                         "free one") from None
    return opened


def address_of(opened: socket.socket, host: str) -> str:
    """Return the address a browser opens."""
    port = opened.getsockname()[1]
    shown = "127.0.0.1" if host in ("0.0.0.0", "") else "::1" if host == "::" else host
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"


def run(service: Service, opened: socket.socket, host: str, on_ready: Callable[[], None]) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    service : Service
        What is served; closed at the end.
    opened : socket
        Of `listen`.
    host : str
        As asked for: its name is one requests may come under.
    on_ready : callable
        Called when requests are answered.

    Raises
    ------
    ToolMissingError
        When uvicorn is not installed.
    """
    with need_extra("live pages", "uvicorn", "serve"):
        import uvicorn
    open_wide = not is_loopback(host)
    names = (*LOOPBACK, host, *((socket.gethostname(),) if open_wide else ()))
    app = make_app(service, hosts=names, any_address=open_wide)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            on_ready()

    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, lifespan="on",
        http=make_protocol(Held()), limit_concurrency=128, timeout_keep_alive=10,
        timeout_graceful_shutdown=2, ws="none", h11_max_incomplete_event_size=32 << 10)
    serving = Server(config).serve(sockets=[opened])
    try:
        asyncio.run(serving)
    except KeyboardInterrupt:
        pass  # Ctrl-C is how it is ended.
    finally:
        serving.close()  # Which says that an end before its beginning is meant.
        service.close()
        opened.close()
