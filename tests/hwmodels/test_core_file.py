"""Core tables: every number sourced, every mistake named by file and key."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from made_sources import walk_sources

from hwmodels.core.file import SHIPPED, list_cores, load_core, read_core
from hwmodels.errors import BoardError
from hwmodels.isa import ISAS, MACHINES, load_isa

CORES = ("cortex-m0plus", "cortex-m3", "cortex-m33", "cortex-m4", "cortex-m55", "cortex-m7",
         "cortex-m85", "rv32imc", "xtensa-lx7", "x86-64-generic")


def test_cores_that_boards_name_exist() -> None:
    assert set(CORES) <= set(list_cores())


@pytest.mark.parametrize("model", CORES)
def test_every_number_has_kind_and_source(model: str) -> None:
    timing = load_core(model)
    assert timing.model == model
    assert len(timing.facts) >= 20
    assert all(fact.source for fact in timing.facts)
    assert {"issue_width", "max_ipc"} <= {fact.path for fact in timing.facts}


@pytest.mark.parametrize("model", CORES)
def test_ipc_limit_is_at_most_the_issue_width(model: str) -> None:
    timing = load_core(model)
    assert 1 <= timing.max_ipc <= timing.issue_width


def test_single_issue_cores_and_the_dual_issue_one() -> None:
    """Arm TRMs DDI 0484, 0337, 0439: one instruction a cycle; DDI 0489: superscalar, two."""
    limits = {model: load_core(model).max_ipc for model in CORES}
    assert limits["cortex-m0plus"] == limits["cortex-m3"] == limits["cortex-m4"] == 1
    assert limits["cortex-m7"] == 2


def test_a_core_with_atomics_has_the_table_of_one_without() -> None:
    assert load_core("rv32imac") is load_core("rv32imc")


def test_unknown_model_is_refused_with_a_hint() -> None:
    with pytest.raises(BoardError, match="cortex-m4"):
        load_core("cortex-m44")


@pytest.mark.parametrize(("old", "new", "message"), [
    ("issue_width: [1,", "issue_width: [0,", "issue_width"),
    ("issue_width: [1, datasheet, trm]", "issue_width: 1", "issue_width"),
    ("[1, datasheet, trm]\nmax_ipc", "[1, guessed, trm]\nmax_ipc", "issue_width"),
    ("max_ipc: [1, datasheet, trm]", "max_ipc: [1, datasheet, nowhere]", "nowhere"),
    ("  mac:", "  mcc:", "mcc"),
    ("  f_mac: {", "  f_mac: {holds: {f_ad: [3, datasheet, trm]}, ", "classes.f_mac.holds"),
    ("loop_buffer:", "loop_bufer:", "loop_bufer"),
    ("cycles: [-1, datasheet, trm_ls]", "cycles: [9, datasheet, trm_ls]", "ports"),
    ("schema: 1", "schema: [", "YAML"),
])
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (SHIPPED / "cortex-m4.yaml").read_text()
    assert old in text
    path = tmp_path / "broken.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BoardError, match=r"broken\.yaml") as caught:
        read_core(path)
    assert message in str(caught.value)


def test_names_of_cores_stand_in_data():
    """Those of instruction sets: tests/test_architecture.py."""
    names = {*list_cores()} - {*ISAS}
    found = [(place, node.value) for place, node in walk_sources("|".join(map(re.escape, names)))
             if isinstance(node, ast.Constant) and node.value in names]
    assert not found


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_set_is_whole(isa):
    described = load_isa(isa)
    assert described.machine in MACHINES and described.extensions[-1] == "c"
    assert set(described.counted) == {"none", "single", "double"}
    assert {described.machine == "host", bool(described.load_loop)} == {True, False}
    assert set(described.without.values()) | set(described.learnt_from) <= set(ISAS)
    assert set(described.without) <= set(described.extensions)
    assert bool(described.vector_bits) == ("vector" in described.registers)
