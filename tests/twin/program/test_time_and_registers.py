"""What is not computing: sleep, waiting loops, timers, checksums, flash, bit-band, copied code."""

from __future__ import annotations

import zlib
from types import SimpleNamespace

import pytest

pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("capstone", reason="needs the boards extra")

from made_program import build_program, emulate_here

import twin
from hwmodels.board.file import load_board
from twin.errors import ProgramError
from twin.program.bus import Bus
from twin.program.counting import ASLEEP
from twin.program.part import Field, Follower, load_part
from twin.program.peripherals import Peripherals, locate_bit
from twin.program.waiting import Waiting

BOARD = "nucleo_f401re"
CLOCK_HZ = 84_000_000

SOURCE = r"""
#include <stdint.h>
#define REG(address) (*(volatile uint32_t *)(address))
extern uint32_t ld_data, ld_data_end, ld_data_load;
volatile uint32_t ticks; volatile uint32_t turns; uint32_t room[8];
int main(void);
void SysTick_Handler(void) { ticks++; }
void TIM2_Handler(void) { REG(0x40000010) = ~1u; turns++; }
void Reset_Handler(void) { main(); for (;;) ; }
__attribute__((section(".isr_vector"), used)) void (*const table[64])(void) = {
    (void (*)(void))0x20010000, Reset_Handler, [15] = SysTick_Handler, [16 + 28] = TIM2_Handler};
#define CODE __attribute__((noinline)) void
CODE tick_on(void) { REG(0xE000E014) = 84000 - 1; REG(0xE000E018) = 0; REG(0xE000E010) = 7; }
CODE delay(void) { tick_on(); uint32_t t = ticks; while (ticks - t < 10) __asm volatile("wfi"); }
CODE delay_event(void) { tick_on(); uint32_t t = ticks;
    while (ticks - t < 10) __asm volatile("wfe"); }
CODE delay_busy(void) { tick_on(); uint32_t t = ticks; while (ticks - t < 10) ; }
CODE timer_busy(void) { REG(0x40000028) = 83; REG(0x4000002C) = 0xFFFFFFFF; REG(0x40000014) = 1;
    REG(0x40000000) = 1; while (REG(0x40000024) < 5000) ; }
CODE timer_turns(void) { REG(0x40000028) = 83; REG(0x4000002C) = 999; REG(0x40000014) = 1;
    REG(0x40000000) = 1; uint32_t sum = 0, was = 0;
    while (sum < 5000) { uint32_t now = REG(0x40000024);
        sum += now >= was ? now - was : now + 1000 - was; was = now; } room[3] = sum; }
CODE tick_flags(void) { REG(0xE000E014) = 84000 - 1; REG(0xE000E018) = 0; REG(0xE000E010) = 5;
    for (int i = 0; i < 10; i++) while (!(REG(0xE000E010) & 1 << 16)) ; }
CODE counted_reads(void) { REG(0xE0001000) |= 1;
    for (room[4] = 0; room[4] < 30000; room[4]++) room[5] += REG(0xE0001004) & 1; }
CODE counter_busy(void) { uint32_t t = REG(0xE0001004);
    while (REG(0xE0001004) - t < 84000 * 10) room[6] = REG(0xE0001004); }
CODE events(void) { __asm volatile("sev\n wfe\n wfe"); }
CODE timer(void) { REG(0x40000028) = 83; REG(0x4000002C) = 0xFFFFFFFF; REG(0x40000014) = 1;
    REG(0x40000000) = 1; while (REG(0x40000024) < 1000) ; }
CODE timer_interrupt(void) { REG(0x40000028) = 83; REG(0x4000002C) = 999; REG(0x40000014) = 1;
    REG(0x40000010) = 0; REG(0x4000000C) = 1; REG(0xE000E100) = 1 << 28; REG(0x40000000) = 1;
    while (turns < 3) __asm volatile("wfi"); }
CODE write_flash(void) { REG(0x08010000) = 0x12345678; }
CODE program_flash(void) { REG(0x40023C04) = 0x45670123; REG(0x40023C04) = 0xCDEF89AB;
    REG(0x40023C10) = 1; REG(0x08010000) = 0x12345678; room[0] = REG(0x08010000); }
CODE bits(void) { volatile uint32_t *one = &room[1];
    REG(0x22000000 + ((uint32_t)one - 0x20000000) * 32 + 4 * 5) = 1; room[0] = *one;
    REG(0x42470060) = 1; room[2] = REG(0x40023800); }
CODE send(void) { for (int i = 0; i < 5; i++) REG(0x40004404) = 'a' + i; REG(0x4000440C) = 8; }
CODE dma_done(void) { while (!(REG(0x40026400) & 0x20)) ; }
__attribute__((noinline)) uint32_t work(uint32_t n) { uint32_t s = 0;
    for (uint32_t i = 0; i < n; i++) s += i ^ n; return s; }
CODE copied(void) { uint8_t *to = (uint8_t *)0x20008000;
    const uint8_t *from = (const uint8_t *)((uint32_t)work & ~1u);
    for (int i = 0; i < 64; i++) to[i] = from[i];
    room[0] = ((uint32_t (*)(uint32_t))(0x20008001))(100); }
CODE direct(void) { room[0] = work(100); }
CODE Error_Handler(void) { __asm volatile("cpsid i"); for (;;) ; }
CODE clock(void) { tick_on(); if (!(REG(0x40007004) & 0x8)) Error_Handler(); }
CODE superloop(void) { tick_on(); for (;;) ; }
void (*const keep[])(void) = {delay, delay_event, delay_busy, events, timer, timer_interrupt,
    write_flash, program_flash, bits, dma_done, copied, direct, clock, superloop, timer_busy,
    timer_turns, tick_flags, counted_reads, counter_busy, send};
int main(void) { return (int)keep[turns & 7]; }
"""


@pytest.fixture(autouse=True)
def here(monkeypatch):
    emulate_here(monkeypatch)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_program(tmp_path_factory.mktemp("time"), source=SOURCE,
                         options=("-Wl,-e,Reset_Handler",))


def call(program, name, **asked):
    return twin.deploy_elf(program, BOARD, call=name, **asked)


def asleep(made):
    return next(run for _, layer in made.found.warm for run in layer if run.name == ASLEEP)


def test_what_a_serial_line_sends_is_named_as_missing_time(program):
    assert run_here(program, "send").untimed == ("what was sent to USART2+0x04 (0x40004404)",)
    assert run_here(program, "timer").untimed == ()


@pytest.mark.parametrize("name", ["delay", "delay_event"])
def test_sleep_is_billed_as_idle_at_the_sleep_current(program, name):
    made = call(program, name)
    prediction, busy = twin.predict(made), twin.predict(call(program, "delay_busy"))
    assert prediction.time_us == pytest.approx(10_000, rel=0.01)
    assert busy.time_us == pytest.approx(10_000, rel=0.01)
    causes = {line.event: line for line in prediction.bill.lines}
    assert causes["sleep"].cycles == asleep(made).traffic.core_cycles > 0.98 * 840_000
    assert 9 <= asleep(made).calls <= 11
    assert 0.98 < prediction.certainty.time_us.low / 10_000 < prediction.certainty.time_us.high / (
        10_000) < 1.02  # a clock ends it, whatever instructions cost
    # Sleep current: leakage and the clock tree, less than half of a busy core's (DS10314).
    board = load_board(BOARD)
    power = board.power
    ma = power.leakage_ma + power.clock_tree_ma_per_mhz * CLOCK_HZ / 1e6
    stated = twin.predict(made, calibration="none")
    assert stated.energy_uj == pytest.approx(ma * 3.3 * 10, rel=0.03)
    assert prediction.energy_uj < 0.5 * busy.energy_uj


def run_here(program, name):
    """Emulate in this process, where a child would."""
    from twin.program.asking import Wanted
    from twin.program.elf import read_elf
    from twin.program.session import run_program

    wanted = Wanted(begin=None, end=None, call=name, nth=1, layers="none", registers={},
                    files={}, limit=10**8)
    return run_program(read_elf(program), load_board(BOARD), wanted)


def count_calls(monkeypatch, owner, name):
    calls, original = [], getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda self, *given: (
        calls.append(given), original(self, *given))[1])
    return calls


def test_a_loop_that_waits_is_counted_without_running_its_turns(program, monkeypatch):
    found = call(program, "delay_busy").found
    skipped = count_calls(monkeypatch, Waiting, "_skip")
    monkeypatch.setattr(Waiting, "look", lambda self, address: False)
    slow = run_here(program, "delay_busy")
    monkeypatch.undo()
    assert not skipped
    skipped = count_calls(monkeypatch, Waiting, "_skip")
    fast = run_here(program, "delay_busy")
    assert skipped and fast == slow and found.instructions == fast.instructions
    assert fast.instructions > 100_000


@pytest.mark.parametrize(("name", "most"), [
    ("timer_busy", 0.05), ("timer_turns", 0.4), ("tick_flags", 0.2), ("counter_busy", 0.05)])
def test_a_loop_that_waits_for_a_clock_is_counted_to_the_same_numbers(program, monkeypatch, name,
                                                                      most):
    reads = count_calls(monkeypatch, Peripherals, "note_clock")
    monkeypatch.setattr(Waiting, "look", lambda self, address: False)
    slow, slow_reads = run_here(program, name), len(reads)
    monkeypatch.undo()
    reads = count_calls(monkeypatch, Peripherals, "note_clock")
    fast = run_here(program, name)
    assert fast == slow and fast.instructions > 100_000
    assert len(reads) < most * slow_reads


def test_a_loop_that_counts_its_turns_is_run_though_it_reads_a_clock(program, monkeypatch):
    fast = run_here(program, "counted_reads")
    monkeypatch.setattr(Waiting, "look", lambda self, address: False)
    assert run_here(program, "counted_reads") == fast


RESETS = r"""
#include <stdint.h>
#define REG(address) (*(volatile uint32_t *)(address))
uint32_t ld_data, ld_data_end, ld_data_load;
__attribute__((noinline)) int main(void) { return (int)REG(0x20008004); }
void Reset_Handler(void) { if (REG(0x20008000) != 1) { REG(0x20008000) = 1;
    REG(0xE000ED0C) = 0x05FA0004; __asm volatile("dsb\n nop\n nop"); for (;;) ; }
    main(); for (;;) ; }
__attribute__((section(".isr_vector"), used)) void (*const table[64])(void) = {
    (void (*)(void))0x20010000, Reset_Handler};
"""


def test_what_stands_behind_a_reset_is_not_counted(tmp_path):
    from twin.program.cores import open_machine
    from twin.program.elf import read_elf

    elf = read_elf(build_program(tmp_path, source=RESETS, options=("-Wl,-e,Reset_Handler",)))
    machine, ran = open_machine(elf, load_board(BOARD), {}, 10**6), []
    machine.machine.hook_add(machine.unicorn.UC_HOOK_CODE, lambda *given: ran.append(given[1]))
    machine.run(elf.address_of("main", "--from"))
    assert ran.count(ran[0]) == 2  # it began twice
    assert machine.words[machine.names.INSTRUCTIONS] == len(ran)


def test_a_semaphore_of_an_stm32h7_is_taken_by_reading_it():
    # RM0399, 11.3.4: LOCK, bit 31, and the number of the core that took it, 3 for the Cortex-M7.
    device = Peripherals(load_board("stm32h747i_disco"), lambda: 0, lambda at: "", lambda: None)
    base, block = 0x58026400, 0x08000000
    assert device.read(base + 8, 4, block) == 0
    assert device.read(base + 0x88, 4, block) == device.read(base + 8, 4, block) == 0x80000300
    device.write(base + 8, 4, 0x300, block)
    assert not device.read(base + 8, 4, block) >> 31


def test_a_program_of_a_larger_core_is_refused(program):
    from twin.program.cores import check_core
    from twin.program.elf import read_elf

    elf = read_elf(program)
    assert elf.architecture == 13
    for board in ("nucleo_f401re", "nucleo_u575zi_q", "ek_ra8d1"):
        check_core(elf, load_board(board))
    with pytest.raises(ProgramError, match=r"architecture Armv7E-M, and rpi_pico has a cortex-m0p"):
        check_core(elf, load_board("rpi_pico"))
    with pytest.raises(ProgramError, match=r"architecture Armv7E-M, and esp32c3"):
        check_core(elf, load_board("esp32c3_devkitm"))


def test_wait_for_event_is_an_instruction(program):
    made = call(program, "events")
    assert 4 <= made.found.instructions <= 6  # the first finds the event sent, the second none


def test_timers_count_at_their_rate(program):
    assert twin.predict(call(program, "timer")).time_us == pytest.approx(1000, rel=0.01)
    assert twin.predict(call(program, "timer_interrupt")).time_us == pytest.approx(3000, rel=0.01)


def test_what_has_no_rate_is_said_to_be_missing(program):
    said = [one for one in twin.predict(call(program, "dma_done")).warnings if "waited" in one]
    assert "DMA2+0x00 (0x40026400)" in said[0] and "missing in these figures" in said[0]


def device():
    return Peripherals(load_board(BOARD), lambda: 0, lambda at: "", lambda: None)


def test_a_checksum_is_what_the_unit_gives():
    one = device()
    one.write(0x40023008, 4, 1, 0)
    one.write(0x40023000, 4, 0xF407A5C2, 0)
    assert one.read(0x40023000, 4, 0) == 0xB5E8B5CD
    # Reversed in and out it is the checksum of zip, inverted (RM0432, 17.3).
    other = Peripherals(load_board("nucleo_l4r5zi"), lambda: 0, lambda at: "", lambda: None)
    other.write(0x40023008, 4, 0xA1, 0)
    for byte in b"123456789":
        other.write(0x40023000, 1, byte, 0)
    assert other.read(0x40023000, 4, 0) ^ 0xFFFFFFFF == zlib.crc32(b"123456789")


def test_ready_bits_follow_and_status_is_cleared_as_the_part_does_it():
    one = device()
    assert one.read(0x40023800, 4, 0) == 0x83
    one.write(0x40023800, 4, 0x01010083, 0)  # HSEON, PLLON
    assert one.read(0x40023800, 4, 0) == 0x03030083
    one.write(0x40023808, 4, 2, 0)
    assert one.read(0x40023808, 4, 0) == 0xA
    one.write(0x40004400, 4, ~0x40 & 0xFFFFFFFF, 0)  # TC cleared, nothing else set
    assert one.read(0x40004400, 4, 0) == 0x80
    one.fixed[0x40023800] = 7
    one.write(0x40023800, 4, 0, 0)
    assert one.read(0x40023800, 4, 0) == 7
    assert locate_bit(0x42470060) == (0x40023800, 24)
    assert load_part(BOARD).names == {} and "RCC" in load_part("stm32f401re").name(0x40023800)


def test_a_field_that_follows_any_value_takes_no_room_for_others():
    field = Field(word=0, first=0, bits=4)

    def follow(how, held):
        return Follower(field=field, source=Field(word=4, first=0, bits=32), how=how).value(
            {4: held})
    assert [follow(how, 2) for how in ("", "!", "^")] == [2, 13, 4]
    assert follow("^", 0xFFFFFFFF) == 0  # 2 to that power would be half a gigabyte.


def test_start_up_of_rp2350_clears_its_doubles_and_computes_none():
    def has(code):
        machine = SimpleNamespace(peripherals=SimpleNamespace(part=load_part("rp2350a")),
                                  read=lambda place, size: bytes.fromhex(code))
        return Bus.has_coprocessor(SimpleNamespace(machine=machine), 0)
    assert has("10ee3004") and has("50ec1000")  # mrc p4,0,r0,c0,c0,1; mrrc p0
    assert not has("50ec1004")  # mrrc p4: a double's value


def test_a_store_to_flash_is_refused_unless_flash_was_opened(program):
    with pytest.raises(ProgramError, match=r"write to 0x08010000 in write_flash: flash of"):
        call(program, "write_flash")
    made = call(program, "program_flash")
    assert any("flash" in one and "missing" in one for one in twin.predict(made).warnings)


def test_code_that_a_program_copies_runs_as_it_does_in_place(program):
    made, direct = call(program, "copied"), call(program, "direct")

    def worked(found):
        return next(run.traffic.instructions for _, layer in found.warm for run in layer
                    if run.name.startswith("work"))

    assert worked(made.found) == worked(direct.found) > 300
    assert any(run.name == "work in RAM" for _, layer in made.found.warm for run in layer)


def test_bit_band_aliases_are_bits(program):
    made = call(program, "bits")
    assert not made.found.doubts and not made.found.polls


def test_an_error_loop_ends_at_once_and_says_what_was_read_last(program):
    with pytest.raises(ProgramError) as failed:
        call(program, "clock")
    said = str(failed.value)
    assert "stays in Error_Handler" in said and "come from clock" in said
    assert "PWR+0x04 (0x40007004), which answered 0x" in said
    with pytest.raises(ProgramError, match="stays in superloop"):
        call(program, "superloop")
