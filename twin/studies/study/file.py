"""Study files: YAML by the guarded loader, each key checked, errors naming file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hwmodels.errors import did_you_mean
from hwmodels.files import DocumentError, names_file, read_yaml
from twin.errors import RuntimeRefusedError, StudyError, UsageError
from twin.pricing.prediction import TEMPERATURES
from twin.studies.axes import Sample, Value, check_runtimes, make_space, read_sample
from twin.studies.limits import Limits, read_limits
from twin.studies.results import read_objectives
from twin.studies.study.findings import read_figures
from twin.studies.study.study import CASE, SAMPLERS, TEMPERATURE, Finding, Search, Study

SHIPPED = Path(__file__).parent / "files"

KINDS = ("effect", "clock", "return")

MODEL_SUFFIXES = (".tflite", ".onnx", ".json")

Text = Annotated[str, BeforeValidator(lambda value: value if value is None else _as_text(value))]
Words = Annotated[list[Text], BeforeValidator(
    lambda value: value if isinstance(value, list) else [value])]


def _as_text(value: object) -> str:
    """Return a scalar as an option would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class _Limits(_Part):
    max_ms: Text | None = None
    max_uj: Text | None = None
    max_ram: Text | None = None
    max_flash: Text | None = None
    max_usd: Text | None = None


class _Search(_Part):
    trials: int = Field(ge=1, le=1_000_000)
    sampler: str = "nsga2"
    batch: int = Field(16, ge=1, le=4096)
    seed: int = Field(0, ge=0, le=2**31)


class _Finding(_Part):
    vary: str
    baseline: Text = ""
    figures: Words = Field(default_factory=lambda: ["time", "energy"], min_length=1)
    kind: str = "effect"
    efforts: dict[str, str] = Field(default_factory=dict)


class _File(_Part):
    schema_: int = Field(alias="schema", ge=1, le=1)
    name: str
    question: str = ""
    models: Words = Field(min_length=1)
    boards: Words = Field(min_length=1)
    runtimes: Words = Field(default_factory=list)
    clocks: Words = Field(default_factory=list)
    set: dict[str, Words] = Field(default_factory=dict)
    cases: dict[Text, dict[str, Text]] = Field(default_factory=dict)
    temperatures: Words = Field(default_factory=lambda: ["warm"], min_length=1)
    sample: Text | None = None
    seed: int = Field(0, ge=0, le=2**31)
    search: _Search | None = None
    soft: _Limits = _Limits()
    hard: _Limits = _Limits()
    objectives: Words = Field(default_factory=lambda: ["time", "energy"], min_length=1)
    prices: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = Field(default_factory=dict)
    calibration: str = "auto"
    finding: _Finding | None = None
    notes: list[str] = Field(default_factory=list)


_SECTIONS: dict[str, type[_Part]] = {"search": _Search, "soft": _Limits, "hard": _Limits,
                                     "finding": _Finding}


def list_studies() -> tuple[str, ...]:
    """Return the names of the shipped studies."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def find_study(name_or_path: str) -> Path:
    """Return the file of a study, a shipped one by name; raises `StudyError` for none."""
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = SHIPPED / f"{name_or_path}.yaml"
        if path.parent != SHIPPED or not path.is_file():
            raise StudyError(f"{name_or_path}: no such study; "
                             + did_you_mean(name_or_path, list_studies()) + " or a .yaml file")
    return path


def load_study(name_or_path: str) -> Study:
    """Read a study file, or a shipped study by name.

    Parameters
    ----------
    name_or_path : str
        "e1_quantisation", or a .yaml file; models and boards it names as files are beside it.

    Raises
    ------
    StudyError
        `file:key: reason; accepted ...`.
    """
    path = find_study(name_or_path)
    try:
        document = read_yaml(path)
    except (DocumentError, OSError) as error:
        raise StudyError(f"{path}: cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise StudyError(f"{path}: a mapping is expected, with schema, name, models and boards")
    try:
        section = _File.model_validate(document)
    except ValidationError as error:
        raise StudyError(_tell(path, error)) from error
    return _build(path, section)


def load_runnable(name_or_path: str) -> Study:
    """Return a study all of whose runtimes are known; raises `StudyError` as `load_study` does."""
    study = load_study(name_or_path)
    try:
        check_runtimes(study.space)
    except RuntimeRefusedError as error:
        raise StudyError(f"{find_study(name_or_path).name}:runtimes: {error}") from error
    return study


def _tell(path: Path, error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    reason = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        owner = _SECTIONS.get(str(first["loc"][0]), _File) if len(first["loc"]) > 1 else _File
        names = [field.alias or name for name, field in owner.model_fields.items()]
        reason = "unknown key; " + did_you_mean(str(first["loc"][-1]), names)
    elif first["type"] == "missing":
        reason = "is missing"
    return f"{path.name}:{key}: {reason}"


def _build(path: Path, section: _File) -> Study:
    where = path.name
    _choose(where, "temperatures", section.temperatures, TEMPERATURES)
    settings: dict[str, object] = {
        name: values[0] if len(values) == 1 else values for name, values in section.set.items()}
    try:
        space = make_space(_find(path, section.models, MODEL_SUFFIXES),
                           _find(path, section.boards, (".yaml", ".yml")),
                           runtimes=section.runtimes, clocks=section.clocks, settings=settings,
                           sample=_sample(section))
        objectives = read_objectives(section.objectives)
        study = Study(
            name=section.name, question=section.question, space=space, cases=section.cases,
            temperatures=tuple(dict.fromkeys(section.temperatures)),
            limits=_limits(section.soft), hard=_limits(section.hard), objectives=objectives,
            search=_search(where, section.search), prices=section.prices,
            calibration=section.calibration, notes=tuple(section.notes),
            finding=None if section.finding is None else _finding(where, section.finding))
    except UsageError as error:
        raise StudyError(f"{where}: {error}") from error
    if section.search is not None and section.sample is not None:
        raise StudyError(f"{where}:search: a search draws its own points; accepted: no sample")
    if study.finding is not None:
        _choose(where, "finding.vary", [study.finding.vary], (*study.axes, CASE, TEMPERATURE))
    return study


def _sample(section: _File) -> Sample | None:
    return None if section.sample is None else read_sample(section.sample, section.seed)


def _limits(section: _Limits) -> Limits:
    return read_limits(**section.model_dump())


def _search(where: str, section: _Search | None) -> Search | None:
    if section is None:
        return None
    _choose(where, "search.sampler", [section.sampler], SAMPLERS)
    return Search(**section.model_dump())


def _finding(where: str, section: _Finding) -> Finding:
    _choose(where, "finding.kind", [section.kind], KINDS)
    return Finding(vary=section.vary, baseline=section.baseline, kind=section.kind,
                   figures=read_figures(section.figures), efforts=section.efforts)


def _choose(where: str, key: str, given: list[str], accepted: tuple[str, ...]) -> None:
    for one in given:
        if one not in accepted:
            raise StudyError(f"{where}:{key}: {one!r}; " + did_you_mean(one, accepted))


def _find(path: Path, names: list[str], suffixes: tuple[str, ...]) -> list[Value]:
    """Return names, those of files as paths from where the study file is."""
    return [str(path.parent / name) if name.endswith(suffixes) and names_file(path.parent / name)
            else name for name in names]

