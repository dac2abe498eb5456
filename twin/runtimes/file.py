"""Runtime files: found by name, read and checked key by key, made a `Runtime`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodels.board.declaration import KINDS
from hwmodels.board.facts import Fact
from hwmodels.errors import check_known, check_word, did_you_mean, reworded
from hwmodels.extensions import find_folders
from hwmodels.file_cache import read_yaml_once
from hwmodels.files import MISSHAPEN, DocumentError, JsonObject, check_keys, is_path
from hwmodels.isa import ISAS, read_name
from twin.errors import RuntimeRefusedError
from twin.runtimes.runtime import FAMILIES, ArenaRule, Runtime
from twin.runtimes.targets import ACCELERATOR, CORE, check_target

if TYPE_CHECKING:
    from twin.runtimes.counted.learnt import Learnt

_FOLDER = Path(__file__).parent


def runtime_folders() -> tuple[Path, ...]:
    """Folders searched for runtime files: TWIN_RUNTIMES first, then the shipped one."""
    extra = [Path(part) for part in os.environ.get("TWIN_RUNTIMES", "").split(os.pathsep) if part]
    return (*extra, _FOLDER)


def list_runtimes() -> tuple[str, ...]:
    """Return the identities of all runtimes, those of extensions too, "name@version", sorted."""
    names = []
    for folder in (*runtime_folders(), *find_folders("twin.runtimes")):
        for path in sorted(folder.glob("*.yaml")):
            names += [f"{path.stem}@{version}" for version in _read(path)["versions"]]
    return tuple(sorted(dict.fromkeys(names), key=order_release))


def list_compilers(family: str = "") -> tuple[str, ...]:
    """Return the runtimes that compile for a family of accelerators, or for any.

    Broken files are omitted.
    """
    return tuple(name for name, document in _list_documents()
                 if family in ("", own := read_mapping(
                     Path(name), "offload", document.get("offload")).get("family")) and own)


def list_shipped(soc: str) -> dict[str, str]:
    """Return libraries a chip's vendor builds by default, and what builds them.

    The longest prefix of the chip's name in `default_on` of the libraries' files comes first.
    """
    claims = [(prefix, name, str(builder)) for name, document in _list_documents()
              for prefix, builder in read_mapping(
                  Path(name), "default_on", document.get("default_on")).items()
              if soc.lower().startswith(prefix.lower())]
    return {name: builder for prefix, name, builder in sorted(
        claims, key=lambda claim: -len(claim[0]))}


def _list_documents() -> Iterator[tuple[str, JsonObject]]:
    """Yield name and content of every runtime's file that can be read, the first of a name."""
    seen: set[str] = set()
    for path in (path for folder in runtime_folders() for path in sorted(folder.glob("*.yaml"))):
        with suppress(RuntimeRefusedError):
            if path.stem not in seen:
                seen.add(path.stem)
                yield path.stem, _read(path)


def order_release(identity: str) -> tuple[str, tuple[int, ...], str]:
    """Key that sorts "name@version" by name, then by version: 9.0.0 before 10.0.0."""
    name, _, version = identity.partition("@")
    return name, tuple(int(part) for part in re.findall(r"\d+", version)), version


_STEM = re.compile(r"\w[\w. +-]{0,79}")
"""Names a runtime's file may have: what was typed leads to no other folder."""


def load_runtime(name: str) -> Runtime:
    """Load a runtime by "name@version", by name for its default version, or by its file.

    Parameters
    ----------
    name
        For example "cmsis-nn", "x-cube-ai@9.0" (trailing ".0" of a version may be omitted) or
        "my_runtime.yaml".

    Returns
    -------
    Runtime
        With every fact resolved for that version.

    Raises
    ------
    RuntimeRefusedError
        When there is no such runtime or version, or its file is refused.
    """
    if is_path(name):
        return _load(Path(name).resolve(), "")
    stem, at, version = name.partition("@")
    if at and not version:
        raise RuntimeRefusedError(f"runtime {name!r} names no version; accepted: {stem} for its "
                                  "default, or " + ", ".join(
                                      one for one in list_runtimes() if one.startswith(name)))
    for list_folders in (runtime_folders, lambda: find_folders("twin.runtimes")):
        for folder in list_folders() if _STEM.fullmatch(stem) else ():
            path = folder / f"{stem}.yaml"
            if path.is_file():
                return _load(path, version)
    from hwmodels.board.unmodelled import explain_unmodelled

    if why := explain_unmodelled(stem):
        raise RuntimeRefusedError(f"runtime {name!r} is not known; {why}")
    if name in ("each", "measured"):
        raise RuntimeRefusedError(f"runtime {name!r} stands for several; accepted: one, or twin "
                                  f"sweep --runtime {name}")
    known = {one.partition("@")[0] for one in list_runtimes()}
    near = [one for one in sorted(known) if stem and one.startswith(stem.lower())]
    hint = f"did you mean {' or '.join(near)}?" if near else did_you_mean(stem.lower(), known)
    raise RuntimeRefusedError(f"runtime {name!r} is not known; for a library that is not "
                              f"listed, write --runtime unknown; {hint}")


@lru_cache(maxsize=32)
def _read(path: Path) -> JsonObject:
    with reworded(DocumentError, RuntimeRefusedError, f"{path}: cannot be read: "):
        document = read_yaml_once(path)
    if not isinstance(document, dict) or not isinstance(document.get("versions"), dict):
        raise RuntimeRefusedError(f"{path}: a mapping with a 'versions' mapping is expected")
    return document


_PLAIN = ("description", "library", "dtypes", "structure", "drops_dead_channels",
          "dispatches_aliases", "in_place", "parameters_in")
_SWITCHES = ("drops_dead_channels", "dispatches_aliases", "fuses_padding", "fuses_pooling",
             "merges_scales", "overlaps", "copies_shapes", "splits_memories", "unpacks_weights",
             "links_model", "scales_in_float", "prefers_external_ram", "skips_nudge", "closed")
"""False where a file does not say."""
_LONGEST = 60
"""Characters of a package's name."""
_NAMES = ("dtypes", "in_place", "scalar_on_helium", "vectors_on_helium", "extensions", "files",
          "default_for")
_NUMBERS = ("dispatch_cycles", "setup_cycles_per_op", "setup_cycles_per_channel", "code_bytes",
            "ram_bytes", "alignment_bytes")
_OPTIONAL = ("barrier_cycles", "weight_tile_bytes", "window_filters")


@lru_cache(maxsize=64)
def _load(path: Path, version: str) -> Runtime:
    try:
        return _build(path, version, _read(path))
    except MISSHAPEN as error:
        raise RuntimeRefusedError(f"{path}: not a runtime's file, see `twin runtimes NAME` for one:"
                                  f" {type(error).__name__} {error}") from error


def _build(path: Path, version: str, document: JsonObject) -> Runtime:
    chosen = choose_version(path, document, version)
    merged = {key: value for key, value in document.items()
              if key not in ("versions", "default_version", "default_on", "schema", "sources")}
    changes = read_mapping(path, f"versions.{chosen}", document["versions"][chosen])
    offload_leaves = {**read_mapping(path, "offload", merged.pop("offload", None)),
                      **read_mapping(path, "offload", changes.pop("offload", None))}
    merged.update(changes)
    known = (*_PLAIN, *_SWITCHES, *_NUMBERS, *_NAMES, "efficiency", "target", "counted",
             "counted_on", "learnt_on", "weight_passes", "learnt", "base", "arena",
             *_OPTIONAL)
    check_keys(f"{path}:", merged, known, RuntimeRefusedError, (*_PLAIN, *_NUMBERS))
    check_choices(path, merged)
    facts: list[Fact] = []
    numbers = {key: read_number(path, document, key, merged[key], facts)
               for key in (*_NUMBERS, *_OPTIONAL) if key in merged}
    efficiency = {}
    families = read_mapping(path, "efficiency", merged.get("efficiency"))
    check_keys(f"{path}:efficiency.", families, FAMILIES, RuntimeRefusedError)
    for family, raw in families.items():
        efficiency[family] = read_number(path, document, f"efficiency.{family}", raw, facts)
    passes = read_passes(path, document, merged.get("weight_passes"), facts)
    offload = None
    if offload_leaves:
        from twin.runtimes.offload import read_offload

        offload = read_offload(f"{path}:offload", offload_leaves,
                               lambda key, raw: read_number(path, document, key, raw, facts))
    target = str(merged.get("target", ACCELERATOR if offload else CORE))
    if offload and target == CORE:
        raise RuntimeRefusedError(f"{path}:target: {CORE}, beside a section `offload`; accepted: "
                                  f"{ACCELERATOR}, or no such section")
    return Runtime(
        name=path.stem, version=chosen, description=str(merged["description"]),
        library=merged["library"], structure=merged["structure"],
        parameters_in=merged["parameters_in"], efficiency=efficiency,
        facts=tuple(facts), offload=offload, target=target,
        counted=read_counted(path, merged.get("counted")), weight_passes=passes,
        counted_on=read_isas(path, merged, "counted_on"),
        learnt_on=read_isas(path, merged, "learnt_on"),
        learnt=read_learnt(path, merged.get("learnt")), arena=read_arena(path, merged.get("arena")),
        **{key: int(number)  # type: ignore[arg-type]
           if key.endswith(("_bytes", "_filters")) else number for key, number in numbers.items()},
        **{key: bool(merged.get(key, False)) for key in _SWITCHES},  # type: ignore[arg-type]
        **{key: read_names(path, merged, key) for key in _NAMES})  # type: ignore[arg-type]


def forget_runtimes() -> None:
    """Read files again: one was written."""
    _read.cache_clear()
    _load.cache_clear()


def read_learnt(path: Path, document: Any) -> Learnt | None:
    """Return what a file says was read in programs; None where it says nothing."""
    if document is None:
        return None
    from twin.runtimes.counted.learnt import from_plain

    try:
        return from_plain(document, str(document["sha256"]))
    except MISSHAPEN as error:
        raise RuntimeRefusedError(f"{path}:learnt: {type(error).__name__} {error}; accepted: as "
                                  "`twin runtimes learn` wrote it") from error


def read_mapping(path: Path, key: str, document: Any) -> JsonObject:
    """Return a copy of a mapping of the file, empty where it says nothing."""
    if not isinstance(document, dict | None):
        raise RuntimeRefusedError(f"{path}:{key}: a mapping is expected")
    return dict(document or {})


def read_counted(path: Path, document: Any) -> tuple[str, str] | None:
    """Return kernels and compiler level that were counted; None where none were."""
    if document is None:
        return None
    if not (isinstance(document, dict) and set(document) == {"kernels", "level"}):
        raise RuntimeRefusedError(f"{path}:counted: kernels and level are expected")
    return str(document["kernels"]), str(document["level"])


def read_arena(path: Path, document: Any) -> ArenaRule | None:
    """Return how a program's buffer for the runtime is called and filled; None without one."""
    if document is None:
        return None
    try:
        rule = ArenaRule(**{**document, "unknown": tuple(document.get("unknown", ()))})
    except (AttributeError, TypeError) as error:
        raise RuntimeRefusedError(f"{path}:arena: name, release, kernels and unknown are "
                                  "expected") from error
    from twin.runtimes.tflm import list_releases

    if rule.release is not None:
        check_word(f"{path}:arena.release:", rule.release, list_releases(), RuntimeRefusedError)
    return rule


def read_names(path: Path, merged: JsonObject, key: str) -> tuple[str, ...]:
    """Return a list of names, empty where a file has none."""
    values = merged.get(key, [])
    if not (isinstance(values, list) and all(isinstance(one, str) for one in values)):
        raise RuntimeRefusedError(f"{path}:{key}: a list of names is expected, not {values!r}")
    return tuple(values)


def read_isas(path: Path, merged: JsonObject, key: str) -> tuple[str, ...]:
    """Return a list of instruction sets, empty where a file has none."""
    named = tuple(read_name(one) for one in read_names(path, merged, key))
    for one in named:
        check_known(f"{path}:{key}: no instruction set", one, ISAS, RuntimeRefusedError)
    return named


def choose_version(path: Path, document: JsonObject, version: str) -> str:
    """Return the version meant, trailing ".0" or not; the default for none."""
    known = [str(name) for name in document["versions"]]
    version = version or str(document.get("default_version"))
    for name in known:
        if _trim(name) == _trim(version):
            return name
    raise RuntimeRefusedError(f"{path.stem} has no version {version!r}; "
                              f"accepted: {', '.join(known)}")


def _trim(version: str) -> str:
    while version.endswith(".0"):
        version = version[:-2]
    return version


def check_choices(path: Path, merged: JsonObject) -> None:
    """Refuse words that are none of those accepted."""
    choices = {"structure": ("open", "read", "assumed"), "parameters_in": ("weights", "arena")}
    for key, accepted in choices.items():
        check_word(f"{path}:{key}:", merged[key], accepted, RuntimeRefusedError)
    check_target(f"{path}:target", str(merged.get("target", CORE)))
    library = str(merged["library"])
    if len(library) > _LONGEST or not library.isidentifier() or not (_FOLDER / library).is_dir():
        raise RuntimeRefusedError(f"{path}:library: no package {library[:_LONGEST]!r}")


def read_number(path: Path, document: JsonObject, key: str, raw: Any, facts: list[Fact]) -> float:
    """Return a number, and keep it with its source as a fact."""
    if not (isinstance(raw, list) and len(raw) in (3, 4)):
        raise RuntimeRefusedError(f"{path}:{key}: [value, kind, source] is expected")
    value, kind, source = raw[:3]
    sources = document.get("sources") or {}
    check_word(f"{path}:{key}: kind", kind, KINDS, RuntimeRefusedError)
    if source not in sources:
        raise RuntimeRefusedError(f"{path}:{key}: source {source!r} is not in 'sources'")
    for number, what in ((value, "a number"), *((one, "a relative deviation") for one in raw[3:])):
        if not isinstance(number, int | float) or isinstance(number,
                                                             bool) or not 0 <= number < math.inf:
            raise RuntimeRefusedError(f"{path}:{key}: {what} >= 0 is expected, not {number!r}")
    facts.append(Fact(path=key, value=value, kind=kind, source=sources[source],
                      rel_sd=raw[3] if len(raw) == 4 else None))
    return float(value)


def read_passes(path: Path, document: JsonObject, raw: Any, facts: list[Fact]) -> int | None:
    """Return how often weights are read; None where the file does not say."""
    if raw is None:
        return None
    passes = read_number(path, document, "weight_passes", raw, facts)
    if passes < 1 or passes != int(passes):
        raise RuntimeRefusedError(f"{path}:weight_passes: {passes:g}; accepted: from 1 on, whole")
    return int(passes)
