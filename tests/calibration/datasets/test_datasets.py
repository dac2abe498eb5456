"""Published data: normalised as names.yaml says, traps flagged, test rows sealed."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from made_sources import walk_sources

import calibration.datasets
from calibration.datasets import (
    board_settings,
    list_tables,
    published,
    published_rows,
    read_table,
    stand_in,
)
from calibration.datasets.published import read_names
from calibration.datasets.tables import parse_cell, read_csv, read_yaml
from calibration.errors import MeasurementError

ROOT = Path(calibration.datasets.__file__).parents[2]


def fit_row(**wanted):
    found = [row for row in published_rows()
             if all(getattr(row, name) == value for name, value in wanted.items())]
    assert len(found) == 1, [row.line for row in found]
    return found[0]


def test_a_row_is_normalised():
    # mlperf_tiny/results.csv: v1.2, STMicroelectronics, NUCLEO_L4R5ZI, vww
    row = fit_row(edition="v1.2", board="nucleo_l4r5zi", model="vww")
    assert row.runtime == "x-cube-ai@9.0.0-time"  # as its project file says
    assert (row.latency_ms, row.energy_uj, row.supply_v) == (88.925, 3894.566, 1.8)
    assert (row.clock_hz, row.core, row.precision) == (120e6, "cortex-m4", "int8")
    assert row.drops_dead_channels is True
    assert board_settings(row) == {"supply.voltage_v": 1.8, "memories.flash.read_bytes": 16}
    assert row.judges_latency and row.judges_energy
    assert "tiny_results_v1.2" in row.source


def test_a_row_keeps_what_was_published_as_it_was():
    """mlperf_tiny/results.csv and stm32_zoo/measured.csv, cells of the rows' own lines."""
    for dataset, file in (("mlperf_tiny", "mlperf_tiny/results.csv"),
                          ("stm32_zoo", "stm32_zoo/measured.csv")):
        raw = read_csv(file)
        for row in published_rows():
            if row.dataset != dataset:
                continue
            cells = raw[row.line - 2]
            assert row.board_name == cells["board"]
            clock_mhz = cells["clock_mhz"].partition("/")[0]
            assert row.clock_hz == (float(clock_mhz) * 1e6 if clock_mhz else None)
            assert ("duplicate" in row.flags) is bool(cells.get("dup_of_round"))
            assert ("npu" in row.flags) is (cells.get("exec_engine") == "NPU")
            assert ("transcribed" in row.flags) is (cells.get("how") == "transcribed")
            assert ("open_division" in row.flags) is (cells.get("division") == "open")
            assert ("accelerator" in row.flags) is bool(cells.get("accelerator"))
            if dataset == "mlperf_tiny":
                assert (row.edition, row.submitter, row.software, row.model_name) == tuple(
                    cells[name] for name in ("round", "submitter", "software", "benchmark"))
                assert row.latency_ms == (
                    float(cells["latency_ms"]) if cells["latency_ms"] else None)
                assert row.board_note == cells["supply_note"]
                assert row.source == (f"mlcommons/tiny_results_{cells['round']}: "
                                      f"{cells['source_path']}")
            else:
                assert (row.edition, row.model_name, row.submitter) == (
                    cells["tool_version"], cells["variant"], "STMicroelectronics")
                assert row.software == f"{cells['tool_version']} {cells['exec_engine']}"
                assert row.latency_ms == (
                    float(cells["inference_ms"]) if cells["inference_ms"] else None)
                assert row.source == f"stm32ai-modelzoo: {cells['source']}"


@pytest.mark.parametrize(("core", "ours"), [
    ("Cortex-M4F", "cortex-m4"), ("Cortex-M7", "cortex-m7"), ("Cortex-M55+Ethos-U55", "cortex-m55"),
    ("RV32IMAC+FPU", "RV32IMAC+FPU")])
def test_cores_are_called_as_ours_where_they_are_some(core, ours):
    assert published._core(core) == ours


def test_cells_that_are_no_number_or_use_are_refused_by_their_line():
    assert published._number("", 1e6, "file:3") is None
    assert published._number("1.5", 1e6, "file:3") == 1.5e6
    with pytest.raises(MeasurementError, match=r"^file:3: 'fast' is not a number$"):
        published._number("fast", 1.0, "file:3")
    with pytest.raises(MeasurementError, match=r"^file:3: use is 'both'; accepted: fit, test$"):
        published._use("both", "file:3")


def test_sealed_rows_are_not_learnt_from():
    published.refuse_sealed(published_rows())
    sealed = published_rows(use="test")[:1]
    with pytest.raises(MeasurementError, match=rf"^{sealed[0].dataset}:{sealed[0].line}: a row of "
                                               "use 'test' is sealed; fits take use=fit only$"):
        published.refuse_sealed([*published_rows(), *sealed])


def test_working_memory_as_the_tool_reports_it():
    # measured.csv: 404.28 KiB
    row = fit_row(board="stm32h747i_disco", runtime="x-cube-ai@7.3.0",
                  model="mobilenet_v1_0.5_224_fft_int8__6646e62c2e")
    assert row.activations_bytes == pytest.approx(404.28 * 1024)
    kilobytes = [row for row in published_rows() if row.dataset == "stm32_zoo"
                 and row.activations_bytes is None]
    assert kilobytes  # pages that print kB are not taken at their word


def test_arena_comes_from_the_project_file():
    assert fit_row(edition="v0.7", board="nucleo_h7a3zi_q", model="kws").arena == "tcm"
    assert fit_row(edition="v0.7", board="nucleo_l4r5zi", model="kws").arena is None


def test_projects_from_9_0_0_on_state_one_option():
    projects = read_csv("mlperf_tiny/st_ioc_config.csv")
    assert {row["xcubeai_optimization"] for row in projects
            if row["round"] in ("v1.2", "v1.3")} == {"time"}
    assert {row["system"] for row in projects if row["round"] == "v1.0"
            and not row["xcubeai_optimization"]} == {"NUCLEO_L4R5ZI"}


def test_a_build_is_part_of_the_runtime_where_its_option_shows():
    built = {(row.edition, row.board): row.runtime for row in published_rows(use="all")
             if row.dataset == "mlperf_tiny" and row.submitter == "STMicroelectronics"}
    assert built["v1.0", "nucleo_u575zi_q"] == built["v1.0", "nucleo_l4r5zi"] == "x-cube-ai@7.3.0"
    assert built["v1.2", "nucleo_u575zi_q"] == "x-cube-ai@9.0.0-time"
    assert built["v1.3", "nucleo_u575zi_q"] == "x-cube-ai@10.2.0-time"
    assert not [row for row in published_rows(use="all") if row.dataset == "stm32_zoo"
                and str(row.runtime).endswith("-time")]


def test_zoo_row_points_to_its_layer_list():
    # stm32_zoo/measured.csv: fdmobilenet_0.25_128 on STM32H747I-DISCO with STM32Cube.AI 7.3.0
    row = fit_row(board="stm32h747i_disco", runtime="x-cube-ai@7.3.0", latency_ms=21.97)
    assert row.model == "fdmobilenet_0.25_128_tfs_int8__15a8eafcb8"
    assert row.drops_dead_channels is False
    assert row.energy_uj is None and not row.judges_energy


def test_dead_channels_follow_the_version():
    expected = {"x-cube-ai@7.1.0": False, "x-cube-ai@7.3.0": False, "x-cube-ai@8.0.0": False,
                "x-cube-ai@8.1.0": True, "x-cube-ai@9.0.0-time": True,
                "microtvm-cmsis-nn@2022": False,
                "tflm-cmsis-nn@2021": False, "onnc-cmsis-nn-legacy@b966796": True}
    seen = {row.runtime: row.drops_dead_channels for row in published_rows(use="all")}
    assert {name: seen[name] for name in expected} == expected


def test_flash_banks_are_dual_until_v1_0_and_single_after():
    banks = {(row.edition, board_settings(row)["memories.flash.read_bytes"])
             for row in published_rows()
             if row.board == "nucleo_l4r5zi" and row.submitter == "STMicroelectronics"}
    assert banks == {("v0.7", 8), ("v1.0", 8), ("v1.2", 16)}


def test_all_kinds_of_traps_keep_rows_out():
    rows = published_rows()
    for flag in ("duplicate", "open_division", "accelerator", "npu"):
        flagged = [row for row in rows if flag in row.flags]
        assert flagged and not any(row.judges_latency for row in flagged), flag
    timebase = [row for row in rows if "energy_timebase" in row.flags and row.judges_latency]
    assert timebase and not any(row.judges_energy for row in timebase)
    assert all(row.model is None for row in rows if "own_model" in row.flags)
    n6 = [row for row in published_rows(use="all") if row.board == "stm32n6570_dk"]
    assert n6 and all("npu" in row.flags and row.runtime.startswith("neural-art") for row in n6)
    suspect = [row for row in published_rows(use="all") if "energy_suspect" in row.flags]
    assert [(row.edition, row.board, row.model) for row in suspect] == \
        [("v1.1", "nucleo_l4r5zi", "ic")]
    assert not suspect[0].judges_energy


def test_every_row_is_one_of_its_file():
    for dataset, file in (("mlperf_tiny", "mlperf_tiny/results.csv"),
                          ("stm32_zoo", "stm32_zoo/measured.csv")):
        raw = read_csv(file)
        rows = [row for row in published_rows(use="all") if row.dataset == dataset]
        assert len(rows) == len(raw)
        assert Counter(row.use for row in rows) == Counter(r["use"] for r in raw)
        assert [row.line for row in rows] == list(range(2, len(raw) + 2))


def test_every_layer_list_named_is_known_or_absent():
    stems = {Path(row["layers_json"]).stem for row in read_table("stm32_zoo_models").rows
             if row["layers_json"]}
    used = {row.model for row in published_rows(use="all")
            if row.dataset == "stm32_zoo" and row.model}
    assert used and used <= stems


def test_names_are_consistent():
    names = read_names()
    mapped = {rule["runtime"] for rule in names["runtimes"]}
    assert set(names["stand_ins"]) <= mapped
    assert stand_in("x-cube-ai@9.0.0") == "x-cube-ai@9.0.0"
    assert stand_in("tflm-cmsis-nn@2021") == "tflm-cmsis-nn@2023"
    for row in published_rows(use="all"):
        if row.board is not None:
            assert row.core.startswith("cortex-m") or "accelerator" in row.flags, row.core
            assert row.runtime is not None, row.software


def test_sealed_rows_only_on_request():
    assert {row.use for row in published_rows()} == {"fit"}
    assert {row.use for row in published_rows(use="test")} == {"test"}
    with pytest.raises(MeasurementError, match="accepted: fit, test, all"):
        published_rows(use="both")  # type: ignore[arg-type]


def test_no_library_code_but_the_display_asks_for_sealed_rows():
    """Only twin/attribution/published.py, which judges, may call published_rows with a use."""
    asking = set()
    for name, node in walk_sources(r"published_rows|results\.csv|measured\.csv"):
        if isinstance(node, ast.Call) and node.keywords and \
                getattr(node.func, "id", getattr(node.func, "attr", "")) == "published_rows":
            asking.add(name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and \
                node.value.endswith(("results.csv", "measured.csv")):
            asking.add(name)
    assert asking <= {"twin/attribution/published.py", "calibration/datasets/published.py"}


def test_tables_are_typed_and_name_their_source():
    for name in list_tables():
        table = read_table(name)
        assert table.rows and table.about and table.trust
        assert all(row.get("source") or row.get("repo") for row in table.rows), name


def test_every_table_has_a_reader():
    code = "".join(path.read_text(encoding="utf-8") for folder in ("calibration", "twin",
                   "benchmarks", "tests/oracles") for path in (ROOT / folder).rglob("*.py"))
    assert [name for name in list_tables() if f'"{name}"' not in code] == []
    files = {path.relative_to(ROOT / "calibration" / "datasets").as_posix()
             for path in (ROOT / "calibration" / "datasets").rglob("*.csv")}
    named = {read_yaml("tables.yaml")["tables"][name]["file"] for name in list_tables()}
    assert sorted(file for file in files - named if Path(file).name not in code) == []


def test_pmu_table_keeps_counts_and_drops_stale_columns():
    table = read_table("apollo510_kws_pmu")
    conv = table.rows[0]
    assert conv["ARM_PMU_INST_RETIRED"] == 299664  # from the published table
    assert len(table.rows) == 13
    for stale in ("ARM_PMU_BR_RETIRED", "ARM_PMU_BR_MIS_PRED_RETIRED",
                  "ARM_PMU_L1D_CACHE_ALLOCATE"):
        assert stale not in table.columns


def test_unknown_table_is_refused_with_a_hint():
    with pytest.raises(MeasurementError, match="cmsisnn_kernels_m55"):
        read_table("cmsisnn_kernel")


@pytest.mark.parametrize(("text", "value"), [
    ("", None), ("12", 12), ("-3", -3), ("136,258,323", 136258323), ("1.5", 1.5), ("2e3", 2000.0),
    ("nan", "nan"), ("1x49x10", "1x49x10"), ("0x0011", "0x0011"), ("1,2", "1,2"),
])
def test_cells(text, value):
    parsed = parse_cell(text)
    assert parsed == value and type(parsed) is type(value)
