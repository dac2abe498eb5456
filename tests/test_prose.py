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
    """Return code, data and documents as one text, history and kept results apart."""
    files = sorted({file for pattern in PROSE["files"] for file in ROOT.glob(pattern)})
    assert len(files) > 500
    return "\n".join(file.read_text(encoding="utf-8") for file in files
                     if file.name != "CHANGELOG.md")


@pytest.mark.parametrize("word", PROSE["most"])
def test_a_private_word_becomes_rarer(word: str) -> None:
    uses = len(re.findall(rf"(?<![A-Za-z]){word}(?![A-Za-z])", read_all(), re.IGNORECASE))
    assert uses <= PROSE["most"][word], f"{word}: {uses} uses; write the term of the field"
