"""Folded stacks as a picture, and stacks sampled by py-spy."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET

import pytest

from twin.errors import FirmwareError
from twin.network.zoo import build
from twin.program.image.compile import profile
from twin.reports.flamegraph import HEAD, WIDTH, draw_flamegraph

SVG = "{http://www.w3.org/2000/svg}"


def frames(text: str) -> dict[str, tuple[float, float, float]]:
    """Left edge, top and width by title."""
    found = {}
    for group in ET.fromstring(text).iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        found[group.find(f"{SVG}title").text.partition(":")[0]] = tuple(
            float(box.get(name)) for name in ("x", "y", "width"))
    return found


def test_widths_are_shares_and_callees_stand_on_callers():
    drawn = frames(draw_flamegraph(["net;0 conv;<dot> 30\n", "net;0 conv 10\n", "net;1 add 60\n"]))
    assert drawn["net"][2] == WIDTH and drawn["0 conv"][2] == pytest.approx(0.4 * WIDTH)
    assert drawn["<dot>"] == pytest.approx((0, HEAD, 0.3 * WIDTH))
    assert drawn["1 add"][0] == pytest.approx(drawn["0 conv"][2])  # beside it, to the right
    assert drawn["<dot>"][1] < drawn["0 conv"][1] < drawn["net"][1] < drawn["all"][1]
    assert frames(draw_flamegraph([])) == {"all": (0, HEAD, 0)}
    told = draw_flamegraph(["net 30\n"], title="a < b", unit="cycles")
    assert "a &lt; b" in told and "width: cycles, 30 in all" in told
    assert frames(draw_flamegraph(["a\x1b[2J\ud800 3\n"], title="\u202e"))["a\\x1b[2J\\ud800"]


def test_stacks_begin_at_the_layers_function():
    """Lines as py-spy writes them: Python's frames first, then those of the library."""
    graph = build("kws")
    lines = ["<module> (native.py:1);run_2 (model.c:9);matmul_s8 (kernels.so) 7",
             "<module> (native.py:1);run_0 (model.c:5);conv_s8 (a.c:1);fill_bytes (copy.h:2) 2",
             "<module> (native.py:1);run_2 (model.c:9);matmul_s8 (kernels.so) 1",
             "<module> (native.py:1);_find_and_load (importlib) 5"]
    assert list(profile._keep_kernels(graph, lines)) == [
        "kws;0 conv_2d;conv_s8;fill_bytes 2\n", "kws;2 conv_2d;matmul_s8 8\n"]


def test_a_profiler_that_may_not_watch_is_told(tmp_path, monkeypatch):
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\necho 'Permission denied: try running as root' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(profile, "find_profiler", lambda: str(program))
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    with pytest.raises(FirmwareError, match="Permission denied"):
        profile.sample_stacks(build("ad"), 0.1)
