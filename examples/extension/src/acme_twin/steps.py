"""A feature, and a step of post-processing a study's rows."""

from collections.abc import Mapping, Sequence
from typing import Any

ACME_SMALL = {"network.width": "0.5", "network.weights": "int4"}


def keep_fastest(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the fastest row of each board, and by how much the others are slower."""
    timed = sorted((row for row in rows if row["time_us"]), key=lambda row: row["time_us"])
    best = {row["board"]: row for row in reversed(timed)}
    return [{"board": row["board"], "runtime": row["runtime"], "time_us": row["time_us"],
             "of_best": row["time_us"] / best[row["board"]]["time_us"]} for row in timed]
