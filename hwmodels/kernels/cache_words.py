"""What the words of a cache simulation's memory mean, for the compiled loops that share it.

Everything lies in one int64 array `m`, cut by the offsets of its header: with one array the
compiler keeps its address in a register, and indices are uint64, for a signed index costs a test
for negatives. A cache entry is line << 8 | owner << 1 | dirty, -1 when empty; under LRU the
entries of a set are kept most recent first.
"""

import numpy as np

# Header: the LFSR or the next way of all sets, geometry, then where each part begins.
(REGISTER, SETS, MASK, WAYS, SHIFT, POLICY, ALLOCATE, STAMP, SET_WORDS, CODE, CODE_END, WORK,
 STEPS, DEPTHS, GUARDS, GUARD_WORDS, ROWS, CURSORS, LOOPS, LISTS, ACTIVE, MISSES, LEAVING, CLASHES,
 KNOWN, SET_0, CLOCK, NOTES, SPARSE, OWNERS, INNER, PASS_0, PASS_WORDS, TALLY_WORDS,
 SNAPSHOTS, NEXTS, HITS_CHANGE, COUPLED, ROOM, FIRSTS, WINDOWS, WINDOWS_END, SETTLED, SETTLED_END,
 SHARED, WORDS) = np.arange(46, dtype=np.uint64)
"""MASK is SETS - 1 where that is a mask, else -1; STAMP counts tries, CLOCK touches; LEAVING counts
from MISSES; SPARSE says that few sets are looked at. Of the policy: HITS_CHANGE that a hit may
change what leaves next, COUPLED that what one set evicts hangs on the others. ROOM: words
for notes of pieces. FIRSTS: where the lines that fill empty ways are noted; zero where they are
not. Where hits change nothing, an operand's window is its first line, its lines and what is to be
added to one for its bit that it is there, and that this operand stored to it; bits begin at
SETTLED, 32 a word. SHARED: several operands store to a line. WORDS: all of the program's but its
sets, which lie behind the last of the programs run one behind the other. No run changes what stands
between WORK and LISTS."""
TREE = np.uint64(46)
"""Behind it, per way: bits of the tree a touch keeps, bits it sets."""
LRU, PLRU, ROUND_ROBIN, LFSR, GLOBAL = 0, 1, 2, 3, 4
"""Policies, as `hwmodels.board.policies` lists them; GLOBAL: round robin with one counter for all
sets."""
CHOSEN, TOUCHED = (LRU, PLRU, ROUND_ROBIN, LFSR, GLOBAL), (LRU, PLRU)
"""Those whose choice the loops know, and whose touches they note; any other is refused."""

# A set: what the try of stamp SEEN noted, when it was last filled, its policy's word, entries.
# TALLY is where what leaves and misses it is counted.
# USERS has a bit for each active stream of a leaf that is in it, PERIOD is as below.
(SEEN, LINE, KIND, PART, FLAGS, FILLED, WORD, TALLY, USERS, PERIOD,
 ENTRY) = np.arange(11, dtype=np.uint64)
# A first line of a set, behind how many it has: what touched it, and whether the line left before
# it was stored to. Till then its owner is NOBODY.
FIRST_WORDS = np.uint64(2)
GONE, NOBODY = 2, 127

# What a loop knows of a set: stamps of being listed, moved in and used by still blocks, and those.
LISTED, MOVED, STILL, STILL_LINE, STILL_BLOCK, KNOWN_WORDS = np.arange(6, dtype=np.uint64)
SEVERAL, TURNED, MIXED = 1, 2, 4

STATE_HEAD = np.uint64(8)
"""Words of a state before its entries, of which the first is REGISTER; a word for each set follows
them."""

# A stream or block.
(ADDRESS, STEP, LOG_STEP, REACH, WRITE, MARK, OPERAND, FOLLOWS, B_KIND, B_PART, LOW, HIGH, HERE,
 FIRST_GUARD, LAST_GUARD, NEXT) = np.arange(16, dtype=np.uint64)
RECORD = np.uint64(16)

# A window: where it has lines no other one has, behind what stands above.
ALONE, ALONE_END, WINDOW_WORDS = np.arange(4, 7, dtype=np.uint64)
# Of a block or piece: what is to be added to a line for its bit.
BITS = FOLLOWS

# A piece of a leaf: place of the first and of the last of its streams that are always in its line.
FIRST_PLACE, LAST_PLACE = B_KIND, B_PART

# What a loop of passes knows of a set: the pass that saw it change, how many states are kept, since
# which pass it goes round the last PERIOD of them, and, where SPARSE, how many sets on the next one
# is that is looked at; those states follow.
CHANGED, TAKEN, SINCE, AHEAD, SNAPSHOT = np.arange(5, dtype=np.uint64)
# Such a state: when it was seen, the policy's word, entries; then counters of the pass from it on.
SEEN_AT, SEEN_WORD, TALLIED = np.arange(3, dtype=np.uint64)
# A mover, where a block has its part and a stream its next change.
UNIT, FIRST_INNER = B_PART, NEXT

# An operation, and a loop in progress.
(OPERATION, EXTENT, DEPTH, FIRST, LAST, PARTNER, FIRST_BLOCK, FIRST_STILL,
 CHUNK) = np.arange(9, dtype=np.uint64)
OPERATION_WORDS = np.uint64(9)
(TURN, STOP, SIZE, POSITION, TRIED, ALLOWED, OWN, ENTERED, CLEAN) = np.arange(9, dtype=np.uint64)
LOOP_WORDS = np.uint64(9)
LOOP, END, LEAF, PHASE, PHASE_END, PASSES, PASSES_END = 0, 1, 2, 3, 4, 5, 6
FULL, MIDDLE, PLAIN = -1, -2, -3

HIT, BYPASS, FILL = -3, -2, -1
NEVER = 1 << 60
ANY = 1 << 30
"""Part of a block that several parts of a loop's body make up."""
PATIENCE = 8
"""Tries without a clash after which twice as many iterations are tried."""
TIRED, REST = 2, 16
"""Tries in a row that come to nothing, and iterations not tried after them (coupled sets)."""
MOST_SHARERS = np.uint64(16)
"""Notes of a set, in some iterations of a leaf, that are put in order."""
MOST_APART = np.uint64(6)
"""Blocks of a loop up to which each is compared with each other one."""
MOST_ACTIVE = np.uint64(62)
"""Streams of a leaf whose moves are followed: one bit of a word for each."""
FEW = 8
"""Share of the sets, inverse, below which a leaf is walked for those few."""
OWNER_ROOM = 16
"""Owners up to which passes keep counters of every set."""
ZERO, ONE, TWO, THREE, FOUR = np.arange(5, dtype=np.uint64)
