"""Images on emulated boards: they boot, answer, and compute every layer bit for bit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from made_networks import needs_tools, random_network

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")
pytest.importorskip("elftools", reason="needs the boards extra")

from calibration.errors import BoardRefusedError
from tests.oracles.board_memory import read_memory
from twin.network.zoo import build
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import open_board, random_input, run_on_board

ARM, RISCV = ("make", "arm-none-eabi-gcc"), ("make", "riscv64-unknown-elf-gcc")
RUNS, INFERENCE = 30, 0xffff
QEMU = {"mps2-an386": ARM, "mps2-an500": ARM, "mps2-an505": ARM, "mps3-an547": ARM,
        "stm32f4": ARM, "riscv_virt": RISCV}
KINDS = ("conv", "relu", "depthwise", "concatenation", "add", "max_pool_2d", "pad", "pointwise",
         "average_pool_2d", "quantize")
"""Every vector kernel once, on odd sizes."""


def make_odd_network():
    graph = random_network(31, kinds=KINDS)
    assert len(graph.layers) > 8 and any(
        graph.tensors[layer.outputs[0]].shape[-1] % 4 for layer in graph.layers)
    return graph


def check(port: str, graph, folder, **options) -> None:
    made = build_firmware(graph, load_port(port), folder, **options)
    with open_board(port, made.image, virtual=True) as (session, scales):
        identity = session.identify()
        assert identity.port == port or port.startswith(identity.port)
        assert identity.has("SIMULATED") and identity.compiler == made.compiler
        for seed in range(2):
            run = run_on_board(session, graph, random_input(graph, seed), runs=2, scales=scales)
            assert run.is_right, [(layer.index, layer.op) for layer in run.layers
                                  if not layer.equal]
            assert run.simulated and run.total > sum(layer.count for layer in run.layers) > 0


@pytest.mark.parametrize("port", [
    pytest.param(port, marks=needs_tools(*tools, "qemu-system-riscv32" if "riscv" in port
                                         else "qemu-system-arm"))
    for port, tools in QEMU.items()])
def test_qemu_machines_run_every_vector_kernel(port, tmp_path):
    check(port, make_odd_network(), tmp_path)


@pytest.mark.parametrize("port", [
    pytest.param(port, marks=needs_tools(*ARM, "qemu-system-arm"))
    for port in ("mps2-an386", "mps3-an547")])
def test_instructions_of_qemu_are_the_same_in_every_run(port, tmp_path):
    """No interrupt of a timer that nobody reads is counted: 24 bits last fewer runs than these."""
    made = build_firmware(build("ad"), load_port(port), tmp_path)
    with open_board(port, made.image, virtual=True) as (session, scales):
        session.load(bytes(640))
        session.configure(warmup=1)
        first = done = 0
        spans = []
        while done < RUNS:
            done += session.run(done, RUNS - done, timeout_s=60.0).done
            for start, samples in session.samples(first):
                first = start + len(samples)
                spans += [s.value for s in samples if s.counter == 0 and s.layer == INFERENCE]
    ((_, factor),) = scales.values()
    assert len(spans) == RUNS and len({round(span * factor) for span in spans}) == 1


@needs_tools(*ARM, "qemu-system-arm")
def test_vector_kernels_at_the_highest_level(tmp_path):
    check("mps3-an547", make_odd_network(), tmp_path, optimisation="-O3")


@needs_tools(*ARM)
@pytest.mark.parametrize("port", ["unicorn-m33"])
def test_unicorn_runs_a_random_network(port, tmp_path):
    for extra in ("unicorn", "capstone"):
        pytest.importorskip(extra, reason="needs the boards extra")
    check(port, random_network(9), tmp_path)


@needs_tools("make")
def test_without_gcc_the_clang_of_zig_builds_for_an_emulated_core(tmp_path, monkeypatch):
    """What a machine without the package manager's tools has: make, and what pip brings."""
    for extra in ("ziglang", "unicorn", "capstone"):
        pytest.importorskip(extra, reason=f"needs the {extra} package")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("make", "sh", "mkdir", "cat"):
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tools))
    check("unicorn-m4", random_network(31, kinds=KINDS), tmp_path / "out")


CMSIS_NN = Path(__file__).parent / "cmsis_nn_api"  # their interface, our plain loops behind it


@pytest.mark.parametrize("port", ["mps2-an386", "mps3-an547"])
@needs_tools(*ARM, "qemu-system-arm")
def test_kernels_of_cmsis_nn_behind_ours(port, tmp_path, monkeypatch):
    """With and without MVE, where the biases of products carry other sums."""
    monkeypatch.setenv("CMSIS_NN_PATH", str(CMSIS_NN))
    graph = random_network(31, kinds=KINDS)
    check(port, graph, tmp_path, kernels="cmsis-nn")
    text = (tmp_path / "firmware.elf").read_bytes()
    assert b"arm_convolve_wrapper_s8" in text and b"multiply_pair" not in text  # ours
    code = subprocess.run(["arm-none-eabi-objdump", "-d", tmp_path / "firmware.elf"], text=True,
                          capture_output=True, check=True).stdout
    theirs = [one for one in code.split("\n\n")
              if any(name in one.split(">:")[0] for name in ("<arm_", "<use_scratch"))]
    assert theirs and not any("<memcpy>" in one for one in theirs)  # four bytes are one load


@needs_tools(*ARM, "qemu-system-arm")
def test_a_kernel_that_refuses_its_arguments_is_told(tmp_path, monkeypatch):
    """A release that asks for more working memory than the image has."""
    copy = tmp_path / "cmsis"
    shutil.copytree(CMSIS_NN, copy)
    source = copy / "Source/Plain/plain.c"
    source.write_text(source.read_text().replace("return 4 *", "return 4000 *"))
    monkeypatch.setenv("CMSIS_NN_PATH", str(copy))
    graph = random_network(31, kinds=KINDS)
    made = build_firmware(graph, load_port("mps2-an386"), tmp_path / "out", kernels="cmsis-nn")
    with open_board("mps2-an386", made.image, virtual=True) as (session, scales), \
            pytest.raises(BoardRefusedError, match="internal fault at place"):
        run_on_board(session, graph, random_input(graph), scales=scales)


@needs_tools(*ARM, "qemu-system-arm")
def test_float_network_on_the_board(tmp_path):
    """Output of the board against doubles: a dozen layers of single precision, 1e-5 at most."""
    from twin.network.arithmetic import run_network

    graph = random_network(6, dtype="float32")
    made = build_firmware(graph, load_port("mps2-an500"), tmp_path)
    values = random_input(graph)
    with open_board("mps2-an500", made.image, virtual=True) as (session, _):
        assert run_on_board(session, graph, values).is_right
        raw = read_memory(session, "OUTPUT", 0, graph.tensors[graph.outputs[0]].size_bytes)
    np.testing.assert_allclose(np.frombuffer(raw, np.float32),
                               run_network(graph, [values])[graph.outputs[0]].reshape(-1),
                               rtol=2e-5, atol=1e-6)
