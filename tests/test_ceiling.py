"""The size of the code only falls: lines and syntax nodes against `[tool.ceiling]`.

A line of code is neither blank nor a comment and lies in no docstring; a node is one of
`ast`, docstrings not counted, so neither long lines nor short names make room.
"""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CEILING = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ceiling"]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def measure(source: str) -> tuple[int, int]:
    """Return lines of code and syntax nodes of a module."""
    nodes = [*ast.walk(ast.parse(source))]
    docstrings = [node.body[0] for node in nodes
                  if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False)]
    texts = [node for node in nodes if isinstance(node, (ast.Constant, ast.JoinedStr))]
    lines = {number for number, line in enumerate(source.splitlines(), 1)
             if (bare := line.strip()) and not bare.startswith("#")} | _span(texts)
    return len(lines - _span(docstrings)), len(nodes) - 2 * len(docstrings)


def _span(nodes: list[ast.stmt] | list[ast.expr]) -> set[int]:
    """Return the lines nodes stand on: those within a string are code, blank or not."""
    return {line for node in nodes for line in range(node.lineno, node.end_lineno + 1)}


@pytest.mark.parametrize("group", CEILING)
def test_the_code_is_no_larger_than_its_ceiling(group):
    files = [file for pattern in CEILING[group]["files"] for file in ROOT.glob(pattern)]
    assert len(files) > 1
    sizes = [measure(file.read_text(encoding="utf-8")) for file in files]
    lines, nodes = (sum(column) for column in zip(*sizes, strict=True))
    assert lines <= CEILING[group]["lines"], f"{group}: {lines} lines of code"
    assert nodes <= CEILING[group]["nodes"], f"{group}: {nodes} syntax nodes"


def test_comments_and_docstrings_are_free_and_joined_lines_are_not():
    plain = "def f(a):\n    return a + 1\n"
    explained = '"""Why."""\n\n\ndef f(a):\n    """Add one."""\n    # One more.\n    return a + 1\n'
    assert measure(plain) == measure(explained)
    assert measure("a = 1; b = 2\n")[1] == measure("a = 1\nb = 2\n")[1]
