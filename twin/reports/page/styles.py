"""Colours and hatches of a page's plots: the causes' are those of every picture."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodels.files import JsonObject

INK, PAGE = "ink", "page"
"""Colours the page puts in: of text and of its ground, which differ in the dark and on paper."""


def page_marker(colour: str, hatch: str, edge: float = 0.5) -> JsonObject:
    """Return plotly's marker of a bar: of a hatch its first stroke."""
    return {"color": colour, "line": {"width": edge, "color": PAGE}, "pattern": hatches(hatch[:1])}


def hatches(shape: str) -> JsonObject:
    """Return plotly's pattern over the colour of a trace, "" for none."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": "#FFFFFF", "size": 6, "solidity": 0.3}


def hatch_each(shapes: Sequence[str], colours: Sequence[str]) -> JsonObject:
    """Return plotly's pattern over the colours of the bars or sectors of one trace."""
    return {"shape": list(shapes), "fillmode": "replace", "bgcolor": list(colours),
            "fgcolor": ["#FFFFFF"] * len(shapes), "size": 6, "solidity": 0.3}
