"""`twin boards new`: what is asked, what is guessed, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import twin
from hwmodels.board.file import change_board, load_board
from hwmodels.core.file import list_built_cores
from hwmodels.errors import BoardError
from hwmodels.prices import clock_tree_pj, issue_pj, leakage_pj, stall_pj
from twin.api.commands.check import check
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.learning.portability.new_board import (
    BORROWED_SD,
    Wanted,
    describe_board,
    write_board,
)
from twin.pricing.batched import predict_many
from twin.pricing.calibrated import apply_factors, predict_calibrated
from twin.pricing.calibration import choose_calibration
from twin.pricing.draw import probability_faster, ratio_interval
from twin.pricing.inference import predict
from twin.pricing.lines import list_doubtful
from twin.pricing.price_names import TIME_PRICES

FULL = ("--core", "cortex-m4", "--clock", "96MHz", "--flash", "1MiB", "--sram", "256KiB")


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, result.stdout, result.stderr


def wanted(core="cortex-m4", like=None, **known):
    return Wanted(name="mine", core=core, clock_hz=96e6, flash_bytes=1 << 20,
                  sram_bytes=256 << 10, like=None if like is None else load_board(like), **known)


@pytest.mark.parametrize("core", sorted(list_built_cores()))
def test_every_core_predicts_at_once(core, tmp_path):
    path, board = write_board(wanted(core), tmp_path / "mine.yaml")
    assert len(path.read_text().splitlines()) < 40
    assert board.core.model == core
    assert predict(deploy("kws", path)).time_us > 0


def test_texts_are_read_as_options_read_them_and_others_refused():
    known = {"name": "mine", "core": "cortex-m4", "clock_hz": "96MHz", "flash_bytes": "1MiB",
             "sram_bytes": "256KiB"}
    made = twin.Wanted(**known, run_ma_per_mhz="140uA/MHz", like="nucleo_l4r5zi")
    assert (made.clock_hz, made.flash_bytes, made.run_ma_per_mhz) == (96e6, 1 << 20, 0.14)
    assert made.like == load_board("nucleo_l4r5zi")
    for name, given, refusal in (
            ("clock_hz", "96", r"^--clock '96' is not understood; accepted: .*, kHz, MHz, GHz$"),
            ("wait_states", "3", r"^wait_states='3' is a text; accepted: a whole number$")):
        with pytest.raises(UsageError, match=refusal):
            twin.Wanted(**{**known, name: given})
    with pytest.raises(UsageError, match=r"^needed: --clock, --sram; accepted: as --clock 96MHz -"):
        twin.Wanted(name="mine", core="cortex-m4", flash_bytes=1 << 20)
    with pytest.raises(UsageError, match=r"^--like esp32s3_devkitc: no file can be written of a"):
        twin.Wanted(name="mine", like="esp32s3_devkitc")


def test_the_clock_that_is_given_is_the_highest(tmp_path) -> None:
    path, board = write_board(wanted("cortex-m7", "nucleo_h723zg"), tmp_path / "mine.yaml")
    assert board.core_clock.max_hz == 96e6
    assert deploy("kws", path, clock_hz=48e6).board.core_clock.frequency_hz == 48e6
    with pytest.raises(BoardError, match=r"100 MHz is above .*; accepted: up to 96 MHz \(stated"):
        deploy("kws", path, clock_hz=100e6)


def test_a_long_list_of_clocks_is_wrapped_in_the_file_and_short_in_the_table(tmp_path):
    path, _ = write_board(Wanted(
        name="mine", core="cortex-m4", clock_hz=960e6, flash_bytes=1 << 20, sram_bytes=1 << 18),
        tmp_path / "mine.yaml")
    waits = path.read_text().partition("wait_states_max_hz")[2].partition("power:")[0]
    assert max(map(len, waits.splitlines())) <= 98
    assert load_board(path).memory("flash").wait_states == 31
    assert "  30 MHz to 1.92 GHz (64)  " in run("boards", path, "--sources")[1]


@pytest.mark.parametrize(("name", "like", "soc", "library"), [
    ("h743", "nucleo_h723zg", "stm32h7-h743", "x-cube-ai"),
    ("mine", "stm32n6570_dk", "stm32n6-mine", "st-edge-ai"),
    ("stm32h743zi", "nucleo_h723zg", "stm32h743zi", "x-cube-ai"),
    ("mine", "rpi_pico2", "rp2350-mine", "tflm-cmsis-nn"),
    ("mine", None, "mine", "tflm-cmsis-nn")])
def test_a_board_like_another_has_the_libraries_of_its_maker(name, like, soc, library, tmp_path):
    core = "cortex-m55" if like == "stm32n6570_dk" else "cortex-m7"
    board = write_board(replace(wanted(core, like), name=name), tmp_path / "mine.yaml")[1]
    assert board.soc == soc and deploy("kws", board).runtime.name == library


@pytest.mark.parametrize("like", ["nucleo_l4r5zi", "nucleo_u575zi_q", "nucleo_h7a3zi_q",
                                  "apollo510_evb", "rpi_pico"])
def test_a_board_like_another_is_predicted_like_it(like, tmp_path):
    """Same clock, geometry and currents: what is held out (banks, prefetch) is little."""
    model = load_board(like)
    hertz = model.clock(model.core.clock).frequency_hz
    path, board = write_board(Wanted(
        name="mine", core=model.core.model, clock_hz=hertz, flash_bytes=2 << 20,
        sram_bytes=1 << 20, like=model), tmp_path / "mine.yaml")
    assert len(path.read_text().splitlines()) < 40
    weights = model.memory(dict(model.placement)["weights"])
    assert board.memory("flash").wait_states == weights.wait_states
    theirs = predict(deploy("kws", model))
    assert predict(deploy("kws", path)).time_us == pytest.approx(theirs.time_us, rel=0.35)


def test_guesses_are_marked_and_what_is_given_is_not():
    text = describe_board(wanted(wait_states=3))
    assert "wait_states: [3, datasheet, given]" in text
    assert "read_bytes: {value: 16, kind: assumed, source: array, rel_sd: 1}" in text
    assert "size_bytes: [1048576, datasheet, given]" in text
    text = describe_board(wanted())
    # 96 MHz at 30 MHz an answer: four periods; and as many again for higher clocks
    assert "wait_states_max_hz: {default: {value: [30MHz, 60MHz, 90MHz, 120MHz, 150MHz, " in text
    assert describe_board(wanted("rv32imac")) == describe_board(wanted("rv32imc"))


def test_what_cannot_be_names_what_asked_for_it(tmp_path):
    with pytest.raises(BoardError, match=r"_bytes, of --flash: '1e.*' is impos.* nothing is wr"):
        write_board(replace(wanted(), flash_bytes=1e15), tmp_path / "mine.yaml")
    with pytest.raises(UsageError, match=r"--clock: at 9 GHz .* 299 wait states.*up to 64"):
        write_board(replace(wanted(), clock_hz=9e9), tmp_path / "mine.yaml")
    assert not list(tmp_path.iterdir())


def beyond(hertz: float) -> dict[str, float]:
    """Return a clock, and a part that allows it."""
    return {"clocks.cpu.max_hz_by_scale.default": 400e6, "clocks.cpu.frequency_hz": hertz}


@pytest.mark.parametrize(("like", "expected"), [
    ("nucleo_l4r5zi", [0, 1, 3, 5]),  # 5 wait states at 120 MHz: 20 MHz each
    (None, [0, 1, 2, 3])])
def test_wait_states_follow_the_clock_in_new_files_and_in_what_ifs_alike(like, expected, tmp_path):
    for hertz, states in zip((20e6, 40e6, 80e6, 120e6), expected, strict=True):
        path, board = write_board(replace(wanted(like=like), clock_hz=hertz),
                                  tmp_path / f"{hertz:g}.yaml")
        for other, demanded in zip((20e6, 40e6, 80e6, 120e6), expected, strict=True):
            if other <= 2 * hertz:
                changed = load_board(path, overrides=beyond(other))
                assert changed.memory("flash").wait_states == demanded
        assert board.memory("flash").wait_states == states
    with pytest.raises(BoardError, match=r"is 240 MHz, assumed \(.* the table of the datasheet$"):
        load_board(path, overrides=beyond(400e6))


def test_wait_states_that_are_given_stay_at_another_clock_and_it_says_so(tmp_path):
    path, _ = write_board(wanted(wait_states=4), tmp_path / "mine.yaml")
    given = predict(deploy("ad", path))
    slower = predict(deploy("ad", path, clock_hz=32e6))
    assert slower.cycles == given.cycles
    stays, = (text for text in slower.warnings if "wait_states stays 4 at this clock" in text)
    assert "--set memories.flash.wait_states=N" in stays and stays not in given.warnings
    stated = deploy("ad", path, clock_hz=32e6).replace({"memories.flash.wait_states": 1})
    assert not any("stays" in text for text in predict(stated).warnings)


def test_energy_is_known_only_with_a_current(tmp_path):
    _, board = write_board(wanted(), tmp_path / "a.yaml")
    assert predict(deploy("ad", board)).energy_uj is None
    _, board = write_board(wanted(run_ma_per_mhz=0.1, supply_v=3.0), tmp_path / "b.yaml")
    prediction = predict(deploy("ad", board))
    # near 0.1 mA/MHz x 3 V = 300 pJ a cycle: stalls take less, packed issue more
    assert prediction.energy_uj * 1e6 / prediction.cycles == pytest.approx(300, rel=0.35)


@pytest.mark.parametrize("like", [None, "nucleo_l4r5zi", "nucleo_u575zi_q", "nucleo_h7a3zi_q",
                                  "apollo510_evb"])
@pytest.mark.parametrize("regulator", ["ldo", "smps", None])
def test_a_run_current_is_the_whole_current_of_a_busy_loop(like, regulator, tmp_path):
    """Issue slots at the reference rate, waiting cycles between, clock tree and leakage."""
    _, board = write_board(wanted(like=like, run_ma_per_mhz=0.0195, supply_v=1.8,
                                  regulator=regulator), tmp_path / "mine.yaml")
    power, slots = board.power, board.power.reference_ipc
    waiting = (1 - slots) * stall_pj(power)
    cycle_pj = (slots * issue_pj(power) + waiting + clock_tree_pj(power)
                + leakage_pj(power) * 1e9 / 96e6)
    assert cycle_pj == pytest.approx(0.0195 * 1.8 * 1000, rel=1e-3)
    expected = regulator or (load_board(like).power.regulator if like else "ldo")
    assert board.power.regulator == expected


@pytest.mark.parametrize(("like", "regulator"), [
    ("nucleo_u575zi_q", "smps"), ("nucleo_u575zi_q", "ldo"), ("nucleo_h7a3zi_q", "smps"),
    ("nucleo_h7a3zi_q", "ldo"), ("nucleo_l4r5zi", "ldo")])
def test_a_regulator_draws_as_that_of_its_model(like, regulator, tmp_path):
    """Currents, core voltage and efficiency are taken over: the rail pays what the model's pays."""
    _, board = write_board(wanted(like=like, regulator=regulator, supply_v=3.3),
                           tmp_path / "mine.yaml")
    model = change_board(load_board(like), {"supply.voltage_v": 3.3,
                                            "supply.regulator": regulator})
    assert clock_tree_pj(board.power) == pytest.approx(clock_tree_pj(model.power))
    assert leakage_pj(board.power) == pytest.approx(leakage_pj(model.power))


def test_an_interval_covers_stated_currents_and_what_networks_drew(tmp_path):
    """Learnt powers are multiplied on: by how much is said, and both are in the interval."""
    _, board = write_board(wanted(run_ma_per_mhz=0.1, supply_v=3.3), tmp_path / "mine.yaml")
    asked = deploy("kws", board)
    chosen = choose_calibration(asked, "auto")
    made = predict_calibrated(asked, calibration=chosen)
    factors = dict(zip(TIME_PRICES, chosen.time.factors.tolist(), strict=True))
    stated_uj = predict(apply_factors(asked, factors, {})).energy_uj
    assert made.energy_uj > 1.2 * stated_uj
    interval = made.certainty.energy_uj
    assert interval.holds(stated_uj * 1.0001) and interval.holds(made.energy_uj)
    line, = (line for line in made.warnings if line.startswith("energy: "))
    assert f"{made.energy_uj / stated_uj:.2f} times" in line and "covers both" in line
    known = predict_calibrated(deploy("kws", "nucleo_l4r5zi"))
    assert not any(line.startswith("energy: ") for line in known.warnings)


@pytest.mark.parametrize("like", [None, "nucleo_u575zi_q"])
def test_each_guess_says_what_it_is_borrowed_from(like, tmp_path):
    _, board = write_board(wanted(like=like, run_ma_per_mhz=0.0195), tmp_path / "mine.yaml")
    said = {fact.path: fact.source for fact in board.facts if fact.kind == "assumed"}
    waits, read = (said[f"memories.flash.{key}"]
                   for key in ("wait_states_max_hz.default", "read_bytes"))
    assert waits != read
    for source in (waits, read, said["supply.voltage_v"]):
        assert (f"borrowed from {like}" if like else "as most parts with a cortex-m4") in source
    split = said["power.activity_ma_per_mhz.default"]
    assert "19.5 uA/MHz" in split and (like or "guessed") in split


@pytest.mark.parametrize(("given", "said", "unsaid"), [
    ({"supply_v": 1.8, "regulator": "smps"}, "supply voltage and regulator given", "3.3 V"),
    ({"supply_v": 1.8}, "guessed: a linear regulator, as most parts", "3.3 V"),
    ({"regulator": "smps"}, "guessed: 3.3 V, as most parts", "linear")])
def test_what_is_given_is_not_called_a_guess(given, said, unsaid, tmp_path):
    _, board = write_board(wanted(run_ma_per_mhz=0.1, **given), tmp_path / "mine.yaml")
    source, = {fact.source for fact in board.facts if fact.path == "power.reference_voltage_v"}
    assert said in source and unsaid not in source


def test_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("boards", "new", "mine", *FULL)
    assert code == 0, err
    assert "assumed" in out and "wrote mine.yaml" in err and "facts are assumed" in err
    assert run("predict", "kws", "-b", "mine.yaml")[0] == 0
    before = (tmp_path / "mine.yaml").read_text()
    code, _, err = run("boards", "new", "mine", *FULL)
    assert code == 2 and "is not replaced" in err and (tmp_path / "mine.yaml").read_text() == before


def test_what_is_not_taken_over_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("boards", "new", "mine", "--like", "stm32n6570_dk")
    assert code == 0 and "the NPU of stm32n6570_dk is not taken over" in " ".join(err.split())
    code, _, err = run("boards", "new", "other", "--like", "nucleo_l4r5zi")
    assert code == 0 and "not taken over" not in err, err


def test_clock_and_sizes_that_are_not_stated_are_those_of_the_board_it_is_like(tmp_path):
    like = load_board("nucleo_h723zg")
    _, board = write_board(Wanted(name="mine", like=like, sram_bytes=1 << 17), tmp_path / "a.yaml")
    said = {fact.path: (fact.kind, fact.source) for fact in board.facts}
    weights = like.memory(dict(like.placement)["weights"])
    assert board.core_clock.frequency_hz == like.core_clock.frequency_hz
    assert board.memory("flash").size_bytes == weights.size_bytes
    assert said["memories.flash.size_bytes"] == said["clocks.cpu.frequency_hz"] == (
        "assumed", "borrowed from nucleo_h723zg: its clock, flash and dtcm")
    assert said["memories.sram.size_bytes"][0] == "datasheet"


def test_the_idle_power_of_the_board_it_is_like_is_taken_over(tmp_path):
    """Its currents are those above it: without it energies would be seventeen times too low."""
    like = load_board("stm32n6570_dk")
    path, _ = write_board(Wanted(name="mine", like=like), tmp_path / "mine.yaml")
    theirs = deploy("kws", like, runtime="st-edge-ai")
    for deployment in (deploy("kws", path), theirs):
        assert deployment.board.power.boundary == "board" and deployment.board.idle().mw == 565
    ours, kit = (check(one, max_uj=200) for one in (deploy("kws", path), theirs))
    assert not ours.met and not kit.met
    assert deploy("kws", path, clock_hz=400e6).board.idle().low_mw == pytest.approx(565 / 2)
    given = Wanted(name="mine", like=like, run_ma_per_mhz=0.03)
    _, stated = write_board(given, tmp_path / "b.yaml")
    assert stated.idle() is None and stated.power.boundary == "chip"


@pytest.mark.parametrize(("like", "library"), [
    ("alif_e7_devkit", "tflm-cmsis-nn"), ("rpi_pico", None), ("nrf52840dk", None),
    ("stm32n6570_dk", "st-edge-ai"), ("nucleo_l4r5zi", None)])
def test_a_copy_is_less_sure_of_its_energy_than_the_board_it_is_like(like, library, tmp_path):
    board = write_board(Wanted(name="mine", like=load_board(like)), tmp_path / "mine.yaml")[1]
    copy, theirs = (predict_calibrated(deploy("kws", each, runtime=library))
                    for each in (board, like))
    wide, narrow = ((one.certainty.energy_uj.low / one.energy_uj,
                     one.certainty.energy_uj.high / one.energy_uj) for one in (copy, theirs))
    assert wide[0] < narrow[0] and wide[1] > narrow[1]
    stated = next(fact for fact in load_board(like).facts if fact.path.startswith(
        "power.activity_ma_per_mhz."))
    assert board.assumed_current_sd == pytest.approx(math.hypot(stated.rel_sd, BORROWED_SD), 1e-2)
    if board.idle() is None:
        assert any(f"rests on assumed currents: mine has them borrowed from {like}" in line
                   for line in copy.warnings)


@pytest.mark.parametrize("arguments, message", [
    (("mine",), "needed: --core, --clock, --flash, --sram"),
    (("mine", "--core", "cortex-m4", "--clock", "9MHz"), "needed: --flash, --sram; accepted: as"),
    (("mine", "--clock", "96", *FULL[:2], *FULL[4:]), "96' is not understood"),
    (("mine", "--core", "cortx-m4", *FULL[2:]), "did you mean cortex-m4"),
    (("mine", "--core", "cortx-m4", *FULL[2:]), "a file in a folder TWIN_CORES names"),
    (("mine", "--like", "nuclo_l4r5zi", *FULL), "did you mean nucleo_l4r5zi"),
    (("nucleo_l4r5zi", *FULL), "exists already"),
    (("mine", *FULL, "--regulator", "smp"), "did you mean smps"),
    (("My Board", *FULL), "lower-case letters"),
    (("mine", *FULL, "-o", "x.txt"), "ends in .yaml"),
    (("mine", *FULL, "-o", "none/x.yaml"), "cannot be written"),
    (("mine", *FULL, "--cache", "1000B"), "mine.yaml:caches"),
    (("mine", *FULL[:2], "--clock", "96kHz", *FULL[4:]), "96 kHz; accepted: 1 MHz or more"),
    (("mine", *FULL[:4], "--flash", "2", *FULL[6:]), "'2' has no unit; accepted: as 2KiB"),
    (("mine", *FULL[:6], "--sram", "640B"), "--sram: 640 bytes, less than any part has"),
    (("mine", *FULL, "--run-current", "0.12"), "below the least accepted, 0.001 mA/MHz")])
def test_refusals_leave_nothing_behind(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("boards", "new", *arguments)
    assert code in (2, 3) and message in err and "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_showing_boards_works_as_before():
    assert run("boards")[0] == 0 and run("boards", "nucleo_l4r5zi", "--sources")[0] == 0
    code, _, err = run("boards", "nucleo_l4r5")
    assert code == 3 and "did you mean" in err


@pytest.mark.parametrize(("core", "like"), [
    ("cortex-m33", "b_u585i_iot02a"), ("cortex-m4", "nrf52840dk")])
def test_a_guessed_cache_is_that_of_the_class_and_may_not_be_there(core, like, tmp_path):
    """Of shipped boards of the core; the interval holds the time with it and without any."""
    _, board = write_board(wanted(core=core, wait_states=3, read_bytes=16), tmp_path / "mine.yaml")
    cache, usual = board.caches[0], load_board(like)
    assert (cache.size_bytes, cache.ways) == (usual.caches[0].size_bytes, usual.caches[0].ways)
    size = next(fact for fact in board.facts if fact.path.endswith(".size_bytes")
                and fact.path.startswith("caches."))
    assert size.kind == "assumed" and like in size.source and "shipped boards" in size.source
    asked = deploy("kws", board)
    made = predict_calibrated(asked)
    without = predict_calibrated(asked.replace({f"caches.{cache.name}.enabled": False}))
    held = made.certainty.time_us
    assert made.time_us < without.time_us and held.holds(made.time_us) and held.holds(
        without.time_us)
    assert any(line.startswith("cache: ") for line in made.warnings)
    rows = predict_many([asked])
    assert rows.time_high_us[0] == pytest.approx(held.high)
    stated = predict_calibrated(asked.replace({f"caches.{cache.name}.size_bytes":
                                               cache.size_bytes}))
    assert stated.time_us == made.time_us and stated.certainty.time_us.high < held.high
    assert not any(line.startswith("cache: ") for line in stated.warnings)


def test_guessed_reads_of_the_flash_are_named_and_widen_times_and_ratios(tmp_path):
    """Nobody knows how often it waits: what weights in SRAM save may be nothing, or twice as much.
    """
    _, guessed = write_board(wanted(cache_bytes=0), tmp_path / "mine.yaml")
    flash = guessed.memory("flash")
    _, known = write_board(wanted(cache_bytes=0, wait_states=flash.wait_states,
                                  read_bytes=flash.read_bytes), tmp_path / "known.yaml")
    before, stated = (predict_calibrated(deploy("kws", board)) for board in (guessed, known))
    assert before.time_us == stated.time_us
    assert before.certainty.time_us.low < 0.95 * stated.certainty.time_us.low
    assert before.certainty.time_us.high > 1.05 * stated.certainty.time_us.high
    said, = (line for line in before.warnings if line.startswith("flash: "))
    assert said.startswith(f"flash: {flash.wait_states} wait states and {flash.read_bytes} bytes a "
                           "read are guesses, and the interval of the time covers none and twice")
    assert not any(line.startswith("flash: ") for line in stated.warnings)
    draws = [[predict_calibrated(deploy("kws", board).replace(
        {"placement.weights": memory})).certainty.draw for memory in ("flash", "sram")]
        for board in (guessed, known)]
    unsure, sure = (probability_faster(1.0, 0.9, *one) for one in draws)
    assert 0.5 < unsure < 0.95 < sure
    wide, narrow = (ratio_interval(1.0, 0.9, *one) for one in draws)
    assert narrow.high < 1 < wide.high and wide.low < narrow.low


def test_a_core_with_caches_of_its_own_has_them(tmp_path):
    _, board = write_board(wanted(core="cortex-m7"), tmp_path / "mine.yaml")
    assert len(board.caches) == 2 and not list_doubtful(board)
    _, board = write_board(wanted(core="cortex-m0plus"), tmp_path / "other.yaml")
    assert not board.caches
    _, board = write_board(wanted(like="nrf52840dk"), tmp_path / "third.yaml")
    assert [one.name for one in board.caches] == ["icache"] and not list_doubtful(board)


def test_a_slow_clock_of_a_file_is_doubted(tmp_path):
    path, _ = write_board(wanted(), tmp_path / "mine.yaml")
    path.write_text(path.read_text().replace("[96000000,", "[96000,"))
    text, = [line for line in predict(deploy("kws", path)).warnings if line.startswith("clock: ")]
    assert "96 kHz" in text and "96MHz" in text
    slowed = deploy("kws", "nucleo_l4r5zi").replace({"clocks.cpu.frequency_hz": 5e5})
    assert not any(line.startswith("clock: ") for line in predict(slowed).warnings)
