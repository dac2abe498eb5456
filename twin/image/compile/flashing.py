"""Write an image into a board, by the user's own pyocd or openocd."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hwmodels.errors import ToolMissingError
from twin.errors import FirmwareError, UsageError
from twin.image.compile.ports import Port


def find_programmer(port: Port) -> tuple[str, ...]:
    """Return the command that writes an image; "IMAGE" stands for its path.

    Parameters
    ----------
    port : Port
        Its port.mk names the part: PYOCD, the target; OPENOCD, the configuration files.

    Raises
    ------
    UsageError
        When the port is not one to be flashed.
    ToolMissingError
        When neither program is installed.
    """
    target, files = port.settings.get("PYOCD"), port.settings.get("OPENOCD")
    if not target and not files:
        raise UsageError(f"port {port.name} is no board to be flashed")
    if target and shutil.which("pyocd"):
        return ("pyocd", "flash", "--target", target, "IMAGE")
    if files and shutil.which("openocd"):
        configuration = [word for file in files.split() for word in ("-f", file)]
        return ("openocd", *configuration, "-c", "program {IMAGE} verify reset exit")
    raise ToolMissingError("neither pyocd nor openocd is installed: pip install pyocd, or "
                           "apt-get install openocd")


def flash_image(image: Path, command: tuple[str, ...]) -> None:
    """Write an image into the board that is plugged in.

    Raises
    ------
    FirmwareError
        When there is no image, or the program fails, with the end of what it said.
    """
    if not image.is_file():
        raise FirmwareError(f"{image}: there is no such image; build it first")
    words = [word.replace("IMAGE", str(image)) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        said = (result.stdout + result.stderr).strip().splitlines()[-8:]
        raise FirmwareError(f"{words[0]} could not flash {image}:\n" + "\n".join(said))
