"""Instruction counts of lowered kernels beside counted ones: silicon counters and simulators."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from calibration.datasets import read_table
from hwmodels.core.file import load_core
from hwmodels.core.schedule import BlockCounts, count_block
from hwmodels.frozen import frozen
from hwmodels.isa.instruction import parse_code
from hwmodels.kernel import Block, Kernel
from hwmodels.quantities import list_by_key
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy

PMU_COUNTERS = ("INST_RETIRED", "LD_RETIRED", "ST_RETIRED", "DTCM_ACCESS", "MVE_INST_RETIRED")
"""Events of the Apollo510 table that lowering answers for."""

_KWS_LAYER = {"conv": 0, "depthwise": 1, "pointwise": 2, "fully_connected": 11}
_ISS_BUILDS = {  # (core, what the build column says) -> board, runtime
    ("Cortex-M4", "CMSIS-NN DSP"): ("nucleo_l4r5zi", "cmsis-nn"),
    ("Cortex-M4", "reference C"): ("nucleo_l4r5zi", "tflm-reference"),
    ("Cortex-M55", "CMSIS-NN MVE"): ("apollo510_evb", "cmsis-nn"),
}


@frozen
class Check:
    """A counted figure and ours."""

    what: str
    counter: str
    published: float
    predicted: float

    @property
    def ratio(self) -> float:
        """Predicted over published."""
        return self.predicted / self.published


@frozen
class Totals:
    """What the kernels of one layer execute."""

    instructions: int
    loads: int
    stores: int
    beats: int
    vector_instructions: int


def lower_layers(board: str, runtime: str) -> tuple[Totals, ...]:
    """Lower kws for a board and library, and count each layer."""
    deployment = deploy("kws", board, runtime=runtime)
    timing = load_core(deployment.board.core.model)

    def count(kernels: Iterable[Kernel]) -> Totals:
        blocks = [block for kernel in kernels for block in kernel.blocks]
        counts: list[BlockCounts] = [count_block(block, timing) for block in blocks]
        return Totals(instructions=sum(c.instructions for c in counts),
                      loads=sum(c.loads for c in counts), stores=sum(c.stores for c in counts),
                      beats=sum(count_beats(block) for block in blocks),
                      vector_instructions=sum(c.vector_instructions for c in counts))

    return tuple(count(kernels) for kernels in lower_network(deployment))


def count_beats(block: Block) -> int:
    """Count the 32-bit accesses of a block's loads and stores.

    A transfer of several registers or a vector makes one access per 32 bits, a narrower one makes
    one of its own.
    """
    return block.trips * sum(-(-(one.loaded_bytes + one.stored_bytes) // 4)
                             for one in parse_code(block.code))


def check_pmu() -> tuple[Check, ...]:
    """Compare each distinct layer shape of kws with the Apollo510's counters."""
    ours = lower_layers("apollo510_evb", "tflm-cmsis-nn")
    rows = read_table("apollo510_kws_pmu").rows
    shapes = list_by_key(((row["Tag"], row["OUTPUT_SHAPE"], row["FILTER_SHAPE"]), row["Event"])
                         for row in rows)
    checks = []
    for (tag, shape, window), layers in shapes.items():
        mine = ours[layers[0]]
        if not mine.instructions:  # an alias runs no kernel
            continue
        for counter, value in zip(PMU_COUNTERS, (
                mine.instructions, mine.loads, mine.stores, mine.beats, mine.vector_instructions),
                strict=True):
            counted = statistics.median(
                rows[layer][f"ARM_PMU_{counter}"] for layer in layers)
            if counted:
                checks.append(Check(what=f"{tag} {window} to {shape}", counter=counter,
                                    published=counted, predicted=value))
    return tuple(checks)


def check_simulator() -> tuple[Check, ...]:
    """Compare instructions per MAC with those counted on an instruction-set simulator."""
    lowered: dict[tuple[str, str], tuple[Totals, ...]] = {}
    checks = []
    for row in read_table("cmsisnn_instructions").rows:
        target = next(target for (core, build), target in _ISS_BUILDS.items()
                      if core == row["core"] and build in row["build"])
        if target not in lowered:
            lowered[target] = lower_layers(*target)
        layer = lowered[target][_KWS_LAYER[row["kernel"]]]
        checks.append(Check(
            what=f"{row['core']}, {row['build']}: {row['kernel']} {row['layer']}",
            counter="instructions per MAC", published=row["instructions_per_mac"],
            predicted=layer.instructions / row["macs"]))
    return tuple(checks)
