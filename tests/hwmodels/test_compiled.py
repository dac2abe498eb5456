"""What is compiled is told once; what was kept is not."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from hwmodels.kernels import compiled
from hwmodels.kernels.store import Store, fingerprint_sources

CODE = """
import logging, sys
from twin.cli.ending import _progress_told
with _progress_told():
    import numpy as np
    from hwmodels.kernels.touch_stream import meet_touches
    words = np.zeros(9, np.int64)
    meet_touches(0, *[words] * 7)
    print(words.sum())
assert not logging.getLogger("hwmodels.kernels").handlers
"""


def test_a_first_compilation_is_told_on_stderr(tmp_path):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    env.pop("TWIN_KERNELS", None)
    told = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True,
                              text=True, check=True)
        assert done.stdout == "0\n"
        told.append(done.stderr)
    assert told == ["compiling simulation kernels, once: meet_touches\n", ""]


def run(tmp_path, **more):
    env = {**os.environ, "TWIN_KERNELS": str(tmp_path), **more}
    return subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True,
                          check=True)


COMPILED = "compiling simulation kernels, once: meet_touches\n"
NOT_KEPT = compiled.NOT_KEPT + "\n"


class Planted:
    """What a pickle that runs a command looks like."""

    def __init__(self, made):
        self.made = made

    def __reduce__(self):
        return os.mkdir, (str(self.made),)


@pytest.mark.parametrize("damage", ["cut", "planted", "key"])
def test_damaged_or_planted_code_is_compiled_again(tmp_path, damage):
    assert run(tmp_path).stderr == COMPILED
    (folder,) = tmp_path.iterdir()
    entries = sorted(path for path in folder.iterdir() if path.name not in ("key", "lock"))
    assert entries and all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in entries:
        content = path.read_bytes()
        if damage == "cut":
            path.write_bytes(content[:len(content) // 2])
        elif damage == "planted":
            path.write_bytes(content[:32] + pickle.dumps(Planted(tmp_path / "ran")))
    if damage == "key":
        (folder / "key").write_bytes(b"short")
    assert run(tmp_path).stdout == "0\n"
    assert not (tmp_path / "ran").exists()
    assert run(tmp_path).stderr == ""  # kept again


def test_a_folder_others_write_is_not_used(tmp_path):
    assert run(tmp_path).stderr == COMPILED
    (folder,) = tmp_path.iterdir()
    folder.chmod(0o777)
    for _ in range(2):
        assert run(tmp_path).stderr == COMPILED + NOT_KEPT.format(
            folder=folder, reason="another user owns it or can write to it")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no /dev/null")
def test_without_a_place_to_keep_it_code_is_compiled(tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("/dev/null/none", str(tmp_path / "file")):
        told = run(tmp_path, TWIN_KERNELS=place)
        assert told.stdout == "0\n"
        note, = told.stderr.removeprefix(COMPILED).splitlines()
        assert note.startswith(f"note: simulation kernels are compiled by every command; {place}/")
        assert note.endswith(": Not a directory")


def test_why_loops_are_not_kept_is_told_once_a_command(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", "import hwmodels.kernels.compiled as c, logging, sys\n"
         "logging.basicConfig(level=logging.INFO, format='%(message)s')\n"
         "for loop in c.CUT_PHASES, c.SKIP_PHASES: loop.prepare()"],
        env={**os.environ, "TWIN_KERNELS": str(tmp_path / "file")}, capture_output=True, text=True,
        check=True)
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == [
        "compiling simulation kernels, once", "note", "compiling simulation kernels, once"]


def test_two_processes_at_once_compile_once(tmp_path):
    env = {**os.environ, "TWIN_KERNELS": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", CODE], env=env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    told = [process.communicate() for process in both]
    assert [out for out, _ in told] == ["0\n", "0\n"]
    assert sorted(error for _, error in told) == ["", COMPILED]


def test_everything_is_compiled_ahead(tmp_path):
    env = {**os.environ, "TWIN_KERNELS": str(tmp_path)}
    told = [subprocess.run([sys.executable, "-m", "hwmodels.kernels"], env=env, text=True,
                           capture_output=True, check=True).stderr.splitlines()
            for _ in range(2)]
    assert [line.rpartition(" ")[2] for line in told[0]] == [
        loop.name for loop in compiled.kept_loops()]
    assert len(told[0]) == 11 and not told[1]
    assert run(tmp_path).stderr == ""


def test_an_array_of_another_type_is_refused():
    from hwmodels.kernels.touch_stream import meet_touches

    words = np.zeros(9, np.int64)
    for wrong in (np.zeros(9, np.int32), np.zeros((3, 3), np.int64), np.zeros(18, np.int64)[::2]):
        with pytest.raises(TypeError, match="meet_touches"):
            meet_touches(0, words, wrong, *[words] * 5)


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.save("one.source.types", b"code")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hwmodels.kernels.store.write_private", refuse)
    store.save("one.source.others", b"code")
    assert sorted(os.listdir(tmp_path)) == ["key", "lock", "one.source.types"]
    assert store.load("one.source.others") is None
    assert store.refusal == "No space left on device"


@pytest.mark.parametrize("damage", ["empty", "bit", "swapped"])
def test_what_was_not_kept_under_a_name_is_not_loaded(tmp_path, damage):
    store, path = Store(tmp_path), tmp_path / "one.source.types"
    store.save(path.name, b"code")
    store.save("two.source.types", b"other")
    assert store.load(path.name) == b"code"
    content = path.read_bytes()
    path.write_bytes({"empty": b"", "bit": content[:-1] + bytes([content[-1] ^ 1]),
                      "swapped": (tmp_path / "two.source.types").read_bytes()}[damage])
    assert store.load(path.name) is None


def test_two_that_keep_at_a_time_get_their_own_code(tmp_path):
    stores = Store(tmp_path), Store(tmp_path)
    for number, store in enumerate(stores):
        store.save(f"made.source.{number}", b"code %d" % number)
    for store in (*stores, Store(tmp_path)):
        assert [store.load(f"made.source.{number}") for number in (0, 1)] == [b"code 0", b"code 1"]


def test_code_of_older_sources_goes(tmp_path):
    store = Store(tmp_path)
    for name in ("made.one.int", "made.one.float", "made_too.one.int", "a.made.one.int"):
        store.save(name, b"old")
    store.save("made.two.int", b"new")
    assert sorted(os.listdir(tmp_path)) == ["a.made.one.int", "key", "lock",
                                            "made.two.int", "made_too.one.int"]


def test_a_change_of_any_source_is_one_of_all(tmp_path):
    found = set()
    for text in ("a = 1\n", "a = 2\n"):
        (tmp_path / "loops.py").write_text(text)
        fingerprint_sources.cache_clear()
        found.add(fingerprint_sources(tmp_path))
    fingerprint_sources.cache_clear()
    assert len(found) == 2


def test_a_pipe_a_device_or_a_huge_file_in_place_of_an_entry_is_none(tmp_path) -> None:
    from hwmodels.kernels.store import LARGEST_ENTRY_BYTES, Store

    store = Store(tmp_path / "kept")
    store.save("loop.sources.rest", b"code")
    assert store.load("loop.sources.rest") == b"code"
    path = store.folder / "loop.sources.rest"
    path.unlink()
    os.mkfifo(path)
    assert store.load("loop.sources.rest") is None
    store.save("loop.sources.rest", b"code")  # In its place, without waiting for a reader.
    assert store.load("loop.sources.rest") == b"code"
    path.unlink()
    path.symlink_to("/dev/zero")
    assert store.load("loop.sources.rest") is None
    store.save("loop.sources.rest", b"code")
    assert store.load("loop.sources.rest") == b"code" and not path.is_symlink()
    path.unlink()
    with path.open("wb") as stream:
        stream.truncate(LARGEST_ENTRY_BYTES + 1)
    assert store.load("loop.sources.rest") is None


def test_a_pipe_in_place_of_the_lock_holds_nobody_up(tmp_path) -> None:
    folder = tmp_path / "kept"
    store = Store(folder)
    store.save("one.two.three", b"1")
    (folder / "lock").unlink(missing_ok=True)
    os.mkfifo(folder / "lock")
    with store.hold():
        assert store.load("one.two.three") == b"1"
