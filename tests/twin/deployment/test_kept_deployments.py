"""Deployments whole: addresses, arena, operands of every kernel, what could be changed."""

from pathlib import Path

import pytest
from made_outlines import compare_kept, outline

from twin.deployment.core import arena_address, code_address, lower_network, weights_address
from twin.deployment.deploy import deploy
from twin.deployment.transformations import list_transformations

KEPT = Path(__file__).parent / "kept"
CASES = {
    "l4-ad": ("ad", "nucleo_l4r5zi", {}),
    "l4-ic-sram": ("ic", "nucleo_l4r5zi", {"weights": "sram", "runtime": "tflm-cmsis-nn"}),
    "h7-kws": ("kws", "stm32h747i_disco", {"runtime": "cmsis-nn"}),
    "c3-kws": ("kws", "esp32c3_devkitm", {}),
    "npu-ad": ("ad", "stm32n6570_dk", {}),
    "pico-sww": ("sww", "rpi_pico", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_placed(case) -> None:
    model, board, options = CASES[case]
    deployment = deploy(model, board, **options)
    kernels = [[(kernel.name, kernel.assumed, kernel.calls, [
        (one.name, one.role, one.memory, one.address, one.size_bytes) for one in kernel.operands])
        for kernel in layer] for layer in lower_network(deployment)]
    compare_kept(KEPT / f"{case}.txt", outline({
        "runtime": deployment.runtime.identity, "placement": deployment.placement,
        "named": (deployment.weights_named, deployment.arena_named, deployment.code),
        "addresses": (code_address(deployment), weights_address(deployment),
                      arena_address(deployment)),
        "bytes": (deployment.ram_bytes, deployment.flash_bytes, deployment.ram_parts),
        "notes": deployment.notes, "kernels": kernels}, 30))


@pytest.mark.parametrize("case", ["l4-ad", "h7-kws", "npu-ad"])
def test_what_could_be_changed(case) -> None:
    model, board, options = CASES[case]
    found = [one for one in list_transformations(deploy(model, board, **options))
             if one.path != "runtime"]
    compare_kept(KEPT / f"changes-{case}.txt", outline(found, 80))
