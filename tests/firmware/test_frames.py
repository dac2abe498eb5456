"""The firmware's framing against the golden vectors, and against its peer on random bodies."""

from __future__ import annotations

import ctypes
import json
import random
import subprocess
import zlib

import pytest
from made_networks import needs_make

from twin.program.image.compile.ports import firmware_folder

pytestmark = needs_make
VECTORS = json.loads((firmware_folder() / "protocol/golden/frames.json").read_text())
LINE_MAX, BODY_MAX, PAYLOAD_MAX = 512, 492, 480  # wire.h


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """core/frame.c and core/checksum.c as a library."""
    root, library = firmware_folder(), tmp_path_factory.mktemp("frames") / "frames.so"
    subprocess.run(["cc", "-std=c99", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror",
                    f"-I{root}/core", f"-I{root}/protocol", f"{root}/core/frame.c",
                    f"{root}/core/checksum.c", "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.checksum.restype = ctypes.c_uint32
    return loaded


def decode(frames, line: bytes) -> bytes | None:
    """Body of a line without its delimiter, its checksum cut off; None when refused."""
    body = ctypes.create_string_buffer(LINE_MAX)
    length = frames.decode_frame(line, len(line), body)
    return None if length < 0 else body.raw[:8 + length]


def encode(frames, body: bytes) -> bytes:
    room = ctypes.create_string_buffer(body, len(body) + 4)
    line = ctypes.create_string_buffer(LINE_MAX)
    count = frames.encode_frame(room, len(body), line)
    return line.raw[:count]


@pytest.mark.parametrize("vector", VECTORS["good"], ids=lambda vector: vector["name"])
def test_golden_frames(frames, vector):
    line, body = bytes.fromhex(vector["line"]), bytes.fromhex(vector["body"])
    assert decode(frames, line[:-1]) == body[:-4]
    assert encode(frames, body[:-4]) == line


@pytest.mark.parametrize("vector", VECTORS["bad"], ids=lambda vector: vector["name"])
def test_bad_lines_are_dropped(frames, vector):
    line = bytes.fromhex(vector["line"])[:-1]
    # The session drops what is longer than a frame before it is decoded.
    assert len(line) >= LINE_MAX or decode(frames, line) is None


def test_checksum_is_zlibs(frames):
    for text in (b"", b"123456789", bytes(range(256))):
        assert frames.checksum(text, len(text)) == zlib.crc32(text)
    assert frames.checksum(b"123456789", 9) == 0xCBF43926  # check value of CRC-32/ISO-HDLC


def test_random_bodies_come_back_and_lines_stay_short(frames):
    cobs = pytest.importorskip("cobs.cobs", reason="needs the boards extra")
    made = random.Random(1)
    for _ in range(400):
        payload = made.randbytes(made.randint(0, PAYLOAD_MAX))
        if made.random() < 0.5:  # runs without zeros are where COBS is tricky
            payload = payload.replace(b"\0", b"\1")
        body = bytes([0x84, 0, 1, 1]) + b"\1\1" + len(payload).to_bytes(2, "little") + payload
        line = encode(frames, body)
        assert len(line) <= LINE_MAX and line.index(0) == len(line) - 1
        assert cobs.decode(line[:-1]) == body + zlib.crc32(body).to_bytes(4, "little")
        assert decode(frames, line[:-1]) == body


def test_spoilt_lines_never_give_another_body(frames):
    """A flipped, dropped or doubled byte is caught: CRC-32 finds every error burst of 32 bits."""
    made = random.Random(2)
    line = bytes.fromhex(VECTORS["good"][8]["line"])[:-1]
    body = decode(frames, line)
    for _ in range(3000):
        spoilt, at = bytearray(line), made.randrange(len(line))
        fault = made.randrange(3)
        if fault == 0:
            spoilt[at] ^= 1 << made.randrange(8)
        elif fault == 1:
            del spoilt[at]
        else:
            spoilt.insert(at, spoilt[at])
        assert decode(frames, bytes(spoilt)) in (None, body)
