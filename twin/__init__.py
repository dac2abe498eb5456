"""A digital twin of AI inference on microcontrollers: cycles, time and energy, and why.

Examples
--------
>>> import twin
>>> prediction = twin.predict(twin.deploy("kws", "nucleo_l4r5zi"))
>>> prediction.time_us, prediction.certainty.time_us  # doctest: +SKIP
>>> prediction.bill.causes()  # doctest: +SKIP
"""

from __future__ import annotations

import functools
from importlib import import_module
from inspect import isfunction
from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hwmodels.errors import TwinError
    from twin.api.commands.accuracy import accuracy
    from twin.api.commands.boards import list_boards, list_virtual_boards, new_board, show_board
    from twin.api.commands.cache import cache
    from twin.api.commands.calibrate import calibrate, calibrate_published
    from twin.api.commands.check import check
    from twin.api.commands.compare import attribute, compare, compare_published, diff, diff_series
    from twin.api.commands.compiled import predict_compiled
    from twin.api.commands.diagnose import diagnose
    from twin.api.commands.doctor import doctor
    from twin.api.commands.energy import energy
    from twin.api.commands.explain import explain, list_features, list_paths, list_terms
    from twin.api.commands.firmware import (
        build_firmware,
        compare_firmware,
        export_firmware,
        flash_firmware,
        run_firmware,
    )
    from twin.api.commands.guidelines import guidelines
    from twin.api.commands.importing import import_log
    from twin.api.commands.measure import measure
    from twin.api.commands.measuring import Watcher
    from twin.api.commands.microbench import measure_plan
    from twin.api.commands.models import export_model, list_models, list_transformations, transform
    from twin.api.commands.port import plan, port
    from twin.api.commands.predict import predict
    from twin.api.commands.program import deploy_elf
    from twin.api.commands.report import report, report_study, write_report
    from twin.api.commands.runtimes import learn_runtime
    from twin.api.commands.scenario import list_scenarios, run_scenario
    from twin.api.commands.sessions import (
        bundle,
        clean_sessions,
        compare_sessions,
        keep,
        list_sessions,
        reproduce,
    )
    from twin.api.commands.study import (
        diff_studies,
        list_studies,
        open_study,
        run_study,
        study_front,
        study_sensitivity,
    )
    from twin.api.commands.sweep import advise, select, sweep
    from twin.api.commands.tune import tune
    from twin.api.commands.whatif import what_if
    from twin.api.commands.why import why
    from twin.api.live.serve import serve
    from twin.api.requests.boards import Wanted
    from twin.api.requests.measurement import MeasureOptions, PowerRuns
    from twin.deployment.deploy import deploy
    from twin.deployment.deployment import Deployment
    from twin.network.readers import read_model
    from twin.pricing.batch import Batch
    from twin.pricing.batched import predict_many
    from twin.pricing.derivative import Derivative, differentiate
    from twin.pricing.prediction import Prediction
    from twin.reports.documents import to_document
    from twin.reports.frames import to_pandas
    from twin.runtimes.catalogue import list_runtimes, show_runtime
    from twin.studies.results import Table

__all__ = [
    "Batch", "Deployment", "Derivative", "MeasureOptions", "PowerRuns", "Prediction", "Table",
    "TwinError", "Wanted", "Watcher", "accuracy", "advise", "attribute", "build_firmware",
    "bundle", "cache", "calibrate", "calibrate_published", "check", "clean_sessions", "compare",
    "compare_firmware", "compare_published", "compare_sessions", "deploy", "deploy_elf",
    "diagnose", "diff", "diff_series", "diff_studies", "differentiate", "doctor", "energy",
    "explain", "export_firmware", "export_model", "flash_firmware", "guidelines", "import_log",
    "keep", "learn_runtime", "list_boards", "list_features",
    "list_models", "list_paths", "list_runtimes", "list_scenarios", "list_sessions",
    "list_studies", "list_terms", "list_transformations", "list_virtual_boards", "measure",
    "measure_plan", "new_board", "open_study", "plan", "port", "predict", "predict_compiled",
    "predict_many", "read_model", "report", "reproduce", "run_firmware", "run_scenario",
    "report_study", "run_study", "select", "serve", "show_board", "show_runtime", "study_front",
    "study_sensitivity", "sweep", "to_document", "to_pandas", "transform", "tune",
    "what_if", "why", "write_report"]


@functools.cache
def _find_homes() -> dict[str, str]:
    """Return the module of each name: the imports above, which only type checkers run."""
    homes = {}
    for statement in _Path(__file__).read_text(encoding="utf-8").split("\n    from ")[1:]:
        module, _, names = statement.partition(" import ")
        end = ")" if names.startswith("(") else "\n"
        for name in names.partition(end)[0].strip("(\n").split(","):
            homes[name.strip()] = module
    return homes


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import twin` and `twin --help` stay light."""
    if name in __all__:
        found = getattr(import_module(_find_homes()[name]), name)
        if not isfunction(found) or hasattr(found, "__wrapped__"):
            return found
        from twin.api.requests import checks

        return checks(found)
    raise AttributeError(f"module 'twin' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of this package, those not imported yet too."""
    return sorted({*globals(), *__all__})
