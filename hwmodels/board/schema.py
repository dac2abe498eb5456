"""A board file validated by pydantic, against the keys that nouns of the board declare."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)

from hwmodels.board.declaration import (
    ByScale,
    Choice,
    Declared,
    Kind,
    Part,
    Plain,
    Several,
    Table,
    keys_of_part,
)
from hwmodels.board.layout import BOARD_FILE
from hwmodels.board.leaf import Leaf, Quantity, RefusedValueError, shorten
from hwmodels.errors import BoardError, did_you_mean


class Section(BaseModel):
    """A part of the file: unknown keys are refused with the nearest accepted ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    declared: ClassVar[dict[str, Declared]] = {}

    if TYPE_CHECKING:
        # The fields are those its nouns declare.
        def __getattr__(self, name: str) -> Any:
            """Tell type checkers that keys of the file are attributes."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, raw: object) -> object:
        if isinstance(raw, dict):
            for key in raw:
                if key not in cls.declared:
                    raise RefusedValueError(
                        f"unknown key; {did_you_mean(str(key), cls.declared)}", str(key))
        return raw

    def items(self) -> tuple[tuple[str, Any], ...]:
        """Values by key, as the file writes the keys."""
        return tuple((field.alias or name, getattr(self, name))
                     for name, field in type(self).model_fields.items())


@cache
def section_of(part: Part) -> type[Section]:
    """Return the model of a section, derived from the keys its nouns declare."""
    keys = keys_of_part(part)
    fields: dict[str, Any] = {}
    for key in keys:
        kept = key.name + "_version" if hasattr(BaseModel, key.name) else key.name
        accepted, default = _accepted(key.kind), _default(key)
        if not key.required and default is None:
            accepted = accepted | None
        alias = None if kept == key.name else key.name
        fields[kept] = (accepted, Field(... if key.required else default, alias=alias))
    model = create_model(f"{part.nouns[0].__name__}Section", __base__=Section, **fields)
    model.declared = {key.name: key for key in keys}
    return model


def _accepted(kind: Kind) -> Any:
    """Return the annotation by which pydantic reads a kind of value."""
    match kind:
        case Quantity() as quantity:
            def read(raw: object, info: ValidationInfo) -> Leaf:
                return quantity.read(raw, (info.context or {}).get("sources", ()))

            return Annotated[Leaf, PlainValidator(read)]
        case Plain(of):
            return of
        case Choice(words):
            return Literal[words]
        case Several(of):
            return tuple[_accepted(of), ...]  # type: ignore[misc]
        case Table(of) | ByScale(of):
            return dict[str, _accepted(of)]  # type: ignore[misc]
        case Part():
            return section_of(kind)
    return str


def _default(key: Declared) -> Any:
    """Return what a key that is left out holds; None: nothing is stated."""
    match key.kind:
        case Plain() | Choice():
            return key.default
        case Several():
            return ()
        case Table() | ByScale():
            return {}
        case Part() if key.default is not None and not key.required:
            return section_of(key.kind)()
    return None


def validate(document: dict[str, Any], file: str) -> Section:
    """Read a parsed board file.

    Parameters
    ----------
    document : dict
        The parsed YAML or JSON.
    file : str
        Its name, for messages.

    Returns
    -------
    Section
        Every key known, every number with kind, source and a possible value.

    Raises
    ------
    BoardError
        `file:dotted.key: reason; accepted ...`, naming the first thing refused.
    """
    sources = document.get("sources")
    context = {"sources": sources if isinstance(sources, dict) else {}}
    try:
        return section_of(BOARD_FILE).model_validate(document, context=context)
    except ValidationError as error:
        problems = [_describe(problem) for problem in error.errors(include_url=False)]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise BoardError(f"{file}:{problems[0]}{more}")


def _describe(problem: Any) -> str:
    path = [str(part) for part in problem["loc"]]
    refused = problem.get("ctx", {}).get("error")
    if isinstance(refused, RefusedValueError):
        path += [refused.key] if refused.key else []
        return f"{'.'.join(path)}: {refused.reason}"
    if problem["type"] == "missing":
        return f"{'.'.join(path)}: is required"
    reason = problem["msg"][0].lower() + problem["msg"][1:]
    return f"{'.'.join(path) or 'the file'}: {reason}, not {shorten(problem['input'])}"
