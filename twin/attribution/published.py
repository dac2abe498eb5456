"""Published results beside predictions: which rows are of this network, and what we say instead.

This is the only place of the library that reads sealed rows: it judges, it never learns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import median

import calibration.datasets
from calibration.datasets import PublishedRow, board_settings, published_rows, read_table, stand_in
from hwmodels.board.file import load_board
from hwmodels.errors import TwinError
from hwmodels.frozen import frozen
from twin.deployment.choice import load_runtime
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.deployment.stated import is_known
from twin.errors import PlacementError
from twin.network.graph import Graph
from twin.network.operators import graph_macs
from twin.pricing.accelerator.certainty import doubt_release
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.calibration import choose_calibration
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction

FEWEST_SEALED = 5
"""Fewer sealed rows have no median: it would tell a row."""

LAYER_LISTS = Path(calibration.datasets.__file__).parent / "stm32_zoo" / "layers"
"""Layer lists of published networks whose model files are not ours to ship."""


@frozen
class Comparison:
    """A published row and what is predicted for it.

    Parameters
    ----------
    prediction
        One warm inference.
    reason
        Why there is no prediction, "" when there is one.
    """

    row: PublishedRow
    prediction: Prediction | None = None
    reason: str = ""

    @property
    def runtime(self) -> str | None:
        """Identity of the runtime that predicted; None without a prediction."""
        return None if self.prediction is None else self.prediction.runtime.identity

    @property
    def published_by(self) -> str:
        """Who published the row, and in which edition."""
        return f"{self.row.submitter} {self.row.edition}"

    @property
    def predicted_ms(self) -> float | None:
        """Time of an inference."""
        return None if self.prediction is None else self.prediction.time_us / 1e3

    @property
    def predicted_uj(self) -> float | None:
        """Energy of an inference; None is not known."""
        return None if self.prediction is None else self.prediction.energy_uj

    @property
    def sealed(self) -> bool:
        """Whether the row only judges: it is never shown singly."""
        return self.row.use != "fit"

    @property
    def latency_ratio(self) -> float | None:
        """Predicted over published latency; None when either is not known."""
        return _ratio(self.predicted_ms, self.row.latency_ms)

    @property
    def energy_ratio(self) -> float | None:
        """Predicted over published energy; None when either is not known or not comparable."""
        return _ratio(self.predicted_uj, self.row.energy_uj) if self.row.judges_energy else None

    @property
    def stood_in(self) -> bool:
        """Whether another version or library predicted than the one that was measured."""
        return self.runtime is not None and self.row.runtime is not None and \
            stand_in(self.row.runtime) != self.row.runtime


def _ratio(predicted: float | None, published: float | None) -> float | None:
    return predicted / published if predicted is not None and published else None


def build_published(model: str) -> Graph:
    """Build the network of a published row.

    Parameters
    ----------
    model
        `PublishedRow.model`: a zoo network, or the stem of a layer list.

    Returns
    -------
    Graph
        Its architecture; weights are the zoo's own.
    """
    from twin.network import zoo

    if zoo.is_known(model):
        return zoo.build(model)
    from twin.network.readers.layer_list import read_layer_list

    return read_layer_list(LAYER_LISTS / f"{model}.json")


@lru_cache(maxsize=128)
def _architecture_id(model: str) -> str:
    return build_published(model).architecture_id


@lru_cache(maxsize=1)
def _listed_macs() -> Mapping[str, int]:
    """MACs of the layer lists, so that a network is built only when it can be the one asked for."""
    rows = read_table("stm32_zoo_models").rows
    return {str(row["layers_json"]).removeprefix("layers/").removesuffix(".json"):
            int(str(row["macs"])) for row in rows if row["layers_json"]}


def match_rows(graph: Graph, *, board: str | None) -> tuple[PublishedRow, ...]:
    """Return every published row of the same architecture, fit and sealed ones.

    Parameters
    ----------
    graph
        Any network; matched by architecture id, not by name or file hash.
    board
        Only rows of this board.

    Returns
    -------
    tuple of PublishedRow
        In file order; rows that ran on an accelerator included and flagged.
    """
    macs = graph_macs(graph)
    known: dict[str, bool] = {}
    matched = []
    for row in published_rows(use="all"):
        if row.model is None or (board is not None and row.board != board):
            continue
        if row.model not in known:
            known[row.model] = (_listed_macs().get(row.model, macs) == macs
                                and _architecture_id(row.model) == graph.architecture_id)
        if known[row.model]:
            matched.append(row)
    return tuple(matched)


def deploy_row(row: PublishedRow, graph: Graph) -> Deployment:
    """Deploy a network as a published row states: board, clock, supply, runtime, placement.

    Raises
    ------
    TwinError
        When we have no such board or runtime, or the network does not fit.

    Notes
    -----
    An arena the source places in a memory that cannot hold it (a project file kept from another
    network) goes where the board's default would put it. On an accelerator the epoch controller is
    on, as its vendor's tools have it unless stated otherwise.
    """
    refusal = find_refusal(row)
    if refusal:
        raise TwinError(refusal)
    settings = board_settings(row)
    if _is_accelerated(row):
        settings["npu.epoch_controller"] = "true"
    board = load_board(str(row.board), overrides=settings)
    runtime = stand_in(str(row.runtime))
    try:
        return deploy(graph, board, runtime=runtime, clock_hz=row.clock_hz, arena=row.arena,
                      follow_clock=False)
    except PlacementError:
        if row.arena is None:
            raise
        return deploy(graph, board, runtime=runtime, clock_hz=row.clock_hz, follow_clock=False)


def find_refusal(row: PublishedRow) -> str:
    """Return why a row cannot be predicted whatever the models say, or ""."""
    if row.board is None:
        return f"no board file for {row.board_name}"
    if row.runtime is None or not is_known(stand_in(row.runtime)):
        return f"no runtime for {row.runtime or row.software.partition('|')[0].strip()}"
    if ("npu" in row.flags or "accelerator" in row.flags) and not _is_accelerated(row):
        return "ran on an accelerator"
    if row.model is None:
        return "the network is not known"
    if row.precision != "int8":
        return f"published in precision {row.precision!r}"
    return ""


def _is_accelerated(row: PublishedRow) -> bool:
    return load_runtime(stand_in(str(row.runtime))).accelerated


RowPredictor = Callable[[PublishedRow, Graph], Prediction]


def predict_row(row: PublishedRow, graph: Graph) -> Prediction:
    """Predict a published row, warm; raises TwinError as `deploy_row` does."""
    return predict(deploy_row(row, graph))


def compare_row(row: PublishedRow, graph: Graph, predictor: RowPredictor) -> Comparison:
    """Set a prediction beside one published row; a refusal becomes the reason."""
    try:
        return Comparison(row=row, prediction=predictor(row, graph))
    except TwinError as error:
        return Comparison(row=row, reason=str(error))


def compare_published(graph: Graph, board: str | None = None, *,
                      predictor: RowPredictor = predict_row) -> tuple[Comparison, ...]:
    """Set predictions beside every published row of a network.

    Parameters
    ----------
    board
        Only rows of this board.
    predictor
        (row, graph) -> Prediction.

    Returns
    -------
    tuple of Comparison
        One per matching row, in file order; rows without a prediction say why.
    """
    rows = match_rows(graph, board=board)
    return compare_rows(((row, graph) for row in rows), predictor=predictor)


def describe_sealed(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """Say how far predictions are from sealed rows together; single rows are never shown.

    Parameters
    ----------
    comparisons
        Of any use; those of use fit are held out.

    Returns
    -------
    tuple of str
        How many sealed rows there are, and the median error of a quantity where at least
        `FEWEST_SEALED` of them have it.
    """
    sealed = [one for one in comparisons if one.sealed]
    if not sealed:
        return ()
    found, known = [], 0
    for what, ratios in (("latency", [one.latency_ratio for one in sealed]),
                         ("energy", [one.energy_ratio for one in sealed])):
        errors = [abs(ratio - 1) for ratio in ratios if ratio is not None]
        known = max(known, len(errors))
        if len(errors) >= FEWEST_SEALED:
            found.append(f"{what}: {len(errors)} sealed rows, median error "
                         f"{100 * median(errors):.1f} %")
    one = len(sealed) == 1
    return (f"{len(sealed)} sealed row{'s' * (not one)} only judge{'s' * one} and "
            f"{'is' if one else 'are'} not shown"
            + ("" if found else f"; {known} can be compared, a median needs {FEWEST_SEALED}"),
            *found)


def compare_rows(cases: Iterable[tuple[PublishedRow, Graph]], *,
                 predictor: RowPredictor) -> tuple[Comparison, ...]:
    """Set predictions beside published rows; rows that state the same set-up share one."""
    done: dict[object, Comparison] = {}
    compared = []
    for row, graph in cases:
        key = (graph.architecture_id, row.board, row.runtime, row.clock_hz, row.arena,
               row.precision, row.flags, tuple(board_settings(row).items()))
        if key not in done:
            done[key] = compare_row(row, graph, predictor)
        compared.append(replace(done[key], row=row))
    return tuple(compared)


def row_predictor(wanted: str) -> RowPredictor:
    """Return how published rows are predicted with a choice of calibration."""
    def predict_published(row: PublishedRow, graph: Graph) -> Prediction:
        deployment = deploy_row(row, graph)
        found = predict_calibrated(
            deployment, calibration=choose_calibration(
                deployment, wanted, runtime=row.runtime) or wanted)
        return found if row.runtime == stand_in(str(row.runtime)) else doubt_release(found)

    return predict_published
