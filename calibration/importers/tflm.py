"""TensorFlow Lite Micro's MicroProfiler: `X took N ticks`, its CSV, and its table per tag.

Ticks are those of the platform's `GetCurrentTimeTicks`: clock "timer". Each repetition of the log
is a run; an event's place in it is its layer. The table per tag has no layers: its lines become
counters `ticks_<tag>` of the whole network.

References
----------
tensorflow/lite/micro/micro_profiler.cc: Log, LogCsv, LogTicksPerTagCsv.
"""

from __future__ import annotations

import re

from calibration.errors import MeasurementError
from calibration.importers.log import count, measurement_of
from calibration.measurement import Measurement
from calibration.sample import Sample

_TEXT = re.compile(r"\s*(?P<tag>\S.*?) took (?P<ticks>\d+) ticks \((?P<ms>\d+) ms\)\.?\s*$")
_HEADER = re.compile(r'\s*"?Event"?\s*,\s*"?Tag"?\s*,\s*"?Ticks"?', re.IGNORECASE)
_ROW = re.compile(r"\s*(?P<event>\d+)\s*,\s*(?P<tag>[^,]+?)\s*,\s*(?P<ticks>\d+)\s*(,.*)?$")
_TAG_HEADER = re.compile(r'\s*"?Unique Tag"?\s*,', re.IGNORECASE)
_TAG_ROW = re.compile(r'\s*"?(?P<tag>[^",]+?)"?\s*,\s*(?P<ticks>\d+)\s*$')
_TOTAL = "total number of ticks"


def read_log(text: str, where: str) -> Measurement:
    """Read a profiler's log; raises MeasurementError when nothing in it is one."""
    samples: list[Sample] = []
    tags: list[str] = []
    table = ""
    run, layer = -1, 0
    for number, line in enumerate(text.splitlines(), start=1):
        if _HEADER.match(line) or _TAG_HEADER.match(line):
            table = "events" if _HEADER.match(line) else "tags"
            run, layer = run + 1, 0
            continue
        match = _TEXT.match(line)
        if match:
            if table != "text":
                table, run, layer = "text", run + 1, 0
        elif table == "events":
            match = _ROW.match(line)
            if match and int(match["event"]) != layer:
                raise MeasurementError(f"{where}:{number}: event {match['event']} where {layer} is "
                                       "due; is the log complete?")
        elif table == "tags":
            match = _TAG_ROW.match(line)
        if match is None:
            table = table if table == "events" and not line.strip() else ""
            continue
        ticks = count(match["ticks"], where, number)
        if table == "tags":
            name = "ticks" if match["tag"] == _TOTAL else f"ticks_{match['tag'].strip()}"
            samples.append(Sample(run=run, counter=name, clock="timer", unit="ticks", value=ticks))
        else:
            tags += [match["tag"].strip()] if run == 0 else []
            samples.append(Sample(run=run, layer=layer, counter="ticks", clock="timer",
                                  unit="ticks", value=ticks))
            layer += 1
    return measurement_of(samples, where, runtime="tflm", tags=tags,
                          expected='lines like "CONV_2D took 224622 ticks (8 ms)."')
