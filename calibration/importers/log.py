"""What importers share: a log with what of it was understood, and strict numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from calibration.errors import IncompleteLogError, MeasurementError
from calibration.importers.listing import Listing
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import MAX_VALUE, Header, Sample, check_counts
from hwmodels.quantities import Ends

UNKNOWN = "not known"
"""What a header says where neither the log nor the user does."""

_BLANK = re.compile(r"[\s\-=_*+|\u2500-\u257f]*")
"""Lines that are empty or only rule off others."""

_GROUPED = re.compile(r"\d{1,3}(?:(?P<mark>[, _'\u00a0\u202f])\d{3})(?:(?P=mark)\d{3})*(?:\.\d+)?")
_PLAIN = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


_OURS = re.compile(r"^Summary '.*' - predicted, no device was asked$", re.MULTILINE)
"""A line of `twin predict --epochs`, which prints what a profiler would."""


@dataclass(slots=True, kw_only=True)
class Log:
    """A log being read: its text, and what a reader made of it.

    Parameters
    ----------
    where
        The file: source of the measurement and name in errors.
    partial
        Whether an incomplete log is taken for what it has.
    remarks
        What a reader of the measurement must know.
    listing
        Operators of the network, where it is known.
    tick_hz
        Between which two frequencies its ticks are, by the log's own words; any where it says
        nothing.
    """

    where: str
    text: str = ""
    data: bytes = b""
    partial: bool = False
    remarks: list[str] = field(default_factory=list)
    listing: Listing | None = None
    tick_hz: Ends = (0.0, math.inf)
    _read: set[int] = field(default_factory=set)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of the lines that say something; the first is 1."""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if not _BLANK.fullmatch(line):
                yield number, line

    def take(self, number: int) -> None:
        """Note that a line was understood, used or not."""
        self._read.add(number)

    @property
    def unread(self) -> tuple[tuple[int, str], ...]:
        """Lines nobody understood."""
        return tuple(line for line in self.lines() if line[0] not in self._read)

    @property
    def kind(self) -> str:
        """The kind of its figures: a report of `twin predict` measured nothing."""
        return "predicted" if _OURS.search(self.text) else "measured"

    def check_end(self) -> None:
        """Remark that a text ends within a line nobody understood."""
        last = self.open_line()
        if last is not None and last[0] not in self._read:
            self.remarks.append(f"it ends within line {last[0]}, which was not understood and may "
                                f"be cut: {last[1].strip()[:60]!r}")

    def remark_open_end(self) -> None:
        """Remark that the last figure may be cut, where nothing else of the log would tell."""
        last = self.open_line()
        if last is not None and last[0] in self._read:
            self.remarks.append(f"line {last[0]} is the last and has no line end: if it was cut, "
                                "so is its figure")

    def open_line(self) -> tuple[int, str] | None:
        """Return the last line where it has no line end and says something."""
        if not self.text or self.text.endswith(("\n", "\r")):
            return None
        last = max(self.lines(), default=None)
        return last if last is not None and last[0] == len(self.text.splitlines()) else None

    def refuse(self, number: int, why: str) -> MeasurementError:
        """Return the refusal of a line."""
        return MeasurementError(f"{self.where}:{number}: {why}")

    def lack(self, why: str) -> None:
        """Note that something is missing.

        Raises
        ------
        IncompleteLogError
            Unless a partial log is accepted.
        """
        if not self.partial:
            raise IncompleteLogError(f"{self.where}: not complete: {why}")
        self.remarks.append(f"partial: {why}")


def measurement_of(log: Log, samples: Sequence[Sample], *, runtime: str = UNKNOWN,
                   expected: str, kind: str = "measured", model: str = UNKNOWN,
                   board: str = UNKNOWN, temperature: str | None = None,
                   clocks_hz: Sequence[tuple[str, float]] = (), tags: Sequence[str] = (),
                   environment: Sequence[tuple[str, str]] = ()) -> Measurement:
    """Return a measurement of these samples.

    Parameters
    ----------
    log
        Where they are from; its remarks are kept in the environment.
    samples
        In order.
    runtime, kind, model, board, temperature
        As `Header` has them; what the log does not tell is `UNKNOWN`.
    expected
        What the log should have contained, for the refusal.
    clocks_hz : sequence of (str, float)
        Clocks by name.
    tags
        Operators in the order of the layers; kept in the environment.
    environment : sequence of (str, str)
        What else was said of the run.

    Raises
    ------
    MeasurementError
        When there is no sample.
    """
    if not samples:
        raise MeasurementError(f"{log.where}: nothing of this format; expected {expected}")
    check_counts(samples, log.where)
    environment_rows = [*environment, *([("operators", ",".join(tags))] if tags else []),
            *([("remarks", "; ".join(dict.fromkeys(log.remarks)))] if log.remarks else [])]
    header = Header(kind=kind, model=model, board=board, runtime=runtime, source=log.where,
                    temperature=temperature, clocks_hz=tuple(clocks_hz),
                    environment=tuple(environment_rows))
    return Measurement(header=header, samples=tuple(samples))


def number_of(text: str, log: Log, line: int) -> float:
    """Read a number that is not negative.

    Parameters
    ----------
    text
        Thousands may be set apart, by one kind of mark; brackets around it are dropped.

    Raises
    ------
    MeasurementError
        For anything else: a decimal comma, a sign, nan, or more than a measurement holds.
    """
    cleaned = text.strip().strip("[]").strip()
    if _GROUPED.fullmatch(cleaned):
        cleaned = re.sub(r"[^\d.]", "", cleaned)
    if not _PLAIN.fullmatch(cleaned) or float(cleaned) > MAX_VALUE:
        raise log.refuse(line, f"{text.strip()!r} is not a number; accepted: 0 or more, with a "
                               "decimal point, thousands set apart or not")
    return float(cleaned)


def count(text: str, log: Log, line: int) -> int:
    """Read a whole number that is not negative; raises MeasurementError for anything else."""
    value = number_of(text, log, line)
    if value != int(value):
        raise log.refuse(line, f"{text.strip()!r} is not a whole number")
    return int(value)
