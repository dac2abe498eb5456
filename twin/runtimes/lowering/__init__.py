"""How a layer becomes kernels: the contract between a graph and a kernel library.

Beside it stand what the libraries share: `blocks` (instructions and how often they run), `nests`
(accesses), `geometry` (extents of windowed operators), `libc` (copies and fills).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from hwmodels.errors import KernelError, check_known
from hwmodels.frozen import frozen
from hwmodels.isa import ISAS, Extension, load_isa
from hwmodels.kernel import Lowered, Operand, Operands
from twin.errors import RuntimeRefusedError
from twin.network.graph import GraphLayer
from twin.runtimes.lowering.geometry import Geometry, read_geometry, read_rows

MOST_KEPT = 256
"""Lowerings made of another: the same one each time, so that what is lowered by it is found."""


@frozen
class Site(GraphLayer):
    """A layer of a graph where it runs: instruction set, and where its operands live.

    Parameters
    ----------
    isa
        Of the core ("armv7e-m", ...).
    fpu
        "single", "double" or None.
    soft_float
        Whose routines compute in float where there is no FPU.
    operands
        Named "input", "input2", ..., "weights", "bias", "parameters" (per-channel requantisation
        multipliers and shifts), "output", "output2", ..., "scratch"; those the layer has.
    """

    isa: str
    fpu: str | None
    operands: Operands
    soft_float: str = "libgcc"

    @property
    def dialect(self) -> str:
        """Dialect of the core's instruction set.

        Raises
        ------
        RuntimeRefusedError
            When no kernel was ever built for it.
        """
        check_known(f"layer {self.layer.name}: kernels are not lowered for instruction set",
                    self.isa, ISAS, RuntimeRefusedError)
        return load_isa(self.isa).dialect

    @property
    def geometry(self) -> Geometry:
        """Extents of a windowed layer."""
        return read_geometry(self)

    @property
    def weight_rows(self) -> tuple[int, int, int]:
        """Vectors of a fully connected layer's input, and rows and columns of its weights."""
        return read_rows(self)

    def operand(self, name: str) -> Operand:
        """Return the operand of that name."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise KernelError(f"no operand {name!r} here; there are "
                          + ", ".join(operand.name for operand in self.operands))


def no_scratch(site: Site) -> int:
    """Scratch of a kernel that needs none."""
    return 0


@frozen
class Lowering:
    """How one library runs one operator on one kind of core.

    Parameters
    ----------
    lower
        site -> kernels, in execution order.
    scratch_bytes
        site -> bytes of working memory the kernels need besides their operands; it has none yet.
    """

    lower: Callable[[Site], Lowered]
    scratch_bytes: Callable[[Site], int] = no_scratch


@lru_cache(maxsize=MOST_KEPT)
def assume(lowering: Lowering) -> Lowering:
    """Return the same kernels, marked as having nothing behind them for this library."""
    def lower(site: Site) -> Lowered:
        return tuple(replace(kernel, assumed=True) for kernel in lowering.lower(site))

    return replace(lowering, lower=lower)


def list_extensions(isa: str) -> tuple[Extension, ...]:
    """Return code a core can run, best first; of an unknown one plain C."""
    return load_isa(isa).extensions if isa in ISAS else ("c",)


def has_extension(isa: str, extension: Extension) -> bool:
    """Whether a core can run such code."""
    return extension in list_extensions(isa)


Codes = Mapping[Extension, Lowering]
Kernels = Mapping[str, Codes]
"""By operator, what a file of a library has; `twin.runtimes.library` chooses from it."""
