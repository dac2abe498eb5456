"""The shape of a core file; imports pydantic, so `hwmodels.core.file` imports it when it reads."""

from __future__ import annotations

import dataclasses
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hwmodels.core.timing import (
    LONGEST_CLASS_CYCLES,
    LONGEST_PORT_CYCLES,
    ClassTiming,
    Pairing,
    PortRule,
    Refills,
    Traits,
    Unaligned,
)
from hwmodels.isa import read_name

Kind = Literal["datasheet", "measured", "fitted", "derived", "assumed"]
VALUE = AfterValidator(itemgetter(0))
"""Of [value, kind, source] the value."""
if TYPE_CHECKING:
    Count: TypeAlias = int
    Cycles: TypeAlias = int
    Early: TypeAlias = int
    Number: TypeAlias = float
    Truth: TypeAlias = bool
else:
    Count = Annotated[tuple[Annotated[int, Field(ge=0, strict=True)], Kind, str], VALUE]
    Cycles = Annotated[tuple[Annotated[int, Field(ge=0, le=LONGEST_CLASS_CYCLES, strict=True)],
                             Kind, str], VALUE]
    Early = Annotated[
        tuple[Annotated[int, Field(le=LONGEST_PORT_CYCLES, strict=True)], Kind, str], VALUE]
    Number = Annotated[tuple[Annotated[float, Field(ge=0)], Kind, str], VALUE]
    Truth = Annotated[tuple[Annotated[bool, Field(strict=True)], Kind, str], VALUE]


def check_options(text: str) -> str:
    """Refuse what is no option of the machine or its code: others start programs."""
    for word in () if re.fullmatch(r"\w[-+.,=\w]*", text) else text.split():
        if "plugin" in word or not re.fullmatch(r"-[mfO][-+.,=\w]*", word):
            raise ValueError(f"{word[:60]!r} is no option of the machine or its code; accepted: "
                             "-m..., -f... without plugins, -O..., and no slash or quote in them")
    return text


Options: TypeAlias = Annotated[str, AfterValidator(check_options)]


class Section(BaseModel):
    """Part of a core file, its fields named as those of its noun: no key but its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    noun: ClassVar[type]

    def make(self) -> Any:
        """Return the noun with what the section states, its own defaults where that is nothing."""
        return self.noun(**{field.name: stated for field in dataclasses.fields(self.noun)
                            if (stated := getattr(self, field.name)) is not None})


class CoreSection(Section):
    """What a core is: its traits, name and description."""

    noun = Traits
    model: str
    description: str
    isa: Annotated[str, AfterValidator(read_name)]
    fpu: Literal["single", "double"] | None = None
    widest_fpu: Literal["none", "single", "double"] | None = None
    own_caches: Annotated[bool, Field(strict=True)] = False
    cpuid: Count | None = None
    entry_cycles: Count | None = None
    emulators: dict[Literal["unicorn", "qemu", "board"], str] = Field(default_factory=dict)
    build: dict[Literal["flags", "link", "fpu", "zig"], Options] = Field(default_factory=dict)


class PairingSection(Section):
    """Which instructions start together."""

    noun = Pairing
    narrow_only: Truth
    partners: tuple[str, ...] = ()
    second_only: bool = False
    taken_after_flags: Truth | None = None
    load_banks: Count | None = None


class RefillSection(Section):
    """What branches take."""

    noun = Refills
    taken_cycles: Cycles = Field(alias="taken")
    exit_cycles: Cycles = Field(alias="exit")
    jump_cycles: Cycles = Field(alias="jump")
    call_cycles: Cycles = Field(alias="call")


class UnalignedSection(Section):
    """What accesses across a word take."""

    noun = Unaligned
    load_cycles: Cycles = Field(alias="load")
    store_cycles: Cycles = Field(alias="store")


ByClass = Annotated[dict[str, Cycles], AfterValidator(lambda found: (*found.items(),))]


class ClassSection(Section):
    """How a timing class goes through the core."""

    noun = ClassTiming
    cycles: Cycles | None = None
    transfer_cycles: Number | None = None
    latency_cycles: Cycles = Field(alias="latency")
    units: tuple[str, ...] = ()
    busy_cycles: Cycles | None = Field(default=None, alias="busy")
    slot: Literal["any", "first", "alone"] = "any"
    then_cycles: ByClass = Field(default_factory=dict, validate_default=True, alias="then")
    holds_cycles: ByClass = Field(default_factory=dict, validate_default=True, alias="holds")
    early: Truth | None = None


class PortSection(Section):
    """When an operand is read."""

    noun = PortRule
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
