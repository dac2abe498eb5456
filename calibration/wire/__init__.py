"""The wire format of the firmware, as the host speaks it; `firmware/protocol/wire.h` rules."""

from calibration.wire.frames import Frame, FrameReader, encode_frame
from calibration.wire.session import Session

__all__ = ["Frame", "FrameReader", "Session", "encode_frame"]
