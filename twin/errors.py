"""Typed errors of the model layer; each names its file, layer or option."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hwmodels.errors import TwinError


class ModelError(TwinError):
    """A model file was refused: malformed, unknown operator, dynamic shape."""


class PlacementError(TwinError):
    """A deployment cannot be placed: it does not fit, or names a memory role the board lacks."""


class DoesNotFitError(PlacementError):
    """What a deployment needs is more than its memory has; `twin check` answers with 1.

    Attributes
    ----------
    short : mapping of str to int
        Bytes lacking by memory; empty where that is not known.
    draft : Deployment
        What does not fit, where nothing else could be moved; changes of it may.
    """

    def __init__(self, message: str, short: Mapping[str, int] = MappingProxyType({}),
                 draft: object = None) -> None:
        super().__init__(message)
        self.short, self.draft = dict(short), draft


class RuntimeRefusedError(TwinError):
    """A runtime cannot execute this model on this core."""


class BuildRefusedError(RuntimeRefusedError):
    """An image would have to be built where no compiler may run."""


class FirmwareError(TwinError):
    """An image cannot be built, or a board does not compute what it should."""

    quotes_lines = True


class ProgramError(TwinError):
    """A program cannot be run under emulation, or not as far as was asked."""


class UsageError(TwinError):
    """An option or argument that means nothing here."""

    exit_code = 2


class NotTheSameError(TwinError):
    """Two sides are of other networks, boards or clocks: their figures would mean nothing."""


class NotApplicableError(TwinError):
    """A transformation that does not apply to this network, board or runtime, and why."""


class AlreadySoError(NotApplicableError):
    """A transformation that asks for what the network is already: nothing has to change."""


class ScenarioError(TwinError):
    """A scenario file was refused: an unknown key, an impossible value, a fact nobody knows."""


class StudyError(TwinError):
    """A study file or its folder was refused: an unknown key, another version, a lost worker."""


class SessionError(TwinError):
    """A kept run or a bundle was refused: damaged, another version, a path outside it."""


class WorkerError(TwinError):
    """A process of `twin serve` was ended: it took too long, or too much memory."""
