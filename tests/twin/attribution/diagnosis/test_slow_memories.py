"""Faults of flash, caches and clocks on a Cortex-M4: alone, two at once, and what tells them."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from made_faults import diagnose, measure_fault, only_cycles
from made_measurements import measure

from twin.attribution.diagnosis import ranking
from twin.attribution.diagnosis.again import alter
from twin.attribution.diagnosis.case import Case
from twin.attribution.diagnosis.diagnosis import _expose
from twin.attribution.diagnosis.fault_effects import Forecasts, hidden_under, make_pattern
from twin.attribution.diagnosis.fault_list import list_faults, list_fills
from twin.attribution.diagnosis.faults import (
    BINARY,
    DECLARED,
    FLASH_KINDS,
    JOINED,
    MOVED,
    NO_CLOCK,
    SLOW_FLASH,
    Fault,
)
from twin.attribution.diagnosis.likelihood import (
    MEMORY_EFFECT_SD,
    MEMORY_FAMILY_SD,
    effect_errors,
)
from twin.attribution.diagnosis.marks import Marks
from twin.attribution.diagnosis.telling import choose_rivals, tell_apart
from twin.attribution.document import diagnosis_document
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.deployment.deploy import deploy
from twin.pricing.inference import predict
from twin.reports.tables.diagnosis import _answer


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
    said = tell_apart(rivals, deployment, forecasts, None, base, pattern, {})
    cache, counter = (float(text.split(" x ")[0].split()[-1]) for text in (
        said.split("if art_i off")[0], said.split("art_i off, ")[1]))
    assert cache < 0.7 and 0.9 < counter < 1.1 and "if everything counted twice" in said
    # A second measurement at that clock is there: another one is proposed.
    megahertz = float(said.partition("measure again at ")[2].partition(" MHz")[0])
    there = tell_apart(rivals, deployment, forecasts, None, base, pattern,
                       {"clocks.cpu.frequency_hz": megahertz * 1e6})
    assert "measure again at " in there and f"at {megahertz:g} MHz" not in there
    assert rank(**{
        next(name for name, fault in faults.items() if fault.kind == "interrupts").replace(
            " ", "_"): 0.2}, **likely) == []  # no clock tells interrupts


def test_a_clock_nobody_timed_is_told_by_its_wait_states():
    """48 MHz where 120 are stated: the flash waits for 2 cycles in place of 5, or reads twice as
    much at once: a host's clock distinguishes them."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    declared = list_faults(deployment)[0]
    slow = dataclasses.replace(declared, deployment=deployment.replace(
        {"clocks.cpu.frequency_hz": 48e6, "supply.voltage_scale": "range1_boost"}))
    right, wrong = (only_cycles(measure_fault(deployment, fault, clocks_hz=(("cpu", 120e6),)))
                    for fault in (declared, slow))
    found = diagnose(deployment, wrong, healthy=right)
    assert {*list(found.kinds)[:2]} == {"clock", "flash width"} and found.kinds["clock"] > 0.25
    assert "host's clock" in found.telling and found.remedy.startswith("if so: ")
    assert {"cycles per layer", "clock as the header states it",
            "a measurement known to be right"} <= set(found.rests_on)
    assert diagnosis_document(found)["left_out"] == found.left_out != ""
    set_to = dataclasses.replace(wrong, header=dataclasses.replace(
        wrong.header, kind="simulated", clocks_hz=(("cpu", 48e6),),
        environment=(("port", "unicorn"),)))  # an emulator that was set to another clock
    assert diagnose(deployment, set_to).kinds["clock"] > 0.5


def test_slower_flash_is_found_beside_a_healthy_measurement():
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    faults = {fault.name: fault for fault in list_faults(deployment)}
    healthy = measure_fault(deployment, faults[DECLARED], seed=1)
    slow = measure_fault(deployment, faults["flash at 13 wait states"], seed=1)
    found = diagnose(deployment, slow, healthy=healthy)
    assert "wait states" in {one.fault.kind for one in found.members}
    assert "latency" in found.remedy
    assert found.healthy and not found.repeats_as_declared
    same = diagnose(deployment, healthy, healthy=healthy)
    assert same.verdict.fault.kind == DECLARED and same.remedy == "none needed"


def test_flash_faults_nothing_distinguishes_are_one_answer():
    """Without a prefetch that hid half of each wait the flash waits as with twice its states."""
    deployment = deploy("mobilenet_v1_0.25_32", "nucleo_u575zi_q", runtime="cmsis-nn")
    faults = {fault.name: fault for fault in list_faults(deployment)}
    model = deployment.graph.name
    healthy, slow = (only_cycles(measure_fault(deployment, faults[name], seed=1, model=model))
                     for name in (DECLARED, "prefetch of flash off, which hid 50 % of its waits"))
    found = diagnose(deployment, slow, healthy=healthy)
    assert found.answer == found.verdict.kind == next(iter(found.kinds)) == SLOW_FLASH
    members = [one.fault.kind for one in found.members]
    assert {"prefetch", "wait states"} <= set(members) <= set(FLASH_KINDS)
    assert found.not_distinguishable == tuple(one.fault.name for one in found.members)
    assert sum(one.probability for one in found.findings if one.kind == SLOW_FLASH) > 0.8
    for remedy in ("enable prefetch in FLASH_ACR", "look at the latency in FLASH_ACR"):
        assert remedy in found.remedy
    assert "access control register" in found.telling or "MHz" in found.telling
    document = diagnosis_document(found)
    assert document["verdict_kind"] == SLOW_FLASH
    assert document["not_distinguishable"] == [*found.not_distinguishable]
    lines = dict(_answer(found))
    assert lines["verdict"].startswith("flash slower, ")
    assert all(name in lines["not distinguishable"] for name in found.not_distinguishable)


def test_a_flash_that_makes_the_board_faster_is_no_slower_flash():
    faults = tuple(SimpleNamespace(kind=kind) for kind in (
        DECLARED, "wait states", "flash width", "flash width"))
    weighed = [SimpleNamespace(predicted=np.array([cycles])) for cycles in (100.0, 110, 90, 120)]
    evenly = np.full(4, 0.25)
    assert ranking._name_kinds(faults, evenly, evenly, weighed) == [
        DECLARED, SLOW_FLASH, "flash width", SLOW_FLASH]


def test_where_no_wait_follows_the_clock_weights_and_wait_states_are_one_answer():
    """Weights in SRAM wait as little at any clock, and wait states that stay as long."""
    kinds = (DECLARED, "placement", "wait states", "SIMD and placement", "SIMD and wait states",
             "placement and wait states", "SIMD")
    faults = tuple(SimpleNamespace(kind=kind) for kind in kinds)
    weighed = [SimpleNamespace(predicted=np.array([100.0]))] * len(kinds)
    answers = ranking._name_kinds(faults, np.full(7, 1 / 7), np.full(7, 1 / 7), weighed)
    assert answers == [DECLARED, NO_CLOCK, NO_CLOCK, *[f"SIMD and {NO_CLOCK}"] * 2, *kinds[5:]]
    chances = np.array([0.1, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert ranking._name_kinds(faults, np.full(7, 1 / 7), chances, weighed)[1:3] == [*kinds[1:3]]
    faults = (*faults, SimpleNamespace(kind="prefetch"))  # flash slower goes first
    evenly = np.full(8, 1 / 8)
    assert ranking._name_kinds(faults, evenly, evenly, [*weighed, weighed[0]])[1:3] == [
        "placement", SLOW_FLASH]


def test_a_layer_that_only_waits_is_as_unsure_as_what_a_wait_costs():
    """Twenty times as long without a cache, a layer is nearly all waits: d log t = d log w."""
    moved = np.log([1.1, 2.0, 20.0])
    shared, _ = effect_errors(
        Fault(kind="cache off", name="", remedy="", deployment=object()),
        SimpleNamespace(core=np.zeros(3), waits=np.zeros(3)), [moved], ("conv_2d",) * 3,
        Marks(clock_log=None, drift=None, scatter=None), np.zeros(3), BINARY)
    waits = 1 - np.exp(-moved)
    beside = MOVED.common**2 + MOVED.family**2  # at 1.1 times just below a full effect
    assert np.sqrt(np.diag(shared))[1:] == pytest.approx(np.sqrt(
        (MEMORY_EFFECT_SD**2 + MEMORY_FAMILY_SD**2) * waits**2 + beside)[1:], rel=1e-6)
    assert math.sqrt(shared[2, 2]) < 0.5  # 1.1 where it grows with the logarithm of the effect


def test_a_layer_a_fault_leaves_alone_is_not_off_by_it():
    """A narrower read that moves one layer a tenth excuses no error of the others."""
    errors = effect_errors(
        Fault(kind="flash width", name="", remedy="", deployment=object()),
        SimpleNamespace(core=np.zeros(3), waits=np.zeros(3)),
        [np.array([0.0, 0.002, 0.2])], ("conv_2d",) * 3, Marks(
            clock_log=None, drift=None, scatter=None), np.zeros(3), BINARY)
    shared, own = errors
    assert shared[0, 0] == own[0] == 0.0 and math.sqrt(shared[1, 1] + own[1]) < 0.002
    assert 0.05 < math.sqrt(shared[2, 2]) < 0.1


def test_fills_that_hide_less_than_predicted_are_no_slower_flash():
    """A line is predicted to show 2 of 8 cycles: where it shows all, no wait state is added."""
    deployment = deploy("mobilenet_v1_0.25_32", "nucleo_h7a3zi_q", runtime="cmsis-nn")
    whole, = list_fills(deployment)
    assert predict(whole.deployment).cycles > 1.05 * predict(deployment).cycles
    found = diagnose(deployment, only_cycles(measure_fault(
        deployment, whole, scatter=0.02, model=deployment.graph.name)))
    waits = sum(one.probability for one in found.findings if one.fault.kind == "wait states")
    assert found.kinds[DECLARED] > 0.7 and waits < 0.05  # 0.25 without
    assert not [*list_fills(deploy("kws", "nucleo_l4r5zi"))]  # no early word: none is hidden


def test_the_size_of_a_fault_is_chosen_beside_the_other():
    """Alone the largest explains most of what the first one did; beside it the true one does."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    faults = {fault.name: fault for fault in list_faults(deployment)}
    slow = next(fault for fault in faults.values() if fault.kind == "SIMD")
    waiting = slow.deployment.replace({"memories.flash.wait_states": 9})
    both = measure_fault(deployment, dataclasses.replace(slow, deployment=waiting), seed=4)
    found = diagnose(deployment, both, healthy=measure_fault(deployment, faults[DECLARED], seed=4))
    pair = next(one for one in found.findings if one.fault.kind == "SIMD and wait states")
    assert "13 wait states" not in pair.fault.name
    assert sum(pair.predicted.values()) == pytest.approx(found.measured, rel=0.03)
    assert pair.probability > 3 * pair.prior
    assert not any(JOINED in name for name in found.indistinct)
    assert ranking.ADDED in pair.evidence
    fits = [one.evidence[0] for one in found.findings]
    whole = [fit for fit in fits if "." not in fit.split("apart by ")[1]]
    assert len(set(whole)) == len(whole) < len(fits)  # what ties has two more digits
    missing = {layer.index for layer in predict(deployment).layers} - set(found.layers)
    assert all(str(one) in found.left_out for one in missing)
    assert len({one.fault.kind for one in found.findings if JOINED in one.fault.kind}) == sum(
        JOINED in one.fault.kind for one in found.findings)  # one stands for each two kinds
    assert 1.5 < pair.fault.sizes < 9 and max(one.fault.sizes for one in found.findings) < 99


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


def _open_case():
    """What is declared of ad on an H7A3, as a case of its own prediction; its faults by name."""
    deployment, forecasts = deploy("ad", "nucleo_h7a3zi_q", runtime="cmsis-nn"), Forecasts()
    base = forecasts.predict((DECLARED, "warm"), deployment, None, "warm")
    ours, theirs = side_of_prediction(base), side_of_measurement(
        only_cycles(measure(base, model="ad", runtime="cmsis-nn@6.0")))
    case = Case(deployment=deployment, prices=None, base=base, ours=ours, theirs=theirs,
                pattern=make_pattern(ours, theirs, deployment), forecasts=forecasts,
                tell=lambda *_: None)
    return case, {fault.name: fault for fault in list_faults(deployment)}


def test_what_fills_hide_goes_with_the_weights_and_with_the_cache():
    """On a Cortex-M7 lines of flash hide part of their latency: less of SRAM's, none uncached."""
    case, faults = _open_case()
    chosen = [faults[name] for name in (DECLARED, "weights in sram", "l1d off",
                                        "kernels built for armv7-m")]
    effects = _expose(chosen, case.foresee(chosen), case)
    declared, moved, uncached, slower = (hidden_under(one, effects[0]) for one in effects)
    assert declared.max() > 0.05 and 0 < moved.max() < 0.6 * declared.max()
    assert not uncached.any()
    # other kernels wait for as many cycles, a smaller share of more
    assert np.expm1(slower) * np.exp(effects[3].logs) == pytest.approx(
        np.expm1(declared) * np.exp(effects[0].logs))


def test_waits_that_are_longer_are_so_at_each_clock():
    """A read of half the width takes twice the waits: none where the clock asks for none."""
    case, faults = _open_case()
    narrow = faults["flash read 8 bytes at a time, nothing hidden"]
    waiting = faults["flash at 7 wait states"]
    slow = {"clocks.cpu.frequency_hz": 16e6}
    states = [alter(one, case.deployment, slow).deployment.board.memory("flash").wait_states
              for one in (narrow, waiting)]
    assert states == [0, 7]
    assert narrow.deployment.board.memory("flash").wait_states == 12
