"""Whether compilers may run: not while a bundle from somebody else is run again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from twin.errors import BuildRefusedError

_refusal: ContextVar[str] = ContextVar("_refusal", default="")


@contextmanager
def building_refused(why: str) -> Iterator[None]:
    """Refuse every build within, with why."""
    before = _refusal.set(why)
    try:
        yield
    finally:
        _refusal.reset(before)


def check_permission() -> None:
    """Raise `BuildRefusedError` where compilers may not run."""
    if why := _refusal.get():
        raise BuildRefusedError(why)
