"""Tuning: predicted order, counted on a virtual board, and how often the two agree."""

from pathlib import Path

import pytest

pytest.importorskip("unicorn", reason="needs unicorn")

from made_networks import needs_tools

from hwmodels.errors import ToolMissingError
from twin.api.commands.tune import write_tuned
from twin.errors import UsageError
from twin.network.zoo.builder import Builder
from twin.pricing.inference import predict
from twin.program.image.compile.verification import BoardRun, LayerRun
from twin.program.image.tuning import Candidate, Tuning, tune
from twin.studies.study.file import load_study


def candidate(tile: int, cycles: float, layers: tuple[float, ...],
              counts: tuple[float, ...] | None) -> Candidate:
    run = None if counts is None else BoardRun(
        counter="cycles", simulated=True, total=sum(counts), setup=0.0, layers=tuple(
            LayerRun(index=i, op="conv_2d", name=str(i), count=count, equal=True)
            for i, count in enumerate(counts)))
    return Candidate(tile=tile, level="O2", cycles=cycles, layer_cycles=layers, ram_bytes=0,
                     run=run)


def test_agreement_is_counted_by_layer_and_by_pair() -> None:
    # Layer 0: predicted best is the first, counted best the second. Layer 1: both the first.
    # Layer 2 does not differ. Of three pairs two are in the order predicted.
    tuned = Tuning(deployment=None, virtual="v", candidates=(  # type: ignore[arg-type]
        candidate(2, 30, (10, 10, 10), (12, 8, 5)), candidate(4, 31, (11, 10, 10), (9, 9, 5)),
        candidate(8, 40, (20, 10, 10), (20, 20, 5)), candidate(16, 50, (20, 20, 10), None)))
    assert tuned.kept.tile == 4 and not tuned.best_was_best
    assert tuned.layers == (1, 2) and tuned.pairs == (2, 3)
    assert [one.tile for one in tuned.measured] == [4, 2, 8]


@needs_tools("arm-none-eabi-gcc", "make")
def test_the_best_few_are_built_and_run(tmp_path: Path) -> None:
    net = Builder("small", 5)
    x = net.conv(net.input((1, 8, 8, 4)), 8, 3)
    graph = net.finish(net.softmax(net.fully_connected(net.flatten(x), 3)))
    told: list[tuple[int, int, str]] = []
    tuned = tune(graph, "nucleo_l4r5zi", predict, virtual="unicorn-m4", tiles=(1, 2, 8), best=2,
                 on_progress=lambda *step: told.append(step))
    assert told == [(place, 2, f"tile {one.tile} at O2")
                    for place, one in enumerate(tuned.candidates[:2])]
    assert len(tuned.candidates) == 3 and len(tuned.measured) == 2
    assert tuned.candidates[-1].tile == 1  # A window at a time shares no weight.
    assert tuned.kept.run is not None and tuned.kept.run.is_right
    write_tuned(tuned, "ad", str(tmp_path / "tuned.yaml"))
    study = load_study(str(tmp_path / "tuned.yaml"))
    assert study.name == "tuned_small" and {**study.cases}["tuned"] == {
        "runtime": "firmware@O2", "kernels.tile": f"{tuned.kept.tile}"}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="accepted: 1, 2, 4"):
        tune("kws", "nucleo_l4r5zi", predict, virtual="unicorn-m4", tiles=(3,))
    with pytest.raises(UsageError, match="one build or more"):
        tune("kws", "nucleo_l4r5zi", predict, virtual="unicorn-m4", best=0)


def test_without_the_boards_extra_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibration.virtual_board.find_spec",
                        lambda name: None if name == "capstone" else object())
    monkeypatch.setattr("twin.program.image.tuning.deploy",
                        lambda *_, **__: pytest.fail("was deployed"))
    with pytest.raises(ToolMissingError, match="needs: the extra 'boards'"):
        tune("kws", "nucleo_l4r5zi", predict, virtual="unicorn-m4", best=1)
