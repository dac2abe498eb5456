"""Energies and what is not known of them, by hand: each part of an error alone, then together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibration.errors import MeasurementError
from calibration.power_trace.alignment import Alignment, align_by_marks
from calibration.power_trace.board_energy import (
    describe_merged,
    edges_of,
    energy_samples,
    find_windows,
    group_short,
    idle_power,
    judge_power,
)
from calibration.power_trace.energy import (
    NORMAL_95,
    EnergyEstimate,
    difference_repetitions,
    integrate,
    layer_energies,
    summarise_power,
)
from calibration.power_trace.trace import Meter, PowerTrace

METER = Meter(name="made")
TIME_US = np.arange(10.0, 1010.0, 10.0)


def trace(power_mw=50.0, time_us=TIME_US, meter=METER, **more):
    """Samples every 10 us: means over the 10 us before each."""
    return PowerTrace(time_us=time_us, power_mw=np.broadcast_to(power_mw, time_us.shape),
                      meter=meter, **more)


@pytest.mark.parametrize(("meter", "part", "sd_uj"), [
    # 80 samples of 2 mW over 10 us each: 2 x 10 x sqrt(80) nJ
    ({"noise_mw": 2.0}, "noise_uj", 2e-2 * math.sqrt(80)),
    # without noise a rounding to steps of 6 mW is shared by all (a series of 199 terms)
    ({"resolution_mw": 6.0}, "noise_uj", 6 / math.sqrt(12) * 0.8),
    # with noise of a step and more it is each sample's own
    ({"resolution_mw": 6.0, "noise_mw": 12.0}, "noise_uj", math.sqrt(144 + 3) * 1e-2 * 80**0.5),
    ({"gain_rel_sd": 0.03}, "scale_uj", 0.03 * 40.0), ({"offset_mw": 0.5}, "scale_uj", 0.4),
    ({"gain_rel_sd": 0.03, "offset_mw": 2.0}, "scale_uj", math.hypot(1.2, 1.6))])
def test_each_error_a_meter_states_is_in_its_part(meter, part, sd_uj):
    found = integrate(trace(meter=replace(METER, **meter)), 100.0, 900.0)
    assert found.energy_uj == pytest.approx(40.0)
    assert getattr(found, part) == pytest.approx(sd_uj, rel=2e-3) == found.sd_uj
    assert (found.low_uj, found.high_uj) == (
        pytest.approx(40 - NORMAL_95 * found.sd_uj), pytest.approx(40 + NORMAL_95 * found.sd_uj))


STEP = np.where(TIME_US <= 500, 20.0, 60.0)


@pytest.mark.parametrize(("window", "settings", "sd_uj"), [
    # each edge by itself in constant power: 20 mW x 3 us, and 60 x 3
    ((100.0, 900.0), {"edge_sd_us": 3.0}, 3e-3 * math.hypot(20, 60)),
    # a shift trades 20 mW at one end for 60 at the other
    ((100.0, 900.0), {"shift_sd_us": 3.0}, 3e-3 * 40),
    ((100.0, 400.0), {"shift_sd_us": 3.0}, 0.0),
    # an edge amid the sample from 500 to 510, a step of 40 mW: a quarter of it times 10 us
    ((100.0, 505.0), {}, 0.25 * 40 * 10e-3),
    ((100.0, 502.0), {}, 0.2 * 0.8 * 40 * 10e-3)])
def test_an_edge_is_worth_the_power_around_it(window, settings, sd_uj):
    found = integrate(trace(STEP), *window, **settings)
    assert found.edges_uj == pytest.approx(sd_uj) == found.sd_uj


def test_instants_are_joined_by_slopes_wherever_the_edge_lies():
    instant = trace(STEP, meter=replace(METER, kind="instant"))
    for edge_us in (500.0, 502.0, 507.0):
        found = integrate(instant, 100.0, edge_us)
        assert found.edges_uj == pytest.approx(0.25 * 40 * 10e-3)
    assert integrate(instant, 500.0, 510.0).energy_uj == pytest.approx((20 + 60) / 2 * 10e-3)


@pytest.mark.parametrize(("window", "said"), [
    ((500.0, 500.0), "window 500 to 500 us is empty"), ((700.0, 300.0), "is empty"),
    ((-1.0, 500.0), "is not covered: the trace has 0 to 1000 us"),
    ((500.0, 1001.0), "is not covered: the trace has 0 to 1000 us")])
def test_a_window_the_trace_has_not_is_refused(window, said):
    with pytest.raises(MeasurementError, match=said):
        integrate(trace(), *window)
    assert integrate(trace(), 0.0, 1000.0).energy_uj == pytest.approx(50.0)


def test_gaps_are_longer_than_three_samples_and_harm_windows_over_them_alone():
    holed = np.concatenate([TIME_US[:20], TIME_US[23:40], TIME_US[42:]])
    one = trace(time_us=holed)
    assert one.gaps() == ((200.0, 240.0),)  # 30 us from 400 to 430 are three samples
    assert integrate(one, 240.0, 900.0).energy_uj == pytest.approx(33.0)
    assert integrate(one, 0.0, 200.0).energy_uj == pytest.approx(10.0)
    for window in ((190.0, 210.0), (230.0, 500.0), (210.0, 220.0)):
        with pytest.raises(MeasurementError, match="no samples from 200 to 240 us"):
            integrate(one, *window)


def test_power_of_a_window_is_of_the_samples_in_it():
    found = summarise_power(trace(STEP), 490.0, 510.0)
    assert (found.mean_mw, found.peak_mw, found.sd_mw, found.samples) == (40.0, 60.0, 20.0, 2)
    with pytest.raises(MeasurementError, match="window 492 to 498 us holds no sample"):
        summarise_power(trace(), 492.0, 498.0)


def estimate(energy_uj, **parts):
    return EnergyEstimate(energy_uj=energy_uj, sd_uj=1.0, low_uj=0.0, high_uj=0.0, **parts)


def test_repetitions_in_line_leave_what_the_meter_states():
    """Windows of 10 + 3 n uJ; n of -2, 0 and 2 about their mean, so a norm of 8."""
    windows = [estimate(10.0 + 3 * n, noise_uj=0.3, edges_uj=0.4) for n in (0, 2, 4)]
    found = difference_repetitions([0, 2, 4], windows)
    sd_uj = math.sqrt(2 * (2 / 8)**2 * (0.3**2 + 0.4**2))
    assert found.energy_uj == pytest.approx(3.0) and found.sd_uj == pytest.approx(sd_uj)
    assert found.high_uj - 3.0 == pytest.approx(1.959964 * sd_uj) == 3.0 - found.low_uj


def test_repetitions_out_of_line_show_their_own_scatter_and_the_largest_gain():
    """The middle window is 3 uJ off: residuals -1, 2, -1; six over one degree and a norm of 8."""
    windows = [estimate(energy, scale_uj=gain * energy) for energy, gain in (
        (10.0, 0.01), (19.0, 0.02), (22.0, 0.01))]
    found = difference_repetitions([0, 2, 4], windows)
    scatter = math.sqrt(6 / 8)
    assert found.energy_uj == pytest.approx(3.0) and found.noise_uj == pytest.approx(scatter)
    assert found.scale_uj == pytest.approx(0.02 * 3.0)
    assert found.sd_uj == pytest.approx(math.hypot(scatter, 0.06))
    # Student's t of one degree, two-sided 95 %: 12.706
    assert found.high_uj - 3.0 == pytest.approx(math.hypot(12.706 * scatter, 1.96 * 0.06), rel=1e-4)
    nothing = difference_repetitions([0, 2, 4], [estimate(0.0, scale_uj=1.0)] * 3)
    assert (nothing.energy_uj, nothing.scale_uj) == (0.0, 0.0)


@pytest.mark.parametrize(("counts", "energies"), [([0, 2], 2), ([2, 2, 2], 3), ([0, 2, 4], 2)])
def test_too_few_windows_are_refused(counts, energies):
    with pytest.raises(MeasurementError, match=rf"{energies} windows of \[.*\] repetitions; three"):
        difference_repetitions(counts, [estimate(1.0)] * energies)


@pytest.mark.parametrize(("times_us", "groups"), [
    ([20.0, 10.0, 30.0], [(0,), (1,), (2,)]), ([20.0, 9.0, 30.0], [(0, 1), (2,)]),
    ([9.0, 9.0, 30.0], [(0, 1), (2,)]), ([3.0, 3.0, 30.0, 5.0], [(0, 1, 2, 3)]),
    ([3.0, 3.0], [(0, 1)]), ([], [])])
def test_layers_shorter_than_a_sample_go_with_a_neighbour(times_us, groups):
    assert group_short(times_us, 10.0) == groups


def test_whose_energy_is_in_whose_layer_is_said():
    assert describe_merged([4, 5, 7], [20.0, 10.0, 30.0], 10.0) == ()
    (said,) = describe_merged([4, 5, 7, 8], [3.0, 40.0, 20.0, 6.0], 10.0)
    assert said == ("shorter than a sample of the meter (10 us): layer 5 holds the energy of 4 too;"
                    " layer 7 holds the energy of 8 too; `twin measure --power-repeat` measures "
                    "each by itself")
    marked = trace(STEP, marks_us=(100.0, 105.0, 500.0, 900.0))
    found = {(one.layer, one.counter): one.value for one in energy_samples(
        marked, [4, 5, 7], [5.0, 395.0, 400.0])}
    assert found[5, "energy"] == pytest.approx(8.0) and found[7, "energy"] == pytest.approx(24.0)
    assert (4, "energy") not in found and found[None, "energy"] == pytest.approx(32.0)
    assert found[None, "power_mean"] == pytest.approx(40.0)
    assert found[None, "power_peak"] == 60.0 and found[None, "power_sd"] == pytest.approx(20.0)


def test_windows_and_inferences_are_what_the_marks_say():
    marked = trace(marks_us=(10.0, 20.0, 30.0, 40.0, 50.0, 60.0))
    assert find_windows(marked, [0, 1], None) == ((10.0, 30.0), (40.0, 60.0))
    assert find_windows(marked, [0, 1], 5) == ((10.0, 20.0), (30.0, 40.0), (50.0, 60.0))
    assert find_windows(trace(marks_us=(10.0, 20.0)), [0, 1], None) == ((10.0, 20.0),)
    assert edges_of([2.0, 3.0]).tolist() == [0.0, 2.0, 5.0]


def test_each_of_several_windows_is_a_run_of_so_many_inferences():
    marked = trace(STEP, marks_us=(100.0, 300.0, 600.0, 800.0))
    found = energy_samples(marked, [0], [50.0], runs=4)
    assert [(one.run, one.value) for one in found if one.counter == "energy"] == [
        (0, pytest.approx(1.0)), (1, pytest.approx(3.0))]
    assert [one.value for one in found if one.counter == "power_mean"] == [20.0, 60.0]


@pytest.mark.parametrize(("marks", "layers", "times_us", "runs", "said"), [
    ((), [0], [50.0], 4, "0 edges of .*accepted with --runs: 2 for each window; --by-shape"),
    ((1.0,), [0], [50.0], 4, "2 for each window. Was the recording started or ended within one"),
    ((), [0, 1], [50.0, 50.0], None, "a multiple of 3 .the starts of 2 layers and the end.; --by"),
    ((1.0,) * 4, [3, 4], [50.0, 9.0], None,
     r"and the end.\. Layer 4 is shorter than a sample of 10 us, its edges may be lost: record"),
    ((100.0, 300.0), [0], [0.0], None, r"say how many inferences were made in it .--runs.$"),
    ((100.0, 300.0), [0], [80.0], None, r".--runs.; it is as long as 2.50$"),
    ((100.0, 300.0), [0], [50.0], 0, r".--runs.; it is as long as 4.00$"),
    ((100.0, 300.0), [0], [50.0], 5, r"window lasts 0.2 ms; 5 inferences of 0.05 ms as measured "
     r"take 0.25 ms \(-20.0%, accepted: 3% either way\). It would hold 4, or 5 at 1.25 x the "
     r"clock. Is the number"),
    ((100.0, 300.0), [0], [80.0], 3, r"\(-16.7%, accepted: 3% either way\). Is the number")])
def test_marks_that_say_nothing_are_refused_with_what_would_do(
        marks, layers, times_us, runs, said):
    with pytest.raises(MeasurementError, match=f"trace of made: .*{said}"):
        energy_samples(trace(marks_us=marks), layers, times_us, runs=runs)


def test_a_recording_without_marks_names_the_columns_that_may_be_one():
    many = tuple(f"in{place}" for place in range(9))
    with pytest.raises(MeasurementError, match=r"--mark-column NAME, where one of in0, .*, in7 is"):
        energy_samples(trace(columns=many), [0], [50.0])
    with pytest.raises(MeasurementError, match=r"0 edges(?!.*--mark-column)"):
        energy_samples(trace(), [0], [50.0])


@pytest.mark.parametrize("factor", [0.971, 1.029, 1.03])
def test_a_window_may_be_off_by_three_in_a_hundred(factor):
    marked = trace(marks_us=(100.0, 100 + 200 * factor))
    assert energy_samples(marked, [0], [50.0], runs=4)[0].value == pytest.approx(2.5 * factor)
    assert energy_samples(marked, [0], [0.0], runs=4)  # without times nothing is held against it


def test_waiting_is_outside_the_marks_but_for_what_is_beside_them():
    power = np.where((TIME_US > 300) & (TIME_US <= 700), 90.0, 5.0)
    power[[29, 70, 71]] = 50.0  # at 300, 710 and 720 us: parts of the work
    assert idle_power(trace(power, marks_us=(305.0, 702.0))) == pytest.approx(5.0)
    assert idle_power(trace(power, marks_us=(5.0, 1000.0))) is None


@pytest.mark.parametrize(("mean_mw", "plausible"), [(0.21, True), (0.19, False), (4900.0, True),
                                                    (5100.0, False)])
def test_a_cycle_takes_2_pj_to_50_nj(mean_mw, plausible):
    said = judge_power(mean_mw, 100e6)
    assert (said is None) is plausible
    if said:
        assert said == (f"{mean_mw:.3g} mW at 100 MHz is {mean_mw * 10:.3g} pJ per cycle of the "
                        "core; expected: 0.2 to 5e+03 mW. Is the unit of the current right?")


def test_clocks_are_one_line_drawn_to_equal_rates():
    """Marks every 100 us by the board, 100.02 by the meter: far from what clocks are off by, and
    well known by ten of them; of two edges 10 us apart nothing is learnt of the rate."""
    marks = tuple(7.0 + 1.0002 * place * 1e5 for place in range(10))
    found = align_by_marks(trace(marks_us=marks), [place * 1e5 for place in range(10)])
    assert found.rate == pytest.approx(1.0002, abs=1e-6)
    assert found.to_meter(2e5) == pytest.approx(marks[2], abs=0.2)
    assert found.quality < 0.2 and found.method == "marks"
    near = align_by_marks(trace(marks_us=(100.0, 110.5), mark_sd_us=3.0), [0.0, 10.0])
    assert near.rate == pytest.approx(1.0, abs=1e-4)
    assert near.to_meter(5.0) == pytest.approx(105.25)
    # two marks, each of 3 us: half is shared, as residuals of two show none of it
    assert near.shift_sd_us == pytest.approx(math.sqrt(9 / 2 + 9))
    assert near.edge_sd_us(0.0, 20.0) == pytest.approx(near.rate_sd * 20 / math.sqrt(2))


def test_layers_lie_between_their_edges_by_the_meters_clock():
    placed = Alignment(offset_us=100.0, rate=2.0, shift_sd_us=0.0, rate_sd=0.0, method="marks",
                       quality=0.0)
    found = layer_energies(trace(STEP), [0.0, 100.0, 200.0, 300.0], placed)
    assert [one.energy_uj for one in found] == pytest.approx([4.0, 4.0, 12.0])
    with pytest.raises(MeasurementError, match="1 edges; two or more are needed"):
        layer_energies(trace(), [0.0], placed)


@pytest.mark.parametrize(("settings", "said"), [
    ({"kind": "often"}, "meter 'm': kind 'often'; accepted: average, instant"),
    *(({name: value}, f"meter 'm': {name} is {value}; accepted: 0 to 1e") for name in (
        "resolution_mw", "noise_mw", "gain_rel_sd", "offset_mw") for value in (-0.1, 2e12))])
def test_a_meter_states_errors_that_can_be(settings, said):
    with pytest.raises(MeasurementError, match=said.replace("+", r"\+")):
        Meter(name="m", **settings)


@pytest.mark.parametrize(("time_us", "power_mw", "said"), [
    ([1.0], [1.0], r"\(1,\) times for \(1,\) powers; two samples or more"),
    ([1.0, 2.0], [1.0], r"\(2,\) times for \(1,\) powers"),
    ([[1.0, 2.0]], [[1.0, 2.0]], r"\(1, 2\) times"),
    ([1.0, 2e15], [1.0, 1.0], r"a sample of 2e\+15 us; accepted: at most 1e\+15"),
    ([1.0, 2.0], [1.0, math.nan], r"a sample of nan mW; accepted: at most 1e\+12"),
    ([1.0, 2.0], [1.0, -2e12], r"a sample of -2e\+12 mW"),
    ([1.0, 2.0, 2.0], [1.0, 1.0, 1.0], "stands still or runs backwards at sample 2")])
def test_samples_that_are_no_trace_are_refused(time_us, power_mw, said):
    with pytest.raises(MeasurementError, match=f"trace of made: .*{said}"):
        PowerTrace(time_us=np.array(time_us), power_mw=np.array(power_mw), meter=METER)
