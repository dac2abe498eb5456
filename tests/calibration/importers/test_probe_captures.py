"""What twin_probe.h sends, written by hand: lines, frames, and epochs of an NPU."""

from __future__ import annotations

import struct

import pytest

pytest.importorskip("cobs", reason="needs the boards extra")

from calibration.collecting.wire.frames import Frame, encode_frame
from calibration.errors import MeasurementError
from calibration.importers import import_log
from calibration.importers.listing import Listing
from calibration.importers.probe import RECORD


def line(words: str) -> str:
    total = 0
    for byte in (text := f"twin 1 {words}").encode():
        total ^= byte
    return f"@{text}*{total:02X}\n"


def begin(run=0, layers=2, total=100, lost=0, hz=2_000_000, unit="cycles", name="net", **more):
    words = "".join(f" {key}={value}" for key, value in more.items())
    return line(f"begin run={run} hz={hz} layers={layers} lost={lost} total={total} mark=3{words} "
                f"name={name} unit={unit}")


def layer(place, count, run=0, name="CONV_2D"):
    return line(f"layer run={run} place={place} count={count} name={name}")


def inference(run=0, counts=(60, 30), **more):
    return "".join([begin(run, len(counts), **more), *(
        layer(place, count, run) for place, count in enumerate(counts)), line(f"end run={run}")])


def read(tmp_path, text, **more):
    path = tmp_path / "log.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_log("probe", path, **more)


@pytest.mark.parametrize(("unit", "hz", "counter", "clocks"), [
    ("cycles", 2_000_000, "cpu_cycles", {"cpu": 2e6}), ("ticks", 1000, "timer_ticks", {
        "timer": 1e3}), ("ticks", 0, "timer_ticks", {})])
def test_each_inference_is_a_run_in_its_unit(tmp_path, unit, hz, counter, clocks):
    found = read(tmp_path, inference(unit=unit, hz=hz) + "hello\n" + inference(
        1, (61, 31), unit=unit, hz=hz, total=101)).measurement
    assert found.values(counter, 0).tolist() == [60, 61] and found.values(counter).tolist() == [
        100, 101]
    assert {one.unit for one in found.samples if one.counter == counter} == {unit}
    assert found.header.clocks == clocks and found.header.model == "net"
    assert found.header.facts["operators"] == "CONV_2D,CONV_2D"
    assert found.header.facts["mark_cost"] == f"3 {unit}, in each layer"
    if hz:
        assert found.values("latency", 1)[0] == pytest.approx(30 / hz * 1e6)
    else:
        assert "latency" not in found.counters


def test_lines_may_stand_behind_another_programs_words(tmp_path):
    text = "".join(f"I (12) app: {one}" for one in inference().splitlines(keepends=True))
    found = read(tmp_path, "boot\n" + text)
    assert found.measurement.values("cpu_cycles", 1).tolist() == [30] and not found.unread


@pytest.mark.parametrize(("text", "why"), [
    (begin() + layer(0, 60) + line("end run=0"), "inference 0 has 1 of 2 layers"),
    (begin() + layer(0, 60) + layer(1, 30), "inference 0 has 2 of 2 layers"),
    (begin() + layer(1, 60) + line("end run=0"), "inference 0 lacks layer 0"),
    (begin() + layer(0, 60, run=7) + line("end run=0"), "inference 0 lacks its end"),
    (begin() + layer(0, 60).replace("60", "61") + line("end run=0"), "has a damaged line"),
    (begin() + layer(0, -6) + line("end run=0"), "has a damaged line"),
    (begin() + layer(0, 1 << 64) + line("end run=0"), "has a damaged line"),
    (begin() + line("layer run=0 place=0 name=x") + line("end run=0"), "has a damaged line"),
    (inference(lost=4), "inference 0 lost 4 marks: raise TWIN_PROBE_LAYERS"),
    (inference(total=89), "inference 0 has layers of 90 in a total of 89")])
def test_an_inference_that_is_not_whole_is_omitted_and_alone_refused(tmp_path, text, why):
    with pytest.raises(MeasurementError, match=f"log.txt: not complete: .*{why}"):
        read(tmp_path, text)
    found = read(tmp_path, text + inference(5, (50, 40)))
    assert found.measurement.runs == (0,) and found.measurement.values("cpu_cycles", 0) == [50]
    (remark,) = (one for one in found.remarks if "omitted" in one)
    assert why in remark and remark.endswith(": it is omitted")


@pytest.mark.parametrize("unit", ["hours", ""])
def test_a_unit_nobody_knows_begins_nothing(tmp_path, unit):
    with pytest.raises(MeasurementError, match="nothing of this format; expected lines of twin"):
        read(tmp_path, inference(unit=unit))


def test_what_began_before_the_capture_is_left_out_and_layers_may_fill_their_total(tmp_path):
    text = layer(1, 30) + line("end run=8") + inference(9, total=90) + layer(0, 5, run=9)
    found = read(tmp_path, text).measurement
    assert found.runs == (0,) and found.values("cpu_cycles").tolist() == [90]


def test_inferences_of_two_networks_are_refused(tmp_path):
    for other in (inference(1, name="other"), inference(1, unit="ticks"),
                  inference(1).replace(layer(0, 60, 1), layer(0, 60, 1, "ADD"))):
        with pytest.raises(MeasurementError, match="inference 1 has other layers than inference 0"):
            read(tmp_path, inference() + other)
    net = Listing(network="net", operators=("conv_2d", "add"), known=("conv_2d", "add"))
    with pytest.raises(MeasurementError, match="it has CONV_2D as operator 1, that of net is add"):
        read(tmp_path, inference(), listing=net)


def frame(payload: bytes, kind: int = RECORD) -> bytes:
    return encode_frame(Frame(type=kind, flags=0, sequence=0, reply_to=0, payload=payload))


def framed(kind: int, *words: int, name: str = "") -> bytes:
    return frame(bytes([kind, 0]) + struct.pack(f"<{len(words)}I", *words) + name.encode())


def test_frames_say_what_lines_say(tmp_path):
    """Of a "begin": run, hz, cycles or not, layers, lost, low and high half of the total, mark."""
    text = b"".join([b"\0", framed(0, 0, 2_000_000, 1, 2, 0, 100, 1, 3, name="net"),
                     framed(1, 0, 0, 60, name="CONV_2D"), frame(b"other", RECORD + 1),
                     framed(1, 0, 1, 30, name="CONV_2D"), framed(2, 0)])
    ours = read(tmp_path, text).measurement
    lines = read(tmp_path, inference(total=(1 << 32) + 100)).measurement
    assert (ours.samples, ours.header) == (lines.samples, lines.header)
    ticks = text.replace(framed(0, 0, 2_000_000, 1, 2, 0, 100, 1, 3, name="net"),
                         framed(0, 0, 1000, 0, 2, 0, 100, 0, 3, name="net"))
    assert read(tmp_path, ticks).measurement.values("timer_ticks").tolist() == [100]


@pytest.mark.parametrize("broken", [
    frame(b""), framed(3, 0), framed(1, 0, 1), frame(b"\x02\0\0\0\0"),
    frame(b"\x02\0\0\0\0\0")[:-3] + b"\1\1\0"])
def test_a_frame_that_is_none_spoils_its_inference(tmp_path, broken):
    head = b"\0" + framed(0, 0, 1000, 1, 1, 0, 100, 0, 3, name="net")
    with pytest.raises(MeasurementError, match="inference 0 has a damaged line"):
        read(tmp_path, head + broken + framed(1, 0, 0, 60, name="ADD") + framed(2, 0))


HARDWARE, BLOB, SOFTWARE, HYBRID, INTERNAL = 1 << 4, 1 << 2, 1 << 5, 1 << 6, 1 << 7


def epoch(run, place, flags, phases, bursts, **more):
    pre, core, post = phases
    words = "".join(f" {key}={value}" for key, value in more.items())
    return line(f"epoch run={run} place={place} flags={flags} pre={pre} core={core} post={post} "
                f"bursts={bursts}{words}")


def epochs(run, bursts, first, flags=HARDWARE, **more):
    """A block of hardware, a hybrid one that inserts another, and software."""
    return "".join([
        begin(run, 4, **{"total": 400, "npu": 4_000_000, **more}),
        epoch(run, 0, flags, (10, 50, 20), bursts, num=1, last=2, **first),
        epoch(run, 1, HYBRID, (5, 6, 7), bursts, num=3),
        epoch(run, 2, INTERNAL, (1, 2, 3), bursts),
        epoch(run, 3, SOFTWARE, (100, 8, 9), bursts), line(f"end run={run}")])


COUNTED = {"in": 0b0001, "out": 0b1000, "ca": 90, "cb": 70, "cc": 60, "ha": 5, "hh": 2}
LETTERS = "abcdefghijklmnop"


def test_epochs_are_layers_with_what_they_insert(tmp_path):
    """Phases are sums by hand; 221 host cycles at 2 MHz are 442 of an NPU at 4 MHz."""
    beats = {f"c{letter}": number for number, letter in enumerate(LETTERS, start=1)}
    found = read(tmp_path, epochs(0, 0, COUNTED) + epochs(1, 1, beats))
    one = found.measurement
    assert one.layers == (0, 1, 3) and one.runs == (0, 1) and found.remarks == ()
    assert (one.header.runtime, one.header.temperature) == ("neural-art", "warm")
    assert one.header.clocks == {"cpu": 2e6, "npu": 4e6} and one.header.model == "net"
    assert one.header.facts == {
        "mark_cost": "3 cycles, not in the phases", "epoch 0": "EpochBlock_1 HW",
        "epoch 1": "EpochBlock_3 HYBRID", "epoch 3": "EpochBlock_4 SW"}
    assert {name: one.values(name)[0] for name in (
        "inference_cycles", "cpu_cycles", "core_cycles", "core_npu_cycles", "duration",
        "npu_cycles", "npu_core_duration")} == {
        "inference_cycles": 400, "cpu_cycles": 80 + 18 + 6 + 117, "core_cycles": 50 + 6 + 2 + 8,
        "core_npu_cycles": 90, "duration": 110.5, "npu_cycles": 442, "npu_core_duration": 22.5}
    assert one.values("extra_pre_cycles", 1).tolist() == [1, 1]
    assert one.values("pre_cycles", 1).tolist() == [5, 5]
    first = {name: one.values(name, 0).tolist() for name in one.counters if one.count(name, 0)}
    assert {name: first[name] for name in (
        "core_npu_cycles", "unit_STR_ENG", "engine_0_in_active_cycles",
        "engine_3_out_active_cycles", "npu_cache_read_hit", "npu_cache_write_through")} == {
        "core_npu_cycles": [90], "unit_STR_ENG": [2], "engine_0_in_active_cycles": [70],
        "engine_3_out_active_cycles": [60], "npu_cache_read_hit": [5],
        "npu_cache_write_through": [2]}
    # beats of eight bytes: writes, then reads, of bus interface 0, then of 1
    for place, name in enumerate(("busif0_write", "busif0_read", "busif1_write", "busif1_read")):
        counts = [4 * place + number for number in (1, 2, 3, 4)]
        assert [first[f"{name}_bursts_{beat}"] for beat in (1, 2, 4, 8)] == [[n] for n in counts]
        assert first[f"{name}_bytes"] == [8 * sum(
            number * beat for number, beat in zip(counts, (1, 2, 4, 8), strict=True))]
    units = {one.counter: (one.unit, one.clock) for one in one.samples}
    assert (units["duration"], units["busif0_read_bytes"], units["unit_STR_ENG"]) == (
        ("us", None), ("bytes", None), ("count", None))
    assert (units["core_cycles"], units["core_npu_cycles"], units["engine_0_in_active_cycles"]) == (
        ("cycles", "cpu"), ("cycles", "npu"), ("cycles", "npu"))


@pytest.mark.parametrize(("text", "remark"), [
    (epochs(0, 0, COUNTED, HARDWARE | BLOB), "epochs 1 to 2 ran as one block, by the epoch contr"),
    (epochs(0, 1, {}), "no inference counted NPU cycles: they take turns with bursts"),
    (epochs(0, 0, COUNTED, npu=0), "clocks are not all stated: define TWIN_PROBE_HZ and TWIN_PRO"),
    (epochs(0, 0, COUNTED, hz=0), "clocks are not all stated"),
    # 50 cycles at 2 MHz are 25 us, four fifths of 125 cycles at 4 MHz
    (epochs(0, 0, COUNTED | {"ca": 126}), "the host counted 25 us while the NPU worked for 32: it "
     "slept")])
def test_what_epochs_do_not_show_is_remarked(tmp_path, text, remark):
    found = read(tmp_path, text)
    assert [one for one in found.remarks if one.startswith(remark)]
    assert ("duration" in found.measurement.counters) is ("hz=0" not in text)
    assert ("npu_cycles" in found.measurement.counters) is ("not all stated" not in remark)


def test_times_of_a_host_that_slept_are_in_microseconds(tmp_path):
    """50,000,064 host cycles at 2 MHz beside 126,000,000 of the NPU at 4 MHz."""
    text = epochs(0, 0, COUNTED | {"ca": 126_000_000}, total=60_000_000).replace(
        epoch(0, 0, HARDWARE, (10, 50, 20), 0, num=1, last=2, **COUNTED | {"ca": 126_000_000}),
        epoch(0, 0, HARDWARE, (10, 50_000_000, 20), 0, num=1, last=2,
              **COUNTED | {"ca": 126_000_000}))
    (said,) = read(tmp_path, text).remarks
    assert said.startswith("the host counted 25,000,000 us while the NPU worked for 31,500,000: ")


def test_a_host_that_counted_nearly_through_did_not_sleep(tmp_path):
    assert read(tmp_path, epochs(0, 0, COUNTED | {"ca": 124})).remarks == ()
