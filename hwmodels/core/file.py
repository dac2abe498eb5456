"""Core files: each core's in `hwmodels/cores`, folders of `TWIN_CORES` or of extensions.

A file states what the core is and how it schedules instructions, every number with its source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hwmodels.board.declaration import KINDS, is_stated
from hwmodels.board.facts import Fact
from hwmodels.core.timing import TIMING_CLASSES, UNITS, CoreTiming, Pairing
from hwmodels.errors import BoardError, did_you_mean
from hwmodels.extensions import find_folders, named_folders
from hwmodels.file_cache import make_once
from hwmodels.files import LARGEST_YAML_BYTES, DocumentError, parse_yaml, read_regular
from hwmodels.isa import ISAS, load_isa, read_name

if TYPE_CHECKING:
    from hwmodels.core.schema import CoreFile

SHIPPED = Path(__file__).parents[1] / "cores"
"""Folder of the core tables that come with the project."""

WIDEST, LEAST_IPC = 16, 0.1
"""Instructions a clock that any core starts, and the fewest a core is taken to reach at best."""

NEEDED = ("alu", "mul", "load", "store", "branch")
FLOAT, VECTOR = ("f_add", "f_mac", "f_div"), ("v_alu", "v_mul", "v_mac", "v_load", "v_store")
"""Timing classes any core's file states, one with an FPU, and one with vectors: others have parents
among them, or are of few instruction sets."""

OWN_CORE = "one of your own is a file in a folder TWIN_CORES names"

CPUID_PART = 0xFF00FFF0
"""Bits of CPUID that are alike in every revision of a core (Armv7-M ARM, B3.2.3)."""


def list_cores() -> tuple[str, ...]:
    """Return the names of all cores, shipped, of `TWIN_CORES` and of extensions, sorted."""
    return tuple(sorted(_find_files()))


def list_built_cores() -> Mapping[str, str]:
    """Return the instruction set of each core images are compiled for, by name."""
    return {model: traits.isa for model in list_cores()
            if (traits := load_core(model).traits).build}


def name_core(cpuid: int) -> str | None:
    """Return the core whose CPUID register has that implementer and part; None: none of ours."""
    return next((model for model in list_cores() if (known := load_core(model).traits.cpuid)
                 and (known ^ cpuid) & CPUID_PART == 0), None)


def _find_files() -> dict[str, Path]:
    found = dict(_shipped())
    for folder in (*named_folders("TWIN_CORES", "core"), *find_folders("twin.cores")):
        for path in sorted(folder.glob("*.yaml")):
            if path.stem in found or read_name(path.stem) != path.stem:
                raise BoardError(f"{path}: there is a core {path.stem} already; accepted: another "
                                 "name")
            found[path.stem] = path
    return found


@cache
def _shipped() -> Mapping[str, Path]:
    return {path.stem: path for path in SHIPPED.glob("*.yaml")}


def load_core(model: str) -> CoreTiming:
    """Read a core by name.

    Parameters
    ----------
    model
        A name of `list_cores`, or a former one: what a board's `cores.<name>.model` says.

    Returns
    -------
    CoreTiming
        The same object each time the file is unchanged: schedules are cached by it.

    Raises
    ------
    BoardError
        `file:key: reason; accepted ...`.
    """
    path = _shipped().get(model)
    if path is not None:
        return _load(path, None)
    if read_name(model) != model:
        return load_core(read_name(model))
    files = _find_files()
    if model not in files:
        raise BoardError(f"core model {model!r} does not exist; {did_you_mean(model, files)}; "
                         f"{OWN_CORE}")
    changed = files[model].stat()
    return _load(files[model], (changed.st_mtime_ns, changed.st_size))


@cache
def _load(path: Path, changed: tuple[int, int] | None) -> CoreTiming:
    timing = read_core(path)
    if timing.model != path.stem:
        raise BoardError(f"{path.name}:core.model: {timing.model!r}; accepted: {path.stem!r}, as "
                         "the file is named")
    return timing


def read_core(path: Path) -> CoreTiming:
    """Read a core's timing table from a file.

    Parameters
    ----------
    path
        Of a YAML file in the shape of those in `hwmodels/cores`.

    Returns
    -------
    CoreTiming
        Validated.

    Raises
    ------
    BoardError
        `file:key: reason; accepted ...`.
    """
    try:
        content = read_regular(path, LARGEST_YAML_BYTES)
    except OSError as problem:
        raise BoardError(f"{path.name}: not a readable YAML file: {problem.strerror}") from None
    return make_once("core", path, content, Path(__file__).parent, lambda: _read(path, content))


def _read(path: Path, content: bytes) -> CoreTiming:
    try:
        document = parse_yaml(content.decode(), keys_once=True)
    except (DocumentError, UnicodeDecodeError) as problem:
        raise BoardError(f"{path.name}: not a readable YAML file: {problem}") from None
    section = _validate(path.name, document)
    facts = tuple(_list_facts(path.name, document, section.sources, ""))
    return _assemble(path.name, section, facts)


def _validate(name: str, document: object) -> CoreFile:
    from pydantic import ValidationError

    from hwmodels.core.schema import CoreFile

    try:
        section = CoreFile.model_validate(document)
    except ValidationError as problem:
        first = min(problem.errors(), key=lambda error: error["type"] != "extra_forbidden")
        place = ".".join(str(part) for part in first["loc"])
        raise BoardError(f"{name}:{place}: {first['msg']}; accepted: keys as in cortex-m55.yaml, a "
                         f"number as [value, kind, source], kind {' | '.join(KINDS)}") from None
    for place, given, accepted in _list_names(section):
        if given not in accepted:
            raise BoardError(f"{name}:{place}: {given!r} is not known; "
                             + did_you_mean(given, accepted))
    isa, classes = load_isa(section.core.isa), section.classes
    needed = (*NEEDED, *(FLOAT if section.core.fpu else ()), *(VECTOR if isa.vector_bits else ()))
    for missing in (one for one in needed if one not in classes):
        raise BoardError(f"{name}:classes.{missing}: is not stated; accepted: its cycles, as a "
                         f"core of {isa.name} has it and what is timed as it")
    if section.core.build and "flags" not in section.core.build:
        raise BoardError(f"{name}:core.build.flags: is not stated; accepted: options of GCC such "
                         "as -mcpu=cortex-m4, or no core.build")
    return section


def _list_names(section: CoreFile) -> Iterator[tuple[str, str, Collection[str]]]:
    """Yield each name a core file refers to something by: its key, itself, and those there are."""
    yield "core.isa", section.core.isa, ISAS
    code = load_isa(section.core.isa).code
    known = {"unicorn": code.unicorn, "qemu": code.qemu}
    for emulator, model in section.core.emulators.items():
        if emulator in known:
            yield f"core.emulators.{emulator}", model, known[emulator].get("models", ())
    held = {unit for one in section.classes.values() for unit in one.units}
    for unit in section.unit_counts:
        yield f"unit_counts.{unit}", unit, held
    for key, one in section.classes.items():
        yield f"classes.{key}", key, TIMING_CLASSES
        for unit in one.units:
            yield f"classes.{key}.units", unit, {*UNITS, *section.unit_counts}
        for what, others in ("holds", one.holds_cycles), ("then", one.then_cycles):
            yield from ((f"classes.{key}.{what}", other, TIMING_CLASSES) for other in dict(others))
    for place, rule in enumerate(section.ports):
        for key in (*rule.producers, *rule.consumers):
            yield f"ports.{place}", key, {*TIMING_CLASSES, "base"}


def _list_facts(name: str, node: object, sources: Mapping[str, str], path: str) -> Iterator[Fact]:
    if is_stated(node):
        if node[2] not in sources:
            raise BoardError(f"{name}:{path}: source {node[2]!r} is not in the sources table; "
                             + did_you_mean(str(node[2]), sources))
        yield Fact(path=path, value=node[0], kind=node[1], source=sources[node[2]])
    elif isinstance(node, dict):
        for key, child in node.items():
            yield from _list_facts(name, child, sources, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list):
        for place, child in enumerate(node):
            yield from _list_facts(name, child, sources, f"{path}.{place}")


def _assemble(name: str, file: CoreFile, facts: tuple[Fact, ...]) -> CoreTiming:
    if not 1 <= file.issue_width <= WIDEST:
        raise BoardError(f"{name}:issue_width: {file.issue_width}; accepted: 1 to {WIDEST}")
    if not LEAST_IPC <= file.max_ipc <= file.issue_width:
        raise BoardError(f"{name}:max_ipc: {file.max_ipc:g}; accepted: {LEAST_IPC:g} to the "
                         f"issue_width, {file.issue_width}")
    return CoreTiming(
        model=file.core.model, description=file.core.description, traits=file.core.make(),
        issue_width=file.issue_width, max_ipc=file.max_ipc, multiply_is_mac=file.multiply_is_mac,
        loop_buffer=file.loop_buffer, base_latency_cycles=file.base_latency,
        pairing=Pairing() if file.pairing is None else file.pairing.make(),
        refills=file.refill_cycles.make(),
        unaligned=None if file.unaligned is None else file.unaligned.make(),
        classes={key: one.make() for key, one in file.classes.items()},
        unit_counts=file.unit_counts, ports=tuple(rule.make() for rule in file.ports), facts=facts)
