"""What micro-benchmarks found of a machine, beside what its board file states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibration.microbench.machine import Machine, MemoryFound
from calibration.microbench.probes import PowerStep
from calibration.virtual_board.costs import Stated
from hwmodels.quantities import significant
from twin.reports.columns import Column, number
from twin.reports.tables.parts import Content, Table, new_pairs, new_table, spaced, tabulate

UNITS = {"cpu_cycles": "cycles", "instructions": "instructions", "timer_ticks": "timer ticks"}


def machine_report(machine: Machine, name: str,
                   stated: Mapping[str, Stated] | None = None) -> Content:
    """Return the tables of a machine.

    Parameters
    ----------
    machine
        From `calibration.microbench.machine.describe_machine`.
    stated
        What its board file says of each memory, from `twin.learning.portability.rows`.
    """
    unit = UNITS[machine.counter]
    parts: list[Content] = [new_pairs((
        ("board", name), ("kind", machine.kind),
        ("unit", f"{unit}; a step of a chase holds its load and {unit} of the loop")))]
    if machine.memories:
        parts.append(_memories(machine.memories, stated or {}))
    if machine.code:
        parts.append(_code(machine.code))
    rates = [(f"{dtype} multiply-accumulates from registers", f"{significant(rate)} per count")
             for dtype, rate in machine.macs.items()]
    for text, value in (("int8 multiply-accumulates, operands loaded", machine.fed_macs),):
        rates += [(text, f"{significant(value)} per count")] if value is not None else []
    for text, value in (("branch taken", machine.branch), ("call and return", machine.call)):
        rates += [(text, significant(value))] if value is not None else []
    if rates:
        parts.append(new_pairs(rates))
    return spaced(parts)


def power_table(steps: Sequence[PowerStep], idle_mw: float | None) -> Table:
    """Return what a machine draws while it does one thing, and while it waits."""
    table = tabulate((
        Column("while", "probe.name"), number("mW", "power_mw", significant),
        number("sd", "sd_mw", significant),
        number("above idle", lambda step: None if idle_mw is None else
               significant(step.power_mw - idle_mw), "{}")), steps, "Steps of power, measured")
    if idle_mw is not None:
        table.add_row(("idle, outside the marks", significant(idle_mw)))
    return table


def _memories(memories: tuple[MemoryFound, ...], stated: Mapping[str, Stated]) -> Table:
    numbers = ("step", "holds", "line", "ways", "miss waits", "stated", "read B", "write B")
    table = new_table(("memory", *numbers), numbers, "Loads")
    for memory in memories:
        for place, level in enumerate(memory.levels):
            last = place == len(memory.levels) - 1
            text = stated.get(memory.name)
            table.add_row((
                memory.name if place == 0 else "", significant(level.cost),
                "" if last else _size(level.size_bytes),
                _size(memory.line_bytes) if place == 0 and memory.line_bytes else "",
                _ways(memory) if place == 0 else "",
                significant(memory.miss_cost) if last and memory.miss_cost else "",
                significant(text.miss_cycles) if last and text else "",
                significant(memory.read_bytes) if last and memory.read_bytes else "",
                significant(memory.write_bytes) if last and memory.write_bytes else ""))
    return table


def _ways(memory: MemoryFound) -> str:
    if memory.line_bytes is None:
        return ""
    return str(memory.ways) if memory.ways is not None else f"> {memory.ways_tried - 1}"


def _code(code: tuple[MemoryFound, ...]) -> Table:
    numbers = ("per byte", "holds")
    table = new_table(("code in", *numbers), numbers, "Straight code")
    for memory in code:
        for place, level in enumerate(memory.levels):
            table.add_row((memory.name if place == 0 else "", significant(level.cost),
                           "" if place == len(memory.levels) - 1 else _size(level.size_bytes)))
    return table


def _size(size_bytes: int) -> str:
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes} B"
