"""Micro-benchmarks on emulated boards of hidden costs: what was planted comes back.

The probes are the real firmware's, built once.
"""

import shutil

import numpy as np
import pytest

pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("elftools", reason="needs the boards extra")
if shutil.which("arm-none-eabi-gcc") is None:
    pytest.skip("arm-none-eabi-gcc is not installed", allow_module_level=True)

from calibration.microbench.machine import describe_machine
from calibration.virtual_board import Launched
from calibration.virtual_board.costs import Costs, Span
from calibration.virtual_board.unicorn_board import run_unicorn
from hwmodels.board.facts import Cache
from hwmodels.board.file import load_board
from twin.api.commands.probe_job import build_job, prepare_job, run_job
from twin.learning.portability.probes import PlanFile
from twin.program.image.compile.ports import load_port

FLASH, SRAM = 0x08000000, 0x20000000
CASES = 6


@pytest.fixture(scope="module")
def job():
    board = load_board("nucleo_l4r5zi")
    plan = PlanFile(board=None, benchmarks=("latency:flash", "fetch", "mac:int8", "control"))
    return prepare_job(plan, board, load_port("unicorn-m4"))


@pytest.fixture(scope="module")
def image(job, tmp_path_factory):
    return build_job(job, tmp_path_factory.mktemp("probes")).image


def find(job, image, costs, folder):
    with run_unicorn("unicorn-m4", image, costs=costs) as made:
        return describe_machine(run_job(job, made.port, folder, runs=1,
                                        made=Launched(port=made.port)))


def plant(seed):
    """A machine drawn at random: cache of flash, its replacement, and what misses wait for."""
    random = np.random.default_rng(seed)
    line = int(random.choice([8, 16, 32, 64]))
    ways = int(random.choice([1, 2, 4, 8]))
    size = int(random.choice([1024, 2048, 4096, 8192, 16384]))
    size = max(size, 2 * line * ways)
    policy = str(random.choice(["lru", "plru", "fifo"]))
    cache = Cache(name="d", size_bytes=size, line_bytes=line, ways=ways, replacement=policy,
                  write="back", allocate="read")
    code = Cache(name="i", size_bytes=int(random.choice([1024, 4096, 8192])), line_bytes=16,
                 ways=2, replacement="lru", write="back", allocate="read")
    wait = float(random.integers(4, 60))
    fetch = float(random.integers(6, 40))
    span = Span(base=FLASH, end=FLASH + (2 << 20), cached=True, fetch_cached=True,
                read_miss_cycles=wait, fetch_miss_cycles=fetch)
    return Costs(core="cortex-m4", data=cache, code=code, spans=(span,)), wait, fetch


@pytest.mark.parametrize("seed", range(CASES))
def test_a_planted_cache_comes_back(job, image, tmp_path, seed):
    costs, wait, fetch = plant(seed)
    found = find(job, image, costs, tmp_path)
    (flash,), (code,) = found.memories, found.code
    assert found.kind == "simulated" and found.counter == "cpu_cycles"
    assert flash.levels[0].size_bytes == costs.data.size_bytes
    assert flash.line_bytes == costs.data.line_bytes
    assert flash.ways == costs.data.ways
    assert flash.miss_cost == pytest.approx(wait, rel=0.03)
    assert code.levels[0].size_bytes == costs.code.size_bytes
    # a line of 16 bytes waits once
    assert code.miss_cost * 16 == pytest.approx(fetch, rel=0.05)


def test_a_flash_that_only_has_a_line_buffer(job, image, tmp_path):
    span = Span(base=FLASH, end=FLASH + (2 << 20), read_cycles=6.0, buffer_bytes=16)
    (flash,) = find(job, image, Costs(core="cortex-m4", spans=(span,)), tmp_path).memories
    # a buffer is a cache of one line
    assert (flash.levels[0].size_bytes, flash.line_bytes, flash.ways) == (16, 16, 1)
    assert flash.miss_cost == pytest.approx(6.0, rel=0.03)


def test_a_machine_without_waits(job, image, tmp_path):
    found = find(job, image, Costs(core="cortex-m4"), tmp_path)
    (flash,) = found.memories
    assert (len(flash.levels), flash.line_bytes, flash.miss_cost) == (1, None, 0.0)
    # the timing table of the core (hwmodels/cores/cortex-m4.yaml): SMLAD does two in a cycle, a
    # taken branch takes three
    assert found.macs["int8"] == pytest.approx(2.0, rel=0.02)
    assert found.branch == pytest.approx(3.0, rel=0.02)
