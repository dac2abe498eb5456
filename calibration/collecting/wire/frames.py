"""Frames: a header, a payload and a CRC-32, stuffed by COBS and ended by a zero byte."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hwmodels.errors import need_extra
from hwmodels.frozen import frozen

FRAME_MAX = 512
"""Bytes on the line, COBS and delimiter included."""
PAYLOAD_MAX = 480
HEADER = struct.Struct("<BBHHH")
CHECKSUM = struct.Struct("<I")
LOWEST_TYPE = 0x80
"""Frames have types from here on, so that none can be mistaken for text."""
REPLY = 0x01


@frozen
class Frame:
    """One frame.

    Parameters
    ----------
    type
        One of `calibration.collecting.wire.payloads.TYPES`.
    flags
        `REPLY` or 0.
    sequence
        Counts the sender's frames, modulo 65536.
    reply_to
        In a reply, the sequence of the request.
    payload
        At most `PAYLOAD_MAX`.
    """

    type: int
    flags: int = 0
    sequence: int = 0
    reply_to: int = 0
    payload: bytes = b""


class BadFrame(ValueError):
    """A line that is not a frame; `reason`: "long", "coding", "short", "length" or "checksum"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame on the line, its ending zero included."""
    if len(frame.payload) > PAYLOAD_MAX or frame.type < LOWEST_TYPE:
        raise ValueError(f"frame of type {frame.type}, {len(frame.payload)} bytes of payload")
    head = HEADER.pack(frame.type, frame.flags, frame.sequence, frame.reply_to, len(frame.payload))
    body = head + frame.payload
    packed: bytes = _cobs().encode(body + CHECKSUM.pack(zlib.crc32(body)))
    return packed + b"\0"


def decode_frame(line: bytes) -> Frame:
    """Return the frame of a line without its ending zero.

    Raises
    ------
    BadFrame
        Naming the reason.
    """
    cobs = _cobs()
    if len(line) >= FRAME_MAX:
        raise BadFrame("long")
    try:
        body = cobs.decode(line)
    except cobs.DecodeError as error:
        raise BadFrame("coding") from error
    if len(body) < HEADER.size + CHECKSUM.size:
        raise BadFrame("short")
    if zlib.crc32(body[:-CHECKSUM.size]) != CHECKSUM.unpack(body[-CHECKSUM.size:])[0]:
        raise BadFrame("checksum")
    kind, flags, sequence, reply_to, length = HEADER.unpack_from(body)
    if length != len(body) - HEADER.size - CHECKSUM.size:
        raise BadFrame("length")
    return Frame(type=kind, flags=flags, sequence=sequence, reply_to=reply_to,
                 payload=bytes(body[HEADER.size:-CHECKSUM.size]))


def _cobs() -> Any:
    with need_extra("frames of the wire", "cobs", "boards"):
        from cobs import cobs
    return cobs


@dataclass(slots=True)
class FrameReader:
    """Cuts a byte stream into frames; what is none is counted and dropped.

    Parameters
    ----------
    bad
        Lines dropped, by reason.
    text
        Printable lines between frames (a banner, a crash message), the latest bytes only.
    """

    good: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    text: bytearray = field(default_factory=bytearray)
    _pending: bytearray = field(default_factory=bytearray)
    _overlong: bool = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes as they come; yield the frames they complete."""
        *lines, rest = data.split(b"\0")
        for line in lines:
            whole = bytes(self._pending + line)
            self._pending.clear()
            overlong, self._overlong = self._overlong, False
            if overlong:
                self._drop("long")
            elif whole:
                yield from self._take(whole)
        self._pending += rest
        if len(self._pending) >= FRAME_MAX:
            self._overlong = True
            self._keep_text(bytes(self._pending))
            self._pending.clear()

    def _take(self, line: bytes) -> Iterator[Frame]:
        try:
            frame = decode_frame(line)
        except BadFrame as error:
            if _is_text(line):
                self._keep_text(line)
            else:
                self._drop(error.reason)
            return
        self.good += 1
        yield frame

    def _drop(self, reason: str) -> None:
        self.bad[reason] = self.bad.get(reason, 0) + 1

    def _keep_text(self, line: bytes) -> None:
        if _is_text(line):
            self.text += line
            del self.text[:-4096]


def _is_text(line: bytes) -> bool:
    return all(byte in b"\r\n\t" or 0x20 <= byte < 0x7F for byte in line)
