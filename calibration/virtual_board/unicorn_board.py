"""A board inside the Unicorn emulator: real firmware, counters from planted costs.

    with run_unicorn("unicorn-m4", "firmware.elf", costs=costs_of(board)) as made:
        link = Link(made.port)

Emulation runs in a thread; at each block and access native code counts (`kernels.hooks`), so a
network runs at tens of millions of instructions a second. The counters the firmware reads are
DWT's: CYCCNT, and the five of 8 bits made to fulfil Arm's identity cycles = instructions + CPI +
LSU + SLEEP + EXC - FOLD.
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import threading
import tty
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibration.collecting.deadline import patient
from calibration.virtual_board.costs import SCALE, Costs
from calibration.virtual_board.emulator_state import EmulatorState
from calibration.virtual_board.image_file import read_image
from hwmodels.core.file import list_cores, load_core
from hwmodels.frozen import frozen
from hwmodels.isa import load_isa
from hwmodels.program.emulator import HOOK_BLOCK, HOOK_READ, HOOK_WRITE, Emulator, find_function
from hwmodels.program.listing import Listing

CONSOLE, CONSOLE_SIZE = 0x40004000, 0x1000
DATA, WAITING, HERTZ, COLD, MARK = 0x00, 0x04, 0x08, 0x0C, 0x10
PRIVATE, PRIVATE_SIZE = 0xE0000000, 0x100000
CYCCNT, DWT_EVENTS, CPUID, AIRCR = 0x1004, 0x1008, 0xED00, 0xED0C
RESET_KEY = 0x05FA0004


@frozen
class Totals:
    """What the core did since it started.

    Parameters
    ----------
    cycles
        By the planted costs.
    accesses
        Position in the trace.
    pin
        Level of the mark.
    """

    cycles: float
    instructions: int
    loads: int
    stores: int
    read_misses: int
    write_misses: int
    write_backs: int
    fetch_misses: int
    accesses: int
    pin: int


class UnicornBoard:
    """An emulated core with an image; use `run_unicorn`."""

    def __init__(self, name: str, image: str | Path, costs: Costs, *, trace_limit: int = 0) -> None:
        self.name, self.costs = name, costs
        self._traits = load_core(list_emulated()[name]).traits
        self.failure: str | None = None
        self._image = read_image(image)
        self._incoming: collections.deque[int] = collections.deque()
        self._pin = 0
        self._ended = threading.Event()
        self._registers: dict[int, int] = {}
        start, end = self._image.code
        self.state = EmulatorState(costs, start, end, trace_limit)
        timing = load_core(costs.core) if costs.core is not None else None
        self.listing = Listing(timing=timing, machine=load_isa(self._traits.isa).machine)
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        tty.setraw(self._master)
        self.port = os.ttyname(self._slave)
        self._build()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _build(self) -> None:
        self._emulator = Emulator(load_isa(self._traits.isa).machine,
                                  self._traits.emulators["unicorn"])
        self._machine = self._emulator.core
        for base, size in self._image.memories:
            self._machine.mem_map(base, size)
        self._machine.mmio_map(CONSOLE, CONSOLE_SIZE, self._read_console, None,
                               self._write_console, None)
        self._machine.mmio_map(PRIVATE, PRIVATE_SIZE, self._read_private, None,
                               self._write_private, None)
        self._hook()
        self._reset()

    def _hook(self) -> None:
        """Give the emulator the native callbacks."""
        from calibration.virtual_board.kernels import hooks

        self.state.words[[hooks.SELF, hooks.READ_REGISTER, hooks.WRITE_REGISTER]] = (
            self.state.words.ctypes.data, find_function("uc_reg_read"),
            find_function("uc_reg_write"))
        self._emulator.add_hook(HOOK_BLOCK, hooks.on_block, self.state.words)
        self._emulator.add_hook(HOOK_READ | HOOK_WRITE, hooks.on_access, self.state.words)

    def _reset(self) -> None:
        """Load the image and start it where its vectors say."""
        for address, data in self._image.pieces:
            self._machine.mem_write(address, data)
        stack, entry = np.frombuffer(self._machine.mem_read(self._image.vectors, 8), "<u4")
        self._emulator.set("SP", int(stack))
        self._next = int(entry) | 1
        self._registers.clear()

    # ---- the emulated core's view ----

    def _read_console(self, _: Any, offset: int, size: int, data: Any) -> int:
        if offset == DATA:
            return self._incoming.popleft() if self._incoming else 0
        if offset == WAITING:
            self._collect(0.0)
            return len(self._incoming)
        return int(self.costs.clock_hz) if offset == HERTZ else 0

    def _write_console(self, _: Any, offset: int, size: int, value: int, data: Any) -> None:
        if offset == DATA:
            with contextlib.suppress(OSError):
                os.write(self._master, bytes((value & 0xFF,)))
        elif offset == COLD:
            self.state.empty_caches()
        elif offset == MARK:
            self._pin = value

    def _read_private(self, _: Any, offset: int, size: int, data: Any) -> int:
        if offset == CYCCNT:
            return int(self.totals().cycles) & 0xFFFFFFFF
        if DWT_EVENTS <= offset < DWT_EVENTS + 20:
            return self.dwt_events()[(offset - DWT_EVENTS) // 4] & 0xFF
        if offset == CPUID:
            return self._traits.cpuid
        return self._registers.get(offset, 0)

    def _write_private(self, _: Any, offset: int, size: int, value: int, data: Any) -> None:
        self._registers[offset] = value
        if offset == AIRCR and value == RESET_KEY:
            self._registers[AIRCR] = 0
            self._reset_wanted = True
            self._machine.emu_stop()

    _reset_wanted = False

    def dwt_events(self) -> tuple[int, ...]:
        """Return CPICNT, EXCCNT, SLEEPCNT, LSUCNT, FOLDCNT, before they are cut to 8 bits."""
        totals = self.totals()
        waiting = int(self.state.stall / SCALE)
        served = int(self.costs.disturbance.interrupt_cycles(self._worked))
        extra = int(totals.cycles) - totals.instructions - waiting - served
        return max(extra, 0), served, 0, waiting, max(-extra, 0)

    def totals(self) -> Totals:
        """Return what the core did so far."""
        cycles, instructions = self.state.count(self._cost)
        self._worked = cycles
        cycles += self.costs.disturbance.extra_cycles(cycles)
        state = self.state
        return Totals(cycles=cycles, instructions=instructions, loads=state.loads,
                      stores=state.stores, read_misses=state.read_misses,
                      write_misses=state.write_misses, write_backs=state.write_backs,
                      fetch_misses=state.fetch_misses, accesses=state.traced, pin=self._pin)

    def gauges(self) -> dict[str, tuple[float, str]]:
        """Return what only grows, for a `Campaign`; ask while the firmware waits."""
        totals = self.totals()
        values = {"instructions": totals.instructions, "loads": totals.loads,
                  "stores": totals.stores}
        if self.costs.data is not None:
            values |= {"dcache_accesses": self.state.data_touches,
                       "dcache_misses": totals.read_misses + totals.write_misses,
                       "dcache_write_backs": totals.write_backs}
        return {name: (float(value), "events") for name, value in values.items()}

    def _cost(self, address: int, size: int) -> tuple[int, float, float, float]:
        cost = self.listing.cost(address, bytes(self._machine.mem_read(address, size)))
        return (cost.instructions, cost.single_cycles, cost.again_cycles, cost.taken_cycles)

    # ---- the thread ----

    def _collect(self, timeout_s: float) -> None:
        """Take what has come on the line."""
        if select.select([self._master], [], [], timeout_s)[0]:
            with contextlib.suppress(OSError):
                self._incoming.extend(os.read(self._master, 4096))

    def _run(self) -> None:
        unicorn = self._emulator.unicorn
        while not self._ended.is_set():
            if self._reset_wanted:
                self._reset_wanted = False
                self._reset()
            try:
                self._machine.emu_start(self._next, 0xFFFFFFFF)
            except unicorn.UcError as error:
                place = self._emulator.get("PC")
                self.failure = f"{self.name}: {error} at 0x{place:08x}"
                return
            if self._reset_wanted:
                continue
            self._next = self._emulator.get("PC") | 1  # it waits for interrupts
            while not (self._incoming or self._ended.is_set() or self._reset_wanted):
                self._collect(0.02)

    def start(self) -> None:
        """Begin to run."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the line."""
        self._ended.set()
        self._machine.emu_stop()
        self._thread.join(patient(5.0))
        os.close(self._master)
        os.close(self._slave)


def list_emulated() -> Mapping[str, str]:
    """Return the cores that are virtual boards in Unicorn, by name of the board."""
    return {board: core for core in list_cores()
            if (board := load_core(core).traits.emulators.get("board"))}


@contextlib.contextmanager
def run_unicorn(name: str, image: str | Path, *, costs: Costs | None = None,
                ) -> Iterator[UnicornBoard]:
    """Run an image on an emulated core for as long as the context lasts.

    Parameters
    ----------
    name
        Key of `list_emulated`, the port the image was built for.
    image
        ELF file.
    costs
        Planted; by default every instruction takes a cycle.

    Raises
    ------
    LinkError
        When the image cannot be run.
    ToolMissingError
        Without Unicorn.
    """
    board = UnicornBoard(name, image, costs or Costs())
    board.start()
    try:
        yield board
    finally:
        board.stop()
