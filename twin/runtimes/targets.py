"""Targets by name: how a runtime's kernels get onto hardware, loaded where one is asked for."""

from __future__ import annotations

from functools import lru_cache
from pkgutil import resolve_name
from typing import Any

from hwmodels.errors import did_you_mean, reworded
from twin.errors import RuntimeRefusedError

CORE = "core"
"""Target of a runtime that names none."""

ACCELERATOR = "accelerator"
"""Target of a runtime with a section `offload` that names none."""

TARGETS = {
    CORE: "twin.deployment.core:Core",
    "firmware": "twin.program.image.target:Image",
    ACCELERATOR: "twin.pricing.accelerator.target:Accelerator",
}
"""Where each is: "module:Class"."""


def check_target(where: str, name: str) -> None:
    """Refuse a name that is none of `TARGETS` and no "module:Class".

    Raises
    ------
    RuntimeRefusedError
        Naming the file's key.
    """
    if name not in TARGETS and ":" not in name:
        raise RuntimeRefusedError(f"{where}: no target {name!r}; {did_you_mean(name, TARGETS)}, "
                                  "or module:Class of your own")


@lru_cache(maxsize=16)
def load_target(name: str) -> Any:
    """Return the target of a name of `TARGETS`, or the one a "module:Class" is.

    Raises
    ------
    RuntimeRefusedError
        When it cannot be loaded.
    """
    with reworded((ImportError, AttributeError, TypeError, ValueError), RuntimeRefusedError,
                  f"target {name!r} cannot be loaded: "):
        return resolve_name(TARGETS.get(name, name))()
