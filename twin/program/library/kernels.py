"""Kernels made of what was seen of them: layers by the code they run, and its coefficients."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from hwmodels.isa.instruction import parse_code
from hwmodels.quantities import list_by_key, sum_by_key
from twin.program.library.blocks import Code, Run
from twin.program.library.coefficients import fit_series
from twin.program.library.seen import Seen, Touched, class_of, cut_layers
from twin.runtimes.counted.learnt import (
    CheckedLayer,
    LearntBlock,
    LearntKernel,
    LearntOperand,
    Series,
    choose_kernel,
    total,
)
from twin.runtimes.counted.shapes import KINDS
from twin.runtimes.counted.walks import CHANNELS, PIXELS, WHOLE

Codes = Mapping[str, Code]
"""Codes by function."""

HEAVY = 0.005
"""Share of a layer's instructions from which a function says which code the layer runs."""

COVERED = 0.9999
"""Share of each layer's instructions that is kept block by block."""

_FAR = 0.01
"""Error of a layer's instructions from which its kind of layers gets coefficients of its own."""

_ONCE_A_TURN = 3.0
"""Sweeps of a turn up to which it reads an operand once, from several places."""

_AGAIN = 1.5
"""Sweeps of an operand from which it is read again and again."""


def make_kernels(seen: Sequence[Seen], codes: Codes,
                 code_bytes: Mapping[str, int]) -> tuple[LearntKernel, ...]:
    """Return the kernels of a library.

    Parameters
    ----------
    seen
        Layers, of any number of programs.
    code_bytes
        Sizes of functions.
    """
    kernels: list[LearntKernel] = []
    joint: dict[tuple[str, str, str], LearntBlock] = {}
    for op, dtype in dict.fromkeys((one.op, one.dtype) for one in seen):
        alike = [one for one in seen if (one.op, one.dtype) == (op, dtype)]
        family = [one for one in seen if (_kind(one.op), one.dtype) == (_kind(op), dtype)]
        own = _list_own(alike, codes)
        for variant in _part(alike, codes, own):
            made = [_make_kernel(variant, family, codes, code_bytes, own, joint)]
            paths = _part_paths(variant, codes)
            if made[0].residual > _FAR and len(paths) > 1:
                apart = [_make_kernel(path, path, codes, code_bytes, own, {}) for path in paths]
                if max(one.residual for one in apart) < made[0].residual:
                    made = apart
            kernels += made
    return tuple(kernels)


def check_layers(seen: Sequence[Seen], runs: Mapping[str, Run],
                 code_bytes: Mapping[str, int]) -> list[CheckedLayer]:
    """Return each network's layers beside what programs of the other networks teach of them.

    Parameters
    ----------
    seen
        Layers of all networks; of one network nothing is checked.
    code_bytes
        Sizes of functions.
    """
    networks = dict.fromkeys(one.network for one in seen)
    cut, codes = cut_layers(seen, runs)
    found = []
    for network in networks if len(networks) > 1 else ():
        kernels = make_kernels(*cut_layers([one for one in seen if one.network != network], runs),
                               code_bytes)
        for one in cut:
            if one.network != network:
                continue
            kernel, stands_in = choose_kernel(kernels, one.op, one.dtype, one.features, one.shape)
            found.append(CheckedLayer(
                network=network, index=one.index, op=one.op,
                instructions=sum(_count(one, codes).values()), stands_in=stands_in,
                predicted=None if kernel is None else round(kernel.instructions(one.terms))))
    return found


def _kind(op: str) -> str:
    return KINDS.get(op, op)


def _count(one: Seen, codes: Codes) -> dict[str, int]:
    """Return instructions of a layer by block."""
    return {name: trips * codes[name].instructions for name, (trips, _) in one.blocks.items()}


def _weigh(one: Seen, codes: Codes) -> dict[str, int]:
    """Return instructions of a layer by function."""
    return sum_by_key((codes[name].function, count) for name, count in _count(one, codes).items())


def _list_own(alike: Sequence[Seen], codes: Codes) -> frozenset[str]:
    """Return functions that were generated for one layer: heavy ones that are the layer itself."""
    if len(alike) < 2:
        return frozenset()
    runs = Counter(one.name for one in alike)
    return frozenset(
        one.name for one in alike for heavy in [_weigh(one, codes)]
        if runs[one.name] == 1 and heavy.get(one.name, 0) >= HEAVY * sum(heavy.values()))


def _part(alike: Sequence[Seen], codes: Codes, own: frozenset[str]) -> list[list[Seen]]:
    """Return layers by the functions that do their work."""
    return [*list_by_key((frozenset(
        name for name, count in heavy.items()
        if count >= HEAVY * sum(heavy.values()) and name not in own), one)
        for one in alike for heavy in [_weigh(one, codes)]).values()]


def _part_paths(variant: Sequence[Seen], codes: Codes) -> list[list[Seen]]:
    """Return layers by the block most of their instructions are in: ways through one function."""
    return [*list_by_key((max(counts, key=lambda name: counts[name]), one)
                         for one in variant for counts in [_count(one, codes)]).values()]


def _make_kernel(variant: Sequence[Seen], family: Sequence[Seen], codes: Codes,
                 code_bytes: Mapping[str, int], own: frozenset[str],
                 joint: dict[tuple[str, str, str], LearntBlock]) -> LearntKernel:
    hot = _choose_hot(variant, codes, own)
    keys = [(_kind(variant[0].op), variant[0].dtype, name) for name in hot]
    for key in keys:
        if key not in joint:  # One code: all layers that run its function tell of it.
            name, function = key[2], codes[key[2]].function
            joint[key] = _fit_block(name, codes[name], [one for one in family if any(
                codes[other].function == function for other in one.blocks)])
    blocks = [joint[key] for key in keys]
    rest = _fit_rest(variant, codes, hot)
    if _residual(variant, codes, blocks, rest) > _FAR:
        apart = [_fit_block(name, codes[name], variant) for name in hot]
        blocks = min(blocks, apart, key=lambda one: _residual(variant, codes, one, rest))
    along, turns = _find_turns(variant)
    functions = {codes[name].function for one in variant for name in one.blocks}
    weights = _weigh(variant[0], codes)
    name = max(weights, key=lambda one: weights[one])
    matching = [one for one in family if name in {codes[block].function for block in one.blocks}]
    return LearntKernel(
        op=variant[0].op, dtype=variant[0].dtype, name=name,
        seen=tuple({tuple(sorted(one.features.items())): one.features
                    for one in variant}.values()),
        shapes={size: (min(one.shape[size] for one in matching),
                       max(one.shape[size] for one in matching)) for size in variant[0].shape},
        layers=len(variant), distinct=len({tuple(sorted(one.terms.items())) for one in matching}),
        blocks=tuple(blocks), rest=rest, classes=_share_classes(variant, codes, hot),
        along=along, turns=turns, operands=_fit_operands(variant, turns),
        code_bytes=sum(code_bytes.get(name, 0) for name in functions),
        residual=_residual(variant, codes, blocks, rest))


def _choose_hot(variant: Sequence[Seen], codes: Codes, own: frozenset[str]) -> list[str]:
    """Return the blocks worth keeping, heaviest first: those most of each layer runs in."""
    chosen: dict[str, float] = {}
    for one in variant:
        counts = _count(one, codes)
        whole, reached = sum(counts.values()), 0
        for name in sorted(counts, key=lambda name: -counts[name]):
            if reached >= COVERED * whole:
                break
            reached += counts[name]
            if codes[name].function not in own:
                chosen[name] = max(chosen.get(name, 0.0), counts[name] / whole)
    return sorted(chosen, key=lambda name: -chosen[name])


def _fit(layers: Sequence[Seen], counts: Sequence[float]) -> Series:
    return fit_series([one.terms for one in layers], counts)


def _fit_block(name: str, code: Code, layers: Sequence[Seen]) -> LearntBlock:
    trips, entries = zip(*(one.blocks.get(name, (0, 0)) for one in layers), strict=True)
    series = _fit(layers, trips)
    return LearntBlock(name=name, code=code.code, cause=code.cause, loops=code.loops, trips=series,
                       entries=series if trips == entries else _fit(layers, entries))


def _fit_rest(variant: Sequence[Seen], codes: Codes, hot: Sequence[str]) -> Series:
    return _fit(variant, [sum(count for name, count in _count(one, codes).items()
                              if name not in hot) for one in variant])


def _share_classes(variant: Sequence[Seen], codes: Codes, hot: Sequence[str]) -> dict[str, float]:
    kept, counts = set(hot), Counter[str]()
    for one in variant:
        for name, (trips, _) in one.blocks.items():
            if name not in kept:
                for each in parse_code(codes[name].code):
                    counts[class_of(each)] += trips
    whole = counts.total()
    return {name: count / whole for name, count in sorted(counts.items())} if whole else {}


def _residual(variant: Sequence[Seen], codes: Codes,
              blocks: Sequence[LearntBlock], rest: Series) -> float:
    """Return the relative error of a layer's instructions, root mean square."""
    errors = []
    for one in variant:
        ran = sum(_count(one, codes).values())
        total_count = total(rest, one.terms) + sum(
            total(block.trips, one.terms) * codes[block.name].instructions for block in blocks)
        errors.append(total_count / max(1, ran) - 1)
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


def _find_turns(variant: Sequence[Seen]) -> tuple[str, Series]:
    """Return what the outermost loop turns over, and how often.

    Notes
    -----
    Weights that are swept again and again are read once a turn of some pixels; else an input
    that is swept again is read once a turn of some channels.
    """
    for along, name in ((PIXELS, "weights"), (CHANNELS, "input")):
        with_operand = [one for one in variant if name in one.operands]
        if any(one.operands[name].sweeps >= _AGAIN for one in with_operand):
            return along, _fit_turns(along, with_operand, [_count_turns(one.operands[name])
                                                   for one in with_operand])
    if any("tap" in one.terms for one in variant):
        return PIXELS, (("pixel", 1.0),)
    return PIXELS, (("call", 1.0),)


def _count_turns(touched: Touched) -> float:
    """Return how often all of an operand was read: no oftener than it was started again."""
    return max(1.0, min(touched.sweeps + 1, touched.read_bytes / max(1, touched.size_bytes)))


def _fit_turns(along: str, variant: Sequence[Seen], counts: Sequence[float]) -> Series:
    """Return turns as a part of the pixels or channels there are."""
    named = {PIXELS: ("pixel", "line"), CHANNELS: ("channel", "output")}[along]
    terms = [{name: value for name, value in one.terms.items() if name == "call" or (
        name.startswith(named) and "channel " not in name)} for one in variant]
    return fit_series(terms, counts)


def _fit_operands(variant: Sequence[Seen], turns: Series) -> tuple[LearntOperand, ...]:
    return tuple(_fit_operand(name, variant, turns) for name in dict.fromkeys(
        name for one in variant for name in one.operands))


def _fit_operand(name: str, variant: Sequence[Seen], turns: Series) -> LearntOperand:
    accesses = [one.operands.get(name) or _UNTOUCHED for one in variant]
    terms = [one.terms if name not in ("bias", "parameters") else _of_channels(one.terms)
             for one in variant]
    times = [max(1.0, total(turns, one.terms)) for one in variant]
    reads, writes = sum(one.reads for one in accesses), sum(one.writes for one in accesses)
    sweeps = [(one.sweeps + 1) / often for one, often in zip(accesses, times, strict=True)
              if one.reads]
    swept = sum(sweeps) / len(sweeps) if sweeps else 0.0
    each = 0.0
    if name in ("weights", "input") and WHOLE <= swept <= _ONCE_A_TURN:
        each = sum(one.reads / often / one.size_bytes
                   for one, often in zip(accesses, times, strict=True) if one.reads) / len(sweeps)
    return LearntOperand(
        name=name, reads=() if each else fit_series(terms, [one.reads for one in accesses]),
        writes=fit_series(terms, [one.writes for one in accesses]), each=each,
        read_bytes=sum(one.read_bytes for one in accesses) / max(1, reads),
        write_bytes=sum(one.write_bytes for one in accesses) / max(1, writes), sweeps=swept,
        size=fit_series(terms, [one.size_bytes for one in accesses]) if name == "scratch" else ())


def _of_channels(terms: Mapping[str, float]) -> dict[str, float]:
    """Return terms without those of products: what channels have is read once a result or less."""
    return {name: often for name, often in terms.items()
            if not any(word in name for word in ("mac", "column", "tap", "depth", "window", "row"))}


_UNTOUCHED = Touched(size_bytes=0, reads=0, writes=0, read_bytes=0, write_bytes=0, sweeps=0)
