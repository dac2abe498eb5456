"""Typed errors of the measurement layer."""

from __future__ import annotations

from hwmodels.errors import TwinError


class MeasurementError(TwinError):
    """A measurement folder or a published table was refused."""


class LinkError(TwinError):
    """The connection to a board failed."""

    exit_code = 4


class TornLineWarning(UserWarning):
    """A samples file ended in the middle of a line; the whole samples were kept."""
