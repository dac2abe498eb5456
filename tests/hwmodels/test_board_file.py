"""Board files: every shipped one loads, and every refusal names file, key and what is accepted."""

from __future__ import annotations

import pytest

from hwmodels.board import KINDS
from hwmodels.board_file import change_board, list_boards, load_board
from hwmodels.errors import BoardError

RULES = {
    "clocks.cpu.frequency_hz": ("300MHz", "above what voltage scale vos0 allows"),
    "caches.l1d.size_bytes": ("20KiB", "no power of two of sets"),
    "supply.voltage_v": ("5V", "outside the supply range"),
    "memories.dtcm.cacheable": ("true", "bypasses the caches"),
    "memories.flash.wait_states": ("3", "fewer than the 6"),
    "memories.sram.address": ("0x20000000", "lies inside dtcm"),
    "placement.arena": ("flash", "the arena is written"),
    "clocks.axi.frequency_hz": ("100MHz", "derived from cpu"),
}


@pytest.mark.parametrize("name", list_boards())
def test_board_loads_with_every_number_sourced(name):
    board = load_board(name)
    assert board.name == name
    assert len(board.facts) > 15
    for fact in board.facts:
        assert fact.kind in KINDS and fact.source, fact.path


@pytest.mark.parametrize("path", RULES)
def test_a_what_if_the_part_cannot_have_is_refused_with_its_rule(path):
    value, rule = RULES[path]
    with pytest.raises(BoardError, match=rule) as refusal:
        load_board("nucleo_h7a3zi_q", overrides={path: value})
    assert f"nucleo_h7a3zi_q.yaml:{path}" in str(refusal.value)
    assert "accepted" in str(refusal.value) or "at least" in str(refusal.value)


def test_a_what_if_leaves_the_board_alone_and_marks_the_number():
    board = load_board("NUCLEO-H7A3ZI-Q")
    slower = change_board(board, {"clocks.cpu.frequency_hz": "140MHz"})
    assert board.clock("cpu").frequency_hz == 280e6
    assert slower.clock("cpu").frequency_hz == slower.clock("axi").frequency_hz == 140e6
    # 44 MHz per wait state: 140 MHz needs 3, 280 MHz needs 6 (stm32h7xx_ll_utils.c)
    assert (slower.memory("flash").wait_states, board.memory("flash").wait_states) == (3, 6)
    fact = next(fact for fact in slower.facts if fact.path == "clocks.cpu.frequency_hz")
    assert (fact.kind, fact.source) == ("assumed", "what-if: set by the user")
