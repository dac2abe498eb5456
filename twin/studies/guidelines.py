"""Guidelines learnt from results of studies: a tree with its errors, classes of hardware, changes.

Nothing here is a rule of thumb: each figure is counted in rows of studies that are named.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from calibration.fitting.tree import grow_tree, tighten
from hwmodels.board.file import load_board
from hwmodels.frozen import NamedCounts, NamedTexts, frozen
from hwmodels.quantities import format_energy
from twin.deployment.choice import load_runtime
from twin.errors import StudyError
from twin.network.graph import Graph
from twin.network.model_file import name_model
from twin.network.operators import Form, layer_macs, traits
from twin.network.readers import read_model
from twin.network.rewrites.rewrite import is_neutral, rewrite_network
from twin.studies.decisions import Decision, decide
from twin.studies.results import Table
from twin.studies.rows import Row, list_known
from twin.studies.study.definition import Finding, Study
from twin.studies.study.findings import Effect, group_rows, list_effects


@frozen
class Character:
    """A network in a few numbers.

    Parameters
    ----------
    macs
        Multiply-accumulates of an inference.
    depthwise, dense
        Shares of them in depthwise convolutions and in fully connected layers.
    bytes_per_mac
        Weights and activations, each once, for each multiply-accumulate: how little is reused.
    """

    macs: int
    depthwise: float
    dense: float
    bytes_per_mac: float
    layers: int

    @property
    def layer_macs(self) -> float:
        """Multiply-accumulates of a layer in the mean: over how many a call is spread."""
        return self.macs / self.layers


@functools.lru_cache(maxsize=512)
def characterise(model: str, changes: NamedTexts = ()) -> Character:
    """Return the character of a network.

    Parameters
    ----------
    model
        As `read_model` takes it.
    changes : tuple of (str, str)
        Paths of the network that were set.
    """
    graph = _read(model)
    return _characterise(rewrite_network(graph, dict(changes)) if changes else graph)


@functools.lru_cache(maxsize=32)
def _read(model: str) -> Graph:
    return read_model(model)


def _characterise(graph: Graph) -> Character:
    macs = [layer_macs(graph, layer) for layer in graph.layers]
    total = max(1, sum(macs))
    rows = list(zip(map(traits, graph.layers), macs, strict=True))
    held = sum(tensor.size_bytes for tensor in graph.tensors if tensor.is_constant)
    moved = sum(graph.tensors[i].size_bytes for layer in graph.layers for i in layer.outputs)
    return Character(macs=total,
                     depthwise=sum(count for row, count in rows if row.is_depthwise) / total,
                     dense=sum(count for row, count in rows if row.form is Form.PRODUCT) / total,
                     bytes_per_mac=(held + moved) / total, layers=max(1, len(graph.layers)))


PER = ("MAC", "layer")
"""What a figure may be stated for."""

DEPTHS, LEAST = (2, 3, 4, 5), 4
"""Of the tree: levels, of which those with least error on held-out networks are taken, and the
fewest runs a leaf stands on."""

CHANGED = "network."
RESIZED = ("network.width", "network.channels", "network.prune", "network.resolution")
"""Changes of a network that leave its kernels as they are; rows of others teach the trees nothing,
for what is said of a network would not be of it."""


@frozen
class Leaf:
    """A leaf of the tree: what leads to it, and what its runs cost.

    Parameters
    ----------
    typical
        Geometric mean over its runs: core cycles, or picojoules, for each `per`.
    per
        "MAC" or "layer": of a multiply-accumulate, or of a layer (accelerators, whose launches
        may take more than their work).
    runs
        How many.
    error
        Median of how far its runs were off, as a factor from 1 on, where their network was left
        out of the learning; None with one network.
    """

    rules: tuple[str, ...]
    typical: float
    runs: int
    error: float | None
    per: str = "MAC"


StudyEffect = tuple[str, Effect]
"""A study, and an effect in it."""

Sources = Sequence[tuple[Study, Table]]
"""Finished studies with their results."""


@frozen
class HardwareClass:
    """What results say of a class of hardware.

    Parameters
    ----------
    boards
        Of the rows.
    fastest, lowest_energy
        Networks no other class runs in less time, or with less energy.
    behind
        Median of its best time over the best of all, by network.
    effects
        Of changes on its boards alone.
    refusals : tuple of (str, int)
        What its boards cannot do, and how often.
    uses
        How often its fastest rows run each network, and with which energy.
    """

    core: str
    boards: tuple[str, ...]
    fastest: tuple[str, ...]
    lowest_energy: tuple[str, ...]
    behind: float | None
    effects: tuple[StudyEffect, ...]
    refusals: NamedCounts
    uses: tuple[str, ...] = ()

    @property
    def best_at(self) -> dict[str, str]:
        """Networks it runs in least time, and with least energy, as they are called."""
        return {what: ", ".join(map(name_model, models)) for what, models in (
            ("time", self.fastest), ("energy", self.lowest_energy)) if models}


@frozen
class Guidelines:
    """The whole guide.

    Parameters
    ----------
    rows
        Predicted configurations in them.
    time_tree, energy_tree
        Of core cycles and of picojoules; of accelerators and of cores alone grown apart.
    effects
        Over all boards; those that save most in the median first.
    decisions
        Leaves of the tree from requirements to hardware, by network and study.
    """

    studies: tuple[str, ...]
    rows: int
    time_tree: tuple[Leaf, ...]
    energy_tree: tuple[Leaf, ...]
    classes: tuple[HardwareClass, ...]
    effects: tuple[StudyEffect, ...]
    decisions: Mapping[str, tuple[Decision, ...]]


def learn(sources: Sources) -> Guidelines:
    """Return the guidelines of finished studies.

    Raises
    ------
    StudyError
        Where there are too few rows to learn from.
    ToolMissingError
        Without scikit-learn.
    """
    runs = [run for study, table in sources for row in table.predicted
            if (run := _make_run(study, row)) is not None]
    rows = [row for study, table in sources for row in table.predicted if not _changes(study, row)]
    if len(runs) < 4 * LEAST or not rows:
        raise StudyError(f"{len(runs)} rows whose network is known; accepted: {4 * LEAST} or "
                         "more, from studies of several models and boards")
    return Guidelines(
        studies=tuple(study.name for study, _ in sources),
        rows=sum(len(table.predicted) for _, table in sources),
        time_tree=grow(runs, "time_us"), energy_tree=grow(runs, "energy_uj"),
        classes=tuple(_describe(core, rows, sources) for core in
                      sorted({core_class(row.board) for row in rows})),
        effects=_rank(_effects(sources)), decisions=_decide(sources))


MOST_BOARDS = 4
"""Boards a study has more of before it teaches which to choose."""


def _decide(sources: Sources) -> dict[str, tuple[Decision, ...]]:
    """Return the tree of each network, of the study with most boards that has it as it is."""
    found: dict[str, tuple[Decision, ...]] = {}
    known = set[str]()
    wide = sorted(sources, key=lambda one: -len({row.board for row in one[1].predicted}))
    for study, table in wide:
        if len({row.board for row in table.predicted}) < MOST_BOARDS:
            continue
        for model in dict.fromkeys(row.model for row in table.predicted):
            if model not in known:
                known.add(model)
                found[f"{name_model(model)} in {study.name}"] = decide([
                    row if row.model == model and not _changes(study, row)
                    else replace(row, failure="other") for row in table.rows])
    return found


@frozen
class Run:
    """A row, and its network."""

    row: Row
    network: Character


def _changes(study: Study, row: Row) -> NamedTexts:
    """Return what was changed of a row's network."""
    inputs = dict(row.inputs)
    paths = {**inputs, **study.cases.get(inputs.get("case", ""), {})}
    return tuple(sorted((path, str(value)) for path, value in paths.items()
                        if path.startswith(CHANGED) and not is_neutral(path, value)))


def _make_run(study: Study, row: Row) -> Run | None:
    changes = _changes(study, row)
    if any(path not in RESIZED for path, _ in changes):
        return None
    return Run(row=row, network=characterise(row.model, changes))


FEATURES = ("depthwise share of MACs", "dense share of MACs", "bytes per MAC",
            "thousand MACs a layer", "core MHz")


def list_features(run: Run, cores: Sequence[str], libraries: Sequence[str]) -> list[float]:
    """Return what the tree may ask of a run; cores and libraries are 0 or 1 each."""
    row, network = run.row, run.network
    core, library = core_class(row.board), row.runtime.partition("@")[0]
    return [network.depthwise, network.dense, network.bytes_per_mac, network.layer_macs / 1e3,
            (row.clock_hz or 0) / 1e6,
            *(float(core == one) for one in cores), *(float(library == one) for one in libraries)]


def relate(run: Run, figure: str, per: str) -> float | None:
    """Return core cycles, or picojoules, per multiply-accumulate or layer; None is not known."""
    value, clock_hz = getattr(run.row, figure), run.row.clock_hz
    if not value or (figure == "time_us" and not clock_hz):
        return None
    whole = value * clock_hz * 1e-6 if figure == "time_us" else value * 1e6
    return float(whole / (run.network.macs if per == "MAC" else run.network.layers))


def grow(runs: Sequence[Run], figure: str) -> tuple[Leaf, ...]:
    """Return the leaves of regression trees of the logarithm of a figure per MAC or layer.

    Parameters
    ----------
    runs
        Those that do not know the figure are held out.
    figure
        "time_us" or "energy_uj".

    Notes
    -----
    The error of a leaf is that of its runs predicted by trees grown without their network, of
    every width and resolution. Of the depths tried, and of the two that a figure may be stated for,
    those of least median error are taken, so it is a little better than on a network nobody
    looked at.
    """
    leaves: list[Leaf] = []
    for accelerated in (True, False):
        known = [run for run in runs if relate(run, figure, "MAC")
                 and load_runtime(run.row.runtime).accelerated == accelerated]
        if len(known) >= 2 * LEAST:
            leaves += min((_grow(known, figure, per, depth) for per in PER for depth in DEPTHS),
                          key=lambda grown: grown[0])[1]
    return tuple(leaves)


def _grow(known: Sequence[Run], figure: str, per: str,
          depth: int) -> tuple[float, tuple[Leaf, ...]]:
    """Return a tree's median error where networks are held out, and its leaves."""
    cores = sorted({core_class(run.row.board) for run in known})
    libraries = sorted({run.row.runtime.partition("@")[0] for run in known})
    asked = np.array([list_features(run, cores, libraries) for run in known])
    targets = np.log([relate(run, figure, per) or 1.0 for run in known])
    tree = grow_tree(asked, targets, [run.row.model for run in known], depth=depth, least=LEAST)
    off = None if tree.left_out is None else np.exp(np.abs(tree.left_out - targets))
    names, places = [*FEATURES, *cores, *libraries], tree.places
    return 0.0 if off is None else float(np.median(off)), tuple(
        Leaf(rules=tuple(_say_split(names, *split) for split in tighten(path)), typical=float(
            np.exp(targets[places == leaf].mean())), per=per, runs=int((places == leaf).sum()),
             error=None if off is None else float(np.median(off[places == leaf])))
        for leaf, path in tree.list_leaves())


def _say_split(names: Sequence[str], feature: int, limit: float, above: bool) -> str:
    name = names[feature]
    return f"{'not ' * (not above)}{name}" if feature >= len(FEATURES) else (
        f"{name} {'>' if above else '<='} {limit:.3g}")


@functools.cache
def core_class(board: str) -> str:
    """Return the class of hardware of a board: its core, and whether there is an accelerator."""
    found = load_board(board)
    return found.core_family + (" with NPU" if found.npu is not None else "")


def _describe(core: str, rows: Sequence[Row], sources: Sources, ) -> HardwareClass:
    own = [row for row in rows if core_class(row.board) == core]
    behind = [ratio for model in dict.fromkeys(row.model for row in rows)
              if (ratio := _least(own, model, "time_us") / _least(rows, model, "time_us")) < 1e300]
    refused = Counter(row.failure for _, table in sources for row in table.failed
                      if core_class(row.board) == core)
    return HardwareClass(
        core=core, boards=tuple(sorted({row.board for row in own})),
        fastest=_winners(own, rows, "time_us"), lowest_energy=_winners(own, rows, "energy_uj"),
        behind=median(behind) if behind else None, refusals=tuple(refused.most_common()),
        effects=_rank(_effects(sources, core)), uses=tuple(_list_uses(own)))


def _list_uses(rows: Sequence[Row]) -> Iterator[str]:
    for model in dict.fromkeys(row.model for row in rows):
        best = min((row for row in rows if row.model == model and row.time_us),
                   key=lambda row: row.time_us or math.inf, default=None)
        if best is not None:
            yield f"{name_model(model)} {1e6 / (best.time_us or math.inf):.3g} times a second" + (
                "" if best.energy_uj is None else f" at {format_energy(best.energy_uj)}")


def _winners(own: Sequence[Row], rows: Sequence[Row], figure: str) -> tuple[str, ...]:
    return tuple(model for model in dict.fromkeys(row.model for row in rows)
                 if _least(own, model, figure) <= _least(rows, model, figure) < math.inf)


def _least(rows: Sequence[Row], model: str, figure: str) -> float:
    return min(list_known((row for row in rows if row.model == model), figure), default=math.inf)


def _effects(sources: Sources, core: str = "", ) -> Iterator[StudyEffect]:
    """Yield effects of every study that compares something, on a class of hardware or on all."""
    for study, table in sources:
        if study.finding is None or study.finding.vary in ("model", "board"):
            continue
        rows = [row for row in table.rows if not core or core_class(row.board) == core]
        finding = Finding(vary=study.finding.vary, baseline=study.finding.baseline,
                          figures=("time_us", "energy_uj"), cells=study.finding.cells)
        if any(len(group) > 1 for group in group_rows(rows, finding.vary)):
            for effect in list_effects(Table(rows=tuple(rows)), finding):
                yield study.name, effect


def _rank(effects: Iterator[StudyEffect]) -> tuple[StudyEffect, ...]:
    return tuple(sorted(effects, key=lambda one: one[1].median))
