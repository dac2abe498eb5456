"""`twin predict`: cycles, time and energy of one inference, and why."""

from __future__ import annotations

from collections import Counter
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration.fitting.overlay import read_overlay
from hwmodels.board.file import list_boards, load_board
from hwmodels.errors import TwinError
from hwmodels.files import File
from hwmodels.quantities import Settings, format_size, format_time
from twin.api.requests import Predict
from twin.deployment import deploy as placing
from twin.deployment.choice import list_best, list_made_for, settle_release
from twin.deployment.core import describe_clock, list_caches
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.network.operators import graph_macs, layer_macs
from twin.network.readers import read_model
from twin.pricing import calibrated
from twin.pricing.calibration import AUTO, NONE
from twin.pricing.ledger import find_largest
from twin.pricing.prediction import Prediction

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.studies.change import Change
    from twin.studies.results import Table


def predict(deployment: Deployment, *, temperature: str = "warm",
            calibration: File = AUTO) -> Prediction:
    """Predict cycles, time and energy of one inference, why, and how sure that is.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.
    temperature : str
        "warm" (after at least one inference) or "cold" (caches empty).
    calibration : str or path
        "auto": learnt prices that are shipped for this board and runtime; "none": stated prices;
        else an overlay file of `calibrate`.

    Returns
    -------
    Prediction
        With `certainty` where learnt prices were used.
    """
    return calibrated.predict_calibrated(deployment, temperature=temperature,
                                         calibration=fspath(calibration))


def describe_measured_runtime(prediction: Prediction, calibration: str) -> tuple[str, ...]:
    """Name the runtime that is known better on the board, beside shipped prices of another."""
    deployment = prediction.deployment
    if (calibration != AUTO or prediction.certainty is None
            or deployment.runtime.identity in list_best(deployment.board)[:1]):
        return ()
    from twin.attribution import folders

    return folders.describe_measured_runtime(prediction)


_NARROWED = {"uint8": "network.precision", "int4": "network.weights"}
"""What makes them int8, by the numbers whose kernels are slow or unpack first."""

CHEAP = {**dict.fromkeys(("data_refill", "flash_wait", "sram_wait", "external_memory"), "waits"),
         "launch": "launch"}
"""Causes against which few settings are to be tried, and what lists them: a key of `REMEDIES`."""

LARGE = 0.3
"""Share of the time of the largest cause from which settings against it are tried (assumed)."""


def suggest_setting(prediction: Prediction) -> Change | None:
    """Return the setting that saves most against a network's largest cause, of few predictions.

    None where nothing saves two per cent, the cause is small or no placement is against it, the
    network is large, or something was placed or changed: what is set is not proposed again.
    """
    largest, deployment = find_largest(prediction), prediction.deployment
    if (largest is None or largest.share < LARGE or largest.cause not in CHEAP
            or deployment.target.executes or deployment.rewritten or deployment.loads
            or any(deployment.places.values()) or prediction.temperature == "cold"
            or (graph_macs(deployment.graph) > MOST_MACS and not deployment.accelerated)):
        return None
    from twin.studies.remedies import suggest_change

    return suggest_change(deployment, CHEAP[largest.cause])


MOST_MACS = 5_000_000
"""Networks up to this size are predicted once more, in a fraction of a second; larger ones not."""


def describe_numbers(deployment: Deployment, calibration: File = AUTO,
                     temperature: str = "warm") -> tuple[str, ...]:
    """Say what uint8 or 4-bit weights cost beside int8, on the same board and library."""
    graph = deployment.graph
    present = {graph.tensors[i].dtype for layer in graph.layers for i in layer.inputs if i >= 0
               and layer_macs(graph, layer)}
    lines = []
    for dtype in _NARROWED.keys() & present if graph_macs(graph) <= MOST_MACS else ():
        path = _NARROWED[dtype]
        try:
            took, other = (predict(one, calibration=calibration, temperature=temperature).time_us
                           for one in (deployment, deployment.replace({path: "int8"})))
        except TwinError:  # int8 does not fit, or the runtime lacks it
            continue
        lines.append(f"numbers: {dtype} takes {took / other:.2g} times as "
                     f"long as int8, {format_time(other)}: --set {path}=int8")
    return tuple(lines)


def describe_cold(prediction: Prediction, calibration: File) -> tuple[str, ...]:
    """Say why a cold inference takes no longer than a warm one, where caches are looked up."""
    from twin.pricing.extrapolation import COLD

    caches = list_caches(prediction.deployment)
    if prediction.temperature != "cold" or prediction.tasks or not caches:
        return ()
    warm = predict(prediction.deployment, calibration=calibration)
    return () if 1 - warm.time_us / prediction.time_us > COLD else (
        "cold is as warm here: filling " + " and ".join(
            f"{cache.name} ({format_size(cache.size_bytes)})" for cache in caches)
        + f" takes under {100 * COLD:.0f} % of the time",)


def describe_set_up(deployment: Deployment) -> tuple[str, ...]:
    """Say what was chosen, how numbers are handled, and where the part has no such clock."""
    return (*deployment.chosen, *describe_numbers(deployment), *describe_clock(deployment.board))


def describe_fastest(table: Table) -> tuple[str, ...]:
    """Say it of each network of a table where it runs fastest, and what bare names stand for."""
    from twin.studies.sweep import list_idle

    fastest = {row.model: row for row in sorted(
        table.predicted, key=lambda row: row.time_us or 0.0, reverse=True)}
    meant: dict[str, str] = {}
    asked = [(row, dict(row.inputs)) for row in table.predicted]
    for name, runtime, board in dict.fromkeys((given.get("runtime"), row.runtime, given["board"])
                                              for row, given in asked):
        if name and runtime not in meant and runtime.startswith(f"{name}@"):
            meant[runtime] = "".join(settle_release(name, load_board(board))[1])
    return (*(f"no effect: {axis}: {', '.join(values)} have equal figures"
              for axis, values in list_idle(table.rows).items()),
            *(f"{model} on {row.board}, {line}" for model, row in fastest.items()
              for own in [placing.deploy(read_model(model), dict(row.inputs)["board"],
                                         runtime=row.runtime)]
              for line in describe_numbers(own)), *filter(None, meant.values()),
            *(f"boards are compared by different releases of {name}; name one: --runtime "
              f"{name}@RELEASE" for name, releases in Counter(
                  one.partition("@")[0] for one in meant).items() if releases > 1),
            *(line for board, hertz in dict.fromkeys((given["board"], row.clock_hz)
                                                     for row, given in asked)
              for line in describe_clock(load_board(board), hertz)))


FIRST_BOARDS = ("nucleo_l4r5zi", "nucleo_u575zi_q", "stm32h747i_disco", "stm32n6570_dk",
                "esp32s3_devkitc")
"""What a network is predicted on where no board is named: a Cortex-M4, M33, M7, M55 with an NPU and
an Xtensa, each the board of its core with most measured rows."""


def list_first_boards(model: str) -> tuple[str, ...]:
    """Return the boards a network is predicted on where none is named.

    Of a file compiled for an accelerator those that have one of that family.
    """
    made = next((one for one in list_made_for(read_model(model)) if one.accelerated), None)
    return FIRST_BOARDS if made is None else tuple(
        name for name in list_boards()
        if (npu := load_board(name).npu) is not None and npu.family == made.mapping.family)


def runtime_of(calibration: str) -> str | None:
    """Return the runtime an overlay file was made for, where it is of one: its user's own."""
    if calibration in (AUTO, NONE):
        return None
    made_for = {entry.runtime for entry in read_overlay(calibration).entries}
    return made_for.pop() if len(made_for) == 1 else None


def deploy_as_stated(model: str, board: str, *, runtime: str | None = None,
                   changes: Settings | None = None, calibration: str = AUTO,
                   **chosen: Any) -> Deployment:
    """Put a model on a board; changes are not made, but say where it goes if it must.

    Parameters
    ----------
    model, board, runtime
        As for `deploy`; without a runtime, an overlay file of one runtime says which.
    changes : mapping of str to object, optional
        Of `Deployment.replace`, that will be made.
    calibration : str
        As for `predict`.
    **chosen
        Further arguments of `deploy`.

    Raises
    ------
    DoesNotFitError
        When it fits neither way.
    """
    learnt = runtime_of(calibration) if runtime is None else None
    made = placing.deploy_towards(model, board, changes or {}, runtime=runtime or learnt, **chosen)
    usual = list_best(made.board)[:1]
    return made if learnt is None or learnt in usual else placing.note_choice(made, (
        f"runtime: {learnt}, which {Path(calibration).name} was made for: none was asked for; "
        f"without it {', '.join(usual)}",))


def deploy_request(asked: Predict) -> Deployment:
    """Put a model on a board as a request says; changes are not made."""
    deployment = deploy_as_stated(**{name: value for name, value in asked.arguments.items()
                                   if name != "temperature"})
    check_set_once(deployment.board, asked)
    return deployment


def check_set_once(board: Board | str, asked: Any) -> None:
    """Refuse a request, for a board or its name, of which an option and a change set the same."""
    if isinstance(board, str):
        board = load_board(board)
    for name, path in (("runtime", "runtime"), ("weights", "placement.weights"),
                       ("arena", "placement.arena"),
                       ("clock_hz", f"clocks.{board.core.clock}.frequency_hz")):
        if asked.arguments[name] is not None and path in (asked.arguments.get("changes") or ()):
            raise UsageError(f"--{name.removesuffix('_hz')} and --set {path} set the same; "
                             "accepted: one of them")
