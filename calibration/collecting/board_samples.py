"""A board's samples under our names: counters, clocks, units, layers of the model file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from calibration.collecting.wire import payloads as wire
from calibration.errors import LinkError
from calibration.measurement.sample import Sample
from hwmodels.frozen import frozen

UNITS = {"cpu": "cycles", "timer": "ticks", "bus": "cycles", "npu": "cycles", None: "events"}
_NAMES = {wire.COUNTER_IDS[known]: name for known, name in (
    ("CYCLES", "cpu_cycles"), ("TIMER", "timer_ticks"), ("CHECKSUM", "output_checksum"),
    ("INTERRUPTS", "interrupts"), ("INSTRUCTIONS", "instructions"))}


def counter_name(counter: wire.Counter) -> str:
    """Return our name of a board's counter."""
    text = counter.name.strip().lower().replace(" ", "_").replace("-", "_")
    return _NAMES.get(counter.id, text)


@frozen
class Translator:
    """What a board's numbers stand for.

    Parameters
    ----------
    counters
        In the board's numbering.
    layers
        Index in the model file by place in the call list.
    scales : mapping of str to (str, float)
        Counters derived sample by sample: main counter's name to (name, factor).
    """

    counters: tuple[wire.Counter, ...]
    layers: tuple[int, ...]
    scales: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    def translate(self, raw: wire.RawSample, prefix: str = "") -> Iterator[Sample]:
        """Yield a sample under our names, and what is derived from it.

        Raises
        ------
        LinkError
            When the board lists no such counter or layer.
        """
        described = self._described(raw)
        name = counter_name(described)
        layer = None if raw.layer == wire.LAYER_INFERENCE else self._model_layer(raw.layer)
        clock = wire.CLOCKS.get(described.clock)
        yield Sample(run=raw.run, layer=layer, counter=prefix + name, clock=clock,
                     value=raw.value, unit=UNITS[clock])
        if name in self.scales:
            derived, factor = self.scales[name]
            yield Sample(run=raw.run, layer=layer, counter=prefix + derived,
                         value=round(raw.value * factor), unit="events")

    def ends_run(self, raw: wire.RawSample) -> bool:
        """Whether it is the last sample of a run: the checksum of the output."""
        return (raw.layer == wire.LAYER_INFERENCE
                and self._described(raw).id == wire.COUNTER_IDS["CHECKSUM"])

    def _described(self, raw: wire.RawSample) -> wire.Counter:
        if raw.counter >= len(self.counters):
            raise LinkError(f"the board sent counter {raw.counter} of {len(self.counters)}")
        return self.counters[raw.counter]

    def _model_layer(self, index: int) -> int:
        if index >= len(self.layers):
            raise LinkError(f"the board sent layer {index} of {len(self.layers)}")
        return self.layers[index]
