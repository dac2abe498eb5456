"""What is skipped fails continuous integration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = """import pytest

def test_one():
    pass

def test_two():
    pytest.skip({reason!r})
"""


@pytest.mark.parametrize(("reason", "environment", "code", "processes"), [
    ("no compiler", {"CI": "true"}, 1, 0), ("no compiler", {"CI": "true"}, 1, 2),
    ("no compiler", {}, 0, 0), ("TWIN_MODELS names no folder", {"CI": "true"}, 0, 0)])
def test_a_skip_fails_in_ci_only(tmp_path, reason, environment, code, processes):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_made.py").write_text(TEXT.format(reason=reason))
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    result = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                             "-n", str(processes),
                             "--rootdir", str(tmp_path), str(tmp_path)], text=True,
                            capture_output=True, env=kept | environment, cwd=tmp_path, check=False)
    assert result.returncode == code, result.stdout
    assert result.stdout.count("test_two: Skipped: no compiler") == (code == 1)
    assert "1 passed, 1 skipped" in result.stdout.splitlines()[-1]


def test_a_file_skipped_by_several_processes_is_told_once(tmp_path):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_made.py").write_text("def test_one():\n    pass\n")
    (tmp_path / "test_other.py").write_text(
        "import pytest\npytest.skip('no tool', allow_module_level=True)\n")
    result = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n",
                             "2", "--rootdir", str(tmp_path), str(tmp_path)], text=True,
                            capture_output=True, env=os.environ | {"CI": "true"}, cwd=tmp_path,
                            check=False)
    assert result.returncode == 1 and result.stdout.count("Skipped: no tool") == 1, result.stdout


def test_the_longest_files_begin_where_several_processes_share_them(tmp_path):
    from conftest import LONG_S

    assert set(LONG_S) <= {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    for name in ("test_many", "test_site", "test_more"):
        (tmp_path / f"{name}.py").write_text(
            "def test_a():\n    pass\n" if name == "test_site" else "".join(
                f"def test_{i}():\n    pass\n" for i in range(len(name))))
    told = subprocess.run([sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-n",
                           "1", "--dist", "loadfile", "--rootdir", str(tmp_path), str(tmp_path)],
                          text=True, capture_output=True, cwd=tmp_path, check=False).stdout
    first, *rest = [line for line in told.splitlines() if "PASSED" in line]
    assert "test_site" in first and len(rest) == 2 * len("test_many")
