"""The questions asked of two sides: beside (compare), why (attribute), what moved (diff, what-if).

Each takes what a command was given, makes two sides, and leaves the rest to one difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from calibration.fitting.staleness import judge_interval
from calibration.measurement.measurement import MODEL_FILE, Measurement
from hwmodels.board.facts import Board
from hwmodels.board.file import change_board, load_board
from hwmodels.errors import TwinError
from hwmodels.frozen import frozen
from hwmodels.quantities import Settings, join_words
from twin.attribution.accounts import compare_sides
from twin.attribution.compatibility import HIDING, REFUSE, is_other_library
from twin.attribution.diagnosis.case import Progress
from twin.attribution.diagnosis.diagnosis import choose_errors, diagnose
from twin.attribution.diagnosis.faults import LIBRARY
from twin.attribution.diagnosis.finding import Diagnosis
from twin.attribution.diagnosis.setup import (
    choose_prices,
    deploy_measured,
    find_model,
    find_runtime,
    is_stand_in,
    read_healthy,
    redeploy,
)
from twin.attribution.difference import Difference
from twin.attribution.folders import start_with_counter
from twin.attribution.idealisation import Split, split_time
from twin.attribution.measured import read_folder, side_of_measurement, side_of_published
from twin.attribution.possible import Possible, explain_gap, price_sds
from twin.attribution.predicted import (
    read_document,
    side_of_compiled,
    side_of_document,
    side_of_prediction,
)
from twin.attribution.published import Comparison, compare_published, row_predictor
from twin.attribution.side import Side
from twin.attribution.tasks import TaskReport, find_gaps, report_tasks
from twin.deployment.choice import find_compiler
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.network.graph import Graph
from twin.network.readers import read_model
from twin.pricing import calibrated
from twin.pricing.calibration import AUTO, Calibration
from twin.pricing.draw import probability_faster
from twin.pricing.prediction import Prediction
from twin.pricing.task_prices import deviate_causes, state_prior


@frozen
class View:
    """A difference, and what a verb adds to it.

    Parameters
    ----------
    difference
        Of both sides.
    tasks
        Line by line, of an accelerator.
    diagnosis
        Which fault explains the gap.
    splits
        The predicted time shared over idealised resources.
    possible
        Causes whose prices could explain what no counter covers, most probable first.
    kind
        "comparison" or "attribution".
    """

    difference: Difference
    tasks: TaskReport | None = None
    diagnosis: Diagnosis | None = None
    splits: Mapping[str, Split] = field(default_factory=dict)
    possible: tuple[Possible, ...] = ()
    remarks: tuple[str, ...] = ()
    kind: str = "comparison"


def compare_measured(model: str, board: str, folder: str, *, runtime: str | None,
                     clock_hz: float | None = None, calibration: str = AUTO,
                     anyway: bool = False) -> View:
    """Set a network, or a compiler's output, beside a measurement of it.

    Parameters
    ----------
    model, board, runtime, clock_hz, calibration
        What is predicted; the runtime by default that of the measurement.
    anyway
        Also where they are not of the same thing.

    Returns
    -------
    View
        With the report of tasks where both sides have them.
    """
    measurement, where = read_folder(folder)
    theirs = side_of_measurement(measurement, str(where))
    remarks: tuple[str, ...] = ()
    if find_compiler(model):
        machine = load_board(board)
        if clock_hz is not None:
            machine = change_board(machine, {f"clocks.{machine.core.clock}.frequency_hz": clock_hz})
        ours, remarks = side_of_compiled(model, machine)
    else:
        deployment, uncounted = start_with_counter(deploy(
            model, board, clock_hz=clock_hz, follow_clock=False,
            runtime=runtime or find_runtime(measurement, model, board)), measurement)
        prediction = calibrated.predict_calibrated(
            deployment, temperature=theirs.temperature or "warm", calibration=calibration)
        ours, remarks = side_of_prediction(prediction, theirs), (
            *filter(None, [uncounted]), *prediction.warnings)
    difference = compare_sides(ours, theirs, anyway=anyway)
    texts = [f"the measurement: {text}" for text in (theirs.environment.get("remarks"),)
            if text and ours.part == "layer"]
    report = None
    if ours.scheduled and theirs.scheduled:
        gaps = find_gaps(measurement, theirs.part)
        report = report_tasks(ours, theirs, gaps=gaps)
        texts += [f"{where}: {gap}" for gap in gaps]
    return View(difference=difference, tasks=report,
                remarks=(*difference.warnings, *remarks, *texts))


@frozen
class PublishedView:
    """A network beside its published rows on a board.

    Parameters
    ----------
    board
        As it is; each row is predicted with its own clock and supply.
    comparisons
        Every row; sealed ones appear as one median only.
    differences
        Of open rows with a prediction, by place.
    """

    model: str
    board: Board
    comparisons: tuple[Comparison, ...]
    differences: Mapping[int, Difference]

    @property
    def opened(self) -> tuple[Comparison, ...]:
        """Rows that are shown singly: no sealed one is."""
        return tuple(one for one in self.comparisons if not one.sealed)


def compare_with_published(model: str | Graph, board: str, *,
                           calibration: str = AUTO) -> PublishedView:
    """Set predictions beside every published row of a network on a board.

    Parameters
    ----------
    model, board, calibration
        What is predicted; runtime, clock and supply are those of each row.
    """
    graph = read_model(model) if isinstance(model, str) else model
    machine = load_board(board)
    comparisons = compare_published(graph, machine.name, predictor=row_predictor(calibration))
    differences = {}
    for place, one in enumerate(comparisons):
        theirs = replace(side_of_published(one.row), architecture_id=graph.architecture_id)
        if one.prediction is not None and not one.sealed and theirs.whole.amounts:
            differences[place] = compare_sides(side_of_prediction(one.prediction), theirs,
                                               anyway=True)
    return PublishedView(model=graph.name, board=machine, comparisons=comparisons,
                         differences=differences)


def attribute(predicted: Side, measured: Side, *, anyway: bool = False) -> Difference:
    """Set a prediction beside a measurement: which causes make the gap.

    Raises
    ------
    NotTheSameError
        Where they are not of the same thing.
    UsageError
        When the sides are swapped, or of one kind.
    """
    if not predicted.predicted and measured.predicted:
        raise UsageError("the arguments are swapped: the prediction comes first, the measurement "
                         f"second: twin attribute {measured.label} {predicted.label}")
    if not predicted.predicted:
        raise UsageError(f"{predicted.label} is {predicted.kind}; the first argument is a "
                         "prediction. Two measurements are compared by `twin diff`")
    if measured.predicted:
        raise UsageError(f"{measured.label} is a prediction; the second argument is a "
                         "measurement. Two predictions are compared by `twin diff`")
    return compare_sides(predicted, measured, anyway=anyway)


def attribute_measured(predicted: str | Prediction, folder: str, *, options: Mapping[str, Any],
                       calibration: str = AUTO, healthy: str | None = None,
                       verdicts: bool = True, shapley: bool = False, anyway: bool,
                       on_progress: Progress | None = None) -> View:
    """Attribute what a measurement folder holds, and say which fault explains the gap.

    Parameters
    ----------
    predicted : str or Prediction
        A prediction, its JSON, or a model.
    options
        Of `deploy_measured`: board, runtime, clock_hz, weights, arena; None is not given.
    calibration, anyway
        As of `compare_measured`.
    healthy
        Folder of the same kernels known to be right.
    verdicts, shapley
        Whether to weigh faults; whether to share the time over idealised resources.
    on_progress
        As `diagnose` reports it.
    """
    if isinstance(predicted, str):
        _refuse_swapped(predicted, folder)
    measurement, where = read_folder(folder)
    theirs = side_of_measurement(measurement, str(where))
    ours, deployment, remarks = _predict_beside(predicted, measurement, where, theirs, options,
                                               calibration)
    difference = attribute(ours, theirs, anyway=anyway)
    diagnosis = None
    right, other_image = read_healthy(healthy, measurement, where)
    same = not any(one.what in ("network", "board") and one.level == REFUSE
                   for one in difference.findings)
    prices = None if deployment is None else choose_prices(deployment, measurement, calibration)
    stands_in = deployment is not None and is_stand_in(deployment, measurement)
    fitted = prices is not None and prices.rests_on(where, measurement.sha256)
    if same and deployment is not None and verdicts and not (deployment.accelerated or fitted):
        diagnosis = diagnose(deployment, measurement, healthy=right, stands_in=stands_in,
                             calibration=prices, on_progress=on_progress)
        if any(one.text == HIDING for one in difference.findings):
            diagnosis = diagnosis.of_inferred()
    return View(kind="attribution", difference=difference, diagnosis=diagnosis,
                possible=_explain(difference, deployment, prices, stands_in=stands_in),
                splits=_split(deployment, diagnosis, ours, prices) if shapley else {},
                remarks=(*([f"{calibration} was learnt from {where}: gaps are what its prices "
                            "leave; no fault is weighed (`twin diagnose` does, without it)"]
                           if fitted else []), *difference.warnings, *remarks,
                         *([other_image] if other_image else []), *_judge_overlay(ours, theirs)))


def _explain(difference: Difference, deployment: Deployment | None, prices: Calibration | None, *,
             stands_in: bool) -> tuple[Possible, ...]:
    """Return the causes whose prices could explain a gap that nothing counted."""
    if deployment is None:
        return ()
    if not deployment.accelerated:
        return explain_gap(difference.main, choose_errors(deployment, stands_in), price_sds(prices))
    if difference.second.scheduled:  # Its counters say more: `diagnose`.
        return ()
    npu, sd = deployment.board.accelerator, deployment.runtime.mapping.spread.task
    own = replace(LIBRARY, common=0.0, family=sd, layer=sd)
    return explain_gap(difference.main, own, deviate_causes(
        npu, state_prior(npu, deployment.runtime.identity) if prices is None
        else prices.time.covariance))


def _refuse_swapped(predicted: str, folder: str) -> None:
    if not Path(predicted).is_dir():
        return
    if Path(folder).is_dir():
        raise UsageError(f"{predicted} and {folder} are both folders; the first argument is a "
                         "prediction or a model. Two measurements are compared by `twin diff`")
    raise UsageError(f"the arguments are swapped: {predicted} is a measurement and comes "
                     f"second: twin attribute {folder} {predicted}")


def _predict_beside(predicted: str | Prediction, measurement: Measurement, where: Path,
                    theirs: Side, options: Mapping[str, Any], calibration: str,
                    ) -> tuple[Side, Deployment | None, list[str]]:
    """Return the prediction as a side, what it is of where that is known, and warnings."""
    given = [name.removesuffix("_hz") for name, value in options.items() if value is not None]
    if isinstance(predicted, Prediction):
        if given:
            raise UsageError(f"--{given[0]} is for a model; a prediction is made already")
        return (side_of_prediction(predicted, theirs), predicted.deployment,
                list(predicted.warnings))
    if Path(predicted).suffix == ".json" and "epochs" not in Path(predicted).stem:
        if given:
            raise UsageError(f"--{given[0]} is for a model; {predicted} is a prediction already")
        document = read_document(Path(predicted))
        side = side_of_document(document, predicted)
        try:
            return side, redeploy(document), []
        except TwinError as error:
            return side, None, [f"no verdict: {error}"]
    deployment, stand_in = deploy_measured(measurement, where, model=predicted, **options)
    prediction = calibrated.predict_calibrated(
        deployment, temperature=measurement.header.temperature or "warm", calibration=calibration)
    return side_of_prediction(prediction, theirs), deployment, [
        *filter(None, [stand_in]), *prediction.warnings]


def _split(deployment: Deployment | None, diagnosis: Diagnosis | None, ours: Side,
           prices: Calibration | None) -> dict[str, Split]:
    if deployment is None or deployment.accelerated:
        raise UsageError("--shapley needs a model that can be predicted again, on a core: give the "
                         "model instead of its prediction")
    found = {"as predicted": split_time(deployment, ours.temperature or "warm", prices)}
    changed = diagnosis.verdict.fault.deployment if diagnosis is not None else None
    if changed is not None:
        found["as diagnosed"] = split_time(changed, ours.temperature or "warm", prices)
    return found


def _judge_overlay(ours: Side, theirs: Side) -> list[str]:
    """Say when the overlay behind a prediction no longer fits what was measured.

    Of another library's kernels its prices say nothing.
    """
    measured = theirs.whole.amounts.get("time")
    if ours.interval_us is None or measured is None or is_other_library(ours, theirs):
        return []
    finding = judge_interval(ours.calibration, ours.interval_us, measured / 1e3, unit="us")
    return [str(finding)] if finding is not None else []


def diff(before: Side, after: Side, *, anyway: bool = False) -> Difference:
    """Compare two predictions, or two measurements: what changed.

    Raises
    ------
    NotTheSameError
        For other networks or boards.
    UsageError
        For a prediction against a measurement.
    """
    if before.predicted != after.predicted:
        prediction, other = (before, after) if before.predicted else (after, before)
        raise UsageError(f"{prediction.label} is a prediction, {other.label} is {other.kind}: "
                         f"compare them by: twin attribute {prediction.label} {other.label}")
    return compare_sides(_name_layers(before), _name_layers(after), anyway=anyway)


def _name_layers(side: Side) -> Side:
    """Name a measurement's layers as its network does, where that is known here."""
    if side.predicted or side.scheduled or not side.numbered:
        return side
    try:
        layers = read_model(find_model(side.environment.get(MODEL_FILE, side.model),
                                       side.model_sha256)).layers
    except TwinError:
        return side
    return replace(side, parts=tuple(
        replace(part, name=part.name or layer.name, op=part.op or layer.op) for part in side.parts
        for layer in layers[part.index or 0:][:1]))


@frozen
class WhatIf:
    """Two predictions, without and with changes.

    Parameters
    ----------
    before, after
        Both sides.
    changes
        Dotted path to value, as set.
    odds
        Probability that `after` is really faster; None at stated prices.
    effects
        Paths that changed nothing, or did the contrary of what was meant.
    """

    before: Prediction
    after: Prediction
    changes: Settings
    difference: Difference
    odds: float | None = None
    effects: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to warn of, each once, and of which side where not of both."""
        then, now = self.before.warnings, self.after.warnings
        return tuple(dict.fromkeys((
            *self.effects, *(f"after: {text}" for text in now if text not in then),
            *(f"before: {text}" for text in then if text not in now),
            *(text for text in now if text in then))))


def set_what_if(before: Prediction, after: Prediction, changes: Settings,
                effects: tuple[str, ...] = ()) -> WhatIf:
    """Set two predictions beside each other; whatever was changed is what was asked for."""
    odds = None
    if before.certainty is not None and after.certainty is not None:
        odds = probability_faster(before.time_us, after.time_us, before.certainty.draw,
                                  after.certainty.draw)
    then, now = ({"weights": one.deployment.weights_named, "arena": one.deployment.arena_named}
                 for one in (before, after))
    moved = [f"{what} from {then[what]} to {now[what]}" for what in then if (
        then[what] != now[what] and not {f"placement.{what}", "npu.memory_mode"} & {*changes})]
    if moved:
        effects = (f"placement: the change moves {join_words(moved)}, where nobody asked for a "
                   "place; --set placement.weights=, placement.arena= hold them", *effects)
    return WhatIf(before=before, after=after, changes=changes, odds=odds, effects=effects,
                  difference=compare_sides(side_of_prediction(before), side_of_prediction(after),
                                           anyway=True))
