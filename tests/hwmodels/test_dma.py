"""DMA: transfers by hand, tile loops in closed form against the bus simulator."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from hwmodels.bus.dma import (
    TileLoop,
    Transfer,
    copy_stream,
    copy_streams,
    overlap_tiles,
    paced_stream,
    simulate_tiles,
)
from hwmodels.bus.events import simulate_bus
from hwmodels.bus.interconnect import Interconnect, Master, Slave
from hwmodels.errors import KernelError

BUS = Interconnect(
    clock_hz=200e6,
    masters=(Master(name="core"), Master(name="dma"), Master(name="dma_write")),
    slaves=(Slave(name="flash", latency_cycles=4), Slave(name="sram", banks=2),
            Slave(name="registers")))

COPY = Transfer(source="flash", target="sram", beat_bytes=8, burst_beats=4)


def test_a_transfer_in_bursts():
    """100 bytes are 13 beats of 8: bursts of 4, 4, 4 and 1."""
    assert COPY.split_bytes(100).tolist() == [4, 4, 4, 1]


def test_one_port_reads_and_writes_in_turn():
    """Set-up 10, then per burst 4 + 4 cycles of flash and 4 of SRAM."""
    run = simulate_bus(BUS, [copy_stream("dma", COPY, 96, setup_cycles=10)])
    assert run.finish_cycles("dma").tolist() == [18, 22, 30, 34, 42, 46]


def test_two_ports_write_behind_the_reads():
    """Reads every 8 cycles; each write takes 4 right behind its read: 10 + 3 x 8 + 4."""
    streams = copy_streams("dma", "dma_write", COPY, 96, fifo_bursts=2, setup_cycles=10)
    run = simulate_bus(BUS, streams)
    assert run.finish_cycles("dma").tolist() == [18, 26, 34]
    assert run.finish_cycles("dma_write").tolist() == [22, 30, 38]


def test_a_full_fifo_holds_the_reads_back():
    """Writes of 4 + 16 cycles behind reads of 4 + 4, one burst of room: read, write in turn."""
    slow = replace(BUS, slaves=(BUS.slaves[0], Slave(name="sram", latency_cycles=16),
                                BUS.slaves[2]))
    run = simulate_bus(slow, copy_streams("dma", "dma_write", COPY, 96, fifo_bursts=1))
    assert run.finish_cycles("dma_write").tolist() == [28, 56, 84]
    # With two, the next read hides behind the write: 8 + 3 x 20.
    run = simulate_bus(slow, copy_streams("dma", "dma_write", COPY, 96, fifo_bursts=2))
    assert run.finish_cycles("dma_write").tolist() == [28, 48, 68]


def test_a_peripheral_paces_its_bursts():
    """Due at 50, 100, 150, each one cycle of SRAM."""
    paced = replace(BUS, masters=(BUS.masters[0], Master(name="dma", pacing="clock")))
    run = simulate_bus(paced, [paced_stream("dma", "sram", count=3, period_cycles=50)])
    assert run.finish_cycles("dma").tolist() == [51, 101, 151]


def test_closed_form_by_hand():
    """5 + 10 + max(20, 12) + max(8, 30) + 9 = 74; the loads are 10 + 12 + 30."""
    overlap = overlap_tiles([10, 12, 30], [20, 8, 9], setup_cycles=5)
    assert overlap.total_cycles == 74
    assert overlap.exposed_cycles == 10 + (30 - 8)
    assert overlap.utilisation == pytest.approx(52 / 74)
    assert overlap_tiles([10, 12, 30], [20, 8, 9], setup_cycles=5, start_cycles=2,
                         buffers=1).total_cycles == 5 + 4 * 2 + 52 + 37


def random_loop(rng: random.Random) -> TileLoop:
    tiles = rng.randint(1, 8)
    return TileLoop(
        core="core", channel="dma", registers="registers",
        transfer=replace(COPY, target=rng.choice(("", "sram")), burst_beats=rng.choice((1, 4, 16))),
        tile_bytes=tuple(rng.randint(1, 2000) for _ in range(tiles)),
        compute_cycles=tuple(rng.randint(0, 4000) for _ in range(tiles)),
        setup_cycles=rng.choice((0, 200)), accesses=rng.choice((0, 0, 3, 40)), accessed="sram",
        access_beats=rng.choice((1, 4)))


@pytest.mark.parametrize("case", range(60))
def test_closed_form_equals_the_simulator(case):
    """One clock: without contention to the cycle, with it contention is what the total adds."""
    loop = random_loop(random.Random(case))
    result = simulate_tiles(BUS, loop)
    accesses = loop.accesses * loop.access_beats  # SRAM: a cycle a beat
    closed = overlap_tiles(result.load_cycles, [cycles + accesses for cycles in
                                                loop.compute_cycles],
                           setup_cycles=loop.setup_cycles, start_cycles=1)
    assert result.total_cycles - result.contention_cycles == closed.total_cycles
    assert result.dma_wait_cycles == closed.exposed_cycles
    assert result.compute_cycles + result.access_cycles == closed.compute_cycles
    assert result.setup_cycles == closed.setup_cycles
    shared = loop.transfer.target and loop.accesses
    assert result.contention_cycles >= 0
    if not shared:
        assert result.contention_cycles == 0
    # Bursts of 4 + beats of flash, then beats of SRAM.
    for size, cycles in zip(loop.tile_bytes, result.load_cycles, strict=True):
        beats = loop.transfer.split_bytes(size)
        assert cycles == 4 * len(beats) + beats.sum() * (2 if loop.transfer.target else 1)


def test_sharing_a_bank_costs_and_another_bank_does_not():
    loop = TileLoop(core="core", channel="dma", registers="registers", transfer=COPY,
                    tile_bytes=(4096,) * 4, compute_cycles=(3000,) * 4, accesses=300,
                    accessed="sram")
    assert simulate_tiles(BUS, loop).contention_cycles > 0
    apart = replace(BUS, slaves=(*BUS.slaves, Slave(name="dtcm")))
    assert simulate_tiles(apart, replace(loop, accessed="dtcm")).contention_cycles == 0


def test_hidden_loads_and_exposed_loads():
    loop = TileLoop(core="core", channel="dma", registers="registers", transfer=COPY,
                    tile_bytes=(1024,) * 6, compute_cycles=(100_000,) * 6)
    hidden = simulate_tiles(BUS, loop)
    assert hidden.dma_wait_cycles == hidden.load_cycles[0]  # the first has nothing to hide behind
    exposed = simulate_tiles(BUS, replace(loop, compute_cycles=(0,) * 6))
    assert exposed.dma_wait_cycles == sum(exposed.load_cycles)
    assert exposed.utilisation > 0.9 > 0.1 > hidden.utilisation


def test_clocks_in_ratio_still_sum():
    """Core at 480, bus at 200 MHz: the lines of the result sum to its total by construction,
    and the compute line is what was asked."""
    bus = replace(BUS, masters=(replace(BUS.masters[0], clock_hz=480e6), *BUS.masters[1:]))
    loop = TileLoop(core="core", channel="dma", registers="registers", transfer=COPY,
                    tile_bytes=(1000, 2000), compute_cycles=(700, 900), accesses=7,
                    accessed="sram")
    result = simulate_tiles(bus, loop)
    end = result.run.times[result.run.bursts.range_of("core")][-1, 0] // result.run.period("core")
    assert result.total_cycles == end
    assert result.compute_cycles == 1600
    assert np.all(np.array(result.load_cycles) > 0)


@pytest.mark.parametrize("refused", [
    lambda: Transfer(source="flash", beat_bytes=0, burst_beats=1),
    lambda: COPY.split_bytes(0),
    lambda: overlap_tiles([1, 2], [1]),
    lambda: overlap_tiles([1], [1], buffers=3),
    lambda: copy_streams("dma", "dma_write", COPY, 64, fifo_bursts=0),
    lambda: simulate_tiles(BUS, TileLoop(core="core", channel="dma", registers="registers",
                                         transfer=COPY, tile_bytes=(1,), compute_cycles=())),
    lambda: simulate_tiles(
        replace(BUS, masters=(Master(name="core", outstanding=2), *BUS.masters[1:])),
        TileLoop(core="core", channel="dma", registers="registers", transfer=COPY,
                 tile_bytes=(1,), compute_cycles=(1,))),
])
def test_what_cannot_be_is_refused(refused):
    with pytest.raises(KernelError, match="accepted"):
        refused()
