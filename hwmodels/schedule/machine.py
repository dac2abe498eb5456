"""A neural processing unit as arrays: its pools, interfaces and units by number."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from hwmodels.board.npu import THROUGH, Npu
from hwmodels.columns import Keys
from hwmodels.frozen import entity
from hwmodels.paths.timing import stack_columns

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@entity
class Machine:
    """Facts of an NPU, one array each.

    Parameters
    ----------
    keys
        Numbers of its events, the same for all that runs on it.
    pools, interfaces, units
        Numbers of its parts by name; what computes nothing is the last of the units.
    ratio, bytes_per_cycle, read_latency, write_latency : ndarray of float
        Of each pool; of many machines that differ in clocks, shape (n, pools).
    external, shared, serialises, cached : ndarray of bool
        Of each pool; cached: by an NPU cache that is there and on.
    longest : ndarray of int
        Of each pool: beats of a burst.
    fill : ndarray of int
        Of each kind of unit.
    decodes : ndarray of bool
        Of each kind of unit: whether it unpacks weights.
    """

    npu: Npu
    keys: Keys
    pools: Mapping[str, int]
    interfaces: Mapping[str, int]
    units: Mapping[str, int]
    ratio: Floats
    bytes_per_cycle: Floats
    read_latency: Floats
    write_latency: Floats
    external: Flags
    shared: Flags
    serialises: Flags
    cached: Flags
    longest: Ints
    width: Ints
    gap: Floats
    any_length: Flags
    fill: Ints
    decodes: Flags

    def pool(self, name: str) -> int:
        """Return the number of a pool; it is asked for by name where it is not known."""
        found = self.pools.get(name)
        return self.pools[self.npu.pool(name).name] if found is None else found

    def port(self, name: str) -> int:
        """Return the number of a port."""
        found = self.interfaces.get(name)
        return self.interfaces[self.npu.interface(name).name] if found is None else found

    def unit(self, kind: str) -> int:
        """Return the number of a kind of unit."""
        found = self.units.get(kind)
        return self.units[self.npu.unit(kind).kind] if found is None else found


@functools.lru_cache(maxsize=32)
def read_machine(npu: Npu) -> Machine:
    """Return an NPU as arrays."""
    return lay_out(npu)


def lay_out(npu: Npu) -> Machine:
    """Return an NPU, or many in one that differ in clocks, as arrays."""
    pools, ports, units = npu.pools, npu.interfaces, npu.units
    on = npu.cache is not None and npu.cache.enabled
    return Machine(
        npu=npu, keys=Keys(),
        pools={pool.name: number for number, pool in reversed([*enumerate(pools)])},
        interfaces={port.name: number for number, port in reversed([*enumerate(ports)])},
        units={unit.kind: number for number, unit in reversed([*enumerate(units)])}
        | {THROUGH: len(units)},
        ratio=_floats(pool.clock_ratio for pool in pools),
        bytes_per_cycle=_floats(pool.bytes_per_cycle for pool in pools),
        read_latency=_floats(pool.read_latency_cycles for pool in pools),
        write_latency=_floats(pool.write_latency_cycles for pool in pools),
        external=_flags(pool.external for pool in pools),
        shared=_flags(pool.shared for pool in pools),
        serialises=_flags(pool.serialises for pool in pools),
        cached=_flags(pool.cacheable and on for pool in pools),
        longest=_ints(pool.burst_max_beats for pool in pools),
        width=_ints(port.width_bytes for port in ports),
        gap=_floats(port.write_gap_cycles for port in ports),
        any_length=_flags(port.any_length for port in ports),
        fill=_ints([*(unit.fill_cycles for unit in units), 0]),
        decodes=_flags([*("weight_decode" in unit.roles for unit in units), False]))


def _floats(values: Iterable[float]) -> Floats:
    return stack_columns([*values])


def _ints(values: Iterable[int]) -> Ints:
    return np.array([*values], np.int64)


def _flags(values: Iterable[bool]) -> Flags:
    return np.array([*values], np.bool_)
