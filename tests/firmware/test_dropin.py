"""The two files of `twin firmware export`, in a project that is not ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import tty

import pytest
from made_networks import needs_tools, random_network

pytest.importorskip("serial", reason="needs the boards extra")
pytest.importorskip("cobs", reason="needs the boards extra")

from calibration.collecting.link import open_link
from calibration.collecting.wire.session import Session
from twin.api.commands.firmware import export_firmware
from twin.errors import FirmwareError, UsageError
from twin.program.image.compile.dropin import join_sources, write_drop_in
from twin.program.image.compile.ports import firmware_folder
from twin.program.image.compile.source import generate_source
from twin.program.image.compile.verification import random_input, run_on_board

PROJECT = """#include <poll.h>
#include <time.h>
#include <unistd.h>
#include "twin_network.h"
static int32_t next_byte(void)
{
    struct pollfd waiting = {.fd = 0, .events = POLLIN};
    unsigned char byte;
    if (poll(&waiting, 1, 0) <= 0)
        return -1;
    if (read(0, &byte, 1) != 1)
        _exit(0);
    return byte;
}
static void send(uint8_t byte) { if (write(1, &byte, 1) != 1) _exit(1); }
static uint32_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint32_t)(t.tv_sec * 1000000000u + t.tv_nsec);
}
int main(void)
{
    static const struct twin_line line = {
        .read = next_byte, .write = send, .count = now, .count_hz = 1000000000u};
    twin_network_run(&line);
}
"""
KINDS = ("conv", "depthwise", "add", "max_pool_2d", "pad", "pointwise", "average_pool_2d")
CROSS = {"m55": ("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m55", "-mfloat-abi=hard"),
         "riscv": ("riscv64-unknown-elf-gcc", "-march=rv32imac_zicsr", "-mabi=ilp32",
                   "-ffreestanding")}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    graph, folder = random_network(31, kinds=KINDS), tmp_path_factory.mktemp("dropin")
    write_drop_in(generate_source(graph, "armv7e-m"), "made", folder)
    return graph, folder


@needs_tools("cc")
def test_a_project_on_the_host_answers_with_right_layers(exported):
    graph, folder = exported
    (folder / "main.c").write_text(PROJECT)
    subprocess.run(["cc", "-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror",
                    str(folder / "main.c"), str(folder / "twin_network.c"), "-o",
                    str(folder / "project")], check=True)
    master, slave = os.openpty()
    tty.setraw(slave)
    tty.setraw(master)
    project = subprocess.Popen([str(folder / "project")], stdin=master, stdout=master)
    try:
        with open_link(os.ttyname(slave)) as link:
            session = Session(link)
            session.open(timeout_s=10.0)
            identity = session.identify()
            assert identity.port == "dropin" and identity.has("TIMER")
            run = run_on_board(session, graph, random_input(graph, 1), runs=1)
            session.stop()
        assert run.is_right and run.total >= sum(layer.count for layer in run.layers) > 0
    finally:
        project.kill()
        project.wait()
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("core", CROSS)
def test_it_compiles_without_a_warning(exported, core, tmp_path):
    if shutil.which(CROSS[core][0]) is None:
        pytest.skip(f"{CROSS[core][0]} is not installed")
    subprocess.run([*CROSS[core], "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-c",
                    str(exported[1] / "twin_network.c"), "-o", str(tmp_path / "x.o")], check=True)


def test_an_unknown_instruction_set_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"--isa 'armv9'; .*armv"):
        export_firmware("kws", output=tmp_path, isa="armv9")


def test_names_of_two_files_stay_apart(tmp_path):
    """Statics of one name, and macros, each with its own file's."""
    (tmp_path / "a.h").write_text("int shared;\n")
    joined = join_sources([
        ("one.c", '#include "a.h"\n#define N 1\nstatic int place;\nstatic int f(void)\n{\n}\n'),
        ("two.c", '#include "a.h"\nstatic int place = 2;\n')], [tmp_path])
    assert joined.count("int shared;") == 1 and joined.count("#define place") == 2
    assert "#undef N\n" in joined and "f" not in joined.split("#define place")[0]
    with pytest.raises(FirmwareError, match=r"b\.h: no such header"):
        join_sources([("one.c", '#include "b.h"\n')], [tmp_path])


ZEPHYR = """#pragma once
#include <stdint.h>
struct device;
extern const struct device made_console;
#define DEVICE_DT_GET(node) (&made_console)
#define DT_CHOSEN(name) name
int uart_poll_in(const struct device *dev, unsigned char *byte);
void uart_poll_out(const struct device *dev, unsigned char byte);
uint32_t k_cycle_get_32(void);
int sys_clock_hw_cycles_per_sec(void);
typedef uint64_t timing_t;
void timing_init(void);
void timing_start(void);
timing_t timing_counter_get(void);
uint64_t timing_freq_get(void);
void k_busy_wait(uint32_t us);
#define IS_ENABLED(option) 1
"""


@needs_tools("cc")
@pytest.mark.parametrize("defines", [
    (), ("-DCONFIG_TIMING_FUNCTIONS", "-DCONFIG_CPU_CORTEX_M_HAS_DWT"),
    ("-DCONFIG_RISCV", "-DCONFIG_QEMU_TARGET"), ("-DCONFIG_RISCV", "-DCONFIG_SOC_SERIES_ESP32C3")])
def test_the_line_of_the_zephyr_module_compiles(exported, tmp_path, defines):
    """Against declarations as Zephyr documents them; its README has what Zephyr made of it."""
    module = firmware_folder() / "ports/zephyr"
    (tmp_path / "made.h").write_text(ZEPHYR)
    for name in ("device.h", "kernel.h", "drivers/uart.h", "timing/timing.h"):
        header = tmp_path / "zephyr" / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text('#include "made.h"\n')
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}",
                    f"-I{module / 'include'}", f"-I{exported[1]}", *defines, "-fsyntax-only",
                    str(module / "line.c"), str(module / "sample/src/main.c")], check=True)


def test_the_zephyr_module_names_files_that_are_there():
    import yaml

    module = firmware_folder() / "ports/zephyr"
    build = yaml.safe_load((module / "zephyr/module.yml").read_text())["build"]
    assert (module / build["cmake"] / "CMakeLists.txt").is_file()
    assert (module / build["kconfig"]).is_file()
    cases = yaml.safe_load((module / "sample/testcase.yaml").read_text())["tests"]
    assert set(cases) == {"twin.measure.qemu", "twin.measure.boards"}
    assert yaml.safe_load((module / "west.yml").read_text())["manifest"]["self"]["path"] == "twin"
