"""The host as a board: the firmware's host port as a child process on a pty.

Its counters are measured, not simulated; where the kernel allows, hardware counters of the child
(perf_event_open) and energy of the package (RAPL) are read around each block of runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from calibration.errors import MeasurementError
from calibration.measurement.quality import WAITED
from calibration.virtual_board.child import ChildBoard, run_child

_PTY = re.compile(rb"^(/dev/\S+)\n")
SYSCALLS = {"x86_64": 298, "aarch64": 241}
"""perf_event_open, by machine (the kernel's unistd tables)."""
EVENTS: Mapping[str, tuple[int, int]] = {
    "cpu_cycles": (0, 0), "instructions": (0, 1), "cache_references": (0, 2),
    "cache_misses": (0, 3), "branches": (0, 4), "branch_misses": (0, 5), "page_faults": (1, 2),
    "context_switches": (1, 3)}
"""(type, config) of linux/perf_event.h."""
ATTRIBUTE_BYTES = 112
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
ENERGY_FILES = "/sys/class/powercap/intel-rapl:*/energy_uj"


@dataclass(slots=True)
class HostGauges:
    """Counters of a process and of the machine that only ever grow.

    Parameters
    ----------
    missing
        What cannot be read, and why: a plain statement instead of a zero.
    """

    pid: int
    missing: dict[str, str] = field(default_factory=dict)
    _events: dict[str, int] = field(default_factory=dict)
    _ranges: dict[Path, int] = field(default_factory=dict)
    _last: dict[Path, int] = field(default_factory=dict)
    _total_uj: float = 0.0

    def __post_init__(self) -> None:
        """Open every event and every file of energy the machine has; note what is missing."""
        for name, (kind, config) in EVENTS.items():
            try:
                self._events[name] = _open_event(kind, config, self.pid)
            except OSError as error:
                self.missing[name] = f"perf_event_open: {error.strerror}"
        for path in sorted(Path("/").glob(ENERGY_FILES.lstrip("/"))):
            try:
                if not (path.parent / "name").read_text().startswith("package"):
                    continue  # of a part of a package (core, uncore, dram), or of the platform
                self._last[path] = int(path.read_text())
                self._ranges[path] = int((path.parent / "max_energy_range_uj").read_text())
            except OSError as error:
                self.missing["energy"] = f"RAPL: {error.strerror}"
        if not self._last and "energy" not in self.missing:
            self.missing["energy"] = "RAPL: this kernel shows no package domain"

    def read(self) -> dict[str, tuple[float, str]]:
        """Return value and unit of everything that can be read."""
        found: dict[str, tuple[float, str]] = {}
        for name, descriptor in self._events.items():
            value, enabled, running = struct.unpack("<QQQ", os.read(descriptor, 24))
            scaled = value * enabled / running if running else float(value)
            found[name] = (scaled, "cycles" if name == "cpu_cycles" else "events")
        for path, last in self._last.items():
            now = int(path.read_text())
            self._total_uj += (now - last) % (self._ranges[path] + 1)
            self._last[path] = now
        if self._last:
            found["package_energy"] = (self._total_uj, "uj")
        with contextlib.suppress(OSError, ValueError, IndexError):
            found[WAITED] = (int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) * 1e-3,
                             "us")
        return found

    def close(self) -> None:
        """Close what was opened."""
        for descriptor in self._events.values():
            os.close(descriptor)
        self._events.clear()


def _open_event(kind: int, config: int, pid: int) -> int:
    """perf_event_open with times enabled and running, user space only."""
    number = SYSCALLS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        raise OSError(0, f"not known on {platform.system()} {platform.machine()}")
    attribute = bytearray(ATTRIBUTE_BYTES)
    flags = INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR
    struct.pack_into("<IIQQQQQ", attribute, 0, kind, ATTRIBUTE_BYTES, config, 0, 0, 3, flags)
    library = ctypes.CDLL(None, use_errno=True)
    buffer = (ctypes.c_char * ATTRIBUTE_BYTES).from_buffer(attribute)
    descriptor = library.syscall(number, buffer, pid, -1, -1, 0)
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(descriptor)


@contextlib.contextmanager
def run_host(image: str | Path) -> Iterator[tuple[ChildBoard, HostGauges]]:
    """Run the host port for as long as the context lasts.

    Raises
    ------
    LinkError
        When it cannot be run or opens no pty.
    """
    with run_child("the process", [str(Path(image).resolve()), "--pty"], _PTY) as board:
        gauges = HostGauges(board.process.pid)
        try:
            yield board, gauges
        finally:
            gauges.close()


def list_processors() -> tuple[int, ...]:
    """Return the processors this process, and what it starts, may use; none where nothing says."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


@contextlib.contextmanager
def bound_to(cpu: int | None) -> Iterator[None]:
    """Bind this process, and what it starts, to one processor; None: as it is.

    Raises
    ------
    MeasurementError
        For one it may not use.
    """
    before = list_processors()
    if cpu is None:
        yield
        return
    if cpu not in before:
        raise MeasurementError(f"--cpu {cpu}: accepted: {', '.join(map(str, before)) or 'none'}")
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def describe_host() -> Mapping[str, str]:
    """Return what of the host decides how fast it is: processors it may use, governor, load."""
    cpus = list_processors()
    found = {"machine": platform.machine(), "boost": "not known", "governor": "not known",
             "processors": " ".join(map(str, cpus)) or "not known"}
    first = Path(f"/sys/devices/system/cpu/cpu{cpus[0] if cpus else 0}/cpufreq")
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                found["processor"] = line.partition(":")[2].strip()
                break
    with contextlib.suppress(OSError):
        found["governor"] = (first / "scaling_governor").read_text().strip()
    with contextlib.suppress(OSError):
        found["boost"] = Path("/sys/devices/system/cpu/cpufreq/boost").read_text().strip()
    with contextlib.suppress(OSError):
        found["load"] = " ".join(Path("/proc/loadavg").read_text().split()[:3])
    return found
