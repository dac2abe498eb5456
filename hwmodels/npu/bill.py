"""What epochs waited for, in whole cycles, and the events a board prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodels.columns import CountColumns
from hwmodels.counts import EVENTS
from hwmodels.npu.epoch import Exposed
from hwmodels.npu.machine import Ints, Machine
from hwmodels.npu.streams import StreamColumns
from hwmodels.npu.table import EngineColumns, UnitColumns
from hwmodels.npu.timing import TICKS, PlanColumns
from hwmodels.npu.units import name_bits

EVENT_OF_CAUSE = {
    "mac": "npu_mac_cycle", "mac_waste": "npu_mac_waste_cycle", "alu": "npu_alu_cycle",
    "sram_wait": "npu_ram_wait", "external_memory": "npu_external_wait",
    "bus_contention": "npu_bus_wait", "dma_wait": "npu_stream_wait",
    "weight_decode": "npu_decode_cycle", "launch": "npu_start",
}
"""Event that carries the exposed cycles of each cause."""

START = "start"
"""Resource of the cycles before the first request and after the last beat."""

_LAST = 1 << 40
"""Place among the lines of an epoch that nothing stands at."""

_COLUMNS = 5
"""Of blame."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """Epochs as columns: what was asked, and how it is run.

    Parameters
    ----------
    engines, units, streams, plan : EngineColumns, UnitColumns, StreamColumns, PlanColumns
        Of the same epochs.
    start : ndarray of int, (epochs,)
        NPU cycles before the first request and after the last beat.
    core : ndarray of int, (epochs,)
        NPU cycles in all.
    host : ndarray of int, (2, epochs)
        Host cycles before and after.
    """

    engines: EngineColumns
    units: UnitColumns
    streams: StreamColumns
    plan: PlanColumns
    start: Ints
    core: Ints
    host: Ints


class _Lines:
    """Amounts by epoch and key, and where among the lines of its epoch each is first met."""

    def __init__(self, epochs: int, keys: int) -> None:
        self.amounts = np.zeros((epochs, keys), np.int64)
        self.places = np.full((epochs, keys), _LAST)

    def add(self, epoch: Ints, key: Ints, place: Ints | int, amount: Ints) -> None:
        """Add amounts; nothing is done with noughts."""
        epoch, key, place, amount = np.broadcast_arrays(epoch, key, place, amount)
        some = amount != 0
        at = epoch[some], key[some]
        np.add.at(self.amounts, at, amount[some])
        np.minimum.at(self.places, at, place[some])


def count_epochs(asked: Asked, blame: Ints, machine: Machine) -> CountColumns:
    """Return the events of epochs.

    Parameters
    ----------
    asked : Asked
        What ran, and for how long.
    blame : ndarray of int64, (nodes, 5)
        Ticks by node; columns as `hwmodels.kernels.npu_streams` names them.
    machine : Machine
        What it ran on.

    Returns
    -------
    CountColumns
        Cycles by what was exposed, which sum to those in all; MACs, operations, bytes and active
        cycles for energy, which take no time of their own; host cycles.

    Notes
    -----
    Memory on the chip is `sram_wait`, outside it `external_memory`; an interface that is waited
    for while another stream holds it is `bus_contention`; its own pace and the latency of memory
    on the chip are `dma_wait`. A convolution's cycles are `mac` for the share of its lanes that
    compute and `mac_waste` for the rest and for filling. Ticks become cycles by largest remainder.
    """
    engine_keys, unit_keys = _key_engines(machine), _key_units(machine)
    work_keys = _key_work(asked, machine)
    number = machine.keys.number
    others = [number(event, place) for event, place in (
        (EVENT_OF_CAUSE["launch"], START), ("npu_active", ""), ("epoch_host_cycle", "pre"),
        ("epoch_host_cycle", "post"))]
    epochs, count = np.arange(len(asked.core)), len(machine.keys.known)
    waited, worked = _Lines(len(epochs), count), _Lines(len(epochs), count)
    waited.add(epochs, np.array(others[0]), 0, asked.start * TICKS)
    _blame_nodes(waited, asked, blame, engine_keys, unit_keys)
    waited.amounts = _round_cycles(waited, asked.core)
    last = _COLUMNS * (len(asked.engines.epoch) + len(asked.units.epoch)) + 1
    _add_work(worked, asked, work_keys, last)
    for later, (number_of, amount) in enumerate(zip(others[1:], (asked.core, *asked.host),
                                                    strict=True)):
        worked.add(epochs, np.array(number_of), 4 * last + later, amount)
    host = np.isin(np.arange(count), others[2:])
    exposed = waited.amounts + np.where(host, worked.amounts, 0)
    occurred = waited.amounts + worked.amounts
    epoch, key = np.nonzero(occurred)
    order = np.lexsort((np.minimum(waited.places, worked.places)[epoch, key], epoch))
    epoch, key = epoch[order], key[order]
    first = np.searchsorted(epoch, np.arange(len(epochs) + 1))
    return CountColumns(keys=machine.keys, first=first, key=key,
                        occurred=occurred[epoch, key].astype(np.float64),
                        exposed=exposed[epoch, key].astype(np.float64))


def _blame_nodes(waited: _Lines, asked: Asked, blame: Ints, engine_keys: Ints,
                 unit_keys: Ints) -> None:
    """Add the ticks of engines by column, and of units by whether their lanes compute."""
    engines, units = asked.engines, asked.units
    place = 1 + _COLUMNS * engines.place[:, None] + np.arange(_COLUMNS)
    waited.add(engines.epoch[:, None], engine_keys[engines.pool, engines.interface], place,
               blame[asked.plan.engines])
    own, filling = blame[asked.plan.units, 0], blame[asked.plan.units, 4]
    useful = (own * units.useful).astype(np.int64)
    count = np.diff(engines.first)[units.epoch]
    place = 1 + _COLUMNS * count[:, None] + 2 * units.place[:, None] + np.arange(2)
    keys = unit_keys[units.kind, np.where(units.multiplies, 1, 0)]
    waited.add(units.epoch[:, None], keys, place, np.stack([useful, own - useful + filling], 1))


def _round_cycles(waited: _Lines, core: Ints) -> Ints:
    """Return ticks as whole cycles that sum to those in all, by largest remainder."""
    whole, left = np.divmod(waited.amounts, TICKS)
    order = np.argsort((TICKS - left) * (2 * _LAST) + waited.places, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None], axis=1)
    cycles: Ints = whole + (rank < (core - whole.sum(axis=1))[:, None])
    return cycles


def _key_engines(machine: Machine) -> Ints:
    """Keys of the columns of blame of an engine, by pool and interface."""
    number, dma = machine.keys.number, EVENT_OF_CAUSE["dma_wait"]
    rows = []
    for name, pool in machine.pools.items():
        outside = bool(machine.external[pool])
        wait = EVENT_OF_CAUSE["external_memory" if outside else "sram_wait"]
        latency = f"latency:{name}"
        rows.append((pool, [
            [number(dma, latency), number(wait, name), number(dma, port),
             number(EVENT_OF_CAUSE["bus_contention"], port),
             number(wait if outside else dma, latency)] for port in machine.interfaces]))
    keys = np.zeros((len(machine.npu.pools), len(machine.npu.interfaces), _COLUMNS), np.int64)
    ports = list(machine.interfaces.values())
    for pool, row in rows:
        keys[pool, ports] = row
    return keys


def _key_units(machine: Machine) -> Ints:
    """Keys of useful and other cycles of units, by kind and whether they multiply."""
    number = machine.keys.number
    keys = np.zeros((len(machine.fill), 2, 2), np.int64)
    for kind, unit in machine.units.items():
        decodes = "weight_decode" in machine.npu.roles(kind)
        own = number(EVENT_OF_CAUSE["weight_decode" if decodes else "alu"], kind)
        keys[unit] = [[own, own], [number(EVENT_OF_CAUSE["mac"], kind),
                                   number(EVENT_OF_CAUSE["mac_waste"], kind)]]
    return keys


def _key_work(asked: Asked, machine: Machine) -> tuple[Ints, Ints, Ints]:
    """Keys of what takes energy and no time of its own: MACs, operations, bytes."""
    number, names = machine.keys.number, {pool: name for name, pool in machine.pools.items()}
    macs = np.array([number("npu_mac", name_bits(width)) for width in asked.units.widths], int)
    moved = [number("npu_external_byte" if outside else "npu_ram_byte", names[pool], operand)
             for pool, outside, operand in zip(
                 asked.engines.pool.tolist(), machine.external[asked.engines.pool].tolist(),
                 asked.engines.operands, strict=True)]
    return macs, np.array(number("npu_op")), np.array(moved, int)


def _add_work(worked: _Lines, asked: Asked, keys: tuple[Ints, Ints, Ints], first: int) -> None:
    """Add MACs and operations of units, then bytes of pools, from a place among the lines on."""
    units, engines = asked.units, asked.engines
    worked.add(units.epoch, keys[0], first + 2 * units.place, units.macs)
    worked.add(units.epoch, keys[1], first + 2 * units.place + 1, units.ops)
    worked.add(engines.epoch, keys[2], 2 * first + engines.place, asked.streams.pool_bytes)


def show_exposed(counts: CountColumns, epoch: int) -> tuple[Exposed, ...]:
    """Return the resources an epoch waited for, by cycles.

    Parameters
    ----------
    counts : CountColumns
        Of `count_epochs`.
    epoch : int
        Of them.
    """
    waits = set(EVENT_OF_CAUSE.values())
    return tuple(Exposed(resource=line.place, cause=EVENTS[line.event].cause,
                         npu_cycles=int(line.exposed))
                 for line in counts.make_lines(epoch) if line.event in waits)
