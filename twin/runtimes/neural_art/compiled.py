"""A network as its compiler laid it out, as epochs the hardware model runs."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodels.quantities import apportion
from hwmodels.schedule import THROUGH, Npu, Task, Transfer, UnitWork
from hwmodels.schedule.launch import launch_tasks
from twin.runtimes.by_role.transfers import bind_transfers
from twin.runtimes.compiler import CompiledTasks
from twin.runtimes.neural_art.compiler_output import CompiledBuffer, CompiledEpoch, CompiledNetwork


def list_tasks(network: CompiledNetwork, npu: Npu) -> CompiledTasks:
    """Return a compiled network as tasks, with the compiler's figures of each epoch."""
    return CompiledTasks(
        name=network.name, tasks=to_tasks(network, npu), stated=tuple({
            "ops": one.ops, "compute_cycles": one.compute_cycles, "max_cycles": one.max_cycles}
            for one in network.epochs),
        notes=() if all(epoch.kind == "hw" for epoch in network.epochs) else (
            "what software and hybrid epochs compute is not in the compiler's output: only "
            "their dispatch is counted",))


def to_tasks(network: CompiledNetwork, npu: Npu) -> tuple[Task, ...]:
    """Return a compiled network's epochs as the hardware model runs them.

    Parameters
    ----------
    npu
        The accelerator; it must have the pools the network names.

    Returns
    -------
    tuple of Task
        Compute cycles are the compiler's. An engine walks element by element where the compiler
        estimates a beat per byte; bytes of a pool are shared among its buffers by size.
    """
    return launch_tasks([_to_task(epoch, npu) for epoch in network.epochs], npu)


def _to_task(epoch: CompiledEpoch, npu: Npu) -> Task:
    if epoch.kind != "hw":
        return Task(name=epoch.name, kind=epoch.kind, operations=epoch.operations)
    transfers: list[Transfer] = []
    for access in epoch.accesses:
        for direction, moved, cycles, buffers in (
                ("in", access.read_bytes, access.read_cycles, epoch.inputs),
                ("out", access.write_bytes, access.write_cycles, epoch.outputs)):
            transfers += _transfers(access.pool, direction, moved, cycles, buffers, npu)
    units = tuple(UnitWork(kind=kind, count=count, compute_cycles=epoch.compute_cycles)
                  for kind, count in epoch.units) or (UnitWork(kind=THROUGH),)
    return Task(name=epoch.name, kind="hw", units=units, transfers=bind_transfers(transfers, npu),
                 operations=epoch.operations)


def _transfers(pool: str, direction: str, moved: int, cycles: float,
             buffers: Sequence[CompiledBuffer], npu: Npu) -> list[Transfer]:
    if not moved:
        return []
    facts = npu.pool(pool)
    inside = [buffer for buffer in buffers if buffer.pool == pool] or [
        CompiledBuffer(name="", pool=pool, size_bytes=moved, weights=facts.external)]
    whole = sum(buffer.size_bytes for buffer in inside) or 1
    sizes = apportion([moved * buffer.size_bytes / whole for buffer in inside], moved)
    # A beat per byte costs byte_width times what full beats would; half way separates them.
    plain = moved / facts.byte_width_bytes * facts.frequency_ratio
    scattered = facts.byte_width_bytes > 1 and cycles > plain * (1 + facts.byte_width_bytes) / 2
    return [Transfer(
        channel=0, direction=direction, port="", pool=pool, bytes=size,
        pattern="channel_interleaved" if scattered else "contiguous",
        run_bytes=int(scattered), buffer_bytes=buffer.size_bytes,
        operand="weights" if buffer.weights else "input" if direction == "in" else "output")
        for buffer, size in zip(inside, sizes, strict=True) if size]
