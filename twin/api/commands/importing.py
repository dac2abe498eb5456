"""`twin import`: a log of a public tool becomes a measurement folder."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from calibration import importers
from calibration.errors import MeasurementError
from calibration.importers import Imported
from calibration.importers.listing import Listing
from calibration.importers.log import UNKNOWN
from calibration.measurement.measurement import INFERRED, STATED, Measurement, write_measurement
from hwmodels.board.file import find_board, load_board
from hwmodels.errors import BoardError, TwinError, reworded
from hwmodels.frozen import frozen
from hwmodels.quantities import format_frequency
from twin.api.requests import takes
from twin.api.requests.measurement import Import
from twin.deployment.stated import (
    LISTED,
    describe_open,
    find_release,
    identify,
    is_known,
    list_candidates,
    settle_runtime,
    without_tools,
)
from twin.errors import PlacementError, RuntimeRefusedError
from twin.network.operators import OPERATORS, graph_macs, is_alias, layer_macs
from twin.reports.export import check_place

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.network.graph import Graph

MAC_SLACK = 0.1
"""How far apart MACs may be, relative: some tools count activations and biases among them."""

EXAMPLES = 3
"""Lines that were not understood and are shown."""


@frozen
class ImportedLog:
    """What a log held.

    Parameters
    ----------
    remarks : tuple of str
        Lines that were left, what is missing, an unknown board.
    """

    measurement: Measurement
    folder: Path
    remarks: tuple[str, ...]


@takes(Import)
def import_log(asked: Import) -> ImportedLog:
    """Read a log of a public tool into a measurement folder.

    The hash of a known network is noted, and what the log lists must be its operators.
    """
    board, model, runtime, port = asked.board, asked.model, asked.runtime, asked.port
    partial, anyway = asked.partial, asked.anyway
    log = Path(asked.file)
    folder = Path(asked.output or (
        log.with_suffix("") if log.suffix else log.parent / f"{log.name}-measurement"))
    check_place(folder, folder=True)
    graph = None if model is None else _find_network(model)
    if runtime is not None:
        identify(runtime)  # before a log is read
    imported = importers.import_log(asked.form, log, board=board, model=model,
                                    clock_hz=asked.clock_hz, cpu_hz=asked.cpu_hz,
                                    partial=partial, anyway=anyway,
                                    listing=None if graph is None else _list_operators(graph))
    measurement = imported.measurement
    if asked.form == "ethos-u" and not anyway:
        _check_counters(measurement, str(log))
    if port is not None:
        facts = (*measurement.header.environment, ("port", port))
        measurement = replace(measurement, header=replace(measurement.header, environment=facts))
    if graph is not None:
        if not partial:
            _check_work(measurement, graph, str(log))
        measurement = _identify(measurement, graph)
    measurement, remarks = _settle_runtime(measurement, runtime, graph, str(log))
    if graph is not None and runtime is not None and not anyway:
        _check_library(measurement, graph, str(log))
    fast = () if graph is None else _tell_impossible(
        measurement, graph, str(log), partial=partial, anyway=anyway)
    write_measurement(folder, measurement)
    return ImportedLog(measurement=measurement, folder=folder,
                       remarks=(*_list_findings(imported, board), *remarks, *fast))


def _check_counters(measurement: Measurement, where: str) -> None:
    """Refuse a board whose Ethos-U, if it has one, counts other things."""
    from calibration.importers.ethos_u import find_foreign

    board = find_board(measurement.header.board)
    if board is not None and (why := find_foreign(measurement.counters, board)):
        raise MeasurementError(f"{where}: {why}; accepted: the board it ran on, or --anyway")


def _find_network(model: str) -> Graph | None:
    """Return the network a name is of: a model file or one of the zoo; None is only a name."""
    from twin.network import zoo
    from twin.network.readers import SUFFIXES, read_model

    if Path(model).suffix.lower() not in SUFFIXES and not zoo.is_known(model.removeprefix("zoo:")):
        return None
    return read_model(model)


def _list_operators(graph: Graph) -> Listing:
    return Listing(network=graph.name, operators=tuple(layer.op for layer in graph.layers),
                   known=tuple(OPERATORS),
                   aliases=tuple(layer.index for layer in graph.layers if is_alias(layer)))


def _identify(measurement: Measurement, graph: Graph) -> Measurement:
    """Note name, hash and architecture of the network, and the file it was read from."""
    from twin.attribution.folders import note_file

    header = replace(measurement.header, model=graph.name, model_sha256=graph.sha256,
                     architecture_id=graph.architecture_id,
                     environment=(*measurement.header.environment, *note_file(graph).items()))
    return replace(measurement, header=header)


def _check_work(measurement: Measurement, graph: Graph, where: str) -> None:
    """Refuse a log that counts other MACs than the network has."""
    ours = graph_macs(graph)
    for counter in ("macs", "estimated_macs"):
        layers = (None,) if measurement.count(counter) else measurement.layers
        counts = [float(measurement.values(counter, layer)[0])
                  for layer in layers if measurement.count(counter, layer)]
        if counts and ours and abs(sum(counts) / ours - 1) > MAC_SLACK:
            raise MeasurementError(f"{where}: counts {sum(counts):,.0f} MACs, {graph.name} has "
                                   f"{ours:,.0f}; is it of another network?")


def _check_library(measurement: Measurement, graph: Graph, where: str) -> None:
    """Refuse a stated library that has no code for the board's core."""
    from twin.deployment.core import lower_network
    from twin.deployment.deploy import deploy

    with suppress(BoardError, PlacementError), reworded(  # is only a name, or does not fit
            RuntimeRefusedError, MeasurementError, f"{where}: --runtime: ", "; --anyway takes it"):
        lower_network(deploy(graph, measurement.header.board, runtime=measurement.header.runtime))


def _settle_runtime(measurement: Measurement, asked: str | None,
                    graph: Graph | None, where: str) -> tuple[Measurement, tuple[str, ...]]:
    """Return the measurement with the library it is of, as stated or inferred from its time.

    A library asked for without a version is the release its time is clear of, else that a
    prediction takes on that board.
    """
    from twin.attribution.compatibility import describe_unstated_clock
    from twin.attribution.folders import tell_library
    from twin.deployment.choice import load_runtime, settle_release

    header = measurement.header
    remark: tuple[str, ...] = ()
    board = find_board(header.board)
    given = None
    if asked is not None:
        known, remark = settle_release(asked, board) if board else (load_runtime(asked), ())
        given = known.identity
        if "@" not in asked and graph is not None and board and header.kind == "measured":
            fit = tell_library(measurement, graph, header.board,
                               list_candidates(known.name, board=board))
            if fit is not None and fit.runtime not in (None, given):
                given, remark = str(fit.runtime), (
                    f"runtime: {asked} is taken as {fit.runtime}, from its time: it took {fit}; "
                    "--runtime states another",)
    name = settle_runtime(header.runtime, given, where)
    hint = describe_open(name, board) if header.kind == "measured" else ""
    release = find_release(header.runtime)
    if given is not None and release not in (None, name):
        remark = (f"runtime: the log says {header.runtime}, which would be {release}: taken as "
                  f"{name}, as asked for",)
    versioned = hint and "@" in without_tools(name)
    if versioned and release is not None:
        remark = (f"runtime: the log says {name}: taken as {release}, the nearest release known at "
                  "or below it; --runtime says another",)
        header = replace(header, environment=(*header.environment, (STATED, name)))
        name = release
    elif board is not None and name == header.runtime and "@" not in name and is_known(name):
        name = settle_release(name, board)[0].identity
    elif hint and not versioned and graph is not None and header.board != UNKNOWN:
        candidates = list_candidates(name, board=board)
        inferred = tell_library(measurement, graph, header.board, candidates)
        if inferred is not None and inferred.runtime is not None:
            header = replace(header, environment=(*header.environment, (INFERRED, name)))
            name, remark = inferred.runtime, (
                f"runtime: taken as {inferred.runtime}, from its time: it took {inferred}; "
                "--runtime states another",)
        elif inferred is not None:
            remark = (f"cannot infer the runtime from the time, which is {inferred}; "
                      + ("pass --runtime with one of these" if inferred.is_near else
                         "check --clock, --model and the unit, or, if it did take so long, type "
                         f"--runtime {inferred.ratios[0][0]}"),)
    if "@" not in (bare := asked or header.runtime) and is_known(bare):
        header = replace(header, environment=(*header.environment, (STATED, bare)))
    if hint and not remark:
        remark = (f"runtime: {name}: which library is not said; `calibrate` needs {hint}",)
    clock = "" if board is None else describe_unstated_clock(
        board.core_clock.frequency_hz, header.clocks)
    return replace(measurement, header=replace(header, runtime=name)), (
        *remark, *([f"clock cpu: {clock}"] if clock else []))


def _tell_impossible(measurement: Measurement, graph: Graph, where: str = "the log", *,
                     partial: bool = False, anyway: bool = False) -> tuple[str, ...]:
    """Return what is faster than the core can be; refuse what no library can be.

    Raises
    ------
    MeasurementError
        For more products in a cycle than the core does, unless it is taken anyway.
    """
    from twin.attribution.lower_bound import find_unreachable

    header = measurement.header
    board = find_board(header.board)
    if board is None or header.kind != "measured":
        return ()
    clock = board.core.clock
    hertz = header.clocks.get(clock) or board.clock(clock).frequency_hz
    found, ticks = dict(measurement.list_cycles(hertz)), header.clocks.get("timer")
    tick = hertz / ticks if ticks else 0.0  # what a tick may have cut off
    layers: dict[int | None, float] = {
        layer: value + tick for layer, value in found.items() if layer is not None}
    whole = found.get(None, 0.0)
    if not whole and not partial and len(layers) >= sum(
            layer_macs(graph, layer) > 0 for layer in graph.layers):
        whole = sum(layers.values())
    listed = header.runtime.startswith(LISTED) and "operators" in header.facts
    if not listed or len(measurement.layers) > len(graph.layers):
        layers = {}  # a tool's own nodes
    over = find_unreachable(graph, board, {None: whole, **layers}, hertz)
    if over is None:
        return _tell_too_fast(measurement, graph, board, found.get(None))
    own = "" if clock in header.clocks else " (the board's own; --cpu-clock says another)"
    unit = f"--clock {format_frequency(ticks)} that of its ticks" if ticks else "the unit right"
    text = f"{where}: {over.tell(own)}; is {unit}, or the log of another network or board?"
    if not anyway:
        raise MeasurementError(f"{text} --anyway takes it")
    return (f"{text} `calibrate` will refuse it",)


def _tell_too_fast(measurement: Measurement, graph: Graph, board: Board,
                   cycles: float | None) -> tuple[str, ...]:
    """Return what is faster than the library's instructions can be, where that is known."""
    from twin.attribution.lower_bound import find_impossible
    from twin.deployment.deploy import deploy

    if cycles is None or describe_open(measurement.header.runtime, board):
        return ()
    try:
        found = find_impossible(deploy(graph, board, runtime=measurement.header.runtime),
                                [(None, cycles)])
    except TwinError:  # It does not fit, or its runtime is only a name.
        return ()
    return () if found is None else (f"{found} `calibrate` will refuse it",)


def _list_findings(imported: Imported, board: str | None) -> tuple[str, ...]:
    """Return what a user must know: lines that were left, what is missing, unknown boards."""
    found = list(imported.remarks)
    if not imported.clocked:
        hertz = imported.measurement.header.clocks.get("timer")
        executorch = imported.measurement.header.runtime.startswith("executorch")
        function = "et_pal_ticks_to_ns_multiplier" if executorch else "ticks_per_second"
        found.append(
            f"nothing in the log says how long a tick is; print {function}() of the firmware once, "
            + ("and import again with that as --clock: without, no time is known" if hertz is None
               else f"which is to be {hertz:,.0f}: all its times depend on --clock"))
    if imported.unread:
        shown = "; ".join(f"{number}: {line.strip()[:60]!r}"
                          for number, line in imported.unread[:EXAMPLES])
        found.append(f"{len(imported.unread)} of {imported.lines} lines omitted, not understood: "
                     f"line {shown}" + " ..." * (len(imported.unread) > EXAMPLES))
    if board is not None:
        try:
            load_board(board)
        except TwinError as error:
            found.append(f"no board file is known for {board!r}, it is noted as a name ({error})")
    return tuple(found)
