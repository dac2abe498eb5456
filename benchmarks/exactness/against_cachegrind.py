"""Cache counts beside Valgrind: `python -m benchmarks.exactness.against_cachegrind [--write]`.

For each layer and cache the access nest is written as C with constant addresses and compiled.
Then, of the same program:

1. lackey's memory trace inside the operands equals the nest's accesses, one by one;
2. time stamps on lackey's whole trace give the read and write misses cachegrind reports;
3. time stamps on the trace inside the operands give the misses and write-backs of the simulator.

`--write` keeps the rows in `tests/oracles/cache_golden.csv`, so that tests can do without
Valgrind. Needs gcc and valgrind.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.errors import ToolMissingError
from hwmodels.kernel import Access, Nest, Operand

ORACLES = Path(__file__).parents[2] / "tests" / "oracles"
sys.path.insert(0, str(ORACLES))

import cache_traces as oracle  # noqa: E402

GOLDEN = ORACLES / "cache_golden.csv"
CACHES = ((1024, 1, 32), (2048, 2, 32), (4096, 4, 32), (16384, 4, 32), (16384, 4, 64))
BASES = (0x2400_0000, 0x2400_0064)
TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}


def write_c(nests: tuple[Nest, ...], operands: tuple[Operand, ...]) -> str:
    """Write nests as a C program that makes just their accesses to two fixed windows."""
    by_name = {operand.name: operand for operand in operands}
    windows = sorted({operand.address & ~0xFFFF for operand in operands})
    maps = "".join(f"  if (mmap((void *){window}L, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | "
                   "MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) return 1;\n"
                   for window in windows)
    body = "\n".join(_write_nest(nest, by_name, 0) for nest in nests)
    return ("#define _GNU_SOURCE\n#include <stdint.h>\n#include <sys/mman.h>\nint main(void) {\n"
            f"  uint64_t sum = 0;\n{maps}{body}\n  return sum == 42;\n}}\n")


def _write_nest(nest: Nest, operands: dict[str, Operand], depth: int) -> str:
    pad = "  " * (depth + 1)
    if not isinstance(nest, Access):
        inner = "\n".join(_write_nest(part, operands, depth + 1) for part in nest.body)
        return (f"{pad}for (long i{depth} = 0; i{depth} < {nest.extent}; i{depth}++) {{\n{inner}\n"
                f"{pad}}}")
    base = operands[nest.operand].address + nest.offset_bytes
    place = " + ".join([f"{base}L", *(f"i{loop} * {step}L"
                                      for loop, step in enumerate(nest.steps_bytes) if step)])
    target = f"*(volatile {TYPES[nest.width_bytes]} *)({place})"
    made = f"{target} = 0;" if nest.write else f"sum += {target};"
    for guard in nest.guards:
        index = " + ".join([f"{guard.offset}L", *(f"i{loop} * {step}L"
                                                 for loop, step in enumerate(guard.steps))])
        made = f"if ({index} >= 0 && {index} < {guard.limit}L) {made}"
    return pad + made


def run_valgrind(source: str, folder: Path) -> tuple[Path, Path]:
    """Compile; return the program and a file with lackey's trace of it."""
    for tool in ("gcc", "valgrind"):
        if shutil.which(tool) is None:
            raise ToolMissingError(f"{tool} is not installed (apt-get install gcc valgrind)")
    (folder / "nest.c").write_text(source)
    program, trace = folder / "nest", folder / "trace"
    subprocess.run(["gcc", "-O2", "-no-pie", "-o", program, folder / "nest.c"], check=True)
    subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no",
                    f"--log-file={trace}", program], check=True, capture_output=True)
    return program, trace


def read_trace(trace: Path) -> Iterator[tuple[bool, int, int]]:
    """Yield each data access of a lackey trace: whether it stores, address, bytes.

    A modify is a load for cachegrind, and a line it misses is missed by that.
    """
    with trace.open() as lines:
        for line in lines:
            if line[:2] in (" L", " S", " M"):
                address, size = line[3:].split(",")
                yield line[1] == "S", int(address, 16), int(size)


def ask_cachegrind(program: Path, cache: Cache) -> tuple[int, int]:
    """Read and write misses cachegrind reports for the first level."""
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null",
         f"--D1={cache.size_bytes},{cache.ways},{cache.line_bytes}",
         "--I1=32768,8,64", "--LL=1048576,16,64", program], check=True, capture_output=True,
        text=True)
    found = re.search(r"D1\s+misses:\s+[\d,]+\s+\(\s*([\d,]+) rd\s+\+\s+([\d,]+) wr\)", done.stderr)
    assert found, done.stderr
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


def check_layer(name: str, base_address: int, folder: Path) -> list[dict[str, object]]:
    """Compare one layer at one address under every cache; return its golden rows."""
    nests, operands = oracle.make_layer(name, base_address)
    program, trace = run_valgrind(write_c(nests, operands), folder)
    whole = list(read_trace(trace))
    windows = [(operand.address, operand.address + operand.size_bytes) for operand in operands]
    inside = [access for access in whole if any(low <= access[1] < high for low, high in windows)]
    wanted = oracle.list_accesses(nests, operands)
    assert inside == wanted, f"{name}: lackey's trace differs from the nest"
    rows: list[dict[str, object]] = []
    for size_bytes, ways, line_bytes in CACHES:
        cache = Cache(name="l1d", size_bytes=size_bytes, ways=ways, line_bytes=line_bytes)
        reported = ask_cachegrind(program, cache)
        assert list(reported) == oracle.stamp_lines(whole, cache)[1], f"{name}, {cache}: cachegrind"
        misses, _, write_backs = oracle.stamp_lines(inside, cache)
        counts, state = simulate_nests(cache, nests, operands, new_state(cache))
        found = [counts.total("read_misses"), counts.total("write_misses")]
        assert found == misses, f"{name}, {cache}: misses"
        assert counts.write_backs() + oracle.count_dirty(state) == write_backs
        rows.append({
            "layer": name, "base_address": hex(base_address), "size_bytes": size_bytes,
            "ways": ways, "line_bytes": line_bytes, "trace": oracle.hash_trace(inside),
            "accesses": len(inside), "read_misses": misses[0], "write_misses": misses[1],
            "write_backs": write_backs, "cachegrind_read_misses": reported[0],
            "cachegrind_write_misses": reported[1]})
    return rows


def main() -> None:
    """Check all layers; print a row each."""
    rows: list[dict[str, object]] = []
    for name in oracle.LAYERS:
        for base_address in BASES:
            with tempfile.TemporaryDirectory() as folder:
                rows += check_layer(name, base_address, Path(folder))
            print(f"{name:28} at {base_address:#x}: {rows[-1]['accesses']:>7} accesses equal "
                  f"lackey's; {len(CACHES)} caches equal cachegrind's misses")
    if "--write" in sys.argv[1:]:
        with GOLDEN.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
