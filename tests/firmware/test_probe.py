"""twin_probe.h: compiled as a user would, run, and read back by `import` and `measure --probe`."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import tty

import pytest
from made_networks import needs_tools
from typer.testing import CliRunner

pytest.importorskip("cobs", reason="needs the boards extra")

from made_patience import HANG_S

from calibration.errors import MeasurementError
from calibration.importers import import_log
from tests.oracles.probe_lines import count_inferences
from twin.cli import app
from twin.program.image.compile.ports import firmware_folder

PROBE = firmware_folder() / "probe"
NAMES = ("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D",
         "DEPTHWISE_CONV_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "AVERAGE_POOL_2D",
         "RESHAPE", "FULLY_CONNECTED", "SOFTMAX")
"""Operators of kws."""
PROGRAM = """#define TWIN_PROBE_HERE
void sent(unsigned char byte);
#define TWIN_PROBE_PUT(byte) sent(byte)
#define TWIN_PROBE_HZ 1000000
#include "twin_probe.h"
void run(int inferences);
void run(int inferences)
{
    static const char *const names[] = {NAMES};
    for (int inference = 0; inference < inferences; inference++) {
        twin_probe_begin("kws");
        for (int i = 0; i < COUNT; i++)
            twin_probe_layer(names[i]);
        twin_probe_leave();
        twin_probe_end();
    }
}
""".replace("NAMES", ", ".join(f'"{name}"' for name in NAMES)).replace("COUNT", str(len(NAMES)))
HOST = """
#include <stdio.h>
#ifndef STEP
#define STEP 100
#endif
static unsigned now(void) { static unsigned ticks; return ticks += STEP; }
#define TWIN_PROBE_COUNT() now()
PROGRAM
void sent(unsigned char byte) { putchar(byte); }
int main(void) { run(3); return 0; }
"""
FLAGS = ("-Wall", "-Wextra", "-Werror", "-Wshadow", "-pedantic", f"-I{PROBE}")
CROSS = {"m4": ("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m4", "-std=c99"),
         "m55": ("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m55", "-std=c99"),
         "riscv": ("riscv64-unknown-elf-gcc", "-march=rv32imac_zicsr", "-mabi=ilp32",
                   "-ffreestanding"),
         "m33 in C++": ("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m33", "-x", "c++",
                        "-std=c++11")}


def send(folder, *defines: str) -> bytes:
    """Return what the host's program sends: a counter that goes on by STEP at each reading."""
    source = folder / "program.c"
    source.write_text(HOST.replace("PROGRAM", PROGRAM))
    subprocess.run(["cc", "-std=c99", *FLAGS, *defines, str(source), "-o", str(folder / "p")],
                   check=True)
    return subprocess.run([str(folder / "p")], capture_output=True, check=True).stdout


@needs_tools("cc")
@pytest.mark.parametrize("defines", [(), ("-DTWIN_PROBE_COBS",)], ids=["text", "frames"])
def test_what_is_sent_is_imported(tmp_path, defines):
    data = send(tmp_path, *defines)
    log = tmp_path / "serial.log"
    log.write_bytes(data)
    imported = import_log("probe", log)
    assert imported.clocked  # its own hz is the length of a tick
    found = imported.measurement
    assert found.runs == (0, 1, 2) and found.layers == tuple(range(13))
    assert set(found.values("timer_ticks")) == {100 * 15}  # marks, leave and end: each reads once
    assert {found.values("timer_ticks", i)[0] for i in range(12)} == {100}
    assert found.values("latency", 0)[0] == 100 and found.header.model == "kws"
    assert dict(found.header.environment)["operators"] == ",".join(NAMES)
    middle = len(data) // 2
    assert count_inferences(data) == 3 and count_inferences(data[middle:]) == 1
    log.write_bytes(data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1:])
    damaged = import_log("probe", log)
    assert damaged.measurement.runs == (0, 1) and "omitted" in damaged.remarks[0]


@needs_tools("cc")
def test_a_mark_too_many_is_told(tmp_path):
    log = tmp_path / "serial.log"
    log.write_bytes(send(tmp_path, "-DTWIN_PROBE_LAYERS=4"))
    with pytest.raises(MeasurementError, match="lost 9 marks: raise TWIN_PROBE_LAYERS"):
        import_log("probe", log)


@pytest.mark.parametrize("defines", [(), ("-DTWIN_PROBE_COBS",)], ids=["text", "frames"])
@pytest.mark.parametrize("core", CROSS)
def test_it_compiles_for_cores(tmp_path, core, defines):
    if shutil.which(CROSS[core][0]) is None:
        pytest.skip(f"{CROSS[core][0]} is not installed")
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    subprocess.run([*CROSS[core], *FLAGS, *defines, "-O2", "-c", str(source), "-o",
                    str(tmp_path / "p.o")], check=True)


HOOKS = """typedef void *ai_handle;
typedef unsigned ai_u32;
typedef struct { unsigned short c_idx; } ai_observer_node;
enum { AI_OBSERVER_PRE_EVT = 2, AI_OBSERVER_POST_EVT = 4 };
typedef int LL_ATON_RT_Callbacktype_t;
typedef struct { int x; } NN_Instance_TypeDef;
typedef struct { int x; } LL_ATON_RT_EpochBlockItem_t;
enum { LL_ATON_RT_Callbacktype_PRE_START, LL_ATON_RT_Callbacktype_POST_END = 3 };
PROGRAM
TWIN_PROBE_ST_OBSERVER()
TWIN_PROBE_ATON()
unsigned use(void);
unsigned use(void)
{
    twin_probe_on_epoch(0, 0, 0);
    return twin_probe_on_node(0, 2, 0);
}
"""
TFLM = """#include <stdint.h>
namespace tflite {
class MicroProfilerInterface {
  public:
    virtual ~MicroProfilerInterface() {}
    virtual uint32_t BeginEvent(const char *tag) = 0;
    virtual void EndEvent(uint32_t event) = 0;
};
}
"""


@needs_tools("arm-none-eabi-g++")
def test_hooks_of_libraries_compile(tmp_path):
    """Against declarations as the libraries publish them."""
    made = tmp_path / "tensorflow/lite/micro/micro_profiler_interface.h"
    made.parent.mkdir(parents=True)
    made.write_text(TFLM)
    source = tmp_path / "hooks.c"
    source.write_text(HOOKS.replace("PROGRAM", PROGRAM))
    subprocess.run([*CROSS["m4"], *FLAGS, "-c", str(source), "-o", str(tmp_path / "h.o")],
                   check=True)
    profiler = tmp_path / "profiler.cc"
    profiler.write_text('#define TWIN_PROBE_TFLM\n#include "twin_probe.h"\nTwinProbe probe;\n')
    subprocess.run(["arm-none-eabi-g++", "-mthumb", "-mcpu=cortex-m4", "-std=c++14", "-c",
                    f"-I{tmp_path}", f"-I{PROBE}", "-Wall", "-Wextra", "-Werror", str(profiler),
                    "-o", str(tmp_path / "p.o")], check=True)


@needs_tools("arm-none-eabi-gcc")
def test_cycles_of_an_emulated_core(tmp_path):
    """DWT's counter answers 1000 more at each reading: that is what each layer took."""
    unicorn = pytest.importorskip("unicorn", reason="needs the boards extra")
    from unicorn import arm_const as arm

    source = tmp_path / "program.c"
    source.write_text(PROGRAM + "void sent(unsigned char byte) { *(volatile unsigned char *)"
                                "0x40004000 = byte; }\nvoid _start(void) { run(2); for (;;); }\n")
    image = tmp_path / "p.elf"
    subprocess.run([*CROSS["m4"], *FLAGS, "-O2", "-Wno-missing-prototypes", "-nostdlib",
                    "-ffreestanding", "-Wl,-Ttext=0x1000,-Tdata=0x20000000,-Tbss=0x20001000",
                    str(source), "-lgcc", "-o", str(image)], check=True)
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", "-j", ".text", "-j", ".rodata",
                    str(image), str(tmp_path / "p.bin")], check=True)
    symbols = subprocess.run(["arm-none-eabi-nm", str(image)], capture_output=True, text=True,
                             check=True).stdout
    enter = int(next(line for line in symbols.splitlines() if line.endswith(" _start"))[:8], 16)
    machine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    for base in (0, 0x20000000, 0x40000000, 0xE0000000):
        machine.mem_map(base, 1 << 20)
    machine.mem_write(0x1000, (tmp_path / "p.bin").read_bytes())
    heard, cycles = bytearray(), [0]

    def write(machine, access, address, size, value, data):
        heard.append(value & 0xFF)

    def read(machine, access, address, size, value, data):
        cycles[0] += 1000
        machine.mem_write(0xE0001004, (cycles[0] % (1 << 32)).to_bytes(4, "little"))

    machine.hook_add(unicorn.UC_HOOK_MEM_WRITE, write, begin=0x40004000, end=0x40004003)
    machine.hook_add(unicorn.UC_HOOK_MEM_READ, read, begin=0xE0001004, end=0xE0001007)
    machine.reg_write(arm.UC_ARM_REG_SP, 0x20080000)
    machine.emu_start(enter | 1, 0, count=400_000)
    (tmp_path / "serial.log").write_bytes(heard)
    found = import_log("probe", tmp_path / "serial.log").measurement
    assert found.values("cpu_cycles", 3).tolist() == [1000, 1000]
    assert found.values("cpu_cycles").tolist() == [15_000, 15_000]


@needs_tools("cc")
def test_measure_listens(tmp_path):
    """From the middle of one inference on, until two are whole."""
    pytest.importorskip("serial", reason="needs the boards extra")
    data = send(tmp_path, "-DSTEP=10000")  # no core multiplies so fast that 100 us would do
    master, slave = os.openpty()
    tty.setraw(slave)
    stop = threading.Event()

    os.set_blocking(master, False)  # nobody listens any more at the end

    def talk() -> None:
        while not stop.wait(0.02):
            with contextlib.suppress(BlockingIOError):
                os.write(master, b"boot\r\n" + data[400:])

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        result = CliRunner().invoke(app, [
            "measure", "kws", "-b", "nucleo_l4r5zi", "--port", os.ttyname(slave), "--probe",
            "--runs", "2", "-o", str(tmp_path / "m")])
    finally:
        stop.set()
        thread.join(HANG_S)
        os.close(slave)
        os.close(master)
    assert result.exit_code == 0, result.stderr
    assert "depthwise" in result.stdout and "its own" in result.stdout
