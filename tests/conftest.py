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

LONG_S = {"test_page_browser": 38, "test_fuzzing": 31, "test_images": 28,
          "test_second_measurement": 25, "test_live_browser": 24, "test_cli_measure": 17,
          "test_ethos_u": 16, "test_virtual_board": 16, "test_why": 14, "test_binary": 12,
          "test_study_run": 12, "test_ports": 11, "test_study_cluster": 11, "test_counted": 11,
          "test_program_runs": 11, "test_cli_microbench": 10, "test_learnt_library": 10,
          "test_wire_session": 9, "test_action": 9, "test_counted_rows": 9, "test_site": 9,
          "test_measured_setup": 9, "test_whole_networks": 9, "test_selection": 8,
          "test_founding_studies": 8, "test_extension": 8, "test_first_screen": 8,
          "test_dependencies": 8, "test_cli_firmware": 7, "test_ci": 7, "test_calibration_laws": 7,
          "test_scenario": 6, "test_diagnosis": 6, "test_collector": 6, "test_verbs": 6,
          "test_architecture": 6, "test_duty": 6, "test_portability": 6, "test_kept_runs": 5,
          "test_result_pages": 5, "test_load_laws": 5, "test_batch_laws": 5, "test_own_cores": 5,
          "test_examples": 5, "test_riscv_programs": 5, "test_live_api": 5, "test_mutation": 5,
          "test_figures": 5, "test_calibrated": 4, "test_accuracy": 4, "test_sanitized": 4,
          "test_other_networks": 4, "test_planted_builds": 4, "test_microbench_planted": 4,
          "test_time_and_registers": 4, "test_cache_oracle": 4}
"""Seconds, about, of files whose tests are long: of a run on two idle cores, 30 November; of those
with a browser, which is processes of its own, of a processor."""


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
