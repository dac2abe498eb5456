"""Operators are named in the table, where files are read and written, and where kernels stand."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_sources import read_sources, walk

from twin.network.operators import OPERATORS
from twin.runtimes.runtime import FAMILIES

ROOT = Path(__file__).parents[3]
PACKAGES = ("twin", "hwmodels", "calibration")

HOMES = (
    "twin/network/operators.py",
    "twin/network/readers/", "twin/network/writers/", "twin/network/arithmetic/",
    "twin/network/zoo/",  # networks written in code name operators as files do
    "twin/program/image/compile/calls.py",  # which of our own kernels an operator calls
    *(f"{folder.relative_to(ROOT)}/" for folder in sorted((ROOT / "twin/runtimes").iterdir())
      if folder.is_dir() and folder.name not in ("lowering", "__pycache__")),
)
"""The table, files, arithmetic, and the kernel modules of each library."""

WORDS = {
    "abs", "add", "ceil", "clip", "cos", "div", "equal", "ethos_u", "exp", "floor", "function",
    "gather",
    "greater", "less", "log", "maximum", "mean", "minimum", "mul", "neg", "pack", "pad", "pow",
    "reciprocal", "round", "select", "sign", "sin", "slice", "split", "sqrt", "square", "sub",
    "sum", "tile", "transpose", "unpack", *FAMILIES,
}
"""Names with other meanings, too: instructions, commands, axes, families of kernels.

One counts as an operator's name where `op` or `.op` is compared with it, alone or in a collection,
where it is passed as `op=` or looked up in `OPERATORS`, and in a collection of nothing but
operators' names in a module that imports `twin.network`, or beside a name that is no such word.
"""

ALONE = set(OPERATORS) - WORDS


def find_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of every string constant that names an operator."""
    nodes = [*walk(ast.parse(source))]
    graphs = any(isinstance(node, ast.ImportFrom) and (node.module or "").startswith("twin.network")
                 for node in nodes)
    for node in nodes:
        if isinstance(node, ast.Constant) and node.value in ALONE:
            yield node.lineno, str(node.value)
        words = list(_strings(node))
        named = [text.value in OPERATORS for text in words]
        if (any(named) and _is_asked(node)) or any(text.value in ALONE for text in words) or (
                graphs and len(words) > 1 and all(named)):
            yield from ((text.lineno, str(text.value)) for text in words
                        if text.value in OPERATORS and text.value in WORDS)


def _strings(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield what a collection lists, an `op` is compared with, passed as, or looked up by."""
    listed: list[ast.expr | None] = []
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        listed = [*node.elts]
    elif isinstance(node, ast.Dict):
        listed = [*node.keys]
    elif isinstance(node, ast.Compare):
        listed = [part for side in (node.left, *node.comparators)
                  for part in (side, *ast.iter_child_nodes(side)) if isinstance(part, ast.expr)]
    elif isinstance(node, ast.keyword):
        listed = [node.value]
    elif isinstance(node, ast.Subscript):
        listed = [node.slice]
    for part in listed:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part


def _is_asked(node: ast.AST) -> bool:
    """Whether an operator is what is compared, passed or looked up."""
    if isinstance(node, ast.keyword):
        return node.arg == "op"
    asked = [node.left, *node.comparators] if isinstance(node, ast.Compare) else (
        [node.value] if isinstance(node, ast.Subscript) else [])
    return any((isinstance(part, ast.Name) and part.id in ("op", "OPERATORS"))
               or (isinstance(part, ast.Attribute) and part.attr == "op") for part in asked)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_operator_is_named_outside_its_homes(package: str) -> None:
    found = [f"{path}:{line}: {name}"
             for path, text in read_sources().items()
             if path.startswith(f"{package}/") and not path.startswith(HOMES)
             for line, name in find_names(text)]
    assert found == [], "ask a trait of the table: twin/network/operators.py"


@pytest.mark.parametrize(("source", "names"), [
    ("if layer.op == 'conv_2d': pass", ["conv_2d"]),
    ("run('hard_swish')", ["hard_swish"]),
    ("if layer.op == 'add': pass", ["add"]),
    ("if op not in ('pad', 'quantize'): pass", ["pad", "quantize"]),
    ("Layer(index=0, op='copy')", ["copy"]),
    ("OPERATORS['softmax'].roles", ["softmax"]),
    ("KINDS = {'conv_2d': 1, 'add': 2}", ["conv_2d", "add"]),
    ("from twin.network.graph import Layer\nSUMS = ('add', 'sub')", ["add", "sub"]),
    ("if word.base in ('add', 'sub'): pass", []),
    ("if command == 'select': axes.set_xscale('log')", []),
    ("from twin.network.graph import Layer\nFAMILIES = ('conv', 'softmax', 'quantize')", []),
])
def test_what_counts_as_a_name(source: str, names: list[str]) -> None:
    assert sorted(name for _, name in find_names(source)) == sorted(names)
