"""How deep the stack is when a layer is called, from the frames of the functions on the way."""

from __future__ import annotations

import re
from itertools import pairwise

from twin.program.elf import Elf, Function
from twin.program.image.read.sources import number, register_list, split_operands

CHAIN = ("Reset_Handler", "run_firmware", "handle_byte", "handle_frame", "handle_request",
         "answer_request", "answer_run", "make_runs", "run_model", "run_measured_layer",
         "run_layer")
"""Functions of firmware/core that call one another down to a layer; the compiler may have put
some of them into their callers."""

_BACK = re.compile(r"^\[sp, #-(\d+)\]!$")


def layer_stack_pointer(image: Elf) -> int:
    """Return the stack pointer a layer is called with while it is measured.

    Notes
    -----
    stack_top - sum of the frames of `CHAIN`; a frame is what stands in a function's pushes and
    subtractions from sp before its call of the next. Through a pointer the call may be anywhere.
    """
    names = {function.name: function for function in image.functions}
    chain = [names[name] for name in CHAIN if name in names]
    depth = sum(_frame_bytes(image, here, following) for here, following in pairwise(chain))
    if chain:
        depth += _pushed_bytes(image, chain[-1], chain[-1].end)
    return image.symbols["stack_top"] - depth


def _frame_bytes(image: Elf, here: Function, following: Function) -> int:
    """Bytes one function holds while the next runs; none where it jumps there."""
    jumps = False
    for address in range(here.start, here.end, 2):
        one = image.instructions.get(address)
        if one is None:
            continue
        if one.mnemonic == "bl" and int(one.operands, 16) == following.start:
            return _pushed_bytes(image, here, address)
        if one.mnemonic in ("b.w", "b.n"):
            jumps |= int(one.operands, 16) == following.start
        jumps |= one.mnemonic == "bx" and one.operands != "lr"
    return 0 if jumps else _pushed_bytes(image, here, here.end)


def _pushed_bytes(image: Elf, function: Function, until: int) -> int:
    taken = 0
    for address in range(function.start, until, 2):
        one = image.instructions.get(address)
        if one is None:
            continue
        tokens, name = split_operands(one.operands), one.mnemonic.split(".")[0]
        if name in ("push", "vpush"):
            taken += 4 * len(register_list(tokens[0]))
        elif name == "stmdb" and tokens[0] == "sp!":
            taken += 4 * len(register_list(tokens[1]))
        elif name == "sub" and tokens[0] == "sp":
            taken += number(tokens[-1]) or 0
        elif back := _BACK.match(tokens[-1] if tokens else ""):
            taken += int(back[1])
    return taken
