"""A runtime file learnt from programs and the networks they run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from hwmodels.board.facts import Board
from hwmodels.files import MISSHAPEN, DocumentError, JsonObject, read_yaml, write_whole
from hwmodels.frozen import frozen
from hwmodels.isa import read_name
from twin.deployment.deploy import deploy
from twin.errors import NotTheSameError, RuntimeRefusedError, UsageError
from twin.network.graph import Graph
from twin.program.asking import Wanted
from twin.program.elf import Elf
from twin.program.finding import observe
from twin.program.library.blocks import Run
from twin.program.library.kernels import check_layers, make_kernels
from twin.program.library.seen import (
    Seen,
    cut_layers,
    digest,
    find_marks,
    from_observed,
    match_program,
    to_observed,
)
from twin.program.patterns import choose_layers
from twin.runtimes import Runtime, list_runtimes, load_runtime
from twin.runtimes.counted.learnt import LearntKernel, to_plain

BASES: Mapping[str, str] = {
    "tflm": "tflm-cmsis-nn", "st-edge-ai": "st-edge-ai", "x-cube-ai": "x-cube-ai",
    "microtvm": "microtvm", "cmsis-nn": "cmsis-nn", "firmware": "cmsis-nn"}
"""Runtime operators nobody saw are taken from, by the patterns that named layers."""

_UNSEEN = "unknown"
_VERSION = "elf"


@frozen
class Lesson:
    """What was learnt.

    Parameters
    ----------
    path
        The runtime's file.
    runtime
        As it was read back.
    seen
        Layers they were learnt from.
    notes
        What to know of them.
    """

    path: Path
    runtime: Runtime
    kernels: tuple[LearntKernel, ...]
    seen: tuple[Seen, ...]
    notes: tuple[str, ...]


def check_name(path: Path) -> None:
    """Refuse a file a runtime cannot be named by."""
    if path.suffix != ".yaml" or "@" in path.name:
        raise UsageError(f"--output {path}: a name that ends in .yaml is expected, such as "
                         "my_runtime.yaml")
    if path.stem in {name.partition("@")[0] for name in list_runtimes()}:
        raise UsageError(f"--output {path}: {path.stem} is a runtime already; accepted: another "
                         "name")


def learn_library(programs: Sequence[tuple[Elf, Graph, Wanted]], board: Board, *, path: Path,
                  base: str | None) -> Lesson:
    """Learn a library from programs, and write it as a runtime's file.

    Parameters
    ----------
    programs : sequence of (Elf, Graph, Wanted)
        Each with the network it runs, and which part of it runs it.
    path
        File of the runtime; what a former run learnt is kept and joined.
    base
        Runtime of operators nobody saw; None: by what the programs are made with.

    Raises
    ------
    NotTheSameError
        Where a program does not run its network, or is another build of the library.
    """
    former = _read_former(path)
    base = base or (former["base"] if former else None) or _guess_base(programs)
    borrowed = load_runtime(base)
    isa = board.core.isa
    if former and read_name(str(former["learnt"]["isa"])) != isa:
        raise UsageError(f"{path}: learnt from code for {former['learnt']['isa']}, not {isa}; "
                         "accepted: another -o FILE")
    seen, runs, sizes, sources = _take_former(path, former)
    for elf, graph, wanted in programs:
        executed = deploy(graph, board, runtime=base).executed
        found = observe(elf, board, wanted, find_marks(elf, executed))
        layers, code = match_program(found, executed, str(elf.path))
        layers = _join_runs(runs, code, layers, str(elf.path))
        seen = [one for one in seen if one.network != graph.name] + list(layers)
        sizes |= {one.function: found["code_bytes"].get(one.function, 0) for one in code.values()}
        source = f"{elf.path.name} running {graph.name}, sha256 {elf.sha256[:12]}"
        sources = [one for one in sources if f" running {graph.name}," not in one] + [source]
    used = {run for one in seen for run in one.runs}
    runs = {key: run for key, run in runs.items() if key in used}
    kernels = make_kernels(*cut_layers(seen, runs), sizes)
    learnt = {"isa": isa, "core": board.core.model, "sources": sources,
              "kernels": [to_plain(one) for one in kernels],
              "checked": [to_plain(one) for one in check_layers(seen, runs, sizes)],
              "observed": {**to_observed(seen, runs), "code_bytes": sizes}}
    _write(path, _document(borrowed, base, learnt))
    from twin.runtimes.file import forget_runtimes

    forget_runtimes()
    return Lesson(path=path, runtime=load_runtime(str(path)), kernels=kernels, seen=tuple(seen),
                  notes=tuple(_list_notes(programs, seen, kernels, borrowed)))


def _guess_base(programs: Sequence[tuple[Elf, Graph, Wanted]]) -> str:
    chosen, _ = choose_layers(programs[0][0], programs[0][2].layers)
    if chosen not in BASES:
        chosen, _ = choose_layers(programs[0][0], "auto")
    return BASES.get(chosen, _UNSEEN)


def _read_former(path: Path) -> JsonObject | None:
    if not path.exists():
        return None
    try:
        document = read_yaml(path)
    except DocumentError as error:
        raise RuntimeRefusedError(f"{path}: cannot be read: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("learnt"), dict):
        raise UsageError(f"{path}: is there, and no runtime that was learnt; accepted: one to add "
                         "to, or a new file")
    return document


def _take_former(path: Path, former: Mapping[str, Any] | None
                 ) -> tuple[list[Seen], dict[str, Run], dict[str, int], list[str]]:
    if former is None:
        return [], {}, {}, []
    try:
        learnt = former["learnt"]
        seen, runs = from_observed(learnt["observed"])
        return (list(seen), runs, dict(learnt["observed"]["code_bytes"]),
                [str(one) for one in learnt["sources"]])
    except MISSHAPEN as error:
        raise RuntimeRefusedError(f"{path}:learnt: {type(error).__name__} {error}; accepted: as "
                                  "`twin runtimes learn` wrote it") from error


def _join_runs(runs: dict[str, Run], more: Mapping[str, Run], layers: Sequence[Seen],
               where: str) -> tuple[Seen, ...]:
    """Add the code of a program, and return its layers with the names the code got.

    The same place in a function has to be the same code; functions that are layers themselves may
    have been generated for the network, and then go by its name.
    """
    other = {run.function: name for name, run in more.items()
             if name in runs and _shape(runs[name]) != _shape(run)}
    generated = {one.name: one.network for one in layers}
    for function, name in other.items():
        if function not in generated:
            raise NotTheSameError(
                f"{where}: {function} is other code than in programs learnt from before "
                f"(at {name}); accepted: programs with one build of the library")
    names = {}
    for name, run in more.items():
        function = (f"{run.function} of {generated[run.function]}" if run.function in other
                    else run.function)
        names[name] = f"{function}+0x{run.start:x}"
        runs[names[name]] = replace(run, function=function)
    return tuple(replace(one, runs={names[name]: counts for name, counts in one.runs.items()})
                 for one in layers)


_NUMBERS = re.compile(r"(?<![\w.])-?(?:0x[0-9a-f]+|\d+)")


def _shape(run: Run) -> str:
    """Return code without its numbers: among them are addresses, which a linker decides."""
    return _NUMBERS.sub("0", run.code)


def _document(borrowed: Runtime, base: str, learnt: Mapping[str, Any]) -> JsonObject:
    """Return a runtime's file: the base's switches, and what was read."""
    sources = ", ".join(learnt["sources"])
    by_name = {fact.path: fact for fact in borrowed.facts}
    numbers = {key: _fact(by_name, key, getattr(borrowed, key)) for key in (
        "setup_cycles_per_op", "setup_cycles_per_channel", "code_bytes", "ram_bytes",
        "alignment_bytes")}
    document: JsonObject = {
        "schema": 1, "base": base,
        "sources": {"base": f"of {borrowed.identity}: what a program's layers do not tell",
                    "inside": "calls of functions inside layers are among their instructions"},
        "description": f"structure read from {sources}",
        "library": borrowed.library, "dtypes": list(borrowed.dtypes), "structure": "read",
        "target": "core", **{key: getattr(borrowed, key) for key in (
            "drops_dead_channels", "dispatches_aliases", "fuses_padding", "fuses_pooling",
            "merges_scales", "overlaps", "copies_shapes", "splits_memories", "parameters_in")},
        **{key: list(getattr(borrowed, key)) for key in (
            "in_place", "scalar_on_helium", "vectors_on_helium")},
        "dispatch_cycles": [0, "derived", "inside"], **numbers,
        "default_version": _VERSION, "versions": {_VERSION: {}}}
    if borrowed.counted is not None:
        document["counted"] = dict(zip(("kernels", "level"), borrowed.counted, strict=True))
    if borrowed.weight_passes is not None:
        document["weight_passes"] = [borrowed.weight_passes, "assumed", "base"]
    if borrowed.weight_tile_bytes:
        document |= {key: [getattr(borrowed, key), "assumed", "base"]
                     for key in ("weight_tile_bytes", "window_filters")}
    return {**document, "learnt": {"sha256": digest(learnt), **learnt}}


def _fact(facts: Mapping[str, Any], key: str, value: float) -> list[Any]:
    fact = facts.get(key)
    kind = "assumed" if fact is None else fact.kind
    return [value, kind, "base"]


def _write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a file a person can read the head of."""
    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (
            "# Learnt by `twin runtimes learn`; observed: what was seen, for learning more.\n"
            + yaml.dump(dict(document), Dumper=Dumper, sort_keys=False, width=120,
                        default_flow_style=None)).encode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror or error})") from error


def _list_notes(programs: Sequence[tuple[Elf, Graph, Wanted]], seen: Sequence[Seen],
                kernels: Sequence[LearntKernel], borrowed: Runtime) -> list[str]:
    notes = [f"operators not seen are taken from {borrowed.identity}, assumed"]
    once = [f"{one.op} ({one.name})" for one in kernels if one.distinct == 1]
    if once:
        notes.append("of one shape only, so what their loops turn over is guessed: "
                     + ", ".join(dict.fromkeys(once))
                     + "; another network of the library adds more")
    far = [f"{one.op} ({one.name}) {one.residual:.1%}" for one in kernels if one.residual > 0.02]
    if far:
        notes.append("instructions no few terms give: " + ", ".join(far))
    return notes
