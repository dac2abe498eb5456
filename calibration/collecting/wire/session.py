"""A conversation with a board: requests answered once, whatever the line loses."""

from __future__ import annotations

import contextlib
import random
import time
import zlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from calibration.collecting.deadline import Deadline
from calibration.collecting.link import Link
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.frames import (
    FRAME_MAX,
    PAYLOAD_MAX,
    REPLY,
    Frame,
    FrameReader,
    encode_frame,
)
from calibration.errors import (
    BoardRefusedError,
    BoardRestartedError,
    LinkError,
    LinkLostError,
    LinkResumedError,
    LinkTimeoutError,
)
from hwmodels.errors import tell_in_one_line

FIRST_ATTEMPT_S = 0.25
SHORTEST_ATTEMPT_S = 0.02
LONGEST_ATTEMPT_S = 2.0
EARLY_RETRIES = 8
"""Attempts of one request cut short because what came back was spoilt."""
REPLY_S = 5.0
"""Longest wait for an answer that needs no inference."""
RETURN_S = 30.0
"""How long a pulled cable is waited for."""
MOST_RESUMPTIONS = 5
"""Times a line may be lost and come back during one request."""
MOST_COUNTERS = 256
"""That a sample can number."""
MOST_SAMPLES = 1 << 16
"""That a board keeps: a MiB of them."""
SPARE_CHUNKS = 16
"""By which an input may go on where it was before, beside once for each of its chunks."""
MOST_LOG_LINES = 100
"""Lines of a board's log that a session passes on."""

Reply = TypeVar("Reply", bound=wire.Payload)


class Session:
    """One session with one board.

    Parameters
    ----------
    link : Link
        Open; the session never closes it.
    number : int, optional
        Session number; chosen at random by default.
    on_event : callable, optional
        Told, in a sentence, of retries, lost links and log lines of the board.
    return_s : float
        How long a lost line is waited for; 0 is never. An emulator's line does not come back, and
        its name may soon be another's.

    Notes
    -----
    A request is sent again, with its sequence number, when a spoilt frame comes in its stead or an
    attempt passes without an answer (four times what answers took lately, then doubling); the
    board answers a repeated request from memory. After a lost line the session is resumed; what
    was asked then is asked anew, unless `once` forbids it.
    """

    def __init__(self, link: Link, *, number: int | None = None,
                 on_event: Callable[[str], None] | None = None,
                 return_s: float = RETURN_S) -> None:
        self.link = link
        self.number = number or random.SystemRandom().randrange(1, 1 << 32)
        self.reader = FrameReader()
        self.retries = 0
        self.resumptions = 0
        self._usual_s = FIRST_ATTEMPT_S / 4
        self.return_s = return_s
        self._on_event = on_event or (lambda text: None)
        self._logged = 0
        self._sequence = random.SystemRandom().randrange(1 << 16)
        self.hello_reply: wire.HelloReply | None = None

    def open(self, timeout_s: float = REPLY_S) -> wire.HelloReply:
        """Begin the session, or resume it.

        Raises
        ------
        LinkTimeoutError
            When nothing answers.
        LinkError
            When the board's version and ours have nothing in common.
        """
        self.link.write(b"\0")  # ends whatever the line held before
        try:
            data = self._exchange("HELLO", wire.Hello(session=self.number).pack(), timeout_s)
        except BoardRefusedError as error:
            if error.code == wire.ERRORS["VERSION"]:
                raise LinkError(f"{self.link.port}: the firmware speaks protocol version "
                                f"{error.detail}; accepted: {wire.OLDEST} to {wire.VERSION}. "
                                "Build and flash it again") from error
            raise
        reply = wire.HelloReply.parse(data)
        if reply.oldest > wire.VERSION or reply.version < wire.OLDEST:
            raise LinkError(f"{self.link.port}: the firmware speaks protocol versions "
                            f"{reply.oldest} to {reply.version}; accepted: {wire.OLDEST} to "
                            f"{wire.VERSION}. Build and flash it again")
        self.hello_reply = reply
        return reply

    def request(self, name: str, payload: bytes = b"", *, timeout_s: float = REPLY_S,
                attempt_s: float | None = None, once: bool = False) -> bytes:
        """Ask and return the payload of the answer.

        Parameters
        ----------
        name : str
            Key of `TYPES`.
        payload : bytes
            Of the request.
        timeout_s : float
            Longest wait in all.
        attempt_s : float, optional
            Wait before the request is first sent again.
        once : bool
            Never ask anew after a lost line; raises LinkResumedError instead.

        Raises
        ------
        LinkTimeoutError
            When no answer came in time.
        LinkLostError
            When the line did not come back, or was lost `MOST_RESUMPTIONS` times.
        BoardRestartedError
            When the board has forgotten the session.
        BoardRefusedError
            When it answers with an error.
        """
        lost = 0
        while True:
            try:
                return self._exchange(name, payload, timeout_s, attempt_s)
            except LinkLostError as error:
                lost += 1
                if self.return_s <= 0 or lost > MOST_RESUMPTIONS:
                    raise
                self._on_event(f"{error}; waiting for it to come back")
                self.resume()
                if once:
                    raise LinkResumedError(f"{self.link.port} was lost during {name} and is "
                                           "back") from error
            except BoardRefusedError as error:
                if error.code == wire.ERRORS["SESSION"]:
                    raise BoardRestartedError(f"{self.link.port}: the board has restarted") \
                        from error
                raise

    def resume(self) -> None:
        """Open the line again and resume the session.

        Raises
        ------
        LinkLostError
            When the line does not come back.
        BoardRestartedError
            When the board no longer knows the session.
        """
        deadline = Deadline(self.return_s)
        while True:
            self.link.reopen(max(deadline.left_s, 0.05))
            self.reader = FrameReader(good=self.reader.good, bad=self.reader.bad)
            try:
                reply = self.open()
                break
            except LinkLostError:
                if deadline.passed:
                    raise
        self.resumptions += 1
        if not reply.resumed:
            raise BoardRestartedError(f"{self.link.port}: the board has lost the session")
        self._on_event(f"{self.link.port} is back; the session goes on")

    def _exchange(self, name: str, payload: bytes, timeout_s: float,
                  attempt_s: float | None = None) -> bytes:
        kind = wire.TYPES[name]
        self._sequence = (self._sequence + 1) & 0xFFFF
        line = encode_frame(Frame(type=kind, sequence=self._sequence, payload=payload))
        early = EARLY_RETRIES if attempt_s is None else 0
        wait_s = attempt_s or min(max(4 * self._usual_s, SHORTEST_ATTEMPT_S), FIRST_ATTEMPT_S)
        wait_s += (len(line) + FRAME_MAX) * self.link.byte_s
        deadline = Deadline(timeout_s)
        attempts = 0
        while True:
            self.link.write(b"\0" + line if attempts else line)
            attempts += 1
            begin = time.monotonic()
            spoilt = sum(self.reader.bad.values())
            reply = self._await(kind, begin + min(deadline.left_s, wait_s), attempts <= early)
            if reply is not None:
                if attempts == 1 and attempt_s is None:
                    self._usual_s += (time.monotonic() - begin - self._usual_s) / 8
                return reply
            if deadline.passed:
                raise LinkTimeoutError(
                    f"{self.link.port}: no answer to {name} within {deadline.wait_s:g} s "
                    f"({attempts} attempts){self._last_text()}")
            self.retries += 1
            if sum(self.reader.bad.values()) == spoilt:
                wait_s = min(2 * wait_s, max(LONGEST_ATTEMPT_S, wait_s))

    def _last_text(self) -> str:
        text = bytes(self.reader.text[-200:]).decode("ascii", "replace").strip()
        if "@twin" in text:
            return "; it runs a program of its own with twin_probe.h: --probe listens to it"
        return f"; the board last wrote {text!r}" if text else ""

    def _await(self, kind: int, until: float, early: bool) -> bytes | None:
        """Payload of the answer to the request just sent; None when it does not come.

        With `early`, also as soon as a frame came that was spoilt: it may have been the answer.
        """
        spoilt = sum(self.reader.bad.values())
        while True:
            if early and sum(self.reader.bad.values()) > spoilt:
                return None
            left = until - time.monotonic()
            if left <= 0:
                return None
            for frame in self.reader.feed(self.link.read(left)):
                if frame.type == wire.TYPES["LOG"]:
                    self._tell_log(frame.payload)
                elif frame.flags & REPLY and frame.reply_to == self._sequence:
                    if frame.type == kind:
                        return frame.payload
                    if frame.type == wire.TYPES["ERROR"]:
                        raise self._refusal(wire.ErrorReply.parse(frame.payload))

    def _tell_log(self, payload: bytes) -> None:
        """Pass a line of the board's log on, which may say anything, and as often as it likes."""
        self._logged += 1
        if self._logged <= MOST_LOG_LINES:
            self._on_event("board: " + tell_in_one_line(payload.decode("ascii", "replace")))
        elif self._logged == MOST_LOG_LINES + 1:
            self._on_event(f"the board wrote {MOST_LOG_LINES} lines; further ones are not shown")

    def _refusal(self, reply: wire.ErrorReply) -> BoardRefusedError:
        name = next((key for key, value in wire.TYPES.items() if value == reply.type), "?")
        text = wire.ERROR_TEXTS.get(reply.code, f"error {reply.code}")
        return BoardRefusedError(f"{self.link.port}: the board refuses {name}: "
                                 + text.format(detail=reply.detail), reply.code, reply.detail)

    def ask(self, name: str, reply: type[Reply], payload: bytes = b"") -> Reply:
        """Ask and parse the answer."""
        return reply.parse(self.request(name, payload))

    def identify(self) -> wire.Identity:
        """Return part, image and model."""
        return self.ask("IDENTIFY", wire.Identity)

    def counters(self) -> tuple[wire.Counter, ...]:
        """Return the counters the board lists, in its numbering."""
        found: list[wire.Counter] = []
        while True:
            data = self.request("COUNTERS", wire.Listing(first=len(found), count=0).pack())
            entries = _entries(data, wire.Listing.parse(data).count, wire.Listing, wire.Counter)
            if not entries and not found:
                raise LinkError(f"{self.link.port}: the board lists no counter")
            if not entries:
                return tuple(found)
            found += entries
            if len(found) > MOST_COUNTERS:
                raise LinkError(f"{self.link.port}: the board lists more than {MOST_COUNTERS} "
                                "counters")

    def layer(self, index: int) -> wire.Layer:
        """Return one entry of the call list."""
        return wire.Layer.parse(self.request("LAYER", wire.Listing(first=index, count=0).pack()))

    def load(self, data: bytes, progress: Callable[[int], None] | None = None) -> None:
        """Send the input, going on where the board says.

        Raises
        ------
        LinkError
            When what arrived is not what was sent.
        """
        chunk = PAYLOAD_MAX - 4
        reply = self.ask("LOAD", wire.LoadReply, _offset(0) + data[:chunk])
        asked, most = 0, 2 * (len(data) // chunk) + SPARE_CHUNKS
        while reply.next < len(data):
            here = reply.next
            asked += 1
            if asked > most:
                raise LinkError(f"{self.link.port}: the board has {here:,} of {len(data):,} bytes "
                                f"of the input after {asked:,} requests")
            try:
                reply = self.ask("LOAD", wire.LoadReply, _offset(here) + data[here:here + chunk])
            except BoardRefusedError as error:
                if error.code != wire.ERRORS["OFFSET"] or error.detail >= here:
                    raise
                reply = wire.LoadReply(next=error.detail, checksum=0)
            if progress is not None:
                progress(reply.next)
        if reply.checksum != zlib.crc32(data):
            raise LinkError(f"{self.link.port}: the input arrived with CRC {reply.checksum:08x}, "
                            f"{zlib.crc32(data):08x} was sent")

    def configure(self, *, warmup: int = 0, flags: int = 0, events: tuple[int, ...] = (),
                  repeat_layer: int = wire.NO_LAYER, repeat: int = 1,
                  timeout_s: float = 60.0) -> wire.ConfigReply:
        """Say what the next runs do; forgets the samples and prepares the model again."""
        payload = wire.Config(warmup=warmup, flags=flags, events=len(events),
                              repeat_layer=repeat_layer, repeat=repeat,
                              event=wire.Config.pack_events(events)).pack()
        return wire.ConfigReply.parse(self.request("CONFIG", payload, timeout_s=timeout_s))

    def run(self, first_run: int, runs: int, *, timeout_s: float,
            expected_s: float = 0.0) -> wire.RunReply:
        """Make runs; a lost line that came back raises LinkResumedError.

        Notes
        -----
        A byte on the line ends the block early, so the request is sent again only when the block
        is overdue by as much as it should last.
        """
        payload = wire.Run(first_run=first_run, runs=runs).pack()
        return wire.RunReply.parse(self.request(
            "RUN", payload, timeout_s=timeout_s, attempt_s=2 * expected_s + 1.0, once=True))

    def samples(self, first: int = 0) -> Iterator[tuple[int, tuple[wire.RawSample, ...]]]:
        """Yield the number of the first of some samples, and these, until there are no more.

        Raises
        ------
        LinkError
            When the board sends others than it was asked for, or more than boards keep.
        """
        last = min(first + MOST_SAMPLES, 1 << 32)
        while first < last:
            try:
                data = self.request("SAMPLES", first.to_bytes(4, "little"))
            except BoardRefusedError as error:
                if error.code != wire.ERRORS["OFFSET"] or error.detail <= first:
                    raise
                first = error.detail  # an answer that forgot them was lost with the line
                continue
            head = wire.SamplesReply.parse(data)
            entries = _entries(data, head.count, wire.SamplesReply, wire.RawSample)
            if not entries:
                return
            if head.first < first:
                raise LinkError(f"{self.link.port}: the board sent samples from {head.first} on, "
                                f"asked for those from {first}")
            yield head.first, tuple(entries)
            first = head.first + len(entries)
        raise LinkError(f"{self.link.port}: the board has no end of samples, asked up to "
                        f"number {first:,}")

    def read_memory(self, space: str, offset: int, length: int) -> bytes:
        """Return bytes of the input, output or arena."""
        data = b""
        while len(data) < length:
            count = min(length - len(data), PAYLOAD_MAX - 8)
            where = wire.SPACES[space].to_bytes(4, "little")
            reply = self.request("READ", where + (offset + len(data)).to_bytes(4, "little")
                                 + count.to_bytes(4, "little"))
            head = wire.ReadReply.parse(reply)
            piece = reply[wire.ReadReply.LAYOUT.size:]
            if head.length != count or len(piece) != count:
                raise LinkError(f"{self.link.port}: {len(piece)} bytes for {count} asked of READ")
            data += piece
        return data

    def stop(self) -> None:
        """Leave the board idle and end the session; never raises for a line that is gone."""
        with contextlib.suppress(LinkError):
            self._exchange("IDLE", b"", REPLY_S)
            self._exchange("BYE", b"", 1.0)


def _offset(offset: int) -> bytes:
    return offset.to_bytes(4, "little")


def _entries(data: bytes, count: int, head: type[wire.Payload],
             entry: type[Reply]) -> list[Reply]:
    start, size = head.LAYOUT.size, entry.LAYOUT.size
    if len(data) < start + count * size:
        raise LinkError(f"the board announces {count} entries of {entry.__name__} in "
                        f"{len(data)} bytes")
    return [entry.parse(data[start + i * size:]) for i in range(count)]
