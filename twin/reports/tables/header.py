"""The header of a report: model or program, board, runtime, memory, result; and its set-up."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from calibration.fitting.intervals import Interval, describe_basis
from hwmodels.board.facts import Board
from hwmodels.board.file import WHAT_IF_SOURCE, change_board, load_board
from hwmodels.errors import BoardError
from hwmodels.file_cache import read_yaml_once
from hwmodels.quantities import (
    NOT_KNOWN,
    format_energy,
    format_frequency,
    format_size,
    format_time,
    format_used,
    significant,
    write_setting,
)
from twin.pricing.grade import say_grade
from twin.pricing.ledger import (
    Ledger,
    bill_time_us,
    cycles_by_clock,
    explain_time,
    find_largest,
    least_mac_us,
    make_ledger,
    name_energies,
)
from twin.pricing.prediction import LayerPrediction, Prediction
from twin.reports.tables.parts import Pairs

_GLOSSARY = Path(__file__).parents[1] / "glossary.yaml"

USUAL = "shipped", "accelerator"
"""Sources of the prices a command takes that states no calibration."""

MOST_NOTES = 3
"""Warnings that stand beside the figures they concern; the rest is for --details."""

_BESIDE = {"no interval: ": "time", "extrapolating: ": "time", "assumed: ": "time",
           "cache: ": "board", "energy": "energy", "placement: ": "fits",
           "structural assumption: ": "library", "prices: ": "prices"}
"""How a warning begins, and which figure it concerns; what matters most first."""


class Notes(NamedTuple):
    """The warnings of a prediction, by where they are said."""

    beside: dict[str, str]
    """By figure, one each."""
    rest: list[str]
    """For --details."""
    apart: list[str]
    """What concerns no figure of the first screen, nor repeats a line of it."""


def place_warnings(prediction: Prediction) -> Notes:
    """Sort warnings by the figure they concern; at most `MOST_NOTES` stand beside one."""
    notes = Notes({}, [], [warning for warning in list_doubts(prediction, prediction.warnings)
                           if not warning.startswith(tuple(_BESIDE))])
    named = f"structural assumption: {prediction.runtime.identity} "
    for start, figure in _BESIDE.items():
        for warning in (each for each in prediction.warnings if each.startswith(start)):
            if figure in notes.beside or len(notes.beside) == MOST_NOTES:
                notes.rest.append(warning)
            else:
                notes.beside[figure] = warning if figure in ("time", "board") else (
                    warning.removeprefix(named).removeprefix(start).lstrip(": ").removeprefix(
                        "is not known: "))
    return notes


def list_doubts(prediction: Prediction, warnings: Iterable[str]) -> list[str]:
    """Return warnings but those that say which library and prices stand behind the figures."""
    basis = (_library_note(prediction), *(
        f"calibrated: {text}" for _, text in calibration_pairs(prediction)))
    return [warning for warning in warnings if warning not in basis]


def _library_note(prediction: Prediction) -> str:
    """Return the note that says why a library was assumed; "" where somebody asked for it."""
    start = f"runtime: {prediction.runtime.name}@"
    return next((note for note in prediction.deployment.notes if note.startswith(start)
                 and note.split(" ", 2)[1].endswith(",")), "")


def describe_library(prediction: Prediction) -> str:
    """Return the library, and why it was assumed where nobody asked for it."""
    _, comma, why = _library_note(prediction).partition(", ")
    return (f"{prediction.runtime.identity}{comma}{why.partition(': none was asked')[0]}")


def describe_prices(prediction: Prediction) -> str:
    """Return the library and the grade, a line each."""
    return f"library {describe_library(prediction)}\nprices {say_grade(prediction)}"


def describe_rest(prediction: Prediction) -> str:
    """Return what intervals rest on, and that this board or library was not measured, if so."""
    sure = prediction.certainty
    assert sure is not None, "asked of a prediction at stated prices"
    return describe_basis(sure.basis, sure.errors, measured=sure.measured, boards=sure.boards)


def _name_board(board: Board) -> list[str]:
    """Return how a command names a board and its changed facts; empty where none gives it."""
    name = board.file or board.name
    changes = {fact.path: fact.value for fact in board.facts if fact.source == WHAT_IF_SOURCE}
    try:
        if change_board(load_board(name), changes, follow_clock=True) != board:
            return []
    except BoardError:
        return []
    return [name, *(word for path, value in changes.items()
                          for word in ("--set", write_setting(path, value)))]


def answer_pairs(prediction: Prediction, duty: str = "", better: str = "") -> Pairs:
    """Return what is asked first: time, energy, room, arena, library, what takes most time.

    `better` says which setting helps; without it the line says what may.
    """
    deployment, sure = prediction.deployment, prediction.certainty
    board, arena, largest = deployment.board, deployment.buffer, find_largest(prediction)
    frequency = format_frequency(board.core_clock.frequency_hz)
    filled = {**(deployment.plan.filled or {
        "RAM": (prediction.ram_bytes, prediction.ram_available_bytes)}),
        deployment.store_name: (prediction.flash_bytes, prediction.flash_available_bytes)}
    lines = {
        "model": f"{deployment.graph.name}, {prediction.macs:,} MACs" + "".join(
            f", figures are of a batch of {inputs} inputs"
            for name, inputs in deployment.rewritten if name == "network.batch"),
        "board": f"{board.name}, {board.core.model} at {frequency}",
        "time": (f"{prediction.kind} {format_time(prediction.time_us)}"
                 f"{_within(prediction.time_interval, format_time)}, "
                 f"{prediction.temperature} caches"),
        "energy": NOT_KNOWN if prediction.energy_uj is None else (
                   f"{prediction.kind} " + "; ".join(
                       f"{format_energy(value)}{name.removeprefix('energy')}"
                       f"{_within(interval, format_energy)}" for name, (value, interval) in
                       name_energies(prediction).items())),
        "duty": duty,
        "fits": ("" if all(used <= room for used, room in filled.values()) else "no: ")
        + ", ".join(f"{name} {format_size(used)} of {format_size(room)}"
                    for name, (used, room) in filled.items()),
        "arena": f"{arena.name} >= {arena.needed_bytes:,} bytes" if arena else "",
        "library": describe_library(prediction),
        "prices": say_grade(prediction) + ": "
        + calibration_pairs(prediction)[0][1].removeprefix("none: ")}
    if largest is not None:
        lines["mostly"] = f"{100 * largest.share:.0f} % {largest.cause}: {largest.text}"
        core, _, npu = read_yaml_once(_GLOSSARY)[largest.cause]["lever"].partition(" On an NPU: ")
        on_npu = prediction.coverage and 2 * prediction.coverage.host_us < prediction.time_us
        lines["helps"] = better or _find_short(prediction) or ((on_npu and npu) or core).rstrip(".")
        if sure and sure.draw and sure.draw.source[0] in USUAL and not (
                deployment.target.executes or deployment.rewritten or deployment.loads) and (
                named := _name_board(board)):
            limit = significant(0.8e-3 * prediction.time_us, 2).replace(",", "")
            words = ("twin", "advise", deployment.graph.source.removeprefix("zoo:"), "-b", *named,
                     *(word for role, name in deployment.places.items() if name
                       for word in (f"--{role}", name)),
                     "--runtime", deployment.runtime.identity, "--max-ms", limit)
            lines["helps"] += f"; `{shlex.join(words)}`"
    notes = place_warnings(prediction).beside
    if "library" in notes and not prediction.tasks:
        notes["library"] += "; causes assumed"
    return [pair for name, text in lines.items() if text
            for pair in ((name, text), *([("", notes[name])] if name in notes else []))]


def _find_short(prediction: Prediction) -> str:
    """Say what an accelerator has too little of for the costliest layer; "" if for none."""
    _, index, reason = max(((layer.time_us, layer.index, reason) for layer, reason in zip(
        prediction.layers, prediction.deployment.plan.reasons, strict=False)), default=(0, 0, ""))
    return f"A larger accelerator, as layer {index} is on the host: {reason}" if (
        getattr(reason, "too_small", False)) else ""


def _within(interval: Interval | None, show: Callable[[float], str]) -> str:
    return "" if interval is None else f", {interval.describe(show)}"


def header_pairs(prediction: Prediction) -> Pairs:
    """Return the report's header: model, board, runtime, memory, result."""
    deployment = prediction.deployment
    board = deployment.board
    frequency = format_frequency(board.core_clock.frequency_hz)
    if deployment.target.executes:
        from twin.reports.tables.program import program_pairs

        subject, memory = program_pairs(prediction)
    else:
        subject, memory = _network_pairs(prediction)
    return [
        *subject,
        ("board", f"{board.name}, {board.soc}, {board.core.model} at {frequency}"),
        *memory,
        (deployment.store_name, format_used(prediction.flash_bytes,
                                            prediction.flash_available_bytes)),
        *_accelerated(prediction),
        *calibration_pairs(prediction),
        (prediction.kind, result_line(prediction)),
        *interval_pairs(prediction),
        *([("voltage", prediction.voltage)] if prediction.voltage else []),
    ]


def _network_pairs(prediction: Prediction) -> tuple[Pairs, Pairs]:
    """Return what stands for the network in the header, and for its memory."""
    deployment = prediction.deployment
    graph = deployment.graph
    macs, executed_macs, parameters = prediction.network_sizes
    live = f" ({executed_macs:,} without dead channels)" if executed_macs != macs else ""
    placement = deployment.placement
    peak = "" if placement.hides_lives else f", peak in layer {placement.peak_layer}"
    return [
        ("model", f"{graph.name}, sha256 {graph.sha256[:12]}, architecture "
                  f"{graph.architecture_id}"),
        ("", f"{macs:,} MACs{live}, {parameters:,} parameters"),
    ], [
        ("runtime", f"{deployment.runtime.identity}, weights in {deployment.weights_named}, "
                    f"arena in {deployment.arena_named}, code in {deployment.code}"),
        ("RAM", (", ".join(f"{name} {format_used(*fill)}" for name, fill in
                           deployment.plan.filled.items())
                 or format_used(prediction.ram_bytes, prediction.ram_available_bytes))
                + peak),
        ("", _ram_parts(prediction)),
        *((("arena", deployment.buffer.description),) if deployment.buffer else ()),
    ]


def _accelerated(prediction: Prediction) -> Pairs:
    """Return what an accelerator takes; nothing without tasks."""
    if not prediction.tasks:
        return []
    from twin.reports.tables.coverage import coverage_pairs

    return coverage_pairs(prediction)


def calibration_pairs(prediction: Prediction) -> Pairs:
    """Return which learnt prices stand behind the figures."""
    sure = prediction.certainty
    if sure is None:
        runtime = prediction.runtime
        return [("calibration", "none: prices are what " + (
            f"{runtime.identity} states either way; their interval is left out"
            if runtime.accelerated else
            "datasheets and lowered kernels say"))]
    return [("calibration", sure.calibration)]


def interval_pairs(prediction: Prediction) -> Pairs:
    """Return the intervals of time and energy, what they rest on, and why not to trust them."""
    sure = prediction.certainty
    if sure is None:
        return []
    time = sure.time_us
    text = time.write(format_time)
    if sure.energy_uj is not None:
        text += f", energy {sure.energy_uj.write(format_energy)}"
    pairs = [(f"{100 * time.level:.0f} % interval", f"{text}, {sure.basis}"),
             ("rests on", describe_rest(prediction))]
    if sure.version:
        pairs.append(("prices", f"version {sure.version}; factors by layer shape change the time "
                                f"by {sure.by_shape:+.1%}"))
    pairs += [("extrapolating", reason) for reason in sure.extrapolating]
    if sure.unidentified:
        pairs.append(("not identified", ", ".join(sure.unidentified)
                      + ": the data cannot separate these prices from others"))
    return pairs


def result_line(prediction: Prediction) -> str:
    """Return time, energy, cycles and instructions per cycle of one inference in a line."""
    cycles = cycles_by_clock(make_ledger(prediction).total)
    clock = prediction.board.core.clock
    instructions = math.fsum(layer.instructions for layer in prediction.layers)
    ipc = ""
    # Of a closed library only its cycles are claimed, not how many instructions it takes.
    if instructions and cycles.get(clock) and prediction.runtime.structure == "open":
        ipc = f", IPC {significant(instructions / cycles[clock], 2)}"
    counted = ", ".join(f"{count:,} {clock_label(prediction, name)} cycles" + (
        " (without waiting for the NPU)" if name == clock and len(cycles) > 1 else "")
                        for name, count in cycles.items())
    return (f"{format_time(prediction.time_us)}, energy {format_energy(prediction.energy_uj)}, "
            f"{counted}{ipc}, {prediction.temperature} caches")


def explain_side(prediction: Prediction) -> str:
    """Say where the time goes and, of an accelerator, what its transfers take."""
    sentence = explain_time(prediction)
    if not prediction.tasks:
        return sentence
    from twin.pricing.utilisation import describe_dma

    return "; ".join(filter(None, (sentence, describe_dma(prediction.tasks))))


def list_bill_notes(prediction: Prediction, ledger: Ledger) -> tuple[str, ...]:
    """Return what stands under a bill: set-up, and where `mac` is less than the core needs."""
    least_us, billed_us = least_mac_us(prediction), bill_time_us(prediction, prediction.bill, "mac")
    short = f"{format_time(least_us)} for these MACs, {format_time(billed_us)} are billed"
    return (setup_line(prediction, ledger), *([
        f"mac: the core needs at least {short}: one learnt factor scales all causes of a kernel, "
        "so what is missing here is in alu and load_store"] if least_us > 1.05 * billed_us else []))


def setup_line(prediction: Prediction, ledger: Ledger) -> str:
    """Return what happens once before the first inference, which no total includes."""
    if prediction.deployment.target.executes:
        from twin.reports.tables.program import start_line

        return start_line(prediction)
    counted = ", ".join(f"{count:,} {clock} cycles"
                        for clock, count in cycles_by_clock(ledger.setup).items() if count)
    if not bill_time_us(prediction, prediction.setup):
        return f"set-up, once, not included above: {NOT_KNOWN}"
    energy = NOT_KNOWN if prediction.energy_uj is None else format_energy(
        prediction.setup.energy_uj())
    return (f"set-up, once, not included above: {counted}, "
            f"{format_time(bill_time_us(prediction, prediction.setup))}, energy {energy}"
            + (_say_cold_start(prediction) if prediction.temperature == "cold" else ""))


def _say_cold_start(prediction: Prediction) -> str:
    """Return how long a sleeping board takes to its first answer; "" where that is not known."""
    from twin.studies.cold_start import start_cold

    found = start_cold(prediction)
    if found is None:
        return ""
    held = found.interval
    parts = " + ".join(f"{name} {format_time(us)}" for name, us in found.parts)
    return (f"\nfirst answer after {found.state}: {format_time(found.total_us)}"
            + (f" ({held.write(format_time)})" if held else "")
            + f" = {parts}; wake-up as the board's file says, ramp and set-up assumed")


def clock_label(prediction: Prediction, clock: str) -> str:
    """Return a clock as its cycles are called: of an NPU they are those of its tasks' cores."""
    npu = prediction.board.npu
    return f"{clock} core" if npu is not None and clock == npu.clock else clock


def name_tasks(layer: LayerPrediction) -> str:
    """Return the numbers of the tasks a layer ran in; of more than three the first and last."""
    numbers = [re.split("[_@]", name, maxsplit=1)[-1] for name in layer.tasks]
    return " ".join(numbers) if len(numbers) < 4 else f"{numbers[0]}-{numbers[-1]}"


def _ram_parts(prediction: Prediction) -> str:
    """Return what the RAM is made of; the parts sum to it."""
    scratch = prediction.placement.scratch_bytes
    parts = []
    for name, size_bytes in prediction.deployment.ram_parts.items():
        within = f" (scratch up to {scratch:,} of it)" if name == "arena" and scratch else ""
        if size_bytes:
            parts.append(f"{name.replace('_', ' ')} {size_bytes:,}{within}")
    return " + ".join(parts) + " bytes"
