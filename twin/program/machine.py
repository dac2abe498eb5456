"""A program under emulation: blocks and accesses counted by function, everything else answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hwmodels.board.facts import Board
from hwmodels.core.file import list_cores, load_core
from hwmodels.program.elf import lies_in
from hwmodels.program.emulator import HOOK_BLOCK, HOOK_CODE, Emulator, find_function
from hwmodels.program.encodings import encoding_of
from hwmodels.program.listing import Listing
from twin.errors import ProgramError
from twin.program.armv81m import Newer
from twin.program.bus import Bus
from twin.program.counters import Counters
from twin.program.elf import Elf
from twin.program.events import EVENT_ADDRESS, listen
from twin.program.exceptions import SVC, Exceptions
from twin.program.memory import READ_WRITE_RUN, address_of, find_vectors, map_memories, place_pieces
from twin.program.peripherals import VTOR, Peripherals
from twin.program.recorder import Recorder, list_regions
from twin.program.rom import Rom
from twin.program.semihosting import Semihosting
from twin.program.waiting import Waiting
from twin.program.watching import Watch

MOST_RESETS = 8
"""A program may ask for before its billed part."""
STOP_INSTRUCTIONS = 2000
"""What an interrupt or call of the system counts for, of the instructions a run may take."""
SWI, BREAKPOINT, RETURN_CODE, NO_COPROCESSOR = 2, 7, 8, 17
SLEEP, SLEEP_FOR_EVENT, SEND_EVENT = b"\x30\xbf", b"\x20\xbf", b"\x40\xbf"


class Machine:
    """A board's core with a program in its memories.

    Parameters
    ----------
    files
        Further memory contents, by address.
    limit
        Instructions after which a run is given up.
    recorder
        What is made of accesses.
    """

    accepts = "arm"
    """Kind of machine code it runs."""
    has_events = True

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
        self.spans = tuple(span for span, _, _ in self.held)
        self.writable = [(span, pages) for span, pages, rights in self.held
                         if rights == READ_WRITE_RUN]
        place_pieces(self.machine, elf, self.spans, files, board)
        self.on_layer: Callable[[int], None] | None = None
        self.on_return: Callable[[int], None] | None = None
        self.on_start: Callable[[], None] | None = None
        self.handed_over, self.turns_left, self.sought, self.instead = False, 1, "", ""
        self.resets_left, self.unknown = MOST_RESETS, set[str]()
        self.stack_and_entry = self.stack, self.next = self._find_start()
        self.recorder = recorder(board, list_regions(board, elf, self.stack))
        self.counters = Counters(elf, self.listing, self.recorder, limit, self.code,
                                 [*elf.constants, *(span for span, _ in self.writable)])
        self.names, self.words = self.counters.names, self.counters.words
        self.counters.add_spaces((*span, address_of(pages)) for span, pages, _ in self.held)
        self.words[[self.names.SELF, self.names.EVENT, self.names.READ_REGISTER]] = (
            self.words.ctypes.data, EVENT_ADDRESS, find_function("uc_reg_read"))
        self.peripherals = Peripherals(board, self.cycles, self._text_at, self.wake)
        self._make_parts()
        self.waiting, self.bus, self.rom = Waiting(self), Bus(self), Rom(self)
        self.watch = Watch(self.emulator, self.counters, self.add_hook)
        self._hook()
        self.set("SP", self.stack)
        if not self.traced:
            self.set_alarm()

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
        self.vectors, stack, entry = find_vectors(self.machine, self.elf, self.board)
        return stack, entry

    def _hook(self) -> None:
        """Give the emulator its callbacks."""
        self.add_hook(HOOK_BLOCK, self.names.on_block)
        self.bus.map()
        for address in self.elf.find_halfwords(SEND_EVENT) if self.has_events else ():
            self.machine.hook_add(HOOK_CODE, self._send_event, begin=address, end=address)
        self.machine.hook_add(self.unicorn.UC_HOOK_INTR, self._on_interrupt)

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

    def here(self) -> int:
        """Address of the block that runs."""
        return int(self.words[self.words[self.names.LAST_BLOCK] + self.names.ADDRESS])

    def _on_interrupt(self, _: Any, number: int, data: Any) -> None:
        """Note what stopped the core; `run` acts on it."""
        self._stopped = number
        self.machine.emu_stop()

    def _send_event(self, _: Any, address: int, size: int, data: Any) -> None:
        self.waiting.event = True

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
            if self.waiting.is_endless(address) and address != self.words[names.RETURN] and (
                    self.waiting.is_error(address) or (
                        not self.peripherals.pending and self.peripherals.next_event() is None)):
                self.waiting.fail_in_loop(address)
            if not lies_in(address, self.elf.code):
                code = self.read(address, size)  # a program put it into RAM
                if not any(code):
                    self._refuse_place(address)
                    return 0
                if self.elf.function_at(address) is None:
                    self.elf = self.counters.elf = self.elf.with_copy(address, code)
            if self.elf.stripped and self.counters.begins_function(address):
                self.add_function(address)
            return self.counters.add_block(address, self.read(address, size))
        if kind == names.FULL:
            self.counters.drain()
        elif kind in (names.UNREAD, names.DOUBT):
            return self.watch.read_block(address, size, kind == names.UNREAD)
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
        elif kind == names.ODD_BLOCK and self.rom.holds(address):
            self.machine.emu_stop()
        elif kind == names.ODD_BLOCK:
            self._refuse_place(address)
        return 0

    def _refuse_place(self, address: int) -> None:
        self.fail(f"runs at 0x{address:08x}, where the program has no code; came from "
                  f"{self.elf.name_place(self.here())}")

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
        """Modelled cycles so far, waiting on memories omitted."""
        return int(self.words[self.names.CYCLES]) // self.names.SCALE

    def pass_time(self, cycles: int) -> None:
        """Let the clock go on while nothing that is counted runs."""
        self.words[self.names.CYCLES] += cycles * self.names.SCALE
        self.wake()

    def wake(self) -> None:
        """Have callbacks ask for the time before the next block."""
        self.words[self.names.ALARM] = 0

    def set_alarm(self) -> None:
        """Say when callbacks have to ask for the time again: in modelled cycles, or at once."""
        now, due = self.cycles(), self.peripherals.next_event()
        soon = 64 if self.peripherals.ready() else self.waiting.patience
        self.words[self.names.ALARM] = 0 if self.waiting.watched else min(
            now + soon, due or 1 << 50) * self.names.SCALE

    def _look_at_time(self, address: int) -> int:
        """Pend what is due; stop before the block where an interrupt is to be taken."""
        self.peripherals.fire()
        if self.exceptions.next() is not None:
            self.waiting.leave()
        elif self.traced or not self.waiting.look(address):
            self.set_alarm()
            return 0
        self.set_alarm()
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
            if self.peripherals.reset_wanted:
                self._uncount(place)
                self._reset()
            elif self._stopped is None and self.rom.holds(place):
                self.next = self.rom.serve(place) or place
            elif not self.waiting.pass_turns() and not self.watch.translate_anew():
                self._go_on(place)
        self.check()

    def _uncount(self, place: int) -> None:
        """Count a block up to the store at a place only: the reset it asks for ends it."""
        rest = self.read(place & ~1, max(int(self.words[self.names.LAST_END]) - (place & ~1), 0))
        self.words[self.names.INSTRUCTIONS] -= max(len(self.code.measure_instructions(rest)) - 1, 0)

    def _reset(self) -> None:
        """Start again as the program asks for, with what is in memory."""
        if self.words[self.names.RECORDING] or not self.resets_left:
            self.fail(f"resets itself in {self.elf.name_place(self.here())}"
                      f"{self.sought and '; '}{self.sought}")
        self.resets_left -= 1
        self.peripherals.reset()
        self.peripherals.registers[VTOR] = self.vectors
        self.exceptions.active.clear()
        for name in ("CONTROL", "IPSR", "PRIMASK", "BASEPRI"):
            self.set(name, 0)
        self.set("SP", self.stack)
        self.next = self.stack_and_entry[1] & ~1

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
            self.set_alarm()
        elif self._stopped == BREAKPOINT:
            self.next = place + 2
            if self._ends(place):
                self.fail(f"the program ended in {self.elf.name_place(place)} before what was "
                          "asked for was reached")
        elif self._stopped == NO_COPROCESSOR and self.bus.has_coprocessor(place):
            self.next = place + 4
        elif self._stopped is not None:
            self._explain(f"exception {self._stopped}")
        else:
            if self.exceptions.next() is None and self.read(place - 2, 2) == SLEEP:
                self.waiting.sleep(place - 2, for_event=False)
            self._interrupt(place)

    def _interrupt(self, place: int) -> None:
        """Enter the handler of what may be taken now; else go on at a place."""
        number = self.exceptions.next()
        self.next = place if number is None else self.exceptions.enter(number, place) & ~1

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

    def _explain(self, why: str) -> None:
        """Say where and at which instruction the emulator gave up; with Helium QEMU goes on."""
        place = self.get("PC") & ~1
        text = ""
        try:
            code = self.read(place, 4)
            if self.read(place - 2, 2) == SLEEP_FOR_EVENT:
                self._spend(place)
                self.waiting.sleep(place - 2, for_event=True)
                self._interrupt(place)
                return
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
        """Return what was counted, for `restore`, and start again; caches keep their contents."""
        held = self.exceptions
        counted = held.entries, held.returns, held.words_moved
        held.entries = held.returns = held.words_moved = 0
        return self.counters.take(), counted, self.waiting.take()

    def restore(self, taken: tuple[Any, ...]) -> None:
        """Go on counting where `take` left off."""
        counts, counted, (self.waiting.sleeps, self.waiting.slept_cycles) = taken
        held = self.exceptions
        held.entries, held.returns, held.words_moved = counted
        self.counters.restore(counts)
