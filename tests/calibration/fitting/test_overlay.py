"""Overlays: written and read again, refused by file and key, found from near to far, as shipped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.errors import FitError
from calibration.fitting.cell import list_releases, locate
from calibration.fitting.networks import name_family, name_network
from calibration.fitting.overlay import (
    BandModel,
    Data,
    Entry,
    Learnt,
    Overlay,
    Support,
    doubt_powers,
    dump_overlay,
    find_entry,
    list_shipped,
    pack_covariance,
    read_overlay,
    read_shipped,
    write_overlay,
)

BAND = BandModel(down=1.5, up=1.8, level=0.9, basis="conformal", count=20)
COVARIANCE = np.array([[0.04, 0.01], [0.01, 0.09]])


def make_entry(board: str | None, core: str | None, runtime: str = "lib@2", log=(0.1, -0.5)):
    return Entry(board=board, core=core, runtime=runtime, support=Support(), time=Learnt(
        log=log, covariance=pack_covariance(COVARIANCE), prior_sd=(0.3, 0.4), network_sd=0.05,
        row_sd=0.03, band=BAND, rows=4, unidentified=("memory",)))


def make_overlay(*entries: Entry) -> Overlay:
    return Overlay(schema=1, library="lib", made_with={"embedded-twin": "0"},
                   data=Data(sha256="0" * 64, rows=4, use="fit", sources=("here:1",)),
                   time_prices=("core", "memory"), energy_prices=(), entries=entries)


def test_an_overlay_survives_its_file(tmp_path: Path) -> None:
    overlay = make_overlay(make_entry("one", "cortex-m4"))
    path = write_overlay(tmp_path / "one.yaml", overlay)
    again = read_overlay(path)
    assert again == overlay
    assert dump_overlay(again) == path.read_text(encoding="utf-8")
    estimate = again.entries[0].time.estimate(again.time_prices)
    assert estimate.covariance == pytest.approx(COVARIANCE)
    assert estimate.factors == pytest.approx(np.exp([0.1, -0.5]))


def test_doubt_about_powers_adds_to_those_measured_on_this_board_alone() -> None:
    timed = make_entry("one", "cortex-m4")
    energy = replace(timed.time, row_sd=0.4)
    own, lent = replace(timed, energy=energy), replace(timed, energy=energy, powers_of="another")
    doubted = doubt_powers(replace(make_overlay(timed), energy_prices=("core", "memory"),
                                   entries=(timed, own, lent)), 0.3)
    assert doubted.entries == (timed, replace(own, energy=replace(energy, row_sd=0.5)), lent)
    assert doubted.data.kinds == ("published", "doubted")


def test_a_file_of_before_builds_had_options_is_read(tmp_path: Path) -> None:
    path = write_overlay(tmp_path / "one.yaml", make_overlay(make_entry("one", "cortex-m4")))
    new = read_overlay(path)
    text = path.read_text(encoding="utf-8").replace(
        "  powers_of: ''", "  powers_of: ''\n  publisher: zoo\n  publisher_factor: 1.1")
    assert "publisher" in text
    path.write_text(text, encoding="utf-8")
    assert read_overlay(path) == new


@pytest.mark.parametrize(("old", "new", "words"), [
    ("down: 1.5", "down: -1.5", r"one\.yaml:entries\.0\.time\.band\.down: "),
    ("board: one", "bord: one", r"one\.yaml:entries\.0\.board: "),
    ("schema: 1", "schema: 2", r"one\.yaml:schema: "),
    ("covariance: [0.04, 0.01, 0.09]", "covariance: [0.04, 0.9, 0.09]", "negative variance"),
    ("log: [0.1, -0.5]", "log: [0.1]", "1 factors need 1 covariances"),
    ("log: [0.1, -0.5]", "log: [0.1, 30.0]", "log of a factor is 30; accepted: -11.5 to 11.5"),
    ("kind: calibration", "kind: [", "cannot be read"),
    ("sha256: '" + "0" * 64, "sha256: '" + "0" * 63 + "X", "X'; accepted: 64 digits 0 to f"),
    ("sha256: '" + "0" * 64, "sha256: '" + "0" * 63, r"data\.sha256: "),
])
def test_a_bad_file_is_refused_by_key(tmp_path: Path, old, new, words) -> None:
    path = write_overlay(tmp_path / "one.yaml", make_overlay(make_entry("one", "cortex-m4")))
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(FitError, match=words):
        read_overlay(path)
    with pytest.raises(FitError, match=r"gone\.yaml: cannot be read"):
        read_overlay(tmp_path / "gone.yaml")
    (tmp_path / "none.yaml").write_text("", encoding="utf-8")
    with pytest.raises(FitError, match=r"none\.yaml: is empty; accepted: .* that `twin cal"):
        read_overlay(tmp_path / "none.yaml")


def test_the_nearest_entry_is_found() -> None:
    own, core, none = (make_entry("one", "cortex-m4"), make_entry(None, "cortex-m4"),
                       make_entry(None, None))
    overlay = make_overlay(none, core, own)

    def find(board: str, model: str, runtime: str = "lib@2") -> Entry | None:
        return find_entry(overlay, board=board, core=model, runtime=runtime)

    assert find("one", "cortex-m4") is own
    assert find("two", "cortex-m4") is core
    assert find("three", "cortex-m7") is none
    assert find("one", "cortex-m4", "lib@3") is None
    former = make_overlay(make_entry("mine", "rv32imac"))
    assert find_entry(former, board="mine", core="rv32imc", runtime="lib@2") is not None


def test_releases_of_a_library_know_their_order() -> None:
    cells = [locate("b", "c", runtime) for runtime in ("x-cube-ai@7.3.0", "x-cube-ai@9.0.0",
                                                       "st-edge-ai@3.0.0")]
    assert {cell.library for cell in cells} == {"x-cube-ai"}
    assert [cell.release for cell in cells] == sorted(cell.release for cell in cells)
    assert locate("b", "c", "own@1").library == "own@1"
    assert list_releases("own@1") == (("own@1", 0.0),)


def test_one_network_under_two_names_is_one() -> None:
    assert name_network("resnet_v1_8_32_tfs_int8__60bf39f158") == name_network("ic") == "ic"
    assert name_family("vww") == name_family("mobilenet_v1_0.25_96_fft")
    assert name_family("own") == "own"


@pytest.mark.parametrize("path", list_shipped(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_shipped_overlays_can_be_read_and_say_what_they_rest_on(path: Path) -> None:
    overlay = read_overlay(path)
    assert overlay.library == path.parent.name
    assert overlay.data.use == "fit" and overlay.data.rows > 100
    assert not [label for label in overlay.data.sources if "test" in label]
    runtimes = {runtime for runtime, _ in list_releases(overlay.library)}
    for entry in overlay.entries:
        assert entry.runtime in runtimes
        assert entry.board == (None if path.stem == "unmeasured" else path.stem)
        # nobody claims more parameters than the issue of this project allows four rows to carry
        if entry.time.rows and entry.time.rows <= 4:
            assert entry.time.effective_parameters <= 3
        # knowing more cannot make a price less certain than its prior
        sds = np.sqrt(np.diag(entry.time.matrix()))
        assert (sds <= np.array(entry.time.prior_sd) * (1 + 1e-6)).all()


def test_a_board_without_an_overlay_gets_the_one_for_strangers() -> None:
    own, unseen_entry = (read_shipped("x-cube-ai", board) for board
                         in ("nucleo_l4r5zi", "unheard_of"))
    assert own is not None and own.entries[0].board == "nucleo_l4r5zi"
    assert unseen_entry is not None and all(entry.board is None for entry in unseen_entry.entries)
    assert read_shipped("no such library", "nucleo_l4r5zi") is None
