"""A program under emulation: blocks and accesses counted by function, everything else answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.core.file import list_cores, load_core
from hwmodels.program.emulator import HOOK_BLOCK, Emulator, find_function
from hwmodels.program.encodings import encoding_of
from hwmodels.program.listing import Listing
from twin.errors import ProgramError
from twin.program.armv81m import Newer
from twin.program.counters import Counters
from twin.program.elf import Elf
from twin.program.events import EVENT_ADDRESS, listen
from twin.program.exceptions import SVC, Exceptions
from twin.program.memory import map_memories, place_pieces
from twin.program.peripherals import VTOR, Peripherals
from twin.program.recorder import Recorder, list_regions
from twin.program.semihosting import Semihosting
from twin.program.watching import Watch

STOP_INSTRUCTIONS = 2000
"""What an interrupt or call of the system counts for, of the instructions a run may take."""
SWI, BREAKPOINT, RETURN_CODE = 2, 7, 8


class Machine:
    """A board's core with a program in its memories.

    Parameters
    ----------
    elf : Elf
        The program.
    board : Board
        Whose core and memories.
    files : mapping of int to bytes
        Further memory contents, by address.
    limit : int
        Instructions after which a run is given up.
    recorder : type of Recorder
        What is made of accesses.
    """

    def __init__(self, elf: Elf, board: Board, files: Mapping[int, bytes], limit: int,
                 recorder: type[Recorder] = Recorder) -> None:
        self.elf, self.board, self.limit = elf, board, limit
        self.timing = load_core(board.core.model)
        self.traits = self.timing.traits
        self.emulator, self.code = self._open(), encoding_of(elf.machine)
        self.machine, self.unicorn = self.emulator.core, self.emulator.unicorn
        self.get, self.set = self.emulator.get, self.emulator.set
        listen(self.on_event)
        self.failure: str | None = None
        self.doing = "loading the callbacks"
        self.listing = Listing(timing=self.timing, machine=elf.machine,
                               instructions=elf.instructions if self.traced else {})
        self.held = map_memories(self.machine, board, files)
        self.spans = tuple(span for span, _ in self.held)
        place_pieces(self.machine, elf, self.spans, files, board)
        self.on_layer: Callable[[int], None] | None = None
        self.on_return: Callable[[int], None] | None = None
        self.on_start: Callable[[], None] | None = None
        self.handed_over, self.turns_left, self.sought, self.instead = False, 1, "", ""
        self.unknown: set[str] = set()
        self.stack, self.next = self._find_start()
        self.recorder = recorder(board, list_regions(board, elf, self.stack))
        self.counters = Counters(elf, self.listing, self.recorder, limit, self.code)
        self.names, self.words = self.counters.names, self.counters.words
        self.words[[self.names.SELF, self.names.EVENT, self.names.READ_REGISTER]] = (
            self.words.ctypes.data, EVENT_ADDRESS, find_function("uc_reg_read"))
        self.peripherals = Peripherals(board.core, self.cycles, self._text_at, self._wake)
        self._make_parts()
        self.watch = Watch(self.emulator, self.counters, self.add_hook)
        self._hook()
        self.set("SP", self.stack)

    def _open(self) -> Emulator:
        """Return an emulator with the board's core."""
        if "unicorn" not in self.traits.emulators:
            known = [name for name in list_cores() if "unicorn" in load_core(name).traits.emulators]
            raise ProgramError(f"{self.board.name}: programs of a {self.board.core.model} are not "
                               f"run; accepted: {', '.join(known)}")
        return Emulator(self.elf.machine, self.traits.emulators["unicorn"])

    def _make_parts(self) -> None:
        """Make what the core does that the emulator leaves out."""
        self.exceptions = Exceptions(self.emulator, self.peripherals)
        self.exceptions.vectors = self.vectors
        self.peripherals.registers[VTOR] = self.vectors  # as a loader leaves it
        self.semihosting = Semihosting(self.emulator, "R0", "R1")
        if self.traced:
            self.newer = Newer(self.emulator, self.listing.instructions)

    def _find_start(self) -> tuple[int, int]:
        """Return the first stack pointer and instruction, as the vector table has them."""
        ram = [span for one in self.board.memories for span in one.spans]
        for table in self.elf.vector_tables():
            try:
                stack, entry = np.frombuffer(self.machine.mem_read(table, 8), "<u4").tolist()
            except self.unicorn.UcError:
                continue
            if entry & 1 and any(low <= entry < high for low, high in self.elf.code) \
                    and any(low < stack <= high for low, high in ram):
                self.vectors = table
                return stack, entry
        raise ProgramError(f"{self.elf.path}: no vector table whose stack is in a memory of "
                           f"{self.board.name}; accepted: a program linked for this board")

    def _hook(self) -> None:
        """Give the emulator its callbacks."""
        self.add_hook(HOOK_BLOCK, self.names.on_block)
        for base, size in self.code.DEVICES:
            self.machine.mmio_map(base, size, self._read_device, base, self._write_device, base)
        self.machine.hook_add(self.unicorn.UC_HOOK_INTR, self._on_interrupt)
        self.machine.hook_add(self.unicorn.UC_HOOK_MEM_INVALID, self._on_invalid)

    def add_hook(self, kind: int, callback: Any, begin: int = 1, end: int = 0) -> None:
        """Have native code called, everywhere or from one address to another."""
        self.emulator.add_hook(kind, callback, self.words, begin, end)

    def read(self, address: int, size: int) -> bytes:
        """Return what memory holds."""
        return bytes(self.machine.mem_read(address, size))

    def contents(self) -> list[tuple[int, bytes]]:
        """Return all there is of memories, each with its first address."""
        return [(low, self.read(low, high - low)) for low, high in self.spans]

    def where_back(self) -> tuple[int, int]:
        """Return the address the function just entered returns to, and the stack there."""
        if not self.traced:
            return self.get("LR") & ~1, self.get("SP")
        depth, calls = (int(self.words[self.names.DEPTH]), self.words[self.names.CALLS_AT])
        return int(self.words[calls + depth - 1]) if depth else -2, -depth

    @property
    def traced(self) -> bool:
        """Whether QEMU runs the billed part: Unicorn lacks instructions of the core."""
        return "qemu" in self.traits.emulators

    def _here(self) -> int:
        """Address of the block that runs."""
        return int(self.words[self.words[self.names.LAST_BLOCK] + self.names.ADDRESS])

    def _read_device(self, _: Any, offset: int, size: int, base: int) -> int:
        value = self.peripherals.read(base + offset, size, self._here())
        if self.peripherals.stuck is not None:
            word, block = self.peripherals.stuck
            self.fail(f"{self.elf.name_place(block)} waits for register 0x{word:08x}, and no value "
                      "ends its loop; accepted: --set-register SYMBOL=VALUE, or a --from beyond")
        return value

    def _write_device(self, _: Any, offset: int, size: int, value: int, base: int) -> None:
        self.peripherals.write(base + offset, size, value, self._here())

    def _on_interrupt(self, _: Any, number: int, data: Any) -> None:
        """Note what stopped the core; `run` acts on it."""
        self._stopped = number
        self.machine.emu_stop()

    def _on_invalid(self, _: Any, kind: int, address: int, size: int, value: int,
                    data: Any) -> bool:
        what = {17: "write to", 20: "write to", 21: "jump to", 18: "jump to"}.get(kind, "read of")
        if address >= self.code.RETURN_CODES:
            return False
        self.fail(f"{what} 0x{address & 0xFFFFFFFF:08x} in {self.elf.name_place(self._here())}: "
                  f"{self.board.name} has nothing there; accepted: --memory FILE@ADDRESS for what "
                  "was read there")
        return False

    def on_event(self, kind: int, address: int, size: int) -> int:
        """Answer the native callbacks; an exception would be lost here."""
        try:
            return self._answer(kind, address, size)
        except Exception as error:
            self.fail(str(error))
            return 0

    def _answer(self, kind: int, address: int, size: int) -> int:
        names = self.names
        if kind == names.NEW_BLOCK:
            if self.read(address, size) == self.code.ENDLESS and not self.peripherals.pending \
                    and address != self.words[names.RETURN] \
                    and self.peripherals.next_tick() is None:
                self.fail(f"stays in {self.elf.name_place(address)} for ever, come from "
                          f"{self.elf.name_place(self._here())}{self.sought and '; '}{self.sought}")
            if self.elf.stripped and self.counters.begins_function(address):
                self.add_function(address)
            return self.counters.add_block(address, self.read(address, size))
        if kind == names.FULL:
            self.counters.drain()
        elif kind == names.UNREAD:
            return self.watch.read_block(address, size)
        elif kind == names.TIMER:
            return self._look_at_time(address)
        elif kind == names.LAYER and self.on_layer is not None:
            self.on_layer(address)
        elif kind == names.RETURNED and self.on_return is not None:
            self.on_return(address)
        elif kind == names.STARTED and self.on_start is not None:
            self.on_start()
        elif kind == names.OVERRUN:
            self.fail(f"{self.sought}{self.sought and ' in '}{self.limit:,} instructions and no "
                      f"end, last in {self.elf.name_place(address)}; accepted: "
                      f"{self.instead or 'another --from or --to'}, or more with --limit")
        elif kind == names.ODD_BLOCK:
            self.fail(f"runs at 0x{address:08x}, where the program has no code; came from "
                      f"{self.elf.name_place(self._here())}")
        return 0

    def add_function(self, address: int) -> None:
        """Have a function begin at an address, of a program without symbols."""
        self.elf = self.counters.elf = self.elf.with_function(address)

    def fail(self, why: str) -> None:
        """Stop at once; the first reason stands."""
        self.failure = self.failure or f"{self.elf.path}: {why}"
        self.stop()

    def stop(self) -> None:
        """Stop before the block that is about to run."""
        self.words[self.names.STOPPING] = 1
        self.machine.emu_stop()

    def _text_at(self, address: int) -> str:
        size = self.counters.size_at(address)
        return "" if size is None else self.listing.text(address, self.read(address, size))

    def cycles(self) -> int:
        """Modelled cycles so far, waiting on memories left out."""
        return int(self.words[self.names.CYCLES]) // self.names.SCALE

    def _wake(self) -> None:
        self.words[self.names.ALARM] = 0

    def _set_alarm(self) -> None:
        tick = self.peripherals.next_tick()
        soon = self.cycles() + 64 if self.peripherals.pending else 1 << 50
        self.words[self.names.ALARM] = min(soon, tick or 1 << 50) * self.names.SCALE
        self.due = tick

    due: int | None = None

    def _look_at_time(self, address: int) -> int:
        """Pend what is due; stop before the block where an interrupt is to be taken."""
        if self.due is not None and self.cycles() >= self.due:
            self.exceptions.tick()
        self._set_alarm()
        if self.exceptions.next() is None:
            return 0
        self.machine.emu_stop()
        return 1

    _stopped: int | None = None
    stops = 0

    def run(self, until: int) -> None:
        """Go on until an address is reached or `stop` was called.

        Raises
        ------
        ProgramError
            When the program cannot go on.
        """
        self.words[self.names.STOPPING] = 0
        self.watch.stop_at(until)
        while self.failure is None and not self.words[self.names.STOPPING]:
            self._stopped = None
            try:
                self.machine.emu_start(self.next | self.code.MODE, until)
            except self.unicorn.UcError as error:
                self._explain(str(error))
                if self.failure is None and not self.words[self.names.STOPPING]:
                    continue
            place = self.get("PC")
            self.next = place & 0xFFFFFFFE
            if self.failure is not None or self.words[self.names.STOPPING]:
                break
            if place & ~1 == until and self._stopped is None and not self.watch.stale:
                break
            if not self.watch.translate_anew():
                self._go_on(place)
        self.check()

    def check(self) -> None:
        """Raise what the program failed of."""
        if self.failure is not None:
            raise ProgramError(self.failure)

    def _go_on(self, place: int) -> None:
        """Do what the core does where Unicorn stops: exceptions, semihosting, sleep."""
        self._spend(place)
        if self._stopped == SWI:
            self.next = self.exceptions.enter(SVC, place) & ~1
        elif self._stopped == RETURN_CODE:
            if self.words[self.names.RETURN] == place & ~1 and self.on_return is not None:
                self.on_return(place & ~1)
            self.next = self.exceptions.leave(place) & ~1
            self._set_alarm()
        elif self._stopped == BREAKPOINT:
            self.next = place + 2
            if self._ends(place):
                self.fail(f"the program ended in {self.elf.name_place(place)} before what was "
                          "asked for was reached")
        elif self._stopped is not None:
            self._explain(f"exception {self._stopped}")
        else:
            number = self.exceptions.next()
            if number is None:
                self._sleep(place)
                number = self.exceptions.next()
            if number is not None:
                self.next = self.exceptions.enter(number, place) & ~1

    def _spend(self, place: int) -> None:
        """Count a stop among the instructions a run may take."""
        self.stops += 1
        if self.stops * STOP_INSTRUCTIONS + self.words[self.names.INSTRUCTIONS] > self.limit:
            self.on_event(self.names.OVERRUN, place, 0)

    def _ends(self, place: int) -> bool:
        """Serve a breakpoint; whether it asks to end, or has no debugger to go to."""
        try:
            return self.machine.mem_read(place, 1)[0] != 0xAB or self.semihosting.serve()
        except self.unicorn.UcError:
            return True

    def _sleep(self, place: int) -> None:
        """Wait for an interrupt: SysTick's comes, others nobody sends."""
        if self.read(place - 2, 2) != b"\x30\xbf":
            return  # no WFI; of WFE, an event may always have come
        tick = self.peripherals.next_tick()
        if tick is None and not self.peripherals.pending:
            self.fail(f"sleeps in {self.elf.name_place(place - 2)} for an interrupt of a "
                      "peripheral, which nobody sends")
        elif tick is not None and not self.peripherals.pending:
            self.words[self.names.CYCLES] = tick * self.names.SCALE
            self.exceptions.tick()
            self._set_alarm()

    def _explain(self, why: str) -> None:
        """Say where and at which instruction the emulator gave up; with Helium QEMU goes on."""
        place = self.get("PC") & ~1
        text = ""
        try:
            code = self.read(place, 4)
            text = f" at {code[:2][::-1].hex()} {code[2:][::-1].hex()}"
            if code[1] in (0xEC, 0xED, 0xEE, 0xEF, 0xFC, 0xFD, 0xFE, 0xFF) and self.traced:
                self.handed_over = True
                self.next = place
                self.stop()
                return
        except self.unicorn.UcError:
            pass
        self.fail(f"cannot go on in {self.elf.name_place(place)}: {why}{text}")

    def take(self) -> tuple[Any, ...]:
        """Return what was counted, for `restore`, and begin anew; caches keep their contents."""
        held = self.exceptions
        counted = held.entries, held.returns, held.words_moved
        held.entries = held.returns = held.words_moved = 0
        return self.counters.take(), counted

    def restore(self, taken: tuple[Any, ...]) -> None:
        """Go on counting where `take` left off."""
        counts, counted = taken
        held = self.exceptions
        held.entries, held.returns, held.words_moved = counted
        self.counters.restore(counts)
