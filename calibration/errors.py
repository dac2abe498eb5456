"""Typed errors of the measurement layer."""

from __future__ import annotations

from hwmodels.errors import TwinError


class MeasurementError(TwinError):
    """A measurement folder or a published table was refused."""


class LinkError(TwinError):
    """The connection to a board failed."""

    exit_code = 4
