"""How a measurement survives its line: `python -m benchmarks.reliability [--frames 1000000]`.

The real firmware (host port) behind a relay that loses, flips and repeats bytes. Every payload that
is accepted is compared with what it must be; the cable is pulled and put back; and samples that
came over the bad line are compared with those of a clean one.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibration.collecting.link import Link
from calibration.collecting.wire import payloads as wire
from calibration.collecting.wire.frames import PAYLOAD_MAX
from calibration.collecting.wire.session import Session
from calibration.virtual_board.host import run_host
from tests.made.made_relay import Faults, Relay
from tests.oracles.board_memory import read_memory
from twin.network.zoo import build
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port

RATE = 1e-4
CUTS = 50
MOST_RETURN_S = 1.0
READ_BYTES = PAYLOAD_MAX - 8


def run_frames(session: Session, data: bytes, frames: int) -> dict[str, Any]:
    """Ask until so many frames have come or gone; compare each answer with what it must be."""
    random = np.random.default_rng(7)
    begin, sent, wrong = time.monotonic(), 0, 0
    trips = []
    while sent < frames:
        kind = int(random.integers(3))
        start = time.monotonic()
        if kind == 0:
            status = session.ask("STATUS", wire.Status)
            wrong += status.session != session.number or status.loaded_bytes != len(data)
        elif kind == 1:
            offset = int(random.integers(0, len(data) - 1))
            length = int(random.integers(1, min(READ_BYTES, len(data) - offset) + 1))
            wrong += read_memory(session, "INPUT", offset, length) != data[offset:offset + length]
        else:
            offset = int(random.integers(0, len(data) - 1))
            piece = data[offset:offset + PAYLOAD_MAX - 4]
            reply = session.ask("LOAD", wire.LoadReply, offset.to_bytes(4, "little") + piece)
            if reply.next != len(data):  # writing in the middle sets the end there: fill up again
                session.load(data)
        trips.append(time.monotonic() - start)
        sent += 2
    took = time.monotonic() - begin
    return {"frames": sent, "wrong_payloads": wrong, "retries": session.retries,
            "dropped_by_host": dict(session.reader.bad), "seconds": round(took, 1),
            "frames_per_second": round(sent / took),
            "longest_request_s": round(max(trips), 3)}


def run_cuts(relay: Relay, session: Session, cuts: int) -> dict[str, Any]:
    """Pull the cable, put it back, and time until the next answer."""
    times = []
    for _ in range(cuts):
        relay.cut()
        back: list[float] = []

        def restore(back: list[float] = back) -> None:
            relay.restore()
            back.append(time.monotonic())

        threading.Timer(0.1, restore).start()
        session.ask("STATUS", wire.Status)
        times.append(time.monotonic() - back[0])
    return {"cuts": cuts, "resumed": session.resumptions,
            "median_return_s": round(statistics.median(times), 3),
            "longest_return_s": round(max(times), 3)}


def run_samples(session: Session, data: bytes, runs: int) -> list[tuple[int, int, int, int]]:
    """Make runs and return what identifies every sample, and its checksum where it is one."""
    session.load(data)
    session.configure(flags=wire.CONFIG_FLAGS["LAYERS"])
    made = 0
    found = []
    while made < runs:
        made += session.run(made, runs - made, timeout_s=30).done
        for _, samples in session.samples(len(found)):
            found += [(s.run, s.layer, s.counter, s.value if s.counter else 0) for s in samples]
    return found


def on_relay(image: Path, faults: Faults, work: Callable[[Relay, Session], Any]) -> Any:
    """Run the firmware behind a relay and do some work with it."""
    with run_host(image) as (host, _), Relay(host.port, faults) as relay, Link(relay.port) as link:
        session = Session(link)
        session.open(10.0)
        result = work(relay, session)
        if isinstance(result, dict):
            result["spoilt"] = {kind: relay.to_board.counts[kind] + relay.to_host.counts[kind]
                                for kind in relay.to_board.counts}
        session.stop()
        return result


def measure(frames: int, cuts: int) -> dict[str, Any]:
    """Return every figure."""
    with tempfile.TemporaryDirectory() as folder:
        image = build_firmware(build("kws"), load_port("host"), folder).image
        data = np.random.default_rng(1).bytes(490)

        def campaign(relay: Relay, session: Session) -> dict[str, Any]:
            session.load(data)
            return run_frames(session, data, frames)

        found = {
            "rate_per_byte": RATE, "machine": platform.machine(),
            "bad line": on_relay(image, Faults(drop=RATE, flip=RATE, duplicate=RATE, seed=1),
                                 campaign),
            "pulled cable": on_relay(image, Faults(),
                                     lambda relay, session: run_cuts(relay, session, cuts)),
        }
        clean = on_relay(image, Faults(), lambda _, session: run_samples(session, data, 200))
        dirty = on_relay(image, Faults(drop=RATE, flip=RATE, duplicate=RATE, seed=2),
                         lambda _, session: run_samples(session, data, 200))
        found["samples"] = {"clean": len(clean), "bad line": len(dirty),
                            "equal": sorted(clean) == sorted(dirty)}
    return found


def main() -> None:
    """Print the figures and keep them with their date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--cuts", type=int, default=CUTS)
    parser.add_argument("--keep", action="store_true", help="write results/<date>.json")
    asked = parser.parse_args()
    found = measure(asked.frames, asked.cuts)
    text = json.dumps(found, indent=2)
    print(text)
    if asked.keep:
        folder = Path(__file__).parent / "results"
        folder.mkdir(exist_ok=True)
        (folder / f"{time.strftime('%Y-%m-%d')}.json").write_text(text + "\n")
    assert found["bad line"]["wrong_payloads"] == 0
    assert found["pulled cable"]["longest_return_s"] < MOST_RETURN_S
    assert found["samples"]["equal"]


if __name__ == "__main__":
    main()
