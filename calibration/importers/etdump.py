"""ExecuTorch's ETDump (`etdump.etdp`): ticks of each kernel call, of each execution.

Ticks are those of the platform's `et_pal_current_ticks`: nanoseconds on a host, as a rule the
core's cycles on a microcontroller; the file does not say: clock "timer". An operator's time is that
of OPERATOR_CALL, its kernel and what calls it; views are no calls, so their layers have no figure.

References
----------
pytorch/executorch, devtools/etdump/etdump_schema_flatcc.fbs; runtime/executor/method.cpp.
"""

from __future__ import annotations

import re
from dataclasses import replace

from calibration.errors import MeasurementError
from calibration.importers.log import Log, measurement_of
from calibration.importers.operators import check_operators
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample
from hwmodels.errors import reworded
from hwmodels.flatbuffer import Flatbuffer, FlatbufferError, Table

EXPECTED = "the flatbuffer of an ETDump (identifier ED00)"
IDENTIFIER = b"ED00"

_NAME = re.compile(r"[\w:.]{1,99}")
_CALLS = {"OPERATOR_CALL": "", "DELEGATE_CALL": "delegate"}


def read_log(log: Log) -> Measurement:
    """Read the executions of an ETDump; a layer is the kernel call of that place."""
    start = next((place for place in (0, 4) if log.data[place + 4:place + 8] == IDENTIFIER), None)
    if start is None:
        raise MeasurementError(f"{log.where}: nothing of format etdump; expected {EXPECTED}")
    with reworded(FlatbufferError, MeasurementError, f"{log.where}: damaged: "):
        runs = [[event for entry in run.tables(3) if (event := entry.table(0)) is not None]
                for run in Flatbuffer(log.data, start).root.tables(1)]
        calls = [(whole, found) for run in runs for whole, found in [_read_run(log, run)] if found]
    tags = [tag for tag, _ in calls[0][1]] if calls else []
    for number, (_, found) in enumerate(calls):
        if [tag for tag, _ in found] != tags:
            raise MeasurementError(f"{log.where}: execution {number} runs other kernels than the "
                                   "first; accepted: executions of one method")
    layers = list(range(len(tags)))
    if log.listing is not None:
        named = log.listing.operators
        layers = [place for place in range(len(named)) if place not in log.listing.aliases]
        log.listing = replace(log.listing, operators=tuple(named[place] for place in layers))
    check_operators(log, tags)
    samples = [Sample(run=number, layer=layer, counter="timer_ticks", clock="timer", unit="ticks",
                      value=ticks)
               for number, (whole, found) in enumerate(calls) for layer, ticks in (
                   *([] if whole is None else [(None, whole)]),
                   *zip(layers, [ticks for _, ticks in found], strict=False))]
    return measurement_of(log, samples, runtime="executorch", tags=tags,
                          expected="an execution with OPERATOR_CALL events: a runtime built with "
                                   "the event tracer")


def _read_run(log: Log, events: list[Table]) -> tuple[int | None, list[tuple[str, int]]]:
    """Return ticks of an execution, and name and ticks of each call in it."""
    whole, names = None, {}
    found: list[tuple[str, int]] = []
    for event in events:
        name, place = event.text(0), event.number(2, "i", -1)
        ticks = event.number(7, "Q") - event.number(6, "Q")
        if not _NAME.fullmatch(name) or ticks < 0:
            raise MeasurementError(f"{log.where}: event {name[:60]!r} of {ticks} ticks; accepted: "
                                   "a name, and an end that is not before its start")
        if name.startswith("native_call_"):
            names[place] = name.removeprefix("native_call_").strip("_").partition(".")[0]
        elif name in _CALLS:
            found.append((_CALLS[name] or names.get(place, "unnamed"), ticks))
        elif name == "Method::execute":
            whole = ticks
    return whole, found
