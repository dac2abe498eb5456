"""Requests for the bill of a network on a board, and for what its accesses meet."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Annotated

from twin.api.requests import (
    CountCache,
    Option,
    Priced,
    Request,
    split_words,
)

if TYPE_CHECKING:
    from twin.deployment.deployment import Deployment


@dataclass(frozen=True)
class Cache(Priced):
    """A deployment, and the caches its accesses are counted in."""

    deployment: "Deployment"
    _: KW_ONLY
    sweep: Annotated[Sequence[str], Option(
        "--sweep", "size,ways", "Miss ratios over cache sizes, ways, or both.", text=str,
        parse=lambda text: [axis.strip() for axis in text.split(",")])] = ()


@dataclass(frozen=True)
class Port(Request):
    """A deployment on a board nobody measured, and what its prices are learnt from."""

    deployment: "Deployment"
    sources: Annotated[Sequence[str | PathLike[str]], Option(
        "--from", "BOARD|DIR", "What to learn from: a measured board, or a measurement folder; "
        "may be given several times.", text=list[str])]
    _: KW_ONLY
    networks: Annotated[Sequence[str], Option(
        "--networks", "NAMES", "Learn from these networks only, by comma.", text=str,
        parse=split_words)] = ()
    cache: CountCache = None
