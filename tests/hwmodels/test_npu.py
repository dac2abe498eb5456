"""The NPU: bursts, the compiler's rule, runs of epochs, hand-over, prices, what-ifs."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from made_tasks import run_launched, run_task

from hwmodels.board.file import change_board, load_board
from hwmodels.counts import CAUSES, EVENTS, make_bill, merge_counts
from hwmodels.errors import BoardError, KernelError
from hwmodels.prices import derive_prices
from hwmodels.schedule import Link, Task, Transfer, UnitWork
from hwmodels.schedule.launch import count_controller_words, launch_cycles, launch_tasks
from hwmodels.schedule.run import (
    count_many,
    gather_counts,
    run_tasks,
    trace_task,
)
from hwmodels.schedule.table import list_links
from hwmodels.schedule.timing import plan_task
from hwmodels.schedule.traffic import run_transfers
from hwmodels.schedule.units import estimate_unit_cycles
from twin.runtimes.neural_art.profile import active_cycles, describe_runs, estimate_max_cycles

BOARD = load_board("stm32n6570_dk")
NPU = BOARD.npu


def engine(index, direction, size, pool="npuRAM4", port="busif0", **more):
    return Transfer(channel=index, direction=direction, port=port, pool=pool,
                    bytes=size, **more)


def scatter(index, direction, size, **more):
    return engine(index, direction, size, pattern="channel_interleaved", run_bytes=1, **more)


def element_wise(size=965, kind="ARITH_ACC"):
    return Task(name="add", units=(UnitWork(kind=kind, ops=size),),
                 transfers=(engine(0, "in", size, port="busif1"), engine(1, "out", size)))


@pytest.mark.parametrize(("size", "longest", "bursts"), [
    (64, 8, (0, 0, 0, 1)), (968, 8, (1, 0, 0, 15)), (1, 8, (1, 0, 0, 0)),
    (120, 8, (1, 1, 1, 1)), (64, 4, (0, 0, 2, 0)), (0, 8, (0, 0, 0, 0))])
def test_a_run_becomes_the_longest_bursts_that_fit(size, longest, bursts):
    pools = tuple(replace(pool, burst_max_beats=longest) for pool in NPU.pools)
    (one,) = run_transfers([engine(0, "in", size)], replace(NPU, pools=pools))
    assert one.bursts == bursts
    assert sum(n * beats for n, beats in zip(bursts, (1, 2, 4, 8), strict=True)) == -(-size // 8)


def test_bursts_as_the_debug_unit_counted_them():
    # n6_npu_profiler_epochs_measured, EpochBlock_69: 10,880 bytes in as 1,360 beats, out byte by
    # byte as 10,880 bursts of one beat.
    streams = run_transfers((engine(0, "in", 10880), scatter(1, "out", 10880)), NPU)
    assert streams[0].beats == 1360 and streams[0].bursts == (0, 0, 0, 170)
    assert streams[1].bursts == (10880, 0, 0, 0)


def test_strided_runs_take_beats_of_their_own():
    stream, = run_transfers(
        (engine(0, "in", 100, pattern="strided", run_bytes=24, repeats=2),), NPU)
    # four runs of three beats (2 + 1) and one of four bytes, twice
    assert stream.bursts == (2 * (4 + 1), 2 * 4, 0, 0) and stream.wanted_bytes == 200


@pytest.mark.parametrize(("size", "misses", "hits"), [
    (128 * 1024, 2048, 2 * 2048), (512 * 1024, 3 * 8192, 0)])
def test_passes_hit_the_cache_when_all_of_it_fits(size, misses, hits):
    walk = engine(0, "in", size, pool="octoFlash", repeats=3)
    stream, = run_transfers((walk,), NPU)
    assert (stream.misses, stream.hits) == (misses, hits)
    assert stream.pool_bytes == 64 * misses
    off = replace(NPU, cache=replace(NPU.cache, enabled=False))
    stream, = run_transfers((walk,), off)
    assert (stream.misses, stream.hits) == (0, 0) and stream.pool_bytes == 3 * size


def test_interleaved_bytes_meet_a_line_once_when_the_tensor_fits():
    walk = engine(0, "out", 6400, pool="hyperRAM", pattern="channel_interleaved", run_bytes=1)
    stream, = run_transfers((walk,), NPU)
    assert (stream.misses, stream.hits) == (100, 6300)
    assert stream.pool_bytes == 2 * 6400 and stream.bursts == (6400, 0, 0, 0)
    apart, = run_transfers((replace(walk, pattern="strided"),), NPU)
    assert apart.misses == 6400


def test_a_window_that_fits_is_fetched_once_a_pass_and_partial_lines_are_fetched_to_be_written():
    wide = replace(scatter(0, "in", 2**20, pool="hyperRAM"), stride_bytes=640)
    (lost,) = run_transfers([wide], NPU)
    (kept,) = run_transfers([replace(wide, window_bytes=2**16)], NPU)
    assert (lost.misses, kept.misses) == (2**20, 2**20 // 64)
    (out,) = run_transfers([replace(wide, window_bytes=2**16, direction="out")], NPU)
    assert out.misses == kept.misses and out.pool_bytes == 2 * kept.pool_bytes


def test_engines_that_take_turns_outside_the_chip_end_each_others_runs():
    pair = [engine(0, "in", 6400, pool="hyperRAM"), engine(1, "out", 6400, pool="hyperRAM")]
    (alone,) = run_transfers(pair[:1], NPU)
    first, _ = run_transfers(pair, NPU)
    assert first.pool_cycles - alone.pool_cycles == pytest.approx(100 * first.latency_cycles)


@pytest.mark.parametrize(("stride", "misses"), [(16, 2**20 // 4), (0, 2**20), (640, 2**20)])
def test_interleaved_bytes_meet_a_line_every_pass_when_it_does_not_fit(stride, misses):
    # 1 MiB in a 256 KiB cache: with 16 channels, a line of 64 bytes holds 4 bytes of one channel.
    walk = engine(0, "in", 2**20, pool="hyperRAM", pattern="channel_interleaved", run_bytes=1,
                  stride_bytes=stride)
    stream, = run_transfers((walk,), NPU)
    assert (stream.misses, stream.hits) == (misses, 2**20 - misses)


def test_unit_cycles_from_rates():
    assert estimate_unit_cycles(UnitWork(kind="CONV_ACC", count=4, macs=1000), NPU) == math.ceil(
        1000 / (4 * 72))
    assert estimate_unit_cycles(UnitWork(kind="ARITH_ACC", count=2, ops=101), NPU) == 51
    assert estimate_unit_cycles(UnitWork(kind="NULL", ops=9), NPU) == 0
    with pytest.raises(KernelError, match="no rate for 32x32 bits; accepted: 8x4, 8x8"):
        estimate_unit_cycles(UnitWork(kind="CONV_ACC", macs=1, mac_bits=(32, 32)), NPU)


@pytest.mark.parametrize(("sums", "cycles"), [(True, 15360), (False, 7680)])
def test_compiler_adds_directions_or_takes_the_longer(sums, cycles):
    # n6_atonn_compiler_epochs_cinfo: 49,152 bytes in and out, 8 to a beat of 1.25 cycles; the
    # 2.x compilers say 15,360.
    epoch = Task(name="copy", kind="copy",
                  transfers=(engine(0, "in", 49152), engine(1, "out", 49152)))
    assert estimate_max_cycles(epoch, replace(NPU, sums_directions=sums)) == cycles


def test_element_wise_epoch_takes_its_unit_and_the_start():
    run = run_task(element_wise(), NPU)
    latency = NPU.pool("npuRAM4").read_latency_cycles * 1000 / 900
    assert 965 <= run.core_npu_cycles - NPU.start_cycles <= 965 + 3 * latency
    assert run.compute_cycles == 965
    waits = {item.resource: item.npu_cycles for item in run.exposed}
    assert waits["start"] == NPU.start_cycles and waits["ARITH_ACC"] == 965


def test_single_beat_reads_share_the_latency_of_what_is_in_flight():
    run = run_task(Task(name="gather", transfers=(scatter(0, "in", 8000), engine(1, "out", 8000))),
                    NPU)
    latency = NPU.pool("npuRAM4").read_latency_cycles * 1000 / 900
    expected = 8000 * latency / NPU.engine_outstanding
    assert run.core_npu_cycles - NPU.start_cycles == pytest.approx(expected, rel=0.01)
    assert max(run.exposed, key=lambda item: item.npu_cycles).resource == "latency:npuRAM4"


def test_streams_of_one_pool_take_turns_and_of_two_do_not():
    def copy(pool):
        return run_task(Task(name="copies", transfers=(
            engine(0, "in", 64000), engine(1, "out", 64000),
            engine(2, "in", 64000, pool=pool, port="busif1"),
            engine(3, "out", 64000, pool=pool, port="busif1"))), replace(
                NPU, engine_bytes_per_cycle=8)).core_npu_cycles - NPU.start_cycles
    alone = 64000 / 8 * 1000 / 900  # beats of the 900 MHz interconnect
    assert copy("npuRAM5") == pytest.approx(alone, rel=0.02)
    assert copy("npuRAM4") == pytest.approx(2 * alone, rel=0.02)


def test_weights_from_flash_come_at_its_pace_and_are_what_is_waited_for():
    epoch = Task(name="dense", units=(UnitWork(kind="CONV_ACC", macs=784000),), transfers=(
        engine(0, "in", 784), engine(1, "in", 784000, pool="octoFlash", operand="weights"),
        engine(2, "out", 1000)))
    run = run_task(epoch, NPU)
    # Eight lines at 200 MHz, both edges: 400 MB/s, so 2.5 cycles a byte; 399.5 measured.
    assert run.core_npu_cycles == pytest.approx(784000 * 2.5, rel=0.01)
    worst = max(run.exposed, key=lambda item: item.npu_cycles)
    assert (worst.resource, worst.cause) == ("octoFlash", "external_memory")
    assert describe_runs([run])[0]["npu_cache"]["read_miss"] == 784000 / 64
    inside = replace(epoch, transfers=tuple(
        replace(one, pool="npuRAM5") if one.channel == 1 else one for one in epoch.transfers))
    assert run_task(inside, NPU).core_npu_cycles == pytest.approx(784000, rel=0.01)


def test_idle_lanes_of_a_convolution_are_waste():
    work = UnitWork(kind="CONV_ACC", count=1, macs=16 * 5000, compute_cycles=5000)
    run = run_task(Task(name="conv", units=(work,), transfers=(
        engine(0, "in", 5000), engine(1, "out", 5000))), NPU)
    cycles = {item.cause: item.npu_cycles for item in run.exposed}
    assert cycles["mac"] / (cycles["mac"] + cycles["mac_waste"]) == pytest.approx(16 / 72, rel=0.01)


def test_hand_over_grows_with_engines_and_units():
    prices = NPU.hand_over
    run = run_task(element_wise(), NPU)
    arith = dict(prices.pre_unit_cycles)["ARITH_ACC"]
    assert run.pre_cpu_cycles == prices.pre_cycles + 2 * prices.pre_engine_cycles + arith
    software = run_task(Task(name="softmax", kind="sw"), NPU)
    assert (software.core_npu_cycles, software.exposed) == (0, ())
    assert software.pre_cpu_cycles == prices.software_cycles > 0


def test_epoch_controller_spares_the_host_between_hardware_epochs():
    epochs = (element_wise(), element_wise(), Task(name="s", kind="sw"), element_wise())
    controlled = run_launched(epochs, replace(NPU, epoch_controller=True))
    plain = run_launched(epochs, NPU)
    assert [run.pre_cpu_cycles > 0 for run in controlled] == [True, False, True, True]
    assert [run.post_cpu_cycles > 0 for run in controlled] == [False, True, False, True]
    # it starts the controller and takes its interrupt, whatever the epochs set up
    assert controlled[0].pre_cpu_cycles == NPU.hand_over.controller_pre_cycles
    assert controlled[1].post_cpu_cycles == NPU.hand_over.controller_post_cycles
    words = dict(NPU.controller_words)
    assert controlled[1].core_npu_cycles - plain[1].core_npu_cycles == round(
        NPU.controller_word_cycles * (words["task"] + 2 * words["engine"] + words["unit"])) - (
        NPU.start_cycles)


def test_epoch_controller_takes_the_words_of_a_compiled_program():
    """MobileNetV1 0.25 at 96, epoch 6 by ST Edge AI 3.0.0: 283 words (network_ecblobs.h)."""
    epoch = Task(name="e", units=(
        UnitWork(kind="CONV_ACC", macs=1), UnitWork(kind="ARITH_ACC", ops=1, coefficients=32),
        UnitWork(kind="ARITH_ACC", ops=1)), transfers=(
        engine(0, "in", 64), engine(1, "in", 64, operand="weights"), engine(2, "out", 64)))
    assert count_controller_words(epoch, NPU) == 283


def test_bill_names_each_clock_and_sums_exactly():
    run = run_task(element_wise(), NPU)
    bill = make_bill(run.counts, derive_prices(BOARD))
    assert bill.cycles("npu") == run.core_npu_cycles
    assert bill.cycles("cpu") == run.pre_cpu_cycles + run.post_cpu_cycles
    assert sum(bill.cycles("npu", cause) for cause in CAUSES) == run.core_npu_cycles


def test_energy_is_macs_operations_bytes_and_cycles():
    work = (UnitWork(kind="CONV_ACC", macs=1000, mac_bits=(8, 4)),
            UnitWork(kind="ARITH_ACC", ops=64))
    run = run_task(Task(name="conv", units=work, transfers=(
        engine(0, "in", 64), engine(1, "in", 500, pool="octoFlash", operand="weights"),
        engine(2, "out", 64))), NPU)
    energy = NPU.energy
    byte_pj = dict(energy.byte_pj)
    # 64 bytes in and out; weights come in 63 beats of 8 bytes, their last line shared with others
    expected = (1000 * dict(energy.mac_pj)["8x4"] + 64 * energy.op_pj
                + 128 * byte_pj["npuRAM4"] + 504 * byte_pj["octoFlash"]
                + run.core_npu_cycles * energy.active_pj_per_cycle)
    bill = make_bill(run.counts, derive_prices(BOARD))
    npu_lines = [line for line in bill.lines if line.clock == "npu"]
    assert sum(line.energy_pj for line in npu_lines) == pytest.approx(expected)


def test_every_energy_figure_is_fitted_or_assumed_with_a_wide_deviation():
    facts = [fact for fact in BOARD.facts if fact.path.startswith("npu.") and "pj" in fact.path]
    assert len(facts) == 4 + 1 + 2 + len(NPU.pools)
    fitted = [fact for fact in facts if fact.kind == "fitted"]
    assert [fact.path for fact in fitted] == ["npu.energy.mac_pj.8x8"]
    assert fitted[0].rel_sd >= 0.2
    assert all(fact.rel_sd >= 0.5 for fact in facts if fact not in fitted and fact.value)


def test_events_of_the_npu_have_one_cause_each_and_a_price():
    names = [name for name in EVENTS if name.startswith("npu_")]
    priced = {event for event, _ in derive_prices(BOARD).table}
    assert set(names) - priced == {"npu_flash_byte"}  # its flash is outside the chip
    assert all(EVENTS[name].cause in CAUSES for name in names)


def test_counts_of_epochs_add():
    runs = run_launched((element_wise(), element_wise(500)), NPU)
    total = merge_counts(run.counts for run in runs)
    assert total.occurred("npu_active") == sum(run.core_npu_cycles for run in runs)


def test_a_task_of_another_name_runs_alike():
    first = run_launched((element_wise(), element_wise(500)), NPU)
    again = run_launched(tuple(replace(run.task, name="other") for run in first), NPU)
    assert [run.task.name for run in again] == ["other", "other"]
    assert [(run.core_npu_cycles, run.counts) for run in again] == [
        (run.core_npu_cycles, run.counts) for run in first]
    slower = replace(NPU, start_cycles=NPU.start_cycles + 7)
    assert [run.core_npu_cycles for run in run_launched(
        tuple(run.task for run in again), slower)] == [run.core_npu_cycles + 7 for run in first]


def test_trace_covers_the_epoch_and_its_bytes():
    (epoch,) = launch_tasks([element_wise(4096)], NPU)
    spans = trace_task(epoch, NPU)
    assert {span.node for span in spans} == {"E0", "E1", "U0"}
    assert sum(span.bytes for span in spans if span.node == "E1") == pytest.approx(4096)
    end = max(span.end_npu_cycle for span in spans)
    assert run_task(epoch, NPU).core_npu_cycles - 1 <= end <= run_task(epoch, NPU).core_npu_cycles
    assert trace_task(Task(name="s", kind="sw"), NPU) == ()


def test_a_unit_the_board_does_not_list_is_refused():
    with pytest.raises(BoardError, match="no unit 'ARITH_AC'; did you mean ARITH_ACC"):
        run_task(element_wise(kind="ARITH_AC"), NPU)


def renamed(text, **names):
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def test_a_unit_s_name_is_of_no_account():
    """Another maker's names for the same units: equal counts, but for the names."""
    names = {"CONV_ACC": "MATRIX", "ARITH_ACC": "VECTOR", "DECUN_ACC": "UNPACKER"}
    other = change_board(replace(BOARD, document=renamed(BOARD.document, **names)),
                         {"board.description": "other names"}).npu
    work = UnitWork(kind="CONV_ACC", macs=40_000), UnitWork(kind="ARITH_ACC", ops=64)
    epoch = Task(name="two", units=work, transfers=(
        engine(0, "in", 4096), engine(1, "in", 800, pool="octoFlash", operand="weights"),
        engine(2, "out", 64)))
    again = replace(epoch, units=tuple(replace(one, kind=names[one.kind]) for one in work))
    run, same = run_task(epoch, NPU), run_task(again, other)
    assert renamed(repr(run.counts), **names) == repr(same.counts)
    assert (run.pre_cpu_cycles, run.post_cpu_cycles) == (same.pre_cpu_cycles, same.post_cpu_cycles)


def test_what_a_unit_does_names_what_is_waited_for():
    """Both roles at one unit: multiply-accumulates are `mac`, elements are `alu`."""
    units = tuple(replace(unit, roles=("convolution", "arithmetic"))
                  if unit.kind == "CONV_ACC" else unit for unit in NPU.units)
    both = replace(NPU, units=units)
    for work, cause in ((UnitWork(kind="CONV_ACC", macs=720_000), "mac"),
                        (UnitWork(kind="CONV_ACC", ops=10_000), "alu"),
                        (UnitWork(kind="DECUN_ACC", ops=10_000), "weight_decode")):
        run = run_task(Task(name="e", units=(work,)), both)
        assert {item.cause for item in run.exposed} == {"launch", cause}
    assert both.unit_for("depthwise", "convolution").kind == "CONV_ACC"
    assert both.unit_for("depthwise") is None


@pytest.mark.parametrize(("build", "message"), [
    (lambda: engine(0, "sideways", 1), "direction 'sideways'; accepted: in, out"),
    (lambda: engine(0, "in", 1, pattern="strided"), "needs run_bytes"),
    (lambda: engine(0, "in", -1), "no negative bytes"),
    (lambda: UnitWork(kind=""), "accepted: the name of a unit"),
    (lambda: Task(name="e", start_cycles=-1), "task e: negative cycles before or after"),
    (lambda: UnitWork(kind="U", useful=1.5), "useful 1.5; accepted: 0 to 1"),
    (lambda: Task(name="e", transfers=(engine(0, "in", 1), engine(0, "out", 1))), "listed twice"),
    (lambda: run_task(replace(element_wise(), links=(Link("E0", "U7"),)), NPU),
     "names a node that is not there; accepted: E0, E1, U0"),
    (lambda: run_task(Task(name="e", units=(UnitWork(kind="ARITH_ACC"),) * 2, links=(
        Link("U0", "U1"), Link("U1", "U0"))), NPU), "runs in a circle")])
def test_impossible_epochs_are_refused(build, message):
    with pytest.raises(KernelError, match=message):
        build()


@pytest.mark.parametrize(("more", "message"), [
    ({"pool": "npuRAM9"}, "npu pool 'npuRAM9' does not exist; did you mean npuRAM"),
    ({"port": "busif7"}, "npu interface 'busif7' does not exist")])
def test_parts_the_machine_lacks_are_named(more, message):
    with pytest.raises(BoardError, match=message):
        run_task(Task(name="e", transfers=(engine(0, "in", 1, **more),)), NPU)


@pytest.mark.parametrize(("path", "value", "message"), [
    ("npu.cache.size_bytes", 1000, "no whole number of sets"),
    ("npu.pools.npuRAM3.burst_max_beats", 3, "accepted: 1, 2, 4, 8"),
    ("npu.pools.npuRAM3.size_bytes", "4MiB", "more than memories.npu_ram.size_bytes"),
    ("npu.pools.npuRAM3.clock", "nick", "clock 'nick' does not exist; did you mean nic"),
    ("npu.pools", "npuRAM3=1MiB", r"sum to .* accepted: up to 1835008"),
    ("npu.clock", "cpu", "the host core's.*accepted: a clock of its own: .*npu"),
    ("npu.hand_over.clock", "npu", "accepted: cpu"),
    ("clocks.npu.frequency_hz", 1, "did you mean 1MHz"),
    ("clocks.npu.frequency_hz", "2GHz", "above what voltage scale")])
def test_impossible_machines_are_refused_by_key(path, value, message):
    with pytest.raises(BoardError, match=message) as refusal:
        change_board(BOARD, {"npu.pools.npuRAM3.size_bytes": "1MiB"} if path == "npu.pools"
                     else {path: value})
    assert path in str(refusal.value)


def test_further_units_of_a_kind_are_set_up_for_less():
    def pre(count):
        epoch = Task(name="e", transfers=(engine(0, "in", 64),),
                      units=(UnitWork(kind="CONV_ACC", count=count, ops=64),))
        return launch_cycles(epoch, NPU)[0]

    first = dict(NPU.hand_over.pre_unit_cycles)["CONV_ACC"]
    further = dict(NPU.hand_over.pre_further_unit_cycles)["CONV_ACC"]
    assert pre(2) - pre(1) == pre(4) - pre(3) == further < first


def test_values_written_into_a_unit_are_paid_before_the_epoch():
    def hand_over(coefficients):
        epoch = Task(name="e", transfers=(engine(0, "in", 64),),
                      units=(UnitWork(kind="ARITH_ACC", ops=64, coefficients=coefficients),))
        return launch_cycles(epoch, NPU)

    assert hand_over(100)[0] - hand_over(0)[0] == 100 * NPU.hand_over.pre_coefficient_cycles > 0
    assert hand_over(100)[1] == hand_over(0)[1]


@pytest.mark.parametrize(("change", "slower"), [
    ({"clocks.nic.frequency_hz": "450MHz"}, True),
    ({"npu.interfaces.busif0.write_gap_cycles": 1}, True),
    ({"npu.start_cycles": 100}, False)])
def test_what_ifs_by_dotted_path_move_the_epoch(change, slower):
    epoch = Task(name="copy", transfers=(engine(0, "in", 9000), scatter(1, "out", 9000)))
    before = run_task(epoch, NPU).core_npu_cycles
    after = run_task(epoch, change_board(BOARD, change).npu).core_npu_cycles
    assert (after > before) == slower and after != before


def test_engines_count_by_direction():
    engines = (engine(0, "in", 965, port="busif1"), engine(2, "in", 120),
               engine(1, "out", 965))
    run = run_task(replace(element_wise(), transfers=engines), NPU)
    (told,) = describe_runs([run])
    coming = [one for one in told["engines"] if one["direction"] == "in"]
    (leaving,) = [one for one in told["engines"] if one["direction"] == "out"]
    assert leaving["active_cycles"] == run.core_npu_cycles  # open from the first cycle to the last
    assert sum(one["read_bytes"] for one in told["busif"]) == sum(one["bytes"] for one in coming)
    assert sum(one["write_bytes"] for one in told["busif"]) == leaving["bytes"]
    for direction, key in (("in", "read_bursts"), ("out", "write_bursts")):
        bursts = zip(*(one["bursts"] for one in told["engines"] if one["direction"] == direction),
                     strict=True)
        assert [sum(one[key][place] for one in told["busif"])
                for place in range(4)] == [sum(column) for column in bursts]


@pytest.mark.parametrize(("direction", "compute", "hand", "active"), [
    ("in", 30, 7, 10 + 5.5 + 20 + 30),  # fetching, then what the units still take
    ("in", 7, 30, 10 + 5.5 + 20 + 30), ("in", 900, 0, 500), ("out", 30, 7, 500)])
def test_active_cycles_of_an_engine(direction, compute, hand, active):
    one = SimpleNamespace(transfer=engine(3, direction, 64), latency_cycles=5.5, fetch_cycles=20,
                          hand_cycles=hand)
    run = SimpleNamespace(core_npu_cycles=500, compute_cycles=compute,
                          task=SimpleNamespace(start_cycles=10))
    assert active_cycles(one, run) == math.ceil(active)


def test_a_circle_behind_a_tree_is_found():
    links = (Link("E0", "U0"), Link("U0", "U1"), Link("U1", "U2"), Link("U2", "U1"),
             Link("U2", "E1"))
    epoch = Task(name="e", transfers=(engine(0, "in", 64), engine(1, "out", 64)),
                  units=(UnitWork(kind="ARITH_ACC", ops=64),) * 3, links=links)
    with pytest.raises(KernelError, match="circle"):
        run_task(epoch, NPU)
    straight = replace(epoch, links=(*links[:3], Link("U2", "E1")))
    assert run_task(straight, NPU).core_npu_cycles > 0


def test_what_overlaps_with_a_task_runs_beside_it_and_compressed_bytes_are_passed_unpacked():
    ahead = engine(2, "in", 3000, pool="octoFlash", port="busif1", overlaps="task")
    task = element_wise(4000)
    both = replace(task, transfers=(*task.transfers, ahead))
    alone, brought, beside = (run_task(one, NPU).core_npu_cycles for one in (
        task, Task(name="ahead", transfers=(ahead,)), both))
    assert max(alone, brought) <= beside < max(alone, brought) + 50
    feeds = {(link.source, link.sink) for link in list_links(both)}
    assert feeds == {("E0", "U0"), ("U0", "E1")}
    (packed,) = run_transfers([engine(0, "in", 600, unpacked_bytes=1000)], NPU)
    (plain,) = run_transfers([engine(0, "in", 1000)], NPU)
    assert packed.hand_cycles == plain.hand_cycles and packed.wanted_bytes == 600
    assert packed.fetch_cycles < plain.fetch_cycles


def test_a_compiler_states_the_share_of_a_unit_that_computes():
    work = UnitWork(kind="CONV_ACC", compute_cycles=1000, useful=0.25)
    run = run_task(Task(name="conv", units=(work,)), replace(NPU, units=tuple(
        replace(unit, fill_cycles=0) for unit in NPU.units)))
    cycles = {item.cause: item.npu_cycles for item in run.exposed}
    assert (cycles["mac"], cycles["mac_waste"]) == (250, 750)


@pytest.mark.parametrize(("single", "cycles"), [(False, 1000 + 600 // 4), (True, 1000 + 600)])
def test_a_unit_with_one_buffer_of_results_waits_until_it_is_emptied(single, cycles):
    units = (UnitWork(kind="CONV_ACC", compute_cycles=1000, single=single),
             UnitWork(kind="ARITH_ACC", compute_cycles=600))
    run = run_task(Task(name="conv", units=units, steps=4), replace(NPU, units=tuple(
        replace(unit, fill_cycles=0) for unit in NPU.units)))
    assert run.core_npu_cycles - run.task.start_cycles == cycles


def test_blocks_a_compiler_states_are_handed_on_whole_and_weights_as_they_come():
    def blocks(operand="input", kind="ARITH_ACC", steps=1):
        work = UnitWork(kind=kind, compute_cycles=500)
        return plan_task(Task(name="conv", steps=steps, units=(work,), transfers=(
            engine(0, "in", 6400, operand=operand),)), NPU).nodes
    waits = -1  # from a block's start to its first hand-over
    assert blocks(steps=0)[0, 0] > 1 and (blocks()[:, 0] == 1).all()
    assert blocks("weights")[0, waits] * 50 <= blocks()[0, waits]
    assert blocks(kind="CONV_ACC")[1, waits] * 50 <= blocks()[1, waits]


@pytest.mark.parametrize("ratios", [(1.0, 1.5), (0.5, 2.0, 2.0)])
def test_tasks_counted_on_many_machines_are_those_run_on_each(ratios):
    def machine(ratio):
        return replace(NPU, pools=tuple(
            replace(pool, clock_ratio=pool.clock_ratio * ratio) for pool in NPU.pools))
    tasks = [element_wise(4000), element_wise(64)]
    many = count_many(tasks, machine(np.array(ratios)))
    for row, ratio in zip(many.machines, ratios, strict=True):
        one = gather_counts(run_tasks(tasks, machine(ratio)))
        # A machine numbers keys as they come first, in whatever ran on it before.
        found, wanted = ({(task, counts.keys.known[key]): n for task, key, n in zip(
            counts.task, counts.key, counts.occurred[place], strict=True) if n}
            for counts, place in ((many, row), (one, 0)))
        assert found == wanted
