"""Which published networks are the same, and which one family: the groups of cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from calibration.fitting.cell import SHIPPED
from hwmodels.files import read_yaml

NETWORKS_FILE = SHIPPED / "networks.yaml"


def name_network(model: str) -> str:
    """Return the name a published network goes by, whatever the publication calls it."""
    plain = model.partition("__")[0].removesuffix("_int8")
    return str(_networks()["same"].get(plain, plain))


def name_family(network: str) -> str:
    """Return the family of a network; one that is not listed is its own."""
    for start, family in _networks()["families"].items():
        if network.startswith(start):
            return str(family)
    return network


@lru_cache(maxsize=1)
def _networks() -> Mapping[str, Mapping[str, str]]:
    document: Mapping[str, Any] = read_yaml(NETWORKS_FILE)
    return document
