"""Machines of QEMU as boards: started with an image, ended whatever happens.

Facts (QEMU 7.2, `-icount`): DWT and PMU read zero, so firmware counts a timer; each instruction
takes 2^shift ns of virtual time, so instructions = ticks x (1e9 / timer Hz) / 2^shift, exactly.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from calibration.errors import LinkError
from calibration.virtual_board.child import ChildBoard, run_child
from hwmodels.core.file import load_core
from hwmodels.errors import ToolMissingError
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen
from hwmodels.isa import load_isa

_PTY = re.compile(rb"char device redirected to (\S+)[^\n]*")


@frozen
class Machine:
    """A machine QEMU emulates.

    Parameters
    ----------
    name
        QEMU's name.
    port
        The firmware's port for it, the name it is asked for by.
    shift
        Virtual time of an instruction is 2^shift ns; a multiple of the timer's period is exact.
    """

    name: str
    port: str
    core: str
    shift: int = 7
    options: Sequence[str] = ()

    @property
    def program(self) -> str:
        """The emulator of its core's machine code."""
        return str(load_isa(load_core(self.core).traits.isa).code.qemu["program"])

    @property
    def advice(self) -> str:
        """How its emulator is installed."""
        code = load_isa(load_core(self.core).traits.isa).code
        return f"apt-get install {code.qemu['package']}"

    def instructions_per_tick(self, timer_hz: int) -> float:
        """Return instructions per tick of the timer the firmware counts."""
        return 1e9 / timer_hz / (1 << self.shift)


MACHINES: Mapping[str, Machine] = {port: Machine(port=port, **facts) for port, facts in
                                   read_yaml_once(Path(__file__).with_name("qemu.yaml")).items()}
"""Machines there are ports for, by port."""


def find_program(machine: Machine) -> str:
    """Return the path of the QEMU that has a machine.

    Raises
    ------
    ToolMissingError
        Naming the Debian package.
    """
    found = shutil.which(machine.program)
    if found is None:
        raise ToolMissingError(f"{machine.program} is not installed: {machine.advice}, or use a "
                               "unicorn-* board")
    return found


@contextlib.contextmanager
def run_qemu(name: str, image: str | Path) -> Iterator[ChildBoard]:
    """Run an image on a machine for as long as the context lasts.

    Parameters
    ----------
    name
        Key of `MACHINES`.
    image
        ELF file.

    Raises
    ------
    LinkError
        When QEMU refuses; with what it said.
    ToolMissingError
        When it is not installed.
    """
    machine = MACHINES[name]
    if not Path(image).is_file():
        raise LinkError(f"{image}: no such image")
    command = [find_program(machine), "-M", machine.name, "-kernel", str(image), *machine.options,
               "-display", "none", "-monitor", "none", "-serial", "pty",
               "-icount", f"shift={machine.shift}"]
    with run_child("QEMU", command, _PTY) as board:
        yield board
