"""Straight code of a Cortex-M55 longer than an emulator's blocks, across pages and in loops."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

LINK = """MEMORY { CODE (rx) : ORIGIN = 0, LENGTH = 64K }
SECTIONS { .text : { *(.text) } > CODE }
"""

SOURCE = """
.syntax unified
.thumb
.macro function name
 .type \\name, %function
 .global \\name
 .thumb_func
\\name:
.endm
.macro straight times
 .rept \\times
 nop
 .endr
.endm
 .word 0x20010000, start, stop, stop
function stop
 b stop
function start
 movw r0, #0xed88
 movt r0, #0xe000
 mov r1, #0xf00000
 str r1, [r0]
 isb
 bl main
 b stop
function main
 push {r4, lr}
 bl inside
 bl across
 bl far_across
 bl calling
 bl looping
 bl counting
 pop {r4, pc}

/* 1,002 from a page's start; 602 and 1,002 from before a page's end. */
 .balign 4096
function inside
 vmov.i32 q0, #0
 straight 1000
 bx lr
 .balign 4096
 .skip 4096 - 600
function across
 vmov.i32 q0, #0
 straight 600
 bx lr
 .balign 4096
 .skip 3100
function far_across
 vmov.i32 q0, #0
 straight 1000
 bx lr

/* A wide call over the page's end, behind straight code: 2 + 600 + 2, and 2 of what is called. */
 .balign 4096
 .skip 4096 - 2 - 1200 - 2 - 4
function calling
 push {lr}
 vmov.i32 q0, #0
 straight 600
 bl called
 pop {pc}
function called
 nop
 bx lr

/* 3 turns of 600 + 2 over a page's end, 2 before and 1 behind. */
 .balign 4096
 .skip 4096 - 500
function looping
 vmov.i32 q0, #0
 movs r0, #3
1: straight 600
 subs r0, #1
 bne.w 1b
 bx lr

/* The same as a low-overhead loop, whose LE is issued once: 3 turns of 600, 3 before, 2 behind. */
 .balign 4096
 .skip 4096 - 500
function counting
 mov r4, lr
 movs r0, #3
 dls lr, r0
1: straight 600
 le lr, 1b
 vmov.i32 q0, #0
 bx r4
"""

INSTRUCTIONS = {"inside": 1002, "across": 602, "far_across": 1002, "calling": 606,
                "looping": 2 + 3 * 602 + 1, "counting": 3 + 3 * 600 + 1 + 2}


def build_helium_program(folder: Path) -> Path:
    """Build it; skips the test where the compiler or QEMU is missing."""
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (folder / "link.ld").write_text(LINK)
    (folder / "program.S").write_text(SOURCE)
    made = folder / "program.elf"
    done = subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-nostdlib",
         "-T", str(folder / "link.ld"), str(folder / "program.S"), "-o", str(made)],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made
