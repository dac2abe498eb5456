"""What the machine code of our kernels is read to do is what emulators count and write down.

The whole campaign, five networks and 200 random layers, is `python -m benchmarks.exactness.binary`.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")
pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("elftools", reason="needs the boards extra")

from made_networks import needs_tools, random_network
from reference_cache import walk_addresses

from benchmarks.exactness import binary
from benchmarks.oracles.replay import record_layers, replay_layers
from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.kernel import Access, Operand
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import random_input

pytestmark = needs_tools("arm-none-eabi-gcc", "make")
KINDS = ("conv", "depthwise", "pointwise", "pad", "max_pool_2d", "add", "concatenation")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A random network on a Cortex-M4: its graph, its image, what each layer was seen to do."""
    graph = random_network(73, kinds=KINDS)
    built = build_firmware(graph, load_port("unicorn-m4"), tmp_path_factory.mktemp("m4"))
    places = binary.called_layers(graph)
    records = record_layers("unicorn-m4", built.image, random_input(graph).tobytes(),
                            [f"run_{place}" for place in places])
    return graph, built, records


def test_instructions_and_every_address_in_order(recorded):
    graph, built, records = recorded
    kernels = binary.read_build(built, graph)
    assert len(kernels) == len(records) >= 7
    for kernel, record in zip(kernels, records, strict=True):
        counted = sum(block.trips * (block.code.count("\n") + 1) for block in kernel.blocks)
        assert counted == record.totals.instructions
        by_name = {operand.name: operand for operand in kernel.operands}
        read = np.array([(address, access.width_bytes, access.write)
                         for access, address in walk_addresses(kernel.nests, by_name)])
        if kernel.family == "softmax":  # data choose the entries of its table
            assert len(read) == len(record.accesses)
            assert (read[:, 1:] == record.accesses[:, 1:]).all()
        else:
            assert np.array_equal(read, record.accesses)


def test_the_cache_model_fed_the_real_trace_equals_an_independent_simulation(recorded):
    _, _, records = recorded
    everything = (Operand(name="all", role="input", memory="ram", address=0, size_bytes=1 << 32),)
    for cache in (Cache(name="small", size_bytes=512, line_bytes=32, ways=2),
                  Cache(name="tree", size_bytes=1024, line_bytes=32, ways=4, replacement="plru"),
                  Cache(name="through", size_bytes=1024, line_bytes=16, ways=1, write="through",
                        allocate="read")):
        replayed = replay_layers(records, cache, binary.SPANS, passes=1)
        state = new_state(cache)
        for record, other in zip(records, replayed, strict=True):
            nests = tuple(Access(operand="all", write=bool(write), width_bytes=size,
                                 offset_bytes=address)
                          for address, size, write in record.accesses[:6000].tolist())
            if len(record.accesses) > 6000:
                break  # later layers would start from another state
            counts, state = simulate_nests(cache, nests, everything, state)
            assert (counts.total("read_misses"), counts.total("write_misses"),
                    sum(owner.write_backs for owner in counts.owners)) == (
                other.read_misses, other.write_misses, other.write_backs)


def test_misses_of_layers_are_those_of_the_recorded_accesses(recorded):
    graph, built, records = recorded
    kernels = binary.read_build(built, graph)
    cache = binary.CACHES[1]
    replayed = replay_layers(records, cache, binary.SPANS, passes=1)
    state = new_state(cache)
    for kernel, other in zip(kernels, replayed, strict=True):
        counts, state = simulate_nests(cache, kernel.nests, kernel.operands, state)
        if kernel.family == "softmax":
            break
        assert counts.total("read_misses") == other.read_misses
        assert counts.total("write_misses") == other.write_misses


@needs_tools("qemu-system-arm")
@pytest.mark.parametrize("core,level,seed,compiler", [
    ("cortex-m55", "-O2", 71, "gcc"), ("cortex-m7", "-O3", 73, "gcc"),
    ("cortex-m55", "-Os", 3, "clang")])
def test_instructions_are_those_qemu_counts(core, level, seed, compiler, tmp_path):
    if compiler == "clang":
        pytest.importorskip("ziglang", reason="needs the clang extra")
    graph = random_network(seed)
    rows = list(binary.compare_counted("random", graph, core, level, tmp_path, compiler))
    assert len(rows) == len(binary.called_layers(graph))
    # The timer's reading takes five instructions more in a layer during which it wraps.
    assert all(abs(row.predicted - row.counted) <= 5 for row in rows)
