"""Plain English: the private words of `[tool.prose]` become fewer, and none comes back."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROSE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["prose"]


@cache
def read_all() -> str:
    """Return code, data and documents as one text, in small letters; history is apart."""
    files = sorted({file for pattern in PROSE["files"] for file in ROOT.glob(pattern)})
    assert len(files) > 500
    return "\n".join(("", *(file.read_text(encoding="utf-8") for file in files
                            if file.name != "CHANGELOG.md"))).lower()


@pytest.mark.parametrize("word", PROSE["most"])
def test_a_private_word_becomes_rarer(word: str) -> None:
    text = read_all()  # What stands before is looked at last: patterns of a fixed begin are fast.
    uses = sum(not "a" <= text[found.start() - 1] <= "z"
               for found in re.finditer(rf"{word}(?![a-z])", text))
    assert uses <= PROSE["most"][word], f"{word}: {uses} uses; write the term of the field"
