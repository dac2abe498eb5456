"""What-ifs of hardware that can only help: never slower, on a board of each core and its caches."""

from __future__ import annotations

import itertools

import pytest

from hwmodels.board.file import list_boards, load_board
from hwmodels.errors import TwinError
from twin.deployment.deploy import deploy
from twin.errors import DoesNotFitError
from twin.pricing.inference import predict

BOARDS = [*{(board.core.model, *(cache.replacement for cache in board.caches)): board.name
            for board in map(load_board, reversed(list_boards())) if board.name != "host"}.values()]
"""The first by name of those with one core and caches of one kind."""
NETWORKS = ("ad", "kws")
ROUNDED = 1e-5
"""What is exposed of a refill is counted in 64ths of it, which shows where nothing else moves."""


def never_rises(found):
    return all(later <= earlier * (1 + ROUNDED)
               for earlier, later in itertools.pairwise(found))


def cycles_of(network, board, path, values):
    """Cycles at each value the part takes; those of kws where a network is too large."""
    try:
        deployment, found = deploy(network, board, runtime="tflm-cmsis-nn"), []
    except DoesNotFitError:
        deployment, found = deploy("kws", board, runtime="tflm-cmsis-nn"), []
    for value in values:
        try:
            found.append(predict(deployment.replace({path: value})).cycles)
        except TwinError:
            continue
    return found


@pytest.mark.parametrize("board", [
    name for name in BOARDS if any(one.role == "flash" for one in load_board(name).memories)])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_wider_flash_is_never_slower(network, board):
    """4 to 64 bytes a read: caches keep their lines, or what they can hold of one read."""
    flash = next(one.name for one in load_board(board).memories if one.role == "flash")
    found = cycles_of(network, board, f"memories.{flash}.read_bytes", (4, 8, 16, 32, 64))
    assert len(found) > 1 and never_rises(found)


@pytest.mark.parametrize("board", [
    name for name in BOARDS if any(one.role == "flash" for one in load_board(name).memories)])
def test_fewer_wait_states_are_never_slower(board):
    flash = next(one for one in load_board(board).memories if one.role == "flash")
    states = range(flash.wait_states + 4, flash.wait_states - 1, -1)
    found = cycles_of("ad", board, f"memories.{flash.name}.wait_states", states)
    assert len(found) > 1 and never_rises(found)


@pytest.mark.parametrize("board", [name for name in BOARDS if load_board(name).core.dcache])
def test_more_ways_of_lru_are_never_slower(board):
    """Sets kept: a larger cache holds all a smaller one does (Mattson, stack algorithms)."""
    cache = load_board(board).cache(load_board(board).core.dcache)
    deployment, found = deploy("kws", board, runtime="tflm-cmsis-nn"), []
    for factor in (1, 2, 4, 8):
        path = f"caches.{cache.name}"
        changed = {f"{path}.size_bytes": cache.size_bytes * factor, f"{path}.replacement": "lru"}
        if cache.sets > 1:
            changed[f"{path}.ways"] = cache.ways * factor
        found.append(predict(deployment.replace(changed)).cycles)
    assert len(found) > 1 and never_rises(found)


@pytest.mark.parametrize("board", [name for name in BOARDS if load_board(name).buses])
def test_a_wider_bus_is_never_slower(board):
    bus = load_board(board).buses[0]
    found = cycles_of("ad", board, f"buses.{bus.name}.width_bytes",
                      [bus.width_bytes * factor for factor in (1, 2, 4)])
    assert len(found) > 1 and never_rises(found)
