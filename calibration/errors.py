"""Typed errors of the measurement layer."""

from __future__ import annotations

from hwmodels.errors import TwinError


class MeasurementError(TwinError):
    """A measurement folder or a published table was refused."""


class MeterOptionError(MeasurementError):
    """A recording needs an option of `twin energy`, or a value of one was refused."""

    exit_code = 2


class IncompleteLogError(MeasurementError):
    """A log lacks something, and only whole ones are accepted."""


class LinkError(TwinError):
    """The connection to a board failed."""

    exit_code = 4


class LinkLostError(LinkError):
    """The line is gone: cable pulled, socket closed, process ended."""


class LinkResumedError(LinkLostError):
    """The line was gone during a request that must not be asked twice, and is back."""


class LinkTimeoutError(LinkError):
    """No answer before the deadline."""


class BoardRestartedError(LinkError):
    """The board answers, but has forgotten the session: it was reset or lost power."""


class BoardRefusedError(LinkError):
    """The board answered a request with an error.

    Parameters
    ----------
    message
        What was asked and why not.
    code, detail
        As the board sent them.
    """

    def __init__(self, message: str, code: int, detail: int) -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail


class TornLineWarning(UserWarning):
    """A samples file ended in the middle of a line; the whole samples were kept."""


class IncompleteWarning(UserWarning):
    """A measurement was interrupted: some of the runs that were asked for are not there."""


class FitError(TwinError):
    """Measurements cannot be fitted, or an overlay was refused."""
