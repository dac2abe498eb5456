"""From a TFLite Micro log to prices: its library stated or inferred, its layers checked."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import twin
from calibration.errors import MeasurementError
from calibration.importers.log import UNKNOWN
from hwmodels.board.file import load_board
from twin.attribution.folders import _is_clear
from twin.deployment.stated import describe_open, find_release, list_candidates, settle_runtime
from twin.errors import RuntimeRefusedError, UsageError

BOARD, RUNTIME = "nucleo_l4r5zi", "tflm-cmsis-nn@2023"
TICKS_HZ = 120e6


@pytest.fixture(scope="module")
def kws():
    return twin.predict(twin.deploy("kws", BOARD, runtime=RUNTIME), calibration="none")


@pytest.fixture(scope="module")
def ad():
    """A few layers, where it does not matter which: a diagnosis of it is soon made."""
    return twin.predict(twin.deploy("ad", BOARD, runtime=RUNTIME), calibration="none")


def write_log(folder: Path, kws, factor: float, layers: int = 13, times: int = 1) -> Path:
    """What TFLite Micro would print on a board that takes so many times what is predicted."""
    path = folder / "log.txt"
    lines = [f"{part.op.upper()} took {round(part.time_us * factor * 120)} ticks "
             f"({int(part.time_us * factor / 1000)} ms)." for part in kws.layers[:layers]]
    path.write_text("\n".join(lines * times) + "\n", encoding="utf-8")
    return path


def test_a_log_is_imported_checked_and_learnt_from(tmp_path, kws):
    log = write_log(tmp_path, kws, 1.15, times=2)
    found = twin.import_log("tflm", log, board=BOARD, model="kws", clock_hz=TICKS_HZ,
                            output=tmp_path / "m")
    newest = "tflm-cmsis-nn@2026"  # Predicted within 2 % of 2023 here: the newest of both.
    assert found.measurement.header.runtime == newest
    assert found.measurement.runs == (0, 1) and len(found.measurement.layers) == 13
    assert any(f"taken as {newest}, from its time" in one for one in found.remarks)
    header, remarks = tmp_path / "m" / "header.json", []
    document = json.loads(header.read_text())
    document["environment"]["board_sha256"] = "of another file"
    header.write_text(json.dumps(document))
    overlay = twin.calibrate([tmp_path / "m"], BOARD, output=tmp_path / "new" / "a.yaml",
                             on_remark=remarks.append)
    assert overlay.data.rows == 13
    assert [f"that of {BOARD} said something else when it was measured" in one
            for one in remarks] == [False, True] and "inferred from the times" in remarks[0]
    again = twin.predict(twin.deploy("kws", BOARD, runtime=newest),
                         calibration=tmp_path / "new" / "a.yaml")
    assert again.time_us == pytest.approx(1.15 * kws.time_us, rel=0.05)


def test_what_contradicts_itself_or_cannot_be_is_not_learnt_in_silence(tmp_path, kws):
    stated = {"board": BOARD, "model": "kws", "clock_hz": TICKS_HZ, "runtime": RUNTIME}
    once, slow, cut, remarks = tmp_path / "once", tmp_path / "slow", tmp_path / "cut", []
    log = write_log(tmp_path, kws, 1.1, times=2)
    twin.import_log("tflm", log, **stated, output=once)
    log.write_text("\n".join(log.read_text().splitlines()[:19]) + "\n")
    twin.import_log("tflm", log, **stated, partial=True, output=cut)
    with pytest.raises(MeasurementError, match="has 1 of layer 6: a log that was cut"):
        twin.calibrate(cut, BOARD)
    twin.import_log("tflm", write_log(tmp_path, kws, 1.65), **stated, output=slow)
    with pytest.raises(UsageError, match=r"1\.50 x what .*network and library; .* or --anyway"):
        twin.calibrate([once, slow], BOARD)
    # three quarters of the cycles at half the clock: no wait states make as much of kws
    for folder, factor in ((tmp_path / "lower", 2.1), (tmp_path / "less", 1.5)):
        twin.import_log("tflm", write_log(tmp_path, kws, factor), **stated, cpu_hz=60e6,
                        output=folder)
    assert twin.calibrate([once, tmp_path / "lower"], BOARD).data.rows == 26
    with pytest.raises(UsageError, match=r"at 60 MHz of .* x what .* at 120 MHz of .* lets expect"):
        twin.calibrate([once, tmp_path / "less"], BOARD)
    torn = tmp_path / "torn.yaml"
    twin.calibrate([once, slow], BOARD, anyway=True, on_remark=remarks.append, output=torn)
    assert [f"of {once} lets expect, the same network" in one for one in remarks] == [True]
    assert "contradict each other, as --anyway asked" in twin.predict(
        kws.deployment, calibration=torn).certainty.calibration
    samples = once / "samples.jsonl"
    lines = samples.read_text().splitlines()
    for key, value, said in (("value", -5, "accepted: 0 to 1e"), ("value", 1e30, "accepted: 0 to"),
                             ("layer", 99, "has a layer 99; accepted: 0 to 12, of kws")):
        samples.write_text("\n".join([json.dumps(json.loads(lines[0]) | {key: value}), *lines]))
        with pytest.raises(MeasurementError, match=said):
            twin.calibrate(once, BOARD)


def test_prices_learnt_at_a_clock_nobody_stated_say_so(tmp_path, kws):
    remarks = []
    twin.import_log("tflm", write_log(tmp_path, kws, 1.0), board=BOARD, model="kws", clock_hz=60e6,
                    runtime="tflm-cmsis-nn@2026", output=tmp_path / "m", anyway=True)
    twin.calibrate(tmp_path / "m", BOARD, on_remark=remarks.append)
    assert any("not stated: the core is taken to run at" in one for one in remarks)


def test_a_log_of_a_model_file_needs_the_file_only_once(tmp_path, ad):
    model, folder = tmp_path / "mine.tflite", tmp_path / "m"
    twin.export_model("ad", model)
    log = write_log(tmp_path, ad, 1.15)
    twin.import_log("tflm", log, board=BOARD, model=str(model), clock_hz=TICKS_HZ,
                    runtime=RUNTIME, output=folder)
    found, given = twin.diagnose(folder).verdict, twin.diagnose(folder, model=str(model)).verdict
    assert (found.fault.name, found.probability) == (given.fault.name, given.probability)
    assert twin.calibrate([folder], BOARD, output=tmp_path / "a.yaml").data.rows == 10
    twin.export_model("kws", tmp_path / "kws.tflite").rename(model)
    with pytest.raises(UsageError, match=r"mine.tflite is not: give that file \(--model FILE\)"):
        twin.diagnose(folder)
    model.unlink()
    with pytest.raises(UsageError, match=r"mine.tflite', which is not a file .* \(--model FILE\)"):
        twin.diagnose(folder)


def test_a_library_without_a_version_is_its_release_the_time_is_of(tmp_path, kws):
    """Else, where the time is clear of none or no network is known, that a prediction takes."""
    taken = twin.deploy("kws", BOARD, runtime="tflm-cmsis-nn").runtime.identity
    stated = {"board": BOARD, "clock_hz": TICKS_HZ, "runtime": "tflm-cmsis-nn"}
    for name, factor, model, release in (("a", 1.0, "kws", "tflm-cmsis-nn@2026"),
                                         ("b", 2.3, "kws", taken), ("c", 1.5, "kws", taken),
                                         ("d", 1.0, None, taken)):
        found = twin.import_log("tflm", write_log(tmp_path, kws, factor), model=model,
                                output=tmp_path / name, **stated)
        assert found.measurement.header.runtime == release != RUNTIME
        assert any(f"is taken as {release}" in one for one in found.remarks)


def test_a_stated_library_without_code_for_the_core_is_refused(tmp_path, kws):
    stated = {"board": BOARD, "model": "kws", "clock_hz": TICKS_HZ, "runtime": "tflm-esp-nn"}
    log = write_log(tmp_path, kws, 1.15)
    refused = r"ESP-NN was not counted on a core of 'armv7e-m'; .* --anyway"
    with pytest.raises(MeasurementError, match=refused):
        twin.import_log("tflm", log, **stated, output=tmp_path / "m")
    assert not (tmp_path / "m").exists()
    twin.import_log("tflm", log, **stated, output=tmp_path / "m", anyway=True)


def test_a_library_is_told_only_where_one_alone_explains_the_time(tmp_path, kws):
    slow = twin.import_log("tflm", write_log(tmp_path, kws, 3.8), board=BOARD, model="kws",
                           clock_hz=TICKS_HZ, output=tmp_path / "slow")
    assert slow.measurement.header.runtime == "tflm"
    assert any("cannot infer the runtime from the time" in one
               and "pass --runtime with one of these" in one for one in slow.remarks)
    with pytest.raises(MeasurementError, match=r"'tflm' is unknown; pass --runtime: "
                                               r"tflm-cmsis-nn@2023 or tflm-cmsis-nn@2\.3\.1-os or "
                                               r"tflm-cmsis-nn@2026 or tflm-reference@2023"):
        twin.calibrate([tmp_path / "slow"], BOARD)
    said = twin.calibrate([tmp_path / "slow"], BOARD, runtime="tflm-cmsis-nn")
    assert {entry.runtime for entry in said.entries} == {RUNTIME}


def test_a_log_no_core_can_do_is_refused_whatever_library_it_is_of(tmp_path, kws):
    fast = {"board": BOARD, "model": "kws", "clock_hz": TICKS_HZ}
    log, folder = write_log(tmp_path, kws, 0.01), tmp_path / "fast"
    for runtime in (None, RUNTIME):
        with pytest.raises(MeasurementError, match=(
                r"in each cycle of the core at 120 MHz \(the board's own; --cpu-clock says another"
                r"\); a cortex-m4 \(armv7e-m\) does 2 at most, with any library; is --clock 120 "
                r"MHz that of its ticks")):
            twin.import_log("tflm", log, runtime=runtime, output=folder, **fast)
        assert not folder.exists()
    taken = twin.import_log("tflm", log, output=folder, anyway=True, **fast)
    assert any("does 2 at most" in one for one in taken.remarks)
    # it took under a millisecond a layer, so its milliseconds say nothing of its ticks
    assert any("ticks_per_second() of the firmware once, which is to be 120,000,000" in one
               for one in taken.remarks)


def test_one_layer_no_core_can_do_is_refused_by_layer(tmp_path, kws):
    log, folder = write_log(tmp_path, kws, 1.15), tmp_path / "fast"
    lines = log.read_text().splitlines()
    lines[6] = "CONV_2D took 24000 ticks (0 ms)."
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(MeasurementError, match="layer 6: 512,000 MACs in 200 us"):
        twin.import_log("tflm", log, board=BOARD, model="kws", clock_hz=TICKS_HZ, output=folder)
    assert not folder.exists()


def test_a_release_measured_on_the_board_is_considered(tmp_path, kws):
    """TFLite Micro 2.3.1 takes twice as long there: the log is of it, not of nothing known."""
    old = twin.import_log("tflm", write_log(tmp_path, kws, 2.3), board=BOARD, model="kws",
                          clock_hz=TICKS_HZ, output=tmp_path / "old")
    assert old.measurement.header.runtime == "tflm-cmsis-nn@2.3.1-os"


def test_a_library_stated_without_its_release_may_be_of_any(tmp_path, ad):
    """Without a network it is the release measured there, as the header says: `diagnose` tries all.
    """
    bare = twin.import_log("tflm", write_log(tmp_path, ad, 0.9), board=BOARD, clock_hz=TICKS_HZ,
                           runtime="tflm-cmsis-nn", output=tmp_path / "m")
    assert bare.measurement.header.runtime == "tflm-cmsis-nn@2.3.1-os"
    found = twin.diagnose(tmp_path / "m", model="ad")
    assert found.kinds["another library"] > 0.9, found.kinds
    assert "another library" not in twin.diagnose(tmp_path / "m", model="ad", runtime=RUNTIME).kinds


def test_what_a_log_does_not_say_is_asked_for(tmp_path, kws):
    log = write_log(tmp_path, kws, 1.0)
    twin.import_log("tflm", log, clock_hz=TICKS_HZ, runtime=RUNTIME, output=tmp_path / "m")
    with pytest.raises(MeasurementError, match="which network it is of; import it again with --mo"):
        twin.calibrate([tmp_path / "m"], BOARD)
    with pytest.raises(MeasurementError, match=r"says it is of tflm-cmsis-nn@2023, not of x-cube"):
        twin.calibrate([tmp_path / "m"], BOARD, runtime="x-cube-ai")


def test_a_folder_is_no_log_wherever_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MeasurementError, match=r"^\.: no readable log \(is a directory\)"):
        twin.import_log("tflm", ".", board=BOARD)


def test_runs_of_two_levels_are_said_wherever_their_median_is_used(tmp_path, kws):
    stated = {"board": BOARD, "model": "kws", "clock_hz": TICKS_HZ, "runtime": RUNTIME}
    folders = [tmp_path / name for name in ("healthy", "step")]
    log = write_log(tmp_path, kws, 1.0, times=20)
    twin.import_log("tflm", log, **stated, output=folders[0])
    early = log.read_text().splitlines()[:130]
    late = write_log(tmp_path, kws, 1.12, times=10).read_text()
    log.write_text("\n".join([*early, late]))
    twin.import_log("tflm", log, **stated, output=folders[1])
    for folder, said in zip(folders, (False, True), strict=True):
        remarks: list[str] = []
        twin.calibrate(folder, BOARD, on_remark=remarks.append)
        assert any("step: " in one for one in remarks) is said
    for found in (twin.diff(*folders).findings,
                  twin.diagnose(folders[0], healthy=folders[1]).remarks):
        assert any("step: " in str(one) and "+12.0%" in str(one) for one in found)


def test_a_log_of_other_layers_is_refused_before_anything_is_written(tmp_path, kws):
    log = write_log(tmp_path, kws, 1.0, layers=6)
    with pytest.raises(MeasurementError, match="lists 6 of the 13 operators of kws; `calibrate` "
                                               "needs all of them; --partial takes what there is"):
        twin.import_log("tflm", log, model="kws", output=tmp_path / "m")
    assert not (tmp_path / "m").exists()
    some = twin.import_log("tflm", log, model="kws", partial=True, runtime=RUNTIME, board=BOARD,
                           clock_hz=TICKS_HZ, output=tmp_path / "m")
    assert any(one.startswith("partial: it lists 6") for one in some.remarks)
    told = twin.import_log("tflm", log, model="kws", partial=True, board=BOARD,
                           clock_hz=TICKS_HZ, output=tmp_path / "told")
    (remark,) = [one for one in told.remarks if "from its time" in one]
    six, fitted = ([part.time_us for part in one.layers[:6]]
                   for one in (kws, twin.predict(kws.deployment)))
    assert float(remark.partition(f" times {RUNTIME}")[0].split()[-1]) == pytest.approx(
        sum(six) / sum(fitted), rel=2e-3)
    with pytest.raises(MeasurementError, match="lists 6 operators, kws has 13"):
        twin.calibrate([tmp_path / "m"], BOARD)


def test_a_clock_the_board_cannot_have_is_refused(tmp_path):
    log, folder = tmp_path / "log.txt", tmp_path / "m"
    log.write_text("CONV_2D took 9000 ticks (0 ms).\n", encoding="utf-8")
    for more in ({"clock_hz": 240e6}, {"clock_hz": TICKS_HZ, "cpu_hz": 240e6}):
        with pytest.raises(MeasurementError, match=r"clock of 240 MHz is more than nucleo_l4r5zi "
                                                   r"has \(cpu 120 MHz, at most 120\)"):
            twin.import_log("tflm", log, board=BOARD, output=folder, **more)
    assert not folder.exists()
    taken = twin.import_log("tflm", log, board=BOARD, clock_hz=240e6, anyway=True, output=folder)
    assert any("240 MHz is more than" in one for one in taken.remarks)
    assert "240 MHz is more than" in dict(taken.measurement.header.environment)["remarks"]


@pytest.mark.parametrize(("stated", "release"), [
    ("st-edge-ai@2.0.0", "x-cube-ai@10.0.0"), ("st-edge-ai@2.3.1", "x-cube-ai@10.2.0"),
    ("st-edge-ai@4.0.1", "st-edge-ai@4.0.0"), ("x-cube-ai@8.0.1", "x-cube-ai@8.0.0"),
    ("x-cube-ai@5.0.0", None), ("st-edge-ai", None), ("neural-art, atonn-v1.0.0", None)])
def test_a_version_a_log_names_wins_over_its_time(stated, release):
    assert find_release(stated) == release


def test_releases_about_equally_far_off_are_not_told_apart():
    near = math.log(1.4)
    assert not _is_clear(near, math.log(1.43), related=True)
    assert _is_clear(math.log(1.15), math.log(1.8), related=True)
    assert not _is_clear(math.log(1.3), math.log(2.5), related=False)
    assert _is_clear(math.log(1.3), math.log(2.7), related=False)


def test_what_runtimes_a_log_may_be_of():
    both = ("tflm-reference@2023", "tflm-reference@2026")
    assert list_candidates("tflm") == ("tflm-cmsis-nn@2023", "tflm-cmsis-nn@2026", *both)
    assert list_candidates("tflm", "rv32imc") == both
    assert list_candidates("tflm", board=load_board(BOARD)) == (
        "tflm-cmsis-nn@2023", "tflm-cmsis-nn@2.3.1-os", "tflm-cmsis-nn@2026", *both)
    assert list_candidates("tflm", board=load_board("esp32c3_devkitm")) == (
        "tflm-esp-nn@2026", *both)
    for board, default in (("max78000evkit", "ai8x@2024"), ("gap9evk", "gap@2024")):
        assert default in list_candidates("tflm", board=load_board(board))
    assert list_candidates(UNKNOWN) == () and list_candidates("firmware") == ("firmware@O2",)
    assert describe_open("neural-art, atonn-v1.0.0") == ""
    assert describe_open("x-cube-ai") == "" and describe_open(UNKNOWN).startswith("--runtime NAME")


@pytest.mark.parametrize(("stated", "given", "found"), [
    ("tflm", "tflm-reference", "tflm-reference@2023"),
    (UNKNOWN, "x-cube-ai@9.0", "x-cube-ai@9.0.0"),
    ("x-cube-ai", "x-cube-ai@9.0", "x-cube-ai@9.0.0"), ("tflm", None, "tflm"),
    ("st-edge-ai@2.2.0", "x-cube-ai@10.2", "x-cube-ai@10.2.0"), ("utensor", "tflm-reference",
                                                                 "tflm-reference@2023")])
def test_a_runtime_is_settled_where_a_log_leaves_it_open(stated, given, found):
    assert settle_runtime(stated, given, "log") == found


@pytest.mark.parametrize(("stated", "given"), [
    ("x-cube-ai@9.0.0", "x-cube-ai@8.1.0"), ("st-edge-ai@2.2.0", "tflm-reference"),
    ("firmware@O2", "tflm-reference"), ("esp-nn", "tflm-reference")])
def test_a_runtime_a_log_contradicts_is_refused(stated, given):
    with pytest.raises(MeasurementError, match="leave the runtime out"):
        settle_runtime(stated, given, "log")
    with pytest.raises(RuntimeRefusedError):
        settle_runtime(stated, "no-such-library", "log")


def test_a_log_that_names_no_library_is_inferred_by_the_same_rule(tmp_path):
    predicted = twin.predict(twin.deploy("ad", BOARD, runtime="tflm-cmsis-nn@2.3.1-os"))
    log = tmp_path / "zephyr.log"
    log.write_text(f"inference : {predicted.cycles:.0f} cycles , "
                   f"{predicted.time_us * 1e3:.0f} ns\n")
    found = twin.import_log("zephyr", log, board=BOARD, model="ad")
    (remark,) = [one for one in found.remarks if "runtime" in one]
    assert "tflm-cmsis-nn@2.3.1-os" in remark and "x-cube-ai@" in remark
    assert not any("--clock" in one for one in found.remarks)
    compared = twin.compare("ad", BOARD, found.folder)
    assert any("does not say which; the other side is of" in one for one in compared.remarks)
