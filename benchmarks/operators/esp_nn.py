"""Counts what ESP-NN's C kernels execute: `python -m benchmarks.operators.esp_nn SOURCES`.

SOURCES is a checkout of espressif/esp-nn, of which nothing is kept here. Its ANSI C and generic
kernels are compiled by GCC -O2 with calls in many shapes, and run by `twin predict --elf`;
instructions, loads and stores of each call go to results/esp_nn_rv32imc.csv, which
`twin.runtimes.esp_nn_ansi` and `esp_nn` were written by and tests hold them to, and, of the same C
for Thumb-2, to results/esp_nn_armv7-m.csv: how far counts of one instruction set are from
another's (`CARRIED_SD` of `calibration.fitting.intervals`).
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import twin
from hwmodels.frozen import frozen

FOLDER = Path(__file__).parent / "results"
RESULTS, THUMB = FOLDER / "esp_nn_rv32imc.csv", FOLDER / "esp_nn_armv7-m.csv"
BUILDS = ("ansi", "opt")
LEFT_OUT = ("logistic", "hard_swish", "mean")
COLUMNS = ("op", "build", "height", "width", "channels", "outputs", "kernel_rows", "kernel_columns",
           "stride", "padding")
_HEADERS = "#pragma once\n#include <stddef.h>\nvoid *memcpy(void *, const void *, size_t);" \
           "void *memset(void *, int, size_t); int printf(const char *, ...);\n"
_LINK = """ENTRY(_start)
MEMORY { CODE (rx) : ORIGIN = CODE_AT, LENGTH = 1M
         RAM (rw) : ORIGIN = RAM_AT, LENGTH = 300K }
SECTIONS { .text : { KEEP(*(.start)) *(.text* .rodata* .srodata*) } > CODE
  .data : { *(.data* .sdata*) } > RAM
  .bss (NOLOAD) : { *(.bss* .sbss* COMMON) } > RAM
  .stack (NOLOAD) : ALIGN(16) { . += 8192; stack_top = .; } > RAM }
"""
_HEAD = r"""#include <stdint.h>
#include <esp_nn_defs.h>
#include <esp_nn_ansi_headers.h>
int8_t in1[32768], in2[65536], out[65536];
int32_t bias[1024], mult[1024], shift[1024], scratch[4096];
void *memset(void *d, int v, unsigned n) { char *p = d; while (n--) *p++ = v; return d; }
void *memcpy(void *d, const void *s, unsigned n)
{ char *p = d; const char *q = s; while (n--) *p++ = *q++; return d; }
int printf(const char *f, ...) { return 0; }
int main(void);
"""
_FILL = """void fill(void)
{
    uint32_t s = 1;
    for (int i = 0; i < 65536; i++) {
        s = s * 1664525u + 1013904223u;
        if (i < 32768) in1[i] = (int8_t)(s >> 24);
        in2[i] = (int8_t)(s >> 16);
    }
    for (int i = 0; i < 1024; i++) {
        s = s * 1664525u + 1013904223u;
        bias[i] = (int16_t)(s >> 16); mult[i] = 0x7eb0e200 + (s >> 26);
        shift[i] = -8 - (int)(s >> 30);
    }
}
"""

Case = dict[str, int | str]


@frozen
class Target:
    """What the kernels are compiled for, where they run, and how they start."""

    name: str
    kept: Path
    compiler: tuple[str, ...]
    board: str
    code_at: int
    ram_at: int
    start: str


TARGETS = (
    Target(name="rv32imc", kept=RESULTS, board="esp32c3_devkitm", code_at=0x42000000,
           ram_at=0x3FC7C000, compiler=("riscv64-unknown-elf-gcc", "-march=rv32imc",
                                        "-mabi=ilp32", "-mcmodel=medany"),
           start='__attribute__((naked, section(".start"), used)) void _start(void)\n'
                 '{ __asm volatile("la sp, stack_top\\n jal main\\n 1: j 1b"); }\n'),
    Target(name="armv7-m", kept=THUMB, board="nucleo_l4r5zi", code_at=0x08000000,
           ram_at=0x20000000, compiler=("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"),
           start="extern char stack_top; void _start(void) { main(); for (;;); }\n"
                 '__attribute__((section(".start"), used)) void *vectors[2] = '
                 "{ &stack_top, _start };\n"))


def list_cases() -> Iterator[Case]:
    """Yield operators, builds and shapes: those of the library's tests, and random ones."""
    random = np.random.default_rng(7)
    windows = [("conv_2d", 10, 10, 64, 64, 1, 1, 1, 0), ("conv_2d", 10, 10, 3, 64, 3, 3, 1, 0),
               ("depthwise_conv_2d", 18, 18, 16, 16, 3, 3, 1, 0),
               ("depthwise_conv_2d", 12, 12, 4, 32, 5, 5, 1, 1),
               ("max_pool_2d", 16, 16, 16, 16, 3, 3, 1, 0),
               ("average_pool_2d", 16, 16, 16, 16, 3, 3, 1, 0)]
    for op in ("conv_2d", "depthwise_conv_2d", "max_pool_2d", "average_pool_2d"):
        for _ in range(24 if op.endswith("conv_2d") else 6):
            rows, columns = ((3, 3), (1, 1), (2, 3), (5, 5), (3, 2))[random.integers(5)]
            channels = int(random.choice([1, 2, 3, 4, 6, 8, 13, 16]))
            outputs = {"conv_2d": int(random.choice([2, 3, 4, 7, 12])), "depthwise_conv_2d":
                       channels * int(random.choice([1, 1, 2, 3, 4, 6, 8]))}.get(op, channels)
            height, width = (int(one) for one in random.integers(5, 10, 2))
            windows.append((op, height, width, channels, outputs, rows, columns,
                            int(random.integers(1, 3)), int(min(rows, columns) > 1
                                                            and random.integers(2))))
    for op, *shape in windows:
        for build in BUILDS if op.endswith("conv_2d") else BUILDS[:1]:
            yield dict(zip(COLUMNS, (op, build, *shape), strict=True))
    for op in ("add", "mul", "relu6"):
        for count in (1615, 400, 37):
            yield {"op": op, "build": "ansi", "channels": count}
    for columns, outputs in ((271, 3), (64, 12), (640, 20), (33, 7)):
        yield {"op": "fully_connected", "build": "ansi", "channels": columns, "outputs": outputs}
    for rows, columns in ((8, 32), (1, 256), (3, 10)):
        for build in BUILDS:
            yield {"op": "softmax", "build": build, "height": rows, "channels": columns}


def write_call(case: Case) -> str:
    """Return the C statement that runs a case."""
    op, build, count = case["op"], case["build"], case["channels"]
    if op in ("conv_2d", "depthwise_conv_2d"):
        one, stride, padding = op == "conv_2d", case["stride"], case["padding"]
        rows, columns = size_of_output(case)
        multiplier = 0 if one else int(case["outputs"]) // int(count)
        return (
            f"data_dims_t i = {{{case['width']}, {case['height']}, {count}, 1}}, "
            f"o = {{{columns}, {rows}, {case['outputs']}, 1}}, f = {{{case['kernel_columns']}, "
            f"{case['kernel_rows']}, {count if one else 0}, 0}}; {'' if one else 'dw_'}"
            f"conv_params_t p = {{5, 3, {'' if one else f'{multiplier}, '}{{{stride}, {stride}}}, "
            f"{{{padding}, {padding}}}, {{0, 0}}, {{-125, 122}}}}; "
            "quant_data_t q = {shift, mult}; "
            f"esp_nn_{'' if one else 'depthwise_'}conv_s8_{build}(&i, in1, &f, in2, bias, &o, out, "
            "&p, &q);")
    if op in ("max_pool_2d", "average_pool_2d"):
        rows, columns = size_of_output(case)
        stride, padding = case["stride"], case["padding"]
        return (f"esp_nn_{'max' if op == 'max_pool_2d' else 'avg'}_pool_s8_ansi(in1, "
                f"{case['width']}, {case['height']}, out, {columns}, {rows}, {stride}, {stride}, "
                f"{case['kernel_columns']}, {case['kernel_rows']}, {padding}, {padding}, -128, "
                f"127, {count});")
    if op == "softmax":
        return (f"esp_nn_set_softmax_scratch_buf_{build}(scratch); esp_nn_softmax_s8_{build}(in1, "
                f"{case['height']}, {count}, INT32_MAX / 2, 7, -128, out);")
    return {
        "add": "esp_nn_add_elementwise_s8_ansi(in1, in2, 34, 35, 0x7eb0e200, 0x7eb0e201, -8, -9, "
               f"15, out, 36, 0x7eb0e202, -10, -125, 120, {count});",
        "mul": "esp_nn_mul_elementwise_s8_ansi(in1, in2, 34, 35, out, 36, 0x7eb0e202, -7, -125, "
               f"120, {count});",
        "relu6": f"esp_nn_relu6_s8_ansi(in1, {count});",
        "fully_connected": f"esp_nn_fully_connected_s8_ansi(in1, 12, {count}, in2, 0, bias, out, "
                           f"{case.get('outputs')}, 7, -10, 0x59e492c4, -128, 127);"}[str(op)]


def size_of_output(case: Case) -> tuple[int, int]:
    """Return rows and columns of what a window gives."""
    rows, columns = (
        (int(case[size]) + 2 * int(case["padding"]) - int(case[kernel])) // int(case["stride"]) + 1
        for size, kernel in (("height", "kernel_rows"), ("width", "kernel_columns")))
    return rows, columns


def build_program(sources: Path, cases: list[Case], folder: Path, target: Target) -> Path:
    """Compile the library's C beside calls of every case."""
    for name in ("string", "stdlib", "stdio", "assert"):
        (folder / f"{name}.h").write_text(_HEADERS)
    (folder / "link.ld").write_text(_LINK.replace("CODE_AT", hex(target.code_at))
                                    .replace("RAM_AT", hex(target.ram_at)))
    calls = "".join(f"__attribute__((noinline)) void case_{number}(void) {{ {write_call(case)} }}\n"
                    for number, case in enumerate(cases))
    every = "".join(f"case_{number}(); " for number in range(len(cases)))
    (folder / "calls.c").write_text(
        f"{_HEAD}{target.start}{calls}{_FILL}"
        f"__attribute__((noinline)) void all(void) {{ {every}}}\n"
        "int main(void) { fill(); all(); return 0; }\n")
    files = [path for kind in BUILDS for path in sorted(sources.glob(f"src/*/*_{kind}.c"))
             if not any(name in path.name for name in LEFT_OUT)]
    made = folder / "program.elf"
    subprocess.run(
        [*target.compiler, "-O2", "-ffreestanding", "-fno-builtin", "-nostdlib", "-w",
         f"-I{folder}",
         f"-I{sources / 'include'}", f"-I{sources / 'src/common'}", f"-Wl,-T,{folder / 'link.ld'}",
         str(folder / "calls.c"), *map(str, files), "-lgcc", "-o", str(made)], check=True)
    return made


def count(sources: Path, target: Target) -> None:
    """Count every case and keep the table."""
    cases = list(list_cases())
    with tempfile.TemporaryDirectory() as name:
        program = build_program(sources, cases, Path(name), target)
        found = twin.deploy_elf(program, target.board, call="all", layers="case_*",
                                limit=2 * 10**9).found
    counted = {layer: [sum(getattr(run.traffic, what) for run in runs)
                       for what in ("instructions", "loads", "stores")]
               for layer, runs in found.warm}
    with target.kept.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow((*COLUMNS, "instructions", "loads", "stores", "source"))
        for number, case in enumerate(cases):
            writer.writerow((*(case.get(name, "") for name in COLUMNS), *counted[f"case_{number}"],
                             f"espressif/esp-nn@d45b843ca5f8, gcc 12.2 -O2 {target.name}, counted"))


def main() -> None:
    """Count for every instruction set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path, help="checkout of espressif/esp-nn")
    sources = parser.parse_args().sources
    for target in TARGETS:
        count(sources, target)


if __name__ == "__main__":
    main()
