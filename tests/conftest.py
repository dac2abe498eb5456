"""In continuous integration (CI is set) nothing is skipped, but for models nobody may bundle.

No test is decided by how fast the machine is: examples have no deadline, lines are patient.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from twin.__main__ import COLLECTION, THREADS
from twin.network import zoo

settings.register_profile("any machine", deadline=None,
                          suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
os.environ["TWIN_PATIENCE"] = "100"
os.environ.setdefault(THREADS, "1")  # as commands do; two workers' threads wait for each other
os.environ.pop("COLUMNS", None)  # Of the terminal tests were started in; piped tables honour it.

_kept = tempfile.TemporaryDirectory(prefix="twin-kept-")  # by workers and commands they start
os.environ.setdefault("TWIN_COUNTS", f"{_kept.name}/counts")  # not for the user, as what is built
os.environ.setdefault("TWIN_OBJECTS",  # by content, so runs may share them: `make clean` removes
                      str(Path(__file__).parents[1] / "build" / "objects"))

if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
    from checked_loops import check_loops

    check_loops()

LONG_S = {"test_second_measurement": 40, "test_images": 34, "test_live_browser": 27,
          "test_fuzzing": 26, "test_ports": 22,
          "test_why": 20, "test_site": 19, "test_program_runs": 18,
          "test_study_run": 16,
          "test_diagnosis": 15,
          "test_page_browser": 14, "test_virtual_board": 14, "test_portability": 14,
          "test_action": 13, "test_planted_builds": 13, "test_batch_laws": 13, "test_figures": 13,
          "test_verbs": 13, "test_kept_runs": 13, "test_scenario": 13, "test_cli_microbench": 12,
          "test_weight_passes": 12, "test_sanitized": 11, "test_slow_memories": 11,
          "test_binary": 11, "test_imported": 11, "test_dependencies": 11, "test_duty": 10,
          "test_cli_measure": 12, "test_study_cluster": 14, "test_learnt_library": 10,
          "test_extension": 9, "test_founding_studies": 9, "test_microbench_planted": 9,
          "test_mutation": 9, "test_replayed_truth": 9, "test_examples": 9, "test_first_screen": 9,
          "test_fit_planted": 8, "test_cli_transform": 8, "test_cli": 8,
          "test_time_and_registers": 8, "test_other_networks": 7, "test_known_right": 7,
          "test_firmware_runtime": 6, "test_schemas": 6, "test_foreign": 5, "test_ci": 5,
          "test_riscv_programs": 5, "test_architecture": 5, "test_tiles": 4, "test_tuning": 4,
          "test_hidden_board": 4, "test_selection": 17, "test_ethos_u": 13, "test_own_cores": 11,
          "test_load_laws": 10, "test_counted_rows": 10, "test_result_pages": 10,
          "test_trace_export": 9, "test_registers": 9, "test_cache_oracle": 8,
          "test_calibrated": 7, "test_whole_networks": 7, "test_cli_firmware": 7,
          "test_live_api": 7, "test_what_if_laws": 6, "test_npu_laws": 6}
"""Seconds of a processor, about, of files whose tests are few and long."""


@pytest.fixture(autouse=True, scope="module")
def own_networks() -> None:
    """Begin each file without what the last one's networks were found to be."""
    zoo.build.cache_clear()


MAY_SKIP = "TWIN_MODELS"
"""A reason that names it is one: those model files are the user's."""

_skipped: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """What is collected stays to the end: garbage is not looked for in it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(*COLLECTION)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # files are handed out in the order below


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the files, the longest begin, so none is left at the end."""
    if hasattr(config, "workerinput"):
        tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (-LONG_S.get(item.path.stem, 0), -tests[item.path], item.path))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note(report)


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if MAY_SKIP not in reason:
            _skipped.append(f"{report.nodeid}: {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    one_of_many = hasattr(session.config, "workerinput")  # what it skips is reported to the first
    if os.environ.get("CI") and _skipped and session.exitstatus == 0 and not one_of_many:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("CI") and _skipped:
        terminalreporter.section("skipped, which continuous integration does not allow")
        for line in _skipped:
            terminalreporter.line(line)
