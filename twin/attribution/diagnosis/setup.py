"""What a measurement was a measurement of: the deployment to predict, and a healthy one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any

from calibration.importers.log import UNKNOWN
from calibration.measurement.measurement import INFERRED, MODEL_FILE, TIMED_BY_MS, Measurement
from hwmodels.board.file import load_board
from hwmodels.errors import BoardError, ToolMissingError, TwinError, reworded
from hwmodels.files import File
from twin.attribution.diagnosis.marks import CLOCK_SD, clock_hz_of, is_clock_own
from twin.attribution.folders import start_with_counter
from twin.attribution.measured import find_unsteady, read_folder
from twin.deployment.choice import list_releases, load_runtime
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.deployment.kernels import take_built
from twin.deployment.stated import list_candidates, name_runtime
from twin.deployment.support import runs
from twin.errors import BuildRefusedError, NotTheSameError, RuntimeRefusedError, UsageError
from twin.network.readers import read_model
from twin.network.zoo import is_known
from twin.pricing.calibration import Calibration, choose_calibration

STAND_IN = "cmsis-nn"
"""Library that stands in for one that cannot be predicted."""


def deploy_measured(measurement: Measurement, *folders: Path, model: str | None = None,
                    board: str | None = None, runtime: str | None = None,
                    clock_hz: float | None = None, weights: str | None = None,
                    arena: str | None = None, **chosen: Any) -> tuple[Deployment, str]:
    """Return the deployment a measurement claims to be of, and a remark.

    Parameters
    ----------
    measurement
        Its header names model, board and runtime.
    *folders
        Where it is, and others: images that lie there are read where none can be built.
    model, board, runtime, clock_hz, weights, arena
        What was asked for; by default what the header says, and the board's own set-up: an
        emulator's clock is its own, and of a log without cycles that of the core is as stated.
    **chosen
        Further arguments of `deploy`.

    Returns
    -------
    Deployment
        To predict.
    str
        Which library stands in for the measured one, or what the log does not count; else "".

    Raises
    ------
    TwinError
        When the model is not known or does not fit.
    """
    header = measurement.header
    named = model if model is not None else find_model(
        header.facts.get(MODEL_FILE, header.model), header.model_sha256)
    placed = dict(header.placement)
    stated = board is None and not measurement.count("cpu_cycles")
    if clock_hz is None and (stated or is_clock_own(measurement)):
        clock_hz = header.clocks.get("cpu")
    options: dict[str, Any] = {"clock_hz": clock_hz, "weights": weights or placed.get("weights"),
                               "arena": arena or placed.get("arena"),
                               "follow_clock": False} | chosen
    where = board or header.board
    if where == UNKNOWN:
        raise UsageError("the measurement does not say which board it is of: give it (--board), "
                         "or import the log with --board")
    if board is None:
        with reworded(BoardError, UsageError, f"the measurement is of {where!r}: give that board's "
                      "file (-b FILE); "):
            load_board(where)
    if runtime is not None:
        return start_with_counter(deploy(named, where, runtime=runtime, **options), measurement)
    try:
        deployment = deploy(named, where, runtime=measured_runtime(measurement), **options)
        if deployment.runtime.is_compiled:
            deployment = _build(deployment, measurement, folders)
        return start_with_counter(deployment, measurement)
    except BuildRefusedError:
        raise  # another library would give another verdict, silently
    except TwinError as error:
        name = (header.runtime == "tflm" and _find_candidate("tflm", named, where)) or STAND_IN
        stand_in = deploy(named, where, runtime=name, **options)
        reason = ("cannot be predicted here: " + str(error).splitlines()[0] if name == STAND_IN
                  else "does not say its library; others and releases are weighed as well "
                       "(--runtime states it)")
        return stand_in, (f"{stand_in.runtime.identity} stands in for {header.runtime}, which "
                          f"{reason}")


def measured_runtime(measurement: Measurement) -> str:
    """Return the runtime a measurement is of: of our firmware, by what its image was built with."""
    header = measurement.header
    name = header.runtime.partition(",")[0]  # behind it: the release of a library in it
    return name_runtime(name, header.facts.get("compiler", ""))


def is_log(measurement: Measurement, deployment: Deployment) -> bool:
    """Whether a measurement may be of another network than it is given as: our firmware says its.

    A log of another tool lists operators, whatever library it is stated to be of.
    """
    return not deployment.runtime.is_compiled or "operators" in measurement.header.facts


def unread_build(deployment: Deployment, measurement: Measurement) -> str:
    """Return a note where an image was built as none that can be predicted; else ""."""
    compiler = measurement.header.facts.get("compiler", "")
    if not compiler or not deployment.runtime.is_compiled or "-O" not in compiler:
        return ""
    named = name_runtime("firmware", compiler)
    return "" if named != "firmware" else (
        f"the header says it was built by {compiler}, which cannot be predicted: "
        f"{deployment.runtime.identity} is what it is set beside")


def other_clock(deployment: Deployment, measurement: Measurement, board: str | None) -> str:
    """Return a note where an emulator ran at another clock than the board's file declares.

    Parameters
    ----------
    deployment
        As measured: at the emulator's clock.
    measurement
        Its header says it.
    board
        Name or file that was asked for; None is the header's.
    """
    if not is_clock_own(measurement):
        return ""
    declared = load_board(board or measurement.header.board)
    asked = declared.core_clock.frequency_hz
    ran = clock_hz_of(deployment)
    return "" if abs(ran / asked - 1) < CLOCK_SD else (
        f"the header says {ran / 1e6:g} MHz, the board's file declares {asked / 1e6:g} MHz: it is "
        "set beside a prediction at what the header says (--clock for another)")


def read_build(deployment: Deployment, measurement: Measurement) -> frozenset[str]:
    """Return kinds and names of faults the header rules out: another build than it names."""
    compiler = measurement.header.facts.get("compiler", "")
    level = re.search(r"-(O\w+)", compiler)
    if measurement.header.runtime != "firmware" or level is None:
        return frozenset()
    if level[1] == "O0":
        return frozenset({"optimisation"})
    if name_runtime("firmware", compiler) == deployment.runtime.identity:
        return frozenset({"optimisation", "-O0"})
    others = {name.rpartition("-")[2].rpartition("@")[2]
              for name in list_releases("firmware")} - {level[1]}
    return frozenset({"-O0", *(f"built with -{other}" for other in others)})


def _build(deployment: Deployment, measurement: Measurement, folders: Sequence[Path]) -> Deployment:
    """Return a deployment whose image can be built and read, or lies beside the measurement."""
    from twin.pricing.inference import predict

    files = [str(file) for folder in folders for above in (folder, folder.parent)
             if (file := above / "firmware" / "firmware.elf").is_file()]
    facts = measurement.header.facts
    try:
        predict(deployment)
    except ToolMissingError:
        if not files or not {"compiler", "port"} <= facts.keys():
            raise
        deployment = deployment.replace(runtime=take_built(
            deployment.runtime, files, compiler=facts["compiler"], port=facts["port"]))
        predict(deployment)
    return deployment


def find_model(name: str, sha256: str | None) -> str:
    """Return the zoo's name of a model, or its file, when its content is the same.

    Raises
    ------
    UsageError
        When it is neither, or another file of that name.
    """
    if not is_known(name) and not Path(name).exists():
        raise UsageError(f"the measurement is of {name!r}, which is not a file here and no network "
                         "of `twin models`: give its model file (--model FILE)")
    if sha256 is not None and read_model(name).sha256 != sha256:
        raise UsageError(f"the measurement is of a file named {name!r} with SHA-256 "
                         f"{sha256[:12]}..., which {name} is not: give that file (--model FILE)")
    return name


def find_runtime(measurement: Measurement, model: str, board: str) -> str | None:
    """Return the runtime a measurement is of, or its library where that version is not known.

    Of a library alone a board has the release it has in a prediction; a log of "tflm" does not say
    its kernels. None, where it says nothing: the board's default, as in a prediction.
    """
    label = measurement.header.runtime.partition(",")[0]
    stem = label.partition("@")[0]
    for name in (label, stem):
        try:
            load_runtime(name)
            return name
        except RuntimeRefusedError:
            continue
    return None if label == UNKNOWN else _find_candidate(stem, model, board)


def _find_candidate(stated: str, model: str, board: str) -> str | None:
    """Return the first library a log may be of that runs a network on a board."""
    graph, machine = read_model(model, assume_unsupported="copy"), load_board(board)
    return next((one.partition("@")[0] for one in list_candidates(stated, board=machine)
                 if runs(graph, load_runtime(one), machine)), None)


def is_stand_in(deployment: Deployment, measurement: Measurement) -> bool:
    """Whether other kernels are predicted than were measured: a log of "tflm" leaves them open."""
    stated, own = measured_runtime(measurement).partition("@")[0], deployment.runtime.name
    return own != stated and (bool(list_releases(stated)) or not own.startswith(f"{stated}-"))


def choose_prices(deployment: Deployment, measurement: Measurement,
                  calibration: str) -> Calibration | None:
    """Return learnt prices of the runtime; where nobody chose it, of the one that was measured."""
    chosen = deployment.runtime.name != STAND_IN or not is_stand_in(deployment, measurement)
    return choose_calibration(deployment, calibration,
                              runtime=None if chosen else measurement.header.runtime)


def redeploy(document: Mapping[str, Any]) -> Deployment:
    """Return the deployment behind a prediction's document.

    Raises
    ------
    TwinError
        When it is of a program, its model is not of the zoo, or the board has changed since.
    """
    model = document["model"]
    board = document["board"]
    if str(document["runtime"]).startswith("program@"):
        raise UsageError(f"{model['name']} is a program, and faults are found by predicting a "
                         "network again; accepted: the network it runs as the first argument")
    deployment = deploy(find_model(model["name"], model["sha256"]), board,
                        runtime=document["runtime"], weights=document["placement"]["weights"],
                        arena=document["placement"]["arena"])
    clock = deployment.board.core.clock
    hertz = document["clocks_hz"][clock]
    if deployment.board.clock(clock).frequency_hz == hertz:
        return deployment
    scale = document.get("supply", {}).get("voltage_scale", deployment.board.power.voltage_scale)
    return deployment.replace({f"clocks.{clock}.frequency_hz": hertz,
                               "supply.voltage_scale": scale})


BUILT_KINDS = frozenset({"placement", "SIMD", "optimisation", "-O0", "reference kernels"})
"""Kinds of faults that are in the image: one image has them in both measurements or in none."""

SAME_IMAGE = ("the same image as the healthy run: kernels, instruction set, level of optimisation "
              "and placement are ruled out")


def require_alike(healthy: Measurement, measurement: Measurement, folder: Path,
                  healthy_folder: Path) -> str:
    """Refuse a measurement known to be right that was taken otherwise; return a remark.

    Parameters
    ----------
    healthy, measurement
        Known to be right, and to diagnose.
    folder, healthy_folder
        Where the second and the first were read.

    Returns
    -------
    str
        What to warn of where another image of the same build was measured; else "".

    Raises
    ------
    NotTheSameError
        For the same folder twice, other kernels, another compiler or level, or another clock.
    """
    clocks, wanted = healthy.header.clocks, measurement.header.clocks
    timed = any(TIMED_BY_MS in one.header.facts for one in (healthy, measurement))
    theirs, asked = _require_build("--healthy", healthy, measurement, folder, healthy_folder, [
        (f"clocks_hz {name}", clocks[name], wanted[name]) for name in clocks
        if name in wanted and not (timed and name == "timer")])
    images = theirs.get("firmware_sha256"), asked.get("firmware_sha256")
    if all(images) and images[0] != images[1]:
        return (f"the healthy run is of another image (firmware_sha256 {str(images[0])[:12]}, here "
                f"{str(images[1])[:12]}) by the same compiler: what else its build changed is "
                "taken for a fault")
    return ""


def _require_build(option: str, other: Measurement, measurement: Measurement, folder: Path,
                   other_folder: Path, pairs: Sequence[tuple[str, object, object]] = (),
                   ) -> tuple[dict[str, str], dict[str, str]]:
    """Refuse the folder itself, and a measurement of other kernels; returns both environments."""
    if folder.resolve() == other_folder.resolve():
        raise NotTheSameError(f"{option} {other_folder} is the measurement to diagnose itself: "
                              "give another one")
    theirs, asked = other.header.facts, measurement.header.facts
    for key, first, second in (("runtime", other.header.runtime, measurement.header.runtime),
                               ("compiler", theirs.get("compiler"), asked.get("compiler")), *pairs):
        if first and second and first != second:
            raise NotTheSameError(
                f"{option} {other_folder}: {key} is {_say(first)}, of the measurement to "
                f"diagnose {_say(second)}: give one taken alike, or none" + (
                    "; a library was inferred: `twin import --runtime` states it"
                    if key == "runtime" and INFERRED in {*theirs, *asked} else ""))
    return theirs, asked


def read_second(path: File | None, measurement: Measurement,
                folder: Path) -> tuple[Measurement | None, tuple[Path, ...]]:
    """Read a second measurement, taken otherwise by the same kernels, and return where it is."""
    if path is None:
        return None, ()
    also, where = read_folder(fspath(path))
    _require_build("--also", also, measurement, folder, where,
                   [("board", also.header.board, measurement.header.board)])
    return also, (where,)


def _say(value: object) -> str:
    return f"{value / 1e6:g} MHz" if isinstance(value, float | int) else str(value)


def is_one_image(healthy: Measurement | None, measurement: Measurement) -> bool:
    """Whether both are of the same image, bit by bit."""
    if healthy is None:
        return False
    first, second = (one.header.facts.get("firmware_sha256") for one in (healthy, measurement))
    return first is not None and first == second


def read_healthy(path: File | None, measurement: Measurement,
                 folder: Path) -> tuple[Measurement | None, str]:
    """Read the folder known to be right, if one is given, and what to warn of beside another."""
    if path is None:
        return None, ""
    healthy, where = read_folder(fspath(path))
    return healthy, "; ".join(filter(None, (
        require_alike(healthy, measurement, folder, where),
        *(f"--healthy {path}: {one}" for one in find_unsteady(healthy)))))
