"""What a target worked out of a deployment: what is fused away, and what has a place of its own."""

from __future__ import annotations

from collections.abc import Mapping

from twin.deployment.buffer import Home
from twin.deployment.placement import Fusion, Placement


class Plan:
    """The plan of a core: one arena, every layer on the core, nothing placed by itself.

    A target with a machine of its own derives from it; each part is worked out when first asked.
    """

    @property
    def fusion(self) -> Fusion:
        """What is taken off the memory plan."""
        return Fusion()

    @property
    def homes(self) -> Mapping[int, Home]:
        """Tensors placed by themselves, scratch by -1 - position; the arena has all others."""
        return {}

    @property
    def used(self) -> tuple[tuple[str, int], ...]:
        """Bytes in use of each pool of an accelerator."""
        return ()

    @property
    def filled(self) -> Mapping[str, tuple[int, int]]:
        """Bytes in use of each RAM that holds pools, and its size."""
        return {}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each layer stays on the host, "" where it does not; none without an accelerator."""
        return ()

    def held_bytes(self, placement: Placement) -> tuple[int, int]:
        """Bytes of activations and of weights, the latter where they are kept in RAM."""
        return placement.arena_bytes, placement.weights_bytes
