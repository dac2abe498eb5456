"""The direction of imports, and one home for each edge library."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = {"hwmodels": 0, "calibration": 1, "twin": 2}
HOMES = {
    "tflite": "twin", "flatbuffers": "twin", "onnx": "twin", "typer": "twin",
    "rich": "twin", "matplotlib": "twin", "serial": "calibration", "scipy": "calibration",
    "sklearn": "calibration", "simpy": "hwmodels",
}


def imported_names(path: Path) -> list[tuple[str, bool]]:
    """Top-level packages a file imports, and whether at module level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    names = []
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        names += [(module.split(".")[0], id(node) in top) for module in modules]
    return names


FILES = [path for package in LAYERS for path in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    for name, at_top in imported_names(path):
        if name in LAYERS:
            assert LAYERS[name] <= LAYERS[package], f"{path} imports upwards: {name}"
        assert HOMES.get(name, package) == package, f"{path}: the home of {name} is {HOMES[name]}"
        heavy = name in ("sklearn", "scipy", "matplotlib", "pandas", "onnx")
        assert not (heavy and at_top), f"{path} imports {name} at module level"
        if name == "numba":
            assert path.parent.name == "kernels" or not at_top, f"{path}: numba at module level"


def test_numba_kernels_import_each_other_only() -> None:
    for path in (ROOT / "hwmodels" / "kernels").glob("*.py"):
        ours = {name for name, _ in imported_names(path) if name in LAYERS}
        found = re.findall(r"^from (hwmodels\S*) import", path.read_text(), re.MULTILINE)
        assert ours <= {"hwmodels"} and all(
            name.startswith("hwmodels.kernels.cache_") for name in found), path


def test_compiled_code_knows_its_sources() -> None:
    from hwmodels.kernels.cache_nest import fingerprint_sources, make_entry, run_program

    (cell,) = run_program.py_func.__closure__
    assert cell.cell_contents == fingerprint_sources()
    keys = [make_entry(sources)._cache._index_key((), run_program.targetctx.codegen())
            for sources in (1, 1, 2)]
    assert keys[0] == keys[1] != keys[2]
