"""Predicting for hardware nobody measured: physics first, what other boards taught second."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from calibration.datasets import published_rows
from calibration.errors import MeasurementError
from calibration.fitting.cell import Cell, locate
from calibration.fitting.intervals import student_band
from calibration.fitting.networks import name_network
from calibration.fitting.overlay import BandModel, Entry, find_entry, read_shipped
from calibration.fitting.prior import Spread
from calibration.measurement.measurement import read_header
from calibration.microbench.probes import RUNTIME
from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.errors import BoardError, check_known, reworded
from hwmodels.quantities import list_by_key
from twin.attribution.folders import warm_of_campaign
from twin.attribution.observations import (
    PMU_SETUP,
    Observation,
    observe_folder,
    observe_pmu_layers,
    observe_rows,
)
from twin.errors import RuntimeRefusedError, UsageError
from twin.learning.beyond import tell_operators
from twin.learning.overlays import learn, learn_powers, make_entry
from twin.learning.portability.plan import prior_of, rank_benchmarks
from twin.pricing.assurance import assure, price_cycles
from twin.pricing.calibrated import apply_calibration, note_currents, predict_calibrated
from twin.pricing.calibration import Calibration
from twin.pricing.draw import Draw
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES
from twin.pricing.unmeasured import Behind, Makeup, Ported

SEEN_SHARE = 0.02
"""An operator family with less of the time than this may be one nobody measured."""

FAMILIES = TIME_PRICES[:TIME_PRICES.index("call")]
"""Time prices of operator families: all but calls and memories."""


def gather(sources: Sequence[str], networks: Sequence[str] = (),
           boards: Sequence[Board] = ()) -> tuple[Observation, ...]:
    """Return what was measured on boards: published rows that may be learnt from, or folders.

    Parameters
    ----------
    sources
        Boards by name or file, or measurement folders.
    networks
        Only these; empty: all.
    boards
        Whose files are known beside those of `sources`: a measurement may be of one of them.

    Raises
    ------
    UsageError
        When a board has no rows, or none is of the networks asked for.
    """
    rows = [row for row in published_rows()
            if row.use == "fit" and row.judges_latency and row.model is not None]
    measured = {row.board for row in rows} | {PMU_SETUP["board"]}
    found: list[Observation] = []
    folders = [(folder, read_header(folder)) for source in sources if Path(source).is_dir()
               for folder in [warm_of_campaign(source)]]
    named = [(source, load_board(source)) for source in sources if not Path(source).is_dir()]
    files = {board.name: board.file for board in (*boards, *(one for _, one in named))
             if board.file}
    for source, header in folders:
        if header.runtime == RUNTIME:
            raise UsageError(f"--from {source}: holds micro-benchmarks of the board itself; "
                             "accepted: networks. `twin calibrate` learns from those")
        name = header.board
        with reworded(BoardError, UsageError, f"--from {source}: measured on {name!r}: give "
                      "that board's file (--to FILE, or --from FILE beside it); "):
            board = load_board(files.get(name, name))
        with reworded(MeasurementError, UsageError, "--from "):
            found += observe_folder(source, board.file or name)
    for source, board in named:
        name = board.name
        if name not in measured:
            if board.file and any(name == header.board for _, header in folders):
                continue  # It names the file of a measurement's board.
            raise UsageError(f"--from {source}: no published row of it can be learnt from; "
                             "accepted: a measurement folder, or "
                             + ", ".join(sorted(filter(None, measured)))
                             + ". `twin predict` and `twin select` answer without")
        found += observe_rows([row for row in rows if row.board == name])
        if name == PMU_SETUP["board"]:
            found += observe_pmu_layers()
    known = {one.network for one in found if one.whole}
    for network in networks:
        check_known("--networks: not measured there:", name_network(network), known, UsageError)
    wanted = {name_network(network) for network in networks}
    return tuple(one for one in found if not wanted or one.network in wanted)


def predict_unmeasured(physics: Prediction, observations: Sequence[Observation],
                       shipped: Calibration | None = None) -> Ported:
    """Predict from what other boards, or other networks, were measured to take.

    Parameters
    ----------
    physics
        On the new board, at stated prices.
    observations
        From `gather`.
    shipped
        Prices all published rows are behind, these among them: then it is what `twin predict` says.
        Without, prices are learnt from these rows alone.

    Returns
    -------
    Ported
        Prediction, interval and what both rest on.

    Raises
    ------
    RuntimeRefusedError
        When the core was measured, but never an operator family that matters here.

    Notes
    -----
    Counts are of the new board; its datasheet prices them. What is learnt are factors on those
    prices, pooled over libraries, cores, releases and boards (`calibration.fitting.prior`): the new
    board draws what its core and library taught, and keeps the spread between boards. A few boards
    do not tell how far apart boards lie: that is taken from what is shipped, where anything is.
    """
    deployment = physics.deployment
    runtime, board = deployment.runtime.identity, deployment.board
    unseen = check_families(physics, observations)
    calibration = shipped or _calibrate(physics, observations)
    applied = apply_calibration(deployment, calibration)
    raw = predict(applied)
    certainty = assure(raw, calibration, "warm")
    cell = _cell_of(physics, observations)
    strange = () if shipped else _strangeness(cell, observations, runtime)
    certainty = replace(certainty, extrapolating=tuple(dict.fromkeys(
        (*unseen, *strange, *certainty.extrapolating))))
    try:
        ranking = rank_benchmarks(raw, calibration, board)
    except UsageError:
        ranking = None
    warnings = tuple(f"extrapolating: {reason}" for reason in certainty.extrapolating)
    measured = (f"port: {runtime} was measured on {board.name} (--to) itself: its own "
                "measurements are behind this, as of twin predict, and --from adds nothing",
                ) * calibration.measured
    return Ported(
        prediction=replace(raw, deployment=deployment, certainty=certainty,
                           warnings=(*measured, *raw.warnings,
                                     *note_currents(raw, calibration), *warnings)),
        shipped=predict_calibrated(deployment), physics_us=physics.time_us,
        behind=_stand_behind(observations), ranking=ranking,
        makeup=_make_up(calibration, certainty.draw))


def check_families(prediction: Prediction, observations: Iterable[Observation]) -> tuple[str, ...]:
    """Refuse a network whose operators nobody measured on its core; name lesser gaps.

    Raises
    ------
    RuntimeRefusedError
        Naming family, core and share, when the core was measured and the family takes
        `SEEN_SHARE` of the time.
    """
    board = prediction.board
    core = board.core.model
    mine = [one for one in observations if one.cell.core == core]
    if not mine:
        return ()
    seen = np.sum([one.design.cycles.sum(axis=0) for one in mine], axis=0)
    cycles = price_cycles(prediction)
    total = cycles.sum()
    gaps = []
    for place, family in enumerate(FAMILIES):
        share = cycles[:, place].sum() / total
        if seen[place] or not share:
            continue
        layers = [layer.name for layer, line in zip(prediction.layers, cycles, strict=True)
                  if line[place]]
        if share >= SEEN_SHARE:
            raise RuntimeRefusedError(
                f"{prediction.graph.name}: {family} takes {share:.0%} of the time "
                f"(layer {layers[0]}), and no row on a {core} has one; accepted: rows that do "
                "(more --from), or `twin predict`, which says what the datasheet says")
        gaps.append(f"{share:.1%} of the time is {family}, which no row on a {core} has")
    return tuple(gaps)


def _cell_of(physics: Prediction, observations: Sequence[Observation]) -> Cell:
    """Where the prices hold: what nobody measured is nobody's."""
    board = physics.deployment.board
    cell = locate(board.name, board.core.model, physics.deployment.runtime.identity)
    boards = {one.cell.board for one in observations}
    cores = {one.cell.core for one in observations}
    return replace(cell, board=cell.board if cell.board in boards else "",
                   core=cell.core if cell.core in cores else "")


def _calibrate(physics: Prediction, observations: Sequence[Observation]) -> Calibration:
    """Learn prices from these rows, which lie as far apart as all published ones show."""
    deployment, cell = physics.deployment, _cell_of(physics, observations)
    runtime = deployment.runtime.identity
    overlay = read_shipped(cell.library, "")
    unseen_entry = None if overlay is None else find_entry(
        overlay, board="", core=deployment.board.core.model, runtime=runtime)
    learning = learn(observations, judged=False, spreads=None if overlay is None else (
        Spread(**overlay.spread), Spread(**overlay.energy_spread)))
    entry, powers = make_entry(learning, cell, runtime), learn_powers(learning)
    if entry.energy is None and powers:
        regulator = deployment.board.power.regulator
        entry = replace(entry, energy=powers.get(regulator, powers[""]))
    if unseen_entry is not None:
        entry = _take_bands(entry, unseen_entry, len({one.cell.board for one in observations}))
    same_library = [one for one in learning.observations if one.cell.library == cell.library]
    boards = ", ".join(sorted({one.cell.board for one in learning.observations}))
    return Calibration(
        origin=boards, entry=entry, time=entry.time.estimate(TIME_PRICES),
        energy=None if entry.energy is None else entry.energy.estimate(ENERGY_PRICES),
        spread=asdict(learning.spread), energy_spread=asdict(learning.energy_spread),
        operators=tell_operators(same_library, lambda one: learning.time.estimate(one).log),
        kinds=tuple(sorted({one.kind for one in learning.observations})))


def _take_bands(entry: Entry, unseen_entry: Entry, boards: int) -> Entry:
    """Return an entry with another's bands, of fewer degrees: prices rest on few boards here."""
    def fewer(band: BandModel) -> BandModel:
        count = min(band.count, boards + 2)  # one board has the two degrees a spread starts from
        factor = student_band(count).up / student_band(band.count).up
        return replace(band, down=band.down * factor, up=band.up * factor, count=count)

    energy = entry.energy
    if energy is not None and unseen_entry.energy is not None:
        energy = replace(energy, band=fewer(unseen_entry.energy.band))
    return replace(entry, energy=energy,
                   time=replace(entry.time, band=fewer(unseen_entry.time.band)))


def _strangeness(cell: Cell, observations: Sequence[Observation], runtime: str) -> list[str]:
    """Why rows of other machines or libraries say less."""
    found = [f"rows of {board} are simulated: of an emulated board, not of hardware"
             for board in sorted({one.cell.board for one in observations
                                  if one.kind == "simulated"})]
    if not cell.core:
        found.append("no row is of a board with this core")
    if cell.library not in {one.cell.library for one in observations}:
        found.append(f"no row is of the library of {runtime}")
    return found


def _make_up(calibration: Calibration, draw: Draw) -> Makeup:
    entry, shares = calibration.entry, draw.time
    levels = set() if entry.board else {"board"} if entry.core else {"core", "board", "build"}
    apart = sum(float(shares @ part.covariance @ shares)
                for part in prior_of(calibration).parts if part.level in levels)
    priced = float(draw.reach @ draw.reach)
    total = (math.sqrt(priced + draw.network_sd**2 + draw.row_sd**2) + draw.unlearned_sd)**2
    apart = min(apart, priced)
    return Makeup(boards=apart / total, parameters=(priced - apart) / total,
                  model=(total - priced) / total)


def _stand_behind(observations: Sequence[Observation]) -> tuple[Behind, ...]:
    groups = list_by_key(((one.cell.board, one.cell.core, one.runtime, one.kind), one)
                         for one in observations)
    return tuple(Behind(board=board, core=core, runtime=runtime, kind=kind, rows=len(members),
                        networks=tuple(sorted({one.network for one in members if one.whole})))
                 for (board, core, runtime, kind), members in sorted(groups.items()))
