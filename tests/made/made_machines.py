"""Random boards, and kernels with random accesses on them."""

from __future__ import annotations

import random
from dataclasses import replace

from cache_cases import random_kernel

from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.kernel import Block, Kernel

BOARDS = ("nucleo_h7a3zi_q", "stm32h747i_disco", "nucleo_h723zg", "stm32n6570_dk")
"""With a data cache over SRAM and flash, and a tightly coupled memory beside it."""


def random_board(rng: random.Random, **fixed) -> Board:
    """A shipped board with another data cache, other latencies, wait states and clock."""
    board = load_board(rng.choice(BOARDS))
    shape = {"line_bytes": rng.choice((16, 32, 64)), "ways": rng.choice((1, 2, 4, 8)),
             "replacement": rng.choice(("lru", "plru", "round_robin", "lfsr",
                                        "global_round_robin")),
             "write": rng.choice(("back", "through")), "streaming_lines": rng.choice((0, 3)),
             "critical_word_first": rng.random() < 0.5, **fixed}
    size = shape["line_bytes"] * shape["ways"] * rng.choice((4, 16, 64))
    caches = tuple(replace(cache, **{"size_bytes": size, **shape})
                   if cache.name == board.core.dcache else cache for cache in board.caches)
    memories = tuple(replace(memory, latency_cycles=float(rng.randint(0, 20)),
                             wait_states=rng.randint(0, 7) if memory.role == "flash" else 0)
                     if memory.role in ("sram", "flash") else memory for memory in board.memories)
    return replace(board, caches=caches, memories=memories)


def make_kernel(rng: random.Random, board: Board, accesses: int = 600,
                memory: str | None = None) -> Kernel:
    """Random nests whose operands lie in a memory of the board, or in several."""
    nests, operands = random_kernel(rng, accesses)
    names = [memory] if memory else [one.name for one in board.memories
                                     if one.role in ("sram", "tcm")]
    placed = []
    for operand in operands:
        name = rng.choice(names)
        placed.append(replace(operand, memory=name,
                              address=board.memory(name).address + operand.address))
    code = "ldr r4, [r0], #4; adds r5, r4; bne 1b"
    return Kernel(name=f"k{rng.random()}", family="conv", nests=nests, operands=tuple(placed),
                  blocks=(Block(name="loop", code=code, trips=accesses, entries=1),),
                  code_bytes=256)
