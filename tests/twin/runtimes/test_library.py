"""Where libraries keep their operators: found in the files' text, chosen by what a core can run."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from twin.network.operators import OPERATORS
from twin.runtimes.file import list_runtimes, load_runtime
from twin.runtimes.library import find_lowering, find_operators

FOLDER = Path(__file__).parents[3] / "twin" / "runtimes"
LIBRARIES = sorted({load_runtime(name).library for name in list_runtimes()} | {"reference"})


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_read_from_the_text_are_those_of_the_modules(library: str) -> None:
    found: dict[str, str] = {}
    for path in sorted((FOLDER / library).rglob("*.py")):
        module = ".".join(path.relative_to(FOLDER.parents[1]).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        table = getattr(import_module(module), "KERNELS", {})
        assert not set(found) & set(table), f"{module}: {set(found) & set(table)} stand twice"
        found |= dict.fromkeys(table, module)
    assert dict(find_operators(library)) == found
    assert set(found) <= set(OPERATORS)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_operator_has_plain_c(library: str) -> None:
    found = find_operators(library)
    assert len(found) > 5
    for op in found:
        assert find_lowering((library,), op, "int8", "armv6-m") is not None


def test_a_core_runs_the_best_code_it_can() -> None:
    def name(op: str, isa: str, dtype: str = "int8") -> str:
        lowering = find_lowering(("cmsis_nn", "reference"), op, dtype, isa)
        assert lowering is not None
        return f"{lowering.lower.__module__.split('.')[2]} {lowering.lower.__name__}"

    pools = {isa: name("average_pool_2d", isa) for isa in ("armv7-m", "armv7e-m", "armv8.1-m-mve")}
    assert pools == {"armv7-m": "cmsis_nn _lower_c", "armv7e-m": "cmsis_nn _lower_dsp",
                     "armv8.1-m-mve": "cmsis_nn _lower_mve"}
    assert name("transpose", "armv8.1-m-mve") == "cmsis_nn _lower_transpose"  # no vector code
    assert name("max_pool_2d", "armv8.1-m-mve", "int16") == "reference _lower_max"
    assert name("relu", "armv7e-m") == "reference _lower_relu"
    assert find_lowering(("cmsis_nn",), "relu", "int8", "armv7e-m") is None


def test_only_the_modules_of_operators_asked_for_are_imported() -> None:
    code = ("import sys; from twin.runtimes.library import find_lowering;"
            "find_lowering(('cmsis_nn', 'reference'), 'softmax', 'int8', 'armv7e-m');"
            "print(*sorted(one for one in sys.modules if one.startswith('twin.runtimes.cmsis_nn')"
            " or one.startswith('twin.runtimes.reference')))")
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            check=True, cwd=FOLDER.parents[1]).stdout.split()
    assert loaded == ["twin.runtimes.cmsis_nn", *(f"twin.runtimes.cmsis_nn.{one}" for one in (
        "sequences", "softmax"))]


def test_the_worked_example_of_the_docs_is_the_shipped_kernel() -> None:
    page = (FOLDER.parents[1] / "docs" / "add-an-operator.md").read_text(encoding="utf-8")
    (example,) = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
                  if '"abs":' in text]
    assert example.startswith("from hwmodels.kernel import")  # whole: it can be copied
    assert example in (FOLDER / "reference" / "unary.py").read_text(encoding="utf-8")
