"""Diagnosis: planted faults are found among the others, and nothing is claimed without evidence."""

import dataclasses
import functools
import math
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
from made_measurements import measure

from benchmarks.diagnosis.planted import Bench, list_plants
from calibration.measurement.sample import Sample
from twin.attribution.diagnosis import diagnosis as weighing
from twin.attribution.diagnosis.error_model import BINARY
from twin.attribution.diagnosis.fault_effects import Forecasts
from twin.attribution.diagnosis.fault_list import list_faults
from twin.attribution.diagnosis.faults import (
    COUNTER,
    DECLARED,
    JOINED,
    ONE_LAYER,
    UNKNOWN,
    Fault,
    join_faults,
    prior_of,
)
from twin.attribution.diagnosis.finding import Diagnosis, Finding, say_ratio
from twin.attribution.diagnosis.likelihood import (
    FREEDOM,
    log_direction,
    log_pattern,
    log_shape,
    log_student,
    log_total,
)
from twin.attribution.diagnosis.marks import read_marks
from twin.attribution.diagnosis.pattern import make_pattern
from twin.attribution.diagnosis.setup import (
    deploy_measured,
    find_model,
    is_stand_in,
    measured_runtime,
    read_build,
    unread_build,
)
from twin.attribution.diagnosis.telling import choose_rivals, tell_apart, tell_otherwise
from twin.attribution.diagnosis.temper import Temper, choose_temper
from twin.attribution.document import diagnosis_document
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.deployment.deployment import deploy
from twin.errors import NotTheSameError, UsageError
from twin.prediction.prediction import predict


@functools.cache
def forecasts_of(network, board, runtime):
    """What was foreseen of a deployment, by all tests of this file."""
    return Forecasts()


def diagnose(deployment, measurement, **more):
    """Diagnose at stated prices: faults here are planted in boards of these."""
    kept = forecasts_of(deployment.graph.sha256, repr(deployment.board),
                        deployment.runtime.identity)
    return weighing.diagnose(deployment, measurement,
                             **{"calibration": "none", "forecasts": kept} | more)


needs_boards = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or find_spec("unicorn") is None,
    reason="arm-none-eabi-gcc and unicorn are needed")


@pytest.fixture(scope="module")
def deployment():
    return deploy("kws", "nucleo_h7a3zi_q", runtime="cmsis-nn")


def measure_fault(deployment, fault, *, bias=0.0, seed=0, **header):
    """What a board with a fault would send, if the model were right but for a seeded error."""
    random = np.random.default_rng(seed)
    made = predict(fault.deployment or deployment)
    slow = math.exp(fault.slowdown)
    layers = tuple(dataclasses.replace(
        layer, cycles=layer.cycles * slow * math.exp(bias + random.normal(0, 0.03)))
        for layer in made.layers)
    whole = dataclasses.replace(made, layers=layers, cycles=sum(one.cycles for one in layers))
    executed = slow * sum(layer.instructions for layer in made.layers)
    clocks = {clock.name: clock.frequency_hz for clock in made.deployment.board.clocks}
    told = {"model": "kws", "runtime": "cmsis-nn@6.0", "clocks_hz": tuple(clocks.items()),
            "architecture_id": deployment.graph.architecture_id,
            "model_sha256": deployment.graph.sha256} | header
    return measure(whole, whole={
        "block_instructions": executed,
        "block_dcache_misses": float(sum(layer.misses for layer in made.layers))}, **told)


@pytest.mark.parametrize("bias", [-0.2, 0.25])
def test_each_fault_is_found_where_the_model_is_otherwise_right(deployment, bias):
    told_apart = 0
    for seed, fault in enumerate(list_faults(deployment)):
        if fault.kind in ("clock", "throttling", "interrupts", UNKNOWN):
            continue  # those are told by marks, below
        if fault.kind in ("wait states", "flash width", "prefetch", "load", COUNTER):
            continue  # those need a healthy measurement, below
        found = diagnose(deployment, measure_fault(deployment, fault, bias=bias, seed=seed))
        if fault.name in found.indistinct:
            assert found.kinds[DECLARED] > 0.5  # no fault is claimed for what changes nothing
            continue
        told_apart += 1
        if fault.kind == "SIMD":  # 1.3 to 1.9 times slower: within what stated prices are off by
            assert found.verdict.fault.kind in (DECLARED, "SIMD")
            assert found.kinds[DECLARED] + found.kinds["SIMD"] > 0.6  # of thirteen kinds
            right = measure_fault(deployment, list_faults(deployment)[0], bias=bias, seed=99)
            found = diagnose(deployment, measure_fault(deployment, fault, bias=bias, seed=seed),
                             healthy=right)
        if fault.kind != "placement":
            assert next(iter(found.kinds)) == fault.kind, (fault.name, found.kinds)
        else:
            assert found.kinds["placement"] > 0.2, (fault.name, found.kinds)
    assert told_apart >= 6


@pytest.mark.parametrize(("factors", "kind", "name"), [
    ({}, COUNTER, "everything counted twice"),
    ({4: 5.0}, ONE_LAYER, "layer 4 (conv_2d 1x1) alone, "),
    ({4: 0.5}, ONE_LAYER, "layer 4 (conv_2d 1x1) alone, 0.")])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a healthy run"])
def test_one_factor_and_one_layer_are_told_from_faults_of_the_set_up(
        deployment, factors, kind, name, beside):
    """A cache or a flag changes each layer by another factor, never all by one or one alone."""
    declared = list_faults(deployment)[0]
    right = only_cycles(measure_fault(deployment, declared, seed=1))
    wrong = dataclasses.replace(right, samples=tuple(
        dataclasses.replace(one, value=round(one.value * (
            factors.get(one.layer, 1.0) if factors else 2.0))) for one in right.samples))
    found = diagnose(deployment, wrong, healthy=right if beside else None)
    if beside or factors == {4: 5.0}:
        assert next(iter(found.kinds)) == kind and found.kinds[kind] > 0.8
        assert found.verdict.fault.name.startswith(name)
    else:  # prices may be off by as much
        assert any(one.fault.kind == kind for one in found.findings)
        assert found.remedy != "none needed"


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a healthy run"])
@pytest.mark.parametrize(("counters", "name"), [
    (None, "everything counted twice"), ({"cpu_cycles"}, "cycles alone counted twice")])
def test_runs_added_up_are_told_from_a_cycle_counter_at_another_rate(
        deployment, counters, name, beside):
    """Runs added up double instructions and misses, too; a prescaler leaves them."""
    right = measure_fault(deployment, list_faults(deployment)[0], seed=1)
    wrong = dataclasses.replace(right, samples=tuple(dataclasses.replace(
        one, value=one.value * (2 if counters is None or one.counter in counters else 1))
        for one in right.samples))
    found = diagnose(deployment, wrong, healthy=right if beside else None)
    counts = [one for one in found.findings if one.fault.kind == COUNTER]
    assert counts[0].fault.name == name
    if beside:
        assert next(iter(found.kinds)) == COUNTER and found.kinds[COUNTER] > 0.8, found.kinds
        doubled = "2.00" if counters is None else "1.00"
        assert f"{doubled} x those known, {doubled} x expected" in " ".join(counts[0].evidence)
    else:
        assert counts[0].probability > 0.01, found.kinds
    assert sum(one.fault.kind == UNKNOWN for one in found.findings) == 1
    assert math.isclose(sum(one.probability for one in found.findings), 1.0)


def test_what_tells_is_said_of_the_two_likeliest():
    """A cache that is off waits for flash less at a slower clock; a counter counts on."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    forecasts = Forecasts()
    doubled = measure(predict(deployment), factor=2.0, model="kws", runtime="cmsis-nn@6.0")
    found = diagnose(deployment, only_cycles(doubled), forecasts=forecasts)
    faults = {one.fault.name: one.fault for one in found.findings}

    def rank(**chances):
        return choose_rivals(dataclasses.replace(found, findings=tuple(sorted((
            dataclasses.replace(one, probability=chances.get(one.fault.name.replace(" ", "_"), 0.0))
            for one in found.findings), key=lambda one: -one.probability))))

    simd = next(name for name, fault in faults.items() if fault.kind == "SIMD")
    likely = {"art_i_off": 0.66, simd.replace(" ", "_"): 0.04}
    rivals = rank(everything_counted_twice=0.11, none_of_these=0.1, **likely)
    assert [one.name for one in rivals] == ["art_i off", "everything counted twice"]
    base = forecasts.predict((DECLARED, "warm"), deployment, None, "warm")
    pattern = make_pattern(side_of_prediction(base), side_of_measurement(only_cycles(doubled)),
                           deployment)
    said = tell_apart(rivals, deployment, forecasts, None, base, pattern)
    cache, counter = (float(text.split(" x ")[0].split()[-1]) for text in (
        said.split("if art_i off")[0], said.split("art_i off, ")[1]))
    assert cache < 0.7 and 0.9 < counter < 1.1 and "if everything counted twice" in said
    assert rank(**{
        next(name for name, fault in faults.items() if fault.kind == "interrupts").replace(
            " ", "_"): 0.2}, **likely) == []  # no clock tells interrupts


@pytest.mark.parametrize(("ratio", "said"), [
    (1.0046, "1.005"), (0.1, "0.100"), (0.0999, "0.0999"), (0.00001234, "1.23e-05")])
def test_a_ratio_is_said_so_that_it_is_never_nought(ratio, said):
    assert say_ratio(ratio) == said


def test_a_clock_nobody_timed_is_told_by_its_wait_states():
    """48 MHz where 120 are stated: the flash waits for 2 cycles in place of 5."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    declared = list_faults(deployment)[0]
    slow = dataclasses.replace(declared, deployment=deployment.replace(
        {"clocks.cpu.frequency_hz": 48e6, "supply.voltage_scale": "range1_boost"}))
    right, wrong = (only_cycles(measure_fault(deployment, fault, clocks_hz=(("cpu", 120e6),)))
                    for fault in (declared, slow))
    found = diagnose(deployment, wrong, healthy=right)
    assert next(iter(found.kinds)) == "clock" and "host's clock" in found.remedy
    assert {"cycles per layer", "clock as the header states it",
            "a measurement known to be right"} <= set(found.rests_on)
    assert diagnosis_document(found)["left_out"] == found.left_out != ""
    set_to = dataclasses.replace(wrong, header=dataclasses.replace(
        wrong.header, kind="simulated", clocks_hz=(("cpu", 48e6),),
        environment=(("port", "unicorn"),)))  # an emulator that was set to another clock
    assert diagnose(deployment, set_to).kinds["clock"] > 0.5


def test_one_factor_to_a_thousandth_is_no_cache(deployment):
    """Prediction and board agree, as on an emulated board: caches off would vary by layer."""
    exact = measure(predict(deployment), factor=2.0, model="kws", runtime="cmsis-nn@6.0",
                    clocks_hz=(("cpu", 280e6),), model_sha256=deployment.graph.sha256,
                    architecture_id=deployment.graph.architecture_id)
    found = diagnose(deployment, only_cycles(exact))
    assert next(iter(found.kinds)) == COUNTER and found.verdict.fault.name.endswith("twice")


def test_two_changes_of_memories_are_predicted_together():
    """Weights that left the flash do not wait for it, whatever its width."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    faults = {fault.name: fault for fault in list_faults(deployment)}
    both = deployment.replace(dict((*faults["weights in sram"].changes,
                                    *faults["art_i off"].changes)))
    right = measure_fault(deployment, faults[DECLARED], seed=3)
    found = diagnose(deployment, measure_fault(deployment, dataclasses.replace(
        faults[DECLARED], deployment=both), seed=3), healthy=right)
    assert any(weighing.TOGETHER in one.evidence for one in found.findings), found.kinds


def test_time_by_a_clock_nobody_checked_may_be_of_another_clock(deployment):
    """Every layer twice as long in time, the clock of 280 MHz only stated."""
    declared = only_cycles(measure_fault(deployment, list_faults(deployment)[0], seed=1))
    hertz = dict(declared.header.clocks_hz)["cpu"]
    timed = dataclasses.replace(declared, samples=tuple(dataclasses.replace(
        one, counter="latency", unit="us", clock=None, value=2.0 * one.value / hertz * 1e6)
        for one in declared.samples))
    assert read_marks(timed, deployment).clock_log is None
    found = diagnose(deployment, timed)
    assert found.kinds["clock"] > 0.1 > found.kinds["placement"]  # one of some; none before
    assert any("not checked" in text for text in found.observations)
    assert "stated, and set against no other" in diagnose(deployment, declared).observations[0]


def only_cycles(measurement):
    """The cycles of a measurement, as a core without further counters sends them."""
    return dataclasses.replace(measurement, samples=tuple(
        one for one in measurement.samples if one.counter == "cpu_cycles"))


@pytest.mark.parametrize(("counted", "known", "kind"), [
    (2000, None, "interrupts"), (2000, 3, "interrupts"), (2000, 2000, DECLARED),
    (3, None, DECLARED)])
def test_counted_interrupts_are_evidence_for_themselves(deployment, counted, known, kind):
    """At 40 cycles each two thousand take 1.5 % of kws at least; a few are what any system has."""
    def told(measurement, number):
        return dataclasses.replace(measurement, samples=(*measurement.samples, Sample(
            run=0, layer=None, counter="interrupts", value=number, unit="events", clock=None)))

    declared = list_faults(deployment)[0]
    right = only_cycles(measure_fault(deployment, declared, seed=1))
    wrong = right if kind == DECLARED else dataclasses.replace(right, samples=tuple(
        dataclasses.replace(one, value=round(one.value * 1.06)) for one in right.samples))
    found = diagnose(deployment, told(wrong, counted),
                     healthy=None if known is None else told(right, known))
    assert next(iter(found.kinds)) == kind, found.kinds
    assert any(text.startswith(f"{counted:,} interrupts a run") for text in found.observations)


def test_slower_flash_is_found_beside_a_healthy_measurement():
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    faults = {fault.name: fault for fault in list_faults(deployment)}
    healthy = measure_fault(deployment, faults[DECLARED], seed=1)
    slow = measure_fault(deployment, faults["flash at 13 wait states"], seed=1)
    found = diagnose(deployment, slow, healthy=healthy)
    assert found.verdict.fault.kind == "wait states" and "latency" in found.remedy
    assert found.healthy and not found.repeats_as_declared
    same = diagnose(deployment, healthy, healthy=healthy)
    assert same.verdict.fault.kind == DECLARED and same.remedy == "none needed"


def test_no_remedy_is_only_none_needed_where_runs_repeat_what_was_expected(deployment):
    off = diagnose(deployment, measure_fault(deployment, list_faults(deployment)[0], bias=0.05))
    assert off.verdict.fault.kind == DECLARED and not off.repeats_as_declared
    assert "none needed" not in off.remedy and "--healthy" in off.remedy


def test_two_faults_at_once_are_named_by_their_pair(deployment):
    first, second = (next(fault for fault in list_faults(deployment) if fault.name == name)
                     for name in ("built without optimisation", "all caches off"))
    pair = join_faults(first, second)
    assert pair.kind == "-O0 and cache off" and pair.rebuilds and pair.slowdown == first.slowdown
    right = measure_fault(deployment, list_faults(deployment)[0], seed=2)
    both = measure_fault(deployment, pair, seed=2)
    cycles = dataclasses.replace(both, samples=tuple(
        one for one in both.samples if one.counter == "cpu_cycles"))
    found = diagnose(deployment, cycles, healthy=right)
    assert any(JOINED in kind for kind in found.kinds)
    assert found.kinds[DECLARED] < 0.01


def test_the_size_of_a_fault_is_chosen_beside_the_other():
    """Alone the largest explains most of what the first one did; beside it the true one does."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    faults = {fault.name: fault for fault in list_faults(deployment)}
    slow = next(fault for fault in faults.values() if fault.kind == "SIMD")
    waiting = slow.deployment.replace({"memories.flash.wait_states": 9})
    both = measure_fault(deployment, dataclasses.replace(slow, deployment=waiting), seed=4)
    found = diagnose(deployment, both, healthy=measure_fault(deployment, faults[DECLARED], seed=4))
    pair = next(one for one in found.findings if one.fault.kind == "SIMD and wait states")
    assert "9 wait states" in pair.fault.name
    assert pair.probability > 3 * pair.prior
    assert not any(JOINED in name for name in found.indistinct)
    assert weighing.ADDED in pair.evidence
    fits = [one.evidence[0] for one in found.findings]
    whole = [fit for fit in fits if "." not in fit.split("apart by ")[1]]
    assert len(set(whole)) == len(whole) < len(fits)  # what ties has two more digits
    missing = {layer.index for layer in predict(deployment).layers} - set(found.layers)
    assert all(str(one) in found.left_out for one in missing)
    assert len({one.fault.kind for one in found.findings if JOINED in one.fault.kind}) == sum(
        JOINED in one.fault.kind for one in found.findings)  # one stands for each two kinds


def test_a_tempered_pattern_says_less_and_marks_say_what_they_did():
    odds = {}
    for share in (1.0, 0.35):
        for name, shapes, totals, marks in (("shape", (0, 4), (0, 0), (0, 0)),
                                            ("total", (0, 0), (0, 4), (0, 0)),
                                            ("marks", (0, 0), (0, 0), (0, 4))):
            first, second = Temper(shape=share).chances((0.5, 0.5), shapes, totals, marks)
            odds[name, share] = math.log(second / first)
    assert odds == pytest.approx({("shape", 1.0): 4, ("shape", 0.35): 1.4,
                                  ("total", 1.0): 4, ("total", 0.35): 4,
                                  ("marks", 1.0): 4, ("marks", 0.35): 4})
    # the total is one figure: without a healthy measurement it is told in full
    assert choose_temper(BINARY, healthy=False).total == 1 > choose_temper(
        BINARY, healthy=False).shape


def test_shape_and_total_are_the_pattern_where_nothing_is_far_off():
    """By the chain rule: p(pattern) = p(total) p(pattern given total), for normal errors."""
    random = np.random.default_rng(2)
    half = random.normal(size=(5, 5))
    covariance, own = half @ half.T, np.full(5, 1e-12)
    residual, measured = random.normal(size=5), random.uniform(1, 9, 5)
    whole = covariance + np.diag(own)
    assert log_shape(residual, covariance, own, measured) + log_total(
        residual, whole, measured) == pytest.approx(log_pattern(residual, covariance, own)[0])


def test_an_effect_of_the_other_sign_is_no_explanation():
    measured, moved = np.ones(4), np.full(4, 0.3)
    effect = np.full((4, 4), 0.1**2)
    covariance = effect + 0.02**2 * np.eye(4)
    as_foreseen = log_direction(np.zeros(4), moved, effect, covariance, measured)
    faster = log_direction(np.full(4, -1.5), moved, effect, covariance, measured)
    assert as_foreseen > -0.01 and faster < -15
    assert log_direction(np.full(4, 1.5), -moved, effect, covariance, measured) == faster


@pytest.mark.parametrize("stands_in", [False, True])
def test_faster_than_any_listed_state_is_none_of_these(deployment, stands_in):
    fast = measure_fault(deployment, list_faults(deployment)[0], bias=math.log(0.25))
    cycles = dataclasses.replace(fast, samples=tuple(
        one for one in fast.samples if one.counter == "cpu_cycles"))
    found = diagnose(deployment, cycles, stands_in=stands_in)
    assert found.verdict.fault.kind == UNKNOWN and found.kinds[UNKNOWN] > 0.9
    assert "no listed fault makes it so fast" in found.remedy and "library" in found.remedy
    slower = {"SIMD", "-O0", "reference kernels", "cache off"}
    assert sum(chance for kind, chance in found.kinds.items()
               if slower & set(kind.split(JOINED))) < 0.01


def test_weights_in_sram_name_the_measurement_that_tells():
    """Not waited for, flash costs nothing: at a clock without wait states both take the same."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    faults = {fault.name: fault for fault in list_faults(deployment)}
    steps = []
    found = diagnose(deployment, measure_fault(deployment, faults["weights in sram"], seed=5),
                     on_progress=lambda *step: steps.append(step))
    assert found.kinds[DECLARED] + found.kinds["placement"] > 0.5
    assert found.kinds["placement"] > 0.04  # as likely as before, at least
    assert "MHz" in found.telling or "--healthy" in found.telling
    done, total, names = zip(*steps, strict=True)
    assert names[0] == DECLARED and "weights in sram" in names and done[-1] == total[-1] > 20


def test_levels_the_header_rules_out_are_no_faults(deployment):
    own = deploy("kws", "nucleo_h7a3zi_q", runtime="firmware@Os")
    right = list_faults(deployment)[0]
    others = {"-O0", *(f"built with -{level}" for level in ("O1", "O3", "Os"))}
    for level, out in (("-Os", {"optimisation", "-O0"}), ("-O2", others),
                       ("-O0", {"optimisation"})):
        told = measure_fault(deployment, right, runtime="firmware",
                             environment=(("compiler", f"gcc 12.2.1 {level}"),))
        assert read_build(own, told) == out


def test_images_of_the_benchmark_have_names_of_their_own(tmp_path):
    plants = list_plants(Bench(network="kws", board="nucleo_h7a3zi_q", folder=tmp_path))
    built = {(one.optimisation, one.defines, one.reference, one.weights, one.arena): one.image
             for one in plants}
    assert len(set(built.values())) == len(built)


def test_layers_far_off_grow_and_the_others_stay():
    covariance, own = 0.01 * np.eye(6) + 0.01, np.full(6, 1e-4)
    residual = np.array([0.0, 0.01, -0.01, 0.0, 1.5, 0.01])
    likely, grown = log_pattern(residual, covariance, own)
    assert grown[4] > 2 * grown[:4].max() and math.isfinite(likely)
    closer, _ = log_pattern(residual * [1, 1, 1, 1, 0.1, 1], covariance, own)
    assert closer > likely


def test_the_level_of_optimisation_is_read_from_the_header(deployment):
    right = list_faults(deployment)[0]
    small = measure_fault(deployment, right, runtime="firmware",
                          environment=(("compiler", "gcc 12.2.1 -Os"),))
    assert measured_runtime(small) == "firmware@Os"
    unread = measure_fault(deployment, right, runtime="firmware",
                           environment=(("compiler", "gcc 12.2.1 -O0"),))
    own = deploy("kws", "nucleo_h7a3zi_q", runtime="firmware")
    assert measured_runtime(unread) == "firmware" and "-O0" in unread_build(own, unread)
    assert unread_build(own, small) == "" == unread_build(deployment, unread)


def test_probabilities_sum_to_one_and_priors_too(deployment):
    faults = list_faults(deployment)
    assert sum(prior_of(faults)) == pytest.approx(1)
    assert [faults[0].kind, faults[-1].kind] == [DECLARED, UNKNOWN]
    found = diagnose(deployment, measure_fault(deployment, faults[0]))
    assert sum(finding.probability for finding in found.findings) == pytest.approx(1)
    assert sum(found.kinds.values()) == pytest.approx(1)
    document = diagnosis_document(found)
    assert document["verdict"] == DECLARED and len(document["faults"]) == len(found.findings)


def test_a_wrong_clock_is_told_by_the_header_and_by_the_hosts_clock(deployment):
    right = list_faults(deployment)[0]
    half = diagnose(deployment, measure_fault(deployment, right, clocks_hz=(("cpu", 140e6),)))
    assert next(iter(half.kinds)) == "clock" and "140 MHz" in half.verdict.fault.name
    believed = measure_fault(deployment, right,
                             environment=(("clock_by_host", "0.25000 +- 0.00100"),))
    assert "70 MHz" in diagnose(deployment, believed).verdict.fault.name


def test_an_emulators_clock_is_its_own(deployment):
    """What its header says it runs at is not held against the board it stands for."""
    right = list_faults(deployment)[0]
    measured = measure_fault(deployment, right, kind="simulated", clocks_hz=(("cpu", 25e6),))
    found, _ = deploy_measured(measured)
    assert found.board.clock("cpu").frequency_hz == 25e6
    for asked in (deployment, found):
        diagnosis = diagnose(asked, measured)
        assert diagnosis.verdict.fault.kind == DECLARED
        assert not {"clock", "throttling"} & set(diagnosis.kinds) and not diagnosis.observations
    # one a host timed is judged
    timed = measure_fault(deployment, right, kind="simulated",
                          environment=(("clock_by_host", "0.25000 +- 0.00100"),))
    assert diagnose(deployment, timed).verdict.fault.kind == "clock"


def test_interrupts_an_emulator_counted_as_none_are_no_explanation(deployment):
    measured = measure_fault(deployment, list_faults(deployment)[0], kind="simulated")
    counted = dataclasses.replace(measured, samples=(*measured.samples, *(
        Sample(run=run, counter="interrupts", unit="events", value=0.0) for run in range(3))))
    assert "interrupts" in diagnose(deployment, measured).kinds
    assert "interrupts" not in diagnose(deployment, counted).kinds


def test_nothing_listed_explains_layers_off_in_every_way(deployment):
    base = measure_fault(deployment, list_faults(deployment)[0])
    random = np.random.default_rng(3)
    factors = {index: math.exp(random.normal(0, 1.3)) for index in base.layers}
    wild = dataclasses.replace(base, samples=tuple(
        dataclasses.replace(sample, value=sample.value * factors.get(sample.layer, 1.0))
        if sample.counter == "cpu_cycles" and sample.layer is not None else sample
        for sample in base.samples))
    assert next(iter(diagnose(deployment, wild).kinds)) == UNKNOWN


def test_without_layers_and_counters_little_is_claimed(deployment):
    right = list_faults(deployment)[0]
    whole = measure_fault(deployment, right, bias=0.5)
    total = dataclasses.replace(whole, samples=tuple(
        sample for sample in whole.samples
        if sample.layer is None and sample.counter == "cpu_cycles"))
    found = diagnose(deployment, total)
    assert found.layers == (None,)
    assert max(chance for kind, chance in found.kinds.items() if kind != DECLARED) < 0.9


def test_a_healthy_measurement_must_be_of_the_same_layers(deployment):
    right = list_faults(deployment)[0]
    other = deploy("ad", "nucleo_h7a3zi_q", runtime="cmsis-nn")
    with pytest.raises(NotTheSameError, match="other networks"):
        diagnose(other, measure_fault(deployment, right))
    whole_only = measure_fault(deployment, right)
    whole_only = dataclasses.replace(whole_only, samples=tuple(
        sample for sample in whole_only.samples if sample.layer is None))
    with pytest.raises(UsageError, match="known to be right"):
        diagnose(deployment, measure_fault(deployment, right), healthy=whole_only)


def test_the_students_density_is_that_of_scipy():
    from scipy.stats import multivariate_t

    random = np.random.default_rng(1)
    half = random.normal(size=(4, 4))
    matrix = half @ half.T + np.eye(4)
    values = random.normal(size=4)
    assert log_student(values, matrix) == pytest.approx(
        multivariate_t(shape=matrix, df=FREEDOM).logpdf(values))


def test_the_setup_is_taken_from_the_header(deployment):
    measured = measure_fault(deployment, list_faults(deployment)[0])
    found, remark = deploy_measured(measured)
    assert remark == "" and found.runtime.identity == "cmsis-nn@6.0"
    unknown = dataclasses.replace(measured, header=dataclasses.replace(
        measured.header, runtime="somebody-elses@3"))
    found, remark = deploy_measured(unknown)
    assert "stands in for somebody-elses@3" in remark
    other = dataclasses.replace(measured, header=dataclasses.replace(
        measured.header, board="stm32n6570_dk", runtime="neural-art, atonn-v1.0.0-rc0"))
    found, remark = deploy_measured(other)
    assert remark == "" and found.runtime.name == "neural-art" and not is_stand_in(found, other)
    with pytest.raises(UsageError, match=r"which board .* --board"):
        deploy_measured(dataclasses.replace(measured, header=dataclasses.replace(
            measured.header, board="not known")))
    with pytest.raises(UsageError, match="no network of `twin models`"):
        find_model("mine", None)
    with pytest.raises(UsageError, match="SHA-256"):
        find_model("kws", "0" * 64)


@needs_boards
def test_faults_planted_on_a_hidden_board_are_found(tmp_path):
    """A quick part of `python -m benchmarks.diagnosis`, against a measurement known to be right."""
    network = "mobilenet_v1_0.25_32"  # a third of the work of kws
    bench = Bench(network=network, board="nucleo_l4r5zi", folder=tmp_path)
    plants = {plant.name: plant for plant in list_plants(bench)}
    hand, deployment = bench.hand(1), deploy(network, "nucleo_l4r5zi", runtime="firmware")
    healthy = bench.measure(plants["healthy"], hand)
    confusion, forecasts = {}, Forecasts()
    for name in ("healthy", "caches-off", "clock-half", "throttling", "interrupts"):
        measured = bench.measure(plants[name], hand)
        found = diagnose(deployment, measured, healthy=healthy, forecasts=forecasts)
        assert not found.counters  # cycles alone, as a Cortex-M4 sends
        confusion[plants[name].kind] = next(iter(found.kinds))
    assert confusion == {kind: kind for kind in confusion} and len(confusion) == 5


@pytest.mark.parametrize(("board", "runtime", "kind", "said", "unsaid"), [
    ("nucleo_l4r5zi", "firmware", "cache off", "ICEN of FLASH_ACR", "SCB_"),
    ("nucleo_l4r5zi", "firmware", "reference kernels", "firmware's own", "OPTIMIZED_KERNEL_DIR"),
    ("nucleo_l4r5zi", "tflm-cmsis-nn", "reference kernels", "DIR=cmsis_nn", "firmware"),
    ("nucleo_h7a3zi_q", "cmsis-nn", "cache off", "SCB_EnableICache", "FLASH_ACR"),
    ("nucleo_u575zi_q", "cmsis-nn", "cache off", "ICACHE_CR", "SCB_"),
    ("nrf52840dk", "cmsis-nn", "cache off", "NVMC_ICACHECNF", "FLASH_ACR")])
def test_a_remedy_names_what_the_part_and_the_runtime_have(board, runtime, kind, said, unsaid):
    remedies = " ".join(fault.remedy for fault in list_faults(
        deploy("kws", board, runtime=runtime)) if fault.kind == kind)
    assert said in remedies and unsaid not in remedies


@pytest.mark.parametrize("kinds", [
    ((DECLARED, 0.6), (UNKNOWN, 0.4)), (("clock", 0.4), (COUNTER, 0.35), (DECLARED, 0.25)),
    (("placement and load", 0.4), ("load", 0.3), (DECLARED, 0.3)), ((UNKNOWN, 0.9), ("SIMD", 0.1))])
@pytest.mark.parametrize("healthy", [False, True])
def test_below_what_is_settled_a_measurement_is_named_or_none_can(kinds, healthy):
    found = Diagnosis(
        findings=tuple(Finding(
            fault=Fault(kind=kind, name=kind, remedy="mend it"), prior=0.1, probability=chance,
            evidence=(), predicted={1: 10.0}) for kind, chance in (*kinds, (DECLARED, 0.0))),
        quantity="cycles", layers=(1,), errors=BINARY, measured=10.0, repeats=0.0, counters=(),
        observations=(), indistinct=(), healthy=healthy)
    said = tell_otherwise(found)
    assert kinds[0][0] in said and kinds[1][0] in said
    assert ("--healthy" in said) is not healthy
    assert found.remedy.startswith("if so: ") is (kinds[0][1] < 0.5)
