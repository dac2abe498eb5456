"""`twin select`: boards and libraries ranked for networks under limits."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from hwmodels.board.file import list_boards
from twin.pricing.calibration import AUTO
from twin.studies.axes import EACH, make_space
from twin.studies.limits import read_limits
from twin.studies.points import Deployer
from twin.studies.prices import read_prices
from twin.studies.results import read_objectives
from twin.studies.selection import Selection, select_hardware
from twin.studies.sweep import Told
from twin.verbs.sweep import Boards, Models, Words, check_named, list_values, list_words

HOST = "host"
"""The board that is this machine: no microcontroller to choose."""


def select(models: Models, boards: Boards | None = None, *,
           settings: Mapping[str, object] | None = None, runtimes: Words = EACH,
           clocks: Words = (), max_ms: float | str | None = None,
           max_uj: float | str | None = None, max_ram: float | str | None = None,
           max_flash: float | str | None = None, max_usd: float | str | None = None,
           objectives: Words = ("time", "energy", "price"),
           prices: Mapping[str, float] | None = None, advise: bool = True,
           temperature: str = "warm", calibration: str | PathLike[str] = AUTO,
           on_progress: Told | None = None) -> Selection:
    """Rank boards, libraries and accelerators for networks, with a score and what would help.

    Parameters
    ----------
    models : str, path or Graph, or several
        Each is ranked by itself.
    boards : str, path or Board, or several, optional
        By default every board that is shipped.
    settings, runtimes, clocks
        As for `sweep`; by default each library a board may have, at the board's own clock.
    max_ms, max_uj, max_ram, max_flash, max_usd : float or str, optional
        Limits: bare numbers in ms, uJ, bytes and USD, or "100ms", "5mJ", "256KiB".
    objectives : str or several
        Of the front of the table.
    prices : mapping of str to float, optional
        Your own prices in US dollars, by board or chip.
    advise : bool
        Whether settings and rebuilds are tried on boards that do not meet the limits.
    temperature, calibration
        As for `predict`.
    on_progress : callable, optional
        Told (points done, points, failures) now and then.

    Returns
    -------
    Selection
        A choice for every network and board, best first; the whole table beside it.
    """
    limits = read_limits(max_ms=max_ms, max_uj=max_uj, max_ram=max_ram, max_flash=max_flash,
                         max_usd=max_usd)
    over = read_objectives(list_words(objectives))
    where = [name for name in list_boards() if name != HOST] if boards is None else boards
    space = make_space(list_values(models), list_values(where), runtimes=list_words(runtimes),
                       clocks=list_words(clocks), settings=settings)
    deployer = Deployer(calibration=fspath(calibration), temperature=temperature,
                        prices=prices or {})
    check_named(list_values(where), list_words(clocks), deployer)
    return select_hardware(space, limits, deployer, objectives=over, advise=advise,
                           on_progress=on_progress)


def parse_prices(texts: list[str] | None) -> dict[str, float]:
    """Read NAME=USD words; raises `UsageError` for one that is none."""
    return read_prices(texts or [])
