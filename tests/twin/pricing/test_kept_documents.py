"""Predictions whole, as documents: counts, cycles, energy and intervals of every layer."""

from pathlib import Path

import pytest
from made_outlines import compare_kept, outline

from twin.deployment.deploy import deploy
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.document import to_document
from twin.pricing.ledger import explain_time

KEPT = Path(__file__).parent / "kept"


@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "stm32n6570_dk", "stm32h747i_disco",
                                   "esp32c3_devkitm", "apollo510_evb"])
def test_documents(board) -> None:
    prediction = predict_calibrated(deploy("ad", board))
    found = to_document(prediction)
    found.pop("generator", None)
    compare_kept(KEPT / f"{board}.txt", explain_time(prediction) + "\n" + outline(found))
