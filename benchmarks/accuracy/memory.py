"""Memory against boards: code without caches, weights beyond a cache, a serial flash in bulk.

    python -m benchmarks.accuracy.memory

The code is CoreMark-like and declared as such: blocks written here after what CoreMark does
(lists, matrices, a state machine, CRC), loops unrolled as a compiler does that reaches the
datasheet's 5.05 CoreMark/MHz. The split of its instructions, 25/38/22/15 per cent, is assumed and
no source gives it; in equal quarters every slowdown comes out 5 % larger. Data is in DTCM, as in
the datasheet's run tables.

The rows judged here were looked at while the model of fetches without a cache was made, so they
are in sample: four tries, ratios to the published slowdowns from 1.60/1.60/1.74/1.83 in the first
to 1.14/1.17/1.20/1.28 in the last. What changed is the code (unrolled as above) and the rule that
a taken branch fetches from its target's line on, which is documented for the Cortex-R4 and assumed
for the M7. That the ratios are within 30 % is no test of the model; their order is one.

The dense layers are predicted alone and warm. In the vendor's networks 7.8 MB of other weights
pass between two runs of the layer of 10 kB, so that its 11.3 cycles a MAC say its weights stayed or
lay elsewhere; what is judged is the step from there to layers no cache can hold. A weight is used
once, so a line of 32 bytes is waited for once in 32 MACs: the step times 32 is the wait for a line.
What the flash's phases and the clocks give is about 35 cycles (44 ns) a line less than the vendor's
layers say; the crossing of the N6's interconnect is in no document found, and nothing was fitted to
close it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace

from calibration.datasets.tables import read_table
from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from hwmodels.core.file import load_core
from hwmodels.core.schedule import count_block
from hwmodels.frozen import frozen
from hwmodels.kernel import Block, Kernel
from hwmodels.quantities import list_by_key
from hwmodels.simulator import simulate
from twin.deployment.deploy import deploy
from twin.network.graph import Graph
from twin.network.zoo.builder import Builder
from twin.pricing.inference import predict
from twin.pricing.lines import CANDIDATES

INSTRUCTIONS = 200_000
"""Of an iteration, about."""

SHARES = {"list": 0.25, "matrix": 0.38, "state": 0.22, "crc": 0.15}
"""Of the instructions, by what they do: assumed."""

_MULTIPLY = "ldrsh.w r4, [r0], #2; ldrsh.w r5, [r1]; add.w r1, r1, r7; mla r6, r4, r5, r6; "
_EXTRACT = ("ldrsh.w r4, [r0], #2; ldrsh.w r5, [r1], #2; muls r4, r5; ubfx r5, r4, #2, #4; "
            "ubfx r4, r4, #5, #7; mla r6, r4, r5, r6; ")
_CRC_BIT = ("eor.w r3, r0, r1; lsrs r0, #1; lsls r3, #31; lsr.w r1, r1, #1; it mi; "
            "eormi.w r1, r1, r4; ")
_BLOCKS = (  # what, share of its kind, trips an entry (1: straight), code
    ("list", 0.35, 10, "ldr r3, [r0, #4]; ldrsh.w r3, [r3, #2]; cmp r3, r1; beq 2f; ldr r0, [r0]; "
                       "cmp r0, #0; bne 1b"),
    ("list", 0.25, 30, "ldr r3, [r0]; str r2, [r0]; mov r2, r0; mov r0, r3; cmp r3, #0; bne 1b"),
    ("list", 0.40, 1, "ldr r3, [r0, #4]; ldr r4, [r1, #4]; ldrsh.w r8, [r3]; ldrsh.w r9, [r4]; "
                      "subs r5, r3, r4; bgt 2f; ldr r1, [r1]; str r5, [r6]; mov r6, r5; "
                      "subs r7, #1; b 1b"),
    ("matrix", 0.6, 8, _MULTIPLY * 4 + "subs r2, #4; bne 1b"),
    ("matrix", 0.4, 8, _EXTRACT * 2 + "subs r2, #2; bne 1b"),
    ("state", 1.0, 1, "ldrb r3, [r0], #1; cmp r3, #44; beq 5f; subs r3, #48; cmp r3, #9; bhi 6f; "
                      "ldr.w r4, [r2, r5, lsl #2]; adds r4, #1; str.w r4, [r2, r5, lsl #2]; "
                      "movs r5, #4; cmp r5, #7; bhi 9f; tbb [pc, r5]"),
    ("crc", 1.0, 1, "push {r4, lr}; uxtb r0, r0; ldr r4, [pc, #32]; uxth r1, r1; "
                    + _CRC_BIT * 8 + "pop {r4, pc}"),
)
_MEMORIES = {"ITCM": "itcm", "FLASH": "flash", "AXI SRAM": "sram", "SRAM1": "sram1",
             "SRAM4": "sram4"}
_WEIGHT_EVENTS = ("dcache_read_refill", "flash_wait", "external_wait")


@frozen
class Slowdown:
    """Code of one place with caches off or on, over the same code in ITCM."""

    cached: bool
    place: str
    published: float
    predicted: float


@frozen
class DenseLayer:
    """A dense layer on the N6's host, alone and again and again.

    Parameters
    ----------
    weights_bytes : int
        In the serial flash.
    published : float
        Cycles per MAC of the vendor's kernel, all told.
    low, high : float
        Predicted cycles per MAC waiting for weights, over the replacement policies the core may
        have.
    """

    weights_bytes: int
    published: float
    low: float
    high: float


def make_coremark(shares: dict[str, float] = SHARES) -> Kernel:
    """Return the CoreMark-like kernel."""
    timing = load_core("cortex-m7")
    blocks = []
    for kind, part, run, code in _BLOCKS:
        once = count_block(Block(name=kind, code=code, trips=1, entries=1), timing).instructions
        trips = round(INSTRUCTIONS * shares[kind] * part / once)
        blocks.append(Block(name=kind, code=code, trips=trips, entries=max(1, trips // run)))
    return Kernel(name="coremark-like", family="elementwise", blocks=tuple(blocks), nests=(),
                  operands=(), code_bytes=8192, assumed=True)


def compare_coremark() -> tuple[Slowdown, ...]:
    """Set predicted slowdowns beside those of the datasheet's table."""
    board, kernel = load_board("nucleo_h723zg"), make_coremark(SHARES)
    best = _cycles(board, kernel, "itcm")
    rows = read_table("stm32h723_coremark").rows
    fastest = max(row["coremark"] for row in rows)
    found = []
    for row in rows:
        cached = row["cache"] == "cache ON"
        machine = board if cached else replace(board, caches=tuple(
            replace(cache, enabled=False) for cache in board.caches))
        cycles = _cycles(machine, kernel, _MEMORIES[row["code_location"]])
        found.append(Slowdown(cached=cached, place=row["code_location"],
                              published=fastest / row["coremark"],
                              predicted=cycles / best))
    return tuple(found)


def _cycles(board: Board, kernel: Kernel, memory: str) -> float:
    """Core cycles of a kernel that has run before; every event here is priced one cycle."""
    from hwmodels.counts import make_bill
    from hwmodels.prices import derive_prices

    run, = simulate([kernel], board, code_address=board.memory(memory).address, code_memory=memory)
    return make_bill(run.counts, derive_prices(board)).cycles(board.core.clock)


def compare_dense() -> tuple[DenseLayer, ...]:
    """Set the wait for weights beside the vendor's dense layers, by the bytes of their weights."""
    layers = list_by_key(
        ((inputs, row["macc"] // inputs), row["cpu_cycles_core"] / row["macc"])
        for row in read_table("n6_snn_layers").rows
        if row["engine"] == "cpu_m55" and row["type"].startswith("Dense")
        for inputs in [int(row["input0"].rstrip(")").split("x")[-1])])
    return tuple(DenseLayer(weights_bytes=inputs * outputs, published=statistics.median(cycles),
                            low=min(waits), high=max(waits))
                 for (inputs, outputs), cycles in sorted(layers.items(), key=lambda item: (
                     item[0][0] * item[0][1]))
                 for waits in [_waits_per_mac(inputs, outputs)])


def _waits_per_mac(inputs: int, outputs: int) -> list[float]:
    """Cycles per MAC a dense layer waits for weights in flash, under each candidate policy."""
    deployment = deploy(_dense(inputs, outputs), "stm32n6570_dk", runtime="cmsis-nn",
                        weights="flash", arena="sram")
    waits = []
    for policy in CANDIDATES:
        board = replace(deployment.board, caches=tuple(
            replace(cache, replacement=policy) for cache in deployment.board.caches))
        bill = predict(replace(deployment, board=board)).bill
        waits.append(sum(line.cycles for line in bill.lines
                         if line.operand == "weights" and line.event in _WEIGHT_EVENTS)
                     / (inputs * outputs))
    return waits


def _dense(inputs: int, outputs: int) -> Graph:
    net = Builder(f"dense {inputs} to {outputs}", 0)
    return net.finish(net.fully_connected(net.input((1, inputs)), outputs))


def bulk_rate() -> float:
    """Return bytes per second the N6's serial flash gives in bulk, by its phases."""
    board = load_board("stm32n6570_dk")
    flash = board.memory("flash")
    assert flash.serial is not None
    return flash.serial.bits_per_cycle[2] * board.clock(flash.clock).frequency_hz / 8


def make_memory_report(slowdowns: Sequence[Slowdown], dense: Sequence[DenseLayer]) -> str:
    """Return both comparisons as text."""
    lines = ["CoreMark-like code, STM32H723 at 550 MHz: slowdown against ITCM",
             f"  {'caches':8}{'code in':10}{'published':>10}{'predicted':>10}{'ratio':>7}"]
    lines += [f"  {'on' if one.cached else 'off':8}{one.place:10}{one.published:10.2f}"
              f"{one.predicted:10.2f}{one.predicted / one.published:7.2f}" for one in slowdowns]
    base = _smallest_cached(dense)
    lines += ["", "Dense layers of the vendor's library on the N6's Cortex-M55, weights in flash",
              f"  {'weights, B':>12}{'cycles/MAC':>12}{'above ' + format(base, '.1f'):>12}"
              f"{'predicted wait for weights':>28}"]
    lines += [f"  {one.weights_bytes:12,}{one.published:12.2f}{one.published - base:12.2f}"
              f"{one.low:21.2f} to {one.high:.2f}" for one in dense]
    outside = [one for one in dense if one.high >= 0.01]
    lines += [
        f"  a line of 32 bytes: predicted {32 * min(one.low for one in outside):.0f} to "
        f"{32 * max(one.high for one in outside):.0f} cycles, by the published step "
        f"{32 * min(one.published - base for one in outside):.0f} to "
        f"{32 * max(one.published - base for one in outside):.0f}"]
    lines += ["", f"serial flash of the N6 in bulk: {bulk_rate() / 1e6:.0f} MB/s by its phases"]
    return "\n".join(lines) + "\n"


def _smallest_cached(dense: Sequence[DenseLayer]) -> float:
    """Cycles per MAC of the largest layer that waits for no weight: the kernel by itself."""
    return min(one.published for one in dense if one.high < 0.01)


def main() -> int:
    """Print the report; returns the exit code."""
    print(make_memory_report(compare_coremark(), compare_dense()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
