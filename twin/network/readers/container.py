"""Models inside other files: archives, C arrays, programs. Bytes and a name in, models out.

find_models("kws.mltk.zip", content) -> the .tflite and .onnx files in it, each with its place

References
----------
https://flatbuffers.dev/internals: root offset, file identifier, tables and their vtables.
"""

from __future__ import annotations

import contextlib
import io
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from hwmodels.files import LARGEST_BYTES, names_file
from hwmodels.flatbuffer import Flatbuffer, FlatbufferError, Table
from hwmodels.frozen import frozen
from hwmodels.program.elf import ElfError, read_tables
from twin.errors import ModelError
from twin.network.model_file import CONTAINERS, is_tflite, name_model, read_bytes

MODELS = (".tflite", ".lite", ".onnx")
_SOURCES = (".c", ".cc", ".cpp", ".h", ".hpp", ".ino")
_IDENTIFIER = b"TFL3"

LARGEST_SOURCE_BYTES = 1 << 26
"""Of C text: an array takes about six characters a byte."""
MOST_ENTRIES = 20_000
"""Of an archive: an Edge Impulse deployment has some 2,500."""
_TESTS = "tensorflow/lite/micro/testing/"
"""Folder of TFLite Micro's own test models, which every deployment of Edge Impulse packs, too."""
MOST_MARKS = 1 << 12
"""Of TFL3 in a program: few are more than a word in its code."""

_COMMENT = re.compile(rb"//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|^[ \t]{0,80}#[^\n]*", re.MULTILINE)
_MARK = re.compile(rb"(?:0[xX]54|84|0124|'T')\s*,\s*(?:0[xX]46|70|0106|'F')\s*,"
                   rb"\s*(?:0[xX]4[cC]|76|0114|'L')\s*,\s*(?:0[xX]33|51|00?63|'3')\b")
_NAME = re.compile(rb"([A-Za-z_]\w{0,200})\s{0,20}\[")
_NUMBER = re.compile(rb"0[xX][0-9a-fA-F]+|-?\d+|'\\?.'")
_EON = re.compile(rb"(?:trained_model|tflite_learn)(?:_[0-9A-Za-z]{1,20}){0,3}_invoke")

_GIVES_NONE = {
    "eon": "compiled by Edge Impulse's EON, which leaves no flatbuffer; accepted: the same "
           "deployment with the compiler TensorFlow Lite in place of EON, or the block output "
           ".tflite from Edge Impulse's Dashboard",
    "cut": "an array in it begins as a model does (TFL3) and is not a whole one: is it cut short?",
    "": "holds no model; accepted: a file with a .tflite or .onnx file, or a TFL3 flatbuffer, "
        "in it; of a program without a model its code: --elf FILE --from SYMBOL"}


_MARKS = {"eon": _EON, "cut": _MARK}


@frozen
class Found:
    """A model in another file.

    Parameters
    ----------
    place
        Member, array or symbol that holds it, or the offset in the file.
    suffix
        Of the reader: ".tflite" or ".onnx".
    file, name
        Of what holds it, and of the network: the file's stem, or as it was chosen.
    """

    place: str
    suffix: str
    content: bytes
    file: str = ""
    name: str = ""


def open_container(path: str) -> Found | None:
    """Return the model inside a file, which FILE:NAME chooses where there are several.

    Returns
    -------
    Found or None
        None when the path names no file, or one of another ending.

    Raises
    ------
    ModelError
        When the file holds no model, several and none is chosen, or none of that name.
    """
    file, wanted = path, ""
    if not names_file(path):
        file, _, wanted = path.rpartition(":")
        if not file or not names_file(file):
            return None
    if Path(file).suffix.lower() not in CONTAINERS:
        return None
    found = find_models(file, read_bytes(file))
    names = ", ".join(f"{one.place} ({len(one.content):,} bytes)" for one in found[:6])
    if wanted:
        found = [one for one in found if wanted in (one.place, PurePosixPath(one.place).name)]
        if not found:
            raise ModelError(f"{file}: no model {wanted!r} in it; accepted: {names}")
    if len(found) > 1:
        stem = Path(file).name.split(".")[0]
        found = [one for one in found if PurePosixPath(one.place).stem == stem] or found
    if len(found) > 1:
        raise ModelError(f"{file}: holds {len(found)} models: {names}; accepted: one, chosen by "
                         f"{file}:{found[0].place}")
    return replace(found[0], file=file, name=name_model(path))


def find_models(name: str, content: bytes) -> list[Found]:
    """Find the models in a file's bytes.

    Parameters
    ----------
    name
        Of the file, for errors.

    Returns
    -------
    list of Found
        At least one, each once.

    Raises
    ------
    ModelError
        When none is in it, or the file is damaged or unpacks to too much.
    """
    try:
        members = list(_list_members(name, content))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError,
            NotImplementedError, ValueError) as error:
        raise ModelError(f"{name}: a damaged archive: {error}"[:400]) from None
    packed = members != [(name, content)]
    models = {one.content: one for member, data in reversed(members)
              for one in reversed(list(_find(member, data, packed)))}
    found = list(reversed(models.values()))
    binary = [one for one in found if one.suffix in PurePosixPath(one.place).suffix]
    if not found:
        kind = next((kind for kind, mark in _MARKS.items()
                     if any(mark.search(data) for _, data in members)), "")
        raise ModelError(f"{name}: {_GIVES_NONE[kind]}")
    return binary if packed and binary else found


def _list_members(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Members that may hold a model, unpacked within bounds; what is not an archive is its own."""
    if content[:2] == b"\x1f\x8b":
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        content = stream.decompress(content, LARGEST_BYTES)
        if stream.unconsumed_tail:
            raise ModelError(f"{name}: unpacks to more than {LARGEST_BYTES:,} bytes")
        name = PurePosixPath(name).name.removesuffix(".gz")
    if content[:4] == b"PK\3\4":
        yield from _list_zipped(name, content)
    elif content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for count, member in enumerate(archive):
                _check(name, count, 0)
                if member.isreg() and _may_hold(member.name):
                    stream_of = archive.extractfile(member)
                    yield member.name, b"" if stream_of is None else stream_of.read()
    else:
        yield name, content


def _list_zipped(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    _check(name, content.count(b"PK\1\2"), 0)
    total = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            if _may_hold(entry.filename):
                if entry.flag_bits & 1:
                    raise ModelError(f"{name}: {entry.filename}: locked by a password")
                total += entry.file_size
                _check(name, 0, total)
                yield entry.filename, archive.read(entry)


def _may_hold(member: str) -> bool:
    return member.lower().endswith((*MODELS, *_SOURCES)) and _TESTS not in member


def _check(name: str, entries: int, size_bytes: int) -> None:
    if entries > MOST_ENTRIES or size_bytes > LARGEST_BYTES:
        raise ModelError(f"{name}: too large an archive; accepted: {MOST_ENTRIES:,} entries that "
                         f"unpack to {LARGEST_BYTES:,} bytes of models and sources")


def _find(name: str, content: bytes, packed: bool) -> Iterator[Found]:
    """Find the models of one file that is not an archive."""
    suffix = PurePosixPath(name).suffix.lower()
    if _is_marked(content, 0) and (suffix in MODELS or _IDENTIFIER not in content[8:]):
        yield Found(place=name if packed else "the file itself", suffix=".tflite", content=content)
    elif suffix == ".onnx":
        yield Found(place=name, suffix=suffix, content=content)
    elif suffix in _SOURCES:
        inside = f"{name}:" if packed else ""
        yield from (replace(one, place=inside + one.place) for one in _read_arrays(name, content))
    elif content[:4] == b"\x7fELF":
        yield from _read_program(name, content)
    else:
        yield from _scan(content, 0, "offset", {})


def _read_arrays(name: str, content: bytes) -> Iterator[Found]:
    """Arrays of C text whose bytes are a flatbuffer."""
    if len(content) > LARGEST_SOURCE_BYTES:
        raise ModelError(f"{name}: {len(content):,} bytes of C; at most {LARGEST_SOURCE_BYTES:,} "
                         "are read")
    values: dict[bytes, int] = {}
    text, after = _COMMENT.sub(b" ", content), 0
    while (mark := _MARK.search(text, after)) is not None:
        begin, after = text.rfind(b"{", max(after, mark.start() - 200), mark.start()), mark.end()
        if len(_NUMBER.findall(text[begin + 1:mark.start()])) != 4 or begin < 0:
            continue
        after = end if (end := text.find(b"}", after)) >= 0 else len(text)
        data = bytes(_value(one.group(), values) for one in _NUMBER.finditer(text, begin, after))
        if _is_marked(data, 0):
            names = _NAME.findall(text[max(0, begin - 400):begin]) or [b"offset %d" % begin]
            yield Found(place=names[-1].decode(), suffix=".tflite", content=data)


def _value(word: bytes, known: dict[bytes, int]) -> int:
    """Return a C integer constant as a byte."""
    if word not in known:
        text = word.decode("latin-1")
        octal = len(text) > 1 and text[0] == "0" and text.isdigit() and not set(text) & {"8", "9"}
        known[word] = 255 & (ord(text[-2]) if text[0] == "'" else
                             int(text, 8) if octal else int(text[:40], 0 if "x" in text.lower()
                                                            else 10))
    return known[word]


def _read_program(name: str, content: bytes) -> Iterator[Found]:
    """Flatbuffers in what a loader brings into memory, named by symbols where there are some."""
    try:
        tables = read_tables(content)
        parts = [(one.offset, one.runs, tables.data(one)) for one in tables.loads] or [
            (one.offset, one.address, tables.data(one)) for one in tables.allocated]
        names = {one.value: (one.name, one.size_bytes) for one in tables.symbols
                 if not one.is_function}
    except (ElfError, struct.error) as error:
        raise ModelError(f"{name}: a damaged ELF file: {error}") from None
    for _, address, data in parts:
        yield from _scan(data, address, "address", names)


def _scan(data: bytes, start: int, kind: str, names: dict[int, tuple[str, int]]) -> Iterator[Found]:
    """Flatbuffers anywhere in bytes; one ends where its symbol does, or with the bytes."""
    at = -4
    for _ in range(MOST_MARKS):
        at = data.find(_IDENTIFIER, at + 4)
        begin = at - 4
        if at < 0:
            break
        if begin >= 0 and _is_marked(data, begin):
            name, size = names.get(start + begin, (f"{kind} {start + begin:#x}", 0))
            content = data[begin:begin + size if size else len(data)]
            yield Found(place=name, suffix=".tflite", content=content[:_measure(content)])


def _is_marked(data: bytes, begin: int) -> bool:
    """Whether a TensorFlow Lite model begins there, identifier and all."""
    return data[begin + 4:begin + 8] == _IDENTIFIER and is_tflite(data, begin)


_MODEL: Mapping[int, Any] = {1: {1: {}}, 2: {0: {3: {}}, 4: {}}, 3: {}, 4: {0: {}}, 6: {0: {}}}
"""Fields that lead to what a writer may end with: vectors of tables, and of bytes ({})."""


def _measure(data: bytes) -> int:
    """Return how many bytes the model takes at the start of these, from what its tables lead to."""
    with contextlib.suppress(FlatbufferError):
        return _end(Flatbuffer(data).root, _MODEL)
    return len(data)


def _end(table: Table, fields: Mapping[int, Any]) -> int:
    number = table.buffer.number
    ends = [table.place + number("H", table.place - number("i", table.place) + 2)]
    for field, inner in fields.items():
        ends += [_end(one, inner) for one in table.tables(field)] if inner else [
            table.span(field)[1]]
    return max(ends)
