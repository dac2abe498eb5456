"""One run of a program: up to where it is asked about, then once cold and once warm."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from hwmodels.board.facts import Board
from hwmodels.paths.traffic import to_plain
from hwmodels.paths.ways import code_cache, data_cache
from twin.errors import ProgramError
from twin.program.cores import open_machine
from twin.program.counting import FunctionRun, collect
from twin.program.elf import Elf
from twin.program.machine import Machine
from twin.program.parts import doubt_board, is_untold, list_touched
from twin.program.patterns import choose_layers
from twin.program.traced import go_on

MOST_LAYERS = 2000
OUTSIDE = "between layers"
MAINS = ("main", "run_firmware", "app_main")
"""Functions at which start-up is over."""
_UNREACHED = 0xFFFFFFFE


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of a program is asked about.

    Parameters
    ----------
    begin : str or None
        Symbol the measured part begins at.
    end : str or None
        Symbol it ends before; None: where the function at `begin` returns.
    call : str or None
        Symbol called once start-up is over, at main or else at `begin`.
    nth : int
        Which time `begin` is reached.
    layers : str
        As `choose_layers` takes it.
    registers : mapping of str to int
        Core registers set when the measured part begins; peripheral ones from the start.
    files : mapping of int to bytes
        Memory contents by address.
    limit : int
        Instructions, start-up included, after which a run is given up.
    observed : bool
        Whether blocks and operands are asked for (`twin.program.observing`), not traffic.
    marks : tuple of (int, int, int)
        Of what is observed: number, first address and end of what is known to lie there.
    """

    begin: str | None
    end: str | None
    call: str | None
    nth: int
    layers: str
    registers: Mapping[str, int]
    files: Mapping[int, bytes]
    limit: int
    observed: bool = False
    marks: tuple[tuple[int, int, int], ...] = ()


class Session:
    """The measured part, cut into layers.

    Parameters
    ----------
    machine : Machine
        The program.
    layers : mapping of int to str
        Names of functions whose calls are layers, by address.
    collect : callable
        (machine) -> what ran since it was asked last.
    """

    def __init__(self, machine: Machine, layers: Mapping[int, str],
                 collect: Callable[[Machine], tuple[Any, ...]]) -> None:
        self.machine, self.layers, self.collect = machine, layers, collect
        self.found: list[tuple[str, tuple[Any, ...]]] = []
        self.waiting: list[tuple[int, int]] = []
        self.inside: str | None = None
        self.outside: tuple[Any, ...] = ()
        machine.on_layer, machine.on_return = self._enter, self._leave

    def begin(self, back: int | None) -> None:
        """Count from here on, until the function entered returns to `back`."""
        self.found, self.inside, self.waiting = [], None, []
        if back is not None:
            self._await(back)

    def end(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """Return layers in order, and what ran outside of them."""
        if self.inside is not None:
            raise ProgramError(f"{self.machine.elf.path}: --to is reached inside layer "
                               f"{self.inside}; accepted: a --to behind it, or other --layers")
        rest = self.collect(self.machine)
        return (*self.found, *(((OUTSIDE if self.found else self.whole, rest),) if rest else ()))

    whole, sought = "program", ""

    def _await(self, back: int) -> None:
        self.waiting.append((back & ~1, self.machine.where_back()[1]))
        self.machine.words[self.machine.names.RETURN] = back & ~1

    def _enter(self, address: int) -> None:
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
        if not self.waiting and self.stops:
            self.machine.stop()

    stops, started = False, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the measured part ends: before an address, or where a function returns to.

    `start` is where it begins, and which time it is come to, where QEMU has to bring it there.
    """

    back: int | None
    until: int
    start: tuple[int, int] | None


def run_program(elf: Elf, board: Board, wanted: Wanted) -> dict[str, Any]:
    """Run a program and return what it did, as plain data.

    Parameters
    ----------
    elf : Elf
        The program.
    board : Board
        It runs on.
    wanted : Wanted
        Which part of it.

    Returns
    -------
    dict
        Layers cold and warm, and what was found on the way.

    Raises
    ------
    ProgramError
        When it cannot go on, or does not come to what was asked for.
    """
    machine = open_machine(elf, board, wanted.files, wanted.limit)
    opened = open_session(machine, wanted, collect)
    cold = opened.measure(empty=True)
    warm = cold
    start_up = max(opened.start_up, opened.session.started)
    measured = int(machine.words[machine.names.INSTRUCTIONS]) - start_up
    if any(one is not None for region in board.memories
           for one in (data_cache(board, region), code_cache(board, region))):
        opened.bring_back()
        warm = opened.measure(empty=False)
    peripherals = machine.peripherals
    touched = list_touched(machine.elf, peripherals.touched.items())
    return {
        "cold": _plain(cold), "warm": _plain(warm), "layers": opened.layers,
        "start_up_instructions": start_up, "instructions": measured,
        "polls": [{"register": one.register, "place": machine.elf.name_place(one.block),
                   "value": one.value} for one in peripherals.polls()],
        "unknown": sorted(machine.unknown | machine.watch.odd),
        "printed": machine.semihosting.text.decode("ascii", "replace") or peripherals.printed(),
        "exceptions": {str(number): count for number, count in machine.exceptions.taken.items()},
        "handed_over": machine.traced, "untold": is_untold(board, touched),
        "doubts": list(doubt_board(machine.elf, board, machine.stack, touched))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A program that stands where its measured part begins.

    Parameters
    ----------
    machine, session : Machine, Session
        It, and what is asked of it.
    layers : str
        Patterns that name its layers.
    start : int
        Where it stands.
    start_up : int
        Instructions up to here.
    place : _Place
        Where the part ends.
    kept : tuple
        All a program could tell apart.
    """

    machine: Machine
    session: Session
    layers: str
    start: int
    start_up: int
    place: _Place
    kept: tuple[Any, ...]

    def measure(self, *, empty: bool) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """Run the part; caches begin empty, or as they are."""
        return _measure(self.machine, self.session, self.place, empty=empty)

    def bring_back(self) -> None:
        """Have it stand where it stood."""
        _bring_back(self.machine, self.kept)
        self.machine.next = self.start


def open_session(machine: Machine, wanted: Wanted,
                 collect: Callable[[Machine], tuple[Any, ...]]) -> Opened:
    """Run a program up to its measured part.

    Raises
    ------
    ProgramError
        When it does not come there.
    """
    if machine.elf.stripped:
        for one in (wanted.begin, wanted.call, *wanted.layers.split(",")):
            if one and one.strip().lower().startswith("0x"):
                machine.add_function(machine.elf.address_of(one.strip(), "--layers"))
    elf = machine.elf
    chosen, functions = choose_layers(elf, wanted.layers)
    _set_peripherals(machine, wanted)
    machine.doing = f"start-up, up to {wanted.begin or wanted.call}"
    back = _go_to_start(machine, wanted)
    start = machine.next
    machine.counters.mark(frozenset(one.start for one in functions))
    start_up = int(machine.words[machine.names.INSTRUCTIONS])
    _set_registers(machine, wanted)
    session = Session(machine, {one.start: one.name for one in functions}, collect)
    session.sought = f"--to {wanted.end} was not reached" if wanted.end else ""
    session.whole = _name_part(elf, wanted)
    until = elf.address_of(wanted.end, "--to") if wanted.end else _UNREACHED
    session.stops = back is not None
    kept = _keep(machine)
    place = _Place(back=back, until=until, start=None)
    if machine.handed_over:
        place = replace(place, start=_find_start(machine, wanted))
    return Opened(machine=machine, session=session, layers=chosen, start=start,
                  start_up=start_up, place=place, kept=kept)


def _name_part(elf: Elf, wanted: Wanted) -> str:
    """Return what the billed part is called where nothing of it is a layer."""
    asked = wanted.call or wanted.begin or "program"
    if not asked.lower().startswith("0x"):
        return asked
    return elf.name_place(elf.address_of(asked, "--from"))


def _go_to_start(machine: Machine, wanted: Wanted) -> int | None:
    """Run up to the measured part; return the address its function returns to, None for `end`."""
    elf = machine.elf
    if wanted.call is not None:
        main = wanted.begin or next(name for name in MAINS if name in elf.symbols)
        target = elf.address_of(wanted.call, "--call")
        machine.sought = f"{main} was not reached"
        machine.run(elf.address_of(main, "--from"))
        machine.sought = ""
        back = machine.next
        machine.set("LR", back | machine.code.MODE)
        machine.next = target
        return back
    assert wanted.begin is not None
    begin = elf.address_of(wanted.begin, "--from")
    if wanted.end is not None:
        elf.address_of(wanted.end, "--to")
    for turn in range(wanted.nth):
        machine.sought = f"--from {wanted.begin} was " + (
            f"reached {turn} of {wanted.nth} times" if turn else "not reached")
        machine.instead = f"--nth up to {turn}" if turn else ""
        if turn:
            _step(machine)
        machine.run(begin)
        machine.turns_left = wanted.nth - turn
        if machine.handed_over:
            break
    machine.sought = machine.instead = ""
    return None if wanted.end else machine.get("LR")


def _step(machine: Machine) -> None:
    """Run one instruction, to come to where the program stands once more."""
    machine.machine.emu_start(machine.next | machine.code.MODE, 0xFFFFFFFE, 0, 1)
    machine.next = machine.get("PC") & ~1


def _set_peripherals(machine: Machine, wanted: Wanted) -> None:
    for name, value in wanted.registers.items():
        if name.startswith("0x"):
            machine.peripherals.registers[int(name, 16) & ~3] = value


def _set_registers(machine: Machine, wanted: Wanted) -> None:
    for name, value in name_registers(wanted.registers, machine.code.REGISTERS).items():
        machine.set(name, value)


def _find_start(machine: Machine, wanted: Wanted) -> tuple[int, int]:
    """Return where the billed part begins, for a start-up that goes on in QEMU."""
    if wanted.call is not None or any(not name.startswith("0x") for name in wanted.registers):
        raise ProgramError(
            f"{machine.elf.path}: start-up runs Helium instructions "
            f"({machine.elf.name_place(machine.next)}), so it goes on in QEMU: no --call and no "
            "--set-register of the core; accepted: --from")
    assert wanted.begin is not None
    return machine.elf.address_of(wanted.begin, "--from"), machine.turns_left


def _measure(machine: Machine, session: Session, place: _Place, *,
             empty: bool) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Run the measured part once."""
    words, names = machine.words, machine.names

    def begin() -> None:
        session.started = int(words[names.INSTRUCTIONS])
        machine.take()
        words[[names.LAST_BLOCK, names.FETCH_LINE, names.RECORDING]] = 0, -1, 1
        if empty:
            machine.recorder.empty()
        back = machine.where_back()[0] if place.start and session.stops else place.back
        session.begin(back)
        machine.sought = session.sought

    words[[names.DEPTH, names.RECORDING]] = 0
    if place.start is None:
        begin()
    machine.on_start = begin
    machine.doing = f"{'first' if empty else 'second'} pass of the billed part"
    if machine.traced:
        go_on(machine, place.until, place.back, place.start)
    else:
        machine.run(place.until)
    words[names.RECORDING] = 0
    words[names.RETURN] = -1
    found = session.end()
    if not found:
        raise ProgramError(f"{machine.elf.path}: nothing runs between --from and --to")
    return found


def _keep(machine: Machine) -> tuple[Any, ...]:
    """Return everything the program could tell apart, to run it from here again."""
    devices = {name: copy.deepcopy(getattr(machine.peripherals, name))
               for name in _DEVICE_STATE}
    head = machine.words[:machine.names.HEAD].copy()
    return (machine.machine.context_save(), machine.contents(), devices,
            list(machine.exceptions.active), head, machine.due)


_DEVICE_STATE = ("registers", "pending", "tick_start", "count_start", "ticks_seen")


def _bring_back(machine: Machine, kept: tuple[Any, ...]) -> None:
    context, memories, devices, active, head, machine.due = kept
    machine.machine.context_restore(context)
    for low, content in memories:
        machine.machine.mem_write(low, content)
    for name, value in devices.items():
        setattr(machine.peripherals, name, copy.deepcopy(value))
    machine.exceptions.active = list(active)
    machine.words[:machine.names.HEAD] = head


def _plain(layers: tuple[tuple[str, tuple[FunctionRun, ...]], ...]) -> list[dict[str, Any]]:
    return [{"name": name, "functions": [
        {**{key: value for key, value in asdict(one).items() if key != "traffic"},
         "traffic": to_plain(one.traffic)} for one in functions]} for name, functions in layers]


def name_registers(registers: Mapping[str, int], known: Mapping[str, str]) -> dict[str, int]:
    """Return what registers of a core are set to, by the emulator's names.

    Parameters
    ----------
    registers : mapping of str to int
        As `--set-register` has them; those by address are of peripherals, and left out.
    known : mapping of str to str
        The core's.

    Raises
    ------
    ProgramError
        For one the core has not.
    """
    found = {}
    for name, value in registers.items():
        if name.startswith("0x"):
            continue
        if name.upper() not in known:
            raise ProgramError(f"--set-register {name}: the core has no such register; accepted: "
                               f"{', '.join(known).lower()}, or 0xADDRESS=VALUE")
        found[known[name.upper()]] = value
    return found
