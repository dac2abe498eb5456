"""What a study varies: values, ranges, samples, and values that depend on the board."""

from __future__ import annotations

import pytest

from hwmodels.board.file import load_board
from twin.deployment.choice import list_each_runtime
from twin.errors import UsageError
from twin.studies import axes
from twin.studies.axes import (
    Axis,
    Space,
    list_clocks,
    make_space,
    read_axis,
    read_sample,
)
from twin.studies.points import Deployer


def test_every_combination_in_order_with_named_axes_first() -> None:
    space = Space(axes=(read_axis("placement.arena", "sram,dtcm"),
                        Axis(name="board", values=("A", "B")),
                        Axis(name="model", values=("kws",))))
    points = space.list_points()
    assert [axis.name for axis in space.axes] == ["model", "board", "placement.arena"]
    assert [(point["board"], point["placement.arena"]) for point in points] == [
        ("A", "sram"), ("A", "dtcm"), ("B", "sram"), ("B", "dtcm")]


def test_ranges_are_even_in_a_grid_and_refused_without_a_count() -> None:
    axis = read_axis("clocks.cpu.frequency_hz", "80..280MHz:5")
    assert axis.list_values({}) == ("80MHz", "130MHz", "180MHz", "230MHz", "280MHz")
    with pytest.raises(UsageError, match="COUNT"):
        read_axis("clocks.cpu.frequency_hz", "80..280MHz").list_values({})
    for wrong in ("280..80MHz:3", "80MHz..280:3", "1..2:0", "a..b"):
        with pytest.raises(UsageError, match="is not a range"):
            read_axis("x", wrong)


def test_lists_split_on_commas_or_on_semicolons_where_values_have_commas() -> None:
    assert read_axis("p", "a, b").values == ("a", "b")
    assert read_axis("offload.host", "conv_2d,12;none").values == ("conv_2d,12", "none")
    assert read_axis("p", [1, 2]).values == (1, 2)
    with pytest.raises(UsageError, match="empty"):
        read_axis("p", "a,,b")
    with pytest.raises(UsageError, match="twice"):
        read_axis("p", "a,a")


@pytest.mark.parametrize("method", ["sobol", "lhs", "random"])
def test_samples_fill_ranges_and_are_the_same_again(method: str) -> None:
    def draw() -> tuple:
        return make_space(["m"], ["b"], settings={"x": "0..1", "y": "a,b"},
                          sample=f"{method}:32").list_points()

    points = draw()
    assert points == draw() and len(points) == 32
    values = sorted(float(point["x"]) for point in points)
    assert values[0] < 0.2 and values[-1] > 0.8
    assert {point["y"] for point in points} == {"a", "b"}


@pytest.mark.parametrize("method", ["sobol", "lhs", "random"])
def test_a_sample_has_as_many_points_as_asked_for(method: str) -> None:
    for count in (1, 2, 5, 9):
        points = make_space(["m"], ["b"], settings={"x": "0..1"},
                            sample=f"{method}:{count}").list_points()
        assert len(points) == count


def test_a_sample_of_few_values_holds_none_twice() -> None:
    points = make_space(["m"], ["b"], settings={"y": "a,b"}, sample="sobol:64").list_points()
    assert [point["y"] for point in points] in (["a", "b"], ["b", "a"])


def test_samples_that_are_none_are_refused() -> None:
    for wrong in ("sobol", "sobol:0", "sobol:-1", "best:5", "sobol:1.5"):
        with pytest.raises(UsageError, match="sobol:500"):
            read_sample(wrong)


def test_an_axis_twice_is_refused_and_so_is_a_board_twice() -> None:
    with pytest.raises(UsageError, match="axis twice"):
        Space(axes=(read_axis("p", "a"), read_axis("p", "b")))
    with pytest.raises(UsageError, match="given twice"):
        make_space(["m"], ["b", "b"])


def test_clocks_of_a_board_are_its_own_and_the_top_of_each_lower_scale() -> None:
    # The table of the board file: VOS0 to VOS3 allow 280, 225, 160 and 88 MHz.
    assert list_clocks(load_board("nucleo_h7a3zi_q")) == ("280MHz", "225MHz", "160MHz", "88MHz")
    points = make_space(["m"], ["nucleo_h7a3zi_q", "rpi_pico"], clocks=["each"]).list_points()
    assert [point["clock"] for point in points if point["board"] == "rpi_pico"] == [
        "133MHz", "125MHz"]
    assert list_clocks(load_board("esp32c3_devkitm")) == (  # those its set-up can choose
        "160MHz", "80MHz", "40MHz", "20MHz", "10MHz")


def test_runtimes_of_a_board_are_those_it_may_have() -> None:
    pico, n6 = (list_each_runtime(load_board(name)) for name in ("rpi_pico", "stm32n6570_dk"))
    assert not any(name.startswith(("x-cube-ai", "st-edge-ai", "neural")) for name in pico)
    assert any(name.startswith("tflm-cmsis-nn") for name in pico)
    assert any(name.startswith("neural-art") for name in n6)


def test_a_closed_library_is_refused_on_another_makers_part_alone() -> None:
    """`each` does not list it there; a study that names it has a row with the reason."""
    other, own = Deployer().predict([
        {"model": "kws", "board": board, "runtime": "x-cube-ai@9.0.0"}
        for board in ("esp32c3_devkitm", "nucleo_l4r5zi")])
    assert (other.failure, other.reason) == ("runtime", (
        "x-cube-ai@9.0.0 is closed; esp32c3_devkitm has esp32c3, accepted: boards with parts "
        "named stm..., by board.soc of their file"))
    assert not own.failure


@pytest.mark.parametrize("values", ["1..2:1000000000000", "1..2:" + "9" * 5000, "1..2:1000001"])
def test_ranges_of_too_many_values_are_refused(values) -> None:
    with pytest.raises(UsageError, match="COUNT from 1 to 1,000,000"):
        read_axis("x", values)


def test_spaces_of_too_many_points_or_axes_are_refused(monkeypatch) -> None:
    with pytest.raises(UsageError, match="accepted: up to 100"):
        Space(axes=tuple(read_axis(f"a{number}", "1") for number in range(2000)))
    for digits in ("1e12", "9" * 5000, "\u00b2", "0", ""):
        with pytest.raises(UsageError, match="up to 1,000,000"):
            read_sample(f"sobol:{digits}")
    monkeypatch.setattr(axes, "MOST_POINTS", 1000)
    space = Space(axes=tuple(read_axis(name, "1..2:1000") for name in "abcdefghij"))
    with pytest.raises(UsageError, match="more than 1,000 combinations"):
        space.list_points()


def test_a_hundred_thousand_values_are_an_axis() -> None:
    assert len(read_axis("x", ",".join(map(str, range(100_000)))).values) == 100_000


def test_a_unit_a_path_has_nowhere_is_refused_before_anything_is_predicted() -> None:
    with pytest.raises(UsageError, match=r"frequency_hz: '80MB' is not a number of this unit; "
                                         r".*Hz, kHz, MHz, GHz"):
        read_axis("clocks.cpu.frequency_hz", "80..280MB:3")
    with pytest.raises(UsageError, match=r"'2ms'.*KiB"):
        read_axis("caches.dcache.size_bytes", "1KiB,2ms")
    assert read_axis("placement.arena", "2ms").values == ("2ms",)


def test_ranges_of_whole_numbers_hold_only_those() -> None:
    assert read_axis("network.batch", "1..4:4").list_values({}) == ("1", "2", "3", "4")
    assert read_axis("network.resolution", "16..49:3").list_values({}) == ("16", "33", "49")
    assert read_axis("caches.l1d.size_bytes", "4KiB..64KiB:5").list_values({}) == (
        "4KiB", "8KiB", "16KiB", "32KiB", "64KiB")
    points = make_space(["m"], ["b"], settings={
        "network.batch": "1..3", "caches.l1d.size_bytes": "2KiB..8KiB", "network.width": "0.5..1",
    }, sample="sobol:64").list_points()
    assert {point["network.batch"] for point in points} == {"1", "2", "3"}
    assert {point["caches.l1d.size_bytes"] for point in points} == {"2KiB", "4KiB", "8KiB"}
    assert len({point["network.width"] for point in points}) == 64
    with pytest.raises(UsageError, match="holds no whole number"):
        read_axis("network.batch", "1.2..1.8")
