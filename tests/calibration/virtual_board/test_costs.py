"""What an emulated board is made to cost, by hand from the facts of boards; no emulator runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibration.errors import MeasurementError
from calibration.virtual_board.costs import (
    Costs,
    Disturbance,
    Span,
    Stated,
    costs_of,
    state_memories,
)
from hwmodels.board.facts import Cache
from hwmodels.board.file import change_board, load_board

CACHE = Cache(name="l1", size_bytes=512, line_bytes=32, ways=4)
SPAN = Span(base=0x08000000, end=0x08100000)


def test_nothing_goes_on_beside_the_work_unless_it_is_asked_for():
    assert Disturbance().extra_cycles(1e12) == 0.0
    assert Costs().disturbance.interrupt_cycles(1e12) == 0.0


def test_interrupts_come_at_random_times_at_the_distance_asked_for():
    """Of a Poisson process: 1,000 on average within a million cycles, give or take 32."""
    one = Disturbance(gap_cycles=1000, service_cycles=50, seed=1)
    counts = [replace(one, seed=seed).interrupt_cycles(1e6) / 50 for seed in range(1, 30)]
    assert np.mean(counts) == pytest.approx(1000, abs=4 * 32 / 29**0.5)
    assert np.std(counts) == pytest.approx(32, rel=0.4)
    assert one.interrupt_cycles(1e6) == one.interrupt_cycles(1e6) == 50 * counts[0]
    assert one.interrupt_cycles(0.0) == 0.0
    passed = [one.extra_cycles(cycles) for cycles in np.linspace(0, 1e6, 50)]
    assert passed == sorted(passed)


def test_slowing_is_a_share_of_the_work_after_a_billion_cycles():
    """The rate grows evenly: half of it has come by then in all, so 5 % of 1e9 of a tenth."""
    slow = Disturbance(slowing=0.1)
    assert slow.extra_cycles(1e9) == pytest.approx(0.05e9)
    step = slow.extra_cycles(1e9 + 1000) - slow.extra_cycles(1e9)
    assert step == pytest.approx(0.1 * 1000, rel=1e-4)
    both = replace(slow, gap_cycles=1e5, service_cycles=7.0)
    assert both.extra_cycles(1e8) == slow.extra_cycles(1e8) + both.interrupt_cycles(1e8)


@pytest.mark.parametrize(("settings", "said"), [
    ({"spans": (replace(SPAN, cached=True),)}, "0x08000000 is cached, and there is no cache"),
    ({"spans": (replace(SPAN, cached=True),), "code": CACHE}, "is cached, and there is no cache"),
    ({"spans": (replace(SPAN, fetch_cached=True),), "data": CACHE}, "there is no cache"),
    ({"spans": (SPAN, replace(SPAN, base=0, buffer_bytes=24))},
     "0x00000000: a buffer of 24 bytes; accepted: a power of two"),
    ({"spans": (replace(SPAN, fetch_bytes=6),)}, "a buffer of 6 bytes")])
def test_spans_that_cannot_be_are_refused(settings, said):
    with pytest.raises(MeasurementError, match=said):
        Costs(**settings)
    whole = Costs(data=CACHE, code=CACHE, spans=(
        replace(SPAN, cached=True, fetch_cached=True, buffer_bytes=16, fetch_bytes=8),))
    assert whole.spans[0].buffer_bytes == 16


def spans(board):
    return dict(zip((memory.name for memory in board.memories), costs_of(board).spans,
                    strict=True))


def test_an_m4_waits_for_its_flash_and_never_for_its_ram():
    """Of an STM32L4R5 at 120 MHz: five wait states; rows of 8 bytes; caches serve flash alone."""
    board = load_board("nucleo_l4r5zi")
    costs, found = costs_of(board), spans(board)
    assert (costs.core, costs.clock_hz, costs.data.name, costs.code.name) == (
        "cortex-m4", 120e6, "art_d", "art_i")
    assert found["sram"] == Span(base=0x20000000, end=0x20000000 + 640 * 1024)
    assert found["flash"] == Span(
        base=0x08000000, end=0x08200000, cached=True, fetch_cached=True, read_miss_cycles=5,
        fetch_miss_cycles=5, read_cycles=5, buffer_bytes=8, fetch_bytes=8)
    assert state_memories(board) == {
        "sram": Stated(miss_cycles=0, fetch_cycles=0, fetch_cached=False),
        "flash": Stated(miss_cycles=5, fetch_cycles=5 / 8, fetch_cached=True)}
    off = change_board(board, {"caches.art_d.enabled": False, "caches.art_i.enabled": False})
    assert costs_of(off).data is None and costs_of(off).code is None
    assert spans(off)["flash"] == Span(
        base=0x08000000, end=0x08200000, read_cycles=5, fetch_cycles=5, buffer_bytes=8,
        fetch_bytes=8)
    assert state_memories(off)["flash"] == Stated(miss_cycles=5, fetch_cycles=5 / 8,
                                                  fetch_cached=False)
    bare = change_board(off, {"memories.flash.line_buffer": False})
    assert (spans(bare)["flash"].buffer_bytes, spans(bare)["flash"].fetch_bytes) == (0, 0)
    assert state_memories(bare)["flash"].fetch_cycles == 5 / 4  # word by word


def test_an_m7_waits_for_lines_behind_its_bus_and_not_for_its_own_memories():
    """Of an STM32H7A3: l1d and l1i of 32-byte lines; what leaves is written back once."""
    board = load_board("nucleo_h7a3zi_q")
    costs, found = costs_of(board), spans(board)
    for name in ("itcm", "dtcm"):
        memory = board.memory(name)
        assert found[name] == Span(base=memory.address, end=memory.address + memory.size_bytes)
    assert found["sram"].read_cycles == 7 == found["flash"].read_cycles - 6
    assert found["sram"].write_miss_cycles == 0 and costs.write_back_cycles > 0
    through = change_board(board, {"caches.l1d.write": "through"})
    assert costs_of(through).write_back_cycles == 0
    assert spans(through)["sram"].write_miss_cycles == found["sram"].read_miss_cycles > 7
    off = change_board(board, {"caches.l1d.enabled": False, "caches.l1i.enabled": False})
    assert (spans(off)["sram"].read_cycles, spans(off)["sram"].write_cycles) == (7, 7)
    assert spans(off)["sram"].read_miss_cycles == spans(off)["sram"].fetch_miss_cycles == 0
    assert costs_of(off).write_back_cycles == 0
