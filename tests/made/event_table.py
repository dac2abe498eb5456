"""What each event of a core and its memories is: micro-kernels and their bills, by hand.

A line reads: cause, event, place, occurred, exposed, core cycles, pJ. Cycles are exposed times the
price, energy is occurred times the price: what `ledger_board.yaml` says above its first key. An
issue slot is a cycle and 1000 pJ, a waiting cycle 500 pJ. Every line of a bill is listed, so that
an event that is counted as another one leaves one line too many and one too few.
"""

from made_bills import Case, Line, block, busy, kernel, walk

from hwmodels.bus.contention import Load

ADD = "adds r1, r1, r2"
LOOKED_UP = Line("load_store", "dcache_access", "l1d", 64, 0, 0, 0)

CORE = (
    # One multiply-accumulate a cycle.
    Case(name="mac", work=kernel(block("mla r8, r4, r5, r8", 100), useful_macs=100), lines=(
        Line("mac", "mac_issue", "", 100, 100, 100, 100_000),)),
    # The result needs three in four of them.
    Case(name="mac, a quarter for nothing", work=kernel(
        block("mla r8, r4, r5, r8", 100), useful_macs=75), lines=(
        Line("mac", "mac_issue", "", 75, 75, 75, 75_000),
        Line("mac_waste", "mac_waste_issue", "", 25, 25, 25, 25_000))),
    Case(name="a block that only wastes", work=kernel(block(ADD, 10, cause="mac_waste")), lines=(
        Line("mac_waste", "mac_waste_issue", "", 10, 10, 10, 10_000),)),
    Case(name="arithmetic", work=kernel(busy(10)), lines=(
        Line("alu", "alu_issue", "", 10, 10, 10, 10_000),)),
    # DDI 0439: a load alone takes two cycles, the second of which starts nothing.
    Case(name="loads", work=kernel(block("ldr r4, [r0]", 10)), lines=(
        Line("load_store", "load_issue", "", 10, 10, 10, 10_000),
        Line("issue_stall", "pipeline_stall", "", 10, 10, 10, 5_000))),
    # DDI 0439: 1 + 3 cycles, three of which move a register.
    Case(name="a load of three", work=kernel(block("ldm r0, {r1, r2, r3}", 10)), lines=(
        Line("load_store", "load_issue", "", 30, 30, 30, 30_000),
        Line("issue_stall", "pipeline_stall", "", 10, 10, 10, 5_000))),
    Case(name="stores", work=kernel(block(f"str r4, [r0]; {ADD}", 10)), lines=(
        Line("load_store", "store_issue", "", 10, 10, 10, 10_000),
        Line("alu", "alu_issue", "", 10, 10, 10, 10_000))),
    # A loop of ten trips: its branch is taken nine times, two cycles of refill each.
    Case(name="a loop", work=kernel(block(f"{ADD}; bne 1b", 10, entries=1)), lines=(
        Line("alu", "alu_issue", "", 10, 10, 10, 10_000),
        Line("branch", "branch_issue", "", 10, 10, 10, 10_000),
        Line("branch", "branch_refill", "", 18, 18, 18, 9_000))),
    # A division of seven cycles starts one instruction.
    Case(name="a division", work=kernel(block("udiv r1, r1, r2", 10)), lines=(
        Line("alu", "alu_issue", "", 10, 10, 10, 10_000),
        Line("issue_stall", "pipeline_stall", "", 60, 60, 60, 30_000))),
    # im2col: three instructions in 1 + 1 + 7 cycles; what it loses stays at its place.
    Case(name="a copy", work=kernel(
        block("ldr r4, [r1]; str r4, [r0]; udiv r1, r1, r2", 10, cause="data_copy")), lines=(
        Line("data_copy", "copy_issue", "copying", 30, 30, 30, 30_000),
        Line("issue_stall", "pipeline_stall", "copying", 60, 60, 60, 30_000))),
    # A prologue of two instructions, the second a call: two cycles of refill.
    Case(name="a call", work=kernel(block(f"{ADD}; bl 1f", 10, cause="kernel_call")), lines=(
        Line("kernel_call", "call_issue", "", 20, 20, 20, 20_000),
        Line("branch", "branch_refill", "", 20, 20, 20, 10_000))),
    Case(name="weights unpacked", work=kernel(block(ADD, 10, cause="weight_decode")), lines=(
        Line("weight_decode", "decode_issue", "", 10, 10, 10, 10_000),)),
)
"""What a core does by itself."""

CODE = (
    # 128 bytes are four lines of 24 cycles and two array reads of 100 pJ: 24 x 500 + 200 each.
    Case(name="code through a cache", work=kernel(code_bytes=128), code="flash", lines=(
        Line("instruction_fetch", "icache_refill", "flash", 4, 4, 96, 48_800),)),
    Case(name="code that is there", work=kernel(code_bytes=128), code="flash", cold=False,
         lines=()),
    # Of 14 cycles of wait states reading ahead leaves 1 + 4 - 4 = 1 of the bus's, two of the
    # core's: it saves 12 of 24 for each line but the first, so 1 + 3 x 1/2 lines are waited for.
    Case(name="code read ahead", work=kernel(code_bytes=128), code="flash",
         changes={"memories.flash.prefetch": True}, lines=(
        Line("instruction_fetch", "icache_refill", "flash", 4, 2.5, 60, 48_800),)),
    # A line alone has nothing before it that could hide it.
    Case(name="one line read ahead", work=kernel(code_bytes=32), code="flash",
         changes={"memories.flash.prefetch": True}, lines=(
        Line("instruction_fetch", "icache_refill", "flash", 1, 1, 24, 12_200),)),
    # 40 bytes span 1 + 38/32 = 2.1875 lines of 26 cycles, first words of 14, ten cycles of work:
    # 2.1875 x 26 - (26 - 14)/2 - 10 = 40.875 cycles each of four passes.
    Case(name="code without a cache", code="flash", changes={"caches.l1i.enabled": False},
         work=kernel(block("; ".join(["add.w r1, r2, r3"] * 10), 4), code_bytes=40), lines=(
        Line("alu", "alu_issue", "", 40, 40, 40, 40_000),
        Line("instruction_fetch", "fetch_wait", "flash", 163.5, 163.5, 163.5, 81_750))),
    # A loop of one 16-bit instruction in the buffered line is fetched once: 8 - 7/2 - 1 cycles.
    # 200 bytes of code are 50 words in 100 cycles: every second cycle the bank is taken.
    Case(name="code and data in one bank", code="near", work=kernel(
        block(ADD, 100, entries=1), code_bytes=2, data=walk("near", 32, offset=256)), lines=(
        Line("alu", "alu_issue", "", 100, 100, 100, 100_000),
        Line("instruction_fetch", "fetch_wait", "near", 3.5, 3.5, 3.5, 1_750),
        Line("load_store", "sram_access", "near", 32, 0, 0, 0),
        Line("sram_wait", "sram_conflict", "near", 16, 16, 16, 8_000))),
    Case(name="code and data in two banks", code="near", work=kernel(
        block(ADD, 100, entries=1), code_bytes=2, data=walk("near", 32, offset=32768)), lines=(
        Line("alu", "alu_issue", "", 100, 100, 100, 100_000),
        Line("instruction_fetch", "fetch_wait", "near", 3.5, 3.5, 3.5, 1_750),
        Line("load_store", "sram_access", "near", 32, 0, 0, 0))),
)
"""Where code comes from."""

OFF = {"caches.l1d.enabled": False}

DATA = (
    # 64 words are eight lines of 12 cycles; nothing hides them.
    Case(name="loads that miss", work=kernel(data=walk("ram", 64)), lines=(
        LOOKED_UP, Line("data_refill", "dcache_read_refill", "ram", 8, 8, 96, 48_000))),
    Case(name="loads that hit", work=kernel(data=walk("ram", 64)), cold=False, lines=(LOOKED_UP,)),
    # With the first word after six cycles, three core cycles between two lines hide three more.
    Case(name="loads that miss, first word first", work=kernel(busy(24), data=walk("ram", 64)),
         changes={"caches.l1d.critical_word_first": True}, lines=(
        Line("alu", "alu_issue", "", 24, 24, 24, 24_000), LOOKED_UP,
        Line("data_refill", "dcache_read_refill", "ram", 8, 6, 72, 48_000))),
    # Ten core cycles hide all six that come after the first word, and no more.
    Case(name="loads that miss, the rest hidden", work=kernel(busy(80), data=walk("ram", 64)),
         changes={"caches.l1d.critical_word_first": True}, lines=(
        Line("alu", "alu_issue", "", 80, 80, 80, 80_000), LOOKED_UP,
        Line("data_refill", "dcache_read_refill", "ram", 8, 4, 48, 48_000))),
    # A buffer takes a store that misses: the line is filled, and nobody waits.
    Case(name="stores that miss", work=kernel(data=walk("ram", 64, write=True)), lines=(
        LOOKED_UP, Line("data_refill", "dcache_write_refill", "ram", 8, 0, 0, 48_000))),
    # A write-through cache waits for the line, and passes every store on behind the core.
    Case(name="stores written through", work=kernel(data=walk("ram", 64, write=True)),
         changes={"caches.l1d.write": "through"}, lines=(
        LOOKED_UP, Line("data_refill", "dcache_write_refill", "ram", 8, 8, 96, 48_000),
        Line("write_back", "write_through", "ram", 64, 0, 0, 256_000))),
    Case(name="stores that do not allocate", work=kernel(data=walk("ram", 64, write=True)),
         changes={"caches.l1d.write": "through", "caches.l1d.allocate": "read"}, lines=(
        LOOKED_UP, Line("write_back", "write_through", "ram", 64, 0, 0, 256_000))),
    # 64 lines are stored through a cache of 32: 32 must leave again, 14 cycles each.
    Case(name="lines written back", work=kernel(data=walk("ram", 512, write=True)), lines=(
        Line("load_store", "dcache_access", "l1d", 512, 0, 0, 0),
        Line("data_refill", "dcache_write_refill", "ram", 64, 0, 0, 384_000),
        Line("write_back", "write_back", "ram", 32, 32, 448, 224_000))),
    # 224 core cycles hide seven of each line's 14.
    Case(name="lines written back, half hidden", work=kernel(
        busy(224), data=walk("ram", 512, write=True)), lines=(
        Line("alu", "alu_issue", "", 224, 224, 224, 224_000),
        Line("load_store", "dcache_access", "l1d", 512, 0, 0, 0),
        Line("data_refill", "dcache_write_refill", "ram", 64, 0, 0, 384_000),
        Line("write_back", "write_back", "ram", 32, 16, 224, 224_000))),
    # 24 cycles, 14 of them wait states; two array reads of 100 pJ belong to the line.
    Case(name="constants that miss", work=kernel(data=walk("flash", 64)), lines=(
        LOOKED_UP, Line("data_refill", "dcache_read_refill", "flash", 8, 8, 80, 41_600),
        Line("flash_wait", "flash_wait", "flash", 112, 112, 112, 56_000))),
    # A prefetch serves instructions: through a cache of code and data constants wait all the same.
    Case(name="constants with prefetch", work=kernel(busy(32), data=walk("flash", 64)), changes={
        "memories.flash.prefetch": True, "cores.main.icache": "l1d"}, lines=(
        Line("alu", "alu_issue", "", 32, 32, 32, 32_000), LOOKED_UP,
        Line("data_refill", "dcache_read_refill", "flash", 8, 8, 80, 41_600),
        Line("flash_wait", "flash_wait", "flash", 112, 112, 112, 56_000))),
    # 16 lines of the array wait four cycles, 64 accesses cross the bus in two: 2 (64 + 128).
    Case(name="constants without a cache", work=kernel(data=walk("flash", 64)), changes=OFF,
         lines=(Line("flash_wait", "flash_wait", "flash", 384, 384, 384, 192_000),)),
    # Without the line buffer each access reads the array: 2 (64 x 4 + 64 x 2).
    Case(name="constants without a buffer", work=kernel(data=walk("flash", 64)),
         changes={**OFF, "memories.flash.line_buffer": False}, lines=(
        Line("flash_wait", "flash_wait", "flash", 768, 768, 768, 384_000),)),
    Case(name="SRAM behind a bus", work=kernel(data=walk("ram", 64)), changes=OFF, lines=(
        Line("load_store", "sram_access", "ram", 64, 0, 0, 0),
        Line("sram_wait", "sram_wait", "ram", 64, 64, 384, 192_000))),
    Case(name="SRAM beside the core", work=kernel(data=walk("near", 64)), lines=(
        Line("load_store", "sram_access", "near", 64, 0, 0, 0),)),
    Case(name="tightly coupled memory", work=kernel(data=walk("tcm", 64)), lines=(
        Line("load_store", "tcm_access", "tcm", 64, 0, 0, 0),)),
    # 2 x 12 cycles an access: the latency of nine and the four beats of eight bytes, less one.
    Case(name="memory outside the chip", work=kernel(data=walk("psram", 64)), changes=OFF, lines=(
        Line("external_memory", "external_wait", "psram", 64, 64, 1536, 768_000),)),
    Case(name="stores outside the chip", work=kernel(data=walk("psram", 64, write=True)),
         changes=OFF, lines=(
        Line("external_memory", "external_wait", "psram", 64, 64, 1536, 768_000),)),
    Case(name="serial memory through a cache", work=kernel(data=walk("psram", 64)), lines=(
        LOOKED_UP, Line("data_refill", "dcache_read_refill", "psram", 8, 8, 384, 192_000))),
    # A written line has no dummy cycles: 2 (1 + 3 + 16) each.
    Case(name="serial memory written back", work=kernel(data=walk("psram", 512, write=True)),
         lines=(Line("load_store", "dcache_access", "l1d", 512, 0, 0, 0),
                Line("data_refill", "dcache_write_refill", "psram", 64, 0, 0, 1_536_000),
                Line("write_back", "write_back", "psram", 32, 32, 1280, 640_000))),
    # 16 beats and two of CAS; two more for the first of the 32 lines of a row; 1 % is refresh.
    Case(name="SDRAM through a cache", work=kernel(data=walk("sdram", 64)), lines=(
        LOOKED_UP, Line("data_refill", "dcache_read_refill", "sdram", 8, 8,
                        16 * ((18 + 2 / 32) / 0.99 - 1), 8000 * ((18 + 2 / 32) / 0.99 - 1)))),
    # Every look-up of a slow cache is waited for: 64 x 2.
    Case(name="a slow cache", work=kernel(data=walk("ram", 64)),
         changes={"caches.l1d.hit_cycles": 2}, lines=(
        Line("load_store", "dcache_access", "l1d", 64, 128, 128, 64_000),
        Line("data_refill", "dcache_read_refill", "ram", 8, 8, 96, 48_000))),
    # Misses above look the second level up, five cycles each; it misses them all, too.
    Case(name="two levels", work=kernel(data=walk("ram", 64)),
         changes={"caches.l2.enabled": True}, lines=(
        LOOKED_UP, Line("data_refill", "dcache_read_refill", "l2", 8, 8, 40, 20_000),
        Line("data_refill", "dcache_read_refill", "ram", 8, 8, 96, 48_000))),
    # 64 lines stored through 32: filled through both levels and 32 written to the second, all
    # behind the core, for the first level's buffer has taken the stores.
    Case(name="stores through two levels", work=kernel(data=walk("ram", 512, write=True)),
         changes={"caches.l2.enabled": True}, lines=(
        Line("load_store", "dcache_access", "l1d", 512, 0, 0, 0),
        Line("data_refill", "dcache_write_refill", "l2", 64, 0, 0, 160_000),
        Line("data_refill", "dcache_write_refill", "ram", 64, 0, 0, 384_000),
        Line("write_back", "write_back", "l2", 32, 0, 0, 80_000))),
    # A first level that writes through waits for the line of a store, from wherever it comes.
    Case(name="stores written through to a second level",
         work=kernel(data=walk("ram", 64, write=True)),
         changes={"caches.l2.enabled": True, "caches.l1d.write": "through"}, lines=(
        LOOKED_UP, Line("data_refill", "dcache_write_refill", "l2", 8, 8, 40, 20_000),
        Line("data_refill", "dcache_write_refill", "ram", 8, 8, 96, 48_000),
        Line("write_back", "write_through", "ram", 64, 0, 0, 256_000))),
    # What the first level does not allocate is passed on: the second fills the line meanwhile.
    Case(name="stores passed on to a second level",
         work=kernel(data=walk("ram", 64, write=True)),
         changes={"caches.l2.enabled": True, "caches.l1d.write": "through",
                  "caches.l1d.allocate": "read", "caches.l2.write": "through"}, lines=(
        LOOKED_UP, Line("data_refill", "dcache_write_refill", "ram", 8, 0, 0, 48_000),
        Line("write_back", "write_through", "ram", 64, 0, 0, 256_000))),
)
"""Where data come from and go to."""

EVERY_20_CYCLES = Load(master="dma1", memory="near", bytes_per_second=80e6, bank=0)
"""Bursts of four beats: 16 bytes every 20 cycles of 10 ns."""

BUS = (
    # Two accesses, 20 cycles of work apart. A burst of four comes once in 20 cycles, at any of them
    # alike: 3, 2 or 1 cycles of it are left with 1/20 each, so an access waits 6/20, kept as 19/64.
    Case(name="loads beside a master", work=kernel(busy(40), data=walk("near", 2)),
         load=EVERY_20_CYCLES, lines=(
        Line("alu", "alu_issue", "", 40, 40, 40, 40_000),
        Line("load_store", "sram_access", "near", 2, 0, 0, 0),
        Line("bus_contention", "bus_contention", "near", 38 / 64, 38 / 64, 38 / 64, 296.875))),
    # A store waits in a buffer: energy, and no time.
    Case(name="stores beside a master", work=kernel(busy(40), data=walk("near", 2, write=True)),
         load=EVERY_20_CYCLES, lines=(
        Line("alu", "alu_issue", "", 40, 40, 40, 40_000),
        Line("load_store", "sram_access", "near", 2, 0, 0, 0),
        Line("bus_contention", "bus_contention", "near", 38 / 64, 0, 0, 296.875))),
)
"""What another master costs."""
