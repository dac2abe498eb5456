"""Where a kernel library keeps an operator, and which of its code a core runs.

A library is a package beside this file. Each of its files states in one table, `KERNELS`, the
operators it lowers, each with the code there is of it: plain C, DSP, Helium. The tables are found
by reading the files, so only those a network needs are imported, and a new operator is a new file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from hwmodels.errors import ExtensionError
from hwmodels.extensions import take
from twin.network.operators import OPERATORS
from twin.runtimes.lowering import Kernels, Lowering, list_extensions

_OPERATOR = re.compile(r'^ {4}"(\w+)":', re.MULTILINE)


@cache
def find_operators(library: str) -> Mapping[str, str]:
    """Return the modules of a library by operator, without importing them.

    Parameters
    ----------
    library
        Package of `twin.runtimes`: "cmsis_nn".

    Returns
    -------
    mapping of str to str
        Module whose `KERNELS` names the operator.
    """
    folder = Path(__file__).parent
    found: dict[str, str] = {}
    for path in sorted((folder / library).rglob("*.py")):
        _, _, text = path.read_text(encoding="utf-8").partition("\nKERNELS: Kernels = {\n")
        parts = path.relative_to(folder).with_suffix("").parts
        module = ".".join(("twin.runtimes", *parts)).removesuffix(".__init__")
        found |= dict.fromkeys(_OPERATOR.findall(text.partition("\n}")[0]), module)
    return found


def find_lowering(libraries: Sequence[str], op: str, dtype: str, isa: str) -> Lowering | None:
    """Return how the first library that has the operator for a core runs it.

    Parameters
    ----------
    libraries
        In order of preference.
    op
        Canonical operator.
    isa
        Instruction set of the core.

    Returns
    -------
    Lowering or None
        None when no library has it.

    Notes
    -----
    Helium code is written for int8; where a library has it, other types go to the next library.
    """
    for library in libraries:
        module = find_operators(library).get(op)
        if module is None:
            continue
        kernels: Kernels = import_module(module).KERNELS
        best = next((one for one in list_extensions(isa) if one in kernels[op]), None)
        if best is not None and (best != "mve" or dtype == "int8"):
            return kernels[op][best]
    return None


def find_own(op: str, isa: str) -> Lowering | None:
    """Return how an extension's own operator is run; None for one of the project.

    Parameters
    ----------
    op, isa
        As for `find_lowering`.

    Raises
    ------
    ExtensionError
        For an extension without code a core can run: "c", in its `KERNELS`.
    """
    if OPERATORS.is_ours(op):
        return None
    kernels: Kernels = take("twin.operators", op, "KERNELS")
    for best in list_extensions(isa):
        if best in kernels.get(op, {}):
            return kernels[op][best]
    raise ExtensionError(f"twin.operators: KERNELS of {op} has no code for {isa}; accepted: "
                         '"c", which every core runs')


def find_assumed(op: str, dtype: str, isa: str) -> Lowering | None:
    """Return the vector code a closed library is taken to have of an operator, marked assumed.

    Parameters
    ----------
    op, dtype, isa
        As for `find_lowering`.

    Returns
    -------
    Lowering or None
        None off Helium, and of types it is not written for: all but bytes, and floats quantised.
    """
    fits = dtype in ("int8", "uint8") or (OPERATORS[op].converts and dtype == "float32")
    return find_lowering(("helium",), op, "int8", isa) if fits else None
