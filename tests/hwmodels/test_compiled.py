"""Compiled loops are used as their sources are; without them loops run as Python, and say so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hwmodels.kernels import compiled, library
from hwmodels.kernels.store import LARGEST_ENTRY_BYTES, Store, fingerprint_sources

ROOT = Path(library.ROOT)
CODE = """
import sys
from twin.cli.ending import _show_progress
with _show_progress():
    import numpy as np
    from hwmodels.kernels.touch_stream import meet_touches
    words = np.zeros(9, np.int64)
    for _ in range(2):
        meet_touches(0, *[words] * 7)
    compiled = getattr(meet_touches, 'library', None) is not None
    print(words.sum(), compiled, 'llvmlite' in sys.modules)
"""
needs_library = pytest.mark.skipif(
    compiled.INTERPRETED or library.find_library() is None, reason="no library of loops")


def run(root, **more):
    """Run a loop of a copy of the packages."""
    env = {**os.environ, "PYTHONPATH": str(root), **more}
    return subprocess.run([sys.executable, "-P", "-c", CODE], env=env, capture_output=True,
                          text=True, check=True, cwd=root)


@pytest.fixture
def installed(tmp_path):
    """The packages as a wheel installs them: no checkout."""
    for package in ("hwmodels", "calibration", "twin"):
        shutil.copytree(ROOT / package, tmp_path / package,
                        ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@needs_library
def test_the_library_beside_its_sources_is_used(installed):
    found = run(installed)
    assert (found.stdout, found.stderr) == ("0 True False\n", "")
    plain = run(installed, NUMBA_DISABLE_JIT="1")
    assert (plain.stdout, plain.stderr) == ("0 False False\n", "")


@needs_library
@pytest.mark.parametrize("damage, reason", [
    ("changed", "sources changed after loops-"), ("missing", "none compiled for "),
    ("cut", ".so: "), ("other", "is no library of loops")])
def test_another_library_is_not_used_and_that_is_said_once(installed, damage, reason):
    path = installed / "hwmodels" / "kernels" / library.name_library(library.name_platform())
    if damage == "changed":
        with (installed / library.FOLDERS[-1] / "hooks.py").open("a") as stream:
            stream.write("# changed\n")
    elif damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        import _ctypes

        shutil.copy(_ctypes.__file__, path)
    found = run(installed)
    assert found.stdout == "0 False False\n"
    line, = found.stderr.splitlines()
    assert line.startswith("note: simulation loops run as plain Python, slowly (")
    assert reason in line and "embedded-twin[compile]" in line


@needs_library
def test_what_was_built_in_the_place_of_an_older_library_is_opened(tmp_path):
    name = library.name_library(library.name_platform())
    content = (library.HERE / name).read_bytes()
    checksum = library.checksum_sources().encode()
    (tmp_path / name).write_bytes(content.replace(checksum, checksum[::-1]))
    found, reason = library.open_library(tmp_path)
    assert found is None and reason.startswith("sources changed after loops-")
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(content)
    assert library.open_library(tmp_path)[0] is not None


@needs_library
def test_every_loop_is_in_the_library_with_its_types():
    from hwmodels.kernels import bus_events, touch_stream

    found = library.find_library()
    assert len(found.signatures) == 11
    for loop in (bus_events.grant_bursts, touch_stream.meet_touches, compiled.RUN_PROGRAMS):
        assert found.signatures[loop.symbol][1:] == compiled.kinds_of(loop.py_func)
        assert found.address_of(loop.symbol)


@needs_library
def test_a_checkout_builds_what_is_missing_once(monkeypatch, tmp_path):
    built = []

    def build():
        built.append(1)
        return ""

    def open_library(folder=None):
        return ("made", "") if built else (None, "none")

    monkeypatch.setattr(library, "HERE", tmp_path)
    monkeypatch.setattr(library, "_can_build", lambda: True)
    monkeypatch.setattr(library, "_build", build)
    monkeypatch.setattr(library, "open_library", open_library)
    library.find_library.cache_clear()
    try:
        assert library.find_library() == library.find_library() == "made"
    finally:
        library.find_library.cache_clear()
    assert built == [1]


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
