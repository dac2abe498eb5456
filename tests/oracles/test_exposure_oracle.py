"""Exposure of many lines and clocks at once is that of one line after another, bit for bit."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from made_machines import make_kernel, random_board

from hwmodels.board.facts import Board
from hwmodels.board.file import list_boards, load_board
from hwmodels.file_cache import pack, unpack
from hwmodels.paths.arrays import lay_out
from hwmodels.paths.exposure import expose, to_counts
from hwmodels.paths.timing import read_timing
from hwmodels.simulator import count_traffic
from tests.oracles.exposure import expose_kernel
from twin.deployment.core import code_address, lower_network
from twin.deployment.deploy import deploy
from twin.errors import PlacementError, RuntimeRefusedError


def retimed(rng: random.Random, board: Board) -> Board:
    """The same geometry at other clocks, waits and bandwidths."""
    return replace(
        board,
        clocks=tuple(replace(clock, frequency_hz=clock.frequency_hz * rng.choice((0.25, 1, 1.7)))
                     for clock in board.clocks),
        caches=tuple(replace(cache, hit_cycles=rng.randint(0, 2),
                             critical_word_first=rng.random() < 0.5) for cache in board.caches),
        memories=tuple(replace(
            memory, latency_cycles=float(rng.choice((0, 0, 1, 2.5, 11))),
            wait_states=rng.randint(0, 7) if memory.role == "flash" else memory.wait_states,
            prefetch=rng.random() < 0.5, serial=None, sdram=None,
            bytes_per_cycle=rng.choice((None, 0.5, 4.0))) for memory in board.memories))


def check(traffic, boards, code_memory) -> None:
    arrays = lay_out(traffic, boards[0], code_memory)
    timings = np.array([read_timing(board, arrays.places) for board in boards])
    occurred, exposed = expose(arrays, timings)
    for row, board in enumerate(boards):
        for counts, one in zip(to_counts(arrays, occurred[row], exposed[row]), traffic,
                               strict=True):
            wanted = expose_kernel(one, board, code_memory)
            assert [repr(line) for line in counts.lines] == [repr(line) for line in wanted.lines]


@pytest.mark.parametrize("case", range(40))
def test_random_kernels_are_exposed_as_the_specification_says(case) -> None:
    rng = random.Random(case)
    board = random_board(rng, streaming_lines=0)
    kernels = [make_kernel(rng, board) for _ in range(4)]
    code = rng.choice([memory.name for memory in board.memories
                       if memory.role in ("sram", "flash", "tcm")])
    traffic = count_traffic(kernels, board, code_address=board.memory(code).address,
                            code_memory=code, cold=rng.random() < 0.5)
    assert unpack(json.loads(json.dumps(pack(traffic)))) == traffic
    check(traffic, [board, *(retimed(rng, board) for _ in range(8))], code)


@pytest.mark.parametrize("name", list_boards())
def test_networks_are_exposed_as_the_specification_says(name) -> None:
    rng, board = random.Random(name), load_board(name)
    try:
        deployment = deploy("kws", board, runtime="tflm-cmsis-nn@2026")
    except (PlacementError, RuntimeRefusedError):
        pytest.skip("does not run there")
    kernels = [kernel for group in lower_network(deployment) for kernel in group]
    traffic = count_traffic(kernels, board, code_address=code_address(deployment),
                            code_memory=deployment.code)
    check(traffic, [board, *(retimed(rng, board) for _ in range(4))], deployment.code)
