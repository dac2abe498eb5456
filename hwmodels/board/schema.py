"""A board file: its sections, and how pydantic validates it against the keys its nouns declare."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)

from hwmodels.board.declaration import (
    EFFICIENCIES,
    ENERGY,
    FREQUENCIES,
    RATE,
    SIZE,
    TEXT,
    VOLTAGE,
    VOLTAGES,
    ByScale,
    Choice,
    Declared,
    Key,
    Kind,
    Leaf,
    Part,
    Plain,
    Quantity,
    Reference,
    RefusedValueError,
    Several,
    Table,
    keys_of_part,
    shorten,
)
from hwmodels.board.facts import Board, Bus, Cache, Clock, Core, Counters, Dma, EventPrice, Memory
from hwmodels.board.npu import HandOver, Interface, Npu, NpuCache, NpuEnergy, Pool, UnitKind
from hwmodels.board.power import REGULATORS, Power, SleepState
from hwmodels.errors import BoardError, did_you_mean


class ClockKeys:
    """Of a clock that is derived from another."""

    of: Annotated[Any, Key(Reference("clock"), "Clock it is derived from.")] = None
    divide_by: Annotated[Any, Key(RATE, "That clock over this one.")] = None


class LatencyKeys:
    """A whole access without wait states; 1 is a one-cycle access."""

    cycles: Annotated[Any, Key(Quantity(low=1, high=1e6), "From request to first data.")]
    line_cycles: Annotated[Any, Key(
        Quantity(low=1, high=1e6), "What of them a line filled into a cache shows, where fills do "
                                   "not block the core; absent: all.")] = None
    clock: Annotated[Any, Key(Reference("clock"), "Of the cycles; absent: the memory's.")] = None


class MemoryKeys:
    """Of a memory: its latency, and the part's table of wait states."""

    latency: Annotated[Any, Key(
        Part(LatencyKeys), "A whole access without wait states; absent: one cycle.")] = None
    wait_states_max_hz: Annotated[Any, Key(
        ByScale(FREQUENCIES), "The highest clock with 0, 1, 2, ... wait states.")] = ()
    wait_states_min_supply_v: Annotated[Any, Key(
        VOLTAGE, "Lowest supply the table holds for.")] = None


class CacheKeys:
    """Of a cache whose line is one array read."""

    line_max_bytes: Annotated[Any, Key(
        SIZE, "Longest line the part has, where `line_bytes` is absent: a wider read fills no "
              "more.")] = None


class SupplyKeys:
    """Of the supply: what the part allows."""

    voltage_range_v: Annotated[Any, Key(VOLTAGES, "[lowest, highest] of the rail.")] = None
    regulators: Annotated[Any, Key(Several(REGULATORS), "Those the part has.")] = ()
    regulators_by_scale: Annotated[Any, Key(
        Table(Several(REGULATORS), "SCALE"), "Those that reach a voltage scale.")] = ()
    efficiency_by_v: Annotated[Any, Key(
        EFFICIENCIES, "Of the SMPS: a list of [supply voltage, efficiency 0 to 1].")] = None


class PoolKeys:
    """Of an NPU's pool: what its energy is worked out from."""

    byte_pj: Annotated[Any, Key(ENERGY, "Per byte moved.")] = None


class NpuKeys:
    """The parts of an NPU."""

    units: Annotated[Any, Key(Table(Part(UnitKind), "KIND"), "Its processing units.")]
    interfaces: Annotated[Any, Key(Table(Part(Interface), "NAME"), "Its ports to the bus.")]
    pools: Annotated[Any, Key(Table(Part(Pool, PoolKeys), "NAME"), "Memories it works in.")]
    cache: Annotated[Any, Key(Part(NpuCache), "Between interfaces and outer memory.")] = None
    hand_over: Annotated[Any, Key(Part(HandOver), "What the host does around an epoch.")]
    energy: Annotated[Any, Key(Part(NpuEnergy), "At the rail.")] = ()


class PlacementKeys:
    """Where things are by default."""

    weights: Annotated[Any, Key(Reference("memory"), "Memory the weights are in.")]
    arena: Annotated[Any, Key(Reference("memory"), "Memory the arena is in.")]
    code: Annotated[Any, Key(Reference("memory"), "Memory the code is in.")]


class BoardFile:
    """A board file."""

    schema: Annotated[Any, Key(Choice((1,)), "Version of the format.")]
    sources: Annotated[Any, Key(Table(TEXT, "SOURCE"), "Full text of each source.")]
    board: Annotated[Any, Key(Part(Board, section="board"), "What it is called.")]
    supply: Annotated[Any, Key(
        Part(Power, SupplyKeys, section="supply"),
        "The rail the energy is counted at, and what makes the core voltage of it.")]
    clocks: Annotated[Any, Key(
        Table(Part(Clock, ClockKeys), "NAME"), "A frequency, or another clock and a divider.")]
    cores: Annotated[Any, Key(Table(Part(Core), "NAME"), Core.__doc__)]
    caches: Annotated[Any, Key(Table(Part(Cache, CacheKeys), "NAME"), Cache.__doc__)] = ()
    memories: Annotated[Any, Key(
        Table(Part(Memory, MemoryKeys), "NAME"), "A memory as a load or store meets it.")]
    buses: Annotated[Any, Key(Table(Part(Bus), "NAME"), Bus.__doc__)] = ()
    dma: Annotated[Any, Key(Table(Part(Dma), "NAME"), Dma.__doc__)] = ()
    npu: Annotated[Any, Key(
        Part(Npu, NpuKeys), "An accelerator of stream engines, units and pools.")] = None
    power: Annotated[Any, Key(
        Part(Power, section="power"), "Currents of the supply rail, by voltage scale.")]
    prices: Annotated[Any, Key(
        Table(Part(EventPrice), "EVENT"),
        "EVENT or EVENT@MEMORY: overrides what would be derived.")] = ()
    placement: Annotated[Any, Key(
        Part(PlacementKeys), "Memories the weights, the arena and the code are in by default.")]
    counters: Annotated[Any, Key(Part(Counters), "What the silicon itself counts.")] = None
    sleep: Annotated[Any, Key(Table(Part(SleepState), "NAME"), SleepState.__doc__)] = ()
    virtual: Annotated[Any, Key(
        Table(TEXT, "EMULATOR"), "Its machine name in an emulator: qemu, unicorn; "
                                 "fvp: it is that model of Arm's, no hardware.")] = ()


BOARD_FILE = Part(BoardFile)
"""A whole board file."""


class Section(BaseModel):
    """A part of the file: unknown keys are refused with the nearest accepted ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    declared: ClassVar[dict[str, Declared]] = {}

    if TYPE_CHECKING:
        # The fields are those its nouns declare.
        def __getattr__(self, name: str) -> Any:
            """Tell type checkers that keys of the file are attributes."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, raw: object) -> object:
        if isinstance(raw, dict):
            for key in raw:
                if key not in cls.declared:
                    raise RefusedValueError(
                        f"unknown key; {did_you_mean(str(key), cls.declared)}", str(key))
        return raw

    def items(self) -> tuple[tuple[str, Any], ...]:
        """Values by key, as the file writes the keys."""
        return tuple((field.alias or name, getattr(self, name))
                     for name, field in type(self).model_fields.items())


@cache
def section_of(part: Part) -> type[Section]:
    """Return the model of a section, derived from the keys its nouns declare."""
    keys = keys_of_part(part)
    fields: dict[str, Any] = {}
    for key in keys:
        kept = key.name + "_version" if hasattr(BaseModel, key.name) else key.name
        accepted, default = _accepted(key.kind), _default(key)
        if not key.required and default is None:
            accepted = accepted | None
        alias = None if kept == key.name else key.name
        fields[kept] = (accepted, Field(... if key.required else default, alias=alias))
    model = create_model(f"{part.nouns[0].__name__}Section", __base__=Section, **fields)
    model.declared = {key.name: key for key in keys}
    return model


def _accepted(kind: Kind) -> Any:
    """Return the annotation by which pydantic reads a kind of value."""
    match kind:
        case Quantity() as quantity:
            def read(raw: object, info: ValidationInfo) -> Leaf:
                return quantity.read(raw, (info.context or {}).get("sources", ()))

            return Annotated[Leaf, PlainValidator(read)]
        case Plain(of, read_one):
            return _after(read_one, of)
        case Choice(words, read_one):
            return _after(read_one, Literal[words])
        case Several(of):
            return tuple[_accepted(of), ...]  # type: ignore[misc]
        case Table(of) | ByScale(of):
            return dict[str, _accepted(of)]  # type: ignore[misc]
        case Part():
            return section_of(kind)
    return str


def _after(read_one: Callable[[Any], Any] | None, accepted: Any) -> Any:
    """Return the annotation of what is accepted once it was read."""
    return accepted if read_one is None else Annotated[accepted, BeforeValidator(
        lambda raw: read_one(raw) if isinstance(raw, str) else raw)]


def _default(key: Declared) -> Any:
    """Return what a key that is omitted holds; None: nothing is stated."""
    match key.kind:
        case Plain() | Choice():
            return key.default
        case Several() | Table() if key.default is None:
            return None
        case Several():
            return ()
        case Table() | ByScale():
            return {}
        case Part() if key.default is not None and not key.required:
            return section_of(key.kind)()
    return None


def validate(document: dict[str, Any], file: str) -> Section:
    """Read a parsed board file.

    Parameters
    ----------
    document
        The parsed YAML or JSON.

    Returns
    -------
    Section
        Every key known, every number with kind, source and a possible value.

    Raises
    ------
    BoardError
        `file:dotted.key: reason; accepted ...`, naming the first thing refused.
    """
    sources = document.get("sources")
    context = {"sources": sources if isinstance(sources, dict) else {}}
    try:
        return section_of(BOARD_FILE).model_validate(document, context=context)
    except ValidationError as error:
        problems = [_describe(problem) for problem in error.errors(include_url=False)]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise BoardError(f"{file}:{problems[0]}{more}")


def _describe(problem: Any) -> str:
    path = [str(part) for part in problem["loc"]]
    refused = problem.get("ctx", {}).get("error")
    if isinstance(refused, RefusedValueError):
        path += [refused.key] if refused.key else []
        return f"{'.'.join(path)}: {refused.reason}"
    if problem["type"] == "missing":
        return f"{'.'.join(path)}: is required"
    reason = problem["msg"][0].lower() + problem["msg"][1:]
    return f"{'.'.join(path) or 'the file'}: {reason}, not {shorten(problem['input'])}"
