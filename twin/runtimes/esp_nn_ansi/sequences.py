"""Instructions of a loop level of ESP-NN, by kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hwmodels.errors import check_word
from hwmodels.file_cache import read_yaml_once
from hwmodels.isa import load_isa
from hwmodels.kernel import Block
from twin.errors import RuntimeRefusedError
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.blocks import BRANCH, CALL, RETURN, block, join, spread
from twin.runtimes.reference.sequences import Machine

INT8 = Machine("rv32", "int8")
"""What the accesses of the int8 kernels are: bytes, parameters of four."""


class Level(NamedTuple):
    """Instructions of one turn of a loop besides its branch.

    `vload`, `vstore`, `vmac`, `valu` are of 128-bit vectors, `high` products whose both words are
    taken.
    """

    alu: int = 0
    load: int = 0
    store: int = 0
    high: int = 0
    mul: int = 0
    div: int = 0
    vload: int = 0
    vstore: int = 0
    vmac: int = 0
    valu: int = 0

    def plus(self, other: Level, times: int = 1) -> Level:
        """Return both, the other one so many times."""
        return Level(*(one + times * two for one, two in zip(self, other, strict=True)))


def _read_levels(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_read_levels, value))
    if isinstance(value, dict):
        return Level(**value) if {*Level._fields} >= {*value} else {
            key: _read_levels(inner) for key, inner in value.items()}
    return value


LEVELS = _read_levels(read_yaml_once(Path(__file__).with_name("levels.yaml")))
"""Levels of each module, by name."""

ALU = ("add a2, a2, a3", "addi a1, a1, 1", "mv a5, a2", "slli a4, a0, 1")
_TEXTS: tuple[tuple[str, ...], ...] = (
    ALU,
    ("lw a3, 28(sp)", "lw a0, 44(sp)"), ("sw a1, 36(sp)",), ("mulh a5, a0, a1; mul a0, a0, a1",),
    ("mul a4, a4, a3",), ("div a4, a4, a3",), ("ee.vld.128 q0, 0(a1)", "ee.vld.128 q1, 0(a2)"),
    ("ee.vst.128 q2, 0(a6)",), ("ee.vmulas.s16.qacc q3, q4",),
    ("ee.vadds.s32 q5, q6, q7", "ee.vzip.8 q6, q7"))
"""Instructions of each kind, in the order of `Level`."""


@cache
def level_text(level: Level) -> str:
    """Return instructions of a level, kinds evenly mixed: a compiler and a pipeline like that."""
    return spread(dict(enumerate(_TEXTS)), dict(enumerate(level)))


def looped(name: str, level: Level, trips: int, entries: int) -> Block:
    """Return a level whose branch closes its loop."""
    return block(name, join(level_text(level), BRANCH["rv32"]), trips, entries)


def run_through(name: str, level: Level, trips: int, entries: int | None = None) -> Block:
    """Return a level without a branch: straight, or a loop that closes without instructions."""
    return block(name, level_text(level), trips, trips if entries is None else entries)


def call_level(level: Level) -> Block:
    """Return prologue, reading of the arguments and epilogue of a kernel."""
    return block("call", join(CALL["rv32"], level_text(level), RETURN["rv32"]), 1,
                 cause="kernel_call")


def innermost(name: str, text: str, trips: int, entries: int, site: Site, signed: int) -> Block:
    """Return an innermost loop of RV32 as the core of a site has it.

    Parameters
    ----------
    name, text
        What it does, and its instructions up to the branch.
    trips, entries
        How often it runs, and is entered.
    signed
        Signed bytes it loads.
    """
    isa = load_isa(site.isa)
    extended = () if isa.signed_byte_loads else ("slli a7, a3, 24",) * signed
    close = "" if isa.hardware_loops else "bne s5, a2, 0b"
    return block(name, join(text, *extended, close), trips, entries)


def has_offset(site: Site) -> bool:
    """Whether the zero of a layer's input is no 0, so that sums of weights are needed."""
    quantization = site.source.quantization
    return quantization is None or any(quantization.zero_points)


def check_core(site: Site) -> None:
    """Refuse a core whose instructions of ESP-NN nobody counted.

    Raises
    ------
    RuntimeRefusedError
        Naming those it is.
    """
    check_word(f"layer {site.layer.name}: ESP-NN was not counted on a core of", site.isa,
               LEVELS["cores"], RuntimeRefusedError)
