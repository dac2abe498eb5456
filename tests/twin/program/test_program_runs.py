"""Programs run under emulation and billed: start-up, layers, interrupts, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections import deque
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("capstone", reason="needs the boards extra")

from made_program import SOURCE, build_program, emulate_here, make_few

import twin
from benchmarks.exactness.binary import random_layers
from hwmodels.board.file import load_board
from hwmodels.program import riscv
from hwmodels.program.thumb import find_target, measure_instructions, without_target
from twin.attribution.compatibility import agree
from twin.attribution.pairing import pair_parts
from twin.attribution.predicted import side_of_prediction
from twin.deployment.deploy import deploy
from twin.errors import ProgramError, UsageError
from twin.pricing.inference import predict
from twin.program import finding
from twin.program.asking import Wanted
from twin.program.counters import Counters
from twin.program.counting import EXCEPTIONS
from twin.program.elf import Function, demangle, read_elf
from twin.program.image.compile.image_sizes import read_sizes
from twin.program.image.compile.store import keep_image
from twin.program.part import load_part
from twin.program.patterns import call_layer, choose_layers, name_kind, name_layer
from twin.program.peripherals import Peripherals
from twin.program.recorder import Recorder
from twin.program.session import run_program
from twin.reports.export import hardware_summary, layerwise_breakdown, precision_tradeoffs
from twin.reports.figures.arena import draw_arena_figure
from twin.reports.figures.memory_map import draw_memory_figure
from twin.reports.tables.header import header_pairs

BOARD = "nucleo_l4r5zi"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_program(tmp_path_factory.mktemp("program"), say=True)


@pytest.fixture(autouse=True)
def here(request, monkeypatch):
    """Processes of emulators are those of our own image, of a hang and of what is refused."""
    if not any(word in request.node.name for word in ("own_image", "hangs", "refused")):
        emulate_here(monkeypatch)


SMALL = random_layers(5)
"""Kernels of all kinds, on odd sizes."""


@pytest.mark.parametrize("network,board", [
    ("kws", BOARD), (SMALL, "apollo510_evb"), (SMALL, "stm32n6570_dk")])
def test_our_own_image_runs_the_instructions_that_are_read_from_it(network, board, tmp_path,
                                                                   monkeypatch):
    monkeypatch.setenv("TWIN_IMAGES", str(tmp_path))
    read = deploy(network, board, runtime="firmware")
    image = keep_image(read)
    made = twin.deploy_elf(image.path, board, call="infer_once")
    if board == "stm32n6570_dk":  # linked to where a boot loader copies it
        assert made.flash_bytes == 0 and made.weights == made.arena == made.code == "sram"
    sizes = read_sizes(image.path, read.board)
    assert made.memory_uses == sizes.memories and made.ram_bytes == sizes.ram_bytes
    parts = {name: size for name, size in made.ram_parts.items() if size}
    assert parts["arena"] == sizes.arena_bytes and parts["stack"] == sizes.stack_bytes
    assert made.flash_bytes == sizes.flash_bytes
    told = made.found.doubts
    assert len(told) == 1 and told[0].startswith("not checked whether")
    # Its main sets up what would tell, or no list of the part is there.
    assert ("is not listed" in told[0]) == (not load_part(read.board.soc).blocks)
    if board != BOARD:
        assert sizes.lies_in_ram and sizes.flash_bytes == 0 < parts["code"]
        assert deploy(network, board, runtime="firmware", weights="sram").flash_bytes == 0
    else:  # the same powers, so energies lie no further apart than cycles
        ran, seen = twin.predict(made), twin.predict(read)
        assert abs(ran.energy_uj / seen.energy_uj - 1) <= abs(ran.cycles / seen.cycles - 1) + 1e-3
        many = twin.predict_many(read)
        assert many.energy_uj[0] == pytest.approx(seen.energy_uj)
        width = [one.certainty.energy_uj.high / one.energy_uj for one in (ran, seen)]
        assert width[1] == pytest.approx(width[0], rel=0.02)
        stated = twin.predict(read, calibration="none")
        assert stated.certainty is None and 1.2 < seen.energy_uj / stated.energy_uj < 2.0
    # Variables with a beginning, and the Apollo's weights, are kept in RAM to be copied.
    assert ("kept_to_be_copied" in parts) == (board != BOARD)
    for temperature in ("warm", "cold"):
        expected, found = (predict(one, temperature=temperature) for one in (read, made))
        layers = [layer for layer in expected.layers if not layer.alias]
        assert [one.name for one in found.layers[:-1]] == [
            f"run_{layer.index}" for layer in layers]
        for ran, layer in zip(found.layers, layers, strict=False):
            assert ran.instructions == layer.instructions
        assert found.cycles == pytest.approx(expected.cycles, rel=0.01)
        if expected.energy_uj is not None:
            assert found.energy_uj == pytest.approx(expected.energy_uj, rel=0.02)


def test_plain_products_count_on_a_core_that_could_add_them_up(tmp_path, monkeypatch):
    monkeypatch.setenv("TWIN_IMAGES", str(tmp_path))
    image = keep_image(deploy(SMALL, "rpi_pico", runtime="firmware")).path  # an Armv6-M's: no MLA
    own, other = (twin.predict(twin.deploy_elf(image, board, call="infer_once"))
                  for board in ("rpi_pico", "rpi_pico2"))
    assert [one.macs for one in other.layers] == [one.macs for one in own.layers]
    assert other.macs > 10_000
    for row in layerwise_breakdown(own):  # a program names no tensor
        assert [key for key, value in row.items() if value is None] == [
            "output_elements", "parameter_bytes", "activation_bytes"]
    assert precision_tradeoffs(own)[0]["precision"] is None
    assert precision_tradeoffs(own)[0]["memory_mb_mean"] is None
    assert hardware_summary(own)[0]["estimated_total_bytes"] is None
    assert all(one.live_bytes is None for one in own.layers)
    assert any("peripherals an rp2350a has is not listed" in one for one in other.warnings)


def test_a_program_comes_through_its_start_up_and_says_what_it_guessed(program):
    made = twin.deploy_elf(program, BOARD, begin="infer", nth=3, layers="layer_*")
    assert [layer.name for layer in twin.predict(made).layers] == [
        "layer_dense", "layer_fast", "between layers"]
    assert twin.predict(made).layers[1].tick == "1 layer_fast"  # as tables have it
    assert made.graph.name == f"infer of {program.name}"
    polls = {one["register"]: one["value"] for one in made.found.polls}
    # Ready bits: bit 17 beside the enabled bit 16; the clock asked for by 2, echoed two bits up.
    assert polls[0x40023800] == 1 << 17 | 1 << 16 and polls[0x40023808] == 2 << 2 | 2
    assert polls[0x40004400] == 1 << 7
    assert made.found.printed == "said\n"
    assert any("0x40023808" in one for one in twin.predict(made).warnings)
    # Its clocks are an STM32F4's (RCC at 0x40023800).
    told = [one for one in twin.predict(made).warnings if one.startswith("of another board?")]
    assert "2 of 4 registers" in told[0] and "0x40023800 in main" in told[0]
    assert len(told) == 1  # a stack that begins inside the board's RAM speaks against nothing
    assert len(load_part("stm32f401re").blocks) == 13 and load_part("mine").blocks == ()


def test_a_stripped_program_is_billed_by_address(program, tmp_path):
    """Direct calls (BL), a call by pointer into RAM, and addresses asked for begin functions."""
    whole = read_elf(program)
    stripped = tmp_path / "stripped.elf"
    assert subprocess.run(["arm-none-eabi-strip", "-o", str(stripped), str(program)],
                          check=False).returncode == 0
    at = {name: f"0x{address:08x}" for name, address in whole.symbols.items()}
    part = {"begin": at["infer"], "end": None, "nth": 2}
    made = twin.deploy_elf(stripped, BOARD, layers=f"{at['layer_dense']},{at['layer_fast']}",
                           **part)
    named = twin.deploy_elf(program, BOARD, layers="layer_*", begin="infer", nth=2)
    prediction = twin.predict(made)
    assert [layer.label for layer in prediction.layers] == [
        at["layer_dense"], at["layer_fast"], "between layers"]
    assert prediction.cycles == twin.predict(named).cycles
    assert [run.name for _, runs in made.found.warm for run in runs] == [
        at[run.name] for _, runs in named.found.warm for run in runs]
    # Called once the address of main is reached, which no symbol tells.
    called = {"call": at["infer"], "layers": f"{at['layer_dense']},{at['layer_fast']}"}
    with pytest.raises(ProgramError, match=rf"--from 0xADDRESS --call {at['infer']}, with the"):
        twin.deploy_elf(stripped, BOARD, **called)
    assert twin.predict(twin.deploy_elf(stripped, BOARD, begin=at["main"], **called)).cycles == \
        twin.predict(twin.deploy_elf(program, BOARD, call="infer", layers="layer_*")).cycles
    # Without --layers too what was called by a pointer, at the end of another, is a function.
    ran = twin.deploy_elf(stripped, BOARD, **part).found.warm
    assert at["layer_fast"] in [run.name for _, runs in ran for run in runs]
    text = str(header_pairs(prediction))
    assert "no symbols" in text and "parameters not known" in text
    assert prediction.setup.lines == () and "arena and stack not known" in text


def test_calls_of_riscv_are_found():
    """jal ra, 0x100; c.jal 0x20; auipc ra, 1 and jalr ra, -16(ra); a jump that is no call."""
    code = bytes.fromhex("ef000010" "0520" "97100000" "e780 00ff" "6f00 0010")
    assert riscv.find_calls(code, 0x1000) == [0x1004 + 0x20, 0x1100, 0x1006 + 0x1000 - 16]


def test_layers_and_functions_sum_to_the_whole(program):
    made = twin.deploy_elf(program, BOARD, begin="infer", layers="layer_*")
    prediction = twin.predict(made)
    dense = prediction.layers[0]
    assert dense.macs == 4 * 64  # products of the source's two loops
    assert sum(layer.cycles for layer in prediction.layers) == pytest.approx(prediction.cycles)
    assert sum(layer.instructions for layer in prediction.layers) == made.found.instructions
    whole = twin.predict(twin.deploy_elf(program, BOARD, begin="infer", layers="none"))
    assert sum(layer.instructions for layer in whole.layers) == made.found.instructions
    assert whole.cycles == pytest.approx(prediction.cycles, rel=0.02)
    sure = prediction.certainty
    assert sure.time_us.low < prediction.time_us < sure.time_us.high
    # Of stated prices, three quarters of the core's: 1.645 x 0.1 and more of memories'.
    assert 1.1 < sure.time_us.high / prediction.time_us < 2.0
    stated = twin.predict(made, calibration="none")
    assert stated.certainty is None and stated.cycles == prediction.cycles
    # Powers are those networks drew on the board, between 1.2 and 2 times what its file states.
    assert "networks measured on nucleo_l4r5zi" in sure.calibration
    assert 1.2 < prediction.energy_uj / stated.energy_uj < 2.0
    assert sure.energy_uj.low < prediction.energy_uj < sure.energy_uj.high


def test_two_builds_are_set_side_by_side_in_order(program, tmp_path):
    other = build_program(tmp_path, options=("-O1",))
    sides = [side_of_prediction(twin.predict(twin.deploy_elf(
        one, BOARD, begin="infer", layers="layer_*"))) for one in (program, other)]
    assert [one.level for one in agree(*sides) if one.what == "program"] == ["note"]
    found = pair_parts(*sides)
    assert found.by == "index" and len(found.pairs) == 3
    assert all(first.name == second.name for first, second in found.pairs)
    assert name_kind(("data_movement", "conv", "fully_connected")) == "conv"
    assert name_kind(("elementwise", "data_movement")) == "elementwise"
    assert call_layer([("infer", "elementwise")]) == "function"  # nothing is known of what it is


@pytest.mark.parametrize("name, called", [
    ("matmul_s8", "matmul"), ("arm_nn_mat_mult_nt_t_s8", "matmul"),
    ("arm_nn_vec_mat_mult_t_s8", "fully_connected"), ("arm_fully_connected_s8", "fully_connected")])
def test_a_product_of_matrices_may_be_a_convolution(name, called):
    assert call_layer([("memcpy", "data_movement"), (name, "fully_connected")]) == called
    assert call_layer([(name, "fully_connected"), ("arm_convolve_1x1_s8", "pointwise")]
                      ) == "pointwise"


def test_interrupts_and_tasks_run(program):
    made = twin.deploy_elf(program, BOARD, begin="switch_tasks", end="both_worked")
    assert made.found.exceptions["14"] >= 1 and made.found.exceptions["15"] >= 3
    assert made.found.exceptions["11"] == 1
    layer = made.found.warm[-1][1]
    handlers = [run for run in layer if run.name == EXCEPTIONS]
    assert handlers[0].calls == 2
    # A tick and a switch: 12 cycles in (DDI 0439), 10 assumed back.
    assert handlers[0].traffic.core_cycles == 2 * 12 + 2 * 10
    third = twin.deploy_elf(program, BOARD, begin="SysTick_Handler", nth=3)
    assert 0 < third.found.instructions < 20


def test_an_inference_is_billed_with_what_interrupts_it(tmp_path):
    source = SOURCE.replace("worked[number]++;", "worked[number]++; if (!number) infer();")
    made = twin.deploy_elf(build_program(tmp_path, source=source), BOARD, begin="infer", nth=5,
                           layers="layer_*")
    prediction = twin.predict(made)
    assert [layer.name for layer in prediction.layers] == [
        "layer_dense", "layer_fast", "between layers"]
    assert prediction.layers[0].macs == 4 * 64
    runs = [run for _, layer in made.found.warm for run in layer]
    # Every 1000 cycles a tick, then a switch: the other task ran in between.
    assert sum(run.calls for run in runs if run.name == EXCEPTIONS) >= 4
    assert {"SysTick_Handler", "PendSV_Handler", "task"} <= {run.name for run in runs}
    assert sum(layer.instructions for layer in prediction.layers) == made.found.instructions


@pytest.mark.parametrize("board,kept", [
    (BOARD, 0xF0), ("rpi_pico", 0xC0), ("nrf52840dk", 0xE0), ("rpi_pico2", 0xF0)])
def test_priorities_have_the_bits_a_kernel_asks_for(board, kept):
    device = Peripherals(load_board(board), lambda: 0, lambda at: "", lambda: None)
    device.write(0xE000E401, 1, 0xFF, 0)
    assert device.read(0xE000E401, 1, 0) == kept


def test_a_program_that_hangs_is_told_from_where(tmp_path):
    source = SOURCE.replace("infer(); infer();", "hang();", 1)
    with pytest.raises(ProgramError, match=r"stays in hang for ever, come from main"):
        twin.deploy_elf(build_program(tmp_path, source=source, options=("-fno-inline",)), BOARD,
                        begin="infer")


@pytest.mark.parametrize("board", [BOARD, "nucleo_h7a3zi_q"])
def test_a_loop_is_looked_up_once_where_every_turn_finds_the_same(program, monkeypatch, board):
    wanted = Wanted(begin="infer", end=None, call=None, nth=2, layers="layer_*", registers={},
                    files={}, limit=10**6)
    looked_up, meet = [], Recorder.meet
    monkeypatch.setattr(Recorder, "meet", lambda self, rows: (
        looked_up.append(len(rows)), meet(self, rows))[1])
    found = run_program(read_elf(program), load_board(board), wanted)
    fewer = sum(looked_up)
    looked_up.clear()
    monkeypatch.setattr(Counters, "_stays", lambda *block: False)
    assert run_program(read_elf(program), load_board(board), wanted) == found
    assert 0 < fewer < sum(looked_up)


def test_accesses_that_are_not_aligned_cost_what_they_are_made_of(tmp_path):
    """DDI 0439, 3.3.2: of a word one cycle more for two halfwords, two for byte, halfword, byte."""
    source = r"""
#include <stdint.h>
int main(void);
__attribute__((section(".isr_vector"), used)) void (*const table[2])(void) = {
    (void (*)(void))0x20010000, (void (*)(void))main};
uint32_t room[8];
__attribute__((naked, noinline)) void layer_read(void *from)
{ __asm volatile("ldr r1, [r0]\n ldr r2, [r0, #8]\n str r2, [r0, #4]\n ldrh r3, [r0]\n bx lr"); }
__attribute__((noinline)) void infer(void)
{
    for (uint32_t i = 0; i < 4; i++) layer_read((char *)room + i);
}
int main(void) { infer(); for (;;) ; }
"""
    made = build_program(tmp_path, source=source, options=("-Wl,-e,main",))
    found = twin.predict(twin.deploy_elf(made, BOARD, begin="infer", layers="layer_*"))
    aligned, odd, half, third = (one.cycles for one in found.layers[:4])
    assert (odd - aligned, half - aligned, third - aligned) == (2 + 2 + 1, 1 + 1, 2 + 2 + 1)


def test_what_ran_before_can_be_where_it_ends(program):
    whole = twin.deploy_elf(program, BOARD, begin="infer", nth=2, layers="none").found
    made = twin.deploy_elf(program, BOARD, begin="infer", end="layer_fast", nth=2, layers="none")
    assert 0 < made.found.instructions < whole.instructions


def test_a_changed_board_changes_the_bill_and_not_the_program(program):
    made = twin.deploy_elf(program, BOARD, begin="infer")
    slow = made.replace({"clocks.cpu.frequency_hz": 16e6})
    assert twin.predict(slow).time_us > twin.predict(made).time_us
    with pytest.raises(UsageError, match="paths of the board file"):
        made.replace({"placement.arena": "sram"})


@pytest.mark.parametrize("asked,why", [
    ({"begin": "infr"}, "did you mean infer"),
    ({"begin": "infer", "end": "0x08000001", "limit": 10}, "10 instructions and no end"),
    ({"begin": "infer", "layers": "conv_*"}, "no function matches"),
    ({"begin": "infer", "layers": "cmsis-nn"}, "no function matches; accepted: none, or patterns"),
    ({"begin": "infer", "registers": {"a0": 1}}, "a0: the core has no such register; accepted: r0"),
    ({"begin": "layer_float", "nth": 2, "limit": 20_000}, "--nth up to 1, or more with --limit"),
    ({"begin": "both_worked", "nth": 2, "limit": 20_000}, "20,000 instructions and no end"),
    ({"begin": "SVC_Handler", "limit": 500}, "--from SVC_Handler was not reached in 500 instr"),
    ({"begin": "main", "end": "0x08000001", "limit": 9000}, "--to 0x08000001 was not reached in"),
    ({"call": "layer_dense", "end": "main"}, "not with --to"),
    ({"call": "infer", "begin": "infer"}, "exclude each other"),
    ({"end": "main"}, "--to needs --from"),
    ({"call": "0xffffffff"}, "--call 0xffffffff: nothing of the program lies there"),
    ({}, "no part of the program"),
])
def test_what_cannot_be_run_is_refused_in_one_line(program, asked, why):
    with pytest.raises((ProgramError, UsageError), match=why) as refused:
        twin.deploy_elf(program, BOARD, **asked)
    assert "\n" not in str(refused.value)


def test_what_is_no_program_is_refused_before_it_is_asked_about(tmp_path):
    (tmp_path / "empty.elf").write_bytes(b"")
    with pytest.raises(ProgramError, match="not an ELF file"):
        twin.deploy_elf(tmp_path / "empty.elf", BOARD)


def test_an_access_to_nothing_is_named(tmp_path):
    source = ("int main(void) { return *(volatile int *)0x1ffe7590; }\n"
              "void stop(void) { for (;;) ; }\n"
              "__attribute__((section(\".isr_vector\"), used)) void (*const table[2])(void) = {\n"
              "    (void (*)(void))0x20010000, (void (*)(void))main};\n")
    made = build_program(tmp_path, source=source, options=("-Wl,-e,main",))
    with pytest.raises(ProgramError, match=r"read of 0x1ffe7590 in main.*--memory"):
        twin.deploy_elf(made, BOARD, begin="main")
    with pytest.raises(ProgramError, match="jump to 0x00000000 in main"):
        twin.deploy_elf(made, BOARD, begin="main", memory={0x1FFE7590: b"\x01\0\0\0"},
                        end="stop", limit=1000)


@pytest.mark.parametrize("content,why", [
    (b"hello", "not an ELF file"), (b"\x7fELF" + bytes(60), "damaged|accepted"),
    (b"\x7fELF\x01\x01\x01" + b"\xff" * 80, "damaged|accepted")])
def test_a_file_that_is_no_program_is_refused(tmp_path, content, why):
    path = tmp_path / "app.elf"
    path.write_bytes(content)
    with pytest.raises(ProgramError, match=why):
        read_elf(path)
    with pytest.raises(ProgramError, match="cannot be read"):
        read_elf(tmp_path / "none.elf")


def test_a_cut_program_and_an_object_file_are_told_so(program, tmp_path):
    content = Path(program).read_bytes()
    for changed, why in ((content[:3000], "it has 3,000 bytes, and its tables lie behind"),
                         (content[:16] + b"\1\0" + content[18:], "object file: link it first")):
        (tmp_path / "bad.elf").write_bytes(changed)
        with pytest.raises(ProgramError, match=why):
            read_elf(tmp_path / "bad.elf")


def test_pictures_of_a_program_show_what_its_file_tells(program):
    prediction = twin.predict(twin.deploy_elf(program, BOARD, begin="infer"))
    assert draw_arena_figure(prediction) is None
    named = [text.get_text() for one in draw_memory_figure(prediction).legends
             for text in one.get_texts()]
    assert "code, weights and tables" in named and "weights" not in named


def test_a_program_for_another_board_is_refused(program):
    with pytest.raises(ProgramError, match="accepted"):
        twin.deploy_elf(program, "apollo510_evb", begin="infer")


def test_flames_weigh_what_the_bill_says(program, tmp_path):
    from twin.reports.functions import write_function_flames

    prediction = twin.predict(twin.deploy_elf(program, BOARD, begin="infer", layers="layer_*"))
    path = write_function_flames(prediction, tmp_path / "p.speedscope.json")
    profile, timed = json.loads(path.read_text())["profiles"]
    assert sum(profile["weights"]) == pytest.approx(prediction.cycles, abs=len(profile["weights"]))
    assert timed["unit"] == "nanoseconds"
    assert sum(timed["weights"]) == pytest.approx(1e3 * prediction.time_us,
                                                  abs=len(timed["weights"]))
    assert "layer_dense" in write_function_flames(prediction, tmp_path / "p.svg").read_text()


def test_names_of_cpp_are_read():
    assert demangle("_ZN6tflite12_GLOBAL__N_18ConvEvalEP13TfLiteContextP10TfLiteNode") == (
        "tflite::ConvEval")
    assert demangle("_ZNK6tflite16MicroInterpreter6InvokeEv") == "tflite::MicroInterpreter::Invoke"
    assert demangle("main") == "main" and demangle("_Z4testi") == "test"


def test_layers_of_tflm_are_called_by_their_operator(tmp_path):
    source = SOURCE.replace("layer_dense", "_ZN6tflite12_GLOBAL__N_14EvalEv").replace(
        "__attribute__((noinline)) int _ZN", "static __attribute__((noinline)) int _ZN")
    functions = read_elf(build_program(tmp_path, source=source)).functions
    assert any(one.name == "tflite::Eval" for one in functions)
    made = Function(symbol="", name="tflite::Eval", start=0, end=2, file="/lib/conv.cc")
    assert name_layer(made) == "conv"
    assert name_layer(replace(made, name="tflite::EvalInt8", file="softmax.cc")) == "softmax Int8"
    assert name_layer(replace(made, file="")) == "tflite::Eval"
    assert name_layer(replace(made, name="run_1")) == "run_1"


def test_what_sets_a_layer_up_is_none(program):
    names = ("arm_convolve_s8", "arm_convolve_s8_get_buffer_size", "arm_softmax_init_s8",
             "arm_fully_connected_s8", "arm_depthwise_conv_get_buffer_size_mve", "run_0")
    elf = SimpleNamespace(path="app.elf", functions=[
        Function(symbol=name, name=name, start=0, end=2) for name in names])
    layers = ["arm_convolve_s8", "arm_fully_connected_s8"]
    assert [one.name for one in choose_layers(elf, "auto")[1]] == layers
    assert [one.name for one in choose_layers(elf, "arm_*,!*_buffer*, !*_init*")[1]] == layers
    with pytest.raises(ProgramError, match=r"no function matches; accepted: .*'run_\*,!run_init"):
        choose_layers(elf, "!arm_*")


def test_how_far_an_emulation_is_is_told(caplog, monkeypatch):
    monkeypatch.setattr(finding, "PATIENCE_S", 0.0)
    said = deque()
    with caplog.at_level("INFO", logger="twin.program"):
        finding._listen([b"so far: start-up, 1,000 instructions, in main\n", b"Killed\n"],
                        Path("app.elf"), said)
    assert [one.getMessage() for one in caplog.records] == [
        "emulating app.elf: start-up, 1,000 instructions, in main, 0 s"]
    assert list(said) == ["Killed"]


def test_jumps_are_read_as_both_disassemblers_write_them():
    told = {"bgt.n 3384": 0x3384, "bl #0x33e8": 0x33E8, "cbz r0, #0x10": 0x10, "bx lr": 0,
            "le lr, 33ac": 0x33AC, "pop {r4, pc}": 0, "tbb [pc, r3]": 0, "letp lr, 92": 0x92}
    for line, target in told.items():
        assert find_target(line, 0) == target, line
    for line in ("bic r0, r1, #0x10", "bfi r0, r1, #4, #8", "ldr r0, [pc, #4]", "pop {r4, r5}"):
        assert find_target(line, 0) is None, line
    assert [without_target(one) for one in ("bgt.n 3384", "cbz r0, #0x10", "bx lr")] == [
        "bgt.n #0x0", "cbz r0, #0x0", "bx lr"]


def test_instructions_are_counted_by_their_prefix():
    # push {r4, lr}; ldr.w r0, [r1]; bl 0; bx lr (DDI 0403E, A5.1)
    assert measure_instructions(bytes.fromhex("10b5d1f8000000f000f87047")) == [2, 4, 4, 2]


def test_a_register_nobody_answers_for_is_given_up():
    device = Peripherals(load_board(BOARD), lambda: 0, lambda at: "", lambda: None)
    for _ in range(2000):
        device.read(0x40000000, 4, 0x08000000)
    assert device.polling.stuck == (0x40000000, 0x08000000)
    assert load_board(BOARD).core.model == "cortex-m4"


def test_what_leaves_a_cache_is_looked_up_in_the_one_below_it(program, tmp_path):
    board = load_board(BOARD)
    upper = board.cache("art_d")
    lower = replace(upper, name="l2", size_bytes=65536, ways=8, replacement="lru", below=None)
    two = replace(board, caches=(*(replace(one, below="l2") if one is upper else one
                                   for one in board.caches), lower))
    made = twin.deploy_elf(program, two, begin="infer")
    warm, cold = (_sum_refills(twin.predict(made, temperature=one)) for one in ("warm", "cold"))
    alone = _sum_refills(twin.predict(twin.deploy_elf(program, board, begin="infer")))
    # All of it fits the lower one: what misses the upper one is there, but for the first time.
    assert warm.get("l2", 0) == alone["flash"] and not warm.get("flash", 0)
    assert 0 < cold["flash"] <= cold["l2"]
    assert twin.write_report(made, tmp_path / "program.md").stat().st_size > 1000


def _sum_refills(prediction):
    found = {}
    for layer in prediction.layers:
        for line in layer.counts.lines:
            if line.event == "dcache_read_refill":
                found[line.place] = found.get(line.place, 0) + line.occurred
    return found


def test_a_main_that_returns_to_a_branch_to_itself_has_ended(tmp_path):
    """What stands behind it is the end asked for, not a program that hangs."""
    (tmp_path / "few.elf").write_bytes(make_few())
    made = predict(twin.deploy_elf(tmp_path / "few.elf", BOARD, begin="main"))
    assert sum(layer.instructions for layer in made.layers) == 25


def test_a_program_without_functions_is_read(tmp_path):
    whole = make_few()
    none = whole.replace(bytes.fromhex("08000000120001 00"), bytes.fromhex("0800000011000100"))
    (tmp_path / "none.elf").write_bytes(none)
    assert none != whole and read_elf(tmp_path / "none.elf").functions == ()
