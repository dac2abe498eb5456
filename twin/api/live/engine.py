"""What a worker does: it keeps deployments and predicts them, again while a clock's slider moves.

Runs in a process of its own, which may be ended at any moment; what it keeps only saves time.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hwmodels.board.file import load_board
from hwmodels.errors import TwinError
from hwmodels.file_cache import keep_newest
from hwmodels.files import JsonObject
from hwmodels.quantities import Settings, read_quantity
from twin.api.commands.predict import describe_numbers
from twin.api.live.controls import list_controls, list_paths
from twin.api.live.figures import tell_prediction
from twin.api.live.reading import Operation, Reader
from twin.api.live.state import State, check_names
from twin.attribution.effects import list_effects
from twin.deployment.deploy import choose_room, deploy_towards
from twin.deployment.deployment import Deployment
from twin.errors import DoesNotFitError, UsageError
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.prediction import Prediction

MOST_KEPT = 24
"""Deployments, and answers, of which the oldest goes."""

KEPT = ("time_us", "energy_uj", "whole_uj", "cycles", "causes", "layers", "operating")
"""Of an answer: what is said while a slider moves, too."""


class Engine(Reader):
    """Answers requests about states, too.

    Parameters
    ----------
    folder : Path
        As of `Reader`.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._bases: OrderedDict[str, Deployment] = OrderedDict()
        self._sliding: OrderedDict[str, Deployment] = OrderedDict()
        self._answers: OrderedDict[str, JsonObject] = OrderedDict()

    def operations(self) -> Mapping[str, Operation]:
        """Return what can be asked, by name."""
        return {**super().operations(), "predict": self.predict, "reprice": self.reprice}

    def predict(self, request: JsonObject) -> JsonObject:
        """Predict a state; with "controls", say what can be turned."""
        state = State.model_validate(request["state"])
        base, settings = self._find_base(state), dict(state.set)

        def predict_with(changes: Settings) -> Prediction:
            return predict_calibrated(base.replace(changes), temperature=state.temperature,
                                      calibration=state.calibration)

        made = predict_with(settings)
        answer = tell_prediction(made)
        if settings:
            answer["warnings"] += list_effects(predict_with({}), made, settings, predict_with)
        answer["warnings"] += describe_numbers(made.deployment, state.calibration,
                                               state.temperature)
        keep_newest(self._answers, state.key, {name: answer[name] for name in KEPT}, MOST_KEPT)
        return {**answer, **self.tell_beside(request)}

    def tell_beside(self, request: JsonObject) -> JsonObject:
        """Return what can be turned, where that is asked for and the board can be read."""
        if not request.get("controls"):
            return {}
        try:
            state = State.model_validate(request["state"])
            check_names(state)
            board = load_board(self.find(state.board))
        except TwinError:
            return {}
        try:
            own: Deployment | None = self._base(state, {})
        except TwinError:
            own = None
        return {"controls": list_controls(board, own), "paths": list_paths(board)}

    def reprice(self, request: JsonObject) -> JsonObject:
        """Price a state again at another clock, from counts that are kept.

        "path" is the clock's, "begin" whether what is not kept may be simulated.
        Without a path, a state that was predicted before.
        """
        state, path = State.model_validate(request["state"]), str(request["path"])
        if not path:
            known = self._answers.get(state.key)
            return {"kept": False} if known is None else {"kept": True, **known}
        parts = path.split(".")
        if len(parts) != 3 or (parts[0], parts[2]) != ("clocks", "frequency_hz"):
            raise UsageError(f"path {path!r}: accepted: clocks.NAME.frequency_hz")
        hertz = _read_hertz(path, state.set.get(path, ""))
        rest = state.without(path)
        key = f"{rest.key} {path}"
        base = self._sliding.get(key)
        if base is None:
            if not request.get("begin"):
                return {"kept": False}
            base = self._settle(rest)
        keep_newest(self._sliding, key, base, MOST_KEPT)
        if base.loads or any(cache.streaming_lines and cache.enabled
                             for cache in base.board.caches):
            return {"kept": False}  # Other masters ask by time: no count holds at another clock.
        at_clock = replace(base.replace({path: hertz}), own_scale=None)
        answer = tell_prediction(predict_calibrated(
            at_clock, temperature=state.temperature, calibration=state.calibration))
        return {"kept": True, **{name: answer[name] for name in KEPT}}

    def _settle(self, state: State) -> Deployment:
        """Return the deployment of a state, as the command line makes it of the same words."""
        return self._find_base(state).replace(dict(state.set))

    def _find_base(self, state: State) -> Deployment:
        """Return the deployment without settings, with room for it where only they make it fit."""
        try:
            return self._base(state, {})
        except DoesNotFitError:
            return self._base(state, choose_room(dict(state.set)))

    def _base(self, state: State, settings: Settings) -> Deployment:
        key = repr((state.model, state.board, state.runtime, sorted(settings.items())))
        if key not in self._bases:
            check_names(state)
            made = deploy_towards(self.find(state.model), self.find(state.board), settings,
                                  runtime=state.runtime)
            if made.runtime.is_compiled:
                raise UsageError(f"runtime {made.runtime.identity}: is built by a compiler, which "
                                 "is not done for whoever asks over the wire; accepted: another")
            keep_newest(self._bases, key, made, MOST_KEPT)
        return self._bases[key]


def _read_hertz(path: str, text: str) -> float:
    hertz, _ = read_quantity(text, "hz") or (0.0, "")
    if not 0 < hertz < math.inf:
        raise UsageError(f"{path}: {text!r}; accepted: a frequency such as 80MHz")
    return hertz
