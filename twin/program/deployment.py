"""A program as a deployment: what it did stands where kernels of a network would be lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from hwmodels.board.facts import FLASH_ROLES, Board
from hwmodels.counts import (
    COPYING,
    CORE_EVENTS,
    Bill,
    Counts,
    Prices,
    make_bill,
    merge_bills,
    merge_counts,
)
from hwmodels.frozen import entity, frozen
from hwmodels.paths.arrays import lay_out
from hwmodels.paths.exposure import expose, to_counts
from hwmodels.paths.timing import read_timing
from hwmodels.paths.traffic import KernelTraffic
from hwmodels.prices import add_background
from hwmodels.program.elf import lies_in
from hwmodels.quantities import Settings, list_by_key, sum_by_key
from twin.deployment.core import Core
from twin.deployment.costs import Costs, LayerCost
from twin.deployment.deployment import Deployment, PriceOnCore
from twin.deployment.draft import KEPT
from twin.deployment.placement import Placement
from twin.errors import UsageError
from twin.network.graph import Graph, Layer, Tensor
from twin.network.operators import FUNCTION
from twin.program.asking import Wanted
from twin.program.counting import Found, FunctionRun
from twin.program.elf import Elf
from twin.program.finding import find_program
from twin.program.image.compile.image_sizes import MemoryUse, share_memories
from twin.program.part import load_part
from twin.program.patterns import call_layer, name_kind, name_library
from twin.program.session import OUTSIDE
from twin.runtimes import Runtime
from twin.runtimes.runtime import COPY

RUNTIME = Runtime(
    name="program", version="elf", description="machine code of a program, run under emulation",
    library="program", dtypes=(), structure="open", drops_dead_channels=False,
    dispatches_aliases=False, in_place=(), parameters_in="weights", dispatch_cycles=0.0,
    setup_cycles_per_op=0.0, setup_cycles_per_channel=0.0, code_bytes=0, ram_bytes=0,
    alignment_bytes=1, efficiency={}, target="twin.program.deployment:ProgramTarget")


@frozen
class FunctionCost:
    """What one function costs in one layer.

    Parameters
    ----------
    layer
        Position of the layer.
    bill
        Without what being powered costs meanwhile.
    """

    layer: int
    run: FunctionRun
    counts: Counts
    bill: Bill


@entity
class Program(Deployment):
    """A program on a board.

    Parameters
    ----------
    elf
        Its file.
    wanted
        Which part of it is billed.
    """

    elf: Elf
    wanted: Wanted
    found: Found

    @cached_property
    def executed(self) -> Graph:
        """The layers, which nothing rewrites."""
        return self.graph

    @cached_property
    def placement(self) -> Placement:
        """Nothing is planned: a program has its places."""
        return Placement(arena=(), arena_bytes=0, live_bytes=(0,) * len(self.graph.layers),
                         peak_layer=0, parameter_bytes=0, weight_offsets=(), weights_bytes=0)

    @cached_property
    def memory_uses(self) -> tuple[MemoryUse, ...]:
        """What the file takes of each memory of the board, by the rule of `twin firmware build`."""
        inside = [one for one in self.elf.parts if any(
            lies_in(one.address, memory.spans) for memory in self.board.memories)]
        return share_memories(
            [(one.address, one.size_bytes, one.stored) for one in inside],
            [(runs, loaded, len(content)) for loaded, runs, content in self.elf.pieces],
            self.board) or ()

    @property
    def memory_bytes(self) -> dict[str, int]:
        """Bytes taken of each memory."""
        return {one.name: one.used_bytes for one in self.memory_uses}

    @cached_property
    def ram_parts(self) -> dict[str, int]:
        """Bytes of RAM by what lies there: an arena where a symbol or a section is named so."""
        parts = dict.fromkeys(("arena", "data", "stack", "constants", "code"), 0)
        for one in self.elf.parts:
            if any(lies_in(one.address, self.board.memory(name).spans)
                   for name in self.ram_memories):
                parts[one.content] += one.size_bytes
                if one.content == "data":
                    within = sum(min(end, one.address + one.size_bytes) - max(start, one.address)
                                 for start, end in self.elf.arenas
                                 if one.address <= start < one.address + one.size_bytes)
                    parts["arena"] += within
                    parts["data"] -= within
        parts[KEPT] = sum(one.kept_bytes for one in self.memory_uses if not one.flash)
        return parts

    @property
    def ram_memories(self) -> frozenset[str]:
        """Memories that are written, of those the file has a part in."""
        return frozenset(name for name in (*self.memory_bytes, self.arena)
                         if self.board.memory(name).role not in FLASH_ROLES)

    @property
    def flash_bytes(self) -> int:
        """Bytes the file loads into flash; none of a program that is loaded into RAM."""
        return sum(one.used_bytes for one in self.memory_uses if one.flash)

    def replace(self, overrides: Settings | None = None, /, **fields: object) -> Program:
        """Return the program on a changed board.

        Raises
        ------
        UsageError
            For what a program has decided itself: its kernels, and where things lie.
        """
        changed = replace(self, **fields)  # type: ignore[arg-type]
        board = change_settings(changed.board, overrides or {})
        return deploy_program(changed.elf, board, changed.wanted)


def change_settings(board: Board, overrides: Settings) -> Board:
    """Return a board as dotted paths change it.

    Raises
    ------
    UsageError
        For what a program has decided itself: its kernels, and where things lie.
    """
    from hwmodels.board.file import change_board
    from twin.deployment.changes import ChangeBoard, parse_changes

    nothing = Graph(name="program", source="", sha256="", tensors=(), layers=(), inputs=(),
                    outputs=())
    for change in parse_changes(overrides, nothing, board, RUNTIME) if overrides else ():
        if not isinstance(change, ChangeBoard):
            raise UsageError("--set: of a program the board can be changed, not what is linked "
                             "into it; accepted: paths of the board file")
        board = change_board(board, change.settings)
    return board


class ProgramTarget(Core):
    """A core that runs a program as it is."""

    executes = True

    def price(self, deployment: Deployment, prices: Prices, price_on_core: PriceOnCore, *,
              cold: bool) -> Costs:
        """Price what every function did, and sum it by layer."""
        assert isinstance(deployment, Program)
        by_layer = list_by_key((cost.layer, cost) for cost in self.price_functions(
            deployment, prices, cold=cold))
        return tuple(_sum(deployment.board, prices, by_layer[place])
                     for place in sorted(by_layer)), ()

    def price_functions(self, program: Deployment, prices: Prices, *,
                        cold: bool) -> tuple[FunctionCost, ...]:
        """Return what every function costs in every layer, most instructions of a layer first.

        Parameters
        ----------
        cold
            Caches were empty before.
        """
        assert isinstance(program, Program)
        layers = program.found.cold if cold else program.found.warm
        flat = [(place, run) for place, (_, runs) in enumerate(layers) for run in runs]
        counted: dict[int, Counts] = {}
        for memory in dict.fromkeys(run.code_memory for _, run in flat):
            chosen = [at for at, (_, run) in enumerate(flat) if run.code_memory == memory]
            arrays = lay_out([flat[at][1].traffic for at in chosen], program.board, memory)
            exposed = expose(arrays, read_timing(program.board, arrays.places))
            counted |= dict(zip(chosen, to_counts(arrays, *exposed), strict=True))
        kinds = [name_kind([run.family for run in runs]) for _, runs in layers]
        scaled = {kind: scale_family(prices, program.runtime.efficiency, kind)
                  for kind in dict.fromkeys(kinds)}
        return tuple(FunctionCost(layer=place, run=run, counts=counted[at],
                                  bill=make_bill(counted[at], scaled[kinds[place]]))
                     for at, (place, run) in enumerate(flat))

    def executed_traffic(self, deployment: Deployment, *, cold: bool) -> tuple[KernelTraffic, ...]:
        """Return what every function did, in the order of the layers."""
        assert isinstance(deployment, Program)
        layers = deployment.found.cold if cold else deployment.found.warm
        return tuple(run.traffic for _, runs in layers for run in runs)

    def name_kernels(self, deployment: Deployment) -> str:
        """Return the library whose kernels the program has, by their names."""
        assert isinstance(deployment, Program)
        return name_library(deployment.elf)

    def remarks(self, deployment: Deployment, temperature: str) -> Iterator[str]:
        """Say what of the run was guessed."""
        assert isinstance(deployment, Program)
        found, part = deployment.found, load_part(deployment.board.soc)
        yield from found.doubts
        for poll in found.polls:
            yield (f"{poll['place']} waited for {part.name(poll['register'])}: it was answered "
                   f"0x{poll['value']:08x}"
                   + (", and how long it waits there is missing in these figures"
                      if poll["billed"] else ""))
        if found.untimed:
            yield ("done at once, so how long it takes is missing in these figures: "
                   + ", ".join(found.untimed))
        if found.unknown:
            yield ("taken as moves, for the core's table does not know them: "
                   + ", ".join(found.unknown))
        taken = sum(found.exceptions.values())
        if taken:
            yield (f"{taken:,} interrupts or calls of the system were taken, start-up included"
                   if taken > 1 else
                   "1 interrupt or call of the system was taken, start-up included")
        if found.handed_over:
            yield ("Helium ran in QEMU, where peripherals answer what was last written, no "
                   "interrupt comes and cycle counters stand still")


def scale_family(prices: Prices, efficiency: Mapping[str, float], family: str) -> Prices:
    """Return prices with a family's factor on what a core executes; copies have their own."""
    if not efficiency:
        return prices
    factor = efficiency.get(COPY, 1.0)
    copies = {(event, COPYING): replace(price, cycles=price.cycles * factor, place=COPYING,
                                        pj=None if price.pj is None else price.pj * factor)
              for (event, place), price in prices.table.items()
              if event in CORE_EVENTS and not place}
    return Prices({**prices.scaled(CORE_EVENTS, efficiency.get(family, 1.0)).table, **copies})


def _sum(board: Board, prices: Prices, costs: Sequence[FunctionCost]) -> LayerCost:
    return LayerCost(
        bill=add_background(merge_bills(cost.bill for cost in costs), board, prices),
        counts=merge_counts(cost.counts for cost in costs),
        kernels=tuple(cost.run.name for cost in costs),
        families=tuple(cost.run.family for cost in costs),
        instructions=sum(cost.run.traffic.instructions for cost in costs),
        accesses=sum(cost.run.traffic.accesses for cost in costs),
        misses=sum(cost.run.traffic.misses for cost in costs))


def deploy_program(elf: Elf, board: Board, wanted: Wanted) -> Program:
    """Run a program on a board, and return it with what it did.

    Parameters
    ----------
    elf
        From `read_elf`.
    wanted
        Which part of it is billed.

    Raises
    ------
    ProgramError
        When it cannot be run to the end of what was asked for.
    """
    found = find_program(elf, board, wanted)
    places = dict(board.placement)
    return Program(
        graph=_make_graph(elf, wanted, found), board=board, runtime=RUNTIME, elf=elf, wanted=wanted,
        found=found, code=_most_used(found),
        weights=_most_held(elf, board, constant=True) or _by_role(board, places["weights"]),
        arena=_most_held(elf, board, constant=False) or _by_role(board, places["arena"]))


def _most_used(found: Found) -> str:
    """Memory most instructions are fetched from."""
    counts = sum_by_key((run.code_memory, run.traffic.instructions)
                        for _, runs in found.warm for run in runs)
    return max(counts, key=lambda name: counts[name])


def _most_held(elf: Elf, board: Board, *, constant: bool) -> str:
    """Memory that holds most bytes of what is never written, or of variables; "" for none."""
    held = sum_by_key(
        (one.name, part.size_bytes) for part in elf.parts for one in board.memories
        if ((part.address, part.address + part.size_bytes) in elf.constants) == constant
        and (constant or one.role not in FLASH_ROLES)
        and any(start <= part.address < end for start, end in one.spans))
    return max(held, key=lambda name: held[name], default="")


def _by_role(board: Board, role: str) -> str:
    from twin.deployment.memories import choose_memory

    return choose_memory(board, role).name


def _name_part(elf: Elf, wanted: Wanted) -> str:
    """Return what pictures and tables call a program: the billed function, and its file."""
    part = wanted.call or wanted.begin or ""
    if wanted.end and not wanted.call:
        part += f" to {wanted.end}"
    return f"{part} of {elf.path.name}" if part else elf.path.name


def _make_graph(elf: Elf, wanted: Wanted, found: Found) -> Graph:
    """Return layers as a graph: of each the bytes it loads and stores, and its products."""
    tensors: list[Tensor] = []
    layers = []
    accumulates = any(run.traffic.mac_lanes for _, runs in found.warm for run in runs)
    for index, (name, runs) in enumerate(found.warm):
        operands = [one for run in runs for one in run.traffic.data.counts.operands]
        tensors += [Tensor(name=f"{name} {way}", shape=(size,), dtype="int8") for way, size in (
            ("loads", sum(one.read_bytes for one in operands)),
            ("stores", sum(one.write_bytes for one in operands)))]
        macs = sum(run.traffic.mac_lanes if accumulates else run.products for run in runs)
        called = OUTSIDE if name == OUTSIDE else call_layer(
            [(run.name, run.family) for run in runs])
        layers.append(Layer(index=index, name=name, op=FUNCTION, inputs=(2 * index,),
                            outputs=(2 * index + 1,), options=(("called", called), ("macs", macs))))
    return Graph(name=_name_part(elf, wanted), source=str(elf.path), sha256=elf.sha256,
                 tensors=tuple(tensors), layers=tuple(layers), inputs=(), outputs=())
