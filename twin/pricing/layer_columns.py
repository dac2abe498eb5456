"""The columns of layers, once: the tables, the page, CSV, JSON and the glossary take them here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hwmodels.frozen import frozen
from hwmodels.quantities import format_count, format_number, significant
from twin.network.operators import OPERATORS
from twin.pricing.ledger import Ledger, cycles_by_clock, percentages, share_out
from twin.pricing.prediction import LayerPrediction, Prediction
from twin.pricing.utilisation import USES, Utilisation, find_utilisation

LONGEST = 20
"""Characters of a function's name where the terminal is narrow."""


@frozen
class LayerRow:
    """A layer beside the others: its cycles by clock, and shares that sum to the whole's."""

    layer: LayerPrediction
    sure: Any
    cycles: Mapping[str, int]
    time_ms: float
    energy: str
    percent: float
    cumulative: float
    share: float
    used: Utilisation | None = None


Text = Callable[[LayerRow], str]


@frozen
class LayerColumn:
    """A column of layers.

    Parameters
    ----------
    name
        Key of CSV, and of JSON unless its document has it elsewhere; "" in neither.
    take
        Its value, in the unit its name ends in.
    header, narrow, page
        Of the terminal's table, of that where there is little room ("": without a header
        there), and of the page; "" in none.
    number
        Whether it is aligned to the right.
    short, full
        The same where there is little room, and on the page, where it differs.
    term, means
        Entry of the glossary that explains it, or its own explanation.
    accelerated
        Whether only what runs on an accelerator has it.
    """

    name: str = ""
    take: Callable[[LayerRow], Any] = lambda row: None
    header: str = ""
    narrow: str = ""
    page: str = ""
    number: bool = False
    text: Text = lambda row: ""
    short: Text | None = None
    full: Text | None = None
    kind: str = ""
    tone: str = ""
    term: str = ""
    means: str = ""
    accelerated: bool = False

    def cell(self, row: LayerRow) -> Any:
        """Return the value for a CSV: lists joined by blanks, yes and no as 1 and 0."""
        value = self.take(row)
        return " ".join(value) if isinstance(value, tuple) else (
            int(value) if isinstance(value, bool) else value)


def make_rows(prediction: Prediction, ledger: Ledger) -> list[LayerRow]:
    """Return the layers in the order they run."""
    times = [layer.time_us for layer in prediction.layers]
    shown_ms, shares = share_out([time / 1e3 for time in times], 3), percentages(times, decimals=1)
    energies = show_energies([layer.energy_uj for layer in prediction.layers], prediction.energy_uj)
    sure: Sequence[Any] = prediction.certainty.layers if prediction.certainty else (
        [None] * len(times))
    return [LayerRow(
        layer=layer, sure=sure[place], cycles=cycles_by_clock(ledger.layers[place]),
        time_ms=shown_ms[place], energy=energies[place], percent=shares[place],
        cumulative=math.fsum(shares[:place + 1]),
        share=100 * layer.time_us / prediction.time_us if prediction.time_us else 0.0,
        used=find_utilisation(prediction.tasks, place) if prediction.tasks else None)
        for place, layer in enumerate(prediction.layers)]


def show_energies(energies_uj: Sequence[float | None], total_uj: float | None) -> list[str]:
    """Write energies with the digits of their total, to which they sum where all are known."""
    decimals = energy_decimals(total_uj)
    known = [energy for energy in energies_uj if energy is not None]
    if len(known) < len(energies_uj):
        return [format_number(energy, decimals) for energy in energies_uj]
    return [format_number(energy, decimals) for energy in share_out(known, decimals)]


def energy_decimals(total_uj: float | None) -> int:
    """Digits after the point so that the total has about four that count."""
    if not total_uj:
        return 3
    return min(6, max(1, 3 - math.floor(math.log10(total_uj))))


def count_cycles(row: LayerRow, clock: str) -> str:
    """Write a layer's cycles of a clock."""
    return f"{row.cycles.get(clock, 0):,}"


def _of(name: str) -> Callable[[LayerRow], Any]:
    return lambda row: getattr(row.layer, name)


def _ends(name: str, unit: str) -> tuple[LayerColumn, ...]:
    """Return the ends of an interval and its level, empty at stated prices."""
    def end(which: str) -> Callable[[LayerRow], Any]:
        return lambda row: getattr(getattr(row.sure, f"{name}_{unit}", None), which, None)

    return tuple(LayerColumn(name=key, take=end(which), means=means) for key, which, means in (
        (f"{name}_low_{unit}", "low", f"Low end of the interval of a layer's {name}."),
        (f"{name}_high_{unit}", "high", f"High end of the interval of a layer's {name}."),
        (f"{name}_level", "level", f"Probability that a layer's {name} lies in its interval.")))


def _used(name: str, means: str, page: str = "") -> LayerColumn:
    """Return a share of an accelerator's use, empty where a layer never ran there."""
    def take(row: LayerRow) -> float | None:
        return getattr(row.used, name, None)

    return LayerColumn(name=name, take=take, page=page, number=True, accelerated=True, means=means,
                       text=lambda row: _percent(take(row)))


def _shape(row: LayerRow) -> str:
    """Write a shape without its batch of one."""
    shape = row.layer.output_shape
    inner = shape[1:] if len(shape) > 1 and shape[0] == 1 else shape
    return "x".join(str(extent) for extent in inner)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _turns(layer: LayerPrediction) -> str:
    """Say how often a layer of a loop runs."""
    return f" x{layer.repeats}" if layer.repeats > 1 else ""


def _marks(layer: LayerPrediction) -> str:
    """Say how often a layer of a loop runs, and whether its cost is assumed."""
    return _turns(layer) + (" *" if layer.assumed else "")


def _shorten(layer: LayerPrediction) -> str:
    short = OPERATORS[layer.label].short if OPERATORS.is_ours(layer.label) else ""
    name = short or layer.label
    return name if len(name) <= LONGEST or not layer.called else f"{name[:LONGEST - 3]}..."


LAYER_COLUMNS = (
    LayerColumn(
        name="index", take=_of("index"), header="layer", page="layer", number=True,
        text=lambda row: str(row.layer.index),
        means="Place of a layer in the order they run, from 0."),
    LayerColumn(name="name", take=_of("name"), means="A layer's name in the model file."),
    LayerColumn(
        name="op", take=_of("op"), header="op", narrow="op", page="operator",
        text=lambda row: row.layer.label + _marks(row.layer),
        short=lambda row: _shorten(row.layer) + _marks(row.layer),
        full=lambda row: row.layer.op + _turns(row.layer) + (
            " (assumed)" if row.layer.assumed else ""),
        means="Operator of a layer, by its name here whatever the file calls it."),
    LayerColumn(
        name="output_shape", take=lambda row: "x".join(map(str, row.layer.output_shape)),
        header="output", narrow="output", page="output", text=_shape,
        means="Shape of a layer's output, batch first."),
    LayerColumn(
        name="macs", take=_of("macs"), header="MACs", narrow="MACs", page="MACs", number=True,
        text=lambda row: f"{row.layer.macs:,}", short=lambda row: format_count(row.layer.macs),
        term="MAC"),
    LayerColumn(
        name="bytes_moved", take=_of("bytes_moved"), header="bytes moved", narrow="bytes",
        number=True, text=lambda row: f"{row.layer.bytes_moved:,}",
        short=lambda row: format_count(row.layer.bytes_moved), term="bytes moved"),
    LayerColumn(name="clock", take=_of("clock"),
                means="Clock of a layer's cycles: the one most of its time passes in."),
    LayerColumn(
        name="cycles", take=lambda row: row.cycles.get(row.layer.clock, 0), header="cycles",
        narrow="cycles", number=True, text=lambda row: count_cycles(row, row.layer.clock),
        term="cycles"),
    LayerColumn(
        name="time_us", take=_of("time_us"), header="ms", narrow="ms", page="ms", number=True,
        text=lambda row: f"{row.time_ms:,.3f}", kind="predicted", term="latency"),
    LayerColumn(header="%", narrow="%", page="share", number=True, take=lambda row: row.share,
                text=lambda row: f"{row.percent:.1f}", full=lambda row: f"{row.share:.1f} %"),
    LayerColumn(header="cum %", narrow="cum %", number=True,
                text=lambda row: f"{row.cumulative:.1f}"),
    LayerColumn(
        name="energy_uj", take=_of("energy_uj"), header="uJ", narrow="uJ", page="uJ", number=True,
        text=lambda row: row.energy, kind="predicted", term="energy", full=lambda row:
        "" if row.layer.energy_uj is None else f"{row.layer.energy_uj:,.1f}"),
    *_ends("time", "us"), *_ends("energy", "uj"),
    LayerColumn(
        name="macs_per_byte", take=_of("arithmetic_intensity"), header="MAC/B", narrow="MAC/B",
        page="MAC/byte", number=True, text=lambda row: significant(row.layer.arithmetic_intensity),
        short=lambda row: significant(row.layer.arithmetic_intensity, 2),
        full=lambda row: significant(row.layer.arithmetic_intensity), term="arithmetic intensity"),
    LayerColumn(
        page="misses", number=True, take=_of("miss_rate"), text=lambda row:
        "" if row.layer.miss_rate is None else f"{100 * row.layer.miss_rate:.1f} %"),
    LayerColumn(
        name="bound", take=_of("bound"), header="bound", narrow="bound", page="bound",
        text=lambda row: "alias" if row.layer.alias else row.layer.bound,
        means="Whether memory or compute causes take most of a layer's time."),
    LayerColumn(
        name="largest_cause", take=_of("largest_cause"), header="largest cause", narrow="largest",
        page="largest cause", text=lambda row: str(row.layer.largest_cause),
        means="The cause that takes most of a layer's time; empty for an alias."),
    LayerColumn(page="name", text=lambda row: row.layer.name, tone="dim"),
    LayerColumn(name="instructions", take=_of("instructions"), term="instructions"),
    LayerColumn(name="miss_rate", take=_of("miss_rate"), term="miss rate"),
    LayerColumn(name="live_bytes", take=_of("live_bytes"), term="peak RAM"),
    LayerColumn(name="kernels", take=_of("kernels"),
                means="Functions of the library a layer calls, in order."),
    *(_used(name, *USES[name]) for name in USES),
    LayerColumn(name="alias", take=_of("alias"), term="alias"),
    LayerColumn(name="assumed", take=_of("assumed"),
                means="Whether no data stands behind a layer's cost."),
)
"""Of CSV in this order, and of each table those that have a header there."""
