"""Memories chosen for a draft where nobody asked for one, and a check that everything fits."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hwmodels.board.facts import FLASH_ROLES
from twin.deployment.draft import Draft
from twin.deployment.memories import check_room
from twin.errors import DoesNotFitError

_Draft = TypeVar("_Draft", bound=Draft)


def settle(draft: _Draft, *, arena: bool, weights: bool) -> _Draft:
    """Choose memories where nobody asked for one, and refuse what does not fit.

    Parameters
    ----------
    draft
        With the memories asked for, or those of the board file.
    arena, weights
        Whether they may go elsewhere, as nobody asked for where they are.

    Returns
    -------
    Draft
        Of the kind it was given.

    Raises
    ------
    DoesNotFitError
        When a memory has no room for what is put in it.
    """
    chosen, notes = draft.target.settle(draft, asked=not arena)
    if chosen != draft.arena:
        draft = replace(draft, arena=chosen)
    draft = draft.noted(notes)
    if not draft.runtime.splits_memories:
        check_draft(draft)
        return draft
    split = _split(draft, arena=arena, weights=weights)
    try:
        check_draft(split)
    except DoesNotFitError:
        check_draft(draft)  # Names the memory it belongs in, not the last it was split between.
        raise
    return split


def _split(draft: _Draft, *, arena: bool, weights: bool) -> _Draft:
    """Go on in further memories with what has no room where nobody asked for it to be."""
    full = [name for name, needed in _needs(draft).items()
            if needed > draft.board.memory(name).size_bytes]
    if full and (arena or weights):
        from twin.deployment.split import further_memories

        if arena and draft.arena in full:
            draft = replace(draft, arena_spill=further_memories(draft.board, draft.arena))
        if weights and draft.weights in full:
            draft = replace(draft, weights_spill=further_memories(draft.board, draft.weights))
    if draft.arena_spill or draft.weights_spill:
        from twin.deployment.split import describe_split

        further, spilled = draft.placement.parts_bytes[1:], draft.plan.spilled
        draft = draft.noted(describe_split(
            {draft.weights: draft.placement.weights_bytes - sum(spilled.values()), **spilled},
            {draft.arena: draft.placement.first_bytes,
             **dict(zip(draft.arena_spill, further, strict=True))}))
    return draft


def _needs(draft: Draft) -> dict[str, int]:
    """Bytes wanted of each memory, code among them."""
    needs = draft.target.needs(draft)
    needs[draft.code] = needs.get(draft.code, 0) + draft.runtime.code_bytes
    return needs


def check_draft(draft: Draft) -> None:
    """Refuse what does not fit its memory.

    Raises
    ------
    DoesNotFitError
        With the memory, and how much it lacks.
    """
    needs = _needs(draft)
    holds = [(draft.arena, "arena"), (draft.arena, "runtime"),
             *((name, "arena") for name in draft.arena_spill),
             *((name, "weights") for name in (draft.weights, *draft.weights_spill)),
             (draft.code, "code")]
    if draft.buffers is not None and (tiles := draft.tile_memory.name) != draft.arena:
        needs[draft.arena] -= draft.buffers.size_bytes
        needs[tiles] = needs.get(tiles, 0) + draft.buffers.size_bytes
        holds.append((tiles, "buffers of weights"))
    store, code = draft.store, draft.board.memory(draft.code)
    copied = [f"weights that are copied to {draft.weights}"] if store.name != draft.weights else []
    if store.role in FLASH_ROLES and code.role not in FLASH_ROLES and not code.loaded:
        copied.append(f"code that is copied to {code.name}")
    if copied:
        needs[store.name] = max(needs.get(store.name, 0), draft.flash_bytes)
        holds += [(store.name, what) for what in copied]
    check_room(draft.graph.name, draft.board, draft.arena, needs, holds)
    draft.target.check_fit(draft, needs)
