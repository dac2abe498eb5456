"""Documents of what there is: boards, runtimes, models, terms, what-if paths, studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hwmodels.errors import TwinError
from twin.network.operators import graph_macs, graph_parameters

if TYPE_CHECKING:
    from calibration.virtual_board import VirtualBoard
    from hwmodels.board.facts import Board, Fact
    from twin.network.graph import Graph
    from twin.reports.glossary import Entry
    from twin.reports.outcomes import NewBoard
    from twin.runtimes import Runtime
    from twin.studies.study.study import Study

SCHEMA = 1


def list_document(found: Iterable[Any] | Mapping[str, Any], kind: str = "",
                  **beside: Any) -> dict[str, Any]:
    """Write a list of what there is, by what is in it or, where it is empty, its kind.

    Raises
    ------
    TwinError
        For a list of something else.
    """
    rows = list(found.values() if isinstance(found, Mapping) else found)
    if not rows and kind:
        return {"schema": SCHEMA, "kind": kind, **beside, kind: []}
    of = type(rows[0]).__name__ if rows else ""
    if of not in _ROWS:
        raise TwinError(f"a list of {of or 'nothing'}: has no JSON document; accepted: of "
                        f"{', '.join(_ROWS)}")
    name, write = _ROWS[of]
    named = found.items() if isinstance(found, Mapping) else [("", row) for row in rows]
    return {"schema": SCHEMA, "kind": name, **beside, name: [
        ({"name": key} if of == "Graph" else {}) | write(row) for key, row in named]}


def boards_document(boards: Any) -> dict[str, Any]:
    """Write the boards there are, and why others cannot be read."""
    return {"schema": SCHEMA, "kind": "boards", "boards": [_board(one) for one in boards.boards],
            "broken": [{"name": name, "reason": reason} for name, reason in boards.broken.items()]}


def board_document(board: Board) -> dict[str, Any]:
    """Write one board: its parts, and every number with its source."""
    return {"schema": SCHEMA, "kind": "board", **_board(board),
            "aliases": list(board.aliases), "description": board.description,
            "supply": {"voltage_v": board.power.voltage_v, "regulator": board.power.regulator,
                       "voltage_scale": board.power.voltage_scale},
            "placement": dict(board.placement),
            "memories": [{
                "name": one.name, "role": one.role, "address": one.address,
                "size_bytes": one.size_bytes, "wait_states": one.wait_states,
                "read_bytes": one.read_bytes, "cacheable": one.cacheable}
                for one in board.memories],
            "facts": [_fact(one) for one in board.facts]}


def new_board_document(made: NewBoard) -> dict[str, Any]:
    """Write where the file is, the board, and which of its facts are guesses."""
    return {"schema": SCHEMA, "kind": "new_board", "file": str(made.path),
            "assumed": [fact.path for fact in made.board.facts if fact.kind == "assumed"],
            "board": board_document(made.board)}


def runtime_document(runtime: Runtime) -> dict[str, Any]:
    """Write one runtime with every number and its source."""
    return {"schema": SCHEMA, "kind": "runtime", **_runtime(runtime),
            "description": runtime.description, "library": runtime.library,
            "in_place": list(runtime.in_place), "fuses_padding": runtime.fuses_padding,
            "overlaps": bool(runtime.overlaps), "facts": [_fact(one) for one in runtime.facts]}


def term_document(entry: Entry) -> dict[str, Any]:
    """Write an entry of the glossary."""
    return {"schema": SCHEMA, "kind": "term", **_term(entry)}


def _board(board: Board) -> dict[str, Any]:
    cache = board.cache(board.core.dcache)
    sizes = {role: sum(one.size_bytes for one in board.memories if one.role in roles)
             for role, roles in (("ram", ("tcm", "sram")), ("flash", ("flash", "external_flash")))}
    return {"name": board.name, "soc": board.soc, "core": board.core.model,
            "isa": board.core.isa,
            "clocks_hz": {one.name: one.frequency_hz for one in board.clocks},
            "ram_bytes": sizes["ram"], "flash_bytes": sizes["flash"],
            "dcache_bytes": cache.size_bytes if cache else None,
            "accelerator": None if board.npu is None else board.npu.family,
            "price_usd": board.price_usd}


def _fact(fact: Fact) -> dict[str, Any]:
    return {"path": fact.path, "value": fact.value, "fact_kind": fact.kind,
            "source": fact.source, "rel_sd": fact.rel_sd}


def _runtime(runtime: Runtime) -> dict[str, Any]:
    return {"name": runtime.name, "version": runtime.version, "identity": runtime.identity,
            "types": list(runtime.dtypes), "structure": runtime.structure,
            "drops_dead_channels": runtime.drops_dead_channels,
            "dispatch_cycles": runtime.dispatch_cycles}


def _model(graph: Graph) -> dict[str, Any]:
    shapes = [list(graph.tensors[index].shape) for index in graph.inputs]
    return {"layers": len(graph.layers), "macs": graph_macs(graph),
            "parameters": graph_parameters(graph), "input_shapes": shapes,
            "sha256": graph.sha256}


def _term(entry: Entry) -> dict[str, Any]:
    written = asdict(entry)
    return {"term": written.pop("term"), "term_kind": written.pop("kind"),
            **{key: list(value) if isinstance(value, tuple) else value
               for key, value in written.items()}}


def _virtual(board: VirtualBoard) -> dict[str, Any]:
    return {**asdict(board), "missing": board.missing or None, "ready": not board.missing}


def _path(row: Sequence[str]) -> dict[str, Any]:
    path, takes, changes = row
    return {"path": path, "takes": takes, "changes": changes}


def _study(study: Study) -> dict[str, Any]:
    return {"name": study.name, "question": study.question}


def _kept(session: Any) -> dict[str, Any]:
    return {"folder": str(session.folder), "finished": session.is_finished,
            **{name: session.head.get(name) for name in (
                "verb", "arguments", "command", "began", "report_hash", "twin", "python",
                "machine", "packages", "inputs")}}


def _overlay(overlay: Any) -> dict[str, Any]:
    from twin.reports.outcomes import learning_row

    return learning_row(overlay)


def _agreement(found: Any) -> dict[str, Any]:
    from twin.reports.outcomes import agreement_row

    return agreement_row(found)


_ROWS: Mapping[str, tuple[str, Any]] = {
    "Runtime": ("runtimes", _runtime), "Graph": ("models", _model), "Entry": ("terms", _term),
    "VirtualBoard": ("virtual_boards", _virtual), "tuple": ("paths", _path),
    "Study": ("studies", _study), "Overlay": ("calibrations", _overlay),
    "Agreement": ("agreements", _agreement), "Session": ("sessions", _kept),
    "Transformation": ("transformations", asdict), "Scenario": ("scenarios", asdict)}
