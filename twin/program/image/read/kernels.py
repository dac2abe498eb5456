"""Kernels of a built image: blocks with trip counts, and accesses as nests."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from hwmodels.frozen import frozen
from hwmodels.kernel import (
    Access,
    Block,
    Kernel,
    Loop,
    Lowered,
    Nest,
    Nests,
    Operand,
    Operands,
    split_runs,
)
from twin.deployment.placement import Placement
from twin.network.graph import Graph, GraphLayer, Layer
from twin.network.operators import is_alias, layer_macs
from twin.program.elf import Elf
from twin.program.image.compile.plan import Image
from twin.program.image.read.flow import CodeBlock
from twin.program.image.read.stack import layer_stack_pointer
from twin.program.image.read.values import Value
from twin.program.image.read.walk import Event, Step, Touch, Turns, Walker
from twin.runtimes.firmware import FAMILIES, is_pointwise

TABLE_ENTRIES = 256
"""Of a table that is looked up by int8 values."""

LINE_BYTES = 32
"""Of most cores' data caches."""

_CAUSES = {"copy_": "data_copy", "run_": "kernel_call"}
"""Cause of all blocks of a function, by how its name begins."""


@frozen
class Extent:
    """A piece of memory with a name: where accesses of a layer may go."""

    name: str
    role: str
    start: int


MemoryOf = Callable[[int], str]
"""Name of the board's memory that holds an address."""

Around = tuple[tuple[int, int], ...]
"""Index and turns of each loop around an access."""


def read_kernels(image: Elf, graph: Graph, placement: Placement, constants: Image,
                 memory_of: MemoryOf) -> tuple[Lowered, ...]:
    """Return the kernel of every layer, as the image has it; an alias has none.

    Parameters
    ----------
    image
        Of the network, for a Cortex-M.
    placement
        The arena it was built with.
    constants
        The constants it was built with.
    memory_of
        Address -> name of the board's memory.

    Returns
    -------
    tuple of tuple of Kernel
        One tuple per layer.

    Raises
    ------
    FirmwareError
        When data decide where a kernel goes, or it has instructions that are not understood.

    Notes
    -----
    Trips and addresses come from `walk`. Blocks are the image's own text, but for
    conditional branches that are taken out of a straight run: those stand as jumps. What is left
    out: reading the counters and choosing the layer, which no kernel does.
    """
    walker = Walker(image, layer_stack_pointer(image))
    return tuple(
        () if is_alias(layer) else (_read_kernel(walker, graph, layer, position, _find_extents(
            image, graph, layer, position, placement, constants), memory_of),)
        for position, layer in enumerate(graph.layers))


def _read_kernel(walker: Walker, graph: Graph, layer: Layer, position: int,
                 extents: Sequence[Extent], memory_of: MemoryOf) -> Kernel:
    events = walker.follow(f"run_{position}")
    trips: dict[CodeBlock, list[int]] = {}
    count_steps(events, 1, trips)
    functions = tuple(dict.fromkeys(block.function for block in trips))  # as they were entered
    nests, operands = place_accesses(events, extents, memory_of)
    family = FAMILIES.get(layer.op, "activation")
    if family == "conv" and is_pointwise(GraphLayer(graph, layer)):
        family = "pointwise"
    called = [one for one in functions if not one.name.startswith(("run_", "copy_"))]
    return Kernel(
        name=called[0].name if called else functions[0].name, family=family, nests=nests,
        operands=operands, useful_macs=layer_macs(graph, layer),
        code_bytes=sum(block.end - block.start for block in trips),
        blocks=tuple(made for block in sorted(trips, key=lambda one: one.start)
                     for made in _make_blocks(block, *trips[block])))


def count_steps(events: Iterable[Event], times: int, trips: dict[CodeBlock, list[int]]) -> None:
    """Add up, by block, how often it runs and how often its closing branch is taken."""
    for event in events:
        if isinstance(event, Step):
            counts = trips.setdefault(event.block, [0, 0])
            counts[0] += times
            counts[1] += times * event.taken
        elif isinstance(event, Turns):
            count_steps(event.body, times * event.count, trips)
            if event.last is not None:
                # The last turn leaves where the others went on.
                trips[event.last.block][1] += times * (1 - 2 * event.last.taken)


def _make_blocks(block: CodeBlock, trips: int, taken: int) -> Iterator[Block]:
    """Split off runs of a loop left by a branch, ending in a jump; a loop of one block is one."""
    function, ending = block.function, block.ending
    cause = next((cause for start, cause in _CAUSES.items() if function.name.startswith(start)),
                 None)
    name = f"{function.name}+0x{block.start - function.start:x}"
    yield from split_runs(
        Block(name=name, code=block.text, trips=trips, entries=trips - taken, cause=cause),
        loops=ending.target == block.start or ending.kind == "loop_end",
        jump=f"b 0x{ending.target:x}")


# ---- accesses ----

def _find_extents(image: Elf, graph: Graph, layer: Layer, position: int,
                  placement: Placement, constants: Image) -> tuple[Extent, ...]:
    """Where a layer's data lie, in order of address; each goes on to where the next begins."""
    weights, arena = image.symbols["model_weights"], image.sections[".model_arena"][0]
    found = [Extent(name="constants", role="parameters", start=0)]
    for place, tensor in enumerate(layer.inputs):
        if tensor in constants.weights:
            found.append(Extent(name=f"weights{place}", role="weights",
                                start=weights + constants.weights[tensor]))
    found += [Extent(name=name, role=role, start=weights + offsets[position])
              for name, role, offsets in (("bias", "bias", constants.bias),
                                          ("parameters", "parameters", constants.parameters),
                                          ("table", "parameters", constants.table))
              if position in offsets]
    named = [(tensor, f"input{place}", "input") for place, tensor in enumerate(layer.inputs)]
    named += [(tensor, f"output{place}", "output") for place, tensor in enumerate(layer.outputs)]
    for tensor, name, role in (*named, (-1 - position, "scratch", "scratch")):
        slot = placement.slot(tensor) if tensor >= 0 or role == "scratch" else None
        if slot is not None:
            found.append(Extent(name=name, role=role, start=arena + slot.offset_bytes))
    found.append(Extent(name="stack", role="scratch", start=image.sections[".stack"][0]))
    # An operand read twice, or a bias in its tensor's place, is one piece of memory.
    return tuple(sorted({one.start: one for one in found}.values(), key=lambda one: one.start))


def place_accesses(events: Sequence[Event], extents: Sequence[Extent],
                   memory_of: MemoryOf) -> tuple[Nests, Operands]:
    """Return nests of accesses, and the operands they touch from first byte to last.

    Parameters
    ----------
    extents
        By address; the first begins before all others.
    memory_of
        Address -> name of the board's memory.

    Notes
    -----
    An access whose place data decide walks through its table, of an entry for each int8 value, in
    steps that touch as many lines as entries drawn evenly would on average; or stays where it
    begins when the loop has more turns than the table entries. One whose place nobody knows is
    taken to lie on the stack.
    """
    placer = _Placer(extents)
    nests, spans = placer.place(events, ()), placer.spans
    operands = tuple(
        Operand(name=one.name, role=one.role, memory=memory_of(one.start + spans[one.name][0]),
                address=one.start + spans[one.name][0],
                size_bytes=spans[one.name][1] - spans[one.name][0])
        for one in extents if one.name in spans)
    return _rebase(nests, {name: low for name, (low, _) in spans.items()}), operands


def _rebase(nests: Sequence[Nest], lows: dict[str, int]) -> Nests:
    """Offsets from an operand's first byte that is touched."""
    return tuple([
        Loop(extent=nest.extent, body=_rebase(nest.body, lows)) if isinstance(nest, Loop)
        else Access(operand=nest.operand, write=nest.write, width_bytes=nest.width_bytes,
                    offset_bytes=nest.offset_bytes - lows[nest.operand],
                    steps_bytes=nest.steps_bytes) for nest in nests])


class _Placer:
    """Events as nests over named pieces of memory; from which byte to which each is touched."""

    def __init__(self, extents: Sequence[Extent]) -> None:
        self.extents = extents
        self.starts = [one.start for one in extents]
        self.spans: dict[str, list[int]] = {}

    def place(self, events: Sequence[Event], around: Around) -> Nests:
        """Nests of events inside loops of (index, turns)."""
        nests: list[Nest] = []
        for event in events:
            if isinstance(event, Touch):
                nests.append(self._access(event, around))
            elif isinstance(event, Turns):
                loops = around if event.count == 1 else (*around, (event.index, event.count))
                body = self.place(event.body, loops)
                if event.count == 1:
                    nests += body
                elif body:
                    nests.append(Loop(extent=event.count, body=body))
        return tuple(nests)

    def _access(self, touch: Touch, around: Around) -> Access:
        address, steps = _line_of(touch.address, around)
        if address is None:
            address = next(one.start for one in self.extents if one.name == "stack")
        place = bisect_right(self.starts, address) - 1
        extent = self.extents[place]
        if touch.scattered and around:
            steps[-1] = _scattered_step(touch.size_bytes, around[-1][1])
        offset = address - extent.start
        self._widen(extent.name, offset, touch.size_bytes, steps, around)
        return Access(operand=extent.name, write=touch.write, width_bytes=touch.size_bytes,
                      offset_bytes=offset, steps_bytes=tuple(steps))

    def _widen(self, name: str, low: int, size_bytes: int, steps: Sequence[int],
               around: Around) -> None:
        """Let an operand reach as far as an access does over its loops."""
        end = low + size_bytes
        for step, (_, turns) in zip(steps, around, strict=True):
            if step > 0:
                end += step * (turns - 1)
            elif step:
                low += step * (turns - 1)
        span = self.spans.setdefault(name, [low, end])
        if low < span[0]:
            span[0] = low
        if end > span[1]:
            span[1] = end


def _scattered_step(size_bytes: int, turns: int) -> int:
    """Step by which a loop visits m (1 - (1 - 1/m)^turns) of the m lines of a table of data."""
    lines = TABLE_ENTRIES * size_bytes / LINE_BYTES
    visited = lines * (1 - (1 - 1 / lines) ** turns)
    step = max(1, round(visited * LINE_BYTES / turns / size_bytes)) * size_bytes
    return step if step * turns <= TABLE_ENTRIES * size_bytes else 0


def _line_of(value: Value, around: Sequence[tuple[int, int]]) -> tuple[int | None, list[int]]:
    """Address in the first turn of every loop, and step of each loop."""
    if type(value) is tuple:
        terms = dict(value[1])
        return value[0], [terms.get(one[0], 0) for one in around]
    return (value if type(value) is int else None), [0] * len(around)
