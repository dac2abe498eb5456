"""A conversation with real firmware, written down and played back byte for byte.

    python tests/replay/tape.py PORT ELF TAPE      record one from a virtual board
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from calibration.collecting.collector import Campaign
from calibration.collecting.plan import make_plans
from calibration.collecting.wire.session import Session
from calibration.errors import LinkTimeoutError

SESSION = 0x5EED
RUNS = 2


class Recorder:
    """A link that notes what goes each way."""

    def __init__(self, link) -> None:
        self.link, self.port, self.byte_s = link, "tape", 0.0
        self.turns: list[dict[str, str]] = []

    def write(self, data: bytes) -> None:
        self.turns.append({"host": data.hex(), "board": ""})
        self.link.write(data)

    def read(self, timeout_s: float) -> bytes:
        data = self.link.read(timeout_s)
        if self.turns:
            self.turns[-1]["board"] += data.hex()
        return data


class Player:
    """A link whose board says what it said then, if the host says what it said then."""

    def __init__(self, path: Path) -> None:
        self.port, self.byte_s = "tape", 0.0
        self.turns = json.loads(path.read_text())["turns"]
        self.place = 0
        self._waiting = b""

    def write(self, data: bytes) -> None:
        expected = self.turns[self.place]["host"]
        assert data.hex() == expected, f"turn {self.place}: the host says something else"
        self._waiting = bytes.fromhex(self.turns[self.place]["board"])
        self.place += 1

    def read(self, timeout_s: float) -> bytes:
        if not self._waiting and self.place < len(self.turns):
            raise LinkTimeoutError("the tape has no answer here")
        data, self._waiting = self._waiting, b""
        return data


def converse(link, folder: Path):
    """One campaign with everything that is random fixed; return what was measured."""
    session = Session(link, number=SESSION)
    session._sequence = 0
    session.open()
    campaign = Campaign(session=session, folder=folder, board="made", model="made",
                        runtime="firmware")
    campaign.prepare()
    campaign.run_s = 0.0
    plans = make_plans(campaign.identity, campaign.counters, runs=RUNS, warmup=1, adaptive=False)
    measured = campaign.collect(plans[-1])
    session.stop()
    return measured


def record(port: str, image: str, target: str) -> None:
    """Write a tape of a conversation with a virtual board."""
    import tempfile

    from calibration.collecting.link import Link
    from calibration.virtual_board import launch

    with launch(port, image) as board, Link(board.port) as link, \
            tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(link)
        measured = converse(recorder, Path(folder))
    cycles = [sample.value for sample in measured.samples if sample.counter == "cpu_cycles"]
    lines = ",\n".join(json.dumps(turn) for turn in recorder.turns)
    Path(target).write_text(f'{{"port": "{port}", "cycles": {json.dumps(cycles)}, "turns": [\n'
                            f"{lines}]}}\n")


if __name__ == "__main__":
    record(*sys.argv[1:])
