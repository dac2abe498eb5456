"""The text commands: a runner's dialogue with a made board, and with the real firmware."""

from __future__ import annotations

import os
import select
import threading
import tty

import pytest

pytest.importorskip("serial", reason="needs the boards extra")

from made_firmware import build
from made_patience import HANG_S
from made_runner import TextBoard

from calibration.collecting.link import Link
from calibration.errors import BoardRefusedError, LinkError, LinkTimeoutError
from calibration.virtual_board import launch


class MadeTextBoard:
    """Answers as the benchmark's firmware does, one inference taking 50 ms of its clock."""

    def __init__(self, silent: bool = False) -> None:
        self.silent, self.data, self.expected, self.now_us = silent, bytearray(), 0, 4_294_900_000
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        tty.setraw(self._master)
        self.port = os.ttyname(self._slave)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> MadeTextBoard:
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._ended.set()
        self._thread.join(HANG_S)
        os.close(self._master)
        os.close(self._slave)

    def _serve(self) -> None:
        pending = b""
        os.write(self._master, b"m-timestamp-mode-performance\r\nm-init-done\r\nm-ready\r\n")
        while not self._ended.is_set():
            if not select.select([self._master], [], [], 0.02)[0]:
                continue
            pending += os.read(self._master, 4096)
            while b"%" in pending:
                command, _, pending = pending.partition(b"%")
                if command and not self.silent:
                    lines = [*self._answer(command.decode().split(" ")), "m-ready"]
                    os.write(self._master, "".join(f"{one}\r\n" for one in lines).encode())

    def _lap(self) -> str:
        return f"m-lap-us-{self.now_us % (1 << 32)}"

    def _answer(self, words: list[str]) -> list[str]:
        if words[0] == "name":
            return ["m-name-dut-[made]"]
        if words[0] == "profile":
            return ["m-profile-[ULPMark for tinyML Firmware V0.0.1]", "m-model-[kws01]"]
        if words[:2] == ["db", "load"]:
            self.data, self.expected = bytearray(), int(words[2])
            return [f"m-[Expecting {words[2]} bytes]"]
        if words[0] == "db":
            self.data += bytes.fromhex(words[1])
            return ["m-load-done"] if len(self.data) == self.expected else []
        if words[0] == "infer":
            before = self._lap()
            self.now_us += 50_000 * int(words[1])
            return [f"m-warmup-start-{words[2]}", "m-warmup-done", f"m-infer-start-{words[1]}",
                    before, self._lap(), "m-infer-done", "m-results-[0.25,0.75]"]
        return [f"e-[Unknown command: {words[0]}]"]


def test_a_runners_dialogue():
    with MadeTextBoard() as made, Link(made.port) as link:
        board = TextBoard(link)
        assert (board.name(), board.model()) == ("made", "kws01")
        data = bytes(range(100))
        board.load(data)
        assert bytes(made.data) == data
        windows = board.windows(count=3, least_s=1.0)
        # 50 ms each, the microsecond counter wrapping on the way; 1 s asks for 22 of them
        assert [w.latency_us for w in windows] == [50_000.0] * 3
        assert windows[0].inferences == 22 and windows[0].results == (0.25, 0.75)
        with pytest.raises(BoardRefusedError, match="Unknown command: nonsense"):
            board.command("nonsense")


def test_silence_and_wrong_sizes_end_in_time(monkeypatch):
    monkeypatch.setenv("TWIN_PATIENCE", "1")
    with MadeTextBoard(silent=True) as made, Link(made.port) as link, \
            pytest.raises(LinkTimeoutError, match="said nothing"):
        TextBoard(link, timeout_s=0.3).name()
    monkeypatch.undo()
    with MadeTextBoard() as made, Link(made.port) as link:
        made._answer = lambda words: []
        with pytest.raises(LinkError, match="did not confirm"):
            TextBoard(link).load(b"12")
        with pytest.raises(LinkError, match="energy mode"):
            TextBoard(link).infer(1, 0)


def test_the_firmware_speaks_text_until_a_session_begins(tmp_path):
    with launch("host", build("host", tmp_path)) as host, Link(host.port) as link:
        board = TextBoard(link)
        link.write(b"half a comm")
        assert board.name()
        with pytest.raises(BoardRefusedError, match="Unknown command: nonsense"):
            board.command("nonsense")
        from calibration.collecting.wire.session import Session

        session = Session(link)
        session.open()
        link.write(b"name%")
        assert session.identify().model == "made"
        assert b"m-name" not in session.reader.text
        session.stop()
        assert board.name()
