"""Basic blocks of a library's code, and how often they ran, from the runs an emulator counts.

An emulator's block goes from where it is entered to the next branch, so the first turn of a loop
is counted with what stands before it. Cut at all places that were ever entered, by any program,
every count is a product of loops' extents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from hwmodels.frozen import frozen
from hwmodels.isa.instruction import parse_code


@frozen
class Run:
    """Code from one entry to the next branch.

    Parameters
    ----------
    start
        Bytes from the function's first.
    sizes
        Bytes of its instructions.
    code
        Them, a line each; branches without their targets.
    cause
        As `hwmodels.kernel.Block` has it.
    target
        Where its closing branch goes, from the function's first byte; None for none, and where
        whether it is taken makes no difference.
    """

    function: str
    start: int
    sizes: tuple[int, ...]
    code: str
    cause: str | None
    target: int | None

    @property
    def end(self) -> int:
        """Bytes from the function's first to behind it."""
        return self.start + sum(self.sizes)

    @property
    def places(self) -> list[int]:
        """Where its instructions are."""
        return [self.start + sum(self.sizes[:at]) for at in range(len(self.sizes))]


@frozen
class Code:
    """A basic block.

    Parameters
    ----------
    function, code, cause
        As of `Run`.
    loops
        Whether its closing branch goes to its own start.
    """

    function: str
    code: str
    cause: str | None
    loops: bool

    @cached_property
    def instructions(self) -> int:
        """How many it has."""
        return sum(1 for _ in parse_code(self.code))

    @cached_property
    def mac_lanes(self) -> int:
        """Products it computes by instructions that add them up."""
        return sum(one.mac_lanes for one in parse_code(self.code))

    @cached_property
    def products(self) -> int:
        """Products of a core without such: its plain multiplications."""
        return sum(one.timing in ("mul", "mul_flags", "f_mul") for one in parse_code(self.code))


Counts = tuple[int, int]
"""How often a block ran, and how often it was entered or left otherwise than by its branch back."""


def cut_runs(runs: Mapping[str, Run], layers: Sequence[Mapping[str, Sequence[int]]]
             ) -> tuple[dict[str, Code], list[dict[str, Counts]]]:
    """Return the basic blocks of runs, and how often they ran in each layer.

    Parameters
    ----------
    layers : sequence of mapping of str to (int, int, int)
        Of each layer, by the run's name: how often it ran, followed itself, was left by its branch.

    Returns
    -------
    codes : dict of str to Code
        By name.
    counts : list of dict of str to (int, int)
        Of each layer: trips, and trips less those its closing branch was taken.
    """
    entered: dict[str, set[int]] = {}
    for run in runs.values():
        entered.setdefault(run.function, set()).add(run.start)
    codes: dict[str, Code] = {}
    parts = {name: list(_cut(run, entered[run.function], codes)) for name, run in runs.items()}
    counts = []
    for layer in layers:
        sums: dict[str, list[int]] = {}
        for name, (count, again, taken) in layer.items():
            *before, last = parts[name]
            for part in before:
                sums.setdefault(part, [0, 0])[0] += count
            cell = sums.setdefault(last, [0, 0])
            cell[0] += count
            cell[1] += again + taken if runs[name].target is not None else 0
        counts.append({name: (trips, max(0, trips - back))
                       for name, (trips, back) in sums.items() if trips})
    return codes, counts


def _cut(run: Run, entered: Iterable[int], codes: dict[str, Code]) -> Iterable[str]:
    """Yield names of a run's basic blocks, and keep them."""
    places = run.places
    lines = run.code.splitlines()
    cuts = [0, *sorted(places.index(one) for one in entered
                       if run.start < one < run.end and one in places), len(places)]
    for first, after in pairwise(cuts):
        name = f"{run.function}+0x{places[first]:x}"
        last = after == len(places)
        codes[name] = Code(
            function=run.function, code="\n".join(lines[first:after]), cause=run.cause,
            loops=last and run.target == places[first])
        yield name
