"""Public log formats read into measurements, one module per format.

imported = import_log("npu-profiler", path)
imported.measurement, imported.unread
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from calibration.errors import IncompleteLogError, MeasurementError
from calibration.importers.listing import Listing
from calibration.importers.log import UNKNOWN, Log
from calibration.measurement.measurement import TICKS_BY_MS, Measurement
from calibration.measurement.sample import Header, Sample
from hwmodels.board.file import find_board, list_boards, load_board
from hwmodels.errors import check_known, reworded
from hwmodels.extensions import blamed, find_entries, load_entry, take
from hwmodels.files import read_regular
from hwmodels.frozen import frozen

FORMATS: Mapping[str, str] = {
    "etdump": "etdump", "ethos-u": "ethos_u", "itm": "itm", "mlperf-tiny": "mlperf_tiny",
    "mltk": "mltk", "neuralspot": "neuralspot", "npu-profiler": "neural_art_profiler",
    "perf-stat": "perf_stat", "probe": "probe", "st-edge-ai": "st_edge_ai", "tflm": "tflm",
    "vela": "vela", "x-cube-ai": "st_edge_ai", "zephyr": "zephyr",
}
"""Formats by the name a command gives them, and the module that reads each."""

BINARY = ("etdump", "itm")
"""Formats that are not text."""

FRAMED = ("probe",)
"""Formats that are text, or frames between zero bytes."""

_COLOURS = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
"""Escape sequences of a terminal, which a monitor or a shell writes around lines."""

_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""What UTF-16 begins with, as a PowerShell redirection writes it."""

_SAME_CLOCK = 1e-3
"""How far apart two statements of one clock may be, relative."""

_TICK_SLACK = 0.02
"""Beyond the bounds of rounded milliseconds, relative."""

_TIME_SLACK = 1e-3
"""Of the longest time in a log: as much as a shorter one may be rounded by."""

_CLOCKED = (("cpu_cycles", "cpu"), ("timer_ticks", "timer"), ("npu_cycles", "npu"))
"""What a clock turns into time, and which clock."""

_PART = re.compile(r"STM32[A-Z]{1,2}\d", re.IGNORECASE)


LARGEST_LOG_BYTES = 1 << 26
"""A board writes it by a serial line; published ones have a thousandth of it."""


@frozen
class Imported:
    """A log as a measurement, and what of the log that leaves out.

    Parameters
    ----------
    measurement
        Its source the file; of kind "measured", or "predicted" for an estimate.
    lines
        Of the log, those that say something.
    unread : tuple of (int, str)
        Number and text of the lines that were not understood.
    remarks
        What to know before using it.
    clocked
        Whether it counts no ticks, or says itself about how long they are.
    """

    measurement: Measurement
    lines: int
    unread: tuple[tuple[int, str], ...]
    remarks: tuple[str, ...]
    clocked: bool = True


def import_log(form: str, path: str | Path, *, board: str | None = None, model: str | None = None,
               clock_hz: float | None = None, cpu_hz: float | None = None,
               runtime: str | None = None, listing: Listing | None = None,
               partial: bool = False, anyway: bool = False) -> Imported:
    """Read a log of a public tool.

    Parameters
    ----------
    form
        One of `FORMATS`.
    board, model
        Where the log does not say, or says it in other words.
    clock_hz
        Of what the log counts: cycles of "cpu", or ticks of "timer". Latencies follow from it
        where the log has none.
    cpu_hz
        Clock of the core, where the log does not say.
    runtime
        Library the log is of, in place of what the log says.
    listing
        Operators of the network: what the log lists must be these.
    partial
        Take an incomplete log for what it has.
    anyway
        Take the clocks and the board that are given where the log says others.

    Returns
    -------
    Imported
        The measurement, and the lines that were not understood.

    Raises
    ------
    MeasurementError
        For an unknown format, a log of another format (naming it), one that is damaged or
        incomplete, or what contradicts it; names file and line.
    """
    reader = _reader(form)
    log = _open_log(form, reader, Path(path), partial, listing)
    found = _read_measurement(form, reader, log)
    before = len(log.remarks)
    log.check_end()
    found = _check_ticks(log, found, clock_hz, anyway)
    found = replace(found, header=_remark(found.header, log.remarks[before:]))
    notes = [] if board is None else _check_part(found.header, board, anyway)
    measurement = _complete(found, board, model, clock_hz, anyway)
    notes += _check_times(measurement, anyway)
    if form == "ethos-u" and clock_hz is None:
        notes.append("cycles of the NPU become times by --clock, its own")
    header = measurement.header
    if runtime is not None:
        header = replace(header, runtime=runtime)
    if cpu_hz is not None:
        header = _with_clock(header, "cpu", cpu_hz, anyway)
    notes += _check_fastest(header, anyway)
    log.remarks += notes
    measurement = replace(measurement, header=_remark(header, notes))
    return Imported(measurement=measurement, lines=sum(1 for _ in log.lines()), unread=log.unread,
                    remarks=tuple(dict.fromkeys(log.remarks)),
                    clocked="timer_ticks" not in found.counters or "timer" in found.header.clocks
                    or math.isfinite(log.tick_hz[1]))


def _reader(form: str) -> ModuleType:
    """Return the module that reads a format: `recognise`, `EXPECTED`, `read_log`."""
    if form in FORMATS:
        return import_module(f"calibration.importers.{FORMATS[form]}")
    check_known("no importer for", form, list(dict.fromkeys((
        *FORMATS, *find_entries("twin.importers")))), MeasurementError)
    for name in ("recognise", "EXPECTED", "read_log"):
        take("twin.importers", form, name)
    module: ModuleType = load_entry("twin.importers", form)
    return module


def _blamed(form: str) -> AbstractContextManager[None]:
    """Blame an extension for what its reader does; our own are not caught."""
    return nullcontext() if form in FORMATS else blamed("twin.importers", form)


def _open_log(form: str, reader: ModuleType, path: Path, partial: bool,
              listing: Listing | None) -> Log:
    """Return a file as the log of a format; refuse one that is none of it."""
    data = _read_bytes(path)
    if form in BINARY or (form in FRAMED and b"\0" in data):
        return Log(where=str(path), data=data, partial=partial, listing=listing)
    try:
        log = Log(where=str(path), partial=partial, listing=listing, text=_COLOURS.sub(
            "", data.decode("utf-16" if data[:2] in _WIDE else "utf-8-sig")))
    except UnicodeDecodeError as error:
        raise MeasurementError(f"{path}: no readable log (byte {error.start} is not UTF-8)"
                               ) from error
    with _blamed(form):
        _check_format(form, reader, log)
    return log


def _read_measurement(form: str, reader: ModuleType, log: Log) -> Measurement:
    """Return what a format's reader makes of a log."""
    with _blamed(form):
        try:
            found = reader.read_log(log)
        except IncompleteLogError as error:
            raise _advise(error, reader, log) from error
        if not isinstance(found, Measurement):
            raise TypeError(f"read_log returned {type(found).__name__}; accepted: Measurement")
    return found


def _read_bytes(path: Path) -> bytes:
    with reworded(OSError, MeasurementError, f"{path}: no readable log (", ")"):
        return read_regular(path, LARGEST_LOG_BYTES)


def _check_format(form: str, reader: ModuleType, log: Log) -> None:
    """Refuse the log of another tool, naming the format that reads it."""
    recognise: Callable[[str], bool] = reader.recognise
    if recognise(log.text):
        return
    others = [name for name, module in FORMATS.items()
              if name not in BINARY and module != FORMATS.get(form)
              and _reader(name).recognise(log.text)]
    hint = f"; it looks like {' or '.join(others)}: twin import {others[0]} {log.where}" \
        if others else ""
    raise MeasurementError(f"{log.where}: nothing of format {form}; expected "
                           f"{reader.EXPECTED}{hint}")


def _advise(error: IncompleteLogError, reader: ModuleType, log: Log) -> MeasurementError:
    """Return the refusal of an incomplete log: it names `--partial` where that takes the log."""
    taken = Log(where=log.where, text=log.text, data=log.data, listing=log.listing, partial=True)
    try:
        reader.read_log(taken)
    except MeasurementError as other:
        why = str(other).removeprefix(f"{log.where}:").strip()
        return MeasurementError(f"{error}; --partial does not help: {why}")
    return MeasurementError(f"{error}; --partial takes what there is and says so")


def _remark(header: Header, remarks: list[str]) -> Header:
    """Add remarks to those the environment keeps."""
    if not remarks:
        return header
    facts = header.facts
    facts["remarks"] = "; ".join([*filter(None, [facts.get("remarks")]), *remarks])
    return replace(header, environment=tuple(facts.items()))


def _check_ticks(log: Log, found: Measurement, clock_hz: float | None, anyway: bool) -> Measurement:
    """Hold a clock against what a log's own milliseconds say of its ticks; keep that beside it."""
    least, most = log.tick_hz
    if not least or "timer_ticks" not in found.counters:
        return found
    upper = f"to {most / 1e6:.4g} MHz" if math.isfinite(most) else "MHz or more"
    text = f"the log's own milliseconds make its ticks {least / 1e6:.4g} {upper}"
    if clock_hz is None:
        log.remarks.append(text + "; ticks become times by --clock" * (
            "latency" not in found.counters))
    elif not least * (1 - _TICK_SLACK) <= clock_hz <= most * (1 + _TICK_SLACK):
        odd = f"{text}, not {clock_hz / 1e6:g} MHz"
        if not anyway:
            raise MeasurementError(f"{log.where}: {odd}; accepted: a clock it allows, or --anyway "
                                   "where its firmware was built for another than it ran at")
        log.remarks.append(f"{odd}: taken as it was asked for")
        if math.isfinite(most):
            return replace(found, header=replace(found.header, environment=(
                *found.header.environment, (TICKS_BY_MS, f"{least:.0f} to {most:.0f} Hz"))))
    return found


def _with_clock(header: Header, clock: str, hertz: float, anyway: bool) -> Header:
    """Return a header with a clock; refuse another than it has."""
    stated = header.clocks.get(clock)
    if stated is not None and abs(stated - hertz) > _SAME_CLOCK * stated and not anyway:
        raise MeasurementError(f"{header.source}: says its {clock} clock is {stated / 1e6:g} MHz, "
                               f"not {hertz / 1e6:g} MHz; leave the clock out, or --anyway")
    return replace(header, clocks_hz=tuple({**header.clocks, clock: hertz}.items()))


def _complete(found: Measurement, board: str | None, model: str | None,
              clock_hz: float | None, anyway: bool) -> Measurement:
    """Add what the user knows: names, and latencies of what was counted at a known clock."""
    if board is not None:
        board = _name_board(board)
    header: Header = replace(found.header, board=board or found.header.board,
                             model=model or found.header.model)
    if clock_hz is None:
        return replace(found, header=header)
    clock, counter = next(((clock, counter) for counter, clock in _CLOCKED
                           if counter in found.counters), (None, None))
    if clock is None:
        raise MeasurementError(f"{found.header.source}: counts no cycles or ticks a clock could "
                               f"turn into time; it has {', '.join(found.counters)}")
    header = _with_clock(header, clock, clock_hz, anyway)
    times = [] if "latency" in found.counters else [
        Sample(run=one.run, layer=one.layer, counter="latency", unit="us",
               value=one.value / clock_hz * 1e6)
        for one in found.samples if one.counter == counter]
    return Measurement(header=header, samples=(*found.samples, *times))


def _check_times(found: Measurement, anyway: bool) -> list[str]:
    """Hold cycles or ticks against times and the clock; returns what was taken anyway.

    Without a stated clock, layers are held against the one the whole implies, and that against
    what the board's core can run at.
    """
    where, text = found.header.source, ""
    for counter, clock in _CLOCKED:
        rows = [("the whole" if layer is None else f"layer {layer}",
                 found.percentile(counter, 50, layer), found.percentile("latency", 50, layer))
                for layer in (None, *found.layers)
                if found.count(counter, layer) and found.count("latency", layer)]
        _, most, longest_us = max(rows, key=lambda row: row[2], default=("", 0.0, 0.0))
        if not most or not longest_us:
            continue
        stated = found.header.clocks.get(clock)
        hertz = stated or most / longest_us * 1e6
        board = find_board(found.header.board) if clock == "cpu" and not stated else None
        highest = None if board is None else board.highest_hz.get(board.core.clock)
        for what, cycles, took_us in rows:
            due_us = cycles / hertz * 1e6  # a short layer's time is rounded
            if abs(due_us - took_us) > _TICK_SLACK * took_us + _TIME_SLACK * longest_us:
                text = (f"{what} has {cycles:,.0f} {counter} in {took_us:,.1f} us, which at "
                        f"{'' if stated else 'about '}{hertz / 1e6:.4g} MHz are {due_us:,.1f} us")
                break
        if not text and highest is not None and hertz > highest * (1 + _TICK_SLACK):
            text = (f"its times make its cycles those of a clock of {hertz / 1e6:,.6g} MHz, "
                    f"{found.header.board} has at most {highest / 1e6:g}")
    if text and not anyway:
        raise MeasurementError(f"{where}: {text}: times, cycles and clock contradict each other; "
                               "accepted: a log in which they agree within 2 %, or --anyway")
    return [f"{text}: taken as it is"] if text else []


def _check_fastest(header: Header, anyway: bool) -> list[str]:
    """Hold clocks against the highest the board's part allows; returns what was taken anyway.

    A core, and what counts its cycles, is held against the core's own; a timer runs from a clock
    of the board, and no faster than the fastest.
    """
    if (board := find_board(header.board)) is None:
        return []  # nothing to contradict
    found, most = [], board.highest_hz
    clocks = "; ".join(f"{clock.name} {clock.frequency_hz / 1e6:g} MHz"
                       + (f", at most {most[clock.name] / 1e6:g}" if clock.name in most else "")
                       for clock in board.clocks)
    for name, hertz in header.clocks_hz:
        top = (max(most.values(), default=None) if name == "timer" and board.core.clock in most
               else most.get(board.core.clock if name == "cpu" else name))
        if top is None or hertz <= top * (1 + _SAME_CLOCK):
            continue
        text = f"a {name} clock of {hertz / 1e6:g} MHz is more than {header.board} has ({clocks})"
        if not anyway:
            raise MeasurementError(f"{header.source}: {text}; accepted: a clock it can have, or "
                                   "--anyway")
        found.append(f"{text}: taken as it was asked for")
    return found


def _name_board(board: str) -> str:
    """Return a board's own name, or the one given where we have no file for it."""
    found = find_board(board)
    return board if found is None else found.name


def _check_part(header: Header, board: str, anyway: bool) -> list[str]:
    """Hold a board against the part the log names; returns what was taken anyway."""
    words = " ".join((header.board, *(value for key, value in header.environment
                                     if key.startswith("device"))))
    if header.board != UNKNOWN and header.board in list_boards():
        words += " " + load_board(header.board).soc
    if (asked := find_board(board)) is None:
        return []  # nothing to contradict
    soc = asked.soc
    theirs, ours = _PART.findall(words), _PART.findall(soc)
    if not theirs or not ours or {part.upper() for part in theirs} & {
            part.upper() for part in ours}:
        return []
    text = f"ran on {theirs[0]}, {board} is a {soc}"
    if not anyway:
        raise MeasurementError(f"{header.source}: {text}; name the board it ran on, or --anyway")
    return [f"{text}: taken as it was asked for"]
