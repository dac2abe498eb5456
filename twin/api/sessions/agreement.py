"""Two documents of one kind beside each other: equal, but for the last bits, or where not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hwmodels.files import JsonObject
from hwmodels.frozen import frozen
from twin.api.sessions.session import Session, hash_report
from twin.attribution.difference import Difference

TOLERANCE = 1e-9
"""Relative; sums in another order differ by less."""

_ABSENT = object()

Changes = tuple[tuple[str, str, str], ...]
"""What differs: its name, before and after."""


@frozen
class Agreement:
    """How a result asked for again agrees with the one that was kept.

    Parameters
    ----------
    kept, again : str
        Hashes of both reports; the second is empty where hardware measured: nothing is asked again.
    differences : tuple of (str, str, str)
        Where values differ: path, before, now; the first ones.
    count : int
        How many do.
    versions : tuple of (str, str, str)
        What made them, where that differs: name, before, now.
    """

    name: str
    verb: str
    kept: str
    again: str
    differences: Changes = ()
    count: int = 0
    versions: Changes = ()

    @property
    def is_same(self) -> bool | None:
        """Whether both say the same, to nine digits; None where nothing was asked again."""
        return (self.kept == self.again or not self.count) if self.again else None


@frozen
class Comparison:
    """Two kept runs beside each other.

    Parameters
    ----------
    asked : tuple of (str, str, str)
        What differs in what was asked: name, before, after.
    difference : Difference or None
        Of two predictions of the same network: what changed, by cause.
    """

    asked: Changes
    agreement: Agreement
    difference: Difference | None


MOST = 8
"""Differences that are listed."""


def agree(name: str, verb: str, kept: Any, again: Any, versions: Changes = ()) -> Agreement:
    """Set a result beside the one that was kept."""
    first, second = hash_report(kept), hash_report(again)
    found = [] if first == second else list(list_differences(kept, again))
    return Agreement(name=name, verb=verb, kept=first, again=second, count=len(found),
                     differences=tuple(found[:MOST]), versions=versions)


def list_differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield path, before and after where two JSON documents differ by more than rounding."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            yield from list_differences(before.get(key, _ABSENT), after.get(key, _ABSENT),
                                        f"{path}.{key}" if path else str(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from list_differences(one, other, f"{path}[{place}]")
    elif isinstance(before, list) and isinstance(after, list):
        yield path, f"{len(before):,} entries", f"{len(after):,} entries"
    elif not _is_equal(before, after):
        yield path, _write(before), _write(after)


def compare_versions(before: JsonObject, after: JsonObject) -> Changes:
    """Return versions that differ between the heads of two runs."""
    def facts(head: JsonObject) -> JsonObject:
        packages = head.get("packages")
        return {"twin": head.get("twin"), "python": head.get("python"),
                "machine": head.get("machine"),
                **(packages if isinstance(packages, Mapping) else {})}

    return tuple(list_differences(facts(before), facts(after)))


def compare_requests(first: Session, second: Session) -> Changes:
    """Return what two runs were asked that differs: the verb, arguments, contents of inputs."""
    def facts(session: Session) -> JsonObject:
        asked = dict(session.request.arguments)
        if "clock_hz" in asked:
            asked["clock"] = f"{asked.pop('clock_hz') / 1e6:g} MHz"
        return {"verb": session.request.verb, **asked, **session.head.get("inputs", {})}

    return tuple(list_differences(facts(first), facts(second)))


def _is_equal(before: Any, after: Any) -> bool:
    numbers = (int, float)
    if (isinstance(before, numbers) and isinstance(after, numbers)
            and not isinstance(before, bool) and not isinstance(after, bool)):
        return math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=1e-12)
    return bool(before == after)


def _write(value: Any) -> str:
    text = "absent" if value is _ABSENT else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
