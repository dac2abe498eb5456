"""Which part of one side is which of the other: layers, and tasks of an accelerator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from hwmodels.frozen import record
from twin.attribution.side import Part, Side
from twin.network.operators import Form, list_form

Pair = tuple[Part | None, Part | None]

KINDS: Mapping[str, tuple[str, ...]] = {
    "depthwise": ("depthwise",), "pointwise": ("conv",), "softmax": ("softmax",), "conv": ("conv",),
    "fully_connected": ("conv", "fully", "dense", "matmul", "gemm"), "pool": ("pool", "mean"),
    "recurrent": list_form(Form.RECURRENT)}
"""What an operator's name has in it, by what a program's layer is called; others may be any. A
convolution of 1x1 is a matrix product in many libraries."""


@record
class Pairing:
    """Parts of two sides, together where they are the same work.

    Parameters
    ----------
    pairs
        In order; a part of one side only has no other.
    by
        "index", "name", "order" (tasks of two schedules: not the same work), or "" for none.
    note
        Why parts are not paired, "" where they are.
    """

    pairs: tuple[Pair, ...]
    by: str
    note: str = ""

    @property
    def same(self) -> tuple[Pair, ...]:
        """Pairs that are the same work; none where two schedules stand in order only."""
        return () if self.by == "order" else self.pairs


def pair_parts(first: Side, second: Side) -> Pairing:
    """Pair the parts of two sides.

    Parameters
    ----------
    first, second
        Two of one kind, or a prediction and what was measured.

    Returns
    -------
    Pairing
        Layers of one architecture by number, as of two builds of a program that has as many; of two
        by operator and name in order; tasks by the
        number in their name where both come from one compilation, else in order. A log that
        leaves out layers which only rename their input is paired in order without them. Layers of
        a program beside a measurement by the number in the function's name, else in order where
        there are as many; never where an operator contradicts.
    """
    alike = first.counted == second.counted
    if first.scheduled and second.scheduled:
        found = _pair_tasks(first.parts, second.parts)
        if found.by != "order" or not alike:
            return found
    if not alike:
        return _pair_measured(first, second)
    same = first.architecture_id is not None and first.architecture_id == second.architecture_id
    builds = first.is_program and second.is_program and len(first.parts) == len(second.parts)
    if (same or builds) and first.part == second.part:
        return Pairing(_by_index(first.parts, second.parts), "index")
    return Pairing(_by_name(first.parts, second.parts), "name")


def _pair_tasks(ours: Sequence[Part], theirs: Sequence[Part]) -> Pairing:
    names = [{part.name: part for part in side} for side in (ours, theirs)]
    shared = [name for name in names[0] if name and name in names[1]]
    same = [name for name in shared if names[0][name].op == names[1][name].op]
    if shared and len(same) == len(shared) and len(shared) >= 0.9 * max(len(ours), len(theirs)):
        titles = [*names[1], *(title for title in names[0] if title not in names[1])]
        return Pairing(by="name", pairs=tuple(
            (names[0].get(title), names[1].get(title)) for title in titles))
    nameless = not any(part.name for part in theirs)
    if nameless and {part.index for part in ours} == {part.index for part in theirs}:
        return Pairing(_by_index(ours, theirs), "index")
    longest = max(len(ours), len(theirs))
    return Pairing(by="order", pairs=tuple(
        (ours[place] if place < len(ours) else None,
         theirs[place] if place < len(theirs) else None) for place in range(longest)))


def _pair_measured(first: Side, second: Side) -> Pairing:
    ours, theirs = first.parts, second.parts
    moving = [part for part in ours if part.moves]
    known = {part.index for part in ours}
    if not theirs or not ours:
        return Pairing((), "")
    note = (f"its {len(theirs)} {second.part}s are not the {len(ours)} {first.part}s of the "
            "network: only the inference is compared")
    if first.part != second.part:
        return Pairing((), "", note)
    if first.is_program:
        return _pair_program(ours, second)
    if second.numbered and {part.index for part in theirs} <= known:
        return Pairing(tuple(pair for pair in _by_index(ours, theirs) if pair[1]), "index")
    for chosen in (ours, moving):
        if len(chosen) == len(theirs):
            return Pairing(tuple(zip(chosen, theirs, strict=True)), "index")
    return Pairing((), "", note)


def _pair_program(ours: Sequence[Part], second: Side) -> Pairing:
    """Pair calls of functions with measured layers; what ran outside of calls is none of them."""
    calls = [part for part in ours if not part.name.startswith("between ")]
    theirs = second.parts
    numbers = [re.search(r"(?<!\d)\d+$", part.name) for part in calls]
    by_number = {int(number[0]): part for number, part in zip(numbers, calls, strict=True)
                 if number}
    found: list[tuple[Part, Part]] = []
    if second.numbered and len(by_number) == len(calls) \
            and all(part.index in by_number for part in theirs):
        found = [(by_number[part.index], part) for part in theirs if part.index is not None]
    elif len(calls) == len(theirs):
        found = list(zip(calls, theirs, strict=True))
    named = second.work.operators
    ops = [part.op or (named[place] if len(named) == len(theirs) else "")
           for place, part in enumerate(theirs)]
    other = next(((call, layer, op) for (call, layer), op in zip(found, ops, strict=False)
                  if not _may_be(call.op, op)), None)
    if found and other is None:
        return Pairing(tuple(found), "index")
    mismatch = (f"{other[0].name} is {other[0].op}, measured layer {other[1].index} {other[2]}"
            if other else f"{len(calls)} calls of functions, {len(theirs)} measured layers")
    return Pairing((), "",
                   f"layers of the program are not those measured ({mismatch}): "
                   "only the inference is compared; --layers of `predict` chooses the functions")


def _may_be(call: str, layer: str) -> bool:
    """Whether a call of one kind may run an operator; what is not known may."""
    words, op = KINDS.get(call), re.sub(r"[^a-z0-9]", "", layer.lower())
    if words is None or not op:
        return True
    if "depthwise" in op:
        return call in ("depthwise", "conv")
    return any(word in op for word in words)


def _by_index(ours: Sequence[Part], theirs: Sequence[Part]) -> tuple[Pair, ...]:
    by_index = {part.index: part for part in theirs}
    paired: list[Pair] = [(part, by_index.pop(part.index, None)) for part in ours]
    return (*paired, *((None, part) for part in by_index.values()))


def _by_name(ours: Sequence[Part], theirs: Sequence[Part]) -> tuple[Pair, ...]:
    pairs: list[Pair] = []
    matcher = SequenceMatcher(None, [_key(part) for part in ours], [_key(part) for part in theirs],
                              autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            pairs += list(zip(ours[first:last], theirs[start:end], strict=True))
        else:
            pairs += [(part, None) for part in ours[first:last]]
            pairs += [(None, part) for part in theirs[start:end]]
    return tuple(pairs)


def _key(part: Part) -> tuple[str, str]:
    return part.op, part.name if part.op else f"{part.index} {part.name}"
