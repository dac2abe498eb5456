"""The shape of a core file; imports pydantic, so `hwmodels.core.file` imports it when it reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from hwmodels.core.timing import LONGEST_PORT_CYCLES

Kind = Literal["datasheet", "measured", "fitted", "derived", "assumed"]
Count = tuple[Annotated[int, Field(ge=0, strict=True)], Kind, str]
Early = tuple[Annotated[int, Field(le=LONGEST_PORT_CYCLES, strict=True)], Kind, str]
Number = tuple[Annotated[float, Field(ge=0)], Kind, str]
Truth = tuple[Annotated[bool, Field(strict=True)], Kind, str]


class Section(BaseModel):
    """Part of a core file: no key but its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CoreSection(Section):
    """As `hwmodels.core.timing.Traits`, with name and description."""

    model: str
    description: str
    isa: str
    fpu: Literal["single", "double"] | None = None
    own_caches: Annotated[bool, Field(strict=True)] = False
    cpuid: Count | None = None
    entry_cycles: Count | None = None
    emulators: dict[Literal["unicorn", "qemu", "board"], str] = Field(default_factory=dict)
    build: dict[Literal["flags", "link", "fpu", "zig"], str] = Field(default_factory=dict)


class PairingSection(Section):
    """As `hwmodels.core.timing.Pairing`."""

    narrow_only: Truth
    partners: tuple[str, ...] = ()
    second_only: bool = False
    taken_after_flags: Truth | None = None
    load_banks: Count | None = None


class RefillSection(Section):
    """As `hwmodels.core.timing.Refills`."""

    taken: Count
    exit: Count
    jump: Count
    call: Count


class UnalignedSection(Section):
    """As `hwmodels.core.timing.Unaligned`."""

    load: Count
    store: Count


class ClassSection(Section):
    """As `hwmodels.core.timing.ClassTiming`."""

    cycles: Count | None = None
    transfer_cycles: Number | None = None
    latency: Count
    units: tuple[str, ...] = ()
    busy: Count | None = None
    slot: Literal["any", "first", "alone"] = "any"
    then: dict[str, Count] = Field(default_factory=dict)
    early: Truth | None = None


class PortSection(Section):
    """As `hwmodels.core.timing.PortRule`."""

    port: Literal["value", "address", "shift", "accumulate", "data", "flags"]
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    cycles: Early


class CoreFile(Section):
    """A file of `hwmodels/cores`."""

    schema_: Literal[1] = Field(alias="schema")
    core: CoreSection
    sources: dict[str, str]
    issue_width: Count
    max_ipc: Number
    multiply_is_mac: Truth
    loop_buffer: Truth
    base_latency: Count
    pairing: PairingSection | None = None
    refill_cycles: RefillSection
    unaligned: UnalignedSection | None = None
    unit_counts: dict[str, Count] = Field(default_factory=dict)
    classes: dict[str, ClassSection]
    ports: tuple[PortSection, ...] = ()
