"""Lines of a samples file: one that a crash tore harms neither those before nor those after it."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from calibration.errors import MeasurementError, TornLineWarning
from calibration.measurement.sample import Sample, check_sample, parse_object
from hwmodels.files import DocumentError, parse_json

_CHECKSUM = b'output_checksum"'
"""In the last line of a run, as a value; no other line of a samples file has it."""


def parse_samples(data: bytes, path: Path) -> list[Sample]:
    """Read the samples of a file; lines torn by a crash are omitted with a `TornLineWarning`."""
    lines = data.split(b"\n")
    unended = lines.pop()
    torn = {len(lines) + 1} if unended and not _is_whole(unended) else set()
    if unended:
        lines.append(unended)
    torn |= _marked_torn(lines)
    if torn:
        warnings.warn(f"{path}: line {', '.join(map(str, sorted(torn)))} was torn when a writer "
                      "stopped; the rest is kept", TornLineWarning, stacklevel=4)
    samples = []
    for number, line in enumerate(lines, start=1):
        if number in torn or line.startswith(b'{"torn_line"'):
            continue
        where = f"{path}:{number}"
        try:
            document = parse_object(line.decode(), where)
        except UnicodeDecodeError as error:
            raise MeasurementError(f"{where}: not UTF-8") from error
        check_sample(document, where)
        samples.append(Sample(**document))
    return samples


def cut_unended(path: Path) -> None:
    """Cut what stands behind the last run that ended, by its checksum: it is measured again."""
    whole = size = 0
    if not path.exists():
        return
    for line in path.read_bytes().splitlines(keepends=True):
        size += len(line)
        if line.endswith(b'\n') and _CHECKSUM in line:
            whole = size
    if whole < size:
        os.truncate(path, whole)


def _marked_torn(lines: list[bytes]) -> set[int]:
    """Lines a later writer marked as torn; the mark must be right after the fragment."""
    marked = set()
    for number, line in enumerate(lines, start=1):
        if line == json.dumps({"torn_line": number - 1}).encode():
            marked.add(number - 1)
    return marked


def mend_end(path: Path) -> str:
    """Return what must precede new lines so that an unended last line harms nobody."""
    if not path.exists() or path.stat().st_size == 0:
        return ""
    with open(path, "rb") as stream:
        stream.seek(-1, os.SEEK_END)
        if stream.read() == b"\n":
            return ""
    lines = path.read_bytes().split(b"\n")
    if _is_whole(lines[-1]):
        return "\n"
    return "\n" + json.dumps({"torn_line": len(lines)}) + "\n"


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(parse_json(line.decode()), dict)
    except (DocumentError, UnicodeDecodeError):
        return False
