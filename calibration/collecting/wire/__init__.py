"""The wire format of the firmware, as the host speaks it; `firmware/protocol/wire.h` rules."""

from calibration.collecting.wire.frames import Frame, FrameReader, encode_frame
from calibration.collecting.wire.session import Session

__all__ = ["Frame", "FrameReader", "Session", "encode_frame"]
