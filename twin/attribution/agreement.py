"""Whether a measurement is of what was predicted: network, board, clocks, runtime, temperature.

What both sides know must agree; what the measurement does not know is said. A network is told by
the hash of its file, else by its architecture, its layers, its operations, its input; a name alone
proves nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from calibration.errors import MeasurementError
from calibration.importers.log import UNKNOWN
from calibration.measurement.measurement import Measurement
from hwmodels.board.facts import Board
from hwmodels.board.file import list_boards
from twin.network.graph import Graph
from twin.network.operators import OPERATORS, graph_macs, is_alias, layer_macs

CLOCK_SLACK = 0.01
"""How far apart clocks may be, relative: crystals are better, RC oscillators are not."""

WORK_SLACK = 0.25
"""How far apart counts of operations may be, relative: tools count activations differently."""

NAMELESS = (UNKNOWN, "network")
"""Names of networks that tell nothing; ST's tools call every network "network"."""

MAC_SLACK = 0.1
"""The same for a network's MACs: some tools count biases and activations among them."""

LAYER_MAC_SLACK = 0.02
"""The same for the MACs of one operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One thing a measurement and a prediction do not share, or cannot be seen to.

    Parameters
    ----------
    what : str
        "network", "board", "clock", "runtime" or "temperature".
    text : str
        Both sides, and what would put it right.
    refuses : bool
        Whether figures set side by side would mean nothing.
    """

    what: str
    text: str
    refuses: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was predicted.

    Parameters
    ----------
    graph : Graph or None
        The network; None where only its compiler's output is known.
    board : Board
        At the clocks predicted.
    runtime : str
        "name@version".
    temperature : str
        "warm" or "cold".
    operations : float or None
        Of an inference, a multiply-accumulate as two, as an accelerator's tools count them.
    """

    graph: Graph | None
    board: Board
    runtime: str
    temperature: str
    operations: float | None = None


def find_mismatches(subject: Subject, measured: Measurement) -> tuple[Mismatch, ...]:
    """Return where a measurement is not of what was predicted, refusals first.

    Parameters
    ----------
    subject : Subject
        What was predicted.
    measured : Measurement
        Beside it.
    """
    found = [*_check_network(subject, measured), *_check_board(subject, measured),
             *_check_clocks(subject, measured), *_check_runtime(subject, measured)]
    told = measured.header.temperature
    if told not in (None, subject.temperature):
        found.append(Mismatch(what="temperature", refuses=False, text=f"the measurement is {told}, "
                              f"the prediction {subject.temperature}"))
    return tuple(sorted(found, key=lambda one: not one.refuses))


def require_agreement(subject: Subject, measured: Measurement, where: str, *,
                      anyway: bool = False) -> list[str]:
    """Return what to warn of.

    Parameters
    ----------
    subject : Subject
        What was predicted.
    measured : Measurement
        Beside it.
    where : str
        Its folder, for the refusal.
    anyway : bool
        Refuse nothing.

    Raises
    ------
    MeasurementError
        Where the two are not of the same thing, unless they are to be compared anyway.
    """
    found = find_mismatches(subject, measured)
    refusals = [one for one in found if one.refuses]
    if refusals and not anyway:
        raise MeasurementError(f"{where}: not a measurement of this: "
                               + "; ".join(one.text for one in refusals)
                               + ". --anyway compares regardless")
    return [f"{one.what}: {one.text}" for one in found]


def _check_network(subject: Subject, measured: Measurement) -> Iterator[Mismatch]:
    header, graph = measured.header, subject.graph
    if graph is not None and header.model_sha256 == graph.sha256:
        # The hash may be what a user said of the log: what the log lists must not contradict it.
        yield from (_network(text) for text in _compare_layers(graph, measured) if text)
        return
    if graph is not None and header.architecture_id is not None:
        if header.architecture_id != graph.architecture_id:
            yield _network(f"it is of {header.model} (architecture {header.architecture_id}), not "
                           f"of {graph.name} ({graph.architecture_id})")
        elif header.model_sha256 is not None:
            yield Mismatch(what="network", refuses=False,
                           text=f"{header.model} is of the same architecture with other weights")
        return
    evidence = [*_compare_work(subject, measured)]
    if graph is not None:
        evidence += [*_compare_layers(graph, measured), *_compare_inputs(graph, measured)]
    refusals = [text for text in evidence if text]
    for text in refusals:
        yield _network(text)
    name = graph.name if graph is not None else "the compiler's output"
    if not refusals and header.model not in (name, *NAMELESS):
        yield Mismatch(what="network", refuses=False, text=f"the measurement names {header.model}, "
                       f"the prediction {name}; import with --model to make sure")
    elif not refusals and not evidence:
        yield Mismatch(what="network", refuses=False, text="the measurement does not say which it "
                       "is of; import with --model to make sure")


def _network(text: str) -> Mismatch:
    return Mismatch(what="network", text=text, refuses=True)


def _compare_work(subject: Subject, measured: Measurement) -> Iterator[str]:
    """Yield "" for operations that agree, and what differs."""
    graph = subject.graph
    stated = _total(measured, "ops")
    if stated and subject.operations and subject.operations != stated:
        yield "" if abs(stated / subject.operations - 1) <= WORK_SLACK else (
            f"it counts {stated:,.0f} operations, the prediction {subject.operations:,.0f}")
    for counter in ("macs", "estimated_macs"):
        stated = _total(measured, counter)
        if stated and graph is not None and (macs := graph_macs(graph)):
            yield "" if abs(stated / macs - 1) <= MAC_SLACK else (
                f"it counts {stated:,.0f} MACs, {graph.name} has {macs:,}")
            return


def _total(measured: Measurement, counter: str) -> float | None:
    if measured.count(counter):
        return float(measured.values(counter)[0])
    parts = [float(measured.values(counter, layer)[0]) for layer in measured.layers
             if measured.count(counter, layer)]
    return math.fsum(parts) if parts else None


def _compare_layers(graph: Graph, measured: Measurement) -> Iterator[str]:
    tags = dict(measured.header.environment).get("operators", "").split(",")
    if measured.header.runtime.partition("@")[0] not in ("tflm", "firmware") or not tags[0]:
        if measured.header.runtime == "firmware" and max(measured.layers, default=-1) >= len(
                graph.layers):
            yield f"it has a layer {max(measured.layers)}, {graph.name} has {len(graph.layers)}"
        return
    if len(tags) != len(graph.layers):
        yield f"it lists {len(tags)} operators, {graph.name} has {len(graph.layers)}"
        return
    known = {_plain(name) for name in OPERATORS}
    macs = [layer_macs(graph, layer) for layer in graph.layers]
    for index, (tag, layer) in enumerate(zip(tags, graph.layers, strict=True)):
        theirs, ours = _plain(tag), _plain(layer.op)
        if theirs in known and theirs != ours:
            yield f"its operator {index} is {tag}, that of {graph.name} {layer.op}"
            return
        if measured.count("estimated_macs", index) and macs[index]:
            stated = float(measured.values("estimated_macs", index)[0])
            if abs(stated / macs[index] - 1) > LAYER_MAC_SLACK:
                yield f"its operator {index} has {stated:,.0f} MACs, not {macs[index]:,}"
                return
    yield ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _compare_inputs(graph: Graph, measured: Measurement) -> Iterator[str]:
    stated = dict(measured.header.environment).get("inputs")
    if not stated:
        return
    theirs = sorted(_elements(shape) for shape in re.findall(r"\[([\d,]+)\]", stated))
    ours = sorted(math.prod(graph.tensors[index].shape) for index in graph.inputs)
    yield "" if theirs == ours else (
        f"its inputs are {stated}, those of {graph.name} have "
        + ", ".join(f"{size:,}" for size in ours) + " elements")


def _elements(shape: str) -> int:
    return math.prod(int(extent) for extent in shape.split(",") if extent)


def _check_board(subject: Subject, measured: Measurement) -> Iterator[Mismatch]:
    told, board = measured.header.board, subject.board
    if told == UNKNOWN:
        yield Mismatch(what="board", refuses=False, text="the measurement does not say which it is "
                       "of; import with --board to make sure")
    elif _plain(told) not in {_plain(name) for name in (board.name, *board.aliases)}:
        known = _plain(told) in {_plain(name) for name in list_boards()}
        yield Mismatch(what="board", refuses=known, text=f"it is of {told}, not of {board.name}"
                       if known else f"the measurement names its board {told}, which is none of "
                       "ours; import with --board to make sure")


def _check_clocks(subject: Subject, measured: Measurement) -> Iterator[Mismatch]:
    ours: Mapping[str, float] = {clock.name: clock.frequency_hz for clock in subject.board.clocks} \
        | {"cpu": subject.board.clock(subject.board.core.clock).frequency_hz}
    if subject.board.npu is not None:
        ours = {**ours, "npu": subject.board.npu.frequency_hz}
    for name, hertz in measured.header.clocks_hz:
        if name in ours and abs(hertz / ours[name] - 1) > CLOCK_SLACK:
            hint = f"; --clock {hertz / 1e6:g}MHz predicts at its clock" if name == "cpu" else ""
            # Of an emulator too: waits for memories, which are predicted, depend on the clock.
            yield Mismatch(what="clock", refuses=name in ("cpu", "npu"), text=(
                f"its {name} clock is {hertz / 1e6:g} MHz, the prediction's "
                f"{ours[name] / 1e6:g} MHz{hint}"))


def _check_runtime(subject: Subject, measured: Measurement) -> Iterator[Mismatch]:
    told = measured.header.runtime
    family = re.split(r"[@,]", told)[0]
    ours = subject.runtime.partition("@")[0]
    if told == UNKNOWN:
        yield Mismatch(what="runtime", refuses=False, text="the measurement does not say which; "
                       f"the prediction is of {subject.runtime}")
    elif ours != family and not (family == "tflm" and ours.startswith("tflm-")):
        yield Mismatch(what="runtime", refuses=False, text=f"the measurement is of {told}, the "
                       f"prediction of {subject.runtime}; --runtime predicts with another")
    elif "@" in told and told != subject.runtime:
        yield Mismatch(what="runtime", refuses=False, text=f"the measurement is of {told}, the "
                       f"prediction of {subject.runtime}")


def has_epochs(measured: Measurement) -> bool:
    """Whether the layers of a measurement are epochs of an accelerator."""
    return any(key.startswith("epoch ") for key, _ in measured.header.environment)


def order_layers(graph: Graph, measured: Measurement) -> dict[int, int] | None:
    """Return the measured layer of each layer of a network.

    Parameters
    ----------
    graph : Graph
        The network, as it is executed.
    measured : Measurement
        With or without layers.

    Returns
    -------
    dict of int to int, or None
        Position in the network to layer of the measurement: as numbered where both have as many,
        in order where the measurement leaves out layers that move nothing, None where neither.
    """
    layers = measured.layers
    if has_epochs(measured):
        return None
    if len(layers) == len(graph.layers):
        return dict(enumerate(layers))
    moving = [place for place, layer in enumerate(graph.layers) if not is_alias(layer)]
    if len(layers) == len(moving):
        return dict(zip(moving, layers, strict=True))
    if layers and measured.header.runtime == "firmware" and layers[-1] < len(graph.layers):
        return {place: place for place in layers}
    return None
