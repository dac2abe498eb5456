"""Instruction sets, one file each in `hwmodels/isa`; kinds of machine code, in `machines.yaml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from hwmodels.errors import BoardError, check_known
from hwmodels.file_cache import read_yaml_once
from hwmodels.files import read_regular_text
from hwmodels.frozen import frozen

_FOLDER = Path(__file__).parent
ISAS = tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))
"""Names of all instruction sets, as board and runtime files have them."""

Extension = Literal["c", "dsp", "mve", "pie", "xesp"]
"""Code for an operator: plain C, packed 16-bit multiplies, Helium vectors, vectors of the
ESP32-S3 and of the ESP32-P4."""

EXTENSIONS: tuple[str, ...] = get_args(Extension)

DEFAULT = "armv7e-m"
"""Instruction set of exported sources where none is asked for."""


@frozen
class MachineCode:
    """A kind of machine code: what ELF reader, decoder, emulator and compiler are chosen by.

    Parameters
    ----------
    description
        Behind "a program of".
    elf_machine
        e_machine of its ELF files.
    architectures
        Value of an Arm program's build attribute Tag_CPU_arch -> name.
    unicorn, capstone
        Constants of the emulator and of the disassembler; models of cores, registers a program
        computes with, and names of those every core has. Empty: programs are not run.
    objdump
        Command and package of a disassembler that knows instructions capstone lacks.
    qemu
        Program that emulates such machines, its package and its models of cores (-cpu).
    compiler
        Command, and what to type where it is missing.
    probe_port
        Folders of the port through a debug probe, which any core of the kind has.
    images
        Dialects whose firmware images are read without being run.
    foreign
        In names of kernel libraries written for another kind.
    native
        Whether it is that of this machine.
    """

    name: str
    description: str
    elf_machine: int
    foreign: str
    architectures: Mapping[int, str] = field(default_factory=dict)
    unicorn: Mapping[str, Any] = field(default_factory=dict)
    capstone: Mapping[str, Any] = field(default_factory=dict)
    objdump: Mapping[str, Any] = field(default_factory=dict)
    qemu: Mapping[str, Any] = field(default_factory=dict)
    compiler: Sequence[str] = ()
    probe_port: str = ""
    images: Sequence[str] = ()
    native: bool = False


_KINDS = read_yaml_once(_FOLDER.with_name("machines.yaml"))
MACHINES = {name: MachineCode(name=name, **facts) for name, facts in _KINDS["kinds"].items()}
OTHERS: Mapping[int, str] = _KINDS["others"]
"""Machine code of nobody here, by e_machine."""


@frozen
class InstructionSet:
    """One instruction set.

    Parameters
    ----------
    machine
        Key of `MACHINES`.
    architectures
        Values of an Arm program's build attribute Tag_CPU_arch that it runs (ABI addenda, IHI 0045,
        3.3.6.1); empty: not checked.
    dialect
        Assembly that plain C kernels are written down in (`twin.runtimes.lowering.blocks`).
    extensions
        Code a core can run, best first; "c" is plain C.
    vector_bits
        Width of a vector register, 0 without vectors.
    registers
        Size of each register file: "general" (that programs compute in), "float", "vector".
    hardware_loops
        Whether a loop can close without a branch instruction.
    signed_byte_loads
        Whether a load extends the sign of a byte.
    without
        Best extension code may use -> instruction set it is compiled for.
    macro
        What CMSIS-NN's sources are compiled with for its extension.
    priority_bits
        Of an interrupt, of parts whose board does not say; four is assumed of most vendors' parts.
    counted
        FPU ("none", "single", "double") -> core whose table of counted instructions is nearest.
    counted_elsewhere
        Whether that core has another instruction set.
    counted_as
        Kernels not counted on that core -> instruction set whose core stands in.
    counts_carry
        Whether instruction counts of another 32-bit instruction set hold.
    learnt_from
        Instruction sets whose compiled libraries tell what a core of this one runs.
    assumed
        Whether kernels are assumed throughout.
    mac_loops
        Data type -> densest run of independent multiply-accumulates.
    load_loop
        Densest run of loads; "": not known.
    """

    name: str
    description: str
    machine: str
    architectures: tuple[int, ...] = ()
    dialect: str
    extensions: tuple[Extension, ...] = ("c",)
    vector_bits: int = 0
    registers: Mapping[str, int]
    hardware_loops: bool = False
    signed_byte_loads: bool = True
    without: Mapping[str, str] = field(default_factory=dict)
    macro: str = ""
    priority_bits: int = 4
    counted: Mapping[str, str]
    counted_elsewhere: bool = False
    counted_as: Mapping[str, str] = field(default_factory=dict)
    counts_carry: bool = False
    learnt_from: tuple[str, ...] = ()
    assumed: bool = False
    mac_loops: Mapping[str, str] = field(default_factory=dict)
    load_loop: str = ""

    @property
    def code(self) -> MachineCode:
        """Its kind of machine code."""
        return MACHINES[self.machine]


@cache
def load_isa(name: str) -> InstructionSet:
    """Return an instruction set by name; raises `BoardError` for one that is not known."""
    check_known("instruction set", name, ISAS, BoardError)
    facts: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value
                             in read_yaml_once(_FOLDER / f"{name}.yaml").items() if key != "schema"}
    return InstructionSet(name=name, **facts)


def plain_isa(dialect: str) -> str:
    """Return the first instruction set of a dialect that runs plain C only."""
    return next(isa for isa in ISAS if load_isa(isa).dialect == dialect
                and load_isa(isa).extensions == ("c",))


def machine_isa(machine: str) -> str:
    """Return the first instruction set of a kind of machine code."""
    return next(isa for isa in ISAS if load_isa(isa).machine == machine)


def native_isa() -> str:
    """Return the instruction set programs are compiled for that run on this machine."""
    return next(isa for isa in ISAS if load_isa(isa).code.native)


@cache
def read_name(name: str) -> str:
    """Return the name used here of an instruction set, or a core's table; others as they are.

    No kernel uses the atomics of RV32IMAC: a core that has them runs and costs what RV32IMC does.
    """
    lines = read_regular_text(_FOLDER / "aliases.csv").split()
    return dict(line.split(",") for line in lines).get(name, name)
