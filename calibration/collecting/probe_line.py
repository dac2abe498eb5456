"""Listening to a program that times itself with twin_probe.h and sends after each inference."""

from __future__ import annotations

from collections.abc import Callable

from calibration.collecting.deadline import Deadline, patient
from calibration.collecting.link import Link
from calibration.errors import LinkError

SILENCE_S = 30.0
"""How long an inference is waited for."""

LARGEST_BYTES = 1 << 25


def listen(link: Link, inferences: int, count: Callable[[bytes], int], *,
           silence_s: float = SILENCE_S) -> bytes:
    """Return what a line brings until so many inferences have ended.

    Parameters
    ----------
    link : Link
        Open.
    inferences : int
        How many are wanted whole; that which runs already when listening begins is not counted.
    count : callable
        Says how many are whole in what came.
    silence_s : float
        How long to wait for the next byte.

    Returns
    -------
    bytes
        From the first byte on, the beginning of an inference perhaps missing.

    Raises
    ------
    LinkError
        When nothing of the probe came in time, or far too much of something else.
    """
    heard = bytearray()
    deadline = Deadline(patient(silence_s))
    while len(heard) < LARGEST_BYTES:
        data = link.read(deadline.left_s)
        heard += data
        if data:
            deadline = Deadline(patient(silence_s))
        if any(mark in data for mark in (b"\n", b"\0")) and count(bytes(heard)) \
                >= inferences:
            return bytes(heard)
        if deadline.passed:
            break
    known = count(bytes(heard))
    raise LinkError(
        f"{link.port}: " + (f"{known} of {inferences} inferences came "
                            f"before {patient(silence_s):g} s of silence" if known else
                            f"no inference of twin_probe.h came in {len(heard):,} bytes; is "
                            "TWIN_PROBE_PUT this line, and --baud its rate?"))
