"""A measurement known to be right: whether it was taken alike, and whether of the same image."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from calibration.measurement.measurement import Measurement
from twin.attribution.measured import read_folder
from twin.errors import NotTheSameError

BUILT_KINDS = frozenset({"placement", "SIMD", "optimisation", "-O0", "reference kernels"})
"""Kinds of faults that are in the image: one image has them in both measurements or in none."""

SAME_IMAGE = ("the same image as the healthy run: kernels, instruction set, level of optimisation "
              "and placement are ruled out")


def require_alike(healthy: Measurement, measurement: Measurement, folder: Path,
                  healthy_folder: Path) -> str:
    """Refuse a measurement known to be right that was taken otherwise; return a remark.

    Parameters
    ----------
    healthy, measurement : Measurement
        Known to be right, and to diagnose.
    folder, healthy_folder : Path
        Where the second and the first were read.

    Returns
    -------
    str
        What to warn of where another image of the same build was measured; else "".

    Raises
    ------
    NotTheSameError
        For the same folder twice, other kernels, another compiler or level, or another clock.
    """
    if folder.resolve() == healthy_folder.resolve():
        raise NotTheSameError(f"--healthy {healthy_folder} is the measurement to diagnose itself: "
                              "give another one, known to be right")
    right, ours = healthy.header, measurement.header
    told, asked = dict(right.environment), dict(ours.environment)
    clocks, wanted = dict(right.clocks_hz), dict(ours.clocks_hz)
    pairs: list[tuple[str, object, object]] = [
        ("runtime", right.runtime, ours.runtime),
        ("compiler", told.get("compiler"), asked.get("compiler")),
        *((f"clocks_hz {name}", clocks[name], wanted[name])
          for name in clocks if name in wanted)]
    for key, first, second in pairs:
        if first and second and first != second:
            raise NotTheSameError(
                f"--healthy {healthy_folder}: {key} is {_say(first)}, of the measurement to "
                f"diagnose {_say(second)}: give one taken alike, or none")
    images = told.get("firmware_sha256"), asked.get("firmware_sha256")
    if all(images) and images[0] != images[1]:
        return (f"the healthy run is of another image (firmware_sha256 {str(images[0])[:12]}, here "
                f"{str(images[1])[:12]}) by the same compiler: what else its build changed is "
                "taken for a fault")
    return ""


def _say(value: object) -> str:
    return f"{value / 1e6:g} MHz" if isinstance(value, float | int) else str(value)


def is_one_image(healthy: Measurement | None, measurement: Measurement) -> bool:
    """Whether both are of the same image, bit by bit."""
    if healthy is None:
        return False
    first, second = (dict(one.header.environment).get("firmware_sha256")
                     for one in (healthy, measurement))
    return first is not None and first == second


def read_healthy(path: str | PathLike[str] | None, measurement: Measurement,
                 folder: Path) -> tuple[Measurement | None, str]:
    """Read the folder known to be right, if one is given, and what to warn of beside another."""
    if path is None:
        return None, ""
    healthy, where = read_folder(fspath(path))
    return healthy, require_alike(healthy, measurement, folder, where)
