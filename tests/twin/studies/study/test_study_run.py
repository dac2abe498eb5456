"""A study in a folder: the same rows at any number of workers, whatever is killed on the way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import twin
from hwmodels.errors import TwinError
from twin.errors import SessionError, StudyError, UsageError
from twin.program.image.compile.store import keep_image
from twin.reports.figures import canvas
from twin.studies.study import run, workers
from twin.studies.study.definition import list_asked
from twin.studies.study.file import load_study
from twin.studies.study.tasks import REJECTED, cut_tasks, make_plan
from twin.studies.study.workers import open_workers

FILE = """
schema: 1
name: small
models: [kws, ad]
boards: [nucleo_h7a3zi_q, nucleo_f401re]
clocks: [own, 50%]
temperatures: [warm, cold]
soft: {max_ms: 5ms}
hard: {max_flash: 200KiB}
"""


@pytest.fixture(autouse=True)
def undrawn(monkeypatch) -> None:
    """Pictures of a study are looked at in tests/twin/cli/test_study_cli.py."""
    monkeypatch.setattr(canvas, "save_figure", lambda figure, path: path)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("study") / "small.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "out"
    twin.run_study(source, folder, command=["twin", "study", "run"])
    return folder


def test_rows_are_predictions_with_soft_and_hard_limits(whole) -> None:
    table = twin.open_study(whole).load_results()
    assert all(row.draw for row in table.predicted)
    assert len(table.rows) == 16
    row = next(row for row in table.rows if row.model == "kws" and row.clock_hz == 140e6
               and dict(row.inputs)["temperature"] == "cold")
    made = twin.predict(twin.deploy("kws", "nucleo_h7a3zi_q", clock_hz=140e6), temperature="cold")
    assert row.time_us == pytest.approx(made.time_us, rel=1e-12)
    assert {row.model for row in table.rows if row.failure == REJECTED} == {"ad"}
    assert all(row.reason.startswith(f"{row.network} on {row.board}: hard limit flash_bytes")
               for row in table.failed)
    assert all(("time_us" in row.violations) == (row.time_us > 5000) for row in table.predicted)
    assert any(row.front and row.violations for row in table.rows)  # Soft: still on the front.
    from pyarrow import parquet

    columns = parquet.read_table(whole / "results.parquet")
    assert columns["violates_latency"].null_count == 0  # What is rejected was predicted.
    assert len(set(columns["address"].to_pylist())) == 16


def test_a_duty_in_a_file_is_that_of_select(tmp_path) -> None:
    (tmp_path / "duty.yaml").write_text("""
schema: 1
name: duty
models: [ad]
boards: [nrf52840dk, nucleo_l4r5zi]
every: 1s
cell: 1000mAh@3.7V
currents: {nrf52840dk: 52uA/MHz}
sleep: {nrf52840dk: "1.5uA,8us"}
soft: {min_days: 900}
objectives: [days, time]
finding: {vary: board, figures: [power]}
""")
    done = twin.run_study(tmp_path / "duty.yaml", tmp_path / "out")
    chosen = twin.select("ad", ["nrf52840dk", "nucleo_l4r5zi"], runtimes="default", every="1s",
                         cell="1000mAh@3.7V", min_days=900, advise=False,
                         currents={"nrf52840dk": "52uA/MHz"}, sleep={"nrf52840dk": "1.5uA,8us"})
    days = {one.row.board: (one.row.life_days, one.row.violations) for one in chosen.choices}
    assert {row.board: (row.life_days, row.violations) for row in done.load_results().rows} == days
    assert days["nucleo_l4r5zi"][1] == ("mean_mw",) and not days["nrf52840dk"][1]
    assert "mean power x" in (tmp_path / "out" / "finding.md").read_text()


def test_a_study_killed_at_any_file_goes_on_and_ends_the_same(source, whole, tmp_path) -> None:
    script = textwrap.dedent("""
        import os, sys
        import twin
        from twin.studies.study import session
        left, write = int(sys.argv[3]), session.write_whole
        def planted(path, content):
            global left
            if path.suffix == ".parquet":
                left -= 1
                if left == 0:  # What a kill leaves: half a file under another name.
                    path.with_name(f".{path.name}.0123.tmp").write_bytes(content[:100])
                    os._exit(9)
            write(path, content)
        session.write_whole = planted
        twin.run_study(sys.argv[1], sys.argv[2])
    """)
    parts = len([*(whole / "parts").iterdir()])
    for kill in (1, 3, parts + 1):
        folder = tmp_path / str(kill)
        ended = subprocess.run([sys.executable, "-c", script, source, folder, str(kill)],
                               cwd=Path(twin.__file__).parents[1])
        assert ended.returncode == 9
        assert len([*(folder / "parts").glob("[!.]*")]) == kill - 1
        with pytest.raises(StudyError, match="is not finished"):
            twin.open_study(folder).load_results()
        told: list[tuple[int, int, int]] = []
        twin.run_study(source, folder, on_progress=lambda *state, told=told: told.append(state))
        assert len(told) == 1 + parts - (kill - 1)  # What is kept, then each task that was not.
        assert [*(folder / "parts").glob(".*")] == []
        assert (folder / "results.parquet").read_bytes() == (whole / "results.parquet").read_bytes()


def test_a_worker_that_dies_costs_nothing_but_its_task(source, whole, tmp_path, monkeypatch,
                                                       ) -> None:
    died = str(tmp_path / "died")

    def planted(plan, number, task):
        import os
        from pathlib import Path

        from twin.studies.study.tasks import compute

        if number == 2 and not Path(died).exists():
            Path(died).touch()
            os._exit(9)
        return number, compute(plan, task)

    monkeypatch.setattr(workers, "compute_numbered", planted)
    twin.run_study(source, tmp_path / "out", jobs=2)
    assert os.path.exists(died)
    assert (tmp_path / "out/results.parquet").read_bytes() == (
        whole / "results.parquet").read_bytes()


def test_a_folder_of_another_study_version_or_process_is_refused(source, whole, tmp_path,
                                                                 monkeypatch) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(FILE.replace("5ms", "6ms"))
    with pytest.raises(StudyError, match="another file"):
        twin.run_study(other, whole)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    with pytest.raises(StudyError, match="not empty"):
        twin.run_study(source, tmp_path / "mine")
    monkeypatch.setattr("twin.studies.study.session.identify", lambda: "other")
    with pytest.raises(StudyError, match="another version"):
        twin.run_study(source, whole)
    monkeypatch.undo()
    with run.lock_session(whole), pytest.raises(StudyError, match="another process"):
        twin.run_study(source, whole)
    with run.lock_session(tmp_path / "new"), pytest.raises(StudyError, match="another process"):
        twin.run_study(source, tmp_path / "new")
    assert not (tmp_path / "new").exists() and not (tmp_path / "mine/.lock").exists()


def test_a_planted_link_in_place_of_the_lock_is_not_followed(whole, tmp_path) -> None:
    (tmp_path / "dear").write_text("dear")
    (whole / ".lock").unlink()
    (whole / ".lock").symlink_to(tmp_path / "dear")
    with pytest.raises(StudyError, match="cannot be written"), run.lock_session(whole):
        pass
    assert (tmp_path / "dear").read_text() == "dear"
    (whole / ".lock").unlink()


def test_a_search_asks_for_the_same_points_and_none_twice(tmp_path) -> None:
    source = tmp_path / "search.yaml"
    source.write_text(textwrap.dedent("""
        schema: 1
        name: search
        models: ad
        boards: [nucleo_h7a3zi_q, nucleo_f401re]
        runtimes: each
        set: {clocks.cpu.frequency_hz: 40..84MHz}
        soft: {max_ms: 4ms, max_ram: 64KiB}
        search: {trials: 24, batch: 8, sampler: nsga2}
    """))
    for name in ("one", "two"):
        twin.run_study(source, tmp_path / name)
    one, two = (tmp_path / name / "results.parquet" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    rows = twin.open_study(tmp_path / "one").load_results().rows
    assert 8 < len(rows) <= 24 and len({row.inputs for row in rows}) == len(rows)


def test_a_search_over_whole_numbers_predicts_and_one_of_nothing_fails(tmp_path) -> None:
    from typer.testing import CliRunner

    from twin.cli import app

    text = """
        schema: 1
        name: search
        models: kws
        boards: nucleo_h7a3zi_q
        runtimes: {runtime}
        set: {{network.resolution: 16..49, caches.l1d.size_bytes: 4KiB..64KiB}}
        search: {{trials: 8, batch: 8, sampler: tpe}}
    """
    for name, runtime, code in (("some", "tflm-cmsis-nn@2026", 0), ("none", "neural-art@2.0.0", 3)):
        source = tmp_path / f"{name}.yaml"
        source.write_text(textwrap.dedent(text.format(runtime=runtime)))
        ended = CliRunner().invoke(app, ["study", "run", str(source), "-o", str(tmp_path / name)])
        assert ended.exit_code == code, ended.output
    rows = twin.open_study(tmp_path / "some").load_results().rows
    assert rows and not any(row.failure for row in rows)


def test_tasks_and_addresses_tell_what_a_prediction_rests_on(source) -> None:
    study = load_study(str(source))
    plan = make_plan(study)
    asked = list_asked(study)
    tasks = cut_tasks(plan, asked)
    assert len({one for task in tasks for one in task.addresses}) == len(asked) == 16
    assert [len(task.asked) for task in tasks] == [2] * 8


@pytest.mark.parametrize(("text", "said"), [
    ("schema: 1\nname: a\nmodels: kws\n", "boards: is missing"),
    (FILE + "sweeps: 3", "sweeps: unknown key"),
    (FILE + "finding: {vary: clok}", "finding.vary: 'clok'"),
    (FILE + "search: {trails: 3}", "search.trails: unknown key; did you mean trials"),
    (FILE + "soft: {max_mz: 1ms}", "soft.max_mz: unknown key; did you mean max_mw or max_ms"),
    (FILE + "search: {trials: 3, sampler: bayes}", "search.sampler: 'bayes'"),
    (FILE + "every: 1x", "--every '1x' is not understood"),
    (FILE + "objectives: [days]", "objectives: days, power: are of a duty; accepted: every: PER"),
    (FILE.replace("5ms", "5kg"), "not a limit"), ("[1]", "a mapping")])
def test_a_study_file_is_refused_with_its_key(text, said, tmp_path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(StudyError, match=said):
        load_study(str(path))


@pytest.mark.parametrize(("jobs", "cluster"), [(2, "local:2"), (1, "local:0"), (1, "here")])
def test_workers_that_mean_nothing_are_refused(jobs, cluster) -> None:
    with pytest.raises(UsageError), open_workers(jobs, cluster):
        pass


PROGRAMS = """
schema: 1
name: libraries
models: [kws, ad]
boards: [nucleo_f401re, nucleo_l4r5zi, esp32c3_devkitm]
runtimes: [tflm-reference@2026]
finding: {vary: runtime, figures: [time, misses, ram.arena], cells: true}
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("images")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWIN_IMAGES", str(place))
        return keep_image(twin.deploy("ad", "nucleo_f401re", runtime="firmware")).path


@pytest.fixture
def libraries(tmp_path) -> Path:
    path = tmp_path / "libraries.yaml"
    path.write_text(PROGRAMS)
    return path


def test_a_program_is_set_beside_libraries_as_built(image, libraries, tmp_path) -> None:
    asked = f"mine={image},model=ad,board=nucleo_f401re"
    done = twin.run_study(libraries, tmp_path / "out", elf=[asked])
    table, said = done.load_results(), (done.folder / "finding.md").read_text()
    assert len(table.rows) == 7 and not table.failed
    row, made = table.rows[-1], twin.deploy_elf(image, "nucleo_f401re", call="infer_once")
    assert row.cell == "built" and row.runtime == "mine (firmware.elf)" and row.overhead_us is None
    assert row.time_us == pytest.approx(twin.predict(made).time_us, rel=1e-9)
    assert dict(row.variables)["ram.arena"] == made.ram_parts["arena"]
    assert sum(value for name, value in row.variables if name.startswith("misses.")) > 0
    assert "mine beside tflm-reference@2026: time x0." in said and "cells of mine: 1 built" in said
    again = twin.run_study(libraries, tmp_path / "out", elf=[asked])  # Nothing runs twice.
    assert again.load_results() == table
    with pytest.raises(StudyError, match="of another file or other inputs"):
        twin.run_study(libraries, tmp_path / "out")
    with pytest.raises(SessionError, match="which a bundle does not hold"):
        twin.bundle([tmp_path / "out"], tmp_path / "out.zip")
    with pytest.raises(StudyError, match="6 rows whose network is known"):  # 7 without the program
        twin.guidelines([tmp_path / "out"])


@pytest.mark.parametrize("asked,said", [
    ("{0}", "accepted: NAME=FILE, then model="), ("m=/etc/hostname", "not an ELF file"),
    ("m={0}", "which model? it may be of kws, ad; accepted: --elf m="),
    ("m={0},model=ad", "which board? it may be of nucleo_f401re, nucleo_l4r5zi; accepted"),
    ("m={0},model=vww", "the study has no such model: 'vww'; accepted: ad, kws"),
    ("m={0},mdel=ad", "did you mean model"), ("m={0},model=ad,model=ad", "accepted: NAME=FILE"),
    ("tflm-reference@2026={0},model=ad", "the study has a tflm-reference@2026 already"),
    ("m={0},model=ad,board=esp32c3_devkitm", "machine code of arm"),
    ("m={0},model=ad,board=nucleo_f401re,call=infer", "no symbol 'infer'; did you mean")])
def test_what_a_program_does_not_say_is_asked_for(asked, said, image, libraries, tmp_path) -> None:
    with pytest.raises(TwinError, match=re.escape(said)):
        twin.run_study(libraries, tmp_path / "out", elf=[asked.format(image)])
    assert not (tmp_path / "out" / "session.json").exists()


def test_a_study_a_program_has_no_place_in_refuses_it(source, image, tmp_path) -> None:
    with pytest.raises(StudyError, match="varies clock, temperature, which a program has decided"):
        twin.run_study(source, tmp_path / "out", elf=[f"mine={image}"])
    source.write_text("schema: 1\nname: small\nmodels: [ad]\nboards: [nucleo_f401re]\n")
    with pytest.raises(StudyError, match=r"finding: \{vary: runtime\}"):
        twin.run_study(source, tmp_path / "out", elf=[f"mine={image}"])
    with pytest.raises(UsageError, match="programs are run on this machine"):
        twin.run_study("a_libraries", tmp_path / "out", elf=[f"m={image}"],
                       cluster="tls://host:1")


BUDGETS = """
schema: 1
name: budgets
models: [kws, ad]
boards: [nucleo_l4r5zi, nucleo_f401re]
runtimes: tflm-cmsis-nn@2026
set: {network.precision: [int8, float32]}
soft: {max_ram: [16KiB, 64KiB], max_ms: 100ms}
memory_budgets_mb: [0.05, 1.0]
active_memory_budget_mb: 0.5
"""


def test_several_budgets_are_columns_of_rejected_rows_too(tmp_path) -> None:
    from pyarrow import parquet

    path = tmp_path / "budgets.yaml"
    path.write_text(BUDGETS)
    done = twin.run_study(path, tmp_path / "out")
    rows = parquet.read_table(done.folder / "results.parquet").to_pylist()
    for row in rows:
        held = row["parameter_bytes"] / 2**20
        assert row["violates_0.05mb"] == (held > 0.05) and row["violates_1.0mb"] == (held > 1)
        assert row["accepted"] == (not row["failure"] and held <= 0.5)
        assert row["active_budget_mb"] == 0.5
        assert row["violates_ram_64KiB"] == (row["ram_bytes"] and row["ram_bytes"] > 65536)
        assert row["violates_ram"] == row["violates_ram_16KiB"]
    assert {row["failure"] for row in rows} == {"", REJECTED, "does not fit"}
    said = (done.folder / "finding.md").read_text()
    assert "- violates_1.0mb: 2 of 8 known, parameters above 1 MiB\n" in said
    assert ("- accepted: 6 of 8 predicted within hard limits, 512 KiB of parameters among them\n"
            ) in said
    head, *lines = (done.folder / "precision_tradeoffs.csv").read_text().splitlines()
    assert head == ("precision,accuracy_mean,latency_ms_mean,memory_mb_mean,energy_proxy_j_mean,"
                    "accepted_ratio")
    assert [line.split(",")[0] for line in lines] == ["int8", "float32"]
    assert [float(line.split(",")[-1]) for line in lines] == [1.0, 0.5]
    path.write_text(BUDGETS.replace("soft:", "hard:"))
    with pytest.raises(StudyError, match=r"hard\.max_ram: 2 values; accepted: one, or a list in"):
        load_study(path)
    path.write_text(BUDGETS.replace("[0.05, 1.0]", "[0.05, -1]"))
    with pytest.raises(StudyError, match=r"memory_budgets_mb\.1"):
        load_study(path)


STEPS = '''
def slow_down(rows):
    return [{"case": row["in.case"], "ms": row["time_us"] / 1e3} for row in rows]

def rank(rows):
    return sorted(rows, key=lambda row: row["ms"])

def fail(rows):
    raise KeyError("no such column")

def count(rows):
    return len(rows)
'''


def test_features_are_cases_and_steps_work_on_the_rows(tmp_path) -> None:
    """The steps stand beside the study's file, and get what `results.parquet` has."""
    (tmp_path / "steps.py").write_text(STEPS)
    text = ("schema: 1\nname: switched\nmodels: [ad]\nboards: [nucleo_l4r5zi]\n"
            "runtimes: [cmsis-nn]\nfeatures: [no_simd, no_simd+half_width]\n"
            "postprocess: [\"steps.py:slow_down\", \"steps.py:rank\"]\n")
    (tmp_path / "s.yaml").write_text(text)
    done = twin.run_study(tmp_path / "s.yaml", tmp_path / "out")
    rows = {dict(row.inputs)["case"]: row.time_us for row in done.load_results().rows}
    assert list(rows) == ["as it is", "no_simd", "no_simd+half_width"]
    lines = (tmp_path / "out" / "postprocessed.csv").read_text().splitlines()
    assert lines[0] == "case,ms"
    assert [line.partition(",")[0] for line in lines[1:]] == sorted(rows, key=rows.__getitem__)
    for step, message in (("fail", "steps.py:fail: KeyError"), ("count", "returned int; accepted")):
        (tmp_path / "s.yaml").write_text(text.replace("steps.py:rank", f"steps.py:{step}"))
        with pytest.raises(UsageError, match=message):
            twin.run_study(tmp_path / "s.yaml", tmp_path / step)
        assert (tmp_path / step / "results.parquet").is_file()
    for step, refusal in (("rnak", "no attribute 'rnak'"), ("STEPS", "no attribute 'STEPS'")):
        (tmp_path / "s.yaml").write_text(text.replace("steps.py:rank", f"steps.py:{step}"))
        with pytest.raises(UsageError, match=refusal):
            twin.run_study(tmp_path / "s.yaml", tmp_path / step)
        assert not (tmp_path / step).exists()
    (tmp_path / "s.yaml").write_text(text.replace("no_simd,", "no_simdd,"))
    with pytest.raises(StudyError, match=r"s.yaml: features: no feature is 'no_simdd'; did you"):
        load_study(str(tmp_path / "s.yaml"))
