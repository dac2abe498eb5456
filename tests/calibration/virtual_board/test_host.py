"""Counters of the host: what is asked of the kernel, and what is made of its answers."""

import ctypes
import os
import platform
import struct
from pathlib import Path

import pytest

from calibration.virtual_board import host
from calibration.virtual_board.host import HostGauges, describe_host


def open_pipe(*numbers: int) -> int:
    """Return a descriptor that answers one read with 64 bit numbers, as a counter does."""
    reading, writing = os.pipe()
    os.write(writing, struct.pack(f"<{len(numbers)}Q", *numbers))
    os.close(writing)
    return reading


def test_an_event_asks_for_its_counts_and_times_in_user_space(monkeypatch):
    asked = {}

    class Kernel:
        def syscall(self, number, attribute, *rest):
            asked.update(number=number, attribute=bytes(attribute), rest=rest)
            return 7

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Kernel())
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    # A machine's own events have types and settings of all 64 bits: they stay unsigned.
    assert host._open_event(0xfffffff0, 0xfedcba9876543210, 1234) == 7
    # struct perf_event_attr of linux/perf_event.h, version 5: 112 bytes.
    kind, size, config, period, sample, read, flags = struct.unpack_from("<IIQQQQQ",
                                                                         asked["attribute"])
    assert (asked["number"], asked["rest"]) == (298, (1234, -1, -1, 0))
    assert (kind, size, config) == (0xfffffff0, len(asked["attribute"]), 0xfedcba9876543210)
    assert size == 112 and not any(asked["attribute"][48:])
    assert (period, sample, read) == (0, 0, 0b11)  # times enabled and running
    assert flags == 1 << 1 | 1 << 5 | 1 << 6  # inherit, exclude_kernel, exclude_hv


def test_a_counter_that_shared_its_hardware_is_scaled_to_the_whole_time(monkeypatch):
    answers = {0: (1000, 80, 20), 1: (1000, 80, 80), 2: (0, 80, 0)}

    def open_event(kind, config, pid):
        if kind or config not in answers:
            raise OSError(13, "not allowed")
        return open_pipe(*answers[config])

    monkeypatch.setattr(host, "_open_event", open_event)
    gauges = HostGauges(os.getpid())
    found = gauges.read()
    gauges.close()
    assert found["cpu_cycles"] == (4000.0, "cycles")  # ran a quarter of the time
    assert found["instructions"] == (1000.0, "events")
    assert found["cache_references"] == (0.0, "events")
    assert gauges.missing["branches"] == "perf_event_open: not allowed"
    assert "branches" not in found


def test_energy_is_of_packages_alone_and_goes_on_where_its_register_wraps(tmp_path, monkeypatch):
    domains = {"intel-rapl:0": ("package-0", 900), "intel-rapl:0:0": ("core", 500),
               "intel-rapl:1": ("package-1", 10), "intel-rapl:2": ("psys", 7)}
    for folder, (name, energy_uj) in domains.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "name").write_text(f"{name}\n")
        (tmp_path / folder / "energy_uj").write_text(f"{energy_uj}\n")
        (tmp_path / folder / "max_energy_range_uj").write_text("999\n")
    monkeypatch.setattr(host, "ENERGY_FILES", f"{tmp_path}/intel-rapl:*/energy_uj")
    gauges = HostGauges(os.getpid())
    assert gauges.read()["package_energy"] == (0.0, "uj")
    for folder, energy_uj in (("intel-rapl:0", 100), ("intel-rapl:0:0", 600), ("intel-rapl:1", 30),
                              ("intel-rapl:2", 70)):
        (tmp_path / folder / "energy_uj").write_text(f"{energy_uj}\n")
    assert gauges.read()["package_energy"] == (200.0 + 20.0, "uj")
    gauges.close()
    assert "energy" not in gauges.missing


def test_a_machine_without_domains_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "ENERGY_FILES", f"{tmp_path}/intel-rapl:*/energy_uj")
    gauges = HostGauges(os.getpid())
    assert "package_energy" not in gauges.read()
    gauges.close()
    assert gauges.missing["energy"] == "RAPL: this kernel shows no package domain"


@pytest.mark.skipif(not Path("/proc/cpuinfo").is_file(), reason="no /proc/cpuinfo")
def test_a_host_is_described_by_its_processor_and_load():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    found = describe_host()
    assert found.get("processor") == (names[0] if names else None)
    assert found["machine"] == platform.machine()
    assert len(found["load"].split()) == 3
