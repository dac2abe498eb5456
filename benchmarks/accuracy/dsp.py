"""DSPs and fixed-function accelerators beside published cycles, each with a baseline.

    python -m benchmarks.accuracy.dsp

Only rows of `use=fit` are here. A baseline is what a page of a datasheet gives: peak rates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from calibration.datasets import read_table
from twin.runtimes.ai8x.cycles import LayerShape, count_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One table: (name, published, predicted, baseline) of each row, and what the baseline is."""

    table: str
    baseline: str
    rows: tuple[tuple[str, float, float, float], ...]

    def describe(self) -> str:
        """Return the table's line: rows, exact ones, and median and largest errors."""
        own, plain = ([abs(row[place] / row[1] - 1) for row in self.rows] for place in (2, 3))
        exact = sum(row[1] == row[2] for row in self.rows)
        return (f"| {self.table} | {len(self.rows)} | {exact} | {statistics.median(own):.1%} | "
                f"{max(own):.1%} | {statistics.median(plain):.1%} ({self.baseline}) |")


def _pair(row: Mapping[str, Any], key: str) -> tuple[int, int]:
    return row[f"{key}_rows"], row[f"{key}_columns"]


def shape_of_row(row: Mapping[str, Any]) -> LayerShape:
    """Return a published layer as the accelerator's registers."""
    twice = 2 if row["operator"] == "CONVTRANSPOSE2D" else 1
    rows, columns = ((twice * size + stride - window) // stride for size, window, stride in zip(
        _pair(row, "input_dim"), _pair(row, "pool"), _pair(row, "pool_stride"), strict=True))
    return LayerShape(
        pooled=(rows, columns), channels=row["output_chan"], kernel=_pair(row, "kernel_size"),
        padding=_pair(row, "padding"), pool=_pair(row, "pool"), passes=row["in_expand"],
        operands=row["operands"], pool_first=bool(row["pool_first"]),
        convolves=row["operator"] != "NONE", slots=row["timeslots"], flattens=bool(row["flatten"]),
        streams=bool(row["streaming"]))


def judge() -> Iterator[Judged]:
    """Yield every table."""
    shapes = [(row, shape_of_row(row)) for row in read_table("max78000_layers").rows]
    yield Judged(
        table="MAX78000 layers", baseline="an output channel a cycle", rows=tuple(
            (str(row["layer"]), row["cycles"], count_cycles(shape) + 1,
             math.prod(shape.output) * shape.channels) for row, shape in shapes))


def main() -> None:
    """Print every table."""
    print("| table | rows | exact | median error | largest | baseline, median |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for judged in judge():
        print(judged.describe())


if __name__ == "__main__":
    main()
