"""A measurement: a folder with a header written once and samples that are only ever appended.

    FOLDER/header.json      what was run, where and how; written once, atomically
    FOLDER/samples.jsonl    one JSON object per line: run, layer, counter, clock, value, unit

Predictions, simulations, board runs and published figures all use it, so any two can be set side
by side.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

import numpy as np

from calibration.errors import IncompleteWarning, MeasurementError
from calibration.measurement.lines import mend_end, parse_samples
from calibration.measurement.sample import PAIRS, Header, Sample, check_header, parse_object
from hwmodels.drafts import draft_folder, locked
from hwmodels.errors import check_known, reworded
from hwmodels.files import read_regular, read_regular_text, write_whole
from hwmodels.frozen import frozen, list_fields
from hwmodels.quantities import read_count

HEADER_FILE = "header.json"
SAMPLES_FILE = "samples.jsonl"
LARGEST_HEADER_BYTES = 1 << 24
LARGEST_SAMPLES_BYTES = 1 << 28
"""Two million samples; a campaign of a thousand runs of a hundred layers has a twentieth."""
PERCENTILES = (50, 90, 95, 99)
RUNS_ASKED = "runs_asked"
MOST_RUNS_ASKED = 10**9
"""Key of a header's environment: how many runs a measurement has when it is complete."""

INFERRED, STATED = "inferred_runtime", "stated_runtime"
"""Key of a header's environment: what a log states, where its library was inferred from times."""

TICKS_BY_MS = "ticks_by_ms"
"""Key of a header's environment: clock of a log's ticks by its own milliseconds, "LOW to HIGH Hz",
where it was imported for another."""

TIMED_BY_MS = "timed_by_ms"
"""Key of a header's environment: that times are those of a log's own milliseconds, in words."""

MODEL_FILE = "model_file"
"""Key of a header's environment: the file its network was read from."""

BOARD_HASH = "board_sha256"
"""Key of a header's environment: what the file of its board said."""


@frozen
class Summary:
    """Order statistics of one counter over runs; nothing is omitted as an outlier."""

    count: int
    minimum: float
    p50: float
    p90: float
    p95: float
    p99: float
    maximum: float
    mean: float
    unit: str
    clock: str | None

    @property
    def tail_spread(self) -> float:
        """p95 / p50 - 1, the variance goal of a measurement."""
        return self.p95 / self.p50 - 1 if self.p50 else math.inf


@frozen
class Measurement:
    """A header and its samples; statistics are computed, never stored.

    Parameters
    ----------
    samples
        In the order they were taken. A counter has one unit and one clock throughout.

    Raises
    ------
    MeasurementError
        When a counter appears with two units or clocks.
    """

    header: Header
    samples: tuple[Sample, ...] = ()
    _values: Mapping[tuple[str, int | None], np.ndarray] = field(
        init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a counter given in two units or clocks; group the values by counter and layer."""
        seen: dict[str, tuple[str, str | None]] = {}
        groups: dict[tuple[str, int | None], list[float]] = {}
        for sample in self.samples:
            groups.setdefault((sample.counter, sample.layer), []).append(sample.value)
            known = seen.setdefault(sample.counter, (sample.unit, sample.clock))
            if known != (sample.unit, sample.clock):
                raise MeasurementError(
                    f"counter {sample.counter!r} is given in {known[0]} of clock {known[1]} and in "
                    f"{sample.unit} of clock {sample.clock}; give the second another name")
        object.__setattr__(self, "_values", {key: np.array(values, dtype=np.float64)
                                             for key, values in groups.items()})

    @property
    def sha256(self) -> str:
        """Hash of what was measured: that of a copy of its folder is the same."""
        return hashlib.sha256(repr(self.samples).encode()).hexdigest()

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the counters, in the order first seen."""
        return tuple(dict.fromkeys(counter for counter, _ in self._values))

    @property
    def layers(self) -> tuple[int, ...]:
        """Layer indices present, sorted; the whole network is not one of them."""
        return tuple(sorted({layer for _, layer in self._values if layer is not None}))

    @property
    def task_names(self) -> dict[int, str]:
        """Name and kind of each task of an accelerator the header names, by its index."""
        return {int(name.removeprefix("epoch ")): title
                for name, title in self.header.environment if name.startswith("epoch ")}

    @property
    def part(self) -> str:
        """What its parts are: "layer", or tasks by the word the accelerator's maker has."""
        tasks = bool(self.count("core_npu_cycles")) or any(
            self.count("pre_cycles", index) for index in self.layers) or bool(self.task_names)
        return "epoch" if tasks else "layer"

    @property
    def runs(self) -> tuple[int, ...]:
        """Run numbers present, sorted."""
        return tuple(sorted({sample.run for sample in self.samples}))

    @property
    def next_run(self) -> int:
        """Number the next run gets, so that a stopped measurement is resumed."""
        return max((sample.run for sample in self.samples), default=-1) + 1

    @property
    def missing_runs(self) -> int:
        """Runs that were asked for and did not end: the measurement was interrupted.

        Runs of a recording are the meter's: how many were asked of the board says nothing of them.
        """
        facts = self.header.facts
        asked = "" if "meter" in facts else facts.get(RUNS_ASKED, "")
        return max((read_count(asked, MOST_RUNS_ASKED) or 0) - self.count("output_checksum"), 0)

    def count(self, counter: str, layer: int | None = None) -> int:
        """Return the samples of a counter, for one layer or (None) the whole network."""
        return len(self._values.get((counter, layer), ()))

    def values(self, counter: str, layer: int | None = None) -> np.ndarray:
        """Return the raw values of a counter, one per sample, in the order taken.

        Raises
        ------
        MeasurementError
            When there is none, naming the counters there are.
        """
        found = self._values.get((counter, layer))
        if found is None:
            check_known("no counter", counter, self.counters, MeasurementError)
            where = "the whole network" if layer is None else f"layer {layer}"
            raise MeasurementError(f"counter {counter!r} has no sample for {where}")
        return found

    def percentile(self, counter: str, percent: float, layer: int | None = None) -> float:
        """Percentile of a counter over its samples, linearly interpolated."""
        return float(np.percentile(self.values(counter, layer), percent))

    def list_cycles(self, hertz: float) -> list[tuple[int | None, float]]:
        """Return the median cycles of the whole network, None, and of each layer that has some.

        Parameters
        ----------
        hertz
            Of the core's clock: what has a latency only is worked out at it.
        """
        found: list[tuple[int | None, float]] = []
        for layer in (None, *self.layers):
            if self.count("cpu_cycles", layer):
                found.append((layer, self.percentile("cpu_cycles", 50, layer)))
            elif self.count("latency", layer):
                found.append((layer, self.percentile("latency", 50, layer) * 1e-6 * hertz))
        return found

    def summarise(self, counter: str) -> Summary:
        """Return the order statistics of a counter over its samples."""
        values = self.values(counter)
        p50, p90, p95, p99 = (float(p) for p in np.percentile(values, PERCENTILES))
        sample = next(s for s in self.samples if s.counter == counter)
        return Summary(count=len(values), minimum=float(values.min()), p50=p50, p90=p90, p95=p95,
                       p99=p99, maximum=float(values.max()), mean=float(values.mean()),
                       unit=sample.unit, clock=sample.clock)


def _refuse_other_header(old: Header, new: Header, where: str) -> None:
    first, second = flatten_header(old), flatten_header(new)
    differing = [f"{name} ({first.get(name)!r} and {second.get(name)!r})"
                 for name in first | second if first.get(name) != second.get(name)]
    if differing:
        raise MeasurementError(f"{where}: runs with different metadata are not mixed; "
                               f"differing: {', '.join(differing)}. Use another folder.")


def flatten_header(header: Header) -> dict[str, object]:
    """Return what a header says by name, pairs one by one: clocks_hz cpu."""
    values = list_fields(header)
    pairs = {f"{name} {key}": part for name in PAIRS for key, part in values.pop(name)}
    return values | pairs


# --- the folder ------------------------------------------------------------------------------

def write_measurement(folder: str | Path, measurement: Measurement,
                      beside: Mapping[str, bytes] = MappingProxyType({})) -> Path:
    """Write the header, unless the folder has the same one, and append the samples.

    Runs are never taken twice: where the folder has a sample of the same run, layer and counter,
    nothing is written.

    Parameters
    ----------
    folder
        Created when missing.
    beside
        Further files, by name: a new folder appears with all of them.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    MeasurementError
        When the folder holds another header, has these runs already, or cannot be written; a new
        folder then does not appear.
    """
    folder = Path(folder)
    with reworded(OSError, MeasurementError, f"{folder}: cannot be written (", ")"):
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            _write_new(folder, measurement, beside)
            return folder
        with locked(folder):  # nobody appends between what is looked for and what is appended
            if not _write_header(folder, measurement.header):
                _refuse_other_header(read_header(folder), measurement.header, str(folder))
                _refuse_repeated(folder, measurement)
            append_samples(folder, measurement.samples)
            for name, content in beside.items():
                write_whole(folder / name, content)
    return folder


def _write_new(folder: Path, measurement: Measurement, beside: Mapping[str, bytes]) -> None:
    """Write a folder that appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with draft_folder(folder.parent, f".{folder.name[:200]}.") as draft:
        try:
            _write_header(draft, measurement.header)
            append_samples(draft, measurement.samples)
            for name, content in beside.items():
                write_whole(draft / name, content)
            os.rename(draft, folder)
        except MeasurementError as error:
            raise MeasurementError(str(error).replace(str(draft), str(folder))) from error


def _refuse_repeated(folder: Path, measurement: Measurement) -> None:
    """Refuse samples of runs the folder has, which would count them twice."""
    if not measurement.samples:
        return
    there = read_measurement(folder)
    taken = {(one.run, one.layer, one.counter) for one in there.samples}
    again = sorted({one.run for one in measurement.samples
                    if (one.run, one.layer, one.counter) in taken})
    if again:
        raise MeasurementError(f"{folder}: has run {_name_runs(again)} already; nothing is "
                               f"written. New runs number on from {there.next_run}, others go to "
                               "another folder")


def _name_runs(runs: list[int]) -> str:
    return str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"


def _write_header(folder: Path, header: Header) -> bool:
    """Write the header in one step; False when one is there already."""
    document = list_fields(header)
    document |= {name: dict(document[name]) for name in PAIRS}
    ordered = {"schema": document.pop("schema"), **document}
    partial = folder / f".{HEADER_FILE}.{secrets.token_hex(8)}"
    write_whole(partial, (json.dumps(ordered, indent=2, ensure_ascii=False) + "\n").encode())
    try:
        os.link(partial, folder / HEADER_FILE)  # unlike a rename, refuses to replace a header
    except FileExistsError:
        return False
    finally:
        partial.unlink()
    return True


def append_samples(folder: str | Path, samples: Iterable[Sample]) -> None:
    """Append samples; what is already there is never rewritten.

    Parameters
    ----------
    samples
        In the order taken.

    Raises
    ------
    MeasurementError
        When the folder has no valid header or cannot be written.

    Notes
    -----
    A last line torn by a crash stays where it is: it is ended, and a line `{"torn_line": N}` after
    it marks line N as a known fragment for readers.
    """
    folder = Path(folder)
    read_header(folder)
    lines = [json.dumps(list_fields(sample)) for sample in samples]
    if not lines:
        return
    path = folder / SAMPLES_FILE
    with reworded(OSError, MeasurementError, f"{path}: cannot be written (", ")"):
        left = (mend_end(path) + "\n".join(lines) + "\n").encode()
        with open(path, "ab", buffering=0) as stream:
            while left:  # a full disk takes a part, and says so only when asked for the rest
                left = left[stream.write(left):]
            os.fsync(stream.fileno())


def read_header(folder: str | Path) -> Header:
    """Read the header of a measurement folder.

    Raises
    ------
    MeasurementError
        When it is missing, not JSON, of another schema, or a key is wrong; names file and key.
    """
    path = Path(folder) / HEADER_FILE
    try:
        text = read_regular_text(path, LARGEST_HEADER_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        if not path.parent.is_dir():
            raise MeasurementError(f"{folder}: no such folder; accepted: a measurement "
                                   "folder") from error
        why = getattr(error, "strerror", None) or error
        parts = [part for part in ("warm", "cold") if (path.parent / part / HEADER_FILE).exists()]
        advice = f"did you mean {' or '.join(str(path.parent / part) for part in parts)}?" \
            if parts else "accepted: a measurement folder"
        raise MeasurementError(f"{path}: no readable header ({why}); {advice}") from error
    document = parse_object(text, str(path))
    check_header(document, str(path))
    pairs = {name: tuple(document[name].items()) for name in PAIRS}
    return Header(**(document | pairs))


def read_measurement(folder: str | Path, *, growing: bool = False) -> Measurement:
    """Read a measurement folder.

    Parameters
    ----------
    folder
        As written by `write_measurement`.
    growing
        Runs are still being added; else an `IncompleteWarning` names those that are missing.

    Returns
    -------
    Measurement
        With every whole sample. A torn last line is omitted with a `TornLineWarning`.

    Raises
    ------
    MeasurementError
        For anything else wrong, naming file and line or key.
    """
    folder = Path(folder)
    header = read_header(folder)
    path = folder / SAMPLES_FILE
    with reworded(OSError, MeasurementError, f"{path}: cannot be read (", ")"):
        data = read_regular(path, LARGEST_SAMPLES_BYTES) if path.exists() else b""
    found = Measurement(header=header, samples=tuple(parse_samples(data, path)))
    if found.missing_runs and not growing:
        warnings.warn(f"{folder}: interrupted, {found.missing_runs} of "
                      f"{header.facts[RUNS_ASKED]} runs are missing", IncompleteWarning,
                      stacklevel=2)
    return found
