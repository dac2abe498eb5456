"""The report of a network as Neural-ART's compiler laid it out, without a model file."""

from __future__ import annotations

from hwmodels.board.facts import Board
from hwmodels.npu.run import run_epochs
from twin.errors import UsageError
from twin.prediction.accelerator.report import (
    EpochSheet,
    ModelSheet,
    count_run,
    round_phases,
    total_counters,
)
from twin.runtimes.neural_art.compiled import to_epochs
from twin.runtimes.neural_art.compiler_output import CompiledNetwork


def make_compiled_sheet(network: CompiledNetwork, board: Board) -> ModelSheet:
    """Return what the profiler would report of a network as its compiler laid it out.

    Parameters
    ----------
    network : CompiledNetwork
        Read from the compiler's output.
    board : Board
        With the accelerator that has the network's pools.

    Returns
    -------
    ModelSheet
        Compiler lines are the compiler's own, target lines the hardware model's. What a software
        epoch computes is not in the output: only its dispatch is counted.

    Raises
    ------
    UsageError
        When the board has no accelerator.
    """
    if board.npu is None:
        raise UsageError(f"{board.name} has no accelerator to run {network.name}; see twin boards")
    host_hz = board.clock(board.core.clock).frequency_hz
    sheets, time_us = [], 0.0
    for index, (compiled, run) in enumerate(zip(
            network.epochs, run_epochs(to_epochs(network, board.npu), board.npu), strict=True)):
        core_us = run.core_npu_cycles / board.npu.frequency_hz * 1e6
        time_us += core_us + (run.pre_cpu_cycles + run.post_cpu_cycles) / host_hz * 1e6
        counters = count_run(run) | {
            "ops": compiled.ops, "compute_cycles": compiled.compute_cycles,
            "max_cycles": compiled.max_cycles, "pre_cycles": run.pre_cpu_cycles,
            "core_cycles": core_us * 1e-6 * host_hz, "post_cycles": run.post_cpu_cycles}
        sheets.append(EpochSheet(
            index=index, title=compiled.name.replace("epoch_", "EpochBlock_"),
            kind=compiled.kind.upper(), counters=counters))
    epochs = round_phases(sheets)
    return ModelSheet(host_hz=host_hz, npu_hz=board.npu.frequency_hz, epochs=epochs,
                      totals=total_counters(epochs, time_us, board.npu.frequency_hz))
