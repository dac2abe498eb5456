"""A digital twin of AI inference on microcontrollers: cycles, time and energy, and why.

Examples
--------
>>> import twin
>>> prediction = twin.predict(twin.deploy("kws", "nucleo_l4r5zi"))
>>> prediction.time_us, prediction.certainty.time_us  # doctest: +SKIP
>>> prediction.bill.causes()  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hwmodels.errors import TwinError
    from twin.deployment.deployment import Deployment, deploy
    from twin.learning.portability.new_board import Wanted
    from twin.network.readers import read_model
    from twin.pricing.batch import Batch
    from twin.pricing.derivative import Derivative
    from twin.pricing.prediction import Prediction
    from twin.reports.documents import to_document
    from twin.reports.frames import to_pandas
    from twin.studies.results import Table
    from twin.verbs.accuracy import accuracy
    from twin.verbs.advise import advise
    from twin.verbs.attribute import attribute
    from twin.verbs.boards import list_boards, list_virtual_boards, new_board, show_board
    from twin.verbs.cache import cache
    from twin.verbs.calibrate import calibrate, calibrate_published
    from twin.verbs.check import check
    from twin.verbs.compare import compare, compare_published
    from twin.verbs.compiled import predict_compiled
    from twin.verbs.diagnose import diagnose
    from twin.verbs.diff import diff, diff_series
    from twin.verbs.differentiate import differentiate
    from twin.verbs.energy import energy
    from twin.verbs.explain import explain, list_paths, list_terms
    from twin.verbs.firmware import (
        build_firmware,
        compare_firmware,
        export_firmware,
        flash_firmware,
        run_firmware,
    )
    from twin.verbs.guidelines import guidelines
    from twin.verbs.importing import import_log
    from twin.verbs.measure import measure
    from twin.verbs.measuring import MeasureOptions, PowerRuns, Watcher
    from twin.verbs.microbench import measure_plan
    from twin.verbs.models import export_model, list_models
    from twin.verbs.plan import plan
    from twin.verbs.port import port
    from twin.verbs.predict import predict
    from twin.verbs.predict_many import predict_many
    from twin.verbs.program import deploy_elf
    from twin.verbs.report import report, write_report
    from twin.verbs.runtimes import learn_runtime, list_runtimes, show_runtime
    from twin.verbs.scenario import list_scenarios, run_scenario
    from twin.verbs.select import select
    from twin.verbs.serve import serve
    from twin.verbs.sessions import (
        bundle,
        clean_sessions,
        compare_sessions,
        keep,
        list_sessions,
        reproduce,
    )
    from twin.verbs.study import (
        diff_studies,
        list_studies,
        open_study,
        run_study,
        study_front,
        study_sensitivity,
    )
    from twin.verbs.sweep import sweep
    from twin.verbs.transform import list_transformations, transform
    from twin.verbs.tune import tune
    from twin.verbs.whatif import what_if

_HOMES = {
    "hwmodels.errors": ("TwinError",),
    "twin.deployment.deployment": ("Deployment", "deploy"),
    "twin.pricing.batch": ("Batch",),
    "twin.learning.portability.new_board": ("Wanted",),
    "twin.network.readers": ("read_model",),
    "twin.pricing.prediction": ("Prediction",),
    "twin.reports.documents": ("to_document",),
    "twin.reports.frames": ("to_pandas",),
    "twin.studies.results": ("Table",),
    "twin.verbs.accuracy": ("accuracy",),
    "twin.verbs.advise": ("advise",),
    "twin.verbs.attribute": ("attribute",),
    "twin.verbs.boards": ("list_boards", "list_virtual_boards", "new_board", "show_board"),
    "twin.verbs.cache": ("cache",),
    "twin.verbs.calibrate": ("calibrate", "calibrate_published"),
    "twin.verbs.check": ("check",),
    "twin.verbs.compare": ("compare", "compare_published"),
    "twin.verbs.compiled": ("predict_compiled",),
    "twin.verbs.diagnose": ("diagnose",),
    "twin.verbs.diff": ("diff", "diff_series"),
    "twin.verbs.differentiate": ("differentiate",),
    "twin.pricing.derivative": ("Derivative",),
    "twin.verbs.energy": ("energy",),
    "twin.verbs.explain": ("explain", "list_paths", "list_terms"),
    "twin.verbs.firmware": ("build_firmware", "compare_firmware", "export_firmware",
                            "flash_firmware", "run_firmware"),
    "twin.verbs.guidelines": ("guidelines",),
    "twin.verbs.importing": ("import_log",),
    "twin.verbs.measure": ("measure",),
    "twin.verbs.measuring": ("MeasureOptions", "PowerRuns", "Watcher"),
    "twin.verbs.microbench": ("measure_plan",),
    "twin.verbs.models": ("export_model", "list_models"),
    "twin.verbs.plan": ("plan",),
    "twin.verbs.port": ("port",),
    "twin.verbs.predict": ("predict",),
    "twin.verbs.predict_many": ("predict_many",),
    "twin.verbs.program": ("deploy_elf",),
    "twin.verbs.report": ("report", "write_report"),
    "twin.verbs.runtimes": ("learn_runtime", "list_runtimes", "show_runtime"),
    "twin.verbs.select": ("select",),
    "twin.verbs.serve": ("serve",),
    "twin.verbs.sessions": ("bundle", "clean_sessions", "compare_sessions", "keep",
                            "list_sessions", "reproduce"),
    "twin.verbs.study": ("diff_studies", "list_studies", "open_study", "run_study", "study_front",
                         "study_sensitivity"),
    "twin.verbs.sweep": ("sweep",),
    "twin.verbs.scenario": ("list_scenarios", "run_scenario"),
    "twin.verbs.transform": ("list_transformations", "transform"),
    "twin.verbs.tune": ("tune",),
    "twin.verbs.whatif": ("what_if",),
}
"""Where each name is; a module is imported when one of its names is first used."""

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Batch", "Deployment", "Derivative", "MeasureOptions", "PowerRuns", "Prediction", "Table",
    "TwinError", "Wanted", "Watcher", "accuracy", "advise", "attribute", "build_firmware",
    "bundle", "cache", "calibrate", "calibrate_published", "check", "clean_sessions", "compare",
    "compare_firmware", "compare_published", "compare_sessions", "deploy", "deploy_elf",
    "diagnose", "diff", "diff_series", "diff_studies", "differentiate", "energy", "explain",
    "export_firmware", "export_model", "flash_firmware", "guidelines", "import_log", "keep",
    "learn_runtime", "list_boards",
    "list_models", "list_paths", "list_runtimes", "list_scenarios", "list_sessions",
    "list_studies", "list_terms", "list_transformations", "list_virtual_boards", "measure",
    "measure_plan", "new_board", "open_study", "plan", "port", "predict", "predict_compiled",
    "predict_many", "read_model", "report", "reproduce", "run_firmware", "run_scenario",
    "run_study", "select", "serve", "show_board", "show_runtime", "study_front",
    "study_sensitivity", "sweep", "to_document", "to_pandas", "transform", "tune",
    "what_if", "write_report"]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import twin` and `twin --help` stay light."""
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'twin' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of this package, those not imported yet too."""
    return sorted({*globals(), *__all__})
