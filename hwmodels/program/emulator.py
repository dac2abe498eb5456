"""The one harness of Unicorn: an emulated core, its registers by name, native callbacks."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from hwmodels.errors import KernelError, need_extra
from hwmodels.isa import MACHINES

HOOK_CODE, HOOK_BLOCK, HOOK_READ, HOOK_WRITE = 4, 8, 1024, 2048


class Emulator:
    """A core of Unicorn.

    Parameters
    ----------
    machine
        Kind of machine code that has a `unicorn`.
    model
        The emulator's of the core: `unicorn` of a core's file.

    Raises
    ------
    ToolMissingError
        Without Unicorn.
    """

    def __init__(self, machine: str, model: str) -> None:
        self.unicorn = import_unicorn()
        self.constants = import_module(f"unicorn.{machine}_const")
        facts = MACHINES[machine].unicorn
        self.prefix, self.short = machine.upper(), facts.get("names", {})
        cpu = getattr(self.constants, facts["cpus"] + model)
        self.all = [self.number(name) for name in facts["registers"]]
        self.core: Any = self.unicorn.Uc(getattr(self.unicorn, facts["arch"]), sum(
            getattr(self.unicorn, mode) for mode in facts["modes"]))
        self.core.ctl_set_cpu_model(cpu)

    def number(self, name: str) -> int:
        """Return the emulator's number of a register."""
        return int(getattr(self.constants, f"UC_{self.prefix}_REG_{self.short.get(name, name)}"))

    def get(self, name: str) -> int:
        """Return a register, 32 bits."""
        return int(self.core.reg_read(self.number(name))) & 0xFFFFFFFF

    def get_all(self) -> tuple[int, ...]:
        """Return the registers a program computes with."""
        return tuple(self.core.reg_read_batch(self.all))

    def set(self, name: str, value: int) -> None:
        """Set a register."""
        self.core.reg_write(self.number(name), value & 0xFFFFFFFF)

    def add_hook(self, kind: int, callback: Any, words: Any, begin: int = 1, end: int = 0) -> None:
        """Have native code called with an array, everywhere or from one address to another.

        Unicorn's own `hook_add` takes Python functions only, and has no public name for the handle
        its library wants.

        Raises
        ------
        KernelError
            When Unicorn refuses.
        """
        library = import_module("unicorn.unicorn_py3.unicorn").uclib
        status = library.uc_hook_add(
            self.core._uch, ctypes.byref(ctypes.c_size_t()), kind,
            ctypes.cast(callback.address, ctypes.c_void_p), ctypes.c_void_p(words.ctypes.data),
            ctypes.c_uint64(begin), ctypes.c_uint64(end))
        if status:
            raise KernelError(f"Unicorn refuses a hook ({status})")


def merge_pages(spans: Iterable[Sequence[int]], page: int) -> list[list[int]]:
    """Return the fewest spans of whole pages that hold others: first address, and the end."""
    merged: list[list[int]] = []
    for low, high in sorted((low // page * page, -(-high // page) * page) for low, high in spans):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return merged


def import_unicorn() -> ModuleType:
    """Return Unicorn.

    Raises
    ------
    ToolMissingError
        Without Unicorn.
    """
    with need_extra("emulated boards", "unicorn", "boards"):
        return import_module("unicorn")


def find_function(function: str) -> int:
    """Return the address of a function of Unicorn's library, for native callbacks to call."""
    library = import_module("unicorn.unicorn_py3.unicorn").uclib
    return ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0
