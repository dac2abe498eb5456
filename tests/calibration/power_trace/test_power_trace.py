"""Energies from synthetic traces: the truth lies within the stated interval as often as stated."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from calibration.errors import LinkError, MeasurementError
from calibration.power_trace.alignment import (
    _correlation,
    _resample,
    align_by_correlation,
    align_by_marks,
    step_profile,
)
from calibration.power_trace.board_energy import (
    energy_samples,
    find_windows,
    judge_power,
    judge_windows,
)
from calibration.power_trace.energy import (
    difference_repetitions,
    integrate,
    layer_energies,
    summarise_power,
)
from calibration.power_trace.ina226 import Ina226, SlowMeterWarning
from calibration.power_trace.live import LiveTrace
from calibration.power_trace.repetition import repeat_layers
from calibration.power_trace.trace import Meter, PowerTrace
from hwmodels.errors import ToolMissingError

LAYERS_US = (713.0, 2291.7, 1507.3, 423.9, 3088.1)
LEVELS_MW = (60.0, 95.0, 40.0, 120.0, 75.0)
IDLE_MW = 8.0
TRUE_UJ = [t * p * 1e-3 for t, p in zip(LAYERS_US, LEVELS_MW, strict=True)]


def made_trace(random, *, period_us=10.0, noise_mw=4.0, resolution_mw=2.0, gain_rel_sd=0.01,
               offset_mw=0.3, kind="average", board_rate=1.0002):
    """Record the layers with a meter drawn from what it states; return trace and board's edges."""
    begin = 1000.0 + random.uniform(0, period_us)
    edges = begin + board_rate * np.concatenate(([0], np.cumsum(LAYERS_US)))
    levels = np.array([IDLE_MW, *LEVELS_MW, IDLE_MW])
    scale = board_rate  # what a stretched layer draws longer, the board calls the same time
    grid = np.arange(period_us, edges[-1] + 1000.0, period_us)
    if kind == "average":
        corners = np.concatenate(([0.0], edges, [grid[-1] + 1e6]))
        energy = np.concatenate(([0.0], np.cumsum(np.diff(corners) * levels)))
        truth = np.diff(np.interp(np.concatenate(([0.0], grid)), corners, energy)) / period_us
    else:
        truth = levels[np.searchsorted(edges, grid, side="right")]
    gain, offset = random.normal(1, gain_rel_sd), random.normal(0, offset_mw)
    read = truth * gain + offset + random.normal(0, noise_mw, len(grid))
    read = np.round(read / resolution_mw) * resolution_mw if resolution_mw else read
    marks = np.ceil((edges - period_us / 2) / period_us) * period_us
    meter = Meter(name="made", kind=kind, resolution_mw=resolution_mw, noise_mw=noise_mw,
                  gain_rel_sd=gain_rel_sd, offset_mw=offset_mw)
    trace = PowerTrace(time_us=grid, power_mw=read, meter=meter, marks_us=tuple(marks),
                       mark_sd_us=period_us / np.sqrt(12))
    board = np.concatenate(([0], np.cumsum(LAYERS_US)))
    return trace, board, [e * scale for e in TRUE_UJ]


def coverage(estimates, truths):
    pairs = [(e, t) for one, truth in zip(estimates, truths, strict=True)
             for e, t in zip(one, truth, strict=True)]
    return sum(e.low_uj <= t <= e.high_uj for e, t in pairs) / len(pairs), pairs


@pytest.mark.parametrize(("name", "settings"), [
    ("fine", {}), ("coarse", {"period_us": 100.0, "noise_mw": 1.0}),
    ("instant", {"kind": "instant", "period_us": 10.0}),
    ("gain", {"gain_rel_sd": 0.05, "noise_mw": 0.5}),
    ("quantised", {"resolution_mw": 16.0, "noise_mw": 2.0})])
def test_layers_by_marks_lie_within_their_intervals(name, settings):
    random = np.random.default_rng(1)
    estimates, truths = [], []
    for _ in range(150):
        trace, board, truth = made_trace(random, **settings)
        estimates.append(layer_energies(trace, board, align_by_marks(trace, board)))
        truths.append(truth)
    # 750 intervals of 95 %, five of each trace sharing its gain: three deviations are 4 %.
    inside, pairs = coverage(estimates, truths)
    assert 0.91 <= inside <= 0.995, inside
    # and they are no wider than they must be
    errors = np.array([(e.energy_uj - t) / e.sd_uj for e, t in pairs])
    assert 0.7 < np.sqrt(np.mean(errors**2)) < 1.2


def test_layers_by_correlation_lie_within_their_intervals():
    random = np.random.default_rng(2)
    estimates, truths = [], []
    for _ in range(100):
        trace, board, truth = made_trace(random, board_rate=1.0)
        profile = step_profile((-400.0, *board, board[-1] + 400.0),
                               (IDLE_MW, *LEVELS_MW, IDLE_MW))
        alignment = align_by_correlation(trace, profile)
        assert alignment.quality > 0.9
        estimates.append(layer_energies(trace, board, alignment))
        truths.append(truth)
    inside, _ = coverage(estimates, truths)
    assert 0.90 <= inside <= 1.0, inside


def test_a_trace_without_noise_is_placed_to_a_sample_whatever_its_scale():
    """As long as the profile; two steps: dt / sqrt(12 x 2) is all that is left open."""
    profile = step_profile((0.0, 100.0, 300.0, 400.0), (2.0, 7.0, 2.0))
    grid = np.arange(10.0, 410.0, 10.0)  # the mean of each sample, at its end
    power = 5.0 + 3.0 * np.where((grid > 100) & (grid <= 300), 7.0, 2.0)
    found = align_by_correlation(PowerTrace(time_us=1000 + grid, power_mw=power, meter=Meter(
        name="made", kind="average", noise_mw=0.0, resolution_mw=0.1)), profile)
    assert found.offset_us == pytest.approx(1000.0) and found.quality == pytest.approx(1.0)
    assert (found.rate, found.rate_sd, found.method) == (1.0, 0.0, "correlation")
    assert found.shift_sd_us == pytest.approx(10 / np.sqrt(24))


def test_scores_of_a_shape_are_pearsons_of_each_stretch():
    random = np.random.default_rng(4)
    power, shape = 40 + random.normal(0, 3, 30).cumsum(), random.normal(0, 1, 8)
    shape -= shape.mean()
    expected = [np.corrcoef(power[place:place + 8], shape)[0, 1] for place in range(23)]
    assert _correlation(power, shape) == pytest.approx(expected)


def test_a_trace_is_resampled_within_its_span():
    trace = PowerTrace(time_us=np.array([0.0, 10.0, 20.0, 30.0]), meter=Meter(name="made"),
                       power_mw=np.array([1.0, 2.0, 4.0, 8.0]))
    assert _resample(trace, 10.0).tolist() == [1.0, 2.0, 4.0, 8.0]
    assert _resample(trace, 5.0)[::2].tolist() == [1.0, 2.0, 4.0, 8.0]


def test_differencing_finds_a_layer_shorter_than_a_sample():
    # 3.1 uJ in 40 us, metered at 1 kHz: seen only when repeated.
    random = np.random.default_rng(3)
    layer_uj, inside = 3.1, 0
    for _ in range(200):
        meter = Meter(name="made", noise_mw=1.5, resolution_mw=1.0, gain_rel_sd=0.01)
        gain = random.normal(1, 0.01)
        repeats = [0, 0, 0, 2000, 2000, 2000, 4000, 4000]
        windows = []
        for count in repeats:
            span_us = 50_000 + 40.0 * count
            grid = np.arange(1000.0, span_us + 1000.0, 1000.0)
            mean = (2000.0 + layer_uj * count) / span_us * 1e3
            read = np.round(gain * mean + random.normal(0, 1.5, len(grid)))
            trace = PowerTrace(time_us=grid, power_mw=read, meter=meter)
            windows.append(integrate(trace, 0.0, span_us))
        found = difference_repetitions(repeats, windows)
        inside += found.low_uj <= layer_uj <= found.high_uj
        assert found.energy_uj == pytest.approx(layer_uj, rel=0.06)
    assert 0.90 <= inside / 200 <= 1.0


def test_layers_shorter_than_a_sample_by_repetition():
    """Five layers of 4 to 31 us under a meter of 1 kHz whose windows are known to a millisecond."""
    random = np.random.default_rng(4)
    times_us = [t / 100 for t in LAYERS_US]
    truths = [t * p * 1e-3 for t, p in zip(times_us, LEVELS_MW, strict=True)]
    gain = 1.0

    def window(place: int, repeat: int) -> PowerTrace:
        durations = [t * (repeat if i == place else 1) for i, t in enumerate(times_us)]
        edges = 20_000 + random.uniform(0, 1000) + np.concatenate(([0], np.cumsum(durations)))
        corners = np.concatenate(([0.0], edges, [edges[-1] + 1e6]))
        energy = np.concatenate(([0.0], np.cumsum(
            np.diff(corners) * np.array([IDLE_MW, *LEVELS_MW, IDLE_MW]))))
        grid = np.arange(1000.0, edges[-1] + 20_000, 1000.0)
        mean = np.diff(np.interp(np.concatenate(([0.0], grid)), corners, energy)) / 1000.0
        marks = (edges[0] - random.uniform(0, 2000), edges[-1] + random.uniform(0, 2000))
        return PowerTrace(time_us=grid, power_mw=gain * mean + random.normal(0, 1.5, len(grid)),
                          meter=Meter(name="made", noise_mw=1.5, gain_rel_sd=0.01),
                          marks_us=marks, mark_sd_us=1000.0)

    inside = total = 0
    for _ in range(20):
        gain = random.normal(1, 0.01)
        samples = repeat_layers(window, range(5), times_us, span_s=0.2)
        values = {(s.layer, s.counter): s.value for s in samples}
        for layer, truth in enumerate(truths):
            found, sd = values[layer, "energy"], values[layer, "energy_sd"]
            assert found == pytest.approx(truth, rel=0.1)
            inside += abs(found - truth) <= 2.78 * sd  # Student's t with four degrees of freedom
            total += 1
    assert inside >= 0.9 * total, (inside, total)


def test_marks_become_samples_per_layer_or_window():
    random = np.random.default_rng(4)
    trace, _, truth = made_trace(random, gain_rel_sd=0.0, offset_mw=0.0)
    layers = [0, 1, 2, 4, 5]
    samples = energy_samples(trace, layers, LAYERS_US)
    energies = {s.layer: s.value for s in samples if s.counter == "energy"}
    sds = {s.layer: s.value for s in samples if s.counter == "energy_sd"}
    for layer, true in zip(layers, truth, strict=True):
        assert abs(energies[layer] - true) < 4 * sds[layer] < 0.2 * true
    assert energies[None] == pytest.approx(sum(truth), rel=0.02)
    mean = next(s.value for s in samples if s.counter == "power_mean")
    assert mean == pytest.approx(sum(TRUE_UJ) / sum(LAYERS_US) * 1e3, rel=0.02)
    window = PowerTrace(time_us=trace.time_us, power_mw=trace.power_mw, meter=trace.meter,
                        marks_us=(trace.marks_us[0], trace.marks_us[-1]))
    fifth = [time_us / 5 for time_us in LAYERS_US]
    one = energy_samples(window, layers, fifth, runs=5)
    assert one[0].value == pytest.approx(sum(truth) / 5, rel=0.02)
    with pytest.raises(MeasurementError, match="how many inferences"):
        energy_samples(window, layers, LAYERS_US)
    for times_us, runs in ((LAYERS_US, 5), (fifth, 4), (fifth, 7)):
        with pytest.raises(MeasurementError, match=r"window lasts 8\.0"):
            energy_samples(window, layers, times_us, runs=runs)
    swapped = PowerTrace(time_us=trace.time_us, power_mw=-trace.power_mw, meter=trace.meter,
                         marks_us=window.marks_us)
    with pytest.raises(MeasurementError, match="probes swapped"):
        energy_samples(swapped, layers, fifth, runs=5)
    with pytest.raises(MeasurementError, match=r"6 edges of the sync.* \(the mark\); accepted: 2"):
        energy_samples(trace, layers[:3], LAYERS_US[:3])
    shape = energy_samples(trace, layers, LAYERS_US, by_shape=True)
    assert shape[-5].value == pytest.approx(sum(truth), rel=0.05)
    with pytest.raises(MeasurementError, match=r"no inference of 0\.8024 ms"):
        energy_samples(_noise(random), layers, [t / 10 for t in LAYERS_US], by_shape=True)


@pytest.mark.parametrize(("bursts_ms", "gap_ms", "fits"), [
    ((8.0,), 5, True), ((8.1, 8.1, 8.1), 5, True), ((8.6, 8.6), 5, False), ((7.4, 7.4), 5, False),
    ((85.0, 85.0), 50, False), ((6.0, 6.0), 2, False), ((3.0, 3.0), 2, False)])
@pytest.mark.parametrize("noise_mw", [0.5, 5.0])
def test_a_shape_is_a_burst_as_long_as_the_inference(bursts_ms, gap_ms, fits, noise_mw):
    """8 ms as measured; noise of a ninth of the step changes nothing."""
    power = [np.full(500, 5.0)]
    for burst_ms in bursts_ms:
        power += [np.full(round(100 * burst_ms), 50.0), np.full(100 * gap_ms, 5.0)]
    level = np.concatenate([*power, np.full(500, 5.0)])
    level += np.random.default_rng(5).normal(0, noise_mw, len(level))
    trace = PowerTrace(time_us=np.arange(len(level)) * 10.0, power_mw=level,
                       meter=Meter(name="made"))
    if fits:
        samples = energy_samples(trace, [0, 1], [3000.0, 5000.0], by_shape=True)
        assert next(one.value for one in samples if one.layer is None) == pytest.approx(
            400, rel=0.02)
        return
    with pytest.raises(MeasurementError, match=r"no (burst lasts the|inference of) 8 ms"):
        energy_samples(trace, [0, 1], [3000.0, 5000.0], by_shape=True)


@pytest.mark.parametrize(("marks", "layers", "runs", "doubted"), [
    ((100, 300, 500, 700), [0], 4, ""), ((100, 300, 500, 740), [0], 4, "window 2's last"),
    ((60, 300, 500, 740), [0], 4, "window 1's first twentieth is at idle power"),
    ((100, 200, 300, 500, 600, 700), [0, 1], None, ""),
    ((100, 200, 330, 500, 600, 730), [0, 1], None, "and 1 ends more")])
def test_each_window_and_inference_is_looked_at_for_late_marks(marks, layers, runs, doubted):
    time_us = np.arange(1000.0)
    working = ((time_us > 100) & (time_us <= 300)) | ((time_us > 500) & (time_us <= 700))
    trace = PowerTrace(time_us=time_us, power_mw=np.where(working, 50.0, 5.0),
                       meter=Meter(name="made"), marks_us=tuple(map(float, marks)))
    said = judge_windows(trace, find_windows(trace, layers, runs)) or ""
    assert doubted in said and bool(said) is bool(doubted)


def _noise(random) -> PowerTrace:
    return PowerTrace(time_us=np.arange(10_000.0) * 10, power_mw=random.normal(50, 1, 10_000),
                      meter=Meter(name="made"))


@pytest.mark.parametrize(("mean_mw", "cpu_hz", "right"), [
    (49.5, 120e6, True), (0.0495, 120e6, False), (49_500, 120e6, False),
    (1.5, 96e6, True), (1200.0, 600e6, True)])
def test_power_a_thousand_times_off_is_doubted(mean_mw, cpu_hz, right):
    doubt = judge_power(mean_mw, cpu_hz)
    assert doubt is None if right else "expected: 0.24 to 6e+03 mW" in doubt


def test_a_meter_is_read_while_a_board_works():
    bus = MadeBus()
    with LiveTrace(Ina226(bus, shunt_ohm=0.1, clock=bus.clock)) as live:
        while len(live.readings) < 100:
            pass
    trace = live.trace(marks_us=(5000.0, 23_000.0))
    # 20 mV across 0.1 ohm at 3.3 V over 18 ms, three inferences
    samples = energy_samples(trace, [], [], runs=3)
    assert samples[0].value == pytest.approx(0.66e3 * 18 / 3, rel=0.02)
    bus.present = False
    with LiveTrace(live.meter) as broken:
        while broken.failure is None:
            pass
    with pytest.raises(LinkError, match="does not answer"):
        broken.trace()


def test_integral_of_known_traces():
    meter = Meter(name="made")
    flat = PowerTrace(time_us=np.arange(1.0, 101.0), power_mw=np.full(100, 50.0), meter=meter)
    assert integrate(flat, 10.0, 90.0).energy_uj == pytest.approx(50 * 80 * 1e-3)
    assert integrate(flat, 10.0, 90.0).sd_uj == 0
    ramp = PowerTrace(time_us=np.arange(101.0), power_mw=np.arange(101.0),
                      meter=Meter(name="made", kind="instant"))
    assert integrate(ramp, 2.5, 77.25).energy_uj == pytest.approx(
        (77.25**2 - 2.5**2) / 2 * 1e-3)
    summary = summarise_power(ramp, 0.0, 100.0)
    assert (summary.peak_mw, summary.mean_mw, summary.samples) == (100, 50.5, 100)


def test_refusals_name_what_is_wrong():
    meter = Meter(name="made")
    trace = PowerTrace(time_us=np.array([1.0, 2, 3, 9, 10]), power_mw=np.ones(5), meter=meter,
                       marks_us=(1.0, 2.0))
    with pytest.raises(MeasurementError, match="not covered"):
        integrate(trace, 0.0, 11.0)
    with pytest.raises(MeasurementError, match="no samples from 3 to 9"):
        integrate(trace, 1.0, 9.5)
    with pytest.raises(MeasurementError, match="2 marks for 3 edges"):
        align_by_marks(trace, [0.0, 1.0, 2.0])
    with pytest.raises(MeasurementError, match="runs 0"):
        align_by_marks(trace, [0.0, 2.0])
    with pytest.raises(MeasurementError, match="backwards at sample 1"):
        PowerTrace(time_us=np.array([2.0, 1.0]), power_mw=np.ones(2), meter=meter)
    with pytest.raises(MeasurementError, match="three windows"):
        difference_repetitions([1, 1], [integrate(trace, 1.0, 2.0)] * 2)
    with pytest.raises(MeasurementError, match="flat"):
        align_by_correlation(PowerTrace(time_us=np.arange(50.0), power_mw=np.ones(50),
                                        meter=meter), step_profile((0, 5, 10), (1, 2)))


class MadeBus:
    """I2C registers of an INA226 that converts by a clock of its own."""

    def __init__(self, shunt_v=0.02, bus_v=3.3, present=True):
        self.now_us, self.ready, self.next_us = 0.0, False, 0.0
        self.shunt_v, self.bus_v, self.present = shunt_v, bus_v, present
        self.configuration = 0x4127
        self.conversions = 0

    def clock(self):
        return self.now_us * 1e-6

    def read_word_data(self, address, register):
        self.now_us += 100.0  # a word at 400 kHz
        if not self.present:
            raise OSError(121, "Remote I/O error")
        while self.now_us >= self.next_us:
            times = (140, 204, 332, 588, 1100, 2116, 4156, 8244)
            averages = (1, 4, 16, 64, 128, 256, 512, 1024)[self.configuration >> 9 & 7]
            self.next_us += averages * (times[self.configuration >> 6 & 7]
                                        + times[self.configuration >> 3 & 7])
            self.ready, self.conversions = True, self.conversions + 1
        value = {0x01: round(self.shunt_v / 2.5e-6) & 0xFFFF, 0x02: round(self.bus_v / 1.25e-3),
                 0x06: self.ready << 3, 0xFE: 0x5449, 0xFF: 0x2260}[register]
        if register == 0x06:
            self.ready = False
        return (value & 0xFF) << 8 | value >> 8

    def write_word_data(self, address, register, word):
        if register == 0 and not word & 0x80:
            self.configuration = (word & 0xFF) << 8 | word >> 8


def test_ina226_never_reads_a_value_twice():
    bus = MadeBus()
    meter = Ina226(bus, shunt_ohm=0.1, clock=bus.clock)
    assert meter.period_us == 280
    bus.conversions = 0
    bus.ready = False
    readings = [meter.read() for _ in range(50)]
    assert bus.conversions >= 50
    assert all(b.time_us - a.time_us > 200 for a, b in itertools.pairwise(readings))
    trace = meter.trace(readings)
    # 20 mV across 0.1 ohm at 3.3 V
    assert trace.power_mw == pytest.approx(np.full(50, 0.02 / 0.1 * 3.3 * 1e3))
    assert trace.meter.resolution_mw == pytest.approx(2.5e-6 / 0.1 * 3.3e3)


@pytest.mark.parametrize(("timeout_s", "gone_s"), [(None, 5 * 280e-6 + 0.05), (0.01, 0.01)])
def test_ina226_waits_five_conversions_or_as_long_as_asked(timeout_s, gone_s):
    bus = MadeBus()
    meter = Ina226(bus, shunt_ohm=0.1, clock=bus.clock)
    begin, bus.next_us, bus.ready = bus.clock(), 1e12, False
    with pytest.raises(LinkError, match="no conversion within 1400 us"):
        meter.read(timeout_s)
    assert bus.clock() - begin == pytest.approx(gone_s, abs=200e-6)  # a word of the bus or two


def test_ina226_names_the_extra_its_bus_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "smbus2", None)
    with pytest.raises(ToolMissingError, match=r"readings of an INA226.*'boards'"):
        Ina226.open("/dev/i2c-1", shunt_ohm=0.1)


def test_ina226_warns_and_refuses():
    bus = MadeBus(shunt_v=-0.01)
    slow = Ina226(bus, shunt_ohm=0.1, averages=128, conversion_us=1100, clock=bus.clock)
    assert slow.period_us == 281_600
    # the founding text's "1 kHz": the same value 281.6 times
    with pytest.warns(SlowMeterWarning, match=r"281600 us.*281\.6 times"):
        assert next(slow.readings(1000.0)).shunt_v == pytest.approx(-0.01)
    with pytest.raises(MeasurementError, match="accepted: averages 1, 4"):
        Ina226(bus, shunt_ohm=0.1, averages=3)
    with pytest.raises(LinkError, match="0x40"):
        Ina226(MadeBus(present=False), shunt_ohm=0.1)
    bus = MadeBus(shunt_v=0.08192)
    bus.read_word_data = lambda a, r, old=bus.read_word_data: 0xFF7F if r == 1 else old(a, r)
    meter = Ina226(bus, shunt_ohm=0.1, clock=bus.clock)
    with pytest.raises(MeasurementError, match="smaller shunt"):
        meter.trace([meter.read(), meter.read()])
