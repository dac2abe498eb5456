"""Programs run: their lines are given owners, and one array holds those that follow each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from hwmodels.board.facts import Cache
from hwmodels.cache.chain import Chain, Link, Room, make_chain, number_owners
from hwmodels.cache.counters import Owners, count_operands
from hwmodels.kernel import Operand
from hwmodels.nest.plan import Plan
from hwmodels.nest.program import (
    MARK_WORD,
    OPERAND_WORD,
    OWNERS_WORD,
    RECORD_WORDS,
    SET_SIZE_WORD,
    SETS_WORD,
    WORDS_WORD,
    WRITE_WORD,
)

MOST_SPARE_WORDS = 1 << 20
"""Size up to which the array of a finished run is kept: eight megabytes."""


def place_program(plan: Plan, cache: Cache, operands: Sequence[Operand],
                  looked_up: Sequence[bool], known: Owners) -> Link:
    """Give a plan's lines numbers of owners behind those of earlier kernels.

    Parameters
    ----------
    plan : Plan
        Of the operands and the cache.
    cache : Cache
        Geometry and policies.
    operands : sequence of Operand
        What the program touches.
    looked_up : sequence of bool
        Per operand, whether its accesses reach the cache.
    known : tuple of (str, str)
        Owners of earlier kernels.

    Returns
    -------
    Link
        Of its program.
    """
    owners, numbers = number_owners(known, operands, looked_up)
    front = plan.program.front.copy()
    records = front[plan.program.records].reshape(-1, RECORD_WORDS)
    records[:, MARK_WORD] = numbers[records[:, OPERAND_WORD]] << 1
    if cache.write == "back":
        records[:, MARK_WORD] |= records[:, WRITE_WORD]
    front[OWNERS_WORD] = len(owners)
    leaving = front[plan.program.leaving].reshape(-1, 2)
    for operand, write, lines in plan.program.skipped:
        # As many leave as came: those that stay are of the phases after them.
        leaving[numbers[operand]] += lines, lines * (write and cache.write == "back")
    return Link(table=front, size=3 * len(operands) + 2 * len(owners) + 1, owners=owners,
                counts=count_operands(plan, cache, operands, looked_up))


def link_programs(links: Sequence[Link]) -> Chain:
    """Put programs, all behind the same owners or each behind those before, one behind the other.

    Parameters
    ----------
    links : sequence of Link
        In order, one or more, of caches of one geometry.

    Returns
    -------
    Chain
        All of them.
    """
    fronts = [link.table for link in links]
    words = sum([int(front[WORDS_WORD]) for front in fronts])

    def make_room() -> Room:
        from hwmodels.kernels.compiled import RUN_PROGRAMS

        counters = np.empty(sum([link.size for link in links]), dtype=np.int64)
        return counters, RUN_PROGRAMS.bind(
            len(fronts), fronts[0] if len(fronts) == 1 else np.concatenate(fronts),
            lay_programs(fronts), None, counters)

    return make_chain(links, make_room, int(words <= MOST_SPARE_WORDS))


def lay_programs(fronts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the array that programs run in.

    Parameters
    ----------
    fronts : sequence of ndarray of int64
        Of each.

    Returns
    -------
    ndarray of int64
        They and their rooms, the sets of the cache, and the stamp of what was noted last.
    """
    ends = [0, *itertools.accumulate(int(front[WORDS_WORD]) for front in fronts)]
    sets = int(fronts[0][SETS_WORD] * fronts[0][SET_SIZE_WORD])
    memory = np.zeros(ends[-1] + sets + 1, dtype=np.int64)
    for front, at in zip(fronts, ends[:-1], strict=True):
        memory[at:at + len(front)] = front
    return memory
