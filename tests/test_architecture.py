"""The order of packages, no circle of modules, and one home for each edge library."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from made_sources import read_sources, walk, walk_statements

ROOT = Path(__file__).parents[1]
PACKAGES = ("hwmodels", "calibration", "twin")
HOMES = {
    "tflite": "twin", "flatbuffers": "twin", "onnx": "twin", "typer": "twin",
    "rich": "twin", "matplotlib": "twin", "serial": "calibration",
    "scipy": ("calibration", "twin/studies"), "sklearn": "calibration", "pyarrow": "twin/studies",
    "pandas": "twin",
    "jinja2": "twin/reports", "plotly": "twin/reports", "fastapi": "twin/api/live",
    "starlette": "twin/api/live", "uvicorn": "twin/api/live",
}
"""A package, or several folders: a study draws its points with SciPy."""


@cache
def list_imports(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Statements of a file that import, and whether at module level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    return [(node, id(node) in top) for node in walk_statements(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)]


def imported_names(path: Path) -> list[tuple[str, bool]]:
    """Top-level packages a file imports, and whether at module level."""
    names = []
    for node, at_top in list_imports(path):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) \
            else [node.module] if node.module and not node.level else []
        names += [(module.split(".")[0], at_top) for module in modules]
    return names


def modules_of(path: Path) -> list[str]:
    """Modules a file imports by their full names, `from twin import x` as `twin.x`."""
    return [alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
            for node, _ in list_imports(path) for alias in node.names]


FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def find_homeless(path: Path) -> list[str]:
    """Imports of a file that are another's to make, or at the wrong place."""
    place, faults = path.relative_to(ROOT).as_posix(), []
    for name, at_top in imported_names(path):
        homes = HOMES.get(name, place)
        within = tuple(f"{home}/" for home in ([homes] if isinstance(homes, str) else homes))
        if not f"{place}/".startswith(within):
            faults.append(f"{place}: the home of {name} is {homes}")
        if at_top and name in ("sklearn", "scipy", "matplotlib", "pandas", "onnx", "pyarrow"):
            faults.append(f"{place} imports {name} at module level")
        if name in ("numba", "llvmlite") and place != "hwmodels/kernels/build.py":
            faults.append(f"{place} imports {name}")
    return faults


def test_edge_libraries_have_a_home() -> None:
    assert not [fault for path in FILES for fault in find_homeless(path)]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Hold the packages of a folder to the order in its pyproject.toml."""
    code = ("import sys; from importlinter.cli import lint_imports; "
            "sys.exit(lint_imports(no_cache=True, no_logo=True))")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True,
                          check=False, env=environment | {"COLUMNS": "200"})


def test_packages_import_in_order_and_in_no_circle() -> None:
    ended = lint_imports(ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr


ROOMS = sorted(path.parent.name for path in (ROOT / "twin").glob("*/__init__.py"))
MOST_ROOMS, MOST_ARROWS, MOST_SKIPS = 12, 30, 1
"""Of `twin`; the arrows, and those that skip more than three floors, only fall: to none."""


def find_arrows() -> set[tuple[str, str]]:
    """Rooms of `twin`, and the rooms they import, inside functions and for types too."""
    return {(room, name.split(".")[1]) for room in ROOMS
            for path in (ROOT / "twin" / room).rglob("*.py")
            for name in modules_of(path)
            if name.startswith("twin.") and name.split(".")[1] in ROOMS} - {
                (room, room) for room in ROOMS}


def test_rooms_and_the_arrows_between_them_are_few() -> None:
    order = next(contract["layers"] for contract in tomllib.loads(
        (ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if contract["id"] == "twin")
    floors = {room: floor for floor, rooms in enumerate(
        [layer for layer in order if layer.split(" ")[0] in ROOMS])
        for room in rooms.split(" | ")}
    arrows = find_arrows()
    skips = [(room, other) for room, other in arrows
             if floors[other] - floors[room] > 4 and other != "network"]
    assert len(ROOMS) <= MOST_ROOMS, ROOMS
    assert len(arrows) <= MOST_ARROWS, sorted(arrows)
    assert len(skips) <= MOST_SKIPS, sorted(skips)


MOST_FILES_WITH_MAKERS_TERMS = 35
"""Python files outside `OF_ACCELERATORS` that name them: keys, options, texts; it only falls."""

OF_ACCELERATORS = ("twin/runtimes/", "twin/deployment/accelerator/", "twin/pricing/accelerator/",
                   "calibration/importers/", "hwmodels/kernels/npu_")


def test_few_files_outside_accelerators_name_terms_of_one_maker() -> None:
    terms = re.compile(r"offload|epoch|busif|stream engine|(?<!estimate_)max_cycles", re.IGNORECASE)
    found = [name for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
             if not (name := str(path.relative_to(ROOT))).startswith(OF_ACCELERATORS)
             and terms.search(path.read_text(encoding="utf-8").replace("SOURCE_DATE_EPOCH", ""))]
    assert len(found) <= MOST_FILES_WITH_MAKERS_TERMS, found


def test_the_order_holds_inside_functions_and_for_types(tmp_path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=lambda folder, names: [
            name for name in names if ("." in name and not name.endswith(".py"))
            or name == "__pycache__"])
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted = {
        "twin/network/graph.py": "if TYPE_CHECKING:\n    import twin.pricing.prediction\n",
        "twin/pricing/lines.py": "def late():\n    import twin.program.image.target\n",
        "twin/reports/tables/report.py": "def late():\n    import twin.reports.export\n",
        "twin/reports/export.py": "def late():\n    import twin.reports.tables.report\n"}
    for name, text in planted.items():
        with (tmp_path / name).open("a") as file:
            file.write(text)
    (tmp_path / "twin" / "attic.py").write_text("")
    ended = lint_imports(tmp_path)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    for said in ("twin.network.graph -> twin.pricing.prediction",
                 "twin.pricing.lines -> twin.program.image.target",
                 "No cycles are allowed in twin.reports", "twin.attic"):
        assert said in ended.stdout


@pytest.mark.parametrize("options, most", [
    (["--runtime", "cmsis-nn", "--calibration", "none"], 115),
    (["--runtime", "tflm-cmsis-nn", "--calibration", "none"], 137),  # with what was counted
    ([], 126)])  # a closed library drops dead channels, fuses padding, lets buffers overlap
def test_predict_loads_what_it_uses(options: list[str], most: int, tmp_path) -> None:
    code = ("import contextlib, io, sys\n"
            "from twin.__main__ import main\n"
            f"sys.argv = ['twin', 'predict', 'kws', '-b', 'nucleo_l4r5zi', *{options}]\n"
            "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
            "    main()\n"
            "print(*sys.modules)")
    wide = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    wide["XDG_CACHE_HOME"] = str(tmp_path)  # nobody else empties it between the two
    for _ in range(2):  # The first keeps what it read and counted.
        everything = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True,
                                    text=True, check=True, env=wide).stdout.split()
    loaded = [name for name in everything if name.split(".")[0] in PACKAGES]
    heavy = {"numba", "scipy", "pandas", "sklearn", "pydantic", "yaml", "onnx", "matplotlib",
             "rich"}
    assert heavy & set(everything) == set()
    assert {name for name in loaded if name.startswith("hwmodels.kernels.")} <= {
        f"hwmodels.kernels.{name}" for name in ("cache_words", "compiled", "library", "store")}
    for part in ("twin.program.image", "twin.deployment.accelerator", "twin.pricing.accelerator",
                 "twin.attribution", "twin.runtimes.offload", "hwmodels.schedule", "hwmodels.bus",
                 "calibration.datasets", "calibration.measurement", "twin.cli.measure"):
        assert not [name for name in loaded if name == part or name.startswith(f"{part}.")]
    assert len(loaded) < most  # Packages that only say what they are count, too.


def test_compiled_loops_import_each_other_only() -> None:
    for path in (ROOT / "hwmodels" / "kernels").glob("*.py"):
        ours = {name for name, _ in imported_names(path) if name in PACKAGES}
        found = re.findall(r"^from (hwmodels\S*) import", path.read_text(), re.MULTILINE)
        assert ours <= {"hwmodels"} and all(
            f"{name}.".startswith("hwmodels.kernels.") for name in found), path


def test_a_package_of_nothing_but_a_cache_is_named(tmp_path) -> None:
    # What an earlier installation left, met before the sources.
    for package in ("twin", "calibration"):
        (tmp_path / package).symlink_to(ROOT / package)
    (tmp_path / "hwmodels" / "kernels" / "__pycache__").mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run([sys.executable, "-S", "-m", "twin", "boards"], cwd=tmp_path, env=env,
                           capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert f"error: {tmp_path / 'hwmodels'}: left by an earlier installation" in ended.stderr


NAMES_INSTRUCTION_SETS = (
    "hwmodels/isa/", "hwmodels/program/thumb.py", "hwmodels/program/riscv.py",
    "twin/program/thumb_addresses.py", "twin/program/riscv_addresses.py",
    "twin/program/machine.py", "twin/program/riscv_machine.py")
"""Decoders and emulator's harnesses, each of which says once which machine code it is of."""

NAMES_CODE = ("hwmodels/isa/", "twin/runtimes/", "twin/program/image/compile/plan.py")
"""Kernels: written in a dialect, and for an extension, of an instruction set."""


def find_names_of_instruction_sets(source: str, place: str) -> list[str]:
    """String literals that are a name of `hwmodels/isa`, or are compared and begin one."""
    from hwmodels.isa import EXTENSIONS, ISAS, MACHINES, load_isa

    sets = {*ISAS, *MACHINES} - {"host"}   # a board, and a task's kind, too
    code = {*EXTENSIONS, *(load_isa(isa).dialect for isa in ISAS)} - {"c"}
    nodes = [*walk(ast.parse(source))]
    sentences = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    asked = {id(one) for node in nodes for one in (
        node.args if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("startswith", "endswith") else
        [node.left] if isinstance(node, ast.Compare) else [])}
    return [node.value for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and id(node) not in sentences and (
                ((node.value in sets or (id(node) in asked and len(node.value) > 2 and any(
                    name.startswith(node.value) for name in sets)))
                 and not place.startswith(NAMES_INSTRUCTION_SETS))
                or (node.value in code and not place.startswith(NAMES_CODE)))]


def test_instruction_sets_are_named_by_their_data_alone() -> None:
    found = {place: find_names_of_instruction_sets(text, place)
             for place, text in read_sources().items()
             if place != "hwmodels/kernels/build.py"}  # this machine, as its compiler names it
    assert not {place: names for place, names in found.items() if names}


@pytest.mark.parametrize(("source", "found"), [
    ('arm = isa.startswith("arm")', ["arm"]), ('if "xtensa" in isa: pass', ["xtensa"]),
    ('kind = {"riscv": 3}[machine]', ["riscv"]), ('isa == "rv32imc"', ["rv32imc"]),
    ('isa.startswith("x86")', ["x86"]), ('able = "mve" in load_isa(isa).extensions', ["mve"]),
    ('"""Arm."""\nname.startswith("arms")', []),
])
def test_a_name_of_an_instruction_set_is_found(source: str, found: list[str]) -> None:
    assert find_names_of_instruction_sets(source, "twin/deployment/choice.py") == found
