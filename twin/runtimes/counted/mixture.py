"""Instructions of which only the classes were counted, as blocks a core can schedule.

Classes are spread evenly over a loop body, so a load is followed by its use as often as chance has
it (assumed); what the body's trips leave over follows in shorter bodies, so sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hwmodels.file_cache import read_yaml_once
from hwmodels.kernel import Block, Blocks
from twin.runtimes.lowering.blocks import spread

MULTIPLE = 4
"""Registers of the longer of the two multiple accesses."""

CLASSES = ("alu", "load", "store", "branch", "mul", "div", "fp", "vector")
"""Classes instructions are counted in."""

THROUGH = "branch through"
"""Branches that are not taken, where those were counted: others are taken."""

BODY = 64
"""Instructions of the longest loop body."""

PRODUCTS = " products"
"""How a dialect's name ends whose products use what was just read and add to one sum."""

_TEXTS = read_yaml_once(Path(__file__).with_name("mixture.yaml"))


def in_order(dialect: str) -> str:
    """Return the dialect of products in the order compilers write, where there is one."""
    return dialect + PRODUCTS if dialect + PRODUCTS in _TEXTS else dialect


def widen(amounts: Mapping[str, int], loads: int, stores: int) -> dict[str, int]:
    """Part loads and stores into single, double and multiple ones, by the registers they move.

    Parameters
    ----------
    amounts
        Instructions by class.
    loads, stores
        Registers moved; at least one an instruction.
    """
    parted = dict(amounts)
    for name, moved in (("load", loads), ("store", stores)):
        count = parted.get(name, 0)
        more = min(max(0, moved - count), (MULTIPLE - 1) * count)
        multiple = more // (MULTIPLE - 1)
        pair = min(more - multiple * (MULTIPLE - 1), count - multiple)
        parted |= {name: count - multiple - pair, f"{name} pair": pair,
                   f"{name} multiple": multiple}
    return parted


def mix(dialect: str, amounts: Mapping[str, int]) -> Blocks:
    """Return blocks that execute so many instructions of each class.

    Parameters
    ----------
    dialect
        "thumb2", "thumb1" or "rv32".
    amounts
        Instructions by class of `CLASSES`, loads and stores as `widen` parts them.

    Returns
    -------
    tuple of Block
        Straight blocks; their instructions sum to `amounts` exactly.

    Notes
    -----
    A dialect with "load two" reads both operands of a product one behind the other.
    """
    if "load two" in _TEXTS[dialect]:
        pairs = amounts.get("load", 0) // 2
        amounts = {**amounts, "load two": pairs, "load": amounts.get("load", 0) - 2 * pairs}
    left = {name: count for name, count in amounts.items() if count}
    blocks: list[Block] = []
    while total := sum(left.values()):
        trips = max(1, total // BODY)
        body = {name: count // trips for name, count in left.items()}
        if any(body.values()):
            blocks.append(Block(name=f"counted {len(blocks)}", code=spread(_TEXTS[dialect], body),
                                trips=trips, entries=trips))
        left = {name: count - body[name] * trips for name, count in left.items()}
        if not any(body.values()):  # Each class rarer than the trips: one loop for each.
            blocks += [Block(name=f"counted {name}", code=spread(_TEXTS[dialect], {name: 1}),
                             trips=count, entries=count) for name, count in left.items() if count]
            break
    return tuple(blocks)
