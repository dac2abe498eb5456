"""A meter for `twin energy --meter acme-meter`: `SECONDS MILLIWATTS` a line."""

from pathlib import Path

import numpy as np

from calibration.power_trace.trace import Meter, PowerTrace

ACCURACY = "Acme AM-1, data sheet 1.2: gain within 1 %"
"""Goes into the header of what is made of a recording."""


def read_recording(path: Path) -> PowerTrace:
    """Read a recording; a third column that is 1 while the board's mark is set gives its edges."""
    time_s, power_mw, mark = np.loadtxt(path, ndmin=2, unpack=True)
    edges = np.flatnonzero(np.diff(mark)) + 1
    return PowerTrace(time_us=time_s * 1e6, power_mw=power_mw,
                      meter=Meter(name="acme-meter", gain_rel_sd=0.005, resolution_mw=0.01),
                      marks_us=tuple(time_s[edges] * 1e6))
