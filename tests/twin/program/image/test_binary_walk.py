"""Machine code followed without its data: planted loops, whose counts the C source states."""

from __future__ import annotations

import shutil
import subprocess

import pytest

pytest.importorskip("elftools", reason="needs the boards extra")

from reference_cache import walk_addresses

from hwmodels.kernel import walk_accesses
from twin.errors import FirmwareError
from twin.program.image.read.flow import Code
from twin.program.image.read.kernels import Extent, count_steps, place_accesses
from twin.program.image.read.network import read_built_image
from twin.program.image.read.walk import Walker

COMPILER = "arm-none-eabi-gcc"
pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None,
                                reason=f"{COMPILER} is not installed")

OUT = 0x20010000
SOURCE = r"""
volatile char stack[4096] __attribute__((section(".stack")));
#define RUN __attribute__((noinline)) void
RUN triangle(volatile int *out)
{
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < i; j++)
            out[j] = i;
}
RUN guarded(volatile int *out)
{
    for (int i = 0; i < 30; i++)
        if (i >= 3 && i < 17)
            out[i] = i;
}
RUN halved(volatile int *out) { for (unsigned i = 1000; i; i >>= 1) out[0] = 1; }
RUN divided(volatile int *out)
{
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < i / 7; j++)
            out[j] = 1;
}
RUN wrapped(volatile int *out) { for (int i = 0; i < 50; i++) out[i % 8] = 1; }
RUN bytes(volatile char *out) { for (int i = 3; i < 90; i += 4) out[i] = 1; }
RUN leave(volatile int *out)
{
    for (int i = 0; i < 100 && i * i <= 200; i++)
        out[i] = 1;
}
RUN twice(volatile int *out) { triangle(out); triangle(out + 1); }
RUN middle(volatile int *out, int skip)
{   /* a loop with two ways in */
    int i = 0;
    if (skip) goto inside;
    do { out[i] = 1; inside: out[100 + i] = 2; i++; } while (i < 12);
}
RUN nested(volatile short *out)
{
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 7; x++)
            for (int k = 0; k < 3; k++)
                if (x + k - 1 >= 0 && x + k - 1 < 7)
                    out[y * 7 + x + k - 1] = 1;
}
RUN asked(volatile int *out) { for (int i = 0; i < out[0]; i++) out[1] = i; }
int keep(void) { return 0; }
"""
TRUTHS = {
    "triangle": [4 * j for i in range(20) for j in range(i)],
    "guarded": [4 * i for i in range(3, 17)],
    "halved": [0] * 10,
    "divided": [4 * j for i in range(40) for j in range(i // 7)],
    "wrapped": [4 * (i % 8) for i in range(50)],
    "bytes": list(range(3, 90, 4)),
    "leave": [4 * i for i in range(15)],
    "twice": [4 * j + 4 * k for k in range(2) for i in range(20) for j in range(i)],
    "nested": [2 * (7 * y + x + k - 1) for y in range(6) for x in range(7) for k in range(3)
               if 0 <= x + k - 1 < 7],
}
MIDDLE = [[place for i in range(12) for place in (4 * i, 400 + 4 * i)]]
MIDDLE.append(MIDDLE[0][1:])


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("walk"), {}

    def image(core: str, level: str):
        if (core, level) not in made:
            source, target = folder / "walk.c", folder / f"{core}{level}.elf"
            source.write_text(SOURCE)
            subprocess.run([
                COMPILER, f"-mcpu={core}", "-mthumb", level, "-ffreestanding", "-nostdlib", "-w",
                "-fno-tree-loop-distribute-patterns", "-Wl,-Ttext=0x08000000,-Tbss=0x20000000",
                "-Wl,--section-start=.stack=0x20008000,--defsym=stack_top=0x20009000,-e,keep",
                "-o", str(target), str(source)], check=True, capture_output=True)
            made[core, level] = read_built_image(target)
        return made[core, level]
    return image


def stores(image, name: str, *arguments: int) -> list[int]:
    """Offsets from OUT of the stores a function makes there, in order."""
    walker = Walker(image, image.symbols["stack_top"])
    events = walker.follow(name, (OUT, *arguments))
    extents = (Extent(name="code", role="parameters", start=0),
               Extent(name="stack", role="scratch", start=0x20008000),
               Extent(name="out", role="output", start=OUT))
    nests, operands = place_accesses(events, extents, lambda address: "ram")
    by_name = {operand.name: operand for operand in operands}
    return [address - OUT for access, address in walk_addresses(nests, by_name)
            if access.write and access.operand == "out"]


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3", "-Os"])
def test_accesses_are_those_of_the_source(images, core, level):
    image = images(core, level)
    for name, truth in TRUTHS.items():
        assert stores(image, name) == truth, name
    assert [stores(image, "middle", skip) for skip in (0, 1)] == MIDDLE


def test_equal_turns_are_one_loop(images):
    """1000 x 1000 turns would be a million stores: they are a handful of nodes."""
    image = images("cortex-m4", "-O2")
    walker = Walker(image, image.symbols["stack_top"])
    events = walker.follow("nested", (OUT,))
    nests, _ = place_accesses(events, (Extent(name="all", role="output", start=0),),
                              lambda address: "ram")
    assert len(list(walk_accesses(nests))) < len(TRUTHS["nested"]) / 2


def test_block_counts_hold_together(images):
    """What enters a block leaves it: taken branches and falls account for every trip."""
    image = images("cortex-m4", "-O2")
    walker = Walker(image, image.symbols["stack_top"])
    trips: dict = {}
    count_steps(walker.follow("guarded", (OUT,)), 1, trips)
    came = {block.start: 0 for block in trips}
    for block, (count, taken) in trips.items():
        ending = block.ending
        if ending.kind == "jump":
            came[ending.target] += count
        elif ending.kind in ("branch", "fall"):
            if taken:
                came[ending.target] += taken
            if count - taken and block.end in came:
                came[block.end] += count - taken
    start = image.symbols["guarded"]
    assert {block.start: count for block, (count, _) in trips.items()} == {
        place: times + (place == start) for place, times in came.items()}


def test_code_that_data_steer_is_refused(images):
    image = images("cortex-m4", "-O2")
    with pytest.raises(FirmwareError, match="data decide where asked goes"):
        stores(image, "asked")


def test_files_that_are_no_image_are_refused(tmp_path, images):
    (tmp_path / "text.elf").write_text("no image")
    with pytest.raises(FirmwareError, match="not an ELF image"):
        read_built_image(tmp_path / "text.elf")
    with pytest.raises(FirmwareError, match="cannot be read"):
        read_built_image(tmp_path / "none.elf")
    image = images("cortex-m4", "-O2")
    with pytest.raises(FirmwareError, match="no function 'run_0'"):
        Walker(image, image.symbols["stack_top"]).follow("run_0")
    with pytest.raises(FirmwareError, match="no function at"):
        Code(image).enter(0x20000000)
    stripped = tmp_path / "stripped.elf"
    subprocess.run(["arm-none-eabi-strip", "-o", str(stripped), str(image.path)], check=True)
    with pytest.raises(FirmwareError, match="not stripped"):
        read_built_image(stripped)
