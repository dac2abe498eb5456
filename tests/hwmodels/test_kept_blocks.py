"""Schedules that are kept are those that would be made."""

from __future__ import annotations

from hwmodels.core.file import load_core
from hwmodels.core.kept_blocks import MOST_BLOCKS, KeptBlocks
from hwmodels.core.schedule import schedule
from hwmodels.kernels.store import Store

NAME = "blocks-core.sources.kept"
CODE = "ldrb r0, [r1], #1; ldrb r2, [r3], #1; mla r4, r0, r2, r4; subs r5, r5, #1; bne loop"


def test_what_is_kept_is_what_was_scheduled(tmp_path) -> None:
    made = schedule(CODE, load_core("cortex-m4"))
    first = KeptBlocks(Store(tmp_path), NAME)
    assert first.find(CODE) is None
    first.add(CODE, made)
    first.save()
    other = KeptBlocks(Store(tmp_path), NAME)
    assert other.find(CODE) == made
    first.add("nop", made)
    other.add("nop; nop", made)
    first.save()
    other.save()
    both = KeptBlocks(Store(tmp_path), NAME)
    assert both.find("nop") == both.find("nop; nop") == both.find(CODE) == made


def test_damaged_or_too_many_they_are_scheduled_again(tmp_path) -> None:
    made = schedule("nop", load_core("cortex-m4"))
    kept = KeptBlocks(Store(tmp_path), NAME)
    for number in range(MOST_BLOCKS + 10):
        kept.add(f"nop{number}", made)
    kept.save()
    assert len(KeptBlocks(Store(tmp_path), NAME).known) == MOST_BLOCKS
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-1])
    assert KeptBlocks(Store(tmp_path), NAME).known == {}
    Store(tmp_path).save(NAME, b'{"nop": {"noun": "os:system", "of": []}}')
    assert KeptBlocks(Store(tmp_path), NAME).find("nop") is None
