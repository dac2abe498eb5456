"""Logs of public tools become the measurements they are; what is none is refused by line.

The samples keep each tool's layout; figures come from the sources the importers name.
"""

from __future__ import annotations

import json

import pytest

from calibration.errors import MeasurementError
from calibration.importers import FORMATS, import_measurement
from calibration.importers.itm import read_packets

TFLM_TEXT = """Input CRC32: 0x14F6A510

DEPTHWISE_CONV_2D took 224622 ticks (8 ms).
CONV_2D took 249561 ticks (9 ms).

DEPTHWISE_CONV_2D took 224600 ticks (8 ms).
CONV_2D took 249500 ticks (9 ms).
done
DEPTHWISE_CONV_2D took 224601 ticks (8 ms).
CONV_2D took 249501 ticks (9 ms).
"""
TFLM_CSV = '"Event","Tag","Ticks"\n0,CONV_2D,1000\n1,SOFTMAX,50\n"Event","Tag","Ticks"\n' \
    "0,CONV_2D,1010\n1,SOFTMAX,51\n"
TFLM_TAGS = '"Unique Tag","Total ticks across all events with that tag."\nCONV_2D, 1001689\n' \
    'MAX_POOL_2D, 52380\n"total number of ticks", 1054069\n\n[RecordingMicroAllocator] 15732\n'
NEURALSPOT = """Event, Tag, uSeconds, Est MACs, cycles, cpi, exc, sleep, lsu, fold, daccess, \
dtaglookup
0, CONV_2D, 47794, 320000, 9176380, 141, 252, 0, 188, 166, 58335, 55777
1, DEPTHWISE_C, 23334, 72000, 4480072, 153, 54, 0, 200, 123, 30068, 25311
"""
NEURALSPOT_PMU = """Event,Tag,uSeconds,EST_MAC,MAC_EQ,OUTPUT_SHAPE,ARM_PMU_CPU_CYCLES,\
ARM_PMU_LD_RETIRED
0,CONV_2D,1559,320000,10*4*25*5*64*1,1*25*5*64,385342,91422
"""
ST_OLD = """ON-DEVICE STM32 execution ("network", COM4, 115200)..

<Stm32com id=0xea53c88 - CONNECTED(COM4/115200) devid=0x411/UNKNOW msg=1.0>
 0x411/UNKNOW @168MHz/168MHz (FPU is present) lat=5 ART: PRFTen ICen DCen
 description    : 'network' (90, 3, 1)-[7]->(1, 1, 6) macc=874970 rom=775.52KiB ram=44.50KiB

Results for 10 inference(s) @168/168MHz (macc:874970)
 duration    : 62.976 ms (average)
 CPU cycles  : 10579924 (average)
 cycles/MACC : 12.09 (average for all layers)

Clayer  id  desc                          oshape            ms
--------------------------------------------------------------------------------
0       0   10011/(Merged Conv2d / Pool)  (10, 44, 1, 128)  14.470
1       4   10005/(Dense)                 (10, 1, 1, 128)   45.291
2       6   10014/(Softmax)               (10, 1, 1, 6)     0.010
                                                            62.976 (total)
"""
ST_NEW = """ST Edge AI Core v2.2.0-20266 2adc00962
 ST.AI Profiling results v2.0 - "network"
 ---------------------------------------------------------------
 nb sample(s)   :   10
 duration       :   13.358 ms by sample (13.357/13.361/0.001)
 macc           :   2,667,474
 cycles/MACC    :   2.40
 CPU cycles     :   [6,411,840]
 ---------------------------------------------------------------
  0x435 - STM32L4R5 @480/240MHz fpu,art_lat5
   Inference time per node
   --------------------------------------------------------------------------------------------
   c_id    m_id   type                   dur (ms)       %    cumul     CPU cycles     name
   --------------------------------------------------------------------------------------------
   0       0      Conv2D (0x103)            3.339   25.0%    25.0%   [ 1,602,720 ]   ai_node_0
   1       2      Conv2dPool (0x109)       10.019   75.0%   100.0%   [ 4,809,120 ]   ai_node_1
   --------------------------------------------------------------------------------------------
"""
VELA = """Original Operator,NNG Operator,Target,Staging Usage,Peak% (Staging),Op Cycles,\
Network% (cycles),NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,Network% (MAC),\
Util% (MAC),Name
Conv2D,Conv2D,NPU,12976,58.47,15207,26.06,15207,3800,0,0,5120,320000,12.0,8.2,a;b
Conv2D,Relu,NPU,0,0.0,0,0.0,0,0,0,0,0,0,0.0,100,a;b
"""
MLPERF_LOG = """[dut]: m-name-dut-[nucleo]\r
m-model-[kws01]\r
m-warmup-start-1\r
m-infer-start-200\r
m-lap-us-1000000\r
m-lap-us-11000000\r
m-infer-done\r
m-infer-start-200\r
m-lap-us-4294900000\r
m-lap-us-9932704\r
m-infer-done\r
m-infer-start-1\r
m-lap-us-1\r
m-lap-us-50001\r
m-infer-done\r
"""
MLPERF_RESULTS = """00000.1 ulp-ml: Throughput   :       20.000 inf./sec.
00000.2 ulp-ml: Throughput   :       20.100 inf./sec.
00000.3 ulp-ml: Energy/Inf.   : 3371.738 uJ/inf.
00000.4 ulp-ml: Median throughput is     20.000 inf./sec.
00000.5 ulp-ml: Median energy cost is 3371.738 uJ/inf.
"""
PERF_TEXT = """
 Performance counter stats for 'true':

              0.44 msec task-clock                       #    0.638 CPUs utilized
         1,234,567      cycles                           #    2.800 GHz        (75.00%)
         2,345,678      instructions:u                   #    1.90  insn per cycle
              1.25 Joules power/energy-pkg/
   <not supported>      branch-misses

       0.000694239 seconds time elapsed

       0.000896000 seconds sys
"""
PERF_CSV = """0.55,msec,task-clock,547572,100.00,0.235,CPUs utilized
1234567,,cycles,547572,75.00,2.8,GHz
<not supported>,,branches,0,100.00,,
"""
PERF_JSON = "\n".join(json.dumps({"counter-value": v, "unit": u, "event": e, "pcnt-running": p})
                      for v, u, e, p in (("1234567.0", "", "cycles", 75.0),
                                         ("<not supported>", "", "branches", 100.0)))


def imported(tmp_path, form, text, **more):
    path = tmp_path / "log.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_measurement(form, path, **more)


def test_tflm_text_and_csv(tmp_path):
    text = imported(tmp_path, "tflm", TFLM_TEXT, clock_hz=1e6, board="esp32", model="person")
    assert text.values("ticks", 0).tolist() == [224622, 224600, 224601]
    assert text.layers == (0, 1) and text.runs == (0, 1, 2)
    assert text.percentile("latency", 0, 0) == pytest.approx(224600.0)
    assert (text.header.board, text.header.model) == ("esp32", "person")
    table = imported(tmp_path, "tflm", TFLM_CSV)
    assert table.values("ticks", 1).tolist() == [50, 51]
    assert dict(table.header.environment)["operators"] == "CONV_2D,SOFTMAX"
    tags = imported(tmp_path, "tflm", TFLM_TAGS)
    assert tags.values("ticks").tolist() == [1001689 + 52380]
    assert tags.values("ticks_MAX_POOL_2D").tolist() == [52380]
    with pytest.raises(MeasurementError, match=r"log\.txt:3: event 2 where 1 is due"):
        imported(tmp_path, "tflm", TFLM_CSV.replace("\n1,SOFT", "\n2,SOFT", 1))


def test_neuralspot(tmp_path):
    found = imported(tmp_path, "neuralspot", NEURALSPOT)
    assert found.header.temperature == "cold"
    assert found.values("cpu_cycles", 1).tolist() == [4480072]
    assert found.values("dwt_lsu", 0).tolist() == [188]
    assert found.values("latency", 0).tolist() == [47794]
    pmu = imported(tmp_path, "neuralspot", NEURALSPOT_PMU)
    assert pmu.values("arm_pmu_ld_retired", 0).tolist() == [91422]
    assert "output_shape" not in pmu.counters
    with pytest.raises(MeasurementError, match=r"log\.txt:3: 3 columns"):
        imported(tmp_path, "neuralspot", "\n".join([*NEURALSPOT.splitlines()[:2], "1,A,2"]))


def test_st_reports(tmp_path):
    old = imported(tmp_path, "x-cube-ai", ST_OLD)
    assert old.values("latency", 1).tolist() == [45291]
    assert old.values("latency").tolist() == [62976]
    assert old.values("cpu_cycles").tolist() == [10579924]
    assert old.values("macs").tolist() == [874970]
    assert dict(old.header.clocks_hz) == {"cpu": 168e6}
    new = imported(tmp_path, "st-edge-ai", ST_NEW)
    assert new.values("cpu_cycles", 0).tolist() == [1602720]
    assert new.values("latency", 1).tolist() == [10019]
    assert new.values("latency_sd").tolist() == pytest.approx([1.0])
    assert new.values("cpu_cycles").tolist() == [6411840]
    assert new.header.runtime == "x-cube-ai@2.2.0" and new.header.model == "network"
    # the mean of the nodes is the network's: 3.339 + 10.019 = 13.358
    assert sum(new.values("latency", n)[0] for n in new.layers) == new.values("latency")[0]


def test_vela(tmp_path):
    found = imported(tmp_path, "vela", VELA)
    assert found.header.kind == "predicted"
    assert found.values("npu_cycles", 0).tolist() == [15207]
    assert found.values("off_chip_flash_cycles", 0).tolist() == [5120]
    assert found.layers == (0, 1)


def test_mlperf_tiny(tmp_path):
    log = imported(tmp_path, "mlperf-tiny", MLPERF_LOG)
    # 10 s over 200; then a counter that wraps: 9932704 + 2^32 - 4294900000 = 10,000,000
    assert log.values("latency").tolist() == [50_000, 50_000]
    assert (log.header.model, log.header.board) == ("kws01", "nucleo")
    results = imported(tmp_path, "mlperf-tiny", MLPERF_RESULTS)
    assert results.values("latency").tolist() == pytest.approx([50_000, 1e6 / 20.1])
    assert results.values("median_energy").tolist() == [3371.738]


@pytest.mark.parametrize("text", [PERF_TEXT, PERF_CSV, PERF_JSON], ids=["text", "csv", "json"])
def test_perf_stat(tmp_path, text):
    found = imported(tmp_path, "perf-stat", text)
    assert found.values("cpu_cycles").tolist() == [1234567]
    told = dict(found.header.environment)
    assert told["scaled"] == "cycles" and told["not_counted"].startswith("branch")
    if text is PERF_TEXT:
        assert found.values("latency").tolist() == pytest.approx([694.239])
        assert found.values("power/energy_pkg/").tolist() == pytest.approx([1.25e6])
        assert found.values("instructions").tolist() == [2345678]


def mark(value: int) -> bytes:
    return bytes([1 << 3 | 2]) + value.to_bytes(2, "little")  # port 1, two bytes


def test_itm(tmp_path):
    counters = bytes([0x05, 0b001001])  # CPI and LSU passed 256
    data = (bytes(5) + b"\x80" + mark(0) + counters + b"\xc0\x8a\x01" + counters + b"\x30"
            + mark(1) + bytes([0x05, 0b010000]) + b"\x70" + bytes([1, 65]) + mark(0xFFFF)
            + mark(0) + counters)
    assert [p.kind for p in read_packets(data, "x")][:5] == [
        "sync", "software", "hardware", "timestamp", "hardware"]
    found = imported(tmp_path, "itm", data)
    assert found.values("dwt_cpi", 0).tolist() == [512, 256]
    assert found.values("dwt_fold", 1).tolist() == [256]
    assert found.values("dwt_cpi").tolist() == [512, 256]
    assert dict(found.header.environment)["lost_packets"] == "1"
    with pytest.raises(MeasurementError, match="byte 0: header 0x34 is reserved"):
        imported(tmp_path, "itm", b"\x34")


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_none_of_it_is_refused(tmp_path, form):
    with pytest.raises(MeasurementError, match=r"log\.txt"):
        imported(tmp_path, form, "hello\nworld 12\n" if form != "itm" else b"\x03\x01\x02\x03\x04")
    with pytest.raises(MeasurementError, match="readable log"):
        import_measurement(form, tmp_path / "none")


def test_names_and_clocks(tmp_path):
    with pytest.raises(MeasurementError, match="did you mean tflm"):
        imported(tmp_path, "tfml", TFLM_CSV)
    with pytest.raises(MeasurementError, match="no cycles or ticks"):
        imported(tmp_path, "mlperf-tiny", MLPERF_RESULTS, clock_hz=1e6)
