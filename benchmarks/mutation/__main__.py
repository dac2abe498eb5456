"""Changes the code of the modules a bill is made of, one place at a time: do the tests notice?

    python -m benchmarks.mutation [--module M]... [--sample N] [--seed S] [--show]
                                   [--together | --everywhere]

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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutation.modules import (
    MODULES,
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

LEAST_IN_PACKAGE = 0.90
"""Share of a sample over all packages that tests must surely kill in each package."""

LEAST_SHARE = 0.95
"""Share of the mutants that can be told at all which tests must kill."""

SURE = 0.01
"""How improbable a sample must be to say that the share is not reached."""

KILLED = ("killed", "timeout", "caught by type check", "segfault", "suspicious")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a module's mutants.

    Parameters
    ----------
    mutants : int
        There are in all.
    counts : Counter of str
        Of those run, by status; "equivalent" are survivors a rule explains.
    survivors : tuple of (str, str)
        Name and diff.
    """

    mutants: int
    counts: Counter[str]
    survivors: tuple[tuple[str, str], ...]

    @property
    def share(self) -> float:
        """Killed of those that can be."""
        told = self.counts.total() - self.counts["equivalent"]
        return sum(self.counts[status] for status in KILLED) / told if told else 1.0


def join_modules(names: Sequence[str]) -> Module:
    """Return modules as one, so that what a run takes before its first mutant is paid once."""
    chosen = [MODULES[name] for name in names]
    return Module(tuple(dict.fromkeys(file for one in chosen for file in one.files)),
                  tuple(dict.fromkeys(test for one in chosen for test in one.tests)))


def run_module(name: str, module: Module, *, sample: int, seed: int, children: int) -> Outcome:
    """Mutate one module and run its tests.

    Parameters
    ----------
    name : str
        Of the folder it is done in, below `out/mutation`.
    module : Module
        Files and tests.
    sample : int
        Mutants to run, drawn at random; 0 is all.
    seed : int
        Of the draw.
    children : int
        Processes at once.
    """
    folder = ROOT / "out" / "mutation" / name
    _prepare(folder, module)
    plain = any(file.startswith("hwmodels/kernels") for file in list_files(module.files))
    environment = os.environ | {"NUMBA_DISABLE_JIT": str(int(plain)),
                                "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("worker.py")), str(children), str(sample),
         str(seed)], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    results = folder / "mutants" / "results.json"
    if not results.exists():
        sys.exit(f"{name}: mutmut could not run\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return _read(json.loads(results.read_text(encoding="utf-8")))


def _prepare(folder: Path, module: Module) -> None:
    """Make a folder with what mutmut reads: the packages, the tests, and what to do."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in (*PACKAGES, *READ_BY_TESTS, "tests", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "setup.cfg").write_text("\n".join([
        "[mutmut]", _option("source_paths", PACKAGES),
        _option("only_mutate", list_files(module.files)),
        _option("also_copy", READ_BY_TESTS),
        _option("do_not_mutate_patterns", NOT_MUTATED),
        _option("pytest_add_cli_args", ("-p", "no:cacheprovider", "-p", "no:xdist",
                                         *(f"--deselect={test}" for test in NO_JUDGES))),
        _option("pytest_add_cli_args_test_selection", list_files(module.tests)), ""]),
        encoding="utf-8")


def _option(name: str, values: object) -> str:
    return f"{name} =\n" + "\n".join(f"    {value}" for value in values)  # type: ignore[attr-defined]


def _read(document: dict[str, object]) -> Outcome:
    counts: Counter[str] = Counter()
    survivors = []
    for result in document["results"]:  # type: ignore[attr-defined]
        status, diff = result["status"], result["diff"]
        if status not in KILLED:
            changed = [line for line in diff.splitlines()
                       if line[:1] in "+-" and line[:3] not in ("+++", "---")]
            if explain("\n".join(changed)) is not None:
                status = "equivalent"
            else:
                survivors.append((result["name"], "\n".join(changed)))
        counts[status] += 1
    return Outcome(int(document["mutants"]), counts, tuple(survivors))  # type: ignore[call-overload]


def refutes(run: int, survived: int) -> bool:
    """Whether so many survivors of a sample are too many for `LEAST_SHARE`, at `SURE`.

    Parameters
    ----------
    run, survived : int
        Mutants of the sample that can be told, and those tests let live.

    Notes
    -----
    P(at least so many survive) if each did with probability 1 - `LEAST_SHARE`, binomial.
    """
    lives = 1 - LEAST_SHARE
    fewer = sum(math.comb(run, count) * lives**count * (1 - lives)**(run - count)
                for count in range(survived))
    return 1 - fewer < SURE


def bound_below(run: int, survived: int) -> float:
    """Return the share killed that a sample leaves no doubt of: Wilson's bound, one side, 95 %.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference", J. Am. Stat. Assoc. 22, 1927, p. 209.
    """
    square, share = 1.645**2, 1 - survived / run
    spread = math.sqrt(square * (share * (1 - share) + square / (4 * run)) / run)
    return (share + square / (2 * run) - spread) / (1 + square / run)


def main() -> int:
    """Run the modules asked for; 1 when fewer are killed than must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--module", action="append", choices=list(MODULES))
    parser.add_argument("--sample", type=int, default=0, help="of each module; all without it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--everywhere", action="store_true",
                        help="a sample drawn over all packages, against 90 % killed in each")
    parser.add_argument("--together", action="store_true", help="sample the modules as one")
    parser.add_argument("--show", action="store_true", help="what survived, line by line")
    asked = parser.parse_args()
    failed = False
    print(f"{'module':<10} {'mutants':>8} {'run':>6} {'killed':>7} {'timeout':>8} {'survived':>9} "
          f"{'equivalent':>11} {'share':>7}")
    names = asked.module or list(MODULES)
    chosen = {name: (MODULES[name], asked.sample) for name in names}
    if asked.together:
        chosen = {"together": (join_modules(names), asked.sample)}
    elif asked.everywhere:
        chosen = draw_rooms(asked.sample, asked.seed)
    packages: dict[str, list[int]] = {}
    for name, (module, sample) in chosen.items():
        outcome = run_module(name.replace("/", "-"), module, sample=sample, seed=asked.seed,
                             children=asked.children)
        counts = outcome.counts
        print(f"{name:<10} {outcome.mutants:>8} {counts.total():>6} {counts['killed']:>7} "
              f"{counts['timeout']:>8} {len(outcome.survivors):>9} {counts['equivalent']:>11} "
              f"{outcome.share:>7.1%}", flush=True)
        for survivor, diff in outcome.survivors if asked.show else ():
            print(f"  {survivor}\n{diff}", flush=True)
        if asked.everywhere:
            package = packages.setdefault(name.split("/")[0], [0, 0])
            package[0] += counts.total() - counts["equivalent"]
            package[1] += len(outcome.survivors)
            continue
        failed |= (refutes(counts.total() - counts["equivalent"], len(outcome.survivors))
                   if asked.sample else outcome.share < LEAST_SHARE)
    for name, (run, survived) in packages.items():
        print(f"{name:<12} seed {asked.seed}: {run - survived} of {run} killed, "
              f"surely {bound_below(run, survived):.1%}")
        failed |= bound_below(run, survived) < LEAST_IN_PACKAGE
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
