"""One colour and hatch per cause, the same in every picture.

Hues are those of Okabe and Ito, told apart with any common colour blindness; a hatch separates
the causes that share a hue, so that twenty stay readable in print, too.
"""

from __future__ import annotations

from typing import Any

BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
VERMILION, ORANGE, PURPLE, YELLOW = "#D55E00", "#E69F00", "#CC79A7", "#F0E442"
WINE, GREY, DARK_GREY, LIGHT_GREY, INK = "#882255", "#999999", "#5A5A5A", "#D8D8D8", "#222222"

CAUSE_STYLES = {
    "mac": (BLUE, ""),
    "mac_waste": (BLUE, "////"),
    "alu": (SKY, ""),
    "load_store": (GREEN, ""),
    "branch": (SKY, "...."),
    "issue_stall": (GREEN, "////"),
    "instruction_fetch": (VERMILION, ""),
    "dcache_refill": (ORANGE, ""),
    "write_back": (ORANGE, "////"),
    "flash_wait": (PURPLE, ""),
    "sram_wait": (YELLOW, ""),
    "external_memory": (VERMILION, "////"),
    "bus_contention": (VERMILION, "...."),
    "dma_wait": (PURPLE, "////"),
    "weight_decode": (YELLOW, "////"),
    "data_copy": (WINE, ""),
    "kernel_call": (GREY, ""),
    "launch": (GREY, "////"),
    "cache_maintenance": (DARK_GREY, ""),
    "idle": (LIGHT_GREY, ""),
}
"""(face colour, hatch) by cause: compute cool, memory warm, movement wine, overhead grey."""


def bar_style(cause: str) -> dict[str, Any]:
    """Return matplotlib's keywords for a bar of that cause."""
    colour, hatch = CAUSE_STYLES[cause]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.3}
