"""The cache facade: hand-computed cases, owners, uncached operands, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cache_traces import count_dirty

from hwmodels.board.facts import Cache, Memory
from hwmodels.cache.set_associative import (
    CacheState,
    line_buffer_of,
    new_state,
    simulate_nests,
)
from hwmodels.errors import BoardError, KernelError
from hwmodels.kernel import Access, Guard, Loop, Operand

L1D = Cache(name="l1d", size_bytes=1024, line_bytes=32, ways=2)  # 16 sets
A = Operand(name="a", role="input", memory="sram", address=0x1000, size_bytes=4096)
B = Operand(name="b", role="output", memory="psram", address=0x9000, size_bytes=4096)


def sweep(operand: str, count: int, step_bytes: int, write: bool = False, width_bytes: int = 4,
          offset_bytes: int = 0) -> Loop:
    """One access a turn."""
    return Loop(extent=count, body=(Access(operand=operand, write=write, width_bytes=width_bytes,
                                           steps_bytes=(step_bytes,),
                                           offset_bytes=offset_bytes),))


def test_words_of_a_line_miss_once():
    """64 words of 4 bytes are 8 lines of 32 bytes: 8 misses, 56 hits."""
    counts, _ = simulate_nests(L1D, (sweep("a", 64, 4),), (A,), new_state(L1D))
    (a,) = counts.operands
    assert (a.reads, a.read_bytes, a.read_touches, a.read_misses) == (64, 256, 64, 8)


def test_straddling_words_touch_two_lines():
    """4-byte words at 2 mod 32, step 32: each overlaps two lines, 30..33 of neighbours."""
    counts, _ = simulate_nests(L1D, (sweep("a", 4, 32, offset_bytes=30),), (A,), new_state(L1D))
    assert counts.total("read_touches") == 8
    assert counts.total("read_misses") == 5  # lines 0..4, neighbours share


def test_vector_wider_than_the_line():
    """A 16-byte load over 4-byte lines touches four."""
    cache = Cache(name="buffer", size_bytes=64, line_bytes=4, ways=2)
    counts, _ = simulate_nests(cache, (sweep("a", 1, 0, width_bytes=16),), (A,), new_state(cache))
    assert (counts.total("read_touches"), counts.total("read_misses")) == (4, 4)


def test_state_is_carried_and_not_changed():
    """A second pass over a resident operand only hits; the old state still misses."""
    cold = new_state(L1D)
    _, warm = simulate_nests(L1D, (sweep("a", 64, 4),), (A,), cold)
    again, _ = simulate_nests(L1D, (sweep("a", 64, 4),), (A,), warm)
    cold_again, same = simulate_nests(L1D, (sweep("a", 64, 4),), (A,), cold)
    assert again.total("read_misses") == 0
    assert cold_again.total("read_misses") == 8
    assert same == warm and warm != cold


def test_write_backs_go_to_the_memory_of_the_line():
    """Dirty lines of b leave for lines of a: 32 lines written, all replaced by 32 read."""
    _, state = simulate_nests(L1D, (sweep("b", 32, 32, write=True),), (B,), new_state(L1D))
    counts, _ = simulate_nests(L1D, (sweep("a", 32, 32),), (A,), state)
    assert counts.evictions == counts.write_backs() == counts.write_backs("psram") == 32
    assert counts.write_backs("sram") == 0
    assert counts.owners[0].role == "output"


def test_last_writer_owns_a_line():
    """A line filled by a load of `a` and written through its alias belongs to the writer."""
    alias = replace(A, name="alias", role="output")
    nest = (sweep("a", 1, 0), sweep("alias", 1, 0, write=True))
    _, state = simulate_nests(L1D, nest, (A, alias), new_state(L1D))
    counts, _ = simulate_nests(L1D, (sweep("b", 64, 32),), (B,), state)
    assert [(owner.role, owner.write_backs) for owner in counts.owners
            if owner.write_backs] == [("output", 1)]


def test_write_through_never_writes_back():
    """Each store passes on; read-allocate stores that miss do so without a fill."""
    cache = replace(L1D, write="through", allocate="read")
    nests = (sweep("b", 64, 4, write=True), sweep("b", 64, 4), sweep("b", 64, 4, write=True))
    counts, state = simulate_nests(cache, nests, (B,), new_state(cache))
    (b,) = counts.operands
    assert (b.write_throughs, b.write_bypasses, b.write_misses, b.read_misses) == (128, 64, 0, 8)
    assert count_dirty(state) == 0


def test_uncached_operands_are_only_counted():
    """Nothing of an operand outside the cache is looked up; a cache switched off looks up none."""
    nests = (sweep("a", 64, 4), sweep("b", 64, 4, write=True))
    counts, _ = simulate_nests(L1D, nests, (A, B), new_state(L1D), cached=(True, False))
    assert (counts.operands[1].writes, counts.operands[1].write_bytes) == (64, 256)
    assert counts.operands[1].write_touches == counts.operands[1].write_misses == 0
    assert counts.operands[0].read_misses == 8
    off = replace(L1D, enabled=False)
    counts, state = simulate_nests(off, nests, (A, B), new_state(off))
    assert counts.total("read_touches") == 0 and counts.total("reads") == 64
    assert state == new_state(off)


def test_line_buffer_counts_array_reads():
    """Words of 4 in order over a 16-byte read: one array read in four; two streams thrash it."""
    flash = Memory(name="flash", role="flash", address=0, size_bytes=8192, read_bytes=16)
    buffer = line_buffer_of(flash)
    counts, _ = simulate_nests(buffer, (sweep("a", 64, 4),), (A,), new_state(buffer))
    assert counts.total("read_misses") == 16
    both = Loop(extent=64, body=(sweep("a", 1, 4).body[0], sweep("b", 1, 4).body[0]))
    counts, _ = simulate_nests(buffer, (both,), (A, B), new_state(buffer))
    assert counts.total("read_misses") == 128


def test_guard_holds_padding_back():
    """A window of 3 over 8 pixels padded by one: 24 - 2 accesses, the same 8 bytes."""
    pad = Guard(steps=(1, 1), offset=-1, limit=8)
    window = Loop(extent=8, body=(Loop(extent=3, body=(Access(
        operand="a", write=False, width_bytes=1, offset_bytes=-1, steps_bytes=(1, 1),
        guards=(pad,)),)),))
    row = replace(A, size_bytes=8)
    counts, _ = simulate_nests(L1D, (window,), (row,), new_state(L1D))
    assert (counts.total("reads"), counts.total("read_misses")) == (22, 1)


@pytest.mark.parametrize(("nest", "words"), [
    (sweep("a", 1025, 4), "0 to 4096"),
    (sweep("a", 4, 4, offset_bytes=-4), "bytes -4"),
    (sweep("aa", 4, 4), "did you mean a"),
    (sweep("a", 4, 4, width_bytes=3), "1, 2, 4, 8, 16"),
    (sweep("a", -1, 4), "negative"),
    (Loop(extent=2, body=(Access(operand="a", write=False, width_bytes=4),)), "0 steps in 1"),
])
def test_bad_nests_are_refused(nest, words):
    """Accesses outside the operand and malformed nests are typed errors saying what would do."""
    with pytest.raises(KernelError, match=words):
        simulate_nests(L1D, (nest,), (A,), new_state(L1D))


@pytest.mark.parametrize(("change", "words"), [
    ({"line_bytes": 24}, "power of two"),
    ({"size_bytes": 1000}, "multiple"),
    ({"ways": 64}, "at least one set"),
    ({"replacement": "clairvoyant"}, "lru"),
    ({"replacement": "plru", "ways": 3, "size_bytes": 96}, "power of two"),
    ({"write": "around"}, "back, through"),
    ({"allocate": "never"}, "read, read_write"),
])
def test_bad_caches_are_refused(change, words):
    """A geometry or policy the model does not know is refused by name."""
    with pytest.raises(BoardError, match=words):
        new_state(replace(L1D, **change))


def test_state_of_another_cache_is_refused():
    """A state fits the geometry it was made for only."""
    with pytest.raises(BoardError, match="accepted"):
        simulate_nests(replace(L1D, ways=4), (), (), new_state(L1D))
    assert isinstance(new_state(L1D), CacheState)
