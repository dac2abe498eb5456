"""One number in, causes out: what each would cost, how sure, what to change, what to ask."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

import twin
from hwmodels.board.file import load_board
from hwmodels.quantities import format_time
from twin.attribution.diagnosis import why as weighing
from twin.attribution.diagnosis.chances import RARE, WIDER
from twin.attribution.diagnosis.outlook import at_clock, foresee
from twin.attribution.diagnosis.why_words import choose_text
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.reports.tables.why import why_report

LIBRARY = "tflm-cmsis-nn@2026"


def run(*words):
    return CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def outlook():
    return foresee([deploy("kws", "nucleo_l4r5zi", runtime=LIBRARY)])


def time_us(**changes):
    deployment = deploy("kws", "nucleo_l4r5zi", runtime=LIBRARY)
    return twin.predict(deployment.replace(changes) if changes else deployment).time_us


def chance(found, cause):
    return next((row.probability for row in found.rows if row.cause == cause), 0.0)


def test_what_was_expected_is_as_expected(outlook):
    for factor in (0.9, 1.0, 1.1):
        found = weighing.explain(outlook, [factor * time_us()])
        assert found.verdict == weighing.EXPECTED and found.as_expected > 0.6


def test_probabilities_are_those_of_one_distribution(outlook):
    for factor in (0.1, 1.0, 3.0, 9.0, 80.0):
        found = weighing.explain(outlook, [factor * time_us()])
        alone = math.fsum(row.alone for row in found.rows)
        both = math.fsum(chance for _, chance, _ in found.pairs)
        assert found.as_expected + alone + both == pytest.approx(1)
        present = math.fsum(row.probability for row in found.rows)
        assert present == pytest.approx(alone + 2 * both)
        assert all(one.probability >= two.probability for one, two in pairwise(found.rows))


@pytest.mark.parametrize(("cause", "changes"), [
    ("reference", {"runtime": "tflm-reference@2026"}),
    ("reference", {"runtime": "tflm-reference@2026-dcheck"}),
    ("float", {"network.precision": "float32"}),
    ("clock", {"clocks.cpu.frequency_hz": 4e6, "supply.voltage_scale": "range1_boost"})])
def test_a_changed_deployment_is_among_the_first_three(outlook, cause, changes):
    found = weighing.explain(outlook, [time_us(**changes)])
    assert cause in [row.cause for row in found.rows[:3]]
    assert next(row for row in found.rows if row.cause == cause).change


def test_assertions_cost_reference_kernels_most_and_are_predicted_together(outlook):
    slow = time_us(runtime="tflm-reference@2026-dcheck")
    assert slow > 5 * time_us(runtime="tflm-reference@2026")
    found = weighing.explain(outlook, [slow], absent=["optimisation"])
    assert found.pairs[0][0] == ("assertions", "reference")


def test_two_causes_print_what_both_explain(outlook):
    """A lower clock stretches what other kernels take: more than the sum of what each adds."""
    found = weighing.explain(outlook, [9 * time_us()], present=["clock", "simd"])
    (names, chance_of_both, explains_us), = found.pairs
    assert names == ("clock", "simd") and chance_of_both == pytest.approx(1)
    alone = [row.explains_us for row in found.rows]
    assert explains_us > 1.2 * math.fsum(alone)
    slow = (1 + alone[0] / found.expected_us) * (1 + alone[1] / found.expected_us)
    assert explains_us == pytest.approx((slow - 1) * found.expected_us)
    assert f"+{format_time(explains_us)} together" in " ".join(why_report(found).lines(200) or ())
    assert twin.to_document(found)["pairs"][0]["explains_us"] == explains_us


def test_a_release_nobody_stated_is_one_of_those_known():
    old = time_us(runtime="tflm-cmsis-nn@2.3.1")
    assert old > 1.5 * time_us()
    named = foresee([deploy("kws", "nucleo_l4r5zi", runtime=LIBRARY)], library="name")
    found = weighing.explain(named, [old])
    assert found.verdict == weighing.EXPECTED
    assert max(found.releases, key=lambda one: one[2])[0] == "tflm-cmsis-nn@2.3.1"
    assert math.fsum(chance for _, _, chance in found.releases) == pytest.approx(found.as_expected)
    result = run("why", "kws", "-b", "nucleo_l4r5zi", "--runtime", "tflm-cmsis-nn", "--measured",
                 f"{time_us()}us")
    assert "tflm-cmsis-nn@2026" in result.stdout and "(--runtime)" in result.stdout


def test_an_answer_that_would_take_longer_than_was_measured_is_doubted(outlook):
    for factor, doubted in ((2.0, True), (30.0, False)):
        found = weighing.explain(outlook, [factor * time_us()], present=["float"])
        assert any("--is float hardly fits" in one for one in found.remarks) is doubted
    short = why_report(weighing.explain(outlook, [50e3], present=["float"]))
    assert "float32" in " ".join(short.lines(200) or ())


def test_answers_rule_causes_in_and_out(outlook):
    measured = [9 * time_us()]
    before = weighing.explain(outlook, measured)
    asked = before.asked
    assert asked in [row.cause for row in before.rows[:2]]
    assert weighing.explain(outlook, [time_us()]).asked == ""  # As expected: nothing to ask.
    without = weighing.explain(outlook, measured, absent=[asked])
    assert chance(without, asked) == 0 and without.asked != asked
    surely = weighing.explain(outlook, measured, present=[asked])
    assert chance(surely, asked) == pytest.approx(1) and surely.as_expected == 0
    with pytest.raises(UsageError, match="--is fallback"):
        weighing.explain(outlook, measured, present=["fallback"])
    assert "fallback" in before.indistinct


def test_what_was_published_shifts_what_is_expected(outlook):
    alone = weighing.explain(outlook, [time_us()])
    beside = weighing.explain(outlook, [time_us()], published_us=1.2 * time_us())
    assert alone.expected_us < beside.expected_us < 1.2 * time_us()
    assert beside.high_us / beside.low_us < alone.high_us / alone.low_us
    far = weighing.explain(outlook, [time_us()], published_us=4 * time_us())
    assert far.low_us < 1.2 * time_us() < 4 * time_us() < far.high_us  # Either may be right.
    assert any("published" in remark for remark in far.remarks)


@pytest.mark.parametrize("apart", [0.03, 20, 60, 98])
def test_of_a_prediction_and_a_publication_far_apart_either_holds(outlook, apart):
    published_us = apart * time_us()
    for measured_us in (time_us(), published_us):
        found = weighing.explain(outlook, [measured_us], published_us=published_us)
        assert found.low_us < min(time_us(), published_us) * 1.2
        assert found.high_us > max(time_us(), published_us) / 1.2
        assert found.expected_us == pytest.approx(measured_us, rel=0.2)
        assert found.verdict == weighing.EXPECTED
    between = weighing.explain(outlook, [math.sqrt(apart) * time_us()], published_us=published_us)
    assert between.as_expected < 0.1


def test_a_slip_of_the_unit_is_no_second_cause():
    said = run("why", "kws", "-b", "nucleo_l4r5zi", "--measured", "3000s").stdout
    assert "read as ms, ms as s" in said and "two at once" not in said


def test_text_takes_its_own_time_whatever_was_published(outlook):
    for published_us in (None, 2 * time_us()):
        found = weighing.explain(outlook, [3 * time_us()], published_us=published_us,
                                 present=["debug"])
        row = next(row for row in found.rows if row.cause == "debug")
        characters = float(row.detail.split()[0].replace(",", ""))
        assert row.explains_us == pytest.approx(characters * 10 / 0.1152, rel=0.02)
    with pytest.raises(UsageError, match="--is debug: nothing of it"):  # far below ten per cent
        weighing.explain(outlook, [1e3 * time_us()], published_us=1e3 * time_us(),
                         present=["debug"])


def test_each_release_is_expected_where_the_published_time_moves_it():
    named = foresee([deploy("kws", "nucleo_l4r5zi", runtime=LIBRARY)], library="name")
    found = weighing.explain(named, [time_us()], published_us=30 * time_us())
    assert max(time for _, time, _ in found.releases) < 30 * time_us()


def test_what_likely_causes_leave_is_stated_as_unexplained():
    found = twin.why("kws", "nucleo_l4r5zi", "1.9s,ad=1s")
    assert [words for name, words in found.also if name == "unexplained"]
    assert not [words for name, words in twin.why("kws", "nucleo_l4r5zi", "400ms").also
                if name == "unexplained"]


def test_a_cache_that_is_the_only_way_to_flash_is_never_off():
    found = twin.why("kws", "esp32s3_devkitc", "1.9s")
    assert "cache" in found.indistinct
    refused = run("whatif", "kws", "-b", "esp32s3_devkitc", "--set",
                  "caches.dcache.enabled=false")
    assert refused.exit_code == 3 and "only way to what it serves" in refused.stderr


def test_priors_and_an_arena_are_the_users(outlook):
    measured = [9 * time_us()]
    plain = weighing.explain(outlook, measured)
    likelier = weighing.explain(outlook, measured, priors={"debug": 50.0})
    assert chance(likelier, "debug") > chance(plain, "debug")
    small = weighing.explain(outlook, measured, arena_bytes=24_000)
    assert chance(small, "float") == 0 < chance(plain, "float")  # its arena is four times as large
    assert any("1,000 bytes" in remark for remark in
               weighing.explain(outlook, measured, arena_bytes=1000).remarks)


def test_a_time_in_another_unit_is_first_and_needs_no_other_cause(outlook):
    for factor in (1e3, 1e6, 1e-3, 1e-6):
        found = weighing.explain(outlook, [factor * time_us()])
        assert found.verdict == found.asked == "unit" and chance(found, "unit") > 0.98
        assert all(row.probability < 0.05 for row in found.rows[1:])
        assert found.rows[0].explains_us == pytest.approx((factor - 1) * time_us())
        assert not [name for name, _ in found.also if name == "unexplained"]
    slow = weighing.explain(outlook, [9e3 * time_us()])
    assert chance(slow, "unit") > 0.9 and slow.pairs[0][0] == ("float", "unit")
    assert "in general" not in " ".join(why_report(slow).lines(200) or ())
    for factor in (0.3, 1.0, 3.0, 30.0, 100.0):
        assert chance(weighing.explain(outlook, [factor * time_us()]), "unit") < 1e-3
    assert weighing.explain(outlook, [9 * time_us()], absent=["unit"]).rows[0].probability == (
        pytest.approx(weighing.explain(outlook, [9 * time_us()]).rows[0].probability))


def test_what_leaves_nine_tenths_of_a_time_unexplained_is_no_explanation(outlook):
    far = weighing.explain(outlook, [1e10 * time_us()])
    assert far.verdict == "other" and far.rows[0].probability == pytest.approx(1)
    left = weighing.explain(outlook, [1e4 * time_us()], absent=["other", "unit"])
    assert left.as_expected == pytest.approx(1)  # As nothing else is left.


def test_only_answers_about_the_likeliest_open_causes_count(outlook):
    measured = [9 * time_us()]
    first = weighing.explain(outlook, measured)
    count = lambda *absent, present=(): weighing.count_answers(  # noqa: E731
        outlook, measured, absent=absent, present=present)
    assert count("fallback", "npu_size", "memory_mode") == 0 == count(first.rows[-1].cause)
    assert count(first.asked) == 1 == count("fallback", present=[first.asked])
    second = weighing.explain(outlook, measured, absent=[first.asked]).asked
    assert count(first.asked, second) == 2
    words = ("why", "kws", "-b", "nucleo_l4r5zi", "--runtime", LIBRARY, "--measured", "900ms",
             "--not")
    idle, three = run(*words, "fallback,npu_size,memory_mode"), run(*words, "float,reference,clock")
    assert "first in 28 %" in idle.stdout and "surer" in idle.stdout
    assert "first in 76 %" not in three.stdout or "surer" not in three.stdout


def test_an_arena_smaller_than_the_network_needs_is_of_another_network(outlook):
    found = weighing.explain(outlook, [9 * time_us()], arena_bytes=4096)
    assert found.verdict == "other" and found.as_expected == 0 and len(found.rows) == 1
    named = foresee([deploy("kws", "nucleo_l4r5zi", runtime=LIBRARY)], library="name")
    runtime = "tflm-cmsis-nn@2.3.1"
    room = deploy("kws", "nucleo_l4r5zi", runtime=runtime).buffer.needed_bytes  # The least of all.
    assert room < named.bases[0].deployment.buffer.needed_bytes
    old = weighing.explain(named, [time_us(runtime=runtime)], arena_bytes=room)
    likely = {name: healthy for name, _, healthy in old.releases}
    assert old.verdict == weighing.EXPECTED and 50 * max(
        healthy for name, healthy in likely.items() if name != runtime) < likely[runtime]
    small = weighing.explain(named, [time_us()], arena_bytes=int(0.8 * room))
    assert [name for name, *_ in small.releases] == [runtime] and small.as_expected < 0.01


def test_an_arena_a_little_too_small_may_be_of_a_build_that_needs_less(outlook):
    needed = outlook.bases[0].deployment.buffer.needed_bytes
    sure, near, far = (weighing.explain(outlook, [time_us()], arena_bytes=int(share * needed))
                       for share in (1.0, 0.88, 0.7))
    assert sure.as_expected > near.as_expected > 0.5 and near.remarks
    assert far.verdict == "other" and far.as_expected < 0.01


def test_a_time_that_is_too_short_is_of_the_faster_library_known_there():
    said = " ".join(run("why", "kws", "-b", "nucleo_l4r5zi", "--runtime", LIBRARY, "--measured",
                        "46ms").stdout.split())
    time = format_time(twin.predict(deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai")).time_us)
    assert f"(x-cube-ai@9.0.0-time instead of tflm-cmsis-nn): {time} expected if it is" in said
    assert "--runtime x-cube-ai@9.0.0-time" in said and "in general" not in said
    named = foresee([deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn")], library="name")
    for outlook in (named, foresee([deploy("kws", "nucleo_l4r5zi", runtime=LIBRARY)])):
        found = weighing.explain(outlook, [46e3])  # It takes as long whichever release was meant.
        assert found.verdict == "faster_library" and found.rows[0].probability > 0.6
        assert chance(weighing.explain(outlook, [9 * time_us()]), "faster_library") < 0.01


def test_what_adds_nothing_beside_another_cause_is_no_second_one():
    outlook = foresee([deploy("kws", "stm32n6570_dk")], library="none")
    pairs = [one for one in outlook.hypotheses if len(one.causes) == 2]
    assert pairs and all(min(abs(one.logs[0] - size) for size in one.sizes) > weighing.NOTABLE / 2
                         for one in pairs)
    assert chance(weighing.explain(outlook, [40e3]), "loading") < 0.05


def test_another_unit_makes_a_time_expected_that_none_of_its_own_unit_is(outlook):
    found = twin.why("kws", "nucleo_l4r5zi", "91.3us", runtime=LIBRARY)
    assert found.verdict == "unit" and "with" not in found.rows[0].detail


def test_an_arena_rules_out_causes_of_the_library_it_is_too_small_for():
    """A vendor's library is assumed, and options of a compiler are of one the user compiles."""
    outlook = foresee([deploy("kws", "nucleo_l4r5zi")], library="none")
    found = weighing.explain(outlook, [20 * outlook.bases[0].time_us], arena_bytes=12 << 10)
    assert outlook.bases[0].deployment.buffer.needed_bytes < 12 << 10
    assert not {"optimisation", "memcpy", "assertions"} & {row.cause for row in found.rows}


def share_below(outlook, times, end):
    """Share of ten thousand drawn times that lie below an end: any release, one in twenty wide."""
    draws = np.random.default_rng(1)
    sd = outlook.sd * np.where(draws.random(10_000) < RARE, WIDER, 1.0)
    return (np.exp(draws.normal(np.log(draws.choice(times, 10_000)), sd)) < end).mean()


def test_without_a_release_the_interval_is_of_the_mixture_of_all_of_them():
    named = foresee([deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn")], library="name")
    found = weighing.explain(named, [time_us()])
    times = [time for _, time, _ in found.releases]
    assert max(times) > 1.5 * min(times) and max(times) == pytest.approx(found.expected_us)
    assert found.low_us < min(times) / 1.1 and max(times) < found.high_us
    for end, share in ((found.low_us, 0.05), (found.high_us, 0.95)):
        assert share_below(named, times, end) == pytest.approx(share, abs=0.01)
    text = " ".join(" ".join(why_report(found).lines(250) or ()).split())
    assert f"add less than {100 * (found.high_us / min(times) - 1):.0f} %" in text
    assert "2023 or tflm-cmsis-nn@2024 or tflm-cmsis-nn@2026 runs" in text
    assert " x expected of 2.3.1-os" in text


@pytest.mark.parametrize(("board", "cause", "named"), [
    ("nucleo_l4r5zi", "simd", "smlad (DSP)"), ("nucleo_h7a3zi_q", "cache", "SCB->CCR"),
    ("esp32s3_devkitc", "simd", "ee.*"), ("nucleo_l4r5zi", "cache", "bits named above")])
def test_a_question_names_what_the_chip_has(board, cause, named):
    text = choose_text(weighing.CAUSES[cause]["question"], load_board(board))
    assert named in text and sum(other in text for other in ("smlad", "ee.*", "vmladava")) <= 1


def test_a_second_clock_tells_a_fixed_time_from_a_factor():
    deployment = deploy("kws", "nucleo_l4r5zi", runtime=LIBRARY)
    both = foresee([deployment, at_clock(deployment, 40e6)])
    fast, slow = (one.time_us for one in both.bases)
    printed = weighing.explain(both, [fast + 80e3, slow + 80e3])
    factor = weighing.explain(both, [fast * 1.87, slow * 1.87])
    assert chance(printed, "debug") > 0.5 > chance(factor, "debug")


def test_times_that_no_cause_explains_together_contradict_each_other():
    words = "tflm-cmsis-nn@2026", "900ms,20ms@80MHz"
    found = twin.why("kws", "nucleo_l4r5zi", words[1], runtime=words[0])
    assert found.verdict == "other" and chance(found, "other") > 0.95
    assert any("contradict each other: kws at 80 MHz" in one for one in found.remarks)


def test_cycles_show_the_clock(outlook):
    slow = twin.why("kws", "nucleo_l4r5zi", "900ms", cycles=14_400_000, runtime=LIBRARY)
    assert slow.verdict == "clock" and "16 MHz" in slow.rows[0].detail
    own = twin.why("kws", "nucleo_l4r5zi", "900ms", cycles=108_000_000, runtime=LIBRARY)
    alone = weighing.explain(outlook, [900e3], absent=["clock"])
    assert chance(own, "clock") == 0
    assert chance(own, "float") == pytest.approx(chance(alone, "float"))


def test_another_network_of_the_build_shows_what_is_added_and_what_multiplies():
    both = foresee([deploy(name, "nucleo_l4r5zi", runtime=LIBRARY) for name in ("kws", "ad")])
    kws, ad = (one.time_us for one in both.bases)
    printed = weighing.explain(both, [kws + 100e3, ad + 80e3])
    factor = weighing.explain(both, [kws * 2.1, ad * 2.1])
    assert chance(printed, "debug") > 0.5 > 2 * chance(factor, "debug")
    assert not printed.remarks and not factor.remarks
    doubted = weighing.explain(both, [900e3, 1.01 * ad], present=["clock"])
    assert any("--is clock hardly fits" in one for one in doubted.remarks)
    checked = [twin.predict(one.deployment.replace(
        {"runtime": "tflm-reference@2026-dcheck"})).time_us for one in both.bases]
    text = " ".join(why_report(weighing.explain(both, checked)).lines(200) or ())
    assert "(reference kernels and assertions together): +" in text and " to explain" in text


def test_another_network_as_expected_refutes_what_would_have_slowed_it():
    deployments = [deploy(name, "nucleo_l4r5zi", runtime=LIBRARY) for name in ("kws", "ad")]
    both = foresee(deployments)
    kws_us, ad_us = (twin.predict(one).time_us for one in deployments)
    found = weighing.explain(both, [2 * kws_us, ad_us])
    assert found.verdict == "loading" and chance(found, "reference") < 0.1 > chance(found, "simd")
    left = weighing.explain(both, [2 * kws_us, ad_us], absent=["loading"])
    slowed = weighing.explain(both, [2 * kws_us, 2 * ad_us], absent=["loading"])
    assert left.verdict == "other" and chance(left, "reference") < 0.3
    assert chance(slowed, "other") < 0.1


def test_no_option_of_a_compiler_reaches_a_library_that_comes_compiled():
    outlook = foresee([deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0.0")])
    found = weighing.explain(outlook, [4 * outlook.bases[0].time_us])
    built = {"optimisation", "simd", "reference", "assertions", "memcpy"}
    assert not built & set(found.indistinct) and dict(found.also)["library"].endswith(
        "not weighed: optimisation, simd, reference, assertions, memcpy")
    stated = weighing.explain(outlook, [4 * outlook.bases[0].time_us], present=["float"])
    row, = (one for one in stated.rows if one.cause == stated.verdict)
    assert row.cause == "float"  # as whatif has it
    for text in (row.change, row.question):  # ST's tools have no converter
        assert "TFLITE_BUILTINS" not in text and "kTfLite" not in text and text
    named, = (one for one in weighing.explain(foresee([deploy(
        "kws", "nucleo_l4r5zi", runtime=LIBRARY)]), [2e6]).rows if one.cause == "float")
    assert "TFLITE_BUILTINS_INT8" in named.change and "kTfLiteFloat32" in named.question
    with pytest.raises(UsageError, match="--is simd: not weighed: x-cube-ai comes compiled"):
        weighing.explain(outlook, [1e5], present=["simd"])


def test_an_accelerator_falls_back():
    outlook = foresee([deploy("kws", "stm32n6570_dk")], library="none")
    host = twin.predict(twin.deploy("kws", "stm32n6570_dk", runtime=LIBRARY)).time_us
    found = weighing.explain(outlook, [host])
    assert found.verdict == "fallback"
    slipped = weighing.explain(outlook, [5681 * outlook.bases[0].time_us])
    assert slipped.rows[0].cause == "fallback" and 0.1 < chance(slipped, "unit") < 0.5
    assert slipped.asked == "unit"  # One look shows it: before a clock and layers on the CPU.
    surely = weighing.explain(outlook, [5681 * outlook.bases[0].time_us], present=["unit"])
    assert surely.asked not in ("", "unit")


def test_the_report_fits_and_says_what_to_change_and_ask():
    result = run("why", "kws", "-b", "nucleo_l4r5zi", "--runtime", LIBRARY, "--measured", "900ms")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0 and len(lines) <= 20 and max(map(len, lines)) <= 110
    assert "OPTIMIZED_KERNEL_DIR=cmsis_nn" in result.stdout and "--not " in result.stdout
    assert "twin diagnose" in result.stdout


@pytest.mark.parametrize(("words", "told"), [
    (("--measured", "1.9"), "accepted: a number above zero with one of"),
    (("--measured", "1s", "--cycles", "0"), "a whole number above 0"),
    (("--measured", "1s", "--cycles", "960000000"), "these are 960 MHz"),
    (("--measured", "1s", "--cycles", "40000000", "--not", "clock"), "are 40 MHz; accepted: one"),
    (("--measured", "1s", "--cycles", "36M"), "--cycles '36M': accepted: a whole number"),
    (("--measured", "ad=60ms"), "the first time is of kws itself; accepted: --measured TIME"),
    (("--measured", "1s", "--is", "expected"), "accepted: optimisation, simd"),
    (("--measured", "1.9s@80"), "--measured '80'"),
    (("--measured", "1s", "--measured", "2s"), "two times of one network at one clock"),
    (("--measured", "1s", "--is", "clock", "--is", "reference,cache"), "at most two causes are"),
    (("--measured", "1s", "--not", "clok"), "did you mean clock"),
    (("--measured", "1s", "--not", "clock", "--is", "clock"), "exclude each other"),
    (("--measured", "1s", "--prior", "clock=much"), "CAUSE=WEIGHT"),
    (("--measured", "1s", "--prior", "clock=1e300"), "from 0 to below 1,000,000"),
    (("--measured", "1s", "--published", "1e9s"), "accepted: a time of this network and board"),
    (("--measured", "1s", "--published", "1ms"), "MACs in 1 ms are 22.1"),
    (("--measured", "1e30s"), "that are predicted; accepted: the time of an inference"),
    (("--measured", "1s", "--is", "clock,cache", "--not", "cache,bus"), "exclude each other"),
    (("--measured", "1s", "--is", "float,reference"), "are not weighed together"),
    (("--measured", "1ns"), "is less than a cycle of the core at 120 MHz"),
    (("--measured", "1s", "--arena-bytes", "4KiB", "--not", "other"), "kws needs more"),
    (("--measured", "1s", "--arena-bytes", "many"), "--arena-bytes"),
    (("--measured", "tests"), "is a folder")])
def test_what_is_not_understood_is_one_line(words, told):
    result = run("why", "kws", "-b", "nucleo_l4r5zi", *words)
    assert result.exit_code == 2 and told in result.stderr
    assert sum("predicted: " not in line for line in result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("words", [("400ms@100MHz",), ("400ms", "--cycles", "40000000")])
def test_a_clock_the_chip_does_not_have_is_warned_of(words):
    result = run("why", "kws", "-b", "esp32s3_devkitc", "--measured", *words)
    assert result.exit_code == 0
    assert result.stderr.count("cpu at 100 MHz is no clock of the esp32s3: it has 10 MHz") == 1


def test_only_what_was_not_given_is_suggested_and_what_was_is_set_beside_what_is_expected():
    result = run("why", "kws", "-b", "nucleo_l4r5zi", "--runtime", LIBRARY, "--measured", "900ms",
                 "--measured", "ad=60ms", "--cycles", "3.6e7", "--published", "100ms")
    assert result.exit_code == 0 and "--cycles N" not in result.stdout
    assert "first in 57 %, among three in 84 %" in result.stdout
    assert "with an answer to `ask`: first in 76 %" in result.stdout
    assert f"moves what is expected from {format_time(time_us())} to 9" in result.stdout
    assert "36,000,000: the core runs at 40 MHz, expected 120 MHz" in result.stdout
    ad_us = twin.predict(deploy("ad", "nucleo_l4r5zi", runtime=LIBRARY)).time_us
    assert "x expected: ad at 120 MHz, expected" in result.stdout
    assert f"120 MHz, expected {format_time(ad_us)}" not in result.stdout  # Moved, too.


def test_a_time_that_nothing_left_explains_is_doubted():
    words = ("why", "kws", "-b", "nucleo_l4r5zi", "--runtime", LIBRARY, "--measured")
    assert "is the unit right" in " ".join(run(*words, "60s", "--not", "unit").stdout.split())
    left = run(*words, "900ms", "--not", ",".join(weighing.CAUSES))
    assert "as expected, as nothing else is left" in left.stdout
    said = " ".join(left.stdout.split())
    assert "causes that are left, two at once, reach at most" in said
    assert "is the unit right" in said and not left.stderr.count("warning")
    idle = run(*words, "900ms", "--is", "reference", "--is", "cold")
    assert idle.exit_code == 2 and "--is cold: nothing of it" in idle.stderr


def test_no_cause_that_adds_time_is_listed_for_a_time_that_is_too_short():
    result = run("why", "kws", "-b", "nucleo_l4r5zi", "--runtime", LIBRARY, "--measured",
                 "20ms@80MHz")
    assert result.exit_code == 0 and ": +" not in result.stdout
    assert "another board or network" in result.stdout


def test_a_library_that_comes_compiled_has_levels_of_another_and_sizes_are_those_of_a_what_if():
    result = run("why", "kws", "-b", "nucleo_l4r5zi", "--measured", "900ms")
    assert f"{LIBRARY}, 2 x by itself, built without opt" in " ".join(result.stdout.split())
    found = twin.why("kws", "nucleo_l4r5zi", "900ms")
    for cause, changes in (("reference", {"runtime": "tflm-reference@2026"}),
                           ("float", {"runtime": LIBRARY, "network.precision": "float32"})):
        row = next(row for row in found.rows if row.cause == cause)
        whole = twin.predict(twin.deploy("kws", "nucleo_l4r5zi").replace(changes)).time_us
        assert row.explains_us == pytest.approx(whole - found.expected_us, rel=1e-6)


def test_two_at_once_are_among_the_causes_listed_and_a_row_says_what_it_moves():
    words = "why", "kws", "-b", "nucleo_l4r5zi", "--runtime", LIBRARY, "--measured"
    short = run(*words, "60ms").stdout
    assert "two at once" not in short and "as expected" in short
    second = run(*words, "92ms", "--measured", "ad=9ms", "--is", "waits").stdout
    assert "which affects only the other times): +" in " ".join(second.split())


def test_two_causes_that_add_far_more_than_is_to_explain_say_so():
    text = " ".join(run("why", "kws", "-b", "nucleo_l4r5zi", "--measured", "900ms").stdout.split())
    assert re.search(r"likeliest \w+ and \w+ \(\d+ %\): \+1\.9\d s together predicted, 854 ms to "
                     "explain", text), text


def test_it_is_a_function_a_document_and_a_kept_run(tmp_path):
    asked = {"model": "kws", "board": "nucleo_l4r5zi", "runtime": LIBRARY,
             "measured": "0.9s,2.5s@40MHz", "absent": "float,debug"}
    found, session = twin.keep("why", asked, tmp_path)
    document = twin.to_document(twin.why(**asked))
    assert document == session.read_result() and document["kind"] == "why"
    assert document["causes"][0]["cause"] == found.verdict


def test_a_core_that_has_no_npu_has_no_layers_beside_it():
    assert "fallback" in twin.why("kws", "launchxl_f28379d", "4s").indistinct


def test_what_no_library_reaches_and_who_named_it_are_said(outlook):
    fast = twin.why("kws", "nucleo_l4r5zi", "10ms", runtime="x-cube-ai")
    assert any("does 2 at most" in one for one in fast.remarks) and fast.as_expected == 0
    found = twin.why("kws", "nucleo_l4r5zi", "400ms", runtime="x-cube-ai")
    assert not found.remarks and dict(found.also)["library"].endswith("memcpy")
    with pytest.raises(UsageError, match=r"foo: no such cause; did .* accepted: .*reference"):
        weighing.check_causes(["foo"])


def test_a_computer_has_no_start_up_code():
    found = weighing.explain(foresee([deploy("kws", "host")]), [900e3])
    causes = {row.cause: row for row in found.rows}
    assert not causes.keys() & {"clock", "cache", "placement", "waits", "bus"}
    assert {"optimisation", "loading", "debug", "unit", "ticks"} <= causes.keys()
    assert causes["ticks"].says.startswith("other programs")


def test_an_interval_wider_than_predicts_says_why(outlook):
    found, certainty = weighing.explain(outlook, [900e3]), outlook.bases[0].certainty.time_us
    assert found.low_us < certainty.low < certainty.high < found.high_us
    text = run("why", "kws", "-b", "nucleo_l4r5zi", "--runtime", LIBRARY,
               "--measured", "900ms").stdout
    assert f"wider than predict's: {found.wider}" in " ".join(text.split())
    assert not weighing.explain(outlook, [900e3], published_us=80e3).wider


def test_a_row_names_the_cause_it_is_likeliest_beside():
    outlook = foresee([deploy("kws", "stm32n6570_dk")], library="none")
    found = weighing.explain(outlook, [40e3])
    row = next(row for row in found.rows if "; with " in row.detail)
    cause, size, added = re.fullmatch(r".*; with (\w+) \((.+)\) (.+)", row.detail).groups()
    pair = next(one for one in outlook.hypotheses if {*one.causes} == {row.cause, cause}
                and size in [fault.name for fault in one.faults])
    assert len(pair.faults) == 2
    together_us = next(us for key, _, us in found.pairs if {*key} == {row.cause, cause})
    assert added == f"+{format_time(together_us)} together"
    assert row.explains_us < 0.9 * together_us


def test_a_clock_no_menu_offers_does_not_come_first():
    """ESP-IDF offers 80, 160 and 240 MHz; power management alone sets 10 MHz."""
    slow = foresee([deploy("vww", "esp32s3_devkitc")], library="none")
    found = weighing.explain(slow, [1.4e6])
    assert found.verdict != "clock" and 0.0 < chance(found, "clock") < 0.15
    clock = next(row for row in found.rows if row.cause == "clock")
    assert "esp_pm_configure() below 80 MHz" in clock.change


def test_what_a_stated_cause_leaves_is_said(outlook):
    found = weighing.explain(outlook, [20 * time_us()], present=["simd"])
    left = dict(found.also)["left"]
    row = next(row for row in found.rows if row.cause == "simd")
    assert f"simd ({row.detail}) makes" in left
    gap_us = found.measured_us - found.expected_us
    assert left.startswith(f"{format_time(gap_us - row.explains_us)} of the {format_time(gap_us)}")
    exact = weighing.explain(outlook, [found.expected_us + row.explains_us], present=["simd"])
    assert "left" not in dict(exact.also)
