"""Requests are answered once whatever the line does; every way to fail has its error."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from made_board import CYCLES, INPUT_BYTES, MadeBoard
from made_patience import HANG_S, MadeClock
from made_relay import Faults, Relay

import calibration.collecting.clock_check
import calibration.collecting.deadline
import calibration.collecting.link
import calibration.collecting.wire.conversation
import calibration.collecting.wire.session
from calibration.collecting.clock_check import check_clock, describe_latency
from calibration.collecting.deadline import Deadline
from calibration.collecting.link import Link, find_port, lock_port, open_link
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.frames import Frame, encode_frame
from calibration.collecting.wire.session import Session
from calibration.errors import (
    BoardRefusedError,
    BoardRestartedError,
    LinkError,
    LinkLostError,
    LinkTimeoutError,
)

INPUT = bytes(range(250)) * 4
assert len(INPUT) == INPUT_BYTES


def measure(session: Session, runs: int = 4) -> list[wire.RawSample]:
    session.open()
    session.load(INPUT)
    session.configure(flags=wire.CONFIG_FLAGS["LAYERS"])
    made = 0
    while made < runs:  # a spoilt byte on the line ends a block of runs early
        made += session.run(made, runs - made, timeout_s=10).done
    return [sample for _, samples in session.samples() for sample in samples]


def test_a_whole_conversation():
    with MadeBoard() as board, open_link(board.port) as link:
        session = Session(link)
        samples = measure(session)
        assert session.identify().model == "made"
        assert [c.name for c in session.counters()] == ["cycles", "checksum", "dwt cpi"]
        assert session.layer(1).name == "layer 1"
        with pytest.raises(BoardRefusedError, match="offset 0"):
            session.layer(77)
        session.stop()
        assert board.session == 0
    # one set-up, and per run 3 layers, the inference and its checksum
    assert len(samples) == 1 + 4 * 5
    assert [s.value for s in samples[1:4]] == [1000, 2000, 3000]


@pytest.mark.parametrize("faults", [
    Faults(drop=1e-3, seed=1), Faults(flip=1e-3, seed=2), Faults(duplicate=1e-3, seed=3),
    Faults(stall=1e-3, stall_s=0.15, seed=4),
    Faults(drop=5e-4, flip=5e-4, duplicate=5e-4, stall=1e-4, seed=5)],
    ids=["drop", "flip", "duplicate", "stall", "all"])
def test_a_bad_line_costs_time_but_no_sample(faults):
    with MadeBoard() as clean_board, open_link(clean_board.port) as link:
        expected = measure(Session(link))
    with MadeBoard() as board, Relay(board.port, faults) as relay, Link(relay.port) as link:
        session = Session(link)
        for _ in range(4):
            board.input.clear()
            assert measure(session) == expected
            assert bytes(board.input) == INPUT
        spoilt = sum(n for s in (relay.to_board, relay.to_host)
                     for kind, n in s.counts.items() if kind != "bytes")
        assert spoilt > 0


def test_a_repeated_request_takes_effect_once():
    with MadeBoard(run_s=0.4) as board, Link(board.port) as link:
        session = Session(link)
        session.open()
        session.load(INPUT)
        session.configure()
        # Asked three times, because the answer takes longer than an attempt; made once.
        reply = wire.RunReply.parse(session.request(
            "RUN", wire.Run(first_run=0, runs=1).pack(), attempt_s=0.15))
        assert reply.done == 1
        assert (board.runs_made, board.served.count(wire.TYPES["RUN"])) == (1, 1)
        assert session.retries >= 1


def test_a_pulled_cable_is_resumed_at_the_first_look_after_it_is_back(monkeypatch):
    with MadeBoard() as board, Relay(board.port) as relay, Link(relay.port) as link:
        session = Session(link)
        session.open()
        session.load(INPUT)
        relay.cut()
        looks = []

        def look_again(wait_s: float) -> None:
            looks.append(wait_s)
            if len(looks) == 15:
                relay.restore()

        monkeypatch.setattr(calibration.collecting.link.time, "sleep", look_again)
        assert session.ask("STATUS", wire.Status).loaded_bytes == INPUT_BYTES
        assert session.resumptions == 1
    assert len(looks) == 15 and max(looks) <= 0.05  # twenty looks in a second, or more


def test_run_is_never_asked_anew_after_a_lost_line():
    def lose_the_line(run, layer, cold):
        if layer == 0:
            relay.cut()
            threading.Timer(0.2, relay.restore).start()
        return CYCLES[layer]

    with MadeBoard(cycles_of=lose_the_line) as board, Relay(board.port) as relay, \
            Link(relay.port) as link:
        session = Session(link)
        session.open()
        session.load(INPUT)
        session.configure(flags=wire.CONFIG_FLAGS["LAYERS"])
        with pytest.raises(LinkLostError, match="is back"):
            session.run(0, 1, timeout_s=5)
        got = [s.run for _, samples in session.samples() for s in samples]
        assert len(got) == 1 + 5 and board.runs_made == 1


def test_a_cable_that_stays_away_ends_in_time(monkeypatch):
    clock = MadeClock()
    monkeypatch.setenv("TWIN_PATIENCE", "1")
    with MadeBoard() as board, Relay(board.port) as relay, Link(relay.port) as link:
        session = Session(link, return_s=0.3)
        session.open()
        relay.cut()
        monkeypatch.setattr(calibration.collecting.deadline, "time", clock)
        monkeypatch.setattr(calibration.collecting.link, "time", clock)
        with pytest.raises(LinkLostError, match="cannot be opened"):
            session.identify()
    assert 0.25 < clock.now_s <= 0.3


@pytest.mark.parametrize("port", ["socket://board", "socket://board:x", "socket:board:4000"])
def test_an_address_without_a_port_is_refused(port):
    with pytest.raises(LinkError, match="accepted: socket://HOST:PORT"):
        Link(port)


def test_an_emulators_line_is_never_opened_again():
    """Another board answers under its name by then: it must not be spoken to."""
    with MadeBoard() as board, MadeBoard() as other, Relay(board.port) as relay, \
            Link(relay.port) as link:
        session = Session(link, return_s=0.0)
        session.open()
        relay.cut()
        link.port = other.port
        with pytest.raises(LinkLostError):
            session.identify()
        assert other.served == []


class ReadLink(Link):
    """A read that got nothing took all the time it was given, one that got bytes a millisecond."""

    clock: MadeClock | None = None

    def read(self, timeout_s: float) -> bytes:
        data = super().read(timeout_s)
        if self.clock is not None:
            self.clock.sleep(0.001 if data else timeout_s)
        return data

    def goes_by(self, clock: MadeClock, monkeypatch) -> None:
        """From now on the clock of deadlines is a made one."""
        self.clock = clock
        monkeypatch.setenv("TWIN_PATIENCE", "1")
        for module in (calibration.collecting.deadline, calibration.collecting.wire.conversation):
            monkeypatch.setattr(module, "time", clock)


def test_a_board_that_hangs_meets_the_deadline(monkeypatch):
    clock = MadeClock()
    with MadeBoard(hang_at=wire.TYPES["IDENTIFY"]) as board, ReadLink(board.port) as link:
        session = Session(link)
        session.open()
        link.goes_by(clock, monkeypatch)
        with pytest.raises(LinkTimeoutError, match=r"no answer to IDENTIFY within 0\.5 s"):
            session.request("IDENTIFY", timeout_s=0.5, attempt_s=0.1)
    assert clock.now_s == pytest.approx(0.5)


def test_a_reboot_mid_run_is_told_apart_from_a_lost_line():
    with MadeBoard(reboot_at_run=3) as board, Link(board.port) as link:
        session = Session(link)
        session.open()
        session.load(INPUT)
        session.configure()
        with pytest.raises(BoardRestartedError, match="restarted"):
            session.run(0, 5, timeout_s=5)


@pytest.mark.parametrize("version", [0, 2])
def test_another_version_is_refused_by_name(version):
    with MadeBoard(version=version) as board, Link(board.port) as link, \
            pytest.raises(LinkError, match=rf"version {version}; accepted: 1 to 1"):
        Session(link).open()


def test_a_flood_does_not_outlast_the_deadline(monkeypatch):
    clock = MadeClock()
    with MadeBoard(flood=True, hang_at=wire.TYPES["STATUS"]) as board, \
            ReadLink(board.port) as link:
        session = Session(link)
        session.open()
        link.goes_by(clock, monkeypatch)
        with pytest.raises(LinkTimeoutError):
            session.request("STATUS", timeout_s=0.6)
        assert clock.now_s == pytest.approx(0.6, abs=0.001)
        assert sum(session.reader.bad.values()) > 10


def test_a_port_has_one_user():
    with MadeBoard() as board, lock_port(board.port), \
            pytest.raises(LinkError, match="in use by process"), lock_port(board.port):
        pass


def test_no_port_says_what_to_give(monkeypatch):
    monkeypatch.setattr("calibration.collecting.link.list_ports", lambda: ())
    with pytest.raises(LinkError, match="--port"):
        find_port()
    assert find_port("socket://localhost:1") == "socket://localhost:1"


def test_a_port_that_is_not_there():
    with pytest.raises(LinkLostError, match="/dev/nosuch"):
        Link("/dev/nosuch")


def test_a_socket_is_a_link(monkeypatch):
    import os
    import select
    import socket

    # The port stays bound when nothing listens on it any more: it becomes nobody else's.
    with MadeBoard() as board, socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        server = socket.create_server(held.getsockname())
        ended = threading.Event()

        def bridge() -> None:
            client, _ = server.accept()
            line = os.open(board.port, os.O_RDWR | os.O_NOCTTY)
            while not ended.is_set():
                ready, _, _ = select.select([client, line], [], [], 0.02)
                if client in ready:
                    os.write(line, client.recv(4096))
                if line in ready:
                    client.sendall(os.read(line, 4096))
            client.close()
            os.close(line)

        thread = threading.Thread(target=bridge, daemon=True)
        thread.start()
        with open_link(f"socket://127.0.0.1:{server.getsockname()[1]}") as link:
            session = Session(link)
            assert len(measure(session)) == 1 + 4 * 5
            ended.set()
            thread.join(HANG_S)
            server.close()
            session.return_s = 0.2
            monkeypatch.setenv("TWIN_PATIENCE", "1")
            with pytest.raises(LinkLostError):
                session.identify()


def test_a_socket_that_met_itself_is_no_board(monkeypatch):
    import socket

    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()

        def connect(asked, timeout):
            line = socket.socket()
            line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            line.bind(asked)
            line.connect(asked)  # what the system does at times with a port nobody listens on
            return line

        monkeypatch.setattr(socket, "create_connection", connect)
        with pytest.raises(LinkLostError, match="nothing listens there"):
            Link(f"socket://127.0.0.1:{address[1]}")


def test_the_only_board_is_found_by_its_usb_id(monkeypatch):
    from calibration.collecting.link import PortInfo

    probe = PortInfo(device="/dev/ttyACM1", probe="ST-LINK", usb_serial="066B")
    other = PortInfo(device="/dev/ttyS4", probe=None, usb_serial=None)
    monkeypatch.setattr("calibration.collecting.link.list_ports", lambda: (probe, other))
    assert find_port() == "/dev/ttyACM1"
    monkeypatch.setattr("calibration.collecting.link.list_ports", lambda: (probe, probe, other))
    with pytest.raises(LinkError, match=r"several boards.*ttyACM1 \(ST-LINK\)"):
        find_port()


@pytest.mark.parametrize("rate", [1.0, 0.25, 1000.0])
def test_a_boards_clock_is_told_by_the_hosts(monkeypatch, rate):
    """A made session of 3 ms trips, whose board counts `rate` times too fast."""
    clock = MadeClock()

    class MadeSession:
        def request(self, name, payload, **waits):
            spin_us = int.from_bytes(payload, "little")
            clock.sleep(3e-3 + 1e-6 * spin_us / rate)
            return wire.BoardTime(ticks=spin_us, hz=10**6, clock=0).pack()

    monkeypatch.setattr(calibration.collecting.clock_check, "time", clock)
    found = check_clock(MadeSession())
    assert found.ratio == pytest.approx(rate)
    assert found.uncertainty == pytest.approx(0.0, abs=1e-9)


def test_a_span_is_waited_for_four_times_over_and_asked_again(monkeypatch):
    """A board whose clock is a quarter of what it claims answers in time, twice if need be."""
    clock, waited = MadeClock(), {}

    class MadeSession:
        def request(self, name, payload, *, attempt_s, timeout_s):
            spin_us = int.from_bytes(payload, "little")
            waited[name, spin_us] = attempt_s, timeout_s
            clock.sleep(1e-6 * spin_us)
            return wire.BoardTime(ticks=spin_us, hz=10**6, clock=0).pack()

    monkeypatch.setattr(calibration.collecting.clock_check, "time", clock)
    check_clock(MadeSession())
    assert waited == {("TIME", 0): (1.0, 5.0),
                      ("TIME", 200_000): (pytest.approx(1.8), pytest.approx(6.6))}


def test_a_clock_is_judged_by_the_span_the_board_claims(monkeypatch):
    """A board that spins 10 % longer than asked, and says so, has no other clock."""
    clock = MadeClock()

    class MadeSession:
        def request(self, name, payload, **waits):
            ticks = int.from_bytes(payload, "little") * 11 // 10
            clock.sleep(3e-3 + 1e-6 * ticks)
            return wire.BoardTime(ticks=ticks, hz=10**6, clock=0).pack()

    monkeypatch.setattr(calibration.collecting.clock_check, "time", clock)
    assert check_clock(MadeSession()).ratio == pytest.approx(1)


def test_a_line_that_answers_by_a_timer_is_timed_for_longer(monkeypatch):
    """Answers leave an adapter every 16 ms: 200 ms are too short to know a clock by."""
    clock, asked = MadeClock(), []

    class MadeSession:
        def request(self, name, payload, **waits):
            spin_us = int.from_bytes(payload, "little")
            asked.append(spin_us)
            clock.sleep(1e-3 + 0.7e-3 * (len(asked) % 5) + 1e-6 * spin_us)
            clock.sleep(16e-3 - clock.perf_counter() % 16e-3)
            return wire.BoardTime(ticks=spin_us, hz=10**6, clock=0).pack()

    monkeypatch.setattr(calibration.collecting.clock_check, "time", clock)
    found = check_clock(MadeSession())
    # Typical trips exceed the shortest by 13.5 ms of 16: 1.2 x 13.5 ms / 0.5 % is timed next.
    assert [*dict.fromkeys(asked)] == [0, 200_000, 3_240_000]
    assert abs(found.ratio - 1) < 3 * max(found.uncertainty, 0.002)
    said = describe_latency(replace(found, ratio=0.9, uncertainty=0.05), "/dev/ttyUSB9")
    assert "known to 5.6 % only" in said and "latency timer to 1 ms" in said
    assert describe_latency(replace(found, uncertainty=0.001), "/dev/ttyUSB9") == ""
    timer = "/sys/bus/usb-serial/devices/ttyUSB9/latency_timer"
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == timer)
    assert f"; echo 1 > {timer}, and" in describe_latency(
        replace(found, ratio=0.9, uncertainty=0.05), "/dev/ttyUSB9")


@pytest.mark.parametrize("said", ["often", "0.5", "inf", "nan"])
def test_a_patience_that_is_none_is_refused(monkeypatch, said):
    monkeypatch.setenv("TWIN_PATIENCE", said)
    with pytest.raises(LinkError, match=f"TWIN_PATIENCE='{said}': accepted: a number from 1 on"):
        Deadline(1.0)


def test_a_board_that_logs_without_end_is_quoted_a_hundred_times():
    told = []
    session = Session(SimpleNamespace(port="made"), on_event=told.append)
    line = Frame(type=wire.TYPES["LOG"], payload=b"\x1b[2J" + b"x" * 200)
    log = b"\0" + encode_frame(line) + b"\0"
    session.link.read = lambda _wait_s: log * 40
    assert session._await(wire.TYPES["IDENTIFY"], time.monotonic() + 1e-3, early=False) is None
    while len(told) < 101:
        session._await(wire.TYPES["IDENTIFY"], time.monotonic() + 1e-3, early=False)
    session._await(wire.TYPES["IDENTIFY"], time.monotonic() + 1e-3, early=False)
    assert len(told) == 101 and told[-1].endswith("further ones are not shown")
    assert all(len(text) < 520 and text.isprintable() for text in told)
    assert told[0].startswith("board: \\x1b[2Jxxx")


def listed(kind: type[wire.Payload], entry: wire.Payload, count: int, **head: int):
    return lambda payload: kind(count=count, **head).pack() + count * entry.pack()


SAMPLE = wire.RawSample(run=0, layer=0, counter=0, clock=1, value=1)
HEAD = {"reserved": 0, "reserved2": 0, "next": 0}


@pytest.mark.parametrize(("name", "answer", "ask", "said"), [
    ("counters", listed(wire.Listing, wire.Counter(id=1, clock=1, bits=32, name="x"), 10, first=0),
     Session.counters, "the board lists more than 256 counters"),
    ("load", lambda payload: wire.LoadReply(next=100, checksum=0).pack(),
     lambda session: session.load(INPUT), "the board has 100 of 1,000 bytes of the input after 21"),
    ("load", lambda payload: wire.LoadReply(next=len(payload), checksum=0).pack(),
     lambda session: session.load(INPUT * 9), "bytes of the input after"),
    ("samples", lambda payload: listed(wire.SamplesReply, SAMPLE, 29, first=int.from_bytes(
        payload, "little"), **HEAD)(payload),
     lambda session: list(session.samples()), "the board has no end of samples, asked up to"),
    ("samples", listed(wire.SamplesReply, SAMPLE, 1, first=0, **HEAD),
     lambda session: list(session.samples()), "sent samples from 0 on, asked for those from 1"),
    ("samples", listed(wire.SamplesReply, SAMPLE, 1, first=2**32 - 1, **HEAD),
     lambda session: list(session.samples()), "the board has no end of samples"),
])
def test_what_a_board_goes_on_with_for_ever_is_given_up(monkeypatch, name, answer, ask, said):
    monkeypatch.setattr(calibration.collecting.wire.session, "MOST_SAMPLES", 300)
    board = type("Endless", (MadeBoard,), {f"_on_{name}": lambda self, payload: answer(payload)})
    with board() as made, Link(made.port) as link:
        session = Session(link)
        session.open()
        with pytest.raises(LinkError, match=said):
            ask(session)


def test_a_line_that_is_lost_again_and_again_is_given_up(monkeypatch):
    session = Session(SimpleNamespace(port="made"))
    back = []

    def lose(*_: object) -> bytes:
        raise LinkLostError("made is gone")

    monkeypatch.setattr(session, "_exchange", lose)
    monkeypatch.setattr(session, "resume", lambda: back.append(1))
    with pytest.raises(LinkLostError):
        session.identify()
    assert len(back) == calibration.collecting.wire.conversation.MOST_RESUMPTIONS
