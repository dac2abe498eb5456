"""Neural processing units: stream engines, pools, epochs.

    runs = run_epochs(epochs, board.npu)      core cycles, engines, bursts, pools, and the bill
"""

from hwmodels.npu.epoch import (
    BURST_BEATS,
    EPOCH_KINDS,
    PATTERNS,
    EngineRun,
    Epoch,
    EpochRun,
    Exposed,
    InterfaceRun,
    Link,
    NpuCacheRun,
    PoolRun,
    StreamEngine,
    UnitWork,
)
from hwmodels.npu.machine import (
    MULTIPLYING,
    ROLES,
    THROUGH,
    HandOver,
    Interface,
    Npu,
    NpuCache,
    NpuEnergy,
    Pool,
    UnitKind,
)

__all__ = [
    "BURST_BEATS", "EPOCH_KINDS", "MULTIPLYING", "PATTERNS", "ROLES", "THROUGH", "EngineRun",
    "Epoch", "EpochRun", "Exposed", "HandOver", "Interface", "InterfaceRun", "Link", "Npu",
    "NpuCache", "NpuCacheRun", "NpuEnergy", "Pool", "PoolRun", "StreamEngine", "UnitKind",
    "UnitWork",
]
