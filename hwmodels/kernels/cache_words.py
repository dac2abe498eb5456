"""What the words of a cache simulation mean, for the compiled loops that share them.

A cache entry is line << 8 | owner << 1 | dirty, -1 when empty; under LRU the entries of a set are
kept most recent first. A state is `STATE_HEAD` words, the first of them the register (the LFSR, or
the next way where one counter serves all sets), then the entries of every set, then a word for
each set. Indices into words are uint64, for a signed index costs a test for negatives.
"""

import numpy as np

LRU, PLRU, ROUND_ROBIN, LFSR, GLOBAL = 0, 1, 2, 3, 4
"""Policies, as `hwmodels.board.policies` lists them; GLOBAL: round robin with one counter for all
sets."""
CHOSEN = LRU, PLRU, ROUND_ROBIN, LFSR, GLOBAL
"""Those the loops know; any other is refused."""
FIRST_ADDRESS, ASK = 1 << 12, -1
"""From the first on, a policy is the address of a function of a set's word, a touch and the ways:
of ASK it returns the way that leaves, of way << 1 | filled the word after that touch."""

HIT, READ_FILL, WRITE_FILL, BYPASS = 0, 1, 2, 3
"""What a touch met."""
EMPTY = -1
STATE_HEAD = np.uint64(8)

SETS, WAYS, SHIFT, MASK, BACK, ALLOCATE, POLICY = range(7)
"""Of a geometry: SHIFT is log2 of the line, MASK is SETS - 1 where that is a mask, else -1. From
POLICY on are the policies it is counted under: states and counters have a row for each.
"""

# A program: where its parts begin, counted from its first word.
(CODE, CODE_END, RECORDS, STEPS, DEPTHS, GUARDS, GUARD_WORDS, LOOPS, NEXTS, USERS, COUNTERS,
 LEAVING, SIZE, IN_ORDER, CHANGES) = np.arange(15, dtype=np.uint64)
"""COUNTERS counts words of all counters, those of lines that left from LEAVING on. USERS has a word
for each set: a bit for each stream of a loop that is in it. IN_ORDER: every access is looked up,
one iteration after the other. CHANGES counts touches that were no hits."""

# A stream. HERE is the line it is in, -1 for none, HOME the set of that.
(ADDRESS, STEP, LOG_STEP, WRITE, MARK, OPERAND, FOLLOWS, LOW, HIGH, HERE, HOME, FIRST_GUARD,
 LAST_GUARD) = np.arange(13, dtype=np.uint64)
RECORD = np.uint64(16)

# An operation, and a loop in progress.
(OPERATION, EXTENT, DEPTH, FIRST, LAST, PARTNER, STILL,
 OPERATION_WORDS) = np.arange(8, dtype=np.uint64)
"""FIRST, LAST: streams. PARTNER: operation a loop ends or begins with; innermost, whether there are
guards. STILL: the loop moves nothing."""
TURN, STOP, BEFORE, LOOP_WORDS = np.arange(4, dtype=np.uint64)
"""BEFORE: changes before the iteration."""
LOOP, END, INNERMOST = range(3)
"""Enter a loop, close it, run a loop that holds nothing but streams."""

NEVER = 1 << 60
MOST_STREAMS = np.uint64(62)
"""Streams of an innermost loop whose moves are followed: one bit of a word for each."""
ZERO, ONE, TWO, THREE, FOUR = np.arange(5, dtype=np.uint64)
