"""A kernel library as a first-class part: its facts, and which code it runs an operator with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from hwmodels.board.facts import Fact
from hwmodels.frozen import frozen
from twin.errors import RuntimeRefusedError
from twin.network.operators import OPERATORS, Form
from twin.runtimes.library import find_assumed, find_lowering, find_own
from twin.runtimes.lowering import Lowering, assume, has_extension
from twin.runtimes.targets import CORE

if TYPE_CHECKING:
    from twin.runtimes.compiler import Compiler, Offload
    from twin.runtimes.counted.learnt import Learnt

COPY = "copy"
"""What code that only copies is charged under, in kernels of any family."""

FAMILIES = ("conv", "pointwise", "depthwise", "fully_connected", "pool", "reduce",
            "elementwise", "activation", "softmax", "data_movement", "recurrent", "quantize",
            COPY)
"""Operator families an efficiency can be stated for."""


@frozen
class ArenaRule:
    """What a program calls the buffer it gives the runtime, and what is in it.

    Parameters
    ----------
    release
        Of `twin/runtimes/tflm/arena.yaml`; None: it holds the activations and nothing else.
    kernels
        Whose kernels ask for their data: a name of that file.
    unknown
        What else is in it, of unknown size.
    """

    name: str
    release: str | None = None
    kernels: str = ""
    unknown: tuple[str, ...] = ()


@frozen
class Built:
    """Images that are there already, for where none can be built.

    Parameters
    ----------
    compiler, port
        What built them, and for what, as a measurement's header says it: of several cores' ports
        what their names begin with.
    files
        ELF files; each holds the hash of what it was built from.
    """

    compiler: str
    port: str
    files: tuple[str, ...]


@frozen
class Runtime:
    """A kernel library at one version: how a layer becomes kernels, and what calling them costs.

    Parameters
    ----------
    name, version
        Together the identity "name@version".
    library
        Package of `twin.runtimes` that lowers for it.
    dtypes
        Activation types it executes.
    structure
        "open" (loop structure read from source), "read" (from a program's code) or "assumed".
    closed
        Whether its sources are not public.
    drops_dead_channels
        Whether channels that are zero for every input are removed when code is generated.
    fuses_padding
        Whether convolutions do the padding ahead of them.
    fuses_pooling
        Whether a convolution keeps only the rows of its output the pooling behind it works on.
    merges_scales
        Whether a product and a sum by constants, what is left of a batch norm, are one layer.
    overlaps
        Whether a layer's output may lie over what it has read of its input for the last time.
    dispatches_aliases
        Whether an operator that moves no data is still called.
    in_place
        Operators whose output may take the place of an input that dies with them.
    parameters_in
        "weights" or "arena": where per-channel requantisation parameters live.
    dispatch_cycles, setup_cycles_per_op, setup_cycles_per_channel
        CPU cycles of calling one kernel and of preparing it once.
    code_bytes, ram_bytes
        Flash and RAM of the runtime itself, besides kernels' code, weights and arena.
    alignment_bytes
        Of tensors in the arena.
    efficiency
        Core cycles relative to the lowered kernels, by operator family; 1 where absent.
    facts
        Every number with its source.
    offload
        What it hands to an accelerator; None: everything runs on the core.
    target
        How its kernels get onto hardware: a name of `twin.runtimes.targets`.
    counted : (str, str) or None
        Kernels and compiler level whose instructions were counted; None: as lowered from source.
    counted_on
        Instruction sets its library's own kernels were counted on, to be carried to others.
    learnt_on
        Instruction sets of the networks its efficiencies were learnt from.
    copies_shapes
        Whether an operator that only renames its input copies it.
    scales_in_float
        Whether kernels of bytes scale their results in float, as routines of the build do it.
    scalar_on_helium
        Operators it has no vector code of.
    vectors_on_helium
        Operators it is taken to have vector code of, where nobody knows: `twin.runtimes.helium`.
    extensions
        Extensions of the instruction set of which a core needs one; empty: none.
    files
        Endings of the model files it alone runs, and which it runs alone: it is their default.
    prefers_external_ram
        Whether it puts weights and arena in the RAM outside the chip where there is one.
    default_for
        Endings of the model files it alone runs, beside networks of other files.
    weight_passes
        How often a convolution's weights leave their memory; None: as its loops read them.
    weight_tile_bytes
        Of the tile a convolution widens its weights into; 0: it widens them as it multiplies.
    window_filters
        With such a tile, for how many filters at least a window is gathered once.
    barrier_cycles
        Core cycles of handing a layer to two cores and waiting for both; 0: one core runs.
    skips_nudge
        Whether ESP-NN requantises fast: `twin.runtimes.esp_nn.fast`.
    splits_memories
        Whether buffers, and weights, may lie in several memories.
    unpacks_weights
        Whether it has kernels on weights of 4 bits.
    links_model
        Whether a program links the .tflite file whole, not its constants alone.
    direct_convolutions
        Whether convolutions are left to the portable kernels, which copy no windows.
    tile_windows
        Windows our own int8 convolution copies before it multiplies them.
    tile_outputs
        Side of the square of output positions portable convolutions compute channel by channel; 0:
        they take one position after another.
    learnt
        What was read of its kernels in programs.
    arena
        The buffer a program gives it; None: it has none of a name.
    built
        Images its kernels are read from; None: they are built where they are not kept.
    """

    name: str
    version: str
    description: str
    library: str
    dtypes: tuple[str, ...]
    structure: str
    drops_dead_channels: bool
    dispatches_aliases: bool
    in_place: tuple[str, ...]
    parameters_in: str
    dispatch_cycles: float
    setup_cycles_per_op: float
    setup_cycles_per_channel: float
    code_bytes: int
    ram_bytes: int
    alignment_bytes: int
    efficiency: Mapping[str, float]
    fuses_padding: bool = False
    fuses_pooling: bool = False
    merges_scales: bool = False
    overlaps: bool = False
    facts: tuple[Fact, ...] = field(default=(), repr=False)
    offload: Offload | None = None
    target: str = CORE
    counted: tuple[str, str] | None = None
    counted_on: tuple[str, ...] = ()
    learnt_on: tuple[str, ...] = ()
    copies_shapes: bool = False
    scales_in_float: bool = False
    prefers_external_ram: bool = False
    skips_nudge: bool = False
    closed: bool = False
    barrier_cycles: float = 0.0
    scalar_on_helium: tuple[str, ...] = ()
    vectors_on_helium: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    default_for: tuple[str, ...] = ()
    weight_passes: int | None = None
    weight_tile_bytes: int = 0
    window_filters: int = 1
    splits_memories: bool = False
    unpacks_weights: bool = False
    links_model: bool = False
    direct_convolutions: bool = False
    tile_windows: int = 2
    tile_outputs: int = 0
    learnt: Learnt | None = None
    arena: ArenaRule | None = None
    built: Built | None = None

    @property
    def identity(self) -> str:
        """The runtime as commands name it."""
        return f"{self.name}@{self.version}"

    @property
    def unread(self) -> str:
        """Why its loops are assumed, in words."""
        return "is closed" if self.closed else "was not read from its sources"

    @property
    def factor_sd(self) -> float:
        """How far networks lie from efficiencies that were learnt: of the logarithm; 0 without."""
        return max((fact.rel_sd or 0.0 for fact in self.facts if fact.kind == "derived"
                    and fact.path.startswith("efficiency.")), default=0.0)

    @property
    def accelerated(self) -> bool:
        """Whether a compiler lays layers out as tasks on an accelerator; else the core has all."""
        return self.offload is not None

    @property
    def mapping(self) -> Offload:
        """How its compiler maps a network onto the accelerator."""
        assert self.offload is not None, "asked of a runtime of the core"
        return self.offload

    @property
    def compiler(self) -> Compiler:
        """What plans the tasks of an accelerator and names their counters."""
        return self.mapping.rules

    @property
    def splits_in_loops(self) -> bool:
        """Whether weights of 4 bits are taken apart in the loops that read them."""
        return self.library == "cmsis_nn" and not self.direct_convolutions

    @property
    def is_compiled(self) -> bool:
        """Whether kernels are read from a built image; versions are compilers and their levels."""
        return self.library == "firmware"

    @property
    def is_alone(self) -> bool:
        """Whether its kernels, counted under its own name, fall back to no other library's."""
        return self.counted is not None and self.counted[0] == self.name

    def lowering(self, op: str, dtype: str, isa: str) -> Lowering:
        """Return how this runtime runs an operator on activations of a type, on a core.

        Raises
        ------
        RuntimeRefusedError
            When neither it nor the portable kernels have the operator.

        Notes
        -----
        Float operators, and operators its own library lacks, run on the portable reference
        kernels, as TFLite Micro does. Types it does not name, and operators only counted of
        another library, are priced by themselves and marked `assumed`. CMSIS-NN's 16-bit kernels
        are not its 8-bit ones: their counted instructions stand in for those of any release.
        """
        own = find_own(op, isa)
        if own is not None:
            return own
        if OPERATORS[op].tflm_only and not self.links_model:
            raise RuntimeRefusedError(f"runtime {self.identity} has no kernel for {op!r}, a custom "
                                      "operator of TFLite Micro; accepted: --runtime tflm-...")
        if self.learnt is not None:
            return self._lower_learnt(self.learnt, op, dtype, isa)
        if self.is_compiled:
            return self._lower_compiled(op, dtype, isa)
        foreign = self._is_foreign(op, dtype)
        vectors = find_assumed(op, dtype, isa) if op in self.vectors_on_helium else None
        if vectors is not None:
            return vectors
        plain = has_extension(isa, "mve") and op in self.scalar_on_helium
        portable = foreign or plain or dtype == "float32"
        direct = self.direct_convolutions and OPERATORS[op].is_convolution
        names = ("reference",) if portable or direct else (self.library, "reference")
        lowering = find_lowering(names, op, dtype, isa)
        if self.tile_outputs and lowering is not None:
            from twin.runtimes.reference.windows import tile_outputs

            lowering = tile_outputs(lowering, self.tile_outputs)
        if self.counted is not None:
            from twin.runtimes.counted.lower import check_alone, lower_counted

            kernels, level = self.counted
            check_alone(self.identity, kernels, level, op, isa)
            return lower_counted("reference" if direct else kernels, level, lowering)
        if dtype == "int16" and not foreign and self.library == "cmsis_nn":
            from twin.runtimes.counted.lower import lower_counted

            return assume(lower_counted("cmsis-nn", "O2", lowering))
        if lowering is None:
            from twin.runtimes.counted.lower import lower_stand_in

            return lower_stand_in(self.identity, op)
        if foreign:
            return assume(lowering)
        if self.weight_tile_bytes:
            from twin.runtimes.cmsis_nn.convolution import tile_weights

            lowering = tile_weights(lowering, self.weight_tile_bytes, self.window_filters)
        if self.weight_passes is not None:
            from twin.runtimes.lowering.passes import pass_weights

            several = OPERATORS[op].sums_products
            return pass_weights(lowering, self.weight_passes) if several else lowering
        if self.skips_nudge:
            from twin.runtimes.esp_nn.fast import skip_nudge

            return skip_nudge(lowering)
        return lowering

    def _is_foreign(self, op: str, dtype: str) -> bool:
        """Whether an operator computes in a type this does not name."""
        operator = OPERATORS[op]
        computes = not (operator.converts or operator.alias or operator.form is Form.COPY)
        return dtype not in self.dtypes and computes

    def _lower_compiled(self, op: str, dtype: str, isa: str) -> Lowering:
        """Return how our own firmware runs an operator; refuse what it has no kernel for."""
        found = find_lowering((self.library,), op, dtype, isa)
        if found is None:
            raise RuntimeRefusedError(f"runtime {self.identity} has no kernel for {op!r}")
        if self._is_foreign(op, dtype):
            raise RuntimeRefusedError(f"runtime {self.identity} does not run {dtype} {op}; "
                                      f"it runs {', '.join(self.dtypes)}")
        if self.tile_windows != 2 and dtype == "int8":
            from twin.runtimes.firmware import tile_scratch

            return tile_scratch(found, self.tile_windows)
        return found

    def _lower_learnt(self, learnt: Learnt, op: str, dtype: str, isa: str) -> Lowering:
        """Return what was read of an operator; what was not is assumed to be its base's."""
        base = assume(replace(self, learnt=None).lowering(op, dtype, isa))
        if not learnt.knows(op, dtype):
            return base
        from twin.runtimes.counted.lower_learnt import lower_learnt

        return lower_learnt(learnt, dtype, base)
