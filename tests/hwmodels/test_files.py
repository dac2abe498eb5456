"""Files are read whole, or refused at once with the reason."""

import os

import pytest

from hwmodels.files import read_regular, read_regular_text


def test_a_file_is_read_whole(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"\x00\xff")
    assert read_regular(path) == b"\x00\xff"
    path.write_text("µ", encoding="utf-8")
    assert read_regular_text(str(path)) == "µ"


def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes(11))
    for name, why in (("pipe", "not a regular file"), ("", "is a directory"),
                      ("large", "11 bytes; at most 10"), ("none", "No such file"),
                      ("nul\0l", "null byte")):
        with pytest.raises(OSError) as caught:
            read_regular(tmp_path / name, 10)
        assert why in str(caught.value)
