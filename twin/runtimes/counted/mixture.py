"""Instructions of which only the classes were counted, as blocks a core can schedule.

Classes are spread evenly over a loop body, so a load is followed by its use as often as chance has
it (assumed); what the body's trips leave over follows in shorter bodies, so sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.kernel import Block

MULTIPLE = 4
"""Registers of the longer of the two multiple accesses."""

CLASSES = ("alu", "load", "store", "branch", "mul", "div", "fp", "vector")
"""Classes instructions are counted in."""

BODY = 64
"""Instructions of the longest loop body."""

_TEXTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "thumb2": {
        "alu": ("add r2, r3", "adds r1, #1", "mov r5, r2", "cmp r0, r1"),
        "load": ("ldr r3, [sp, #28]", "ldr r0, [sp, #44]"), "store": ("str r1, [sp, #36]",),
        "load pair": ("ldrd r3, r0, [sp, #28]",), "store pair": ("strd r1, r2, [sp, #36]",),
        "load multiple": ("ldmia r7, {r0, r3, r4, r6}",),
        "store multiple": ("stmia r7, {r1, r2, r3, r4}",),
        "branch": ("b 1f",), "mul": ("smull r4, r6, r3, r2",), "div": ("sdiv r4, r3, r2",),
        "fp": ("vadd.f32 s15, s15, s14", "vmul.f32 s13, s12, s14"),
        "vector": ("vadd.i32 q2, q6, q2", "vqrdmulh.s32 q3, q5, r3"),
    },
    "thumb1": {
        "alu": ("adds r2, r2, r3", "adds r1, #1", "mov r8, r2", "cmp r0, r1"),
        "load": ("ldr r3, [sp, #28]", "ldr r0, [sp, #44]"), "store": ("str r1, [sp, #36]",),
        "load pair": ("ldmia r7!, {r0, r3}",), "store pair": ("stmia r7!, {r1, r2}",),
        "load multiple": ("ldmia r7!, {r0, r3, r4, r6}",),
        "store multiple": ("stmia r7!, {r1, r2, r3, r4}",),
        "branch": ("b 1f",), "mul": ("muls r3, r2, r3",), "div": ("adds r2, r2, r3",),
        "fp": ("adds r2, r2, r3",), "vector": ("adds r2, r2, r3",),
    },
    "rv32": {
        "alu": ("add a2, a2, a3", "addi a1, a1, 1", "mv a5, a2", "add a4, a4, a0"),
        **dict.fromkeys(("load", "load pair", "load multiple"), ("lw a3, 28(sp)", "lw a0, 44(sp)")),
        **dict.fromkeys(("store", "store pair", "store multiple"), ("sw a1, 36(sp)",)),
        "branch": ("j 1f",), "mul": ("mul a4, a3, a2",), "div": ("div a4, a3, a2",),
        "fp": ("fadd.s fa5, fa5, fa4",), "vector": ("add a2, a2, a3",),
    },
}


def widen(amounts: Mapping[str, int], loads: int, stores: int) -> dict[str, int]:
    """Part loads and stores into single, double and multiple ones, by the registers they move.

    Parameters
    ----------
    amounts : mapping of str to int
        Instructions by class.
    loads, stores : int
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


def mix(dialect: str, amounts: Mapping[str, int]) -> tuple[Block, ...]:
    """Return blocks that execute so many instructions of each class.

    Parameters
    ----------
    dialect : str
        "thumb2", "thumb1" or "rv32".
    amounts : mapping of str to int
        Instructions by class of `CLASSES`, loads and stores as `widen` parts them.

    Returns
    -------
    tuple of Block
        Straight blocks; their instructions sum to `amounts` exactly.
    """
    left = {name: count for name, count in amounts.items() if count}
    blocks: list[Block] = []
    while total := sum(left.values()):
        trips = max(1, total // BODY)
        body = {name: count // trips for name, count in left.items()}
        if any(body.values()):
            blocks.append(Block(name=f"counted {len(blocks)}", code=_spread(dialect, body),
                                trips=trips, entries=trips))
        left = {name: count - body[name] * trips for name, count in left.items()}
        if not any(body.values()):  # Each class rarer than the trips: one loop for each.
            blocks += [Block(name=f"counted {name}", code=_spread(dialect, {name: 1}),
                             trips=count, entries=count) for name, count in left.items() if count]
            break
    return tuple(blocks)


def _spread(dialect: str, counts: Mapping[str, int]) -> str:
    """Return a body with its classes evenly mixed: the one most behind its share is next."""
    total = sum(counts.values())
    done = dict.fromkeys(counts, 0)
    lines = []
    for place in range(1, total + 1):
        kind = max(counts, key=lambda name: counts[name] * place - done[name] * total)
        texts = _TEXTS[dialect][kind]
        lines.append(texts[done[kind] % len(texts)])
        done[kind] += 1
    return "; ".join(lines)
