"""From sleep to the first answer: the sum of its parts, wider than each."""

from __future__ import annotations

import dataclasses
import math

import pytest

import twin
from twin.studies.cold_start import RAMP_US, start_cold


def test_a_cold_start_is_the_sum_of_its_parts_with_an_interval() -> None:
    made = twin.predict(twin.deploy("ad", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026"),
                        temperature="cold")
    found = start_cold(made)
    parts = dict(found.parts)
    assert found.state == "stop2" and parts["wake-up"] == 8 and parts["clock ramp"] == RAMP_US
    assert parts["first inference"] == made.time_us and found.total_us == math.fsum(parts.values())
    held, own = found.interval, made.certainty.time_us
    assert held.level == own.level and held.low < found.total_us < held.high
    assert held.high - found.total_us > own.high - made.time_us  # Set-up errs, too.
    stated = start_cold(dataclasses.replace(made, certainty=None))
    assert stated.total_us == found.total_us and stated.interval is None


@pytest.mark.parametrize("board,runtime", [("host", "tflm-cmsis-nn@2026"),
                                           ("nucleo_l4r5zi", "cmsis-nn@6.0")])
def test_it_is_not_known_without_sleep_or_set_up(board, runtime) -> None:
    assert start_cold(twin.predict(twin.deploy("ad", board, runtime=runtime),
                                   temperature="cold")) is None


def test_cold_rows_have_it_and_warm_ones_do_not(tmp_path) -> None:
    path = tmp_path / "both.yaml"
    path.write_text("schema: 1\nname: both\nmodels: ad\nboards: nucleo_l4r5zi\n"
                    "runtimes: tflm-cmsis-nn@2026\ntemperatures: [warm, cold]\n"
                    "finding: {vary: temperature, figures: [time, cold_start]}\n")
    done = twin.run_study(path, tmp_path / "out")
    warm, cold = done.load_results().rows
    assert "cold_start_us" not in dict(warm.variables)
    made = twin.predict(twin.deploy("ad", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2026"),
                        temperature="cold")
    assert dict(cold.variables)["cold_start_us"] == pytest.approx(start_cold(made).total_us)
    assert "- first answer after sleep: cold " in (done.folder / "finding.md").read_text()
