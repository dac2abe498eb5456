"""Spreads learnt from the data, errors learnt under a prior, held-out rows."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.fitting.cell import Cell
from calibration.fitting.prices import Evidence, Noise
from calibration.fitting.prior import Spread, known_prior, pool_prior, relate, state
from calibration.fitting.spread import (
    LABORATORIES,
    MOST_PARAMETERS,
    claim_fewer,
    fit_pooled,
    learn_noise,
    learn_spread,
)
from calibration.fitting.validation import (
    FEWEST,
    LEAST_SCALE,
    HeldOut,
    leave_out_closely,
    level_keys,
    scale_of,
    total_error,
)
from tests.oracles.fits import predict_totals

NAMES = ("conv", "pointwise", "depthwise", "memory")
STATED = np.full(4, 0.2)


def leave_out(evidence, keys, fitter) -> HeldOut:
    """Predict every row by a fit to the rows of other keys: what the quick way approximates."""
    errors, sds = np.full(len(evidence), np.nan), np.full(len(evidence), np.nan)
    for key in dict.fromkeys(keys):
        out = [row for row, other in enumerate(keys) if other == key]
        rest = [row for row, other in enumerate(keys) if other != key]
        if not rest:
            continue
        fit = fitter(evidence.select(rest))
        left = evidence.select(out)
        totals, variances = predict_totals(fit, left)
        errors[out] = np.log(left.measured) - totals
        sds[out] = np.sqrt(variances + total_error(fit))
    return HeldOut(log_errors=errors, sds=sds, keys=tuple(keys))


def draw_evidence(spread: Spread, seed: int, boards: int = 12, networks: int = 8) -> Evidence:
    """Rows of networks on boards whose prices are drawn from the prior itself."""
    rng = np.random.default_rng(seed)
    cells = [Cell(board=f"b{board}", core=f"core{board % 3}", library="lib",
                  release=float(board % 4)) for board in range(boards)]
    prior = pool_prior(NAMES, STATED, spread)
    joint = sum(np.kron(relate(part.level, cells, cells), part.covariance)
                for part in prior.parts)
    logs = rng.multivariate_normal(np.zeros(boards * 4), joint).reshape(boards, 4)
    amounts = rng.dirichlet(np.ones(4), networks) * 1e6
    errors = rng.normal(0, spread.network, networks)
    rows = [(cell, net) for cell in range(boards) for net in range(networks)]
    return Evidence(
        names=NAMES, amounts=np.array([amounts[net] for _, net in rows]),
        measured=np.array([(amounts[net] * np.exp(logs[cell])).sum()
                           * np.exp(errors[net] + rng.normal(0, spread.row))
                           for cell, net in rows]),
        cells=tuple(cells[cell] for cell, _ in rows),
        networks=tuple(f"net{net}" for _, net in rows),
        labels=tuple(f"{cell}:{net}" for cell, net in rows))


def test_spreads_are_learnt_from_the_rows() -> None:
    truth = Spread(library=0.2, core=0.1, release=0.25, board=0.1, cell=0.05, own_core=0.1,
                   own_release=0.1, own_board=0.1, own_cell=0.05, network=0.06, row=0.02)
    learnt = learn_spread(draw_evidence(truth, seed=1), STATED)
    # 96 rows tell the row error to some 10 %; eight networks theirs to some 30 %
    assert learnt.row == pytest.approx(truth.row, rel=0.25)
    assert learnt.network == pytest.approx(truth.network, rel=0.6)
    # a release moves everything: the largest spread is found to be the largest
    assert learnt.release > max(learnt.board, learnt.cell, learnt.row)


def test_faster_code_moves_what_multiplies_and_a_board_what_waits_too() -> None:
    parts = {part.level: part.covariance for part in pool_prior(
        ("conv", "pointwise", "call", "memory", "stream"), np.full(5, 0.3), Spread()).parts}
    for level in ("library", "core", "release", "build", "board"):
        moved = np.array([1, 1, 0, level == "board", level == "board"], dtype=bool)
        shared = parts[level] - getattr(Spread(), f"own_{level}", 1.0)**2 * state(
            ("conv", "pointwise", "call", "memory", "stream"), np.full(5, 0.3))
        assert shared == pytest.approx(
            getattr(Spread(), level)**2 * np.outer(moved, moved), abs=1e-12)
    currents = pool_prior(("activity", "memory"), STATED[:2], Spread(library=0.0)).parts
    assert all((part.covariance > 0).all() for part in currents if part.level == "release")


def test_what_multiplies_is_alike_and_what_is_parted_nearly_one() -> None:
    names = ("pointwise", "conv", "conv_wide", "fully_connected", "call")
    covariance = state(names, np.full(5, 0.3))
    assert np.linalg.eigvalsh(covariance).min() > 0
    assert np.diag(covariance) == pytest.approx(0.09)
    assert covariance[0] / 0.09 == pytest.approx([1, 0.3, 0.3, 0.3, 0])
    assert covariance[1, 2] / 0.09 == pytest.approx(1 - (0.25 / 0.3)**2)


def test_four_rows_claim_at_most_three_parameters() -> None:
    spread = Spread(network=0.01, row=0.003)
    evidence = draw_evidence(spread, seed=2, boards=5, networks=4)
    before = fit_pooled(evidence, STATED, spread).leverage.reshape(5, 4).sum(axis=1)
    assert before.max() > MOST_PARAMETERS
    doubted, claimed = claim_fewer(evidence, STATED, spread)
    after = doubted.leverage.reshape(5, 4).sum(axis=1)
    assert after.max() <= MOST_PARAMETERS
    assert claimed.row >= LABORATORIES
    assert doubted.evidence.doubt.min() >= 1


def test_rows_are_left_out_in_closed_form_as_by_fitting_again() -> None:
    spread = Spread()
    evidence = draw_evidence(spread, seed=7, boards=6, networks=6)
    fit = fit_pooled(evidence, STATED, spread)
    closely = leave_out_closely(fit, evidence.networks)
    again = leave_out(evidence, evidence.networks,
                      lambda rest: fit_pooled(rest, STATED, spread))
    # equal but for the shares, which a fit without the rows linearises elsewhere
    assert np.allclose(closely.log_errors, again.log_errors, atol=0.25 * again.sds.max())
    assert np.corrcoef(closely.log_errors, again.log_errors)[0, 1] > 0.95
    assert np.allclose(closely.sds, again.sds, rtol=0.2)


@pytest.mark.parametrize("key", ["network", "row"])
def test_what_is_held_out_is_not_known_to_disagree(key: str) -> None:
    """Planted: a row, or all rows of a network, far off; what is stated of them does not know."""
    spread, ratios, doubts = Spread(), [], []
    for seed in (1, 3, 5, 6, 7):
        plain = draw_evidence(spread, seed=seed, boards=6, networks=6)
        odd = np.array([network == "net0" and (key == "network" or label == "0:0") for
                        network, label in zip(plain.networks, plain.labels, strict=True)])
        planted = replace(plain, measured=plain.measured * np.where(odd, 1.3, 1.0))
        keys = plain.networks if key == "network" else plain.labels
        fits = [fit_pooled(evidence, STATED, spread) for evidence in (plain, planted)]
        doubts.append(fits[1].doubted(odd)[odd].min())
        before, after = (leave_out_closely(fit, keys).sds[odd] for fit in fits)
        ratios.append((after / before).max())
    assert np.median(doubts) > spread.row**2 / 2
    # what the planted one makes doubtful of the rest stays so: to 9 % in one of these draws; with
    # their own doubts counted the middle of them is 1.4 for a network, 2.1 for a row
    assert np.median(ratios) == pytest.approx(1, abs=0.05) and max(ratios) < 1.2


def test_errors_are_learnt_under_a_known_prior() -> None:
    rng = np.random.default_rng(5)
    amounts = rng.dirichlet(np.ones(4), 60) * 1e6
    home = Cell(board="b", core="c", library="l", release=0.0)
    log = rng.normal(0, 0.2, 4)
    evidence = Evidence(
        names=NAMES, amounts=amounts, cells=(home,) * 60, networks=tuple(map(str, range(60))),
        measured=(amounts * np.exp(log)).sum(axis=1) * np.exp(rng.normal(0, 0.08, 60)),
        labels=tuple(map(str, range(60))))
    noise = learn_noise(evidence, known_prior(NAMES, np.zeros(4), np.eye(4) * 0.04),
                        Noise(network_sd=0.05, row_sd=0.05))
    # with one row per network only the sum of both is told: sd of an sd from 60 rows is 9 %
    assert np.hypot(noise.network_sd, noise.row_sd) == pytest.approx(0.08, rel=0.3)


def test_rows_left_out_do_not_reach_their_own_prediction() -> None:
    spread = Spread()
    evidence = draw_evidence(spread, seed=4, boards=6, networks=5)
    seen: list[frozenset[str]] = []

    def fitter(part: Evidence):
        seen.append(frozenset(part.networks))
        return fit_pooled(part, STATED, spread)

    held = leave_out(evidence, evidence.networks, fitter)
    assert [len(networks) for networks in seen] == [4] * 5
    assert np.isfinite(held.log_errors).all() and (held.sds > spread.network).all()
    # drawn from the model itself, scores are standard normal: mean square of 30 in five clusters
    assert 0.3 < float(np.mean(held.scores**2)) < 2.5


def test_a_single_key_leaves_nothing_to_fit_to() -> None:
    evidence = draw_evidence(Spread(), seed=4, boards=2, networks=2)
    held = leave_out(evidence, ["same"] * len(evidence),
                     lambda part: fit_pooled(part, STATED, Spread()))
    assert np.isnan(held.log_errors).all()


def stranger_scale(fit) -> float:
    """How far a board that is not in a fit lies beside what is stated, by those that are."""
    keys, = level_keys(fit, Cell(board="another", core="core0", library="lib", release=0.0))
    assert keys == tuple(cell.board for cell in fit.evidence.cells)
    return scale_of(leave_out_closely(fit, keys).scores, keys)[0]


def test_strangers_are_wrong_by_what_boards_left_out_show() -> None:
    true = Spread()
    wide = replace(true, library=3 * true.library, release=3 * true.release,
                   own_board=4 * true.own_board, board=4 * true.board, core=4 * true.core)
    evidence = draw_evidence(true, seed=3, boards=24)
    told = stranger_scale(fit_pooled(evidence, STATED, true))
    assert told == pytest.approx(1.0, abs=0.35)  # 24 boards: sd of a mean square of one is 0.29
    # stated to lie further apart than they do: narrowed, but never to nothing
    assert LEAST_SCALE <= stranger_scale(fit_pooled(evidence, STATED, wide)) < 0.8 * told
    narrow = replace(true, board=true.board / 4, own_board=true.own_board / 4,
                     core=true.core / 4, own_core=true.own_core / 4)
    assert stranger_scale(fit_pooled(evidence, STATED, narrow)) > 1.2 * told
    few = fit_pooled(draw_evidence(true, seed=3, boards=FEWEST - 1), STATED, true)
    assert level_keys(few, Cell(board="another", core="core0", library="lib", release=0.0)) == []


@pytest.mark.parametrize(("change", "level"), [
    ({"board": ""}, "board"), ({"board": "", "core": ""}, "core"),
    ({"board": "", "core": "", "library": "other"}, "library"), ({"library": "other"}, "library")])
def test_what_is_left_out_is_what_a_stranger_lacks(change, level) -> None:
    fit = fit_pooled(draw_evidence(Spread(), seed=3, boards=6), STATED, Spread())
    keys = level_keys(fit, replace(fit.evidence.cells[0], **change))
    found = tuple(getattr(cell, level) for cell in fit.evidence.cells)
    assert keys == ([found] if len(set(found)) >= FEWEST else [])


def test_a_release_nobody_measured_is_left_out_besides_a_board() -> None:
    fit = fit_pooled(draw_evidence(Spread(), seed=3, boards=6), STATED, Spread())
    cells = fit.evidence.cells
    releases = tuple((cell.library, cell.release) for cell in cells)
    keys = level_keys(fit, replace(cells[0], board="", release=9.0))
    assert keys == [tuple(cell.board for cell in cells),
                    *([releases] if len(set(releases)) >= FEWEST else [])]


def test_what_rows_are_beyond_the_rest_is_added_to_their_deviations() -> None:
    fit = fit_pooled(draw_evidence(Spread(), seed=3, boards=6), STATED, Spread())
    keys = [cell.board for cell in fit.evidence.cells]
    wider = replace(fit, evidence=replace(
        fit.evidence, beyond=lambda rows: np.full(len(rows), 0.1)))
    plain, added = (leave_out_closely(one, keys) for one in (fit, wider))
    assert added.sds == pytest.approx(plain.sds + 0.1)
    assert (added.log_errors == plain.log_errors).all()
