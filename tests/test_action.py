"""The steps of the GitHub Action, run as a runner runs them, beside a recorded `gh`."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import twin
from hwmodels.files import read_yaml

ROOT = Path(twin.__file__).parents[1]
ACTION, POSTER = ROOT / "action/action.yml", ROOT / "action/comment/action.yml"
HEAD = "a" * 40


def write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def fill(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda one: known.get(one[1], ""), text)


class Runner:
    """A job on a pull request: its checkout, what `gh` was asked, what it answers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder / "checkout", folder / "bin"
        self.calls, self.summary, self.output = (
            folder / name for name in ("calls", "summary", "output"))
        for path in (self.folder, self.bin):
            path.mkdir()
        write_script(self.bin / "twin", f'#!/bin/sh\nexec "{sys.executable}" -m twin "$@"\n')
        write_script(self.bin / "python", f'#!/bin/sh\necho "python $*" >> "{self.calls}"\n')
        write_script(self.bin / "gh", f'''#!/bin/sh
echo "gh $*" >> "{self.calls}"
case "$*" in
  *POST*|*PATCH*|*body=@*) exit ${{REFUSED:-0}} ;;
  *pulls/*) echo {HEAD} ;;
  *) echo "$FOUND" ;;
esac
''')
        self.git("init", "-q", "-b", "main")
        self.answers = {"FOUND": ""}

    def git(self, *words: str) -> str:
        names = [f"-c{key}" for key in ("user.name=a", "user.email=a@example.org")]
        names = [word for name in names for word in ("-c", name[2:])]
        return subprocess.run(["git", *names, *words], cwd=self.folder, check=True, text=True,
                              capture_output=True).stdout.strip()

    def commit(self, network: str | None) -> str:
        if network is not None:
            twin.export_model(network, self.folder / "net.tflite")
        (self.folder / "README").write_text(str(network))
        self.git("add", "-A")
        self.git("commit", "-qm", "a state")
        return self.git("rev-parse", "HEAD")

    def run(self, action: Path, inputs: dict[str, str], github: dict[str, str]) -> int:
        """Run every step with `run`; return the first exit code that is not 0."""
        document = read_yaml(action)
        known = {f"inputs.{name}": str(given.get("default", ""))
                 for name, given in document["inputs"].items()}
        known |= {f"inputs.{name}": text for name, text in inputs.items()} | {
            f"github.{name}": text for name, text in github.items()}
        for step in document["runs"]["steps"]:
            if "run" not in step or (
                    "if" in step and known["inputs.comment"] != "true"):
                continue
            assert "${{" not in step["run"], "an expression in a script runs what a fork names"
            if self.output.exists():
                known |= {f"steps.compare.outputs.{name}": text for name, text in (
                    line.split("=", 1) for line in self.output.read_text().split())}
            env = {name: fill(text, known) for name, text in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]], cwd=self.folder, text=True, env={
                    **os.environ, **self.answers, **env, "GITHUB_ACTION_PATH": str(action.parent),
                    "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output),
                    "GITHUB_REPOSITORY": "some/repository", "PYTHONPATH": str(ROOT),
                    "PATH": f"{self.bin}:{os.environ['PATH']}"})
            if done.returncode:
                return done.returncode
        return 0

    def pull(self, before: str, **inputs: str) -> int:
        return self.run(ACTION, {"board": "nucleo_l4r5zi", **inputs}, {
            "event.pull_request.base.sha": before, "event.pull_request.number": "7",
            "token": "secret"})

    @property
    def comment(self) -> str:
        return (self.folder / "twin-diff/comment.md").read_text()


@pytest.fixture
def runner(tmp_path) -> Runner:
    return Runner(tmp_path)


def test_a_larger_model_is_commented_and_fails_the_job(runner) -> None:
    before = runner.commit("ad")
    runner.commit("kws")
    assert runner.pull(before, model="net.tflite", **{"max-increase": "2%"}) == 1
    assert "exceeds=true" in runner.output.read_text()
    assert "grow by more than 2 %" in runner.comment and "By cause" in runner.comment
    assert runner.summary.read_text() == runner.comment
    assert "key=net.tflite_on_nucleo_l4r5zi\n" in runner.output.read_text()
    calls = runner.calls.read_text()
    assert "pip install --quiet" in calls and "issues/7/comments -F body=@" in calls
    assert "secret" not in calls and runner.git("worktree", "list").count("\n") == 0


def test_an_earlier_comment_is_replaced(runner) -> None:
    before = runner.commit("ad")
    runner.commit(None)
    runner.answers["FOUND"] = "4711"
    assert runner.pull(before, model="net.tflite", **{"max-increase": "2%"}) == 0
    assert "no change" in runner.comment
    assert "-X PATCH repos/some/repository/issues/comments/4711" in runner.calls.read_text()


def test_a_build_runs_on_both_sides_and_a_new_file_is_no_error(runner) -> None:
    before = runner.commit(None)
    runner.commit("ad")
    build = "cp net.tflite built.tflite || true"
    assert runner.pull(before, model="built.tflite", build=build) == 0
    assert "built.tflite` is new" in runner.comment


def test_a_fork_leaves_its_comment_for_a_workflow_that_may(runner) -> None:
    before = runner.commit("ad")
    runner.commit(None)
    runner.answers["REFUSED"] = "1"
    assert runner.pull(before, model="net.tflite") == 0
    kept = runner.folder / "twin-diff-artefacts/twin-diff-nucleo_l4r5zi"
    kept.parent.mkdir()
    (runner.folder / "twin-diff").rename(kept)
    runner.answers["REFUSED"] = "0"
    runner.calls.unlink()
    posted = {"event.workflow_run.head_sha": HEAD, "event.workflow_run.id": "1"}
    assert runner.run(POSTER, {"comment": "true"}, posted) == 0
    assert "issues/7/comments -F body=@" in runner.calls.read_text()
    posted["event.workflow_run.head_sha"] = "b" * 40
    assert runner.run(POSTER, {"comment": "true"}, posted) == 2
    posted["event.workflow_run.head_sha"] = HEAD
    (kept / "pull").write_text("7/../../evil")
    assert runner.run(POSTER, {"comment": "true"}, posted) == 2


@pytest.mark.parametrize(("inputs", "said"), [
    ({"model": "net.tflite", "elf": "net.elf"}, "model or elf, not both"),
    ({}, "give model or elf"),
    ({"model": "none.tflite"}, "none.tflite: not in this pull request"),
    ({"model": "net.tflite", "options": "--clock\n80"}, "pull request: twin predict net.tflite"),
    ({"model": "net.tflite", "build": "false"}, "this pull request: build failed: false"),
    ({"model": "net.tflite", "max-increase": "2"}, "twin diff ended with 2")])
def test_what_cannot_be_compared_says_why(runner, capfd, inputs, said) -> None:
    before = runner.commit("ad")
    assert runner.pull(before, **inputs) == 2
    assert "::error::" in (out := capfd.readouterr().out) and said in out


@pytest.mark.parametrize("inputs", [{}, {"build": "test -e new || false"}])
def test_a_base_that_fails_is_not_taken_for_a_new_file(runner, capfd, inputs) -> None:
    (runner.folder / "net.tflite").write_text("version https://git-lfs.github.com/spec/v1\n")
    before = runner.commit(None)
    (runner.folder / "new").write_text("")
    runner.commit("ad")
    assert runner.pull(before, model="net.tflite", **inputs) == 2
    assert "its base: " in capfd.readouterr().out


def test_the_base_is_what_is_merged_into(runner) -> None:
    old = runner.commit("kws")
    runner.git("checkout", "-qb", "topic")
    runner.commit(None)
    runner.git("checkout", "-q", "main")
    runner.commit("ad")
    merge = runner.git("commit-tree", "main^{tree}", "-p", "main", "-p", "topic", "-m", "merged")
    runner.git("checkout", "-q", "--detach", merge)
    assert runner.pull(old, model="net.tflite", options="--clock\n80MHz") == 0
    assert "no change" in runner.comment
    assert runner.comment.startswith("<!-- twin diff net.tflite_on_nucleo_l4r5zi_clock_80MHz -->")
