"""Sensible answers of the memory system, over random boards and random accesses."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from made_cases import for_each
from made_machines import make_kernel, random_board
from made_networks import random_network

from hwmodels.board.facts import Board
from hwmodels.board.file import change_board, list_boards, load_board
from hwmodels.bus.contention import Load
from hwmodels.counts import make_bill
from hwmodels.errors import BoardError
from hwmodels.kernel import Kernel
from hwmodels.prices import derive_prices
from hwmodels.simulator import KernelRun, simulate
from twin.deployment.deploy import deploy
from twin.pricing.inference import predict

CASES = range(25)


def run(board: Board, *kernels: Kernel, cold: bool = True,
        loads: tuple[Load, ...] = ()) -> tuple[KernelRun, ...]:
    code = dict(board.placement)["code"]
    return simulate(kernels, board, code_address=board.memory(code).address, code_memory=code,
                    cold=cold, loads=loads)


def cycles(board: Board, *runs: KernelRun) -> float:
    return sum(make_bill(one.counts, derive_prices(board)).cycles(board.core.clock)
               for one in runs)


def resized(board: Board, ways: int) -> Board:
    """The board with so many ways and as many sets as before."""
    return replace(board, caches=tuple(
        replace(cache, ways=ways, size_bytes=cache.sets * ways * cache.line_bytes)
        if cache.name == board.core.dcache else cache for cache in board.caches))


@for_each(CASES)
def test_misses_never_rise_with_more_ways_at_equal_sets_under_lru(case):
    rng = random.Random(case)
    board = random_board(rng, replacement="lru", ways=1)
    kernels = [make_kernel(rng, board) for _ in range(2)]
    misses = [sum(one.traffic.misses for one in run(resized(board, ways), *kernels))
              for ways in (1, 2, 3, 4, 8)]
    assert misses == sorted(misses, reverse=True)


@for_each(CASES)
def test_where_sets_hold_all_lines_only_compulsory_misses_remain(case):
    """Any policy: cold misses are the distinct lines, warm ones none."""
    rng = random.Random(case)
    board = random_board(rng, ways=8, write="back", streaming_lines=0)
    kernel = make_kernel(rng, board, 200)
    cache = board.cache(board.core.dcache)
    roomy = replace(board, caches=tuple(
        replace(one, ways=32, size_bytes=4096 * 32 * one.line_bytes) if one is cache else one
        for one in board.caches))
    boundless = replace(board, caches=tuple(
        replace(one, ways=1, size_bytes=(1 << 16) * one.line_bytes, replacement="lru")
        if one is cache else one for one in board.caches))
    cold, distinct = run(roomy, kernel)[0], run(boundless, kernel)[0]
    assert cold.traffic.misses == distinct.traffic.misses
    assert run(roomy, kernel, cold=False)[0].traffic.misses == 0


@for_each(CASES)
def test_tightly_coupled_placement_removes_refills(case):
    rng = random.Random(case)
    board = random_board(rng)
    cached = make_kernel(rng, board, memory="sram")
    shift = board.memory("dtcm").address - board.memory("sram").address
    moved = replace(cached, operands=tuple(
        replace(operand, memory="dtcm", address=operand.address + shift)
        for operand in cached.operands))
    before, after = run(board, cached)[0], run(board, moved)[0]
    assert after.traffic.accesses == 0
    assert not [line for line in after.counts.lines if "refill" in line.event
                and line.event.startswith("dcache")]
    assert cycles(board, after) <= cycles(board, before)


@for_each(CASES)
def test_doubling_wait_states_doubles_flash_waits_without_buffers(case):
    rng = random.Random(case)
    board = random_board(rng)
    waits = rng.randint(1, 7)

    def bare(wait_states: int) -> Board:
        return replace(
            board, caches=tuple(replace(cache, enabled=False) for cache in board.caches),
            memories=tuple(replace(memory, wait_states=wait_states, latency_cycles=0.0,
                                   line_buffer=False, prefetch=False)
                           if memory.name == "flash" else memory for memory in board.memories))

    if board.memory("flash").role != "flash":
        board = load_board("nucleo_h7a3zi_q")
    kernel = make_kernel(rng, board, memory="flash")
    loads_only = replace(kernel, nests=tuple(_only_loads(nest) for nest in kernel.nests))
    once, twice = (run(bare(number), loads_only)[0].counts.occurred("flash_wait")
                   for number in (waits, 2 * waits))
    assert twice == 2 * once


def _only_loads(nest):
    if hasattr(nest, "write"):
        return replace(nest, write=False)
    return replace(nest, body=tuple(_only_loads(inner) for inner in nest.body))


@for_each(CASES)
def test_a_dma_burst_on_another_bank_costs_nothing(case):
    rng = random.Random(case)
    board = load_board(rng.choice(("nucleo_l4r5zi", "nucleo_h7a3zi_q", "nucleo_u575zi_q")))
    master = board.dma[0].name
    banks, sram = board.memory("sram").banks, board.memory("sram")
    bank = rng.randrange(banks)
    kernel = make_kernel(rng, board, 300, memory="sram")
    # All of the kernel's operands go into one bank, the other master into another one.
    base = sram.address + bank * -(-sram.size_bytes // banks)
    low = min(operand.address for operand in kernel.operands)
    kernel = replace(kernel, operands=tuple(
        replace(operand, address=operand.address - low + base + 64)
        for operand in kernel.operands))
    load = Load(master=master, memory="sram", bytes_per_second=10.0 ** rng.uniform(6, 8),
                write=rng.random() < 0.5, burst_beats=rng.choice((1, 4, 8)),
                bank=(bank + 1) % banks)
    assert run(board, kernel, loads=(load,)) == run(board, kernel)
    beside = run(board, kernel, loads=(replace(load, bank=bank, bytes_per_second=1e8),))
    assert cycles(board, *beside) >= cycles(board, *run(board, kernel))


@pytest.mark.parametrize("name", [name for name in list_boards() if name != "host"])
def test_at_a_clock_of_no_wait_states_none_are_billed(name):
    board, network = load_board(name), random_network(1, layers=4)
    flash = board.memory(dict(board.placement)["weights"])
    slow = _slowest(board)
    if slow is None or flash.role != "flash":
        assert predict(deploy(network, board)).bill.cycles("cpu", "flash_wait") == 0
        return
    assert slow.memory(flash.name).wait_states == 0
    assert predict(deploy(network, slow)).bill.cycles(slow.core.clock, "flash_wait") == 0


def _slowest(board: Board) -> Board | None:
    """The board at a clock that demands no wait states; None where its flash has no table."""
    for megahertz in (30, 20, 16, 8, 4):
        try:
            slow = change_board(board, {"clocks.cpu.frequency_hz": f"{megahertz}MHz"})
        except BoardError:
            continue
        if all(memory.wait_states == 0 for memory in slow.memories):
            return slow
    return None


@for_each(CASES)
def test_nothing_is_exposed_that_did_not_occur_and_slower_memory_never_helps(case):
    rng = random.Random(case)
    board = random_board(rng)
    kernels = [make_kernel(rng, board) for _ in range(2)]
    slower = replace(board, memories=tuple(
        replace(memory, latency_cycles=memory.latency_cycles + 3,
                wait_states=memory.wait_states + (memory.role == "flash"))
        if memory.role in ("sram", "flash") else memory for memory in board.memories))
    before, after = run(board, *kernels), run(slower, *kernels)
    for one, other in zip(before, after, strict=True):
        assert all(line.exposed <= line.occurred for line in one.counts.lines)
        streams = {line.event for line in (*one.counts.lines, *other.counts.lines)}
        if "write_through" not in streams:      # streaming depends on the pace of refills
            assert one.traffic.data.counts == other.traffic.data.counts
            assert cycles(slower, other) >= cycles(board, one) - 1e-6
