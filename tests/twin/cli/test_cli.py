"""The command line: what each verb prints where, and how it ends."""

import inspect
import json
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from made_predictions import make_prediction
from typer.main import get_command
from typer.testing import CliRunner

from hwmodels.board.file import SHIPPED
from hwmodels.errors import BoardError, ToolMissingError
from twin.api.requests import AUTO, Priced
from twin.api.requests.values import parse_quantity, parse_settings
from twin.cli import LONGEST_SUMMARY, VERBS, app, load_verb, shorten
from twin.cli.options import derive
from twin.cli.summaries import summarise
from twin.errors import DoesNotFitError, UsageError

HEAVY = {"numpy", "numba", "pydantic", "matplotlib", "onnx", "pandas", "scipy", "yaml", "tflite"}


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def made(monkeypatch):
    """Put a made prediction where the models would predict; returns what they were asked."""
    for verb in VERBS:  # None is to meet the made ones while it is imported, and keep them.
        load_verb(verb)
    asked = {}

    class Made:
        def __init__(self, prediction):
            made = prediction.deployment
            self.prediction, self.board, self.buffer = prediction, made.board, made.buffer
            self.graph = made.graph

        def replace(self, changes):
            asked.setdefault("changes", changes)
            return Made(make_prediction(seed=8))

    def deploy(model, board, **options):
        asked.update(model=model, board=board, **options)
        return Made(make_prediction(warnings=("mind the gap",)))

    def predict(deployment, *, temperature="warm", calibration="auto"):
        if calibration != "auto":
            asked["calibration"] = calibration
        made = getattr(deployment, "prediction", None) or make_prediction()
        return replace(made, temperature=temperature)

    for module in ("twin.attribution.published", "twin.attribution.observations",
                   "twin.studies.points",
                   "twin.learning.portability.plan", "twin.learning.portability.probed",
                   "twin.attribution.diagnosis.setup", "twin.attribution.views"):
        import_module(module)  # they keep the name: loaded now, they keep the real one
    monkeypatch.setattr("twin.deployment.deploy.deploy", deploy)
    monkeypatch.setattr("twin.pricing.calibrated.predict_calibrated", predict)
    monkeypatch.setattr("twin.cli.decide.show_advice", lambda *asked: None)  # it needs a board
    return asked


def test_help_imports_nothing_heavy():
    code = "import sys, twin.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            check=True).stdout.split()
    assert not HEAVY & set(loaded)
    assert "rich.console" not in loaded


def test_help_loads_no_verb_and_says_what_each_says():
    code = ("import sys; sys.argv = ['twin', '--help']\nfrom twin.__main__ import main\n"
            "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert not (HEAVY | {"rich.console", "llvmlite"}) & loaded
    assert {name for name in loaded if name.startswith("twin.")} == {
        "twin.__main__", "twin.cli", "twin.cli.ending", "twin.cli.summaries",
        "twin.errors", "twin.interruption"}
    group = get_command(app)
    assert {name: group.get_command(None, name).short_help for name in VERBS} == {
        name: shorten(summarise(place)) for name, place in VERBS.items()}


def test_no_summary_of_a_command_is_cut_and_help_begins_with_examples():
    group = get_command(app)
    for name in VERBS:
        command = group.get_command(None, name)
        texts = [one.short_help for one in (command, *getattr(command, "commands", {}).values())]
        assert all(0 < len(text) <= LONGEST_SUMMARY and "..." not in text for text in texts), name
        assert "Examples:" in run(name, "--help").stdout.partition("Options:")[0], name


def test_help_names_every_verb():
    result = run("--help")
    assert result.exit_code == 0
    for verb in ("predict", "check", "compare", "whatif", "boards", "runtimes", "models",
                 "explain"):
        assert f"  {verb} " in result.stdout


@pytest.mark.parametrize("verb", ["predict", "check", "whatif"])
def test_calibration_is_asked_for_by_name_or_file(made, verb):
    from calibration.fitting.overlay import list_shipped

    setting = ("--set", "a=b") if verb == "whatif" else ()
    own = str(list_shipped()[0])
    assert run(verb, "kws", "-b", "nucleo_l4r5zi", "--calibration", own, *setting).exit_code == 0
    assert made["calibration"] == own


def test_the_library_an_overlay_brings_is_said():
    from calibration.fitting.overlay import list_shipped

    own = next(one for one in list_shipped()
               if one.parts[-2:] == ("microtvm", "nucleo_l4r5zi.yaml"))
    result = run("predict", "kws", "-b", "nucleo_l4r5zi", "--calibration", str(own))
    assert "which nucleo_l4r5zi.yaml was made for" in result.stdout


def test_every_verb_that_prices_has_one_option_and_one_default():
    import twin

    functions = {name: verb for name in VERBS if inspect.isfunction(verb := load_verb(name))}
    priced = {name: inspect.signature(function, eval_str=True).parameters["calibration"]
              for name, function in functions.items()
              if "calibration" in inspect.signature(function).parameters}
    assert {"predict", "check", "whatif", "compare", "cache", "attribute", "diagnose",
            "plan"} <= set(priced)
    assert {one.default for one in priced.values()} == {AUTO}
    (shared,) = (one.annotation for one in derive(Priced) if one.name == "calibration")
    assert all(one.annotation == shared for one in priced.values())
    for name in priced:
        verb = getattr(twin, name.replace("whatif", "what_if"))
        assert inspect.signature(verb).parameters["calibration"].default == AUTO


def test_predict_prints_tables_to_stdout_and_warnings_to_stderr(made):
    result = run("predict", "kws", "-b", "nucleo_l4r5zi", "--runtime", "cmsis-nn", "--clock",
                 "80MHz", "--weights", "flash", "--arena", "tcm", "--assume-unsupported", "copy")
    assert result.exit_code == 0
    assert "largest cause" in result.stdout
    assert "because" in result.stdout
    assert result.stderr == "warning: mind the gap\n"
    assert made == {"model": "kws", "board": "nucleo_l4r5zi", "runtime": "cmsis-nn",
                    "clock_hz": 80e6, "weights": "flash", "arena": "tcm",
                    "assume_unsupported": "copy"}


def test_piped_output_is_plain_and_unfolded(made):
    text = run("predict", "kws", "-b", "x").stdout
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    sentence = next(line for line in text.splitlines() if " because " in line)
    assert "other" in sentence


def test_json_is_alone_on_stdout(made):
    result = run("predict", "kws", "-b", "x", "--json", "--cold")
    document = json.loads(result.stdout)
    assert (document["schema"], document["temperature"]) == (2, "cold")
    assert "warning" in result.stderr


def test_files_are_written_and_named_on_stderr(made, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need the plot extra")
    picture = tmp_path / "out" / "kws.png"
    result = run("predict", "kws", "-b", "x", "--csv", str(tmp_path / "csv"), "--plot",
                 str(picture))
    assert result.exit_code == 0
    assert f"wrote {picture}" in result.stderr
    assert picture.stat().st_size > 10_000
    assert len(list((tmp_path / "csv").iterdir())) == 6


@pytest.mark.parametrize("arguments", [
    ["compare", "kws", "-b", "nucleo_l4r5zi", "--published", "--plot", "{}/x.png"],
    ["predict", "kws", "-b", "nucleo_l4r5zi", "--plot", "{}/x.png"],
    ["predict", "kws", "-b", "nucleo_l4r5zi", "--plot", "{}/x/"],
    ["cache", "kws", "-b", "nucleo_f746zg", "--plot", "{}"],
    ["plan", "kws", "-b", "nucleo_l4r5zi", "-o", "{}/x.yaml"],
    ["calibrate", "-b", "nucleo_l4r5zi", "none", "-o", "{}/x.yaml"],
    ["calibrate", "published", "-o", "{}"], ["firmware", "build", "kws", "-b", "x", "-o", "{}"],
    ["measure", "kws", "-b", "host", "--flamegraph", "{}/x.svg"],
    ["measure", "kws", "-b", "host", "-o", "{}/m"],
    ["import", "tflm", "none.txt", "-o", "{}"], ["energy", ".", "none", "--meter", "ppk2", "-o",
                                                "{}"],
    ["attribute", "a", "b", "--csv", "{}/x.csv"], ["diff", "a", "b", "--junit", "{}/x.xml"]])
def test_a_place_is_checked_before_work_starts(tmp_path, monkeypatch, arguments):
    """A file is where the folder should be: refused before a model is read or a board looked up."""
    import twin.api.commands.predict  # noqa: F401 - what it imports from readers stays for others
    from twin.network import readers

    (tmp_path / "file").write_text("")
    (tmp_path / "header.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(readers, "read_model", None)
    result = CliRunner().invoke(app, [word.format("file") for word in arguments])
    assert result.exit_code == 2, result.stderr
    assert "file" in result.stderr and ("cannot be written" in result.stderr
                                        or "accepted: the path of a folder" in result.stderr)


def test_a_bad_picture_is_refused_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr("twin.deployment.deploy.deploy",
                        lambda *_, **__: pytest.fail("deployed"))
    result = run("predict", "kws", "-b", "x", "--plot", "kws.bmp")
    assert (result.exit_code, result.stdout) == (2, "")
    assert ".png" in result.stderr


@pytest.mark.parametrize(("limits", "code"), [
    ((), 0), (("--max-ms", "1000"), 0), (("--max-ms", "1s"), 0),
    (("--max-ms", "100us"), 1), (("--max-uj", "0.1uJ"), 1), (("--max-uj", "1000mJ"), 0),
    (("--max-ms", "0.1"), 1), (("--max-uj", "0.1"), 1),
    (("--max-ram", "64KiB"), 0), (("--max-ram", "1KiB"), 1),
    (("--max-ms", "1000", "--max-ram", "1KiB"), 1),
])
def test_check_answers_with_its_exit_code(made, limits, code):
    result = run("check", "kws", "-b", "x", *limits)
    assert result.exit_code == code
    assert ("not met" in result.stdout) == bool(code)


def test_check_says_what_does_not_fit(monkeypatch):
    def deploy(*_, **__):
        raise DoesNotFitError("does not fit: kws needs 2 bytes, sram has 1")

    monkeypatch.setattr("twin.deployment.deploy.deploy", deploy)
    result = run("check", "kws", "-b", "x")
    assert result.exit_code == 1
    assert "needs 2 bytes, sram has 1" in result.stdout
    assert run("predict", "kws", "-b", "x").exit_code == 3


def test_whatif_shows_before_after_and_what_moved(made):
    result = run("whatif", "kws", "-b", "x", "--set", "caches.l1d.size_bytes=32KiB", "--set",
                 "runtime=cmsis-nn")
    assert result.exit_code == 0
    assert made["changes"] == {"caches.l1d.size_bytes": "32KiB", "runtime": "cmsis-nn"}
    for word in ("before", "after", "gap", "cause, ", "flash_wait"):
        assert word in result.stdout


def test_whatif_json_holds_both_sides_and_the_difference(made):
    document = json.loads(run("whatif", "kws", "-b", "x", "--set", "a.b=1", "--json").stdout)
    before, after = document["before"]["total"], document["after"]["total"]
    assert document["set"] == {"a.b": "1"}
    totals = {account["quantity"]: account["total"] for account in document["accounts"]}
    assert totals["time"]["gap"] == (round(1e3 * after["time_us"])
                                     - round(1e3 * before["time_us"]))  # whole nanoseconds
    assert totals["cycles"]["gap"] == after["cycles"]["cpu"] - before["cycles"]["cpu"]
    for total in totals.values():
        assert total["unexplained"] == 0 or not total["causes"]
        assert sum(cause["gap"] for cause in total["causes"]) in (total["gap"], 0)
    assert sum(cause["gap"] for cause in totals["time"]["causes"]) == totals["time"]["gap"]


@pytest.mark.parametrize(("arguments", "words"), [
    (("whatif", "kws", "-b", "x"), "--set PATH=VALUE"),
    (("whatif", "kws", "-b", "x", "--set", "nonsense"), "PATH=VALUE is expected"),
    (("whatif", "kws", "-b", "x", "--set", "a=1", "--set", "a=2"), "twice"),
    (("predict", "kws", "-b", "x", "--clock", "fast"), "--clock 'fast'"),
    (("check", "kws", "-b", "x", "--max-ram", "64parsec"), "KiB"),
    (("compare", "kws", "-b", "x"), "--published"),
    (("boards", "--sources"), "NAME"),
    (("models", "export", "kws", "kws.h5"), ".tflite or .onnx"),
    (("explain", "roflin"), "did you mean roofline"),
    (("check", "kws"), "--board"),
    (("predict", "kws", "-b", "x", "--bord", "y"), "--board"),
])
def test_usage_errors_end_with_two_and_say_what_is_accepted(arguments, words):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


@pytest.mark.parametrize("words", [("--{}",), ("{}",), ("predict", "kws", "--{}"),
                                   ("measure", "kws", "-b", "host", "--power", "{}"),
                                   ("measure", "kws", "-b", "host", "--runs", "{}")])
def test_a_refusal_of_a_long_word_is_short(words):
    result = run(*(word.format("9" * 4300) for word in words))
    assert result.exit_code in (2, 3)
    assert max(map(len, result.stderr.splitlines())) < 510


@pytest.mark.parametrize(("error", "code"), [
    (BoardError("board 'x' is not known"), 3), (ToolMissingError("pip install it"), 5),
    (KeyboardInterrupt(), 130), (ZeroDivisionError("oops"), 70),
])
def test_every_way_to_fail_has_its_code_and_no_traceback(monkeypatch, error, code):
    def deploy(*_, **__):
        raise error

    monkeypatch.delenv("TWIN_DEBUG", raising=False)
    monkeypatch.setattr("twin.deployment.deploy.deploy", deploy)
    result = run("predict", "kws", "-b", "x")
    assert (result.exit_code, result.stdout) == (code, "")
    assert (str(error) or "interrupted") in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("made_of_it", [RuntimeError("Error calling __set_name__"),
                                        BoardError("the file cannot be read")])
def test_what_a_library_makes_of_ctrl_c_is_an_interruption(monkeypatch, made_of_it):
    """Python wraps what is raised while a class is made; libraries turn it into their errors."""
    def deploy(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise made_of_it from error

    monkeypatch.setattr("twin.deployment.deploy.deploy", deploy)
    result = run("predict", "kws", "-b", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    assert run("predict", "kws", "-b", "no_such_board").exit_code == 3  # and is forgotten


def test_a_bug_says_how_to_report_it_and_shows_a_traceback_on_demand(monkeypatch):
    def deploy(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("twin.deployment.deploy.deploy", deploy)
    monkeypatch.setenv("TWIN_DEBUG", "1")
    result = run("predict", "kws", "-b", "x")
    assert "report it" in result.stderr
    assert "Traceback" in result.stderr


def test_a_reader_that_goes_away_is_no_error_message():
    process = subprocess.Popen([sys.executable, "-m", "twin", "explain"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_in_one_line():
    with open("/dev/full", "w") as full:
        result = subprocess.run([sys.executable, "-m", "twin", "explain"], stdout=full,
                                stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "No space left" in result.stderr


def test_boards_and_runtimes_are_listed_and_shown():
    assert "nucleo_l4r5zi" in run("boards").stdout
    assert "kind" in run("boards", "NUCLEO-L4R5ZI", "--sources").stdout
    assert "cmsis-nn@" in run("runtimes").stdout
    assert "source" in run("runtimes", "cmsis-nn").stdout
    assert run("boards", "nucleo_l4r5z").exit_code == 3
    assert run("runtimes", "cmsis").exit_code == 3


def test_explain_takes_words_and_lists_terms():
    assert "MACs per byte" in run("explain", "arithmetic", "intensity").stdout
    assert "flash_wait" in run("explain").stdout


@pytest.mark.parametrize(("text", "dimension", "value"), [
    ("280MHz", "hz", 280e6), ("1.5 GHz", "hz", 1.5e9),
    ("64KiB", "bytes", 65536), ("64kib", "bytes", 65536), ("100", "bytes", 100),
])
def test_quantities_are_read_as_board_files_write_them(text, dimension, value):
    assert parse_quantity(text, dimension, "--option") == value


@pytest.mark.parametrize("text", ["", "280", "MHz", "-5MHz", "0MHz", "nanHz", "280MHz extra"])
def test_other_quantities_are_refused(text):
    with pytest.raises(UsageError, match="--clock"):
        parse_quantity(text, "hz", "--clock")


def test_a_clock_no_part_has_is_refused_by_its_option():
    ended = run("predict", "kws", "-b", "nucleo_l4r5zi", "--clock", "120GHz")
    assert ended.exit_code == 2 and "--clock 120GHz" in ended.stderr and "20GHz" in ended.stderr


def test_settings_keep_what_follows_the_first_equals_sign():
    assert parse_settings(["a.b = c=d"]) == {"a.b": "c=d"}


def test_one_bad_board_file_is_listed_as_broken(tmp_path, monkeypatch):
    (tmp_path / "bad.yaml").write_text("a: [")
    monkeypatch.setenv("TWIN_BOARDS", str(tmp_path))
    result = run("boards")
    assert result.exit_code == 0
    assert any(line.split()[:2] == ["bad", "broken"] for line in result.stdout.splitlines())
    assert "nucleo_l4r5zi" in result.stdout and "broken:" in result.stderr
    assert run("boards", "NUCLEO-L4R5ZI").exit_code == 0
    assert run("boards", "bad").exit_code == 3


def test_boards_are_listed_by_the_names_b_takes(tmp_path, monkeypatch):
    """That of the file, whatever name is written in it: two files may write the same."""
    shipped = (SHIPPED / "nucleo_l4r5zi.yaml").read_text()
    for file in ("first", "second"):
        (tmp_path / f"{file}.yaml").write_text(shipped.replace("name: nucleo_l4r5zi", "name: mine"))
    monkeypatch.setenv("TWIN_BOARDS", str(tmp_path))
    listed = [line.split()[0] for line in run("boards").stdout.splitlines()[1:]]
    assert {"first", "second"} < set(listed) and "mine" not in listed
    assert run("boards", "first").exit_code == 0


@pytest.mark.parametrize("arguments", [
    ("predict", "kws", "-b", "nucleo_l4r5zi", "--csv", ""),
    ("predict", "kws", "-b", "nucleo_l4r5zi", "--plot="),
    ("check", "kws", "-b", "nucleo_l4r5zi", "--max-ms", "inf"),
    ("check", "kws", "-b", "nucleo_l4r5zi", "--max-uj", "0"),
    ("check", "kws", "-b", "nucleo_l4r5zi", "--max-uj", "5MHz"),
    ("check", "kws", "-b", "nucleo_l4r5zi", "--max-ms", "nan"),
    ("check", "kws", "-b", "nucleo_l4r5zi", "--max-uj", "2MJ"),
    ("check", "kws", "-b", "nucleo_l4r5zi", "--max-ram", "256KB"),
])
def test_what_is_no_name_and_no_limit_is_refused(arguments):
    result = run(*arguments)
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize(("closed", "code"), [(">&-", 2), ("2>&-", 3), (">&- 2>&-", 2)])
def test_closed_streams_end_with_a_code_of_ours(closed, code):
    shell = f'"{sys.executable}" -m twin predict kws -b no_such_board {closed}'
    ended = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended
    assert "Traceback" not in ended.stderr and not ended.stdout


def test_an_interruption_while_loading_is_no_traceback(monkeypatch):
    from twin.__main__ import main

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("twin.cli.app", interrupt)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130

    def load(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise ImportError("could not be loaded") from error

    monkeypatch.setattr("twin.cli.app", load)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


@pytest.mark.parametrize("asked", [None, "3"])
def test_a_command_has_one_thread_for_matrices_unless_asked(monkeypatch, asked):
    if asked is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", asked)
    code = ("import os, sys; sys.argv = ['twin', '--help']\nfrom twin.__main__ import main\n"
            "try: main()\nexcept SystemExit: print(os.environ['OPENBLAS_NUM_THREADS'],\n"
            "    'numpy' in sys.modules, file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == [asked or "1", "False"]


@pytest.mark.parametrize("interrupted, code, told", [
    (False, 70, "internal error: ImportError: broken"), (True, 130, "interrupted")])
def test_a_verb_that_cannot_be_loaded_ends_as_any_other_failure(interrupted, code, told):
    asked = "signal.raise_signal(signal.SIGINT)" if interrupted else "pass"
    script = textwrap.dedent(f"""
        import signal, sys, twin.cli, twin.__main__
        def load_verb(name):
            try:
                {asked}
            except KeyboardInterrupt:
                pass
            raise ImportError("broken")
        twin.cli.load_verb = load_verb
        sys.argv = ["twin", "predict", "kws"]
        twin.__main__.main()""")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(told) and "Traceback" not in done.stderr
