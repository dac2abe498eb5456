"""Quantities: what is written is read, in the unit its name ends in."""

from __future__ import annotations

import pytest

from hwmodels.quantities import (
    UNITS,
    join_words,
    read_count,
    read_quantity,
    significant,
    suggest_unit,
    write_setting,
)


@pytest.mark.parametrize(("text", "dimension", "expected"), [
    ("280MHz", "hz", (280e6, "MHz")), (" 0.28 ghz ", "hz", (280e6, "GHz")),
    ("32KiB", "bytes", (32768, "KiB")), ("5mJ", "pj", (5e9, "mJ")),
    ("100 ms", "ns", (1e8, "ms")), ("-3", "", (-3, "")), ("1.1mV", "v", (0.0011, "mV")),
])
def test_a_number_is_read_with_its_unit(text, dimension, expected):
    assert read_quantity(text, dimension) == expected


@pytest.mark.parametrize(("text", "dimension"), [
    ("32KB", "bytes"), ("3 mA", "v"), ("fast", "hz"), ("280MHz extra", "hz"), ("nan", "hz"),
    ("", ""), ("5 V", ""), ("1e4000", "hz"), ("2MJ", "pj"), ("2mj", "pj"),
    ("5MS", "ns"), ("1ma", "ma"),
])
def test_other_text_is_no_quantity(text, dimension):
    assert read_quantity(text, dimension) is None


@pytest.mark.parametrize(("text", "dimension", "unit"), [
    ("256KB", "bytes", "KiB"), ("256K", "bytes", "KiB"), ("1mb", "bytes", "MiB"),
    ("2MJ", "pj", "mJ"), ("2mj", "pj", "mJ"), ("5 MS", "ns", "ms"),
])
def test_a_unit_nearly_written_is_named(text, dimension, unit):
    assert suggest_unit(text, dimension).endswith(f"did you mean {unit}?")


@pytest.mark.parametrize("text", ["5mJ", "5", "fast", "5MHz", "-1mJ"])
def test_other_text_gets_no_hint(text):
    assert suggest_unit(text, "pj") == ""


def test_no_two_units_of_a_dimension_differ_by_case_only():
    for units in UNITS.values():
        assert len({unit.lower() for unit in units}) == len(units)


@pytest.mark.parametrize(("text", "number"), [
    ("007", 7), ("0", 0), ("12", 12), ("13", None), ("120", None), ("", None), ("-1", None),
    ("1.0", None), ("\u0663", None),
])
def test_a_count_is_digits_up_to_a_bound(text, number):
    assert read_count(text, 12) == number


def test_numbers_and_words_end_as_they_are_read():
    assert [significant(value) for value in (2.0, 20.5, 1200.0)] == ["2", "20.5", "1,200"]
    assert join_words(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(("path", "value", "written"), [
    ("clocks.cpu.frequency_hz", 300_000_000, "300MHz"), ("clocks.cpu.frequency_hz", 1e6, "1MHz"),
    ("clocks.cpu.frequency_hz", 80.5e6, "80.5MHz"), ("clocks.cpu.frequency_hz", "2MHz", "2MHz"),
    ("power.voltage_v", 1.8, "1.8"), ("caches.l1d.enabled", True, "True"),
])
def test_changes_are_written_as_commands_take_them(path, value, written):
    assert write_setting(path, value) == f"{path}={written}"
