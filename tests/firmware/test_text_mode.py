"""The MLPerf Tiny commands, as its public runner sends and reads them, on the host port."""

from __future__ import annotations

import os
import re
import select
import subprocess

import numpy as np
import pytest
from made_networks import needs_make
from made_patience import HANG_S

pytest.importorskip("elftools", reason="needs the boards extra")

from twin.network.arithmetic import run_network
from twin.network.arithmetic.requantisation import round_away
from twin.network.zoo import build
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import random_input

pytestmark = needs_make


class Console:
    """A device under test; commands end with %, answers with m-ready."""

    def __init__(self, image) -> None:
        self.process = subprocess.Popen([str(image)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.banner = self.answer()

    def answer(self) -> list[str]:
        text = b""
        while not text.endswith(b"m-ready\r\n"):
            assert select.select([self.process.stdout], [], [], HANG_S)[0], text
            text += os.read(self.process.stdout.fileno(), 4096)
        return text.decode("ascii", "replace").split("\r\n")[:-2]

    def command(self, text: str) -> list[str]:
        self.process.stdin.write(text.encode() + b"%")
        self.process.stdin.flush()
        return self.answer()

    def load(self, data: bytes) -> list[str]:
        assert self.command(f"db load {len(data)}") == [f"m-[Expecting {len(data)} bytes]"]
        pieces = [data[i:i + 31] for i in range(0, len(data), 31)]  # as the runner cuts them
        said = [self.command(f"db {piece.hex()}") for piece in pieces]
        assert all(not lines for lines in said[:-1])
        return said[-1]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    return {name: build_firmware(build(name), load_port("host"), folder / name,
                                 optimisation="-O1").image for name in ("kws", "ad")}


@pytest.fixture
def open_console(images):
    opened = []

    def open_one(name: str) -> Console:
        opened.append(Console(images[name]))
        return opened[-1]

    yield open_one
    for console in opened:
        console.process.kill()
        console.process.wait()
        console.process.stdin.close()
        console.process.stdout.close()


def results(lines: list[str]) -> list[float]:
    found = [re.fullmatch(r"m-results-\[([^]]+)\]", line) for line in lines]
    return [float(word) for match in found if match for word in match[1].split(",")]


def test_banner_and_names(open_console):
    console = open_console("kws")
    assert console.banner[0] == "m-timestamp-mode-performance"
    assert re.fullmatch(r"m-lap-us-([0-9]+)", console.banner[1])
    assert console.banner[2] == "m-init-done"
    assert console.command("name") == ["m-name-dut-[unspecified]"]
    assert console.command("profile")[1] == "m-model-[kws01]"
    assert re.fullmatch(r"m-lap-us-[0-9]+", console.command("timestamp")[0])
    assert console.command("dance 1") == ["e-[Unknown command: dance]"]
    assert console.command("help")


@pytest.mark.parametrize("before", ["%", "%%", "\r\n", "%\r\n%"])
def test_empty_commands_and_line_ends_spoil_nothing(open_console, before):
    console = open_console("kws")
    console.process.stdin.write(before.encode())
    said = console.command("name")
    while set(said) <= {"m-ready"}:  # those of empty commands
        said += console.answer()
    assert [line for line in said if line != "m-ready"] == ["m-name-dut-[unspecified]"]


def test_a_session_forgets_what_db_brought(open_console):
    from calibration.collecting.wire.frames import Frame, encode_frame
    from calibration.collecting.wire.payloads import TYPES, Hello

    console = open_console("kws")
    console.load(bytes(490))
    for kind, payload in (("HELLO", Hello(session=5).pack()), ("BYE", b"")):
        frame = Frame(type=TYPES[kind], sequence=len(payload), payload=payload)
        console.process.stdin.write(b"\0" + encode_frame(frame))
    assert console.command("infer 1 0")[-1].endswith("e-[Input db has 0 bytes, expected 490]")


def test_infer_gives_the_outputs_and_two_timestamps(open_console):
    console, graph = open_console("kws"), build("kws")
    values = random_input(graph, 5)
    assert console.load(values.tobytes()) == ["m-load-done"]
    lines = console.command("infer 20 2")
    assert lines[:3] == ["m-warmup-start-2", "m-warmup-done", "m-infer-start-20"]
    laps = [int(line.removeprefix("m-lap-us-")) for line in lines if line.startswith("m-lap-us")]
    assert len(laps) == 2 and laps[1] > laps[0]
    stored = run_network(graph, [values])[graph.outputs[0]].reshape(-1)
    expected = (stored.astype(int) + 128) / 256  # softmax: scale 1/256, zero point -128
    # Printed with three decimals.
    np.testing.assert_allclose(results(lines), expected, atol=0.00051)
    assert results(console.command("results")) == results(lines)


def test_db_print_shows_eight_bytes_a_line(open_console):
    console = open_console("kws")
    console.load(bytes(range(256)) + bytes(234))
    lines = console.command("db print")
    assert lines[0] == "m-buffer-00-01-02-03-04-05-06-07"
    assert len(lines) == 62 and lines[-1] == "m-buffer-00-00"  # 490 bytes


@pytest.mark.parametrize(("command", "said"), [
    ("db load 0", "e-[Command 'db load' must be >0 bytes]"),
    ("db load 99999", "e-[Supplied buffer size 99999 exceeds maximum of 490]"),
    ("db 123", "e-[Insufficent number of hex digits]"),
    ("infer 0 0", "e-[Inference iterations must be >0]"),
    ("infer 1 x", "e-[Inference warmup must be >=0]"),
    ("infer 1 0", "e-[Input db has 0 bytes, expected 490]"),
])
def test_refusals_are_the_benchmarks(open_console, command, said):
    assert open_console("kws").command(command) == [said]


def test_a_wrong_digit_is_named(open_console):
    console = open_console("kws")
    console.command("db load 2")
    assert console.command("db 00zz") == ["e-[Invalid hex digit 'zz']"]


def test_autoencoder_takes_floats_and_answers_their_squared_error(open_console):
    console, graph = open_console("ad"), build("ad")
    data, output = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    given = np.random.default_rng(2).normal(size=640).astype(np.float32)
    assert console.load(given.tobytes()) == ["m-load-done"]
    lines = console.command("infer 1 0")
    scale, zero = data.quantization.scales[0], data.quantization.zero_points[0]
    stored = np.clip(round_away(given / np.float32(scale)) + zero, -128, 127).astype(np.int8)
    made = run_network(graph, [stored.reshape(1, 640)])[graph.outputs[0]].reshape(-1)
    real = (made.astype(float) - output.quantization.zero_points[0]) * output.quantization.scales[0]
    assert results(lines) == [pytest.approx(np.mean((given - real) ** 2), abs=0.001)]
