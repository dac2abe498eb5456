"""Micro-kernels on the ledger board (`ledger_board.yaml`), micro-epochs on a round NPU: bills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from made_tasks import run_launched

from hwmodels.board.file import change_board, load_board
from hwmodels.bus.contention import Load
from hwmodels.counts import Bill, Counts, Prices, make_bill, merge_counts
from hwmodels.kernel import Access, Block, Kernel, Loop, Operand
from hwmodels.prices import derive_prices
from hwmodels.schedule import Task, Transfer
from hwmodels.simulator import simulate

LEDGER = load_board(Path(__file__).with_name("ledger_board.yaml"))


ROUND = change_board(load_board("stm32n6570_dk"), {
    "power.reference_voltage_v": 1, "power.reference_ipc": 1, "power.stall_share": 0.5,
    "power.leakage_ma.default": 2, "power.clock_tree_ma_per_mhz.default": 0.2,
    "power.activity_ma_per_mhz.default": 1,
    "npu.start_cycles": 10, "npu.engine_bytes_per_cycle": 8, "npu.weight_bytes_per_cycle": 8,
    "npu.hand_over.pre_cycles": 100, "npu.hand_over.pre_engine_cycles": 10,
    "npu.hand_over.post_cycles": 50, "npu.hand_over.post_engine_cycles": 5,
    "npu.hand_over.software_cycles": 159, "npu.interfaces.busif0.write_gap_cycles": 0,
    "npu.pools.octoFlash.read_latency_cycles": 0,
    "npu.energy.mac_pj.8x8": 0.5, "npu.energy.op_pj": 3,
    "npu.energy.active_pj_per_cycle": 100, "npu.energy.idle_pj_per_cycle": 10,
    **{f"npu.pools.{pool}.{key}": value for pool in ("npuRAM3", "npuRAM4") for key, value in {
        "clock": "npu", "bytes_per_cycle": 8, "read_latency_cycles": 0, "byte_pj": 3}.items()}})
"""The N6 in round numbers: pools and interfaces move 8 bytes an NPU cycle, nothing has latency."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a bill as worked out by hand; pJ at the rail."""

    cause: str
    event: str
    place: str
    occurred: float
    exposed: float
    cycles: float
    pj: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is run, and every line its bill has.

    A kernel runs on the ledger board, epochs on the round NPU; `changes` are paths of the
    board's file; code that lies in tightly coupled memory is never waited for.
    """

    name: str
    work: Kernel | tuple[Task, ...]
    lines: tuple[Line, ...]
    changes: Mapping[str, object] = field(default_factory=dict)
    code: str = "tcm"
    cold: bool = True
    load: Load | None = None

    def run(self) -> tuple[Counts, Prices]:
        """Count the work on the changed board."""
        if isinstance(self.work, tuple):
            board = change_board(ROUND, self.changes)
            assert board.npu is not None
            runs = run_launched(self.work, board.npu)
            return merge_counts(run.counts for run in runs), derive_prices(board)
        board = change_board(LEDGER, self.changes)
        done, = simulate([self.work], board, code_memory=self.code, cold=self.cold,
                         code_address=board.memory(self.code).address,
                         loads=(self.load,) if self.load else ())
        return done.counts, derive_prices(board)

    def bill(self) -> Bill:
        """Return what it costs."""
        return make_bill(*self.run())


def block(code: str, trips: int = 1, entries: int | None = None,
          cause: str | None = None) -> Block:
    """A block run `trips` times, straight unless `entries` says otherwise."""
    return Block(name="block", code=code, trips=trips, cause=cause,
                 entries=trips if entries is None else entries)


def kernel(*blocks: Block, data: tuple[Loop, tuple[Operand, ...]] | None = None,
           **facts: int) -> Kernel:
    """A kernel of these blocks that walks this data."""
    nest, operands = data or (None, ())
    return Kernel(name="micro", family="conv", blocks=blocks, nests=(nest,) if nest else (),
                  operands=operands, **facts)


def busy(cycles: int) -> Block:
    """So many core cycles of plain arithmetic."""
    return block("adds r1, r1, r2", cycles)


def walk(memory: str, words: int, *, write: bool = False,
         offset: int = 0) -> tuple[Loop, tuple[Operand, ...]]:
    """Words of a memory touched once, in order."""
    size = 4 * words
    return (Loop(extent=words, body=(Access(operand="data", write=write, width_bytes=4,
                                            steps_bytes=(4,)),)),
            (Operand(name="data", role="input", memory=memory, size_bytes=size,
                     address=LEDGER.memory(memory).address + offset),))


def engine(index: int, direction: str, size_bytes: int, pool: str = "npuRAM4",
           operand: str = "input") -> Transfer:
    """A stream engine that walks a buffer once, over the first interface."""
    return Transfer(channel=index, direction=direction, port="busif0", pool=pool,
                        bytes=size_bytes, operand=operand)


def list_lines(bill: Bill) -> dict[tuple[str, str], Line]:
    """Lines of a bill by event and place, operands together."""
    found: dict[tuple[str, str], Line] = {}
    for one in bill.lines:
        key = one.event, one.place
        assert one.energy_pj is not None, key
        old = found.get(key, Line(one.cause, *key, 0, 0, 0, 0))
        found[key] = Line(one.cause, *key, old.occurred + one.occurred,
                          old.exposed + one.exposed, old.cycles + one.cycles,
                          old.pj + one.energy_pj)
    return found
