"""What each event of an accelerator is: micro-epochs and their bills, by hand.

A line reads: cause, event, place, occurred, exposed, cycles of its own clock, pJ. The NPU starts
in 10 cycles; an active one is 100 pJ, a MAC 0.5, an operation 3, a byte of RAM on the chip 3 and
one of the flash 275. The host takes 100 + 10 cycles an engine before an epoch and 50 + 5 after
it, an issue slot of 1000 pJ each.
"""

from dataclasses import replace

from made_bills import Case, Line, engine

from hwmodels.schedule import Task, Transfer, UnitWork

START = Line("launch", "npu_start", "start", 10, 10, 10, 0)
DISPATCH = Line("launch", "epoch_host_cycle", "pre", 159, 159, 159, 159_000)
BEFORE = Line("launch", "epoch_host_cycle", "pre", 110, 110, 110, 110_000)
AFTER = Line("launch", "epoch_host_cycle", "post", 55, 55, 55, 55_000)


def active(cycles: int) -> Line:
    """The NPU's clocks over an epoch: energy, no time."""
    return Line("idle", "npu_active", "", cycles, 0, 0, 100 * cycles)


def moved(size_bytes: int, pool: str = "npuRAM4") -> Line:
    """Bytes of a pool on the chip."""
    return Line("sram_wait", "npu_ram_byte", pool, size_bytes, 0, 0, 3 * size_bytes)


def units(*work: UnitWork) -> tuple[Task, ...]:
    """Units alone, as a hand-over to software sees them."""
    return (Task(name="units", units=work),)


def streams(*engines: Transfer) -> tuple[Task, ...]:
    """Engines alone."""
    return (Task(name="streams", kind="copy", transfers=engines),)


def times(count: int, line: Line) -> Line:
    """A line so many times."""
    return replace(line, **{key: count * getattr(line, key) for key in (
        "occurred", "exposed", "cycles", "pj")})


SLOW_POOL = {"npu.pools.npuRAM4.bytes_per_cycle": 4}
CONTROLLED = {**SLOW_POOL, "npu.epoch_controller": True, "npu.controller_word_cycles": 7,
              "npu.controller_words.task": 0, "npu.controller_words.engine": 1,
              "npu.hand_over.controller_pre_cycles": 30,
              "npu.hand_over.controller_post_cycles": 15}
STARTED = Line("launch", "epoch_host_cycle", "pre", 30, 30, 30, 30_000)
ENDED = Line("launch", "epoch_host_cycle", "post", 15, 15, 15, 15_000)
WAITED = Line("sram_wait", "npu_ram_wait", "npuRAM4", 120, 120, 120, 0)
STEPPED = (Task(name="stepped", kind="hybrid", transfers=(engine(0, "in", 480),)),)


EPOCHS = (
    # 7200 MACs at 72 a cycle.
    Case(name="convolution", work=units(UnitWork(kind="CONV_ACC", macs=7200)), lines=(
        START, Line("mac", "npu_mac_cycle", "CONV_ACC", 100, 100, 100, 0),
        Line("mac", "npu_mac", "8x8", 7200, 0, 0, 3600), active(110), DISPATCH)),
    # Half the lanes of 100 stated cycles have work.
    Case(name="idle lanes", work=units(
        UnitWork(kind="CONV_ACC", macs=3600, compute_cycles=100)), lines=(
        START, Line("mac", "npu_mac_cycle", "CONV_ACC", 50, 50, 50, 0),
        Line("mac_waste", "npu_mac_waste_cycle", "CONV_ACC", 50, 50, 50, 0),
        Line("mac", "npu_mac", "8x8", 3600, 0, 0, 1800), active(110), DISPATCH)),
    Case(name="another unit", work=units(UnitWork(kind="ARITH_ACC", ops=300)), lines=(
        START, Line("alu", "npu_alu_cycle", "ARITH_ACC", 300, 300, 300, 0),
        Line("alu", "npu_op", "", 300, 0, 0, 900), active(310), DISPATCH)),
    Case(name="weights unpacked", work=units(UnitWork(kind="DECUN_ACC", ops=300)), lines=(
        START, Line("weight_decode", "npu_decode_cycle", "DECUN_ACC", 300, 300, 300, 0),
        Line("alu", "npu_op", "", 300, 0, 0, 900), active(310), DISPATCH)),
    # 480 bytes at four a cycle: the pool is slower than interface and engine.
    Case(name="a slow pool", work=streams(engine(0, "in", 480)),
         changes=SLOW_POOL, lines=(START, WAITED, moved(480), active(130), BEFORE, AFTER)),
    # One after another, each handed over and back by the host.
    Case(name="two epochs", work=2 * streams(engine(0, "in", 480)), changes=SLOW_POOL, lines=(
        times(2, START), times(2, WAITED), moved(960), active(260), times(2, BEFORE),
        times(2, AFTER))),
    # The controller sets up the engines of the second and third in seven cycles each; the host
    # starts it before the first and hears of the last.
    Case(name="an epoch controller", work=3 * streams(engine(0, "in", 480)), changes=CONTROLLED,
         lines=(Line("launch", "npu_start", "start", 24, 24, 24, 0), times(3, WAITED),
                moved(1440), active(384), STARTED, ENDED)),
    # What the host steps it hands over itself, in 110 and 55; it starts the controller for each
    # of what is beside it.
    Case(name="a controller and a stepped operator", changes=CONTROLLED,
         work=streams(engine(0, "in", 480)) + STEPPED + streams(engine(0, "in", 480)), lines=(
        times(3, START), times(3, WAITED), moved(1440), active(390),
        Line("launch", "epoch_host_cycle", "pre", 170, 170, 170, 170_000),
        Line("launch", "epoch_host_cycle", "post", 85, 85, 85, 85_000))),
    # 192 beats in, 1536 elements at one a cycle, 192 beats out, all in 48 steps: the first step of
    # the way in and the last of the way out, four cycles each, are waited for beside the unit.
    # The unit takes no host cycles of its own to be set up, and 339 to be taken down.
    Case(name="engines and a unit", work=(Task(name="both", units=(
        UnitWork(kind="ARITH_ACC", ops=1536),), transfers=(
        engine(0, "in", 1536), engine(1, "out", 1536, operand="output"))),), lines=(
        START, Line("alu", "npu_alu_cycle", "ARITH_ACC", 1536, 1536, 1536, 0),
        Line("sram_wait", "npu_ram_wait", "npuRAM4", 8, 8, 8, 0),
        Line("alu", "npu_op", "", 1536, 0, 0, 4608), moved(3072), active(1554),
        Line("launch", "epoch_host_cycle", "pre", 120, 120, 120, 120_000),
        Line("launch", "epoch_host_cycle", "post", 399, 399, 399, 399_000))),
    # 480 bytes at two a cycle: the engine itself.
    Case(name="a slow engine", work=streams(engine(0, "in", 480)),
         changes={"npu.engine_bytes_per_cycle": 2}, lines=(
        START, Line("dma_wait", "npu_stream_wait", "latency:npuRAM4", 240, 240, 240, 0),
        moved(480), active(250), BEFORE, AFTER)),
    # 60 beats, and five cycles beside each of their eight bursts.
    Case(name="a slow interface", work=streams(engine(0, "out", 480, operand="output")),
         changes={"npu.interfaces.busif0.write_gap_cycles": 5}, lines=(
        START, Line("dma_wait", "npu_stream_wait", "busif0", 100, 100, 100, 0), moved(480),
        active(110), BEFORE, AFTER)),
    # Ten cycles before the first beat of RAM on the chip, 60 beats of it.
    Case(name="latency on the chip", work=streams(engine(0, "in", 480)),
         changes={"npu.pools.npuRAM4.read_latency_cycles": 10}, lines=(
        START, Line("sram_wait", "npu_ram_wait", "npuRAM4", 60, 60, 60, 0),
        Line("dma_wait", "npu_stream_wait", "latency:npuRAM4", 10, 10, 10, 0), moved(480),
        active(80), BEFORE, AFTER)),
    # Two streams take turns in eight steps of 7.5 beats: all but the last step waited for grants.
    Case(name="two streams on an interface", work=streams(
        engine(0, "in", 480), engine(1, "in", 480, pool="npuRAM3")), lines=(
        START, Line("bus_contention", "npu_bus_wait", "busif0", 113, 113, 113, 0),
        Line("sram_wait", "npu_ram_wait", "npuRAM3", 7, 7, 7, 0), moved(480),
        moved(480, "npuRAM3"), active(130),
        Line("launch", "epoch_host_cycle", "pre", 120, 120, 120, 120_000),
        Line("launch", "epoch_host_cycle", "post", 60, 60, 60, 60_000))),
    # Two bytes in a cycle of 200 MHz: five NPU cycles for two of 480 bytes.
    Case(name="memory outside the chip", work=streams(
        engine(0, "in", 480, pool="octoFlash", operand="weights")), lines=(
        START, Line("external_memory", "npu_external_wait", "octoFlash", 1200, 1200, 1200, 0),
        Line("external_memory", "npu_external_byte", "octoFlash", 480, 0, 0, 132_000),
        active(1210), BEFORE, AFTER)),
    # 20 cycles of 200 MHz before the first beat are 100 of the NPU's.
    Case(name="latency outside the chip", work=streams(
        engine(0, "in", 480, pool="octoFlash", operand="weights")),
         changes={"npu.pools.octoFlash.read_latency_cycles": 20}, lines=(
        START, Line("external_memory", "npu_external_wait", "octoFlash", 1200, 1200, 1200, 0),
        Line("external_memory", "npu_external_wait", "latency:octoFlash", 100, 100, 100, 0),
        Line("external_memory", "npu_external_byte", "octoFlash", 480, 0, 0, 132_000),
        active(1310), BEFORE, AFTER)),
    # As RAM at four bytes a cycle, were it a flash on the chip: one run pays its latency.
    Case(name="flash on the chip", work=streams(engine(0, "in", 480)),
         changes={**SLOW_POOL, "npu.pools.npuRAM4.read_latency_cycles": 10,
                  "memories.npu_ram.role": "flash"}, lines=(
        START, Line("flash_wait", "npu_flash_wait", "npuRAM4", 120, 120, 120, 0),
        Line("flash_wait", "npu_flash_wait", "latency:npuRAM4", 10, 10, 10, 0),
        Line("flash_wait", "npu_flash_byte", "npuRAM4", 480, 0, 0, 1440),
        active(140), BEFORE, AFTER)),
)
"""What an accelerator does in one epoch."""
