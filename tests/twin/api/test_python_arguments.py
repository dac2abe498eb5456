"""Functions of Python take texts as the command line does, and name the fields they accept."""

import pytest

import twin
from hwmodels.errors import BoardError
from hwmodels.quantities import Settings
from twin.api.requests import Clock, Request, option, takes
from twin.api.requests.values import parse_settings, split_words
from twin.errors import UsageError


@pytest.fixture(scope="module")
def kws():
    return twin.deploy("kws", "nucleo_l4r5zi")


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
    assert ask("a", changes=None, counters=None) == Asked("a")  # As good as not given.


@pytest.mark.parametrize("given, message", [
    ({"clok_hz": 1}, r"ask: got an unexpected keyword argument 'clok_hz'; did you mean clock_hz\?"),
    ({"xyz": 1}, r"ask: got an unexpected keyword argument 'xyz'; accepted: changes, clock_hz, "),
    ({"name": "b"}, r"ask: multiple values for argument 'name'; accepted: changes, cl"),
    ({"clock_hz": "80"}, r"--clock '80' is not understood"),
    ({"shunt_ohm": "2ohm"}, r"shunt_ohm='2ohm' is a text; accepted: a number$"),
    ({"masked": "no"}, r"masked='no' is a text; accepted: True or False$"),
    ({"clock_hz": True}, r"^clock_hz=True is a bool; accepted: a number$"),
    ({"clock_hz": "80mHz"}, r"^--clock '80mHz' .*; mHz is none of them, did you mean MHz\?$"),
    ({"shunt_ohm": [1]}, r"^shunt_ohm=\[1\] is a list; accepted: a number$"),
    ({"changes": [1]}, r"^--set: PATH=VALUE is expected, or a feature"),
])
def test_what_is_wrong_is_a_usage_error_that_names_what_is_accepted(given, message):
    with pytest.raises(UsageError, match=message):
        ask("a", **given)


def test_options_of_a_measurement_are_read_as_fields_are():
    options = twin.MeasureOptions(clock_hz="80MHz", counters="a,b")
    assert options == twin.MeasureOptions(clock_hz=80e6, counters=("a", "b"))
    with pytest.raises(UsageError, match=r"^runs='3' is a text; accepted: a whole number$"):
        twin.MeasureOptions(runs="3")
    with pytest.raises(UsageError, match=r"^shunt_ohm='1ohm' is a text; accepted: a number$"):
        twin.PowerRuns(runs=3, shunt_ohm="1ohm")


def test_changes_are_taken_as_lists_of_texts(kws):
    asked = twin.what_if(kws, ["placement.weights=sram"])
    assert asked.after.deployment.weights == "sram"
    with pytest.raises(UsageError, match=r"replace: \['placement.*is no mapping; accepted: one of"):
        kws.replace(["placement.weights=sram"])


def test_a_limit_has_both_its_names_in_python(kws):
    for name in ("max_ram", "max_ram_bytes"):
        assert not twin.check(kws, **{name: "1KiB"}).met
        assert not twin.sweep("kws", "nucleo_l4r5zi", **{name: "1KiB"}).met


def test_clocks_are_hertz_or_texts_and_one_alone_a_list_of_one(kws):
    for clocks in ([80e6], 80e6, "80MHz", ["80MHz"]):
        row, = twin.sweep("kws", "nucleo_l4r5zi", clocks=clocks).rows
        assert row.clock_hz == 80e6
    assert twin.predict(kws, calibration=None).certainty is not None
    ported = twin.port(twin.deploy("kws", "nucleo_f401re"), "nucleo_l4r5zi")
    assert ported.prediction.time_us > 0


@pytest.mark.parametrize("call, message", [
    (lambda kws: twin.check(kws, max_ms=[1]), r"^max_ms=\[1\] is a list; accepted: a number or a"),
    (lambda kws: twin.check(kws, max_ms=True), r"^max_ms=True is a bool; accepted: a number or a "),
    (lambda kws: twin.check(twin.predict(kws), max_ms=5), r"is a Prediction; accepted: twin\.depl"),
    (lambda kws: twin.predict("kws"), r"^deployment='kws' is a text; accepted: twin\.deploy\("),
    (lambda kws: twin.explain(None), r"^term=None is a NoneType; accepted: a text$"),
    (lambda kws: twin.deploy("kws", "nucleo_l4r5zi", clok_hz=1), r"; did you mean clock_hz\?$"),
    (lambda kws: twin.deploy("kws", "nucleo_l4r5zi", runtimes="x"), r"; did you mean runtime\?$"),
    (lambda kws: twin.differentiate(kws, step=8.5), r"^step=8.5 is a float; accepted: a whole nu"),
    (lambda kws: twin.sweep("kws", "nucleo_l4r5zi", runtime="x"), r"; did you mean runtimes\?$"),
])
def test_what_is_wrong_in_python_is_one_line_with_what_is_accepted(kws, call, message):
    with pytest.raises(UsageError, match=message):
        call(kws)


def test_millihertz_are_no_clock_of_a_board():
    with pytest.raises(BoardError, match=r"mHz is none of them, did you mean MHz\?$"):
        twin.deploy("kws", "nucleo_l4r5zi", clock_hz="80mHz")
    slow = twin.deploy("kws", "nucleo_l4r5zi", clock_hz="80mhz")
    assert slow.board.core_clock.frequency_hz == 80e6


def test_functions_of_the_package_say_what_they_lack():
    with pytest.raises(UsageError, match=r"^check: missing a required argument: 'deployment'; "):
        twin.check()
    with pytest.raises(UsageError, match=r"^deployment='kws' is a text; accepted: twin\."):
        twin.check("kws", max_ms=3)
    with pytest.raises(UsageError, match="--clock '120' is not understood"):
        twin.import_log("tflm", "log.txt", clock_hz="120")
