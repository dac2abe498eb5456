"""Real firmware on emulated boards: right outputs, exact counts, planted costs, clean ends."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from made_firmware import build, expected_output
from made_patience import HANG_S
from reference_cache import ReferenceCache

from calibration.collecting.collector import Campaign
from calibration.collecting.link import Link
from calibration.collecting.plan import make_plans
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.session import Session
from calibration.errors import BoardRestartedError, LinkError
from calibration.measurement.measurement import read_measurement
from calibration.virtual_board import launch, list_virtual_boards
from calibration.virtual_board.costs import Costs, Span, costs_of
from calibration.virtual_board.image_file import check_image
from calibration.virtual_board.qemu import MACHINES, run_qemu
from calibration.virtual_board.unicorn_board import DWT_EVENTS
from hwmodels.board.facts import Cache
from hwmodels.board.file import change_board, load_board
from hwmodels.board.policies import POLICIES
from hwmodels.errors import ToolMissingError
from hwmodels.kernel import Operand


def press_reset(board):
    """Restart the firmware, whatever it does, as a board's button does."""
    board._reset_wanted = True
    board._machine.emu_stop()


INPUT = bytes((37 * i + 11) % 256 for i in range(64))
UNICORNS = ("unicorn-m4", "unicorn-m7", "unicorn-m33")
FLASH = Span(base=0x08000000, end=0x08800000, cached=True, read_miss_cycles=20)
RAM = Span(base=0x20000000, end=0x20400000, cached=True, read_miss_cycles=10, write_miss_cycles=3)
SMALL = Cache(name="l1d", size_bytes=512, line_bytes=32, ways=4)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder, built = tmp_path_factory.mktemp("firmware"), {}

    def image(port: str):
        if port not in built:
            built[port] = build(port, folder)
        return built[port]

    return image


def begin(link: Link) -> Session:
    session = Session(link)
    session.open(10.0)
    session.load(INPUT)
    return session


def layer_values(session: Session, runs: int, **config) -> dict[tuple[int, int], list[int]]:
    """Values of the clock counter by (layer, counter), one per run."""
    session.configure(flags=wire.CONFIG_FLAGS["LAYERS"] | config.pop("flags", 0), **config)
    reply = session.run(0, runs, timeout_s=20, expected_s=HANG_S)  # never asked twice
    assert reply.done == runs and reply.checksum == zlib.crc32(expected_output(INPUT))
    found: dict[tuple[int, int], list[int]] = {}
    for _, samples in session.samples():
        for sample in samples:
            if sample.layer != wire.LAYER_SETUP:
                found.setdefault((sample.layer, sample.counter), []).append(sample.value)
    return found


def test_an_access_past_the_cache_waits_for_array_and_interconnect_as_predicted():
    """Of an STM32H7A3: 6 wait states and 7 of the 8 cycles through the AXI."""
    board = load_board("nucleo_h7a3zi_q")
    for off, waits in ((board, 6 + 7), (change_board(
            board, {"caches.l1d.enabled": False, "caches.l1i.enabled": False}), 6 + 7)):
        flash = next(span for span, memory in zip(costs_of(off).spans, off.memories, strict=True)
                     if memory.role == "flash")
        assert flash.read_cycles == waits and flash.fetch_cycles == (0 if off is board else waits)
    m4 = load_board("nucleo_l4r5zi")  # its array is behind no interconnect
    assert max(span.read_cycles for span in costs_of(m4).spans) == 5


@pytest.mark.parametrize("port", MACHINES)
def test_qemu_counts_instructions_exactly(images, port):
    if shutil.which(MACHINES[port].program) is None:
        pytest.skip(f"{MACHINES[port].program} is not installed")
    with launch(port, images(port)) as board, Link(board.port) as link:
        session = begin(link)
        identity = session.identify()
        assert identity.has("SIMULATED")
        values = layer_values(session, 4)
        counter = session.counters()[0]
        factor = board.scales(identity.timer_hz)["timer_ticks"][1] \
            if counter.id == wire.COUNTER_IDS["TIMER"] else 1.0
        for layer in (0, 1):
            counts = [round(ticks * factor) for ticks in values[layer, 0]]
            # Sixteen sums of 64 products take 1 to 8 instructions each; a tick is less than one.
            assert max(counts) - min(counts) <= 1
            assert (1024 < counts[0] < 8192) if layer == 0 else (300 < counts[0] < 1500)
        session.stop()


@pytest.mark.parametrize("port", UNICORNS)
def test_planted_costs_are_what_the_firmware_counts(images, port, monkeypatch):
    costs = Costs(core=f"cortex-{port.split('-')[1]}", spans=(FLASH, RAM), data=SMALL,
                  write_back_cycles=5)
    from tests.oracles.recordings import layer_spans, run_recorded

    with run_recorded(port, images(port), costs=costs, room=100_000) as board, \
            Link(board.port) as link:
        session = begin(link)
        events = tuple(wire.COUNTER_IDS[n] for n in ("DWT_CPI", "DWT_LSU", "DWT_FOLD"))
        layer_values(session, 3, events=events)
        board.start_recording()
        session.run(3, 1, timeout_s=20, expected_s=HANG_S)
        readings, trace = board.stop_recording()
        kept = {(s.layer, s.counter): s.value for _, ss in session.samples() for s in ss}
        names = [c.name for c in session.counters()]
        session.stop()
    spans = layer_spans(readings)
    assert len(spans) == 2 and board.state.odd_blocks == 0 and board.failure is None
    for layer, span in enumerate(spans):
        assert kept[layer, 0] == pytest.approx(span.cycles, abs=1)
    # Arm's identity
    cpi, exceptions, sleep, lsu, fold = board.dwt_events()
    totals = board.totals()
    assert totals.instructions + cpi + lsu - fold == int(totals.cycles)
    assert (exceptions, sleep) == (0, 0) and lsu > 0
    # the eight bits the firmware read, some instructions of reading apart
    stall = spans[0].read_misses * 20 + 3 * spans[0].write_misses + 5 * spans[0].write_backs
    assert (kept[0, names.index("dwt lsucnt")] - stall) % 256 <= 200
    # 16 rows of 64 products: a load of each factor
    assert 2048 <= spans[0].loads <= 2048 + 60 and 16 <= spans[0].stores <= 16 + 20
    assert spans[0].accesses == spans[0].loads + spans[0].stores
    check_against_reference(board.costs, readings, trace)
    monkeypatch.setattr(type(board), "dwt_events", lambda _: (1, 2, 3, 4, 0x105))
    assert [board._read_private(None, DWT_EVENTS + 4 * number, 4, None) for number in range(5)] == [
        1, 2, 3, 4, 5]


def check_against_reference(costs, readings, trace):
    """A simulation written for reading, fed the real trace, agrees exactly."""
    first, last = readings[0], readings[-1]
    operand = Operand(name="all", role="input", memory="ram", address=0, size_bytes=1 << 32)
    reference = ReferenceCache(cache=costs.data, seed=1)
    for address, size, write in trace[:first.accesses].tolist():
        reference.access(operand, address, size, bool(write))
    before = dict(reference.counts)
    for address, size, write in trace[first.accesses:last.accesses].tolist():
        reference.access(operand, address, size, bool(write))
    for name, ours in (("read_misses", last.read_misses - first.read_misses),
                       ("write_misses", last.write_misses - first.write_misses)):
        theirs = reference.counts["all", name] - before.get(("all", name), 0)
        # the reference starts empty, the board did not: the first accesses may differ
        assert abs(theirs - ours) <= SMALL.sets * SMALL.ways
    assert last.read_misses > first.read_misses


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("write", ["back", "through"])
def test_every_policy_equals_the_specification(images, policy, write):
    """From the first instruction on, so that not one miss may differ."""
    from hwmodels.cache.set_associative import SEED
    from tests.oracles.recordings import run_recorded

    cache = replace(SMALL, replacement=policy, write=write,
                    allocate="read_write" if write == "back" else "read")
    with run_recorded("unicorn-m4", images("unicorn-m4"), room=200_000,
                      costs=Costs(data=cache, spans=(FLASH, RAM)), recording=True) as board, \
            Link(board.port) as link:
        session = begin(link)
        layer_values(session, 1)
        session.stop()
    readings, trace = board.stop_recording()
    reference = ReferenceCache(cache=cache, seed=SEED)
    operand = Operand(name="all", role="input", memory="ram", address=0, size_bytes=1 << 32)
    done = 0
    for reading in readings:
        for address, size, write_one in trace[done:reading.accesses].tolist():
            reference.access(operand, address, size, bool(write_one))
        done = reading.accesses
        assert (reading.read_misses, reading.write_misses) == (
            reference.counts["all", "read_misses"], reference.counts["all", "write_misses"])
    assert done > 5000 and reading.read_misses > 100


def test_an_inference_written_down_agrees_with_qemu(images):
    from benchmarks.oracles.recording import record_inference
    from hwmodels.program.listing import Listing

    records = record_inference("unicorn-m4", images("unicorn-m4"), INPUT)
    assert [record.index for record in records] == [0, 1]
    for record in records:
        assert len(record.accesses) == record.totals.accesses
        assert int(record.accesses[:, 2].sum()) == record.totals.stores
    # the image's own listing, block by block, gives the instructions that were counted
    text = Listing(machine="arm").text(0x08000000, bytes.fromhex("0138fdd1"))
    assert text.splitlines()[0].split() == ["subs", "r0,", "#1"]
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    with launch("mps2-an386", images("mps2-an386")) as board, Link(board.port) as link:
        session = begin(link)
        factor = board.scales(session.identify().timer_hz)["timer_ticks"][1]
        values = layer_values(session, 3)
        session.stop()
    for record in records:
        # the same kernels; reading another counter takes some instructions more or less
        counted = round(values[record.index, 0][0] * factor)
        assert abs(counted - record.totals.instructions) <= 40


def test_cold_runs_cost_more_and_two_boards_do_not_meet(images, tmp_path):
    found = {}

    def one(name: str) -> None:
        with launch("unicorn-m7", images("unicorn-m7"),
                    board=load_board("nucleo_h7a3zi_q")) as board, Link(board.port) as link:
            session = Session(link)
            session.open(10.0)
            made = Campaign(session=session, folder=tmp_path / name, board="nucleo_h7a3zi_q",
                            model="made", runtime="firmware", scales=board.scales(0))
            made.prepare(INPUT)
            for plan in make_plans(made.identity, made.counters, runs=5, warmup=2,
                                   adaptive=False):
                made.collect(plan)
            session.stop()
            found[name] = board.failure()

    threads = [threading.Thread(target=one, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": None, "b": None}
    for name in "ab":
        cold, warm = (read_measurement(tmp_path / name / t) for t in ("cold", "warm"))
        assert warm.header.kind == "simulated" and dict(warm.header.clocks_hz)["cpu"] == 280e6
        assert cold.percentile("cpu_cycles", 50) > 1.05 * warm.percentile("cpu_cycles", 50)
        assert set(warm.values("output_checksum")) == {zlib.crc32(expected_output(INPUT))}
        assert {"dwt_lsucnt", "dwt_cpicnt"} <= set(warm.counters)


def test_a_reset_is_seen_as_a_restart(images):
    from calibration.virtual_board.unicorn_board import run_unicorn

    with run_unicorn("unicorn-m4", images("unicorn-m4")) as board, Link(board.port) as link:
        session = begin(link)
        link.write(b"\x00garbage that is not a frame\x00")
        assert session.ask("STATUS", wire.Status).frames_bad >= 1
        press_reset(board)
        with pytest.raises(BoardRestartedError):
            session.ask("STATUS", wire.Status)
        assert session.open().resumed == 0 and session.ask("STATUS", wire.Status).loaded_bytes == 0


def test_resets_in_the_middle_of_blocks_lose_no_sample(images, tmp_path, monkeypatch):
    from calibration.collecting import collector
    from calibration.virtual_board.unicorn_board import CYCCNT, UnicornBoard, run_unicorn

    monkeypatch.setattr(collector, "BLOCK_S", 0.1)
    runs, presses, readings_left = 200, 0, 0
    read = UnicornBoard._read_private

    def count_down(board, uc, offset, size, data) -> int:
        nonlocal readings_left
        if readings_left and offset == CYCCNT:
            readings_left -= 1
            if not readings_left:
                press_reset(board)
        return read(board, uc, offset, size, data)

    monkeypatch.setattr(UnicornBoard, "_read_private", count_down)
    with run_unicorn("unicorn-m4", images("unicorn-m4")) as board, Link(board.port) as link:
        session = Session(link)
        session.open(10.0)

        def press(progress) -> None:
            nonlocal presses, readings_left
            if presses < 2 and progress.done > 0 and not readings_left:
                presses += 1
                readings_left = 8  # a run reads six times: in the second one

        made = Campaign(session=session, folder=tmp_path, board="made", model="made",
                        runtime="firmware", on_progress=press)
        made.prepare(INPUT)
        made.collect(make_plans(made.identity, made.counters, runs=runs, warmup=1,
                                adaptive=False)[-1])
        session.stop()
    measured = read_measurement(tmp_path / "warm")
    assert made.restarts == presses == 2
    numbers = [s.run for s in measured.samples if s.counter == "cpu_cycles" and s.layer is None]
    assert numbers == list(range(len(numbers))) and len(numbers) >= runs
    assert set(measured.values("output_checksum")) == {zlib.crc32(expected_output(INPUT))}


def test_the_line_is_silent_while_the_pin_marks_runs(images, monkeypatch, tmp_path):
    """What the firmware writes to its console and pin, in order."""
    from calibration.virtual_board.unicorn_board import DATA, MARK, UnicornBoard, run_unicorn

    seen: list[tuple[int, int]] = []
    write = UnicornBoard._write_console

    def note(board, uc, offset, size, value, data) -> None:
        seen.append((offset, value))
        write(board, uc, offset, size, value, data)

    monkeypatch.setattr(UnicornBoard, "_write_console", note)
    with run_unicorn("unicorn-m4", images("unicorn-m4")) as board, Link(board.port) as link:
        session = Session(link)
        session.open(10.0)
        made = Campaign(session=session, folder=tmp_path, board="made", model="made",
                        runtime="firmware")
        made.prepare(INPUT)
        for layers, edges in ((False, [1, 0]), (True, 4 * [1, 0, 1])):
            seen.clear()
            made.run_s = 0.01
            begin, end = made.power_window(3, layers=layers)
            assert end > begin
            marks = [place for place, (offset, _) in enumerate(seen) if offset == MARK]
            between = [value for offset, value in seen[marks[0]:marks[-1]] if offset == DATA]
            assert between == []  # not a byte, so that no driver draws current
            levels = [seen[place][1] for place in marks]
            # a run toggles at each of two layers and at its end, after one warm-up run of the same
            assert levels == edges if not layers else len(levels) == 3 * 4
        session.stop()


def test_costs_of_boards():
    costs = costs_of(load_board("nucleo_h7a3zi_q"))
    assert costs.core == "cortex-m7" and costs.data.size_bytes == 16384
    flash = next(span for span in costs.spans if span.base == 0x08000000)
    assert flash.cached and flash.read_miss_cycles > 10


def test_host_is_a_board(images, tmp_path):
    with launch("host", images("host")) as board, Link(board.port) as link:
        session = Session(link)
        session.open(10.0)
        made = Campaign(session=session, folder=tmp_path, board="host", model="made",
                        runtime="firmware", gauges=board.gauges, environment=board.environment)
        made.prepare(INPUT)
        # a loaded machine delays either clock's reader; a wrong unit is off by far more
        assert made.clock is not None and 0.01 < made.clock.ratio < 100
        measured = made.collect(make_plans(made.identity, made.counters, runs=200, warmup=3,
                                           adaptive=False)[-1])
        session.stop()
    assert measured.header.kind == "measured"
    assert measured.count("timer_ticks") == 200
    environment = dict(measured.header.environment)
    assert "machine" in environment
    # each counter of the kernel is there, or a sentence says why not
    for name in ("cpu_cycles", "instructions"):
        why_not = environment.get(f"no_{name}", "")
        assert f"block_{name}" in measured.counters or "perf_event_open" in why_not
    assert "block_page_faults" in measured.counters or "no_page_faults" in environment


def test_an_image_of_another_port_is_named(images):
    built = images("mps2-an386")
    check_image(built, "mps2-an386")
    check_image(images("unicorn-m4"), "unicorn-m7")  # their common port: the core is not told
    for port in ("mps2-an505", "unicorn-m4", "host"):
        with pytest.raises(LinkError, match=f"is for port mps2-an386, not {port}"), \
                launch(port, built):
            pass
    with pytest.raises(LinkError, match="not an image of the firmware"):
        check_image("/bin/ls", "host")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part in it is Linux's")
def test_a_child_ends_with_a_parent_that_is_killed():
    code = """
import subprocess, time
from calibration.virtual_board.child import end_with_parent
print(subprocess.Popen(["sleep", "300"], preexec_fn=end_with_parent).pid, flush=True)
time.sleep(300)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    state = Path(f"/proc/{child}/stat")
    deadline = time.monotonic() + HANG_S
    while state.exists() and state.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_refusals(tmp_path, monkeypatch):
    with pytest.raises(LinkError, match="did you mean unicorn-m"), launch("unicorn-m5", "x"):
        pass
    text = tmp_path / "image.elf"
    text.write_text("no image")
    for name in ("unicorn-m4", "host"):
        with pytest.raises(LinkError, match=r"image\.elf"), launch(name, text):
            pass
    monkeypatch.setattr("calibration.virtual_board.qemu.shutil.which", lambda name: None)
    with pytest.raises(ToolMissingError, match="apt-get install qemu-system-arm"), \
            run_qemu("mps2-an386", text):
        pass
    monkeypatch.setattr("calibration.virtual_board.which", lambda name: None)
    assert any("apt-get" in board.missing for board in list_virtual_boards())
