"""Sequences the kernels share: calls, bookkeeping, requantisation; with Helium, rows as vectors.

Helium's mix is what gcc 12.2 -O2 makes of the library's intrinsics and inline assembly for
Cortex-M55; register numbers carry only the dependencies. A tail-predicated access of n < 16
bytes is one access; its width here is n rounded down to a power of two.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from hwmodels.kernel import Block, Blocks
from twin.runtimes.lowering.blocks import CALL, RETURN, block, join, plain, read_code, spills
from twin.runtimes.lowering.nests import Move, load, repeat

CODE = read_code(__file__)
"""Instructions of each module."""

_CODE = CODE["sequences"]

_SPREAD = {
    "dsp": (1.0, 1.0, 1.0), "thumb2": (1.0, 1.0, 1.0), "thumb1": (1.4, 1.4, 1.4),
    "rv32": (0.5, 0.6, 1.0),
}
"""Bookkeeping relative to Thumb-2: eight low registers spill more, thirty-one spill less."""


@cache
def bookkeeping(dialect: str, loads: int, stores: int, arithmetic: int, jumps: int = 0) -> str:
    """Return index arithmetic and spills around an inner loop, as read from compiled code.

    Parameters
    ----------
    loads, stores, arithmetic
        Stack loads, stack stores and register instructions gcc 12.2 -O2 needs on Armv7-M; other
        dialects need in proportion.
    jumps
        Branches taken inside.
    """
    counts = [round(count * spread) for count, spread in zip(
        (loads, stores, arithmetic), _SPREAD[dialect], strict=True)]
    return spills(dialect, *counts, jumps)


@cache
def requantise(dialect: str, channels: int, outputs: int = 1) -> str:
    """Return scaling, clamping and storing of int8 results with per-channel parameters.

    Parameters
    ----------
    channels
        Channels, each with one load of its multiplier and shift.
    """
    one = join(_CODE.scale[dialect], _CODE.clamp[dialect], _CODE.store[dialect])
    return join(*[join(_CODE.parameters[dialect], *[one] * outputs)] * channels)


@cache
def requantise_tensor(dialect: str, outputs: int) -> str:
    """Return scaling, clamping and storing with one multiplier for all: shifts are hoisted."""
    one = join(_CODE.scale_hoisted[dialect], _CODE.clamp[dialect], _CODE.store[dialect])
    return join(*[one] * outputs)


def finish_four(dialect: str) -> str:
    """Return scaling, clamping and storing of four channels: one word on Armv7-M."""
    scale = join(_CODE.parameters[dialect], _CODE.scale[dialect])
    if plain(dialect) == "thumb2":
        return join(*[scale] * 4, _CODE.clamp_4_packed)
    return join(*[scale] * 4, *[join(_CODE.clamp[dialect], _CODE.store[dialect])] * 4)


def bias_load(dialect: str) -> str:
    """Return the load of one channel's bias."""
    return "lw a2, 0(a4)" if dialect == "rv32" else "ldr r3, [r2]"


def entry(dialect: str, instructions: int, calls: int, name: str = "call") -> Block:
    """Return prologue and epilogue of a function: arguments, saved registers, set-up.

    Parameters
    ----------
    instructions
        Of both together, on Armv7-M.
    calls
        How often it is called.
    """
    saved = (instructions - 2) // 4
    code = join(bookkeeping(dialect, saved, saved, instructions - 2 - 2 * saved), CALL[dialect],
                RETURN[dialect])
    return block(name, code, calls, cause="kernel_call")


def in_fours(dialect: str, length: int) -> tuple[int, int]:
    """Return groups of four a core with DSP takes at once, and elements left to single steps."""
    return divmod(length, 4) if dialect == "dsp" else (0, length)


def column_loops(dialect: str, name: str, columns: int, entries: int,
                 codes: tuple[str, str, str], peeled: bool = False) -> Blocks:
    """Return the loops over the columns of a product: by 16, 4 and 1 with DSP, else by 1.

    Parameters
    ----------
    columns, entries
        Length of the product, and how many there are.
    codes
        Sixteen, four and one column.
    peeled
        What sixteen leave over is written out, no loop.
    """
    wide, four, one = codes
    if dialect != "dsp":
        return (block(f"column {name}", one, entries * columns, entries),)
    looped = None if peeled else entries
    return (block(f"16 columns {name}", wide, entries * (columns // 16), entries),
            block(f"4 columns {name}", four, entries * (columns % 16 // 4), looped),
            block(f"column {name}", one, entries * (columns % 4), looped))


VECTOR_BYTES = 16


def floor_width(size_bytes: int) -> int:
    """Return the largest access width not above `size_bytes`: 1, 2, 4, 8 or 16."""
    return min(VECTOR_BYTES, 1 << (size_bytes.bit_length() - 1))


def vectors(size_bytes: int) -> int:
    """Vector iterations that cover `size_bytes`."""
    return -(-size_bytes // VECTOR_BYTES)


def row_moves(size_bytes: int, *rows: Move) -> list[Any]:
    """Return a loop over vectors of several rows, and the predicated tail.

    Parameters
    ----------
    rows
        The access of the first vector of each row; stepped by a loop named "vector".
    """
    full, tail = divmod(size_bytes, VECTOR_BYTES)
    body = [row._replace(steps_bytes={**row.steps_bytes, "vector": VECTOR_BYTES}) for row in rows]
    moves: list[Any] = [repeat("vector", full, *body)]
    if tail:
        moves += [row._replace(width_bytes=floor_width(tail),
                               offset_bytes=row.offset_bytes + VECTOR_BYTES * full)
                  for row in rows]
    return moves


def lane_moves(move: Move, lanes: int) -> list[Move]:
    """Return the accesses of a widening load or narrowing store of up to four bytes.

    Two beats run per clock tick, so each pair of bytes is an access of its own. The Apollo510
    table counts 115 thousand for the depthwise layer; with the stack this comes to 107 thousand,
    one access of four bytes to 84.
    """
    pairs = [move._replace(width_bytes=2, offset_bytes=move.offset_bytes + 2 * pair)
             for pair in range(lanes // 2)]
    last = [move._replace(width_bytes=1, offset_bytes=move.offset_bytes + lanes - 1)]
    return pairs + last * (lanes % 2)


def row_load(operand: str, offset_bytes: int = 0, /, **steps_bytes: int) -> Move:
    """Return a sixteen-byte load, or a store as `load` has it."""
    return load(operand, VECTOR_BYTES, offset_bytes, **steps_bytes)


row_store = partial(row_load, write=True)


def copy_loop(name: str, rows: int, size_bytes: int,
              code: str = "vldrb.u8 q0, [r8], #16; vstrb.8 q0, [r0], #16") -> Block:
    """Return the tail-predicated loop that copies rows of `size_bytes`, or fills them."""
    return block(name, code + "; letp lr, 0b", rows * vectors(size_bytes), rows, "data_copy")
