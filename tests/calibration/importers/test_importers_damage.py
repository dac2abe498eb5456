"""A damaged log becomes a measurement or a typed error, never anything else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_logs import LOGS

from calibration import importers
from calibration.errors import MeasurementError
from calibration.importers import BINARY, FORMATS
from calibration.importers.log import Log
from calibration.measurement.measurement import Measurement

CASES = [(form, log) for form, logs in LOGS.items() for log in logs]
PIECES = ("-", "1e999", "nan", "9" * 330, "0", "[", ")", ",", ":", "\0", "\u0661", "EpochBlock_1 ")


def read(form: str, data: bytes, partial: bool) -> Measurement | None:
    """Read damaged bytes as `import_log` does."""
    from importlib import import_module

    reader = import_module(f"calibration.importers.{FORMATS[form]}")
    text = "" if form in BINARY else data.decode("utf-8", errors="replace")
    try:
        if form not in BINARY:
            reader.recognise(text)
        found = reader.read_log(Log(where="log", text=text, data=data, partial=partial))
    except MeasurementError as error:
        assert str(error).startswith("log"), str(error)
        return None
    return found


@pytest.mark.parametrize(("form", "log"), CASES, ids=[
    f"{form}-{place}" for place, (form, _) in enumerate(CASES)])
@settings(max_examples=60)
@given(data=st.data())
def test_cut_flipped_shuffled(form, log, data):
    text = log if isinstance(log, bytes) else log.encode()
    how = data.draw(st.sampled_from(("cut", "flip", "shuffle", "drop", "piece", "twice")))
    lines = text.splitlines(keepends=True)
    place = data.draw(st.integers(0, len(text) - 1))
    if how == "cut":
        text = text[:place]
    elif how == "flip":
        text = text[:place] + bytes([text[place] ^ data.draw(st.integers(1, 255))]) \
            + text[place + 1:]
    elif how == "shuffle":
        text = b"".join(data.draw(st.permutations(lines)))
    elif how == "drop":
        del lines[data.draw(st.integers(0, len(lines) - 1))]
        text = b"".join(lines)
    elif how == "piece":
        text = text[:place] + data.draw(st.sampled_from(PIECES)).encode() + text[place:]
    else:
        text += text
    found = read(form, text, data.draw(st.booleans()))
    if found is not None:
        assert all(0 <= sample.value < float("inf") for sample in found.samples)


def test_a_log_of_an_npu_misses_no_line_unnoticed():
    """Every line of figures that is dropped is refused, or is derived from others."""
    (text,) = LOGS["npu-profiler"]
    lines = text.splitlines(keepends=True)
    begin = next(i for i, line in enumerate(lines) if "EpochBlock_186 (" in line)
    kept = ("mcu cycles", "core npu cycles", "busif 0", "busif 1", "octoFlash  ", "npuRAM5  ",
            "compute cycles  ", "extra mcu", "npu cycles  ", "EpochBlock_")
    for place in range(begin, len(lines)):
        if any(name in lines[place] for name in kept):
            less = "".join(lines[:place] + lines[place + 1:])
            assert read("npu-profiler", less.encode(), partial=False) is None, lines[place]


@pytest.mark.parametrize(("name", "hertz", "can"), [
    ("cpu", 120e6, True), ("cpu", 240e6, False), ("timer", 120e6, True), ("timer", 240e6, False)])
def test_a_clock_is_no_faster_than_the_board_can_have_it(name, hertz, can):
    """A timer runs from a clock of the board, whatever its own name is."""
    header = SimpleNamespace(board="nucleo_l4r5zi", clocks_hz=((name, hertz),), source="log")
    if can:
        assert importers._check_fastest(header, anyway=False) == []
        return
    with pytest.raises(MeasurementError, match=f"a {name} clock of 240 MHz is more than nucleo_l4"):
        importers._check_fastest(header, anyway=False)
    assert len(importers._check_fastest(header, anyway=True)) == 1
