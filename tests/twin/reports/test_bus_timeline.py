"""The bus timeline: every burst twice, every wait once, and who is who."""

from __future__ import annotations

import numpy as np
import pytest

from hwmodels.bus.bursts import HELD
from hwmodels.bus.events import WAIT, simulate_bus
from hwmodels.bus.interconnect import Interconnect, Master, Slave, Stream

pytest.importorskip("matplotlib", reason="pictures need the plot extra")

from twin.reports.figures.bus_timeline import draw_bus_figure
from twin.reports.figures.canvas import save_figure

BUS = Interconnect(clock_hz=200e6, masters=(Master(name="core", clock_hz=400e6),
                                            Master(name="dma")),
                   slaves=(Slave(name="sram", banks=2), Slave(name="flash")))


def make_run(bursts=8):
    number = np.arange(bursts)
    return simulate_bus(BUS, [
        Stream(master="core", slave="sram", beats=2, think_cycles=3, count=bursts),
        Stream(master="dma", slave=number % 2, beats=4)])


def texts_of(figure):
    import matplotlib.text

    return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def bars_of(figure):
    """(row, start, width) of every bar."""
    boxes = [path.get_extents() for bars in figure.axes[0].collections if bars.get_hatch() is None
             for path in bars.get_paths() if len(path.vertices) > 2]
    return [(round((box.y0 + box.y1) / 2), box.x0, box.width) for box in boxes]


def test_every_burst_is_a_bar_of_its_master_and_of_its_bank():
    run = make_run()
    bars = bars_of(draw_bus_figure(run, "made"))
    held = run.bursts.bursts[:, HELD] / run.bursts.bus_period
    # Rows 0 and 1 are the masters, 2 and 3 the banks of the SRAM, 4 the flash.
    assert sum(row < 2 for row, _, _ in bars) == sum(row >= 2 for row, _, _ in bars) == 16
    for rows in ((0, 1), (2, 3, 4)):
        assert sum(width for row, _, width in bars if row in rows) == pytest.approx(held.sum())
    assert not [row for row, _, _ in bars if row == 3]


def test_waits_are_hatched():
    run = make_run()
    waits = [path for bars in draw_bus_figure(run, "made").axes[0].collections
             if bars.get_hatch() for path in bars.get_paths()]
    assert len(waits) == np.count_nonzero(run.times[:, WAIT]) > 0


def test_it_says_what_it_shows():
    text = texts_of(draw_bus_figure(make_run(), "made"))
    for words in ("made", "predicted", "200 MHz", "round robin", "core", "dma", "sram[0]",
                  "sram[1]", "flash", "waits for others", "bus cycles"):
        assert words in text


@pytest.mark.parametrize("bursts", [0, 3000])
def test_nothing_and_much(tmp_path, bursts):
    """Without a window at most the first bursts are drawn."""
    run = simulate_bus(BUS, []) if not bursts else make_run(bursts)
    figure = draw_bus_figure(run, "made")
    assert len(bars_of(figure)) < 2 * 200
    told = " ".join(texts_of(figure).split())
    assert ("% of the time, 15" if bursts else "all 0 bursts") in told
    assert save_figure(figure, tmp_path / "bus.png").stat().st_size > 1000
