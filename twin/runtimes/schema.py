"""What a runtime's file says, key by key: read, checked, refused by file and key."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwmodels.board.facts import KINDS, Fact
from hwmodels.board.isas import ISAS, read_name
from hwmodels.errors import did_you_mean
from hwmodels.files import MISSHAPEN
from twin.errors import RuntimeRefusedError
from twin.runtimes.targets import CORE, check_target

if TYPE_CHECKING:
    from twin.runtimes.counted.learnt import Learnt

_FOLDER = Path(__file__).parent


def read_learnt(path: Path, told: Any) -> Learnt | None:
    """Return what a file says was read in programs; None where it says nothing."""
    if told is None:
        return None
    from twin.runtimes.counted.learnt import from_plain

    try:
        return from_plain(told, str(told["sha256"]))
    except MISSHAPEN as error:
        raise RuntimeRefusedError(f"{path}:learnt: {type(error).__name__} {error}; accepted: as "
                                  "`twin runtimes learn` wrote it") from error


def read_mapping(path: Path, key: str, told: Any) -> dict[str, Any]:
    """Return a copy of a mapping of the file, empty where it says nothing."""
    if not isinstance(told, dict | None):
        raise RuntimeRefusedError(f"{path}:{key}: a mapping is expected")
    return dict(told or {})


def read_counted(path: Path, told: Any) -> tuple[str, str] | None:
    """Return kernels and compiler level that were counted; None where none were."""
    if told is None:
        return None
    if not (isinstance(told, dict) and set(told) == {"kernels", "level"}):
        raise RuntimeRefusedError(f"{path}:counted: kernels and level are expected")
    return str(told["kernels"]), str(told["level"])


def read_names(path: Path, merged: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of names, empty where a file has none."""
    told = merged.get(key, [])
    if not (isinstance(told, list) and all(isinstance(one, str) for one in told)):
        raise RuntimeRefusedError(f"{path}:{key}: a list of names is expected, not {told!r}")
    return tuple(told)


def read_isas(path: Path, merged: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of instruction sets, empty where a file has none."""
    named = tuple(read_name(one) for one in read_names(path, merged, key))
    for one in named:
        if one not in ISAS:
            raise RuntimeRefusedError(f"{path}:{key}: no instruction set {one!r}; "
                                      + did_you_mean(one, ISAS))
    return named


def choose_version(path: Path, document: dict[str, Any], version: str) -> str:
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


def check_choices(path: Path, merged: dict[str, Any]) -> None:
    """Refuse words that are none of those accepted."""
    choices = {"structure": ("open", "read", "assumed"), "parameters_in": ("weights", "arena")}
    for key, accepted in choices.items():
        if merged[key] not in accepted:
            raise RuntimeRefusedError(f"{path}:{key}: {merged[key]!r}; accepted: "
                                      + ", ".join(accepted))
    check_target(f"{path}:target", str(merged.get("target", CORE)))
    if not (_FOLDER / str(merged["library"])).is_dir():
        raise RuntimeRefusedError(f"{path}:library: no package {merged['library']!r}")


def read_number(path: Path, document: dict[str, Any], key: str, leaf: Any,
            facts: list[Fact]) -> float:
    """Return a number, and keep it with its source as a fact."""
    if not (isinstance(leaf, list) and len(leaf) in (3, 4)):
        raise RuntimeRefusedError(f"{path}:{key}: [value, kind, source] is expected")
    value, kind, source = leaf[:3]
    sources = document.get("sources") or {}
    if kind not in KINDS:
        raise RuntimeRefusedError(f"{path}:{key}: kind {kind!r}; accepted: {', '.join(KINDS)}")
    if source not in sources:
        raise RuntimeRefusedError(f"{path}:{key}: source {source!r} is not in 'sources'")
    for told, what in ((value, "a number"), *((one, "a relative deviation") for one in leaf[3:])):
        if not isinstance(told, int | float) or isinstance(told, bool) or not 0 <= told < math.inf:
            raise RuntimeRefusedError(f"{path}:{key}: {what} >= 0 is expected, not {told!r}")
    facts.append(Fact(path=key, value=value, kind=kind, source=sources[source],
                      rel_sd=leaf[3] if len(leaf) == 4 else None))
    return float(value)


def read_passes(path: Path, document: dict[str, Any], leaf: Any, facts: list[Fact]) -> int | None:
    """Return how often weights are read; None where the file does not say."""
    if leaf is None:
        return None
    told = read_number(path, document, "weight_passes", leaf, facts)
    if told < 1 or told != int(told):
        raise RuntimeRefusedError(f"{path}:weight_passes: {told:g}; accepted: from 1 on, whole")
    return int(told)
