"""The shape of what there is: boards, runtimes, models, terms, what-if paths, studies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from hwmodels.files import JsonObject
from twin.documents import ABSENT, Amount, Count, Document, Of, Positive, fill
from twin.pricing.document_types import ModelRow, Supply
from twin.reports.tables.catalogue import sum_memories


def of_head(name: str) -> Of:
    """Return where a key of a kept run comes from: the head of its file, null where not there."""
    return Of(lambda session: session.head.get(name))


class Fact(TypedDict):
    """A number with where it comes from; null is not known."""

    path: str
    value: Any
    fact_kind: Annotated[str, Of("kind")]
    source: str
    rel_sd: float | None


class BoardRow(TypedDict):
    """A board in a line."""

    name: str
    soc: str
    core: Annotated[str, Of("core.model")]
    isa: Annotated[str, Of("core.isa")]
    clocks_hz: Annotated[dict[str, Positive], Of("hertz")]
    ram_bytes: Annotated[Count, Of(lambda board: sum_memories(board, ("tcm", "sram")))]
    flash_bytes: Annotated[Count, Of(lambda board: sum_memories(
        board, ("flash", "external_flash")))]
    dcache_bytes: Annotated[Count | None, Of(lambda board: getattr(
        board.cache(board.core.dcache), "size_bytes", None))]
    accelerator: Annotated[str | None, Of("npu.family")]
    price_usd: float | None
    part_price_usd: float | None


class Broken(TypedDict):
    """A board that cannot be read, and why."""

    name: str
    reason: str


class Boards(Document):
    """Of `twin boards`."""

    kind: Literal["boards"]
    boards: list[BoardRow]
    broken: Annotated[list[Broken], Of(lambda boards: boards.broken.items())]


class Memory(TypedDict):
    """A memory of a board."""

    name: str
    role: str
    address: Count
    size_bytes: Count
    wait_states: Count
    read_bytes: Count
    cacheable: bool


class Board(BoardRow, Document):
    """Of `twin boards NAME`."""

    kind: Literal["board"]
    aliases: list[str]
    description: str
    supply: Annotated[JsonObject, Of(lambda board: fill(Supply, board.power, note=ABSENT))]
    placement: dict[str, str]
    memories: list[Memory]
    facts: list[Fact]


class VirtualRow(TypedDict):
    """An emulated board; null: nothing is missing."""

    name: str
    core: str
    emulator: str
    counts: str
    missing: Annotated[str | None, Of(lambda board: board.missing or None)]
    ready: Annotated[bool, Of(lambda board: not board.missing)]


class VirtualBoards(Document):
    """Of `twin boards --virtual`."""

    kind: Literal["virtual_boards"]
    virtual_boards: list[VirtualRow]


class RuntimeRow(TypedDict):
    """A kernel library in a line."""

    name: str
    version: str
    identity: str
    types: Annotated[list[str], Of("dtypes")]
    structure: str
    drops_dead_channels: bool
    dispatch_cycles: Amount | None


class Runtimes(Document):
    """Of `twin runtimes`."""

    kind: Literal["runtimes"]
    runtimes: list[RuntimeRow]


class Runtime(RuntimeRow, Document):
    """Of `twin runtimes NAME`."""

    kind: Literal["runtime"]
    description: str
    library: str
    in_place: list[str]
    fuses_padding: bool
    overlaps: Annotated[bool, Of(lambda runtime: bool(runtime.overlaps))]
    facts: list[Fact]


class Models(Document):
    """Of `twin models`."""

    kind: Literal["models"]
    models: list[ModelRow]


class TermRow(TypedDict):
    """An entry of the glossary."""

    term: str
    term_kind: Annotated[str, Of("kind")]
    text: str
    equation: str | None
    lever: str | None
    myth: str | None
    source: str | None
    see: list[str]
    aliases: list[str]


class Terms(Document):
    """Of `twin explain`."""

    kind: Literal["terms"]
    terms: list[TermRow]


class Term(TermRow, Document):
    """Of `twin explain TERM`."""

    kind: Literal["term"]


class PathRow(TypedDict):
    """What --set takes."""

    path: str
    takes: str
    changes: str


class Paths(Document):
    """Of `twin explain paths`."""

    kind: Literal["paths"]
    paths: list[PathRow]


class StudyRow(TypedDict):
    """A study that is shipped."""

    name: str
    question: str


class Studies(Document):
    """Of `twin study list`."""

    kind: Literal["studies"]
    studies: list[StudyRow]


class ScenarioRow(TypedDict):
    """A scenario as its file says; more keys are those of docs/scenario.md."""

    name: str
    model: str
    board: str
    duration_us: Positive
    sensor: JsonObject
    deadline_us: float | None


class Scenarios(Document):
    """Of `twin scenario list`."""

    kind: Literal["scenarios"]
    scenarios: list[ScenarioRow]


class KeptRun(TypedDict):
    """A run of --keep: what was asked, of what, by what; no `report_hash`: it has no result."""

    folder: str
    finished: Annotated[bool, Of("is_finished")]
    verb: Annotated[str, of_head("verb")]
    arguments: Annotated[JsonObject, of_head("arguments")]
    command: Annotated[list[str], of_head("command")]
    began: Annotated[str, of_head("began")]
    report_hash: Annotated[str | None, of_head("report_hash")]
    twin: Annotated[str, of_head("twin")]
    python: Annotated[str, of_head("python")]
    machine: Annotated[str, of_head("machine")]
    packages: Annotated[dict[str, str], of_head("packages")]
    inputs: Annotated[dict[str, str], of_head("inputs")]


class KeptRuns(Document):
    """Of `twin sessions list`, oldest first."""

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


class Transformations(Document):
    """Of `twin transform -b BOARD`, which says of what."""

    kind: Literal["transformations"]
    model: NotRequired[str]
    board: NotRequired[str]
    runtime: NotRequired[str]
    transformations: list[Transformation]


Lists = (Boards | Board | VirtualBoards | Runtimes | Runtime | Models | Terms | Term | Paths
         | Studies | Scenarios | KeptRuns | Transformations)
"""Lists of what there is; `kind` says which."""

ROWS: Mapping[str, tuple[str, Any]] = {
    "Runtime": ("runtimes", RuntimeRow), "Graph": ("models", ModelRow), "Entry": ("terms", TermRow),
    "VirtualBoard": ("virtual_boards", VirtualRow), "tuple": ("paths", PathRow),
    "Study": ("studies", StudyRow), "Session": ("sessions", KeptRun),
    "Transformation": ("transformations", Transformation), "Scenario": ("scenarios", None)}
"""Lists of what there is by the class of what is in it: their kind, and the type of a row."""
