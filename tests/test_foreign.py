"""Other people's packages by their public names only, and nothing put into them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest
from made_sources import PACKAGES, is_called, read_sources, walk

NAMED_TUPLE = {"_replace", "_asdict", "_make", "_fields", "_field_defaults"}
"""Public, as documented: underscored so that no field can have the name."""

HANDLE = "uses self.core._uch"
"""Of Unicorn's engine: its C functions take it, and its binding has no public name for it."""

REPLACEABLE = {"sys.stdout", "sys.stderr", "warnings.showwarning"}
"""What Python documents as to be assigned."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def find_root(node: ast.expr) -> str:
    """Name at the beginning of a chain of attributes, calls and subscripts."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_own(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id in ("self", "cls")) \
        or (is_called(node, "super") and not node.args)


def list_defined(nodes: Iterable[ast.AST]) -> set[str]:
    """Private names a file makes: functions, classes, variables, attributes of self, slots."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) \
                and is_own(node.value):
            names.add(node.attr)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) \
                and node.targets[0].id == "__slots__":
            names |= {one.value for one in walk(node.value) if isinstance(one, ast.Constant)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) \
                and ast.unparse(node.func) == "object.__setattr__" \
                and isinstance(node.args[1], ast.Constant):
            names.add(node.args[1].value)
    return {name for name in names if is_private(name)}


def list_foreign(nodes: list[ast.AST]) -> dict[str, str]:
    """What a file imports from elsewhere: full names by the name each has in the file."""
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {one.asname or one.name.partition(".")[0]: one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return {name: full for name, full in names.items()
            if full.partition(".")[0] not in (*PACKAGES, "__future__")}


MAY_ASSIGN = (ast.Attribute, ast.Subscript, ast.Call)


def list_assigned(node: ast.AST) -> Iterator[ast.expr]:
    """Names and chains of attributes a statement assigns to or deletes; of `vars(x)`, x."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) \
            and is_called(node.value, "vars"):
        yield from node.value.args
    elif is_called(node, "setattr", "delattr"):
        yield node.args[0]


def find_intrusions(text: str, ours: set[str]) -> Iterator[str]:
    """Say where a file uses private names it did not make, or assigns into other packages.

    `ours` are private names of all our files: a class may inherit them from another one.
    """
    nodes = [*walk(ast.parse(text))]
    foreign, defined = list_foreign(nodes), NAMED_TUPLE | list_defined(nodes)
    for full in foreign.values():
        if any(map(is_private, full.split("."))):
            yield f"imports {full}"
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and (
                find_root(node) in foreign
                or node.attr not in defined | (ours if is_own(node.value) else set())):
            yield f"{node.lineno}: uses {ast.unparse(node)}"
        if is_called(node, "getattr", "hasattr", "setattr", "delattr") \
                and not is_own(node.args[0]) and isinstance(node.args[1], ast.Constant) \
                and is_private(node.args[1].value):
            yield f"{node.lineno}: uses {ast.unparse(node)}"
        for place in list_assigned(node) if isinstance(node, MAY_ASSIGN) else ():
            root = place
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in foreign \
                    and ast.unparse(place) not in REPLACEABLE:
                yield f"{node.lineno}: assigns to {ast.unparse(place)}"


def test_packages_keep_out_of_the_internals_of_others() -> None:
    texts = read_sources()
    ours = set().union(*(list_defined(walk(ast.parse(text))) for text in texts.values()))
    found = {f"{name}:{said}" for name, text in texts.items()
             for said in find_intrusions(text, ours)}
    assert {said for said in found if not said.endswith(HANDLE)} == set()
    assert len(found) == 1, "the handle is read in one place"


@pytest.mark.parametrize("text", [
    "import typer._click",
    "from typer._click import core",
    "from typer import _click",
    "import typer\ntyper.core._click",
    "import typer\ntyper.Option()._default",
    "import numpy as np\nnp._core",
    "from dataclasses import dataclass\ndataclass._process_class",
    "def coerce(option):\n    option._runtime_param = None",
    "def look(option):\n    return hasattr(option, '_runtime_param')",
    "class Own:\n    def look(self):\n        return self._machine._uch",
    "import dataclasses\nvars(dataclasses)['exec'] = print",
    "import dataclasses\nsetattr(dataclasses, 'exec', print)",
    "import warnings\nwarnings.formatwarning = print",
    "from typer.core import TyperGroup\nTyperGroup.main = print",
    "import typer\ntyper.core.TyperGroup.main = print"])
def test_each_way_into_them_is_seen(text: str) -> None:
    assert list(find_intrusions(text, {"_machine"}))


@pytest.mark.parametrize("text", [
    "import sys\nsys.stdout = None",
    "from xml.etree import ElementTree\nElementTree.SubElement(None, 'a').text = 'b'",
    "class Own:\n    def __init__(self, other):\n        self._size = other._size",
    "def move(one):\n    return one._replace(size=1)",
    "from hwmodels import _own"])
def test_what_is_public_or_ours_is_let_through(text: str) -> None:
    assert not list(find_intrusions(text, set()))
