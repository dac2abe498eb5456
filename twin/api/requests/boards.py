"""The request for a board file, from what a datasheet's first page says."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING

from hwmodels.board.declaration import MOST_WAIT_STATES
from hwmodels.board.file import load_board
from twin.api.requests import BOARD_FILES, Request, option, required, takes
from twin.api.requests.values import parse_clock, parse_quantity
from twin.errors import UsageError
from twin.studies.duty import read_current

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.learning.portability import new_board


class Doctor(Request):
    """The board whose tools are looked for."""

    board: str | None = option(
        None, "--board -b", "BOARD", "Also what this board needs, and what to type.",
        files=BOARD_FILES)


def _size(option: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if text[-1:].isdigit():  # of a datasheet: KiB as likely as MiB
            raise UsageError(f"{option} {text!r} has no unit; accepted: as {text}KiB")
        return int(parse_quantity(text, "bytes", option))

    return read


def _read_run_current(text: str) -> float:
    """Read a run current in mA/MHz; a bare number is in uA/MHz."""
    return read_current(text + "uA/MHz" * text[-1:].isdigit(), "--run-current")


class NewBoard(Request):
    """What is known of a board; the rest is guessed."""

    name: str = required("", "NAME", "What the board is to be called.")
    _: KW_ONLY
    like: "str | Board | None" = option(
        None, "--like", "BOARD", "Guess from this board what is not stated: its core, clock, sizes "
        "of flash and RAM, caches, currents.", text=str)
    core: str | None = option(
        None, "--core", "CORE", "cortex-m4, rv32imc ..., or of a folder of TWIN_CORES.")
    clock_hz: float | None = option(None, "--clock", "FREQUENCY", "As 96MHz.", parse=parse_clock)
    flash_bytes: int | None = option(None, "--flash", "SIZE", "As 1MiB.", parse=_size("--flash"))
    sram_bytes: int | None = option(None, "--sram", "SIZE", "As 256KiB.", parse=_size("--sram"))
    wait_states: int | None = option(
        None, "--wait-states", None, "Wait states of the flash at that clock; may be guessed.",
        least=0, most=MOST_WAIT_STATES)
    read_bytes: int | None = option(
        None, "--flash-read", "SIZE", "What one read of the flash array delivers, as 16B; may be "
        "guessed.", parse=_size("--flash-read"))
    cache_bytes: int | None = option(
        None, "--cache", "SIZE", "Size of each cache in front of the flash, 0B for none; may be "
        "guessed.", parse=lambda text: 0 if text in ("0", "0B") else _size("--cache")(text))
    supply_v: float | None = option(
        None, "--supply", "VOLT", "May be guessed.", least=0.5, most=60.0)
    regulator: str | None = option(
        None, "--regulator", "ldo|smps|none", "What makes the core voltage; may be guessed.")
    run_ma_per_mhz: float | None = option(
        None, "--run-current", "UA/MHZ", "Whole run current at that clock, supply and regulator, "
        "in microampere per megahertz, or with its unit (0.19mA/MHz); unknown, and no --like: "
        "energy is not known.", parse=_read_run_current)


@takes(NewBoard)
def Wanted(asked: NewBoard) -> "new_board.Wanted":
    """State what is known of a new board, for `new_board`."""
    from twin.learning.portability import new_board

    like = load_board(asked.like) if isinstance(asked.like, str) else asked.like
    return new_board.Wanted(**{**asked.arguments, "core": asked.core or "", "like": like})
