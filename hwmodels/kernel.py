"""What hardware is asked to do: basic blocks with trip counts, and the accesses they make.

A `Kernel` knows no model format. Instructions are written as assembly text, so a block taken
from a disassembly and one derived by lowering are the same noun.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from hwmodels.frozen import frozen


@frozen
class Block:
    """A basic block: a straight run of instructions and how often it is run.

    Parameters
    ----------
    name
        What the block does, for people: "inner 4 MAC", "requantise", "copy row".
    code
        Instructions in assembly text, separated by newlines or semicolons
        ("ldr r4, [r0], #4; smlad r8, r4, r5, r8; subs r6, #1; bne loop").
    entries
        How often it is entered from elsewhere. A loop body has trips > entries: its closing
        branch is taken `trips - entries` times. A straight block has entries == trips.
    cause
        Cause all issue slots of this block belong to (for example "data_copy" for an im2col
        copy, "kernel_call" for a prologue); None: by instruction class.
    """

    name: str
    code: str
    trips: int
    entries: int
    cause: str | None = None

    def __post_init__(self) -> None:
        """Refuse more entries than trips."""
        if not 0 <= self.entries <= self.trips:
            raise ValueError(f"block {self.name!r}: {self.entries} entries of {self.trips} trips")


def split_runs(block: Block, *, loops: bool, jump: str) -> Iterator[Block]:
    """Yield a loop as it is, or a block as its runs that fall through and those that branch.

    Parameters
    ----------
    block
        Its closing conditional branch is taken in all `trips` but `entries`.
    loops
        Whether that branch goes to its own start.
    """
    taken = 0 if loops else block.trips - block.entries
    if block.trips > taken:
        yield replace(block, trips=block.trips - taken)
    if taken:
        yield replace(block, name=f"{block.name}, branching", trips=taken, entries=taken,
                      code="\n".join([*block.code.splitlines()[:-1], jump]))


@frozen
class Guard:
    """Bounds on an affine index; an access outside them does not happen (padding).

    The access is made where 0 <= offset + sum(steps[d] * i[d]) < limit.
    """

    steps: tuple[int, ...]
    offset: int
    limit: int


@frozen
class Access:
    """One load or store of a loop nest.

    Parameters
    ----------
    operand
        Name of the kernel's operand it touches.
    width_bytes
        Bytes moved by one access: 1, 2, 4, 8 or 16.
    offset_bytes
        Added to the operand's address.
    steps_bytes
        Address step of each enclosing loop, outermost first; one per enclosing loop.
    guards
        All must hold; `steps` as long as `steps_bytes`.
    """

    operand: str
    write: bool
    width_bytes: int
    offset_bytes: int = 0
    steps_bytes: tuple[int, ...] = ()
    guards: tuple[Guard, ...] = ()


class _HashOnce:
    """Where a loop keeps its hash: of a nest of thousands of accesses it is asked for often."""

    __slots__ = ("_hash",)
    _hash: int


@frozen
class Loop(_HashOnce):
    """A counted loop over accesses and inner loops, in program order."""

    extent: int
    body: tuple[Loop | Access, ...]

    def __hash__(self) -> int:
        """Hash what equality compares, once."""
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.extent, self.body)))
            return self._hash


Nest = Loop | Access


@frozen
class Operand:
    """A piece of memory a kernel touches.

    Parameters
    ----------
    name
        As accesses name it; unique in the kernel.
    role
        "weights", "bias", "input", "output", "scratch" or "parameters" (requantisation).
    memory
        Name of the board's memory that holds it.
    address
        Absolute address of its first byte.
    size_bytes
        Its extent; no access may leave it.
    """

    name: str
    role: str
    memory: str
    address: int
    size_bytes: int


@frozen
class Kernel:
    """A call into a kernel library, as hardware sees it.

    Parameters
    ----------
    name
        Function of the library, "arm_convolve_s8".
    family
        Operator family, the key of a runtime's efficiencies: "conv", "pointwise", "depthwise",
        "fully_connected", "pool", "elementwise", "activation", "softmax", "data_movement",
        "recurrent", "quantize".
    nests : tuple of Loop or Access
        Data accesses in program order.
    operands
        What the accesses touch.
    useful_macs
        Multiply-accumulates the result needs: without padding, dead channels or idle lanes.
    code_bytes
        Footprint of the code that runs, for instruction fetch.
    assumed
        No source and no data stands behind the structure.
    calls
        Calls of it in a row that the blocks, accesses and products are of.
    """

    name: str
    family: str
    blocks: Blocks
    nests: Nests
    operands: Operands
    useful_macs: int = 0
    code_bytes: int = 0
    assumed: bool = False
    calls: int = 1


Blocks = tuple[Block, ...]

Nests = tuple[Nest, ...]

Operands = tuple[Operand, ...]

Lowered = tuple[Kernel, ...]
"""What a layer is lowered to, in the order it runs; none for an alias and off the core."""


def walk_accesses(nests: Nests) -> Iterator[tuple[tuple[int, ...], Access]]:
    """Yield each access with the extents of the loops around it, outermost first."""
    for nest in nests:
        yield from _walk(nest, ())


def _walk(nest: Nest, extents: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Access]]:
    if isinstance(nest, Access):
        yield extents, nest
        return
    for inner in nest.body:
        yield from _walk(inner, (*extents, nest.extent))


def count_accesses(nests: Nests) -> int:
    """Return the accesses of a nest when no guard holds one back (an upper bound when some do)."""
    return sum(math.prod(extents) for extents, _ in walk_accesses(nests))
