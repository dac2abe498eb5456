"""The linker's memory map of a board."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from hwmodels.board.facts import Board, Memory
from twin.deployment.deployment import Deployment
from twin.deployment.draft import Draft
from twin.program.image.compile.source import count_input_room

SAMPLES = (1024, 512, 256, 128)
"""Samples the firmware may keep, most first."""

SAMPLE_BYTES = 16
"""Of struct wire_sample."""

HARNESS_BYTES = 12 * 1024
"""RAM left for stack, line buffers and the run loop: 4 KiB, 3 KiB and what initialised data and
alignment take, rounded up; the linker refuses what does not fit."""


def write_memory_map(deployment: Deployment) -> str:
    """Write memory.ld: the board's memories, and which holds code, weights, arena and the rest.

    Notes
    -----
    Data, stack and line buffers share the arena's memory.
    """
    return map_memories(deployment.board, code=deployment.code, weights=deployment.weights,
                        arena=deployment.arena)


def map_memories(board: Board, *, code: str, weights: str, arena: str,
                 others: Mapping[str, str] = MappingProxyType({})) -> str:
    """Write a memory map.

    Parameters
    ----------
    others
        Section to memory: room that nothing is loaded into.
    """
    roles = {"CODE": code, "WEIGHTS": weights, "RAM": arena, "ARENA": arena}
    used = [board.memory(name) for name in dict.fromkeys((*roles.values(), *others.values()))]
    regions = "".join(f"    {_region(memory.name)} : ORIGIN = {memory.address:#010x}, "
                      f"LENGTH = {_length(memory)}\n" for memory in used)
    aliases = "".join(f'REGION_ALIAS("{role}", {_region(name)})\n' for role, name in roles.items())
    rooms = "".join(f"SECTIONS {{ {section} (NOLOAD) : {{ KEEP(*({section})) }} > {_region(name)} "
                    "}\n" for section, name in others.items())
    return (f"/* {board.name}; written by `twin firmware build`. */\nMEMORY\n{{\n{regions}}}\n"
            f"{aliases}{rooms}")


def _length(memory: Memory) -> str:
    size = memory.size_bytes
    return f"{size // 1024}K" if size % 1024 == 0 else str(size)


def _region(name: str) -> str:
    # A prefix keeps a memory called "ram" apart from the role RAM.
    return "MEMORY_" + re.sub(r"\W", "_", name).upper()


def choose_sample_capacity(deployment: Draft, arena_bytes: int, input_bytes: int) -> int:
    """Return samples that fit beside arena and input, at least the fewest."""
    room = (deployment.board.memory(deployment.arena).size_bytes - arena_bytes - input_bytes
            - HARNESS_BYTES)
    return next((count for count in SAMPLES if SAMPLE_BYTES * count <= room), SAMPLES[-1])


def count_own_ram(draft: Draft, fixed_map: bool) -> dict[str, int]:
    """Return RAM of the samples beyond the fewest and of the input's copies.

    Parameters
    ----------
    fixed_map
        Whether the port brings its memory map: then there are as many samples as any has.
    """
    input_bytes = count_input_room(draft.executed)
    samples = SAMPLES[0] if fixed_map else choose_sample_capacity(
        draft, draft.placement.arena_bytes, input_bytes)
    return {"samples": SAMPLE_BYTES * (samples - SAMPLES[-1]), "input": input_bytes}
