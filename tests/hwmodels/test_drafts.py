"""Folders that appear whole or not at all."""

import signal
import subprocess
import sys

import pytest

from hwmodels.drafts import draft_folder

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
