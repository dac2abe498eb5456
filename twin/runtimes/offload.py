"""What a runtime hands to an accelerator: which operators, in what form, at what cost.

Facts of a compiler and its driver, not of the machine: the machine is `hwmodels.npu.Npu`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hwmodels.errors import did_you_mean
from twin.errors import RuntimeRefusedError
from twin.network.operators import OPERATORS

DEPTHWISE_FORMS = ("native", "grouped")
"""native: channel by channel; grouped: as dense convolutions of eight channels, block-diagonal."""

Number = Callable[[str, Any], float]
"""(key, leaf of the file) -> its value, its fact kept."""

_CHOICES = ("family", "depthwise", "host_operators", "moved_operators")
_NUMBERS = ("group_channels", "pointwise_macs_per_cycle", "channels_per_unit",
            "packed_weight_bytes_per_cycle", "pool_window_elements", "move_cycles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """How a compiler maps a network onto an accelerator.

    Parameters
    ----------
    family : str
        Accelerators it compiles for: `Npu.family`.
    depthwise : str
        One of `DEPTHWISE_FORMS`.
    host_operators : tuple of str
        Operators that always run on the host core.
    moved_operators : tuple of str
        Operators that only move data: engines move it, the host steps them ("hybrid").
    group_channels : int
        Channels of one dense group of a grouped depthwise convolution.
    pointwise_macs_per_cycle : float
        Of one convolution unit on a 1x1 kernel; larger kernels reach the unit's peak.
    channels_per_unit : int
        Input channels of a 1x1 convolution before the compiler takes another unit.
    packed_weight_bytes_per_cycle : int
        Weights a stream delivers per cycle where there are fewer outputs than inputs; else one.
    pool_window_elements : int
        Largest averaging window the pooling unit takes.
    move_cycles : float
        Host cycles to step one moved operator, its engines' hand-over apart.
    """

    family: str
    depthwise: str
    host_operators: tuple[str, ...]
    moved_operators: tuple[str, ...]
    group_channels: int
    pointwise_macs_per_cycle: float
    channels_per_unit: int
    packed_weight_bytes_per_cycle: int
    pool_window_elements: int
    move_cycles: float


def read_offload(where: str, leaves: Mapping[str, Any], number: Number) -> Offload:
    """Read the `offload` section of a runtime file.

    Parameters
    ----------
    where : str
        File and key, for errors.
    leaves : mapping
        The section.
    number : callable
        Reads a number with its source.

    Raises
    ------
    RuntimeRefusedError
        Naming the key and what would be accepted.
    """
    keys = (*_CHOICES, *_NUMBERS)
    for key in leaves:
        if key not in keys:
            raise RuntimeRefusedError(f"{where}.{key}: unknown key; {did_you_mean(key, keys)}")
    missing = [key for key in keys if key not in leaves]
    if missing:
        raise RuntimeRefusedError(f"{where}.{missing[0]}: missing")
    if leaves["depthwise"] not in DEPTHWISE_FORMS:
        raise RuntimeRefusedError(f"{where}.depthwise: {leaves['depthwise']!r}; accepted: "
                                  + ", ".join(DEPTHWISE_FORMS))
    for key in ("host_operators", "moved_operators"):
        for op in leaves[key]:
            if op not in OPERATORS:
                raise RuntimeRefusedError(f"{where}.{key}: no operator {op!r}; "
                                          + did_you_mean(op, OPERATORS))
    values = {key: number(f"offload.{key}", leaves[key]) for key in _NUMBERS}
    return Offload(
        family=str(leaves["family"]), depthwise=leaves["depthwise"],
        host_operators=tuple(leaves["host_operators"]),
        moved_operators=tuple(leaves["moved_operators"]),
        group_channels=int(values["group_channels"]),
        pointwise_macs_per_cycle=values["pointwise_macs_per_cycle"],
        channels_per_unit=int(values["channels_per_unit"]),
        packed_weight_bytes_per_cycle=int(values["packed_weight_bytes_per_cycle"]),
        pool_window_elements=int(values["pool_window_elements"]),
        move_cycles=values["move_cycles"],
    )
