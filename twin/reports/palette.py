"""One colour and hatch per cause, the same in every picture; and looks of series.

Hues are those of Okabe and Ito, distinguishable with any common colour blindness. Two causes with
one hatch differ in lightness, so that all twenty differ in grey, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hwmodels.file_cache import read_yaml_once

Keywords = dict[str, Any]
"""Of matplotlib: how something is drawn."""

BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
VERMILION, ORANGE, PURPLE, YELLOW = "#D55E00", "#E69F00", "#CC79A7", "#F0E442"
WINE, GREY, DARK_GREY, LIGHT_GREY, INK = "#882255", "#999999", "#5A5A5A", "#D8D8D8", "#222222"

CAUSE_STYLES = {cause: (colour, hatch) for cause, (colour, hatch) in read_yaml_once(
    Path(__file__).with_name("palette.yaml")).items()}
"""(face colour, hatch) by cause: compute cool, memory warm, movement wine, overhead grey."""


SERIES = (
    (BLUE, "o", "-", ""), (ORANGE, "s", "--", "////"), (GREEN, "^", "-.", "\\\\\\\\"),
    (PURPLE, "D", ":", "...."), (WINE, "P", (0, (5, 1, 1, 1)), "++++"),
    (SKY, "v", (0, (1, 1)), "xxxx"), (VERMILION, "X", (0, (7, 2)), "||||"),
    (DARK_GREY, "*", (0, (3, 1, 1, 1, 1, 1)), "----"),
)
"""Colour, mark, dashes and hatch of what is drawn first, second ...; from the start after the last:
each differs from the others by mark, dashes or hatch alone."""


def bar_style(cause: str) -> Keywords:
    """Return matplotlib's keywords for a bar of that cause."""
    return fill(*CAUSE_STYLES[cause])


def fill(colour: str, hatch: str = "") -> Keywords:
    """Return matplotlib's keywords for an area: its hatch is white, on light colours dark."""
    return {"facecolor": colour, "hatch": hatch or None, "linewidth": 0.3,
            "edgecolor": INK if hatch and lightness(colour) > 0.75 else "white"}


def fill_series(number: int) -> Keywords:
    """Return matplotlib's keywords for the areas of a series."""
    colour, _, _, hatch = SERIES[number % len(SERIES)]
    return fill(colour, hatch)


def line_series(number: int) -> Keywords:
    """Return matplotlib's keywords for the line and marks of a series."""
    colour, marker, dashes, _ = SERIES[number % len(SERIES)]
    return {"color": colour, "marker": marker, "linestyle": dashes}


def lightness(colour: str) -> float:
    """Return how light a colour is in grey, 0 to 1.

    Notes
    -----
    Luma of ITU-R BT.601 over the encoded values, as printers and viewers turn pictures grey.
    """
    red, green, blue = (int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue
