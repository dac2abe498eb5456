"""What is made of a file is kept by its content, sealed, and made again when anything is amiss."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hwmodels import file_cache
from hwmodels.board.file import _read_once, list_boards, load_board
from hwmodels.core.file import list_cores, load_core
from hwmodels.errors import BoardError
from hwmodels.file_cache import UnpackableError, make_once, pack, read_yaml_once, unpack
from hwmodels.files import DocumentError
from hwmodels.kernels import store


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """One of everything."""

    number: float
    words: tuple[str, ...]
    table: dict[str, list[int]]
    inner: Noun | None = None
    derived: int = field(init=False, default=3)


NOUN = Noun(number=0.1, words=("a", "b"), table={"b": [1, 2], "a": []},
            inner=Noun(number=float("inf"), words=(), table={}))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TWIN_FILES", str(tmp_path / "files"))
    _read_once.cache_clear()
    return tmp_path / "files"


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def make(content: bytes = b"content", made: list[bytes] | None = None, result: object = NOUN):
    def count() -> object:
        if made is not None:
            made.append(content)
        return result

    return make_once("noun", "file", content, Path(file_cache.__file__).parent, count)


def test_nouns_are_what_they_were():
    assert unpack(json.loads(json.dumps(pack(NOUN)))) == NOUN
    assert list(unpack(pack(NOUN)).table) == ["b", "a"]
    with pytest.raises(UnpackableError, match="set is not kept"):
        pack({1})
    for planted in ("os:system", "os:environ", "hwmodels.file_cache:_class"):
        with pytest.raises((UnpackableError, TypeError)):
            unpack({"noun": planted, "of": ["true"]})


def test_a_file_is_read_once_until_it_changes(folder):
    made: list[bytes] = []
    assert make(made=made) == make(made=made) == NOUN
    assert made == [b"content"]
    assert make(b"other", made) == NOUN and make(b"other", made) == NOUN
    assert made == [b"content", b"other"]
    assert len(entries(folder)) == 1  # the newest of each file
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "planted"])
def test_what_is_damaged_is_made_again(folder, damage):
    make()
    (path,) = entries(folder)
    content = path.read_bytes()
    path.write_bytes({"cut": content[:-5], "bit": content[:-1] + b"?", "empty": b"",
                      "planted": content[:32] + b'"planted"'}[damage])
    made: list[bytes] = []
    assert make(made=made) == NOUN and made == [b"content"]
    assert make(made=made) == NOUN and made == [b"content"]


def test_drafts_of_killed_processes_go(folder):
    folder.mkdir(mode=0o700)
    for name, age_s in ((".old.tmp", 1e6), (".new.tmp", 0), ("old.tmp", 1e6)):
        (folder / name).touch()
        now_s = (folder / name).stat().st_mtime
        os.utime(folder / name, (now_s - age_s, now_s - age_s))
    open_store = store.Store(folder)
    open_store.save("noun-x.0.json", b"{}")
    assert {".new.tmp", "old.tmp"} == {path.name for path in folder.glob("*.tmp")} | {
        path.name for path in folder.glob(".*.tmp")}


def test_nothing_is_kept_where_that_is_not_wanted_or_not_possible(folder, monkeypatch):
    made: list[bytes] = []
    assert make(made=made, result={1}) == make(made=made, result={1}) == {1}
    monkeypatch.setenv("TWIN_FILES", "")
    make(made=made)
    monkeypatch.setenv("TWIN_FILES", "/dev/null/none")
    make(made=made)
    assert len(made) == 4 and not entries(folder)


def test_what_nobody_asks_for_goes_and_what_is_asked_for_stays(folder, monkeypatch):
    """A few shipped files are read by every command, beside many that are read once."""
    monkeypatch.setattr(file_cache, "MOST_ENTRIES", 8)
    made: list[str] = []

    def ask(name: str) -> None:
        make_once("noun", name, b"", Path(file_cache.__file__).parent, lambda: made.append(name))

    for number in range(30):
        for name in ("shipped", "another", f"once {number}"):
            ask(name)
        assert len(entries(folder)) <= 8
    assert made.count("shipped") == made.count("another") == 1 and len(made) == 32


def test_boards_and_cores_come_back_as_they_were_read(folder):
    for name in list_boards():
        made = load_board(name)
        _read_once.cache_clear()
        assert load_board(name) == made and load_board(name) is load_board(name)
    assert len(entries(folder)) == len(list_boards())
    for name in list_cores():
        assert pack(unpack(pack(load_core(name)))) == pack(load_core(name))


def test_a_refusal_is_not_kept(folder, tmp_path):
    path = tmp_path / "board.yaml"
    path.write_text("schema: 1\n")
    for _ in range(2):
        with pytest.raises(BoardError, match="is required"):
            load_board(path)
    path.write_text("a: [")
    with pytest.raises(DocumentError, match="not YAML"):
        read_yaml_once(path)
    path.write_bytes(b"\xff")
    with pytest.raises(DocumentError, match="UTF-8"):
        read_yaml_once(path)
    with pytest.raises(DocumentError, match="No such file"):
        read_yaml_once(tmp_path / "gone.yaml")


def test_the_second_process_needs_no_parser(folder):
    code = ("import sys; from hwmodels.board.file import load_board\n"
            "load_board('nucleo_l4r5zi'); print({'yaml', 'pydantic'} & set(sys.modules))")
    told = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                           check=True).stdout for _ in range(2)]
    assert "pydantic" in told[0] and told[1] == "set()\n"
