"""The request for tiles and levels of our own kernels."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY

from twin.api.requests import BoardName, Model, Request, option
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


class Tune(Request):
    """A network on a board, and what is tried of the firmware's kernels."""

    model: Model
    board: BoardName
    _: KW_ONLY
    virtual: str | None = option(
        None, "--virtual", "NAME", "Virtual board that runs the best few; by default the board's "
        "core in Unicorn.")
    tiles: Sequence[int] = option(
        (), "--tiles", "N,N", "Windows a convolution copies at a time.",
        parse=parse_tiles, default="1,2,4,8,16")
    levels: Sequence[str] = option(
        ("O2",), "--levels", "LEVEL,LEVEL", "Optimisation levels of the firmware: O2, Os, clang-O2 "
        "...", parse=split_words, default="O2")
    best: int = option(3, "--best", "N", "How many are built and run.")
    on_progress: Callable[[int, int, str], None] | None = None
