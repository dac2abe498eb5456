"""What each event costs on a board: cycles from geometry, picojoules from supply currents.

Time, in cycles of the core's clock. With r = f_cpu / f(memory clock), w its wait states, L its
latency beyond a one-cycle access, b = bus width (or its sustained bytes per cycle), a = bytes an
array read delivers, n = line bytes; all beyond the one cycle the access itself issues in:

    refill        = r (L + max(ceil(n/a) (1 + w) + ceil(min(a, n)/b) - 2, w + ceil(n/b) - 1))
    write_back    = r (L + ceil(n/b))          no wait states: a buffer takes the line
    write_through = r (L + 1)                  per store passed on
    flash_wait    = 1                          per core cycle of waiting for the flash array
    sram_wait     = r L                        per access that waits
    external_wait = r (L + w + ceil(a/b) - 1)  per access

A memory that states its phases (serial) or its rows and banks (SDRAM) takes, for a line, what
`hwmodels.paths.refill.line_cycles` says instead.

An array of wait states is read `ceil(n/a)` times one after another while the bus carries what
has been read; whichever is slower sets the pace. What of a data refill is due to wait states is
counted as `flash_wait`, so the refill's own price is the equation at w = 0; an instruction refill
is priced whole. How much of a line stretches the run is decided where events are counted
(`exposed`).

Energy, in picojoules at the rail. A current per megahertz is a charge per cycle, and the
regulator turns charge into energy, by `rail_mw_per_ma`:

    charge       Q = I_ref                          LDO or direct supply: charge is drawn 1 : 1
                 Q = I_ref V_ref eff_ref / V_core   SMPS at the reference: power is conserved
    energy       E = Q V_rail                       LDO or direct supply
                 E = Q V_core / eff                 SMPS

1 mA/MHz is 1 nC per cycle, so at 1 V it is 1000 pJ per cycle; 1 mA at 1 V is 1 pJ per ns.
Mean activity A of the reference code (run minus sleep current) is shared between its issue slots
and the cycles in which it waited, which cost a share s of A each:

    stalled cycle = s A          issue slot = A (1 - s (1 - min(ipc, 1))) / ipc

A refill costs its waiting cycles, and its array reads where their charge is known (Q_read per
read, turned into energy as above). Wait states counted apart as `flash_wait` carry their own.
Loads, stores and cache look-ups of that code are inside A, so the access events cost 0 pJ here.
A board whose currents are not known has prices in cycles and none in joules. A run current measured
while networks ran (`of_networks`) is drawn in every cycle, and nothing beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from hwmodels.board.facts import Board, Cache, EventPrice, Memory
from hwmodels.board.power import Power
from hwmodels.counts import ISSUE_EVENTS, Bill, BillLine, Price, Prices
from hwmodels.errors import BoardError
from hwmodels.paths.refill import (
    beat_bytes,
    clock_ratio,
    line_wait_cycles,
    refill_cycles,
    write_back_cycles,
)
from hwmodels.paths.ways import code_cache, data_cache, lower_cache

PJ_PER_CYCLE = 1000.0
"""pJ of 1 mA/MHz at 1 V: 1e-3 A / 1e6 Hz x 1 V = 1e-9 J."""

CYCLE_EVENTS = ("branch_refill", "pipeline_stall", "fetch_wait", "sram_conflict",
                "bus_contention", "dma_wait")
"""Counted in cycles of the core, waiting."""

INCLUDED_EVENTS = ("tcm_access", "sram_access", "dcache_access")
"""Counted for energy only."""

CLEAN_CYCLES = 4.0
"""One line of a maintenance loop: store to the cache's register, add, subtract, branch."""


def derive_prices(board: Board) -> Prices:
    """Return the price of every event on a board.

    Returns
    -------
    Prices
        Cycles of the main core's clock; pJ at the rail, None where currents are not known.
        Prices of `board.prices` replace what is derived, everywhere or at the place they name.

    Raises
    ------
    BoardError
        When a price of the file asks for derived cycles where nothing is derived.

    Notes
    -----
    Equations and assumptions are those of the module.
    """
    table = {(price.event, price.place): price for price in _derive(board)}
    for stated in board.prices:
        places = {key for key in table if key[0] == stated.event and stated.place in ("", key[1])}
        for key in places or {(stated.event, stated.place)}:
            derived = table.get(key) or table.get((stated.event, ""))
            table[key] = _state(board, stated, key[1], derived)
    return Prices(table)


def _state(board: Board, stated: EventPrice, place: str, derived: Price | None) -> Price:
    """Return a price of the board file for one place, completed by the derived one.

    Its cycles become those of the clock the derived price is of: an accelerator keeps its own.
    """
    key = f"prices.{stated.event}" + (f"@{stated.place}" if stated.place else "")
    clock = board.core.clock if derived is None else derived.clock
    if stated.cycles is not None:
        ratio = board.clock(clock).frequency_hz / board.clock(stated.clock).frequency_hz
        cycles = stated.cycles * ratio
    elif derived is not None:
        cycles = derived.cycles
    else:
        raise BoardError(f"{board.name}:{key}.cycles: nothing to derive it from here; accepted: "
                         "[cycles, kind, source]")
    pj = stated.pj if stated.pj is not None else derived.pj if derived is not None else None
    return Price(event=stated.event, place=place, cycles=cycles, clock=clock, pj=pj,
                 kind="assumed", source=f"{key} of the board file")


def rail_mw_per_ma(power: Power) -> float | None:
    """Return the power at the rail for each milliampere of the board's current tables.

    Parameters
    ----------
    power
        Supply, regulator and the conditions the tables were taken at.

    Returns
    -------
    float or None
        mW per mA, that is volts; None when a core voltage or efficiency it takes is not known.

    Notes
    -----
    On an LDO charge is drawn one to one, so energy follows the supply voltage; on an SMPS power
    is conserved up to its efficiency, so the supply current goes as V_ref / V.
    """
    was_smps = (power.reference_regulator or power.regulator) == "smps"
    if power.regulator != "smps":
        if not was_smps:
            return power.voltage_v
        if power.reference_efficiency is None or power.core_voltage_v is None:
            return None
        charge = power.reference_voltage_v * power.reference_efficiency / power.core_voltage_v
        return charge * power.voltage_v
    if was_smps:
        if power.efficiency is None or power.reference_efficiency is None:
            return power.reference_voltage_v
        return power.reference_voltage_v * power.reference_efficiency / power.efficiency
    if power.efficiency is None or power.core_voltage_v is None:
        return None
    return power.core_voltage_v / power.efficiency


def issue_pj(power: Power) -> float | None:
    """Return pJ of one issue slot at the rail, above the clock tree; None when not known."""
    mean, ipc = _activity_pj(power), power.reference_ipc
    if mean is None or ipc is None:
        return None
    return mean * (1.0 - (power.stall_share or 0.0) * (1.0 - ipc)) / ipc


def stall_pj(power: Power) -> float | None:
    """Return pJ of one waiting core cycle at the rail, above the clock tree."""
    mean = _activity_pj(power)
    return None if mean is None or power.stall_share is None else mean * power.stall_share


def clock_tree_pj(power: Power) -> float | None:
    """Return pJ the clock tree takes in one core cycle at the rail."""
    return _rail_pj(power, power.clock_tree_ma_per_mhz)


def leakage_pj(power: Power) -> float | None:
    """Return pJ per nanosecond (mW) of being powered."""
    volts = rail_mw_per_ma(power)
    return None if volts is None or power.leakage_ma is None else volts * power.leakage_ma


def _activity_pj(power: Power) -> float | None:
    """Return pJ of a cycle's activity; none of a current that is drawn in every cycle."""
    activity = _rail_pj(power, power.activity_ma_per_mhz)
    return activity if activity is None or not power.of_networks else 0.0


def _background_pj(power: Power) -> float | None:
    """Return pJ of a cycle whatever the core does: its clock tree's, or all of the run current."""
    tree, activity = clock_tree_pj(power), _rail_pj(power, power.activity_ma_per_mhz)
    return tree if tree is None or activity is None or not power.of_networks else tree + activity


def _rail_pj(power: Power, ma_per_mhz: float | None) -> float | None:
    volts = rail_mw_per_ma(power)
    return None if volts is None or ma_per_mhz is None else volts * ma_per_mhz * PJ_PER_CYCLE


def _derive(board: Board) -> Iterator[Price]:
    yield from _core_prices(board)
    for memory in board.memories:
        yield from _memory_prices(board, memory)
    yield from _hit_prices(board)
    yield from _lower_cache_prices(board)
    if board.npu is not None:
        from hwmodels.schedule.prices import derive_npu_prices

        yield from derive_npu_prices(board.npu, board.power.core_voltage_v)


def _core_prices(board: Board) -> Iterator[Price]:
    power, clock = board.power, board.core.clock
    known = power.activity_ma_per_mhz is not None

    def price(event: str, cycles: float, pj: float | None, kind: str, source: str) -> Price:
        return Price(event=event, cycles=cycles, clock=clock, pj=pj, kind=kind, source=source)

    slot, stall = issue_pj(power), stall_pj(power)
    for event in ISSUE_EVENTS:
        yield price(event, 1.0, slot, "derived", "an issue slot is a core cycle; run minus sleep "
                    "current over the reference instructions per cycle")
    for event in CYCLE_EVENTS:
        yield price(event, 1.0, stall, "derived", "a waiting core cycle; stall_share of the "
                    "activity current")
    free = 0.0 if known else None
    for event in INCLUDED_EVENTS:
        yield price(event, 0.0, free, "assumed", "inside the activity current of issue slots")
    unused = _rail_pj(power, power.activity_ma_per_mhz) if power.of_networks else None
    yield price("sleep", 1.0, free if unused is None else -unused, "derived",
                "a core cycle; its energy is the clock tree's, less a run current's activity")
    yield price("clock_tree", 0.0, _background_pj(power), "derived", "sleep current per MHz")
    yield price("leakage", 0.0, leakage_pj(power), "derived", "static current of the supply")
    yield price("kernel_dispatch", 0.0, free, "assumed", "the runtime states it")
    yield price("epoch_host_cycle", 1.0, slot, "derived", "a core cycle; an issue slot each")
    yield price("cache_clean", CLEAN_CYCLES, None if slot is None else CLEAN_CYCLES * slot,
                "assumed", "maintenance loop of four instructions a line; write-backs apart")


def _memory_prices(board: Board, memory: Memory) -> Iterator[Price]:
    stall, clock = stall_pj(board.power), board.core.clock
    rail = rail_mw_per_ma(board.power)
    read = (0.0 if rail is None or board.power.of_networks else rail) * (
        memory.read_charge_pc or 0.0)

    def price(event: str, cycles: float, line_bytes: int = 0) -> Price:
        reads = math.ceil(line_bytes / memory.read_bytes)
        return Price(event=event, place=memory.name, cycles=cycles, clock=clock,
                     pj=None if stall is None else cycles * stall + reads * read, kind="derived",
                     source=f"latency, wait states and width of {memory.name}; a waiting cycle "
                            "costs stall_share of the activity current")

    ratio, latency = clock_ratio(board, memory), memory.latency_cycles
    yield price("flash_wait", 1.0)
    yield Price(event="dma_byte", place=memory.name, cycles=0.0, clock=clock, kind="derived",
                pj=None if stall is None else read / memory.read_bytes,
                source=f"array reads of {memory.name}, where their charge is known")
    yield price("sram_wait", ratio * latency)
    yield price("write_through", ratio * (latency + 1))
    beats = math.ceil(memory.read_bytes / beat_bytes(board, memory))
    yield price("external_wait", ratio * (latency + memory.wait_states + beats - 1))
    icache, dcache = code_cache(board, memory), data_cache(board, memory)
    if icache is not None:
        line_bytes = _filled_bytes(board, icache, memory)
        yield price("icache_refill", refill_cycles(board, memory, line_bytes), line_bytes)
    if dcache is not None:
        line_bytes = _filled_bytes(board, dcache, memory)
        refill = (refill_cycles(board, memory, line_bytes)
                  - line_wait_cycles(board, memory, line_bytes))
        yield price("dcache_read_refill", refill, line_bytes)
        yield price("dcache_write_refill", refill, line_bytes)
        yield price("write_back", write_back_cycles(board, memory, line_bytes))


def _hit_prices(board: Board) -> Iterator[Price]:
    """Look-ups of a first cache that takes longer than the access itself."""
    stall = stall_pj(board.power)
    for cache in board.caches:
        if cache.hit_cycles:
            yield Price(event="dcache_access", place=cache.name, cycles=1.0,
                        clock=board.core.clock, kind="derived",
                        pj=None if stall is None else cache.hit_cycles * stall,
                        source=f"hit_cycles of {cache.name}, each exposed")


def _lower_cache_prices(board: Board) -> Iterator[Price]:
    """Lines moved between a cache and the one below it: the look-up there is their cost."""
    stall = stall_pj(board.power)
    for cache in board.caches:
        lower = board.cache(cache.below) if cache.enabled else None
        if lower is None or not lower.enabled:
            continue
        for event in ("icache_refill", "dcache_read_refill", "dcache_write_refill", "write_back"):
            yield Price(event=event, place=lower.name, cycles=float(lower.hit_cycles),
                        clock=board.core.clock, kind="derived",
                        pj=None if stall is None else lower.hit_cycles * stall,
                        source=f"hit_cycles of {lower.name}")


def _filled_bytes(board: Board, cache: Cache, memory: Memory) -> int:
    """Line that comes from the memory: that of the lowest cache on the way to it."""
    return (lower_cache(board, cache, memory) or cache).line_bytes


def add_background(bill: Bill, board: Board, prices: Prices) -> Bill:
    """Add what being powered costs while the bill's cycles pass: clock tree and leakage.

    Parameters
    ----------
    bill
        Whose cycles, of its clocks one after the other, are the time.
    prices
        pJ per cycle and per nanosecond.

    Returns
    -------
    Bill
        With two more lines of zero cycles; unchanged when no time passes.
    """
    hertz = board.core_clock.frequency_hz
    cycles = math.fsum(passed * (hertz / board.hertz[name])
                       for name, passed in bill.clock_cycles().items())
    if not cycles:
        return bill
    extra = []
    for event, quantity in (("clock_tree", cycles), ("leakage", cycles / hertz * 1e9)):
        pj = prices.price(event, "").pj
        extra.append(BillLine(
            event=event, place="", operand="", clock=board.core.clock, occurred=quantity,
            exposed=0.0, cycles=0.0, energy_pj=None if pj is None else quantity * pj))
    return Bill((*bill.lines, *extra))
