"""A kept run: a folder of its own with all it read, the same answer when it is asked again."""

from __future__ import annotations

import json
import shutil
import stat
import struct
import zipfile
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
import yaml
from made_measurements import measure
from made_networks import random_network
from typer.testing import CliRunner

import twin
from calibration.measurement.measurement import write_measurement
from hwmodels.board.file import SHIPPED
from twin.api.commands import sessions
from twin.api.sessions.agreement import agree
from twin.api.sessions.bundle import MANIFEST, check_name
from twin.api.sessions.request import Request, make_request
from twin.api.sessions.session import find_sessions, hash_report
from twin.api.sessions.studied import check_files
from twin.api.sessions.tables import sessions_table
from twin.cli import app
from twin.errors import SessionError, UsageError
from twin.network.writers.tflite import write_tflite
from twin.reports.documents import load_schema
from twin.studies.study.tasks import made_with


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """Two predictions of a file on a board's file, an attribution, and a study of both files."""
    place = tmp_path_factory.mktemp("kept")
    twin.export_model("ad", place / "own.tflite")
    shutil.copyfile(SHIPPED / "nucleo_l4r5zi.yaml", place / "mine.yaml")
    asked = {"model": str(place / "own.tflite"), "board": str(place / "mine.yaml"),
             "runtime": "tflm-cmsis-nn@2023", "calibration": "none"}
    first, _ = twin.keep("predict", asked, place / "runs", command=["twin", "predict"])
    twin.keep("predict", {**asked, "changes": {"clocks.cpu.frequency_hz": "80MHz"}},
              place / "runs")
    slower = measure(first, factor=1.1, runtime="tflm-cmsis-nn@2023")
    write_measurement(place / "board", slower)
    twin.keep("attribute", {
        "predicted": str(place / "own.tflite"), "measured": str(place / "board"),
        "board": str(place / "mine.yaml"), "verdicts": False}, place / "runs")
    (place / "pair.yaml").write_text(
        "schema: 1\nname: pair\nmodels: [own.tflite]\nboards: [mine.yaml]\nclocks: [own, 50%]\n")
    twin.run_study(place / "pair.yaml", place / "study", command=["twin", "study", "run"])
    return place


def test_requests_are_listed_as_words_of_a_command() -> None:
    asked = {"models": ["a/kws.tflite", "ad"], "boards": ["nucleo_l4r5zi"], "advise": True,
             "known_only": False, "max_ms": 50, "settings": {"npu.engines": "2"}}
    session = SimpleNamespace(folder=Path("run"), head={}, request=SimpleNamespace(
        verb="select", arguments=asked))
    (cells, _), = sessions_table([session]).rows
    assert cells[1] == "select kws.tflite ad --board nucleo_l4r5zi --max-ms 50 --set npu.engines=2"
    asked = {"model": "ad", "board": "nucleo_l4r5zi", "runs": 7, "warmup": 3, "virtual": "x"}
    session.request = SimpleNamespace(verb="measure", arguments=asked)
    (cells, _), = sessions_table([session]).rows
    assert "--runs 7 --warmup 3" in cells[1]


def test_a_run_leaves_what_stood_between(root) -> None:
    first, second, third = twin.list_sessions(root / "runs")
    prediction = first.read_result()
    counts = json.loads((first.folder / "counts.json").read_text())
    assert [one["layer"] for one in counts] == [one["name"] for one in prediction["layers"]]
    kernels = json.loads((first.folder / "kernels.json").read_text())
    called = [[one["name"] for one in layer["kernels"]] for layer in kernels]
    assert called == [layer["kernels"] for layer in prediction["layers"]]
    graph = json.loads((first.folder / "graph.json").read_text())
    assert graph["tensors"] and "sha256" in json.dumps(graph["tensors"])
    plan = json.loads((first.folder / "placement.json").read_text())["plan"]
    assert plan["arena_bytes"] == max(slot["offset_bytes"] + slot["size_bytes"]
                                      for slot in plan["arena"])
    assert second.read_result()["clocks_hz"] == {"cpu": 80_000_000}
    assert third.request.verb == "attribute" and not (third.folder / "graph.json").exists()


def test_a_session_names_its_copies_and_no_other_place(root) -> None:
    kept = twin.list_sessions(root / "runs")
    assert len(kept) == 3
    for session in kept:
        assert session.request.find_files()
        assert all(path.startswith("inputs/") for _, path in session.request.find_files())
        for name in ("session.json", "result.json"):
            assert str(root) not in (session.folder / name).read_text()


def test_a_session_says_when_it_began_as_its_folder_does(root) -> None:
    kept = twin.list_sessions(root / "runs")
    assert len(kept) == 3
    for session in kept:
        began = datetime.strptime(session.head["began"], "%Y-%m-%dT%H:%M:%SZ")
        assert session.folder.name.startswith(f"{began:%Y%m%d-%H%M%S}-")


@pytest.mark.parametrize("verb", ["measure", "build_firmware", "predict"])
def test_what_a_run_that_is_asked_again_builds_or_samples_is_thrown_away(verb, monkeypatch):
    made = []

    def perform(session, aside):
        made.extend(map(Path, aside.values()))
        for folder in made:
            folder.mkdir()

    monkeypatch.setattr(sessions, "perform", perform)
    sessions._perform_again(SimpleNamespace(request=Request(verb=verb, arguments={})))
    assert len(made) == (verb != "predict") and not any(one.exists() for one in made)


def test_a_kept_measurement_is_watched_as_one_that_is_not(monkeypatch):
    monkeypatch.setattr("twin.api.commands.measure.measure", lambda *asked, **aside: (asked, aside))
    (model, board, options), aside = sessions._measure(
        {"model": "kws", "board": "b", "runs": 7}, {"output": "m", "watcher": "w"})
    assert (model, board, options.runs, options.output) == ("kws", "b", 7, "m")
    assert aside == {"watcher": "w"}


def test_the_same_command_twice_gives_one_hash_in_two_folders(root) -> None:
    asked = {"model": "kws", "board": "nucleo_l4r5zi"}
    runs = [twin.keep("predict", asked, root / "twice")[1] for _ in range(2)]
    assert len({run.folder for run in runs}) == 2
    assert len({run.head["report_hash"] for run in runs}) == 1
    found = twin.compare_sessions(*(run.folder for run in runs))
    assert found.agreement.is_same and not found.asked and not found.agreement.versions


def test_two_runs_are_compared_by_what_was_asked_and_by_cause(root) -> None:
    first, second, _ = twin.list_sessions(root / "runs")
    found = twin.compare_sessions(first.folder, second.folder)
    assert found.asked == (("changes", "absent", "{'clocks.cpu.frequency_hz': '80MHz'}"),)
    assert not found.agreement.is_same and found.difference is not None


@pytest.mark.parametrize(("schema", "words"), [
    ("list", ("list", "runs")), ("outcome", ("compare", 0, 1)), ("outcome", ("clean", "runs"))])
def test_what_is_said_of_kept_runs_is_a_document_too(root, schema, words) -> None:
    kept = twin.list_sessions(root / "runs")
    ended = CliRunner().invoke(app, ["sessions", words[0], *(
        str(kept[word].folder if isinstance(word, int) else root / word) for word in words[1:]),
        "--json"])
    document = json.loads(ended.stdout)
    jsonschema.Draft202012Validator(load_schema(schema)).validate(document)
    if words[0] == "compare":
        jsonschema.Draft202012Validator(load_schema("comparison")).validate(document["difference"])
    else:
        assert len(document.get("sessions") or document["folders"]) == len(kept)


def test_a_bundle_is_asked_again_elsewhere(root, tmp_path) -> None:
    path = twin.bundle([root / "runs", root / "study"], tmp_path / "all.zip")
    moved = shutil.move(path, tmp_path / "elsewhere.zip")
    (root / "own.tflite").rename(root / "gone.tflite")
    try:
        found = twin.reproduce(moved, keep_in=tmp_path / "here")
    finally:
        (root / "gone.tflite").rename(root / "own.tflite")
    assert [one.verb for one in found] == ["predict", "predict", "attribute", "study"]
    assert all(one.is_same and one.kept == one.again for one in found)
    assert (tmp_path / "here" / found[0].name / "inputs" / "model" / "own.tflite").is_file()
    again = twin.bundle([root / "runs", root / "study"], tmp_path / "again.zip")
    with zipfile.ZipFile(again) as one, zipfile.ZipFile(moved) as other:
        assert len(one.namelist()) == len(other.namelist())


def test_another_result_is_told_with_its_path(root, tmp_path) -> None:
    session = twin.list_sessions(root / "runs")[0]
    document = session.read_result()
    other = json.loads(json.dumps(document))
    other["layers"][0]["cycles"] += 1
    told = agree("run", "predict", document, other)
    assert not told.is_same and told.differences[0][0] == "layers[0].cycles"
    other = json.loads(json.dumps(document))
    other["layers"][0]["time_us"] *= 1 + 1e-13
    assert agree("run", "predict", document, other).is_same
    assert hash_report(document) == hash_report(other)


def test_cleaning_leaves_the_newest_and_what_is_not_ours(root, tmp_path) -> None:
    shutil.copytree(root / "runs", tmp_path / "runs")
    (tmp_path / "runs" / "notes.txt").write_text("mine")
    (tmp_path / "runs" / "linked").symlink_to(root / "runs")
    shutil.copytree(root / "study", tmp_path / "runs" / "study")  # Last by name; no kept run.
    before = [*find_sessions(tmp_path / "runs")]
    assert [one.folder for one in twin.list_sessions(tmp_path / "runs")] == before
    assert len(before) == 3
    assert twin.clean_sessions(tmp_path / "runs", keep_newest=1) == tuple(before[:2])
    assert [*find_sessions(tmp_path / "runs")] == before
    twin.clean_sessions(tmp_path / "runs", keep_newest=1, really=True)
    assert {one.name for one in (tmp_path / "runs").iterdir()} == {
        before[2].name, "notes.txt", "linked", "study"}
    shutil.copytree(root / "runs" / before[0].name, before[0])  # Older, and not to go alone.
    (before[2] / "thesis.tex").write_text("mine")
    with pytest.raises(SessionError, match="thesis"):
        twin.clean_sessions(tmp_path / "runs", keep_newest=0, really=True)
    assert (before[2] / "thesis.tex").is_file() and (before[2] / "result.json").is_file()
    assert (before[0] / "result.json").is_file()
    with pytest.raises(twin.TwinError, match="keep_newest -1: accepted: 0 and more"):
        twin.clean_sessions(tmp_path / "runs", keep_newest=-1)


def test_a_refused_run_leaves_its_trail_without_a_result(tmp_path) -> None:
    with pytest.raises(twin.TwinError):
        twin.keep("predict", {"model": "kws", "board": "nobody"}, tmp_path)
    (session,) = twin.list_sessions(tmp_path)
    assert not session.is_finished
    with pytest.raises(SessionError, match="has no result"):
        twin.bundle([session.folder], tmp_path / "x.zip")


@pytest.mark.parametrize("verb, arguments, told", [
    ("tune", {}, "no runs are kept of 'tune'"),
    ("predict", {"model": "kws"}, "predict.board: missing"),
    ("predict", {"model": "kws", "board": "b", "modle": "x"}, "did you mean model"),
    ("predict", {"model": "kws", "board": "b", "clock_hz": -1.0}, "a number above zero"),
    ("attribute", {"predicted": "kws", "measured": "nowhere"}, "nowhere: does not exist"),
])
def test_what_cannot_be_kept_is_refused(tmp_path, verb, arguments, told) -> None:
    with pytest.raises(SessionError, match=told):
        twin.keep(verb, arguments, tmp_path / "runs")


def test_a_table_that_needs_a_compiler_is_refused_whole(tmp_path) -> None:
    _, kept = twin.keep("sweep", {"models": ["ad"], "boards": ["nucleo_f401re"],
                                  "runtimes": ["firmware"]}, tmp_path / "runs")
    packed = twin.bundle([kept.folder], tmp_path / "all.zip")
    with pytest.raises(twin.TwinError, match=f"{kept.folder.name}: .*accepted: reproduce --build"):
        twin.reproduce(packed)
    assert list(agree("", "", {"rows": [1, 2]}, {"rows": [1]}).differences) == [
        ("rows", "2 entries", "1 entries")]


def test_a_changed_input_is_not_bundled(root, tmp_path) -> None:
    shutil.copytree(root / "runs", tmp_path / "runs")
    session = twin.list_sessions(tmp_path / "runs")[0]
    with (session.folder / "inputs" / "board" / "mine.yaml").open("a") as file:
        file.write("\n")
    with pytest.raises(SessionError, match="changed after the run"):
        twin.bundle([session.folder], tmp_path / "x.zip")
    with pytest.raises(UsageError, match="zip"):
        twin.bundle([root / "runs"], tmp_path / "x.tar")


def _edit(source: Path, target: Path, change) -> Path:
    """Write a bundle again with its files changed by a function of {name: content}."""
    with zipfile.ZipFile(source) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    files = change(files)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return target


def _head(files, change):
    """Change the head of the first run, and its hash in the manifest."""
    import hashlib

    name = next(name for name in files if name.endswith("session.json"))
    head = json.loads(files[name])
    change(head)
    files[name] = json.dumps(head).encode()
    manifest = json.loads(files[MANIFEST])
    manifest["files"][name] = hashlib.sha256(files[name]).hexdigest()
    return {**files, MANIFEST: json.dumps(manifest).encode()}


def test_a_compiler_is_called_only_where_that_is_asked_for(root, tmp_path) -> None:
    path = twin.bundle([twin.list_sessions(root / "runs")[0].folder], tmp_path / "one.zip")
    for head in ({"runtime": "firmware"},
                 {"runtime": None, "changes": {"runtime": "firmware@O2"}}):
        asking = _edit(path, tmp_path / "asking.zip",
                       lambda files, head=head: _head(files, lambda one: one["arguments"].update(
                           {"board": "nucleo_l4r5zi", **head})))
        with pytest.raises(twin.TwinError, match="accepted: reproduce --build"):
            twin.reproduce(asking, keep_in=tmp_path / "new" / "here")
        assert not (tmp_path / "new").exists()
    (tmp_path / "here").mkdir()
    with pytest.raises(SessionError, match="accepted: a new folder"):
        twin.reproduce(path, keep_in=tmp_path / "here")
    assert not [*(tmp_path / "here").iterdir()]


@pytest.mark.parametrize("change, told", [
    (lambda files: {**files, "../../escaped": b"x"}, "is not a name"),
    (lambda files: {**files, "/etc/escaped": b"x"}, "is not a name"),
    (lambda files: {**files, "a\\..\\escaped": b"x"}, "is not a name"),
    (lambda files: {**files, "more": b"x"}, "is not both listed and there"),
    (lambda files: {name: one for name, one in files.items() if name != MANIFEST}, "not a bundle"),
    (lambda files: {**files, MANIFEST: b"[" * 100_000}, "bundle.json"),
    (lambda files: {**files, "bomb": bytes(40 << 20)}, "unpacks to"),
    (lambda files: {name: one + (b" " if "result" in name else b"")
                    for name, one in files.items()}, "is damaged"),
    (lambda files: _head(files, lambda head: head["arguments"].update(
        model="inputs/../../../own.tflite")), "not below inputs/"),
    (lambda files: _head(files, lambda head: head["arguments"].update(
        board="/etc/hosts.yaml")), "not below inputs/"),
    (lambda files: _head(files, lambda head: head.update(verb="__import__")), "no runs are kept"),
    (lambda files: _head(files, lambda head: head.update(inputs={"../x": "0"})), "is not a name"),
    (lambda files: _head(files, lambda head: head.update(schema=2)), "schema 2"),
    (lambda files: _head(files, lambda head: head.update(files=[1])), "a mapping"),
    (lambda files: _head(files, lambda head: head["arguments"].update(
        board="/etc/passwd")), "not below inputs/"),
    (lambda files: _head(files, lambda head: head["arguments"].update(
        calibration="notes")), "not below inputs/"),
    (lambda files: {**files, MANIFEST: json.dumps({**(told := json.loads(files[MANIFEST])),
                    "sessions": told["sessions"] * 3000}).encode()}, "named twice"),
])
def test_a_bundle_of_another_is_opened_with_suspicion(root, tmp_path, change, told) -> None:
    session = twin.list_sessions(root / "runs")[0]
    good = twin.bundle([session.folder], tmp_path / "good.zip")
    bad = _edit(good, tmp_path / "bad.zip", change)
    for places in ({}, {"keep_in": tmp_path / "new"}):
        with pytest.raises(SessionError, match=told) as error:
            twin.reproduce(bad, **places)
        assert len(str(error.value)) < 500 and "\n" not in str(error.value)
        assert str(error.value).startswith(f"{bad}: ") and ".unpacked" not in str(error.value)
    assert not [*tmp_path.parent.rglob("escaped")]


def test_a_damaged_or_endless_bundle_is_refused(root, tmp_path) -> None:
    good = twin.bundle([twin.list_sessions(root / "runs")[0].folder], tmp_path / "good.zip")
    damaged = bytearray(good.read_bytes())
    start = damaged.find(b"counts.json") + 30
    damaged[start:start + 40] = bytes(range(200, 240))
    count, size = 400_000, 54
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 8,
                        0, 0, 0, 0, 0, 0)
    listed = b"".join(entry + b"%08x" % i for i in range(count))
    endless = listed + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 9, 9, count * size, 0, 0)
    for content in (bytes(damaged), endless):
        good.write_bytes(content)
        with pytest.raises(SessionError, match="is not a bundle"):
            twin.reproduce(good)


def test_a_study_of_another_names_no_file_elsewhere(tmp_path) -> None:
    for text in ("models: [/etc/x.tflite]", "boards: a/../../x.yaml", "set: {a: [../x.json]}"):
        (tmp_path / "study.yaml").write_text(text)
        with pytest.raises(SessionError, match="is not a name"):
            check_files(tmp_path)
    for text in ('postprocess: ["steps.py:rank"]', "accuracy: mine.py:judge"):
        (tmp_path / "study.yaml").write_text(text)
        with pytest.raises(SessionError, match="names code, which a bundle does not run"):
            check_files(tmp_path)


def test_links_and_locked_entries_are_refused(root, tmp_path) -> None:
    with pytest.raises(SessionError, match=r"directory; accepted: a \.zip of `twin bundle`"):
        twin.reproduce(tmp_path)
    path = tmp_path / "link.zip"
    with zipfile.ZipFile(path, "w") as packed:
        entry = zipfile.ZipInfo("run/inputs/model/x.tflite")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(entry, "/etc/hostname")
    with pytest.raises(SessionError, match="a link"):
        twin.reproduce(path)
    for text in (b"", b"PK\x05\x06" + bytes(18), b"PK\x03\x04" * 10):
        path.write_bytes(text)
        with pytest.raises(SessionError):
            twin.reproduce(path)


def test_another_version_is_told(root, tmp_path) -> None:
    session = twin.list_sessions(root / "runs")[0]
    good = twin.bundle([session.folder], tmp_path / "good.zip")
    other = _edit(good, tmp_path / "other.zip", lambda files: _head(
        files, lambda head: head.update(twin="0.0.1+0")))
    (found,) = twin.reproduce(other)
    assert found.is_same
    assert found.versions == (("twin", "0.0.1+0", made_with()["twin"]),)


@pytest.mark.parametrize("name", ["", ".", "a/../b", "a//b", "con:", "a\n", "x" * 300, "a/. "])
def test_odd_names_are_no_names(name) -> None:
    with pytest.raises(SessionError):
        check_name(name)


def test_a_board_file_is_what_was_copied(root) -> None:
    session = twin.list_sessions(root / "runs")[0]
    copy = session.folder / session.request.arguments["board"]
    assert yaml.safe_load(copy.read_text()) == yaml.safe_load((root / "mine.yaml").read_text())


def test_sweeps_selections_builds_and_measurements_are_kept_and_made_again(tmp_path) -> None:
    """A list's files are copied, too; what hardware measured is not asked again."""
    pytest.importorskip("unicorn")
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    models = [tmp_path / "a" / "net.tflite", tmp_path / "b" / "net.tflite"]
    for path, layers in zip(models, (3, 4), strict=True):
        path.parent.mkdir()
        write_tflite(random_network(1, layers=layers), path)
    runs, boards = tmp_path / "runs", ["nucleo_l4r5zi", "nucleo_f401re"]
    table, kept = twin.keep("sweep", {"models": [*map(str, models)], "boards": boards,
                                      "settings": {"network.width": "0.5,1"}}, runs)
    copies = [path for name, path in kept.request.find_files() if name == "models"]
    assert len({*copies}) == 2 and len(table.rows) == 8
    assert {(kept.folder / path).read_bytes() for path in copies} == {
        path.read_bytes() for path in models}
    twin.keep("select", {"models": ["ad"], "boards": boards, "advise": False}, runs)
    built, kept = twin.keep("build_firmware", {"model": "ad", "board": boards[1],
                                               "output": str(tmp_path / "build")}, runs)
    assert (kept.folder / "image.elf").read_bytes() == built.image.read_bytes()
    assert "output" not in kept.request.arguments
    _, kept = twin.keep("measure", {"model": "ad", "board": boards[0], "runs": 1, "warmup": 0,
                                    "fixed": True, "virtual": "unicorn-m4",
                                    "output": str(tmp_path / "m")}, runs)
    assert (kept.folder / "warm.jsonl").read_bytes() == (
        tmp_path / "m" / "warm" / "samples.jsonl").read_bytes()
    packed = twin.bundle([runs], tmp_path / "all.zip")
    with pytest.raises(twin.TwinError, match="accepted: reproduce --build"):
        twin.reproduce(packed)
    found = twin.reproduce(packed, build=True)
    assert [one.is_same for one in found] == [True] * 4
    listed = {one.folder.name: one.head["report_hash"] for one in twin.list_sessions(runs)}
    assert {one.name: one.kept for one in found} == listed
    with pytest.raises(SessionError, match=r"sweep\.accuracy: its data and code are not kept"):
        twin.keep("sweep", {"models": ["ad"], "boards": boards, "accuracy": "x.npz"}, runs)
    with pytest.raises(SessionError, match=r"measure\.runs: 'two' is not a whole number"):
        twin.keep("measure", {"model": "ad", "board": "host", "runs": "two"}, runs)
    _, kept = twin.keep("measure", {"model": "ad", "board": "host", "runs": 2, "warmup": 0,
                                    "backend": "litert", "output": str(tmp_path / "h")}, runs)
    packed = twin.bundle([kept.folder], tmp_path / "host.zip")
    with pytest.raises(SessionError, match="of hardware is not made again"):
        twin.reproduce(packed)
    _, light = twin.keep("predict", {"model": "ad", "board": boards[0]}, runs)
    both = twin.reproduce(twin.bundle([kept.folder, light.folder], tmp_path / "both.zip"))
    assert sorted(((one.verb, one.is_same) for one in both), key=str) == [
        ("measure", None), ("predict", True)]
    _, kept = twin.keep("measure", {"model": "ad", "board": boards[0], "virtual": "unicorn-m4",
                                    "runs": 1, "warmup": 0, "fixed": True,
                                    "image": str(tmp_path / "m" / "firmware" / "firmware.elf"),
                                    "output": str(tmp_path / "i")}, runs)
    packed = twin.bundle([kept.folder], tmp_path / "image.zip")
    with pytest.raises(SessionError, match="image is of the machine it was measured on"):
        twin.reproduce(packed, build=True)
    with pytest.raises(SessionError, match=r"measure\.output: is not kept"):
        make_request("measure", {"model": "ad", "board": "host", "output": "/etc"})
