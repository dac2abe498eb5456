"""Machines of QEMU as boards: started with an image, ended whatever happens.

Facts (QEMU 7.2, `-icount`): DWT and PMU read zero, so firmware counts a timer; each instruction
takes 2^shift ns of virtual time, so instructions = ticks x (1e9 / timer Hz) / 2^shift, exactly.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from calibration.collecting.deadline import Deadline, patient
from calibration.errors import LinkError
from calibration.virtual_board.child import end_with_parent
from hwmodels.errors import ToolMissingError
from hwmodels.file_cache import read_yaml_once

START_S = 10.0
END_S = 2.0
_PTY = re.compile(rb"char device redirected to (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine QEMU emulates.

    Parameters
    ----------
    name : str
        QEMU's name.
    port : str
        The firmware's port for it, the name it is asked for by.
    core : str
        Its core.
    program : str
        QEMU program that has it.
    shift : int
        Virtual time of an instruction is 2^shift ns; a multiple of the timer's period is exact.
    options : sequence of str
        Further ones.
    """

    name: str
    port: str
    core: str
    program: str = "qemu-system-arm"
    shift: int = 7
    options: Sequence[str] = ()


MACHINES: Mapping[str, Machine] = {port: Machine(port=port, **facts) for port, facts in
                                   read_yaml_once(Path(__file__).with_name("qemu.yaml")).items()}
"""Machines there are ports for, by port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QemuBoard:
    """A running machine.

    Parameters
    ----------
    machine : Machine
        What runs.
    port : str
        Its serial line, a pty.
    process : Popen
        QEMU.
    log : file
        What it says on stderr.
    """

    machine: Machine
    port: str
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    def failure(self) -> str | None:
        """Return how QEMU ended, with what it said; None while it runs."""
        if self.process.poll() is None:
            return None
        return _describe_end(self.process, _read_log(self.log))

    def instructions_per_tick(self, timer_hz: int) -> float:
        """Return instructions per tick of the timer the firmware counts."""
        return 1e9 / timer_hz / (1 << self.machine.shift)


def find_program(machine: Machine) -> str:
    """Return the path of the QEMU that has a machine.

    Raises
    ------
    ToolMissingError
        Naming the Debian package.
    """
    found = shutil.which(machine.program)
    if found is None:
        package = "qemu-system-arm" if machine.program.endswith("arm") else "qemu-system-misc"
        raise ToolMissingError(f"{machine.program} is not installed: apt-get install {package}, "
                               "or use a unicorn-* board")
    return found


@contextlib.contextmanager
def run_qemu(name: str, image: str | Path) -> Iterator[QemuBoard]:
    """Run an image on a machine for as long as the context lasts.

    Parameters
    ----------
    name : str
        Key of `MACHINES`.
    image : path
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
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=log, preexec_fn=end_with_parent)
        try:
            port = _await_port(process, log)
            yield QemuBoard(machine=machine, port=port, process=process, log=log)
        finally:
            _end(process)


def _read_log(log: IO[bytes]) -> bytes:
    log.seek(0)
    return log.read()


def _describe_end(process: subprocess.Popen[bytes], heard: bytes) -> str:
    text = heard.decode("utf-8", "replace").strip()
    return f"QEMU ended with code {process.returncode}: {text or 'no message'}"


def _await_port(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    """Return the pty QEMU says it has opened."""
    assert process.stdout is not None
    said = b""
    deadline = Deadline(START_S)
    while not deadline.passed:
        if select.select([process.stdout], [], [], 0.05)[0]:
            said += os.read(process.stdout.fileno(), 4096)
        heard = said + _read_log(log)
        match = _PTY.search(heard)
        if match:
            return match[1].decode()
        if process.poll() is not None:
            raise LinkError(_describe_end(process, heard))
    raise LinkError(f"QEMU opened no serial line within {deadline.wait_s:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(patient(END_S))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
