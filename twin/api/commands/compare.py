"""`twin compare`: predicted beside measured, or beside published results."""

from __future__ import annotations

from os import PathLike, fspath

from twin.attribution import views
from twin.attribution.views import PublishedView, View
from twin.pricing.calibration import AUTO


def compare(model: str | PathLike[str], board: str, measured: str | PathLike[str], *,
            runtime: str | None = None, clock_hz: float | None = None,
            calibration: str | PathLike[str] = AUTO, anyway: bool = False) -> View:
    """Set a network, or an accelerator compiler's output, beside a measurement of it.

    Parameters
    ----------
    model : str or path
        A model file, a network of the zoo, or what an accelerator's compiler wrote.
    board : str
        Name or file of the board.
    measured : str or path
        Folder of the measurement.
    runtime : str, optional
        By default that of the measurement.
    clock_hz : float, optional
        By default the board's.
    calibration : str or path
        As for `predict`.
    anyway : bool
        Also where they are not of the same thing.

    Returns
    -------
    View
        Layer by layer; with the report of epochs where both sides have them.
    """
    return views.compare_measured(fspath(model), board, fspath(measured), runtime=runtime,
                                  clock_hz=clock_hz, calibration=fspath(calibration),
                                  anyway=anyway)


def compare_published(model: str | PathLike[str], board: str, *,
                      calibration: str | PathLike[str] = AUTO) -> PublishedView:
    """Set predictions beside every published row of a network on a board.

    Parameters
    ----------
    model : str or path
        A model file or a network of the zoo.
    board : str
        Name or file of the board; runtime, clock and supply are those of each row.
    calibration : str or path
        As for `predict`.

    Returns
    -------
    PublishedView
        Open rows singly, sealed ones together.
    """
    return views.compare_with_published(fspath(model), board, calibration=fspath(calibration))
