"""Functions of Python take texts as the command line does, and name the fields they accept."""

import pytest

import twin
from hwmodels.quantities import Settings
from twin.api.requests import Clock, Request, option, takes
from twin.api.requests.values import parse_settings, split_words
from twin.errors import UsageError


class Asked(Request):
    """Fields of each kind."""

    name: str
    clock_hz: Clock = None
    shunt_ohm: float | None = option(None, "--shunt", "OHM", "Resistance.")
    masked: bool = option(False, "--masked", None, "Masked.")
    counters: tuple[str, ...] = option((), "--counters", "NAMES", "By comma.", parse=split_words)
    changes: Settings | None = option(None, "--set", "PATH=VALUE", "Paths.", parse=parse_settings)


@takes(Asked)
def ask(asked: Asked) -> Asked:
    """Return what was asked."""
    return asked


def test_a_text_is_read_as_on_the_command_line_where_a_field_takes_none():
    asked = ask("80MHz", clock_hz="80MHz", counters="a,b", changes="placement.weights=sram")
    assert asked == Asked("80MHz", clock_hz=80e6, counters=("a", "b"),
                          changes={"placement.weights": "sram"})
    assert ask("a", changes=["a.b=1", "c.d=2"]).changes == {"a.b": "1", "c.d": "2"}


def test_values_of_the_fields_own_types_are_as_given():
    given = {"clock_hz": 80e6, "shunt_ohm": 2, "masked": True, "counters": ["a"],
             "changes": {"a.b": 1}}
    assert ask("a", **given) == Asked("a", **given)
    assert ask("a", changes=None).changes is None


@pytest.mark.parametrize("given, message", [
    ({"clok_hz": 1}, r"ask: got an unexpected keyword argument 'clok_hz'; accepted: name, "
                     r"clock_hz, shunt_ohm, masked, counters, changes$"),
    ({"name": "b"}, r"ask: multiple values for argument 'name'; accepted: name, "),
    ({"clock_hz": "80"}, r"--clock '80' is not understood"),
    ({"shunt_ohm": "2ohm"}, r"shunt_ohm='2ohm' is a text; accepted: a number$"),
    ({"masked": "no"}, r"masked='no' is a text; accepted: True or False$"),
])
def test_what_is_wrong_is_a_usage_error_that_names_what_is_accepted(given, message):
    with pytest.raises(UsageError, match=message):
        ask("a", **given)


def test_options_of_a_measurement_are_read_as_fields_are():
    options = twin.MeasureOptions(clock_hz="80MHz", counters="a,b")
    assert options == twin.MeasureOptions(clock_hz=80e6, counters=("a", "b"))
    with pytest.raises(UsageError, match=r"^runs='3' is a text; accepted: a number$"):
        twin.MeasureOptions(runs="3")
    with pytest.raises(UsageError, match=r"^shunt_ohm='1ohm' is a text; accepted: a number$"):
        twin.PowerRuns(runs=3, shunt_ohm="1ohm")


def test_a_limit_has_both_its_names_in_python():
    deployment = twin.deploy("kws", "nucleo_l4r5zi")
    for name in ("max_ram", "max_ram_bytes"):
        assert not twin.check(deployment, **{name: "1KiB"}).met
        assert not twin.sweep("kws", "nucleo_l4r5zi", **{name: "1KiB"}).met


def test_functions_of_the_package_say_what_they_lack():
    with pytest.raises(UsageError, match=r"^check: missing a required argument: 'deployment'; "):
        twin.check()
    with pytest.raises(UsageError, match=r"^check: deployment='kws' is a text; accepted: twin\."):
        twin.check("kws", max_ms=3)
    with pytest.raises(UsageError, match="--clock '120' is not understood"):
        twin.import_log("tflm", "log.txt", clock_hz="120")
