"""Buffers spread over several memories: which leave the best one when not all have room in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twin.deployment.memories import Buffer

_COMING_BACK = 32
"""Of the buffers that left, so many are tried again."""


def spread_buffers(buffers: Sequence[Buffer], rooms: Sequence[int],
                   lay_out: Callable[[Sequence[Buffer]], int]) -> tuple[int, ...]:
    """Give every buffer one of several memories and a place in it.

    Parameters
    ----------
    buffers : sequence of Buffer
        Their `offset_bytes` is set; offsets go on from one memory to the next.
    rooms : sequence of int
        Bytes of each memory, best first; the last takes what is left.
    lay_out : callable
        Sets offsets of some buffers, from 0 on, and returns the bytes they take.

    Returns
    -------
    tuple of int
        Bytes used of each memory.

    Notes
    -----
    The largest buffers leave a memory until the others have room in it; then those come back, again
    the largest first, that still have. How ST's tools choose is not known.
    """
    left = list(buffers)
    parts: list[int] = []
    for room in rooms[:-1]:
        kept, out = _fill(left, room, lay_out)
        parts.append(_move(kept, sum(parts), lay_out))
        left = out
    parts.append(_move(left, sum(parts), lay_out))
    return tuple(parts)


def _fill(buffers: Sequence[Buffer], room: int, lay_out: Callable[[Sequence[Buffer]], int],
          ) -> tuple[list[Buffer], list[Buffer]]:
    """Buffers that stay in a memory, and those that leave it."""
    order = sorted(buffers, key=lambda one: (-one.size_bytes, one.first))
    fewest, most = sum(one.size_bytes > room for one in order), len(order)
    while fewest < most:
        leaving = (fewest + most) // 2
        fewest, most = ((fewest, leaving) if lay_out(order[leaving:]) <= room
                        else (leaving + 1, most))
    kept, out = order[fewest:], order[:fewest]
    for one in [one for one in out if one.size_bytes <= room][:_COMING_BACK]:
        if lay_out([*kept, one]) <= room:
            kept.append(one)
            out.remove(one)
    return kept, out


def _move(buffers: Sequence[Buffer], start: int,
          lay_out: Callable[[Sequence[Buffer]], int]) -> int:
    used = lay_out(buffers)
    for one in buffers:
        one.offset_bytes += start
    return used
