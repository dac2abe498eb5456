"""Facts of a board: declared once, and the page of them says what is declared."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest

from hwmodels.board import facts
from hwmodels.board.assembly import read
from hwmodels.board.catalogue import list_facts, write_reference
from hwmodels.board.declaration import (
    WHOLE_CYCLES,
    Key,
    Part,
    Reference,
    RefusedValueError,
    keys_of,
)
from hwmodels.board.file import list_boards, load_board
from hwmodels.board.schema import section_of

PAGE = Path(__file__).parents[2] / "docs" / "boards.md"


def test_the_page_of_facts_is_current():
    assert PAGE.read_text() == write_reference(), (
        "python -m hwmodels.board.catalogue > docs/boards.md")


def test_every_key_says_what_it_means():
    rows = list_facts()
    assert len({row.path for row in rows}) == len(rows) > 120
    assert all(row.doc and row.accepted for row in rows)


@pytest.mark.parametrize("name", list_boards())
def test_every_key_of_a_shipped_board_is_listed(name):
    def paths(node, listed, prefix=""):
        for key, child in node.items():
            at = f"{prefix}{key}"
            if at not in listed:
                section = {row.split(".")[len(prefix.split(".")) - 1] for row in listed
                           if row.startswith(prefix)}
                (name,) = {word for word in section if word.isupper()} or {key}
                at = f"{prefix}{name}"
            if at in listed:
                continue
            assert isinstance(child, dict), f"{at} is not listed"
            paths(child, listed, f"{at}.")

    paths(json.loads(load_board(name).document), {row.path for row in list_facts()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """A noun nobody else knows."""

    name: str
    prefetch_lines: Annotated[int, Key(WHOLE_CYCLES, "Lines read ahead.")] = 2
    clock: Annotated[str | None, Key(Reference("clock"), "Of nothing.")] = None


def test_a_declared_fact_is_validated_and_read():
    """One declaration: bounds, source, the noun's own default, and its field."""
    section = section_of(Part(Toy))

    def toy(raw):
        return read(Toy, section.model_validate(raw, context={"sources": ["ds"]}), name="toy")

    assert toy({}) == Toy(name="toy")
    assert toy({"prefetch_lines": [3, "datasheet", "ds"], "clock": "cpu"}) == Toy(
        name="toy", prefetch_lines=3, clock="cpu")
    with pytest.raises(ValueError, match="accepted: a whole number >= 0"):
        toy({"prefetch_lines": [-1, "datasheet", "ds"]})
    with pytest.raises(ValueError, match="did you mean prefetch_lines"):
        toy({"prefetch": [1, "datasheet", "ds"]})
    assert issubclass(RefusedValueError, ValueError)


@pytest.mark.parametrize("noun", ["Bus", "Dma", "Core", "Cache", "Counters"])
def test_fields_of_plain_nouns_are_keys(noun):
    """What is not a key of the file is its name there."""
    cls = getattr(facts, noun)
    assert {field.name for field in fields(cls)} - {key.field for key in keys_of(cls)} <= {"name"}
