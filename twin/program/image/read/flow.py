"""Machine code as blocks, the ways between them, and natural loops."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from hwmodels.errors import need_extra
from hwmodels.frozen import entity, frozen
from hwmodels.isa.mnemonics import CONDITIONS
from hwmodels.program.listing import Listed
from twin.errors import FirmwareError
from twin.program.elf import Elf, Function
from twin.program.image.read.operations import compile_operation
from twin.program.image.read.sources import (
    LR,
    PC,
    REGISTERS,
    Operation,
    register_list,
    split_operands,
)

_BRANCH = re.compile(r"^b(" + "|".join(CONDITIONS) + r")?(?:\.[nw])?$")
_RETURNS = re.compile(r"^(pop|ldmia|ldm|bx|ldr)(" + "|".join(CONDITIONS) + r")?(?:\.[nw])?$")


@frozen
class Ending:
    """How a block ends.

    Parameters
    ----------
    kind
        "fall", "jump", "branch", "call", "return", "loop_end", "loop_start" or "far_jump", a jump
        into another function.
    condition
        Of a branch or return; "" for none.
    target
        Where it goes; 0 where that is not written in it.
    register
        Compared with zero by cbz and cbnz, counted by loops; -1: the flags decide.
    by_vectors
        Whether a loop's end counts the elements of a vector, not turns.
    """

    kind: str
    condition: str = ""
    target: int = 0
    register: int = -1
    by_vectors: bool = False


@entity
class CodeBlock:
    """A run of instructions entered at its start only.

    Parameters
    ----------
    operations
        What they do; of the last one, what is no branching.
    """

    function: Function
    start: int
    end: int
    listing: tuple[Listed, ...]
    operations: tuple[Operation, ...]
    ending: Ending

    @cached_property
    def text(self) -> str:
        """Assembly text."""
        return "\n".join(one.text for one in self.listing)


class Region:
    """Blocks of a function, or of a loop, and the loops among them.

    A loop is a set of blocks each of which reaches every other; its header is where it was entered,
    so a loop with two ways in is one loop for each. Loops inside it are those its blocks still
    make when the header is taken out.

    Parameters
    ----------
    header
        Where a loop was entered; -1 for a whole function.
    """

    def __init__(self, blocks: Mapping[int, CodeBlock], starts: frozenset[int],
                 header: int = -1) -> None:
        self.blocks, self.starts, self.header = blocks, starts, header
        self._inner: dict[int, Region | None] = {}
        self._parts: dict[int, frozenset[int]] | None = None

    def loop_at(self, start: int) -> Region | None:
        """Return the loop inside this region that is entered at a block, if there is one."""
        if start not in self._inner:
            if self._parts is None:
                self._parts = _find_circles(self.blocks, self.starts - {self.header})
            part = self._parts.get(start)
            self._inner[start] = None if part is None else Region(self.blocks, part, start)
        return self._inner[start]


class Code:
    """The code of an image, read function by function as it is asked for."""

    def __init__(self, image: Elf) -> None:
        self.image = image
        self._functions: dict[Function, Region] = {}

    def enter(self, address: int) -> Region:
        """Return the blocks of the function that begins at an address.

        Raises
        ------
        FirmwareError
            When it lies in none.
        """
        function = self.image.function_at(address)
        if function is None:
            raise FirmwareError(f"{self.image.path}: no function at 0x{address:08x}")
        if function not in self._functions:
            blocks = read_blocks(self.image, function)
            self._functions[function] = Region(blocks, frozenset(blocks))
        return self._functions[function]

    @property
    def functions(self) -> tuple[Function, ...]:
        """Functions entered."""
        return tuple(self._functions)


def read_blocks(image: Elf, function: Function) -> dict[int, CodeBlock]:
    """Take a function apart.

    Raises
    ------
    FirmwareError
        When it has a jump whose targets are not known.
    """
    endings, leaders = {}, {function.start}
    listed = [image.instructions[a] for a in range(function.start, function.end, 2)
              if a in image.instructions]
    for one in listed:
        ending = _ending(one, function)
        if ending is not None:
            endings[one.address] = ending
            leaders.add(one.address + one.size_bytes)
            if function.start <= ending.target < function.end:
                leaders.add(ending.target)
    blocks: dict[int, CodeBlock] = {}
    run: list[Listed] = []
    for place, one in enumerate(listed):
        run.append(one)
        behind = one.address + one.size_bytes
        following = listed[place + 1].address if place + 1 < len(listed) else -1
        if one.address in endings or following in leaders or following != behind:
            ending = endings.get(one.address, Ending(kind="fall"))
            work = run if ending.kind in ("fall", "return", "loop_start") else run[:-1]
            blocks[run[0].address] = CodeBlock(
                function=function, start=run[0].address, end=behind, listing=tuple(run),
                ending=ending, operations=tuple(compile_operation(each) for each in work
                                 if not each.mnemonic.startswith("bx")))
            run = []
    return blocks


def _ending(one: Listed, function: Function) -> Ending | None:
    """Return how an instruction ends its block, None when it does not."""
    tokens = split_operands(one.operands)
    branch = _BRANCH.match(one.mnemonic)
    if branch:
        target = int(tokens[0], 16)
        if not function.start <= target < function.end:
            if branch[1]:
                raise FirmwareError(f"0x{one.address:08x}: a conditional jump out of "
                                    f"{function.name}")
            return Ending(kind="far_jump", target=target)
        return Ending(kind="branch" if branch[1] else "jump", condition=branch[1] or "",
                      target=target)
    if one.mnemonic in ("cbz", "cbnz"):
        return Ending(kind="branch", condition="eq" if one.mnemonic == "cbz" else "ne",
                      target=int(tokens[1], 16), register=REGISTERS[tokens[0]])
    if one.mnemonic == "bl":
        return Ending(kind="call", target=int(tokens[0], 16))
    name = one.mnemonic.split(".")[0]
    if name in ("le", "letp"):
        return Ending(kind="loop_end", condition="gt", target=int(tokens[-1], 16), register=LR,
                      by_vectors=name == "letp")
    if name in ("wls", "wlstp"):
        return Ending(kind="loop_start", condition="eq", target=int(tokens[-1], 16),
                      register=REGISTERS[tokens[1]])
    return _return(one, tokens)


def _return(one: Listed, tokens: list[str]) -> Ending | None:
    match = _RETURNS.match(one.mnemonic)
    if match and (tokens == ["lr"] or tokens[:2] == ["pc", "[sp]"]
                  or (tokens[-1].startswith("{") and PC in register_list(tokens[-1]))):
        return Ending(kind="return", condition=match[2] or "")
    if one.mnemonic.startswith(("blx", "bx", "tbb", "tbh")) \
            or tokens[:1] == ["pc"]:
        raise FirmwareError(f"0x{one.address:08x}: {one.text!r} is a jump this reader does not "
                            "follow")
    return None


def successors(block: CodeBlock) -> tuple[int, ...]:
    """Return starts of the blocks that may follow within the function."""
    kind, target = block.ending.kind, block.ending.target
    if kind == "jump":
        return (target,)
    if kind in ("branch", "loop_end", "loop_start"):
        return (target, block.end)
    if kind == "far_jump" or (kind == "return" and not block.ending.condition):
        return ()
    return (block.end,)


def _find_circles(blocks: Mapping[int, CodeBlock],
                  starts: frozenset[int]) -> dict[int, frozenset[int]]:
    """Blocks that reach themselves, each with all that it reaches and that reach it.

    Strongly connected components of the graph of `successors`.
    """
    with need_extra("loops of an image", "networkx", "boards"):
        import networkx
    ways = networkx.DiGraph()
    ways.add_nodes_from(starts)
    ways.add_edges_from((start, one) for start in starts for one in successors(blocks[start])
                        if one in starts)
    parts: dict[int, frozenset[int]] = {}
    for part in networkx.strongly_connected_components(ways):
        if len(part) > 1 or any(ways.has_edge(one, one) for one in part):
            parts |= dict.fromkeys(part, frozenset(part))
    return parts
