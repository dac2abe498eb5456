"""twin_probe_npu.h: compiled against the callbacks' names, replayed, imported, compared."""

from __future__ import annotations

import re
import subprocess

import pytest
from made_networks import needs_tools
from typer.testing import CliRunner

from calibration.errors import MeasurementError
from calibration.importers import import_log
from twin import deploy, predict
from twin.cli import app
from twin.pricing.accelerator.report import count_tasks
from twin.program.image.compile.ports import firmware_folder

PROBE = firmware_folder() / "probe"
FLAGS = ("-Wall", "-Wextra", "-Werror", "-Wshadow", "-pedantic", f"-I{PROBE}")
CALLBACKS = """#include <stdint.h>
#define LL_ATON_EB_DBG_INFO
typedef enum { LL_ATON_RT_Callbacktype_PRE_START, LL_ATON_RT_Callbacktype_POST_START,
    LL_ATON_RT_Callbacktype_PRE_END, LL_ATON_RT_Callbacktype_POST_END,
    LL_ATON_RT_Callbacktype_NN_Init } LL_ATON_RT_Callbacktype_t;
enum { EpochBlock_Flags_pure_sw = 32, EpochBlock_Flags_hybrid = 64 };
typedef struct { uint16_t flags; int16_t epoch_num, last_epoch_num;
    uint32_t in_streng_mask, out_streng_mask; } EpochBlock_ItemTypeDef;
typedef struct { int x; } NN_Instance_TypeDef;
"""
COUNTERS = """enum { DBGTRC_VDD = 1, SWITCH_OSTRX_STALL = 2, SWITCH_ISTRX_STALL = 83,
    BUS_INTERFACE_READ1X8B = 276, BUS_INTERFACE_WRITE1X8B = 284,
    DBGTRC_EVT_LOW = 0, DBGTRC_EVT_HI = 1 };
typedef struct { unsigned int signal; unsigned char evt_type, wrap, countdown, int_disable;
    uint32_t counter; } LL_Dbgtrc_Counter_InitTypdef;
int LL_Dbgtrc_Init(int id);
int LL_Dbgtrc_Counter_Init(int id, int counter, LL_Dbgtrc_Counter_InitTypdef *set);
int LL_Dbgtrc_Counter_Start(int id, int counter);
int LL_Dbgtrc_Counter_Stop(int id, int counter);
uint32_t LL_Dbgtrc_Counter_Read(int id, int counter);
"""
REPLAY = """#include <stdio.h>
static unsigned ticks;
static unsigned now(void) { return ticks; }
#define TWIN_PROBE_COUNT() now()
#define TWIN_PROBE_UNIT "cycles"
#define TWIN_PROBE_HERE
#define TWIN_PROBE_PUT(byte) putchar(byte)
#define TWIN_PROBE_HZ 800000000
#define TWIN_PROBE_NPU_HZ 1000000000
#include "twin_probe_npu.h"
struct work { unsigned pre, core, post, npu, bursts[16]; };
static const EpochBlock_ItemTypeDef blocks[] = {BLOCKS};
static const struct work works[] = {WORKS};
static const struct work *work;
static unsigned signals[16], live[16], read[16];
int LL_Dbgtrc_Init(int id) { return id; }
int LL_Dbgtrc_Counter_Init(int id, int counter, LL_Dbgtrc_Counter_InitTypdef *set)
{
    signals[counter] = set->signal;
    live[counter] = read[counter] = 0;
    return id;
}
int LL_Dbgtrc_Counter_Start(int id, int counter) { live[counter] = 1; return id; }
int LL_Dbgtrc_Counter_Stop(int id, int counter)
{
    const unsigned s = signals[counter];
    if (live[counter] && s >= BUS_INTERFACE_READ1X8B)  /* beats by interface; then writes */
        read[counter] = work->bursts[(s % 2) * 8 + (s < BUS_INTERFACE_WRITE1X8B ? 4 : 0)
                                     + (s - BUS_INTERFACE_READ1X8B) / 2 % 4];
    else if (live[counter])
        read[counter] = s == DBGTRC_VDD ? work->npu : work->npu / 2;
    return id;
}
uint32_t LL_Dbgtrc_Counter_Read(int id, int counter) { return read[counter + id]; }
int main(void)
{
    for (int run = 0; run < RUNS; run++) {
        twin_probe_npu_begin("ic");
        twin_probe_npu_epoch(LL_ATON_RT_Callbacktype_NN_Init, 0, 0);
        for (unsigned i = 0; i < sizeof works / sizeof *works; i++) {
            work = &works[i];
            twin_probe_npu_epoch(LL_ATON_RT_Callbacktype_PRE_START, 0, &blocks[i]);
            ticks += work->pre;
            twin_probe_npu_epoch(LL_ATON_RT_Callbacktype_POST_START, 0, &blocks[i]);
            ticks += work->core;
            twin_probe_npu_epoch(LL_ATON_RT_Callbacktype_PRE_END, 0, &blocks[i]);
            ticks += work->post;
            twin_probe_npu_epoch(LL_ATON_RT_Callbacktype_POST_END, 0, &blocks[i]);
            ticks += 7;
        }
        twin_probe_npu_end();
    }
    return 0;
}
"""
MADE = [((16, 1, 0b11, 0b100), (900, 1600, 400, 2000, *range(1, 17))),
        ((64, 2, 0, 0), (50, 60, 70, 0, *[0] * 16)),
        ((128, -1, 0b1, 0b10), (10, 80, 30, 100, *[0] * 16)),
        ((32, 3, 0, 0), (500, 5, 1, 0, *[0] * 16))]
"""Hardware; a hybrid one and the block it inserts; software."""


def replay(folder, epochs, runs: int = 2, *defines: str) -> bytes:
    """Return what the probe sends of inferences of these blocks."""
    (folder / "ll_aton_rt_user_api.h").write_text(CALLBACKS)
    (folder / "ll_aton_dbgtrc.h").write_text(COUNTERS)
    blocks = ", ".join(f"{{{flags}, {number}, {number}, {ins}, {outs}}}"
                       for (flags, number, ins, outs), _ in epochs)
    works = ", ".join(f"{{{pre}, {core}, {post}, {npu}, {{{', '.join(map(str, bursts))}}}}}"
                      for _, (pre, core, post, npu, *bursts) in epochs)
    (folder / "npu.c").write_text(REPLAY.replace("BLOCKS", blocks).replace("WORKS", works)
                                  .replace("RUNS", str(runs)))
    subprocess.run(["cc", "-std=c99", *FLAGS, *defines, f"-I{folder}", str(folder / "npu.c"), "-o",
                    str(folder / "npu")], check=True)
    return subprocess.run([str(folder / "npu")], capture_output=True, check=True).stdout


@needs_tools("cc")
def test_epochs_and_counters_of_all_passes_are_imported(tmp_path):
    log = tmp_path / "serial.log"
    log.write_bytes(replay(tmp_path, MADE))
    imported = import_log("probe", log, board="stm32n6570_dk")
    found = imported.measurement
    told = dict(found.header.environment)
    assert [told[f"epoch {place}"] for place in (0, 1, 3)] == [
        "EpochBlock_1 HW", "EpochBlock_2 HYBRID", "EpochBlock_3 SW"] and found.layers == (0, 1, 3)
    one = {name: found.values(name, 0)[0] for name in found.counters if found.count(name, 0)}
    assert (one["pre_cycles"], one["core_cycles"], one["post_cycles"]) == (900, 1600, 400)
    assert one["core_npu_cycles"] == 2000 and one["engine_2_out_active_cycles"] == 1000
    assert one["busif0_write_bursts_1"] == 1 and one["busif1_read_bursts_8"] == 16
    assert one["busif0_write_bytes"] == 8 * (1 + 2 * 2 + 3 * 4 + 4 * 8)
    assert found.count("core_npu_cycles", 0) == found.count("busif0_read_bytes", 0) == 1
    assert found.count("pre_cycles", 0) == 2
    assert found.values("extra_core_cycles", 1)[0] == 80 == found.values("core_cycles", 1)[0] + 20
    assert found.values("core_npu_cycles", 1)[0] == 100 and not found.count("core_npu_cycles", 3)
    assert found.values("cpu_cycles")[0] == sum(sum(work[:3]) for _, work in MADE)
    assert found.values("duration")[0] == pytest.approx(found.values("cpu_cycles")[0] / 800)
    assert not imported.remarks and dict(found.header.clocks_hz) == {"cpu": 8e8, "npu": 1e9}


@needs_tools("cc")
def test_what_cannot_be_right_is_said(tmp_path):
    log = tmp_path / "serial.log"
    slept = [((16, 1, 1, 2), (900, 100, 400, 2000, *[0] * 16)),
             ((16 | 4, 2, 1, 2), (900, 100, 400, 2000, *[0] * 16))]
    log.write_bytes(replay(tmp_path, slept, 1))
    said = " ".join(import_log("probe", log).remarks)
    assert "it slept" in said and "epochs 2 to 2 ran as one block" in said
    log.write_bytes(replay(tmp_path, MADE, 2, "-DTWIN_PROBE_NPU_EPOCHS=3"))
    with pytest.raises(MeasurementError, match="lost 1 marks: raise TWIN_PROBE_NPU_EPOCHS"):
        import_log("probe", log)


@needs_tools("cc")
def test_a_replayed_prediction_compares_with_itself(tmp_path):
    """Each epoch of `ic` as predicted, sent by the probe, imported, set beside the prediction."""
    epochs = []
    predicted = predict(deploy("ic", "stm32n6570_dk", runtime="neural-art"))
    for epoch, counts in zip(predicted.tasks, count_tasks(predicted), strict=True):
        number = int(re.sub(r"\D", "", epoch.name) or 0)
        flags = 16 if "core_npu_cycles" in counts else 32
        bursts = [round(counts.get(f"busif{busif}_{way}_bursts_{beats}", 0)) for busif in (0, 1)
                  for way in ("write", "read") for beats in (1, 2, 4, 8)]
        masks = [sum(1 << engine.channel for engine in epoch.run.task.transfers
                     if engine.direction == way) for way in ("in", "out")]
        epochs.append(((flags, number, *masks), (*(
            round(counts[f"{phase}_cycles"]) for phase in ("pre", "core", "post")),
            round(counts.get("core_npu_cycles", 0)), *bursts)))
    log = tmp_path / "serial.log"
    log.write_bytes(replay(tmp_path, epochs))
    runner = CliRunner()
    told = runner.invoke(app, ["import", "probe", str(log), "--model", "ic", "-b",
                               "stm32n6570_dk", "-o", str(tmp_path / "m")])
    assert told.exit_code == 0, told.output
    shown = runner.invoke(app, ["compare", "ic", "-b", "stm32n6570_dk", "--measured",
                                str(tmp_path / "m")])
    assert shown.exit_code == 0, shown.output
    for line in ("pre + core + post, MCU cycles", "core, NPU cycles", "busif0, read, bytes"):
        pairs = re.findall(rf"^{re.escape(line)} +([\d,]+) +([\d,]+)", shown.output, re.MULTILINE)
        assert len(pairs) > 10 and all(ours == theirs for ours, theirs in pairs), (line, pairs)
