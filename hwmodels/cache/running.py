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
    WORK_WORD,
    WRITE_WORD,
)

MOST_SPARE_WORDS = 1 << 17
"""Size up to which the array of a finished run is kept: a megabyte for each of its programs."""


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
    program, back = plan.program, cache.write == "back"

    def fill(memory: np.ndarray) -> None:
        memory[:len(program.front)] = program.front
        records = memory[program.records].reshape(-1, RECORD_WORDS)
        records[:, MARK_WORD] = numbers[records[:, OPERAND_WORD]] << 1
        if back:
            records[:, MARK_WORD] |= records[:, WRITE_WORD]
        memory[OWNERS_WORD] = len(owners)
        leaving = memory[program.leaving].reshape(-1, 2)
        for operand, write, lines in program.skipped:
            # As many leave as came: those that stay are of the phases after them.
            leaving[numbers[operand]] += lines, lines * (write and back)

    return Link(table=program.front, size=3 * len(operands) + 2 * len(owners) + 1, owners=owners,
                counts=count_operands(plan, cache, operands, looked_up), fill=fill)


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
    words = sum([int(link.table[WORDS_WORD]) for link in links])

    def make_room() -> Room:
        from hwmodels.kernels.compiled import RUN_PROGRAMS

        memory, starts = lay_programs(links)
        counters = np.empty(sum([link.size for link in links]), dtype=np.int64)
        return counters, RUN_PROGRAMS.bind(len(links), starts, memory, None, counters)

    return make_chain(links, make_room, int(words <= MOST_SPARE_WORDS * len(links)))


def lay_programs(links: Sequence[Link]) -> tuple[np.ndarray, np.ndarray]:
    """Return the array that programs run in, and how each of them is before a run.

    Parameters
    ----------
    links : sequence of Link
        Of each.

    Returns
    -------
    ndarray of int64
        Programs and their rooms, the sets of the cache, and the stamp of what was noted last.
    ndarray of int64
        Of each program the words up to those that no run changes.
    """
    header = links[0].table
    sets = int(header[SETS_WORD] * header[SET_SIZE_WORD])
    ends = [0, *itertools.accumulate(int(link.table[WORDS_WORD]) for link in links)]
    memory = np.zeros(ends[-1] + sets + 1, dtype=np.int64)
    starts = []
    for link, at in zip(links, ends, strict=False):
        assert link.fill is not None, "links of programs fill their front in"
        link.fill(memory[at:])
        starts.append(memory[at:at + int(link.table[WORK_WORD])])
    return memory, np.concatenate(starts)
