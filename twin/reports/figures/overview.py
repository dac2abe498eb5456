"""The figure of `--plot`: layers beside the bill; or every picture, into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.errors import check_extra
from hwmodels.extensions import blamed, find_entries, load_entry
from hwmodels.quantities import format_energy, format_time
from twin.reports.export import check_place
from twin.reports.figures.arena import draw_arena_figure
from twin.reports.figures.canvas import (
    EXTRA,
    check_suffix,
    describe_deployment,
    new_figure,
    save_figure,
    save_figures,
)
from twin.reports.figures.intervals import draw_interval_figure
from twin.reports.figures.layers import (
    ROW_IN,
    draw_activations_figure,
    draw_layer_figure,
    draw_layers,
    draw_macs_figure,
)
from twin.reports.figures.memory_map import draw_memory_figure
from twin.reports.figures.roofline import draw_roofline_figure
from twin.reports.figures.sunburst import draw_sunburst_figure
from twin.reports.figures.task_timeline import draw_timeline_figure
from twin.reports.figures.utilisation import draw_utilisation_figure
from twin.reports.figures.waterfall import draw_bill, draw_bill_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibration.microbench.machine import Machine
    from twin.pricing.prediction import Prediction

PICTURES: dict[str, Callable[[Prediction], Figure | None]]
"""Every picture of one prediction, by name of its file; None where it has nothing to show."""


def draw_overview(prediction: Prediction) -> Figure:
    """Return layers and bill on one figure, as tall as the layers need."""
    rows = len(prediction.layers)
    bill_in = 1.0 + 0.3 * (len(prediction.bill.causes()) + 1)
    body_in = max(bill_in, 1.5 + ROW_IN * max(6, rows))
    energy = prediction.energy_uj
    spent = "" if energy is None else f" and {format_energy(energy)}"
    with new_figure(14.0, body_in, f"Where {format_time(prediction.time_us)}{spent} go",
                    describe_deployment(prediction)) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))  # type: ignore[misc]
        draw_layers(prediction, left.subplots())
        # A hundred layers make a tall figure; the bill keeps its size at the top of it.
        rest_in = max(body_in - bill_in, 1e-3)
        top, _ = right.subfigures(2, 1, height_ratios=(bill_in, rest_in))
        draw_bill(prediction, top.subplots())
    return figure


def check_target(target: str) -> None:
    """Refuse a picture that could not be written, before anything is computed."""
    if not is_folder(target):
        check_suffix(Path(target), f"; for a folder add /: {target}/")
    check_extra(*EXTRA)
    check_place(target, folder=is_folder(target))


def write_pictures(prediction: Prediction, target: str,
                   measured: Machine | None = None) -> tuple[Path, ...]:
    """Write the figure to a file, or every picture into a folder.

    Parameters
    ----------
    target
        A file by suffix, or a folder: one that exists or ends in a slash.
    measured
        Micro-benchmarks of the board, for the roofs of the roofline.

    Returns
    -------
    tuple of Path
        Files written.
    """
    if not is_folder(target):
        return (save_figure(draw_overview(prediction), target),)
    pictures = PICTURES | (EPOCH_PICTURES if prediction.tasks else {})
    if measured is not None:
        pictures |= {"roofline": partial(draw_roofline_figure, measured=measured)}
    pictures |= {name: partial(draw_own, name=name) for name in find_entries("twin.figures")
                 if name not in pictures}
    return save_figures({name: draw(prediction) for name, draw in pictures.items()}, target)


def draw_own(prediction: Prediction, *, name: str) -> Figure:
    """Return the picture of an extension.

    Raises
    ------
    ExtensionError
        When its code fails, or returns something else.
    """
    from matplotlib.figure import Figure

    draw = load_entry("twin.figures", name)
    with blamed("twin.figures", name):
        figure = draw(prediction)
        if not isinstance(figure, Figure):
            raise TypeError(f"returned {type(figure).__name__}; accepted: matplotlib.figure.Figure")
    return figure


def is_folder(target: str) -> bool:
    """Whether pictures go into a folder rather than one into a file."""
    return target.endswith(("/", os.sep)) or Path(target).is_dir()


PICTURES = {
    "sheet": draw_overview, "layers": draw_layer_figure, "bill": draw_bill_figure,
    "roofline": draw_roofline_figure, "arena": draw_arena_figure,
    "energy": partial(draw_layer_figure, quantity="energy"),
    "shares": draw_sunburst_figure, "utilisation": draw_utilisation_figure,
    "memories": draw_memory_figure, "intervals": draw_interval_figure,
    "layerwise_macs": draw_macs_figure, "layerwise_activation_memory": draw_activations_figure,
}

EPOCH_PICTURES = {"timeline": draw_timeline_figure}
"""Pictures of an inference on an accelerator."""
