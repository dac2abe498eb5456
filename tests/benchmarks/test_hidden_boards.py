"""What hidden boards wait for, beside what is published of their cores and buses."""

import numpy as np

from benchmarks.diagnosis.hands import Beside, draw_hand, time_layers
from benchmarks.diagnosis.recorded import EVENTS, Work
from benchmarks.diagnosis.timing import KINDS, RANGES, count_kinds
from hwmodels.board.file import change_board, load_board


def test_what_the_instruction_before_loads_is_waited_for_on_a_cortex_m7():
    block = ("ldrsb.w r3, [r0, #1]", "mla r4, r3, r2, r4", "ldr r1, [r5]", "add r2, r6, r7",
             "ldr r1, [r5], #4", "str r1, [r8]", "ldr r9, [r5]", "cmp r2, r1")
    assert count_kinds("\n".join(block))[KINDS.index("used")] == 2
    used = {core: ranges["used"] for core, ranges in RANGES.items()}
    # GCC's cortex-m7.md: latency 2; an M4's load takes its two cycles itself.
    assert used["cortex-m7"][0] <= 1 <= used["cortex-m7"][1] and used["cortex-m4"] == (0, 0)


def test_a_load_no_cache_holds_crosses_the_bus_whether_or_not_it_reads_the_array():
    """All but those that read the array were free, where a load from SRAM took 5 to 12 cycles."""
    asked = load_board("nucleo_h7a3zi_q")
    board = change_board(asked, {"caches.l1d.enabled": False})
    hand = draw_hand("cortex-m7", 1)

    def cycles(**events: float) -> float:
        counted = np.array([[events.get(name, 0.0) for name in EVENTS]])
        work = Work(layers=(0,), kinds=np.zeros((1, len(KINDS))), events=counted)
        return float(time_layers(hand, work, board, Beside(), "O2")[0])

    misfit = cycles() / hand.call
    assert np.isclose(cycles(direct=100) - cycles(), 100 * hand.other * misfit)
    assert 5 <= hand.other <= 12
