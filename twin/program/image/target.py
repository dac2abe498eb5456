"""The target of a runtime that is compiled: its kernels are read from the image it is built to."""

from __future__ import annotations

from collections.abc import Mapping

from hwmodels.board.facts import FLASH_ROLES, Board
from hwmodels.kernel import Lowered
from twin.deployment.core import Core
from twin.deployment.deployment import Deployment
from twin.deployment.draft import KEPT, Draft
from twin.runtimes import Runtime


class Image(Core):
    """A core that runs a built image; the tools that build and read it load when they are used."""

    def default_places(self, board: Board, runtime: Runtime) -> Mapping[str, str]:
        """Return the memories of the port's own map, where it brings one."""
        return {**super().default_places(board, runtime), **self._fixed(board)}

    def own_ram(self, draft: Draft) -> Mapping[str, int]:
        """Return samples beyond the fewest, the input's copy, weights kept in RAM to be copied."""
        from twin.program.image.compile.memory_map import count_own_ram

        ram = count_own_ram(draft, bool(self._fixed(draft.board)))
        weights, code = draft.board.memory(draft.weights), draft.board.memory(draft.code)
        if weights != code and not {weights.role, code.role} & {*FLASH_ROLES}:
            ram[KEPT] = draft.placement.weights_bytes
        return ram

    def settle(self, draft: Draft, *, asked: bool) -> tuple[str, tuple[str, ...]]:
        """Choose a memory with room where none was asked for and the port brings no map."""
        return super().settle(draft, asked=asked or bool(self._fixed(draft.board)))

    def needs(self, draft: Draft) -> dict[str, int]:
        """Arena and weights, and what is kept beside the code to be copied."""
        needs = super().needs(draft)
        needs[draft.code] = needs.get(draft.code, 0) + draft.ram_parts.get(KEPT, 0)
        return needs

    def check_fit(self, draft: Draft, needs: dict[str, int]) -> None:
        """Refuse places the port's own map does not have."""
        from twin.program.image.compile.ports import check_places, load_port

        if self._fixed(draft.board):
            check_places(load_port(draft.board.name), draft.board, weights=draft.weights,
                         arena=draft.arena, code=draft.code)

    @staticmethod
    def _fixed(board: Board) -> Mapping[str, str]:
        """Places of the port's own map; none where the map is written for the board."""
        from twin.program.image.compile.ports import read_fixed_places

        return read_fixed_places(board)

    def lower(self, deployment: Deployment) -> tuple[Lowered, ...]:
        """Build the image where it is not, and read its kernels."""
        from twin.program.image.read.network import read_network

        return read_network(deployment)

    def content(self, deployment: Deployment) -> str:
        """Build the image where it is not, and return its hash."""
        from twin.program.image.read.network import identify_image

        return identify_image(deployment)
