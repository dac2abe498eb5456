"""Parts composed: where each access goes, what is exposed, and what waste means."""

import dataclasses

import pytest

from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.counts import make_bill, merge_bills
from hwmodels.kernel import Access, Block, Kernel, Loop, Operand
from hwmodels.prices import add_background, derive_prices, line_wait_cycles, refill_cycles
from hwmodels.simulator import count_traffic, simulate


def stream(board: Board, memory: str, words: int, *, write: bool = False,
           useful_macs: int = 0, name: str = "walk") -> Kernel:
    """A kernel that touches `words` consecutive words of a memory once."""
    place = board.memory(memory)
    return Kernel(
        name=name, family="conv", code_bytes=64, useful_macs=useful_macs,
        blocks=(Block(name="loop", code="ldr r4, [r0], #4; mla r8, r4, r5, r8; bne loop",
                      trips=words, entries=1),),
        nests=(Loop(extent=words, body=(Access(operand="data", write=write, width_bytes=4,
                                               steps_bytes=(4,)),)),),
        operands=(Operand(name="data", role="weights", memory=memory, address=place.address,
                          size_bytes=4 * words),))


def run(board: Board, kernel: Kernel, cold: bool = True):
    code = dict(board.placement)["code"]
    return simulate([kernel], board, code_address=board.memory(code).address, code_memory=code,
                    cold=cold)[0]


@pytest.fixture(scope="module")
def h7() -> Board:
    return load_board("nucleo_h7a3zi_q")


def test_a_cold_walk_refills_every_line_once(h7: Board) -> None:
    result = run(h7, stream(h7, "flash", 256))
    lines = 256 * 4 // 32
    assert result.counts.occurred("dcache_read_refill") == lines
    waits = line_wait_cycles(h7, h7.memory("flash"), 32)
    assert waits > 0
    assert result.counts.occurred("flash_wait") == lines * waits
    assert (result.traffic.accesses, result.traffic.misses) == (256, lines)


def test_refill_and_wait_together_cost_the_whole_line(h7: Board) -> None:
    blocking = dataclasses.replace(h7, caches=tuple(
        dataclasses.replace(cache, critical_word_first=False) for cache in h7.caches))
    result = run(blocking, stream(blocking, "flash", 256))
    bill = make_bill(result.counts, derive_prices(blocking))
    memory = bill.cycles("cpu", "data_refill") + bill.cycles("cpu", "flash_wait")
    assert memory == pytest.approx(32 * refill_cycles(h7, h7.memory("flash"), 32))


def test_a_warm_walk_that_fits_refills_nothing(h7: Board) -> None:
    result = run(h7, stream(h7, "flash", 256), cold=False)
    assert result.counts.occurred("dcache_read_refill") == 0
    assert result.counts.occurred("icache_refill") == 0


def test_stores_that_miss_occur_but_are_not_exposed(h7: Board) -> None:
    result = run(h7, stream(h7, "sram", 256, write=True))
    (line,) = [line for line in result.counts.lines if line.event == "dcache_write_refill"]
    assert (line.occurred, line.exposed) == (32, 0)


def test_dirty_lines_come_back_as_write_backs(h7: Board) -> None:
    # Twice the cache of stores: all but what stays inside must be written back.
    words = 2 * h7.cache("l1d").size_bytes // 4
    result = run(h7, stream(h7, "sram", words, write=True))
    lines = words * 4 // 32
    stay = h7.cache("l1d").size_bytes // 32
    assert lines - stay <= result.counts.occurred("write_back") <= lines


def test_tightly_coupled_memory_costs_nothing_more(h7: Board) -> None:
    result = run(h7, stream(h7, "dtcm", 256))
    bill = make_bill(result.counts, derive_prices(h7))
    assert result.counts.occurred("tcm_access") == 256
    assert bill.cycles("cpu", "data_refill") == 0
    assert bill.cycles("cpu", "sram_wait") == 0


def test_a_cache_switched_off_pays_on_every_access(h7: Board) -> None:
    off = dataclasses.replace(h7, caches=tuple(
        dataclasses.replace(cache, enabled=False) for cache in h7.caches))
    on = make_bill(run(h7, stream(h7, "flash", 4096)).counts, derive_prices(h7))
    without = make_bill(run(off, stream(off, "flash", 4096)).counts, derive_prices(off))
    assert without.cycles("cpu") > on.cycles("cpu")


def test_lanes_beyond_the_useful_ones_are_waste(h7: Board) -> None:
    # One multiply-accumulate a trip, of which three in four are needed.
    result = run(h7, stream(h7, "dtcm", 400, useful_macs=300))
    useful = result.counts.occurred("mac_issue")
    wasted = result.counts.occurred("mac_waste_issue")
    assert result.traffic.mac_lanes == 400
    assert wasted / (useful + wasted) == pytest.approx(0.25, abs=0.01)


def test_background_is_energy_without_time(h7: Board) -> None:
    prices = derive_prices(h7)
    bill = make_bill(run(h7, stream(h7, "dtcm", 256)).counts, prices)
    whole = add_background(bill, h7, prices)
    assert whole.cycles("cpu") == bill.cycles("cpu")
    extra = whole.energy_pj("idle")
    per_cycle = prices.price("clock_tree", "").pj
    per_ns = prices.price("leakage", "").pj
    cycles = bill.cycles("cpu")
    assert extra == pytest.approx(cycles * per_cycle + cycles / 0.28 * per_ns)


def test_bills_add_exactly(h7: Board) -> None:
    prices = derive_prices(h7)
    one = make_bill(run(h7, stream(h7, "flash", 100)).counts, prices)
    two = make_bill(run(h7, stream(h7, "sram", 333, write=True)).counts, prices)
    both = merge_bills([one, two])
    assert both == merge_bills([two, one])
    assert both.cycles("cpu") == one.cycles("cpu") + two.cycles("cpu")


@pytest.mark.parametrize("name", ["nucleo_h723zg", "rpi_pico", "nucleo_l4r5zi"])
@pytest.mark.parametrize("cold", [False, True])
def test_a_board_under_several_policies_counts_what_each_of_them_does(name, cold) -> None:
    """Also of caches code and data share, and of memories without one."""
    board = load_board(name)
    kernels = [dataclasses.replace(stream(board, memory.name, words, write=write), blocks=())
               for memory in board.memories if memory.size_bytes >= 32768
               for words, write in ((8000, False), (300, True))]
    policies = ("lru", "round_robin", "lfsr")

    def count(replacement: str):
        caches = tuple(dataclasses.replace(cache, replacement=replacement)
                       if cache.ways > 1 else cache for cache in board.caches)
        return count_traffic(kernels, dataclasses.replace(board, caches=caches), cold=cold,
                             code_address=board.memory("flash").address, code_memory="flash")

    assert count(" ".join(policies)) == sum((count(one) for one in policies), ())
