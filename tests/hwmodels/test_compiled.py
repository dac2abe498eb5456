"""What is compiled is told once; what was kept is not."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import logging, sys
from twin.cli.ending import _progress_told
with _progress_told():
    from hwmodels.kernels.npu_streams import part
    print(part(10, 4, 1))
assert not logging.getLogger("hwmodels.kernels").handlers
"""


def test_a_first_compilation_is_told_on_stderr(tmp_path):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    env.pop("NUMBA_CACHE_DIR", None)
    told = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True,
                              text=True, check=True)
        assert done.stdout == "3\n"
        told.append(done.stderr)
    assert told == ["compiling simulation kernels, once: part\n", ""]
