"""Boards and browsers that misbehave: what comes over a line, as whole commands meet it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

from fuzz_door import Door, RefusedError, run_command
from fuzz_shapes import damage_documents, damage_numbers


@contextlib.contextmanager
def in_haste(share: float) -> Iterator[None]:
    """Wait a share of the time for an answer: these boards answer at once or never."""
    with mock.patch("calibration.collecting.deadline.patient", lambda wait_s: share * wait_s), \
            mock.patch.multiple("calibration.collecting.wire.conversation",
                                FIRST_ATTEMPT_S=0.02, LONGEST_ATTEMPT_S=0.02 + share,
                                SHORTEST_ATTEMPT_S=0.01):
        yield


@contextlib.contextmanager
def talking(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Give the port of a board that talks so to who connects."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(10)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                with client:
                    client.settimeout(5)
                    talk(client)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"socket://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)


def damage_frames(dice: random.Random, data: bytes) -> bytes:
    """Damage a probe's lines or frames and keep the checksums right: numbers, order, repeats."""
    import struct

    from fuzz_files import _PROBE_LINE, _checked

    from calibration.collecting.wire.frames import Frame, FrameReader, encode_frame

    if b"\0" not in data:
        lines = damage_numbers(dice, data).splitlines(keepends=True)
        _shuffle(dice, lines)
        return b"".join(_PROBE_LINE.sub(_checked, line) for line in lines)
    bodies = [frame.payload for frame in FrameReader().feed(data)]
    for _ in range(dice.choice((1, 1, 3))):
        place = dice.randrange(len(bodies))
        body = bytearray(bodies[place])
        if len(body) >= 6 and dice.random() < 0.7:
            at = dice.randrange(2, len(body) - 3)
            body[at:at + 4] = struct.pack("<I", dice.choice(
                (0, 1, 10**9, 2**31, 2**32 - 1, dice.getrandbits(32))))
        else:
            body = body[:dice.randrange(len(body) + 1)]
        bodies[place] = bytes(body)
    _shuffle(dice, bodies)
    return b"\0".join([b"", *(encode_frame(Frame(type=0xA0, sequence=place, payload=body))
                              for place, body in enumerate(bodies)), b""])


def _shuffle(dice: random.Random, parts: list[bytes]) -> None:
    change = dice.randrange(5)
    if change == 0:
        dice.shuffle(parts)
    elif change == 1:
        parts *= dice.choice((2, 200))
    elif change == 2:
        parts[:] = [part for one in parts for part in (one, dice.choice(parts))]


def _probe_line(path: Path) -> None:
    """Send what a probe sends; nothing of it is asked for."""
    data = path.read_bytes()

    def talk(client: socket.socket) -> None:
        pieces = random.Random(data[:64])
        while not over.wait(0.002):  # what came before the line was open is dropped
            place = 0
            while place < len(data):
                size = pieces.choice((3, 64, 4096))
                client.sendall(data[place:place + size])
                place += size

    over = threading.Event()
    with talking(talk) as port, in_haste(0.01):
        try:
            run_command("measure", "ad", "-b", "nucleo_l4r5zi", "--port", port, "--probe",
                        "--runs", "2", "-o", str(_fresh(path)))
        finally:
            over.set()


def _fresh(path: Path) -> Path:
    import shutil

    folder = path.parent / "measured"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _probe_seeds() -> list[bytes]:
    from fuzz_files import make_probe_logs

    return make_probe_logs((b"FULLY_CONNECTED",) * 10)


@lru_cache(maxsize=1)
def _ad() -> Any:
    import twin

    return twin.read_model("ad")


def _measure_line(path: Path) -> None:
    """Answer as a board does, with the answers damaged as the input says: place, kind of damage."""
    from made_board import MadeBoard

    from calibration.collecting.wire import payloads as wire

    data = path.read_bytes() or b"\1"
    dice = random.Random(data)

    def spoil(line: bytes) -> bytes:
        if dice.random() > 0.15:
            return line
        kind = dice.randrange(6)
        if kind == 0:
            return line[:dice.randrange(len(line) + 1)]
        if kind == 1:
            return line * dice.choice((2, 30))
        if kind == 2:
            return data + line
        if kind == 3:
            return b""
        changed = bytearray(line)
        for _ in range(dice.randint(1, 4)):
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        return bytes(changed)

    class Spoilt(MadeBoard):
        def _answer(self, frame: Any) -> tuple[int, bytes]:
            kind, payload = super()._answer(frame)
            if dice.random() < 0.05 and payload:  # with its checksum right
                changed = bytearray(payload)
                at = dice.randrange(len(changed))
                changed[at:at + 4] = dice.choice((b"\xff" * 4, bytes(4), b"\x1b[2J", b"\0\xca\x9a;")
                                                 )[:len(changed) - at]
                payload = bytes(changed)
            return kind, payload

        def _on_identify(self, payload: bytes) -> bytes:
            told = wire.Identity.parse(super()._on_identify(payload))
            return dataclasses.replace(told, model_sha256=bytes.fromhex(_ad().sha256)).pack()

        def _send(self, line: bytes) -> None:
            super()._send(spoil(line))

    with mock.patch.multiple("made_board", INPUT_BYTES=640, LAYERS=10, CAPACITY=400), \
            Spoilt(cycles_of=lambda run, layer, cold: 1000 + layer) as board, in_haste(0.03):
        if data[-1] % 4 == 0:
            run_command("firmware", "run", "ad", "-b", "nucleo_l4r5zi", "--device", board.port,
                        "--image", str(path))
        else:
            run_command("measure", "ad", "-b", "nucleo_l4r5zi", "--port", board.port, "--runs",
                        "2", "--warmup", "1", "-o", str(_fresh(path)))


@lru_cache(maxsize=1)
def _client() -> Any:
    from starlette.testclient import TestClient

    from twin.api.live.app import Service, make_app

    client = TestClient(make_app(Service()), base_url="http://localhost")
    client.__enter__()
    return client


def _serve(path: Path) -> None:
    """Ask the live page: the path of the interface, then the body."""
    what, _, body = path.read_bytes().partition(b"\n")
    name = "".join(chr(byte) for byte in what[:200] if 0x20 < byte < 0x7F) or "predict"
    answer = _client().post(f"/api/{name}", content=body,
                            headers={"content-type": "application/json"})
    if answer.status_code >= 500:
        raise RuntimeError(f"{answer.status_code}: {answer.text[:200]}")
    if answer.status_code >= 400:
        told = answer.json()["error"] if answer.text[:1] == "{" else answer.text
        raise RefusedError(told)


def _asked() -> list[bytes]:
    state = {"model": "kws", "board": "nucleo_l4r5zi", "set": {
        "clocks.cpu.frequency_hz": "77MHz", "placement.weights": "sram"}}
    return [b"predict\n" + json.dumps({"state": state, "controls": True}).encode(),
            b"predict\n" + json.dumps({"state": state | {"temperature": "cold"}}).encode()]


def _damage_asked(dice: random.Random, data: bytes) -> bytes:
    what, _, body = data.partition(b"\n")
    return what + b"\n" + damage_documents(dice, body)


LINES: Mapping[str, Door] = {
    "line-probe": Door(seeds=_probe_seeds, enter=_probe_line, reshape=damage_frames),
    "line-board": Door(seeds=lambda: [os.urandom(8)], enter=_measure_line),
    "line-page": Door(seeds=_asked, enter=_serve, reshape=_damage_asked),
}
