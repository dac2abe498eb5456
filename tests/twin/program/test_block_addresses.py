"""Addresses worked out from a block's registers are those the emulator's own hooks see."""

from __future__ import annotations

import pytest

pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("capstone", reason="needs the boards extra")

from made_program import build_program
from made_riscv_program import build_riscv_program, write_board

from hwmodels.board.file import load_board
from twin.program.addresses import APART, FIRST_MADE, LOAD, SUM, Sum, find_stretches
from twin.program.cores import open_machine
from twin.program.elf import read_elf
from twin.program.machine import Machine
from twin.program.thumb_addresses import ThumbReader

IT_STATE = 0x0600FC00
SOURCE = r"""
#include <stdint.h>
int main(void);
__attribute__((noinline)) void stop(void) { for (;;) __asm volatile(""); }
__attribute__((section(".isr_vector"), used)) void (*const table[2])(void) = {
    (void (*)(void))0x20010000, (void (*)(void))main};
uint32_t words[64], *pointer = words; uint32_t **chain = &pointer;
__attribute__((naked)) void odd(uint32_t *words, uint32_t ***chain)
{
    __asm volatile(
    "push {r4-r11, lr}\n mov r4, r0\n"
    "ldr r5, [r1]\n ldr r5, [r5]\n ldr r6, [r5, #4]\n"          /* pointers behind a store */
    "str r4, [r4, #32]\n ldr r6, [r4, #32]\n ldr r7, [r6, #8]\n" /* one just stored */
    "b 1f\n 1: str r4, [r4, #36]\n add r8, r4, #4\n ldr r6, [r8, #32]\n ldrb r7, [r6, #3]\n"
    "b 1f\n 1: movw r6, #8\n movt r6, #0\n ldrsh r7, [r4, r6]\n ldrb r7, [r4, r6, lsl #2]\n"
    "ldr r7, [r4], #4\n ldr r7, [r4, #-4]!\n strd r6, r7, [r4, #8]!\n ldrd r6, r7, [r4], #-8\n"
    "rsb r6, r4, #0\n rsb r6, r6, #16\n ldr r7, [r6]\n ubfx r6, r4, #2, #3\n ldrb r7, [r4, r6]\n"
    "b 1f\n 1: movw r6, #0\n movt r6, #0x4002\n str r4, [r6]\n ldr r7, [r6]\n"
    "ldrb r7, [r7]\n b 1f\n 1: ldr r7, [r6]\n ldrb r7, [r7, #1]\n"
    "lsrs r6, r4, #28\n ldrb r7, [r4, r6]\n and r6, r4, #15\n strb r7, [r4, r6]\n"
    "mov r6, #-3\n sxtb r7, r6\n add r7, r4, r7\n ldrb r7, [r7, #8]\n asrs r6, r6, #1\n"
    "add r6, r6, r4\n strh r7, [r6, #6]\n mov r6, #3\n mov r7, #5\n mla r6, r6, r7, r4\n"
    "ldrb r7, [r6]\n mls r6, r7, r7, r6\n orr r8, r4, #1\n strb r7, [r8]\n uxth r6, r8\n"
    "bic r8, r8, #3\n stmia r8!, {r5, r6, r7}\n ldmdb r8!, {r5, r6}\n ldm r8, {r6, r8}\n"
    "vldr s0, [r4]\n vstr d1, [r4, #8]\n vpush {d8-d10}\n vpop {d8-d10}\n vldmia r4!, {s2-s4}\n"
    "vstmdb r4!, {s2-s4}\n ldrex r6, [r4]\n adr r6, odd\n ldrh r6, [r6, #2]\n ldr r7, =0x20000000\n"
    "cmp r4, r7\n ittet hs\n ldrhs r6, [r4, #16]\n ldrhs r7, [r4, #20]\n strlo r6, [r4, #24]\n"
    "strhs r6, [r4, #28]\n ldr r7, [r4, #12]\n cmp r4, r4\n it ne\n ldrne r7, [r4]\n"
    "it eq\n addeq r4, r4, #4\n str r7, [r4]\n mov r6, #1\n tbb [pc, r6]\n"
    "2: .byte (3f - 2b) / 2, (4f - 2b) / 2\n 3: ldr r7, [r4]\n 4: str r7, [r4, #4]\n"
    "mov r6, #12\n 5: subs r6, r6, #1\n ldrb r7, [r4, r6]\n strb r7, [r4, r6]\n bne 5b\n"
    "mrs r7, control\n mov r6, sp\n sub r6, r6, #64\n msr psp, r6\n mov r6, #2\n"
    "msr control, r6\n isb\n push {r4}\n pop {r4}\n"
    "msr control, r7\n isb\n smull r6, r7, r4, r6\n pop {r4-r11, pc}\n .ltorg\n");
}
int main(void) {
    *(volatile uint32_t *)0xE000ED88 |= 15u << 20;
    pointer = words; chain = &pointer; odd(words, &chain); odd(words, &chain); stop(); return 0;
}
"""


def open_arm(folder):
    made = build_program(folder, source=SOURCE, options=("-Wl,-e,main",))
    return Machine(read_elf(made), load_board("nucleo_l4r5zi"), {}, 10**6), "stop"


def open_riscv(folder):
    made = build_riscv_program(folder, say=True)
    return open_machine(read_elf(made), load_board(write_board(folder)), {}, 10**6), "after_trap"


@pytest.mark.parametrize("opened", [open_arm, open_riscv])
def test_every_access_is_the_one_made_and_in_its_order(opened, tmp_path):
    machine, last = opened(tmp_path)
    names, words, made, found = machine.names, machine.words, [], []

    def see(core, kind, address, size, value, data):
        if opened is open_arm:
            status = core.reg_read(machine.emulator.number("XPSR"))
            if status & IT_STATE:  # Unicorn 2.1 leaves it set behind a hook
                core.reg_write(machine.emulator.number("XPSR"), status & ~IT_STATE)
        if any(low <= address < high for low, high in machine.spans):
            made.append((address, size, int(kind == machine.unicorn.UC_MEM_WRITE)))

    machine.machine.hook_add(machine.unicorn.UC_HOOK_MEM_READ
                             | machine.unicorn.UC_HOOK_MEM_WRITE, see)
    first = int(words[names.REGIONS_AT])
    for place in range(len(machine.recorder.regions)):
        at = first + place * names.REGION
        words[[at + names.KEPT_READS, at + names.KEPT_WRITES]] = 1
    machine.recorder.meet = lambda rows: found.extend(
        (address, mark >> 2 & 1023, mark & 3) for address, mark in rows.tolist()
        if mark & 3 != names.FETCH)
    words[names.RECORDING] = 1
    machine.run(machine.elf.symbols[last])
    machine.counters.drain()
    assert found == made
    assert len(found) > 200 and not machine.watch.odd


def test_a_word_of_memory_is_a_value_unless_a_store_before_it_may_reach_it():
    # str r0, [r1, #4]; ldr r2, [pc, #8]; ldr r3, [r2, #8]; ldr r4, [r3] (DDI 0403E, A7.7)
    code = bytes.fromhex("4860024a93681c68")
    literal = 0x20000000 + 0x10C
    for loads in (True, False):
        found, odd = find_stretches(ThumbReader, 0x100, code, lambda place: 0x20000000 + place,
                                    loads)
        first = ((1, 4, 2, 0, 1, 4), (0, 4, 0, 0, 1, 0x10C), (0, 4, 0, 0, 1, literal + 8))
        last = ((0, 4, 35 if loads else 4, 0, 1, 0),)
        assert [one.address for one in found] == ([0x100] if loads else [0x100, 0x106]) and not odd
        if loads:
            assert found[0].accesses == first + last and found[0].registers == {2}
            assert found[0].making == ((LOAD, 35, 0, 0, 1, literal + 8), (APART, 4, 2, 0, 1, 4))
        else:
            assert [one.accesses for one in found] == [first, last] and not found[0].making
    # str r0, [r1, #4]; ldr r2, [r1, #6]; ldr r3, [r2]: bytes 6 and 7 were just stored
    found, _ = find_stretches(ThumbReader, 0x100, bytes.fromhex("4860d1f806201368"), int, True)
    assert [one.address for one in found] == [0x100, 0x106]


def test_sums_are_values_and_a_constant():
    reader = ThumbReader(0, int)
    assert reader.add(Sum(3, 4), Sum(0, 8), sign=-1) == Sum(3, 0xFFFFFFFC)
    assert reader.add(Sum(0, 4), Sum(2, 8)) == Sum(2, 12)
    assert reader.add(Sum(1, 3), Sum(2, 5), shift=2) == Sum(FIRST_MADE)
    assert reader.made == [((SUM, FIRST_MADE, 1, 2, 4, 23),)]
