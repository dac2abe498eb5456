"""Sides by hand: sums, what is of the same thing, which part is which, and rows of a difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample
from twin.attribution.accounts import compare_sides
from twin.attribution.compatibility import NOTE, REFUSE, WARN, Finding, agree, require_same
from twin.attribution.difference import Account, Line, Row
from twin.attribution.measured import side_of_measurement
from twin.attribution.pairing import pair_parts
from twin.attribution.side import Part, Side, Work, sum_parts
from twin.errors import NotTheSameError
from twin.reports.beside import say_reason


def part(index: int, name: str = "", op: str = "", **more) -> Part:
    return Part(index=index, name=name, op=op, amounts={"cycles": 10}, **more)


def side(kind: str = "predicted", **more) -> Side:
    """A prediction; a measurement of one run for any other kind."""
    made = Side(kind=kind, source=kind, model="net", model_sha256="a", architecture_id="id",
                board="nucleo_f446re", runtime="cmsis-nn", temperature="warm",
                clocks_hz={"cpu": 1e8}, placement={"weights": "flash"}, part="layer",
                parts=(part(0, "one", "conv_2d"), part(1, "two", "relu")),
                whole=Part(index=None, amounts={"cycles": 20}),
                runs=0 if kind == "predicted" else 1)
    return replace(made, **more)


UNHASHED = {"model_sha256": None, "architecture_id": None}


def told(first: Side, second: Side) -> list[tuple[str, str]]:
    return [(one.level, one.what) for one in agree(first, second)]


def test_what_a_side_is():
    computed, read = side(), side("measured")
    assert (computed.predicted, computed.counted, computed.numbered) == (True, False, True)
    assert (read.predicted, read.counted, read.numbered) == (False, True, False)
    assert side("measured", runtime="firmware").numbered
    assert computed.label == "predicted" and side(source="").label == "net on nucleo_f446re"


def measured(runs: int, **counters) -> Measurement:
    """A measurement of so many runs, the same figures in each."""
    header = Header(kind="measured", model="net", board="nucleo_f446re", runtime="cmsis-nn@6.0",
                    clocks_hz=(("cpu", 1e8),), temperature="warm", source="made")
    return Measurement(header=header, samples=tuple(
        Sample(run=run, layer=None, counter=name, value=value, unit=unit, clock=clock)
        for run in range(runs) for name, (value, unit, clock) in counters.items()))


@pytest.mark.parametrize("runs", [1, 2, 7])
def test_a_measured_side_counts_its_runs(runs):
    made = side_of_measurement(measured(runs, cpu_cycles=(1000, "cycles", "cpu")))
    assert made.runs == runs and made.counted and made.whole.amounts["cycles"] == 1000


def test_runs_without_the_compared_counter_are_not_counted():
    timed, untimed = measured(2, cpu_cycles=(1000, "cycles", "cpu")), measured(
        3, loads=(5, "events", None))
    made = side_of_measurement(replace(timed, samples=timed.samples + untimed.samples))
    assert made.runs == 2


def test_parts_add_up_and_what_one_lacks_is_not_known():
    parts = (Part(index=0, amounts={"cycles": 3, "time": 30}, counts={"loads": 1.0},
                  causes={"cycles": {"mac": 2, "alu": 1}, "time": {"mac": 30}}),
             Part(index=1, amounts={"cycles": 4}, counts={"loads": 2.0, "stores": 1.0},
                  causes={"cycles": {"mac": 4}}))
    assert sum_parts(iter(parts)) == Part(
        index=None, amounts={"cycles": 7}, causes={"cycles": {"mac": 6, "alu": 1}},
        counts={"loads": 3.0, "stores": 1.0})


@pytest.mark.parametrize(("ours", "theirs", "expected"), [
    ({}, {}, []),
    # Networks: by architecture, by hash, by what is listed, by name.
    ({}, {"architecture_id": "other"}, [(REFUSE, "network")]),
    ({}, {"model_sha256": "b"}, [(WARN, "network")]),
    (UNHASHED, {"model": "net"}, []),
    ({}, {**UNHASHED, "model": "other"}, [(WARN, "network")]),
    ({}, {**UNHASHED, "model": "network"}, [(WARN, "network")]),
    ({"work": Work(macs=100.0)}, {**UNHASHED, "work": Work(macs=109.9), "model": "network"}, []),
    ({"work": Work(macs=100.0)}, {**UNHASHED, "work": Work(macs=110.2)}, [(REFUSE, "network")]),
    ({"work": Work(macs=100.0)}, {**UNHASHED, "work": Work(macs=89.8)}, [(REFUSE, "network")]),
    ({"work": Work(operations=100.0)}, {**UNHASHED, "work": Work(operations=125.0),
                                        "model": "network"}, []),
    ({"work": Work(operations=100.0)}, {**UNHASHED, "work": Work(operations=126.0)},
     [(REFUSE, "network")]),
    ({"work": Work(input_elements=(4, 5))}, {**UNHASHED, "work": Work(input_elements=(4, 6))},
     [(REFUSE, "network")]),
    ({"work": Work(input_elements=(4, 5))}, {**UNHASHED, "work": Work(input_elements=(4, 5)),
                                             "model": "network"}, []),
    ({"work": Work(operators=("relu", "add"))}, {"work": Work(operators=("ReLU", "ADD"))}, []),
    ({"work": Work(operators=("relu", "add"))}, {"work": Work(operators=("relu", "mul"))},
     [(REFUSE, "network")]),
    ({"work": Work(operators=("relu", "add"))}, {"work": Work(operators=("relu", "strange"))}, []),
    ({"work": Work(operators=("relu",))}, {"work": Work(operators=("relu", "add"))},
     [(REFUSE, "network")]),
    ({"work": Work(operators=("relu",), layer_macs={0: 100.0})},
     {"work": Work(operators=("relu",), layer_macs={0: 101.9})}, []),
    ({"work": Work(operators=("relu",), layer_macs={0: 100.0})},
     {"work": Work(operators=("relu",), layer_macs={0: 103.0})}, [(REFUSE, "network")]),
    ({}, {"runtime": "firmware", "parts": (part(7),)}, [(REFUSE, "network"), (WARN, "runtime")]),
    # Boards.
    ({}, {"board": "NUCLEO-F446RE"}, []), ({}, {"board": "unknown"}, [(WARN, "board")]),
    ({}, {"board": "made up"}, [(WARN, "board")]),
    ({}, {"board": "rpi_pico"}, [(REFUSE, "board")]),
    # Clocks: a tenth of a percent says nothing, one percent of the core's is another clock.
    ({}, {"clocks_hz": {"cpu": 1.001e8}}, []), ({}, {"clocks_hz": {"cpu": 1.005e8}},
                                                [(WARN, "clock cpu")]),
    ({}, {"clocks_hz": {"cpu": 0.98e8}}, [(REFUSE, "clock cpu")]),
    ({}, {"clocks_hz": {"timer": 1e6}}, [(WARN, "clock cpu")]),
    ({"clocks_hz": {"bus": 1e8}}, {"clocks_hz": {"bus": 2e8}}, [(WARN, "clock bus")]),
    ({"clocks_hz": {"npu": 1e9}}, {"clocks_hz": {"npu": 8e8}}, [(REFUSE, "clock npu")]),
    # Runtimes.
    ({}, {"runtime": "unknown"}, [(WARN, "runtime")]), ({}, {"runtime": "x-cube-ai"},
                                                        [(WARN, "runtime")]),
    ({"runtime": "tflm-cmsis-nn"}, {"runtime": "tflm"}, []),
    ({"runtime": "x-cube-ai@9.0"}, {"runtime": "x-cube-ai"}, []),
    ({"runtime": "x-cube-ai@9.0"}, {"runtime": "x-cube-ai@8.0"}, [(WARN, "runtime")]),
    # The rest of the set-up.
    ({}, {"temperature": "cold"}, [(WARN, "temperature")]), ({}, {"temperature": None}, []),
    ({}, {"placement": {"weights": "ram", "arena": "ram"}}, [(WARN, "placement of weights")])])
def test_what_a_prediction_and_a_measurement_must_share(ours, theirs, expected):
    assert told(side(**ours), side("measured", **theirs)) == expected


def test_what_two_clocks_make_of_the_same_cycles_is_the_clocks():
    def run(time_ns, cycles, hertz):
        whole = Part(index=None, amounts={"time": time_ns, "cycles": cycles})
        return side("measured", clocks_hz={"cpu": hertz}, parts=(), part="", whole=whole)

    # a tenth fewer cycles, as flash waits less, at a tenth of the clock
    found = compare_sides(run(100_000, 10_000, 1e8), run(900_000, 9_000, 1e7), anyway=True)
    row = found.account("time").total
    assert [(line.causes, line.gap) for line in row.lines if line.gap] == [(("clock",), 900_000)]
    assert row.unexplained == -100_000
    assert not any(line.causes == ("clock",) for line in found.account("cycles").total.lines)


def test_an_emulator_has_no_core_clock_to_state():
    assert told(side(), side("simulated", clocks_hz={"timer": 3.2e7})) == []


@pytest.mark.parametrize(("theirs", "expected"), [
    ({"model_sha256": "b"}, [(NOTE, "network")]), ({"clocks_hz": {"cpu": 2e8}},
                                                   [(NOTE, "clock cpu")]),
    ({"runtime": "x-cube-ai"}, [(NOTE, "runtime")]), ({"temperature": "cold"},
                                                      [(NOTE, "temperature")]),
    ({"placement": {"weights": "ram"}}, [(NOTE, "placement of weights")]),
    ({"calibration": "fit"}, [(NOTE, "calibration")]), ({"board": "rpi_pico"},
                                                        [(REFUSE, "board")]),
    ({"environment": {"compiler": "new", "room": "warm", "port": "a"}}, [(NOTE, "compiler")])])
def test_what_changed_between_two_of_a_kind_is_noted(theirs, expected):
    first = side(environment={"compiler": "old", "room": "cold", "port": "a"})
    assert told(first, replace(first, **theirs)) == expected


def test_refusals_come_first_and_can_be_overruled():
    first, second = side(), side("measured", board="rpi_pico", model_sha256="b",
                                 temperature="cold")
    found = agree(first, second)
    assert [one.level for one in found] == [REFUSE, WARN, WARN]
    assert require_same(first, second, anyway=True) == found
    assert str(found[0]) == "board: nucleo_f446re -> rpi_pico; predict with -b rpi_pico"
    assert str(Finding(level=NOTE, what="a", text="b")) == "a: b"
    with pytest.raises(NotTheSameError, match=r"measured: not of the same thing as predicted: "
                                              r"board: .*--anyway compares regardless"):
        require_same(first, second)


def places(first: Side, second: Side) -> tuple[str, list[tuple[int | None, int | None]]]:
    found = pair_parts(first, second)
    return found.by, [(one and one.index, other and other.index) for one, other in found.pairs]


@pytest.mark.parametrize(("ours", "theirs", "by", "pairs"), [
    # Two of a kind: by number, or by operator and name in order.
    ({}, {"parts": (part(1), part(2))}, "index", [(0, None), (1, 1), (None, 2)]),
    ({}, {"architecture_id": "other", "parts": (part(5, "two", "relu"), part(6, "three", "add"))},
     "name", [(0, None), (1, 5), (None, 6)]),
    ({"part": "epoch"}, {}, "name", [(0, 0), (1, 1)]),
    # Epochs: by title where one compilation made them, else in order.
    ({"part": "epoch"}, {"part": "epoch", "parts": (part(3, "two", "relu"),
                                                     part(4, "one", "conv_2d"))},
     "name", [(1, 3), (0, 4)])])
def test_two_of_a_kind_are_paired(ours, theirs, by, pairs):
    assert places(side(**ours), side(**theirs)) == (by, pairs)


@pytest.mark.parametrize(("ours", "theirs", "by", "pairs"), [
    ({}, {"parts": ()}, "", []), ({}, {"parts": (part(4), part(5))}, "index", [(0, 4), (1, 5)]),
    ({}, {"runtime": "firmware", "parts": (part(1),)}, "index", [(1, 1)]),
    ({"parts": (part(0), part(1, moves=False), part(2))}, {"parts": (part(0), part(1))},
     "index", [(0, 0), (2, 1)]),
    ({}, {"parts": (part(0),)}, "", []), ({}, {"part": "epoch"}, "", []),
    ({"part": "epoch"}, {"part": "epoch", "parts": (part(0), part(1))}, "index",
     [(0, 0), (1, 1)]),
    ({"part": "epoch"}, {"part": "epoch", "parts": (part(7, "x"),)}, "order",
     [(0, 7), (1, None)])])
def test_a_measurement_is_paired_with_a_prediction(ours, theirs, by, pairs):
    assert places(side(**ours), side("measured", **theirs)) == (by, pairs)
    found = pair_parts(side(**ours), side("measured", **theirs))
    assert found.same == (() if by == "order" else found.pairs)
    assert bool(found.note) == (by == "" and bool(theirs.get("parts", side().parts)))


def test_layers_of_a_program_are_paired_by_number_or_refused():
    """A program of a network whose layer 1, a reshape, has no call."""
    calls = (part(0, "run_0", "fully_connected"), part(1, "run_2", "softmax"),
             part(2, "between layers", "data_movement"))
    program = {"runtime": "program@elf", "architecture_id": None, "model_sha256": None}
    ours = side(parts=calls, **program)
    firmware = side("measured", runtime="firmware", parts=(part(0), part(2)))
    assert places(ours, firmware) == ("index", [(0, 0), (1, 2)])
    assert not [one for one in agree(ours, firmware) if one.level == "warn"]
    told = {one.what: one.text for one in agree(ours, side("measured", runtime="tflm"))}
    assert "linked into it" in told["runtime"] and "--runtime" not in told["runtime"]
    log = {"runtime": "tflm", "parts": (part(0, op="CONV_2D"), part(1, op="SOFTMAX"))}
    assert places(ours, side("measured", **log)) == ("index", [(0, 0), (1, 1)])
    for parts, told in (((part(0, op="CONV_2D"), part(1, op="FULLY_CONNECTED")),
                         "run_2 is softmax, measured layer 1 FULLY_CONNECTED"),
                        ((part(0), part(1), part(2)), "2 calls of functions, 3 measured layers")):
        found = pair_parts(ours, side("measured", runtime="tflm", parts=parts))
        assert found.pairs == () and told in found.note


def test_figures_of_a_row():
    """100 -> 130: 20 and -5 are told, 15 are left."""
    row = Row(index=3, name="", op="add", unit="cycles", first=100, second=130, lines=(
        Line(causes=("mac",), first=50, second=70), Line(causes=("alu", "branch"), first=10,
                                                         second=5, counter="other"),
        Line(causes=("idle",), first=40)))
    assert (row.gap, row.explained, row.unexplained) == (30, 15, 15)
    assert (row.ratio, row.increase) == (100 / 130, 0.3)
    assert (row.label, say_reason(row)) == ("3 add", "mac +20")
    assert [line.gap for line in row.moved] == [20, -5]
    assert row.exceeds(0.29) and not row.exceeds(0.3)
    empty = Row(name="total", unit="cycles", first=0, second=0)
    assert (empty.ratio, empty.increase, empty.label, say_reason(empty)) == (
        None, None, "total", "")
    assert say_reason(replace(row, mark="new")) == "new"
    many = Line(causes=tuple(f"c{i}" for i in range(11)), first=0, counter="all of them")
    assert many.label == "all of them" and many.gap is None
    assert replace(many, causes=many.causes[:10]).label == ", ".join(many.causes[:10])


def test_rows_sum_to_the_total_line_by_line():
    """A group told in one row only has that row's gap: 5 + 3 first, so 8 -> 10."""
    one = Row(index=0, name="a", unit="ns", first=5, second=9, lines=(
        Line(causes=("mac",), first=5, second=7, counter="pmu"),))
    other = Row(name="outside them", unit="ns", first=3, second=1, lines=(
        Line(causes=("mac",), first=3), Line(causes=("alu",), first=0)))
    account = Account(quantity="time", unit="ns", rows=(one, other))
    assert account.parts == (one,)
    assert account.total == Row(name="total", unit="ns", first=8, second=10, lines=(
        Line(causes=("mac",), first=8, second=10, counter="pmu"), Line(causes=("alu",), first=0)))
