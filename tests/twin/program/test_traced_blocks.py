"""Blocks of a program that runs in QEMU, which cuts them at pages and at lengths of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("capstone", reason="needs the boards extra")

from made_helium_program import INSTRUCTIONS, build_helium_program

import twin
from twin.program.traced import _write_pieces

BOARD = "apollo510_evb"


def test_a_block_is_billed_for_what_ran_wherever_it_was_cut(tmp_path):
    program = build_helium_program(tmp_path)
    made = twin.deploy_elf(program, BOARD, begin="main", layers=",".join(INSTRUCTIONS))
    ran = {one.name: one.instructions for one in twin.predict(made).layers}
    # Behind the layers: push, six calls, and pop.
    assert ran == {**INSTRUCTIONS, "between layers": 8}
    turns = {run.name: run.calls for _, runs in made.found.warm for run in runs}
    assert turns.pop("main") == 1 and turns.pop("called") == 1
    assert set(turns.values()) == {1}


def test_what_is_0_between_two_registers_takes_no_room(tmp_path):
    """An N6's lie so far apart; QEMU's copy of them is read without the holes."""
    far = 384 << 20
    path = _write_pieces(tmp_path / "devices", [(far, b"\2\3"), (4, b"\1")])
    with path.open("rb") as stream:
        assert stream.read(8) == bytes((0, 0, 0, 0, 1, 0, 0, 0))
        stream.seek(far)
        assert stream.read() == b"\2\3"
    assert path.stat().st_blocks * 512 < 1 << 20  # of a system that keeps holes
