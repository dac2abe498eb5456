"""The shape of what became of our firmware: built, flashed, run, compared, tuned."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from twin.reports.schemas.fields import Amount, Count


class ImageSizes(TypedDict):
    """What an image takes."""

    code_bytes: Count
    weights_bytes: Count
    flash_bytes: Count
    arena_bytes: Count
    ram_bytes: Count


class MemoryTaken(TypedDict):
    """What an image takes of one memory of the board."""

    name: str
    used_bytes: Count
    size_bytes: Count


class ImageBuilt(TypedDict):
    """An image with its sizes beside the predicted ones; no memories where it is of another map."""

    image: str
    port: str
    compiler: str
    sizes: ImageSizes
    predicted: ImageSizes
    memories: list[MemoryTaken]


class Built(ImageBuilt):
    """Of `twin firmware build`."""

    schema: Literal[1]
    kind: Literal["built"]


class LayerRun(TypedDict):
    """A layer of a run; `equal`: its output is bit for bit the arithmetic's, null: float."""

    layer: Count
    op: str
    name: str
    count: Amount
    equal: bool | None


class ImageRun(TypedDict):
    """A run: counts of `counter`, least over the runs."""

    counter: str
    simulated: bool
    right: bool
    total: Amount
    outside: float
    setup: Amount
    layers: list[LayerRun]


class Ran(ImageRun):
    """Of `twin firmware run`."""

    schema: Literal[1]
    kind: Literal["run"]


class BuildRun(TypedDict):
    """An image and its run."""

    built: ImageBuilt
    run: ImageRun


class Builds(TypedDict):
    """Of `twin firmware compare`."""

    schema: Literal[1]
    kind: Literal["builds"]
    builds: list[BuildRun]


class Flashed(TypedDict):
    """Of `twin firmware flash`."""

    schema: Literal[1]
    kind: Literal["flashed"]
    message: str


class Agreed(TypedDict):
    """How often what was predicted best was counted best, of those that were judged."""

    right: Count
    judged: Count


class Build(TypedDict):
    """A tile and a level of the compiler."""

    tile: Count
    level: str


class Candidate(Build):
    """One that was predicted; `counted` is null where it was not among the best few."""

    predicted_cycles: Amount
    ram_bytes: Count
    counted: Amount | None


class Tuning(TypedDict):
    """Of `twin tune`: by rising prediction; `counted` are counts of `counter` on `virtual`."""

    schema: Literal[1]
    kind: Literal["tuning"]
    model: str
    board: str
    virtual: str
    counter: str | None
    best_was_best: bool
    layers_right: Agreed
    pairs_right: Agreed
    kept: Build
    candidates: list[Candidate]
