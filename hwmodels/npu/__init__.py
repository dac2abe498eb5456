"""Neural processing units: stream engines, pools, epochs.

runs = run_epochs(epochs, board.npu)      core cycles, engines, bursts, pools, and the bill
"""

from hwmodels.board.npu import (
    BURST_BEATS,
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
from hwmodels.npu.epoch import (
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

__all__ = [
    "BURST_BEATS", "EPOCH_KINDS", "MULTIPLYING", "PATTERNS", "ROLES", "THROUGH", "EngineRun",
    "Epoch", "EpochRun", "Exposed", "HandOver", "Interface", "InterfaceRun", "Link", "Npu",
    "NpuCache", "NpuCacheRun", "NpuEnergy", "Pool", "PoolRun", "StreamEngine", "UnitKind",
    "UnitWork",
]
