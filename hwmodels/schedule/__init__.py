"""Accelerators: what compilers ask of units, channels, ports and memories, and what that takes.

runs = run_tasks(tasks, board.npu)      cycles, transfers, memories, and the bill
"""

from hwmodels.board.npu import BURST_BEATS, MULTIPLYING, THROUGH, Interface, Npu, Pool, UnitKind
from hwmodels.schedule.details import TaskRun
from hwmodels.schedule.task import (
    PATTERNS,
    Exposed,
    Link,
    PoolRun,
    Task,
    TaskBuffer,
    Transfer,
    UnitWork,
)

__all__ = [
    "BURST_BEATS", "MULTIPLYING", "PATTERNS", "THROUGH", "Exposed", "Interface", "Link",
    "Npu", "Pool", "PoolRun", "Task", "TaskBuffer", "TaskRun", "Transfer", "UnitKind", "UnitWork",
]
