"""Another master on the bus: nothing on another bank, more with more of it, never a free lunch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwmodels.board.file import change_board, load_board
from hwmodels.bus.contention import Load, check_loads, list_bursts
from hwmodels.bus.transfer import BURST_BEATS, copy_cycles
from hwmodels.errors import BoardError
from hwmodels.kernel import Access, Block, Kernel, Loop, Operand
from hwmodels.simulator import simulate

L4, H7 = load_board("nucleo_l4r5zi"), load_board("nucleo_h7a3zi_q")


def walk(board, memory: str, size_bytes: int, *, write: bool = False, offset: int = 0) -> Kernel:
    words = size_bytes // 4
    return Kernel(
        name="walk", family="conv", code_bytes=64,
        blocks=(Block(name="loop", code="ldr r4, [r0], #4; adds r5, r4; bne 1b", trips=words,
                      entries=1),),
        nests=(Loop(extent=words, body=(Access(operand="data", write=write, width_bytes=4,
                                               steps_bytes=(4,)),)),),
        operands=(Operand(name="data", role="input", memory=memory, size_bytes=4 * words,
                          address=board.memory(memory).address + offset),))


def contention(board, kernel: Kernel, *loads: Load) -> tuple[float, float]:
    code = dict(board.placement)["code"]
    result, = simulate([kernel], board, code_address=board.memory(code).address,
                       code_memory=code, loads=loads, cold=True)
    lines = [line for line in result.counts.lines if line.event == "bus_contention"]
    return sum(line.occurred for line in lines), sum(line.exposed for line in lines)


def dma(rate: float, memory: str = "sram", **keys) -> Load:
    return Load(master="dma1", memory=memory, bytes_per_second=rate, **keys)


def test_no_load_no_contention():
    assert contention(L4, walk(L4, "sram", 4096)) == (0, 0)


def test_another_bank_or_memory_costs_nothing():
    kernel = walk(L4, "sram", 4096)
    assert contention(L4, kernel, dma(1e8, bank=2)) == (0, 0)
    assert contention(L4, walk(L4, "flash", 4096), dma(1e8)) == (0, 0)
    occurred, exposed = contention(L4, kernel, dma(1e8, bank=0))
    assert occurred >= exposed > 0
    beyond = walk(L4, "sram", 4096, offset=2 * L4.memory("sram").size_bytes // 3 + 64)
    assert contention(L4, beyond, dma(1e8, bank=2))[1] > 0


def test_contention_grows_with_the_load():
    """Nor do the two keep step: 3e8 bytes a second hinder this loop more than 1e8."""
    waits = [contention(L4, walk(L4, "sram", 16384), dma(rate, bank=0))[1]
             for rate in (1e6, 1e7, 3e7, 1e8, 2e8, 3e8, 4.5e8)]
    assert waits == sorted(set(waits))


def test_contention_is_bounded_by_the_bursts_of_the_other():
    """Round robin: an access waits for one burst of four beats at most; here each is one cycle."""
    accesses = 4096
    assert contention(L4, walk(L4, "sram", 4 * accesses), dma(4.5e8, bank=0))[0] <= 4 * accesses


def test_stores_wait_in_the_buffer():
    occurred, exposed = contention(L4, walk(L4, "sram", 4096, write=True), dma(1e8, bank=0))
    assert occurred > 0 == exposed


def test_a_cache_leaves_only_its_misses_to_wait():
    load = Load(master="mdma", memory="sram", bytes_per_second=5e8)
    small, large = walk(H7, "sram", 8192), walk(H7, "sram", 65536)
    burst = list_bursts(H7, small, {})
    assert len(burst.access) == 8192 // 32 and set(burst.size_bytes.tolist()) == {32}
    assert contention(H7, large, load)[0] > contention(H7, small, load)[0] > 0
    again = replace(small, nests=(Loop(extent=4, body=(Loop(extent=2048, body=(Access(
        operand="data", write=False, width_bytes=4, steps_bytes=(0, 4)),)),)),))
    assert len(list_bursts(H7, again, {}).access) == 8192 // 32


def test_bursts_come_in_the_order_of_accesses_with_what_is_written_back():
    """24 KiB stored through 16 KiB: fills, and each line beyond 512 drives a dirty one out."""
    board = change_board(H7, {"caches.l1d.replacement": "lru"})
    bursts = list_bursts(board, walk(board, "sram", 24576, write=True), {})
    assert (bursts.access[1:] >= bursts.access[:-1]).all()
    assert (~bursts.write).sum() == 768 and bursts.write.sum() == 256


@pytest.mark.parametrize(("load", "message"), [
    (Load(master="dma1", memory="flash", bytes_per_second=1e6), "is not on a bus"),
    (Load(master="dma9", memory="sram", bytes_per_second=1e6), "dma9"),
    (dma(1e6, bank=3), "accepted: 0 to 2"),
    (dma(1e12), "below 4.8e[+]08"),
    (dma(0.0), "above 0"),
])
def test_impossible_loads_are_refused(load, message):
    with pytest.raises(BoardError, match=message):
        check_loads(L4, [load])


def test_a_copy_by_hand():
    """L4: 16-beat bursts of 64 bytes from flash, 8 bytes and w + 1 cycles a read, to SRAM."""
    flash, sram = L4.memory("flash"), L4.memory("sram")
    read = 1 + flash.latency_cycles + 8 * (1 + flash.wait_states) - 1
    write = BURST_BEATS
    assert copy_cycles(L4, L4.dma_controller("dma1"), flash, sram, 640) == pytest.approx(
        10 * (read + write))
    assert copy_cycles(L4, L4.dma_controller("dma1"), flash, sram, 0) == 0


def test_a_serial_memory_streams():
    """N6: 23 cycles of lead once, then 2 bytes a cycle of 200 MHz: 4 core cycles each."""
    board = load_board("stm32n6570_dk")
    dma1, flash, tcm = (board.dma_controller("hpdma1"), board.memory("flash"),
                        board.memory("dtcm"))
    one, two = (copy_cycles(board, dma1, flash, tcm, size) for size in (65536, 131072))
    assert two - one == pytest.approx(65536 / 2 * 4 + 65536 / 4, rel=1e-6)
    assert one - (two - one) == pytest.approx(23 * 4)
