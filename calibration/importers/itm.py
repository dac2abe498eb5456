"""ITM/SWO captures: DWT event-counter overflows, per layer by marks on a stimulus port.

The DWT counters CPI, EXC, SLEEP, LSU and FOLD are 8 bits wide; each time one passes 256 the DWT
sends a packet. Counting packets gives events in steps of 256: every value is low by up to 255, and
the environment says so. The firmware marks layers on stimulus port 1: the layer's index at its
start, 0xFFFF at the end of the inference. Without any mark the capture is one run of the whole
network; with marks, what passes between inferences belongs to none. An ITM overflow packet means
that others were lost.

References
----------
Armv7-M Architecture Reference Manual (DDI 0403), appendix D4: debug ITM and DWT packet protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calibration.errors import MeasurementError
from calibration.importers.log import Log, measurement_of
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from hwmodels.frozen import frozen

EXPECTED = "DWT event counter packets or layer marks"
MARK_PORT = 1
END_MARK = 0xFFFF
STEP = 256
COUNTERS = ("dwt_cpicnt", "dwt_exccnt", "dwt_sleepcnt", "dwt_lsucnt", "dwt_foldcnt")
"""By bit of an event counter packet, named as a board names them; bit 5 is CYCCNT's tap."""

_FRAME_SYNC = b"\xff\xff\xff\x7f"
"""Starts a frame of the TPIU's formatter; no ITM packet has these bytes as headers."""


@frozen
class Packet:
    """One packet: "sync", "overflow", "timestamp", "software", "hardware", "extension" or "torn".

    Parameters
    ----------
    source
        Stimulus port, or hardware discriminator.
    payload
        Little endian.
    """

    kind: str
    source: int = 0
    payload: bytes = b""
    offset: int


def read_packets(log: Log) -> Iterator[Packet]:
    """Cut a capture into packets.

    Raises
    ------
    MeasurementError
        At a header that is reserved, naming its offset. A packet cut at the end is "torn".
    """
    data, place = log.data, 0
    while place < len(data):
        start, header = place, data[place]
        place += 1
        if header == 0:  # synchronisation: at least 47 zero bits and a one
            while place < len(data) and data[place] == 0:
                place += 1
            if place < len(data) and (data[place] != 0x80 or place - start < 5):
                raise _refuse(log, start, f"{place - start} bytes of zero are no synchronisation")
            place += 1
            yield Packet(kind="sync" if place <= len(data) else "torn", offset=start)
        elif header == 0x70:
            yield Packet(kind="overflow", offset=start)
        elif header & 0x03:
            size = 1 << (header & 3) - 1
            if place + size > len(data):
                yield Packet(kind="torn", offset=start)
                return
            yield Packet(kind="hardware" if header & 4 else "software", source=header >> 3,
                         payload=data[place:place + size], offset=start)
            place += size
        else:
            kind = "timestamp" if header & 0x0F == 0 or header & 0xDF == 0x94 else "extension"
            if header & 0x0F == 0x04 and header & 0xDF != 0x94:
                raise _refuse(log, start, f"header 0x{header:02x} is reserved; is this a capture "
                                          "of the ITM, without TPIU framing?")
            while header & 0x80 and place < len(data) and data[place] & 0x80:
                place += 1
            place += bool(header & 0x80)
            yield Packet(kind=kind if place <= len(data) else "torn", source=header >> 4 & 7,
                         offset=start, payload=data[start + 1:place])


def _refuse(log: Log, offset: int, why: str) -> MeasurementError:
    return MeasurementError(f"{log.where}: byte {offset}: {why}")


@dataclass(slots=True, kw_only=True)
class _Counting:
    """Where in the inferences the capture is, and what was counted there."""

    totals: dict[tuple[int, int | None, str], int]
    marked: bool
    run: int = 0
    layer: int | None = None
    marks: int = 0
    outside: int = 0

    def mark(self, value: int) -> None:
        """Enter a layer, or leave the inference."""
        if value == END_MARK:
            self.run, self.layer = self.run + (self.layer is not None), None
            return
        self.layer = value
        self.marks += 1
        for name in COUNTERS:
            for place in (value, None):
                self.totals.setdefault((self.run, place, name), 0)

    def count(self, bits: int) -> None:
        """Count one event counter packet."""
        if self.marked and self.layer is None:
            self.outside += 1
            return
        for bit, name in enumerate(COUNTERS):
            if bits >> bit & 1:
                for place in {self.layer, None}:
                    key = (self.run, place, name)
                    self.totals[key] = self.totals.get(key, 0) + STEP


def read_log(log: Log) -> Measurement:
    """Read a capture.

    Parameters
    ----------
    log
        Its `data`; one that ends within an inference is incomplete.

    Returns
    -------
    Measurement
        A run per inference.

    Raises
    ------
    MeasurementError
        For framed or damaged captures, naming the byte.
    """
    if _FRAME_SYNC in log.data:
        raise _refuse(log, log.data.index(_FRAME_SYNC), "a frame of the TPIU; capture SWO without "
                                                        "its formatter, or take the frames off")
    packets = list(read_packets(log))
    marks = [packet for packet in packets if packet.kind == "software"
             and packet.source == MARK_PORT]
    counting = _Counting(totals={}, marked=bool(marks))
    for packet in packets:
        if packet.kind == "software" and packet.source == MARK_PORT:
            counting.mark(int.from_bytes(packet.payload, "little") & 0xFFFF)
        elif packet.kind == "hardware" and packet.source == 0 and len(packet.payload) == 1:
            counting.count(packet.payload[0])
    lost = sum(packet.kind == "overflow" for packet in packets)
    if lost:
        log.remarks.append(f"{lost} times packets were lost: counts are low")
    if counting.outside:
        log.remarks.append(f"{counting.outside} event packets between inferences are omitted")
    if packets and packets[-1].kind == "torn":
        log.remarks.append(f"the last packet, at byte {packets[-1].offset}, is cut")
    if counting.layer is not None:
        log.lack(f"the capture ends within layer {counting.layer} of inference {counting.run}")
    samples = [Sample(run=at, layer=place, counter=name, unit="events", value=value)
               for (at, place, name), value in counting.totals.items()]
    return measurement_of(log, samples, expected=EXPECTED, environment=[
        ("resolution", f"{STEP} events"), ("layer_marks", str(counting.marks)),
        ("lost_packets", str(lost))])
