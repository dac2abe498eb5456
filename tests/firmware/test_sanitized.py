"""The firmware under address and undefined-behaviour sanitizers: whole sessions, damaged frames."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import zlib

import pytest
from made_networks import needs_make, random_network
from made_patience import HANG_S

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from cobs import cobs

from calibration.collecting.wire.payloads import TYPES
from twin.network.zoo import build
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import open_board, random_input, run_on_board

pytestmark = needs_make

FRAMES = 40 * int(os.environ.get("TWIN_FUZZ_CASES", "60"))
BATCH = 400
LOUD = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
SHORT = ("HELLO", "IDENTIFY", "COUNTERS", "LAYER", "LOAD", "CONFIG", "SAMPLES", "CHECKSUM",
         "STATUS", "IDLE", "READ", "ENVIRONMENT", "BYE")
"""Requests that take no time of their own; the others are asked for a few runs."""


@pytest.fixture(autouse=True)
def sanitized(monkeypatch):
    for name, value in {"SANITIZE": "1", **LOUD}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("seed", range(3))
def test_kernels_on_random_networks(seed, tmp_path):
    """Every layer is right, and no read or write is outside."""
    graph = random_network(seed)
    made = build_firmware(graph, load_port("host"), tmp_path)
    with open_board("host", made.image, virtual=True) as (session, scales):
        run = run_on_board(session, graph, random_input(graph, seed), runs=2, scales=scales)
        assert run.is_right


def test_a_network_of_float_and_one_of_integers(tmp_path):
    for name in ("kws", "ad"):
        graph = build(name)
        made = build_firmware(graph, load_port("host"), tmp_path / name)
        with open_board("host", made.image, virtual=True) as (session, scales):
            assert run_on_board(session, graph, random_input(graph), scales=scales).is_right


def body(dice: random.Random) -> bytes:
    """A request of a kind there is, or any, with a payload of any length."""
    name = dice.choice((*SHORT, *SHORT, "RUN", "TIME", "OVERHEAD", None))
    kind = dice.randrange(256) if name is None else TYPES[name]
    words = [dice.choice((0, 1, 2, 3, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                          dice.randrange(1000))) for _ in range(dice.choice((0, 1, 2, 3, 6, 20)))]
    if name in ("RUN", "TIME", "OVERHEAD"):
        words = [dice.randrange(4) for _ in words]
    if name == "CONFIG":
        words[:1] = [dice.randrange(3)] * len(words[:1])
    payload = struct.pack(f"<{len(words)}I", *words) + dice.randbytes(dice.choice((0, 0, 1, 3)))
    length = len(payload) if dice.random() < 0.95 else dice.randrange(1 << 16)
    head = struct.pack("<BBHHH", kind, dice.choice((0, 0, 0, 1, 0xFF)), dice.randrange(1 << 16), 0,
                       length)
    return head + payload


def line(dice: random.Random) -> bytes:
    """A frame, right or damaged, or bytes that are none."""
    if dice.random() < 0.1:
        return dice.randbytes(dice.choice((1, 7, 300, 1200))) + b"\0"
    whole = body(dice)
    data = bytearray(cobs.encode(whole + zlib.crc32(whole).to_bytes(4, "little")))
    if dice.random() < 0.3:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return b"\0" * dice.randrange(2) + bytes(data[:dice.choice((None, None, None, 9))]) + b"\0"


def test_damaged_and_lying_frames_are_survived(tmp_path):
    made = build_firmware(random_network(9), load_port("host"), tmp_path,
                          defines=("SAMPLE_CAPACITY=128u",))
    program = made.image.read_bytes()
    assert b"__asan_report" in program and b"__ubsan_handle" in program
    for batch in range(0, FRAMES, BATCH):
        dice = random.Random(f"frames {batch}")
        result = subprocess.run([str(made.image)], input=b"".join(
            line(dice) for _ in range(BATCH)), capture_output=True, timeout=HANG_S, check=False)
        assert result.returncode == 0 and not result.stderr, result.stderr.decode()[-3000:]
        assert result.stdout, "it answered nothing"
