"""What a line of the probe brought, counted at once."""

from __future__ import annotations

from calibration.importers.probe import InferenceCount


def count_inferences(data: bytes) -> int:
    """Return how many inferences are whole in what a line brought."""
    count = InferenceCount()
    count.feed(data + b"\n" if b"\0" not in data else data)
    return count.whole
