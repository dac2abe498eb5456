"""Links to boards: serial devices, sockets and ptys, every call with a deadline.

link = open_link("/dev/ttyACM0")          also socket://HOST:PORT and any pty
link.write(b"...")
data = link.read(timeout_s=0.5)           b"" when nothing came
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibration.collecting.deadline import Deadline, patient
from calibration.errors import LinkError, LinkLostError, LinkTimeoutError
from hwmodels.errors import need_extra, reworded
from hwmodels.files import read_regular
from hwmodels.frozen import frozen
from hwmodels.locks import lock

BAUD = 115200
WRITE_TIMEOUT_S = 2.0
POLL_S = 0.02
"""How often a device that went away is looked for."""

_SOCKET = re.compile(r"socket://[^/:]+:\d{1,5}/?(\?.*)?")

PROBES = {
    (0x0483, None): "ST-LINK", (0x0D28, 0x0204): "DAPLink", (0x1366, None): "J-Link",
    (0x2E8A, None): "Raspberry Pi", (0x0403, None): "FTDI", (0x10C4, 0xEA60): "CP210x",
    (0x1A86, None): "CH340", (0x239A, None): "Adafruit",
}
"""USB vendor and product (None: any) of what boards and serial adapters show themselves as."""


def _serial() -> Any:
    with need_extra("serial lines", "pyserial", "boards"):
        import serial
    return serial


def _is_own_echo(stream: Any) -> bool:
    """Whether a socket is connected to itself.

    TCP does that when the port asked for has no listener and is one the system gives to callers,
    and gives to this one: rare, but a lost line is looked for many times a second.
    """
    with socket.socket(fileno=os.dup(stream.fileno())) as same:
        return bool(same.getsockname() == same.getpeername())


@frozen
class PortInfo:
    """A serial port of this machine.

    Parameters
    ----------
    device
        Name to open.
    probe
        What is behind it, by USB id; None is not known.
    usb_serial
        Serial number of the USB device: the same after it is plugged in again.
    """

    device: str
    probe: str | None
    usb_serial: str | None


def list_ports() -> tuple[PortInfo, ...]:
    """Return the serial ports there are, those of known USB ids first."""
    _serial()
    from serial.tools.list_ports import comports

    ports = [PortInfo(device=port.device, usb_serial=port.serial_number,
                      probe=PROBES.get((port.vid, port.pid)) or PROBES.get((port.vid, None)))
             for port in comports() if port.vid is not None]
    return tuple(sorted(ports, key=lambda port: (port.probe is None, port.device)))


def find_port(port: str | None = None) -> str:
    """Return the port asked for, or the only one with a board behind it.

    Raises
    ------
    LinkError
        When none or several are found; names what was seen.
    """
    if port is not None:
        return port
    seen = list_ports()
    known = [one for one in seen if one.probe]
    if len(known) == 1:
        return known[0].device
    names = ", ".join(f"{one.device} ({one.probe or 'unknown USB device'})" for one in seen)
    raise LinkError(f"{'several boards are' if known else 'no board is'} plugged in"
                    f"{': ' + names if names else ''}; give --port, such as --port /dev/ttyACM0, "
                    "or --virtual NAME")


@contextlib.contextmanager
def lock_port(port: str) -> Iterator[None]:
    """Hold a port for this process; two measurements never share a board.

    Raises
    ------
    LinkError
        When another process holds it, naming its process id.
    """
    if not hasattr(os, "getuid"):  # Windows: opening a port there excludes others already
        yield
        return
    name = re.sub(r"\W+", "_", os.path.realpath(port) if port.startswith("/") else port)
    path = _lock_folder() / f"twin-port-{name[-200:]}.lock"
    with contextlib.ExitStack() as held:
        try:
            descriptor = held.enter_context(lock(path))
        except BlockingIOError as error:
            raise LinkError(f"{port} is in use by process {_read_holder(path)}") from error
        except OSError as error:
            raise LinkError(f"{port}: its lock {path} cannot be opened "
                            f"({error.strerror})") from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
        os.ftruncate(descriptor, 0)


def _read_holder(path: Path) -> str:
    """Return the number of the process that wrote it into its lock."""
    try:
        return read_regular(path, 32).decode("ascii", "replace").strip() or "unknown"
    except OSError:
        return "unknown"


def _lock_folder() -> Path:
    """Return the folder of locks: this user's alone, so that nobody else plants one there."""
    folder = Path(tempfile.gettempdir()) / f"twin-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise LinkError(f"{folder}: must be a folder of this user alone (mode 0700); move away "
                        "what is there, or set TMPDIR to another folder")
    return folder


class Link:
    """An open byte stream that can be lost and opened again.

    Parameters
    ----------
    port
        Device name or pyserial URL.
    baud
        Of serial devices.

    Raises
    ------
    LinkLostError
        When it cannot be opened.
    """

    def __init__(self, port: str, *, baud: int = BAUD) -> None:
        self.port, self.baud = port, baud
        self._usb_serial = self._usb_serial_of(port)
        self.stream: Any = None
        self._open()

    @property
    def byte_s(self) -> float:
        """Time of a byte on the line: start, eight bits, stop; 0 for a pty or socket."""
        paced = self.port.startswith(("/dev/tty", "/dev/serial", "COM", "/dev/cu."))
        return 10 / self.baud if paced else 0.0

    def _usb_serial_of(self, port: str) -> str | None:
        if not port.startswith("/dev/tty"):
            return None
        return next((one.usb_serial for one in list_ports() if one.device == port), None)

    def _open(self) -> None:
        if self.port.startswith("socket:") and not _SOCKET.fullmatch(self.port):
            raise LinkError(f"{self.port!r} is not an address; accepted: socket://HOST:PORT, such "
                            "as socket://localhost:4000")
        serial = _serial()
        with reworded((serial.SerialException, OSError, ValueError), LinkLostError,
                      f"{self.port} cannot be opened: "):
            self.stream = serial.serial_for_url(
                self.port, baudrate=self.baud, timeout=0, write_timeout=patient(WRITE_TIMEOUT_S))
        if self.port.startswith("socket:") and _is_own_echo(self.stream):
            self._drop()
            raise LinkLostError(f"{self.port} cannot be opened: nothing listens there")

    def read(self, timeout_s: float) -> bytes:
        """Return what has come, waiting at most `timeout_s` for the first byte.

        Raises
        ------
        LinkLostError
            When the line is gone.
        """
        with self._in_use():
            if hasattr(self.stream, "fileno"):
                select.select([self.stream.fileno()], [], [], max(timeout_s, 0))
            else:
                deadline = time.monotonic() + timeout_s
                while not self.stream.in_waiting and time.monotonic() < deadline:
                    time.sleep(0.001)
            return bytes(self.stream.read(4096))

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Drop a line that fails; raises `LinkLostError` for it, and for one that is closed."""
        if self.stream is None:
            raise LinkLostError(f"{self.port} is closed")
        try:
            yield
        except _serial().SerialTimeoutException as error:
            raise LinkTimeoutError(f"{self.port} takes no bytes for "
                                   f"{patient(WRITE_TIMEOUT_S):g} s") from error
        except (OSError, TypeError, ValueError) as error:  # SerialException is an OSError
            self._drop()
            raise LinkLostError(f"{self.port} is gone: {error}") from error

    def write(self, data: bytes) -> None:
        """Send all bytes.

        Raises
        ------
        LinkLostError
            When the line is gone.
        LinkTimeoutError
            When the other side takes nothing for `WRITE_TIMEOUT_S`.
        """
        with self._in_use():
            self.stream.write(data)

    def reopen(self, timeout_s: float) -> None:
        """Close and open again, waiting for the device to come back, under any name it gets.

        Raises
        ------
        LinkLostError
            When it does not come back in time.
        """
        self._drop()
        deadline = Deadline(timeout_s)
        while True:
            try:
                if self._usb_serial:
                    self.port = next((one.device for one in list_ports()
                                      if one.usb_serial == self._usb_serial), self.port)
                self._open()
                return
            except LinkLostError:
                if deadline.left_s <= POLL_S:
                    raise
                time.sleep(POLL_S)

    def _drop(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            with contextlib.suppress(Exception):
                stream.close()

    def close(self) -> None:
        """Close; closing twice is harmless."""
        self._drop()

    def __enter__(self) -> Link:
        """Return the link itself: it is open from its making on."""
        return self

    def __exit__(self, *reason: object) -> None:
        """Close the port, whatever happened."""
        self.close()


@contextlib.contextmanager
def open_link(port: str, *, baud: int = BAUD) -> Iterator[Link]:
    """Lock a port and open it; closed and unlocked at the end, whatever happens."""
    with lock_port(port), Link(port, baud=baud) as link:
        yield link
