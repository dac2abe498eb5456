"""Published whole-network latency and energy, one form for every source.

Rows of `use="test"` are sealed: nothing is fitted to, chosen by or tuned on them; they only judge.
Whoever wants them has to ask for them by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from calibration.datasets.tables import read_csv, read_yaml
from calibration.errors import MeasurementError
from hwmodels.errors import check_word
from hwmodels.frozen import frozen

Use = Literal["fit", "test", "all"]


@frozen
class PublishedRow:
    """A published result of one network on one board.

    Parameters
    ----------
    dataset
        "mlperf_tiny" or "stm32_zoo".
    line
        Line of the dataset's file, the header being 1.
    edition
        Round or tool release it was published with.
    board
        Our board, None when we have none.
    core
        "cortex-m4", ...; as published when it is none of ours.
    runtime
        Our "name@version", None when the software is not known to us.
    model
        Zoo network ("kws") or stem of a layer list; None when the network is not known.
    precision
        "int8", "float32" or "other".
    clock_hz
        Of the core that ran it.
    latency_ms, energy_uj
        Median of one inference, warm.
    supply_v
        During the energy run.
    activations_bytes
        Working memory the tool reports for activations; input and output may be inside or not.
    arena
        Role of the memory that held activations, where the project files say.
    board_note
        What is published of the board's supply and state: `board_settings` reads it.
    drops_dead_channels
        Whether the software removes channels that are zero for every input.
    use
        "fit" or "test".
    flags
        What to know before using the row; see names.yaml.
    source
        File or page it comes from.
    """

    dataset: str
    line: int
    edition: str
    submitter: str
    board_name: str
    board: str | None
    core: str
    software: str
    runtime: str | None
    model_name: str
    model: str | None
    precision: str
    clock_hz: float | None
    latency_ms: float | None
    energy_uj: float | None
    supply_v: float | None
    activations_bytes: float | None
    arena: str | None
    board_note: str
    drops_dead_channels: bool | None
    use: str
    flags: tuple[str, ...]
    source: str

    @property
    def judges_latency(self) -> bool:
        """Whether the latency counts in statistics of single-core runs."""
        excluded = read_names()["not_for_latency"]
        return self.latency_ms is not None and not set(self.flags) & set(excluded)

    @property
    def judges_energy(self) -> bool:
        """Whether the energy counts in statistics of single-core runs."""
        excluded = read_names()["not_for_energy"]
        return (self.energy_uj is not None and self.judges_latency
                and not set(self.flags) & set(excluded))


@lru_cache(maxsize=1)
def read_names() -> Mapping[str, Any]:
    """Return the mapping tables of names.yaml."""
    return read_yaml("names.yaml")


def published_rows(*, use: Use = "fit") -> tuple[PublishedRow, ...]:
    """Return published whole-network results, in file order.

    Parameters
    ----------
    use
        "fit" (default), "test" for the sealed rows, or "all" to show every row. Only code that
        judges or displays may ask for anything but "fit".

    Returns
    -------
    tuple of PublishedRow
        Including rows with excluding flags; see `judges_latency` and `judges_energy`.

    Raises
    ------
    MeasurementError
        For an unknown `use`.
    """
    if use not in ("fit", "test", "all"):
        raise MeasurementError(f"use {use!r} of published rows; accepted: fit, test, all")
    return tuple(row for row in _all_rows() if use in ("all", row.use))


def refuse_sealed(rows: Sequence[PublishedRow]) -> None:
    """Raise for a row that must not be learnt from.

    Raises
    ------
    MeasurementError
        Naming the first row whose use is not "fit".
    """
    for row in rows:
        if row.use != "fit":
            raise MeasurementError(f"{row.dataset}:{row.line}: a row of use {row.use!r} is sealed; "
                                   "fits take use=fit only")


def stand_in(runtime: str) -> str:
    """Return the runtime that predicts this one: itself, or the nearest of names.yaml."""
    nearest: str = read_names()["stand_ins"].get(runtime, runtime)
    return nearest


def board_settings(row: PublishedRow) -> dict[str, object]:
    """Return what the row states about its board, by dotted path of our board file."""
    settings: dict[str, object] = {}
    for text, values in read_names()["stated"].get(row.board, {}).items():
        settings |= values if text in row.board_note else {}
    if row.supply_v is not None:
        settings["supply.voltage_v"] = row.supply_v
    return settings


@lru_cache(maxsize=1)
def _all_rows() -> tuple[PublishedRow, ...]:
    return (*_mlperf_tiny_rows(), *_stm32_zoo_rows())


def _mlperf_tiny_rows() -> Iterator[PublishedRow]:
    names = read_names()
    projects = {_project(r): r for r in read_csv("mlperf_tiny/st_ioc_config.csv")}
    for line, r in enumerate(read_csv("mlperf_tiny/results.csv"), start=2):
        where = f"mlperf_tiny/results.csv:{line}"
        runtime, dead = _find_runtime(r["software"])
        own = "open: own model" in r["model"]
        flags = (*_flags(r["quality_flag"]), *_facts(
            duplicate=r["dup_of_round"], open_division=r["division"] == "open", own_model=own,
            accelerator=r["accelerator"]))
        project = projects.get(_project(r), {})
        option = project.get("xcubeai_optimization", "")
        if runtime in names["builds"].get(option, ()):
            runtime = f"{runtime}-{option}"
        yield PublishedRow(
            dataset="mlperf_tiny", line=line, edition=r["round"], submitter=r["submitter"],
            board_name=r["board"], board=_find_board(r["board"]), core=_core(r["core"]),
            software=r["software"], runtime=runtime, model_name=r["benchmark"],
            model=None if own else names["mlperf_tiny_models"].get(r["benchmark"]),
            precision=_precision(r["precision"]),
            clock_hz=_number(r["clock_mhz"], 1e6, where), energy_uj=_number(
                r["energy_uj"], 1, where), latency_ms=_number(r["latency_ms"], 1, where),
            supply_v=_number(r["supply_mv_log"], 1e-3, where),
            # the pool size in ST's project files is no report: one tool version has 2,048 and 7,036
            # bytes for the same network
            activations_bytes=None,
            arena=names["arena_roles"].get(project.get("activation_placement")),
            board_note=r["supply_note"],
            drops_dead_channels=dead, use=_use(r["use"], where), flags=flags,
            source=f"mlcommons/tiny_results_{r['round']}: {r['source_path']}")


def _project(row: Mapping[str, str]) -> tuple[str, str, str, str]:
    return row["round"], row["submitter"], row["system"], row["benchmark"]


def _stm32_zoo_rows() -> Iterator[PublishedRow]:
    for line, r in enumerate(read_csv("stm32_zoo/measured.csv"), start=2):
        where = f"stm32_zoo/measured.csv:{line}"
        software = f"{r['tool_version']} {r['exec_engine']}"
        runtime, dead = _find_runtime(software)
        # "800/1000" is MCU and NPU: the clock of a core that only drives the accelerator
        clock = r["clock_mhz"].partition("/")[0]
        yield PublishedRow(
            dataset="stm32_zoo", line=line, edition=r["tool_version"],
            submitter="STMicroelectronics", board_name=r["board"], board=_find_board(r["board"]),
            core=_core(r["core"]), software=software, runtime=runtime, model_name=r["variant"],
            model=Path(r["layers"]).stem or None, precision=_precision(r["precision"]),
            clock_hz=_number(clock, 1e6, where), latency_ms=_number(r["inference_ms"], 1, where),
            energy_uj=None, supply_v=None, arena=None, board_note="",
            # some pages print kB, which may or may not mean KiB
            activations_bytes=None if "kB" in r["flags"] else _number(
                r["activations_kib"], 1024, where),
            drops_dead_channels=dead, use=_use(r["use"], where),
            flags=(*_flags(r["flags"]), *_facts(npu=r["exec_engine"] == "NPU",
                                                 transcribed=r["how"] == "transcribed")),
            source=f"stm32ai-modelzoo: {r['source']}")


def _find_board(name: str) -> str | None:
    boards = {known.upper(): ours for known, ours in read_names()["boards"].items()}
    return boards.get(name.upper())


def _find_runtime(software: str) -> tuple[str | None, bool | None]:
    text = software.lower()
    for rule in read_names()["runtimes"]:
        if all(part.lower() in text for part in rule["texts"]):
            return rule["runtime"], rule["dead"]
    return None, None


def _core(core: str) -> str:
    name = core.lower().partition("+")[0]
    return name.removesuffix("f") if name.startswith("cortex-m") else core


def _precision(precision: str) -> str:
    known: str = read_names()["precisions"].get(precision, "other")
    return known


def _flags(text: str) -> tuple[str, ...]:
    return tuple(flag for mark, flag in read_names()["quality_flags"].items() if mark in text)


def _facts(**facts: object) -> tuple[str, ...]:
    return tuple(name for name, holds in facts.items() if holds)


def _number(text: str, factor: float, where: str) -> float | None:
    try:
        return float(text) * factor if text else None
    except ValueError:
        raise MeasurementError(f"{where}: {text!r} is not a number") from None


def _use(text: str, where: str) -> str:
    check_word(f"{where}: use is", text, ("fit", "test"), MeasurementError)
    return text
