"""A second timing of cores: cycles by kind of instruction, drawn from what is published of them.

It shares nothing with the tables of `hwmodels/cores` and their scheduler: a block costs the sum of
its instructions, whatever stands beside what. Each hand draws its own costs, so no two boards
agree, and none agrees with the twin.

References
----------
Arm Cortex-M4 TRM (DDI 0439), 3.3.1: one cycle but for loads and stores (2, pipelined 1), multiples
(1 + N), divides (2 to 12), taken branches (1 + P, P from 1 to 3). Cortex-M33 TRM (100230) is not
public in this detail: as the M4, with branches of 2 to 3. Cortex-M7: two instructions a cycle at
best, taken branches predicted (Arm, "Cortex-M7 processor: dual issue and branch prediction"); what
is loaded can be used two cycles later (GCC, config/arm/cortex-m7.md), a byte or halfword in a
product three (github.com/jnk0le/random, measured on an STM32H743): an instruction right behind
waits one or two. On an M4 the load's own two cycles hold that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

KINDS = ("plain", "multiply", "dual", "divide", "load", "load_again", "store", "several", "words",
         "branch", "taken", "used")
"""What instructions are counted as: plain arithmetic, a multiply, one of several halfwords at once,
a divide, a load, a load right behind a load, a store, one of several registers and its words, a
branch; besides, a branch taken, and what reads a register that the instruction before loads."""

_SLOW: Mapping[str, tuple[float, float]] = {
    "plain": (0.9, 1.1), "multiply": (1.0, 1.6), "dual": (0.9, 1.3), "divide": (2.0, 12.0),
    "load": (1.3, 2.2), "load_again": (1.0, 1.2), "store": (1.0, 2.0), "several": (0.8, 1.5),
    "words": (1.0, 1.15), "branch": (0.8, 1.1), "taken": (1.0, 3.0), "used": (0.0, 0.0)}
_WIDE: Mapping[str, tuple[float, float]] = {
    "plain": (0.45, 0.75), "multiply": (0.5, 1.1), "dual": (0.5, 1.1), "divide": (3.0, 12.0),
    "load": (0.6, 1.1), "load_again": (0.5, 1.0), "store": (0.5, 1.0), "several": (0.8, 2.0),
    "words": (0.5, 1.0), "branch": (0.3, 1.0), "taken": (0.0, 1.5), "used": (0.5, 2.0)}
RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "cortex-m4": _SLOW, "cortex-m33": _SLOW, "cortex-m7": _WIDE}
"""Cycles of each kind by core, least and most."""

_DUAL = ("smlad", "smlald", "smuad", "sxtab", "uxtab", "sxtb16", "uxtb16", "pkh", "sadd", "ssub",
         "qadd", "qsub", "uadd", "usub", "smlsd", "smusd", "ssat16", "usat16")
_MULTIPLY = ("mul", "mla", "mls", "smull", "smlal", "smulb", "smult", "smlab", "smlat", "umull",
             "umlal", "smmul", "smmla", "umaal", "smulw", "smlaw", "vmul", "vmla", "vfma")
_SEVERAL = ("ldm", "stm", "push", "pop", "ldrd", "strd", "vldm", "vstm", "vpush", "vpop")
_BRANCH = ("b", "bl", "bx", "blx", "cbz", "cbnz", "tbb", "tbh")
_CONDITIONS = ("eq", "ne", "cs", "hs", "cc", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt",
               "gt", "le")


def count_kinds(text: str) -> np.ndarray:
    """Return how many instructions of each kind stand in a block; "taken" is left 0.

    Parameters
    ----------
    text : str
        One instruction a line, mnemonic first.
    """
    counts = np.zeros(len(KINDS))
    before = loaded = ""
    for line in text.splitlines():
        mnemonic, _, operands = line.partition(" ")
        kind = _kind_of(mnemonic)
        if kind == "several":
            _, listed, registers = operands.partition("{")
            counts[KINDS.index("words")] += registers.count(",") + 1 if listed else 2
        if kind == "load" and before in ("load", "load_again"):
            kind = "load_again"
        counts[KINDS.index("used")] += loaded in re.findall(r"\w+", operands)
        loaded = operands.partition(",")[0] if kind.startswith("load") else ""
        counts[KINDS.index(kind)] += 1
        before = kind
    return counts


def _kind_of(mnemonic: str) -> str:
    stem = mnemonic.split(".")[0]
    bare = stem[:-2] if stem[-2:] in _CONDITIONS else stem
    if bare in _BRANCH or stem in _BRANCH:
        return "branch"
    if stem.startswith(_SEVERAL):
        return "several"
    if stem.startswith(_DUAL):
        return "dual"
    if stem.startswith(_MULTIPLY):
        return "multiply"
    for start, kind in (("sdiv", "divide"), ("udiv", "divide"), ("ldr", "load"), ("vldr", "load"),
                        ("str", "store"), ("vstr", "store")):
        if stem.startswith(start):
            return kind
    return "plain"


def draw_cycles(core: str, random: np.random.Generator) -> np.ndarray:
    """Return cycles by kind as one hand has them; the last is drawn apart."""
    *ranges, used = (RANGES[core][kind] for kind in KINDS)
    apart = random.spawn(1)[0]
    return np.array([*(random.uniform(*bounds) for bounds in ranges), apart.uniform(*used)])
