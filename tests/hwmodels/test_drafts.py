"""Folders that appear whole or not at all."""

import os
import signal
import subprocess
import sys

import pytest

from hwmodels import drafts
from hwmodels.drafts import draft_folder, renewed_files

FILLING = """
import sys
from pathlib import Path
from hwmodels.drafts import draft_folder
with draft_folder(Path(sys.argv[1]), ".draft-") as draft:
    (draft / "half").write_text("half")
    print(draft.name, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path):
    theirs = tmp_path / ".draft-of-the-user"
    theirs.mkdir()
    process = subprocess.Popen([sys.executable, "-c", FILLING, str(tmp_path)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    half = tmp_path / process.stdout.readline().strip()
    with draft_folder(tmp_path, ".draft-"):
        assert (half / "half").exists()  # somebody is filling it
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert half.exists()
    with draft_folder(tmp_path, ".draft-") as draft:
        assert not half.exists()
        (draft / "file").touch()
        draft.rename(tmp_path / "whole")
    assert {one.name for one in tmp_path.iterdir()} == {theirs.name, "whole"}
    assert (tmp_path / "whole" / "file").exists()


def test_files_of_a_draft_come_all_or_none_whatever_interrupts(tmp_path, monkeypatch):
    folder = tmp_path / "built"

    def fill(text, *names):
        with renewed_files(folder, ".draft-", ("map",)) as draft:
            for name in names:
                (draft / name).write_text(text)
                if text == "cut":
                    raise KeyboardInterrupt

    def found():
        return {one.name: one.read_text() for one in folder.iterdir()}

    fill("first", "image", "map", "source")
    (folder / "own").write_text("the user's")
    with pytest.raises(KeyboardInterrupt):
        fill("cut", "image", "source")
    first = {"image": "first", "map": "first", "source": "first", "own": "the user's"}
    assert found() == first
    move, moved, handler = os.replace, [], signal.getsignal(signal.SIGINT)

    def press(start, end):  # between two of its renames
        moved.append(end)
        signal.raise_signal(signal.SIGINT)
        move(start, end)

    monkeypatch.setattr(drafts.os, "replace", press)
    with pytest.raises(KeyboardInterrupt):
        fill("second", "image", "source")
    assert found() == {"image": "second", "source": "second", "own": "the user's"}
    assert len(moved) == 2 and signal.getsignal(signal.SIGINT) is handler
    (folder / "source").unlink()
    (folder / "source").mkdir()
    with pytest.raises(IsADirectoryError):
        fill("third", "image", "source")
    assert (folder / "image").read_text() == "second"
