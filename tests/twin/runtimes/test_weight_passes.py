"""Weights that leave their memory once: every byte counts, one more pass is never cheaper."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import twin
from hwmodels.cache.counters import count_uncached
from hwmodels.kernel import Kernel
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.errors import RuntimeRefusedError
from twin.network.operators import OPERATORS
from twin.network.zoo import build
from twin.runtimes import load_runtime

BOARD = "stm32h747i_disco"
CLOSED = ("x-cube-ai@10.0.0", "st-edge-ai@3.0.0")


def with_passes(deployment: Deployment, passes: int | None) -> Deployment:
    return deployment.replace(runtime=replace(deployment.runtime, weight_passes=passes))


def kernels(deployment: Deployment) -> list[Kernel]:
    return [kernel for layer, group in zip(deployment.executed.layers, lower_network(deployment),
                                           strict=True)
            if OPERATORS[layer.op].sums_products for kernel in group]


def read_bytes(kernel: Kernel) -> dict[str, tuple[int, int]]:
    """Bytes read and written by operand."""
    counts = count_uncached(kernel.nests, kernel.operands, 32)
    return {one.operand: (one.read_bytes, one.write_bytes) for one in counts.operands}


@pytest.mark.parametrize("passes", [1, 3])
def test_every_byte_of_the_weights_is_read_once_a_pass_and_nothing_else_changes(
        passes: int) -> None:
    placed = deploy(build("ic"), BOARD, runtime=CLOSED[0])
    streamed, looped = kernels(with_passes(placed, passes)), kernels(with_passes(placed, None))
    assert len(streamed) == len(looped) > 8
    for ours, theirs in zip(streamed, looped, strict=True):
        sizes = {operand.name: operand.size_bytes for operand in ours.operands}
        moved, before = read_bytes(ours), read_bytes(theirs)
        assert moved.pop("weights") == (passes * sizes["weights"], 0)
        del before["weights"]
        assert moved == before
        assert ours.blocks == theirs.blocks and ours.useful_macs == theirs.useful_macs


@pytest.mark.parametrize("weights", ["flash", "nor", "sdram"])
def test_one_more_pass_is_never_cheaper(weights: str) -> None:
    placed = deploy(build("ic"), BOARD, runtime=CLOSED[0], weights=weights)
    found = [twin.predict(with_passes(placed, passes)) for passes in (1, 2, 3, 5)]
    for fewer, more in pairwise(found):
        assert fewer.cycles <= more.cycles
        assert fewer.energy_uj is not None and more.energy_uj is not None
        assert fewer.energy_uj <= more.energy_uj


@pytest.mark.parametrize("runtime", CLOSED)
def test_weights_in_slow_flash_cost_about_one_pass_of_it(runtime: str) -> None:
    # 1 byte a cycle of 66.7 MHz and 25 cycles a line of 32: 342 cycles of 400 MHz at the most
    near, far = (twin.predict(deploy(build("ic"), BOARD, runtime=runtime, weights=weights))
                 for weights in ("flash", "nor"))
    lines = near.placement.weights_bytes / 32
    assert 0 < far.cycles - near.cycles <= 1.05 * 342 * lines


def test_memory_on_the_chip_is_never_slower_than_memory_beside_it() -> None:
    cycles = {weights: twin.predict(deploy(build("ic"), BOARD, runtime=CLOSED[0],
                                           weights=weights)).cycles
              for weights in ("dtcm", "sram", "flash", "sdram", "nor")}
    assert max(cycles[name] for name in ("dtcm", "sram", "flash")) <= min(
        cycles[name] for name in ("sdram", "nor"))


def test_closed_libraries_say_so_and_open_ones_do_as_their_loops_do() -> None:
    for name in CLOSED:
        runtime = load_runtime(name)
        fact, = (fact for fact in runtime.facts if fact.path == "weight_passes")
        assert (runtime.weight_passes, fact.kind) == (1, "assumed")
    assert load_runtime("tflm-cmsis-nn").weight_passes is None


@pytest.mark.parametrize(("passes", "said"), [
    ("0", "weight_passes: 0; accepted: from 1 on"), ("2.5", "weight_passes: 2.5; accepted: from 1"),
    (".inf", "weight_passes: a number >= 0 is expected, not inf"),
    (".nan", "weight_passes: a number >= 0 is expected, not nan")])
def test_a_file_that_says_no_pass_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             passes: str, said: str) -> None:
    shipped = Path(twin.__file__).parent / "runtimes" / "x-cube-ai.yaml"
    (tmp_path / "mine.yaml").write_text(shipped.read_text().replace(
        "weight_passes: [1,", f"weight_passes: [{passes},"))
    monkeypatch.setenv("TWIN_RUNTIMES", str(tmp_path))
    with pytest.raises(RuntimeRefusedError, match=said):
        load_runtime("mine")


def test_a_deviation_that_is_none_is_refused(tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = (Path(twin.__file__).parent / "runtimes" / "x-cube-ai.yaml").read_text()
    line = next(one for one in shipped.splitlines() if one.strip().startswith("weight_passes: ["))
    head, kind, source = line.split("]")[0].split(",")[:3]
    (tmp_path / "mine.yaml").write_text(shipped.replace(line, f"{head},{kind},{source}, wide]"))
    monkeypatch.setenv("TWIN_RUNTIMES", str(tmp_path))
    with pytest.raises(RuntimeRefusedError, match="a relative deviation >= 0 is expected, not 'wi"):
        load_runtime("mine")


def list_windowed(deployment: Deployment, tile_bytes: int) -> list[Kernel]:
    """Kernels of convolutions with a window, weights read as their loops do."""
    runtime = replace(deployment.runtime, weight_tile_bytes=tile_bytes, weight_passes=None)
    found = [kernel for kernel in kernels(deployment.replace(runtime=runtime))
             if kernel.name == "arm_convolve_s8"]
    assert len(found) > 5
    return found


def trips(kernel: Kernel, name: str) -> int:
    return sum(block.trips for block in kernel.blocks if block.name == name)


def test_a_tile_that_holds_all_weights_gathers_once_and_widens_each_weight_once() -> None:
    placed = deploy(build("ic"), BOARD, runtime=CLOSED[0])
    for plain, tiled in zip(list_windowed(placed, 0), list_windowed(placed, 1 << 20),
                            strict=True):
        assert trips(tiled, "gather pixel") == trips(plain, "gather pixel")
        assert tiled.nests == plain.nests and tiled.useful_macs == plain.useful_macs
        weights, = (one.size_bytes for one in tiled.operands if one.name == "weights")
        assert 4 * trips(tiled, "widen four weights") + trips(tiled, "widen weights") == weights
        for name in ("4 columns 2x2", "4 columns 1x1", "two rows"):
            assert trips(tiled, name) == trips(plain, name)


@pytest.mark.parametrize("tile_bytes", [1, 2_560, 5_120])
@pytest.mark.parametrize(("release", "filters_at_once"), [("9.0.0", 16), ("10.0.0", 4)])
def test_windows_are_gathered_again_for_each_tile_and_every_product_is_made_once(
        tile_bytes: int, release: str, filters_at_once: int) -> None:
    placed = deploy(build("ic"), BOARD, runtime=f"x-cube-ai@{release}")
    assert placed.runtime.window_filters == filters_at_once
    for plain, tiled in zip(list_windowed(placed, 0), list_windowed(placed, tile_bytes),
                            strict=True):
        weights, = (one.size_bytes for one in tiled.operands if one.name == "weights")
        filters = next(one.size_bytes for one in tiled.operands if one.name == "bias") // 4
        depth = weights // filters
        held = tile_bytes // (2 * depth)  # so many filters share windows, unless none fits
        shared = placed.runtime.window_filters
        tiles = -(-filters // min(filters, max(held, shared) if held else 1))
        assert trips(tiled, "gather pixel") == tiles * trips(plain, "gather pixel")
        assert tiled.nests == plain.nests and tiled.useful_macs == plain.useful_macs
        assert 4 * trips(tiled, "4 columns 2x2") + 2 * trips(tiled, "4 columns 1x2") == (
            4 * trips(plain, "4 columns 2x2") + 2 * trips(plain, "4 columns 1x2"))


def test_only_convolutions_widen_their_weights_and_only_of_closed_libraries() -> None:
    for name in CLOSED:
        assert load_runtime(name).weight_tile_bytes == 5_120
    assert load_runtime("tflm-cmsis-nn").weight_tile_bytes == 0
    placed = deploy(build("vww"), BOARD, runtime=CLOSED[0])
    whole = placed.replace(runtime=replace(placed.runtime, weight_tile_bytes=0))
    for ours, theirs in zip(kernels(placed), kernels(whole), strict=True):
        assert (ours.blocks == theirs.blocks) == (not ours.name.startswith("arm_convolve"))


def test_1x1_convolutions_finish_a_result_in_less_with_two_rows_widened_once() -> None:
    """Each pair of rows is widened once, every product made once, a result finished in fewer."""
    placed = deploy(build("vww"), BOARD, runtime=CLOSED[0])
    whole = placed.replace(runtime=replace(placed.runtime, weight_tile_bytes=0))
    found = 0
    for ours, theirs in zip(kernels(placed), kernels(whole), strict=True):
        if ours.name.startswith("arm_convolve_1x1"):
            found += 1
            assert ours.nests == theirs.nests and ours.useful_macs == theirs.useful_macs
            assert 4 * trips(ours, "widen two weight rows") + trips(
                ours, "sum of two weight rows") == trips(theirs, "sum of two weight rows")
            assert trips(ours, "finish 2x2") == trips(theirs, "finish 2x2") > 0
            lengths = [len(next(one.code for one in kernel.blocks if one.name == "finish 2x2"
                                ).split(";")) for kernel in (ours, theirs)]
            assert lengths[0] < 0.6 * lengths[1]
            assert all(trips(ours, name) == trips(theirs, name) for name in (
                "16 columns 2x2", "4 columns 2x2", "column 2x2"))
    assert found > 5
