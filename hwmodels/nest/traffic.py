"""Accesses of nests counted in closed form, wherever caches are: how many, and what they reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hwmodels.errors import KernelError
from hwmodels.kernel import Access, Nest, Operand, walk_accesses

MOST_REACHES = 512
"""Nests whose accesses are kept followed: those of a network or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What one access amounts to over its whole nest.

    Parameters
    ----------
    accesses : int
        Times it is made: index tuples that meet its guards.
    touches : int
        Lines touched, one or more per access.
    low_address, end_address : int
        First byte touched and the byte after the last; meaningless without accesses.
    """

    accesses: int
    touches: int
    low_address: int
    end_address: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Accesses an operand gets from a kernel, whatever caches do with them."""

    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    read_touches: int = 0
    write_touches: int = 0


def measure_traffic(nests: Sequence[Nest], operands: Sequence[Operand],
                    line_bytes: int) -> tuple[Traffic, ...]:
    """Count accesses, bytes and line touches per operand, and refuse accesses outside it.

    Parameters
    ----------
    nests : sequence of Loop or Access
        Checked by `check_nests`.
    operands : sequence of Operand
        What they touch.
    line_bytes : int
        Line the touches are of, a power of two.

    Returns
    -------
    tuple of Traffic
        One per operand.

    Raises
    ------
    KernelError
        When an access leaves its operand.
    """
    place = {operand.name: index for index, operand in enumerate(operands)}
    reached = _reach_accesses(tuple(nests))
    sums = np.zeros((len(operands), 6), dtype=np.int64)
    low = np.full(len(operands), 1 << 62, dtype=np.int64)
    end = np.full(len(operands), -(1 << 62), dtype=np.int64)

    def add(index: np.ndarray, write: np.ndarray, columns: np.ndarray,
            touches: np.ndarray) -> None:
        width, count, first, last = columns
        for column, amount in enumerate((count, count * width, touches)):
            np.add.at(sums, (index, 2 * column + write), amount)
        np.minimum.at(low, index, first)
        np.maximum.at(end, index, last)

    index = np.array([place[name] for name in reached.names], dtype=np.int64)[reached.operands]
    bases = np.array([operand.address for operand in operands], dtype=np.int64)
    offset, width = reached.columns[:2]
    plain = reached.plain & ((bases[index] + offset) % width == 0)
    add(index[plain], reached.writes[plain], reached.columns[1:, plain],
        reached.columns[2, plain] * np.maximum(width[plain] // line_bytes, 1))
    for one in np.flatnonzero(~plain).tolist():
        access, extents = reached.accesses[one]
        base = int(bases[index[one]])
        span = measure_access(access, extents, base, line_bytes)
        if span.accesses:
            add(index[[one]], reached.writes[[one]], np.array([
                [access.width_bytes], [span.accesses], [span.low_address - base],
                [span.end_address - base]]), np.array([span.touches]))
    for operand, first, last in zip(operands, low.tolist(), end.tolist(), strict=True):
        if first < 0 or last > operand.size_bytes:
            raise KernelError(f"access to {operand.name!r} reaches bytes {first} to {last} of an "
                              f"operand of {operand.size_bytes} bytes; accepted: 0 to "
                              f"{operand.size_bytes}")
    return tuple(Traffic(reads=row[0], writes=row[1], read_bytes=row[2], write_bytes=row[3],
                         read_touches=row[4], write_touches=row[5]) for row in sums.tolist())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reached:
    """Accesses of nests, wherever their operands are: most stand in independent loops.

    Parameters
    ----------
    accesses : tuple of (Access, tuple of int)
        With the extents around each, in program order.
    names : tuple of str
        Of the operands.
    operands, writes, plain : ndarray
        Per access: position of its operand's name, whether it stores, and whether loops and steps
        alone say what it reaches.
    columns : ndarray of int64, (5, accesses)
        Offset and width in bytes, times it is made, and from which byte to which.
    """

    accesses: tuple[tuple[Access, tuple[int, ...]], ...]
    names: tuple[str, ...]
    operands: np.ndarray
    writes: np.ndarray
    plain: np.ndarray
    columns: np.ndarray


@lru_cache(maxsize=MOST_REACHES)
def _reach_accesses(nests: tuple[Nest, ...]) -> _Reached:
    """Follow nests once."""
    names: dict[str, int] = {}
    accesses, rows = [], []
    for extents, access in walk_accesses(nests):
        accesses.append((access, extents))
        rows.append((names.setdefault(access.operand, len(names)), access.write,
                     *_reach(access, extents)))
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 8).T
    return _Reached(accesses=tuple(accesses), names=tuple(names), operands=table[0],
                    writes=table[1], plain=table[2] == 1, columns=table[3:])


def _reach(access: Access, extents: tuple[int, ...]) -> tuple[int, int, int, int, int, int]:
    """Whether an access is plain, its offset and width, how often, from where, and to where."""
    width, count, low = access.width_bytes, 1, access.offset_bytes
    end = low + width
    for extent, step in zip(extents, access.steps_bytes, strict=True):
        if step % width or not extent:
            return 0, access.offset_bytes, width, 0, 0, 0
        count *= extent
        if step > 0:
            end += step * (extent - 1)
        else:
            low += step * (extent - 1)
    return int(not access.guards), access.offset_bytes, width, count, low, end


def measure_access(access: Access, extents: tuple[int, ...], base_address: int,
                   line_bytes: int) -> Span:
    """Count one access's executions and line touches and find the bytes it reaches.

    Parameters
    ----------
    access : Access
        With one step per loop.
    extents : tuple of int
        Of the loops around it, outermost first.
    base_address : int
        Address of its operand.
    line_bytes : int
        A power of two.

    Returns
    -------
    Span
        Exact, guards included.

    Notes
    -----
    Loops joined by no guard are independent: counts multiply, extreme offsets add, and the
    histogram of the offset modulo the line is a circular convolution. An access of w bytes at
    residue r touches floor((r + w - 1) / line) + 1 lines.
    """
    width, count = access.width_bytes, 1
    low = end = base_address + access.offset_bytes
    aligned = low % width == 0 and all(step % width == 0 for step in access.steps_bytes)
    residues = np.zeros(line_bytes, dtype=np.int64)
    residues[low % line_bytes] = 1
    if not _meets_constants(access):
        return Span(accesses=0, touches=0, low_address=low, end_address=low)
    for group in _join_loops(access, len(extents)):
        offsets = _offsets(access, extents, group, line_bytes)
        if offsets is None:
            return Span(accesses=0, touches=0, low_address=low, end_address=low)
        number, group_low, group_high, histogram = offsets
        count *= number
        low += group_low
        end += group_high
        if not aligned:
            residues = _convolve(residues, histogram())
    if aligned:
        touches = count * max(1, width // line_bytes)
    else:
        touches = int(residues @ ((np.arange(line_bytes) + width - 1) // line_bytes + 1))
    return Span(accesses=count, touches=touches, low_address=low, end_address=end + width)


def _join_loops(access: Access, depth: int) -> list[list[int]]:
    """Group loops that share a guard."""
    groups = [[loop] for loop in range(depth)]
    for guard in access.guards:
        used = {loop for loop in range(depth) if guard.steps[loop]}
        joined = [group for group in groups if used & set(group)]
        if not used:
            continue
        groups = [group for group in groups if not used & set(group)]
        groups.append(sorted(loop for group in joined for loop in group))
    return groups


def _meets_constants(access: Access) -> bool:
    """Whether the guards no loop moves let the access through."""
    return all(0 <= guard.offset < guard.limit for guard in access.guards if not any(guard.steps))


def _offsets(access: Access, extents: Sequence[int], group: Sequence[int], line_bytes: int,
             ) -> tuple[int, int, int, Callable[[], np.ndarray]] | None:
    """Return executions, extreme offsets and residues of a group of loops; None when empty."""
    guards = [guard for guard in access.guards if any(guard.steps[loop] for loop in group)]
    if not guards:
        (loop,) = group
        extent, step = extents[loop], access.steps_bytes[loop]
        if extent == 0:
            return None
        reach = step * (extent - 1)
        return (extent, min(0, reach), max(0, reach),
                lambda: _residues_of_step(step, extent, line_bytes))
    grids = np.ogrid[tuple(slice(0, extents[loop]) for loop in group)]
    shape = tuple(extents[loop] for loop in group)
    made = np.ones(shape, dtype=bool)
    for guard in guards:
        index = guard.offset + sum(guard.steps[loop] * grid
                                   for loop, grid in zip(group, grids, strict=True))
        made &= (index >= 0) & (index < guard.limit)
    offset = sum(access.steps_bytes[loop] * grid for loop, grid in zip(group, grids, strict=True))
    chosen = np.broadcast_to(offset, shape)[made]
    if not chosen.size:
        return None
    return (int(chosen.size), int(chosen.min()), int(chosen.max()),
            lambda: np.bincount(chosen % line_bytes, minlength=line_bytes))


def _residues_of_step(step: int, extent: int, line_bytes: int) -> np.ndarray:
    """Histogram of step * i modulo the line for i below extent (its period divides the line)."""
    whole, rest = divmod(extent, line_bytes)
    residues = step * np.arange(line_bytes) % line_bytes
    return (whole * np.bincount(residues, minlength=line_bytes)
            + np.bincount(residues[:rest], minlength=line_bytes))


def _convolve(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Circular convolution of two histograms of equal length, in integers."""
    index = np.arange(len(first))
    counted: np.ndarray = second[(index[:, None] - index[None, :]) % len(first)] @ first
    return counted
