"""A program of a RISC-V core as anybody might have it: a trap handler, counters, a console."""

from __future__ import annotations

import re
from pathlib import Path

from made_program import link_program

import hwmodels

LINK = """ENTRY(_start)
MEMORY { RAM (rwx) : ORIGIN = 0x80000000, LENGTH = 1M }
SECTIONS {
  .text : { KEEP(*(.start)) *(.text*) *(.rodata*) } > RAM
  .data : { *(.data*) *(.sdata*) } > RAM
  .bss (NOLOAD) : { *(.bss*) *(.sbss*) *(COMMON) } > RAM
  .stack (NOLOAD) : ALIGN(16) { . += 4096; stack_top = .; } > RAM
}
"""

SOURCE = r"""
#include <stdint.h>
#define R(a) (*(volatile uint32_t *)(a))
#define CSR(name) ({ uint32_t v; __asm volatile("csrr %0, " name : "=r"(v)); v; })
int main(void);
__attribute__((section(".start"), naked, used)) void _start(void)
{
    __asm volatile("la sp, stack_top\n la t0, trap\n csrw mtvec, t0\n jal main\n 1: j 1b");
}
volatile uint32_t served, cause, elapsed, ran, before, kept;
__attribute__((interrupt, aligned(4), used)) void trap(void)
{
    served++;
    cause = CSR("mcause");
    __asm volatile("csrr t0, mepc\n addi t0, t0, 4\n csrw mepc, t0" ::: "t0");
}
static void say(const char *text)
{
    register uint32_t call __asm("a0") = 4; register const char *what __asm("a1") = text;
    __asm volatile(".option push\n.option norvc\n slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n"
                   ".option pop" : "+r"(call) : "r"(what) : "memory");
}
int8_t weights[256] = {1, 2, 3}; int8_t input[64]; int32_t output[4];
__attribute__((noinline)) void layer_dense(void)
{
    for (int row = 0; row < 4; row++) {
        int32_t sum = 0;
        for (int i = 0; i < 64; i++) sum += weights[row * 64 + i] * input[i];
        output[row] = sum;
    }
}
__attribute__((noinline)) void infer(void)
{
    for (int i = 0; i < 64; i++) input[i] = (int8_t)(3 * i);
    layer_dense();
}
__attribute__((noinline)) void after_trap(uint32_t number) { cause += number; }
__attribute__((noinline)) void sleep(void) { __asm volatile("wfi"); }
int main(void)
{
    while (!(*(volatile uint8_t *)0x10000005 & 0x20)) ;
    R(0x60000000) = 'r'; R(0x60000000) = 'd'; R(0x60000000) = 'y'; R(0x60000000) = '\n';
    SAY
    before = CSR("minstret");
    uint32_t start = CSR("mcycle");
    infer();
    elapsed = CSR("mcycle") - start;
    ran = CSR("minstret") - before;
    __asm volatile("csrw mcycle, %0" :: "r"(1000));
    start = CSR("mcycle");
    __asm volatile("csrw mcycleh, %0" :: "r"(7));
    uint32_t low = CSR("cycle"), high = CSR("cycleh");
    __asm volatile("csrw 0x7e0, %0\n csrr %1, 0x7e0" : : "r"(5), "r"(0));
    kept = CSR("0x7e0") + (start >= 1000 && start < 1010) + 10 * (low > start && low < 1040)
           + 100 * (high == 7);
    __asm volatile("ecall");
    after_trap(7);
    sleep();
    return 0;
}
"""


def write_board(folder: Path) -> Path:
    """Write a board of that core with one memory where QEMU's `virt` machine has it."""
    text = (Path(hwmodels.__file__).parent / "boards" / "esp32c3_devkitm.yaml").read_text()
    text = text.replace("name: esp32c3_devkitm", "name: made_riscv")
    text = re.sub(r"  aliases: .*\n", "", text)
    text = re.sub(r"sram: \{.*\n", "sram: {role: sram, address: [0x80000000, assumed, common], "
                  "size_bytes: [32MiB, assumed, common], cacheable: false, bus: ahb}\n", text)
    text = text.replace("placement: {weights: flash, arena: sram, code: flash}",
                        "placement: {weights: sram, arena: sram, code: sram}")
    path = folder / "made_riscv.yaml"
    path.write_text(text)
    return path


def build_riscv_program(folder: Path, *, say: bool = False, source: str = SOURCE) -> Path:
    """Build it; skips the test where the compiler is missing."""
    return link_program(folder, LINK, source.replace("SAY", 'say("said\\n");' if say else ""), (
        "riscv64-unknown-elf-gcc", "-march=rv32imac_zicsr", "-mabi=ilp32", "-mcmodel=medany"))
