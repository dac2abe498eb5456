"""Dask's scheduler and workers, forked from a process that has imported what they need."""

import os
import sys
from importlib import import_module
from multiprocessing import get_context

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload([
    "distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "pandas", "pyarrow.parquet",
    "twin.pricing.batched", "twin.studies.sweep", "twin.studies.study.workers"])


def begin(kind, *words):
    """Begin a scheduler or a worker by the words of its command line."""
    process = FORKS.Process(target=_run, args=(kind, words), daemon=True)
    process.start()
    return process


def _run(kind, words):
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.argv = [kind, *words]
    import_module(f"distributed.cli.dask_{kind}").main(words, standalone_mode=False)
