"""What a task did, part by part: made of columns when it is first asked for."""

from __future__ import annotations

from functools import cached_property

from hwmodels.board.npu import Npu
from hwmodels.columns import ColumnCounts, CountColumns
from hwmodels.frozen import entity
from hwmodels.schedule.bill import Asked, show_exposed
from hwmodels.schedule.task import Exposed, PoolRun, Task
from hwmodels.schedule.traffic import TransferRun, show_transfers


@entity
class RunColumns:
    """What tasks did that ran in one go."""

    asked: Asked
    counts: CountColumns
    npu: Npu


class TaskRun:
    """What a task did.

    Parameters
    ----------
    table
        All tasks that ran with it.
    task
        What was asked.
    """

    def __init__(self, table: RunColumns, place: int, task: Task) -> None:
        self._table, self._place, self.task = table, place, task
        asked = table.asked
        self.core_npu_cycles = int(asked.core[place])
        self.pre_cpu_cycles, self.post_cpu_cycles = asked.host[:, place].tolist()

    @property
    def npu(self) -> Npu:
        """The machine."""
        return self._table.npu

    @property
    def compute_cycles(self) -> int:
        """Cycles of the units with ideal memory: the slowest, the others in step."""
        units = self._table.asked.units
        own = units.cycles[units.first[self._place]:units.first[self._place + 1]]
        return int(own.max(initial=0))

    @cached_property
    def transfers(self) -> tuple[TransferRun, ...]:
        """Traffic of its transfers."""
        first, last = self._table.asked.transfers.first[self._place:self._place + 2].tolist()
        return show_transfers(self.task.transfers, self._table.asked.traffic, range(first, last),
                              self.npu)

    @cached_property
    def pools(self) -> tuple[PoolRun, ...]:
        """The memories its transfers walk."""
        moved: dict[str, list[int]] = {}
        for one in self.transfers:
            sums = moved.setdefault(one.transfer.pool, [0, 0])
            sums[one.transfer.direction == "out"] += one.wanted_bytes
        seconds = self.core_npu_cycles / self.npu.frequency_hz
        return tuple(PoolRun(name=name, read_bytes=reads, write_bytes=writes,
                             mb_per_s=(reads + writes) / seconds / 1e6 if seconds else 0.0)
                     for name, (reads, writes) in moved.items())

    @cached_property
    def exposed(self) -> tuple[Exposed, ...]:
        """Resources by cycles; their sum is `core_npu_cycles` exactly."""
        return show_exposed(self._table.counts, self._place)

    @cached_property
    def counts(self) -> ColumnCounts:
        """Events of the task, accelerator and host, to be priced by a board."""
        return ColumnCounts(self._table.counts, self._place)

    def _compared(self) -> tuple[object, ...]:
        return (self.task, self.core_npu_cycles, self.compute_cycles, self.pre_cpu_cycles,
                self.post_cpu_cycles, self.transfers, self.exposed, self.counts)

    def __eq__(self, other: object) -> bool:
        """Whether both did the same, wherever that is kept."""
        return isinstance(other, TaskRun) and self._compared() == other._compared()

    def __hash__(self) -> int:
        """Return a hash of what was asked and how long it took."""
        return hash((self.task, self.core_npu_cycles))
