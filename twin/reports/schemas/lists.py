"""The shape of what there is: boards, runtimes, models, terms, what-if paths, studies."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from twin.reports.schemas.fields import Amount, Count, Positive


class Fact(TypedDict):
    """A number with where it comes from; null is not known."""

    path: str
    value: Any
    fact_kind: str
    source: str
    rel_sd: float | None


class BoardRow(TypedDict):
    """A board in a line."""

    name: str
    soc: str
    core: str
    isa: str
    clocks_hz: dict[str, Positive]
    ram_bytes: Count
    flash_bytes: Count
    dcache_bytes: Count | None
    accelerator: str | None
    price_usd: float | None


class Broken(TypedDict):
    """A board that cannot be read, and why."""

    name: str
    reason: str


class Boards(TypedDict):
    """Of `twin boards`."""

    schema: Literal[1]
    kind: Literal["boards"]
    boards: list[BoardRow]
    broken: list[Broken]


class Memory(TypedDict):
    """A memory of a board."""

    name: str
    role: str
    address: Count
    size_bytes: Count
    wait_states: Count
    read_bytes: Count
    cacheable: bool


class Board(BoardRow):
    """Of `twin boards NAME`."""

    schema: Literal[1]
    kind: Literal["board"]
    aliases: list[str]
    description: str
    supply: dict[str, Any]
    placement: dict[str, str]
    memories: list[Memory]
    facts: list[Fact]


class VirtualRow(TypedDict):
    """An emulated board; null: nothing is missing."""

    name: str
    core: str
    emulator: str
    counts: str
    missing: str | None
    ready: bool


class VirtualBoards(TypedDict):
    """Of `twin boards --virtual`."""

    schema: Literal[1]
    kind: Literal["virtual_boards"]
    virtual_boards: list[VirtualRow]


class RuntimeRow(TypedDict):
    """A kernel library in a line."""

    name: str
    version: str
    identity: str
    types: list[str]
    structure: str
    drops_dead_channels: bool
    dispatch_cycles: Amount | None


class Runtimes(TypedDict):
    """Of `twin runtimes`."""

    schema: Literal[1]
    kind: Literal["runtimes"]
    runtimes: list[RuntimeRow]


class Runtime(RuntimeRow):
    """Of `twin runtimes NAME`."""

    schema: Literal[1]
    kind: Literal["runtime"]
    description: str
    library: str
    in_place: list[str]
    fuses_padding: bool
    overlaps: bool
    facts: list[Fact]


class ModelRow(TypedDict):
    """A network of the zoo."""

    name: str
    layers: Count
    macs: Count
    parameters: Count
    input_shapes: list[list[Count]]
    sha256: str


class Models(TypedDict):
    """Of `twin models`."""

    schema: Literal[1]
    kind: Literal["models"]
    models: list[ModelRow]


class TermRow(TypedDict):
    """An entry of the glossary."""

    term: str
    term_kind: str
    text: str
    equation: str | None
    lever: str | None
    myth: str | None
    source: str | None
    see: list[str]
    aliases: list[str]


class Terms(TypedDict):
    """Of `twin explain`."""

    schema: Literal[1]
    kind: Literal["terms"]
    terms: list[TermRow]


class Term(TermRow):
    """Of `twin explain TERM`."""

    schema: Literal[1]
    kind: Literal["term"]


class PathRow(TypedDict):
    """What --set takes."""

    path: str
    takes: str
    changes: str


class Paths(TypedDict):
    """Of `twin explain paths`."""

    schema: Literal[1]
    kind: Literal["paths"]
    paths: list[PathRow]


class StudyRow(TypedDict):
    """A study that is shipped."""

    name: str
    question: str


class Studies(TypedDict):
    """Of `twin study list`."""

    schema: Literal[1]
    kind: Literal["studies"]
    studies: list[StudyRow]


class ScenarioRow(TypedDict):
    """A scenario as its file says; more keys are those of docs/scenario.md."""

    name: str
    model: str
    board: str
    duration_us: Positive
    sensor: dict[str, Any]
    deadline_us: float | None


class Scenarios(TypedDict):
    """Of `twin scenario list`."""

    schema: Literal[1]
    kind: Literal["scenarios"]
    scenarios: list[ScenarioRow]


class KeptRun(TypedDict):
    """A run of --keep: what was asked, of what, by what; no `report_hash`: it has no result."""

    folder: str
    finished: bool
    verb: str
    arguments: dict[str, Any]
    command: list[str]
    began: str
    report_hash: str | None
    twin: str
    python: str
    machine: str
    packages: dict[str, str]
    inputs: dict[str, str]


class KeptRuns(TypedDict):
    """Of `twin sessions list`, oldest first."""

    schema: Literal[1]
    kind: Literal["sessions"]
    sessions: list[KeptRun]


class Transformation(TypedDict):
    """A change one could make; without `values` it does not apply, and `reason` says why."""

    path: str
    accepted: str
    does: str
    effort: Literal["setting", "rebuild", "conversion", "retraining"]
    costs: str
    values: list[str]
    reason: str


class Transformations(TypedDict):
    """Of `twin transform -b BOARD`, which says of what."""

    schema: Literal[1]
    kind: Literal["transformations"]
    model: NotRequired[str]
    board: NotRequired[str]
    runtime: NotRequired[str]
    transformations: list[Transformation]


Lists = (Boards | Board | VirtualBoards | Runtimes | Runtime | Models | Terms | Term | Paths
         | Studies | Scenarios | KeptRuns | Transformations)
"""What there is, told apart by `kind`."""
