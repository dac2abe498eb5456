"""What holds a measured network up, where other programs and interrupts ran in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

import twin
from calibration.measurement.counters import Limits
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample
from twin.attribution.measured_layers import describe_network, judge_network
from twin.reports.tables.measured import metrics_table

LAYERS, BETWEEN, TAKEN = (100.0, 200.0, 300.0), 6.0, 1000.0


def describe(taken=lambda run, layer: 0.0, waited_us=None, between=BETWEEN):
    samples = []
    for run in range(6):
        ticks = [ticks + taken(run, layer) for layer, ticks in enumerate(LAYERS)]
        samples += [Sample(run=run, layer=layer, counter="timer_ticks", clock="timer",
                           unit="ticks", value=value)
                    for layer, value in enumerate((*ticks, sum(ticks) + between))]
    samples = [one if one.layer != len(LAYERS) else
               Sample(run=one.run, counter="timer_ticks", clock="timer", unit="ticks",
                      value=one.value) for one in samples]
    if waited_us is not None:
        samples.append(Sample(run=0, counter="block_waited", unit="us", value=waited_us))
    made = Measurement(samples=tuple(samples), header=Header(
        kind="measured", model="ad", board="host", runtime="firmware", temperature="warm",
        source="made", clocks_hz=(("timer", 1e6),)))
    network = describe_network(made, twin.read_model("ad"), Limits())
    return network, [one.name for one in judge_network(network, widths={})]


def test_time_others_take_in_a_layer_of_each_run_is_no_overhead():
    """Each run is hit in another layer: all medians of layers are those of a quiet machine."""
    quiet, found = describe()
    assert (quiet.overhead_share, quiet.scattered, found) == (pytest.approx(6 / 606), 0.0, [])
    hit, found = describe(lambda run, layer: TAKEN * (run % 3 == layer))
    assert hit.overhead_share == quiet.overhead_share and hit.between == BETWEEN
    assert hit.scattered == TAKEN and hit.whole.bottleneck.kind != "overhead"
    assert found == ["preempted"]


def test_a_host_that_says_its_program_waited_is_believed():
    """Every layer is hit in every run: only the kernel's count of waiting tells."""
    busy, found = describe(lambda run, layer: TAKEN, waited_us=3 * TAKEN)
    assert found == ["preempted"] and busy.whole.bottleneck.kind == ""
    assert "had the processor for 83% of the time" in busy.whole.bottleneck.evidence
    calm, found = describe(waited_us=20.0)
    assert calm.waited_share == pytest.approx(20 / 606) and found == []


def test_what_lies_between_layers_in_every_run_is_overhead():
    slow, found = describe(between=400.0)
    assert slow.whole.bottleneck.kind == "overhead" and found == []
    assert slow.overhead_share == pytest.approx(0.4)


def test_counts_of_eight_bits_are_shown_modulo_256():
    network, _ = describe()
    count = Sample(run=0, counter="dwt_lsucnt", unit="events", value=95.0)
    samples = (*network.measurement.samples, count)
    table = metrics_table(replace(network, measurement=replace(
        network.measurement, samples=samples)))
    units = {cells[0]: cells[2] for cells, _ in table.rows}
    assert units["dwt_lsucnt"] == "events, modulo 256"
