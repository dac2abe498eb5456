"""Whether two sides are of the same thing: network, board, clocks, runtime, temperature, placement.

What both know must agree; what one does not know becomes a note. A network is identified by the
hash of its file, else by its architecture, its operators, its operations, its inputs; a name proves
nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from calibration.importers.log import UNKNOWN
from calibration.measurement.measurement import BOARD_HASH, INFERRED, TIMED_BY_MS
from hwmodels.board.file import find_board
from hwmodels.frozen import record
from twin.attribution.folders import tell_other_file
from twin.attribution.side import Side
from twin.errors import NotTheSameError
from twin.network.operators import OPERATORS

REFUSE, WARN, NOTE = "refuse", "warn", "note"
LEVELS = (REFUSE, WARN, NOTE)
"""Figures side by side would mean nothing; a reader must know; what differs, as it may."""

CLOCK_SLACK = 0.01
"""How far apart clocks may be, relative: crystals are better, RC oscillators are not."""

CLOCK_NOTED = 1e-3
"""From where on another frequency is said."""

WORK_SLACK, MAC_SLACK, LAYER_MAC_SLACK = 0.25, 0.1, 0.02
"""The same for operations, MACs of a network (some tools count activations and biases among them)
and MACs of one operator."""

SUM_SLACK = 0.1
"""How far layers may sum to more than their inference, which hooks around layers slow (assumed)."""

NAMELESS = (UNKNOWN, "network")
"""Names of networks that tell nothing; ST's tools call every network "network"."""

ENVIRONMENT = ("compiler", "firmware_sha256", "runtime lib", "tools", "interrupts", "port")
"""What of two measurements' environments is said when it differs."""


HIDING = ("library inferred from the times at import, which may hide a fault: state it with "
          "`twin import --runtime`")


@record
class Finding:
    """One thing two sides do not share, or cannot be seen to.

    Parameters
    ----------
    level
        One of `LEVELS`.
    what
        "network", "board", "clock cpu", "runtime", "temperature", "placement of weights" ...
    text
        Both sides, first -> second, and what would put it right.
    """

    level: str
    what: str
    text: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.what}: {self.text}"


def agree(first: Side, second: Side) -> tuple[Finding, ...]:
    """Return where two sides are not of the same thing, refusals first.

    Parameters
    ----------
    first, second
        A prediction and what is beside it, or two of one kind. What may change between two of one
        kind is noted; what makes a measurement one of something else is refused or warned of.
    """
    found = [*_agree_network(first, second), *_agree_board(first, second),
             *_agree_clocks(first, second), *_agree_runtime(first, second),
             *_agree_setup(first, second), *_agree_sums(second),
             *_agree_runs(first), *_agree_runs(second)]
    return tuple(sorted(found, key=lambda one: LEVELS.index(one.level)))


def require_same(first: Side, second: Side, *, anyway: bool = False) -> tuple[Finding, ...]:
    """Return what to warn of and to note.

    Parameters
    ----------
    first, second
        To be set side by side.
    anyway
        Refuse nothing.

    Raises
    ------
    NotTheSameError
        Where they are not of the same thing, unless they are to be compared anyway.
    """
    found = agree(first, second)
    if not anyway:
        _refuse(first, second, found)
    return found


def require_network_and_board(first: Side, second: Side) -> None:
    """Refuse other networks and boards, which no fault makes comparable; all else may differ."""
    _refuse(first, second, (*_agree_network(first, second), *_agree_board(first, second)), hint="")


def _refuse(first: Side, second: Side, found: tuple[Finding, ...],
            hint: str = ". --anyway compares regardless") -> None:
    refusals = [str(one) for one in found if one.level == REFUSE]
    if refusals:
        raise NotTheSameError(f"{second.label}: not of the same thing as {first.label}: "
                              + "; ".join(refusals) + hint)


def is_other_library(first: Side, second: Side) -> bool:
    """Whether two sides name libraries that are not one in two versions."""
    family, own = re.split(r"[@,]", second.runtime)[0], first.runtime.partition("@")[0]
    return (second.runtime != UNKNOWN and own != family and not _is_our_image(first, second)
            and not (family == "tflm" and own.startswith("tflm-")))


def _is_our_image(first: Side, second: Side) -> bool:
    """Whether a program is our firmware, and so is what was measured: layers bear its numbers."""
    numbers = {one.name.removeprefix("run_") for one in first.parts
               if not one.name.startswith("between ")}
    return (first.is_program and re.split(r"[@,]", second.runtime)[0] == "firmware"
            and bool(numbers) and all(one.isdigit() for one in numbers)
            and {str(part.index) for part in second.parts} <= numbers)


def _alike(first: Side, second: Side) -> bool:
    """Whether both are predictions, or both were read: then what changed is the question."""
    return first.counted == second.counted


# --- the network -----------------------------------------------------------------------------

def _agree_network(first: Side, second: Side) -> Iterator[Finding]:
    ids = (first.architecture_id, second.architecture_id)
    hashes = (first.model_sha256, second.model_sha256)
    programs = [first.is_program, second.is_program]
    if all(programs):
        if None in hashes or hashes[0] != hashes[1]:
            yield Finding(NOTE, "program", (
                f"{first.model} -> {second.model}: another build of the program; functions are "
                "paired by name or in order"))
    elif any(programs) and ids[0] != ids[1]:
        sure = _is_our_image(first, second)
        yield Finding(NOTE if sure else WARN, "network", (
            f"{first.model} -> {second.model}: a program has no network; its layers are "
            "functions, paired by number or in order"))
    elif None not in ids and ids[0] != ids[1]:
        yield Finding(REFUSE, "network", (
            f"{first.model} (architecture {ids[0]}) -> {second.model} ({ids[1]}): other networks"))
    elif None not in hashes and hashes[0] == hashes[1]:
        # The hash may be what a user said of a log: what the log lists must not contradict it.
        for text in filter(None, _compare_layers(first, second, surely=True)):
            yield Finding(REFUSE, "network", text)
    elif None not in ids:
        if None not in hashes:
            yield Finding(NOTE if _alike(first, second) else WARN, "network",
                          "the files differ, of one architecture: other weights")
    else:
        yield from _weigh_evidence(first, second)


def _weigh_evidence(first: Side, second: Side) -> Iterator[Finding]:
    """Judge a network without hash and architecture by its work."""
    evidence = [*_compare_work(first, second), *_compare_layers(first, second, surely=False),
                *_compare_inputs(first, second)]
    refusals = [text for text in evidence if text]
    for text in refusals:
        yield Finding(REFUSE, "network", text)
    if not refusals and second.model not in (first.model, *NAMELESS):
        yield Finding(WARN, "network", f"{second.label} names {second.model}, "
                      f"the other side {first.model}; import with --model to make sure")
    elif not refusals and not evidence and second.model in NAMELESS:
        yield Finding(WARN, "network", f"{second.label} does not say which it is "
                      "of; import with --model to make sure")


def _compare_work(first: Side, second: Side) -> Iterator[str]:
    """Yield "" for operations that agree, and what differs."""
    ours, theirs = first.work, second.work
    operations = ours.operations or 2 * (ours.macs or 0.0)  # a core's prediction lists its MACs
    if theirs.operations and operations and operations != theirs.operations:
        yield "" if abs(theirs.operations / operations - 1) <= WORK_SLACK else (
            f"it counts {theirs.operations:,.0f} operations, {first.model} has "
            f"{operations:,.0f}")
    if theirs.macs and ours.macs:
        yield "" if abs(theirs.macs / ours.macs - 1) <= MAC_SLACK else (
            f"it counts {theirs.macs:,.0f} MACs, {first.model} has {ours.macs:,.0f}")


def _compare_layers(first: Side, second: Side, *, surely: bool) -> Iterator[str]:
    """Yield "" for operators that agree, and what differs; `surely`: only what contradicts."""
    ours, theirs = first.work.operators, second.work.operators
    if ours and theirs:
        yield next(_compare_operators(first, second), "")
    elif first.part == second.part == "layer" and first.parts and (second.numbered or not surely):
        known = {part.index for part in first.parts}
        strange = [part.index for part in second.parts if part.index not in known]
        if strange and (second.numbered or len(second.parts) > len(first.parts)):
            yield (f"it has layer {strange[0]}, {first.model} has {len(first.parts)} layers: "
                   "other networks")


def _compare_operators(first: Side, second: Side) -> Iterator[str]:
    ours, theirs = first.work, second.work
    if len(theirs.operators) != len(ours.operators):
        yield (f"it lists {len(theirs.operators)} operators, {first.model} has "
               f"{len(ours.operators)}")
        return
    known = {_plain(name) for name in OPERATORS}
    for index, (op, tag) in enumerate(zip(ours.operators, theirs.operators, strict=True)):
        if _plain(tag) in known and _plain(tag) != _plain(op):
            yield f"its operator {index} is {tag}, that of {first.model} {op}"
        macs, stated = ours.layer_macs.get(index), theirs.layer_macs.get(index)
        if macs and stated is not None and abs(stated / macs - 1) > LAYER_MAC_SLACK:
            yield f"its operator {index} has {stated:,.0f} MACs, not {macs:,.0f}"


def _compare_inputs(first: Side, second: Side) -> Iterator[str]:
    ours, theirs = first.work.input_elements, second.work.input_elements
    if ours is not None and theirs is not None:
        shown = [", ".join(f"{size:,}" for size in sizes) for sizes in (ours, theirs)]
        yield "" if ours == theirs else (
            f"its inputs have {shown[1]} elements, those of {first.model} have {shown[0]} elements")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


# --- the set-up ------------------------------------------------------------------------------

def _agree_board(first: Side, second: Side) -> Iterator[Finding]:
    ours, theirs = first.board, second.board
    if theirs == UNKNOWN:
        yield Finding(WARN, "board", f"{second.label} does not say which it is "
                      "of; import with --board to make sure")
    elif _plain(ours) != _plain(theirs):
        known, asked = find_board(theirs), find_board(ours)
        own, stated = (side.environment.get(BOARD_HASH) for side in (first, second))
        if known is None and own and stated:  # a board's file of one's own
            if own != stated:
                hint = "" if _alike(first, second) else "; predict with that board's file (-b FILE)"
                yield Finding(REFUSE, "board", f"{ours} -> {theirs}{hint}")
            return
        if known is None:
            yield Finding(WARN, "board", f"{second.label} names its board "
                          f"{theirs}, which is none of ours; import with --board to make sure")
        elif asked is None or known.name != asked.name:
            hint = "" if _alike(first, second) else f"; predict with -b {theirs}"
            yield Finding(REFUSE, "board", f"{ours} -> {theirs}{hint}")
    other = tell_other_file(theirs, *(side.environment.get(BOARD_HASH) for side in (second, first)))
    if second.kind != "predicted" and other:
        yield Finding(NOTE if _alike(first, second) else WARN, "board file", other)


def find_ticks_hz(clocks_hz: Mapping[str, float]) -> float | None:
    """Return the clock of ticks that may be an unstated core's; of a microsecond they are none."""
    hertz = clocks_hz.get("timer", 0.0)
    return hertz if hertz > 1e6 and "cpu" not in clocks_hz else None


def describe_unstated_clock(core_hz: float, clocks_hz: Mapping[str, float],
                            taken_hz: float | None = None) -> str:
    """Say which clock the core is taken to run at where ticks are of another; "" where stated.

    Parameters
    ----------
    taken_hz
        That clock; None is `core_hz`, the one ticks are compared with.
    """
    ticks_hz = clocks_hz.get("timer", core_hz)
    if "cpu" in clocks_hz or abs(ticks_hz / core_hz - 1) <= CLOCK_SLACK:
        return ""
    alone = f", by itself at {core_hz / 1e6:g} MHz" * (taken_hz not in (None, core_hz))
    beside = "beside the first, by its ticks, " * bool(alone)
    return (f"not stated: {beside}the core is taken to run at {(taken_hz or core_hz) / 1e6:g} MHz"
            f"{alone}; the log's ticks are of {ticks_hz / 1e6:g} MHz; `twin import --cpu-clock` "
            "states it")


def _agree_clocks(first: Side, second: Side) -> Iterator[Finding]:
    for side in (first, second):
        if text := side.environment.get(TIMED_BY_MS):
            yield Finding(WARN, "clock", text)
    if not _alike(first, second) and "cpu" in first.clocks_hz and second.kind != "simulated" and (
            text := describe_unstated_clock(first.clocks_hz["cpu"], second.clocks_hz)):
        yield Finding(WARN, "clock cpu", text)
    for name, hertz in second.clocks_hz.items():
        ours = first.clocks_hz.get(name)
        if ours is None or abs(hertz / ours - 1) <= CLOCK_NOTED:
            continue
        # Of an emulator too: waits for memories, which are predicted, depend on the clock.
        other = abs(hertz / ours - 1) > CLOCK_SLACK and name in ("cpu", "npu")
        alike = _alike(first, second)
        level = NOTE if alike else REFUSE if other else WARN
        hint = "" if name != "cpu" else (
            "; cycles of wait states that follow it are unexplained where nothing counts them"
        ) if alike else f"; --clock {hertz / 1e6:g}MHz predicts at its clock"
        yield Finding(level, f"clock {name}",
                      f"{ours / 1e6:g} MHz -> {hertz / 1e6:g} MHz{hint}")


def _agree_runtime(first: Side, second: Side) -> Iterator[Finding]:
    ours, theirs = first.runtime, second.runtime
    if theirs == ours and INFERRED in second.environment:
        yield Finding(WARN, "runtime", HIDING)
    if theirs == ours or _is_our_image(first, second):
        return
    if _alike(first, second):
        yield Finding(NOTE, "runtime", f"{ours} -> {theirs}")
        return
    if theirs == UNKNOWN:
        yield Finding(WARN, "runtime", f"{second.label} does not say which; the "
                      f"other side is of {ours}")
    elif first.is_program:
        yield Finding(WARN, "runtime", f"{second.label} is of {theirs}; a program "
                      "has the kernels that are linked into it: is it the one that was measured?")
    elif is_other_library(first, second):
        yield Finding(WARN, "runtime", f"{ours} -> {theirs}: other kernels, their "
                      "difference is part of every gap; --runtime predicts with another")
    elif "@" in theirs:
        yield Finding(WARN, "runtime", f"{ours} -> {theirs}")


def _agree_setup(first: Side, second: Side) -> Iterator[Finding]:
    level = NOTE if _alike(first, second) else WARN
    if second.temperature not in (None, first.temperature):
        yield Finding(level, "temperature",
                      f"{first.temperature} -> {second.temperature}")
    yield from _differences(level, "placement of ", first.placement, second.placement)
    if not _alike(first, second):
        return
    yield from _differences(NOTE, "", {"calibration": first.calibration or "none",
                                       "kind": first.kind},
                            {"calibration": second.calibration or "none", "kind": second.kind})
    environments = [{name: side.environment[name][:40] for name in ENVIRONMENT if name
                     in side.environment}
            for side in (first, second)]
    yield from _differences(NOTE, "", *environments)


def _agree_sums(side: Side) -> Iterator[Finding]:
    layers = sum(part.amounts.get("time", 0.0) for part in side.parts)
    if layers > (1 + SUM_SLACK) * side.whole.amounts.get("time", math.inf):
        yield Finding(WARN, "layers", (
            f"those of {side.label} sum to {layers / side.whole.amounts['time']:.3g} x its "
            "inference: layers and inference are of other runs, clocks or builds"))


def _agree_runs(side: Side) -> Iterator[Finding]:
    for one in side.unsteady:
        yield Finding(WARN, one.name, f"{one.evidence} of {side.label}. {one.remedy}")


def _differences(level: str, what: str, first: Mapping[str, str],
                 second: Mapping[str, str]) -> Iterator[Finding]:
    for name, value in first.items():
        if name in second and second[name] != value:
            yield Finding(level, f"{what}{name}", f"{value} -> {second[name]}")
