"""The bill by operand sums to the bill, layer by layer and in all, as shown and in full."""

from __future__ import annotations

import json
import math

import jsonschema
import pytest
from typer.testing import CliRunner

from twin.cli import app
from twin.deployment.deploy import deploy
from twin.pricing.document import load_schema, to_document
from twin.pricing.inference import predict
from twin.pricing.ledger import make_ledger, make_operand_ledger, split_document


@pytest.fixture(scope="module", params=["nucleo_l4r5zi", "stm32h747i_disco", "rpi_pico"])
def prediction(request):
    return predict(deploy("kws", request.param))


def test_operands_sum_to_the_lines_of_the_ledger(prediction):
    ledger, split = make_ledger(prediction), make_operand_ledger(prediction)
    for lines, parts in zip((*ledger.layers, ledger.total), (*split.layers, split.total),
                            strict=True):
        sums: dict[tuple[str, str], int] = {}
        for (clock, cause, _), cycles in parts.items():
            sums[clock, cause] = sums.get((clock, cause), 0) + cycles
        assert sums == dict(lines)


def test_the_document_by_operand_conforms_and_conserves(prediction):
    whole = to_document(prediction)
    split = split_document(whole, prediction)
    jsonschema.validate(split, load_schema(), cls=jsonschema.Draft202012Validator)
    for before, after in ((whole["total"], split["total"]),
                          *zip(whole["layers"], split["layers"], strict=True)):
        for line in before["bill"]:
            parts = [part for part in after["bill"]
                     if (part["cause"], part["clock"]) == (line["cause"], line["clock"])]
            assert sum(part["cycles"] for part in parts) == line["cycles"]
            assert math.fsum(part["time_us"] for part in parts) == pytest.approx(line["time_us"])
            if line["energy_uj"] is None:
                assert None in [part["energy_uj"] for part in parts]
            else:
                assert math.fsum(part["energy_uj"] for part in parts) == pytest.approx(
                    line["energy_uj"])
    assert {part["operand"] for part in split["total"]["bill"]} >= {None, "weights"}


def test_flash_waits_of_a_core_without_a_large_cache_are_its_weights():
    """L4: activations are in SRAM, so every wait for flash is for constants."""
    total = make_operand_ledger(predict(deploy("kws", "nucleo_l4r5zi"))).total
    assert {operand for _, cause, operand in total if cause == "flash_wait"} <= {
        "weights", "bias", "parameters"}


def test_the_command_splits_table_and_document():
    runner = CliRunner()
    words = ["predict", "kws", "-b", "nucleo_l4r5zi", "--per-operand"]
    table = runner.invoke(app, words).stdout
    assert "bill by operand" in table and "weights" in table
    document = json.loads(runner.invoke(app, [*words, "--json"]).stdout)
    assert all("operand" in line for line in document["total"]["bill"])
    plain = json.loads(runner.invoke(app, [*words[:-1], "--json"]).stdout)
    assert not any("operand" in line for line in plain["total"]["bill"])
