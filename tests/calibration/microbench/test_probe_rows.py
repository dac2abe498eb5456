"""Micro-benchmarks as rows: the update against brute force, and what it must obey."""

import numpy as np
import pytest

from calibration.errors import FitError
from calibration.fitting.prior import Part, Prior
from calibration.microbench.probe_rows import Belief, Believed, ProbeRow, expect, learn_rows

LIBRARY = np.array([[0.09, 0.02, 0.0], [0.02, 0.08, 0.01], [0.0, 0.01, 0.16]])
BOARD = np.array([[0.02, 0.01, 0.0], [0.01, 0.03, 0.0], [0.0, 0.0, 0.02]])


def prior():
    return Prior(names=("a", "b", "memory"), mean=np.zeros(3), parts=(
        Part(level="library", covariance=LIBRARY), Part(level="board", covariance=BOARD)))


def row(shares, *, whole=False, reach=1.0, noise=0.1, ratio=float("nan")):
    return ProbeRow(name="r", shares=np.array(shares), whole=whole, reach=reach, noise_sd=noise,
                    log_ratio=ratio)


def belief(covariance=None, untouched=("board",)):
    covariance = LIBRARY + BOARD if covariance is None else covariance
    return Belief(prior=prior(), untouched=untouched,
                  now=Believed(log=np.array([0.2, -0.1, 0.3]), covariance=covariance))


@pytest.mark.parametrize("untouched", [("board",), ()])
def test_hardware_rows_are_conditioning_of_the_sum(untouched):
    """x = library + board: before any data both formulas are the joint normal of (x, board)."""
    h, noise, ratio = np.array([0.5, 0.5, 0.0]), 0.1, 0.25
    after = learn_rows(Belief(prior=prior(), untouched=untouched, now=Believed(
        log=np.zeros(3), covariance=LIBRARY + BOARD)), [row(h, noise=noise, ratio=ratio)])
    joint = np.block([[LIBRARY + BOARD, (BOARD @ h)[:, None]],
                      [(BOARD @ h)[None, :], np.array([[h @ BOARD @ h + noise**2]])]])
    gain = joint[:3, 3] / joint[3, 3]
    assert after.covariance == pytest.approx(joint[:3, :3] - np.outer(gain, joint[3, :3]))
    assert after.log == pytest.approx(gain * ratio)


def test_drawn_truths_are_recovered_as_often_as_stated():
    """Truths from the prior, rows with their noise: squared errors are as large as stated."""
    random = np.random.default_rng(7)
    rows = [([0.5, 0.5, 0.0], False, 1.0), ([0, 0, 1.0], True, 0.8), ([1.0, 0, 0], False, 1.0)]
    scores = []
    for _ in range(400):
        library = random.multivariate_normal(np.zeros(3), LIBRARY)
        board = random.multivariate_normal(np.zeros(3), BOARD)
        x = library + board
        made = []
        for shares, whole, reach in rows:
            own = np.array(shares) @ (x if whole else board)
            # a memory of several: what it has for itself makes up the rest of the variance
            rest = (1 - reach**2) * float(np.array(shares) @ (LIBRARY + BOARD) @ np.array(shares))
            seen = reach * own + random.normal(0, np.sqrt(rest)) + random.normal(0, 0.1)
            made.append(row(shares, whole=whole, reach=reach, ratio=seen))
        after = learn_rows(Belief(prior=prior(), untouched=("board",), now=Believed(
            log=np.zeros(3), covariance=LIBRARY + BOARD)), made)
        scores.append((x - after.log) / np.sqrt(np.diag(after.covariance)))
    squares = np.mean(np.square(scores), axis=0)
    assert (squares > 0.8).all() and (squares < 1.2).all()  # 400 draws: 1 +- 0.07 each


def test_rows_of_counted_instructions_leave_a_covariance_however_little_was_open():
    """What is off by one factor is wholly correlated, and less than what prices started from."""
    known = np.array([[0.0121, 0.0121, 0], [0.0121, 0.0121, 0], [0, 0, 0.16]])
    before = Belief(prior=prior(), untouched=("board",), counted=True, now=Believed(
        log=np.zeros(3), covariance=known))
    rows = [row([0.5, 0.5, 0], ratio=0.1), row([0, 0, 1.0], whole=True, reach=0.9, ratio=0.2)]
    after = learn_rows(before, rows)
    assert np.linalg.eigvalsh(after.covariance).min() > -1e-12
    joint = known[0, 0] / (known[0, 0] + 0.1**2)
    assert after.log[:2] == pytest.approx([0.1 * joint] * 2)
    assert after.covariance[0, 0] == pytest.approx(known[0, 0] * (1 - joint))


def test_more_rows_never_widen_and_the_covariance_stays_one():
    before = belief()
    rows = [row([0.5, 0.5, 0]), row([0, 0, 1.0], whole=True, reach=0.6),
            row([0, 0, 1.0], whole=True, reach=0.4), row([0.2, 0.3, 0.5], whole=True)]
    last = before.now.covariance
    for count in range(1, len(rows) + 1):
        after = expect(before, rows[:count]).covariance
        assert np.linalg.eigvalsh(last - after).min() > -1e-12
        assert np.linalg.eigvalsh(after).min() > 0
        last = after


def test_expecting_is_what_learning_leaves():
    before, rows = belief(), [row([0.5, 0.5, 0], ratio=0.4), row([0, 0, 1.0], whole=True,
                                                                  ratio=-0.2)]
    assert expect(before, rows).covariance == pytest.approx(learn_rows(before, rows).covariance)


def test_what_was_expected_moves_nothing():
    before = belief(untouched=())
    rows = [row([0.5, 0.5, 0]), row([0, 0, 1.0], whole=True)]
    told = [row(one.shares, whole=one.whole, ratio=before.expected(one)) for one in rows]
    assert learn_rows(before, told).log == pytest.approx(before.now.log)


def test_a_row_of_no_reach_tells_nothing():
    before = belief()
    assert expect(before, [row([0, 0, 1.0], whole=True, reach=0.0)]).covariance == pytest.approx(
        before.now.covariance)
    assert expect(before, []).covariance == pytest.approx(before.now.covariance)


def test_refusals():
    with pytest.raises(FitError, match="is not measured"):
        learn_rows(belief(), [row([1.0, 0, 0])])
    with pytest.raises(FitError, match="reach 2"):
        row([1.0, 0, 0], reach=2)


@pytest.mark.parametrize(("reach", "noise", "fits"), [
    (0.0, 0.1, True), (1.0, 1e-6, True), (-0.1, 0.1, False), (1.1, 0.1, False), (0.5, 0.0, False),
    (0.5, -0.1, False)])
def test_a_reach_is_a_share_and_noise_is_never_none(reach, noise, fits):
    if fits:
        assert row([1.0, 0.0, 0.0], reach=reach, noise=noise).reach == reach
        return
    with pytest.raises(FitError, match=f"r: reach {reach}, noise {noise}; accepted: 0 to 1, above"):
        row([1.0, 0.0, 0.0], reach=reach, noise=noise)
