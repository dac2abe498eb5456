"""Loops by name, with the instructions and the accesses of each at its place.

An access states its step in each loop by the loop's name; how often instructions run follows from
the loops around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from hwmodels.kernel import Access, Block, Blocks, Guard, Loop, Nest, Nests
from twin.network.graph import Shape


class Bound(NamedTuple):
    """An access happens only where 0 <= offset + sum(steps[loop] * index) < limit."""

    offset: int
    limit: int
    steps: dict[str, int]


class Move(NamedTuple):
    """One load or store; steps in bytes by loop name."""

    operand: str
    write: bool
    width_bytes: int
    offset_bytes: int
    bounds: tuple[Bound, ...]
    steps_bytes: dict[str, int]


class Step(NamedTuple):
    """Instructions at a place in the loops."""

    name: str
    code: str
    closes: bool
    cause: str | None


class Repeat(NamedTuple):
    """A named loop over instructions, moves and inner loops."""

    name: str
    extent: int
    body: tuple[Any, ...]


def bound(offset: int, limit: int, /, **steps: int) -> Bound:
    """Return a guard; steps by loop name.

    Parameters
    ----------
    offset, limit
        The access happens where 0 <= offset + sum(step * index) < limit.
    """
    return Bound(offset, limit, steps)


def load(operand: str, width_bytes: int, offset_bytes: int = 0, /, *, write: int = False,
         **steps_bytes: int) -> Move:
    """Return a load of `width_bytes`, or a store; steps in bytes by loop name.

    Parameters
    ----------
    operand
        Name of the kernel's operand.
    width_bytes, offset_bytes
        Of one access, and of the first one in the operand.
    steps_bytes
        By loop name; 0 in loops not named.
    """
    return Move(operand, bool(write), width_bytes, offset_bytes, (), steps_bytes)


store: Callable[..., Move] = partial(load, write=True)


def step(name: str, code: str, cause: str | None = None, *, closes: bool = False) -> Step:
    """Return straight instructions, run whenever their place in the loops is reached.

    Parameters
    ----------
    name, code
        What they do, and their assembly text.
    cause
        Cause all their issue slots belong to; None: by instruction class.
    closes
        Whether they are of each iteration and end in the branch closing the loop around them.
    """
    return Step(name, code, closes, cause)


closing: Callable[..., Step] = partial(step, closes=True)


def guarded(move: Move, *bounds: Bound) -> Move:
    """Return the access held back outside the bounds."""
    return move._replace(bounds=(*move.bounds, *bounds))


def repeat(name: str, extent: int, /, *body: Any) -> Repeat:
    """Return a loop of that name over what is inside; extent 0 makes it vanish.

    Parameters
    ----------
    extent
        Iterations.
    body : Repeat, Move, Step or Block
        In program order.
    """
    return Repeat(name, extent, body)


def strides(shape: Shape) -> list[int]:
    """Return the elements between neighbours along each axis of a dense tensor."""
    return [math.prod(shape[axis + 1:]) for axis in range(len(shape))]


def by_axis(steps: Iterable[int], size_bytes: int = 1) -> dict[str, int]:
    """Return steps in bytes for the loops of `over_axes`, from steps in elements."""
    return {f"axis{axis}": step * size_bytes for axis, step in enumerate(steps)}


def over_axes(shape: Shape, /, *body: Any) -> tuple[Any, ...]:
    """Return a loop nest over a shape, outermost axis first; its loops are named axis0, axis1, ...

    Parameters
    ----------
    body : Move or Repeat
        What runs at every place.
    """
    for axis in reversed(range(len(shape))):
        body = (repeat(f"axis{axis}", shape[axis], *body),)
    return body


def count_blocks(*drafts: Any, outside: int = 1, extent: int = 1) -> Blocks:
    """Return the blocks of drafts, in order: steps with the trips that follow from their loops.

    Parameters
    ----------
    drafts : Repeat, Move, Step or Block
        A block states its own trips.
    outside, extent
        How often the loop around the drafts is entered, and its iterations.
    """
    blocks: list[Block] = []
    trips = outside * extent
    for draft in drafts:
        if isinstance(draft, Repeat):
            blocks += count_blocks(*draft.body, outside=trips, extent=draft.extent)
        elif isinstance(draft, Step):
            blocks.append(Block(
                name=draft.name, code=draft.code, trips=trips,
                entries=min(outside, trips) if draft.closes else trips, cause=draft.cause))
        elif isinstance(draft, Block):
            blocks.append(draft)
    return tuple(blocks)


def resolve(*drafts: Any) -> Nests:
    """Return the accesses of drafts: loops of extent 0 gone, of 1 unwrapped, no instructions."""
    return tuple(_resolve(drafts, ()))


def _resolve(drafts: tuple[Any, ...], names: tuple[str, ...]) -> list[Nest]:
    nests: list[Nest] = []
    for draft in drafts:
        if isinstance(draft, Repeat):
            if draft.extent == 1:
                nests += _resolve(draft.body, names)
            elif draft.extent > 1:
                body = _resolve(draft.body, (*names, draft.name))
                if body:
                    nests.append(Loop(extent=draft.extent, body=tuple(body)))
        elif isinstance(draft, Move):
            steps = draft.steps_bytes
            nests.append(Access(
                operand=draft.operand, write=draft.write, width_bytes=draft.width_bytes,
                offset_bytes=draft.offset_bytes,
                steps_bytes=tuple([steps.get(name, 0) for name in names]),
                guards=tuple([
                    Guard(steps=tuple([one.steps.get(name, 0) for name in names]),
                          offset=one.offset, limit=one.limit) for one in draft.bounds])))
    return nests
