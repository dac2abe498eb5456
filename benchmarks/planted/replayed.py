"""Boards with hidden prices on real machine code: recorded once, priced and replayed for each.

The core's work is that of the blocks of the binary, scheduled by a core's table; misses are those
its recorded accesses meet in a hidden cache. Hidden factors multiply both. The fit is told the
counts, the prior and the totals per layer, as from a real board.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.exactness.binary import RECORDED, SPANS, called_layers, read_build
from benchmarks.oracles.replay import LayerRecord, record_layers, replay_layers
from calibration.fitting.cell import Cell
from calibration.fitting.prices import Evidence, Fit, Noise, fit_prices
from calibration.fitting.prior import Prior, known_prior
from calibration.fitting.spread import learn_noise
from calibration.fitting.ties import tie_prices
from calibration.virtual_board.costs import Disturbance
from hwmodels.board.facts import Cache
from hwmodels.core.file import load_core
from hwmodels.core.schedule import count_block
from hwmodels.frozen import entity, frozen
from twin.learning.overlays import stated_sds
from twin.learning.own import OWN_NOISE
from twin.network.graph import Graph
from twin.pricing.price_names import TIME_PRICES, price_of_family
from twin.program.image.compile.build import build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import random_input

CORE = "cortex-m4"
MISS_CYCLES, WRITE_BACK_CYCLES, CALL_CYCLES = 20.0, 10.0, 300.0
"""Stated costs; a hidden board has a factor on each."""

GEOMETRIES = tuple(
    Cache(name=f"{size} B, {ways} ways, {line} B lines", size_bytes=size, line_bytes=line,
          ways=ways)
    for size, ways, line in ((512, 2, 32), (1024, 4, 32), (2048, 4, 16), (4096, 2, 32)))
"""Caches a hidden board may have."""

NOISE = Noise(network_sd=0.03, row_sd=0.02)
TOLD = 0.5
"""A pair of price and board is identifiable when data at least halve its standard deviation."""

INTERRUPTS = Disturbance(gap_cycles=20000.0, service_cycles=1000.0, seed=3)
"""The unmodelled effect: a twentieth of the time, at random times.

The median of runs of a layer shorter than the gap has none of it, that of others all, so a fit that
knows of relative errors alone takes it for the price of a call: it may learn an edge, an error in
cycles, as `twin calibrate` does (`OWN_NOISE`)."""

RUNS = 10
"""Runs a layer's total is the median of."""


@entity
class Recording:
    """Layers of real binaries: the price each is charged under, its work, and its misses.

    Parameters
    ----------
    prices : tuple of str
        One per layer.
    core_cycles : numpy.ndarray
        Shape (layers,): by the core's table, nothing waited for.
    misses, write_backs : dict of str to numpy.ndarray
        Shape (layers,) by geometry.
    """

    prices: tuple[str, ...]
    core_cycles: np.ndarray
    misses: dict[str, np.ndarray]
    write_backs: dict[str, np.ndarray]

    def amounts(self, geometry: str) -> np.ndarray:
        """Return cycles by layer and time price as stated, with a board's cache."""
        stated = np.zeros((len(self.prices), len(TIME_PRICES)))
        for layer, price in enumerate(self.prices):
            stated[layer, TIME_PRICES.index(price)] = self.core_cycles[layer]
        stated[:, TIME_PRICES.index("call")] = CALL_CYCLES
        stated[:, TIME_PRICES.index("memory")] = (MISS_CYCLES * self.misses[geometry]
                                                  + WRITE_BACK_CYCLES * self.write_backs[geometry])
        return stated


def record_networks(graphs: Sequence[Graph], folder: Path) -> Recording:
    """Build networks for an emulated core, record one inference of each, and replay its accesses.

    Parameters
    ----------
    graphs : sequence of Graph
        Int8 networks the firmware has kernels for.
    folder : path
        Where images are built.
    """
    prices: list[str] = []
    cycles: list[float] = []
    misses: dict[str, list[int]] = {one.name: [] for one in GEOMETRIES}
    backs: dict[str, list[int]] = {one.name: [] for one in GEOMETRIES}
    timing = load_core(CORE)
    for place, graph in enumerate(graphs):
        built = build_firmware(graph, load_port(RECORDED[CORE]), folder / str(place))
        records = record_layers(RECORDED[CORE], built.image, random_input(graph).tobytes(),
                                [f"run_{layer}" for layer in called_layers(graph)])
        for kernel in read_build(built, graph):
            prices.append(price_of_family(kernel.family))
            cycles.append(math.fsum(count_block(block, timing).cpu_cycles
                                    for block in kernel.blocks if block.trips))
        _replay(records, misses, backs)
    return Recording(prices=tuple(prices), core_cycles=np.array(cycles),
                     misses={name: np.array(found, float) for name, found in misses.items()},
                     write_backs={name: np.array(found, float) for name, found in backs.items()})


def _replay(records: Sequence[LayerRecord], misses: dict[str, list[int]],
            backs: dict[str, list[int]]) -> None:
    for geometry in GEOMETRIES:
        for one in replay_layers(records, geometry, SPANS):
            misses[geometry.name].append(one.misses)
            backs[geometry.name].append(one.write_backs)


@frozen
class Campaign:
    """What hidden boards are drawn with.

    Parameters
    ----------
    name : str
        For the report.
    shift : float
        Mean of the truth in stated standard deviations.
    interrupted : bool
        Whether the unmodelled effect is planted.
    """

    name: str
    shift: float = 0.0
    interrupted: bool = False


CAMPAIGNS = (Campaign(name="drawn from the prior"), Campaign(name="shifted off it", shift=1.0),
             Campaign(name="one effect unmodelled", interrupted=True))


@entity
class Outcome:
    """What calibrations of hidden boards found.

    Parameters
    ----------
    scores : numpy.ndarray
        (found - true) / stated sd of every identifiable price and board.
    odds : numpy.ndarray
        Shape (boards, wrong geometries): log odds of the true cache against each wrong one.
    own_scores : numpy.ndarray
        (found - true) / stated sd of every price some layer has, as a calibration of one's own
        board states them: errors learnt, prices not told apart fitted as one.
    """

    scores: np.ndarray
    odds: np.ndarray
    own_scores: np.ndarray

    @property
    def own_covered(self) -> float:
        """Share of single prices, told or not, whose 90 % interval by `twin calibrate` holds."""
        return float(np.mean(np.abs(self.own_scores) < 1.645))

    @property
    def covered(self) -> float:
        """Share of identifiable pairs whose 95 % interval holds the truth."""
        return float(np.mean(np.abs(self.scores) < 1.96))

    @property
    def mean_square(self) -> float:
        """Mean squared score; 1 is honest."""
        return float(np.mean(self.scores**2))


def run_campaign(recording: Recording, campaign: Campaign, boards: int, seed: int = 11) -> Outcome:
    """Calibrate hidden boards and compare what is found with what was planted.

    Parameters
    ----------
    recording : Recording
        From `record_networks`.
    campaign : Campaign
        How truths are drawn.
    boards : int
        How many.
    seed : int
        Of truths and noise.

    Notes
    -----
    Interrupts take the same share of every price, on average: the truth asked for includes it.
    """
    rng = np.random.default_rng(seed)
    stated, _ = stated_sds()
    prior = known_prior(TIME_PRICES, np.zeros(len(stated)), np.diag(stated**2))
    amounts = {one.name: recording.amounts(one.name) for one in GEOMETRIES}
    scores: list[float] = []
    odds, own = [], []
    for board in range(boards):
        truth = rng.normal(campaign.shift * stated, stated)
        true = GEOMETRIES[int(rng.integers(len(GEOMETRIES)))].name
        measured = _measure(rng, amounts[true], truth, campaign.interrupted)
        fits = {name: _fit(each, measured, prior, campaign, board)
                for name, each in amounts.items()}
        estimate = fits[true].estimate(_cell(board))
        sds = np.sqrt(np.diag(estimate.covariance))
        told = sds < TOLD * stated
        offset = (math.log1p(INTERRUPTS.service_cycles / INTERRUPTS.gap_cycles)
                  if campaign.interrupted else 0.0)
        scores += list((estimate.log - truth - offset)[told] / sds[told])
        own += list(_score_own(amounts[true], measured, prior, truth + offset, board))
        odds.append([fits[true].log_evidence - fit.log_evidence for name, fit in fits.items()
                     if name != true])
    return Outcome(scores=np.array(scores), odds=np.array(odds), own_scores=np.array(own))


def _score_own(amounts: np.ndarray, measured: np.ndarray, prior: Prior, truth: np.ndarray,
               board: int) -> np.ndarray:
    """Scores of single prices as `twin calibrate` states them, those of no layer held out."""
    evidence = _evidence(amounts, measured, board)
    found = tie_prices(evidence, prior, learn_noise(evidence, prior, OWN_NOISE)).estimate(
        _cell(board))
    scores = (found.log - truth) / np.sqrt(np.diag(found.covariance))
    return np.asarray(scores[amounts.any(axis=0)])


def _measure(rng: np.random.Generator, amounts: np.ndarray, truth: np.ndarray,
             interrupted: bool) -> np.ndarray:
    work = (amounts * np.exp(truth)).sum(axis=1)
    if interrupted:
        starts = np.cumsum(work) - work + rng.uniform(0, 2e8, RUNS)[:, None]
        extra = [[INTERRUPTS.interrupt_cycles(start + one) - INTERRUPTS.interrupt_cycles(start)
                  for start, one in zip(run, work, strict=True)] for run in starts]
        work = work + np.median(extra, axis=0)
    return work * np.exp(rng.normal(0, math.hypot(NOISE.network_sd, NOISE.row_sd), len(work)))


def _fit(amounts: np.ndarray, measured: np.ndarray, prior: Prior, campaign: Campaign,
         board: int) -> Fit:
    evidence = _evidence(amounts, measured, board)
    noise = learn_noise(evidence, prior, OWN_NOISE) if campaign.interrupted else NOISE
    return fit_prices(evidence, prior, noise)


def _evidence(amounts: np.ndarray, measured: np.ndarray, board: int) -> Evidence:
    names = tuple(f"layer {row}" for row in range(len(amounts)))
    return Evidence(names=TIME_PRICES, amounts=amounts, measured=measured, networks=names,
                    cells=(_cell(board),) * len(amounts), labels=names)


def _cell(board: int) -> Cell:
    return Cell(board=f"b{board}", core=CORE, library="lib", release=0.0)
