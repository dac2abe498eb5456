"""Timing tables of cores: how each class of instructions goes through one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hwmodels.board.facts import Fact
from hwmodels.errors import KernelError
from hwmodels.frozen import NamedCounts, entity, frozen
from hwmodels.isa.instruction import Instruction
from hwmodels.isa.mnemonics import PARENTS, TABLES

LONGEST_PORT_CYCLES = 8
"""No port rule may ask for an operand sooner before issue."""

LONGEST_CLASS_CYCLES = 256
"""No instruction of a table takes longer; the longest of those shipped takes 37."""

UNITS = frozenset({
    "alu", "branch", "float", "fpu", "fpu_port", "load", "load_store", "long_shift", "mac",
    "multiply", "shift", "simd", "store", "vector_compare", "vector_control", "vector_integer",
    "vector_load", "vector_multiply", "vector_port", "vector_store"})
"""Units an instruction may hold without its core's file saying how many there are."""

TIMING_CLASSES = frozenset({*PARENTS, *PARENTS.values()} | {
    mnemonic.timing for table in TABLES.values() for mnemonic in table.values()})
"""Every timing class an instruction can have."""


@frozen
class ClassTiming:
    """How one timing class of instructions goes through a core.

    Parameters
    ----------
    cycles
        Least distance to the next instruction in program order.
    transfer_cycles
        Added to it for each register a multiple transfer moves, rounded up over all.
    latency_cycles
        From issue to a dependent instruction that needs its operand at issue.
    units
        Units it holds, all from issue on.
    busy_cycles
        For how long it holds them (beats of a vector instruction).
    slot
        "any", "first" (only as the oldest of its issue group) or "alone".
    then_cycles : tuple of (str, int)
        `cycles` for particular kinds or timing classes of the next instruction.
    holds_cycles : tuple of (str, int)
        Cycles after its own in which no instruction of a timing class starts.
    early
        When its operands are there a cycle sooner, so is its result.
    """

    cycles: int = 1
    transfer_cycles: float = 0.0
    latency_cycles: int = 1
    units: tuple[str, ...] = ()
    busy_cycles: int = 1
    slot: str = "any"
    then_cycles: NamedCounts = ()
    holds_cycles: NamedCounts = ()
    early: bool = False


@frozen
class PortRule:
    """When an operand is needed, where that is not at issue.

    Parameters
    ----------
    port
        How it enters: "value", "address", "shift", "accumulate", "data" or "flags".
    producers, consumers
        Timing classes it holds for ("base" for a stepped address register); empty is any.
    cycles
        Positive: needed that much before issue; negative: after, at the earliest in the
        producer's own issue cycle.
    """

    port: str
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    cycles: int


@frozen
class Pairing:
    """Which instructions may issue in the same cycle.

    Parameters
    ----------
    narrow_only
        Both need a 16-bit encoding.
    partners
        Timing classes one of the two must belong to; empty is any.
    second_only
        That one must be the younger.
    taken_after_flags
        A taken branch may join an instruction that sets flags.
    load_banks
        Two loads join only when they go to different word banks of this many; 1 is no banks.
    """

    narrow_only: bool = False
    partners: tuple[str, ...] = ()
    second_only: bool = False
    taken_after_flags: bool = True
    load_banks: int = 1


@frozen
class Refills:
    """Cycles without issue after a change of flow, beyond the branch's own slot.

    Parameters
    ----------
    taken_cycles
        A conditional branch that is taken, in a loop that has run before.
    exit_cycles
        The same branch falling through at the loop's end (a misprediction where there is a
        predictor).
    jump_cycles, call_cycles
        Unconditional branches; calls and loads of the program counter.
    """

    taken_cycles: int
    exit_cycles: int
    jump_cycles: int
    call_cycles: int


@frozen
class Unaligned:
    """What loads and stores cost whose address is not a multiple of their size.

    Parameters
    ----------
    load_cycles, store_cycles
        For each aligned byte, halfword or word it is made of beyond the first.
    """

    load_cycles: int
    store_cycles: int


@frozen
class Traits:
    """What a core is, apart from its timing.

    Parameters
    ----------
    isa
        Instruction set (`hwmodels.isa`).
    fpu
        "single" or "double": floating-point unit most parts with it have.
    widest_fpu
        The widest a part can have, or "none"; by default that of `fpu`, any where none is stated.
    own_caches
        Whether caches are part of the core, which CMSIS enables by `SCB_Enable...`.
    cpuid
        What its identification register reads; 0: none.
    entry_cycles
        From an interrupt request to the handler's first instruction, memories not waiting.
    emulators
        Nearest model of each: "unicorn" ("M33" of UC_CPU_ARM_CORTEX_M33); "qemu" (-cpu), which
        runs what Unicorn cannot; "board": virtual board with this core.
    build
        "flags" of GCC and clang for architecture and ABI, and "link"; "fpu": -mfpu of hard floats;
        "zig": -mcpu of the clang in zig. Empty: no image is built for it.
    """

    isa: str
    fpu: str | None = None
    widest_fpu: str | None = None
    own_caches: bool = False
    cpuid: int = 0
    entry_cycles: int = 12
    emulators: Mapping[Any, str] = field(default_factory=dict)
    build: Mapping[Any, str] = field(default_factory=dict)


@entity
class CoreTiming:
    """A core, as its file in `hwmodels/cores` states it: traits, and how it schedules instructions.

    Parameters
    ----------
    issue_width
        Instructions that can start in one cycle.
    max_ipc
        Instructions per cycle loops can reach: `issue_width` less what the pairing rules forbid.
    multiply_is_mac
        The core has no multiply-accumulate: a plain product is the MAC, unless its factors are
        made or loaded as words in the same block (requantisation).
    loop_buffer
        A low-overhead loop's closing branch issues once per entry only.
    base_latency_cycles
        From issue to the use of an address register the instruction stepped.
    ports
        First match holds.
    unit_counts
        Units there are more than one of.
    unaligned
        None: it is not known, and taken to cost nothing.
    """

    model: str
    description: str
    traits: Traits
    issue_width: int
    max_ipc: float
    multiply_is_mac: bool
    loop_buffer: bool
    base_latency_cycles: int
    refills: Refills
    pairing: Pairing
    classes: Mapping[str, ClassTiming]
    ports: tuple[PortRule, ...]
    unit_counts: Mapping[str, int]
    unaligned: Unaligned | None = None
    facts: tuple[Fact, ...] = field(default=(), repr=False)

    def class_timing(self, instruction: Instruction) -> ClassTiming:
        """Return how this core runs an instruction.

        Raises
        ------
        KernelError
            When it cannot.
        """
        name: str | None = instruction.timing
        while name is not None:
            if name in self.classes:
                return self.classes[name]
            name = PARENTS.get(name)
        raise KernelError(f"core {self.model} cannot run {instruction.text!r}: no timing class "
                          f"{instruction.timing!r} in its table")
