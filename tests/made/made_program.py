"""A program of a Cortex-M4 as anybody might have it: clocks, a console, tasks, a tick, layers."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

LINK = """MEMORY { FLASH (rx) : ORIGIN = 0x08000000, LENGTH = 512K
         RAM (rw) : ORIGIN = 0x20000000, LENGTH = 64K }
SECTIONS {
  .isr_vector : { KEEP(*(.isr_vector)) } > FLASH
  .text : { *(.text*) *(.rodata*) } > FLASH
  .data : { data_start = .; *(.data*) *(.fast) . = ALIGN(4); data_end = .; } > RAM AT > FLASH
  data_load = LOADADDR(.data);
  .bss (NOLOAD) : { bss_start = .; *(.bss*) *(COMMON) . = ALIGN(4); bss_end = .; } > RAM
}
"""

SOURCE = r"""
#include <stdint.h>
#define R(a) (*(volatile uint32_t *)(a))
extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[];
void Reset_Handler(void); void SysTick_Handler(void); void PendSV_Handler(void);
void SVC_Handler(void); int main(void); void switch_tasks(void);
static void hang(void) { for (;;) ; }
__attribute__((section(".isr_vector"), used)) void (*const table[16])(void) = {
    (void (*)(void))0x20010000, Reset_Handler, hang, hang, hang, hang, hang, 0, 0, 0, 0,
    SVC_Handler, hang, 0, PendSV_Handler, SysTick_Handler};
void Reset_Handler(void)
{
    for (uint32_t *from = data_load, *to = data_start; to < data_end;) *to++ = *from++;
    for (uint32_t *to = bss_start; to < bss_end;) *to++ = 0;
    main();
    hang();
}
volatile uint32_t ticks, served, elapsed, tasks;
void SysTick_Handler(void) { ticks++; if (tasks) R(0xE000ED04) = 1u << 28; }
void SVC_Handler(void) { served++; }
static uint32_t stacks[2][128];
uint32_t *saved[2]; uint32_t running; volatile uint32_t worked[2];
__attribute__((naked)) void PendSV_Handler(void)
{
    __asm volatile(
        "mrs r0, psp\n stmdb r0!, {r4-r11}\n ldr r1, =running\n ldr r2, [r1]\n ldr r3, =saved\n"
        "str r0, [r3, r2, lsl #2]\n eor r2, r2, #1\n str r2, [r1]\n ldr r0, [r3, r2, lsl #2]\n"
        "ldmia r0!, {r4-r11}\n msr psp, r0\n bx lr\n");
}
__attribute__((noinline)) void both_worked(void) { __asm volatile(""); }
static void task(uint32_t number)
{
    for (;;) { worked[number]++; if (worked[0] > 9 && worked[1] > 9) both_worked(); }
}
static int8_t weights[256] = {1, 2, 3}; int8_t input[64]; int32_t output[4];
__attribute__((noinline)) void layer_dense(void)
{
    for (int row = 0; row < 4; row++) {
        int32_t sum = 0;
        for (int i = 0; i < 64; i++) sum += weights[row * 64 + i] * input[i];
        output[row] = sum;
    }
}
__attribute__((noinline, section(".fast"), long_call)) void layer_fast(void)
{
    for (int i = 0; i < 64; i++) if (input[i] & 1) output[i & 3] += input[i];
}
__attribute__((noinline)) void infer(void)
{
    for (int i = 0; i < 64; i++) input[i] = (int8_t)(3 * i);
    layer_dense(); layer_fast();
}
static float scale = 1.5f; volatile float scaled;
__attribute__((noinline)) void layer_float(void)
{
    for (int i = 0; i < 16; i++) scaled = scaled * scale + (float)input[i];
}
static void print(const char *text)
{
    while (*text) { while (!(R(0x40004400) & 1u << 7)) ; R(0x40004404) = (uint8_t)*text++; }
}
static void say(const char *text)
{
    register uint32_t call __asm("r0") = 4; register const char *what __asm("r1") = text;
    __asm volatile("bkpt 0xab" : "+r"(call) : "r"(what) : "memory");
}
int main(void)
{
    R(0xE000ED88) |= 15u << 20;
    R(0x40023800) |= 1u << 16; while (!(R(0x40023800) & 1u << 17)) ;
    R(0x40023808) |= 2u; while ((R(0x40023808) >> 2 & 3) != 2) ;
    print("ready\n");
    SAY
    infer(); infer();
    uint32_t start = R(0xE0001004); infer(); elapsed = R(0xE0001004) - start;
    layer_float();
    __asm volatile("svc 0");
    R(0xE000E014) = 999; R(0xE000E018) = 0; R(0xE000E010) = 7;
    while (ticks < 3) __asm volatile("wfi");
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t *top = &stacks[i][120];
        top[-1] = 1u << 24; top[-2] = (uint32_t)task; top[-8] = i; saved[i] = top - 16;
    }
    switch_tasks();
    return 0;
}
void switch_tasks(void)
{
    tasks = 1;
    R(0xE000ED20) = 0xE0F00000;
    __asm volatile("msr psp, %0\n mov r1, #2\n msr control, r1\n isb" :: "r"(&stacks[0][120])
                   : "r1");
    task(0);
}
"""


def build_program(folder: Path, *, say: bool = False, options: tuple[str, ...] = (),
                  source: str = SOURCE) -> Path:
    """Build it; skips the test where the compiler is missing."""
    return link_program(folder, LINK, source.replace("SAY", 'say("said\\n");' if say else ""), (
        "arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16",
        "-mfloat-abi=hard", "-fno-tree-loop-distribute-patterns", *options))


def link_program(folder: Path, script: str, source: str, compiler: tuple[str, ...]) -> Path:
    """Compile and link a source alone; skips the test where the compiler is missing."""
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "link.ld").write_text(script)
    (folder / "program.c").write_text(source)
    made = folder / "program.elf"
    done = subprocess.run(
        [compiler[0], "-O2", "-fno-builtin", "-ffreestanding", "-nostdlib", *compiler[1:],
         "-T", str(folder / "link.ld"), str(folder / "program.c"), "-o", str(made)],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made


def make_few(base: int = 0x08000000) -> bytes:
    """A program of a few instructions as a linker leaves it: main calls a function and ends."""
    code = struct.pack("<II", 0x20001000, base + 0x41) + bytes(0x38)
    code += bytes.fromhex("00f002f8" "fee7" "00bf"      # reset: bl main; b .
                          "00b5" "00f001f8" "00bd"      # main: push lr; bl work; pop pc
                          "0a20" "0138" "fdd1" "7047")  # work: ten turns
    names = b"\0main\0work\0Reset_Handler\0.text\0.symtab\0.strtab\0.shstrtab\0.isr_vector\0"

    def at(name: bytes) -> int:
        return names.index(b"\0" + name + b"\0") + 1

    symbols = bytes(16) + b"".join(
        struct.pack("<IIIBBH", at(name), value | 1, size, 0x12, 0, 1)
        for name, value, size in ((b"Reset_Handler", base + 0x40, 8), (b"main", base + 0x48, 8),
                                  (b"work", base + 0x50, 8)))
    head = 52 + 32
    places = [(b"", 0, 0, 0, 0, b"", 0, 0), (b".text", 1, 6, base, head, code, 0, 0),
              (b".symtab", 2, 0, 0, head + len(code), symbols, 3, 16),
              (b".strtab", 3, 0, 0, head + len(code) + len(symbols), names, 0, 0)]
    sections = b"".join(struct.pack(
        "<IIIIIIIIII", at(name) if name else 0, kind, flags, address, offset, len(content), link,
        1 if link else 0, 4, size) for name, kind, flags, address, offset, content, link, size
        in places)
    end = head + len(code) + len(symbols) + len(names)
    return (b"\x7fELF\1\1\1" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, 40, 1, base + 0x41, 52, end, 0x05000200, 52, 32, 1, 40, 4, 3)
        + struct.pack("<IIIIIIII", 1, head, base, base, len(code), len(code), 5, 4)
        + code + symbols + names + sections)


def emulate_here(monkeypatch) -> None:
    """Emulate in this process, where a child would import all there is once more."""
    from twin.program import finding
    from twin.program.child import run_asked

    def emulate(elf, board, wanted):
        return json.loads(json.dumps(run_asked(elf.path, board, wanted)))

    monkeypatch.setattr(finding, "_emulate", emulate)
