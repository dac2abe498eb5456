"""`twin plan` and `twin port`: intervals before and after, refusals, and what stands behind."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import cache

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from calibration.fitting.overlay import write_overlay
from calibration.measurement.measurement import Measurement, write_measurement
from calibration.measurement.sample import Header, Sample
from calibration.microbench.probe_rows import learn_rows
from calibration.microbench.probes import PROBES_KEY, RUNTIME, pack_probes
from calibration.virtual_board.costs import state_memories
from hwmodels.board.file import load_board
from twin.attribution.observations import observe_rows
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError, UsageError
from twin.learning.portability import port
from twin.learning.portability.new_board import Wanted, write_board
from twin.learning.portability.plan import believe, network_rows, rank_benchmarks
from twin.learning.portability.port import FAMILIES, check_families, gather, predict_unmeasured
from twin.learning.portability.probed import learn_probes, make_overlay, split_odd
from twin.learning.portability.probes import choose_benchmarks, find_rooms, read_plan
from twin.learning.portability.rows import measured_rows, share_waits
from twin.pricing.assurance import price_cycles
from twin.pricing.calibrated import apply_calibration, predict_calibrated
from twin.pricing.calibration import choose_calibration
from twin.pricing.inference import predict
from twin.pricing.price_names import TIME_PRICES
from twin.pricing.unmeasured import RUN
from twin.reports.documents import load_schema

TFLM = "tflm-cmsis-nn@2023"
LOWERED = "cmsis-nn@6.0"  # not counted: its interval is that of the rows
"""Not measured on the L4R5, so what is learnt there has something to narrow."""


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module", autouse=True)
def observed_once():
    """Rows of a board are predicted once for all commands of this file."""
    made = cache(observe_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(port, "observe_rows", lambda rows: made(tuple(rows)))
        yield


@pytest.fixture(scope="module")
def observed(observed_once):
    return gather(["nucleo_l4r5zi"])


@pytest.fixture(scope="module")
def new_file(tmp_path_factory):
    path, _ = write_board(Wanted(
        name="mine", core="cortex-m4", clock_hz=80e6, flash_bytes=1 << 20, sram_bytes=256 << 10,
        like=load_board("nucleo_l4r5zi")), tmp_path_factory.mktemp("boards") / "mine.yaml")
    return path


def rank(model, board, runtime=TFLM):
    deployment = deploy(model, board, runtime=runtime)
    calibration = choose_calibration(deployment)
    prediction = predict(apply_calibration(deployment, calibration))
    return rank_benchmarks(prediction, calibration, deployment.board)


def test_every_candidate_narrows_and_two_do_more_than_one(new_file):
    found = rank("ic", new_file)
    assert [one.narrowing for one in found.single] == sorted(
        (one.narrowing for one in found.single), reverse=True)
    assert all(0 <= one.narrowing < 1 for one in (*found.single, *found.runs))
    assert found.best.narrowing >= found.single[0].narrowing and len(found.best.names) == 2
    before = found.certainty.time_us
    for one in (*found.single, found.best, *found.runs):
        assert before.low <= one.time_us.low < found.prediction.time_us
        assert found.prediction.time_us < one.time_us.high <= before.high


def test_networks_that_may_be_run_are_priced_by_learnt_factors_once():
    """What a memory was learnt to cost is on the prediction's board already."""
    ic, kws = (deploy(model, "nucleo_l4r5zi") for model in ("ic", "kws"))
    calibration = choose_calibration(ic)
    once, other = (predict(apply_calibration(one, calibration)) for one in (ic, kws))
    assert abs(dict(zip(TIME_PRICES, calibration.time.factors, strict=True))["memory"] - 1) > 0.02
    work = price_cycles(other).sum(axis=0)
    found = network_rows(once, calibration, ic.board)[RUN + "kws"].shares
    assert found == pytest.approx(work / work.sum(), rel=1e-9)


def test_a_memory_that_is_waited_for_more_is_asked_for_more():
    """Weights in flash wait on it; in SRAM nothing does, and the flash tells of less."""
    def reach(weights):
        prediction = predict(deploy("ad", "nucleo_l4r5zi", weights=weights))
        return share_waits(prediction).get("latency:flash", 0.0)

    assert reach("flash") > 0.5 > reach("sram")


def test_plans_are_written_and_read(tmp_path, new_file):
    code, out, err = run("plan", "kws", "--to", new_file, "-o", tmp_path / "plan.yaml")
    assert code == 0, err
    plan = read_plan(str(tmp_path / "plan.yaml"))
    assert plan.board == "mine" and plan.model == "kws" and len(plan.benchmarks) == 2
    board = load_board(new_file)
    assert choose_benchmarks(plan.benchmarks, board, find_rooms(board))
    text = " ".join(out.split())
    assert "best two micro-benchmarks: " + " and ".join(plan.benchmarks) in text
    assert text.index("measure ") < text.index("best two") and "ms at 90%" in text
    code, out, _ = run("plan", "kws", "--to", new_file, "--json")
    document = json.loads(out)
    assert code == 0 and tuple(document["best"]["run"]) == plan.benchmarks
    assert document["low_us"] < document["best"]["low_us"] < document["time_us"]


def test_plan_needs_learnt_prices():
    code, _, err = run("plan", "kws", "-b", "nucleo_l4r5zi", "--calibration", "none")
    assert code == 2 and "no interval to narrow" in err


def test_ported_predictions_say_what_they_rest_on(observed, new_file):
    found = predict_unmeasured(predict(deploy("kws", new_file, runtime=TFLM)), observed)
    certainty = found.prediction.certainty
    assert certainty.basis == "model-based"
    assert certainty.time_us.low < found.prediction.time_us < certainty.time_us.high
    makeup = found.makeup
    assert makeup.boards > 0 and makeup.boards + makeup.parameters + makeup.model == \
        pytest.approx(1.0)
    assert {one.board for one in found.behind} == {"nucleo_l4r5zi"}
    assert sum(one.rows for one in found.behind) == len(observed)
    assert ("no measurement of mine is learnt from, only of other boards with cortex-m4"
            in certainty.extrapolating)
    # what was learnt moves physics by the same factor as it moves the board it was learnt on
    assert 0.5 < found.prediction.time_us / found.physics_us < 2


def test_percentages_are_of_the_intervals_and_a_run_shows_what_the_cache_does(tmp_path):
    path, _ = write_board(Wanted(name="guessed", core="cortex-m4", clock_hz=240e6,
                                 flash_bytes=3 << 20, sram_bytes=768 << 10), tmp_path / "b.yaml")
    found = rank("kws", path)
    now, policies = found.certainty.time_us, found.certainty.draw.policies
    assert policies.max() > policies.min()  # its cache is a guess
    for one in (*found.single, *found.runs):
        left = math.log(one.time_us.high / one.time_us.low) / math.log(now.high / now.low)
        assert one.narrowing == pytest.approx(1 - left)
    own = next(one for one in found.runs if one.names == (RUN + "kws",))
    time_us = found.prediction.time_us
    sides = math.log(now.high / time_us / policies.max()), math.log(
        time_us * policies.min() / now.low)
    after = math.log(own.time_us.high / time_us), math.log(time_us / own.time_us.low)
    assert after[0] / sides[0] == pytest.approx(after[1] / sides[1])


def test_more_boards_narrow_the_interval(observed, new_file):
    both = gather(["nucleo_l4r5zi", "nucleo_u575zi_q"])
    deployment = deploy("kws", new_file, runtime=TFLM)
    one, two = (predict_unmeasured(predict(deployment), rows).prediction
                for rows in (observed, both))

    def width(prediction):
        return math.log(prediction.certainty.time_us.high / prediction.certainty.time_us.low)

    assert width(two) < width(one)


def test_a_core_nobody_measured_extrapolates(observed):
    found = predict_unmeasured(predict(deploy("kws", "nucleo_h723zg", runtime=TFLM)), observed)
    assert "no row is of a board with this core" in found.prediction.certainty.extrapolating
    on_core = predict_unmeasured(predict(deploy("kws", "nucleo_f401re", runtime=TFLM)), observed)
    assert found.makeup.boards > on_core.makeup.boards


def test_an_operator_family_never_seen_is_refused(observed):
    prediction = predict(deploy("kws", "nucleo_f401re", runtime=TFLM))
    assert check_families(prediction, observed) == ()
    place = TIME_PRICES.index("depthwise")
    share = price_cycles(prediction).sum(axis=0)[place] / prediction.cycles
    without = [dataclasses.replace(one, design=dataclasses.replace(
        one.design, cycles=np.where(np.arange(len(TIME_PRICES)) == place, 0, one.design.cycles)))
        for one in observed]
    with pytest.raises(RuntimeRefusedError, match=f"depthwise takes {share:.0%}.*cortex-m4"):
        check_families(prediction, without)
    # of a core nobody measured nothing is known anyway: that is extrapolation, not refusal
    assert check_families(predict(deploy("kws", "nucleo_h723zg", runtime=TFLM)), without) == ()
    assert "depthwise" in FAMILIES and "memory" not in FAMILIES


def test_networks_can_be_chosen_and_transfer_is_refused_where_it_must():
    code, _, err = run("port", "kws", "--from", "nucleo_l4r5zi", "--networks", "ad", "--to",
                       "nucleo_f401re")
    # the autoencoder is fully connected throughout: it says nothing of convolutions
    assert code == 3 and "no row on a cortex-m4 has one" in err
    code, out, err = run("port", "kws", "--from", "nucleo_l4r5zi", "--networks", "kws,vww", "--to",
                         "nucleo_f401re", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert {name for one in document["behind"] for name in one["networks"]} == {"kws", "vww"}
    assert document["kind"] == "predicted" and document["physics_us"] > 0
    jsonschema.Draft202012Validator(load_schema("port")).validate(document)


@pytest.mark.parametrize("arguments, message", [
    (("--from", "rpi_pico"), "no published row of it"),
    (("--from", "nucleo_f401re"), "no published row of it"),
    (("--from", "nucleo_l4r5"), "did you mean nucleo_l4r5zi"),
    (("--from", "nucleo_l4r5zi", "--networks", "resnet"), "not measured there"),
    (("--from", "nucleo_l4r5zi", "--to", "stm32n6570_dk", "--runtime", "neural-art"),
     "`twin select` say what is known of it; accepted: a library of the host")])
def test_refusals(arguments, message):
    to = () if "--to" in arguments else ("--to", "nucleo_f401re")
    code, _, err = run("port", "kws", *to, *arguments)
    assert code in (2, 3) and message in err and "Traceback" not in err


def test_a_library_nobody_measured_there_extrapolates(observed):
    mine = [one for one in observed if one.cell.library == "x-cube-ai"]
    found = predict_unmeasured(predict(deploy("kws", "nucleo_f401re", runtime=TFLM)), mine)
    assert any("no row is of the library" in reason
               for reason in found.prediction.certainty.extrapolating)


def test_micro_benchmarks_are_no_networks(tmp_path):
    folder = write_measurement(tmp_path / "m", probe_measurement(
        load_board("nucleo_l4r5zi"), ["mac:int8"], 1.0))
    with pytest.raises(UsageError, match="holds micro-benchmarks"):
        gather([str(folder)])


@pytest.mark.parametrize(("name", "runtime"), [
    ("nucleo_l4r5zi", LOWERED), ("nucleo_l4r5zi", "tflm-cmsis-nn@2026"),
    ("nucleo_f401re", "tflm-reference@2026"), ("nucleo_f401re", "x-cube-ai@9.0.0")])
def test_what_a_plan_expects_is_what_calibrating_leaves(tmp_path, name, runtime):
    """The interval afterwards is known before: only where it lies is not."""
    board = load_board(name)
    ranking = rank("ic", board, runtime)
    expected = next(one for one in ranking.single if one.names == ("latency:flash",))
    factor = math.exp(choose_calibration(deploy("ic", board, runtime=runtime)).time.log[
        TIME_PRICES.index("memory")])
    folder = write_measurement(tmp_path / "m", probe_measurement(
        board, ["latency:flash"], factor, runtime))
    probed = learn_probes([str(folder)], board)
    before = ranking.certainty.time_us
    for wanted in (probed.calibration,
                   str(write_overlay(tmp_path / "o.yaml", make_overlay(probed, board)))):
        left = predict_calibrated(deploy("ic", board, runtime=runtime),
                                  calibration=wanted).certainty.time_us
        assert left.high / left.low == pytest.approx(
            expected.time_us.high / expected.time_us.low, rel=0.02)
        assert left.high / left.low < 1.001 * before.high / before.low


@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "stm32n6570_dk"])
def test_plan_starts_from_what_predict_says(board):
    """On a cache whose replacement policy is not known, too."""
    ranking = rank("ic", load_board(board))
    said = predict_calibrated(deploy("ic", board, runtime=ranking.prediction.deployment
                                     .runtime.identity))
    assert ranking.prediction.time_us == said.time_us
    assert ranking.certainty.time_us == said.certainty.time_us
    assert ranking.best.time_us.low > said.certainty.time_us.low


def test_port_says_what_predict_says(new_file):
    code, out, err = run("port", "kws", "--from", "nucleo_l4r5zi", "--to", new_file, "--json")
    assert code == 0, err
    ported = json.loads(out)
    said = predict_calibrated(deploy("kws", new_file))
    for one in (ported, ported["shipped"]):
        assert one["time_us"] == said.time_us
        assert one["time_interval_us"]["low"] == said.certainty.time_us.low
        assert one["time_interval_us"]["high"] == said.certainty.time_us.high
    assert ported["energy_interval_uj"]["high"] == said.certainty.energy_uj.high
    assert "the same" in ported["shipped"]["why_it_differs"]
    _, out, _ = run("port", "kws", "--from", "nucleo_l4r5zi", "--to", new_file)
    assert "what boards of all published rows took" in " ".join(out.split())
    assert "Rests on all published rows, whichever board --from names" in out


def test_port_learns_from_a_measurement_of_a_board_whose_file_is_given(new_file, tmp_path):
    """By --to, or by --from beside the folder; without it the error says what to give."""
    deployment = deploy("kws", new_file, runtime=LOWERED)
    graph = deployment.graph
    folder = write_measurement(tmp_path / "m", Measurement(header=Header(
        kind="measured", model="kws", model_sha256=graph.sha256, board="mine",
        architecture_id=graph.architecture_id, runtime=LOWERED, clocks_hz=(("cpu", 80e6),),
        temperature="warm", source="made"), samples=(Sample(
            run=0, counter="cpu_cycles", clock="cpu", unit="cycles",
            value=1.1 * predict(deployment).cycles),)))
    for words in (("--to", new_file), ("--from", new_file, "--to", "nucleo_l4r5zi")):
        code, out, err = run("port", "kws", "--from", folder, *words, "--runtime", LOWERED,
                             "--json")
        assert code == 0, err
        document = json.loads(out)
        assert [(one["board"], one["rows"]) for one in document["behind"]] == [("mine", 1)]
        assert document["time_us"] > 1.02 * document["physics_us"]
    code, _, err = run("port", "kws", "--from", folder, "--to", "nucleo_l4r5zi", "--runtime",
                       LOWERED)
    assert code == 2 and "measured on 'mine': give that board's file" in " ".join(err.split())


def test_the_network_itself_narrows_most_of_all_networks(new_file):
    found = rank("kws", new_file, LOWERED)
    assert found.runs[0].names == (RUN + "kws",) and len(found.runs) == 4
    assert found.runs[0].narrowing > found.runs[1].narrowing


def test_port_from_a_choice_of_networks_says_why_it_differs(new_file):
    code, out, err = run("port", "kws", "--from", "nucleo_l4r5zi", "--networks", "kws,vww", "--to",
                         new_file, "--runtime", LOWERED, "--json")
    assert code == 0, err
    ported = json.loads(out)
    said = predict_calibrated(deploy("kws", new_file, runtime=LOWERED))
    assert ported["shipped"]["time_us"] == said.time_us
    assert ported["shipped"]["time_interval_us"]["high"] == said.certainty.time_us.high
    assert "rows of 1 board," in ported["shipped"]["why_it_differs"]
    # rows of one board say nothing of how far apart boards lie: all rows do
    width = math.log(ported["time_interval_us"]["high"] / ported["time_interval_us"]["low"])
    assert width < 3 * math.log(said.certainty.time_us.high / said.certainty.time_us.low)


# --- learning from micro-benchmarks -----------------------------------------------------------

def probe_measurement(board, names, factor, runtime="tflm-cmsis-nn@2023", counter="cpu_cycles"):
    """Micro-benchmarks of a board whose memories wait `factor` times as long as stated."""
    rooms = find_rooms(board)
    probes = tuple(probe for one in choose_benchmarks(names, board, rooms) for probe in one.probes)
    said, cache = state_memories(board), board.cache(board.core.dcache)
    samples = []
    for number, probe in enumerate(probes):
        cost = 8.0
        if probe.group in ("chase", "conflict") and probe.extent_bytes > cache.size_bytes:
            cost += factor * said[probe.memory].miss_cycles * min(
                1, probe.stride_bytes / cache.line_bytes)
        for place, laps in enumerate((probe.few, probe.many)):
            samples.append(Sample(run=0, layer=1 + 2 * number + place, counter=counter, clock="cpu",
                                  unit="cycles", value=500 + laps * probe.units * cost))
    told = [(PROBES_KEY, pack_probes(probes)), ("for_model", "ic")]
    header = Header(kind="simulated", model=RUNTIME, board=board.name, runtime=RUNTIME,
                    source="test", temperature="warm",
                    environment=tuple(told + ([("for_runtime", runtime)] if runtime else [])))
    return Measurement(header=header, samples=tuple(samples))


def test_measured_rows_hold_the_planted_ratio():
    board = load_board("nucleo_l4r5zi")
    rows, remarks = measured_rows(probe_measurement(board, ["latency:flash"], 2.0), board)
    assert [row.name for row in rows] == ["latency:flash"] and not remarks
    assert rows[0].log_ratio == pytest.approx(math.log(2.0), abs=0.02)


def test_planted_waits_move_the_price_of_memories(tmp_path):
    board = load_board("nucleo_l4r5zi")
    place, factors = TIME_PRICES.index("memory"), {}
    before = believe(choose_calibration(deploy("ic", board, runtime=TFLM))).now
    for factor in (0.5, 1.0, 2.0):
        folder = write_measurement(tmp_path / str(factor),
                                   probe_measurement(board, ["latency:flash"], factor))
        found = learn_probes([str(folder)], board)
        factors[factor] = found.calibration.time.log[place]
        assert found.calibration.time.covariance[place, place] < before.covariance[place, place]
    assert factors[0.5] < factors[1.0] < factors[2.0]
    # a network's waits are mostly the flash's: most of a doubling is believed
    assert factors[2.0] - factors[1.0] > 0.4 * math.log(2)


def test_calibrate_writes_an_overlay_that_predict_takes(tmp_path):
    board = load_board("nucleo_l4r5zi")
    folder = write_measurement(tmp_path / "m", probe_measurement(board, ["latency:flash"], 2.0))
    code, out, err = run("calibrate", "-b", "nucleo_l4r5zi", folder, "-o", tmp_path / "o.yaml")
    assert code == 0, err
    assert "latency:flash" in out
    times = []
    for wanted in ("auto", tmp_path / "o.yaml"):
        code, out, err = run("predict", "ic", "-b", "nucleo_l4r5zi", "--calibration", wanted,
                             *(("--runtime", TFLM) if wanted == "auto" else ()),
                             "--json")
        assert code == 0, err
        times.append(json.loads(out)["total"]["time_us"])
    assert times[1] > times[0]
    # learnt on an emulated board: said wherever it is used
    assert "corrected by micro-benchmarks (latency:flash)" in err
    assert "simulated" in err and "simulated" in json.loads(out)["calibration"]["overlay"]


def test_rows_out_of_reach_of_what_is_believed_are_not_learnt_from(tmp_path):
    """A wait 200 times the datasheet's tells of a mistake; the row beside it still narrows."""
    board = load_board("nucleo_l4r5zi")
    belief = believe(choose_calibration(deploy("ic", board, runtime=TFLM)))
    (row,), _ = measured_rows(probe_measurement(board, ["latency:flash"], 1.0), board)
    far = dataclasses.replace(row, log_ratio=row.log_ratio + math.log(200))
    kept, odd = split_odd(belief, [row, far])
    assert kept == [row] and len(odd) == 1 and "latency:flash: +" in odd[0]
    place = TIME_PRICES.index("memory")
    assert (learn_rows(belief, kept).covariance[place, place]
            < belief.now.covariance[place, place])
    folder = write_measurement(tmp_path / "m", probe_measurement(board, ["latency:flash"], 200.0))
    code, _, err = run("calibrate", "-b", "nucleo_l4r5zi", folder, "-o", tmp_path / "o.yaml")
    assert code == 2 and "nothing is left to learn from" in err
    assert not (tmp_path / "o.yaml").exists()


@pytest.mark.parametrize("change, message", [
    ({"board": "nucleo_f401re"}, "measured on nucleo_l4r5zi, not on nucleo_f401re"),
    ({"runtime": None}, "--runtime is needed"), ({"counter": "instructions"}, "counts instruct")])
def test_other_measurements_are_refused(change, message, tmp_path):
    board = load_board("nucleo_l4r5zi")
    told = {key: value for key, value in change.items() if key != "board"}
    folder = write_measurement(tmp_path / "m", probe_measurement(board, ["latency:flash"], 1.0,
                                                                 **told))
    code, _, err = run("calibrate", "-b", change.get("board", "nucleo_l4r5zi"), folder, "-o",
                       tmp_path / "o.yaml")
    assert code in (2, 3) and message in err and not (tmp_path / "o.yaml").exists()


def test_a_wait_the_board_file_does_not_know_is_said(tmp_path):
    """A factor cannot make a wait out of none: the board file is wrong, and nothing is learnt."""
    board = load_board("nucleo_l4r5zi")
    calm = load_board("nucleo_l4r5zi", overrides={"clocks.cpu.frequency_hz": "20MHz"})
    assert state_memories(calm)["flash"].miss_cycles == 0
    rows, remarks = measured_rows(probe_measurement(board, ["latency:flash"], 1.0), calm)
    assert not rows and "correct the board file" in remarks[0]
    with pytest.raises(UsageError, match="nothing there informs a price"):
            learn_probes([str(write_measurement(tmp_path / "m", probe_measurement(
            board, ["latency:flash"], 1.0)))], calm)


def test_plan_is_for_the_host_of_an_accelerator():
    code, out, err = run("plan", "kws", "--to", "stm32n6570_dk")
    assert code == 0 and "runtime    tflm-cmsis-nn@2026" in out
    assert "on the host core, which micro-benchmarks measure" in err
    code, _, err = run("plan", "kws", "--to", "stm32n6570_dk", "--runtime", "neural-art")
    assert code == 2 and "accepted: a library of the host, such as --runtime tflm-cmsis" in err


def test_a_measured_target_is_warned_of_first(tmp_path):
    page = tmp_path / "port.html"
    code, _, err = run("port", "kws", "--from", "nucleo_l4r5zi", "--to", "nucleo_l4r5zi",
                       "--report", str(page))
    first = next(line for line in err.splitlines() if line.startswith("warning: "))
    assert code == 0 and "x-cube-ai@9.0.0-time was measured on nucleo_l4r5zi (--to) itself" in first
    text = page.read_text()
    assert "nobody measured it" not in text and "hardware nobody measured" not in text


def test_what_learnt_powers_make_of_stated_currents_is_written_of_a_port(observed):
    """Of a board nobody measured, as of any other prediction at learnt powers."""
    deployment = deploy("kws", "nucleo_f746zg")
    found = predict_unmeasured(predict(deployment), observed, choose_calibration(deployment))
    text, = [line for line in found.prediction.warnings if line.startswith("energy: ")]
    assert text in predict_calibrated(deployment).warnings and "covers both" in text
