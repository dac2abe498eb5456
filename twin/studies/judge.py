"""How often networks are right, as a column beside time and energy: on data, or as a user says.

A network is run as `twin.studies.accuracy` runs it: a .tflite or changed one by LiteRT, an .onnx
file by ONNX Runtime, to the bit. What was found is kept by content of network, changes and data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from calibration.fitting.intervals import LEVEL, Interval
from hwmodels.errors import TwinError
from hwmodels.files import names_file
from hwmodels.frozen import NamedTexts, frozen, list_fields
from hwmodels.processes import map_forked
from hwmodels.quantities import Settings
from twin.deployment.kept_counts import load_counts, save_counts
from twin.errors import NotApplicableError, UsageError
from twin.network.graph import Graph
from twin.network.rewrites.rewrite import is_neutral, rewrite_network
from twin.studies.accuracy import Accuracy, change_network, measure_accuracy, wilson_interval
from twin.studies.functions import load_function
from twin.studies.labelled import Data, read_data

Function = Callable[[Graph], "float | tuple[int, int]"]
"""A user's: a network, changed where changes are asked -> share of right answers, or right answers
and samples, which give an interval."""

Changes = NamedTexts
VERSION = 1
"""Of what is kept: another one is measured again."""


@frozen
class Verdict:
    """How often a network is right: from 0 to 1, or why that is not known.

    Parameters
    ----------
    share
        Of right answers; None is not known.
    interval
        Wilson's; None without a number of samples.
    by
        What ran it, or why nothing did.
    """

    share: float | None = None
    interval: Interval | None = None
    by: str = ""


@frozen
class Judge:
    """Measures networks on the first of its data sets whose inputs fit, or asks a function.

    Parameters
    ----------
    identity
        Hash of the data's files, or of the function's.
    kept
        What was found in this process.
    """

    identity: str
    data: tuple[Data, ...] = field(default=(), repr=False)
    function: Function | None = field(default=None, repr=False)
    kept: dict[tuple[str, Changes], Verdict] = field(default_factory=dict, repr=False)

    def rate(self, graph: Graph, changes: Settings) -> Verdict:
        """Return the verdict on a network with changes of it; others are omitted."""
        asked = pick_changes(changes)
        key = graph.sha256 or graph.content_id, asked
        if key not in self.kept:
            self.kept[key] = self._load(*key) or self._measure(graph, asked)
        return self.kept[key]

    def rate_all(self, asked: Iterable[tuple[Graph, Settings]]) -> None:
        """Rate many networks, by a process for each core."""
        new = {key: (graph, changes) for graph, changes in asked
               if (key := (graph.sha256 or graph.content_id, pick_changes(changes)))
               not in self.kept}
        found = map_forked(lambda one: self.rate(*one), [*new.values()])
        self.kept.update(zip(new, found, strict=True))

    def _address(self, network: str, changes: Changes) -> str:
        return hashlib.sha256(repr((VERSION, "accuracy", network, changes, self.identity)
                                   ).encode()).hexdigest()

    def _load(self, network: str, changes: Changes) -> Verdict | None:
        """Return what was kept on disk; of a function nothing is."""
        found = None if self.function is not None else load_counts(self._address(network, changes))
        try:
            return found and _judge(int(found["right"]), int(found["samples"]), str(found["by"]))
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return None

    def _measure(self, graph: Graph, changes: Changes) -> Verdict:
        try:
            if self.function is not None:
                return _read_answer(self.function(rewrite_network(graph, dict(changes))
                                                  if changes else graph))
            found = self._run(graph, changes)
        except TwinError as error:
            return Verdict(by=str(error))
        save_counts(self._address(graph.sha256 or graph.content_id, changes),
                    list_fields(found, "right", "samples", "by"))
        return _judge(found.right, found.samples, found.by)

    def _run(self, graph: Graph, changes: Changes) -> Accuracy:
        changed = rewrite_network(graph, dict(changes)) if changes else graph
        if len(changed.inputs) != 1:
            raise NotApplicableError(f"{graph.name}: has {len(changed.inputs)} inputs; accepted: "
                                     "one")
        elements = changed.tensors[changed.inputs[0]].elements
        data = next((one for one in self.data if one.inputs[0].size == elements), None)
        if data is None:
            raise NotApplicableError(f"{graph.name}: no data whose inputs have its {elements:,} "
                                     "elements")
        if not changes:
            return measure_accuracy(graph, data, graph.source if names_file(graph.source) else None)
        changed, left, _ = change_network(graph, dict(changes), data)
        return measure_accuracy(changed, left)


def pick_changes(changes: Settings) -> Changes:
    """Return changes of a network among changes of a deployment, in order of their paths."""
    return tuple(sorted((path, str(value)) for path, value in changes.items()
                        if path.startswith("network.") and not is_neutral(path, value)))


def _judge(right: int, samples: int, by: str) -> Verdict:
    low, high = wilson_interval(right, samples)
    return Verdict(share=right / samples, by=by, interval=Interval(low=low, high=high, level=LEVEL))


def _read_answer(answer: Any) -> Verdict:
    """Return what a user's function said; raises `UsageError` for what is not a share."""
    by = "your function"
    if isinstance(answer, tuple) and len(answer) == 2 and 0 <= answer[0] <= answer[1] != 0:
        return replace(_judge(int(answer[0]), int(answer[1]), by), by=by)
    if isinstance(answer, float | int) and 0 <= answer <= 1:
        return Verdict(share=float(answer), by=by)
    raise UsageError(f"--accuracy: the function returned {answer!r}; accepted: a share from 0 to "
                     "1, or right answers and samples")


def make_judge(source: str | Path | Function | Sequence[Any] | None) -> Judge | None:
    """Return the judge a source names; None for None.

    Parameters
    ----------
    source : str, path or callable
        An .npz file of x and y, a folder of them (of several shapes of inputs), FILE.py:FUNCTION,
        or a function.

    Raises
    ------
    UsageError
        For what is none of them.
    """
    if source is None:
        return None
    if callable(source):
        return Judge(function=source, identity=repr(source))
    name = str(source)
    if ".py:" in name:
        path = Path(name.rpartition(":")[0])
        return Judge(function=load_function(name, "--accuracy"), identity=_hash([path]))
    files = sorted(Path(name).glob("*.npz")) if Path(name).is_dir() else [Path(name)]
    if not files:
        raise UsageError(f"--accuracy {name}: holds no .npz; accepted: a file of inputs (x) and "
                         "labels (y), a folder of them, or FILE.py:FUNCTION")
    return Judge(data=tuple(map(read_data, files)), identity=_hash(files))


def _hash(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest()
                                   for path in files)).hexdigest()
