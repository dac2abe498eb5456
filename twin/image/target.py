"""The target of a runtime that is compiled: its kernels are read from the image it is built to."""

from __future__ import annotations

from hwmodels.kernel import Kernel
from twin.deployment.core import Core
from twin.deployment.deployment import Deployment


class Image(Core):
    """A core that runs a built image; the tools that build and read it load when they are used."""

    def lower(self, deployment: Deployment) -> tuple[tuple[Kernel, ...], ...]:
        """Build the image where it is not, and read its kernels."""
        from twin.image.read.network import read_network

        return read_network(deployment)

    def content(self, deployment: Deployment) -> str:
        """Build the image where it is not, and return its hash."""
        from twin.image.read.network import identify_image

        return identify_image(deployment)
