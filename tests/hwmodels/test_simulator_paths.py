"""Ways of code and data: which cache, what is exposed, two levels, code without a cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwmodels.board.facts import Board, Cache
from hwmodels.board.file import change_board, load_board
from hwmodels.core.file import load_core
from hwmodels.core.schedule import count_block
from hwmodels.counts import make_bill
from hwmodels.isa.instruction import parse_code
from hwmodels.kernel import Access, Block, Kernel, Loop, Operand
from hwmodels.paths.refill import beat_bytes, clock_ratio, refill_cycles
from hwmodels.paths.ways import data_cache
from hwmodels.prices import derive_prices
from hwmodels.simulator import simulate


def walk(board: Board, memory: str, size_bytes: int, *, write: bool = False, offset: int = 0,
         name: str = "walk", code: str = "ldr r4, [r0], #4; adds r5, r4; bne 1b") -> Kernel:
    """Words of a memory touched once, in order."""
    words = size_bytes // 4
    return Kernel(
        name=name, family="conv", code_bytes=64,
        blocks=(Block(name="loop", code=code, trips=words, entries=1),),
        nests=(Loop(extent=words, body=(Access(operand="data", write=write, width_bytes=4,
                                               steps_bytes=(4,)),)),),
        operands=(Operand(name="data", role="weights", memory=memory, size_bytes=4 * words,
                          address=board.memory(memory).address + offset),))


def run(board: Board, *kernels: Kernel, code: str | None = None, cold: bool = True):
    place = code or dict(board.placement)["code"]
    return simulate(kernels, board, code_address=board.memory(place).address, code_memory=place,
                    cold=cold)


def counted(result, event: str, place: str | None = None) -> tuple[float, float]:
    lines = [line for line in result.counts.lines
             if line.event == event and place in (None, line.place)]
    return sum(line.occurred for line in lines), sum(line.exposed for line in lines)


def with_cache(board: Board, name: str, **changes) -> Board:
    return replace(board, caches=tuple(replace(cache, **changes) if cache.name == name else cache
                                       for cache in board.caches))


def with_memory(board: Board, name: str, **changes) -> Board:
    return replace(board, memories=tuple(
        replace(memory, **changes) if memory.name == name else memory
        for memory in board.memories))


def own_cycles(kernel: Kernel, board: Board) -> float:
    timing = load_core(board.core.model)
    return sum(count_block(block, timing).cpu_cycles for block in kernel.blocks)


def test_each_memory_has_its_cache():
    """U585: constants of the flash through ICACHE, memory outside through DCACHE1, SRAM direct."""
    board = load_board("b_u585i_iot02a")
    found = {name: data_cache(board, board.memory(name)) for name in ("flash", "psram", "sram")}
    assert {name: cache and cache.name for name, cache in found.items()} == {
        "flash": "icache", "psram": "dcache1", "sram": None}
    result, = run(board, walk(board, "psram", 1024))
    assert counted(result, "dcache_access", "dcache1")[0] == 256
    assert counted(result, "dcache_read_refill", "psram")[0] == 1024 // 16
    assert counted(result, "dcache_access", "icache")[0] == 0


def test_code_and_data_share_a_unified_cache():
    """RP2040: constants as large as the cache drive the code out; in SRAM they do not."""
    board = load_board("rpi_pico")
    size = 2 * board.cache("xip").size_bytes
    beside = run(board, walk(board, "flash", size, offset=1 << 16), cold=False)[0]
    apart = run(board, walk(board, "sram", size), cold=False)[0]
    assert counted(beside, "icache_refill")[0] == 64 // 8
    assert counted(apart, "icache_refill")[0] == 0


def test_critical_word_first_hides_what_the_core_can_do_meanwhile():
    """Of a refill of T cycles with the first word after F, min(T - F, c) are hidden."""
    board = load_board("nucleo_h7a3zi_q")
    memory = board.memory("sram")
    whole = refill_cycles(board, memory, 32)
    first = refill_cycles(board, memory, int(beat_bytes(board, memory)))
    assert whole - first == 3 * clock_ratio(board, memory)      # four beats of eight bytes
    fast, slow = walk(board, "sram", 8192), walk(
        board, "sram", 8192, code="ldr r4, [r0], #4; adds r5, r4; udiv r6, r5, r4; bne 1b")
    for kernel in (fast, slow):
        between = own_cycles(kernel, board) / 256
        occurred, exposed = counted(run(board, kernel)[0], "dcache_read_refill")
        assert occurred == 256
        assert exposed / occurred == pytest.approx(
            (whole - min(whole - first, between)) / whole, abs=1e-3)
    blocking = with_cache(board, "l1d", critical_word_first=False)
    assert counted(run(blocking, fast)[0], "dcache_read_refill") == (256, 256)


def test_a_slow_hit_costs_its_cycles_on_every_look_up():
    board = load_board("nucleo_h7a3zi_q")
    slow = with_cache(board, "l1d", hit_cycles=2)
    kernel = walk(board, "sram", 8192)

    def cycles(machine: Board) -> float:
        result, = run(machine, kernel)
        return make_bill(result.counts, derive_prices(machine)).cycles("cpu")

    assert cycles(slow) - cycles(board) == 2 * 2048


def test_the_word_a_load_waits_for_takes_its_beats():
    """A word of four bytes over a bus of two: one beat more before the core goes on."""
    board = load_board("nucleo_h7a3zi_q")
    name = board.memory("sram").bus
    waits = []
    for width in (4, 2):
        narrow = replace(board, buses=tuple(
            replace(bus, width_bytes=width) if bus.name == name else bus
            for bus in board.buses))
        kernel = walk(narrow, "sram", 8192)
        exposed = counted(run(narrow, kernel)[0], "dcache_read_refill")[1] / 256
        waits.append(exposed * refill_cycles(narrow, narrow.memory("sram"), 32)
                     / clock_ratio(narrow, narrow.memory("sram")))
    assert [wait - waits[0] for wait in waits] == pytest.approx([0, 1], abs=0.01)


def test_weights_wait_for_a_flash_that_reads_ahead():
    """U575, unified cache: w cycles of each line, whether or not it reads ahead for code."""
    board = load_board("nucleo_u575zi_q")
    kernel = walk(board, "flash", 4096, offset=1 << 16)
    waits = board.memory("flash").wait_states
    assert board.memory("flash").prefetch and waits > 0
    for one in (board, with_memory(board, "flash", prefetch=False)):
        assert counted(run(one, kernel)[0], "flash_wait") == (256 * waits, 256 * waits)


def test_lines_written_back_wait_only_for_what_the_core_leaves_free():
    board = load_board("nucleo_h7a3zi_q")
    size = 4 * board.cache("l1d").size_bytes
    busy = walk(board, "sram", size, write=True,
                code="str r4, [r0], #4; udiv r6, r5, r4; bne 1b")
    occurred, exposed = counted(run(board, busy, cold=False)[0], "write_back")
    assert occurred > 0 == exposed
    idle = replace(busy, blocks=(replace(busy.blocks[0], trips=1),))
    assert counted(run(board, idle, cold=False)[0], "write_back")[1] > 0.9 * occurred


def test_streaming_stores_stop_allocating():
    """Whole lines stored faster than they are filled: no fills, every store passed on."""
    board = change_board(load_board("nucleo_h7a3zi_q"), {"caches.l1d.streaming_lines": 3})
    fill = walk(board, "sram", 4096, write=True)
    quick = replace(fill, blocks=(Block(name="fill", code="stmia r0!, {r1-r8}; bne 1b",
                                        trips=128, entries=1),))
    assert own_cycles(quick, board) < 128 * refill_cycles(board, board.memory("sram"), 32)
    assert counted(run(board, quick)[0], "dcache_write_refill")[0] == 0
    assert counted(run(board, quick)[0], "write_through")[0] == 1024
    assert counted(run(board, fill)[0], "dcache_write_refill")[0] == 128
    assert counted(run(load_board("nucleo_h7a3zi_q"), quick)[0], "dcache_write_refill")[0] == 128


def two_levels(board: Board, below: Cache) -> Board:
    first = with_cache(board, "l1d", below=below.name)
    return replace(first, caches=(*first.caches, below))


def test_a_second_level_takes_what_leaves_the_first():
    """32 KiB read twice through 16 KiB over 64 KiB: the second pass misses only above."""
    board = two_levels(load_board("nucleo_h7a3zi_q"),
                       Cache(name="l2", size_bytes=65536, line_bytes=64, ways=8, hit_cycles=6))
    twice = run(with_cache(board, "l1d", replacement="lru"),
                walk(board, "sram", 32768), walk(board, "sram", 32768, name="again"))
    assert [counted(one, "dcache_read_refill", "l2")[0] for one in twice] == [1024, 1024]
    assert [counted(one, "dcache_read_refill", "sram")[0] for one in twice] == [512, 0]
    prices = derive_prices(board)
    assert make_bill(twice[1].counts, prices).cycles("cpu", "data_refill") == 1024 * 6
    assert prices.price("dcache_read_refill", "sram").cycles == refill_cycles(
        board, board.memory("sram"), 64)


def test_dirty_lines_go_to_the_second_level_and_come_back_clean():
    board = two_levels(load_board("nucleo_h7a3zi_q"),
                       Cache(name="l2", size_bytes=65536, line_bytes=32, ways=8, hit_cycles=6))
    board = with_cache(board, "l1d", replacement="lru")
    stores = walk(board, "sram", 32768, write=True)
    first, second = run(board, stores, walk(board, "sram", 32768, name="again"))
    # 512 lines fit above: of 1024 written, 512 leave during the stores and 512 during the loads.
    assert counted(first, "write_back", "l2")[0] == counted(second, "write_back", "l2")[0] == 512
    assert counted(first, "write_back", "sram") == counted(second, "write_back", "sram") == (0, 0)
    assert counted(second, "dcache_read_refill", "sram")[0] == 0


def test_a_second_level_serves_only_its_memories():
    board = two_levels(load_board("nucleo_h7a3zi_q"), Cache(
        name="l2", size_bytes=65536, line_bytes=32, ways=8, serves=("flash",)))
    result, = run(board, walk(board, "sram", 8192))
    assert counted(result, "dcache_read_refill", "l2") == (0, 0)
    assert counted(result, "dcache_read_refill", "sram")[0] == 256


FETCHES = ("fetch_wait", "icache_refill")


def fetch_waits(board: Board, kernel: Kernel, memory: str) -> float:
    result, = run(board, kernel, code=memory)
    return sum(line.exposed for line in result.counts.lines if line.event in FETCHES)


def test_code_without_a_cache_waits_by_hand():
    """40 bytes at 32-byte lines span 1 + 38/32; half the first one's other words are omitted."""
    board = with_cache(load_board("nucleo_h723zg"), "l1i", enabled=False)
    code = "; ".join(["ldr.w r4, [r9], #4"] * 10)
    straight = Kernel(name="f", family="conv", nests=(), operands=(), code_bytes=40, blocks=(
        Block(name="body", code=code, trips=7, entries=7),))
    memory = board.memory("sram")
    line = refill_cycles(board, memory, 32) + clock_ratio(board, memory)
    first = refill_cycles(board, memory, 8) + clock_ratio(board, memory)
    run_cycles = count_block(straight.blocks[0], load_core("cortex-m7")).cpu_cycles / 7
    assert fetch_waits(board, straight, "sram") == pytest.approx(
        7 * ((1 + 38 / 32) * line - (line - first) / 2 - run_cycles), rel=1e-3)
    assert fetch_waits(board, straight, "itcm") == 0
    cached = load_board("nucleo_h723zg")
    assert {line.event for line in run(cached, straight, code="flash")[0].counts.lines
            if line.event in FETCHES} == {"icache_refill"}


def test_a_loop_within_the_buffered_line_is_fetched_once():
    """Two bytes fit any line: only its entry waits."""
    board = with_cache(load_board("nucleo_h723zg"), "l1i", enabled=False)
    block = Block(name="spin", code="bne.n 1b", trips=1000, entries=1)
    spin = Kernel(name="f", family="conv", nests=(), operands=(), code_bytes=2, blocks=(block,))
    memory = board.memory("flash")
    line = refill_cycles(board, memory, 32) + clock_ratio(board, memory)
    assert 0 < fetch_waits(board, spin, "flash") <= line
    wider = replace(spin, blocks=(replace(block, code="nop.w; bne.n 1b"),))
    assert fetch_waits(board, wider, "flash") > 10 * line      # may straddle two lines


def test_counts_of_a_network_do_not_depend_on_the_clock():
    """What is met depends on addresses; only what is exposed may change with the clock."""
    board = load_board("nucleo_h7a3zi_q")
    slow = replace(board, clocks=tuple(replace(clock, frequency_hz=clock.frequency_hz / 2)
                                       for clock in board.clocks))
    kernels = [walk(board, "sram", 32768), walk(board, "flash", 32768, name="other")]
    for one, other in zip(run(board, *kernels), run(slow, *kernels), strict=True):
        assert one.traffic == other.traffic


def test_an_operand_without_accesses_leaves_no_line():
    board = load_board("nucleo_h7a3zi_q")
    kernel = walk(board, "sram", 1024)
    extra = Operand(name="unused", role="bias", memory="flash", size_bytes=64,
                    address=board.memory("flash").address)
    result, = run(board, replace(kernel, operands=(*kernel.operands, extra)))
    assert {line.operand for line in result.counts.lines} == {"", "weights"}


def test_code_and_data_in_one_bank_conflict():
    """Waits = accesses x share of cycles with a fetch; none in another bank of the three."""
    board = load_board("nucleo_l4r5zi")
    third = board.memory("sram").size_bytes // 3
    beside, apart = (walk(board, "sram", 4096, offset=offset) for offset in (256, third + 256))
    result = run(board, beside, code="sram")[0]
    fetched = 1024 * sum(2 if one.narrow else 4 for one in parse_code(beside.blocks[0].code)) / 4
    assert counted(result, "sram_conflict")[1] == pytest.approx(
        1024 * fetched / own_cycles(beside, board), abs=1 / 64)
    assert counted(run(board, apart, code="sram")[0], "sram_conflict") == (0, 0)
    assert counted(run(board, beside)[0], "sram_conflict") == (0, 0)
