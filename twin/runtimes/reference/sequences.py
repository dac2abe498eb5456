"""Instruction sequences of the portable C kernels, by instruction set and number format.

Three dialects, `thumb2`, `thumb1` and `rv32`, times four formats: int8 and int16 (fixed-point
requantisation), float with an FPU, float in software. Counts are read from the kernels' loops
compiled with gcc 12.2 -O2 with shapes in local variables; register numbers carry only the
dependencies. Bodies of software floating point are libgcc's mean path lengths (assumed: they
depend on the data).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hwmodels.file_cache import read_yaml_once
from hwmodels.kernel import Lowered
from twin.errors import RuntimeRefusedError
from twin.runtimes.lowering import Site
from twin.runtimes.lowering.blocks import (
    BRANCH,
    CALL,
    RETURN,
    block,
    build_kernel,
    join,
    plain,
    spills,
)
from twin.runtimes.lowering.nests import count_blocks, resolve

Counts = tuple[int, int, int]
"""Stack loads, stack stores and register instructions."""

Table = dict[str, Counts]
"""The same by dialect, or by dialect and number format where that differs."""

COUNTS: Mapping[str, Mapping[str, Any]] = read_yaml_once(Path(__file__).with_name("counts.yaml"))
"""Counts and tables of each module, by name."""

CODE: Mapping[str, Mapping[Any, Any]] = read_yaml_once(
    Path(__file__).with_name("instructions.yaml"))
"""Instructions by what they do, then by dialect, or by dialect and number format."""

CALL_COUNTS: Counts = (34, 30, 46)
"""A call of a convolution."""


class Machine(NamedTuple):
    """What a layer's C is compiled to: dialect, and "int8", "int16", "float" or "soft".

    `narrow` is whether a bias beside int16 activations has 32 bits, as ONNX keeps it; `site` is
    where the layer runs. Methods return instructions, but `kernel`.
    """

    dialect: str
    number: str
    narrow: bool = False
    site: Site | None = None

    @property
    def at(self) -> Site:
        """The site, where the machine has one."""
        assert self.site is not None
        return self.site

    @property
    def is_float(self) -> bool:
        """Whether activations are float32."""
        return self.number in ("float", "soft")

    @property
    def element_bytes(self) -> int:
        """Bytes of an activation."""
        return {"int8": 1, "int16": 2}.get(self.number, 4)

    @property
    def weight_bytes(self) -> int:
        """Bytes of a weight."""
        return 4 if self.is_float else 1

    @property
    def bias_bytes(self) -> int:
        """Bytes of a bias; 64-bit beside int16 activations, as TensorFlow Lite keeps it."""
        return 8 if self.number == "int16" and not self.narrow else 4

    @property
    def namespace(self) -> str:
        """Where TensorFlow Lite keeps kernels of these numbers."""
        return "reference_ops" if self.is_float else "reference_integer_ops"

    def pick(self, counts: Counts | Table) -> Counts:
        """Return the counts of this machine: its own of a table, else those of its dialect."""
        if not isinstance(counts, dict):
            return counts
        return counts.get(f"{self.dialect} {self.number}", counts.get(
            f"thumb2 {self.number}" if self.number == "float" else self.dialect,
            counts[self.dialect]))

    def spend(self, counts: Counts | Table) -> str:
        """Return bookkeeping."""
        return spills(self.dialect, *self.pick(counts))

    def loop(self, counts: Counts | Table) -> str:
        """Return bookkeeping whose last instruction is the loop's closing branch."""
        return self._end(counts, BRANCH)

    def skip(self, counts: Counts | Table) -> str:
        """Return bookkeeping whose last instruction is a conditional jump forward."""
        return self._end(counts, CODE["skip"])

    def _end(self, counts: Counts | Table, last: Mapping[str, str]) -> str:
        loads, stores, others = self.pick(counts)
        return join(spills(self.dialect, loads, stores, max(0, others - 1)), last[self.dialect])

    def requantise(self, times: int = 1) -> str:
        """Return calls of the doubling high multiply with rounding shift; nothing for floats."""
        if self.is_float:
            return ""
        code = CODE["requantise"][self.dialect]
        if isinstance(code, list):
            code = join(code[0], spills(self.dialect, 2, 2, 35), code[1])
        return join(*[code] * times)

    def routine(self, instructions: int) -> str:
        """Return a call of a routine that long."""
        return join(CALL[self.dialect], spills(self.dialect, 0, 0, instructions - 1),
                    RETURN[self.dialect])

    def math(self, *operations: str) -> str:
        """Return float operations (add, mul, div, compare, convert); nothing for integers."""
        if not self.is_float:
            return ""
        hard = CODE["hard"].get(self.dialect) if self.number == "float" else None
        return join(*[
            hard[one] if hard else self.routine(self.routines[one]) for one in operations])

    @property
    def routines(self) -> dict[str, int]:
        """Instructions of float routines: of the build's own library, else of libgcc."""
        soft = CODE["soft"]
        return dict(soft.get(self.site and self.site.soft_float) or soft[self.dialect])

    def exponential(self) -> str:
        """Return one `expf`: 71 instructions with an FPU; else the integer part and the calls."""
        if self.number == "float":
            return join(CALL[self.dialect], spills(self.dialect, 16, 2, 30), RETURN[self.dialect],
                        self.math(*["mul"] * 10, *["add"] * 10, "div"))
        if "exp" in self.routines:
            return self.routine(self.routines["exp"])
        return join(self.routine(100), self.math(*["mul"] * 10, *["add"] * 12, "div"))

    def load(self, width_bytes: int, count: int = 1) -> str:
        """Return loads of elements of 1, 2 or 4 bytes, into FPU registers where there are any."""
        if self.number == "float" and width_bytes == 4:
            text = "flw fa4, 0(a1)" if self.dialect == "rv32" else "vldmia r1!, {s14}"
        else:
            text = CODE["loads"][self.dialect][width_bytes]
        return join(*[text] * count)

    def store(self, width_bytes: int) -> str:
        """Return a store of one element."""
        if self.number == "float" and width_bytes == 4:
            return "fsw fa5, 0(a6)" if self.dialect == "rv32" else "vstmia r6!, {s15}"
        return CODE["stores"][self.dialect][width_bytes]

    def kernel(self, name: str, family: str, call: Counts, *drafts: Any, macs: int = 0,
               assumed: bool = False) -> Lowered:
        """Return the kernel of loops; blocks without instructions are omitted.

        Parameters
        ----------
        name, family
            Function of the library, and operator family.
        call
            Prologue, reading of the arguments and epilogue.
        drafts : Repeat, Move, Step or Block
            In program order.
        macs
            Multiply-accumulates the result needs.
        assumed
            No source and no data stands behind the structure; of soft floats and int16 never.
        """
        entry = block("call", join(CALL[self.dialect], self.spend(call), RETURN[self.dialect]), 1,
                      cause="kernel_call")
        blocks = tuple(one for one in (entry, *count_blocks(*drafts)) if one.code)
        return (build_kernel(name, family, self.at, blocks, resolve(*drafts), macs,
                             assumed or self.number in ("soft", "int16")),)


def choose_machine(site: Site) -> Machine:
    """Return dialect and number format of a layer at a site.

    Raises
    ------
    RuntimeRefusedError
        For an instruction set or activation type the kernels are not lowered for.
    """
    dtype = site.source.dtype
    dialect = plain(site.dialect)
    if dtype == "float32":
        return Machine(dialect, "float" if site.fpu else "soft", site=site)
    if dtype in ("int8", "uint8", "bool"):
        return Machine(dialect, "int8", site=site)
    if dtype in ("int16", "uint16", "float16", "bfloat16"):
        third = site.layer.inputs[2] if len(site.layer.inputs) > 2 else -1
        return Machine(dialect, "int16", third >= 0 and site.graph.tensors[third].dtype == "int32",
                       site)
    if dtype in ("int32", "uint32", "int64", "uint64", "float64"):  # moved, never multiplied
        return Machine(dialect, "soft", site=site)
    raise RuntimeRefusedError(f"layer {site.layer.name}: reference kernels do not run {dtype}; "
                              "accepted: int8, int16, float32")
