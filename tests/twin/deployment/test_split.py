"""Arenas and weights in several memories: parts sum to the plan, and every byte has one place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest

import twin
from hwmodels.kernel import Operand
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.deployment.memories import Buffer, spread_buffers
from twin.deployment.placement import constant_sizes
from twin.deployment.split import further_memories
from twin.errors import PlacementError, UsageError
from twin.network.zoo import build
from twin.reports.tables.study_sentences import say_idle
from twin.studies.points import Deployer

BOARD = "stm32h747i_disco"
SMALL = {"memories.sram.size_bytes": "32KiB"}
TIGHT = {**SMALL, "memories.flash.size_bytes": "192KiB"}
NO_ROOM_ELSEWHERE = {f"memories.{name}.size_bytes": "16KiB" for name in ("sram_d2", "dtcm", "itcm")}


def split(network: str = "vww", settings: dict[str, str] | None = None) -> Deployment:
    """A network that has no room on the chip, whose default is a split."""
    from hwmodels.board.file import load_board

    board = load_board(BOARD, overrides={**NO_ROOM_ELSEWHERE, **(settings or TIGHT)})
    return deploy(build(network), board, runtime="x-cube-ai@7.3.0")


def operands(deployment: Deployment) -> Iterator[tuple[int, Operand]]:
    for position, group in enumerate(lower_network(deployment)):
        for kernel in group:
            yield from ((position, operand) for operand in kernel.operands)


def test_what_has_no_room_goes_on_beside_the_chip() -> None:
    placed = split()
    assert (placed.arena_named, placed.weights_named) == ("sram+sdram", "flash+nor")
    assert [note.partition(",")[0] for note in placed.notes] == ["arena split", "weights split"]
    row, = Deployer().predict_changed(placed, [{}])
    assert f"assumed: weights in flash+nor ({BOARD}); arena in sram+sdram" in "\n".join(
        say_idle([row]))


def test_parts_sum_to_the_plan_and_keep_to_their_rooms() -> None:
    placed = split()
    plan = placed.placement
    assert sum(plan.parts_bytes) == plan.arena_bytes == placed.ram_parts["arena"]
    assert all(0 < part <= room for part, room in zip(plan.parts_bytes, placed.plan.rooms,
                                                      strict=True))
    needs = placed.target.needs(placed)
    assert needs["sram"] + needs["sdram"] == placed.working_ram_bytes
    assert needs["flash"] + needs["nor"] == plan.weights_bytes


def test_no_two_buffers_alive_together_share_bytes_but_those_that_may() -> None:
    slots = {(slot.name, slot.offset_bytes): slot for slot in split().placement.arena}.values()
    sharing = 0
    for one, other in combinations(slots, 2):
        alive = one.first_layer <= other.last_layer and other.first_layer <= one.last_layer
        apart = (one.offset_bytes + one.size_bytes <= other.offset_bytes
                 or other.offset_bytes + other.size_bytes <= one.offset_bytes)
        if alive and not apart:
            # an output over what was read of its input for the last time
            sharing += 1
            assert one.last_layer == other.first_layer or other.last_layer == one.first_layer
    assert sharing


def test_every_operand_lies_in_its_memory_and_constants_lie_apart() -> None:
    placed = split()
    constants = {}
    for _, operand in operands(placed):
        memory = placed.board.memory(operand.memory)
        assert memory.address <= operand.address
        assert operand.address + operand.size_bytes <= memory.address + memory.size_bytes
        if operand.role in ("weights", "bias"):
            constants[operand.address] = operand.size_bytes
    for (low, size), (high, _) in zip(sorted(constants.items()), sorted(constants.items())[1:],
                                      strict=False):
        assert low + size <= high


def test_bytes_of_weights_are_conserved_and_the_largest_stay_on_the_chip() -> None:
    placed = split()
    sizes = constant_sizes(placed.executed)
    homes = placed.plan.homes
    assert set(homes) == set(sizes)
    out = sum(sizes[tensor] for tensor, home in homes.items() if home.memory == "nor")
    assert placed.plan.spilled == {"nor": out} and out > 0
    largest = max(sizes, key=lambda tensor: sizes[tensor])
    assert homes[largest].memory == "flash"


def test_every_tensor_has_the_same_place_in_every_layer() -> None:
    places: dict[str, set[str]] = {}
    placed = split()
    for position, operand in operands(placed):
        layer = placed.executed.layers[position]
        if operand.name == "output":
            places.setdefault(placed.executed.tensors[layer.outputs[0]].name, set()).add(
                f"{operand.memory} {operand.address}")
        elif operand.name == "input" and not placed.executed.tensors[layer.inputs[0]].is_constant:
            places.setdefault(placed.executed.tensors[layer.inputs[0]].name, set()).add(
                f"{operand.memory} {operand.address}")
    assert {len(found) for found in places.values()} == {1}
    assert {found.partition(" ")[0] for one in places.values() for found in one} == {
        "sram", "sdram"}


def test_a_split_lies_between_the_chip_and_the_memory_beside_it() -> None:
    inside = twin.predict(deploy(build("vww"), BOARD, runtime="x-cube-ai@7.3.0"))
    between = twin.predict(split())
    outside = twin.predict(deploy(build("vww"), BOARD, runtime="x-cube-ai@7.3.0",
                                  weights="nor", arena="sdram"))
    assert inside.cycles <= between.cycles <= outside.cycles


def test_a_what_if_keeps_a_split_in_need_or_asked_for_and_another_runtime_chooses_anew() -> None:
    placed = split(settings=SMALL)
    slower = placed.replace({"clocks.cpu.frequency_hz": "200MHz"})
    assert (slower.arena_named, slower.notes) == ("sram+sdram", placed.notes)
    roomy = {"memories.sram.size_bytes": "512KiB"}
    assert placed.replace(roomy).arena_named == "sram"
    asked = placed.replace({"placement.arena": "sram+sdram"}).replace(roomy)
    assert asked.placement.parts_bytes[1:] == (0,)
    again = placed.replace({"runtime": "x-cube-ai@7.1.0"})
    assert again.arena_named == "sram+sdram"
    whole = placed.replace({"runtime": "tflm-cmsis-nn@2023"})  # splits nothing
    assert whole.arena_named == "sdram" and "arena in sdram" in "".join(whole.notes)


def test_a_split_can_be_asked_for() -> None:
    asked = deploy(build("ic"), BOARD, runtime="st-edge-ai", arena="dtcm+sdram")
    assert asked.arena_named == "dtcm+sdram"
    assert asked.placement.parts_bytes == (asked.placement.arena_bytes, 0)
    with pytest.raises(PlacementError, match="several memories; accepted with this runtime: one"):
        deploy(build("ic"), BOARD, runtime="cmsis-nn", arena="dtcm+sdram")
    with pytest.raises(UsageError, match="names dtcm twice"):
        deploy(build("ic"), BOARD, runtime="st-edge-ai", arena="dtcm+dtcm")
    with pytest.raises(PlacementError, match="the arena cannot be in nor"):
        deploy(build("ic"), BOARD, runtime="st-edge-ai", arena="dtcm+nor")


@pytest.mark.parametrize(("board", "memory", "further"), [
    (BOARD, "sram", ("sdram",)), (BOARD, "flash", ("nor",)),
    ("b_u585i_iot02a", "sram", ("psram",)), ("nucleo_l4r5zi", "flash", ())])
def test_memories_go_on_beside_the_chip(board: str, memory: str,
                                        further: tuple[str, ...]) -> None:
    from hwmodels.board.file import load_board

    assert further_memories(load_board(board), memory) == further


def made(*buffers: tuple[int, int, int]) -> list[Buffer]:
    return [Buffer(name=f"b{i}", tensors=[i], size_bytes=size, first=first, last=last)
            for i, (size, first, last) in enumerate(buffers)]


def stack(buffers: list[Buffer] | tuple[Buffer, ...]) -> int:
    """One behind the other."""
    end = 0
    for buffer in buffers:
        buffer.offset_bytes, end = end, end + buffer.size_bytes
    return end


def test_the_largest_leave_and_what_still_fits_comes_back() -> None:
    buffers = made((90, 0, 1), (60, 1, 2), (50, 2, 3), (20, 3, 4))
    assert spread_buffers(buffers, (80, 1000), stack) == (70, 150)
    # 90 has no room, 60 left for 50 and 20, and has none beside them
    assert {b.name for b in buffers if b.offset_bytes < 70} == {"b2", "b3"}
    assert spread_buffers(made((90, 0, 1), (60, 1, 2)), (60, 1000), stack) == (60, 90)
    assert spread_buffers([], (10, 10), stack) == (0, 0)


def test_rows_published_with_more_ram_than_the_chip_has_are_deployed() -> None:
    """SqueezeNet v1.1 and MobileNetV1 1.0 at 224: activations beyond AXI SRAM's 512 KiB.

    Those of the SSD are published as 521 KiB; the plan here takes 434 and stays on the chip.
    """
    from calibration.datasets import published_rows
    from twin.attribution.published import build_published, deploy_row

    rows = [row for row in published_rows(use="fit") if row.board == BOARD and row.model
            and (row.activations_bytes or 0) > 512 * 1024]
    assert len(rows) == 7
    graphs = {row.model: build_published(row.model) for row in rows if row.model}
    for row in rows:
        placed = deploy_row(row, graphs[str(row.model)])
        assert placed.arena_named == ("sram" if "ssd" in str(row.model) else "sram+sdram")
        # 4.1 MiB of weights, of the SSD 1.0 beside its code: 1 MiB of flash
        large = "1.0_224" in str(row.model) or "ssd" in str(row.model)
        assert placed.weights_named == ("flash+nor" if large else "flash")
