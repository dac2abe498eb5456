"""A law over many cases as one test: pytest takes milliseconds for each test it has."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable


def for_each(*parts: Iterable[object], name: Callable[..., str] = str):
    """Let a law hold for each case, or each combination of parts; failures name their case."""
    def decorate(law):
        def test() -> None:
            broken = []
            for case in itertools.product(*parts):
                try:
                    law(*case)
                except Exception as error:
                    broken.append(f"{', '.join(map(name, case))}: "
                                  f"{type(error).__name__}: {error}")
            assert not broken, "\n".join((f"{len(broken)} cases", *broken[:20]))

        for kept in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(test, kept, getattr(law, kept))
        return test

    return decorate
