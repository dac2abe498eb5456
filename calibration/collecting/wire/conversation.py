"""A conversation with a board: requests answered once, whatever the line loses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from calibration.collecting.deadline import Deadline
from calibration.collecting.link import Link
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.frames import FRAME_MAX, REPLY, Frame, FrameReader, encode_frame
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
MOST_LOG_LINES = 100
"""Lines of a board's log that a session passes on."""

Reply = TypeVar("Reply", bound=wire.Payload)


class Conversation:
    """Requests and answers of one session with one board.

    Parameters
    ----------
    link
        Open; the session never closes it.
    number
        Session number; chosen at random by default.
    on_event
        Called with a sentence on retries, lost links and log lines of the board.
    return_s
        How long a lost line is waited for; 0 is never. An emulator's line does not come back, and
        its name may soon be another's.

    Notes
    -----
    A request is sent again, with its sequence number, when a spoilt frame comes in its stead or an
    attempt passes without an answer (four times what answers took lately, then doubling); the
    board answers a repeated request from memory. After a lost line the session is resumed; what
    was asked then is asked again, unless `once` forbids it.
    """

    def __init__(self, link: Link, *, number: int | None = None,
                 on_event: Callable[[str], None] | None = None, return_s: float = RETURN_S) -> None:
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
        return reply

    def request(self, name: str, payload: bytes = b"", *, timeout_s: float = REPLY_S,
                attempt_s: float | None = None, once: bool = False) -> bytes:
        """Ask and return the payload of the answer.

        Parameters
        ----------
        name
            Key of `TYPES`.
        timeout_s
            Longest wait in all.
        attempt_s
            Wait before the request is first sent again.
        once
            Never ask again after a lost line; raises LinkResumedError instead.

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
