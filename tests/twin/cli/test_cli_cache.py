"""`twin cache`: layers, geometries and policies, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import twin
from hwmodels.board.file import load_board
from twin.api.commands.cache import CacheReport
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.pricing.inference import predict
from twin.pricing.locality import measure_locality, replacement_range
from twin.reports.tables.locality import header_pairs


def run(*words: str):
    return CliRunner().invoke(app, ["cache", *words])


@pytest.fixture(scope="module")
def deployment():
    return deploy("ad", "stm32h747i_disco")


def test_layers_are_those_of_the_prediction(deployment):
    locality, prediction = measure_locality(deployment), predict(deployment)
    by_index = {layer.index: layer for layer in prediction.layers}
    for layer in locality.layers:
        assert (layer.accesses, layer.misses) == (
            by_index[layer.index].accesses, by_index[layer.index].misses)
    assert locality.misses <= locality.accesses


def test_a_working_set_is_what_a_cold_roomy_cache_fills(deployment):
    """16 MiB with a set for each line of flash and SRAM: only compulsory misses are left."""
    board = deployment.board
    roomy = replace(board, caches=tuple(
        replace(cache, size_bytes=1 << 24, ways=16, replacement="lru", streaming_lines=0)
        if cache.name == "l1d" else cache for cache in board.caches))
    first = measure_locality(replace(deployment, board=roomy), cold=True).layers[0]
    own = measure_locality(deployment).layers[0]
    assert own.working_set_bytes == 32 * first.misses


def test_undocumented_policies_span_a_range(deployment):
    policies = replacement_range(deployment)
    assert {policy for policy, _ in policies.time_us} == {"lfsr", "lru", "plru", "round_robin"}
    assert policies.low <= 1 <= policies.high and policies.low < policies.high
    assert set(policies.caches) == {"l1i", "l1d"}
    assert policies.time_us[0] == ("lfsr", predict(deployment).time_us)


def test_documented_policies_leave_no_range():
    policies = replacement_range(deploy("ad", "b_u585i_iot02a"))
    assert (policies.caches, policies.low, policies.high) == ((), 1.0, 1.0)
    kinds = {fact.path: fact.kind for fact in load_board("b_u585i_iot02a").facts}
    assert kinds["caches.icache.replacement"] == "datasheet"


def test_the_table_shows_layers_policies_and_geometries():
    result = run("ad", "-b", "stm32h747i_disco", "--sweep", "size")
    assert result.exit_code == 0
    for words in ("fully_connected", "miss rate", "working set", "is assumed (lfsr",
                  "miss ratio, %", "16 KiB", "4 ways"):
        assert words in result.stdout
    assert "2 ways" not in result.stdout


def test_the_document_sums():
    result = run("ad", "-b", "stm32h747i_disco", "--json", "--sweep", "ways")
    document = json.loads(result.stdout)
    for key in ("accesses", "misses", "write_backs"):
        assert document["total"][key] == sum(layer[key] for layer in document["layers"])
    assert [point["ways"] for point in document["sweep"]] == [1, 2, 4, 8]
    assert {point["size_bytes"] for point in document["sweep"]} == {16384}
    assert document["replacement"]["low"] <= 1 <= document["replacement"]["high"]


def test_a_what_if_reaches_the_caches():
    words = ("ad", "-b", "stm32h747i_disco", "--json")
    before, after = (json.loads(run(*words, *more).stdout) for more in (
        (), ("--set", "caches.l1d.enabled=false")))
    assert before["total"]["misses"] > 0 == after["total"]["accesses"]
    assert after["caches"] == []


def test_pictures_are_written(tmp_path):
    result = run("ad", "-b", "nucleo_l4r5zi", "--plot", str(tmp_path))
    assert result.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "working_set.png", "miss_rate.png", "miss_curve.png", "access_map.png",
        "bus_timeline.png"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())


@pytest.mark.parametrize(("words", "message"), [
    (("--sweep", "colour"), "accepted: size, ways"),
    (("--sweep", "size,size"), "accepted: size, ways, or size,ways"),
    (("--layer", "99"), "--layer 99; accepted: 0, 1, 2"),
    (("--sweep", ""), "empty value"),
    (("--plot", "x.png"), "accepted: a folder"),
    (("--set", "nonsense"), "PATH=VALUE"),
    (("--runtime", "neural-art"), "accelerator"),
])
def test_what_cannot_be_is_refused(words, message):
    result = run("ad", "-b", "stm32h747i_disco", *words)
    assert result.exit_code in (2, 3)
    assert message in result.stderr


def test_a_policy_that_was_set_is_no_longer_assumed():
    deployment = deploy("ad", "stm32h747i_disco")
    assert replacement_range(deployment).caches == ("l1i", "l1d")
    asked = deployment.replace({"caches.l1i.replacement": "plru", "caches.l1d.replacement": "lru"})
    assert replacement_range(asked).caches == ()
    assert replacement_range(asked).time_us == (("lru", predict(asked).time_us),)


def test_a_narrow_table_loses_columns_and_splits_no_number():
    from rich.console import Console

    from twin.reports.tables.locality import layer_table

    locality = measure_locality(deploy("ad", "stm32h747i_disco"))
    for width, lost in ((200, set()), (80, {"not cached"}), (60, {"not cached", "written back"})):
        console = Console(width=width)
        table = layer_table(locality, console)
        headers = {str(column.header) for column in table.columns}
        assert {"layer", "misses", "miss rate"} <= headers and not headers & lost
        with console.capture() as capture:
            console.print(table)
        assert f"{locality.misses:,}" in capture.get()


def test_a_second_level_is_counted_and_shown():
    deployment = deploy("ic", "nucleo_h7a3zi_q")
    below = replace(deployment.board.cache("l1d"), name="l2", size_bytes=1 << 17, ways=8,
                    replacement="lru", serves=(), hit_cycles=8)
    board = replace(deployment.board, caches=(below, *(
        replace(cache, below="l2") if cache.name == "l1d" else cache
        for cache in deployment.board.caches)))
    locality = measure_locality(replace(deployment, board=board))
    looked_up, filled = locality.lower["l2"]
    assert looked_up >= locality.misses > filled
    report = CacheReport(locality=locality, points=(), policies=replacement_range(deployment),
                         prices="stated")
    assert twin.to_document(report)["lower"] == {
        "l2": {"accesses": looked_up, "misses": filled}}
    assert ("below", f"l2: {looked_up:,} lines looked up, {filled:,} filled") in header_pairs(
        locality)
