"""Write an image into a board, by the user's own pyocd, openocd, esptool or ST's programmer."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

from hwmodels.errors import ToolMissingError, tell_in_one_line
from hwmodels.files import write_whole
from hwmodels.program.elf import read_elf_file
from twin.errors import FirmwareError, UsageError
from twin.program.image.compile.ports import Port

LARGEST_FLAT_BYTES = 1 << 26
SIGNER = "STM32_SigningTool_CLI"


def find_programmer(port: Port) -> tuple[str, ...]:
    """Return the command that writes an image.

    "IMAGE" in it stands for its path, "FLAT" and "SIGNED" for what is made of it.

    Parameters
    ----------
    port
        Its port.mk names the part: PYOCD, the target; OPENOCD, the configuration files; ESPTOOL,
        the chip; CUBEPROG, ST's loader of an external memory and the address in it, for a part
        whose boot ROM copies an image with ST's header.

    Raises
    ------
    UsageError
        When the port is not one to be flashed.
    ToolMissingError
        When no such program is installed.
    """
    chip = port.settings.get("ESPTOOL")
    if chip:
        program = next(filter(shutil.which, ("esptool", "esptool.py")), None)
        if program is None:
            raise ToolMissingError("esptool is not installed: pip install esptool")
        return (program, "--chip", chip, "write_flash", "0x0", "FLAT")
    if "CUBEPROG" in port.settings:
        return _find_st_programmer(*port.settings["CUBEPROG"].split())
    target, files = port.settings.get("PYOCD"), port.settings.get("OPENOCD")
    if not target and not files:
        raise UsageError(f"port {port.name} is not a board to be flashed")
    has_openocd = bool(files and shutil.which("openocd"))
    if target and shutil.which("pyocd") and (not has_openocd or _is_known(target)):
        return ("pyocd", "flash", "--target", target, "--no-wait", "IMAGE")
    if files and has_openocd:
        return ("openocd", *configure_openocd(files), "-c", "program {IMAGE} verify reset exit")
    raise ToolMissingError("neither pyocd nor openocd is installed: pip install pyocd, or "
                           "apt-get install openocd")


def configure_openocd(files: str) -> tuple[str, ...]:
    """Return openocd's words for configuration files; a J-Link's also select SWD."""
    words: list[str] = []
    for file in files.split():
        words += ["-f", file]
        if file == "interface/jlink.cfg":  # JTAG by default, which these targets refuse
            words += ["-c", "transport select swd"]
    return tuple(words)


def _find_st_programmer(loader: str, address: str) -> tuple[str, ...]:
    """Return the command of STM32CubeProgrammer, whose signing tool makes the header."""
    program = shutil.which("STM32_Programmer_CLI")
    if program is None or shutil.which(SIGNER) is None:
        raise ToolMissingError(f"STM32_Programmer_CLI or {SIGNER} is not installed: both come with "
                               "STM32CubeProgrammer, whose bin/ belongs on the PATH")
    place = Path(program).resolve().parent / "ExternalLoader" / loader
    return (program, "-c", "port=SWD", "mode=HOTPLUG", "ap=1", "-el", str(place), "-hardRst",
            "-w", "SIGNED", address)


def flash_image(image: Path, command: tuple[str, ...]) -> None:
    """Write an image into the board that is plugged in.

    Raises
    ------
    FirmwareError
        When there is no image, or the program fails, with the end of its output.
    """
    if not image.is_file():
        raise FirmwareError(f"{image}: there is no such image; build it first")
    words = [word.replace("IMAGE", str(image)) for word in command]
    if "FLAT" in words:
        words[words.index("FLAT")] = str(write_flat(image))
    if "SIGNED" in words:
        signed = image.with_suffix(".signed.bin")
        signed.unlink(missing_ok=True)  # the tool asks before it writes over one
        _run([SIGNER, "-bin", str(write_flat(image)), "-nk", "-t", "fsbl", "-hv", "2.3", "-align",
              "-s", "-o", str(signed)], image)
        words[words.index("SIGNED")] = str(signed)
    _run(words, image)


def _run(words: list[str], image: Path) -> None:
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        output = (result.stdout + result.stderr).strip().splitlines()[-8:]
        raise FirmwareError(f"{words[0]} could not flash {image}:\n" + "\n".join(output))


def write_flat(image: Path) -> Path:
    """Write what is loaded as one file from its lowest address on, and return where.

    Raises
    ------
    FirmwareError
        When the image loads nothing, or over more than 64 MiB.
    """
    elf = read_elf_file(image, FirmwareError)
    parts = [(one.loaded, elf.data(one)) for one in elf.loads if one.file_bytes]
    if not parts:
        raise FirmwareError(f"{image}: loads nothing")
    lowest = min(place for place, _ in parts)
    size_bytes = max(place + len(content) for place, content in parts) - lowest
    if size_bytes > LARGEST_FLAT_BYTES:
        raise FirmwareError(f"{image}: loads over {size_bytes:,} bytes; no flash has so many")
    whole = bytearray(b"\xff" * size_bytes)
    for place, content in parts:
        whole[place - lowest:place - lowest + len(content)] = content
    flat = image.with_suffix(".bin")
    write_whole(flat, bytes(whole))
    return flat


REHEARSAL_S = 30
"""How long a tool may take to say whether it knows a part."""


def rehearse(port: Port) -> str:
    """Try the tool that would write an image, without a board; return the command it would run.

    openocd reads its configuration and ends before it opens a probe, esptool and ST's programmer
    say their version, pyocd lists the parts it knows.

    Raises
    ------
    UsageError
        When the port is not one to be flashed.
    ToolMissingError
        When the tool is not installed, or does not know the part.
    """
    command = find_programmer(port)
    tool = Path(command[0]).name
    if tool == "pyocd":
        if not _is_known(command[3]):
            raise ToolMissingError(f"pyocd does not know {command[3]}: "
                                   f"pyocd pack install {command[3]}")
    elif tool == "openocd":
        _ask((*command[:-2], "-c", "shutdown"))
    elif tool.startswith("esptool"):
        _ask((*command[:3], "version"))
    else:
        _ask((command[0], "--version"))
        loader = Path(command[command.index("-el") + 1])
        if not loader.is_file():
            raise ToolMissingError(f"{loader}: the loader of the external flash is not there; it "
                                   "comes with STM32CubeProgrammer")
    return shlex.join(command)


def _is_known(target: str) -> bool:
    """Whether pyocd has a part, built in or from a pack that was installed."""
    return target in _ask(("pyocd", "list", "--targets")).split()


def _ask(words: tuple[str, ...]) -> str:
    """Run a tool that touches no board; return what it says."""
    try:
        output = subprocess.run(words, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=REHEARSAL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        said_why = tell_in_one_line(str(error))
        raise ToolMissingError(f"{words[0]} does not run: {said_why}") from error
    if output.returncode:
        lines = (output.stderr or output.stdout).strip().splitlines() or ["no output"]
        reason = next((line for line in lines if "Error" in line), lines[-1])
        raise ToolMissingError(f"{shlex.join(words)} ends with {output.returncode}: {reason}; "
                               "accepted: a newer release, or another of the tools")
    return output.stdout + output.stderr
