"""Two predictions, or two measurements: what changed, by part and by cause, and what was set up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from hwmodels.counts import CAUSES
from twin.attribution.counter_causes import load_groups
from twin.attribution.sides import UNITS, Part, Side
from twin.errors import UsageError

SIZES = {"ram_bytes": "bytes", "flash_bytes": "bytes"}
ENVIRONMENT = ("compiler", "firmware_sha256", "runtime lib", "tools", "interrupts", "port")
"""What of a measurement's environment is named when it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One figure before and after.

    Parameters
    ----------
    name : str
        Quantity, part or causes.
    unit : str
        Of both.
    before, after : int
        Values; 0 where a part is not there.
    reason : str
        The largest cause of the change, where one is known.
    """

    name: str
    unit: str
    before: int
    after: int
    reason: str = ""

    @property
    def change(self) -> int:
        """After less before."""
        return self.after - self.before

    @property
    def increase(self) -> float | None:
        """Relative change; None from nothing."""
        return self.change / self.before if self.before else None

    def exceeds(self, limit: float) -> bool:
        """Whether it grew by more than a share."""
        return self.change > limit * self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class SideDifference:
    """Two sides of one kind compared.

    Parameters
    ----------
    before, after : Side
        What is compared.
    totals : tuple of Move
        Of one inference by quantity, and of memories.
    parts : tuple of Move
        Of the main quantity; a part that came or went has 0 on the other side.
    causes : tuple of Move
        Of the main quantity, largest change first; they sum to its change for predictions.
    setup : tuple of str
        What differs in how it was set up.
    """

    before: Side
    after: Side
    totals: tuple[Move, ...]
    parts: tuple[Move, ...]
    causes: tuple[Move, ...]
    setup: tuple[str, ...]

    def exceeding(self, limit: float, *, with_parts: bool = False) -> tuple[Move, ...]:
        """Return what grew by more than the limit."""
        judged = (*self.totals, *(self.parts if with_parts else ()))
        return tuple(move for move in judged if move.exceeds(limit))


def compare_sides(before: Side, after: Side) -> SideDifference:
    """Compare two predictions, or two measurements.

    Parameters
    ----------
    before, after : Side
        Of one kind; models, boards, compilers may differ.

    Returns
    -------
    SideDifference
        Parts of one architecture are paired by index, those of two by operator and name in order.

    Raises
    ------
    UsageError
        For a prediction against a measurement, or when they share no quantity.
    """
    if before.predicted != after.predicted:
        prediction, other = (before, after) if before.predicted else (after, before)
        raise UsageError(f"{prediction.label} is a prediction, {other.label} is {other.kind}: they "
                         f"are set side by side by: twin attribute {prediction.label} "
                         f"{other.label}")
    shared = [name for name in UNITS
              if name in before.whole.amounts and name in after.whole.amounts]
    if not shared:
        raise UsageError(f"{before.label} has {', '.join(before.whole.amounts)}, {after.label} "
                         f"{', '.join(after.whole.amounts)}: nothing to compare")
    same_clock = all(before.clocks_hz.get(name, hertz) == hertz
                     for name, hertz in after.clocks_hz.items())
    main = "cycles" if "cycles" in shared and same_clock else \
        "time" if "time" in shared else shared[0]
    totals = [Move(name=name, unit=UNITS[name], before=before.whole.amounts[name],
                   after=after.whole.amounts[name]) for name in shared]
    totals += [Move(name=name, unit=unit, before=before.sizes[name], after=after.sizes[name])
               for name, unit in SIZES.items() if name in before.sizes and name in after.sizes]
    return SideDifference(
        before=before, after=after, totals=tuple(totals), setup=_compare_setup(before, after),
        parts=_compare_parts(before, after, main),
        causes=_compare_causes(before.whole, after.whole, main, before.predicted))


def _compare_parts(before: Side, after: Side, quantity: str) -> tuple[Move, ...]:
    unit = UNITS[quantity]
    moves = []
    for old, new in _pair_parts(before, after):
        part = new or old
        assert part is not None
        amounts = [one.amounts.get(quantity) if one is not None else 0 for one in (old, new)]
        if amounts[0] is None or amounts[1] is None:
            continue
        status = "" if old and new else "new" if new else "gone"
        reason = _largest_cause(old, new, quantity) if old and new else status
        label = f"{part.index} {part.name or part.op}".strip()
        moves.append(Move(name=label, unit=unit, before=amounts[0], after=amounts[1],
                          reason=reason))
    return tuple(moves)


def _pair_parts(before: Side, after: Side) -> list[tuple[Part | None, Part | None]]:
    old, new = list(before.parts), list(after.parts)
    same = before.architecture_id is not None and before.architecture_id == after.architecture_id
    if same and before.part == after.part:
        by_index = {part.index: part for part in new}
        paired: list[tuple[Part | None, Part | None]] = [
            (part, by_index.pop(part.index, None)) for part in old]
        return paired + [(None, part) for part in by_index.values()]
    pairs: list[tuple[Part | None, Part | None]] = []
    matcher = SequenceMatcher(None, [_key(part) for part in old], [_key(part) for part in new],
                              autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            pairs += list(zip(old[first:last], new[start:end], strict=True))
        else:
            pairs += [(part, None) for part in old[first:last]]
            pairs += [(None, part) for part in new[start:end]]
    return pairs


def _key(part: Part) -> tuple[str, str]:
    return part.op, part.name if part.op else f"{part.index} {part.name}"


def _largest_cause(old: Part, new: Part, quantity: str) -> str:
    moves = _compare_causes(old, new, quantity, bool(old.causes))
    if not moves or not moves[0].change:
        return ""
    return f"{moves[0].name} {moves[0].change:+,}"


def _compare_causes(old: Part, new: Part, quantity: str, predicted: bool) -> tuple[Move, ...]:
    """Causes of a prediction, or what the counters of a measurement tell, largest first."""
    if predicted:
        before, after = old.causes.get(quantity, {}), new.causes.get(quantity, {})
        moves = [Move(name=cause, unit=UNITS[quantity], before=before.get(cause, 0),
                      after=after.get(cause, 0)) for cause in CAUSES
                 if cause in before or cause in after]
    else:
        moves = _compare_counters(old, new)
    moved = [move for move in moves if move.change]
    return tuple(sorted(moved, key=lambda move: -abs(move.change)))


def _compare_counters(old: Part, new: Part) -> list[Move]:
    found = []
    for group in load_groups():
        values = [group.read(part.counts, part.amounts.get("cycles")) for part in (old, new)]
        if values[0] is None or values[1] is None:
            continue
        found.append(Move(name=group.name, unit="events" if group.events else "cycles",
                          before=round(values[0]), after=round(values[1])))
    return found


def _compare_setup(before: Side, after: Side) -> tuple[str, ...]:
    """Say what differs in model, board, runtime, clocks, placement and tools."""
    found = []
    for name in ("model", "board", "runtime", "temperature", "calibration"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            found.append(f"{name}: {old or 'none'} -> {new or 'none'}")
    if before.model_sha256 != after.model_sha256 and None not in (before.model_sha256,
                                                                  after.model_sha256):
        same = before.architecture_id == after.architecture_id
        found.append("model file: other weights" if same else "model file: another architecture")
    found += _differences("clock", before.clocks_hz, after.clocks_hz, " Hz")
    found += _differences("placement of", before.placement, after.placement)
    for name in ENVIRONMENT:
        found += _differences("", _only(before.environment, name), _only(after.environment, name))
    return tuple(found)


def _only(values: Mapping[str, str], name: str) -> dict[str, str]:
    return {name: values[name][:40]} if name in values else {}


def _differences(what: str, old: Mapping[str, object], new: Mapping[str, object],
                 unit: str = "") -> Sequence[str]:
    return [f"{what} {name}: {old[name]}{unit} -> {new[name]}{unit}".strip()
            for name in old if name in new and old[name] != new[name]]
