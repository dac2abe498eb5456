"""The request for a device over time."""

from dataclasses import KW_ONLY

from hwmodels.files import File
from hwmodels.quantities import Settings
from twin.api.requests import AUTO, Calibration, Request, option, required
from twin.api.requests.values import read_pairs


def parse_keys(settings: list[str]) -> Settings:
    """Read KEY=VALUE words; a list of clocks is a list; raises `UsageError`."""
    return {key: [part.strip() for part in text[1:-1].split(",") if part.strip()]
            if text.startswith("[") and text.endswith("]") else text
            for key, text in read_pairs(settings, "KEY=VALUE", "sensor.hop=20ms").items()}


class RunScenario(Request):
    """A scenario, and what stands in place of its file's keys."""

    scenario: File = required(
        "", "SCENARIO", "A scenario of `twin scenario list`, or a .yaml file.")
    overrides: Settings | None = option(
        None, "--set", "KEY=VALUE", "A key of the file: board=nucleo_u575zi_q, sensor.hop=20ms, "
        "loads.0.busy=5ms, a what-if path below set.; may be given several times.",
        parse=parse_keys)
    _: KW_ONLY
    calibration: Calibration = AUTO
