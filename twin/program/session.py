"""One run of a program: up to where it is asked about, then once cold and once warm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hwmodels.board.facts import Board
from hwmodels.paths.ways import code_cache, data_cache
from twin.errors import ProgramError
from twin.program.asking import Wanted
from twin.program.cores import open_machine
from twin.program.counting import Found, collect
from twin.program.doubts import doubt_board
from twin.program.elf import Elf
from twin.program.machine import Machine
from twin.program.patterns import choose_layers, name_layer
from twin.program.startup import find_start, go_to_start, set_registers
from twin.program.traced import go_on

MOST_LAYERS = 2000
OUTSIDE = "between layers"
_UNREACHED = 0xFFFFFFFE


class Session:
    """The measured part of a program, cut into layers; once made it stands where that begins.

    Parameters
    ----------
    collect
        (machine) -> what ran since it was asked last.

    Raises
    ------
    ProgramError
        When the program does not come to that part.
    """

    def __init__(self, machine: Machine, wanted: Wanted,
                 collect: Callable[[Machine], tuple[Any, ...]]) -> None:
        self.machine, self.collect = machine, collect
        if machine.elf.stripped:
            for one in (wanted.begin, wanted.call, *wanted.layers.split(",")):
                if one and one.strip().lower().startswith("0x"):
                    machine.add_function(machine.elf.address_of(one.strip(), "--layers"))
        self.patterns, functions = choose_layers(machine.elf, wanted.layers)
        self.layers = {one.start: name_layer(one) for one in functions}
        self.back = go_to_start(machine, wanted)
        machine.counters.mark(frozenset(self.layers))
        set_registers(machine, wanted)
        self.until = _UNREACHED
        self.sought = ""
        self.inside: str | None = None
        if wanted.end:
            self.until = machine.elf.address_of(wanted.end, "--to")
            self.sought = f"--to {wanted.end} was not reached"
        self.whole = _name_part(machine.elf, wanted)
        # Where it begins, and which time it is come to, where QEMU has to bring it there.
        self.begins = find_start(machine, wanted) if machine.handed_over else None
        self.started = 0
        self.start, self.kept = machine.next, _keep(machine)
        machine.on_layer, machine.on_return = self.enter, self._leave
        machine.on_start = self._begin

    def measure(self, *, empty: bool) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """Run the part; return layers in order, and what ran outside of them.

        Parameters
        ----------
        empty
            Whether caches begin empty, or as they are.
        """
        machine, words, names = self.machine, self.machine.words, self.machine.names
        self.empty = empty
        words[[names.DEPTH, names.RECORDING]] = 0
        if self.begins is None:
            self._begin()
        machine.doing = f"{'first' if empty else 'second'} pass of the billed part"
        if machine.traced:
            go_on(machine, self.until, self.back, self.begins)
        else:
            machine.run(self.until)
        words[names.RECORDING] = 0
        words[names.RETURN] = -1
        machine.peripherals.polling.billed = False
        if self.inside is not None:
            raise ProgramError(f"{machine.elf.path}: --to is reached inside layer "
                               f"{self.inside}; accepted: a --to behind it, or other --layers")
        rest = self.collect(machine)
        if rest:
            self.found.append((OUTSIDE if self.found else self.whole, rest))
        if not self.found:
            raise ProgramError(f"{machine.elf.path}: nothing runs between --from and --to")
        return tuple(self.found)

    def bring_back(self) -> None:
        """Have the program stand where it stood."""
        _bring_back(self.machine, self.kept)
        self.machine.next = self.start

    def _begin(self) -> None:
        """Count from here on, until the function entered returns."""
        machine, words, names = self.machine, self.machine.words, self.machine.names
        self.started = int(words[names.INSTRUCTIONS])
        machine.take()
        words[[names.LAST_BLOCK, names.FETCH_LINE, names.RECORDING]] = 0, -1, 1
        machine.peripherals.polling.billed = True
        if self.empty:
            machine.recorder.empty()
        self.found: list[tuple[str, tuple[Any, ...]]] = []
        self.waiting: list[tuple[int, int]] = []
        self.inside = None
        self.outside: tuple[Any, ...] = ()
        if self.back is not None:
            self._await(self.back if self.begins is None else machine.where_back()[0])
        machine.sought = self.sought

    def _await(self, back: int) -> None:
        self.waiting.append((back & ~1, self.machine.where_back()[1]))
        self.machine.words[self.machine.names.RETURN] = back & ~1

    def enter(self, address: int) -> None:
        """Begin a layer where one of their functions is entered, outside of others."""
        if self.inside is not None or address not in self.layers \
                or not self.machine.words[self.machine.names.RECORDING]:
            return
        if len(self.found) >= MOST_LAYERS:
            sought = self.machine.sought
            raise ProgramError(
                f"more than {MOST_LAYERS:,} layers{f', and {sought}' if sought else ''}; "
                f"accepted: {'another --to, ' if sought else ''}--layers of fewer functions, or "
                "none")
        self.outside = self.machine.take()
        self.inside = self.layers[address]
        self._await(self.machine.where_back()[0])

    def _leave(self, address: int) -> None:
        """Close what returns here: several at once where the last call of a function is a jump."""
        stack = self.machine.where_back()[1]
        while self.waiting and self.waiting[-1][0] == address and stack >= self.waiting[-1][1]:
            self.waiting.pop()
            if self.inside is not None:
                self.found.append((self.inside, self.collect(self.machine)))
                self.machine.restore(self.outside)
                self.inside = None
        self.machine.words[self.machine.names.RETURN] = self.waiting[-1][0] if self.waiting else -1
        if not self.waiting and self.back is not None:
            self.machine.stop()


def run_program(elf: Elf, board: Board, wanted: Wanted) -> Found:
    """Run a program and return what it did.

    Raises
    ------
    ProgramError
        When it cannot go on, or does not come to what was asked for.
    """
    machine = open_machine(elf, board, wanted.files, wanted.limit)
    session = Session(machine, wanted, collect)
    cold = session.measure(empty=True)
    warm = cold
    start_up = session.started
    measured = int(machine.words[machine.names.INSTRUCTIONS]) - start_up
    if any(one is not None for region in board.memories
           for one in (data_cache(board, region), code_cache(board, region))):
        session.bring_back()
        warm = session.measure(empty=False)
    peripherals = machine.peripherals
    return Found(
        cold=cold, warm=warm, layers=session.patterns, start_up_instructions=start_up,
        instructions=measured,
        polls=tuple({"register": one.register, "place": machine.elf.name_place(one.block),
                     "value": one.value, "billed": one.billed}
                    for one in peripherals.polling.polls()),
        unknown=tuple(sorted(machine.unknown | machine.watch.odd)),
        printed=machine.semihosting.text.decode("ascii", "replace") or peripherals.printed(),
        exceptions={str(number): count for number, count in machine.exceptions.taken.items()},
        untimed=(*peripherals.name_untimed(), *(
            f"{name} of the boot ROM ({count:,} calls)" for name, count in
            sorted(machine.rom.called.items()))),
        handed_over=machine.traced,
        doubts=tuple(doubt_board(machine.elf, board, peripherals.touched)))


def _name_part(elf: Elf, wanted: Wanted) -> str:
    """Return what the billed part is called where nothing of it is a layer."""
    asked = wanted.call or wanted.begin or "program"
    if not asked.lower().startswith("0x"):
        return asked
    return elf.name_place(elf.address_of(asked, "--from"))


def _keep(machine: Machine) -> tuple[Any, ...]:
    """Return everything the program could tell apart, to run it from here again."""
    head = machine.words[:machine.names.HEAD].copy()
    return (machine.machine.context_save(), machine.contents(), machine.peripherals.keep(),
            list(machine.exceptions.active), head)


def _bring_back(machine: Machine, kept: tuple[Any, ...]) -> None:
    context, memories, devices, active, head = kept
    machine.machine.context_restore(context)
    for low, content in memories:
        machine.machine.mem_write(low, content)
    machine.peripherals.bring_back(devices)
    machine.exceptions.active = list(active)
    machine.words[:machine.names.HEAD] = head
