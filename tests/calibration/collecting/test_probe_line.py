"""Listening to a probe ends by itself, whatever the line brings."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from made_patience import MadeClock

from calibration.collecting import deadline, probe_line
from calibration.collecting.probe_line import listen
from calibration.errors import LinkError
from calibration.importers.probe import InferenceCount
from tests.oracles.probe_lines import count_inferences


def tell(words: str) -> bytes:
    total = 0
    for byte in words.encode():
        total ^= byte
    return f"@{words}*{total:02X}\n".encode()


def inference(run: int, layers: int = 2, lost: int = 0) -> bytes:
    started = f"twin 1 begin run={run} hz=1000000 layers=2 lost={lost} total=30 mark=0"
    return b"".join([tell(f"{started} name=ad unit=cycles"), *(
        tell(f"twin 1 layer run={run} place={place} count=10 name=FULLY_CONNECTED")
        for place in range(layers)), tell(f"twin 1 end run={run}")])


@pytest.fixture
def hear(monkeypatch):
    """Listen to what comes, piece by piece, each after so many seconds of a made clock."""
    clock = MadeClock()
    monkeypatch.delenv(deadline.PATIENCE, raising=False)
    monkeypatch.setattr(deadline, "time", clock)
    monkeypatch.setattr(probe_line, "LARGEST_GAP_BYTES", 1 << 18)

    def listen_to(pieces, wanted=2, pause_s=0.01):
        coming = iter(pieces)

        def read(left_s):
            piece = next(coming, b"") if pause_s <= left_s else b""
            clock.now_s += pause_s if piece else left_s
            return piece

        return listen(SimpleNamespace(port="made", read=read), wanted, InferenceCount())

    return listen_to


def endless(piece, changed=lambda piece, number: piece):
    number = 0
    while True:
        yield changed(piece, number)
        number += 1


def test_inferences_are_waited_for(hear):
    whole = inference(0) + inference(1)
    assert hear(whole[place:place + 7] for place in range(0, len(whole), 7)) == whole
    broken = [inference(n, layers=1) for n in range(15)]
    assert hear([*broken, inference(15), *broken, inference(16)]).endswith(inference(16))


@pytest.mark.parametrize(("pieces", "pause_s", "said"), [
    (endless(inference(3, lost=4)), 1, "the last 20 inferences were not whole and 0 of 2 were; the "
                                       "last lost 4 marks: raise TWIN_PROBE_LAYERS"),
    (endless(inference(3, layers=1)), 1, "has 1 of 2 layers"),
    (endless(inference(3).replace(b"count=10", b"count=11", 1)), 1, "has a damaged line"),
    ([inference(0), *[inference(1, layers=1)] * 20], 1, "20 inferences were not whole and 1 of 2"),
    ([inference(0)], 1, "1 of 2 inferences came before 30 s of silence"),
    (endless(b"hello\n"), 1, "came in 1,800 bytes, and none began for 300 s; is TWIN_PROBE_PUT"),
    (endless(bytes(range(1, 256)) * 1000), 1e-3, "no inference of twin_probe.h came in 510,000"),
    (endless(bytes(4096)), 1e-3, "no inference of twin_probe.h came in 262,144 bytes"),
    (endless(tell("twin 1 layer run=0 place=0 count=1 name=x") * 50), 1e-3, "no inference"),
    ([inference(0), *[b"x" * 4096 + b"\n"] * 70], 1e-3, "1 of 2 inferences came, the last 26"),
    (endless(b"", lambda _, n: inference(n)[:-20]), 10, "the last 20 inferences were not whole"),
    ([], 1, "no inference of twin_probe.h came in 0 bytes before 30 s of silence"),
])
def test_a_line_that_never_ends_is_given_up(hear, pieces, pause_s, said):
    with pytest.raises(LinkError) as refused:
        hear(pieces, pause_s=pause_s)
    assert said in str(refused.value) and len(str(refused.value)) < 300


def test_what_is_counted_as_it_comes_is_what_is_there():
    parts = [inference(0), inference(1, layers=1), b"own\n", inference(2), inference(2)[9:]]
    text = b"".join(parts)
    for size in (1, 5, 64, 10_000):
        count = InferenceCount()
        for place in range(0, len(text), size):
            count.feed(text[place:place + size])
        assert (count.started, count.whole, count.broken) == (3, 2, 0)
    assert count_inferences(text) == 2
