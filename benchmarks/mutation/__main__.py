"""Changes the code of the packages, one place at a time: do the tests notice?

    python -m benchmarks.mutation [--sample N] [--seed S] [--rooms FOLDER...]
    python -m benchmarks.mutation [--sample N] [--seed S] --files GLOB... --tests GLOB...

Mutants are mutmut's: another number, operator, comparison, string, argument, branch. Each runs in
a process forked from one that has imported everything, against the tests that reach its function.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.mutation.modules import (
    NO_JUDGES,
    NOT_MUTATED,
    PACKAGES,
    READ_BY_TESTS,
    ROOT,
    Module,
    draw_rooms,
    explain,
    list_files,
)

LEAST_SHARE = 0.90
"""Share of the mutants that can be told at all which tests must kill."""

ALIVE = ("survived", "no tests")
"""What mutmut says of a mutant whose tests passed, or that none reaches."""


def run_module(name: str, module: Module, sample: int, seed: int) -> tuple[int, int, list[str]]:
    """Mutate one module and run its tests.

    Parameters
    ----------
    name : str
        Of the folder it is done in, below `out/mutation`.
    module : Module
        Files and tests.
    sample : int
        Mutants to run, drawn at random.
    seed : int
        Of the draw.

    Returns
    -------
    (int, int, list of str)
        Mutants that tests can tell, those they killed, and name and change of each survivor.
    """
    folder = ROOT / "out" / "mutation" / name
    _prepare(folder, module)
    plain = any(file.startswith("hwmodels/kernels") for file in list_files(module.files))
    environment = os.environ | {"NUMBA_DISABLE_JIT": str(int(plain)),
                                "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("worker.py"), str(os.cpu_count() or 1),
         str(sample), str(seed)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False)
    results = folder / "mutants" / "results.json"
    if not results.exists():
        sys.exit(f"{name}: mutmut could not run\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    judged, survivors = 0, []
    for result in json.loads(results.read_bytes()):
        changed = "\n".join(line for line in result["diff"].splitlines()
                            if line[:1] in "+-" and line[:3] not in ("+++", "---"))
        alive = result["status"] in ALIVE
        if not alive or explain(changed) is None:
            judged += 1
            survivors += [f"{result['name']}\n{changed}"] * alive
    return judged, judged - len(survivors), survivors


def _prepare(folder: Path, module: Module) -> None:
    """Make a folder with what mutmut reads: the packages, the tests, and what to do."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in (*PACKAGES, *READ_BY_TESTS, "tests", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "setup.cfg").write_text("\n".join([
        "[mutmut]", _option("source_paths", PACKAGES),
        _option("only_mutate", list_files(module.files)),
        _option("also_copy", READ_BY_TESTS), "timeout_constant = 4",
        _option("do_not_mutate_patterns", NOT_MUTATED),
        _option("pytest_add_cli_args", ("-p", "no:cacheprovider", "-p", "no:xdist",
                                         *(f"--deselect={test}" for test in NO_JUDGES))),
        _option("pytest_add_cli_args_test_selection", list_files(module.tests)), ""]),
        encoding="utf-8")


def _option(name: str, values: object) -> str:
    return f"{name} =\n" + "\n".join(f"    {value}" for value in values)  # type: ignore[attr-defined]


def bound_below(judged: int, killed: int) -> float:
    """Return the share killed that a sample leaves no doubt of: Wilson's bound, one side, 95 %.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference", J. Am. Stat. Assoc. 22, 1927, p. 209.
    """
    square, share = 1.645**2, killed / judged
    spread = math.sqrt(square * (share * (1 - share) + square / (4 * judged)) / judged)
    return (share + square / (2 * judged) - spread) / (1 + square / judged)


def main() -> int:
    """Run mutants of the files asked for, or drawn; 1 when fewer are killed than must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rooms", nargs="+", default=PACKAGES, help="folders to draw from")
    parser.add_argument("--files", nargs="+", help="globs of what is mutated, instead of a draw")
    parser.add_argument("--tests", nargs="+", default=[], help="globs of what judges those files")
    parser.add_argument("--sample", type=int, default=300, help="mutants to run")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    chosen = draw_rooms(asked.sample, asked.seed, asked.rooms) if asked.files is None else {
        "files": (Module(tuple(asked.files), tuple(asked.tests)), asked.sample)}
    print(f"seed {asked.seed}")
    all_judged, all_killed = Counter[str](), Counter[str]()
    for name, (module, mutants) in chosen.items():
        judged, killed, survivors = run_module(name.replace("/", "-"), module, mutants, asked.seed)
        print(f"{name}: {killed} of {judged} killed", *survivors, sep="\n  ", flush=True)
        all_judged[name.split("/")[0]] += judged
        all_killed[name.split("/")[0]] += killed
    for package, judged in all_judged.items():
        killed = all_killed[package]
        print(f"{package}: {killed} of {judged} killed, {killed / judged:.1%}, "
              f"surely {bound_below(judged, killed):.1%}")
    return any(all_killed[name] < LEAST_SHARE * judged for name, judged in all_judged.items())


if __name__ == "__main__":
    sys.exit(main())
