"""Which prices hold where: releases in order, their options, and whose powers are taken."""

from __future__ import annotations

import pytest

from calibration.fitting.cell import (
    UNSEEN,
    UNSEEN_RUNTIME,
    Cell,
    known_power,
    list_measured,
    list_releases,
    locate,
    locate_power,
)


def cell(board="b", library="lib", release=0.0, core="m4"):
    return Cell(board=board, core=core, library=library, release=release)


def test_releases_of_a_library_stand_in_their_order():
    library = locate("b", "m4", "x-cube-ai@7.1.0").library
    positions = dict(list_releases(library))
    ours = [f"x-cube-ai@{version}" for version in ("7.1.0", "7.3.0", "8.0.0", "8.1.0", "9.0.0",
                                                   "10.0.0")]
    assert [positions[one] for one in ours] == sorted({positions[one] for one in ours})
    assert list(positions.values()) == sorted(positions.values())
    for runtime, release in positions.items():
        found = locate("b", "m4", runtime)
        assert (found.library, found.release) == (library, release)
        assert (found.board, found.core, found.stated_sd) == ("b", "m4", 0.0)
        assert found.option == ("time" if runtime.endswith("-time") else "")


def test_a_runtime_nobody_listed_is_a_library_of_its_own():
    found = locate("b", "m4", "made@1")
    assert (found.library, found.release, found.option) == ("made@1", 0.0, "")
    assert list_releases("made@1") == (("made@1", 0.0),)
    assert list_releases(UNSEEN) == ((UNSEEN_RUNTIME, 0.0),)


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
