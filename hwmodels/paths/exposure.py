"""Stall cycles of cache and memory accesses, for many clock settings together.

A refill of T cycles whose first word comes after F lets a core with critical word first go on for
min(T - F, c), c being the core's own cycles between two refills of the kernel. What is left of the
core's own cycles hides lines written back, which a buffer holds. `exposed` are these stall cycles,
`occurred` the events and cycles whether or not the core waited for them. A flash that reads ahead
does so for instructions: lines of weights wait for the array (STM32U5, docs/accuracy.md).

Code without a cache is fetched by lines of U bytes into a buffer of one: the line of the cache that
is switched off, else what the memory delivers at a time. A block of B bytes at any alignment spans
N = 1 + (B - 2)/U lines. A loop body within the buffered line is fetched once, so a body of at most
U bytes is fetched with probability (B - 2)/U, and then both its lines each trip. Every block is
taken to be jumped to; the line jumped into is read from the target on, which leaves out half of
its other words on average. With e core cycles a pass, s cycles from request to a line's last word
and f to its first, r of them an access without wait, n lines fetched a pass:

    wait = max(n s - (n/N) (s - f)/2 - e, (n/N) (f - r), 0)

so the next line comes while the last one is run, and a first word is always waited for. That
uncached reads do not wrap and end with the line is as Cortex-R4 does it (DDI 0363E, 9.3).

A data access meets a fetch in the bank it shares with the code with the share of cycles in which
the bank serves one, r (code bytes / bus bytes) / cycles, and one of the two then waits r cycles.

Arrays have a row for each timing (`hwmodels.paths.timing`) and a column for each line of counts;
every element is computed by itself, so a row does not depend on the others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hwmodels.counts import EXACT, CountLine, Counts
from hwmodels.frozen import entity
from hwmodels.paths.timing import Floats, Places
from hwmodels.paths.traffic import HALFWORD_BYTES

Numbers = NDArray[np.int64]


@entity
class Steps:
    """Lines moved, at most one step of each kernel: all may use up the core's own cycles at once.

    Parameters
    ----------
    kernels, places : ndarray of int
        Whose, and between what: a column of fills or of write-backs.
    lines, waits : ndarray of int
        Columns counted in; `waits` of wait states, for fills.
    fills
        Whether lines are filled for loads, or written back.
    """

    kernels: Numbers
    places: Numbers
    events: Floats
    lines: Numbers
    waits: Numbers
    fills: bool


@entity
class TrafficArrays:
    """Access statistics of kernels as a struct of arrays, for vectorised timings.

    Parameters
    ----------
    kernels
        How many.
    lines : tuple of (int, str, str, str)
        Kernel, event, place and operand, kernel by kernel as counts are merged.
    constant : ndarray of float, (2, raw lines)
        Occurred and exposed of what no timing changes, zero elsewhere.
    merges : tuple of (ndarray, ndarray)
        Raw columns, and columns of `lines` they are added to, in the order of addition.
    core_cycles, between : ndarray of float, (kernels,)
        Own cycles, in all and to the next refill.
    hits, latent, flash_reads, conflicts : ndarray of float, (columns, rows)
        Raw column, place and amounts of look-ups, of accesses that wait, of array reads, and of
        bytes in the bank of the code.
    code, blocks : ndarray of float, (columns, rows)
        Lines of code filled; blocks fetched without a cache, by kernel.
    steps
        In order.
    kept : ndarray of bool, (lines,)
        Lines that stand even at nought.
    whole
        Lines that occur in whole numbers.
    """

    places: Places
    kernels: int
    lines: tuple[tuple[int, str, str, str], ...]
    constant: Floats
    merges: tuple[tuple[Numbers, Numbers], ...]
    core_cycles: Floats
    between: Floats
    hits: Floats
    latent: Floats
    flash_reads: Floats
    conflicts: Floats
    code: Floats
    blocks: Floats
    steps: tuple[Steps, ...]
    kept: NDArray[np.bool_]
    whole: tuple[bool, ...]


def expose(arrays: TrafficArrays, timing: Floats) -> tuple[Floats, Floats]:
    """Return event counts, and how much of each stalled the core.

    Parameters
    ----------
    arrays
        Of `hwmodels.paths.arrays.lay_out`.
    timing : ndarray of float, (places.width,) or (boards, places.width)
        Of `hwmodels.paths.timing.read_timing`.

    Returns
    -------
    occurred, exposed : ndarray of float, (lines,) or (boards, lines)
        Exposed in 64ths.

    Notes
    -----
    Equations are those of the module.
    """
    boards = np.atleast_2d(timing)
    memory, fill, back, hits, code = arrays.places.split(boards)
    occurred, exposed = (np.repeat(row[None], len(boards), axis=0) for row in arrays.constant)
    _expose_direct(arrays, memory, hits, occurred, exposed)
    _expose_lines(arrays, fill, back, occurred, exposed)
    _expose_code(arrays, code, occurred, exposed)
    shape = *timing.shape[:-1], len(arrays.lines)
    return _merge(arrays, occurred).reshape(shape), _merge(arrays, exposed).reshape(shape)


def _merge(arrays: TrafficArrays, parts: Floats) -> Floats:
    """Add raw columns of one line, in their order."""
    sums = np.zeros((len(parts), len(arrays.lines)))
    for raw, merged in arrays.merges:
        sums[:, merged] += parts[:, raw]
    return sums


def _whole_64ths(amounts: Floats) -> Floats:
    floored: Floats = np.floor(amounts * EXACT) / EXACT
    return floored


def _expose_direct(arrays: TrafficArrays, memory: Floats, hits: Floats, occurred: Floats,
                   exposed: Floats) -> None:
    """Look-ups, and accesses that go straight to a memory."""
    ratio, wait_states, latency = memory[:, 0], memory[:, 1], memory[:, 2]
    column, place, touches = arrays.hits
    exposed[:, column.astype(int)] = _whole_64ths(touches * hits[:, place.astype(int)])
    column, place, accesses = arrays.latent
    at = column.astype(int)
    occurred[:, at] = np.where(latency[:, place.astype(int)] != 0, accesses, 0.0)
    exposed[:, at] = occurred[:, at]
    column, place, reads, accesses = arrays.flash_reads
    at, of = column.astype(int), place.astype(int)
    occurred[:, at] = ratio[:, of] * (reads * wait_states[:, of] + accesses * latency[:, of])
    exposed[:, at] = _whole_64ths(occurred[:, at])


def _expose_lines(arrays: TrafficArrays, fill: Floats, back: Floats, occurred: Floats,
                  exposed: Floats) -> None:
    """Lines filled and written back, each step using up own cycles of its kernel."""
    left = np.repeat(arrays.core_cycles[None], len(fill), axis=0)
    for step in arrays.steps:
        if step.fills:
            _fill(arrays, step, fill, left, occurred, exposed)
            continue
        cost, events = back[:, step.places], step.events
        hidden = np.minimum(cost, left[:, step.kernels] / events)
        left[:, step.kernels] -= hidden * events
        occurred[:, step.lines] = events
        exposed[:, step.lines] = _whole_64ths(np.where(
            cost != 0, events * (1 - hidden / np.where(cost != 0, cost, 1.0)), 0.0))


def _fill(arrays: TrafficArrays, step: Steps, fill: Floats, left: Floats, occurred: Floats,
          exposed: Floats) -> None:
    """Lines filled for loads: beats, and wait states apart."""
    whole, waits, first = (fill[:, column, step.places] for column in range(3))
    events, between = step.events, arrays.between[step.kernels]
    base = whole - waits
    most = np.minimum(np.maximum(0.0, whole - first), between)
    hidden = np.where(np.isinf(first), 0.0, np.minimum(most, left[:, step.kernels] / events))
    left[:, step.kernels] -= hidden * events
    shown = whole - hidden
    waited = np.minimum(waits, shown)
    occurred[:, step.lines] = events
    exposed[:, step.lines] = _whole_64ths(np.where(
        base != 0, events * (shown - waited) / np.where(base != 0, base, 1.0), 0.0))
    occurred[:, step.waits] = events * waits
    exposed[:, step.waits] = np.where(waits != 0, _whole_64ths(events * waited), 0.0)


def _expose_code(arrays: TrafficArrays, code: Floats, occurred: Floats, exposed: Floats) -> None:
    """Instructions: lines filled, or blocks fetched each time; and banks they share with data."""
    saved, ratio, first, last, line_bytes, beat_bytes = (part[:, None] for part in code.T)
    column, refills = arrays.code
    exposed[:, column.astype(int)] = _whole_64ths(refills - (refills - 1) * saved)
    kernel, column, size, trips, entries, run = arrays.blocks
    if len(kernel):
        spanned = 1 + (size - HALFWORD_BYTES) / line_bytes

        def wait(lines: Floats) -> Floats:
            share = lines / spanned
            waits: Floats = np.maximum(np.maximum(
                lines * last - share * (last - first) / 2 - run, share * (first - ratio)), 0.0)
            return waits

        again = np.where(size > line_bytes, spanned, 2 * (size - HALFWORD_BYTES) / line_bytes)
        waits = np.where(last <= 1.0, 0.0,
                         entries * wait(spanned) + (trips - entries) * wait(again))
        ends = np.flatnonzero(np.diff(kernel, append=-1)) + 1
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            at = int(column[begin])
            occurred[:, at] = [math.fsum(row) for row in waits[:, begin:end].tolist()]
            exposed[:, at] = _whole_64ths(occurred[:, at])
    column, fetched, cycles, accesses, same = arrays.conflicts
    if len(column):
        at = column.astype(int)
        busy = np.minimum(1.0, ratio * fetched / beat_bytes / cycles)
        occurred[:, at] = accesses * same * busy * ratio
        exposed[:, at] = _whole_64ths(occurred[:, at])


def to_counts(arrays: TrafficArrays, occurred: Floats, exposed: Floats) -> tuple[Counts, ...]:
    """Return one board's row of `expose` as counts, one of each kernel."""
    lines: list[list[CountLine]] = [[] for _ in range(arrays.kernels)]
    stands = arrays.kept | (occurred != 0)
    for (kernel, event, place, operand), one, shown, keep, whole in zip(
            arrays.lines, occurred.tolist(), exposed.tolist(), stands.tolist(), arrays.whole,
            strict=True):
        if keep:
            lines[kernel].append(CountLine(event=event, place=place, operand=operand,
                                           occurred=int(one) if whole else one, exposed=shown))
    return tuple(Counts(tuple(own)) for own in lines)
