"""A second measurement, taken otherwise, enters the verdict; so do a user's own probabilities."""

import dataclasses
import math

import numpy as np
import pytest
from made_faults import diagnose, measure_fault, only_cycles
from made_measurements import measure

from calibration.measurement.measurement import write_measurement
from calibration.measurement.sample import Sample
from twin.api.commands.diagnose import diagnose as ask
from twin.api.requests.attribution import parse_priors
from twin.attribution.diagnosis.fault_effects import Forecasts
from twin.attribution.diagnosis.fault_list import list_faults
from twin.attribution.diagnosis.faults import (
    BOARD,
    COMPILED,
    DECLARED,
    NETWORK,
    ONE_LAYER,
    ONE_OPERATOR,
    REBUILT,
    RIVAL,
    UNKNOWN,
    Fault,
    prior_of,
)
from twin.attribution.document import diagnosis_document
from twin.deployment.deploy import deploy
from twin.errors import NotTheSameError, UsageError
from twin.network.zoo.networks import ds_cnn
from twin.pricing.inference import predict

CLOCK = "clocks.cpu.frequency_hz"
HERE, SLOW = (("cpu", 120e6),), (("cpu", 16e6),)


@pytest.fixture(scope="module")
def deployment():
    return deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")


def _take(deployment, fault, clocks, *, bias):
    """Of a board whose prices are off by the same at each clock, with a fault of its memories."""
    there = fault.deployment or deployment
    if clocks != HERE:
        there = there.replace({CLOCK: clocks[0][1]})
    return only_cycles(measure_fault(
        deployment, dataclasses.replace(fault, deployment=there), bias=bias, seed=7,
        clocks_hz=clocks))


@pytest.mark.parametrize("bias", [-0.1, 0.05])
@pytest.mark.parametrize("name", ["art_d off", "all caches off", "as declared"])
def test_another_clock_tells_what_cycles_alone_do_not(deployment, name, bias):
    """What waits for a flash takes fewer cycles where it waits less; a price does not."""
    fault = next(one for one in list_faults(deployment) if one.name == name)
    first, second = (_take(deployment, fault, clocks, bias=bias) for clocks in (HERE, SLOW))
    alone, both = diagnose(deployment, first), diagnose(deployment, first, also=second)
    assert next(iter(both.kinds)) == fault.kind, both.kinds
    assert both.kinds[fault.kind] > max(alone.kinds[fault.kind], 0.4)
    assert both.rests_on[-1] == "a second measurement (at 16 MHz)" and not both.remarks
    assert "--also DIR" in alone.telling or alone.stated > 0.95


def test_measurements_that_contradict_each_other_settle_nothing(deployment):
    """All layers at 2.2 times, then depthwise ones at three times: no one fault does both."""
    depthwise = {layer.index for layer in deployment.graph.layers if "depthwise" in layer.op}
    assert depthwise
    first, second = (_take(deployment, list_faults(deployment)[0], clocks, bias=0.02)
                     for clocks in (HERE, SLOW))
    first, second = (dataclasses.replace(one, samples=tuple(dataclasses.replace(
        sample, value=round(sample.value * factor(sample.layer))) for sample in one.samples))
        for one, factor in ((first, lambda layer: 2.2),
                            (second, lambda layer: 3.0 if layer in depthwise else 1.0)))
    forecasts = Forecasts()
    found = diagnose(deployment, first, also=second, forecasts=forecasts)
    assert found.stated < 0.651 and (found.kinds[UNKNOWN] > 0.2), found.kinds
    there, = forecasts.second.values()  # predicted once for each condition
    made = dict(there.predictions)
    assert len(made) > 5 and diagnose(
        deployment, first, also=second, forecasts=forecasts).kinds == found.kinds
    assert all(there.predictions[name] is one for name, one in made.items())


def test_a_fault_the_second_measurement_does_not_show_is_said_to_be_contradicted(deployment):
    """Depthwise layers at three times, then layer 4 alone at three times."""
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.0)

    def slow(*places):
        return dataclasses.replace(right, samples=tuple(dataclasses.replace(
            one, value=one.value * (3 if one.layer in places else 1)) for one in right.samples))

    found = diagnose(deployment, slow(1, 3, 5, 7), also=slow(4))
    said, = found.remarks
    assert said.startswith("the second measurement contradicts the first: layer ")
    assert "; 2 more differ; the second measurement: layer 4 " in said and "layer 2" not in said
    assert diagnosis_document(found)["remarks"] == [said]
    assert not diagnose(deployment, slow(4), also=slow(4)).remarks
    assert not diagnose(deployment, slow(4)).remarks


def test_what_makes_a_network_slower_explains_no_faster_one(deployment):
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.0)
    quick = dataclasses.replace(right, samples=tuple(dataclasses.replace(
        one, value=round(0.75 * one.value)) for one in right.samples))
    assert diagnose(deployment, quick).kinds["SIMD"] < 1e-6 < diagnose(
        deployment, right).kinds["SIMD"]


def test_masked_interrupts_are_gone_in_a_second_measurement(deployment):
    """Alike in every layer, ten percent are within what prices are off by; masked, they go."""
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.02)
    taken = dataclasses.replace(right, samples=tuple(
        dataclasses.replace(one, value=round(1.12 * one.value)) for one in right.samples))
    masked = dataclasses.replace(right, header=dataclasses.replace(
        right.header, environment=(("interrupts", "masked"),)))
    assert diagnose(deployment, taken).kinds["interrupts"] < 0.3
    both = diagnose(deployment, taken, also=masked)
    assert next(iter(both.kinds)) == "interrupts", both.kinds
    assert both.rests_on[-1] == "a second measurement (interrupts masked)"


def test_a_placement_that_does_a_tenth_of_what_is_predicted_is_no_fault(deployment):
    """By how much weights in SRAM help is known of no board: nothing was placed there before."""
    declared = list_faults(deployment)[0]
    first, there = (_take(one, declared, HERE, bias=0.0) for one in (
        deployment, deployment.replace({"placement.weights": "sram"})))
    second = dataclasses.replace(there, header=dataclasses.replace(
        there.header, placement=(("weights", "sram"),)), samples=tuple(dataclasses.replace(
            two, value=round(one.value ** 0.9 * two.value ** 0.1))
            for one, two in zip(first.samples, there.samples, strict=True)))
    found = diagnose(deployment, first, also=second).kinds
    assert next(iter(found)) == DECLARED and found["placement"] < 0.08  # 0.13 were it as sure


@pytest.mark.parametrize("share", [0.15, 0.5, 0.9])
def test_weights_that_wait_for_no_flash_take_as_long_at_any_clock(share):
    """A prefetch may hide a part of what is predicted; weights in SRAM change by nothing at all."""
    board = deploy("mobilenet_v1_0.25_32", "nucleo_u575zi_q", runtime="cmsis-nn")
    declared, *others = list_faults(board)
    moved = next(one for one in others if one.name == "weights in sram")
    first, second = (_take(board, declared, clocks, bias=0.02) for clocks in (
        (("cpu", 160e6),), SLOW))
    partly = dataclasses.replace(second, samples=tuple(dataclasses.replace(
        two, value=round(one.value ** (1 - share) * two.value ** share))
        for one, two in zip(first.samples, second.samples, strict=True)))
    healthy = diagnose(board, first, also=partly).kinds
    assert next(iter(healthy)) == DECLARED and healthy.get("placement", 0.0) < 0.05, healthy
    first, second = (_take(board, moved, clocks, bias=0.02) for clocks in ((("cpu", 160e6),), SLOW))
    assert diagnose(board, first, also=second).kinds["placement"] > 0.5


def test_runs_that_drift_are_taken_at_their_median(deployment):
    """The fastest of ten runs that slow down is as declared; the typical one is not."""
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.0)
    runs = tuple(dataclasses.replace(one, run=run, value=round(one.value * (1 + 0.02 * run)))
                 for run in range(10) for one in right.samples if one.run == 0)
    found = diagnose(deployment, dataclasses.replace(right, samples=runs))
    assert found.verdict.fault.kind == "other work"  # a slower clock adds no cycles
    assert found.declared_ratio == pytest.approx(1.09, abs=0.01)


def test_scatter_that_masking_takes_away_is_interrupts(deployment):
    """Runs of 0.3 % of scatter are quiet on many boards: not where masked ones repeat to 1e-5."""
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.02)
    random = np.random.default_rng(4)
    noisy, quiet = (dataclasses.replace(
        right, samples=tuple(dataclasses.replace(one, run=run, value=round(
            one.value * math.exp(random.normal(0, sd))))
            for run in range(12) for one in right.samples if one.run == 0),
        header=dataclasses.replace(right.header, environment=facts))
        for sd, facts in ((3e-3, ()), (1e-5, (("interrupts", "masked"),))))
    both = diagnose(deployment, noisy, also=quiet)
    assert sum(chance for kind, chance in both.kinds.items() if "interrupts" in kind) > 0.9


def test_the_same_scatter_twice_says_no_more_of_interrupts_than_once(deployment):
    right, random = _take(deployment, list_faults(deployment)[0], HERE, bias=0.0), (
        np.random.default_rng(4))
    noisy = dataclasses.replace(right, samples=tuple(dataclasses.replace(
        one, run=run, value=round(one.value * math.exp(random.normal(0, 3e-3))))
        for run in range(12) for one in right.samples if one.run == 0))
    alone, twice = (diagnose(deployment, noisy, also=also).kinds["interrupts"]
                    for also in (None, noisy))
    assert twice < 1.2 * alone


@pytest.mark.parametrize("also", [False, True])
def test_runs_of_a_right_board_that_scatter_evenly_make_no_fault(deployment, also):
    """Medians of seven runs are off by seven percent at 15 %: beside another run, too."""
    right, random = _take(deployment, list_faults(deployment)[0], HERE, bias=0.0), (
        np.random.default_rng(6))
    noisy, again = (dataclasses.replace(right, samples=tuple(dataclasses.replace(
        one, run=run, value=round(one.value * math.exp(random.normal(0, 0.15))))
        for run in range(7) for one in right.samples if one.run == 0)) for _ in range(2))
    found = diagnose(deployment, noisy, **({"also": again} if also else {"healthy": again}))
    assert next(iter(found.kinds)) == DECLARED and found.is_unsteady, found.kinds


def test_prices_that_are_off_at_one_clock_are_no_cache(deployment):
    """As predicted at 120 MHz, three percent faster at 16 MHz: prices of a flash are off."""
    first, second = (_take(deployment, list_faults(deployment)[0], clocks, bias=0.0)
                     for clocks in (HERE, SLOW))
    quick = dataclasses.replace(second, samples=tuple(dataclasses.replace(
        one, value=round(0.97 * one.value)) for one in second.samples))
    found = diagnose(deployment, first, also=quick)
    assert next(iter(found.kinds)) == DECLARED and found.kinds["cache off"] < 0.2, found.kinds


def test_a_layer_that_is_off_by_little_beside_a_healthy_run_is_not_chance(deployment):
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.1)
    wrong = dataclasses.replace(right, samples=tuple(dataclasses.replace(
        one, value=round(1.034 * one.value) if one.layer == 4 else one.value)
        for one in right.samples))
    found = diagnose(deployment, wrong, healthy=right)
    assert next(iter(found.kinds)) == ONE_LAYER, found.kinds
    assert found.verdict.fault.name.startswith("layer 4 (conv_2d 1x1) alone, 1.03")
    assert diagnose(deployment, right, healthy=right).kinds[DECLARED] > 0.8


def test_layers_that_stay_far_apart_are_no_sure_verdict(deployment):
    """Each other layer half as long again: no cache does that."""
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.3)
    odd = dataclasses.replace(right, samples=tuple(dataclasses.replace(
        one, value=round(one.value * (1.5 if (one.layer or 0) % 4 == 1 else 1.0)))
        for one in right.samples))
    found = diagnose(deployment, odd)
    assert found.verdict.fault.kind == UNKNOWN or found.stated <= 0.5 + 1e-9, found.kinds
    assert math.isclose(sum(one.probability for one in found.findings), 1.0)


@pytest.mark.parametrize("times", [0.5, 4.0])
def test_the_log_of_another_width_is_called_another_network(times):
    """Layer by layer as work grows with the channels, with an error of each."""
    named = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    ran = np.random.default_rng(5)
    made = predict(named)
    grown = {"depthwise_conv_2d": times}
    layers = tuple(dataclasses.replace(layer, cycles=layer.cycles * math.exp(ran.normal(0.05, .04))
                                       * (grown.get(layer.op, times * (64 * times + 15) / 79)
                                          if 0 < layer.index < 9 else times))
                   for layer in made.layers)
    found = diagnose(named, only_cycles(measure(
        dataclasses.replace(made, layers=layers, cycles=sum(one.cycles for one in layers)),
        model="kws", runtime=named.runtime.identity)))
    assert next(iter(found.kinds)) == NETWORK, found.kinds
    assert found.verdict.fault.name == f"a network {times:g} x as wide"
    assert any(one.fault.kind == BOARD for one in found.findings)
    own = deploy("kws", "nucleo_l4r5zi", runtime="firmware")
    assert own.runtime.is_compiled  # says itself which network it is, and on which core


@pytest.mark.parametrize(("said", "ran", "times"), [("0.25", "0.5", 2), ("0.5", "0.25", 0.5)])
def test_a_published_width_is_told_from_the_one_that_was_named(said, ran, times):
    """With an error of each layer, and of the kernels of depthwise ones."""
    name, board = "mobilenet_v1_{}_32", "stm32n6570_dk"
    told = deploy(name.format(said), board, runtime="tflm-cmsis-nn@2026")
    made = predict(deploy(name.format(ran), board, runtime="tflm-cmsis-nn@2026"))
    off = np.random.default_rng(1).normal(0.05, 0.04, len(made.layers)) + [
        0.1 * (layer.op == "depthwise_conv_2d") for layer in made.layers]
    layers = tuple(dataclasses.replace(layer, cycles=layer.cycles * math.exp(each))
                   for layer, each in zip(made.layers, off, strict=True))
    taken = only_cycles(measure(
        dataclasses.replace(made, layers=layers, cycles=sum(one.cycles for one in layers)),
        model=told.graph.name, runtime=told.runtime.identity, clock_hz=800e6))
    found = diagnose(told, dataclasses.replace(taken, header=dataclasses.replace(
        taken.header, architecture_id=told.graph.architecture_id, model_sha256="")))
    assert next(iter(found.kinds)) == NETWORK, found.kinds
    assert found.verdict.fault.name == f"a network {times:g} x as wide"


@pytest.mark.parametrize(("channels", "times", "least"), [(128, 2, 0.4), (192, 3, 0.9)])
def test_a_log_of_times_names_the_width_that_ran(channels, times, least):
    """No cache and no missing SIMD flag leaves layers as close together as the right width."""
    named = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    made = predict(deploy(ds_cnn("kws", channels), "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026"))
    off = np.random.default_rng(1).normal(0.15, 0.04, len(made.layers))
    taken = measure(made, model="kws", runtime=named.runtime.identity, clocks_hz=(),
                    architecture_id=named.graph.architecture_id, model_sha256="")
    found = diagnose(named, dataclasses.replace(taken, samples=tuple(Sample(
        run=0, layer=layer.index, counter="latency", unit="us", clock=None,
        value=layer.cycles / 120 * math.exp(off[layer.index])) for layer in made.layers)))
    assert found.kinds[NETWORK] == max(found.kinds.values()) > least, found.kinds
    assert found.verdict.fault.name == f"a network {times} x as wide"


def _log_times(named, ran, slower=()):
    """Times of a log as another prediction has them, with an error of each layer."""
    off = np.random.default_rng(1).normal(0.05, 0.04, len(ran.layers))
    taken = measure(ran, model=named.graph.name, runtime=named.runtime.identity, clocks_hz=(),
                    architecture_id=named.graph.architecture_id, model_sha256="")
    return dataclasses.replace(taken, samples=tuple(Sample(
        run=0, layer=layer.index, counter="latency", unit="us", clock=None,
        value=layer.cycles / 120 * math.exp(off[layer.index]) * dict(slower).get(layer.op, 1))
        for layer in ran.layers))


@pytest.mark.parametrize(("times", "name"), [
    (1e3, "1,000 x what was meant: us read as ms"),
    (1e-3, "0.001 x what was meant: ms read as us")])
def test_numbers_in_another_unit_are_named(times, name):
    """A factor of a thousand in all layers is a unit, not another board and not "none of these"."""
    named = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    log = _log_times(named, predict(named))
    found = diagnose(named, dataclasses.replace(log, samples=tuple(
        dataclasses.replace(one, value=one.value * times) for one in log.samples)))
    assert found.kinds["unit"] == max(found.kinds.values()) > 0.9, found.kinds
    assert found.verdict.fault.name.startswith(name) and "unit" in found.remedy
    assert diagnose(named, log).kinds["unit"] < 1e-6


@pytest.mark.parametrize(("scatter", "steady"), [(0.0005, True), (0.1, False)])
def test_runs_that_scatter_are_not_called_right(scatter, steady):
    """Within three deviations of such runs any total is what was expected: they come first."""
    named = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    made = predict(named)
    factors = np.exp(scatter * np.random.default_rng(3).permutation(np.linspace(-1.5, 1.5, 13)))
    taken = measure(made, model="kws", runtime=named.runtime.identity, clocks_hz=(),
                    architecture_id=named.graph.architecture_id, model_sha256="")
    found = diagnose(named, dataclasses.replace(taken, samples=tuple(
        Sample(run=run, layer=layer.index, counter="latency", unit="us", clock=None,
               value=layer.cycles / 120 * factor)
        for run, factor in enumerate(factors) for layer in made.layers)))
    assert next(iter(found.kinds)) == DECLARED
    assert found.is_unsteady != steady and found.repeats_as_declared == steady
    assert (found.remedy == "none needed") is steady
    assert ("make runs repeat first" in found.remedy) is not steady


@pytest.mark.parametrize(("op", "times", "name"), [
    ("conv_2d", 3, "every conv_2d alone"), ("depthwise_conv_2d", 3, "depthwise_conv_2d alone")])
def test_one_slow_operator_is_no_missing_flag(op, times, name):
    """What a build without SIMD executes is counted: it does not slow one operator threefold."""
    named = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    found = diagnose(named, _log_times(named, predict(named), {op: times}.items()))
    assert found.kinds[ONE_OPERATOR] == max(found.kinds.values()) > 0.6, found.kinds
    assert found.verdict.fault.name.startswith(name)


def test_a_lone_operators_prior_is_that_of_its_kind_shared_by_all_there_are():
    """Not by those that are off as well: a second one leaves the first its share."""
    kinds = [Fault(kind=kind, name=kind, remedy="") for kind in (DECLARED, UNKNOWN, "clock")]
    ones = [Fault(kind=ONE_OPERATOR, name=name, remedy="", places=4) for name in ("a", "b")]
    alone, both = prior_of((*kinds, ones[0])), prior_of((*kinds, *ones))
    assert alone[3] == pytest.approx(both[3]) and alone[2] == pytest.approx(both[2])
    assert prior_of((*kinds, *ones), {ONE_OPERATOR: 0.4})[3] == pytest.approx(0.1)


def test_a_build_of_a_stated_release_is_surer_than_one_nobody_named():
    """Of CMSIS-NN's counted kernels; those of a closed library, or of an open log, are not."""
    named = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    closed = deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@7.3.0")
    for deployment, stated, errors in (
            (named, "tflm-cmsis-nn@2026", COMPILED), (named, "", REBUILT), (named, "tflm", REBUILT),
            (closed, "x-cube-ai@7.3.0", REBUILT)):
        [simd] = [one for one in list_faults(deployment, stated=stated) if one.kind == "SIMD"]
        assert simd.errors == errors


@pytest.mark.parametrize("side", [64, 128])
def test_a_log_of_times_names_the_image_that_ran(side):
    named = deploy("vww", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    ran = predict(named.replace({"network.resolution": f"{side}x{side}"}))
    found = diagnose(named, _log_times(named, ran))
    assert found.kinds[NETWORK] == max(found.kinds.values()), found.kinds
    assert found.verdict.fault.name == f"a network for {side} x {side} pixels"


def test_a_log_that_does_not_say_its_library_may_be_of_another():
    """Of a release with other kernels, which was "another board, 99 %"."""
    named = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn")
    ran = deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026")
    log = only_cycles(measure(predict(ran), factor=0.7, model="kws", runtime="tflm"))
    found = diagnose(named, log)
    assert found.kinds[RIVAL] > 0.9, found.kinds
    assert {"kernels of tflm-cmsis-nn@2026", "kernels of tflm-reference@2026"} <= {
        one.fault.name for one in found.findings}
    stated = dataclasses.replace(log.header, runtime=ran.runtime.identity)
    assert RIVAL not in diagnose(ran, dataclasses.replace(log, header=stated)).kinds
    bare = dataclasses.replace(log.header, runtime="tflm-cmsis-nn")  # of a release not stated
    slow = [dataclasses.replace(one, value=3 * one.value) if one.layer in (0, 2, 4, 6, 8) else one
            for one in log.samples]
    found = diagnose(named, dataclasses.replace(log, header=bare, samples=tuple(slow)))
    assert next(iter(found.kinds)) == ONE_OPERATOR, found.kinds
    assert "every conv_2d alone, " in (name := found.verdict.fault.name), name
    assert name.endswith((", kernels of tflm-cmsis-nn@2026", ", kernels of tflm-cmsis-nn@2023"))


def test_clocks_a_part_cannot_have_are_no_candidates():
    clocks = [fault.name for fault in list_faults(deploy("kws", "esp32s3_devkitc"))
              if fault.kind == "clock"]
    assert clocks == [f"cpu at {mhz} MHz" for mhz in (10, 20, 40, 80, 160)]


def test_priors_are_the_users(deployment):
    faults = list_faults(deployment)
    priors = prior_of(faults, {DECLARED: 0.9, "clock": 0.05})
    assert priors[0] == pytest.approx(0.9) and sum(priors) == pytest.approx(1.0)
    assert sum(one for one, fault in zip(priors, faults, strict=True)
               if fault.kind == "clock") == pytest.approx(0.05)
    right = _take(deployment, faults[0], HERE, bias=0.1)
    assert diagnose(deployment, right, priors={DECLARED: 0.9}).stated > diagnose(
        deployment, right).stated
    with pytest.raises(UsageError, match="--prior caches: is no kind that is possible here"):
        diagnose(deployment, right, priors={"caches": 0.9})
    assert parse_priors(["as declared=0.9", "SIMD=.05"]) == {"as declared": 0.9, "SIMD": 0.05}
    for wrong in (["SIMD"], ["SIMD=1.5"], ["SIMD=0"], ["SIMD=0.0"], ["a=0.5", "b=0.5"]):
        with pytest.raises(UsageError, match="--prior"):
            parse_priors(wrong)


def test_what_is_about_as_likely_is_said_not_to_be_distinguishable(deployment):
    found = diagnose(deployment, _take(deployment, list_faults(deployment)[0], HERE, bias=0.05))
    assert found.verdict.fault.kind == DECLARED
    assert "another master on the bus, 0.1 cycles an access" in found.not_distinguishable
    assert "built without optimisation" not in found.not_distinguishable


def test_a_second_measurement_of_other_kernels_is_refused(deployment, tmp_path):
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.0)
    write_measurement(tmp_path / "a", right)
    write_measurement(tmp_path / "b", dataclasses.replace(
        right, header=dataclasses.replace(right.header, runtime="tflm-cmsis-nn@1.0")))
    write_measurement(tmp_path / "c", dataclasses.replace(
        right, header=dataclasses.replace(right.header, board="nucleo_u575zi_q")))
    for also, says in (("a", "is the measurement to diagnose itself"), ("b", "runtime is tflm"),
                       ("c", "board is nucleo_u575zi_q")):
        with pytest.raises(NotTheSameError, match=f"--also .*{says}"):
            ask(tmp_path / "a", also=tmp_path / also)


def test_a_second_measurement_that_states_no_core_clock_is_named(deployment, tmp_path):
    right = _take(deployment, list_faults(deployment)[0], HERE, bias=0.0)
    write_measurement(tmp_path / "a", right)
    write_measurement(tmp_path / "b", dataclasses.replace(
        right, header=dataclasses.replace(right.header, clocks_hz=(("timer", 48e6),))))
    found = ask(tmp_path / "a", also=tmp_path / "b")
    assert any("/b: clock cpu: not stated: beside the first, by its ticks, the core is taken to "
               "run at 48 MHz, by itself at 120 MHz; the log's ticks are of 48 MHz" in one
               for one in found.remarks)  # as import, and a diagnosis of it alone, take it


def _log_at(deployment, hertz, clocks_hz, slower=1.0):
    """Two runs of times at a clock, with an error of each layer, of slower depthwise layers."""
    made = predict(deployment.replace({CLOCK: hertz}))
    off = np.exp(np.random.default_rng(1).normal(0.05, 0.03, len(made.layers)))
    taken = measure(made, model="kws", runtime=deployment.runtime.identity, clocks_hz=clocks_hz,
                    board=deployment.board.name, architecture_id=deployment.graph.architecture_id)
    return dataclasses.replace(taken, samples=tuple(Sample(
        run=run, layer=layer.index, counter="latency", unit="us", clock=None,
        value=layer.cycles / hertz * 1e6 * off[layer.index] * (
            slower if layer.op == "depthwise_conv_2d" else 1.0))
        for run in range(2) for layer in made.layers))


@pytest.mark.parametrize("stated", [(("timer", 80e6),), (("cpu", 160e6), ("timer", 80e6))])
@pytest.mark.parametrize("times", [1.0, 1.5])
def test_a_second_log_at_another_clock_is_no_fault(stated, times):
    """Of a healthy board at half the clock: not stated, or stated wrongly, or with a slow operator.

    The least sure effect, a flash that hides nothing, was "100 %".
    """
    named = deploy("kws", "nucleo_u575zi_q", runtime="tflm-cmsis-nn@2026")
    found = diagnose(named, _log_at(named, 160e6, (("timer", 160e6),)),
                     also=_log_at(named, 80e6, stated, times))
    assert found.verdict.fault.kind == DECLARED, found.kinds
    sure = len(stated) == 1 and times == 1.0
    assert found.stated > 0.85 if sure else found.stated < 0.651 and found.remarks


def test_a_fault_of_the_second_log_alone_is_named_as_its_own():
    """It was "another board", which explains how they differ and leaves the first's layers apart.

    Nor does a clock that is wrong in both, which changes all layers alike, explain a single one.
    """
    named = deploy("kws", "nucleo_u575zi_q", runtime="tflm-cmsis-nn@2026")
    first = _log_at(named, 80e6, (("cpu", 80e6), ("timer", 80e6)))
    slow = _log_at(named, 160e6, (("cpu", 160e6), ("timer", 160e6)), 2.0)
    single = dataclasses.replace(slow, samples=tuple(dataclasses.replace(
        one, value=one.value * (3 if one.layer == 4 else 0.5 if one.layer in (1, 3, 5, 7) else 1))
        for one in slow.samples))
    for second, kind in ((slow, ONE_OPERATOR), (single, ONE_LAYER)):
        found = diagnose(named.replace({CLOCK: 80e6}), first, also=second)
        assert found.verdict.fault.kind == DECLARED and found.stated < 0.651, found.kinds
        assert found.second.verdict.fault.kind == kind and found.second.stated > 0.8
        name = found.second.answer
        assert f"; the second measurement: {name}, " in found.remarks[0]
        assert name.partition(" alone")[0] in found.remedy and "calibrate" not in found.remedy


def test_an_operator_that_sets_layers_apart_is_looked_at_before_prices_are_learnt():
    """As declared is likelier yet, but learnt prices would hide what one operator is off by."""
    named = deploy("kws", "nucleo_u575zi_q", runtime="tflm-cmsis-nn@2026")
    clocks = (("cpu", 160e6), ("timer", 160e6))
    found, right = (diagnose(named, _log_at(named, 160e6, clocks, times)) for times in (1.4, 1.0))
    assert found.verdict.fault.kind == right.verdict.fault.kind == DECLARED
    assert "look at depthwise_conv_2d (measured / predicted 1.39 x" in found.remedy
    assert "twin calibrate" not in found.remedy and "look at" not in right.remedy


@pytest.mark.parametrize(("width", "hertz", "slower", "again", "kind"), [
    (64, 160e6, 2.0, 1.0, ONE_OPERATOR), (32, 160e6, 1.0, 1.0, NETWORK),
    (64, 160e6, 2.0, 2.0, ONE_OPERATOR), (64, 80e6, 1.0, 1.0, "clock")])
def test_a_second_log_without_the_fault_leaves_the_firsts_verdict(width, hertz, slower, again,
                                                                  kind):
    """No wrong clock, which explains no layer, may win by it; what explains both logs may.

    It was "cpu at 96 MHz" and "a c906", without a warning.
    """
    named = deploy("kws", "nucleo_u575zi_q", runtime="tflm-cmsis-nn@2026")
    ran = deploy(ds_cnn("kws", width), "nucleo_u575zi_q", runtime="tflm-cmsis-nn@2026")
    log = _log_at(ran, hertz, (("cpu", 160e6), ("timer", hertz)), slower)
    found = diagnose(named, dataclasses.replace(log, header=dataclasses.replace(
        log.header, architecture_id=named.graph.architecture_id, model_sha256="")),
        also=_log_at(named, 80e6, (("cpu", 80e6), ("timer", 80e6)), again))
    assert found.verdict.fault.kind == kind == next(iter(found.kinds)), found.kinds
    if slower == again and width == 64:
        assert found.stated > 0.9 and not found.remarks, found.remarks
    else:
        assert 0.5 < found.stated < 0.651, found.kinds
        assert found.remarks[0].startswith("the second measurement contradicts the first: layer ")


def test_a_second_measurement_taken_alike_that_is_slower_is_weighed_beside_the_first(deployment):
    """A right board, then one with a cache off, which adds less than a third: nothing was said."""
    declared, off = (next(one for one in list_faults(deployment) if one.name == name)
                     for name in ("as declared", "art_d off"))
    right, slow = (dataclasses.replace(one, samples=(*one.samples, *(dataclasses.replace(
        sample, run=1) for sample in one.samples))) for one in (
            _take(deployment, fault, HERE, bias=0.02) for fault in (declared, off)))
    found = diagnose(deployment, right, also=slow)
    assert 1.1 < slow.percentile("cpu_cycles", 50) / right.percentile("cpu_cycles", 50) < 1.3
    assert found.verdict.fault.kind == DECLARED
    assert found.second.answer == "art_d off" and found.second.stated > 0.5, found.second.kinds
    assert found.second.repeats == found.repeats == 0
    assert found.remarks[0].endswith(found.beside) and "art_d off" in found.beside
    assert not diagnose(deployment, right, also=right).remarks
