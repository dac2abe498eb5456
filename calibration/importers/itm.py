"""ITM/SWO captures: DWT event-counter overflows, per layer by marks on a stimulus port.

The DWT counters CPI, EXC, SLEEP, LSU and FOLD are 8 bits wide; each time one passes 256 the DWT
sends a packet. Counting packets gives events in steps of 256: every value is low by up to 255, and
the environment says so. The firmware marks layers on stimulus port 1: the layer's index at its
start, 0xFFFF at the end of the inference. An ITM overflow packet means that others were lost.

References
----------
Armv7-M Architecture Reference Manual (DDI 0403), appendix D4: debug ITM and DWT packet protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calibration.errors import MeasurementError
from calibration.importers.log import measurement_of
from calibration.measurement import Measurement
from calibration.sample import Sample

MARK_PORT = 1
END_MARK = 0xFFFF
STEP = 256
COUNTERS = ("dwt_cpi", "dwt_exception", "dwt_sleep", "dwt_lsu", "dwt_fold")
"""By bit of an event counter packet; bit 5 is CYCCNT's tap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One packet: kind "sync", "overflow", "timestamp", "software", "hardware" or "extension".

    Parameters
    ----------
    source : int
        Stimulus port, or hardware discriminator.
    payload : bytes
        Little endian.
    offset : int
        In the capture.
    """

    kind: str
    source: int = 0
    payload: bytes = b""
    offset: int


def read_packets(data: bytes, where: str) -> Iterator[Packet]:
    """Cut a capture into packets.

    Raises
    ------
    MeasurementError
        At a header that is reserved, naming its offset. A packet torn at the end is left out.
    """
    place = 0
    while place < len(data):
        start, header = place, data[place]
        place += 1
        if header == 0:  # synchronisation: at least 47 zero bits and a one
            while place < len(data) and data[place] == 0:
                place += 1
            if place < len(data) and data[place] == 0x80 and place - start >= 5:
                place += 1
            yield Packet(kind="sync", offset=start)
        elif header == 0x70:
            yield Packet(kind="overflow", offset=start)
        elif header & 0x03:
            size = 1 << (header & 3) - 1
            if place + size > len(data):
                return
            yield Packet(kind="hardware" if header & 4 else "software", source=header >> 3,
                         payload=data[place:place + size], offset=start)
            place += size
        elif header & 0x0F in (0x00, 0x04, 0x08, 0x0C):
            kind = "timestamp" if header & 0x0F == 0 or header & 0xDF == 0x94 else "extension"
            if header & 0x0F == 0x04 and header & 0xDF != 0x94:
                raise MeasurementError(f"{where}: byte {start}: header 0x{header:02x} is reserved; "
                                       "is this a capture of the ITM, without TPIU framing?")
            while header & 0x80 and place < len(data) and data[place] & 0x80:
                place += 1
            place += bool(header & 0x80)
            yield Packet(kind=kind, source=header >> 4 & 7, offset=start,
                         payload=data[start + 1:place])


def read_log(data: bytes, where: str) -> Measurement:
    """Read a capture; layers before the first mark, or without any, are the whole network."""
    totals: dict[tuple[int, int | None, str], int] = {}
    run, layer = 0, None
    marks = lost = 0
    for packet in read_packets(data, where):
        if packet.kind == "overflow":
            lost += 1
        elif packet.kind == "software" and packet.source == MARK_PORT:
            value = int.from_bytes(packet.payload, "little")
            run, layer = (run + 1, None) if value & 0xFFFF == END_MARK else (run, value)
            if layer is not None:
                marks += 1
                for name in COUNTERS:
                    totals.setdefault((run, layer, name), 0)
        elif packet.kind == "hardware" and packet.source == 0:
            for bit, name in enumerate(COUNTERS):
                if packet.payload[0] >> bit & 1:
                    for place in {layer, None}:
                        key = (run, place, name)
                        totals[key] = totals.get(key, 0) + STEP
    samples = [Sample(run=at, layer=place, counter=name, unit="events", value=value)
               for (at, place, name), value in totals.items()]
    return measurement_of(samples, where, expected="DWT event counter packets or layer marks",
                          environment=[("resolution", f"{STEP} events"),
                                       ("layer_marks", str(marks)), ("lost_packets", str(lost))])
