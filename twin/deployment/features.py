"""Features: switches by name, each what-if paths and their values; of extensions too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from hwmodels.errors import check_known
from hwmodels.extensions import find_entries, load_entry
from hwmodels.file_cache import read_yaml_once
from twin.errors import UsageError

GROUP = "twin.features"
"""Entry points whose value is a mapping of paths to values."""

_FEATURES = read_yaml_once(Path(__file__).with_name("features.yaml"))


def list_features() -> tuple[tuple[str, str, str], ...]:
    """Return name, what it sets and what that does of every feature, those of extensions last."""
    own = ((name, row["set"], row["about"]) for name, row in _FEATURES.items())
    theirs = ((name, load_entry(GROUP, name), "of an installed package")
              for name in find_entries(GROUP) if name not in _FEATURES)
    return tuple((name, " ".join(f"{path}={value}" for path, value in paths.items()), about)
                 for name, paths, about in (*own, *theirs))


def switch_on(names: Iterable[str], where: str = "features") -> dict[str, str]:
    """Return what features set together; refusals begin with where they were named.

    Raises
    ------
    UsageError
        For a name that is none, and for two that set one path to different values.
    """
    found: dict[str, str] = {}
    for name in names:
        check_known(f"{where}: no feature is", name, (*_FEATURES, *find_entries(GROUP)), UsageError)
        paths: Mapping[str, str] = (_FEATURES[name]["set"] if name in _FEATURES
                                    else load_entry(GROUP, name))
        for path, value in paths.items():
            if found.setdefault(path, value) != value:
                raise UsageError(f"{where}: {name} sets {path} to {value}, another one to "
                                 f"{found[path]}; accepted: one of them")
    return found
