"""How sure a prediction is, as a picture: intervals of the whole and of each layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hwmodels.quantities import format_energy, format_time
from twin.reports.charts import Axis, Chart, Curve, label_rows
from twin.reports.palette import BLUE, VERMILION

if TYPE_CHECKING:
    from calibration.fitting.intervals import Interval
    from twin.pricing.prediction import Prediction

QUANTITIES = {"time": ("time_us", "ms", 1e-3, format_time),
              "energy": ("energy_uj", "uJ", 1.0, format_energy)}


def chart_intervals(prediction: Prediction, quantity: str = "time",
                    most: int | None = None) -> Chart:
    """Describe the whole in the first row, then layers: a mark and its interval.

    Parameters
    ----------
    prediction
        With learnt prices.
    quantity
        "time" or "energy".
    most
        Layers, those that take most time; None: all of them.
    """
    name, unit, factor, write = QUANTITIES[quantity]
    sure = prediction.certainty
    assert sure is not None
    layers = list(zip(prediction.layers, sure.layers, strict=True))
    kept = {layer.index for layer, _ in sorted(layers, key=lambda pair: -pair[0].time_us)[:most]}
    rows: list[tuple[str, float | None, Interval | None]] = [
        ("whole", getattr(prediction, name), getattr(sure, name)), *(
            (layer.tick, getattr(layer, name), getattr(known, name)) for layer, known in layers
            if layer.index in kept)]
    drawn = {place: (label, value, interval) for place, (label, value, interval) in enumerate(rows)
             if value and interval is not None}

    def curve(places: Iterable[int], known: Mapping[int, tuple[str, float, Interval]],
              **look: str) -> Curve:
        mine = [(place, *known[place]) for place in places if place in known]
        return Curve(
            x=[value * factor for _, _, value, _ in mine], sizes=(5.0,),
            y=[place for place, *_ in mine],
            x_ends=[(interval.low * factor, interval.high * factor) for *_, interval in mine],
            hover=[f"{label}<br>{write(value)}, {interval.write(write)}"
                   for _, label, value, interval in mine], **look)  # type: ignore[arg-type]

    return Chart(
        name="intervals", title="Intervals of the whole and of the layers that take most",
        caption=f"Points are predictions, lines {100 * sure.time_us.level:.0f} % intervals; those "
             "of single layers are wider than that of their sum.",
        x=Axis(label=f"{quantity}, {unit}", log=True), y=label_rows([label for label, *_ in rows]),
        curves=(curve([0], drawn, name="the whole", colour=VERMILION, mark="D"),
                curve(range(1, len(rows)), drawn, name="a layer", colour=BLUE, mark="o")))
