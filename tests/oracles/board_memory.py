"""What lies in a board's input, output or arena, read over the wire."""

from __future__ import annotations

from made_payloads import ReadReply

from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.frames import PAYLOAD_MAX
from calibration.collecting.wire.session import Session
from calibration.errors import LinkError


def read_memory(session: Session, space: str, offset: int, length: int) -> bytes:
    """Return bytes of the input, output or arena."""
    data = b""
    while len(data) < length:
        count = min(length - len(data), PAYLOAD_MAX - 8)
        where = wire.SPACES[space].to_bytes(4, "little")
        reply = session.request("READ", where + (offset + len(data)).to_bytes(4, "little")
                                + count.to_bytes(4, "little"))
        head = ReadReply.parse(reply)
        piece = reply[ReadReply.LAYOUT.size:]
        if head.length != count or len(piece) != count:
            raise LinkError(f"{session.link.port}: {len(piece)} bytes for {count} asked of READ")
        data += piece
    return data
