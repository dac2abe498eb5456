"""What to look at or change where a fault is found, by board and library."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodels.board.facts import Board, Cache, Memory
from hwmodels.core.file import load_core
from hwmodels.isa import load_isa
from twin.deployment.deployment import Deployment


def enable_caches(board: Board, caches: Sequence[Cache]) -> str:
    """Return where caches that are off are enabled."""
    named = " and ".join(dict.fromkeys(_enable(board, cache) for cache in caches))
    return f"enable it in the start-up code: {named}"


def _enable(board: Board, cache: Cache) -> str:
    # a core's own cache serves whatever is cacheable, one in front of a memory names it
    if load_core(board.core.model).traits.own_caches and not cache.serves:
        return "SCB_EnableICache()" if cache.name == board.core.icache else "SCB_EnableDCache()"
    soc = board.soc.lower()
    if cache.name.startswith("art_") and soc.startswith("stm32"):
        return (f"{'ICEN' if cache.name == board.core.icache else 'DCEN'} of FLASH_ACR "
                "(ART accelerator)")
    if soc.startswith("stm32") and cache.name == "icache":
        return "EN of ICACHE_CR"
    if soc.startswith("nrf52"):
        return "CACHEEN of NVMC_ICACHECNF"
    return f"the bit that enables {cache.name}, by the manual of the {board.soc}"


def flash_register(board: Board) -> str:
    """Return where latency and prefetch of a flash are set."""
    if board.soc.lower().startswith("stm32"):
        return "FLASH_ACR"
    return f"the set-up of the flash controller of the {board.soc}"


def state_ticks(hertz: float) -> str:
    """Return how the clock of a log's ticks is stated to be the core's."""
    return ("state the core's clock if it is that of the log's ticks (twin import --cpu-clock "
            f"{hertz / 1e6:g}MHz)")


def state_core(hertz: float) -> str:
    """Return how the core's clock is stated where the log's ticks are taken to be of it."""
    return ("state the core's clock, which is taken for that of the log's ticks (twin import "
            f"--cpu-clock {hertz / 1e6:g}MHz if it is that)")


def stop_others(deployment: Deployment) -> str:
    """Return what to do where interrupts, or other programs, take time."""
    return ("make runs repeat first: stop other programs, fix the clock, take the least of many "
            "runs; then diagnose again" if load_isa(deployment.board.core.isa).code.native else
            "mask them (twin measure --mask), or stop what causes them")


def look_at_waits(board: Board, memory: Memory) -> str:
    """Return where wait states that are too many are found."""
    scale = "; a lower voltage scale needs more" if board.soc.lower().startswith("stm32") else ""
    return (f"look at the latency in {flash_register(board)}: {memory.wait_states} wait states "
            f"were asked for{scale}")


def link_kernels(deployment: Deployment) -> str:
    """Return how the optimised kernels are linked, by the runtime."""
    runtime = deployment.runtime
    if runtime.is_compiled:
        return ("link the firmware's own kernels, and look in the link map which function each "
                "layer has")
    if runtime.name.startswith("tflm"):
        library = "esp_nn" if "esp" in runtime.library else "cmsis_nn"
        return f"link the optimised kernels (OPTIMIZED_KERNEL_DIR={library})"
    return f"look in the link map which kernels are linked: those of {runtime.name} were asked for"


def build_for(deployment: Deployment) -> str:
    """Return which flags make a compiler use the core's own instructions."""
    core = deployment.board.core
    text = f"give the compiler the core's own flag (-mcpu={core.model})"
    macro = load_isa(core.isa).macro
    if deployment.runtime.is_compiled or not macro:
        return text
    return f"{text}, and the kernels their macro ({macro})"
