"""Caches of other geometries: the board's own met again, data alone counted, any shape taken."""

from __future__ import annotations

from dataclasses import replace

from twin.deployment.deploy import deploy
from twin.pricing.locality import measure_locality
from twin.studies.caches import sweep_caches


def test_sweeping_meets_the_boards_own_cache():
    deployment = deploy("ad", "stm32h747i_disco")
    board = deployment.board
    quiet = replace(deployment, board=replace(board, caches=tuple(
        replace(cache, streaming_lines=0) for cache in board.caches)))
    own = quiet.board.cache("l1d")
    point, = sweep_caches(quiet, [own.size_bytes], [own.ways])
    assert point.misses == measure_locality(quiet).misses


def test_sweeping_a_unified_cache_counts_data_only():
    pico = deploy("kws", "rpi_pico")
    own = pico.board.cache("xip")
    point, = sweep_caches(pico, [own.size_bytes], [own.ways])
    assert (point.misses, point.accesses) == (
        measure_locality(pico).misses, measure_locality(pico).accesses)


def test_any_cache_can_be_swept_at_what_it_is():
    deployment = deploy("ad", "nucleo_h7a3zi_q").replace(
        {"caches.l1d.ways": 3, "caches.l1d.size_bytes": "12KiB"})
    points = sweep_caches(deployment, [8192, 12288], [3, 4])
    assert {(point.size_bytes, point.ways) for point in points} == {
        (8192, 4), (12288, 3), (12288, 4)}
