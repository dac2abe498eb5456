"""`twin calibrate`: measurements become prices, written as an overlay."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.fitting.overlay import (
    CONTRADICTING,
    Entry,
    Overlay,
    doubt_powers,
    mark_doubt,
    shipped_path,
    write_overlay,
)
from calibration.measurement.measurement import BOARD_HASH, INFERRED, read_header, read_measurement
from calibration.measurement.sample import Header
from hwmodels.board.facts import Board
from hwmodels.board.file import hash_board, load_board
from hwmodels.files import write_whole
from twin.api.commands.energy import FAR, doubt_energy
from twin.api.requests import takes
from twin.api.requests.attribution import Calibrate, CalibratePublished
from twin.attribution.compatibility import HIDING, describe_unstated_clock
from twin.attribution.folders import drop_repeated, pair_energies, tell_other_file, warm_of_campaign
from twin.attribution.measured import find_unsteady
from twin.attribution.observations import (
    find_contradictions,
    observe_folder,
    observe_pmu_layers,
    observe_rows,
)
from twin.deployment.stated import describe_open
from twin.errors import UsageError
from twin.learning.own import list_totals
from twin.learning.portability.probed import learn_all, learn_probes, split_folders
from twin.pricing.calibration import Calibration, name_far, starting_prices
from twin.pricing.price_names import TIME_PRICES
from twin.reports.export import check_place

if TYPE_CHECKING:
    from calibration.datasets import PublishedRow


@takes(Calibrate)
def calibrate(asked: Calibrate) -> Overlay:
    """Learn prices of one's own board from measurements: of networks, micro-benchmarks, or both.

    Prices, their covariance, and what they rest on; written where `output` says, for `predict`.
    `on_remark` is called with what to know of the micro-benchmarks and of folders named twice,
    `on_total` with what each network was predicted to take, and is now.

    Raises
    ------
    UsageError
        For a folder without a measurement, an overlay that could not be written, and, unless
        `anyway`, for an energy that can hardly be right and folders that contradict each other.
    MeasurementError
        For a folder that is of another board or runtime, or does not say of which.
    """
    folders, board, runtime = asked.folders, asked.board, asked.runtime
    output, on_remark = asked.output, asked.on_remark
    if output is not None:
        check_place(fspath(output))
    machine = load_board(board)
    several = [folders] if isinstance(folders, str | PathLike) else folders
    once, repeated = drop_repeated(warm_of_campaign(fspath(one)) for one in several)
    for remark in repeated:
        on_remark(remark)
    probes, networks = split_folders(once)
    now = hash_board(machine)
    for folder in once:
        for remark in (*_remark(read_header(folder), machine, now, runtime),
                       *(map(str, find_unsteady(read_measurement(folder)))
                         if folder in networks else ())):
            on_remark(f"{folder}: {remark}")
    probed = learn_probes(probes, machine, runtime) if probes else None
    pairs, doubted = pair_energies(networks), False
    for folder, energy in pairs.items():
        drawn = read_measurement(name := energy or folder)
        if drawn.count("energy") and (doubt := doubt_energy(drawn, Path(folder))):
            if not asked.anyway:
                raise UsageError(f"{name}: {doubt} Accepted: a recording in the right unit, or "
                                 "--anyway")
            on_remark(f"{name}: {doubt} Powers are learnt from it, as --anyway asks, and its "
                      f"energies are unsure by a factor of {FAR:g}")
            doubted = True
    observed = {folder: observe_folder(folder, board, energy=energy, model=asked.model,
                                       runtime=None if probes and not describe_open(
                                           read_header(folder).runtime) else runtime)
                for folder, energy in pairs.items()}
    apart = find_contradictions(observed)
    if apart and not asked.anyway:
        raise UsageError(f"{apart[0]}. Accepted: folders that agree, or --anyway")
    for remark in (*(f"{one}. Prices are learnt between the two, as --anyway asks"
                     for one in apart), *(() if probed is None else probed.remarks)):
        on_remark(remark)
    overlay = learn_all([one for each in observed.values() for one in each], probed, machine)
    overlay = replace(overlay, data=replace(overlay.data, contents=tuple(
        read_measurement(folder).sha256 for folder in once)))
    if doubted:
        overlay = doubt_powers(overlay, math.log(FAR))
    if apart:
        overlay = mark_doubt(overlay, CONTRADICTING)
    for total in list_totals(observed, overlay, machine):
        asked.on_total(total)
    if output is not None:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        write_overlay(Path(output), overlay)
    return overlay


def name_doubted(overlay: Overlay, entry: Entry, board: Board) -> tuple[str, ...]:
    """Return the time prices learnt of a board that lie far from those a prediction takes."""
    return name_far(entry.time, overlay.time_prices, find_start(overlay, entry, board))


def find_start(overlay: Overlay, entry: Entry, board: Board) -> Calibration | None:
    """Return the prices a prediction takes without an overlay; None of an accelerator."""
    return starting_prices(board, entry.runtime) if overlay.time_prices == TIME_PRICES else None


def _remark(header: Header, machine: Board, now: str, runtime: str | None) -> Iterator[str]:
    """Yield what prices that are learnt from a measurement rest on without its saying so.

    Parameters
    ----------
    now
        Hash of the board's file.
    """
    facts = header.facts
    if runtime is None and INFERRED in facts:
        yield HIDING
    other = tell_other_file(header.board, facts.get(BOARD_HASH), now)
    if other and header.board == machine.name:
        yield f"board file: {other}; prices are learnt for today's"
    if unstated := describe_unstated_clock(machine.core_clock.frequency_hz, header.clocks):
        yield f"clock cpu: {unstated}; prices are learnt for that"


@takes(CalibratePublished)
def calibrate_published(asked: CalibratePublished) -> dict[str, Overlay]:
    """Learn from every published row that may be learnt from.

    By name as shipped; those of a library on no known board are named by the library alone.
    `on_overlay` is called with each overlay, its board (None: boards not measured) and its file.
    """
    from calibration.datasets import published_rows
    from calibration.fitting.between import LEFT_OUT_FILE, write_between
    from calibration.fitting.cell import MEASURED_FILE, SHIPPED
    from twin.learning.overlays import learn, learn_between_networks, make_overlays

    output = asked.output
    found: dict[str, Overlay] = {}
    learning = learn((*observe_rows(published_rows()), *observe_pmu_layers()))
    for (library, board), overlay in make_overlays(learning).items():
        name = shipped_path(library, board).relative_to(SHIPPED)
        path = None if output is None else Path(fspath(output)) / name
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_overlay(path, overlay)
        asked.on_overlay(overlay, board, path)
        found[str(name)] = overlay
    if output is not None:
        write_between(Path(fspath(output)) / LEFT_OUT_FILE.name, learn_between_networks(learning))
        _write_measured(Path(fspath(output)) / MEASURED_FILE.name, found.values(), published_rows())
    return found


def _write_measured(path: Path, overlays: Iterable[Overlay], rows: Iterable[PublishedRow]) -> None:
    """Write what was measured as a table, for who looks before reading overlays.

    Accelerators have no overlay: what counts is published rows of known networks.
    """
    import yaml

    found = [(entry.board, entry.runtime, entry.time.rows) for overlay in overlays
             for entry in overlay.entries if entry.board and entry.time.rows]
    accelerated = Counter((row.board, row.runtime) for row in rows
                          if "npu" in row.flags and row.board and row.runtime and row.model)
    found += [(board, runtime, count) for (board, runtime), count in accelerated.items()]
    table = []
    for name, runtime, count in found:
        board = load_board(name)
        table.append({"board": name, "soc": board.soc, "core": board.core.model,
                      "runtime": runtime, "rows": count})
    write_whole(path, ("# Rows of use fit by board and runtime; written with the overlays beside.\n"
                    + yaml.safe_dump({"schema": 1, "measured": table}, sort_keys=False, width=100,
                                     default_flow_style=None)).encode())
