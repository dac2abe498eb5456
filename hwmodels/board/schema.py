"""The sections and keys of a board file, validated by pydantic; names and switches are plain."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hwmodels.board.leaf import (
    Address,
    Charge,
    Count,
    Current,
    CurrentPerMhz,
    Cycles,
    Efficiencies,
    Energy,
    Frequencies,
    Frequency,
    Ipc,
    Leaf,
    Money,
    Policy,
    Rate,
    Share,
    Size,
    Voltage,
    Voltages,
    WholeCycles,
    quantity,
    refuse_value,
    shorten,
)
from hwmodels.errors import BoardError, did_you_mean


class Section(BaseModel):
    """A part of the file: unknown keys are refused with the nearest accepted ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, raw: object) -> object:
        if isinstance(raw, dict):
            accepted = cls.keys()
            for key in raw:
                if key not in accepted:
                    raise refuse_value(f"unknown key; {did_you_mean(str(key), accepted)}", str(key))
        return raw

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Keys of the section, as the file writes them."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())


class HeaderSection(Section):
    """`board`: what it is called."""

    name: str
    soc: str
    core_family: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    price_usd: Money | None = None


class SupplySection(Section):
    """`supply`: the rail the energy is counted at, and what makes the core voltage of it."""

    voltage_v: Voltage
    voltage_range_v: Voltages | None = None
    regulator: Literal["ldo", "smps", "none"]
    regulators: tuple[Literal["ldo", "smps", "none"], ...] = ()
    regulators_by_scale: dict[str, tuple[Literal["ldo", "smps", "none"], ...]] = {}
    voltage_scale: str = "default"
    core_voltage_v: dict[str, Voltage] = {}
    efficiency_by_v: Efficiencies | None = None


class ClockSection(Section):
    """`clocks.NAME`: a frequency, or another clock and a divider."""

    frequency_hz: Frequency | None = None
    of: str | None = None
    divide_by: Rate | None = None
    max_hz_by_scale: dict[str, Frequency] = {}


class CoreSection(Section):
    """`cores.NAME`."""

    isa: Literal["armv6-m", "armv7-m", "armv7e-m", "armv8-m", "armv8-m-dsp", "armv8.1-m-mve",
                 "rv32imac", "x86-64"]
    model: str
    clock: str
    fpu: Literal["single", "double"] | None = None
    icache: str | None = None
    dcache: str | None = None
    data_caches: tuple[str, ...] = ()


class CacheSection(Section):
    """`caches.NAME`; an accelerator in front of a flash is a cache that serves it.

    Absent `line_bytes`: one array read of the memory it serves; absent `ways`: fully associative.
    """

    size_bytes: Size
    line_bytes: Size | None = None
    ways: Count | None = None
    replacement: Policy | None = None
    write: Literal["back", "through"] = "back"
    allocate: Literal["read", "read_write"] = "read_write"
    serves: tuple[str, ...] = ()
    hit_cycles: WholeCycles | None = None
    enabled: bool = True
    critical_word_first: bool = False
    streaming_lines: WholeCycles | None = None
    below: str | None = None


class LatencySection(Section):
    """`memories.NAME.latency`: a whole access without wait states; 1 is a one-cycle access."""

    cycles: Annotated[Leaf, quantity(low=1, high=1e6)]
    clock: str | None = None


class SerialSection(Section):
    """`memories.NAME.serial`: phases of an access; `latency` counts them, too."""

    mode: str
    command_bits: WholeCycles
    address_bits: WholeCycles
    dummy_cycles: WholeCycles
    select_cycles: WholeCycles | None = None


class SdramSection(Section):
    """`memories.NAME.sdram`: rows and banks; `latency` is that of an open row."""

    bus_bytes: Size
    banks: Count
    row_bytes: Size
    bank_bytes: Size
    cas_cycles: WholeCycles
    rcd_cycles: WholeCycles
    rp_cycles: WholeCycles
    wr_cycles: WholeCycles
    rfc_cycles: WholeCycles
    refresh_cycles: WholeCycles


class MemorySection(Section):
    """`memories.NAME`; absent: latency one cycle, array reads as wide as the bus."""

    role: Literal["tcm", "sram", "flash", "external_ram", "external_flash", "npu_ram", "rom"]
    address: Address
    size_bytes: Size
    cacheable: bool | None = None
    bus: str | None = None
    clock: str | None = None
    latency: LatencySection | None = None
    wait_states: WholeCycles | None = None
    wait_states_max_hz: dict[str, Frequencies] = {}
    wait_states_min_supply_v: Voltage | None = None
    read_bytes: Size | None = None
    line_buffer: bool = False
    prefetch: bool = False
    bytes_per_cycle: Rate | None = None
    banks: Count | None = None
    interleave_bytes: Size | None = None
    serial: SerialSection | None = None
    sdram: SdramSection | None = None
    read_charge_pc: Charge | None = None


class BusSection(Section):
    """`buses.NAME`."""

    clock: str
    width_bytes: Size
    arbitration: Literal["round_robin", "fixed", "first_come"] = "round_robin"
    masters: tuple[str, ...] = ()


class DmaSection(Section):
    """`dma.NAME`."""

    bus: str
    clock: str
    setup_cycles: WholeCycles
    channels: Count | None = None


class NpuUnitSection(Section):
    """`npu.units.NAME`: what it does, how many there are and how fast one is."""

    roles: tuple[str, ...]
    count: Count
    macs_per_cycle: dict[str, Rate] = {}
    ops_per_cycle: Rate | None = None
    fill_cycles: WholeCycles | None = None


class NpuInterfaceSection(Section):
    """`npu.interfaces.NAME`."""

    width_bytes: Size
    write_gap_cycles: Cycles | None = None


class NpuPoolSection(Section):
    """`npu.pools.NAME`; absent: clock, bandwidth and latency are the memory's."""

    memory: str
    size_bytes: Size | None = None
    byte_width_bytes: Size
    frequency_ratio: Rate
    serialises: bool = True
    shared: bool = False
    cacheable: bool = False
    clock: str | None = None
    bytes_per_cycle: Rate | None = None
    read_latency_cycles: Cycles | None = None
    write_latency_cycles: Cycles | None = None
    burst_max_beats: Count | None = None
    byte_pj: Energy | None = None


class NpuCacheSection(Section):
    """`npu.cache`."""

    size_bytes: Size
    line_bytes: Size
    ways: Count
    enabled: bool = True


class HandOverSection(Section):
    """`npu.hand_over`: what the host does around an epoch, in cycles of its clock."""

    clock: str
    pre_cycles: Cycles
    post_cycles: Cycles
    pre_engine_cycles: Cycles | None = None
    post_engine_cycles: Cycles | None = None
    pre_unit_cycles: dict[str, Cycles] = {}
    post_unit_cycles: dict[str, Cycles] = {}
    pre_further_unit_cycles: dict[str, Cycles] = {}
    software_cycles: Cycles | None = None


class NpuEnergySection(Section):
    """`npu.energy`: at the rail; bytes are priced by pool."""

    mac_pj: dict[str, Energy] = {}
    op_pj: Energy | None = None
    active_pj_per_cycle: Energy | None = None
    idle_pj_per_cycle: Energy | None = None


class NpuSection(Section):
    """`npu`: an accelerator of stream engines, units and pools."""

    family: str
    clock: str
    engines: Count
    engine_buffer_bytes: Size
    engine_bytes_per_cycle: Rate
    strided_read_bytes_per_cycle: Rate | None = None
    engine_outstanding: Count
    weight_bytes_per_cycle: Rate | None = None
    weight_ahead_bytes: Annotated[
        Leaf, quantity(dimension="bytes", low=0, high=2**30, whole=True)] | None = None
    start_cycles: WholeCycles
    sums_directions: bool = False
    epoch_controller: bool = False
    controller_engine_cycles: Cycles | None = None
    units: dict[str, NpuUnitSection]
    interfaces: dict[str, NpuInterfaceSection]
    pools: dict[str, NpuPoolSection]
    cache: NpuCacheSection | None = None
    hand_over: HandOverSection
    energy: NpuEnergySection = NpuEnergySection()


class PowerSection(Section):
    """`power`: currents of the supply rail, by voltage scale."""

    reference_voltage_v: Voltage | None = None
    reference_regulator: Literal["ldo", "smps", "none"] | None = None
    leakage_ma: dict[str, Current] = {}
    clock_tree_ma_per_mhz: dict[str, CurrentPerMhz] = {}
    activity_ma_per_mhz: dict[str, CurrentPerMhz] = {}
    reference_ipc: Ipc | None = None
    stall_share: Share | None = None
    sleep_ma: Current | None = None


class PriceSection(Section):
    """`prices.EVENT` or `prices.EVENT@MEMORY`: overrides what would be derived."""

    cycles: Annotated[Leaf, quantity(low=0, high=1e6, words=("derived",))] | None = None
    clock: str | None = None
    pj: Energy | None = None


class PlacementSection(Section):
    """`placement`: memories the weights, the arena and the code are in by default."""

    weights: str
    arena: str
    code: str


class LevelsSection(Section):
    """`counters.levels`: what can be known of each level of metrics on this silicon."""

    l4: str
    l3: str
    l2: str
    l1: str


class CountersSection(Section):
    """`counters`: what the silicon itself counts."""

    cycle_counter: str | None = None
    wrapping_counters: tuple[str, ...] = ()
    pmu_counters: Annotated[Leaf, quantity(low=0, high=64, whole=True)] | None = None
    cache_monitors: tuple[str, ...] = ()
    source: str
    levels: LevelsSection


class BoardSection(Section):
    """A whole board file."""

    schema_version: Literal[1] = Field(alias="schema")
    sources: dict[str, str]
    board: HeaderSection
    supply: SupplySection
    clocks: dict[str, ClockSection]
    cores: dict[str, CoreSection]
    caches: dict[str, CacheSection] = {}
    memories: dict[str, MemorySection]
    buses: dict[str, BusSection] = {}
    dma: dict[str, DmaSection] = {}
    npu: NpuSection | None = None
    power: PowerSection
    prices: dict[str, PriceSection] = {}
    placement: PlacementSection
    counters: CountersSection | None = None
    virtual: dict[str, str] = {}


def validate(document: dict[str, Any], file: str) -> BoardSection:
    """Read a parsed board file.

    Parameters
    ----------
    document : dict
        The parsed YAML or JSON.
    file : str
        Its name, for messages.

    Returns
    -------
    BoardSection
        Every key known, every number with kind, source and a possible value.

    Raises
    ------
    BoardError
        `file:dotted.key: reason; accepted ...`, naming the first thing refused.
    """
    sources = document.get("sources")
    context = {"sources": sources if isinstance(sources, dict) else {}}
    try:
        return BoardSection.model_validate(document, context=context)
    except ValidationError as error:
        problems = [_describe(problem) for problem in error.errors(include_url=False)]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise BoardError(f"{file}:{problems[0]}{more}")


def _describe(problem: Any) -> str:
    context = problem.get("ctx", {})
    path = [str(part) for part in problem["loc"]]
    if problem["type"] == "board":
        path += [context["key"]] if context["key"] else []
        return f"{'.'.join(path)}: {context['reason']}"
    if problem["type"] == "missing":
        return f"{'.'.join(path)}: is required"
    reason = problem["msg"][0].lower() + problem["msg"][1:]
    return f"{'.'.join(path) or 'the file'}: {reason}, not {shorten(problem['input'])}"


def is_number(section: type[Section], key: str) -> bool:
    """Whether a key of a section holds leaves (itself, or in a table by voltage scale)."""
    field = section.model_fields[key]
    return "Quantity" in repr(field.annotation) + repr(field.metadata)
