"""Commands that vary a prediction: changes, what could be changed, caches, other hardware."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import twin
from twin.api.commands.predict import describe_numbers
from twin.api.requests import (
    AUTO,
    AssumeUnsupported,
    BoardName,
    Calibration,
    Changes,
    Deployed,
    Model,
    Option,
    Placed,
    Priced,
    Runtime,
    prediction,
)
from twin.api.requests.values import parse_settings
from twin.cli.options import (
    AsJson,
    Json,
    Paged,
    Target,
    check_outputs,
    command,
    deploy,
    place,
    present,
)
from twin.cli.output import note_files, open_console, show, show_json, show_view, warn
from twin.cli.progress import Steps
from twin.errors import DoesNotFitError, UsageError

if TYPE_CHECKING:
    from twin import Deployment

PlotTarget = Annotated[str | None, Option(
    "--plot", "FILE", "Write causes before and after as a picture (.png, .svg, .pdf); into a "
    "folder (DIR/): also every step of several --set, each on top of those before.")]
OptionalBoard = Annotated[str | None, Option(
    "--board -b", "BOARD", "List what could be changed of the network on this board.")]
NetworkFile = Annotated[str | None, Option(
    "--output -o", "FILE", "Write the changed network: .tflite or .onnx.")]
PlotFolder = Annotated[str | None, Option(
    "--plot", "DIR", "Write every picture as PNG into a folder.")]
Layer = Annotated[int | None, Option(
    "--layer", "INDEX", "Layer of the access map and the bus timeline; by default that with most "
    "misses.")]
BoardOrFile = Annotated[str, Option(
    "--board -b --to", "BOARD|FILE", "The board, or a file of `twin boards new`.")]
To = Annotated[str, Option(
    "--to -b --board", "BOARD|FILE", "The board to predict for; `twin boards new` writes a file.")]


class Planned(Target):
    """The best two micro-benchmarks as a file."""

    output: Annotated[str | None, Option(
        "--output -o", "FILE", "Write the best two as a plan for `twin measure --plan`.")] = None

    def write_target(self, found: Any, target: str) -> list[Path]:
        """Write the plan."""
        from twin.api.commands.port import write_best

        ranking = getattr(found, "ranking", found)
        if ranking is None:
            raise UsageError("--output: no micro-benchmark identifies a price this network has")
        return [write_best(ranking, target)]


@command
def whatif(model: Model, board: BoardName, placed: Deployed, priced: Priced, page: Paged,
           json: Json, plot: PlotTarget = None) -> None:
    """Predict before and after a change, and say which causes moved."""
    if plot is not None:
        from twin.reports.figures.overview import check_target

        check_target(plot)
    changes = placed.changes or parse_settings([])
    try:
        deployment = place(model, board, replace(placed, changes=None), priced.calibration)
    except DoesNotFitError as error:
        deploy(model, board, placed, priced.calibration)  # Refuses changes that do not make it fit.
        raise DoesNotFitError(f"without the changes it {error}; with them it fits: `twin "
                              "predict` with the same --set predicts it", error.short) from error
    with Steps("predicting") as steps:
        steps.tell(0, 1, "before and after")
        changed = twin.what_if(deployment, changes, **priced.arguments)
    present(changed, [page, json], view="difference:what_if_report", warnings=lambda found: (
        *describe_numbers(found.after.deployment, **priced.arguments), *found.remarks))
    if plot is not None:
        draw_changes(changed, deployment, priced, plot)


def draw_changes(changed: Any, deployment: Deployment, priced: Priced, plot: str) -> None:
    """Draw a change; into a folder each of several, on top of those before."""
    from twin.reports.figures.changes import write_change_pictures
    from twin.reports.figures.overview import is_folder

    items = list(changed.changes.items())
    names = [f"{path}={value}" for path, value in items]
    stages = []
    with Steps("drawn") as steps:
        for done in range(1, len(names) if is_folder(plot) else 1):
            steps.tell(done - 1, len(names), names[done - 1])
            stages.append((names[done - 1], twin.predict(
                deployment.replace(dict(items[:done])), **priced.arguments)))
        stages.append((names[-1] if stages else ", ".join(names), changed.after))
        steps.tell(len(stages) - 1, len(stages), plot)
        paths = write_change_pictures(changed.before, stages, plot)
    note_files(paths)


@command
def transform(model: Model, board: OptionalBoard = None, runtime: Runtime = None,
              settings: Changes = None, output: NetworkFile = None, as_json: AsJson = False,
              assume_unsupported: AssumeUnsupported = None) -> None:
    """Change a network and write it; without changes, list those a board allows."""
    if settings and output and board is None:
        graph = twin.transform(
            twin.read_model(model, assume_unsupported=assume_unsupported), settings)
        note_files([twin.export_model(graph, output)], as_json)
        warn(graph.notes)
        return
    if board is None or output:
        raise UsageError("transform: accepted: --set network.PATH=VALUE with -o FILE to write a "
                         "changed network, or -b BOARD to list what could be changed on it")
    deployment = twin.deploy(model, board, runtime=runtime,
                             assume_unsupported=assume_unsupported).replace(settings)
    found = twin.list_transformations(deployment)
    if as_json:
        show_json(found, model=deployment.graph.name, board=deployment.board.name,
                  runtime=deployment.runtime.identity)
        return
    from twin.reports.tables.transformations import transformations_table

    show(open_console(), transformations_table(found))


@command
def cache(model: Model, board: BoardName, placed: Deployed, asked: prediction.Cache,
          json: Json, plot: PlotFolder = None, layer: Layer = None) -> None:
    """Show hits and misses of a network in the data caches, by layer."""
    check_outputs(folder=plot)
    if plot is not None and Path(plot).suffix == ".png":
        raise UsageError(f"--plot {plot}: is a file; accepted: a folder, for there are several "
                         "pictures")
    from twin.api.commands.cache import check_axes, check_layer, sweep_axes

    check_axes(asked.sweep)
    deployment = deploy(model, board, placed, asked.calibration)
    with Steps("caches counted") as steps:
        steps.tell(0, 1, f"{deployment.graph.name} on {deployment.board.name}"
                         + (f", over {' and '.join(asked.sweep)}" if asked.sweep else ""))
        report = twin.cache(deployment, **asked.arguments)
    check_layer(report.locality, layer)
    show_view(report, "locality:locality_report", report.locality, report.policies, report.points,
              prices=report.prices, as_json=json.as_json)
    if not report.locality.caches:
        warn([f"{deployment.board.name}: no data cache is in use"])
    if plot is not None:
        from twin.reports.figures.cache_pictures import write_cache_pictures

        note_files(write_cache_pictures(
            report.locality, report.points or sweep_axes(report.locality), plot, layer))


@command(view="portability:ranking_report", warnings=lambda ranking: (
    f"extrapolating: {reason}" for reason in ranking.certainty.extrapolating))
def plan(model: Model, board: BoardOrFile, placed: Placed, *, calibration: Calibration = AUTO,
         output: Planned, json: Json) -> object:
    """Rank micro-benchmarks by how much they narrow a prediction."""
    from twin.api.commands.port import host_library

    deployment = deploy(model, board, placed, calibration)
    if placed.runtime is None and deployment.accelerated:
        library = host_library(deployment)
        warn([f"runtime: {library} on the host core, which micro-benchmarks measure; without "
              f"--runtime {deployment.graph.name} runs under {deployment.runtime.identity}, on "
              "the accelerator"])
        deployment = deploy(model, board, replace(placed, runtime=library), calibration)
    with Steps("ranked") as steps:
        steps.tell(0, 1, f"micro-benchmarks of {deployment.board.name}, and whole networks")
        return twin.plan(deployment, calibration=calibration)


@command(view="portability:ported_report",
         warnings=lambda ported: (*ported.prediction.warnings,
                                 *describe_numbers(ported.prediction.deployment)))
def port(model: Model, asked: prediction.Port, to: To, placed: Placed, output: Planned,
         page: Paged, json: Json) -> object:
    """Predict for an unmeasured board, with prices learnt on other boards."""
    deployment = deploy(model, to, placed)
    with Steps("reading rows of") as steps:
        steps.tell(0, 1, ", ".join(map(str, asked.sources)))
        return twin.port(deployment, **asked.arguments)
