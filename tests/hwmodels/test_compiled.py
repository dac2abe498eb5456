"""What is compiled is told once; what was kept is not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hwmodels.kernels.compiled import Store

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


@pytest.mark.parametrize("step", ["_load_index", "_save_data", "_save_index"])
def test_two_processes_that_keep_at_a_time_get_their_own_code(tmp_path, monkeypatch, step):
    def open_store():
        return Store(cache_path=str(tmp_path), filename_base="made", source_stamp=1)

    do, others = getattr(Store, step), [open_store()]

    def interrupted(store, *arguments):
        if others:
            others.pop().save("theirs", "their code")
        return do(store, *arguments)

    monkeypatch.setattr(Store, step, interrupted)
    open_store().save("ours", "our code")
    found = open_store().load("ours"), open_store().load("theirs")
    assert found[0] == "our code" and found[1] in ("their code", None)
    assert not others


def test_code_of_older_sources_goes(tmp_path):
    for stamp in (1, 2):
        Store(cache_path=str(tmp_path), filename_base="made", source_stamp=stamp).save("key", stamp)
        Store(cache_path=str(tmp_path), filename_base="made", source_stamp=stamp).save("more", 3)
    Store(cache_path=str(tmp_path), filename_base="made_too", source_stamp=1).save("key", 4)
    kept = Store(cache_path=str(tmp_path), filename_base="made", source_stamp=2)
    assert (kept.load("key"), kept.load("more")) == (2, 3)
    assert len(list(tmp_path.glob("made.*.nbc"))) == 2
