"""Who holds a connection, and for how long: the server below times none that says nothing.

A connection on which no request is being answered must bring a whole head in `HEAD_S`. Where there
are too many, of all or of one address, the one that has waited longest makes room; where all are
being answered, the new one goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field
from typing import Any

from hwmodels.frozen import frozen

HEAD_S = 10.0
"""In which a request's head has come, counted from the connection or the answer before."""

STALLED_S = 20.0
"""After which an answer nobody takes is dropped."""

MOST_CONNECTIONS, MOST_OF_A_PEER = 96, 32


@frozen
class Held:
    """The connections of a server.

    Parameters
    ----------
    head_s, stalled_s : float
        As `HEAD_S` and `STALLED_S`.
    most, most_of_a_peer : int
        Connections at once, of all and of one address.
    open : dict
        Address by connection, the oldest first.
    """

    head_s: float = HEAD_S
    stalled_s: float = STALLED_S
    most: int = MOST_CONNECTIONS
    most_of_a_peer: int = MOST_OF_A_PEER
    open: dict[Any, str] = field(default_factory=dict)

    def admit(self, connection: Any, peer: str) -> bool:
        """Take a connection in, ending one that waits where there are too many."""
        beside = [one for one, other in self.open.items() if other == peer]
        for crowd, most in ((beside, self.most_of_a_peer), (list(self.open), self.most)):
            if len(crowd) < most or any(one not in self.open for one in crowd):
                continue  # Or one has just made room.
            idle = next((one for one in crowd if one.is_waiting), None)
            if idle is None:
                return False
            idle.end()
        self.open[connection] = peer
        return True


class Timer:
    """Something to do after a while, unless it is stopped before."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop, delay_s: float, act: Callable[[], None],
              ) -> None:
        """Begin to wait; where it waits already, that goes on."""
        if self._handle is None:
            self._handle = loop.call_later(delay_s, act)

    def stop(self) -> None:
        """Wait no longer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class Turn:
    """Whose turn it is on a connection; mixed into a protocol of uvicorn's."""

    head: Timer
    cycle: Any
    loop: asyncio.AbstractEventLoop
    end: Callable[[], None]

    @property
    def is_waiting(self) -> bool:
        """Whether it is the peer's turn: a head or a body has not come whole."""
        return not self._is_answering() or self.cycle.more_body

    def wind(self, head_s: float) -> None:
        """Let the clock of a head run, and of nothing else; what drips does not stop it."""
        if self._is_answering():
            self.head.stop()
        else:
            self.head.start(self.loop, head_s, self.end)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete


def make_protocol(held: Held) -> type[asyncio.Protocol]:
    """Return the protocol of connections that share limits."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Connection(Turn, H11Protocol):
        """One connection."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.head, self.stall = Timer(), Timer()
            if held.admit(self, self.client[0] if self.client else ""):
                self.wind(held.head_s)
            else:
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            held.open.pop(self, None)
            self.head.stop()
            self.stall.stop()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.wind(held.head_s)
            if not self.is_waiting and self.conn.trailing_data[0]:
                self.end()  # What comes before the answer hides that the peer left.

        def on_response_complete(self) -> None:
            if self in held.open:
                held.open[self] = held.open.pop(self)  # The last to have waited.
            super().on_response_complete()
            self.wind(held.head_s)

        def pause_writing(self) -> None:
            super().pause_writing()
            self.stall.stop()
            self.stall.start(self.loop, held.stalled_s, self.end)

        def resume_writing(self) -> None:
            super().resume_writing()
            self.stall.stop()

        def end(self) -> None:
            """Close, whatever the peer has not sent or taken."""
            held.open.pop(self, None)
            self.transport.abort()

    return Connection
