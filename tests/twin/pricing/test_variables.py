"""What caches and memories are asked: against a bill's own counts, and laws."""

import pytest

import twin
from twin.pricing.locality import measure_locality
from twin.pricing.variables import measure_variables, relate_to_time


def deploy(**more):
    return twin.deploy("kws", "nucleo_h7a3zi_q", runtime="tflm-cmsis-nn", arena="sram", **more)


def test_misses_are_those_of_the_caches_and_bytes_follow_from_them() -> None:
    placed = deploy()
    found, locality = measure_variables(placed, cold=False), measure_locality(placed)
    line = locality.caches[0].line_bytes
    assert found["lookups.l1d"] == locality.accesses and found["misses.l1d"] == locality.misses
    assert found["miss_rate.l1d"] == pytest.approx(locality.misses / locality.accesses)
    assert found["bytes.sram"] + found["bytes.flash"] == (
        line * (locality.misses + locality.write_backs) + line * found.get("misses.l1i", 0))


def test_a_smaller_cache_moves_more_and_a_faster_run_uses_more_of_the_bandwidth() -> None:
    whole, small = (measure_variables(deploy().replace(change), cold=False) for change in (
        {}, {"caches.l1d.size_bytes": 2048}))
    assert small["bytes.sram"] > whole["bytes.sram"] and small["misses.l1d"] > whole["misses.l1d"]
    used = [relate_to_time(whole, cycles)["bandwidth_used.sram"] for cycles in (1e6, 2e6)]
    assert used[0] == pytest.approx(2 * used[1]) and 0 < used[0] < 1


def test_cold_caches_miss_more_and_without_a_cache_everything_is_moved() -> None:
    warm, cold = (measure_variables(deploy(), cold=cold) for cold in (False, True))
    assert cold["misses.l1d"] > warm["misses.l1d"]
    direct = measure_variables(deploy().replace({"caches.l1d.enabled": False}), cold=False)
    assert "lookups.l1d" not in direct and direct["bytes.sram"] > warm["bytes.sram"]


def test_an_accelerator_has_the_bytes_of_its_pools_and_a_program_nothing() -> None:
    found = measure_variables(twin.deploy("kws", "stm32n6570_dk"), cold=False)
    assert {"bytes.npuRAM3", "bytes.octoFlash"} <= set(found) and "lookups.l1d" not in found


def test_rows_carry_them_with_the_time_by_cause() -> None:
    row = twin.sweep("kws", "nucleo_h7a3zi_q").rows[0]
    known = dict(row.variables)
    assert sum(us for name, us in known.items() if name.startswith("us.")) == pytest.approx(
        row.time_us)
    made = twin.predict(twin.deploy("kws", "nucleo_h7a3zi_q"))
    assert known["setup_us"] == pytest.approx(made.setup.cycles("cpu") / 280)
