"""Small whole logs of every tool, in the layout the tools print; totals are the sums of parts."""

# ruff: noqa: E501  (lines are as long as the tools print them)

from __future__ import annotations

import json
from pathlib import Path

# One HW, one hybrid epoch with two extra ones, one software epoch; c_idx counts the extra ones.
# Sums: ops 453348+100+0; compute 4608+10+257; max 27648+20+257; MCU 34711+4828+8921+32100=80560;
# core 10599+33+1950+33=12615; NPU core 13300+2820 (software epochs print none, nor pools; what
# they access is in the totals: npuRAM5 19600+16+4 read, 8820+8 written).
NPU = """\
 NPU Utility - AiRunner Profiler (version 0.4)
  Summary 'network' - ['network']
  -------------------------------------------
  I[1/1] 'Input_11_out_0'        :   uint8[1,224,224,3], 150528 Bytes, activations
  n_nodes                        :   3
  tools                          :   ST Neural ART (LL_ATON api) v1.1.3
  runtime lib                    :   atonn-v1.0.0-rc0
  device.desc                    :   stm32 family - 0x486 - STM32N6xx @800/400MHz
  device.attrs                   :   fpu,mcu_freq=800MHz,noc_freq=400MHz,npu_freq=1000MHz,nic_freq=900MHz
  -------------------------------------------
 -> collecting statistics (b=1, mode=Mode.PER_LAYER)..
     ST.AI Profiling results v2.0 - "network"
     nb sample(s)                   :   1
     duration                       :   0.101 ms by sample (0.101/0.101/0.000)
      Inference time per node
      c_id    m_id   type             dur (ms)       %     cumul  CPU cycles               name
      0       -      epoch               0.046   45.0%    45.0%  [  13,878   19,331    3,523 ]   EpochBlock_186
      total                              0.101                   [ 736,585  508,072  833,677 ]
                                      384.92 inf/s               [   35.4%    24.4%    40.1% ]
      HW: 24.4%, SW: 27.7%, SW ctrl: 47.9%
 <- done
------------------------------------------------------------
  EpochBlock_186 (c_idx=0, num=186:186, c_type=HW, extra=0)
------------------------------------------------------------
 [compiler]
  epoch type             : EpochType.HW
  operations             : {'hw.conv': 4, 'hw.dmain': 6}
  processor units        : {'CONV_ACC': 4, 'STR_ENG': 8}
  ops                    : 453348
  compute cycles         : 4608 (max_cycles=27648)
  ops/cycle              : 16.4 GOPS (ideal=98.4)
  mem accesses           : [octoFlash: r=4608, w=0] [npuRAM5: r=19600, w=8820]
 [target]
  duration               : 0.043ms (43.0%) total=0.101ms
  mcu cycles             : [18859, 10599, 5253] -> 0.024,0.013,0.007 ms (mcu_freq=800MHz), 0.043ms
  core npu cycles        : 13300 -> 0.013 ms (npu_freq=1000MHz) diff. vs max_cycles: -14348
  compute cycles ratio   : 10.59% (core only: 34.65%)
  busif 0                : r=14080 w=0 rburst[1,2,4,8]x8=(8,12,16,208) wburst[1,2,4,8]x8=(0,0,0,0)
  busif 1                : r=10208 w=7960 rburst[1,2,4,8]x8=(4,12,8,152) wburst[1,2,4,8]x8=(5,9,9,117)
  busif (total)          : r=24288 w=7960 -> 2.42 GB/s
  strg engines           : 114.21% (id=4)
   active                : STRENG.4.i: busif=0, 15190 cycles, [octoFlash:4608], 114%
  NPU cache cnts         : R[hit=0, miss=80, alloc-miss=0, evict=0], W[hit=0, miss=0, alloc-miss=0, through=0]
   octoFlash             : r=4608 w=0 -> 346.47 MB/s
   npuRAM5               : r=19600 w=8820 -> 2.14 GB/s
   total                 : r=24208 w=8820 -> 2.48 GB/s
------------------------------------------------------------
  EpochBlock_187 (c_idx=1, num=187:187, c_type=HYBRID, extra=2)
 [compiler]
  ops                    : 100
  compute cycles         : 10 (max_cycles=20)
  mem accesses           : [npuRAM5: r=16, w=8]
 [target]
  mcu cycles             : [169, 33, 4626] -> 0.000,0.000,0.006 ms (mcu_freq=800MHz), 0.006ms
  extra mcu              : [4632, 1950, 2339] -> 0.006,0.002,0.003 ms (mcu_freq=800MHz), 0.011ms
  total mcu              : [4801, 1983, 6965] -> 0.006,0.002,0.009 ms (mcu_freq=800MHz)
  core npu cycles        : 2820 -> 0.003 ms (npu_freq=1000MHz)
   npuRAM5               : r=16         w=8          -> 8.51 MB/s
   total                 : r=16         w=8          -> 8.51 MB/s
------------------------------------------------------------
  EpochBlock_189 (c_idx=4, num=189:189, c_type=SW, extra=0)
 [compiler]
  ops                    : 0
  compute cycles         : 257 (max_cycles=257)
  mem accesses           : [npuRAM5: r=4, w=0] [npuRAM4: r=771, w=257]
 [target]
  mcu cycles             : [125, 33, 31942] -> 0.000,0.000,0.040 ms (mcu_freq=800MHz), 0.040ms
  npu cycles             : n.a.
------------------------------------------------------------
  Summary                :
------------------------------------------------------------
  Compiler
   cycles                : 27925 (total max_cycles)
   ideal cycles          : 4875 (total compute_cycles)
   ops                   : 453448
   ops/cycle             : 16
  Measured
   total duration        : 0.101ms, npu_core:0.016ms (16.00%), mcu_cycles=[29.53, 15.66, 54.81]%
   mcu cycles            : 80560 (core only = 12615)
   npu cycles            : 100700 (core only = 16161)
   inf/s                 : 9930.5 (0.101ms)
  Memory bandwidth / inference
   octoFlash             : r=4608       w=0          -> 285.15 MB/s (peak), 45.78 MB/s (average)
   npuRAM5               : r=19620      w=8828       -> 1.76 GB/s (peak), 282.37 MB/s (average)
   npuRAM4               : r=771        w=257        -> 63.61 MB/s (peak), 10.18 MB/s (average)
   total r/w             : r=24999      w=9085       -> 2.04 GB/s (peak), 328.15 MB/s (average)
"""

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
TFLM_MS = '"Event","Tag","Ticks","ms"\n0,CONV_2D,1000,1\n1,SOFTMAX,50,0\n'
TFLM_MICRO = '"Event","Tag","microseconds"\n0,CONV_2D,1000\n1,SOFTMAX,50\n'
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
2       4   10009/(Nonlinearity)          (10, 1, 1, 128)   0.012
3       5   10005/(Dense)                 (10, 1, 1, 128)   3.037
4       5   10009/(Nonlinearity)          (10, 1, 1, 128)   0.012
5       6   10005/(Dense)                 (10, 1, 1, 6)     0.144
6       6   10014/(Softmax)               (10, 1, 1, 6)     0.010
                                                            62.976 (total)
"""
ST_NEW = """ST Edge AI Core v2.2.0-20266 2adc00962
 ST.AI Profiling results v2.0 - "network"
 ---------------------------------------------------------------
 nb sample(s)   :   10
 duration       :   13.359 ms by sample (13.357/13.361/0.001)
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
   n/a     n/a    Inter-nodal               0.001    0.0%   100.0%                   n/a
   --------------------------------------------------------------------------------------------
   total                                   13.359                    [ 6,411,840 ]
   --------------------------------------------------------------------------------------------
"""
ST_NPU = """ ST.AI Profiling results v2.0 - "network"
 nb sample(s)                   :   1
 duration                       :   0.086 ms by sample (0.086/0.086/0.000)
 CPU cycles                     :   [14,047 19,363 35,437]
 device.desc                    :   stm32 family - 0x486 - STM32N6xx @800/400MHz
 c_id    m_id   type                       dur (ms)       %     cumul  CPU cycles                      name
 0       -      epoch                         0.046   53.5%    53.5%  [  13,878   19,331    3,523 ]   EpochBlock_1
 1       -      epoch (SW)                    0.040   46.5%   100.0%  [     169       32   31,914 ]   EpochBlock_2
 total                                        0.086                    [  14,047   19,363   35,437 ]
                                        11627.91 inf/s                 [   20.4%    28.1%    51.5% ]
 HW: 28.1%, SW: 46.8%, SW ctrl: 25.1%
"""
VELA = """Original Operator,NNG Operator,Target,Staging Usage,Peak% (Staging),Op Cycles,\
Network% (cycles),NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,Network% (MAC),\
Util% (MAC),Name
Conv2D,Conv2D,NPU,12976,58.47,15000,75.0,15000,3800,0,0,5120,320000,100.0,8.2,a;b
Conv2D,Relu,NPU,0,0.0,0,0.0,0,0,0,0,0,0,0.0,100,a;b
AvgPool,AvgPool,NPU,8064,36.3,5000,25.0,5000,1608,0,0,0,0,0.0,0.0,c
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
00000.2 ulp-ml: Throughput   :       19.900 inf./sec.
00000.3 ulp-ml:   Energy/Inf.  :      3371.738 uJ/inf.
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
PERF_REPEATED = """0.65,msec,task-clock,1.59%,647202,100.00,0.030,CPUs utilized
1234567,,cycles,33.33%,647202,75.00,1.581,GHz
<not supported>,,branches,0.00%,0,100.00,,
"""
PERF_JSON = "\n".join(json.dumps({"counter-value": v, "unit": u, "event": e, "pcnt-running": p})
                      for v, u, e, p in (("1234567.000000", "", "cycles", 75.0),
                                         ("<not supported>", "", "branches", 100.0)))


def mark(value: int) -> bytes:
    """Return a packet of stimulus port 1, two bytes."""
    return bytes([1 << 3 | 2]) + value.to_bytes(2, "little")


EVENTS = bytes([0x05, 0b001001])
"""CPI and LSU passed 256."""

ITM = (bytes(5) + b"\x80" + EVENTS + mark(0) + EVENTS + b"\xc0\x8a\x01" + EVENTS + b"\x30"
       + mark(1) + bytes([0x05, 0b010000]) + b"\x70" + bytes([1, 65]) + mark(0xFFFF)
       + mark(0) + EVENTS + mark(0xFFFF) + EVENTS)

_MLTK_SUMMARY = {
    "name": "keyword_spotting", "accelerator": "None", "input_shape": "1x49x10x1", "n_layers": 2,
    "cpu_cycles": 13000000, "cpu_clock_rate": 78000000, "time": 0.16666666666666666}
_MLTK_LAYERS = [
    {"index": place, "opcode": name, "ops": 2 * macs, "macs": macs, "cpu_cycles": cycles,
     "time": cycles / 78e6, "input_shape": "1x49x10x1"}
    for place, (name, macs, cycles) in enumerate((("conv_2d", 1280000, 12870000),
                                                  ("softmax", 0, 130000)))]
MLTK_JSON = json.dumps({"summary": _MLTK_SUMMARY, "summary_labels": {"name": "Name"},
                        "layers": _MLTK_LAYERS, "layer_labels": {"index": "Index"}}, indent=2)
MLTK_TEXT = """Profiling Summary
Name: keyword_spotting
Accelerator: MVP
Input Shape: 1x49x10x1
Layer Count: 2
Unsupported Layer Count: 0
Accelerator Cycle Count: 1.2M
CPU Cycle Count: 253.1k
CPU Utilization (%): 19.7
Clock Rate (hz): 78.0M
Time (s): 16.5m

Model Layers
+-------+---------+--------+--------+------------+------------+----------+-------------+
| Index | OpCode  | # Ops  | # MACs | Acc Cycles | CPU Cycles | Time (s) | Input Shape |
+-------+---------+--------+--------+------------+------------+----------+-------------+
| 0     | conv_2d | 2.6M   | 1.3M   | 1.2M       | 123.1k     | 14.8m    | 1x49x10x1   |
| 1     | softmax | 60.0   | 0      | 0          | 130.0k     | 1.7m     | 1x12        |
+-------+---------+--------+--------+------------+------------+----------+-------------+
"""
ZEPHYR = """*** Booting Zephyr OS build v3.7.0 ***
Timing results: Clock frequency: 120 MHz
[00:00:01.204,101] <inf> main: conv_2d : 1234560 cycles , 10288000 ns
[00:00:01.204,301] <inf> main: softmax : 2400 cycles , 20000 ns
[00:00:01.204,345] <inf> main: inference : 1237800 cycles , 10315000 ns
[00:00:02.204,101] <inf> main: conv_2d : 1234500 cycles , 10287500 ns
[00:00:02.204,301] <inf> main: softmax : 2412 cycles , 20100 ns
[00:00:02.204,345] <inf> main: inference : 1237788 cycles , 10314900 ns
"""
ZEPHYR_BENCH = "thread.invoke.kernel - Whole inference   :  1237800 cycles , 10315000 ns :\n" * 2

ETHOS_U_KIT = """INFO - Profile for Inference:
INFO - NPU AXI0_RD_DATA_BEAT_RECEIVED beats: 132130
INFO - NPU AXI0_WR_DATA_BEAT_WRITTEN beats: 48252
INFO - NPU AXI1_RD_DATA_BEAT_RECEIVED beats: 17544
INFO - NPU ACTIVE cycles: 413814
INFO - NPU IDLE cycles: 358
INFO - NPU TOTAL cycles: 414172
INFO - Profile for Inference:
INFO - NPU ACTIVE: 413800 cycles
INFO - NPU ETHOSU_PMU_SRAM_RD_DATA_BEAT_RECEIVED: 143 beats
INFO - NPU IDLE: 358 cycles
INFO - NPU TOTAL: 414158 cycles
"""
ETHOS_U_EXECUTORCH = """I [executorch:arm_perf_monitor.cpp:138] Inference runtime: 6925114 CPU cycles total
I [executorch:arm_perf_monitor.cpp:167] Ethos-U PMU report:
I [executorch:arm_perf_monitor.cpp:168] ethosu_pmu_cycle_cntr : 5920305
I [executorch:arm_perf_monitor.cpp:171] ethosu_pmu_cntr0 : 359921
I [executorch:arm_perf_monitor.cpp:171] ethosu_pmu_cntr1 : 503
I [executorch:arm_perf_monitor.cpp:178] Ethos-U PMU Events:[ETHOSU_PMU_EXT0_RD_DATA_BEAT_RECEIVED, ETHOSU_PMU_NPU_IDLE]
"""
ETHOS_U_DRIVER = """Ethos-U PMU report:
ethosu_pmu_cycle_cntr : 134869
ethosu_pmu_cntr0 : 133577
"""

LOGS: dict[str, tuple[str | bytes, ...]] = {
    "npu-profiler": (NPU,), "tflm": (TFLM_TEXT, TFLM_CSV, TFLM_MS, TFLM_MICRO, TFLM_TAGS),
    "neuralspot": (NEURALSPOT, NEURALSPOT_PMU), "st-edge-ai": (ST_NEW, ST_NPU),
    "x-cube-ai": (ST_OLD,), "vela": (VELA,), "mlperf-tiny": (MLPERF_LOG, MLPERF_RESULTS),
    "perf-stat": (PERF_TEXT, PERF_CSV, PERF_REPEATED, PERF_JSON), "itm": (ITM,),
    "mltk": (MLTK_JSON, MLTK_TEXT),
    "ethos-u": (ETHOS_U_KIT, ETHOS_U_EXECUTORCH, ETHOS_U_DRIVER), "zephyr": (ZEPHYR, ZEPHYR_BENCH),
    "etdump": ((Path(__file__).parent / "executorch" / "net.etdp").read_bytes(),),
}
"""Whole logs by the format that reads them."""
