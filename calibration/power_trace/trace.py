"""A power trace: samples of one meter over its own clock, and how far to trust each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from calibration.errors import MeasurementError
from hwmodels.errors import check_word
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import entity, frozen
from hwmodels.quantities import Ends

KINDS = ("average", "instant")
"""What a sample stands for: the mean since the sample before it, or the value at its time."""
LARGEST_US, LARGEST_MW = 1e15, 1e12
"""Of a sample, an offset or a step: thirty years, and a gigawatt."""


@frozen
class Meter:
    """What a meter says of itself; intervals of energies are made of these figures.

    Parameters
    ----------
    kind
        One of `KINDS`.
    resolution_mw
        Distance of two neighbouring readings, as power at the supply used.
    noise_mw
        Standard deviation of one sample beyond the resolution.
    gain_rel_sd
        Relative standard deviation of the scale factor; the same for all samples.
    offset_mw
        Standard deviation of the zero point; the same for all samples.
    """

    name: str
    kind: str = "average"
    resolution_mw: float = 0.0
    noise_mw: float = 0.0
    gain_rel_sd: float = 0.0
    offset_mw: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a kind that is not known and errors below 0."""
        check_word(f"meter {self.name!r}: kind", self.kind, KINDS, MeasurementError)
        for field in ("resolution_mw", "noise_mw", "gain_rel_sd", "offset_mw"):
            if not 0 <= getattr(self, field) <= LARGEST_MW:
                raise MeasurementError(f"meter {self.name!r}: {field} is {getattr(self, field)}; "
                                       f"accepted: 0 to {LARGEST_MW:g}")

    @property
    def sample_sd_mw(self) -> float:
        """Independent error of one sample: noise, and what rounding adds to it.

        Notes
        -----
        Rounding to steps of q has variance q^2 / 12; the part that noise does not make independent
        from sample to sample is `rounding_sd_mw`.
        """
        rounding = self.resolution_mw**2 / 12 - self.rounding_sd_mw**2
        return float(np.hypot(self.noise_mw, np.sqrt(max(rounding, 0.0))))

    @property
    def rounding_sd_mw(self) -> float:
        """Rounding error that all samples of a constant power share, for want of noise.

        Notes
        -----
        The mean of rounded values with normal noise s is off by a periodic function of the level;
        its variance over levels is sum over k of (q / (pi k))^2 / 2 exp(-(2 pi k s / q)^2): all of
        q^2 / 12 without noise, nothing once s passes half a step (Widrow and Kollar, Quantization
        Noise, Cambridge University Press 2008, chapter 19).
        """
        if not self.resolution_mw:
            return 0.0
        k = np.arange(1, 200)
        decay = np.exp(-(2 * np.pi * k * self.noise_mw / self.resolution_mw) ** 2)
        return float(self.resolution_mw * np.sqrt(np.sum(decay / (np.pi * k) ** 2 / 2)))


@frozen
class MeterFacts:
    """Accuracy of an instrument in terms of current; a recording's own figures replace it.

    Parameters
    ----------
    gain_rel_sd
        Half of the stated gain error limits (limits read as two standard deviations).
    resolution_a
        Best current resolution; coarser ranges are coarser.
    """

    name: str
    kind: str
    gain_rel_sd: float
    resolution_a: float | None
    source: str


METERS: Mapping[str, MeterFacts] = {
    name: MeterFacts(name=name, **facts)
    for name, facts in read_yaml_once(Path(__file__).with_name("meters.yaml")).items()}
"""Meters whose files are read, by name; an accuracy nobody states is assumed, never none."""


@entity
class PowerTrace:
    """Samples of power over time.

    Parameters
    ----------
    time_us : ndarray of float64, shape (samples,)
        By the meter's clock; strictly increasing.
    power_mw : ndarray of float64, shape (samples,)
        At the metered rail.
    marks_us
        Edges of the board's mark pin by the meter's clock, ascending.
    mark_sd_us
        Standard deviation of one edge's time.
    columns
        Of its file, besides time and power: one may be the mark.
    """

    time_us: np.ndarray
    power_mw: np.ndarray
    meter: Meter
    marks_us: tuple[float, ...] = ()
    mark_sd_us: float = 0.0
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Copy the samples; refuse those that are no power or not in order of time."""
        time_us = np.array(self.time_us, dtype=np.float64)
        power_mw = np.array(self.power_mw, dtype=np.float64)
        where = f"trace of {self.meter.name}"
        if time_us.ndim != 1 or time_us.shape != power_mw.shape or len(time_us) < 2:
            raise MeasurementError(f"{where}: {time_us.shape} times for {power_mw.shape} powers; "
                                   "two samples or more are needed")
        for name, array, unit, largest in (("time_us", time_us, "us", LARGEST_US),
                                           ("power_mw", power_mw, "mW", LARGEST_MW)):
            wrong = array[~(np.abs(array) <= largest)]  # so that squares and sums are numbers
            if len(wrong):
                raise MeasurementError(f"{where}: a sample of {wrong[0]:g} {unit}; accepted: at "
                                       f"most {largest:g}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        late = np.flatnonzero(np.diff(time_us) <= 0)
        if len(late):
            raise MeasurementError(f"{where}: time stands still or runs backwards at sample "
                                   f"{late[0] + 1}")

    @property
    def period_us(self) -> float:
        """Median distance of two samples."""
        return float(np.median(np.diff(self.time_us)))

    @property
    def span_us(self) -> Ends:
        """First and last time the trace can answer for."""
        start = self.time_us[0] - (self.period_us if self.meter.kind == "average" else 0.0)
        return float(start), float(self.time_us[-1])

    def gaps(self) -> tuple[Ends, ...]:
        """Return the spans in us without samples, longer than three periods."""
        wide = np.flatnonzero(np.diff(self.time_us) > 3 * self.period_us)
        return tuple((float(self.time_us[i]), float(self.time_us[i + 1])) for i in wide)
