"""What is skipped fails continuous integration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = """import pytest

def test_one():
    pass

def test_two():
    pytest.skip({reason!r})
"""


def run_copied(folder, *words, ci="true", **files):
    """Run files of tests beside a copy of ours that decides, and return what came of it."""
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words,
                           "--rootdir", str(folder), str(folder)], text=True, capture_output=True,
                          env=kept | ({"CI": ci} if ci else {}), cwd=folder, check=False)


@pytest.mark.parametrize(("reason", "ci", "code"), [
    ("no compiler", "true", 1), ("no compiler", "", 0), ("TWIN_MODELS names no folder", "true", 0)])
def test_a_skip_fails_in_ci_only(tmp_path, reason, ci, code):
    result = run_copied(tmp_path, "-q", "-n", "0", ci=ci, test_made=SKIPS.format(reason=reason))
    assert result.returncode == code, result.stdout
    assert result.stdout.count("test_two: Skipped: no compiler") == (code == 1)
    assert "1 passed, 1 skipped" in result.stdout.splitlines()[-1]


def test_skips_of_several_processes_fail_and_a_file_is_told_once(tmp_path):
    result = run_copied(
        tmp_path, "-q", "-n", "2", test_made=SKIPS.format(reason="no compiler"),
        test_other="import pytest\npytest.skip('no tool', allow_module_level=True)\n")
    assert result.returncode == 1, result.stdout
    assert result.stdout.count("test_two: Skipped: no compiler") == 1
    assert result.stdout.count("Skipped: no tool") == 1


def test_the_longest_files_begin_where_several_processes_share_them(tmp_path):
    from conftest import LONG_S

    assert set(LONG_S) <= {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
    one = "def test_a():\n    pass\n"
    many = "".join(f"def test_{i}():\n    pass\n" for i in range(9))
    output = run_copied(tmp_path, "-v", "-n", "1", "--dist", "loadfile", test_many=many,
                        test_site=one, test_more=many).stdout
    first, *rest = [line for line in output.splitlines() if "PASSED" in line]
    assert "test_site" in first and len(rest) == 18
