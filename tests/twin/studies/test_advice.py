"""Advice: the cheapest change first, each predicted; what cannot be, with its reason."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import twin
from hwmodels.board.file import load_board
from twin.api.requests.advice import efforts_up_to
from twin.cli import app
from twin.errors import DoesNotFitError, UsageError
from twin.network.rewrites.rewrite import EFFORTS
from twin.pricing.draw import differ, ratio_interval, read_draw
from twin.reports.tables.advice import advice_report, say_best
from twin.reports.tables.parts import lines_of
from twin.studies.advice import Advice
from twin.studies.candidates import sort_candidates
from twin.studies.change import Change, excess, measure_loss, rank_changes, relate_times
from twin.studies.duty import read_duty
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.rows import Row, judge

CLOCK = "clocks.cpu.frequency_hz"


@pytest.fixture(scope="module")
def ad():
    return twin.deploy("ad", "nucleo_h7a3zi_q")


@pytest.fixture(scope="module")
def thrifty(ad):
    """Energy a tenth below what it is: a lower clock at its lowest voltage is enough."""
    before = twin.predict(ad)
    return twin.advise(ad, max_uj=0.9 * before.energy_uj, efforts=("setting",))


def test_a_lower_clock_with_its_voltage_is_a_setting_that_saves(thrifty, ad) -> None:
    assert not thrifty.met and thrifty.before.violations == ("energy_uj",)
    best = thrifty.best
    assert best.effort == "setting" and best.settings[0][0] == "clocks.cpu.frequency_hz"
    changed = ad.replace(dict(best.settings))
    assert changed.board.power.voltage_scale != ad.board.power.voltage_scale
    prediction = twin.predict(changed)
    assert best.row.energy_uj == pytest.approx(prediction.energy_uj, rel=1e-12)
    assert best.row.time_us == pytest.approx(prediction.time_us, rel=1e-12)
    assert best.time_ratio_interval.low < best.time_ratio < best.time_ratio_interval.high
    # The same network at the same prices: most of the error is shared.
    alone = prediction.certainty.time_us
    assert best.time_ratio_interval.high / best.time_ratio_interval.low < alone.high / alone.low
    assert best.rests_on and say_best(thrifty).startswith("cheapest change that meets them")


def test_what_an_accelerators_compiler_offers_is_tried() -> None:
    """The epoch controller, alone and with a placement: no retraining is needed."""
    ic = twin.deploy("ic", "stm32n6570_dk")
    found = twin.advise(ic, max_ms=0.3)
    assert found.best.effort == "rebuild" and found.best.row.sure
    assert ("npu.epoch_controller", "true") in found.best.settings
    on = ic.replace({"npu.epoch_controller": "true"})
    tried = [value for one, value in sort_candidates(on)["rebuild"] if one.path.startswith("npu.")]
    assert tried == ["false"]


def test_the_smallest_change_of_a_clock_that_meets_limits_is_the_first() -> None:
    board = twin.deploy("kws", "nucleo_u575zi_q")
    days = twin.advise(board, every="1s", cell="1000mAh", min_days=200, efforts=("setting",))
    clocks = {one.settings[0][1]: one for one in days.changes
              if one.settings[0][0].startswith("clocks.") and one.row.sure}
    assert days.best == clocks["55MHz"] and "25MHz" in clocks  # which lasts longer, and is slower
    slow = twin.advise(board.replace({CLOCK: "20MHz"}), max_ms=150, efforts=("setting",))
    (path, value), = slow.best.settings
    assert path == CLOCK and slow.best.row.sure
    lower = board.replace({CLOCK: f"{int(value.removesuffix('MHz')) - 1}MHz"})
    row, = Deployer().predict_changed(lower, [{}])
    assert not judge(row, Limits(max_time_us=150e3)).sure


def test_no_limit_and_no_effort_are_refused(ad) -> None:
    with pytest.raises(UsageError, match="no limit to meet"):
        twin.advise(ad)
    with pytest.raises(UsageError, match="accepted: setting, rebuild"):
        twin.advise(ad, max_ms=1, efforts=("magic",))


def test_what_nothing_meets_has_a_nearest(ad) -> None:
    advice = twin.advise(ad, max_ms="1us", efforts=("setting",))
    assert advice.best is None and not advice.met
    assert advice.nearest is None or excess(advice.nearest.row, advice.limits) < excess(
        advice.before, advice.limits)
    assert all(len(pair.settings) == 2 for pair in advice.pairs)


def test_no_change_is_tried_for_a_figure_that_is_not_known() -> None:
    """A sleep current nobody stated: no setting makes it known, an option does."""
    npu = twin.deploy("kws", "alif_e7_devkit")
    advice = twin.advise(npu, every="1s", cell="1000mAh@3.7V", min_days=90)
    assert advice.before.verdict == "may" and advice.changes == advice.refused == ()
    assert "--sleep alif_e7_devkit=CURRENT states yours" in say_best(advice)


def test_what_no_change_makes_known_is_said_before_what_meets_the_rest() -> None:
    board = twin.deploy("kws", "nucleo_l4r5zi")
    unslept = replace(board, board=replace(board.board, sleep=()))
    advice = twin.advise(unslept, max_ms=40, every="1s", cell="220mAh", min_days=10,
                         efforts=("retraining",), pairs=False)
    said = say_best(advice)
    assert said.startswith("mean power not known: its sleep current is not; --sleep nucleo_l4r5zi=")
    assert ", which decides first; nearest: --set network." in said
    assert ", which meets the others; all are met with 90% where " in said and "still" not in said
    typed = said.rpartition("(--sleep nucleo_l4r5zi=")[2].removesuffix(")")
    near = unslept.replace(dict(advice.nearest.settings))
    for factor, sure in ((1.0, True), (1.01, False)):
        asleep = {"nucleo_l4r5zi": (1e-3 * factor * float(typed.removesuffix("uA")), None)}
        row, = Deployer(duty=read_duty("1s", "220mAh"), sleep=asleep).predict_changed(near, [{}])
        assert judge(row, advice.limits).sure is sure
    slept = twin.advise(near, max_ms=40, every="1s", cell="220mAh", min_days=10,
                        sleep={"nucleo_l4r5zi": typed}, efforts=("setting",), pairs=False)
    assert slept.before.probability == pytest.approx(0.9, abs=5e-3)


def test_a_sleep_that_cannot_help_does_not_decide() -> None:
    """The inference alone takes more than the cell gives: P >= E / T, whatever it sleeps at."""
    board = twin.deploy("kws", "nucleo_l4r5zi")
    unslept = replace(board, board=replace(board.board, sleep=()))
    asked = {"every": "1s", "cell": "220mAh"}
    energy = twin.predict(board).energy_uj
    advice = twin.advise(unslept, **asked, max_mw=0.6e-3 * energy, efforts=("retraining",),
                         pairs=False)
    row = advice.before
    assert row.verdict == "no" and row.mean_mw == pytest.approx(energy * 1e-3)
    assert row.mean.low == pytest.approx(row.energy.low * 1e-3) and row.probability < 0.05
    assert advice.best is None and advice.changes[0].row.verdict == "may"
    assert advice.changes[0].row.energy_uj < 0.6 * energy
    assert say_best(advice).startswith("not met whatever it sleeps at; nearest: --set network.")
    checked = twin.check(unslept, **asked, max_mw=0.6e-3 * energy)
    assert not checked.met and checked.requirements[-1].verdict == "not met"
    assert "at least" in checked.requirements[-1].name
    chosen = twin.select("kws", "nucleo_l4r5zi", max_mw=0.6e-3 * energy, **asked, advise=False)
    assert chosen.choices[0].row.verdict == "no"
    loose = twin.advise(unslept, **asked, max_mw=1.1e-3 * energy, efforts=())
    assert loose.before.verdict == "may" and loose.before.mean_mw is None and not loose.changes
    held = twin.check(unslept, **asked, max_mw=1.1e-3 * energy)
    mean = held.requirements[-1]
    assert mean.predicted == pytest.approx(energy * 1e-3) and 0.1 < mean.chance_above < 0.5
    assert mean.verdict == "may: at least" and not held.met and "at least" in mean.name


def test_changes_are_tried_where_a_bound_may_exceed_its_limit() -> None:
    """Inferences alone draw E / T: just within the limit at 1.05 times, surely at five times."""
    board, duty = twin.deploy("kws", "esp32_devkitc"), {"every": "1s"}
    least_mw = 1e-3 * twin.predict(board).energy_uj
    asked = {**duty, "max_mw": 1.05 * least_mw}
    advice = twin.advise(board, **asked, efforts=("retraining",), pairs=False)
    assert advice.before.verdict == "may" and advice.best is None
    assert twin.check(board, **asked).requirements[-1].verdict == "may: at least"
    assert all(one.row.energy_uj < 1e3 * least_mw for one in advice.changes)
    said = say_best(advice)
    assert "--sleep esp32_devkitc=CURRENT states yours, which decides first; nearest: " in said
    assert "which meets the others; all are met with 90% where it sleeps" in said
    sure = twin.advise(board, **duty, max_mw=5 * least_mw)
    assert sure.before.verdict == "may" and not sure.changes
    assert say_best(sure).startswith("no change is tried: mean power not known")


def test_where_a_network_does_not_fit_the_change_that_makes_it_fit_is_named() -> None:
    """What is named fits the board, and a tenth of the network less taken does not."""
    words = ("vww", "-b", "ch32v307v_evt")
    checked = CliRunner().invoke(app, ["check", *words])
    assert checked.exit_code == 1 and "bytes short in flash" in checked.stdout
    advised = checked.stdout.splitlines()[-1]
    assert advised.startswith("advice  cheapest change that makes it fit: --set network.prune=")
    path, _, share = advised.split()[8].partition("=")
    board = load_board("ch32v307v_evt")
    room = {memory.role: memory.size_bytes for memory in board.memories}
    fitting = twin.predict(twin.deploy("vww", board, network={path: share}))
    assert fitting.flash_bytes <= room["flash"] and fitting.ram_bytes <= room["sram"]
    with pytest.raises(DoesNotFitError):
        twin.deploy("vww", board, network={path: f"{float(share) - 0.1:.3g}"})
    limited = json.loads(CliRunner().invoke(app, ["advise", *words, "--max-ms", "500", "--json",
                                                  "--effort", "retraining"]).stdout)
    assert limited["best"]["settings"].keys() == {path}
    assert "advice" not in CliRunner().invoke(app, ["check", *words, "--no-advice"]).stdout


def test_only_changes_are_tried_that_may_lower_what_is_too_high(ad, monkeypatch) -> None:
    tried: list[str] = []
    replaced = Deployer.predict_changed

    def predict_changed(self, deployment, changes):
        tried.extend(f"{path}={value}" for one in changes for path, value in one.items())
        return replaced(self, deployment, changes)

    monkeypatch.setattr(Deployer, "predict_changed", predict_changed)
    calls: list[tuple[int, int, int]] = []
    twin.advise(ad, max_ram="1KiB", efforts=("setting",),
                on_progress=lambda *counts: calls.append(counts))
    assert tried and not [one for one in tried if one.startswith(("clocks.", "caches."))]
    assert [done for done, _, _ in calls] == [*range(1, calls[-1][1] + 1)]  # each tried one counts
    tried.clear()
    twin.advise(ad, max_ms=1e-3, efforts=("setting",), pairs=False)
    clocks = [float(one.partition("=")[2].removesuffix("MHz")) for one in tried if "clocks." in one]
    assert min(clocks, default=280) >= 280
    tried.clear()
    duty = {"every": "10min", "cell": "220mAh@3V", "min_days": 1e6}
    asleep = twin.advise(ad, sleep={"nucleo_h7a3zi_q": "1uA"}, **duty)
    assert asleep.before.mean_mw > asleep.limits.max_mean_mw and not tried
    assert "asleep alone the board draws 3 uW of the 0.0275 uW" in say_best(asleep)
    advice = twin.advise(ad, sleep={"nucleo_h7a3zi_q": "0.001uA"}, **duty, pairs=False,
                         efforts=("setting",))
    assert not advice.met and any("clocks." in one for one in tried)


def test_limits_that_are_met_need_no_change(ad) -> None:
    advice = twin.advise(ad, max_ms="1s", efforts=("setting",), pairs=False)
    assert advice.met and not advice.pairs


def test_a_change_that_changes_nothing_is_no_advice() -> None:
    deployment = twin.deploy("ic", "nucleo_f401re")
    advice = twin.advise(deployment, max_ms=300, efforts=("setting",), pairs=False)
    own = (("clocks.cpu.frequency_hz", "84MHz"),)
    assert advice.met and own not in [one.settings for one in advice.changes]
    best = advice.best
    assert best is None or best.row.probability > advice.before.probability
    ended = CliRunner().invoke(app, ["advise", "ic", "-b", "nucleo_f401re", "--max-ms", "300",
                                    "--effort", "setting"])
    assert ended.exit_code == 0 and "by default: none was asked for" in ended.stderr


def test_efforts_are_those_up_to_one_or_those_listed() -> None:
    assert efforts_up_to("rebuild") == ("setting", "rebuild")
    assert efforts_up_to("conversion,setting") == ("setting", "conversion")
    with pytest.raises(UsageError, match="effort 'more'; accepted: setting, rebuild"):
        efforts_up_to("setting,more")


def test_candidates_come_by_effort_and_none_is_a_build_of_ours(ad) -> None:
    found = sort_candidates(ad)
    assert tuple(found) == EFFORTS
    values = [value for one, value in found["rebuild"] if one.path == "runtime"]
    assert values and not any(value.startswith("firmware") for value in values)
    assert {one.path for one, _ in found["retraining"]} >= {"network.width", "network.prune"}


def test_clocks_of_the_npu_are_candidates_where_it_has_its_own(ad) -> None:
    npu = sort_candidates(twin.deploy("ad", "stm32n6570_dk", runtime="neural-art"), ["setting"])
    clocks = [(one.path, value) for one, value in npu["setting"] if "clocks." in one.path]
    assert ("clocks.npu.frequency_hz", "500000000") in clocks
    assert not [one for one, _ in sort_candidates(ad)["setting"] if "NPU" in one.path]


def test_excess_sums_what_is_above_and_knows_the_nearest_below() -> None:
    limits = Limits(max_time_us=10.0, max_ram_bytes=100)
    assert excess(Row(inputs=(), time_us=20.0, ram_bytes=50), limits) == pytest.approx(0.6931, 1e-3)
    assert excess(Row(inputs=(), time_us=5.0, ram_bytes=90), limits) == pytest.approx(-0.1054, 1e-3)
    assert excess(Row(inputs=(), ram_bytes=90), limits) == 1.0


def made_change(settings: str, effort: str, costs: str = "", lost: float = 0.0,
                probability: float = 0.95) -> Change:
    row = Row(inputs=(), time_us=8.0, probability=probability)
    return Change(settings=tuple((path, "1") for path in settings.split()), effort=effort,
                  costs=costs, row=row, time_ratio=0.8, energy_ratio=None, lost=lost)


def test_mild_pairs_come_before_single_changes_that_are_hard() -> None:
    limits, risk = Limits(max_time_us=10.0), "accuracy not known until it is measured"
    ordered = [made_change("clock", "setting"), made_change("clock placement", "setting"),
               made_change("runtime", "rebuild"), made_change("clock runtime", "rebuild"),
               made_change("patches", "conversion"), made_change("clock patches", "conversion"),
               made_change("weights", "conversion", risk, 0.7),
               made_change("clock narrower", "retraining", risk, 0.3),
               made_change("narrow", "retraining", risk, 1.2),
               made_change("narrow clock", "retraining", risk, 1.2),
               made_change("clock unsure", "setting", probability=0.5)]
    assert rank_changes(ordered[::-1], limits) == ordered
    # A pair slower than a single one comes after it, unless that takes much more of the network.
    slow, alike = (replace(one, row=replace(one.row, time_us=us), lost=lost) for one, us, lost in (
        (ordered[7], 9.0, 0.3), (ordered[8], 8.0, 0.7)))
    assert rank_changes([slow, alike, *ordered[9:]], limits) == [alike, slow, *ordered[9:]]
    assert rank_changes([slow, *ordered[8:]], limits) == [slow, *ordered[8:]]


def test_a_pair_comes_after_its_own_part_that_is_sure_alone() -> None:
    """It takes no less of the network, and a library besides, though it is faster."""
    limits, risk = Limits(max_time_us=10.0), "accuracy not known until it is measured"
    part = made_change("network.prune", "retraining", risk, 0.7)
    pair = made_change("runtime network.prune", "retraining", risk, 0.69)
    pair = replace(pair, row=replace(pair.row, time_us=7.0))
    assert rank_changes([pair, part], limits) == [part, pair]
    unsure = replace(part, row=replace(part.row, probability=0.8))
    assert rank_changes([unsure, pair], limits) == [pair, unsure]
    prune, board = ("network.prune", "0.325"), twin.deploy("kws", "nrf5340dk")
    alone = measure_loss(board, [prune], risk)
    assert alone > 0 and measure_loss(board, [("runtime", "cmsis-nn@6.0"), prune], risk) == alone


def test_changes_with_the_same_figures_are_one_row(ad) -> None:
    alike = made_change("network.width", "setting"), made_change("network.prune", "setting")
    advice = Advice(deployment=ad, limits=Limits(max_time_us=10.0), changes=alike,
                    before=Row(inputs=(), time_us=12.0, violations=("time_us",)))
    text = "\n".join(lines_of([advice_report(advice)], 100))
    assert text.count("network.width=1 ") == 2 and "network.prune" not in text
    assert "1 more with the figures of one of these" in text and "RAM" not in text
    over = replace(alike[0], row=replace(alike[0].row, ram_bytes=2048, violations=("ram_bytes",)))
    text = "\n".join(lines_of([advice_report(replace(advice, changes=(over,)))], 300))
    assert " RAM " in text and " 2 KiB" in text  # what it misses is there to be seen


def test_what_meets_limits_less_surely_at_less_effort_is_said_beside_the_best(ad) -> None:
    """A build that meets them in six of ten cases may do before a network is trained again."""
    mild, hard = (made_change("npu.memory_mode", "rebuild", probability=0.6),
                  made_change("network.width", "retraining"))
    advice = Advice(deployment=ad, limits=Limits(max_time_us=10.0), changes=(hard, mild),
                    before=Row(inputs=(), time_us=12.0, violations=("time_us",)))
    assert advice.best == hard and advice.cheaper == mild
    assert say_best(advice).endswith(
        "; at less effort --set npu.memory_mode=1 (rebuild): 8 us, met with 60.0%")
    alone = Advice(deployment=ad, limits=advice.limits, changes=(mild,), before=advice.before)
    assert alone.cheaper is None and "at less effort" not in say_best(alone)
    assert say_best(alone).startswith("nothing that was tried meets them with 90% (60.0% at most); "
                                      "cheapest change that may meet them: ")


def test_a_change_that_is_not_sure_to_meet_limits_is_said_to_be_so() -> None:
    board = twin.deploy("ad", "nucleo_l4r5zi")
    us = twin.advise(board, max_ms="1us", efforts=("setting",), pairs=False).changes[0].row.time_us
    words = ("advise", "ad", "-b", "nucleo_l4r5zi", "--effort", "setting", "--max-ms")
    for share, doubted in ((1.001, True), (2.0, False)):
        ended = CliRunner().invoke(app, [*words, f"{share * us:.0f}us"])
        assert ended.exit_code == 0 and ("with 90% (" in ended.stdout) is doubted


def test_pairs_of_settings_are_tried_before_the_network_is_changed() -> None:
    ad = twin.deploy("ad", "nucleo_l4r5zi")
    settings = twin.advise(ad, max_uj=1, efforts=("setting",))
    pair = min(settings.pairs, key=lambda one: one.row.energy_uj)
    single = min(settings.changes, key=lambda one: one.row.energy_uj)
    assert pair.row.energy_uj < single.row.energy_uj and not pair.risks_accuracy
    # A limit the pair is sure to meet, and no single setting; a narrower network would, too.
    limit = pair.row.energy_uj + 0.9 * (pair.row.energy.high - pair.row.energy_uj)
    advice = twin.advise(ad, max_uj=limit, efforts=("setting", "retraining"))
    assert not any(one.row.met and one.row.probability >= 0.9 for one in advice.changes)
    assert advice.best.settings == pair.settings and advice.best.row.probability >= 0.9
    assert not any(one.risks_accuracy for one in (*advice.changes, *advice.pairs))


def test_the_command_says_it_and_check_ends_with_it(thrifty) -> None:
    limit = str(thrifty.limits.max_energy_uj)
    words = ("ad", "-b", "nucleo_h7a3zi_q", "--max-uj", limit)
    ended = CliRunner().invoke(app, ["advise", *words, "--effort", "setting", "--json"])
    document = json.loads(ended.stdout)
    assert ended.exit_code == 0 and document["best"]["settings"] == dict(thrifty.best.settings)
    checked = CliRunner().invoke(app, ["check", *words])
    assert checked.exit_code == 1
    assert checked.stdout.splitlines()[-1].startswith("advice  cheapest change that meets them")
    silent = CliRunner().invoke(app, ["check", *words, "--no-advice"])
    assert silent.exit_code == 1 and "advice" not in silent.stdout


def test_a_bottleneck_suggests_what_is_predicted_to_save_most(ad) -> None:
    from twin.studies.remedies import REMEDIES, suggest_change

    slow = ad.replace({"clocks.cpu.frequency_hz": "88MHz"})
    best = suggest_change(slow, "compute")
    assert best.time_ratio < 0.98
    assert best.settings[0][0].startswith(REMEDIES["compute"])
    assert best.time_ratio_interval.low <= best.time_ratio <= best.time_ratio_interval.high
    # Its weights are in flash, the slowest memory of the chip.
    moved = suggest_change(twin.deploy("ad", "nucleo_l4r5zi"), "cache")
    assert moved.settings[0][0] == "placement.weights"


def test_a_gain_is_no_surer_than_if_both_libraries_err_alike() -> None:
    before, after = twin.sweep("kws", "esp32s3_devkitc", runtimes=["tflm-esp-nn", "esp-dl"]).rows
    gain, first, then = relate_times(before, after), before.time, after.time
    assert gain.low <= then.high / first.high < then.low / first.low <= gain.high


@pytest.mark.parametrize(("board", "path", "values"), [
    ("nucleo_l4r5zi", "caches.art_d.size_bytes", ("256", "1KiB")),
    ("nucleo_l4r5zi", "placement.weights", ("flash", "sram")),
    ("nucleo_l4r5zi", "clocks.cpu.frequency_hz", ("120MHz", "60MHz", "30MHz", "20MHz")),
    ("stm32n6570_dk", "clocks.npu.frequency_hz", ("1000MHz", "800MHz", "400MHz", "200MHz"))])
def test_a_ratio_is_as_unsure_of_two_rows_as_of_two_predictions(board, path, values) -> None:
    """Rows know what their counts depend on, policies a cache may have, and accelerators' parts."""
    base = twin.deploy("kws", board)
    rows = twin.sweep("kws", board, settings={path: list(values)}).rows
    sides = [twin.predict(base.replace({path: value})).certainty.draw for value in values]
    for row, side in zip(rows[1:], sides[1:], strict=True):
        found, expected = (ratio_interval(rows[0].time_us, row.time_us, *draws) for draws in (
            (read_draw(rows[0].draw), read_draw(row.draw)), (sides[0], side)))
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
        assert found.low < row.time_us / rows[0].time_us < found.high
    assert (differ(sides[0], sides[-1]) > 0) == ("caches" in path or "placement" in path)


def test_where_no_single_change_makes_a_network_fit_a_pair_is_found() -> None:
    """Of an accelerator, whose pools are not known until all fits, none is looked for."""
    with pytest.raises(DoesNotFitError) as refused:
        twin.deploy("mobilenet_v1_0.25_224", "rpi_pico")
    found = twin.advise(refused.value.draft, efforts=("rebuild", "conversion"))
    best = found.best
    assert not found.changes and best is not None and best.effort == "conversion"
    library, patches = best.settings
    assert library[0] == "runtime" and patches == ("network.patches", "3")
    pair = twin.deploy("mobilenet_v1_0.25_224", "rpi_pico", runtime=library[1],
                       network=dict([patches]))
    assert pair.ram_bytes == best.row.ram_bytes <= pair.ram_room_bytes
    for alone in ({"runtime": library[1]}, {"network": dict([patches])}):
        with pytest.raises(DoesNotFitError):
            twin.deploy("mobilenet_v1_0.25_224", "rpi_pico", **alone)
    assert not twin.advise(refused.value.draft, efforts=("rebuild", "conversion"),
                           pairs=False).pairs
    with pytest.raises(DoesNotFitError) as refused:
        twin.deploy("mobilenet_v1_1.0_224", "lp_mspm0g5187")
    assert twin.advise(refused.value.draft, efforts=("rebuild",)).best is None


def test_pairs_go_below_the_values_tried_first_where_these_miss_limits() -> None:
    """Four pairs of them fit and miss: nothing said of fitting, and one lower meets them all."""
    with pytest.raises(DoesNotFitError) as refused:
        twin.deploy("mobilenet_v2_1.0_224", "rpi_pico")
    limits = {"max_ms": "2s", "max_uj": "100mJ", "max_ram": "128KiB"}
    advice = twin.advise(refused.value.draft, **limits)
    assert advice.pairs and not advice.changes and advice.best.row.sure
    made = twin.deploy("mobilenet_v2_1.0_224", "rpi_pico", network=dict(advice.best.settings))
    assert twin.check(made, **limits).met
    missed = replace(advice, pairs=tuple(one for one in advice.pairs if not one.row.met))
    assert missed.pairs and say_best(missed).startswith("nothing that was tried meets them; near")
    assert say_best(replace(advice, pairs=())) == "nothing that was tried makes it fit"


def test_a_pair_is_found_where_no_pair_of_the_values_tried_first_fits() -> None:
    with pytest.raises(DoesNotFitError) as refused:
        twin.deploy("mobilenet_v2_1.0_224", "nucleo_f401re")
    best = twin.advise(refused.value.draft, max_ms="10s").best
    assert len(best.settings) == 2 and best.row.sure
    assert twin.deploy("mobilenet_v2_1.0_224", "nucleo_f401re", network=dict(best.settings))
