"""Which prices hold where: releases in their order, whose builds and whose powers are taken."""

from __future__ import annotations

import pytest

from calibration.fitting.cell import (
    UNSEEN,
    UNSEEN_RUNTIME,
    Cell,
    find_series,
    known_power,
    list_measured,
    list_releases,
    locate,
    locate_power,
)


def cell(board="b", library="lib", release=0.0, series="", core="m4"):
    return Cell(board=board, core=core, library=library, release=release, series=series)


def test_releases_of_a_library_stand_in_their_order():
    library = locate("b", "m4", "x-cube-ai@7.1.0").library
    positions = dict(list_releases(library))
    ours = [f"x-cube-ai@{version}" for version in ("7.1.0", "7.3.0", "8.0.0", "8.1.0", "9.0.0",
                                                   "10.0.0")]
    assert [positions[one] for one in ours] == sorted({positions[one] for one in ours})
    assert list(positions.values()) == sorted(positions.values())
    for runtime, release in positions.items():
        found = locate("b", "m4", runtime, "who")
        assert (found.library, found.release) == (library, release)
        assert (found.board, found.core, found.series, found.stated_sd) == ("b", "m4", "who", 0.0)


def test_a_runtime_nobody_listed_is_a_library_of_its_own():
    found = locate("b", "m4", "made@1")
    assert (found.library, found.release, found.series) == ("made@1", 0.0, "")
    assert list_releases("made@1") == (("made@1", 0.0),)
    assert list_releases(UNSEEN) == ((UNSEEN_RUNTIME, 0.0),)


@pytest.mark.parametrize(("release", "library", "series"), [
    (0.0, "lib", "first"), (1.0, "lib", "first"), (1.6, "lib", "second"), (9.0, "lib", "third"),
    (0.0, "other", ""), (2.4, "lib", "second")])
def test_a_board_not_measured_takes_the_builds_of_most_rows_of_the_nearest_release(
        release, library, series):
    measured = [cell(release=0.0, series="first"), cell(release=2.0, series="second"),
                cell(release=2.0, series="rare"), cell(release=2.0, series="second"),
                cell(release=5.0, series="third"), cell(library="else", series="else")]
    if release == 1.0:  # as near to either: what most of both are
        measured += [cell(release=0.0, series="first")] * 2
    assert find_series(library, release, measured) == series


def test_powers_are_of_a_firmware_which_most_runtimes_have_to_themselves():
    found = locate_power("b", "smps", "made@1", 0.25)
    assert (found.core, found.library, found.release, found.stated_sd) == (
        "smps", "made@1", 0.0, 0.25)
    shared = {locate_power("b", "ldo", f"x-cube-ai@{version}", 0.1).library
              for version in ("7.3.0", "8.1.0", "9.0.0")}
    assert len(shared) == 1
    assert locate_power("b", "ldo", "tflm-cmsis-nn@2023", 0.1).library == "tflm-cmsis-nn@2023"


@pytest.mark.parametrize(("measured", "found"), [
    ([cell()], cell(core="ldo", release=3.0)),
    ([cell(library="else")], cell(library="", core="ldo")),
    ([cell(board="else")], cell(board="", library="", core="ldo")),
    ([], cell(board="", library="", core="ldo"))])
def test_powers_are_of_the_firmware_there_else_of_the_board_else_of_its_regulator(measured, found):
    assert known_power(cell(core="ldo", release=3.0), measured) == found


def test_rows_learnt_from_are_listed_by_board_part_and_runtime():
    rows = list_measured()
    assert all(one.rows > 0 and one.board and one.soc and one.core for one in rows)
    assert len({(one.board, one.runtime) for one in rows}) == len(rows)
    assert "cortex-m4" in {one.core for one in rows if one.board == "nucleo_l4r5zi"}
