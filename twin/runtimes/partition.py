"""A network parted between an accelerator and its host: groups of layers, their work, the steps."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hwmodels.frozen import NamedCounts, frozen

if TYPE_CHECKING:
    from hwmodels.schedule import Task, TaskBuffer, UnitWork


class Why(enum.Enum):
    """Kinds of reasons a layer stays on the host."""

    ASKED = "kept there by the user"
    TYPE = "a type the accelerator does not compute"
    OPERATOR = "an operator the compiler has no way to run"
    RULE = "a rule of the compiler"
    UNITS = "no unit for it"
    CHANNELS = "too few channels"
    MEMORY = "too little memory"


TOO_SMALL = (Why.CHANNELS, Why.UNITS, Why.MEMORY)
"""Kinds a larger machine would not have."""


class Reason(str):
    """Why a layer stays on the host, as a sentence, and of which kind; empty: it does not."""

    why: Why

    def __new__(cls, text: str, why: Why = Why.RULE) -> Reason:
        """Keep the kind beside the text."""
        made = super().__new__(cls, text)
        made.why = why
        return made

    @property
    def too_small(self) -> bool:
        """Whether a larger machine would not have it."""
        return bool(self) and self.why in TOO_SMALL

    def __reduce__(self) -> tuple[Any, ...]:
        """Return both parts."""
        return Reason, (str(self), self.why)


@frozen
class Work:
    """A layer on the accelerator.

    Parameters
    ----------
    units
        In dataflow order.
    operations : tuple of (str, int)
        Kind and number, as the profiler lists them.
    weight_bytes
        Brought from the weights' memory, in the form the compiler stores them.
    unpacked_bytes
        Of the same weights behind the unit that unpacks them; 0: as stored.
    weight_streams
        Channels that stream them to the units; 0 where they are staged, or there are none.
    passes
        How often "input", "weights" or "output" is walked; once unless it says so.
    staged_in
        Memory they are brought to before the layer begins; "": they are streamed.
    scattered
        Whether it walks channel by channel, an element at a time.
    unpacked
        Whether the first of `units` unpacks the weights.
    loaded
        Whether a constant second operand is written into a unit, not streamed.
    """

    units: tuple[UnitWork, ...]
    operations: NamedCounts
    weight_bytes: int = 0
    unpacked_bytes: int = 0
    weight_streams: int = 0
    passes: Mapping[str, int] | None = None
    staged_in: str = ""
    scattered: bool = False
    unpacked: bool = False
    loaded: bool = False


@frozen
class Group:
    """Layers that run as one.

    Parameters
    ----------
    kind
        "task", "move" (channels alone, stepped by the host), "host" or "alias".
    chain
        Positions in the graph, in execution order; of "host", "move" and "alias" one.
    joined
        Positions of the layers before them that disappear into the first.
    """

    kind: str
    chain: tuple[int, ...]
    joined: tuple[int, ...] = ()

    @property
    def layers(self) -> tuple[int, ...]:
        """All positions, in execution order."""
        return (*self.joined, *self.chain)


@frozen
class Grouping:
    """A network cut into groups.

    Parameters
    ----------
    groups
        Every layer is in exactly one.
    works
        What layers in tasks ask of the units, by position.
    reasons
        Why each layer stays on the host.
    buffers
        Tensors within a group that are kept otherwise than whole, by tensor.
    scratch : tuple of (str, int)
        Pools the compiler keeps bytes of for itself, and how many.
    """

    groups: tuple[Group, ...]
    works: Mapping[int, Work]
    reasons: tuple[Reason, ...]
    buffers: Mapping[int, TaskBuffer]
    scratch: NamedCounts = ()


@frozen
class Step:
    """One thing of an inference.

    Parameters
    ----------
    kind
        "task" on the accelerator, "host" or "alias".
    layers
        Positions in the graph it computes; of a layout transpose, of the layer that reads it.
    task
        What the accelerator is asked, with its launch; None for an alias.
    shares
        What part of a task each layer is charged; they sum to one.
    stepped
        Whether the host steps it while channels move its data.
    """

    kind: str
    layers: tuple[int, ...]
    task: Task | None = None
    shares: tuple[float, ...] = ()
    stepped: bool = False
