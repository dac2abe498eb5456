"""A meter read in the background while a board works."""

from __future__ import annotations

import threading
from types import TracebackType

from calibration.collecting.deadline import patient
from calibration.errors import LinkError
from calibration.power_trace.ina226 import Ina226, Reading
from calibration.power_trace.trace import PowerTrace


class LiveTrace:
    """Collects the readings of an INA226 for as long as the context lasts."""

    def __init__(self, meter: Ina226) -> None:
        self.meter = meter
        self.readings: list[Reading] = []
        self.failure: LinkError | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._collect, daemon=True)

    def _collect(self) -> None:
        try:
            while not self._ended.is_set():
                self.readings.append(self.meter.read())
        except LinkError as error:
            self.failure = error

    def __enter__(self) -> LiveTrace:
        """Begin to read the meter, in a thread."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Read no more, and wait for the thread to end."""
        self._ended.set()
        self._thread.join(patient(5.0))

    def trace(self, marks_us: tuple[float, ...] = ()) -> PowerTrace:
        """Return what was read, with edges by the host's monotonic clock in us.

        Raises
        ------
        LinkError
            When the meter failed meanwhile.
        """
        if self.failure is not None:
            raise self.failure
        bare = self.meter.trace(self.readings)
        return PowerTrace(time_us=bare.time_us, power_mw=bare.power_mw, meter=bare.meter,
                          marks_us=marks_us, mark_sd_us=1000.0)
