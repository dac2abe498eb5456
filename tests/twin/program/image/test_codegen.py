"""C from a graph: plans, constants, text, memory maps, ports, sizes and refusals."""

from __future__ import annotations

import re
import shutil
import signal
import zlib
from dataclasses import replace
from functools import partial

import pytest
from made_graphs import one_layer, tensor

import twin
from hwmodels.board.file import change_board, load_board
from hwmodels.errors import ToolMissingError
from twin.deployment.deploy import deploy
from twin.deployment.deployment import place
from twin.deployment.placement import plan_placement
from twin.errors import (
    DoesNotFitError,
    FirmwareError,
    PlacementError,
    RuntimeRefusedError,
    UsageError,
)
from twin.network.arithmetic.parameters import folded_bias
from twin.network.arithmetic.requantisation import weighted
from twin.network.graph import Graph, GraphLayer
from twin.network.operators import is_alias
from twin.network.zoo import build
from twin.program.image.compile import build as compile_build
from twin.program.image.compile import flashing
from twin.program.image.compile.boot_checksum import boot_checksum
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.calls import _WRITERS, _literal
from twin.program.image.compile.flashing import find_programmer, flash_image
from twin.program.image.compile.image_sizes import read_sizes
from twin.program.image.compile.memory_map import choose_sample_capacity, write_memory_map
from twin.program.image.compile.plan import FIRMWARE, lay_out_constants
from twin.program.image.compile.ports import choose_port, firmware_folder, list_ports, load_port
from twin.program.image.compile.source import generate_source
from twin.runtimes.firmware import KERNELS, convolution_scratch_bytes
from twin.runtimes.lowering import Site


def test_the_runtime_has_the_operators_that_are_written():
    assert set(KERNELS) == set(_WRITERS)


def test_image_holds_the_constants_where_the_plan_says():
    graph = build("kws")
    placement = plan_placement(graph, FIRMWARE, "armv7e-m")
    image = lay_out_constants(graph, placement)
    offsets = dict(placement.weight_offsets)
    assert image.planned_bytes == placement.weights_bytes <= len(image.content)
    for position, layer in enumerate(graph.layers):
        if layer.op == "conv_2d":
            weights = graph.tensors[layer.inputs[1]]
            at = offsets[layer.inputs[1]]
            assert image.content[at:at + weights.size_bytes] == weights.data.tobytes()
            bias = folded_bias(GraphLayer(graph, layer))
            assert image.content[image.bias[position]:][:bias.nbytes] == bias.tobytes()
            both = weighted(GraphLayer(graph, layer))
            at = image.parameters[position]
            assert image.content[at:at + both.multipliers.nbytes] == both.multipliers.tobytes()


def test_a_bias_two_layers_share_is_folded_for_each():
    graph = build("ad")
    first, second = graph.layers[1], graph.layers[2]
    shared = Graph(
        name=graph.name, source=graph.source, sha256=graph.sha256, tensors=graph.tensors,
        inputs=graph.inputs, outputs=graph.outputs, layers=tuple(
            type(layer)(**{**{f: getattr(layer, f) for f in layer.__slots__},
                           "inputs": (*layer.inputs[:2], first.inputs[2])})
            if layer is second else layer for layer in graph.layers))
    image = lay_out_constants(shared, plan_placement(shared, FIRMWARE, "armv7e-m"))
    assert image.bias[1] != image.bias[2]
    for position in (1, 2):
        expected = folded_bias(GraphLayer(shared, shared.layers[position])).tobytes()
        assert image.content[image.bias[position]:][:len(expected)] == expected


def test_scratch_is_two_columns_and_none_for_pointwise():
    for graph, number, wanted in ((build("ic"), 1, 2 * 3 * 3 * 16),  # 3x3 over 16 channels
                                  (build("kws"), 2, 0)):
        assert convolution_scratch_bytes(Site(
            graph=graph, layer=graph.layers[number], isa="armv7e-m", fpu=None,
            operands=())) == wanted


def test_source_calls_every_layer_once_in_order():
    graph = build("ic")
    source = generate_source(graph, "armv7e-m")
    called = [i for i, layer in enumerate(graph.layers) if not is_alias(layer)]
    assert [int(n) for n in re.findall(r"\{run_(\d+), ", source.model_c)] == called
    assert source.model_c == generate_source(graph, "armv7e-m").model_c  # same graph, same bytes
    assert f".weights_bytes = {len(source.image.content)}" in source.model_c
    offset = source.placement.slot(graph.outputs[0]).offset_bytes
    assert f".output_offset = {offset}," in source.model_c


def test_names_from_a_file_cannot_leave_their_comment_or_string():
    graph = one_layer("relu", [tensor((1, 4))], [tensor((1, 4), name='*/ x"\n\\ \u00e9 ??/')])
    source = generate_source(graph, "armv7e-m")
    text = source.model_c
    assert "/* 0: relu  x   */\n" in text and '{run_0, "relu */ x  /", ' in text
    assert text.isascii() and "??" not in text


@pytest.mark.parametrize(("value", "text"), [
    (1, "1"), (-(2**31), "(-2147483647 - 1)"), (0.5, "0.5f"), (float("inf"), "3.40282347e38f"),
    (1e-9, "9.99999972e-10f"), (2.0, "2.0f"), ((1, 2), "{1, 2}"), ({"a": 1}, "{.a = 1}")])
def test_literals(value, text):
    assert _literal(value) == text


@pytest.mark.parametrize(("graph", "said"), [
    (one_layer("tanh", [tensor((1, 4), "float32")], [tensor((1, 4), "float32")]), "no kernel"),
    (one_layer("add", [tensor((1, 4)), tensor((1, 4))], [tensor((1, 4))]), "one input"),
])
def test_networks_the_firmware_cannot_run_are_refused(graph, said):
    with pytest.raises(RuntimeRefusedError, match=said):
        generate_source(graph, "armv7e-m")


def test_memory_map_names_the_boards_memories():
    deployment = deploy("kws", "nucleo_l4r5zi")
    text = write_memory_map(deployment)
    flash = deployment.board.memory("flash")
    assert f"MEMORY_FLASH : ORIGIN = {flash.address:#010x}, LENGTH = 2048K" in text
    for role, name in (("CODE", deployment.code), ("WEIGHTS", deployment.weights),
                       ("ARENA", deployment.arena), ("RAM", deployment.arena)):
        assert f'REGION_ALIAS("{role}", MEMORY_{name.upper()})' in text


def test_samples_give_way_to_a_large_arena():
    deployment = deploy("kws", "nucleo_f401re")
    size = deployment.board.memory(deployment.arena).size_bytes
    assert choose_sample_capacity(deployment, 1000, 1000) == 1024
    # 12 KiB of harness and 256 samples of 16 bytes just fit.
    assert choose_sample_capacity(deployment, size - 12 * 1024 - 256 * 16, 0) == 256
    assert choose_sample_capacity(deployment, size, 0) == 128


def test_ports_are_found_and_checked_against_the_board():
    assert {"host", "unicorn-m4", "mps3-an547", "rpi_pico"} <= set(list_ports())
    assert load_port("rtt-m0plus").settings["FAMILY"] == "cortex_m rtt"
    assert load_port("unicorn-m33").isa == "armv8-m-dsp" and load_port("host").fixed_map
    assert choose_port(load_board("rpi_pico"), None).name == "rpi_pico"
    with pytest.raises(UsageError, match="did you mean"):
        load_port("unicorn_m4")
    with pytest.raises(UsageError, match="unicorn-m7 runs armv7e-m, rpi_pico armv6-m"):
        choose_port(load_board("rpi_pico"), "unicorn-m7")
    with pytest.raises(UsageError, match=r"no port of its own.*rtt-m33"):
        choose_port(load_board("nucleo_u385rg_q"), None)


def test_ports_core_names_are_the_boards():
    isas = {load_board(name).core.isa for name in ("rpi_pico", "nucleo_f401re", "nucleo_u575zi_q",
                                                   "apollo510_evb")}
    assert isas <= {load_port(name).isa for name in list_ports()}


def test_firmware_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TWIN_FIRMWARE", str(tmp_path))
    with pytest.raises(ToolMissingError, match="TWIN_FIRMWARE"):
        firmware_folder()


def test_boot_checksum_is_crc32_not_reflected():
    # CRC-32/MPEG-2, check value of its catalogue entry.
    assert boot_checksum(b"123456789") == 0x0376E6E7
    reflected = int(f"{zlib.crc32(bytes(int(f'{b:08b}'[::-1], 2) for b in b'twin')):032b}"[::-1], 2)
    assert boot_checksum(b"twin") == reflected ^ 0xFFFFFFFF


def test_flashing_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match="pyocd"):
        find_programmer(load_port("nucleo_l4r5zi"))
    with pytest.raises(UsageError, match="not a board to be flashed"):
        find_programmer(load_port("unicorn-m4"))


def test_flashing_runs_the_programmer_and_tells_its_failure(monkeypatch, tmp_path):
    programmer, image = tmp_path / "pyocd", tmp_path / "firmware.elf"
    programmer.write_text('#!/bin/sh\necho "$@" > "$0.said"\nexit ${FAIL:-0}\n')
    programmer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    command = find_programmer(load_port("nucleo_l4r5zi"))
    with pytest.raises(FirmwareError, match="no such image"):
        flash_image(image, command)
    image.write_bytes(b"x")
    flash_image(image, command)
    assert (tmp_path / "pyocd.said").read_text().split() == [
        "flash", "--target", "stm32l4r5zitx", "--no-wait", str(image)]
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(FirmwareError, match="could not flash"):
        flash_image(image, command)


def test_an_image_for_the_boot_rom_is_signed_first(monkeypatch, tmp_path):
    image = tmp_path / "firmware.elf"
    image.write_bytes(b"x")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ToolMissingError, match="STM32CubeProgrammer"):
        find_programmer(load_port("stm32n6570_dk"))
    for name in ("STM32_Programmer_CLI", "STM32_SigningTool_CLI"):
        (tmp_path / name).write_text('#!/bin/sh\necho "$@" > "$0.said"\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(flashing, "write_flat", lambda path: path.with_suffix(".bin"))
    flash_image(image, find_programmer(load_port("stm32n6570_dk")))
    signed = str(tmp_path / "firmware.signed.bin")
    assert (tmp_path / "STM32_SigningTool_CLI.said").read_text().split()[-1] == signed
    said = (tmp_path / "STM32_Programmer_CLI.said").read_text().split()
    assert said[-2:] == [signed, "0x70000000"] and said[5].endswith("STM32N6570-DK.stldr")


def test_bad_choices_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    graph, port = build("ad"), load_port("host")
    for options in ({"compiler": "icc"}, {"optimisation": "-O9"}, {"kernels": "theirs"}):
        with pytest.raises(UsageError, match="accepted"):
            build_firmware(graph, port, tmp_path / "out", **options)
    monkeypatch.delenv("CMSIS_NN_PATH", raising=False)
    with pytest.raises(ToolMissingError, match="CMSIS_NN_PATH"):
        build_firmware(graph, port, tmp_path / "out", kernels="cmsis-nn")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match="make is not installed"):
        build_firmware(graph, port, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc") or not shutil.which("make"),
                    reason="needs arm-none-eabi-gcc and make")
def test_sizes_of_an_image_are_its_parts_and_too_large_is_told(tmp_path):
    pytest.importorskip("elftools", reason="needs the boards extra")
    deployment = deploy("ad", "nucleo_l4r5zi", weights="sram")
    made = build_firmware(deployment.graph, load_port("unicorn-m4"), tmp_path,
                          deployment=deployment)
    sizes, source = made.sizes, made.source
    assert sizes.weights_bytes == len(source.image.content) and sizes.weights_in_ram
    assert sizes.arena_bytes == source.placement.arena_bytes
    assert 10_000 < sizes.code_bytes < 40_000 and sizes.stack_bytes == 4096
    assert sizes.ram_bytes > sizes.weights_bytes + sizes.arena_bytes
    assert (tmp_path / "firmware.elf").is_file()
    assert abs(made.predicted["flash_bytes"] / sizes.flash_bytes - 1) < 0.05
    # Weights and data lie in the flash, too, to be copied.
    assert {one.name: one.used_bytes for one in sizes.memories} == {
        "flash": sizes.code_bytes + sizes.weights_bytes + sizes.data_bytes,
        "sram": sizes.weights_bytes + sizes.data_bytes + sizes.bss_bytes + sizes.arena_bytes
        + sizes.stack_bytes}
    assert not sizes.lies_in_ram
    assert dict(sizes.placement) == {"weights": "sram", "arena": "sram", "code": "flash"}
    assert read_sizes(made.image, load_board("rpi_pico")).memories == ()  # of another map
    # The plan knows the input's 3.1 KiB, bytes and floats, too; past it, the linker says so.
    boards = [change_board(load_board("nucleo_f401re"), {"memories.sram.size_bytes": size})
              for size in ("16KiB", "12KiB")]
    fitting, small = (partial(place, deployment.graph, board, FIRMWARE, weights=None, arena=None,
                              code="flash") for board in boards)
    with pytest.raises(DoesNotFitError, match=r"RAM \(arena and runtime\) needs 14,208 bytes"):
        small()
    with pytest.raises(DoesNotFitError, match="the image exceeds sram"):
        build_firmware(deployment.graph, load_port("unicorn-m4"), tmp_path,
                       deployment=replace(fitting(), board=boards[1]))


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None or shutil.which("make") is None,
                    reason="needs arm-none-eabi-gcc and make")
def test_a_core_the_compiler_does_not_know_is_refused_in_a_line(tmp_path):
    deployment, port = deploy("ad", "nucleo_l4r5zi"), load_port("rtt-m4")
    unknown = replace(port, settings={**port.settings, "CPU": "-mcpu=cortex-m99 -mthumb"})
    with pytest.raises(FirmwareError, match=r"cortex-m99; accepted: core\.build") as refused:
        build_firmware(deployment.graph, unknown, tmp_path, compiler="gcc", deployment=deployment)
    assert len(str(refused.value).splitlines()) == 1


def test_a_map_of_the_ports_own_is_where_it_says_and_nothing_else(tmp_path, monkeypatch):
    pytest.importorskip("elftools", reason="needs the boards extra")
    board = load_board("stm32n6570_dk")
    placed = twin.deploy("ad", "stm32n6570_dk", runtime="firmware")
    assert (placed.weights, placed.arena, placed.code) == ("sram", "sram", "sram")
    made = build_firmware(placed.graph, load_port("stm32n6570_dk"), tmp_path, board=board)
    assert dict(made.sizes.placement) == {"weights": "sram", "arena": "sram", "code": "sram"}
    assert placed.ram_bytes == made.predicted["ram_bytes"] and placed.flash_bytes == 0
    assert placed.ram_bytes == pytest.approx(made.sizes.ram_bytes, rel=0.05)
    with pytest.raises(PlacementError, match="memory map of its own; accepted: weights in sram"):
        twin.build_firmware("ad", "stm32n6570_dk", weights="flash", output=tmp_path / "no")
    with pytest.raises(PlacementError, match="accepted: weights in flash"):
        twin.build_firmware("ad", "esp32c3_devkitm", weights="sram", output=tmp_path / "no")
    assert not (tmp_path / "no").exists()
    before = {one: one.read_bytes() for one in tmp_path.iterdir()}  # left as it is by Ctrl-C
    assert tmp_path.as_posix().encode() + b"\0" in made.image.read_bytes()  # where debuggers look
    assert b".building-" not in made.image.read_bytes()
    monkeypatch.setattr(compile_build, "_make", lambda *given: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        twin.build_firmware("ad", "stm32n6570_dk", optimisation="-Os", output=tmp_path)
    assert before == {one: one.read_bytes() for one in tmp_path.iterdir()}
    for asked in ({"weights": "flash"}, {"arena": "dtcm"}):
        with pytest.raises(PlacementError, match="memory map of its own"):
            twin.deploy("ad", "stm32n6570_dk", runtime="firmware", **asked)
    back = placed.replace({"runtime": "cmsis-nn"})
    assert (back.weights, back.replace({"runtime": "firmware"}).weights) == ("flash", "sram")


def test_input_room_counts_the_floats_of_the_text_mode():
    assert generate_source(build("ad"), "armv7e-m").input_room_bytes == 640 + 4 * 640
    assert generate_source(build("kws"), "armv7e-m").input_room_bytes == 490
