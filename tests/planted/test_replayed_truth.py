"""Hidden prices on real machine code; the whole campaign is `python -m benchmarks.planted`."""

import shutil

import pytest

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")
pytest.importorskip("unicorn", reason="needs the boards extra")
pytest.importorskip("elftools", reason="needs the boards extra")

from benchmarks.planted.replayed import CAMPAIGNS, record_networks, run_campaign
from twin.network.zoo import build

pytestmark = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("make") is None,
    reason="needs arm-none-eabi-gcc and make")


def test_hidden_boards_are_found_again(tmp_path) -> None:
    recording = record_networks([build("kws")], tmp_path)
    found = run_campaign(recording, CAMPAIGNS[0], 40, seed=14)
    assert len(found.scores) > 3 * 40  # conv, pointwise, depthwise at least
    assert 0.90 <= found.covered <= 0.98
    # no cache is preferred to the true one by more than 20 to 1, and most are rejected outright
    assert found.odds.min() > -3
    assert (found.odds.max(axis=1) > 3).mean() > 0.5
