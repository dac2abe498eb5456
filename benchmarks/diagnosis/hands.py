"""Hands: what a hidden board costs, drawn by seed, and what it sends of a work."""

from __future__ import annotations

import numpy as np

from benchmarks.diagnosis.recorded import EVENTS, Work
from benchmarks.diagnosis.timing import KINDS, draw_cycles
from hwmodels.board.facts import Board
from hwmodels.frozen import entity, frozen
from hwmodels.paths.refill import clock_ratio

LATER = 1e9
"""Cycles after which a slowing has its stated size."""


@frozen
class Beside:
    """What goes on beside the work.

    Parameters
    ----------
    gap_cycles, service_cycles : float
        Mean distance of interrupts and what each takes; 0: there are none.
    periodic : bool
        Whether they come at equal distances, else at random.
    slowing : float
        By how much longer the same work takes after 1e9 cycles, as a share.
    wait_cycles : float
        Each access to a memory on a bus waits so much longer for another master.
    strange : float
        Layers take longer by factors nothing explains, of this size as a logarithm.
    """

    gap_cycles: float = 0.0
    service_cycles: float = 0.0
    periodic: bool = False
    slowing: float = 0.0
    wait_cycles: float = 0.0
    strange: float = 0.0


@entity
class Hand:
    """Costs of one hidden board.

    Parameters
    ----------
    cycles : numpy.ndarray
        Shape (kinds,): of instructions.
    array, beats, latency, other, back : float
        Factors on the wait states of an array read and on the beats of a line, what a flash takes
        besides of a line or array read, what an access that no cache holds takes to cross the bus
        to any memory, and a write-back, in cycles.
    hidden, ahead : float
        Share of the fetches of code a prefetch hides; and of lines of data, where code and data
        come through one cache.
    call : float
        Cycles of a call of a layer.
    misfit, repeat : float
        What no table tells of a layer, and how runs repeat, as logarithms.
    seed : int
        It was drawn from.
    """

    cycles: np.ndarray
    array: float
    beats: float
    latency: float
    other: float
    back: float
    hidden: float
    ahead: float
    call: float
    misfit: float
    repeat: float
    seed: int


def draw_hand(core: str, seed: int) -> Hand:
    """Return a hidden board of a core."""
    random = np.random.default_rng(seed)
    return Hand(cycles=draw_cycles(core, random), array=random.uniform(0.8, 1.2),
                beats=random.uniform(0.7, 1.3), latency=random.uniform(0, 3),
                other=random.uniform(5, 12) if core == "cortex-m7" else random.uniform(0, 0.3),
                back=random.uniform(4, 14), hidden=random.uniform(0.1, 0.6),
                ahead=random.uniform(0.2, 0.9),
                call=random.uniform(50, 600), misfit=random.uniform(0.003, 0.03),
                repeat=float(np.exp(random.uniform(np.log(1e-5), np.log(2e-3)))), seed=seed)


def time_layers(hand: Hand, work: Work, board: Board, beside: Beside, image: str) -> np.ndarray:
    """Return cycles of each layer, undisturbed.

    Parameters
    ----------
    hand : Hand
        Whose costs.
    work : Work
        Of the image that ran.
    board : Board
        As it really is: wait states, widths.
    beside : Beside
        Waits for another master, and what nothing explains.
    image : str
        Name of what ran: another image has other misfits.
    """
    flash = next(memory for memory in board.memories if memory.role == "flash")
    events = dict(zip(EVENTS, work.events.T, strict=True))
    wait = flash.wait_states * clock_ratio(board, flash) * hand.array
    caches = [board.cache(name) for name in (board.core.dcache, board.core.icache)]
    data, code = (cache if cache is not None and cache.enabled else None for cache in caches)

    def line(size_bytes: float) -> float:
        reads = max(size_bytes / flash.read_bytes, 1.0)
        return hand.latency + reads * wait + hand.beats * size_bytes / 8

    hidden = hand.hidden if flash.prefetch else 0.0
    ahead = hand.ahead if flash.prefetch and data is code else 0.0
    word = (hand.latency + wait) * 4 / flash.read_bytes if flash.line_buffer else \
        hand.latency + wait
    total = work.kinds @ hand.cycles + hand.call
    total = total + events["flash"] * (line(data.line_bytes) * (1 - ahead) if data
                                       else hand.latency + wait)
    total = total + (events["other"] + events["direct"]) * hand.other
    total = total + events["write_backs"] * hand.back
    total = total + events["fills"] * (line(code.line_bytes) if code else 0.0) * (1 - hidden)
    total = total + events["fetched_words"] * word * (1 - hidden)
    accessed = work.kinds[:, [KINDS.index(kind) for kind in ("load", "load_again", "store",
                                                             "words")]].sum(axis=1)
    total = total + beside.wait_cycles * accessed
    own = np.random.default_rng([hand.seed, *image.encode()])
    strange = np.random.default_rng([hand.seed, 7])
    return np.asarray(total * np.exp(
        own.normal(0, hand.misfit, len(total))
        + beside.strange * np.abs(strange.normal(0, 1, len(total)))))


def run_layers(hand: Hand, layers: np.ndarray, beside: Beside, runs: int,
               seed: int) -> np.ndarray:
    """Return cycles of each run and layer, shape (runs, layers), with what goes on beside."""
    random = np.random.default_rng([hand.seed, seed])
    passed, rows = float(random.uniform(0, 1e6)), []
    ticks = _ticks(random, beside, 1.5 * runs * float(layers.sum()) + 1e6)
    for _ in range(runs):
        row = []
        for cycles in layers * np.exp(random.normal(0, hand.repeat, len(layers))):
            slow = cycles * (1 + beside.slowing * passed / LATER)
            started, ended = np.searchsorted(ticks, (passed, passed + slow))
            passed += slow
            row.append(slow + beside.service_cycles * (ended - started))
        rows.append(row)
    return np.array(rows)


def _ticks(random: np.random.Generator, beside: Beside, until: float) -> np.ndarray:
    """Times of interrupts, in cycles of work."""
    if not beside.gap_cycles:
        return np.zeros(0)
    count = int(1.2 * until / beside.gap_cycles) + 10
    gaps = (np.full(count, beside.gap_cycles) if beside.periodic
            else random.exponential(beside.gap_cycles, count))
    return np.asarray(np.cumsum(gaps))
