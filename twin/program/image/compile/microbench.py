"""Micro-benchmarks as an image: each probe becomes two entries of the firmware's call list."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from calibration.microbench.probes import (
    MAC_REPEATS,
    TAIL_BYTES,
    Probe,
    Rooms,
    pack_probes,
    probe_layers,
)
from hwmodels.board.facts import Board
from twin.deployment.placement import Placement
from twin.program.image.compile.build import Build, compile_source
from twin.program.image.compile.memory_map import SAMPLES, map_memories
from twin.program.image.compile.plan import Image
from twin.program.image.compile.ports import Port, firmware_folder
from twin.program.image.compile.source import WEIGHTS_S, Source, describe_model, draft_build

CALLS = {
    "chase": "chase({room}, {extent}, {stride}, {laps})",
    "conflict": "chase({room}, {extent}, {stride}, {laps})",
    "shuffled": "chase_shuffled({room}, {extent}, {stride}, {laps})",
    "read": "stream_read({room}, {extent}, {laps})",
    "write": "stream_write({room}, {extent}, {laps})",
    "fetch": "fetch_code({extent}, {laps})",
    "dot": "dot_int8({room}, {extent}, {laps})",
    "branch": "branch_taken({laps})",
    "call": "call_nothing({laps})",
    "loop": "loop_nothing({laps})",
}
"""Functions of `firmware/microbench` by probe group."""

MULTIPLIERS = {"int8": "multiply_int8", "int16": "multiply_int16", "float32": "multiply_float"}
MACROS = {"int8": "MAC_INT8", "int16": "MAC_INT16", "float32": "MAC_FLOAT"}

ALIGNED_BYTES = 128
"""Rooms begin on a line of any cache."""

_REGISTER = re.compile(r"\b([rsqat]\d+)\b")


def hash_probes(probes: Sequence[Probe]) -> str:
    """Return what identifies a list of probes on the wire, as a model's hash does."""
    return hashlib.sha256(pack_probes(probes).encode()).hexdigest()


def build_probes(probes: Sequence[Probe], port: Port, folder: str | Path, rooms: Rooms,
                 board: Board | None = None) -> Build:
    """Build the image of a list of probes.

    Parameters
    ----------
    probes
        In the order they run.
    folder
        Where sources and image go.
    board
        Its memory map, for ports without one of their own.

    Returns
    -------
    Build
        With its sizes.

    Raises
    ------
    ToolMissingError, DoesNotFitError, FirmwareError
        As `build_firmware`.
    """
    weights_bytes = rooms.sizes.get(rooms.weights, 0) if rooms.weights != rooms.arena else 0
    content = bytes(max(weights_bytes, 16))
    arena_bytes = rooms.sizes.get(rooms.arena, 0) + TAIL_BYTES
    source = Source(
        model_c=_write_model(probes, rooms, arena_bytes, len(content)), input_room_bytes=16,
        image=Image(content=content, planned_bytes=len(content), weights={}, bias={},
                    parameters={}, table={}),
        placement=Placement(arena=(), arena_bytes=arena_bytes, live_bytes=(), peak_layer=0,
                            parameter_bytes=0, weight_offsets=(), weights_bytes=len(content)))
    memory_map = ""
    if board is not None and not port.fixed_map:
        memory_map = map_memories(board, code=rooms.code, weights=rooms.weights,
                                  arena=rooms.arena,
                                  others={_section(name): name for name in rooms.others})
    with draft_build(folder) as draft:
        for path in sorted((firmware_folder() / "microbench").glob("*.[ch]")):
            shutil.copy(path, draft / path.name)
        (draft / "mac_code.h").write_text(_write_mac_code(probes), encoding="utf-8")
        (draft / "weights.bin").write_bytes(content)
        (draft / "weights.S").write_text(
            WEIGHTS_S.replace(".balign 32", f".balign {ALIGNED_BYTES}"), encoding="utf-8")
        return compile_source(source, port, draft, memory_map=memory_map, named=Path(folder),
                              samples=next((count for count in reversed(SAMPLES)
                                            if count > 4 * len(probes) + 4), SAMPLES[0]))


def _section(memory: str) -> str:
    return ".probe_room_" + re.sub(r"\W", "_", memory)


def _write_mac_code(probes: Sequence[Probe]) -> str:
    """Return the sequences of multiply-accumulates, with the registers each changes."""
    lines = ["/* Written with the list of probes. */\n"]
    for probe in probes:
        if probe.group == "mac":
            changed = sorted(set(_REGISTER.findall(probe.code)))
            syntax = ".syntax unified\\n" if "r0" in changed else ""  # GCC's default for Armv6-M
            code = syntax + "\\n".join([probe.code.replace("; ", "\\n")] * MAC_REPEATS)
            lines += [f'#define {MACROS[probe.dtype]} "{code}"\n',
                      f"#define {MACROS[probe.dtype]}_CHANGES "
                      + ", ".join(f'"{name}"' for name in (*changed, "cc")) + "\n"]
    return "".join(lines)


def _write_model(probes: Sequence[Probe], rooms: Rooms, arena_bytes: int,
                 weights_bytes: int) -> str:
    room_of = {name: f"room_{place}" for place, name in enumerate(rooms.others)}
    room_of |= {rooms.weights: "model_weights", rooms.arena: "model_arena"}
    declared = "".join(
        f"static uint32_t {room_of[name]}[{rooms.sizes[name] // 4}] "
        f'__attribute__((aligned({ALIGNED_BYTES}), section("{_section(name)}")));\n'
        for name in rooms.others)
    cleared = "".join(f"    clear_room({room_of[name]}, {size}u);\n"
                      for name, size in rooms.sizes.items() if room_of[name] != "model_weights")
    functions, entries = [], []
    for number, probe in enumerate(probes):
        for index, laps in zip(probe_layers(number), (probe.few, probe.many), strict=True):
            call = CALLS.get(probe.group) or f"{MULTIPLIERS[probe.dtype]}({{laps}})"
            call = call.format(room=room_of.get(probe.memory, "model_arena"), laps=f"{laps}u",
                               extent=f"{probe.extent_bytes}u", stride=f"{probe.stride_bytes}u")
            functions.append(f"static void run_{index}(void)\n{{\n    {call};\n}}\n\n")
            entries.append(f'    {{run_{index}, "{probe.name} x{laps}", {arena_bytes - 16}, 4, '
                           f"{index}}},\n")
    return _MODEL.format(
        aligned=ALIGNED_BYTES, declared=declared, cleared=cleared, functions="".join(functions),
        entries="".join(entries), arena=arena_bytes, output=arena_bytes - 16
    ) + describe_model('"microbench"', hash_probes(probes), arena_bytes, (arena_bytes - 32, 16),
                       (arena_bytes - 16, 4), weights_bytes, text="model_input", text_bytes=16)


_MODEL = """\
/* Micro-benchmarks. Generated by `twin measure --plan`. */
#include "model.h"
#include "probes.h"

extern const uint8_t model_weights[];

static uint8_t model_arena[{arena}] __attribute__((aligned({aligned}), section(".model_arena")));
static uint8_t model_input[16] __attribute__((aligned(16)));
{declared}
static void clear_rooms(void)
{{
{cleared}}}

{functions}static const struct model_layer layers[] = {{
    {{clear_rooms, "clear", {output}, 4, 0}},
{entries}}};

"""
