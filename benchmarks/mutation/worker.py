"""Runs in a folder of its own: makes the mutants of one module, runs a sample of them.

    python worker.py CHILDREN SAMPLE SEED    writes mutants/results.json
"""

from __future__ import annotations

import functools
import gc
import json
import os
import random
import sys
from pathlib import Path


def forget() -> None:
    """Take from a mutant what the parent's run of all tests found: what finds it is mutated, too.

    Caches of functions and modules are emptied; what is kept on disk is by the source, which is the
    same for each mutant, so its folder is a new one.
    """
    from twin.deployment.core import _LOWERED
    from twin.pricing.structure import forget_structures

    forget_structures()
    _LOWERED.clear()
    os.environ["TWIN_COUNTS"] = os.environ["TWIN_FILES"] = os.path.abspath(f"kept/{os.getpid()}")
    gc.unfreeze()  # pytest's hooks and mutmut froze what there was: nothing of it would be listed
    for known in gc.get_objects():
        if isinstance(known, functools._lru_cache_wrapper):
            known.cache_clear()


def main(children: int, sample: int, seed: int) -> None:
    """Generate, choose, run, and write name, status and diff of each mutant."""
    from mutmut import __main__ as mutmut
    from mutmut.mutation.trampoline import set_mutant_under_test

    os.register_at_fork(after_in_child=forget)
    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir(exist_ok=True)
    mutmut.copy_src_dir()
    mutmut.copy_also_copy_files()
    mutmut.create_mutants(children)
    known, _ = mutmut.collect_source_file_mutation_data(mutant_names=())
    names = sorted(name for _, name, _ in known)
    chosen = sorted(random.Random(seed).sample(names, min(sample, len(names))))
    try:
        mutmut._run(chosen, children)
    except SystemExit:
        if any(mutmut.state().tests_by_mangled_function_name.values()):
            raise  # else no test reaches any of them, and all live
    judged, _ = mutmut.collect_source_file_mutation_data(mutant_names=chosen)
    Path("mutants/results.json").write_text(json.dumps([
        {"name": name, "status": mutmut.status_by_exit_code[code],
         "diff": "" if code == 1 else mutmut.get_diff_for_mutant(name, path=data.path)}
        for data, name, code in judged]), encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
