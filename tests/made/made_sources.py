"""Sources of the packages, for tests that look through all: only what can matter is parsed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("hwmodels", "calibration", "twin")


@cache
def read_sources() -> dict[str, str]:
    """Return the text of every file of the packages by its name."""
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
            for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node, as `ast.walk` does in another order and twice the time."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for value in node.__dict__.values():
            if isinstance(value, ast.AST):
                left.append(value)
            elif isinstance(value, list):
                left += [one for one in value if isinstance(one, ast.AST)]


def walk_statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what stands in a block: no expressions, which is a tenth of all."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += getattr(node, block, ())


def walk_sources(mentions: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield name and node of each file whose text has a match of an expression."""
    for name, text in read_sources().items():
        if re.search(mentions, text):
            yield from ((name, node) for node in walk(ast.parse(text)))


def is_called(node: ast.AST, *names: str) -> bool:
    """Whether it is a call of a function by one of these bare names."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) \
        and node.func.id in names
