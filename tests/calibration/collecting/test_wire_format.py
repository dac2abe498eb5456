"""The host's side of the wire: golden vectors, and no drift from the header that specifies it."""

from __future__ import annotations

import dataclasses
import json
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cobs", reason="needs the boards extra")

from made_payloads import Checksums, ReadReply

from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.frames import (
    FRAME_MAX,
    PAYLOAD_MAX,
    REPLY,
    BadFrame,
    Frame,
    FrameReader,
    decode_frame,
    encode_frame,
)

PROTOCOL = Path(__file__).parents[3] / "firmware" / "protocol"
GOLDEN = json.loads((PROTOCOL / "golden" / "frames.json").read_text())
HEADER = re.sub(r"/\*.*?\*/", "", (PROTOCOL / "wire.h").read_text(), flags=re.S)
CODES = {"uint8_t": "B", "uint16_t": "H", "uint32_t": "I", "uint64_t": "Q", "int16_t": "h",
         "int32_t": "i", "char": "s"}
STRUCTS = {
    "wire_hello": wire.Hello, "wire_hello_reply": wire.HelloReply,
    "wire_identify_reply": wire.Identity, "wire_counter": wire.Counter,
    "wire_layer_reply": wire.Layer, "wire_load_reply": wire.LoadReply,
    "wire_config": wire.Config, "wire_config_reply": wire.ConfigReply, "wire_run": wire.Run,
    "wire_run_reply": wire.RunReply, "wire_samples_reply": wire.SamplesReply,
    "wire_sample": wire.RawSample, "wire_checksum_reply": Checksums,
    "wire_overhead_reply": wire.Overhead, "wire_status_reply": wire.Status,
    "wire_read_reply": ReadReply, "wire_environment_reply": wire.Environment,
    "wire_time_reply": wire.BoardTime, "wire_error_reply": wire.ErrorReply,
}
REPLIES = {"hello": wire.HelloReply, "identify": wire.Identity, "load": wire.LoadReply,
           "config": wire.ConfigReply, "run": wire.RunReply, "status": wire.Status}


@pytest.mark.parametrize("vector", GOLDEN["good"], ids=lambda v: v["name"])
def test_good_vectors_decode_and_encode(vector):
    line = bytes.fromhex(vector["line"])
    frame = Frame(type=vector["type"], flags=vector["flags"], sequence=vector["sequence"],
                  reply_to=vector["reply_to"], payload=bytes.fromhex(vector["payload"]))
    assert decode_frame(line[:-1]) == frame
    assert encode_frame(frame) == line
    name, _, kind = vector["name"].partition(" ")
    if kind == "reply":
        parsed = REPLIES.get(name) and REPLIES[name].parse(frame.payload)
        for field in vector["fields"] if parsed else ():
            value, expected = getattr(parsed, field), vector["fields"][field]
            value = value.rstrip(b"\0").decode() if isinstance(value, bytes) else value
            assert value == expected, field


@pytest.mark.parametrize("vector", GOLDEN["bad"], ids=lambda v: v["name"])
def test_bad_vectors_are_dropped_with_their_reason(vector):
    line = bytes.fromhex(vector["line"])
    with pytest.raises(BadFrame) as caught:
        decode_frame(line[:-1])
    assert caught.value.reason == vector["reason"]
    reader = FrameReader()
    assert list(reader.feed(b"\0" + line)) == []
    assert reader.bad == {vector["reason"]: 1}


def _header_fields(name: str) -> list[tuple[str, str, int]]:
    body = re.search(rf"struct {name} \{{(.*?)\}};", HEADER, flags=re.S)
    assert body, name
    found = re.findall(r"(\w+) (\w+)(?:\[(\w*)\])?;", body[1])
    numbers = {"WIRE_EVENTS_MAX": wire.EVENTS_MAX, "": 0}
    return [(kind, field, 1 if count == "" and f"{field}[" not in body[1] else
             int(numbers.get(count, 0) or count or 0)) for kind, field, count in found]


@pytest.mark.parametrize("name", STRUCTS)
def test_payloads_are_the_structs_of_the_header(name):
    ours = STRUCTS[name]
    fields = [f for f in _header_fields(name) if f[2]]
    assert [field for _, field, _ in fields] == [field.name for field in dataclasses.fields(ours)]
    sizes = "".join(f"{count}{CODES[kind]}" if count > 1 else CODES[kind]
                    for kind, _, count in fields)
    assert struct.calcsize("<" + sizes) == ours.LAYOUT.size
    if not re.search(r"\d", sizes):
        assert re.sub(r"(\d+)(\w)", lambda m: m[2] * int(m[1]), ours.LAYOUT.format)[1:] == sizes


@pytest.mark.parametrize(("table", "prefix"), [
    (wire.TYPES, "WIRE_"), (wire.ERRORS, "WIRE_E_"), (wire.FEATURES, "WIRE_F_"),
    (wire.COUNTER_IDS, "WIRE_N_"), (wire.CONFIG_FLAGS, "WIRE_CONFIG_"), (wire.SPACES, "WIRE_S_")])
def test_numbers_are_those_of_the_header(table, prefix):
    for name, value in table.items():
        found = re.search(rf"\b{prefix}{name} = ([^,}}\n]+)", HEADER)
        assert found, name
        assert eval(found[1]) == value, name


def test_limits_and_clocks_are_those_of_the_header():
    assert re.search(r"WIRE_FRAME_MAX (\d+)u", HEADER)[1] == str(FRAME_MAX)
    assert re.search(r"WIRE_PAYLOAD_MAX (\d+)u", HEADER)[1] == str(PAYLOAD_MAX)
    assert re.search(r"WIRE_VERSION (\d+)u", HEADER)[1] == str(wire.VERSION)
    assert re.search(r"WIRE_EVENTS_MAX (\d+)u", HEADER)[1] == str(wire.EVENTS_MAX)
    clocks = {int(n): c.lower() for c, n in re.findall(r"WIRE_C_(\w+) = (\d)", HEADER)}
    assert clocks == {k: v or "events" for k, v in wire.CLOCKS.items()}


@given(st.binary(max_size=PAYLOAD_MAX), st.integers(0, 0xFFFF), st.lists(st.integers(1, 600)))
def test_any_payload_survives_any_cutting_of_the_stream(payload, sequence, cuts):
    frame = Frame(type=0x87, flags=REPLY, sequence=sequence, reply_to=7, payload=payload)
    line = b"hello\r\n\0" + encode_frame(frame) * 2
    reader, found, start = FrameReader(), [], 0
    for cut in [*cuts, len(line)]:
        found += reader.feed(line[start:start + cut])
        start += cut
    assert found == [frame, frame]
    assert (reader.good, reader.bad, bytes(reader.text)) == (2, {}, b"hello\r\n")


@given(st.binary(min_size=1, max_size=40), st.data())
def test_no_single_flipped_bit_is_taken_for_a_payload(payload, data):
    frame = Frame(type=0x80, sequence=1, payload=payload)
    line = bytearray(encode_frame(frame))
    bit = data.draw(st.integers(0, 8 * len(line) - 1))
    line[bit // 8] ^= 1 << bit % 8
    assert [f for f in FrameReader().feed(bytes(line) + b"\0") if f != frame] == []


def test_rubbish_without_an_end_keeps_the_reader_small():
    reader = FrameReader()
    for _ in range(100):
        assert list(reader.feed(b"\xaa" * 1000)) == []
    assert len(reader._pending) <= FRAME_MAX
    assert list(reader.feed(b"\0" + encode_frame(Frame(type=0x8A)))) == [Frame(type=0x8A)]
    assert reader.bad == {"long": 1}
