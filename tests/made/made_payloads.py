"""Replies of the firmware that tests alone read; `firmware/protocol/wire.h` has their layouts."""

from __future__ import annotations

from calibration.collecting.wire.payloads import Payload
from hwmodels.frozen import frozen


@frozen
class Checksums(Payload, layout="<4I"):
    """CRC-32 of input, output and constants; runs whose output differed."""

    input: int
    output: int
    weights: int
    mismatches: int


@frozen
class ReadReply(Payload, layout="<II"):
    """Head of a piece of memory."""

    offset: int
    length: int
