"""Accesses of a real binary under another board: recorded once, replayed under each.

    records = record_layers("unicorn-m4", "firmware.elf", data, functions)
    misses = replay_layers(records, cache, spans)
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.oracles.recording import LayerRecord, record_inference
from calibration.errors import LinkError
from calibration.virtual_board.costs import Span
from hwmodels.board.facts import Cache
from hwmodels.cache.lookup import Lookup
from hwmodels.frozen import frozen
from hwmodels.isa import MACHINES
from hwmodels.program.elf import read_elf_file
from tests.oracles.recordings import minus

_RETURN = {MACHINES["arm"].elf_machine: b"\x70\x47", MACHINES["riscv"].elf_machine: b"\x82\x80"}
"""`bx lr`."""


@frozen
class LayerMisses:
    """What the accesses of one layer met in a data cache.

    Parameters
    ----------
    read_misses, write_misses, write_backs : int
        Lines filled for a load, for a store; dirty lines that left.
    """

    read_misses: int
    write_misses: int
    write_backs: int

    @property
    def misses(self) -> int:
        """Lines filled."""
        return self.read_misses + self.write_misses


def replay_layers(records: Sequence[LayerRecord], cache: Cache, spans: Sequence[Span], *,
                  passes: int = 2) -> tuple[LayerMisses, ...]:
    """Run recorded accesses through a cache, and count in the last pass.

    Parameters
    ----------
    records : sequence of LayerRecord
        In the order of the calls.
    cache : Cache
        It starts empty.
    spans : sequence of Span
        Of memory, whose accesses look it up.
    passes : int
        Inferences: 2 counts a warm one.
    """
    lookup, found = Lookup(cache, np.ones(4, np.int64), np.array([0]), None), []
    for record in [*records] * passes:
        address, size, write = record.accesses.T
        looked_up = np.any([(span.base <= address) & (address < span.end) for span in spans], 0)
        lookup.clear()
        lookup.meet(np.stack([address, size << 2 | write], 1)[looked_up])
        _, _, reads, writes, _ = lookup.met(0, 0)
        found.append(LayerMisses(read_misses=reads, write_misses=writes,
                                 write_backs=int(lookup.leaving[1].sum())))
    return tuple(found[-len(records):])


def empty_layers(image: str | Path, folder: str | Path, functions: Sequence[str]) -> Path:
    """Copy an image whose layers return at once: what is left is reading and calling.

    Parameters
    ----------
    image : path
        ELF file of an Arm Cortex-M or a RISC-V core.
    folder : path
        Where the copy goes.
    functions : sequence of str
        One per layer, as the image names them.

    Raises
    ------
    LinkError
        When the image has no such function.
    """
    target = Path(folder) / "idle.elf"
    shutil.copyfile(image, target)
    elf = read_elf_file(image, LinkError)
    with target.open("r+b") as copy:
        for name in functions:
            symbol = elf.symbol(name)
            if symbol is None:
                raise LinkError(f"{image}: no function {name!r} in the image")
            address = symbol.value & ~1
            (segment,) = [one for one in elf.loads
                          if one.runs <= address < one.runs + one.file_bytes]
            copy.seek(segment.offset + address - segment.runs)
            copy.write(_RETURN[elf.machine])
    return target


def record_layers(name: str, image: str | Path, data: bytes, functions: Sequence[str], *,
                  room: int = 1 << 24) -> tuple[LayerRecord, ...]:
    """Record an inference, and take off what reading the counter and calling a layer do.

    Parameters
    ----------
    name, image, data, room
        As for `record_inference`.
    functions : sequence of str
        One per layer, as the image names them.

    Returns
    -------
    tuple of LayerRecord
        Totals and accesses of the layers alone; misses are not known here. Blocks are left as
        they were recorded.
    """
    with tempfile.TemporaryDirectory() as folder:
        idle = record_inference(name, empty_layers(image, folder, functions), data, room=1 << 16)
    full = record_inference(name, image, data, room=room)
    return tuple(_take_off(one, other) for one, other in zip(full, idle, strict=True))


def _take_off(record: LayerRecord, idle: LayerRecord) -> LayerRecord:
    length = min(len(record.accesses), len(idle.accesses))
    differ = (record.accesses[:length] != idle.accesses[:length]).any(axis=1)
    first = int(differ.argmax()) if differ.any() else length
    behind = len(record.accesses) - (len(idle.accesses) - first)
    totals = minus(record.totals, idle.totals)
    return replace(record, accesses=record.accesses[first:behind],
                   totals=replace(totals, instructions=totals.instructions + 1))  # its return
