"""The request for tiles and levels of our own kernels."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from twin.api.requests import BoardName, Model, Option, Request
from twin.api.requests.values import split_words
from twin.errors import UsageError


def parse_tiles(text: str) -> list[int]:
    """Read whole numbers by commas; raises `UsageError`."""
    try:
        tiles = [int(word) for word in split_words(text)]
    except ValueError:
        tiles = []
    if not tiles:
        raise UsageError(f"--tiles {text!r}; accepted: whole numbers by commas")
    return tiles


@dataclass(frozen=True)
class Tune(Request):
    """A network on a board, and what is tried of the firmware's kernels."""

    model: Model
    board: BoardName
    _: KW_ONLY
    virtual: Annotated[str | None, Option(
        "--virtual", "NAME", "Virtual board that runs the best few; by default the board's core in "
        "Unicorn.")] = None
    tiles: Annotated[Sequence[int], Option(
        "--tiles", "N,N", "Windows a convolution copies at a time.", text=str, parse=parse_tiles,
        default="1,2,4,8,16")] = ()
    levels: Annotated[Sequence[str], Option(
        "--levels", "LEVEL,LEVEL", "Optimisation levels of the firmware: O2, Os, clang-O2 "
        "...", text=str,
        parse=split_words, default="O2")] = ("O2",)
    best: Annotated[int, Option("--best", "N", "How many are built and run.")] = 3
    on_progress: Callable[[int, int, str], None] | None = None
