"""Where in a folder that was named a measurement is: in it, or in a campaign's part of it."""

from __future__ import annotations

from pathlib import Path

from calibration.measurement.measurement import HEADER_FILE
from twin.errors import UsageError


def step_into(path: Path, temperature: str = "warm") -> Path:
    """Return a folder, or the one of a temperature where `twin measure` wrote both into it."""
    if not (path / HEADER_FILE).exists() and (path / temperature / HEADER_FILE).exists():
        return path / temperature
    return path


def warm_of_campaign(folder: str) -> str:
    """Return the warm measurement of a campaign's folder; any other folder as it is."""
    return str(find_folder(Path(folder))) if (Path(folder) / "warm").is_dir() else folder


def find_folder(path: Path, temperature: str = "warm") -> Path:
    """Return the folder with the header: the one given, or the warm one of a campaign in it."""
    path = step_into(path, temperature)
    if not (path / HEADER_FILE).exists():
        raise UsageError(f"{path}: no measurement: there is no {HEADER_FILE} in it; accepted: a "
                         "folder `twin measure` or `twin import` wrote")
    return path
