"""The shape of what became of our firmware: built, flashed, run, compared, tuned."""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from twin.documents import Amount, Count, Document, Of


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
    port: Annotated[str, Of("port.name")]
    compiler: str
    sizes: ImageSizes
    predicted: ImageSizes
    memories: Annotated[list[MemoryTaken], Of("sizes.memories")]


class Built(ImageBuilt, Document):
    """Of `twin firmware build`."""

    kind: Literal["built"]


class LayerRun(TypedDict):
    """A layer of a run; `equal`: its output is bit for bit the arithmetic's, null: float."""

    layer: Annotated[Count, Of("index")]
    op: str
    name: str
    count: Amount
    equal: bool | None


class ImageRun(TypedDict):
    """A run: counts of `counter`, least over the runs."""

    counter: str
    simulated: bool
    right: Annotated[bool, Of("is_right")]
    total: Amount
    outside: float
    setup: Amount
    layers: list[LayerRun]


class Ran(ImageRun, Document):
    """Of `twin firmware run`."""

    kind: Literal["run"]


class BuildRun(TypedDict):
    """An image and its run."""

    built: ImageBuilt
    run: ImageRun


class Builds(Document):
    """Of `twin firmware compare`."""

    kind: Literal["builds"]
    builds: Annotated[list[BuildRun], Of(lambda made: zip(made.builds, made.runs, strict=True))]


class Flashed(Document):
    """Of `twin firmware flash`."""

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

    predicted_cycles: Annotated[Amount, Of("cycles")]
    ram_bytes: Count
    counted: Annotated[Amount | None, Of("run.total")]


class Tuning(Document):
    """Of `twin tune`: by rising prediction; `counted` are counts of `counter` on `virtual`."""

    kind: Literal["tuning"]
    model: Annotated[str, Of("deployment.graph.name")]
    board: Annotated[str, Of("deployment.board.name")]
    virtual: str
    counter: Annotated[str | None, Of("kept.run.counter")]
    best_was_best: bool
    layers_right: Annotated[Agreed, Of("layers")]
    pairs_right: Annotated[Agreed, Of("pairs")]
    kept: Build
    candidates: list[Candidate]
