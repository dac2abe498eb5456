"""Where in a folder that was named a measurement is: in it, or in a campaign's part of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from calibration.measurement.measurement import (
    HEADER_FILE,
    LARGEST_SAMPLES_BYTES,
    SAMPLES_FILE,
)
from hwmodels.files import read_regular
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


def drop_repeated(folders: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return folders of measurements, each once, and what to know of those left out.

    Parameters
    ----------
    folders : iterable of str
        Of one measurement each; a copy with the same samples is the same measurement.

    Returns
    -------
    tuple of (list of str, list of str)
        Folders as they were named, and a remark for each that is there already.
    """
    named = list(folders)
    sizes = {folder: _size_of(Path(folder) / SAMPLES_FILE) for folder in named}
    alike = Counter(sizes.values())
    first: dict[str, str] = {}
    remarks = []
    for folder in named:
        key, size = str(Path(folder).resolve()), sizes[folder]
        if size and alike[size] > 1:  # Of another size none is a copy.
            samples = read_regular(Path(folder) / SAMPLES_FILE, LARGEST_SAMPLES_BYTES)
            key = hashlib.sha256(samples).hexdigest()
        if key in first:
            remarks.append(f"{folder}: has the samples of {first[key]}; they count once")
        first.setdefault(key, folder)
    return [*first.values()], remarks


def tell_other_file(name: str, then: str | None, now: str | None) -> str:
    """Return what to know where a board's file says something else than when it was measured.

    Parameters
    ----------
    name : str
        Of the board.
    then, now : str or None
        Its hashes (`hwmodels.board.file.hash_board`); None is not known.

    Returns
    -------
    str
        "" where nothing is known to differ.
    """
    if None in (then, now) or then == now:
        return ""
    return (f"that of {name} said something else when it was measured, clocks and supply apart: "
            "another file of that name, another version of it, or --set")


def _size_of(samples: Path) -> int:
    return samples.stat().st_size if samples.is_file() else 0
