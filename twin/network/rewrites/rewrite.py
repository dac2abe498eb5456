"""A change of a network one can ask for by name, and where all of them are found.

Each file beside this one whose `REWRITE` names a path is one; a new one is a new file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from hwmodels.errors import check_known, check_word, reworded
from hwmodels.frozen import NamedTexts, frozen
from hwmodels.quantities import Settings, read_quantity
from twin.errors import AlreadySoError, ModelError, NotApplicableError, UsageError
from twin.network.graph import Graph, Layer, Tensor
from twin.network.operators import PAD

_NAMED = re.compile(r'^REWRITE = Rewrite\(\s*name="(network\.\w+)"', re.MULTILINE)

EFFORTS = ("setting", "rebuild", "conversion", "retraining")
"""What a change asks of its user, least first: another line of a configuration; building the
program again; converting the trained network again; training it again."""

MOST_KEPT = 16
"""Changed networks, for the next deployment of the same; each holds its constants."""


@frozen
class Rewrite:
    """A change of a network that can be asked for.

    Parameters
    ----------
    name
        Path it is set by: "network.width".
    does
        What it changes, in a sentence.
    effort
        One of `EFFORTS`.
    costs
        What it costs besides, in words; "" when it changes no output.
    stage
        Changes asked for together are made by rising stage: shapes before types.
    values
        graph -> values worth trying, as text.
    read
        text -> a value; raises `UsageError` for text that is none.
    apply
        (graph, value) -> the changed graph; raises `NotApplicableError` saying why not.
    rounds
        How values are rounded, so that several may be one network; "" where they are not.
    neutral
        Value that leaves the network as it is; None: there is none.
    whole
        Whether a number it takes is a whole one.
    several
        Whether figures are then of several inputs.
    """

    name: str
    accepted: str
    does: str
    effort: str
    costs: str
    stage: int
    values: Callable[[Graph], tuple[str, ...]]
    read: Callable[[str], Any]
    apply: Callable[[Graph, Any], Graph]
    rounds: str = ""
    neutral: float | None = None
    whole: bool = False
    several: bool = False


@cache
def find_rewrites() -> Mapping[str, str]:
    """Return the module of every rewrite by its path, without importing them."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for name in _NAMED.findall(path.read_text(encoding="utf-8")):
            found[name] = f"twin.network.rewrites.{path.stem}"
    return found


def load_rewrite(name: str) -> Rewrite:
    """Return a rewrite by its path.

    Raises
    ------
    UsageError
        When there is none of that name, with the nearest ones.
    """
    known = find_rewrites()
    check_known("no such path", name, known, UsageError)
    rewrite: Rewrite = import_module(known[name]).REWRITE
    return rewrite


@cache
def makes_another(name: str) -> bool:
    """Whether a path makes a network of other answers, or of several, that is no rival."""
    known = name in find_rewrites()
    return known and bool((rewrite := load_rewrite(name)).costs or rewrite.several)


def list_rewrites() -> tuple[Rewrite, ...]:
    """Return all rewrites, in the order they are applied."""
    return tuple(sorted(map(load_rewrite, find_rewrites()), key=lambda one: (one.stage, one.name)))


def is_neutral(name: str, value: object) -> bool:
    """Whether a value of a path leaves the network as it is: all of its width, nothing pruned."""
    number = read_quantity(str(value).strip(), "")
    return number is not None and number[0] == load_rewrite(name).neutral


def check_value(name: str, value: object) -> None:
    """Refuse a value that a path of the network does not take; raises `UsageError`."""
    if name in find_rewrites() and not is_neutral(name, value):
        load_rewrite(name).read(str(value).strip())


def drop_neutral(changes: Settings) -> dict[str, str]:
    """Return changes as text, those apart that leave the network as it is."""
    return {name: str(value).strip() for name, value in changes.items()
            if not is_neutral(name, value)}


def rewrite_network(graph: Graph, changes: Settings) -> Graph:
    """Return a network with changes made, in the order of their stages.

    Parameters
    ----------
    changes
        Path ("network.width") to value.

    Returns
    -------
    Graph
        Checked as a file is when it is read, its notes saying what was changed.

    Raises
    ------
    UsageError
        For a path or a value that cannot be.
    NotApplicableError
        When a change does not apply to this network, with the reason; one that asks for what the
        network is already does, and changes nothing.
    """
    return _rewrite(graph, tuple(drop_neutral(changes).items()))


@lru_cache(maxsize=MOST_KEPT)
def _rewrite(graph: Graph, changes: NamedTexts) -> Graph:
    """Change a network; the same graph, changed again in the same way, is the very same one."""
    from twin.network.readers.verification import verify_graph

    asked = sorted(((load_rewrite(name), value) for name, value in changes),
                   key=lambda one: (one[0].stage, one[0].name))
    for rewrite, value in asked:
        try:
            changed = rewrite.apply(graph, rewrite.read(value))
        except AlreadySoError:
            continue
        if changed is graph:
            continue
        with reworded(ModelError, NotApplicableError, f"{rewrite.name}={value}: "):
            verify_graph(changed)
        costs = f"; {rewrite.costs}" if rewrite.costs else ""
        graph = derive(changed, f"{rewrite.name}={value}",
                       notes=(*changed.notes, f"{rewrite.name}={value}: {rewrite.does}{costs}"))
    return graph


def derive(graph: Graph, said: str, **fields: Any) -> Graph:
    """Return a changed graph, whose `sha256` follows from the original's and what was done."""
    return replace(graph, sha256=hashlib.sha256(f"{graph.sha256}:{said}".encode()).hexdigest(),
                   planned_bytes=(0,) * len(graph.planned_bytes), **fields)


def rebuild(graph: Graph, tensors: Iterable[Tensor], layers: Iterable[Layer],
            **fields: Any) -> Graph:
    """Return a graph of other tensors and layers, which are numbered again in their order."""
    return replace(graph, tensors=tuple(tensors), layers=tuple(
        layer if layer.index == index else replace(layer, index=index)
        for index, layer in enumerate(layers)), **fields)


def pad_layer(name: str, source: int, output: int, rows: tuple[int, int],
              columns: tuple[int, int]) -> Layer:
    """Return the layer that pads an image by zeros: above and below, left and right."""
    return Layer(index=0, name=name, op=PAD, inputs=(source,), outputs=(output,), options=(
        ("mode", "constant"), ("paddings", ((0, 0), rows, columns, (0, 0))), ("value", 0.0)))


def read_share(name: str, text: str) -> float:
    """Read a share above 0 and below 1.

    Raises
    ------
    UsageError
        Naming the path and what is accepted.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < 1:
        raise UsageError(f"{name}: {text!r}; accepted: a number above 0 and below 1, "
                         f"or {load_rewrite(name).neutral:g}, which changes nothing")
    return value


def read_choice(name: str, accepted: Iterable[str], text: str) -> str:
    """Read one of several words.

    Raises
    ------
    UsageError
        Naming the path and what is accepted.
    """
    word = text.lower()
    check_word(f"{name}:", word, tuple(accepted), UsageError)
    return word
