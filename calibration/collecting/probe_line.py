"""Listening to a program that times itself with twin_probe.h and sends after each inference."""

from __future__ import annotations

from typing import Protocol

from calibration.collecting.deadline import Deadline
from calibration.collecting.link import Link
from calibration.errors import LinkError

SILENCE_S = 30.0
"""How long an inference is waited for."""

TALK_S = 300.0
"""How long what is no inference is listened to."""

LARGEST_BYTES = 1 << 25
LARGEST_GAP_BYTES = 1 << 22
"""Of what comes before an inference is whole, or between two that are."""

MOST_BROKEN = 20
"""Inferences one after the other of which none comes whole."""


class Count(Protocol):
    """Counts inferences in what it is fed: `calibration.importers.probe.InferenceCount`."""

    started: int
    whole: int
    broken: int
    lack: str

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""


def listen(link: Link, inferences: int, count: Count) -> bytes:
    """Return what a line brings until so many inferences have ended.

    Parameters
    ----------
    link
        Open.
    inferences
        How many are wanted whole; that which runs already when listening begins is not counted.
    count
        Says how many began, were whole, or were not, in what came.

    Returns
    -------
    bytes
        From the first byte on, the beginning of an inference perhaps missing.

    Raises
    ------
    LinkError
        When nothing of the probe came in time, far too much of something else, or one broken
        inference after the other.
    """
    heard, whole_bytes = bytearray(), 0
    silence, talk = Deadline(SILENCE_S), Deadline(TALK_S)
    while True:
        data = link.read(min(silence.left_s, talk.left_s))
        started, whole = count.started, count.whole
        heard += data
        count.feed(data)
        if count.whole >= inferences:
            return bytes(heard)
        if data:
            silence = Deadline(SILENCE_S)
        if count.started != started:
            talk = Deadline(TALK_S)
        if count.whole > whole:
            whole_bytes = len(heard)
        why = _give_up(count, inferences, silence, talk, len(heard), len(heard) - whole_bytes)
        if why:
            raise LinkError(f"{link.port}: {why}")


def _give_up(count: Count, inferences: int, silence: Deadline, talk: Deadline, heard_bytes: int,
             gap_bytes: int) -> str:
    """Return why nothing more is to be expected; empty where there is."""
    known = (f"{count.whole} of {inferences} inferences came" if count.whole
             else f"no inference of twin_probe.h came in {heard_bytes:,} bytes")
    if count.broken >= MOST_BROKEN:
        return (f"the last {count.broken} inferences were not whole and {count.whole} of "
                f"{inferences} were; the last {count.lack}")
    if silence.passed:
        why = f"{known} before {silence.wait_s:g} s of silence"
    elif talk.passed:
        why = f"{known}, and none began for {talk.wait_s:g} s"
    elif gap_bytes >= LARGEST_GAP_BYTES or heard_bytes >= LARGEST_BYTES:
        why = f"{known}, the last {gap_bytes:,} bytes without any" if count.whole else known
    else:
        return ""
    return (f"{why}; the last that began {count.lack}" if count.broken else
            why if count.whole else f"{why}; is TWIN_PROBE_PUT this line, and --baud its rate?")
