"""Methods of dataclasses that are kept: the same classes, from code nobody else can plant."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import dataclasses, sys, builtins
from hwmodels.dataclass_code import keep_dataclass_code
keep_dataclass_code("test")
made = []
builtins.compile = lambda *a, compile=compile, **k: made.append(a[0]) or compile(*a, **k)
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    size: int = 3
    name: str = dataclasses.field(default_factory=str)
one = Noun(name="x")
assert one == Noun(size=3, name="x") and hash(one) == hash(Noun(size=3, name="x"))
assert dataclasses.replace(one, size=4).size == 4
try:
    one.size = 5
except dataclasses.FrozenInstanceError:
    pass
print(len(made), one)
"""


@pytest.fixture
def run(tmp_path):
    def run(folder: str = str(tmp_path / "files")) -> str:
        return subprocess.run([sys.executable, "-c", SCRIPT], check=True, text=True,
                              capture_output=True,
                              env=os.environ | {"TWIN_FILES": folder}).stdout
    return run


def test_code_of_classes_is_compiled_once_and_again_where_it_is_damaged(run, tmp_path) -> None:
    first, again = run(), run()
    assert int(first.split()[0]) > 3 and again == f"0 {first.split(' ', 1)[1]}"
    kept, = (tmp_path / "files").glob("nouns-*")
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    assert run() == first
    assert run() == again


def test_nothing_is_kept_where_that_is_asked(run, tmp_path) -> None:
    assert run("") == run("")
    assert not (tmp_path / "files").exists()
