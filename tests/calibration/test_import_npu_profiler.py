"""The profiler's text report becomes a measurement, number by number."""

import pytest

from calibration.errors import MeasurementError
from calibration.importers import import_measurement

# Lines in the form the profiler's documentation prints them; figures are its example's.
LOG = """\
NPU Utility - AiRunner Profiler (version 0.2)
 tools : ST Neural ART (LL_ATON api) v1.0.0
 runtime lib : atonn-v1.0.0-rc0
 device.desc : stm32 family - 0x486 - STM32N6xx @800/400MHz
 device.attrs : fpu,npu_cache=1,mcu_freq=800MHz,
 noc_freq=400MHz,npu_freq=1000MHz,nic_freq=900MHz
------------------------------------------------------------
EpochBlock_186 (c_idx=192, num=186:186, c_type=HW, extra=0)
------------------------------------------------------------
[compiler]
  operations             : {'hw.conv': 4, 'hw.dmain': 6}
  processor units        : {'CONV_ACC': 4, 'STR_ENG': 8}
  ops                    : 453348
  compute cycles         : 4608 (max_cycles=27648)
  ops/cycle              : 16.4 GOPS (ideal=98.4)
  mem accesses           : [octoFlash: r=4608, w=0] [npuRAM5: r=19600, w=8820]
[target]
  duration               : 0.043ms (0.3%) total=16.431ms
  mcu cycles             : [18859, 10599, 5253] -> 0.024,0.013,0.007 ms (mcu_freq=800MHz), 0.043ms
  core npu cycles        : 13300 -> 0.013 ms (npu_freq=1000MHz) diff. vs max_cycles: -14348
  busif 0                : r=14080 w=0 rburst[1,2,4,8]x8=(8,12,16,208) wburst[1,2,4,8]x8=(0,0,0,0)
  busif (total)          : r=24288 w=7960 -> 2.42 GB/s
   active : STRENG.4.i: busif=0, 15190 cycles, [octoFlash:4608], 114%
 NPU cache cnts: R[hit=0, miss=80, alloc-miss=0, evict=0], W[hit=0, miss=0, alloc-miss=0, through=0]
   octoFlash             : r=4608 w=0 -> 346.47 MB/s
   total                 : r=24208 w=8820 -> 2.48 GB/s
------------------------------------------------------------
EpochBlock_12 (c_idx=10, num=12:12, c_type=HYBRID, extra=2)
[target]
  mcu cycles             : [169, 33, 4626] -> 0.006 ms (mcu_freq=800MHz), 0.006ms
  extra mcu              : [4632, 1950, 2339] -> 0.011 ms (mcu_freq=800MHz), 0.011ms
  core npu cycles        : 2820 -> 0.003 ms (npu_freq=1000MHz)
------------------------------------------------------------
  Summary
  Compiler
   cycles                : 15424817 (total max_cycles)
   ideal cycles          : 7485802 (total compute_cycles)
   ops                   : 510646150
  Measured
   total duration        : 13.649ms, npu_core:13.159ms (96.41%), mcu_cycles=[1.17, 96.31, 2.53]%
   mcu cycles            : 10919340 (core only = 10515928)
   npu cycles            : 13692714 (core only = 13159399)
  Memory bandwidth / inference
   cpuRAM2               : r=802816 w=602112 -> 106.75 MB/s (peak), 102.92 MB/s (average)
"""


@pytest.fixture
def measurement(tmp_path):
    path = tmp_path / "prof.log"
    path.write_text(LOG, encoding="utf-8")
    return import_measurement("npu-profiler", path)


def value(measurement, counter, layer):
    (only,) = measurement.values(counter, layer)
    return only


def test_header_names_clocks_board_and_epochs(measurement):
    assert dict(measurement.header.clocks_hz) == {
        "cpu": 800e6, "npu": 1e9, "noc": 400e6, "nic": 900e6}
    assert measurement.header.board == "stm32n6570_dk"
    assert measurement.header.kind == "measured"
    assert dict(measurement.header.environment)["epoch 192"] == "EpochBlock_186 HW"


@pytest.mark.parametrize(("counter", "expected"), [
    ("operation_hw.conv", 4), ("unit_STR_ENG", 8), ("ops", 453348), ("compute_cycles", 4608),
    ("max_cycles", 27648), ("compiler_pool_npuRAM5_write_bytes", 8820), ("pre_cycles", 18859),
    ("core_cycles", 10599), ("post_cycles", 5253), ("core_npu_cycles", 13300),
    ("busif0_read_bytes", 14080), ("busif0_read_bursts_1", 8), ("busif0_read_bursts_8", 208),
    ("busif0_write_bursts_8", 0), ("engine_4_in_busif0_octoFlash_active_cycles", 15190),
    ("engine_4_in_busif0_octoFlash_buffer_bytes", 4608), ("npu_cache_read_miss", 80),
    ("npu_cache_write_through", 0), ("pool_octoFlash_read_bytes", 4608),
])
def test_epoch_lines(measurement, counter, expected):
    assert value(measurement, counter, 192) == expected


def test_hybrid_epochs_keep_their_extra_phases(measurement):
    assert value(measurement, "post_cycles", 10) == 4626
    assert value(measurement, "extra_core_cycles", 10) == 1950
    assert value(measurement, "core_npu_cycles", 10) == 2820


@pytest.mark.parametrize(("counter", "expected"), [
    ("max_cycles", 15424817), ("compute_cycles", 7485802), ("ops", 510646150),
    ("duration", 13649), ("npu_core_duration", 13159), ("pre_share", 1.17),
    ("cpu_cycles", 10919340), ("core_cycles", 10515928), ("npu_cycles", 13692714),
    ("core_npu_cycles", 13159399), ("pool_cpuRAM2_write_bytes", 602112),
])
def test_whole_model_lines(measurement, counter, expected):
    assert value(measurement, counter, None) == pytest.approx(expected)


def test_cycles_name_their_clock(measurement):
    clocks = {sample.counter: sample.clock for sample in measurement.samples}
    assert clocks["core_cycles"] == "cpu"
    assert clocks["core_npu_cycles"] == "npu"
    assert clocks["busif0_read_bytes"] is None


@pytest.mark.parametrize(("line", "broken", "named"), [
    ("  mcu cycles             : [18859, 10599, 5253]", "  mcu cycles             : [18859]",
     "'mcu cycles'"),
    ("rburst[1,2,4,8]x8=(8,12,16,208)", "rburst[1,2,4,8]x8=(8,12)", "'busif 0'"),
    ("R[hit=0, miss=80, alloc-miss=0, evict=0]", "R[hit=0]", "'NPU cache cnts'"),
])
def test_a_broken_line_is_named(tmp_path, line, broken, named):
    path = tmp_path / "prof.log"
    path.write_text(LOG.replace(line, broken), encoding="utf-8")
    with pytest.raises(MeasurementError, match=r"prof\.log:\d+: " + named):
        import_measurement("npu-profiler", path)


def test_other_files_and_formats_are_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing here", encoding="utf-8")
    with pytest.raises(MeasurementError, match="no epoch found"):
        import_measurement("npu-profiler", path)
    with pytest.raises(MeasurementError, match="npu-profiler"):
        import_measurement("npu-profile", path)
    with pytest.raises(MeasurementError, match="no readable log"):
        import_measurement("npu-profiler", tmp_path / "absent.log")
