"""What a way in is, and how a whole command is one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hwmodels.errors import TwinError

LONGEST_REFUSAL = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A way in.

    Parameters
    ----------
    seeds : callable
        Whole inputs.
    enter : callable
        Takes a file of damaged bytes; returns, or raises a TwinError.
    suffix : str
        Of the file.
    reshape : callable, optional
        Damages an input and keeps its form; half of the damaged inputs are of it.
    """

    seeds: Callable[[], list[bytes]]
    enter: Callable[[Path], object]
    suffix: str = ".bin"
    reshape: Callable[[random.Random, bytes], bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of an input: read, refused in a line, or a fault of ours."""

    refused: bool = False
    fault: str | None = None


class RefusedError(TwinError):
    """What a command said as it refused."""


def run_command(*words: str) -> None:
    """Run a command in this process; raise what it refuses as an error, and a bug as what it is."""
    from typer.testing import CliRunner

    from twin.cli import app

    result = CliRunner().invoke(app, list(words))
    said = [line for line in result.stderr.splitlines()
            if not line.startswith(("warning: ", "note: ", "wrote ", "emulating "))]
    if result.exit_code not in (0, 1, 2, 3, 4, 5) or "Traceback" in result.stderr:
        raise RuntimeError(f"exit {result.exit_code} of {words[:2]}: {said[-3:]}")
    if result.exit_code > 1:
        usage = bool(said) and said[0].startswith("Usage: ")  # of the parser of options
        refusals = [line for line in said if line.lower().startswith("error: ")]
        if len(refusals) != 1 or (len(said) > 1 and not usage):
            raise RuntimeError(f"exit {result.exit_code} of {words[:2]} in {len(said)} lines: "
                               f"{said[:3]}")
        raise RefusedError(refusals[0][len("error: "):])
