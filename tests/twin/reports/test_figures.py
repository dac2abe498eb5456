"""Pictures: what is on them, at one layer and at a hundred, and how they reach the disk."""

import itertools
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from made_predictions import make_prediction

from calibration.microbench.machine import Machine, MemoryFound
from hwmodels.board.file import load_board
from hwmodels.counts import CAUSE_GROUPS, CAUSES
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.pricing.inference import predict
from twin.pricing.roofs import load_bytes_per_cycle, memory_bytes_per_second, peak_macs_per_cycle

pytest.importorskip("matplotlib", reason="pictures need the plot extra")


from twin.reports.figures.arena import draw_arena_figure
from twin.reports.figures.beside import draw_published
from twin.reports.figures.canvas import fold_text, new_figure, place_labels, save_figure
from twin.reports.figures.layers import draw_layer_figure
from twin.reports.figures.overview import check_target, draw_overview, write_pictures
from twin.reports.figures.roofline import draw_roofline_figure
from twin.reports.figures.waterfall import draw_bill_figure
from twin.reports.palette import CAUSE_STYLES, SERIES, lightness
from twin.reports.roofline import list_sides

DRAWN = (draw_layer_figure, draw_bill_figure, draw_roofline_figure, draw_arena_figure,
         draw_overview)


def texts_of(figure) -> str:
    import matplotlib.text

    return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


@pytest.mark.parametrize("draw", DRAWN)
def test_every_picture_says_what_it_shows(draw):
    text = texts_of(draw(make_prediction(1)))
    for word in ("predicted", "made", "nucleo_l4r5zi", "120 MHz"):
        assert word in text


def test_a_hundred_layers_get_a_hundred_labels_with_room_for_each():
    figure = draw_overview(make_prediction(100))
    axes = figure.axes[0]
    assert len(axes.get_yticklabels()) == 100
    # 8-point labels need 8/72 inch each; the sheet gives a layer twice that.
    assert figure.get_figheight() / 100 > 8 / 72


def test_stacked_bars_are_as_long_as_the_layers_take():
    prediction = make_prediction(4)
    axes = draw_layer_figure(prediction).axes[0]
    for row, layer in enumerate(prediction.layers):
        end = max(bar.get_x() + bar.get_width() for bar in axes.patches
                  if abs(bar.get_y() + bar.get_height() / 2 - row) < 1e-9)
        assert end == pytest.approx(layer.time_us / 1e3)


def test_waterfall_ends_at_the_total():
    prediction = make_prediction()
    axes = draw_bill_figure(prediction).axes[0]
    *causes, total = axes.patches
    assert total.get_width() == pytest.approx(prediction.time_us / 1e3)
    assert sum(bar.get_width() for bar in causes) == pytest.approx(total.get_width())
    for bar, following in itertools.pairwise(causes):
        assert following.get_x() == pytest.approx(bar.get_x() + bar.get_width())


def test_every_cause_has_a_look_of_its_own():
    assert tuple(CAUSE_STYLES) == CAUSES
    assert len(set(CAUSE_STYLES.values())) == len(CAUSES)
    hues = {group: {CAUSE_STYLES[cause][0] for cause in causes}
            for group, causes in CAUSE_GROUPS.items()}
    assert not hues["compute"] & hues["memory"]


def test_roofline_draws_every_layer_with_macs_below_labelled_roofs():
    prediction = make_prediction(20)
    figure = draw_roofline_figure(prediction)
    points = sum(len(collection.get_offsets()) for collection in figure.axes[0].collections)
    assert points == 20
    assert "all 20 on the cortex-m4 lie below every roof" in " ".join(texts_of(figure).split())
    assert "2 MAC/cycle" in texts_of(figure)
    assert "flash (weights), uncached: 1.33 B/cycle" in texts_of(figure)


def test_roofs_follow_from_board_and_core():
    board = load_board("nucleo_l4r5zi")
    # Armv7E-M: SMLAD does two MACs and a Cortex-M4 issues one a cycle (DDI0439, 1 cycle).
    assert peak_macs_per_cycle(board, "int8") == 2.0
    # Loads pipeline to one word a cycle (DDI0439); in steady state that is 4 bytes.
    assert load_bytes_per_cycle(board) == pytest.approx(4.0, rel=0.3)
    # 8 bytes per array read of 1 + 5 wait states at 120 MHz; SRAM: 4 bytes per bus cycle.
    assert memory_bytes_per_second(board, board.memory("flash")) == pytest.approx(160e6)
    assert memory_bytes_per_second(board, board.memory("sram")) == pytest.approx(480e6)
    # VMLADAVA.S8: 16 lanes in two cycles (four beats, two per cycle).
    assert peak_macs_per_cycle(load_board("apollo510_evb"), "int8") == 8.0


def test_arena_map_draws_each_buffer_once():
    prediction = make_prediction(6)
    axes = draw_arena_figure(prediction).axes[0]
    # Six tensors and one scratch buffer.
    assert len(axes.patches) - 1 == 7  # the stairs of live bytes are a patch, too


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_pictures_are_written_whole_and_the_same_twice(tmp_path, suffix):
    first, second = (save_figure(draw_bill_figure(make_prediction(2)), tmp_path / f"{name}{suffix}")
                     for name in "ab")
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [first.name, second.name]


def test_a_folder_gets_every_picture(tmp_path):
    written = write_pictures(make_prediction(2), f"{tmp_path}/")
    assert {path.name for path in written} == {
        f"{name}.png" for name in ("sheet", "layers", "bill", "roofline", "arena", "energy",
                                   "shares", "utilisation", "memories", "layerwise_macs",
                                   "layerwise_activation_memory")}


def test_other_suffixes_are_refused_before_anything_is_drawn(tmp_path):
    with pytest.raises(UsageError, match=r"\.png, \.svg, \.pdf"):
        check_target("picture.bmp")
    check_target(str(tmp_path))


def test_names_are_drawn_as_they_are_and_steer_nothing(tmp_path):
    """Dollar signs begin no formula, control characters are escapes, long names are cut."""
    name = "$x_$\\frac{\x1b\u202e" + "n" * 9_000
    with new_figure(30, 1, f"a · {name}", "b") as figure:
        axes = figure.subplots()
        axes.set_yticks([0, 1], [name, "$y_$"])
    text = save_figure(figure, tmp_path / "x.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert "\x1b" not in text and "\u202e" not in text
    assert len(text) < 200_000 and texts_of(figure).count("nnn ... nnn") >= 2


def test_drawing_leaves_the_users_style_alone():
    import matplotlib

    before = matplotlib.rcParams["axes.spines.top"]
    draw_bill_figure(make_prediction(1))
    assert matplotlib.rcParams["axes.spines.top"] == before


def make_comparison(**fields):
    row = SimpleNamespace(runtime="made@1.0", edition="v1.0", submitter="Maker", clock_hz=120e6,
                          latency_ms=100.0, energy_uj=fields.pop("published_uj", 5000.0))
    values = {"prediction": None, "predicted_ms": 110.0, "predicted_uj": 4000.0, "stood_in": False,
              "latency_ratio": 1.1, "energy_ratio": 0.8} | fields
    return SimpleNamespace(row=row, **values)


def test_published_bars_carry_the_ratio():
    board = load_board("nucleo_l4r5zi")
    figure = draw_published("kws", board, [make_comparison(), make_comparison(stood_in=True)])
    text = texts_of(figure)
    for words in ("predicted beside published", "kws on nucleo_l4r5zi", "ratio 1.10", "ratio 0.80",
                  "latency of an inference, ms", "energy of an inference, mJ",
                  "another version of the runtime"):
        assert words in text


def test_published_energy_is_left_out_where_one_side_does_not_know_it():
    board = load_board("nucleo_l4r5zi")
    figure = draw_published("kws", board, [make_comparison(predicted_uj=None)])
    assert len(figure.axes) == 1


def test_the_roofline_of_an_accelerator_has_its_own_roofs_and_cycles():
    deployment = deploy("ic", "stm32n6570_dk", runtime="neural-art")
    npu, = list_sides(predict(deployment))
    assert (npu.peak, npu.clock) == (288, "npu")  # four units of 72
    # NIC at 900 MHz moves 8 bytes a cycle, octal flash at 200 MHz 2; per cycle of 1 GHz
    assert dict(npu.roofs) == pytest.approx({"npuRAM3": 7.2, "octoFlash": 0.4})
    for layer, cycles in npu.points:
        assert cycles == layer.bill.cycles("npu") and layer.macs / cycles <= npu.peak
    split = predict(deployment.replace({"offload.host": "0"}))
    sides = list_sides(split)
    assert [side.clock for side in sides] == ["npu", "cpu"]
    assert [layer.index for layer, _ in sides[1].points] == [0]
    figure = draw_roofline_figure(split)
    assert "neural-art NPU" in texts_of(figure) and "cortex-m55" in texts_of(figure)
    assert "attained, MAC per NPU cycle" in texts_of(figure)


def test_measured_roofs_stand_in_for_stated_ones():
    def memory(name, rate):
        return MemoryFound(name=name, levels=(), line_bytes=None, ways=None, ways_tried=0,
                           miss_cost=0.0, read_bytes=rate, write_bytes=None)

    machine = Machine(counter="cpu_cycles", kind="measured", memories=(memory("flash", 0.75),),
                      code=(), macs={"int8": 1.5}, fed_macs=None, branch=None, call=None)
    texts = texts_of(draw_roofline_figure(make_prediction(), machine))
    assert "compute: 1.5 MAC/cycle" in texts
    assert "flash (weights), measured: 0.75 B/cycle" in texts
    # what was not measured keeps its stated roof, and says so
    assert "(arena), uncached" in texts


def test_causes_and_series_are_told_apart_in_grey():
    for (_, (one, hatch)), (_, (other, beside)) in itertools.combinations(CAUSE_STYLES.items(), 2):
        assert hatch != beside or abs(lightness(one) - lightness(other)) > 0.12
    for part in (1, 2, 3):  # By mark, by dashes or by hatch alone.
        assert len({str(look[part]) for look in SERIES}) == len(SERIES)


def test_headings_fold_where_they_are_longer_than_the_sheet():
    parts = [f"part {number} of it" for number in range(12)]
    assert fold_text("short", 8.0, 9) == ["short"]
    lines = fold_text(" · ".join(parts), 4.0, 9)
    assert len(lines) > 2 and " · ".join(lines) == " · ".join(parts)
    with new_figure(4.0, 2.0, "title", " · ".join(parts)) as figure:
        assert figure.get_figheight() > 2.4
    figure.draw_without_rendering()
    for text in figure.texts:
        assert text.get_window_extent().x1 <= figure.bbox.x1


def test_labels_cover_none_and_say_how_many_share_one():
    with new_figure(4.0, 3.0, "labels", "of one place and of others") as figure:
        axes = figure.subplots()
        axes.set_xlim(0, 10)
        axes.set_ylim(0, 10)
        place_labels(axes, [(5.0, 5.0, str(number)) for number in range(100, 120)]
                     + [(1.0, 1.0, "far")])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts if "," not in text.get_text()]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert any("+" in text.get_text() for text in axes.texts)
    assert "far" in texts_of(figure)
