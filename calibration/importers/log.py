"""What importers share: a header for a log that says little, and numbers with their line."""

from __future__ import annotations

from collections.abc import Sequence

from calibration.errors import MeasurementError
from calibration.measurement import Measurement
from calibration.sample import Header, Sample

UNKNOWN = "not known"
"""What a header says where neither the log nor the user does."""


def measurement_of(samples: Sequence[Sample], where: str, *, runtime: str = UNKNOWN,
                   expected: str, kind: str = "measured", model: str = UNKNOWN,
                   board: str = UNKNOWN, temperature: str | None = None,
                   clocks_hz: Sequence[tuple[str, float]] = (), tags: Sequence[str] = (),
                   environment: Sequence[tuple[str, str]] = ()) -> Measurement:
    """Return a measurement of these samples.

    Parameters
    ----------
    where : str
        The log: source and name in errors.
    expected : str
        What the log should have contained, for the refusal.
    tags : sequence of str
        Operators in the order of the layers; kept in the environment.

    Raises
    ------
    MeasurementError
        When there is no sample.
    """
    if not samples:
        raise MeasurementError(f"{where}: nothing of this format; expected {expected}")
    told = [*environment, *([("operators", ",".join(tags))] if tags else [])]
    header = Header(kind=kind, model=model, board=board, runtime=runtime, source=where,
                    temperature=temperature, clocks_hz=tuple(clocks_hz), environment=tuple(told))
    return Measurement(header=header, samples=tuple(samples))


def number_of(text: str, where: str, line: int) -> float:
    """Read a number; thousands may be set apart by commas or blanks, brackets are dropped."""
    cleaned = text.strip().strip("[]").replace(",", "").replace(" ", "").replace("_", "")
    try:
        return float(cleaned)
    except ValueError as error:
        raise MeasurementError(f"{where}:{line}: {text.strip()!r} is no number") from error


def count(text: str, where: str, line: int) -> int:
    """Read a whole number."""
    value = number_of(text, where, line)
    if value != int(value):
        raise MeasurementError(f"{where}:{line}: {text.strip()!r} is no whole number")
    return int(value)
