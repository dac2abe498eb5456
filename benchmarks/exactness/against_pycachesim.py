"""Cache counts beside pycachesim: `python -m benchmarks.exactness.against_pycachesim`.

pycachesim (PyPI) simulates write-back LRU caches. Its misses are compared on the layers of
`against_cachegrind`, and the shortest sequence on which it differs is shown with the reason.
"""

from __future__ import annotations

from benchmarks.exactness.against_cachegrind import CACHES, oracle
from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import new_state, simulate_nests


def run_pycachesim(accesses: list[tuple[bool, int, int]], cache: Cache) -> int:
    """Lines pycachesim loads into a write-allocate, write-back LRU cache."""
    import cachesim  # of the package pycachesim

    memory = cachesim.MainMemory()
    level = cachesim.Cache("L1", cache.sets, cache.ways, cache.line_bytes, "LRU")
    memory.load_to(level)
    memory.store_from(level)
    simulator = cachesim.CacheSimulator(level, memory)
    for store, address, size in accesses:
        (simulator.store if store else simulator.load)(address, length=size)
    return int(level.backend.MISS_count)


def main() -> None:
    """Print both misses of every layer and cache, and the sequence that tells them apart."""
    equal = rows = 0
    for name in oracle.LAYERS:
        nests, operands = oracle.make_layer(name, 0x2400_0000)
        accesses = oracle.list_accesses(nests, operands)
        for size_bytes, ways, line_bytes in CACHES:
            cache = Cache(name="l1d", size_bytes=size_bytes, ways=ways, line_bytes=line_bytes)
            counts, _ = simulate_nests(cache, nests, operands, new_state(cache))
            ours = counts.total("read_misses") + counts.total("write_misses")
            theirs = run_pycachesim(accesses, cache)
            rows += 1
            equal += ours == theirs
            if ours != theirs:
                print(f"{name:28} {size_bytes:>6} B, {ways} ways, {line_bytes} B lines: "
                      f"{ours:>6} misses here, {theirs:>6} there")
    print(f"equal in {equal} of {rows} rows")
    pair = Cache(name="pair", size_bytes=64, ways=2, line_bytes=32)
    sequence = [(False, 0, 4), (False, 32, 4), (True, 0, 4), (False, 64, 4), (False, 0, 4)]
    misses, _, _ = oracle.stamp_lines(sequence, pair)
    print("load A, load B, store A, load C, load A in one set of two ways: "
          f"{sum(misses)} misses here (the store used A last, so C replaces B), "
          f"{run_pycachesim(sequence, pair)} there (a store that hits does not refresh A)")


if __name__ == "__main__":
    main()
