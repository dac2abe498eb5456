"""Counts are kept by structure: never simulated twice, whatever is priced; damaged ones go."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import hwmodels.simulator
import twin
from hwmodels.paths.exposure import expose
from hwmodels.paths.timing import read_timing
from twin.deployment import kept_counts as count_cache
from twin.deployment.core import lower_network
from twin.pricing.inference import predict
from twin.pricing.structure import (
    MOST_IN_MEMORY,
    _known,
    find_structure,
    forget_structures,
    structure_key,
)

PRICES = ({"clocks.cpu.frequency_hz": "96MHz"}, {"supply.voltage_v": 2.0},
          {"caches.l1d.critical_word_first": "true"}, {"clocks.cpu.frequency_hz": "30MHz"})
STRUCTURES = ({"caches.l1d.size_bytes": "8KiB"}, {"placement.arena": "sram"},
              {"caches.l1d.replacement": "lru"}, {"runtime": "cmsis-nn"},
              {"caches.l1i.enabled": "false"})


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """How often something was simulated, from nothing kept on."""
    monkeypatch.setenv("TWIN_COUNTS", str(tmp_path))
    forget_structures()
    done = []
    count = hwmodels.simulator.count_traffic

    def note(*args, **options):
        done.append(1)
        return count(*args, **options)

    monkeypatch.setattr(hwmodels.simulator, "count_traffic", note)
    yield done
    forget_structures()


def deploy():
    return twin.deploy("kws", "nucleo_h7a3zi_q", runtime="tflm-cmsis-nn")


def test_a_structure_is_simulated_once_whatever_its_prices(counted) -> None:
    deployment = deploy()
    first = predict(deployment)
    assert len(counted) == 1
    for changes in PRICES:
        predict(deployment.replace(changes))
    assert len(counted) == 1
    for number, changes in enumerate(STRUCTURES, 2):
        predict(deployment.replace(changes))
        assert len(counted) == number, changes
    assert predict(deployment, temperature="cold").cycles > first.cycles
    assert len(counted) == 2 + len(STRUCTURES)


def test_another_process_finds_it_on_disk(counted) -> None:
    made = predict(deploy())
    forget_structures()
    again = predict(deploy())
    assert len(counted) == 1
    assert again.bill == made.bill and again.layers == made.layers


def test_a_replacement_policy_nobody_knows_is_simulated_once(counted) -> None:
    deployment = deploy()
    twin.predict(deployment)
    before = len(counted)
    assert before > 1
    twin.predict(deployment.replace(PRICES[0]))
    assert len(counted) == before


@pytest.mark.parametrize("damage", ["cut", "planted", "empty", "other"])
def test_what_is_damaged_is_counted_again(counted, tmp_path, damage) -> None:
    made = predict(deploy())
    (path,) = tmp_path.glob("counts.*")
    content = path.read_bytes()
    if damage == "other":
        count_cache._store().save(path.name, b"not what was kept")
    else:
        path.write_bytes({"cut": content[:99], "empty": b"",
                          "planted": content[:32] + content[33:]}[damage])
    forget_structures()
    assert predict(deploy()).bill == made.bill
    assert len(counted) == 2
    forget_structures()
    assert predict(deploy()).bill == made.bill
    assert len(counted) == 2


def test_other_code_counts_anew_and_the_folder_stays_small(counted, tmp_path, monkeypatch) -> None:
    deployment = deploy()
    predict(deployment)
    stale, = tmp_path.glob("counts.*")
    monkeypatch.setattr(count_cache, "hash_code", lambda: "0" * 64)
    monkeypatch.setattr(count_cache, "SAVES_BETWEEN_LOOKS", 1)
    forget_structures()
    predict(deployment)
    assert stale.exists() and len(counted) == 2, "other code may run beside this one"
    os.utime(stale, (1e9, 1e9))
    monkeypatch.setattr(count_cache, "MOST_ENTRIES", 3)
    for size in (1024, 2048, 4096, 8192):
        forget_structures()
        predict(deployment.replace({"caches.l1d.size_bytes": size}))
    assert not stale.exists()
    assert len(list(tmp_path.glob("counts.*"))) == 3


def test_without_a_folder_counts_are_made(counted, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    for place in ("", str(tmp_path / "file"), "/dev/null/none"):
        monkeypatch.setenv("TWIN_COUNTS", place)
        forget_structures()
        assert predict(deploy()).cycles
    assert len(counted) == 3


def test_entries_are_of_their_user_alone(counted, tmp_path) -> None:
    predict(deploy())
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())
    tmp_path.chmod(0o777)
    count_cache._store_at.cache_clear()
    forget_structures()
    predict(deploy())
    assert len(counted) == 2


def test_memory_holds_so_many(counted, monkeypatch) -> None:
    deployment = deploy()
    monkeypatch.setattr("twin.pricing.structure.MOST_IN_MEMORY", 2)
    for size in (1024, 2048, 4096):
        predict(deployment.replace({"caches.l1d.size_bytes": size}))
    assert len(_known) == 2 < MOST_IN_MEMORY


def test_two_processes_at_once(tmp_path) -> None:
    code = ("import twin; print(twin.predict(twin.deploy('ad', 'nucleo_h7a3zi_q',"
            " runtime='tflm-cmsis-nn')).time_us)")
    env = {**os.environ, "TWIN_COUNTS": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE,
                                text=True) for _ in range(2)]
    said = {process.communicate()[0] for process in running}
    assert len(said) == 1 and all(process.returncode == 0 for process in running)
    assert len(said | {subprocess.run([sys.executable, "-c", code], env=env, check=True, text=True,
                                      capture_output=True).stdout}) == 1


def test_the_key_sees_constants_and_placement(counted) -> None:
    deployment = deploy()
    keys = {structure_key(one, "", cold=False) for one in (
        deployment, *(deployment.replace(changes) for changes in STRUCTURES))}
    assert len(keys) == 1 + len(STRUCTURES)
    assert {structure_key(deployment.replace(changes), "", cold=False) for changes in PRICES} == {
        structure_key(deployment, "", cold=False)}


def test_exposure_of_one_timing_is_that_of_many():
    deployment = deploy()
    arrays = find_structure(deployment, partial(lower_network, deployment), cold=False).arrays
    timings = [read_timing(deployment.replace(changes).board, arrays.places) for changes in PRICES]
    for place, timing in enumerate(timings):
        for once, made in zip(expose(arrays, timing), expose(arrays, np.array(timings)),
                              strict=True):
            assert (once == made[place]).all()


def test_latencies_of_pools_are_no_part_of_the_key() -> None:
    base = twin.deploy("ad", "stm32n6570_dk")

    def key_of(fact: str, value: str) -> str:
        changed = base.replace({f"npu.pools.npuRAM3.{fact}": value})
        return structure_key(changed, changed.target.content(changed), cold=False)

    own = structure_key(base, base.target.content(base), cold=False)
    assert key_of("read_latency_cycles", "9") == key_of("write_latency_cycles", "9") == own
    assert key_of("bytes_per_cycle", "4") != own
