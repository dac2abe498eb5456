"""Which part of one side is which of the other: layers, and epochs of an accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from twin.attribution.side import Part, Side

Pair = tuple[Part | None, Part | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Parts of two sides, together where they are the same work.

    Parameters
    ----------
    pairs : tuple of pairs of Part or None
        In order; a part of one side only has no other.
    by : str
        "index", "name", "order" (epochs of two schedules: not the same work), or "" for none.
    note : str
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
    first, second : Side
        Two of one kind, or a prediction and what was measured.

    Returns
    -------
    Pairing
        Layers of one architecture by number, as of two builds of a program that has as many; of two
        by operator and name in order; epochs by the
        number in their name where both come from one compilation, else in order. A log that
        leaves out layers which only rename their input is paired in order without them.
    """
    alike = first.counted == second.counted
    if first.part == second.part == "epoch":
        found = _pair_epochs(first.parts, second.parts)
        if found.by != "order" or not alike:
            return found
    if not alike:
        return _pair_measured(first, second)
    same = first.architecture_id is not None and first.architecture_id == second.architecture_id
    builds = first.is_program and second.is_program and len(first.parts) == len(second.parts)
    if (same or builds) and first.part == second.part:
        return Pairing(pairs=_by_index(first.parts, second.parts), by="index")
    return Pairing(pairs=_by_name(first.parts, second.parts), by="name")


def _pair_epochs(ours: Sequence[Part], theirs: Sequence[Part]) -> Pairing:
    names = [{part.name: part for part in side} for side in (ours, theirs)]
    shared = [name for name in names[0] if name and name in names[1]]
    same = [name for name in shared if names[0][name].op == names[1][name].op]
    if shared and len(same) == len(shared) and len(shared) >= 0.9 * max(len(ours), len(theirs)):
        titles = [*names[1], *(title for title in names[0] if title not in names[1])]
        return Pairing(by="name", pairs=tuple(
            (names[0].get(title), names[1].get(title)) for title in titles))
    nameless = not any(part.name for part in theirs)
    if nameless and {part.index for part in ours} == {part.index for part in theirs}:
        return Pairing(pairs=_by_index(ours, theirs), by="index")
    longest = max(len(ours), len(theirs))
    return Pairing(by="order", pairs=tuple(
        (ours[place] if place < len(ours) else None,
         theirs[place] if place < len(theirs) else None) for place in range(longest)))


def _pair_measured(first: Side, second: Side) -> Pairing:
    ours, theirs = first.parts, second.parts
    moving = [part for part in ours if part.moves]
    known = {part.index for part in ours}
    if not theirs or not ours:
        return Pairing(pairs=(), by="")
    note = (f"its {len(theirs)} {second.part}s are not the {len(ours)} {first.part}s of the "
            "network: only the inference is compared")
    if first.part != second.part:
        return Pairing(pairs=(), by="", note=note)
    if second.numbered and {part.index for part in theirs} <= known:
        return Pairing(pairs=tuple(pair for pair in _by_index(ours, theirs) if pair[1]),
                       by="index")
    for chosen in (ours, moving):
        if len(chosen) == len(theirs):
            return Pairing(pairs=tuple(zip(chosen, theirs, strict=True)), by="index")
    return Pairing(pairs=(), by="", note=note)


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
