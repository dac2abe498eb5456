"""ESP-NN with CONFIG_NN_SKIP_NUDGE, and before that option: results are requantised fast.

References
----------
espressif/esp-nn aa8dbc2 (27 April 2026) made exact requantising the default.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from hwmodels.kernel import Block, Lowered
from twin.runtimes.esp_nn_ansi.sequences import ALU, LEVELS
from twin.runtimes.lowering import MOST_KEPT, Lowering, Site


@lru_cache(maxsize=MOST_KEPT)
def skip_nudge(lowering: Lowering) -> Lowering:
    """Return the same kernels without the instructions exact requantising takes more."""
    def lower(site: Site) -> Lowered:
        return tuple(replace(kernel, blocks=tuple(
            _drop(one, LEVELS["skip_nudge"].get(kernel.name, {}).get(one.name, 0))
            for one in kernel.blocks)) for kernel in lowering.lower(site))

    return replace(lowering, lower=lower)


def _drop(block: Block, count: int) -> Block:
    code = block.code
    for place, text in enumerate(ALU):
        code = code.replace(f"{text}; ", "", (count + len(ALU) - 1 - place) // len(ALU))
    return replace(block, code=code)
