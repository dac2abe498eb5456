"""Files are written whole or not at all, by one writer that follows no planted link."""

import ast
import os
import threading

import pytest
from made_sources import walk_sources

from hwmodels.files import open_exclusive, write_whole
from hwmodels.kernels.store import Store


def test_the_mode_and_a_linked_target_are_kept(tmp_path):
    (tmp_path / "there").write_bytes(b"old")
    (tmp_path / "there").chmod(0o600)
    (tmp_path / "link").symlink_to("there")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == b"new"
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


def test_a_draft_is_made_and_never_a_planted_link_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"dear")
    (tmp_path / "planted").symlink_to(victim)
    with pytest.raises(FileExistsError):
        open_exclusive(tmp_path / "planted")
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / f".a.{os.getpid()}.tmp").symlink_to(victim)
    (tmp_path / ".a.partial").symlink_to(victim)
    write_whole(tmp_path / "a", b"new")
    assert victim.read_bytes() == b"dear" and (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, failing, refuse)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


def test_only_what_is_sealed_is_not_waited_for(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store = Store(tmp_path)
    assert store.key and len(synced) == 2  # the key and its name in the folder
    store.save("entry.sources.rest", b"content")
    assert store.load("entry.sources.rest") == b"content" and len(synced) == 2
    write_whole(tmp_path / "a", b"dear")
    assert len(synced) == 4


def test_two_writers_of_one_file_both_succeed(tmp_path):
    contents, failed = [bytes([65 + number]) * 100_000 for number in range(4)], []

    def write(content):
        try:
            for _ in range(20):
                write_whole(tmp_path / "a", content)
        except OSError as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failed and (tmp_path / "a").read_bytes() in contents
    assert os.listdir(tmp_path) == ["a"]


def test_nobody_else_writes_files_of_a_user():
    # Folders the project has made for itself, and the sample line that is appended and synced.
    own = {"hwmodels/kernels/build.py", "twin/program/image/compile/build.py",
           "twin/program/image/compile/native.py",
           "twin/program/image/compile/source.py", "twin/program/image/compile/microbench.py"}
    for name, node in walk_sources("write_text|write_bytes"):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in ("write_text", "write_bytes") or name in own, \
                f"{name}:{node.lineno}: hwmodels.files writes"
