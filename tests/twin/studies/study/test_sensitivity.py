"""Sensitivities: of a linear function Morris' effects are its known ones, whatever the axes are."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from twin.studies.axes import Axis, Span
from twin.studies.study import sensitivity
from twin.studies.study.sensitivity import _draw, _make, _settle

pytestmark = pytest.mark.skipif(find_spec("SALib") is None, reason="SALib is not installed")

AXES = (*(Axis(name=f"of {count}", values=tuple(map(str, range(count)))) for count in range(2, 8)),
        Axis(name="range", span=Span(low=0.0, high=5.0)),
        Axis(name="counted", span=Span(low=0.0, high=4.0, count=3)),
        Axis(name="whole", span=Span(low=0.0, high=2.0, steps=(0.0, 1.0, 2.0))))


@pytest.mark.parametrize("seed", range(3))
def test_effects_of_a_linear_function_are_those_over_the_whole_range(seed, monkeypatch) -> None:
    monkeypatch.setattr(sensitivity, "SEED", seed)
    slopes = np.linspace(-3.0, 9.0, len(AXES))
    shares, scales = _settle(AXES, {}, _draw(AXES, "morris", 8))
    values = np.array([sum(
        slope * float(axis.at(min(float(share), 1 - 1e-9 if axis.span is None else 1.0), {}))
        for axis, share, slope in zip(AXES, row, slopes, strict=True)) for row in shares])
    found = _make(SimpleNamespace(name="linear"), AXES, ("m", "b"), "time_us", "morris", shares,
                  values, scales)
    lengths = {axis.name: axis.span.high if axis.span else len(axis.values) - 1 for axis in AXES}
    for axis, slope in zip(AXES, slopes, strict=True):
        one = next(one for one in found.influences if one.axis == axis.name)
        assert one.index == pytest.approx(abs(slope) * lengths[axis.name], rel=1e-5)
        assert one.spread == pytest.approx(0.0, abs=1e-3)
        assert one.high - one.low == pytest.approx(slope * lengths[axis.name])
