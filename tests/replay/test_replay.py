"""Conversations recorded from real firmware are still understood, and still led in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from tape import RUNS, Player, converse

TAPES = sorted(Path(__file__).parent.glob("*.tape.json"))


@pytest.mark.parametrize("tape", TAPES, ids=lambda path: path.name)
def test_a_recorded_conversation_gives_the_same_samples(tape, tmp_path):
    player = Player(tape)
    measured = converse(player, tmp_path)
    assert player.place == len(player.turns)
    cycles = [sample.value for sample in measured.samples if sample.counter == "cpu_cycles"]
    assert cycles == json.loads(tape.read_text())["cycles"]
    assert measured.count("cpu_cycles") == RUNS and measured.header.kind == "simulated"
    assert len(set(measured.values("output_checksum"))) == 1


def test_there_are_tapes():
    assert TAPES
