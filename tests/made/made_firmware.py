"""A network of two layers written by hand in C, and the firmware around it for a port."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FIRMWARE = Path(__file__).parents[2] / "firmware"
INPUT_BYTES = 64
MODEL = """#include "model.h"

static uint8_t arena[4096] __attribute__((section(".model_arena"), aligned(16)));
static uint8_t input[64];
static const uint8_t weights[1024] __attribute__((section(".model_weights"), aligned(16))) =
    {WEIGHTS};

static void sum_rows(void)
{
    for (uint32_t row = 0; row < 16; row++) {
        int32_t total = 0;
        for (uint32_t i = 0; i < 64; i++)
            total += (int8_t)arena[i] * (int8_t)weights[row * 64 + i];
        ((volatile int32_t *)(arena + 64))[row] = total;
    }
}

static void choose(void)
{
    for (uint32_t i = 0; i < 64; i++) {  /* conditional loads: IT blocks */
        const uint8_t *from = arena[i] & 1 ? arena + 64 : arena;
        ((volatile uint8_t *)arena)[256 + i] = arena[i] > 100 ? from[i] : (uint8_t)i;
    }
}

static const struct model_layer layers[] = {
    {.run = sum_rows, .name = "sum_rows", .output_offset = 64, .output_bytes = 64, .index = 0},
    {.run = choose, .name = "choose", .output_offset = 256, .output_bytes = 64, .index = 1}};

const struct model model = {
    .name = "made", .layers = layers, .layer_count = 2, .arena = arena, .arena_bytes = 4096,
    .input_offset = 0, .input_bytes = 64, .output_offset = 256, .output_bytes = 64,
    .input = input, .weights = weights, .weights_bytes = 1024, .compiler = "gcc"};
"""
WEIGHTS = [(7 * i + 3) % 251 for i in range(1024)]


def expected_output(data: bytes) -> bytes:
    """What the two layers make of an input."""
    def signed(value: int) -> int:
        return value - 256 if value > 127 else value

    sums = b"".join(
        sum(signed(data[i]) * signed(WEIGHTS[64 * row + i]) for i in range(64)).to_bytes(
            4, "little", signed=True) for row in range(16))
    return bytes((sums if data[i] & 1 else data)[i] if data[i] > 100 else i for i in range(64))


def build(port: str, folder: Path) -> Path:
    """Build the image for a port; skips the test where a tool is missing."""
    compiler = "cc" if port == "host" else (
        "riscv64-unknown-elf-gcc" if port.startswith("riscv") else "arm-none-eabi-gcc")
    for tool in (compiler, "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if not (FIRMWARE / "ports" / port / "port.mk").exists():
        pytest.skip(f"no port {port}")
    made = folder / "model"
    made.mkdir(parents=True, exist_ok=True)
    (made / "model.c").write_text(MODEL.replace("WEIGHTS", ", ".join(map(str, WEIGHTS)), 1))
    done = subprocess.run(
        ["make", "-s", "-j2", "-C", str(FIRMWARE), f"PORT={port}", f"MODEL={made}",
         f"OUT={folder / port}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / port / "firmware.elf"
