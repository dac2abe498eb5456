"""Densities of patterns: by the chain rule, as scipy has them, and what far layers cost."""

import dataclasses
import math

import numpy as np
import pytest
from made_measurements import measure

from twin.attribution.diagnosis.faults import BINARY, DECLARED, UNKNOWN, Fault, prior_of
from twin.attribution.diagnosis.likelihood import (
    FREEDOM,
    Temper,
    choose_temper,
    hiding_errors,
    log_direction,
    log_pattern,
    log_shape,
    log_student,
    log_total,
    own_errors,
)
from twin.attribution.diagnosis.mark_chances import weigh_marks
from twin.attribution.diagnosis.marks import Marks, read_marks
from twin.deployment.deploy import deploy
from twin.pricing.inference import predict


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
    alone, beside = (choose_temper(BINARY, healthy=healthy).chances(
        (0.5, 0.5), (0, 0), (0, 4), (0, 0)) for healthy in (False, True))
    # the total is one figure and counts in full; alone the whole posterior does by 0.9
    assert [math.log(two / one) for one, two in (alone, beside)] == pytest.approx([3.6, 4])


def test_shape_and_total_are_the_pattern_where_nothing_is_far_off():
    """By the chain rule: p(pattern) = p(total) p(pattern given total), for normal errors."""
    random = np.random.default_rng(2)
    half = random.normal(size=(5, 5))
    covariance, own = half @ half.T, np.full(5, 1e-12)
    residual, measured = random.normal(size=5), random.uniform(1, 9, 5)
    whole = covariance + np.diag(own)
    _, grown, _ = own_errors(residual, covariance, own)
    assert log_shape(residual, covariance, own, grown, measured) + log_total(
        residual, whole, measured) == pytest.approx(log_pattern(residual, covariance, own, grown))


def test_an_effect_of_the_other_sign_is_no_explanation():
    measured, moved = np.ones(4), np.full(4, 0.3)
    effect = np.full((4, 4), 0.1**2)
    covariance = effect + 0.02**2 * np.eye(4)
    as_foreseen = log_direction(np.zeros(4), moved, effect, covariance, measured)
    faster = log_direction(np.full(4, -1.5), moved, effect, covariance, measured)
    assert as_foreseen > -0.01 and faster < -15
    assert log_direction(np.full(4, 1.5), -moved, effect, covariance, measured) == faster


def test_layers_far_off_grow_and_the_others_stay():
    covariance, own = 0.01 * np.eye(6) + 0.01, np.full(6, 1e-4)
    residual = np.array([0.0, 0.01, -0.01, 0.0, 1.5, 0.01])
    (likely, grown), (closer, _) = [
        (log_pattern(each, covariance, own, grown), grown)
        for each in (residual, residual * [1, 1, 1, 1, 0.1, 1])
        for _, grown, _ in [own_errors(each, covariance, own)]]
    assert grown[4] > 2 * grown[:4].max() and math.isfinite(likely)
    assert closer > likely


def test_the_students_density_is_that_of_scipy():
    from scipy.stats import t

    assert log_student(0.7, 0.3) == pytest.approx(t(FREEDOM, scale=0.3).logpdf(0.7))


@pytest.mark.parametrize(("share", "scatter", "likelier"), [
    (0.3, 1e-4, False), (0.3, 0.05, True), (0.05, 1.6e-3, True), (0.02, 1e-5, False)])
def test_interrupts_that_take_much_make_runs_scatter(share, scatter, likelier):
    marks = Marks(clock_log=None, drift=0.0, scatter=scatter)
    quiet = Fault(kind="as declared", name="as declared", remedy="")
    busy = Fault(kind="interrupts", name="", remedy="", scatters=True, stretch=math.log1p(share))
    assert (weigh_marks(busy, marks) > weigh_marks(quiet, marks)) is likelier


def test_what_is_hidden_is_as_unsure_as_a_share_of_which_any_is_as_likely():
    """The mean square of a share drawn evenly from 0 to 1 is a third."""
    shares, hidden = np.random.default_rng(1).uniform(size=20_000), np.array([0.2, -0.6])
    drawn = np.mean([np.outer(share * hidden, share * hidden) for share in shares], axis=0)
    assert hiding_errors(hidden, hidden) == pytest.approx(drawn, rel=0.03)


@pytest.mark.parametrize(("runtime", "scatter", "likelier"), [
    ("cmsis-nn", 0.003, False), ("cmsis-nn", 0.03, True), ("firmware", 0.003, True)])
def test_a_logs_runs_scatter_by_its_systems_tick(runtime, scatter, likelier):
    """Three thousandths are no interrupts to find in a log; our firmware repeats better."""
    deployment = deploy("kws", "nucleo_l4r5zi", runtime=runtime)
    marks = dataclasses.replace(
        read_marks(measure(predict(deployment), model="kws"), deployment), scatter=scatter)
    quiet, rare = (Fault(kind=kind, name="", remedy="", scatters=kind == "interrupts")
                   for kind in (DECLARED, "interrupts"))
    assert (weigh_marks(rare, marks) > weigh_marks(quiet, marks)) is likelier
    exact = dataclasses.replace(marks, scatter=0.0)
    loose = dataclasses.replace(marks, scatter=0.003)
    # runs that repeat better than those known to be right speak against interrupts, not for them
    assert weigh_marks(quiet, exact, loose) > weigh_marks(rare, exact, loose) + 1
    assert weigh_marks(quiet, exact, loose) >= weigh_marks(quiet, loose, loose)


def test_less_is_of_nothing_listed_where_our_firmware_says_who_it_is():
    faults = tuple(Fault(kind=kind, name=kind, remedy="") for kind in (DECLARED, "SIMD", UNKNOWN))
    log, own = (prior_of(faults, own=own) for own in (False, True))
    assert own[2] < log[2] and own[0] == log[0] and sum(own) == pytest.approx(sum(log)) == 1
