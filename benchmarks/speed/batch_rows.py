"""Many predictions at once beside a loop over `predict`, and one changed structure."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed.batch_speed import (
    COMPARED,
    LIMIT_BYTES,
    LIMITS_S,
    ROWS,
    peak_bytes,
    time_accelerator,
    time_batch,
    time_changes,
)
from benchmarks.speed.row import Row


def measure() -> Iterator[Row]:
    """Yield the rows of batches."""
    batch_s, loop_s = time_batch()
    yield Row(name=f"{ROWS:,} configurations", figure=batch_s, unit="s", theirs=loop_s,
              peer="predict, one by one", limit=LIMITS_S["batch"],
              events={"rows": ROWS, "rows equal to predict": COMPARED})
    for name, paces, seconds, loop_s in time_accelerator():
        yield Row(name=f"accelerator, {name}", figure=seconds, unit="s", theirs=loop_s,
                  peer="predict, one by one", limit=LIMITS_S[
                      "clocks" if paces == ROWS else "batch"],
                  events={"rows": ROWS, "clocks of the accelerator": paces,
                          "rows equal to predict": COMPARED})
    yield Row(name="the same, most memory", figure=peak_bytes() / 1e6, unit="MB",
              limit=LIMIT_BYTES / 1e6)
    for name, first, stated, learnt in time_changes():
        if name.endswith("cache size"):
            yield Row(name=f"{name}, never seen", figure=first * 1e3, unit="ms",
                      limit=LIMITS_S["change"] * 1e3)
        for prices, seconds in (("stated", stated), ("learnt", learnt)):
            yield Row(name=f"{name}, kept, {prices}", figure=seconds * 1e3, unit="ms",
                      peer="the first time", theirs=first * 1e3, limit=LIMITS_S["change"] * 1e3)
