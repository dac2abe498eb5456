"""A point of a space becomes a deployment, and a batch of deployments becomes rows."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial

from hwmodels.board.facts import Board
from hwmodels.board.file import change_board, load_board
from hwmodels.errors import TwinError
from hwmodels.frozen import frozen
from hwmodels.quantities import Settings
from twin.deployment.choice import DEFAULT
from twin.deployment.deploy import deploy_towards
from twin.deployment.deployment import Deployment
from twin.errors import (
    DoesNotFitError,
    ModelError,
    NotApplicableError,
    PlacementError,
    RuntimeRefusedError,
    UsageError,
)
from twin.network.graph import Graph
from twin.network.readers import read_model
from twin.network.rewrites.rewrite import rewrite_network
from twin.pricing.batch import Batch
from twin.pricing.batched import Read, attempt, predict_many
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.calibration import AUTO, choose_calibration
from twin.pricing.grade import grade_prices
from twin.pricing.prediction import Prediction
from twin.pricing.variables import COLD_START, SETUP, measure_variables
from twin.studies.axes import NAMED, OWN, Brought, Point, Value, label, read_clock
from twin.studies.cold_start import list_parts
from twin.studies.duty import Duty, Sleeps, assumed_paths, current_paths, find_rest, stated
from twin.studies.filling import add_duty, describe_row, fill_row, name_inputs, weigh
from twin.studies.judge import Judge
from twin.studies.rows import Row, Rows

FAILURES: tuple[tuple[type[TwinError], str], ...] = (
    (DoesNotFitError, "does not fit"), (PlacementError, "placement"),
    (RuntimeRefusedError, "runtime"), (ModelError, "model"), (UsageError, "setting"),
    (NotApplicableError, "setting"))
"""What kinds of refusal are called; any other is of the board."""


def name_failure(error: TwinError | None) -> str:
    """Return what the kind of a refusal is called."""
    return next((name for known, name in FAILURES if isinstance(error, known)), "board")


@frozen
class Deployer:
    """Makes deployments of points; reads each model and each board once.

    Parameters
    ----------
    calibration
        As for `predict`.
    temperature
        "warm" or "cold".
    defaults
        What holds in every point: what-if paths, "runtime", "clock".
    assume_unsupported
        As for `deploy`.
    prices
        The user's own, in US dollars, by board or chip.
    duty
        What mean power and battery life are of.
    currents, sleep
        The user's own run currents in mA/MHz, and sleep currents in mA with wake-up in us.
    known_only
        Leave out currents and prices that are assumed.
    judge
        Says how often networks are right.
    """

    calibration: str = AUTO
    temperature: str = "warm"
    defaults: Mapping[str, Value] = field(default_factory=dict)
    assume_unsupported: str | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    duty: Duty | None = None
    currents: Mapping[str, float] = field(default_factory=dict)
    sleep: Sleeps = field(default_factory=dict)
    known_only: bool = False
    judge: Judge | None = None

    @cached_property
    def _graphs(self) -> dict[str, Graph | TwinError]:
        return {}

    @cached_property
    def _boards(self) -> dict[str, Board | TwinError]:
        return {}

    @cached_property
    def _calibrations(self) -> dict[tuple[str, str], tuple[str, str, str]]:
        return {}

    def deploy(self, point: Point) -> Deployment:
        """Return the deployment of a point; raises what `deploy` and `replace` raise."""
        point = {**self.defaults, **point}
        graph, board = self.read_graph(point["model"]), self.read_board(point["board"])
        if isinstance(brought := point.get("program"), Brought):
            return brought.deploy(board)
        runtime, clock = str(point.get("runtime", DEFAULT)), str(point.get("clock", OWN))
        settings = {path: value for path, value in point.items() if path not in NAMED}
        network = {path: settings.pop(path) for path in [*settings] if path.startswith("network.")}
        places = {what: None if value is None else str(value) for what in ("weights", "arena")
                  for value in (settings.pop(f"placement.{what}", None),)}
        placed = deploy_towards(
            graph, board, settings, runtime=runtime,
            clock_hz=None if clock == OWN else read_clock(clock), network=network, **places)
        return placed.replace(settings)

    def read_graph(self, model: Value) -> Graph:
        """Return the network of a model axis' value."""
        if isinstance(model, Graph):
            return model
        return _read_once(self._graphs, str(model), partial(
            read_model, assume_unsupported=self.assume_unsupported))

    def read_board(self, board: Value) -> Board:
        """Return the board of a board axis' value."""
        if isinstance(board, Board):
            return change_board(board, self.list_stated(board))
        return _read_once(self._boards, str(board), lambda name: self.read_board(load_board(name)))

    def list_stated(self, board: Board) -> Settings:
        """Return what-if paths of a board: the user's currents, and null for what is assumed."""
        own = stated(board, self.currents)
        return {**(assumed_paths(board) if self.known_only else {}),
                **({} if own is None else current_paths(board, own))}

    def state(self, deployment: Deployment) -> Deployment:
        """Return a deployment on its board as the user states it."""
        return deployment.replace(self.list_stated(deployment.board))

    def describe_prices(self, deployment: Deployment) -> tuple[str, str, str]:
        """Return which learnt prices a deployment gets, their intervals' basis and their grade.

        The grade is of prices: a row may still extrapolate from them.
        """
        key = deployment.board.name, deployment.runtime.identity
        if key not in self._calibrations:
            chosen = choose_calibration(deployment, self.calibration)
            self._calibrations[key] = ("", "", grade_prices(deployment, None)) if chosen is None \
                else (chosen.description, chosen.entry.time.band.basis,
                      grade_prices(deployment, chosen.measured))
        return self._calibrations[key]

    def rate_all(self, points: Iterable[Point]) -> None:
        """Measure how often the networks of points are right, many at a time."""
        if self.judge is not None:
            asked = []
            for point in ({**self.defaults, **point} for point in points):
                with contextlib.suppress(TwinError):
                    asked.append((self.read_graph(point["model"]), point))
            self.judge.rate_all(asked)

    def predict(self, points: Sequence[Point]) -> Rows:
        """Return a row for every point, in order; what is refused is a row with its reason."""
        return self._predict(points, [attempt(self.deploy, point) for point in points])

    def _predict(self, points: Sequence[Point], made: Sequence[Deployment | TwinError]) -> Rows:
        """Return the rows of points, of which each is a deployment or was refused."""
        placed = [one for one in made if isinstance(one, Deployment)]
        batch = predict_many(placed, temperature=self.temperature, calibration=self.calibration,
                              errors="keep", draws=True)
        failures = {failure.row: failure.error for failure in batch.failures}
        rows, number = [], 0
        for point, one in zip(points, made, strict=True):
            error = one if isinstance(one, TwinError) else failures.get(number)
            rows.append(self._fail(point, error) if error is not None or isinstance(one, TwinError)
                        else self._row(point, one, batch, number))
            number += isinstance(one, Deployment)
        return tuple(rows)

    def predict_changed(self, deployment: Deployment,
                        changes: Sequence[Mapping[str, Value]]) -> Rows:
        """Return a row for every change of a deployment; a refused one is a row with its reason.

        Parameters
        ----------
        changes
            What-if paths and values, each made of the deployment by itself.
        """
        asked: Point = {"model": deployment.graph, "board": deployment.board.name}
        return self._predict([{**asked, **change} for change in changes],
                             [attempt(deployment.replace, change) for change in changes])

    def predict_one(self, deployment: Deployment) -> Prediction:
        """Return the prediction of a deployment at these prices."""
        return predict_calibrated(replace(deployment, own_scale=None),
                                  temperature=self.temperature, calibration=self.calibration)

    def _row(self, point: Point, deployment: Deployment, batch: Batch, number: int) -> Row:
        board = deployment.board
        filled = fill_row(self._describe(point, deployment), batch, number, board)
        if "program" in point:  # which of its instructions are of calls is not known
            filled = replace(filled, overhead_us=None)
        return self._finish(filled, board)

    def _finish(self, row: Row, board: Board) -> Row:
        """Return a row with its duty, and of a cold one the first answer after sleep."""
        rest, setup_us = find_rest(board, self.sleep), dict(row.variables).get(SETUP)
        if self.temperature == "cold" and rest is not None and setup_us and row.time_us:
            total_us = math.fsum(us for _, us in list_parts(rest, setup_us, row.time_us))
            row = replace(row, variables=tuple(sorted((*row.variables, (COLD_START, total_us)))))
        return add_duty(row, board, self.duty, self.sleep)

    def _describe(self, point: Point, deployment: Deployment) -> Row:
        row = describe_row(point, deployment, self.describe_prices(deployment), self.prices)
        brought = point.get("program")
        row = weigh(row, self.read_graph(brought.model) if isinstance(brought, Brought)
                    else deployment.graph)
        if self.judge is not None:
            asked = {**self.defaults, **point}
            found = self.judge.rate(self.read_graph(asked["model"]), asked)
            row = replace(row, accuracy=found.share, accuracy_range=found.interval,
                          accuracy_by=found.by)
        measured = measure_variables(deployment, cold=self.temperature == "cold")
        if isinstance(brought, Brought):
            row = replace(row, runtime=f"{brought.name} ({brought.file})")
            if brought.prepare is not None:
                measured[SETUP] = self.predict_one(brought.prepare(deployment.board)).time_us
        return replace(row, variables=tuple(sorted(measured.items())))

    def _fail(self, point: Point, error: TwinError | None) -> Row:
        """Return the row of a point that was refused."""
        asked = {**self.defaults, **point}
        kind = name_failure(error)
        board = label(asked["board"])
        with contextlib.suppress(TwinError):  # A file's board has the name its other rows have.
            board = self.read_board(asked["board"]).name
        row = Row(inputs=name_inputs(point), model=label(asked["model"]), board=board,
                  runtime=str(asked.get("runtime", DEFAULT)), failure=kind,
                  reason=str(error).removeprefix(f"{kind}: "))
        with contextlib.suppress(TwinError):
            return weigh(row, rewrite_network(self.read_graph(asked["model"]), {
                path: value for path, value in asked.items() if path.startswith("network.")}))
        return row


def _read_once(kept: dict[str, Read | TwinError], name: str, read: Callable[[str], Read]) -> Read:
    """Return what a name is of, read the first time; what it was refused with is raised again."""
    if name not in kept:
        kept[name] = attempt(read, name)
    found = kept[name]
    if isinstance(found, TwinError):
        raise found
    return found
