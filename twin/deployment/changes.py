"""Every what-if path of a deployment, read once into typed changes.

`PATHS` lists those of the core path; a target adds its own, any other path is one of the board
file. `Deployment.replace` applies them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping

from hwmodels.board.facts import Board
from hwmodels.errors import LONGEST_WORD, check_known
from hwmodels.frozen import NamedTexts, frozen
from hwmodels.quantities import UNITS, Settings, read_quantity, suggest_unit
from twin.deployment.choice import choose_runtime
from twin.errors import UsageError
from twin.network.graph import Graph
from twin.runtimes import Runtime, list_runtimes, load_runtime
from twin.runtimes.targets import TARGETS, load_target


@frozen
class ChangeBoard:
    """Facts of the board, by path of its file."""

    settings: Settings


@frozen
class ChangeRuntime:
    """Another kernel library, and the notes on its choice; None: those of the deployment stay."""

    runtime: Runtime
    notes: tuple[str, ...] | None = None


@frozen
class ChangeLoad:
    """One key of what another master does meanwhile."""

    master: str
    key: str
    value: object


@frozen
class Choose:
    """A field of the deployment: where weights, arena, code and tiles are, what a target adds."""

    field: str
    value: object


ALIKE = 0.6
"""Likeness of words from which a path is named as near."""

NEAREST = 8
"""Paths an error names where one is not known."""

SAME_BRANCH = 0.35
"""How much more alike two paths count whose first word is the same."""


@frozen
class ChangeNetwork:
    """The network changed: what is asked of it in all, by path, and what came of it."""

    asked: NamedTexts
    graph: Graph


Change = ChangeNetwork | ChangeBoard | ChangeRuntime | ChangeLoad | Choose

Read = Callable[[str, Graph, Board], Change]
"""(text, network, board) -> the change it asks for."""


@frozen
class WhatIf:
    """A what-if path.

    Parameters
    ----------
    name
        As it is set; MASTER stands for a DMA controller.
    does
        What it changes, in a sentence.
    """

    name: str
    accepted: str
    does: str
    read: Read
    aliases: tuple[str, ...] = ()


LOAD_KEYS: Mapping[str, tuple[Callable[[str], object], str, str]] = {
    "memory": (str, "a memory of the board", "memory another master reads or writes"),
    "bytes_per_second": (float, "a number of bytes a second, such as 20e6", "its rate"),
    "write": ({"true": True, "false": False}.__getitem__, "true, false", "whether it writes"),
    "burst_beats": (int, "a whole number from 1 on", "beats of its bursts"),
    "bank": (int, "a whole number from 0 on", "bank of the memory it keeps to")}
"""Keys of `load.MASTER`: how their text is read, what is accepted, what it says."""


def _read_via(text: str, graph: Graph, board: Board) -> Choose:
    check_known(f"placement.weights_via: {board.name} has no DMA controller", text,
                [*(dma.name for dma in board.dma), "none"], UsageError)
    return Choose(field="weights_via", value=None if text == "none" else text)


def _read_runtime(text: str, graph: Graph, board: Board) -> ChangeRuntime:
    runtime, notes = choose_runtime(graph, text, board)
    return ChangeRuntime(runtime=runtime, notes=notes)


def _read_memory(field: str) -> Read:
    return lambda text, graph, board: Choose(field=field, value=text)


_MEASURE = re.compile(r"\s*[+-]?[\d.]+(?:[eE][+-]?\d+)?\s*[A-Za-z/]+\s*")

_MEMORY = ("a memory, its role, or an accelerator's pool; several as sram+sdram where the runtime "
           "splits")

PATHS = (
    WhatIf(name="runtime", accepted="a runtime, as name@version, default or best",
         does="kernel library", read=_read_runtime),
    WhatIf(name="placement.weights", accepted=_MEMORY, does="where the weights are",
         read=_read_memory("weights")),
    WhatIf(name="placement.arena", accepted=_MEMORY, does="where the arena is",
         read=_read_memory("arena")),
    WhatIf(name="placement.code", accepted="a memory or its role", does="where the kernels are",
         read=_read_memory("code")),
    WhatIf(name="placement.weights_via", accepted="a DMA controller, or none",
         does="weights are copied layer by layer while others are computed", read=_read_via),
    WhatIf(name="placement.tiles", accepted="a memory", does="where weights are copied to",
         read=_read_memory("tiles")),
)
"""Paths of every target besides those of the board file and of `load.MASTER`, in the order they
are applied."""


def check_unit(path: str, value: object) -> None:
    """Refuse a number whose unit a path has on no board, before any board is changed.

    Raises
    ------
    UsageError
        With the units it has.
    """
    from hwmodels.board.catalogue import find_fact

    fact = find_fact(path)
    units = fact.units if fact else ()
    dimension = next((name for name, known in UNITS.items() if units and tuple(known) == units), "")
    if dimension and isinstance(value, str) and _MEASURE.fullmatch(value) and read_quantity(
            value.strip(), dimension) is None:
        raise UsageError(f"{path}: {value!r} is not a number of this unit; accepted: a number, or "
                         f"one with a unit of {', '.join(units)}{suggest_unit(value, dimension)}")


def takes_whole(path: str) -> bool:
    """Whether a number a path is set to is a whole one."""
    from hwmodels.board.catalogue import find_fact
    from twin.network.rewrites.rewrite import find_rewrites, load_rewrite

    fact = find_fact(path)
    return fact.whole if fact else path in find_rewrites() and load_rewrite(path).whole


def list_paths() -> Iterator[tuple[str, str, str]]:
    """Yield every path besides the board file's: its name, accepted values, what it changes."""
    from twin.deployment.kernels import KERNEL_PATHS
    from twin.network.rewrites.rewrite import list_rewrites

    for path in PATHS:
        yield path.name, path.accepted, path.does
    for rewrite in list_rewrites():
        yield rewrite.name, rewrite.accepted, rewrite.does
    yield from KERNEL_PATHS
    for key, (_, accepted, does) in LOAD_KEYS.items():
        yield f"load.MASTER.{key}", accepted, does
    for name in TARGETS:
        for path in load_target(name).paths:
            yield path.name, path.accepted, path.does


def list_paths_of(board: Board) -> Iterator[tuple[str, str, str]]:
    """Yield every path a board has, those of its file included.

    Parameters
    ----------
    board
        Whose DMA controllers, caches, memories ... stand in the paths.

    Yields
    ------
    tuple of str
        Name, accepted values with their units, what it changes.
    """
    from hwmodels.board.catalogue import list_facts_of

    for name, accepted, does in list_paths():
        named = [dma.name for dma in board.dma] if "MASTER" in name else [""]
        yield from ((name.replace("MASTER", one), accepted, does) for one in named)
    for row in list_facts_of(board):
        yield row.path, row.takes, row.doc


def name_near_paths(path: str, board: Board) -> str:
    """Return the paths of a board most like one there is not, nearest first, for an error.

    Notes
    -----
    The more alike of whole paths, and of their last words; those of the same first word, which is
    what somebody knew, before others that are little more alike.
    """
    def rank(known: str) -> float:
        whole = difflib.SequenceMatcher(None, path, known).ratio()
        last = difflib.SequenceMatcher(
            None, path.rpartition(".")[2], known.rpartition(".")[2]).ratio()
        return -max(whole, 0.9 * last) - SAME_BRANCH * (known.split(".")[0] == branch)

    path = path[:LONGEST_WORD]
    branch = path.split(".")[0]
    known = dict.fromkeys(name for name, _, _ in list_paths_of(board))
    near = sorted(known, key=rank)[:NEAREST]
    if rank(near[0]) > -ALIKE:
        return f"nothing is like it; all of them: twin explain paths {board.name}"
    return f"nearest: {', '.join(near)}; all of them: twin explain paths {board.name}"


def parse_changes(overrides: Settings, graph: Graph, board: Board, runtime: Runtime,
                  original: Graph | None = None, rewritten: NamedTexts = ()) -> tuple[Change, ...]:
    """Read dotted paths and their values.

    Parameters
    ----------
    overrides
        WhatIf to value; numbers may be text.
    graph, board, runtime
        Of the deployment to change.
    original
        The network before what was asked of it already; by default none was.
    rewritten : tuple of (str, str)
        What was: a path asked for again replaces what it was set to.

    Returns
    -------
    tuple of Change
        In the order they are applied: network, runtime, what a target adds, places, board, loads.

    Raises
    ------
    TwinError
        For a value that cannot be. Paths of the board file are checked where they are applied.
    """
    left = dict(overrides)
    changes = _read_network(left, original or graph, rewritten)
    for change in changes:
        if isinstance(change, ChangeNetwork):
            graph = change.graph
    first, *rest = PATHS
    changes += _take(first, left, graph, board)
    for change in changes:
        if isinstance(change, ChangeRuntime):
            runtime = change.runtime
    kernels = {name: str(left.pop(name)) for name in [*left] if name.startswith("kernels.")}
    if kernels:
        from twin.deployment.kernels import choose_kernels

        runtime, extension = choose_kernels(kernels, runtime, board)
        changes += [ChangeRuntime(runtime=runtime), Choose(field="extension", value=extension)]
    own = load_target(runtime.target).paths
    for path in own:
        changes += _take(path, left, graph, board)
    for path in rest:
        changes += _take(path, left, graph, board)
    loads = [_read_load(path, str(left.pop(path)).strip(), board)
             for path in [*left] if path.startswith("load.")]
    _refuse_others(left, runtime)
    if left:
        changes.append(ChangeBoard(settings=left))
    return (*changes, *loads)


def _read_network(left: dict[str, object], original: Graph, rewritten: NamedTexts) -> list[Change]:
    """Read the paths of the network, and take them out of what is left."""
    asked = {name: left.pop(name) for name in [*left] if name.startswith("network.")}
    if not asked:
        return []
    from twin.network.rewrites.rewrite import drop_neutral, rewrite_network

    merged = drop_neutral({**dict(rewritten), **asked})
    if not (merged or rewritten):
        return []
    graph = rewrite_network(original, merged)
    return [ChangeNetwork(asked=() if graph is original else tuple(merged.items()), graph=graph)]


def _take(path: WhatIf, left: dict[str, object], graph: Graph, board: Board) -> list[Change]:
    """Read a path under each of its names, and take it out of what is left."""
    return [path.read(str(left.pop(name)), graph, board)
            for name in (path.name, *path.aliases) if name in left]


def _refuse_others(left: Settings, runtime: Runtime) -> None:
    """Refuse paths that only another runtime's target has."""
    if all(name.split(".")[0] not in ("placement", "offload") for name in left):
        return
    for target in TARGETS:
        for path in load_target(target).paths:
            if any(name in left for name in (path.name, *path.aliases)):
                able = (one.name for one in map(load_runtime, list_runtimes())
                        if one.target == target)
                raise UsageError(f"{path.name}: runtime {runtime.identity} does not offload; "
                                 f"accepted with a runtime that does, such as {next(able, '')}")


def _read_load(path: str, given: str, board: Board) -> ChangeLoad:
    parts, masters = path.split("."), [dma.name for dma in board.dma]
    if not masters:
        raise UsageError(f"{path}: {board.name} has no DMA controller")
    if len(parts) != 3 or parts[1] not in masters or parts[2] not in LOAD_KEYS:
        raise UsageError(f"{path}: no such path; {name_near_paths(path, board)}")
    read, accepted, _ = LOAD_KEYS[parts[2]]
    try:
        return ChangeLoad(master=parts[1], key=parts[2], value=read(given.lower()))
    except (ValueError, KeyError) as error:
        raise UsageError(f"{path}: {given!r}; accepted: {accepted}") from error
