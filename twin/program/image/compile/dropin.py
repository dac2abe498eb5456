"""A network and its measuring firmware as two files, for a project of somebody else's.

The sources of the firmware and the generated calls are joined into one C file: headers once, names
that only one file knows kept apart, constants as an array.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from hwmodels.files import read_regular_text, write_whole
from twin.errors import FirmwareError
from twin.program.image.compile.ports import firmware_folder
from twin.program.image.compile.source import Source

FILES = ("twin_network.c", "twin_network.h")

COMPILER = "the project's"
"""What the image says of its compiler."""

LEFT_OUT = ("memory.c",)
"""Of the core: what a C library has."""

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"(\w+\.h)"[^\n]*\n', re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_STATIC = re.compile(r"^static\s([^;=({\[]{1,500}+)[;=({\[]", re.MULTILINE)
_ROW = 24
_ARENA = ', section(".model_arena")))'
_WEIGHTS = "extern const uint8_t model_weights[];\n"
_HEAD = """/* NAME with its measuring firmware. Written by `twin firmware export`; compile it as C99
 * beside your project and call twin_network_run. TWIN_ARENA and TWIN_WEIGHTS, empty by default, may
 * be attributes that place the arena and the constants: __attribute__((section(".dtcm"))). */
#ifndef TWIN_ARENA
#define TWIN_ARENA
#endif
#ifndef TWIN_WEIGHTS
#define TWIN_WEIGHTS
#endif
"""


def write_drop_in(source: Source, name: str, folder: Path) -> tuple[Path, ...]:
    """Write the two files.

    Parameters
    ----------
    source
        The network as C.

    Returns
    -------
    tuple of Path
        In the order of `FILES`.
    """
    firmware = firmware_folder()
    folders = [firmware / part for part in ("core", "kernels", "protocol", "ports/dropin")]
    parts = [(path.name, read_regular_text(path))
             for part in ("core", "kernels", "ports/dropin")
             for path in sorted((firmware / part).glob("*.c")) if path.name not in LEFT_OUT]
    digest = hashlib.sha256("".join(text for _, text in parts).encode() + source.image.content
                            + source.model_c.encode()).digest()
    build = ", ".join(f"0x{byte:02x}" for byte in digest)
    parts.append(("model.c", _place_constants(source).replace("@BUILD@", build).replace(
        "@COMPILER@", COMPILER)))
    header = read_regular_text(firmware / "ports/dropin" / FILES[1])
    folder.mkdir(parents=True, exist_ok=True)
    written = tuple(folder / name for name in FILES)
    write_whole(written[0], (_HEAD.replace("NAME", _plain(name))
                             + join_sources(parts, folders)).encode())
    write_whole(written[1], header.encode())
    return written


def join_sources(parts: Sequence[tuple[str, str]], folders: Sequence[Path]) -> str:
    """Join C files into one.

    Parameters
    ----------
    parts : sequence of (str, str)
        Name and text of each.

    Notes
    -----
    A name that is static in several files is renamed in each by a macro, and each file's macros end
    with it. Types and enumerations of files must differ.
    """
    names = Counter(name for _, text in parts for name in set(_list_statics(text)))
    seen: set[str] = set()
    joined = []
    for name, text in parts:
        own = sorted(one for one in set(_list_statics(text)) if names[one] > 1)
        stem = re.sub(r"\W", "_", name.removesuffix(".c"))
        body = _inline(text, folders, seen)
        macros = sorted(set(_DEFINE.findall(text)))
        joined += [f"\n/* ---- {name} ---- */\n",
                   *(f"#define {one} {stem}_{one}\n" for one in own), body,
                   *(f"#undef {one}\n" for one in (*own, *macros))]
    return "".join(joined)


def _plain(name: str) -> str:
    return re.sub(r"[^\w :.-]", "_", name)


def _list_statics(text: str) -> list[str]:
    """Return names of functions and variables only one file knows."""
    found = []
    for match in _STATIC.finditer(text):
        words = re.findall(r"\w+", match[1].split(",")[0])
        found += words[-1:]
        found += [re.findall(r"\w+", more)[-1] for more in match[1].split(",")[1:]
                  if re.findall(r"\w+", more)]
    return found


def _inline(text: str, folders: Iterable[Path], seen: set[str]) -> str:
    """Put headers in place of their first inclusion."""
    folders = tuple(folders)

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name == FILES[1]:
            return match[0]
        if name in seen:
            return ""
        seen.add(name)
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if path is None:
            raise FirmwareError(f"{name}: no such header in the firmware")
        return _inline(read_regular_text(path), folders, seen)

    return _INCLUDE.sub(replace, text)


def _place_constants(source: Source) -> str:
    """Return model.c with its constants as an array, and room that attributes may place."""
    text, data = source.model_c, source.image.content
    if _WEIGHTS not in text or _ARENA not in text:
        raise FirmwareError("the generated model.c has another layout than expected")
    rows = (", ".join(map(str, data[at:at + _ROW])) for at in range(0, len(data), _ROW))
    array = (f"static const uint8_t model_weights[{max(len(data), 1)}] "
             "__attribute__((aligned(32))) TWIN_WEIGHTS = {\n" + ",\n".join(rows) + "};\n")
    return text.replace(_WEIGHTS, array, 1).replace(_ARENA, ")) TWIN_ARENA", 1)
