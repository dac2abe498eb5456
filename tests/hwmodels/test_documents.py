"""YAML and JSON from outside: every door goes through one loader, which refuses in one line."""

import ast
import os
from pathlib import Path

import pytest
from made_sources import walk_sources

from hwmodels.board.file import load_board
from hwmodels.errors import LONGEST_REFUSAL, TwinError, escape, tell_in_one_line
from hwmodels.files import (
    DEEPEST,
    LARGEST_YAML_BYTES,
    DocumentError,
    check_keys,
    parse_json,
    parse_yaml,
    read_json,
    read_yaml,
)

LAUGHS = "\n".join(["a0: &a0 [x, x]", *(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 12))])


@pytest.mark.parametrize("text", [
    "[" * 100_000, "- " * 200 + "x", "a: 2001-99-99", "a: 0x_", "a: 0b_", f"a: {'9' * 5000}",
    f"a: {'9' * 400}", "a: &a [*a]", "!!bool x", "!!timestamp x", '!!int ""', "!!python/none x",
    "a: \x1b]0;title\x07", "a: [", "a: *none", LAUGHS, "x" * (LARGEST_YAML_BYTES + 1)],
    ids=lambda text: text[:14].strip())
def test_yaml_is_refused_in_one_line(text):
    with pytest.raises(DocumentError, match="not YAML") as caught:
        parse_yaml(text)
    assert str(caught.value).isprintable() and len(str(caught.value)) <= LONGEST_REFUSAL


@pytest.mark.parametrize("text", [
    "[" * 100_000, "[" * 65 + "]" * 65, '["]",' * 65 + "0" + "]" * 65,
    '["\\"",' * 65 + "0" + "]" * 65, '{"a":' * 65 + "1" + "}" * 65, "9" * 5000, "-" + "9" * 400,
    "{", "", "[0," * 2_000_000], ids=lambda text: text[:14])
def test_json_is_refused_in_one_line(text):
    with pytest.raises(DocumentError, match="not JSON") as caught:
        parse_json(text)
    assert str(caught.value).isprintable() and len(str(caught.value)) <= LONGEST_REFUSAL


def test_what_is_within_bounds_is_read():
    deep = "[" * DEEPEST + "]" * DEEPEST
    assert str(parse_json(deep)) == str(parse_yaml(deep)) == deep
    assert parse_json('[' + '"[",' * 1000 + '"\\"["]')[-1] == '"['
    assert parse_yaml("a: &a {b: 1}\nc: *a\nd: {<<: *a, e: 2}")["d"] == {"b": 1, "e": 2}
    assert parse_json("12345678901234567890") == parse_yaml("12345678901234567890")
    assert parse_yaml("a: 1\na: 2") == {"a": 2}
    with pytest.raises(DocumentError, match="key 'a' is given twice in line 3, column 1"):
        parse_yaml("a: 1\nb: 2\na: 2", keys_once=True)
    assert parse_yaml("a: &a {b: 1}\nc: {<<: *a, b: 2}", keys_once=True)["c"] == {"b": 2}


@pytest.mark.parametrize("read", [read_yaml, read_json])
def test_only_regular_files_of_a_size_are_read(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "sparse", "wb") as stream:
        stream.truncate(1 << 40)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for path, why in ((tmp_path / "pipe", "not a regular file"), (tmp_path, "is a directory"),
                      (Path("/dev/zero"), "not a regular file"),
                      (tmp_path / "sparse", "1,099,511,627,776 bytes; at most"),
                      (tmp_path / "none", "No such file"), (tmp_path / "bytes", "not UTF-8")):
        with pytest.raises(DocumentError, match=why):
            read(path)


def test_a_refusal_is_one_printable_line():
    refusal = str(TwinError("a\x1b]0;pwned\x07b\nerror: fake\u202e" + "x" * 10_000 + "accepted: y"))
    assert refusal.startswith("a\\x1b]0;pwned\\x07b error: fake\\u202exxx")
    assert refusal.endswith("xxxaccepted: y") and len(refusal) == LONGEST_REFUSAL
    first, last = tell_in_one_line(", ".join(["floor_div"] * 99)).split(" ... ")
    assert {*f"{first} {last}".split()} == {"floor_div,", "floor_div"}  # cut between names
    assert tell_in_one_line("\n" * 10**6 + "end") == "end"
    assert escape("µ\u00a0→\t\n\x9b", keep="\n") == "µ\u00a0→\\t\n\\x9b"
    assert escape("od\udcff.tflite") == "od\\xff.tflite"  # a byte of a name that is not text


def test_whatif_words_that_are_no_yaml_are_refused_by_the_board():
    for word in ("0x_", "0b_", "2001-99-99", "9" * 5000, "[" * 100_000, "1e-320"):
        with pytest.raises(TwinError) as caught:
            load_board("nucleo_l4r5zi", overrides={"clocks.cpu.frequency_hz": word})
        assert len(str(caught.value)) <= LONGEST_REFUSAL


def test_nobody_else_parses_or_reads_text_of_a_user():
    homes = {"hwmodels/files.py"}
    sealed = {("hwmodels/kernels/compiled.py", "pickle", "loads"),  # what this user kept, by a key
              ("hwmodels/file_cache.py", "json", "loads"),
              ("twin/program/child.py", "pickle", "load"),  # what its own parent sends
              ("hwmodels/processes.py", "pickle", "loads"),  # what its own parent sends
              ("twin/program/finding.py", "json", "loads")}  # what its own child sends
    parsers = {("yaml", "load"), ("yaml", "safe_load"), ("yaml", "load_all"),
               ("yaml", "safe_load_all"), ("yaml", "unsafe_load"), ("json", "load"),
               ("json", "loads"), ("pickle", "load"), ("pickle", "loads")}
    # Text of the project, of the machine and of folders the project has made.
    reads_text = {"calibration/virtual_board/host.py", "twin/program/image/compile/ports.py",
                  "twin/program/image/compile/profile.py", "twin/runtimes/library.py",
                  "twin/cli/__init__.py", "twin/cli/summaries.py",
                  "hwmodels/board/catalogue.py", "twin/api/commands/doctor.py",
                  "twin/network/rewrites/rewrite.py",
                  "twin/reports/page/page.py", "twin/__init__.py"}
    for name, node in walk_sources(r"\b(yaml|json|pickle)\s*\.|read_text"):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        assert (owner, node.func.attr) not in parsers or name in homes or \
            (name, owner, node.func.attr) in sealed, \
            f"{name}:{node.lineno}: hwmodels.files parses"
        assert node.func.attr != "read_text" or name in reads_text, \
            f"{name}:{node.lineno}: hwmodels.files reads"


def test_a_key_that_is_no_text_is_refused_as_any_other() -> None:
    with pytest.raises(TwinError, match=r"plan\.yaml:1: unknown key; accepted: schema"):
        check_keys("plan.yaml:", {1: "x", "a": "y"}, ["schema"], TwinError)
