"""Programs of a RISC-V core: beside QEMU's own count, traps, counters, and what is refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("capstone", reason="needs the boards extra")

from made_riscv_program import build_riscv_program, write_board

import twin
from benchmarks.exactness.binary import random_layers
from benchmarks.oracles.replay import empty_layers
from hwmodels.board.file import load_board
from hwmodels.program import riscv
from twin.errors import ProgramError
from twin.network.operators import is_alias
from twin.program.asking import Wanted
from twin.program.cores import open_machine
from twin.program.elf import read_elf
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import open_board, run_on_board
from twin.program.session import run_program


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return write_board(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_riscv_program(tmp_path_factory.mktemp("program"), say=True)


def test_our_own_image_runs_the_instructions_qemu_counts(board, tmp_path):
    if shutil.which("qemu-system-riscv32") is None:
        pytest.skip("qemu-system-riscv32 is not installed")
    graph = random_layers(3)
    built = build_firmware(graph, load_port("riscv_virt"), tmp_path)
    called = [f"run_{place}" for place, layer in enumerate(graph.layers) if not is_alias(layer)]
    idle = empty_layers(built.image, tmp_path, called)
    counted = []
    for image in (built.image, idle):
        with open_board("riscv_virt", image, virtual=True) as (session, scales):
            nothing = np.zeros(graph.tensors[graph.inputs[0]].shape, np.int8)
            run = run_on_board(session, graph, nothing, scales=scales)
            counted.append([round(layer.count) for layer in run.layers])
    made = twin.deploy_elf(built.image, board, call="infer_once")
    ran = twin.predict(made).layers
    assert [one.name for one in ran[:-1]] == called
    # What reading the counter and calling a layer take is in both; a return is all an empty one is.
    assert [one.instructions for one in ran[:-1]] == [
        full - empty + 1 for full, empty in zip(*counted, strict=True)]


def test_both_windows_of_the_flash_are_one_memory(tmp_path, monkeypatch):
    from twin.deployment.deploy import deploy
    from twin.program.image.compile.store import keep_image

    monkeypatch.setenv("TWIN_IMAGES", str(tmp_path))
    image = keep_image(deploy("ad", "esp32c3_devkitm", runtime="firmware"))
    made = twin.deploy_elf(image.path, "esp32c3_devkitm", call="infer_once")
    warm, cold = (twin.predict(made, temperature=one) for one in ("warm", "cold"))
    assert {run.code_memory for _, runs in made.found.warm for run in runs} == {"flash"}
    # 267,776 bytes of weights (ad has 264,192 products, a byte each) in lines of 32, which the
    # 16 KiB do not keep from one pass to the next.
    assert sum(layer.misses for layer in warm.layers) >= 264_192 // 32
    assert cold.cycles >= warm.cycles


def test_counters_count_what_is_modelled_and_traps_return(program, board):
    made = twin.deploy_elf(program, board, begin="after_trap")
    assert made.found.printed == "said\n"
    assert made.found.exceptions == {"11": 1}
    assert [one["register"] for one in made.found.polls] == [0x10000004]
    read = {}
    for name in ("elapsed", "ran", "kept", "served", "cause"):
        read[name] = _word(program, board, name)
    alone = twin.deploy_elf(program, board, call="infer", layers="none")
    # Between both readings of minstret: infer, its call, and what reads and keeps the counters.
    assert 0 < read["ran"] - alone.found.instructions < 24
    cycles = sum(run.traffic.core_cycles for _, runs in alone.found.warm for run in runs)
    assert read["elapsed"] == pytest.approx(cycles, abs=40)
    assert read["kept"] == 5 + 1 + 10 + 100 and read["served"] == 1 and read["cause"] == 11


def _word(program, board, name):
    """A variable as the program left it when after_trap is reached."""
    elf = read_elf(program)
    machine = open_machine(elf, load_board(board), {}, 10**7)
    machine.run(elf.symbols["after_trap"])
    return int.from_bytes(machine.read(elf.symbols[name], 4), "little")


def _run(program, board, **asked):
    """Run in this process, which a test may: what is refused is the same."""
    wanted = {"begin": None, "end": None, "call": None, "nth": 1, "layers": "none",
              "registers": {}, "files": {}, "limit": 10**6}
    return run_program(read_elf(program), load_board(board), Wanted(**wanted | asked))


def test_what_cannot_go_on_is_named(program, board, tmp_path):
    with pytest.raises(ProgramError, match=r"sleeps in sleep for an interrupt.*: --call SYM"):
        _run(program, board, begin="after_trap", end="0x80000002")
    with pytest.raises(ProgramError, match=r"machine code of riscv.*cortex-m4"):
        _run(program, "nucleo_l4r5zi", begin="infer")
    with pytest.raises(ProgramError, match=r"--set-register r0: .*accepted: ra, sp"):
        _run(program, board, call="infer", registers={"r0": 1})
    source = ("void _start(void) { __asm volatile(\"la sp, 0x80001000\\n CODE\"); }\n"
              "int main(void) { return 0; }")
    for code, why in (("ecall", "calls the system in .*mtvec names no handler"),
                      ("li t0, 0x5000\\n lw t1, 0(t0)", "read of 0x00005000 in _start"),
                      ("ebreak", "the program ended in _start"),
                      (".word 0xffffffff", "cannot go on in _start.*trap 2 at ffffffff")):
        made = build_riscv_program(tmp_path, source=source.replace("CODE", code))
        with pytest.raises(ProgramError, match=why):
            _run(made, board, begin="main")


def test_bytes_of_instructions_are_told_apart():
    # c.jal 0; jal ra, 0; jal zero, 0; c.jalr a5; c.jr ra (RISC-V ISA, Volume I, 2.5 and 27.8)
    calls = ("0120", "ef000000", "6f000000", "8297", "8280")
    assert [riscv.ends_in_call(bytes.fromhex(one)) for one in calls] == [
        True, True, False, True, False]
    assert riscv.measure_instructions(bytes.fromhex("".join(calls))) == [2, 4, 4, 2, 2]
    # Counted from the jump itself, as capstone writes it.
    assert [riscv.find_target(one, 0x100) for one in (
        "c.bnez a0, -0x10", "j 0x20", "beq a0, a1, 8", "jalr a5", "ret", "bset a0, a1, a2")] == [
            0xF0, 0x120, 0x108, 0, 0, None]
    assert riscv.without_target("bltu a0, a1, -0x1c") == "bltu a0, a1, 0x0"
    # csrrsi a0, 0x7e0, 3: operation 6 (set, a number), source 3, target 10
    assert riscv.read_csr(0x7E01E573) == (0x7E0, 6, 3, 10)
    assert riscv.read_csr(0x00000073) is None
