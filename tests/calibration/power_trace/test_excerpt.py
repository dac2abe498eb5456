"""One inference of a recording: where its layers lie, thinned without losing a peak, kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibration.errors import MeasurementError
from calibration.power_trace.excerpt import (
    EXCERPT_FILE,
    MOST_SAMPLES,
    cut_excerpt,
    dump_excerpt,
    read_excerpt,
)
from calibration.power_trace.trace import Meter, PowerTrace

TIMES_US, LEVELS_MW = (2000.0, 5000.0, 1000.0), (60.0, 105.0, 30.0)


def make_recording(period_us: float = 10.0, marks: str = "layers") -> PowerTrace:
    """Two inferences between rests, from 3 ms on; a spike in the second layer of the first."""
    time_us, power_mw, edges, now = [], [], [], 0.0
    for span, level in [(3000.0, 5.0)] + 2 * [
            *zip(TIMES_US, LEVELS_MW, strict=True), (4000.0, 5.0)]:
        edges.append(now)
        stop = now + span
        while now < stop - 1e-9:
            now += period_us
            time_us.append(now)
            power_mw.append(500.0 if abs(now - 6000.0) < period_us / 2 else level)
    chosen = {"layers": edges[1:5] + edges[5:9], "window": [edges[1], edges[8]], "none": []}[marks]
    return PowerTrace(time_us=np.array(time_us), power_mw=np.array(power_mw),
                      meter=Meter(name="made"), marks_us=tuple(chosen), mark_sd_us=1.0)


@pytest.mark.parametrize(("marks", "options", "where"), [
    ("layers", {}, "marks"), ("window", {"runs": 2}, "times"),
    ("none", {"by_shape": True}, "shape")])
def test_edges_are_those_of_the_layers(marks, options, where) -> None:
    found = cut_excerpt(make_recording(marks=marks), (0, 1, 2), TIMES_US, **options)
    assert found.edges_from == where
    assert found.edges_us == pytest.approx((0.0, 2000.0, 7000.0, 8000.0), abs=60)
    assert found.time_us[0] >= -0.06 * 8000 and found.time_us[-1] <= 1.06 * 8000


def test_a_peak_survives_thinning() -> None:
    found = cut_excerpt(make_recording(period_us=1.0), (0, 1, 2), TIMES_US)
    assert len(found.time_us) <= MOST_SAMPLES and max(found.power_mw) == 500.0
    assert list(found.time_us) == sorted(found.time_us)


def test_it_is_kept_and_read_again(tmp_path) -> None:
    found = cut_excerpt(make_recording(), (0, 1, 2), TIMES_US)
    (tmp_path / EXCERPT_FILE).write_bytes(dump_excerpt(found)[EXCERPT_FILE])
    assert read_excerpt(tmp_path) == found


@pytest.mark.parametrize("change", [
    {"layers": [0]}, {"power_mw": [1.0]}, {"time_us": ["x"]}, {"edges_from": "guess"},
    {"power_mw": None}])
def test_what_is_none_is_refused(tmp_path, change) -> None:
    with pytest.raises(MeasurementError, match="twin energy"):
        read_excerpt(tmp_path)
    whole = dump_excerpt(cut_excerpt(make_recording(), (0, 1, 2), TIMES_US))[EXCERPT_FILE]
    (tmp_path / EXCERPT_FILE).write_text(json.dumps(json.loads(whole) | change))
    with pytest.raises(MeasurementError, match=f"{EXCERPT_FILE}: is not an excerpt"):
        read_excerpt(tmp_path)
