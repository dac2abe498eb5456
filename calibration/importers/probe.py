"""What `twin_probe.h` sends: layers a user has marked, as lines of text or as frames.

Epochs of an NPU, which `twin_probe_npu.h` prints, become counters in `probe_epochs`.

Each inference is a run. Lines may stand behind another program's prefix, and between its own; each
has a checksum, and so has each frame. An inference that was cut or damaged is omitted, and that is
said.

References
----------
firmware/probe/twin_probe.h, twin_probe_npu.h; frames: firmware/protocol/SPEC.md, type A0.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from calibration.importers.log import Log, measurement_of
from calibration.importers.operators import check_operators
from calibration.importers.probe_epochs import PHASES, name_epoch, read_epochs
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from hwmodels.frozen import frozen

EXPECTED = 'lines of twin_probe.h, such as "@twin 1 begin run=0 ...", or its frames'

RECORD = 0xA0
"""Type of its frames."""

_LINE = re.compile(r"@(twin 1 (?P<kind>begin|layer|epoch|end) (?P<fields>[ -)+-~]{0,900}))"
                   r"\*(?P<sum>[0-9A-F]{2})")
_STARTED = re.compile(r"@twin 1 ")
_KINDS = ("begin", "layer", "end")
_WORDS = {"begin": ("run", "hz", "cycles", "layers", "lost", "low", "high", "mark"),
          "layer": ("run", "place", "count"), "end": ("run",)}
_NEEDED = {"begin": ("run", "hz", "layers", "lost", "total", "mark", "name", "unit"),
           "layer": ("run", "place", "count", "name"), "end": ("run",),
           "epoch": ("run", "place", "flags", "pre", "core", "post", "bursts")}
_MOST = 1 << 64


@frozen
class Record:
    """One line or frame: "begin", "layer", "epoch", "end", or "damaged".

    Parameters
    ----------
    name
        Of the network or the layer.
    unit
        "cycles" or "ticks", of a "begin".
    """

    kind: str
    numbers: dict[str, int] = field(default_factory=dict)
    name: str = ""
    unit: str = ""


@dataclass(slots=True, kw_only=True)
class _Run:
    head: Record
    names: list[str] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)
    epochs: list[Mapping[str, int]] = field(default_factory=list)
    fault: str = ""
    ended: bool = False

    @property
    def parts(self) -> int:
        """How many layers or epochs came."""
        return len(self.spans) + len(self.epochs)

    @property
    def lack(self) -> str:
        """What keeps it from being whole; empty when nothing does."""
        stated = self.head.numbers
        if self.fault:
            return self.fault
        if not self.ended or self.parts != stated["layers"]:
            return f"has {self.parts} of {stated['layers']} layers"
        if stated["lost"]:
            return f"lost {stated['lost']} marks: raise TWIN_PROBE_" + (
                "NPU_EPOCHS" if self.epochs else "LAYERS")
        spent = sum(self.spans) + sum(epoch[name] for epoch in self.epochs for name in PHASES)
        if spent > stated["total"]:
            return f"has layers of {spent:,} in a total of {stated['total']:,}"
        return ""


def recognise(text: str) -> bool:
    """Whether a text holds lines of the probe."""
    return _LINE.search(text) is not None


@dataclass(slots=True)
class InferenceCount:
    """Inferences in what a line brings, counted as it comes.

    Parameters
    ----------
    started, whole
        How many began, and how many of these came whole.
    broken
        How many have not since the last whole one, that which still comes omitted.
    lack
        What kept the last of them from being whole.

    Notes
    -----
    A line is of frames from its first zero byte on, and what came before is then not counted.
    """

    started: int = 0
    whole: int = 0
    broken: int = 0
    lack: str = ""
    _text: bytearray = field(default_factory=bytearray)
    _frames: _Frames | None = None
    _runs: list[_Run] = field(default_factory=list)

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        if self._frames is None and b"\0" in data:
            data = bytes(self._text) + data
            self._frames = _Frames()
            self.started = self.whole = self.broken = 0
            self._runs.clear()
        for record in self._read(data) if self._frames is None else self._frames.read(data):
            self._take(record)

    def _read(self, data: bytes) -> Iterator[Record]:
        lines, end, rest = data.rpartition(b"\n")
        if not end:
            self._text += data
            return
        text = bytes(self._text) + lines
        self._text[:] = rest
        yield from _read_lines(Log(where="line", text=text.decode("utf-8", "replace")))

    def _take(self, record: Record) -> None:
        before = self._runs[-1] if self._runs else None
        ended = before is None or before.ended
        _gather(self._runs, record)
        if record.kind == "begin":
            self.started += 1
            if before is not None and not ended:
                self._judge(before)
            del self._runs[:-1]
        elif before is not None and before.ended and not ended:
            self._judge(before)

    def _judge(self, run: _Run) -> None:
        if run.lack:
            self.broken, self.lack = self.broken + 1, run.lack
        else:
            self.whole, self.broken = self.whole + 1, 0


def read_log(log: Log) -> Measurement:
    """Read a capture.

    Parameters
    ----------
    log
        Its `data` where that holds zero bytes (frames), else its `text`.

    Returns
    -------
    Measurement
        A run per whole inference.

    Raises
    ------
    MeasurementError
        When none is whole, or two are not of one network.
    """
    found: list[_Run] = []
    for record in _read(log):
        _gather(found, record)
    runs = _choose(log, found)
    first = runs[0] if runs else None
    for run in runs:
        if first is not None and (run.names, run.head.name, run.head.unit) != (
                first.names, first.head.name, first.head.unit):
            log.lack(f"inference {run.head.numbers['run']} has other layers than inference "
                     f"{first.head.numbers['run']}")
    if first is None:
        return measurement_of(log, [], expected=EXPECTED)
    if first.epochs:
        return read_epochs(log, first.head.name, first.head.numbers, [run.epochs for run in runs],
                           totals=[run.head.numbers["total"] for run in runs])
    if first.names:
        check_operators(log, first.names)
    hz = first.head.numbers["hz"]
    cycles = first.head.unit == "cycles"
    samples = [sample for number, run in enumerate(runs) for sample in _samples(number, run, hz)]
    return measurement_of(
        log, samples, expected=EXPECTED, model=first.head.name, tags=first.names,
        clocks_hz=[("cpu" if cycles else "timer", float(hz))] if hz else [],
        environment=[("mark_cost", f"{first.head.numbers['mark']} {first.head.unit}, in each "
                                   "layer")])


def _read(log: Log) -> Iterator[Record]:
    return _Frames().read(log.data + b"\0") if b"\0" in log.data else _read_lines(log)


def _read_lines(log: Log) -> Iterator[Record]:
    for number, line in log.lines():
        found = _LINE.search(line)
        record = None if found is None else _parse(found)
        if record is not None:
            log.take(number)
            yield record
        elif _STARTED.search(line):
            yield Record(kind="damaged")
        else:
            log.take(number)  # the program's own


def _parse(found: re.Match[str]) -> Record | None:
    """Read a line; None when its checksum or a word of it is wrong."""
    total = 0
    for byte in found[1].encode("ascii"):
        total ^= byte
    words = dict(word.partition("=")[::2] for word in found["fields"].split(" ") if word)
    kind = found["kind"]
    if total != int(found["sum"], 16) or set(_NEEDED[kind]) - words.keys():
        return None
    name, unit = words.pop("name", ""), words.pop("unit", "")
    if any(not (value.isdecimal() and len(value) <= 20 and int(value) < _MOST)
           for value in words.values()) or (kind == "begin" and unit not in ("cycles", "ticks")):
        return None
    return Record(kind=kind, name=name, unit=unit,
                  numbers={key: int(value) for key, value in words.items()})


class _Frames:
    """Records of frames, as their bytes come."""

    def __init__(self) -> None:
        from calibration.collecting.wire.frames import FrameReader

        self.reader, self.bad = FrameReader(), 0

    def read(self, data: bytes) -> Iterator[Record]:
        """Yield what these bytes complete; "damaged" for a frame that was dropped."""
        first, *others = data.split(b"\0")
        ended = [first, *filter(None, others[:-1])] if others else []
        for piece in (*(line + b"\0" for line in ended), others[-1] if others else first):
            for frame in self.reader.feed(piece):
                if frame.type == RECORD:
                    yield _unpack(frame.payload)
            if sum(self.reader.bad.values()) > self.bad:
                self.bad = sum(self.reader.bad.values())
                yield Record(kind="damaged")


def _unpack(payload: bytes) -> Record:
    kind = _KINDS[payload[0]] if payload and payload[0] < len(_KINDS) else "damaged"
    names = _WORDS.get(kind, ())
    size = 2 + 4 * len(names)
    if not names or len(payload) < size:
        return Record(kind="damaged")
    numbers = dict(zip(names, struct.unpack_from(f"<{len(names)}I", payload, 2), strict=True))
    unit = ""
    if kind == "begin":
        numbers["total"] = numbers.pop("high") << 32 | numbers.pop("low")
        unit = "cycles" if numbers.pop("cycles") else "ticks"
    return Record(kind=kind, numbers=numbers, unit=unit,
                  name=payload[size:].decode("ascii", "replace"))


def _gather(runs: list[_Run], record: Record) -> None:
    """Put a record into the inference it is of: the last, or one that it begins."""
    last = runs[-1] if runs else None
    if record.kind == "begin":
        runs.append(_Run(head=record))
    elif last is None or last.ended:
        pass  # of an inference that began before the capture
    elif record.kind == "damaged":
        last.fault = last.fault or "has a damaged line"
    elif record.numbers["run"] != last.head.numbers["run"]:
        last.fault = last.fault or "lacks its end"
    elif record.kind == "end":
        last.ended = True
    elif record.numbers["place"] != last.parts:
        last.fault = last.fault or f"lacks layer {last.parts}"
    elif record.kind == "epoch":
        last.names.append(name_epoch(record.numbers))
        last.epochs.append(record.numbers)
    else:
        last.names.append(record.name)
        last.spans.append(record.numbers["count"])


def _choose(log: Log, runs: list[_Run]) -> list[_Run]:
    """Return the whole inferences; where there are some, others are omitted with a warning."""
    whole = [run for run in runs if not run.lack]
    for run in runs:
        if not run.lack:
            continue
        text = f"inference {run.head.numbers['run']} {run.lack}"
        if whole:
            log.remarks.append(f"{text}: it is omitted")
        else:
            log.lack(text)
    return whole


def _samples(number: int, run: _Run, hz: int) -> Iterator[Sample]:
    counter, clock, unit = (("cpu_cycles", "cpu", "cycles") if run.head.unit == "cycles"
                            else ("timer_ticks", "timer", "ticks"))
    places: list[tuple[int | None, int]] = [*enumerate(run.spans),
                                            (None, run.head.numbers["total"])]
    for layer, value in places:
        yield Sample(run=number, layer=layer, counter=counter, clock=clock, unit=unit, value=value)
        if hz:
            yield Sample(run=number, layer=layer, counter="latency", unit="us",
                         value=value / hz * 1e6)
