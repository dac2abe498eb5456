"""The firmware's side of the conversation, on the host port."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import time
import zlib

import numpy as np
import pytest
from made_networks import needs_make, random_network
from made_patience import HANG_S

pytest.importorskip("elftools", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from cobs import cobs

from twin.network.arithmetic import run_network
from twin.network.operators import is_alias
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import random_input

pytestmark = needs_make

HELLO, IDENTIFY, COUNTERS, LAYER, LOAD, CONFIG, RUN, SAMPLES = range(0x80, 0x88)
CHECKSUM, OVERHEAD, STATUS, IDLE, READ, ENVIRONMENT, TIME, BYE = range(0x88, 0x90)
ERROR = 0xFF
NO_TYPE, LENGTH, VERSION, NO_SESSION, ARGUMENT, UNSUPPORTED, NO_INPUT, OFFSET = range(-1, -9, -1)
LAYERS, VERIFY, MASK = 4, 8, 2
GRAPH = random_network(9)  # 864 bytes of input, thirteen layers


class Board:
    """The host port on pipes, and the wire by hand: no code in common with the collector's."""

    def __init__(self, image) -> None:
        self.process = subprocess.Popen([str(image)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.sequence, self.waiting, self.junk = 0, b"", b""

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self, timeout_s: float = HANG_S) -> bytes | None:
        end = time.monotonic() + timeout_s
        while b"\0" not in self.waiting:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            self.waiting += os.read(self.process.stdout.fileno(), 4096)
        line, _, self.waiting = self.waiting.partition(b"\0")
        return line

    def frame(self, timeout_s: float = HANG_S) -> bytes | None:
        """Next valid body, checksum cut off."""
        while (line := self.line(timeout_s)) is not None:
            try:
                body = cobs.decode(line)
            except cobs.DecodeError:
                self.junk += line
                continue
            if len(body) >= 12 and zlib.crc32(body[:-4]) == int.from_bytes(body[-4:], "little"):
                return body[:-4]
            self.junk += line
        return None

    def encode(self, kind: int, payload: bytes, sequence: int) -> bytes:
        body = struct.pack("<BBHHH", kind, 0, sequence, 0, len(payload)) + payload
        return cobs.encode(body + zlib.crc32(body).to_bytes(4, "little")) + b"\0"

    def ask(self, kind: int, payload: bytes = b"", *, sequence: int | None = None) -> bytes:
        """Payload of the reply; (code, detail) of an error are packed as it sent them."""
        if sequence is None:
            self.sequence = sequence = (self.sequence + 1) % 65536
        self.write(b"\0" + self.encode(kind, payload, sequence))
        body = self.frame()
        assert body is not None, f"no answer to {kind:#x}"
        answered, flags, _, reply_to, length = struct.unpack_from("<BBHHH", body)
        assert (answered, flags, reply_to, length) in (
            (kind, 1, sequence, len(body) - 8), (ERROR, 1, sequence, 8))
        if answered == ERROR:
            asked, _, code, detail = struct.unpack("<BBhI", body[8:])
            assert asked == kind
            raise Refused(code, detail)
        return body[8:]

    def hello(self, session: int = 7, version: int = 1, oldest: int = 1) -> tuple[int, ...]:
        return struct.unpack("<HHIII", self.ask(HELLO, struct.pack(
            "<HHII", version, oldest, 0xFFFF, session)))

    def load(self, data: bytes, at: int = 0) -> tuple[int, int]:
        return struct.unpack("<II", self.ask(LOAD, struct.pack("<I", at) + data))

    def configure(self, *, warmup=0, flags=0, repeat_layer=0xFFFF, repeat=1, stop=0xFFFF,
                  events=()) -> tuple[int, ...]:
        ids = [*events, *[0] * (8 - len(events))]
        return struct.unpack("<QII", self.ask(CONFIG, struct.pack(
            "<IHHIHH8H", warmup, flags, repeat_layer, repeat, stop, len(events), *ids)))

    def run(self, first: int, runs: int) -> tuple[int, ...]:
        return struct.unpack("<6I", self.ask(RUN, struct.pack("<II", first, runs)))

    def samples(self, first: int = 0) -> list[tuple[int, ...]]:
        found = []
        while True:
            reply = self.ask(SAMPLES, struct.pack("<I", first))
            start, count, _, _, _ = struct.unpack_from("<IHHII", reply)
            if count == 0:
                return found
            found += [struct.unpack_from("<IHBBQ", reply, 16 + 16 * i) for i in range(count)]
            first = start + count

    def status(self) -> tuple[int, ...]:
        return struct.unpack("<8I", self.ask(STATUS))


class Refused(Exception):
    """An error reply."""

    def __init__(self, code: int, detail: int) -> None:
        super().__init__(code, detail)
        self.code, self.detail = code, detail


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    return build_firmware(GRAPH, load_port("host"), folder, optimisation="-O1",
                          defines=("SAMPLE_CAPACITY=128u",)).image


@pytest.fixture
def board(image):
    made = Board(image)
    yield made
    made.process.kill()
    made.process.wait()
    made.process.stdin.close()
    made.process.stdout.close()


def load_input(board, seed=0) -> np.ndarray:
    board.hello()
    values = random_input(GRAPH, seed)
    board.load(values.tobytes()[:470])
    if values.nbytes > 470:
        board.load(values.tobytes()[470:], 470)
    return values


def test_a_session_begins_resumes_and_ends(board):
    with pytest.raises(Refused) as refused:
        board.ask(IDENTIFY)
    assert (refused.value.code, refused.value.detail) == (NO_SESSION, 1)
    version, oldest, features, session, resumed = board.hello(7)
    assert (version, oldest, session, resumed) == (1, 1, 7, 0) and features & 1 << 9  # text
    board.load(b"abc")
    assert board.hello(7)[4] == 1 and board.status()[1] == 3
    assert board.hello(8)[4] == 0 and board.status()[1] == 0
    board.ask(BYE)
    with pytest.raises(Refused):
        board.status()


def test_versions_with_nothing_in_common_are_refused(board):
    for version, oldest in ((9, 2), (0, 0)):
        with pytest.raises(Refused) as refused:
            board.hello(7, version, oldest)
        assert (refused.value.code, refused.value.detail) == (VERSION, 1)
    assert board.hello(7, 9, 1)[0] == 1  # a newer host that still understands version 1


def test_a_later_hello_may_be_longer(board):
    assert len(board.ask(HELLO, struct.pack("<HHII", 2, 1, 0, 5) + b"more")) == 16


def test_identity_and_layers_name_the_model(board):
    board.hello()
    fields = struct.unpack("<9I4H16s32s32s24s32s64s", board.ask(IDENTIFY))
    called = [layer for layer in GRAPH.layers if not is_alias(layer)]
    assert fields[4:6] == (GRAPH.tensors[GRAPH.inputs[0]].size_bytes,
                           GRAPH.tensors[GRAPH.outputs[0]].size_bytes)
    assert fields[8:11] == (128, len(called), 3)
    assert fields[14].hex() == GRAPH.sha256 and any(fields[15])
    assert fields[16].rstrip(b"\0") == b"host" and fields[18].startswith(b"gcc ")
    index, model_layer, _, size, name = struct.unpack(
        "<HHII64s", board.ask(LAYER, struct.pack("<HH", 1, 0)))
    assert (index, model_layer) == (1, called[1].index)
    assert size == GRAPH.tensors[called[1].outputs[0]].size_bytes
    assert name.startswith(called[1].op.encode())
    with pytest.raises(Refused):
        board.ask(LAYER, struct.pack("<HH", len(called), 0))


def test_an_upload_goes_on_where_it_stopped(board):
    board.hello()
    data = random_input(GRAPH).tobytes()
    assert board.load(data[:100]) == (100, 0)
    with pytest.raises(Refused) as refused:
        board.load(data[200:300], 200)
    assert (refused.value.code, refused.value.detail) == (OFFSET, 100)
    assert board.load(data[50:150], 50) == (150, 0)      # repeated bytes do no harm
    assert board.load(b"", 0) == (150, 0)                # a question
    with pytest.raises(Refused) as refused:
        board.run(0, 1)
    assert (refused.value.code, refused.value.detail) == (NO_INPUT, 150)
    done = 150
    while done < len(data):
        done, checksum = board.load(data[done:done + 470], done)
    assert checksum == zlib.crc32(data)
    with pytest.raises(Refused) as refused:
        board.load(b"x", len(data))
    assert refused.value.code == ARGUMENT


def test_runs_leave_every_sample_and_the_right_outputs(board):
    values = load_input(board)
    expected = run_network(GRAPH, [values])
    called = [layer for layer in GRAPH.layers if not is_alias(layer)]
    per_run = 3 + 3 * len(called)  # clock, interrupts, checksum; of each layer and of all
    assert board.configure(warmup=2, flags=LAYERS | VERIFY)[2] == per_run
    first, done, next_sample, checksum, mismatches, _ = board.run(10, 2)
    assert (first, done, mismatches, next_sample) == (10, 2, 0, 1 + 2 * per_run)
    assert checksum == zlib.crc32(expected[GRAPH.outputs[0]].tobytes())
    samples = board.samples()
    assert len(samples) == 1 + 2 * per_run and samples[0][:2] == (0, 0xFFFE)
    sums = {(run, layer): value for run, layer, counter, _, value in samples if counter == 1}
    for run in (10, 11):
        for place, layer in enumerate(called):
            assert sums[run, place] == zlib.crc32(expected[layer.outputs[0]].tobytes())
    spans = {(run, layer): value for run, layer, counter, clock, value in samples
             if counter == 0 and clock == 2 and layer != 0xFFFE}
    for run in (10, 11):  # an inference is at least its layers
        assert spans[run, 0xFFFF] >= sum(spans[run, i] for i in range(len(called)))


def test_a_block_ends_when_the_samples_are_full(board):
    load_input(board)
    per_run = board.configure(flags=LAYERS)[2]
    fits = (128 - 1) // per_run
    assert board.run(0, 1000)[1] == fits
    board.samples(1 + per_run)          # the first run is forgotten
    assert board.run(fits, 1000)[1] == fits
    with pytest.raises(Refused) as refused:
        board.samples(0)
    assert refused.value.code == OFFSET and refused.value.detail >= 1 + per_run


def test_a_byte_on_the_line_ends_a_block(board):
    load_input(board)
    board.configure()
    board.sequence += 1
    board.write(board.encode(RUN, struct.pack("<II", 0, 1), board.sequence))
    assert struct.unpack("<6I", board.frame()[8:])[1] == 1
    board.configure(warmup=1_000_000)
    board.sequence += 1
    asked = board.sequence
    board.write(board.encode(RUN, struct.pack("<II", 0, 1), asked))
    time.sleep(0.1)
    board.write(b"\0")
    reply = board.frame()
    assert reply is not None and struct.unpack_from("<H", reply, 4)[0] == asked
    assert struct.unpack("<6I", reply[8:])[1] == 0


def test_a_repeated_request_takes_effect_once(board):
    load_input(board)
    board.configure()
    first = board.ask(RUN, struct.pack("<II", 0, 3), sequence=500)
    again = board.ask(RUN, struct.pack("<II", 0, 3), sequence=500)
    assert first == again and board.status()[2] == 3
    assert board.ask(RUN, struct.pack("<II", 3, 3), sequence=500) != first  # another request


def test_a_repeated_hello_tells_what_the_first_one_did(board):
    """Its answer may have been lost: the board has forgotten the input, and says so."""
    load_input(board)
    payload = struct.pack("<HHII", 1, 1, 0, 8)
    first = board.ask(HELLO, payload, sequence=900)
    assert board.ask(HELLO, payload, sequence=900) == first
    assert struct.unpack("<HHIII", first)[4] == 0 and board.status()[1] == 0
    assert board.hello(8)[4] == 1  # a new request of the same session does resume


def test_bad_frames_are_counted_and_not_answered(board):
    board.hello()
    good = board.status()
    spoilt = bytearray(board.encode(STATUS, b"", 900))
    spoilt[2] ^= 0x40
    board.write(bytes(spoilt) + bytes([1]) * 600 + b"\0" + b"\x05ab\0")
    assert board.frame(0.2) is None
    assert board.status()[6] == good[6] + 3


@pytest.mark.parametrize(("kind", "payload", "code"), [
    (0xC0, b"", NO_TYPE), (IDENTIFY, b"x", LENGTH), (RUN, b"1234", LENGTH),
    (RUN, struct.pack("<II", 0, 0), ARGUMENT), (OVERHEAD, struct.pack("<I", 0), ARGUMENT),
    (READ, struct.pack("<III", 3, 0, 1), ARGUMENT),
    (READ, struct.pack("<III", 2, 0, 473), ARGUMENT),
    (READ, struct.pack("<III", 2, 0xFFFFFFFF, 8), ARGUMENT),
    (TIME, struct.pack("<I", 10_000_001), ARGUMENT),
    (CONFIG, struct.pack("<IHHIHH8H", 0, MASK, 0xFFFF, 1, 0xFFFF, 0, *[0] * 8), UNSUPPORTED),
    (CONFIG, struct.pack("<IHHIHH8H", 0, 0, 200, 1, 0xFFFF, 0, *[0] * 8), ARGUMENT),
    (CONFIG, struct.pack("<IHHIHH8H", 0, 0, 0, 0, 0xFFFF, 0, *[0] * 8), ARGUMENT),
    (CONFIG, struct.pack("<IHHIHH8H", 0, 0, 0, 1, 0xFFFF, 1, *[16] * 8), ARGUMENT),
])
def test_requests_that_make_no_sense_are_refused(board, kind, payload, code):
    load_input(board)
    with pytest.raises(Refused) as refused:
        board.ask(kind, payload)
    assert refused.value.code == code
    assert board.status()[0] == 7  # and it goes on


def test_one_layer_repeated_and_a_run_that_stops_early(board):
    values = load_input(board)
    expected = run_network(GRAPH, [values])
    called = [layer for layer in GRAPH.layers if not is_alias(layer)]
    board.configure(flags=VERIFY, repeat_layer=1, repeat=5)
    assert board.run(0, 1)[3] == zlib.crc32(expected[GRAPH.outputs[0]].tobytes())
    board.configure(stop=1)
    assert board.run(0, 1)[3] == zlib.crc32(expected[called[1].outputs[0]].tobytes())
    offset, size = struct.unpack_from("<II", board.ask(LAYER, struct.pack("<HH", 1, 0)), 4)
    size = min(size, 472)
    reply = board.ask(READ, struct.pack("<III", 2, offset, size))
    assert reply[8:] == expected[called[1].outputs[0]].tobytes()[:size]


def test_time_spins_and_overhead_is_told(board):
    board.hello()
    start = time.monotonic()
    ticks, hz, clock = struct.unpack("<QII", board.ask(TIME, struct.pack("<I", 50_000)))
    assert hz == 10**9 and clock == 2 and 50_000_000 <= ticks < 1e9 * (time.monotonic() - start)
    reads, _, least, most, total = struct.unpack("<IIIIQ",
                                                 board.ask(OVERHEAD, struct.pack("<I", 100)))
    assert reads == 100 and 100 * least <= total <= 100 * most
    temperature, supply, source, _ = struct.unpack("<iiiI", board.ask(ENVIRONMENT))
    assert {temperature, supply, source} == {-2**31}  # not known, never 0
    board.ask(IDLE)
    sums = struct.unpack("<4I", board.ask(CHECKSUM))
    counters = board.ask(COUNTERS, struct.pack("<HH", 0, 0))
    assert len(sums) == 4 and struct.unpack_from("<HH", counters) == (0, 3)
