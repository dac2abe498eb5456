"""Words people type, recordings beside measurements, and raw bytes for the live page."""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from unittest import mock

from fuzz_door import Door, RefusedError, run_command
from fuzz_shapes import SPLIT, damage_documents, damage_numbers
from made_patience import HANG_S

TIMES_US = (40.0, 30.0)
METERS = {"ppk2": "--supply 2", "joulescope": "--mark-bit 0", "stlink_v3pwr": "--by-shape",
          "ina226": "--shunt 1 --by-shape", "ina228": "--runs 1", "lpm01a": "--supply 2 --by-shape",
          "otii": "--supply 2 --runs 1",
          "scope": "--supply 2 --shunt 1 --column CH1 --mark-column D0"}
"""Words beside the name of each meter; a recording of one is a seed of "energy"."""


@lru_cache(maxsize=1)
def make_recordings() -> Mapping[str, bytes]:
    """One inference of two layers, the mark moving at each and at the end, by meter."""
    rows = [(5.0 * place, 20.0 if 20 <= place < 34 else 1.0,
             int(20 <= place < 28 or place >= 34)) for place in range(60)]
    window = [(us, ma, int(100 <= us < 170)) for us, ma, _ in rows]

    def table(head: str, row: str, plan: list[tuple[float, float, int]]) -> bytes:
        return (head + "".join(row.format(ms=us / 1e3, s=us / 1e6, us=us, ma=ma, ua=ma * 1e3,
                                          a=ma / 1e3, na=ma * 1e6, mark=mark)
                               for us, ma, mark in plan)).encode()

    stream = b"".join(b"%d-06\n" % int(ma * 1e3) for _, ma, _ in rows)
    return {
        "ppk2": table("Timestamp(ms),Current(uA),D0-D7\n", "{ms:.3f},{ua},{mark}0000000\n", rows),
        "joulescope": table("#time,current,voltage,power,gpi0\n",
                            "{s:.6f},{a},2.0,{a},{mark}\n", rows),
        "stlink_v3pwr": table("Time (ms);Current (nA);Voltage (mV)\n", "{ms:.3f};{na};2000\n",
                              rows),
        "ina226": table("t (us),shunt (mV),bus (mV)\n", "{us},{ma},2000\n", rows),
        "ina228": table("time(ms);power(mW);mark\n", "{ms:.3f};{ma};{mark}\n", window),
        "lpm01a": b"TimeStamp: 000s 001ms, buff 00%\n" + stream
                  + b"TimeStamp: 000s 002ms, buff 00%\n",
        "otii": table("Timestamp,Main current,Main voltage,GPI1\n", "{s:.6f},{a},2.0,{mark}\n",
                      window),
        "scope": table("TIME(s),CH1(mV),D0(V)\n", "{s:.6f},{ma},{mark}\n", rows)}


def list_recorded() -> dict[str, bytes]:
    """Files of a folder: a measurement of two layers in m/, and a recording of each meter."""
    from fuzz_files import scratch

    from calibration.measurement.measurement import Measurement, write_measurement
    from calibration.measurement.sample import Header, Sample

    made = Measurement(
        header=Header(kind="measured", model="m", board="b", runtime="firmware", source="made",
                      temperature="warm", clocks_hz=(("cpu", 1e8),)),
        samples=tuple(Sample(run=0, layer=layer, counter="cpu_cycles", clock="cpu", unit="cycles",
                             value=100 * time_us) for layer, time_us in enumerate(TIMES_US)))
    with scratch() as folder:
        where = write_measurement(folder / "m", made)
        found = {f"m/{path.name}": path.read_bytes() for path in where.iterdir()}
    return found | {f"{name}.csv": content for name, content in make_recordings().items()}


def _recorded() -> list[bytes]:
    found = list_recorded()
    return [SPLIT.join((found["m/header.json"], found["m/samples.jsonl"],
                        f"--meter {name} {METERS[name]}".encode(), found[f"{name}.csv"]))
            for name in METERS]


def _energy(path: Path) -> None:
    """Integrate a recording over the marks of a measurement."""
    from fuzz_files import scratch

    header, samples, words, recording = (*path.read_bytes().split(SPLIT, 3), b"", b"", b"")[:4]
    with scratch() as folder:
        (folder / "m").mkdir()
        for name, content in (("m/header.json", header), ("m/samples.jsonl", samples),
                              ("recording.csv", recording)):
            (folder / name).write_bytes(content)
        run_command("energy", str(folder / "m"), str(folder / "recording.csv"), *_words(words),
                    "-o", str(folder / "o"))


def _words(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace").replace("\0", "")
    return [word for word in text.split() if "/" not in word and not word.startswith("-o")
            and word not in ("--output", "--keep")]


def _damage_recorded(dice: random.Random, data: bytes) -> bytes:
    parts = data.split(SPLIT, 3)
    if (place := dice.randrange(5)) < 2:
        parts[place] = damage_documents(dice, parts[place])
    else:
        parts[min(place, 3)] = damage_numbers(dice, parts[min(place, 3)])
    return SPLIT.join(parts)


AT = "-b nucleo_l4r5zi"
TYPED = tuple(line.encode() for line in (
    f"plan ad {AT} --runtime cmsis-nn@6.0 --clock 80MHz", f"plan ad {AT} --weights sram1",
    f"whatif ad {AT} --set memories.flash.read_bytes=16 --set clocks.cpu.frequency_hz=26MHz",
    f"whatif ad {AT} --set placement.weights=sram1 --set caches.art_d.size_bytes=2KiB",
    f"predict ad {AT} --set runtime=tflm-reference --set load.dma1.bytes_per_second=8e6",
    "whatif ad -b nucleo_h7a3zi_q --set caches.l1d.size_bytes=32KiB --set caches.l1d.ways=2",
    f"check ad {AT} --max-ms 5 --max-ram 64KiB --max-uj 2mJ", f"cache ad {AT} --weights sram1",
    f"tune ad {AT} --tiles 1,2 --levels O2 --best 1 --virtual unicorn-m4"))
"""Lines of words, by verb."""

_MANY = re.compile(r":\d{3,7}\b")


def _typed(path: Path) -> None:
    """Run a line that was typed."""
    verbs = {line.split()[0].decode() for line in TYPED}
    words = [_MANY.sub(":99", word) for word in _words(path.read_bytes())]
    if words and words[0] in verbs:
        with mock.patch("twin.program.image.tuning._run", side_effect=RefusedError("not run here")):
            run_command(*words)


@lru_cache(maxsize=1)
def _listening() -> int:
    """Serve the live page to this process for as long as it lasts; return the port."""
    from twin.api.live.app import Service
    from twin.api.live.server import listen, run

    opened, ready = listen("127.0.0.1", 0), threading.Event()
    with contextlib.suppress(ValueError):  # signals are the main thread's
        threading.Thread(target=run, args=(Service(), opened, "127.0.0.1", ready.set),
                         daemon=True).start()
    if not ready.wait(60):
        raise RuntimeError("the server does not begin")
    return int(opened.getsockname()[1])


def _exchange(data: bytes, pieces: random.Random) -> bytes:
    """Send bytes in pieces of any size; return what comes back until it ends or falls silent."""
    told = b""
    with socket.create_connection(("127.0.0.1", _listening()), timeout=HANG_S) as line:
        with contextlib.suppress(ConnectionError):
            place = 0
            while place < len(data):
                size = pieces.choice((1 << 16, 1 << 16, max(len(data) // 3, 1)))
                line.sendall(data[place:place + size])
                place += size
        with contextlib.suppress(ConnectionError, TimeoutError):
            line.settimeout(1.0)
            while part := line.recv(1 << 16):
                told += part
                line.settimeout(0.05)
    return told


def _socket(path: Path) -> None:
    """Send raw bytes to the live page, then ask whether it still answers."""
    data = path.read_bytes()
    told = _exchange(data, random.Random(data[:64]))
    if told and not told.startswith(b"HTTP/1.1 "):
        raise RuntimeError(f"answered with {told[:80]!r}")
    status = int(told[9:12] or 0)
    if status >= 500 and status != 503:
        raise RuntimeError(f"{status}: {told[:300]!r}")
    if (alive := _exchange(GET, random.Random(0)))[9:12] != b"200":
        raise RuntimeError(f"no answer any more: {alive[:80]!r}")
    if status >= 400:
        head, _, body = told.partition(b"\r\n\r\n")
        if b"application/json" in head and head.count(b"HTTP/1.1 ") == 1:
            with contextlib.suppress(ValueError):  # of several answers
                raise RefusedError(json.loads(body)["error"])
        raise RefusedError(f"status {status}")


GET = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def _asked() -> list[bytes]:
    """Requests: the page, the catalogue, a prediction, a file, and two in one piece."""
    def post(path: str, body: bytes, kind: str = "application/json") -> bytes:
        return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

    state = {"model": "ad", "board": "nucleo_l4r5zi", "set": {
        "clocks.cpu.frequency_hz": "77MHz"}}
    asked = json.dumps({"state": state}).encode()
    slid = json.dumps({"state": state, "path": "clocks.cpu.frequency_hz"}).encode()
    named = json.dumps({"variants": [{"label": "a", "state": state}]}).encode()
    files = "application/octet-stream"
    chunked = (b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
               b"\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(asked), asked))
    return [GET, GET.replace(b"/ ", b"/../live.js "), GET.replace(b"/ ", b"/api/catalogue "),
            post("/api/predict", asked), post("/api/reprice", slid), post("/api/export", named),
            post("/api/models?name=x.json", b'{"name": "x"}', files),
            post("/api/boards?name=x.yaml", b"schema: 1\n", files), chunked,
            GET.replace(b"Connection: close\r\n", b"") + post("/api/predict", asked)]


TARGETS = (b"/../../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"//live.js", b"/live.js/..", b"*",
           b"http://localhost/", b"/api/", b"/api/models?name=../../x.json", b"/api/predict/",
           b"/%00", b"/\xff", b"/live.html", b"/" + b"a" * 40_000, b"/?" + b"q" * 5000,
           b"/api/models?name=" + b"%1b" * 300 + b".tflite", b"/api/boards?name=%3Cscript%3E.yaml")
METHODS = (b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"PATCH", b"get", b"PRI")
HEADS = (b"Host: evil.example", b"Host: localhost, evil", b"Origin: http://evil.example",
         b"Content-Length: 99999999999", b"Content-Length: -1", b"Content-Length: 1e3",
         b"Content-Length: 3", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked",
         b"Expect: 100-continue", b"Upgrade: websocket\r\nConnection: Upgrade",
         b"Upgrade: h2c", b"X: " + b"y" * 70_000, b"\r\n".join([b"X: y"] * 3000), b" folded: x",
         b"Content-Encoding: gzip", b"Content-Type: text/plain", b"Range: bytes=0-1,5-",
         b"Sec-Fetch-Site: cross-site", b"Host:", b"\0: x", b"Connection: keep-alive")


def _damage_asked(dice: random.Random, data: bytes) -> bytes:
    """Change a request's method, path, heads or body, whose length is told right or not."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *heads = head.split(b"\r\n")
    method, target, version = first.split(b" ", 2)
    for _ in range(dice.choice((1, 1, 2))):
        change = dice.randrange(5)
        if change == 0:
            target = dice.choice(TARGETS)
        elif change == 1:
            method = dice.choice(METHODS)
        elif change == 2:
            place = dice.randrange(len(heads) + 1)
            heads[place:place + dice.randrange(2)] = [dice.choice(HEADS)]
        elif change == 3:
            version = dice.choice((b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b"", b"HTTP/1.1 x"))
        elif body[:1] == b"{":
            with contextlib.suppress(ValueError):
                body = damage_documents(dice, body)
                heads = [b"Content-Length: %d" % len(body) if one.startswith(b"Content-Length")
                         else one for one in heads]
    return b"\r\n".join([b" ".join((method, target, version)), *heads, b"", body])


COMMANDS: Mapping[str, Door] = {
    "energy": Door(seeds=_recorded, enter=_energy, reshape=_damage_recorded),
    "typed": Door(seeds=lambda: list(TYPED), enter=_typed, reshape=damage_numbers),
    "line-socket": Door(seeds=_asked, enter=_socket, reshape=_damage_asked),
}
