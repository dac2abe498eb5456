"""Study files: YAML by the guarded loader, each key checked, errors naming file and key."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from hwmodels.errors import check_known
from hwmodels.files import names_file
from twin.deployment.features import switch_on
from twin.errors import RuntimeRefusedError, StudyError, UsageError
from twin.network.readers import SUFFIXES
from twin.pricing.inference import TEMPERATURES
from twin.studies.axes import check_runtimes, make_space, read_sample
from twin.studies.duty import Duty, read_currents, read_duty, read_sleep
from twin.studies.files import (
    AS_LIST,
    CHECKED,
    Text,
    Words,
    find_file,
    list_shipped,
    make_noun,
    read_mapping,
)
from twin.studies.judge import make_judge
from twin.studies.limits import Limits, read_limits
from twin.studies.points import Deployer
from twin.studies.results import read_objectives
from twin.studies.study.definition import CASE, TEMPERATURE, Budget, Finding, Search, Study
from twin.studies.study.tasks import MEGABYTE, SOFT

SHIPPED = Path(__file__).parent / "files"
AS_IS = "as it is"
"""The case without a feature, beside which features stand."""


class _Limits(BaseModel):
    """One limit of each quantity, of soft ones several."""

    model_config = CHECKED

    max_ms: Words = []
    max_uj: Words = []
    max_ram: Words = []
    max_flash: Words = []
    max_usd: Words = []
    max_mw: Words = []
    min_days: Words = []
    min_accuracy: Words = []


_Megabytes = Annotated[float | int, Field(gt=0, le=1e6)]
"""Of 2**20 bytes, as the bytes of a network's parameters are counted."""


class _File(BaseModel):
    model_config = CHECKED

    name: str
    question: str = ""
    models: Words = Field(min_length=1)
    boards: Words = Field(min_length=1)
    runtimes: Words = []
    clocks: Words = []
    set: dict[str, Words] = {}
    cases: dict[Text, dict[str, Text]] = {}
    features: Words = []
    postprocess: Words = []
    temperatures: Annotated[Words, Field(min_length=1)] = ["warm"]
    sample: Text | None = None
    seed: int = Field(0, ge=0, le=2**31)
    search: Search | None = None
    soft: _Limits = _Limits()
    hard: _Limits = _Limits()
    memory_budgets_mb: Annotated[list[_Megabytes], AS_LIST] = []
    active_memory_budget_mb: _Megabytes | None = None
    objectives: Annotated[Words, Field(min_length=1)] = ["time", "energy"]
    prices: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = {}
    calibration: str = "auto"
    accuracy: str = ""
    every: Text | None = None
    cell: Text | None = None
    currents: dict[str, Text] = {}
    sleep: dict[str, Text] = {}
    known_only: bool = False
    finding: Finding | None = None
    notes: list[str] = []


def list_studies() -> tuple[str, ...]:
    """Return the names of the shipped studies."""
    return list_shipped(SHIPPED)


def find_study(name_or_path: str) -> Path:
    """Return the file of a study, a shipped one by name; raises `StudyError` for none."""
    return find_file(name_or_path, SHIPPED, "study", StudyError)


def load_study(name_or_path: str) -> Study:
    """Read a study file, or a shipped study by name.

    Parameters
    ----------
    name_or_path
        "e1_quantisation", or a .yaml file; models and boards it names as files are beside it.

    Raises
    ------
    StudyError
        `file:key: reason; accepted ...`.
    """
    path = find_study(name_or_path)
    document = read_mapping(path, StudyError, ", with schema, name, models and boards")
    try:
        return _build(path, make_noun(_File, document, path, StudyError))
    except UsageError as error:
        raise StudyError(f"{path.name}: {error}") from error


def load_runnable(name_or_path: str) -> Study:
    """Return a study all of whose runtimes are known; raises `StudyError` as `load_study` does."""
    study = load_study(name_or_path)
    try:
        check_runtimes(study.space)
    except RuntimeRefusedError as error:
        raise StudyError(f"{find_study(name_or_path).name}:runtimes: {error}") from error
    return study


def _build(path: Path, section: _File) -> Study:
    where = path.name
    _choose(where, "temperatures", section.temperatures, TEMPERATURES)
    settings: dict[str, object] = {
        name: values[0] if len(values) == 1 else values for name, values in section.set.items()}
    space = make_space(_find(path, section.models, SUFFIXES),
                       _find(path, section.boards, (".yaml", ".yml")),
                       runtimes=section.runtimes, clocks=section.clocks, settings=settings,
                       sample=None if section.sample is None else read_sample(
                           section.sample, section.seed))
    duty = read_duty(section.every, section.cell)
    soft, budgets = _read_soft(section, duty)
    given = section.hard.model_dump()
    for name, values in given.items():
        if len(values) > 1:
            raise StudyError(f"{where}:hard.{name}: {len(values)} values; accepted: one, or a list "
                             "in soft")
    hard = replace(read_limits(duty=duty, **{name: values[0] for name, values in given.items()
                                             if values}),
                   max_parameter_bytes=None if section.active_memory_budget_mb is None
                   else section.active_memory_budget_mb * MEGABYTE)
    study = Study(
        name=section.name, question=section.question, space=space, cases=_list_cases(section),
        postprocess=tuple(_find(path, section.postprocess, (".py",))),
        temperatures=tuple(dict.fromkeys(section.temperatures)),
        limits=soft, hard=hard, budgets=budgets,
        objectives=read_objectives(section.objectives), search=section.search,
        deployer=Deployer(
            prices=section.prices, calibration=section.calibration, duty=duty,
            currents=read_currents(section.currents), sleep=read_sleep(section.sleep),
            known_only=section.known_only,
            judge=make_judge(str(path.parent / section.accuracy) if section.accuracy else None)),
        notes=tuple(section.notes), finding=section.finding)
    if duty is None and "mean_mw" in study.objectives:
        raise StudyError(f"{where}:objectives: days, power: are of a duty; accepted: every: "
                         "PERIOD with it, such as every: 1s")
    if section.search is not None and section.sample is not None:
        raise StudyError(f"{where}:search: a search draws its own points; accepted: no sample")
    if study.finding is not None:
        _choose(where, "finding.vary", [study.finding.vary], (*study.axes, CASE, TEMPERATURE))
    return study


def _list_cases(section: _File) -> dict[str, dict[str, str]]:
    """Return the cases, and one for each feature or sum of features, as a+b; none before them."""
    first: dict[str, dict[str, str]] = {AS_IS: {}} if section.features and not section.cases else {}
    return {**first, **section.cases,
            **{name: switch_on(name.split("+")) for name in section.features}}


def _read_soft(section: _File, duty: Duty | None) -> tuple[Limits, tuple[Budget, ...]]:
    """Return the strictest of soft limits, and each of several as a budget with its column."""
    soft, budgets = Limits(), list[Budget]()
    for name, values in section.soft.model_dump().items():
        read = [read_limits(duty=duty, **{name: value}) for value in values]
        soft = reduce(_tighten, read, soft)
        if len(values) > 1:
            for value, one in zip(values, read, strict=True):
                (quantity, limit), = ((key, limit) for key, limit in one.list_limits()
                                      if key != "time_us" or name == "max_ms")
                budgets.append(Budget(f"{SOFT[quantity]}_{value}", quantity, limit))
    budgets += [Budget(f"violates_{one}mb", "parameter_bytes", one * MEGABYTE)
                for one in section.memory_budgets_mb]
    return replace(soft, every_us=None if duty is None else duty.every_us), tuple(budgets)


def _tighten(limits: Limits, other: Limits) -> Limits:
    """Return the stricter of two limits of each quantity; the longer life."""
    def pick(name: str) -> float | None:
        known = [value for one in (limits, other) if (value := getattr(one, name)) is not None]
        return (max if name == "min_life_days" else min)(known, default=None)

    return Limits(**{field.name: pick(field.name) for field in fields(Limits)})


def _choose(where: str, key: str, given: list[str], accepted: tuple[str, ...]) -> None:
    for one in given:
        check_known(f"{where}:{key}:", one, accepted, StudyError)


def _find(path: Path, names: list[str], suffixes: tuple[str, ...]) -> list[str]:
    """Return names, those of files as paths from where the study file is."""
    return [str(path.parent / name) if name.rpartition(".py:")[0] or (
        name.endswith(suffixes) and names_file(path.parent / name)) else name for name in names]

