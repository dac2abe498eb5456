"""A pty between host and board that loses, spoils, repeats, delays and cuts, as told.

with Relay("/dev/pts/3", Faults(flip=1e-4, seed=1)) as relay:
link = Link(relay.port)
relay.cut(); ...; relay.restore()
"""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
import threading
import time
import tty
from dataclasses import dataclass, field

import numpy as np

from calibration.collecting.deadline import patient
from calibration.collecting.link import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Rates per byte, in each direction.

    Parameters
    ----------
    drop, flip, duplicate : float
        Probability that a byte is lost, has one bit inverted, or comes twice.
    stall : float
        Probability that everything waits `stall_s` at a byte.
    seed : int
        Of the generator; equal seeds spoil equal streams equally.
    """

    drop: float = 0.0
    flip: float = 0.0
    duplicate: float = 0.0
    stall: float = 0.0
    stall_s: float = 0.3
    seed: int = 0


@dataclass(slots=True)
class Spoiler:
    """One direction of a line: spoils bytes by `Faults`, drawing the distance to the next fault."""

    faults: Faults
    direction: int
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(
        ("bytes", "drop", "flip", "duplicate", "stall"), 0))
    _next: dict[str, int] = field(init=False)
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        """Draw the first byte at which each fault comes."""
        self._random = np.random.default_rng((self.faults.seed, self.direction))
        self._next = {kind: self._gap(kind) for kind in ("drop", "flip", "duplicate", "stall")}

    def _gap(self, kind: str) -> int:
        rate = getattr(self.faults, kind)
        return int(self._random.geometric(rate)) - 1 if rate > 0 else 1 << 62

    def spoil(self, data: bytes) -> tuple[bytes, float]:
        """Return what comes out, and how long the line stands still before it."""
        self.counts["bytes"] += len(data)
        wait_s = 0.0
        out = bytearray(data)
        hits = []
        for kind, gap in self._next.items():
            place = gap
            while place < len(data):
                hits.append((place, kind))
                place += 1 + self._gap(kind)
            self._next[kind] = place - len(data)
        for place, kind in sorted(hits, reverse=True):  # from the end, so that places stay true
            self.counts[kind] += 1
            if kind == "stall":
                wait_s += self.faults.stall_s
            elif kind == "flip":
                out[place] ^= 1 << int(self._random.integers(8))
            elif kind == "drop":
                out[place:place + 1] = b""
            else:
                out[place:place] = out[place:place + 1]
        return bytes(out), wait_s


class Relay:
    """A pty the host opens, joined to a board's port through two spoilers.

    Parameters
    ----------
    target : str
        Port of the board.
    faults : Faults
        Of both directions.
    """

    def __init__(self, target: str, faults: Faults | None = None) -> None:
        faults = faults or Faults()
        self.to_board, self.to_host = Spoiler(faults, 0), Spoiler(faults, 1)
        self._target = Link(target)
        self._folder = tempfile.TemporaryDirectory(prefix="twin-relay-")
        self.port = os.path.join(self._folder.name, "port")
        self._master = -1
        self._slave = -1
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self.restore()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Pull the cable: the host's end of the pty is gone."""
        with self._guard:
            self._close_pty()

    def restore(self) -> None:
        """Plug it in again, under the same name."""
        with self._guard:
            if self._master >= 0:
                return
            self._master, self._slave = os.openpty()
            tty.setraw(self._slave)
            fresh = self.port + ".new"
            os.symlink(os.ttyname(self._slave), fresh)
            os.replace(fresh, self.port)

    def _close_pty(self) -> None:
        for descriptor in (self._master, self._slave):
            if descriptor >= 0:
                os.close(descriptor)
        self._master = self._slave = -1
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.port)

    def _pump(self) -> None:
        board = self._target.stream.fileno()
        while not self._ended.is_set():
            with self._guard:
                master = self._master
            ready, _, _ = select.select([board, *([master] if master >= 0 else [])], [], [], 0.02)
            with self._guard:
                if master in ready and master == self._master:
                    with contextlib.suppress(OSError):
                        self._pass(self.to_board, os.read(master, 4096), board)
                if board in ready:
                    data = os.read(board, 4096)
                    if self._master >= 0:
                        self._pass(self.to_host, data, self._master)

    def _pass(self, spoiler: Spoiler, data: bytes, target: int) -> None:
        data, wait_s = spoiler.spoil(data)
        if wait_s:
            time.sleep(wait_s)
        while data:
            data = data[os.write(target, data):]

    def close(self) -> None:
        """End the relay; the board's port is closed."""
        self._ended.set()
        self._thread.join(patient(2.0))
        with self._guard:
            self._close_pty()
        self._target.close()
        self._folder.cleanup()

    def __enter__(self) -> Relay:
        """Return the relay itself: it is open from its making on."""
        return self

    def __exit__(self, *reason: object) -> None:
        """Close both ends, whatever happened."""
        self.close()
