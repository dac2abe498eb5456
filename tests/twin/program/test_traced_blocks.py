"""Blocks of a program that runs in QEMU, which cuts them at pages and at lengths of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("capstone", reason="needs the boards extra")

from made_helium_program import INSTRUCTIONS, build_helium_program

import twin

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
