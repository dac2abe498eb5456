"""Every picture of `twin cache`, written into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twin.pricing.access_sample import run_layer_bus, sample_accesses
from twin.pricing.locality import Locality
from twin.reports.figures.access_map import draw_access_map_figure
from twin.reports.figures.bus_timeline import draw_bus_figure
from twin.reports.figures.cache_layers import draw_miss_rate_figure, draw_working_set_figure
from twin.reports.figures.cache_sweep import draw_miss_curve_figure
from twin.reports.figures.canvas import save_figures
from twin.studies.caches import SweepPoint


def write_cache_pictures(locality: Locality, points: Sequence[SweepPoint], folder: str | Path,
                         index: int | None) -> tuple[Path, ...]:
    """Write every picture of a network in its caches as PNG; return the files.

    Parameters
    ----------
    locality
        What its accesses met.
    points
        Of the curve of misses; without any there is none.
    index
        Layer of the access map and the bus timeline; by default that with most misses.
    """
    deployment, cold = locality.deployment, locality.temperature == "cold"
    if index is None:
        index = max(locality.layers, key=lambda layer: (layer.misses, layer.direct)).index
    position = next((place for place, layer in enumerate(deployment.executed.layers)
                     if layer.index == index), -1)
    pictures = {"working_set": draw_working_set_figure(locality),
                "miss_rate": draw_miss_rate_figure(locality)}
    if points and locality.accesses:
        pictures["miss_curve"] = draw_miss_curve_figure(locality, points)
    pictures["access_map"] = draw_access_map_figure(
        locality, sample_accesses(deployment, position, cold=cold))
    bus = run_layer_bus(deployment, position, cold=cold)
    if bus is not None:
        pictures["bus_timeline"] = draw_bus_figure(
            bus[1], f"{deployment.graph.name} on {deployment.board.name}, layer {index}, {bus[0]}")
    return save_figures(pictures, folder)
