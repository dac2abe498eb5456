"""A counted operator as a kernel: its instructions from the table, its accesses from its loops.

Where the library's own loops are lowered from source, their blocks are kept, as a core schedules
them better than a mixture; they are only brought to the counted number of instructions. Operators
without such a lowering read each operand once, in order, and are a mixture of classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from hwmodels.board.facts import Core
from hwmodels.errors import check_word
from hwmodels.isa import load_isa
from hwmodels.isa.instruction import parse_code
from hwmodels.kernel import Block, Blocks, Kernel, Lowered
from twin.errors import RuntimeRefusedError
from twin.network.graph import GraphLayer
from twin.network.operators import is_assumed
from twin.runtimes.counted.describe import ALONE, describe, family_of, is_described, terms_of
from twin.runtimes.counted.mixture import in_order, mix, widen
from twin.runtimes.counted.table import REFERENCE, Amounts, choose_core, look_up, scale
from twin.runtimes.counted.work import OLDEST
from twin.runtimes.library import find_lowering
from twin.runtimes.lowering import MOST_KEPT, Lowering, Site, assume, has_extension
from twin.runtimes.lowering.blocks import build_kernel, plain
from twin.runtimes.lowering.geometry import has_one_scale
from twin.runtimes.lowering.nests import load, repeat, resolve, store

KEPT = frozenset((
    "conv_2d", "depthwise_conv_2d", "transpose_conv_2d", "fully_connected", "batch_matmul", "svdf",
    "lstm", "average_pool_2d", "max_pool_2d"))
"""Operators whose lowered loops are kept: a core's pipeline and MAC units see their order."""

COUNTED_WITH = "libgcc"
"""Routines that computed in float when kernels were counted: others take from the count what the
lowered loops execute less with them."""

COUNTED_IN = "thumb2"
"""Dialect whose routines those are where counts of a Cortex-M3 stand in for another set's."""

LEAST = 0.2
"""Share of a count that stays however much less that is: routines are at most five times apart."""

DSP_LEVEL = "-simd"
"""How levels end whose code only cores with Arm's DSP extension run."""

CLOSE = 0.25
"""How far apart the counted and the lowered loops may be for that, relative; loops in float may
lack any number: what a sum waits for is most of their time, what calls them comes beside."""


@lru_cache(maxsize=MOST_KEPT)
def lower_counted(kernels: str, level: str, base: Lowering | None) -> Lowering:
    """Return how an operator runs, with the instructions that were counted of it.

    Parameters
    ----------
    kernels, level
        Columns of the table: "cmsis-nn"; "O2".
    base
        What the library's loops are lowered to, where they are.
    """
    return Lowering(lower=partial(_lower, kernels, level, base),
                    scratch_bytes=partial(_scratch_bytes, kernels, level, base))


def _scratch_bytes(kernels: str, level: str, base: Lowering | None, site: Site) -> int:
    if _runs_another(kernels, level, site):  # One scale, copied for each channel.
        return 8 * site.output.channels * has_one_scale(site)
    return 0 if base is None else base.scratch_bytes(site)


def _runs_another(kernels: str, level: str, site: Site) -> str:
    """Return the operator whose code a release runs instead of a layer's own; "": its own."""
    work = describe(site, kernels)
    own = work is None or kernels == REFERENCE or level.endswith(OLDEST)
    return "" if work is None or own else work.runs


def check_alone(runtime: str, kernels: str, level: str, op: str, isa: str | None = None) -> None:
    """Refuse an operator a library has no kernel of and falls back to none, or another core's code.

    Raises
    ------
    RuntimeRefusedError
        Naming what is accepted.
    """
    if kernels not in ALONE:
        return
    check_word(f"runtime {runtime} has no kernel for", op, terms_of(kernels), RuntimeRefusedError)
    if isa and level.endswith(DSP_LEVEL) and not has_extension(isa, "dsp"):
        raise RuntimeRefusedError(f"runtime {runtime} is written for Arm's DSP extension, which "
                                  f"{isa} has not; accepted: a release without {DSP_LEVEL}")


def lower_stand_in(runtime: str, op: str) -> Lowering:
    """Return the portable kernel that was counted, for a library that has none, as assumed.

    Raises
    ------
    RuntimeRefusedError
        When nobody counted it either.
    """
    if not is_described(op):
        raise RuntimeRefusedError(f"runtime {runtime} has no kernel for {op!r}")
    return assume(lower_counted(REFERENCE, "O2", None))


def stands_in(kernels: str, level: str, step: GraphLayer, core: Core) -> bool:
    """Whether a layer's instructions are those of another variant, or were not counted at all.

    Parameters
    ----------
    kernels, level
        Columns of the table.
    """
    amounts, _ = _find_amounts(kernels, level, step, core)
    return amounts is None or amounts.stands_in


def _find_amounts(kernels: str, level: str, step: GraphLayer,
                  at: Site | Core) -> tuple[Amounts | None, bool]:
    """Return what a layer executes, and whether another instruction set's core was counted."""
    work = describe(step, kernels)
    if work is None:
        return None, False
    core, foreign = choose_core(
        at.isa, at.fpu, "" if "float" in work.variant and kernels not in ALONE else kernels)
    return look_up(kernels, core, level, step.op, work), foreign


def _lower(kernels: str, level: str, base: Lowering | None, site: Site) -> Lowered:
    amounts, foreign = _find_amounts(kernels, level, site, site)
    if amounts is not None and foreign:
        amounts = replace(amounts, stands_in=True)
    if other := _runs_another(kernels, level, site):
        base = find_lowering(("cmsis_nn",), other, "int8", site.isa)
        if has_one_scale(site):
            site = replace(site, operands=tuple(
                replace(one, name="parameters") if one.role == "scratch" else one
                for one in site.operands if one.role != "parameters"))
    lowered = _try_base(base, site)
    if amounts is None:
        if lowered is None:
            raise RuntimeRefusedError(f"layer {site.layer.index} {site.op} {site.layer.name!r}: "
                                      f"no kernel of {kernels} was counted or lowered")
        return lowered
    if lowered is None:
        return (_read_once(site, amounts),)
    routines = COUNTED_IN if foreign else COUNTED_WITH
    if site.soft_float != routines and site.fpu is None:
        there = _try_base(base, replace(site, soft_float=routines)) or lowered
        saved = _count_kinds(there).total() - _count_kinds(lowered).total()
        if saved:
            amounts = scale(amounts, max(1 - saved / amounts.total, LEAST))
    if kernels in ALONE:
        return (_replace_blocks(lowered, amounts, mix(
            in_order(plain(site.dialect)), widen(
                amounts.instructions, amounts.loads, amounts.stores))),)
    lacks = 1 - _count_kinds(lowered).total() / amounts.total
    most = 1.0 if site.output.dtype == "float32" else CLOSE
    if site.op in KEPT and -CLOSE <= lacks <= most:
        if is_assumed(site.layer):  # its own instructions, counted: no other source is needed
            lowered = tuple(replace(kernel, assumed=False) for kernel in lowered)
        return _bring_to(lowered, amounts, site)
    return (_replace_blocks(lowered, amounts, _mix(amounts, site)),)


def _try_base(base: Lowering | None, site: Site) -> Lowered | None:
    try:
        return (base and base.lower(site)) or None
    except RuntimeRefusedError:
        return None


def _bring_to(lowered: Lowered, amounts: Amounts, site: Site) -> Lowered:
    """Return lowered kernels with as many instructions as were counted."""
    total, kinds = amounts.total, _count_kinds(lowered)
    missing = total - kinds.total()
    if missing < 0:
        scale = total / (total - missing)
        lowered = tuple(replace(kernel, blocks=tuple(
            _scale(block, scale) for block in kernel.blocks)) for kernel in lowered)
        kinds = _count_kinds(lowered)
        missing = max(0, total - kinds.total())
    lacking = {name: max(0, amounts.instructions[name] - kinds.get(name, 0))
               for name in ("load", "store", "branch", "alu")}
    whole = sum(lacking.values()) or 1
    share = {name: count * missing // whole for name, count in lacking.items()}
    share["alu"] += missing - sum(share.values())
    last = lowered[-1]
    rest = mix(plain(site.dialect), share)
    kept = (*lowered[:-1], replace(last, blocks=(*last.blocks, *rest)))
    return tuple(replace(kernel, assumed=kernel.assumed or amounts.stands_in) for kernel in kept)


def _count_kinds(lowered: Sequence[Kernel]) -> Counter[str]:
    """Return instructions by kind over all blocks."""
    kinds: Counter[str] = Counter()
    for kernel in lowered:
        for block in kernel.blocks:
            for one in parse_code(block.code):
                kinds[one.kind] += block.trips
    return kinds


def _mix(amounts: Amounts, site: Site) -> Blocks:
    """Return counted instructions as blocks; a vector's elements are no registers of its access."""
    vectors = "mve" in load_isa(site.isa).extensions
    return mix(plain(site.dialect), amounts.instructions if vectors else
               widen(amounts.instructions, amounts.loads, amounts.stores))


def _scale(block: Block, scale: float) -> Block:
    """Return a block run so much less often; blocks that are rarely run stay."""
    if block.trips < 16:
        return block
    trips = round(block.trips * scale)
    return replace(block, trips=trips, entries=min(block.entries, trips))


def _replace_blocks(lowered: Lowered, amounts: Amounts, blocks: Blocks) -> Kernel:
    """Return one kernel with the accesses of the lowered ones and the counted instructions."""
    first = lowered[0]
    operands = {operand.name: operand for kernel in lowered for operand in kernel.operands}
    return replace(
        first, blocks=blocks,
        nests=tuple(nest for kernel in lowered for nest in kernel.nests),
        operands=tuple(operands.values()), assumed=amounts.stands_in,
        useful_macs=sum(kernel.useful_macs for kernel in lowered))


def _read_once(site: Site, amounts: Amounts) -> Kernel:
    """Return a kernel that reads every operand once, in order, and writes every result."""
    moves = []
    for operand in site.operands:
        if operand.role in ("scratch", "parameters"):
            continue
        write = operand.role == "output"
        width = _width(site, operand.name)
        trips = operand.size_bytes // width
        step = store if write else load
        moves.append(repeat("element", trips, step(operand.name, width, 0, element=width)))
    return build_kernel(
        site.op, family_of(site.op), site,
        _mix(amounts, site), resolve(*moves),
        assumed=amounts.stands_in)


def _width(step: GraphLayer, operand: str) -> int:
    """Bytes of one element of an operand."""
    number = int(operand.lstrip("abcdefghijklmnopqrstuvwxyz") or 1) - 1
    ids = step.layer.outputs if operand.startswith("output") else step.layer.inputs
    place = ids[number] if operand.startswith(("input", "output")) and number < len(ids) else ids[0]
    return step.graph.tensors[place].element_bytes
