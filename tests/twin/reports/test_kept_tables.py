"""Tables of nouns made by hand, whole: what commands that need a board or an hour print.

After a change that is meant, TWIN_KEEP=1 writes them again.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace as Made

import numpy as np
import pytest
from made_outlines import compare_kept, outline_text
from made_predictions import make_prediction

from calibration.fitting.intervals import Interval
from calibration.fitting.overlay import (
    BandModel,
    Data,
    Entry,
    Learnt,
    Overlay,
    Support,
    pack_covariance,
)
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample
from calibration.microbench.machine import Level, Machine, MemoryFound
from calibration.microbench.probes import PowerStep, Probe
from calibration.virtual_board import VirtualBoard
from calibration.virtual_board.costs import Stated
from hwmodels.board.facts import Fact
from twin.pricing.unmeasured import RUN
from twin.reports.glossary import Entry as Term
from twin.reports.outcomes import Check, Checkup
from twin.reports.tables.accuracy import accuracy_table
from twin.reports.tables.calibration import list_doubtful, overlay_table, totals_table
from twin.reports.tables.catalogue import (
    entry_report,
    facts_table,
    features_table,
    paths_table,
    runtimes_table,
    terms_table,
)
from twin.reports.tables.doctor import doctor_report
from twin.reports.tables.firmware import build_report, comparison_report, run_report
from twin.reports.tables.measured import energy_table, virtual_boards_table
from twin.reports.tables.microbench import machine_report, power_table
from twin.reports.tables.operands import operand_table
from twin.reports.tables.parts import draw_bar
from twin.reports.tables.portability import ported_report, ranking_report
from twin.reports.tables.program import start_line, tell_ram
from twin.reports.tables.scenario import scenario_report, scenarios_table
from twin.reports.tables.series import series_report
from twin.reports.tables.transformations import transformations_table
from twin.reports.tables.tuning import tuning_report

KEPT = Path(__file__).parent / "kept"


def some(part, **changes):
    return Made(**{**vars(part), **changes})


def between(low_us, high_us):
    return Interval(low=low_us, high=high_us, level=0.9)


# ---- scenarios ----

SCENARIO = Made(name="made", description="hears a word", model="kws", board="nucleo_l4r5zi",
                sensor=Made(hop_us=50_000.0), allowed_us=20_000.0, loads=())
SPEED = Made(clock_hz=100e6, inference_us=10_000.0, energy_uj=400.0, run_mw=40.0, idle_mw=5.0,
             slowdowns=(1.0, 1.25))
PLAYED = Made(answers_us=[9_000.0, 11_000.0, 10_000.0, 12_500.0], lost=1, late=2, inferences=4,
              duration_us=250_000.0, duty=0.16, mean_mw=7.25, hottest_c=41.25, throttled_us=3_000.0,
              energy_uj={"inference": 1600.0, "asleep": 4.0, "sensor": 75.0},
              time_us={"inference": 40_000.0, "asleep": 205_000.0, "idle": 5_000.0})
OUTCOME = Made(scenario=SCENARIO, run=PLAYED, loss="a hop came while the last was computed",
               machine=Made(prediction=make_prediction(2), speeds=(SPEED, SPEED), sleep_mw=0.02,
                            spread=(1.0, "sleep is assumed")),
               mean_ends_mw=(6.5, 8.0), missed_ends=(3, 5), life_days=12.5, life_ends_days=(10, 15))
QUIET = some(OUTCOME, loss=None, mean_ends_mw=None, missed_ends=(2, 3), life_days=None,
             scenario=some(SCENARIO, description=""),
             run=some(PLAYED, answers_us=[], lost=1, late=2, inferences=1, hottest_c=30.0,
                      throttled_us=0.0, energy_uj={}, time_us={"inference": 0.0}),
             machine=some(OUTCOME.machine, speeds=(SPEED,), sleep_mw=None))


# ---- machines ----

CHASED = MemoryFound(name="flash", levels=(Level(size_bytes=8192, cost=3.0),
                                           Level(size_bytes=1 << 20, cost=23.5)),
                     line_bytes=32, ways=4, ways_tried=17, miss_cost=20.5, read_bytes=1.25,
                     write_bytes=None)
FLAT = replace(CHASED, name="ram", levels=(Level(size_bytes=65536, cost=2.0),), line_bytes=None,
               ways=None, miss_cost=0.0, read_bytes=4.0, write_bytes=2.0)
MACHINE = Machine(counter="cpu_cycles", kind="measured", memories=(
    CHASED, FLAT, replace(CHASED, name="wide", ways=None)), code=(replace(
        CHASED, line_bytes=None, ways=None),), macs={"int8": 1.5, "float32": 0.25}, fed_macs=0.8,
    branch=2.5, call=7.0)
BARE = replace(MACHINE, counter="timer_ticks", memories=(), code=(), macs={}, fed_macs=None,
               branch=None, call=None)
STATED = {"flash": Stated(miss_cycles=18.0, fetch_cycles=0.5, fetch_cached=True)}
STEPS = [PowerStep(probe=Probe(group="mac", dtype="int8", macs=64), power_mw=31.5, sd_mw=0.4),
         PowerStep(probe=Probe(group="loop"), power_mw=28.0, sd_mw=0.2)]


# ---- boards nobody measured ----

def certain(**more):
    return Made(time_us=between(900.0, 1200.0), energy_uj=between(10.0, 20.0),
                calibration="what boards differ by", basis="24 boards", **more)


def candidate(*names, low, high, narrowing):
    return Made(names=names, time_us=between(low, high), narrowing=narrowing)


PREDICTION = Made(deployment=make_prediction(2).deployment, time_us=1000.0, energy_uj=15.0,
                  certainty=certain())
RANKING = Made(prediction=PREDICTION, certainty=certain(), silent=("fetch flash", "loop"),
               single=(candidate("mac int8", low=920.0, high=1180.0, narrowing=0.133),),
               best=candidate("mac int8", "read ram", low=940.0, high=1150.0, narrowing=0.3),
               runs=(candidate(RUN + "kws", RUN + "ad", low=960.0, high=1100.0, narrowing=0.533),))
PORTED = Made(prediction=PREDICTION, physics_us=800.0, is_of_all=False, difference="no board",
              certainty=Made(draw=Made(policies=np.array([0.98, 1.03]))),
              makeup=Made(boards=0.5, parameters=0.3, model=0.2), ranking=RANKING,
              behind=[Made(board="a", core="cortex-m4", runtime="x", kind="published", rows=5,
                           networks=("kws", "ad")),
                      Made(board="b", core="cortex-m7", runtime="x", kind="measured", rows=2,
                           networks=())],
              shipped=Made(time_us=1100.0, certainty=certain(), voltage="3.3 V assumed"))


# ---- images ----

SIZES = Made(weights_bytes=10_000, code_bytes=20_000, flash_bytes=30_000, arena_bytes=4_000,
             ram_bytes=6_000, weights_in_ram=False, lies_in_ram=False, bss_bytes=700,
             data_bytes=300, stack_bytes=1_000, memories=[Made(
                 name="flash", used_bytes=30_000, size_bytes=1 << 20)])
BUILD = Made(image="net.elf", port=Made(name="host"), compiler="gcc 12 -O2", samples=64,
             sizes=SIZES,
             predicted={"weights_bytes": 10_000, "code_bytes": 19_000, "flash_bytes": 29_000,
                        "arena_bytes": 4_000, "ram_bytes": 5_900})
RAN = Made(counter="instructions", simulated=True, outside=120.0, total=5_120.0, setup=900.0,
           is_right=True, layers=[Made(index=0, op="conv_2d", count=4_000.0, equal=True),
                                  Made(index=1, op="softmax", count=1_000.0, equal=None)])
OTHER = some(RAN, outside=0.0, total=7_680.0, is_right=False, simulated=False, layers=[
    Made(index=0, op="conv_2d", count=6_000.0, equal=False),
    Made(index=1, op="softmax", count=1_000.0, equal=None)])
CANDIDATE = Made(tile=4, level="O2", cycles=1e6, ram_bytes=5_000,
                 run=Made(total=9.5e5, counter="i"))
TUNED = Made(candidates=[CANDIDATE, some(CANDIDATE, tile=8, run=None)], kept=CANDIDATE,
             virtual="unicorn-m4", layers=(3, 4), pairs=(5, 6), best_was_best=True)


# ---- what was measured ----

ENERGIES = Measurement(header=Header(kind="measured", model="m", board="b", runtime="r",
                                     source="s", temperature="warm"), samples=tuple(
    Sample(run=run, layer=layer, counter=name, unit="uj", value=value + run)
    for run in (0, 1, 2) for layer, name, value in (
        (0, "energy", 10.0), (0, "energy_sd", 0.5), (1, "energy", 30.0), (1, "energy_sd", 1.0),
        (None, "energy", 41.0), (None, "energy_sd", 1.2), (None, "power_mean", 50.0),
        (None, "power_peak", 90.0), (None, "power_sd", 9.0))))
ACCURACY = Made(right=90, samples=100, share=0.9, low=0.845, high=0.941, by="the arithmetic")
LOG = Made(stretches=[Made(label="monday", runs=30, median=1234.5, ratio=1.0),
                      Made(label="friday", runs=20, median=1300.0, ratio=1.0531)], unit="us",
           sentence="The level moved at friday.")


TIME = Learnt(log=(0.1, -0.5), covariance=pack_covariance(np.array([[0.04, 0.01], [0.01, 0.09]])),
              prior_sd=(0.3, 0.4), network_sd=0.05, row_sd=0.03, rows=4, effective_parameters=1.5,
              unidentified=("memory",), residuals={"a row": 0.125, "another": -0.25},
              band=BandModel(down=1.5, up=1.8, level=0.9, basis="conformal", count=20))
ENTRY = Entry(board="one", core="cortex-m4", runtime="lib@2", support=Support(), time=TIME)
OVERLAY = Overlay(schema=1, library="lib", made_with={}, entries=(ENTRY,), energy_prices=("a", "b"),
                  time_prices=("core", "memory"), data=Data(
                      sha256="0" * 64, rows=4, use="fit", sources=("here:1",)))


TABLES = {
    "scenario": lambda: scenario_report(OUTCOME),
    "scenario-quiet": lambda: scenario_report(QUIET),
    "scenarios": lambda: scenarios_table({"made": SCENARIO, "other": some(SCENARIO, model="ad")}),
    "machine": lambda: machine_report(MACHINE, "some_board", STATED),
    "machine-bare": lambda: machine_report(BARE, "some_board"),
    "power": lambda: power_table(STEPS, 12.5),
    "power-alone": lambda: power_table(STEPS, None),
    "ranking": lambda: ranking_report(RANKING),
    "ranking-alone": lambda: ranking_report(some(RANKING, runs=(), silent=())),
    "ported": lambda: ported_report(PORTED),
    "ported-of-all": lambda: ported_report(some(
        PORTED, is_of_all=True, ranking=None, certainty=Made(draw=Made(policies=np.ones(3))),
        shipped=some(PORTED.shipped, certainty=None, voltage=""),
        prediction=some(PREDICTION, energy_uj=None))),
    "image": lambda: build_report(BUILD),
    "image-in-ram": lambda: build_report(some(BUILD, sizes=some(
        SIZES, weights_in_ram=True, memories=[]))),
    "image-without-flash": lambda: build_report(some(BUILD, sizes=some(SIZES, lies_in_ram=True))),
    "image-run": lambda: run_report(RAN),
    "image-run-wrong": lambda: run_report(OTHER),
    "images": lambda: comparison_report([BUILD, some(BUILD, compiler="clang 14 -Os", sizes=some(
        SIZES, code_bytes=15_000))], [RAN, OTHER]),
    "tuning": lambda: tuning_report(TUNED),
    "tuning-wrong": lambda: tuning_report(some(TUNED, best_was_best=False, kept=some(
        CANDIDATE, run=None))),
    "energies": lambda: energy_table(ENERGIES),
    "virtual-boards": lambda: virtual_boards_table([
        VirtualBoard(name="a", core="c", emulator="qemu", counts="exact", missing=""),
        VirtualBoard(name="b", core="c", emulator="none", counts="ns", missing="pip install x")]),
    "series": lambda: series_report(LOG),
    "accuracy": lambda: accuracy_table(ACCURACY, some(ACCURACY, right=80, share=0.8)),
    "accuracy-alone": lambda: accuracy_table(ACCURACY, None),
    "overlay": lambda: overlay_table(OVERLAY, ENTRY, (1.2, 0.5)),
    "overlay-energy": lambda: overlay_table(OVERLAY, replace(ENTRY, energy=replace(
        TIME, log=(0.3, 0.2), residuals={"a power": 2.0}))),
    "overlay-lent": lambda: overlay_table(OVERLAY, replace(
        ENTRY, powers_of="another", time=replace(TIME, confused=(("core", "memory"),)))),
    "overlay-of-probes": lambda: overlay_table(OVERLAY, replace(ENTRY, time=replace(
        TIME, rows=0, residuals={}))),
    "totals": lambda: totals_table([
        Made(folder="kws", before_us=1000.0, now_us=1200.0, measured_us=1210.0),
        Made(folder="ad", before_us=500.0, now_us=400.0, measured_us=520.0)]),
    "runtimes": lambda: runtimes_table([
        Made(identity="x@1", dtypes=("int8", "float32"), structure="open", drops_dead_channels=True,
             dispatch_cycles=1234.0),
        Made(identity="y@2", dtypes=("int8",), structure="read", drops_dead_channels=False,
             dispatch_cycles=0.0)]),
    "facts": lambda: facts_table([
        Fact(path="memories.ram.address", value=0x20000000, kind="datasheet", source="s"),
        Fact(path="clocks.cpu.max_hz", value=[80e6, 120e6], kind="assumed", source="t", rel_sd=0.1),
        Fact(path="x_hz", value=[1e6, 1e6], kind="assumed", source="t"),
        Fact(path="y", value=None, kind="assumed", source="t")]),
    "entry": lambda: entry_report(Term(
        term="stall", kind="cause", aliases=("wait",), text="The core waits.", equation="a = b",
        lever="less of it", myth="none", source="a book", see=("bus", "cache"))),
    "terms": lambda: terms_table({one: Made(term=one, kind=kind) for one, kind in (
        ("stall", "cause"), ("bus", "part"), ("miss", "cause"))}),
    "paths": lambda: paths_table([("a.b", "a number", "how fast")]),
    "features": lambda: features_table([("quick", "a.b=1", "less work")]),
    "doctor": lambda: doctor_report(Checkup(board=None, steps=(("twin boards", "list"),), checks=(
        Check(name="python", found="3.11", needed=True, advice=""),
        Check(name="gcc", found="", needed=True, advice="apt-get install gcc"),
        Check(name="make", found="", needed=True, advice="apt-get install make"),
        Check(name="extra", found="", needed=False, advice="pip install x")))),
    "transformations": lambda: transformations_table([
        Made(path="precision", effort="retrain", values=("int8", "float32"), reason=""),
        Made(path="network.width", effort="retrain", values=tuple("abcdefgh"), reason=""),
        Made(path="placement.arena", effort="none", values=(),
             reason="placement.arena=sram2: no other memory")]),
    "operands": lambda: operand_table(make_prediction(3)),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name) -> None:
    part = TABLES[name]()
    compare_kept(KEPT / f"made-{name}.txt",
                 "\n".join(outline_text(part, width) for width in (80, 160)))


def test_lines_about_a_program() -> None:
    program = Made(ram_parts={"arena": 0, "stack": 1024, "data_bss": 512})
    assert tell_ram(program) == "stack 1,024 + data bss 512 bytes; arena not known"
    assert tell_ram(Made(ram_parts={})) == "nothing bytes; arena and stack not known"
    run = Made(deployment=Made(found=Made(start_up_instructions=12_345)))
    assert start_line(run).endswith(": 12,345 instructions")


@pytest.mark.parametrize(("share", "encoding", "bar"), [
    (0.0, "utf-8", ""), (1.0, "utf-8", "████"), (0.5, "utf-8", "██"), (1e-9, "utf-8", "▏"),
    (5 / 32, "utf-8", "▋"), (15 / 32, "utf-8", "█▉"), (0.0, "ascii", ""), (1.0, "ascii", "####"),
    (0.5, "ascii", "##"), (1e-9, "ascii", "#")])
def test_a_bar_is_as_long_as_its_share_in_eighths(share, encoding, bar) -> None:
    assert draw_bar(share, Made(encoding=encoding), 4) == bar


def test_prices_that_are_no_findings_are_said_by_their_reason() -> None:
    said = [*list_doubtful(TIME, OVERLAY.time_prices, ["core"])]
    assert said[0].startswith("core: further from what is stated or shipped than its spread")
    assert said[1].startswith("memory: hardly identified, or as sums; none is a finding")
