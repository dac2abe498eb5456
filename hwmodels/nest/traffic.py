"""Accesses of nests counted in closed form, wherever caches are: how many, and what they reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hwmodels.errors import KernelError
from hwmodels.frozen import frozen
from hwmodels.kernel import Access, Nest, Nests, Operand, walk_accesses
from hwmodels.nest.stream import WIDTHS_BYTES, check_nests

MOST_COUNTED = 4096
"""Nests whose accesses are kept counted: those of many networks."""

MOST_GROUPS = 1024
"""Groups of loops joined by guards: accesses of a kernel share them."""


@frozen
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
        In program order.
    line_bytes
        Line the touches are of, a power of two.

    Returns
    -------
    tuple of Traffic
        One per operand.

    Raises
    ------
    KernelError
        When a nest is malformed, names no operand or leaves its own.
    """
    unit_bytes = max(line_bytes, *WIDTHS_BYTES)
    found = _count_accesses(
        tuple(nests), tuple([operand.name for operand in operands]),
        tuple([operand.address % unit_bytes for operand in operands]), line_bytes)
    for operand, (_, first, last) in zip(operands, found, strict=True):
        if first < 0 or last > operand.size_bytes:
            raise KernelError(f"access to {operand.name!r} reaches bytes {first} to {last} of an "
                              f"operand of {operand.size_bytes} bytes; accepted: 0 to "
                              f"{operand.size_bytes}")
    return tuple([traffic for traffic, _, _ in found])


@lru_cache(maxsize=MOST_COUNTED)
def _count_accesses(nests: Nests, names: tuple[str, ...], phases: tuple[int, ...],
                    line_bytes: int) -> tuple[tuple[Traffic, int, int], ...]:
    """Return, per operand, what it gets, and from which of its bytes to which.

    Where operands are does not matter, but for their places in a line.
    """
    check_nests(nests, names)
    place = {name: index for index, name in enumerate(names)}
    sums = [[0] * 6 for _ in names]
    low, end = [1 << 62] * len(names), [-(1 << 62)] * len(names)
    for extents, access in walk_accesses(nests):
        index = place[access.operand]
        phase = phases[index]
        measured = measure_access(access, extents, phase, line_bytes)
        if measured is None:
            continue
        accesses, touches, first, last = measured
        row, low[index], end[index] = (sums[index], min(low[index], first - phase),
                                       max(end[index], last - phase))
        row[access.write] += accesses
        row[2 + access.write] += accesses * access.width_bytes
        row[4 + access.write] += touches
    return tuple([(Traffic(reads=row[0], writes=row[1], read_bytes=row[2], write_bytes=row[3],
                           read_touches=row[4], write_touches=row[5]), first, last)
                  for row, first, last in zip(sums, low, end, strict=True)])


def measure_access(access: Access, extents: tuple[int, ...], base_address: int,
                   line_bytes: int) -> tuple[int, int, int, int] | None:
    """Count one access's executions and line touches and find the bytes it reaches.

    Parameters
    ----------
    access
        With one step per loop.
    extents
        Of the loops around it, outermost first.
    line_bytes
        A power of two.

    Returns
    -------
    accesses, touches, low_address, end_address : int
        Times it is made: index tuples that meet its guards; lines touched, one or more per access;
        first byte touched and the byte after the last. None where it is never made.

    Notes
    -----
    Loops joined by no guard are independent: counts multiply, extreme offsets add, and the
    histogram of the offset modulo the line is a circular convolution. An access of w bytes at
    residue r touches floor((r + w - 1) / line) + 1 lines.
    """
    width, count = access.width_bytes, 1
    low = end = base_address + access.offset_bytes
    aligned = low % width == 0 and not any([step % width for step in access.steps_bytes])
    if not aligned:
        residues = np.zeros(line_bytes, dtype=np.int64)
        residues[low % line_bytes] = 1
    # Guards no loop moves let an access through always or never.
    if not all(0 <= guard.offset < guard.limit for guard in access.guards if not any(guard.steps)):
        return None
    for group in _join_loops(access, len(extents)):
        offsets = _offsets(
            tuple([extents[loop] for loop in group]),
            tuple([access.steps_bytes[loop] for loop in group]),
            tuple([(tuple([guard.steps[loop] for loop in group]), guard.offset, guard.limit)
                   for guard in access.guards if any([guard.steps[loop] for loop in group])]),
            0 if aligned else line_bytes)
        if offsets is None:
            return None
        number, group_low, group_high, histogram = offsets
        count *= number
        low += group_low
        end += group_high
        if histogram is not None:
            residues = _convolve(residues, histogram)
    if aligned:
        touches = count * max(1, width // line_bytes)
    else:
        touches = int(residues @ ((np.arange(line_bytes) + width - 1) // line_bytes + 1))
    return count, touches, low, end + width


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


@lru_cache(maxsize=MOST_GROUPS)
def _offsets(extents: tuple[int, ...], steps: tuple[int, ...],
             guards: tuple[tuple[tuple[int, ...], int, int], ...], line_bytes: int,
             ) -> tuple[int, int, int, np.ndarray | None] | None:
    """Return executions and extreme offsets of a group of loops; None when empty.

    With a line, how many offsets have each residue in it, too.
    """
    if not guards and not line_bytes:
        (extent,), (step,) = extents, steps
        reach = step * (extent - 1)
        return (extent, min(0, reach), max(0, reach), None) if extent else None
    grids = np.ogrid[tuple([slice(0, extent) for extent in extents])]
    made = np.ones(extents, dtype=bool)
    for moves, start, limit in guards:
        index = start + sum([move * grid for move, grid in zip(moves, grids, strict=True)])
        made &= (index >= 0) & (index < limit)
    offset = sum([step * grid for step, grid in zip(steps, grids, strict=True)])
    chosen = np.broadcast_to(offset, extents)[made]
    if not chosen.size:
        return None
    return (int(chosen.size), int(chosen.min()), int(chosen.max()),
            np.bincount(chosen % line_bytes, minlength=line_bytes) if line_bytes else None)


def _convolve(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Circular convolution of two histograms of equal length, in integers."""
    index = np.arange(len(first))
    counted: np.ndarray = second[(index[:, None] - index[None, :]) % len(first)] @ first
    return counted
