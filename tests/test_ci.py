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


@pytest.mark.parametrize(("reason", "environment", "code"), [
    ("no compiler", {"CI": "true"}, 1), ("no compiler", {}, 0),
    ("TWIN_MODELS names no folder", {"CI": "true"}, 0)])
def test_a_skip_fails_in_ci_only(tmp_path, reason, environment, code):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_made.py").write_text(TEXT.format(reason=reason))
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    result = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                             "--rootdir", str(tmp_path), str(tmp_path)], text=True,
                            capture_output=True, env=kept | environment, cwd=tmp_path, check=False)
    assert result.returncode == code, result.stdout
    assert ("test_two: Skipped: no compiler" in result.stdout) == (code == 1)
