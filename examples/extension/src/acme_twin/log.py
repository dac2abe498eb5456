"""The log of Acme's profiler: `acme;LAYER;CYCLES`, one line a layer.

A format is a module with three names: what a log of it looks like (`EXPECTED`), whether a text is
one (`recognise`), and the reader (`read_log`), which accounts for every line.
"""

from calibration.importers.log import Log, count, measurement_of, number_of
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample

EXPECTED = "lines such as `acme;3;12345`"


def recognise(text: str) -> bool:
    """Whether a text is a log of Acme's profiler."""
    return any(line.startswith("acme;") for line in text.splitlines())


def read_log(log: Log) -> Measurement:
    """Read cycles by layer, one run; a line that is none of them is left unread, and said."""
    samples = []
    for number, line in log.lines():
        word, _, rest = line.partition(";")
        layer, _, cycles = rest.partition(";")
        if word == "acme" and cycles:
            log.take(number)
            samples.append(Sample(run=0, layer=count(layer, log, number), counter="cpu_cycles",
                                  clock="cpu", unit="cycles",
                                  value=number_of(cycles, log, number)))
    return measurement_of(log, samples, expected=EXPECTED)
