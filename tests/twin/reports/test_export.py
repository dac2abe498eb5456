"""CSV files: columns of the constraint framework, ours, sums, and whole files only."""

import csv

import pytest
from made_predictions import make_prediction

from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.document import to_document
from twin.pricing.inference import predict
from twin.reports.export import hardware_summary, layer_rows, write_csv_files, write_file
from twin.reports.glossary import find_entry

# Columns as the edge-hardware constraint framework documents them.
FRAMEWORK = {
    "layerwise_breakdown": "layer,output_elements,parameter_bytes,activation_bytes,macs",
    "precision_tradeoffs": "precision,accuracy_mean,latency_ms_mean,memory_mb_mean,"
                           "energy_proxy_j_mean,accepted_ratio",
    "hardware_summary": "estimated_total_bytes,estimated_total_macs,achieved_bandwidth_gbps,"
                        "configured_memory_bandwidth_gbps,bandwidth_utilization,achieved_gmacs",
}


@pytest.mark.parametrize("words", [("kws", "nucleo_l4r5zi"), ("ad", "nucleo_f401re")])
def test_csv_json_and_glossary_have_the_same_columns_of_layers(words):
    prediction = predict_calibrated(deploy(*words))
    flat = [{f"{key.split('_')[0]}_{end}" + (f"_{key.split('_')[-1]}" if end != "level" else ""):
             interval and interval[end] for key, interval in layer.items() if "interval" in key
             for end in ("low", "high", "level")} | layer
            for layer in to_document(prediction)["layers"]]
    for row, layer in zip(layer_rows(prediction), flat, strict=True):
        for name, value in row.items():
            assert find_entry(name), name
            assert name in layer, f"{name}: add it to Layer in twin/pricing/document_types.py"
            shown = layer[name]
            if isinstance(shown, list):
                shown = (" " if name == "kernels" else "x").join(map(str, shown))
            assert value == shown or (not value and not shown), name


def read(folder, name):
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_framework_files_have_its_columns(tmp_path):
    written = write_csv_files(make_prediction(), tmp_path / "new" / "folder")
    assert [path.stem for path in written] == [*FRAMEWORK, "layers", "bill", "totals"]
    for path in written[:3]:
        assert path.read_text().splitlines()[0] == FRAMEWORK[path.stem]


def test_framework_figures_follow_their_definitions(tmp_path):
    prediction = make_prediction(2)
    write_csv_files(prediction, tmp_path)
    layers = read(tmp_path, "layerwise_breakdown")
    # 25 x 5 x 64 int8 outputs; 64 x 64 int8 weights, which both made layers share.
    assert layers[0] == {"layer": "layer [0]", "output_elements": "8000",
                         "parameter_bytes": "4096", "activation_bytes": "8000", "macs": "20000"}
    summary = read(tmp_path, "hardware_summary")[0]
    total_bytes, seconds = 2 * (8000 + 4096), prediction.time_us * 1e-6
    assert int(summary["estimated_total_bytes"]) == total_bytes
    assert float(summary["achieved_bandwidth_gbps"]) == pytest.approx(total_bytes / seconds / 1e9)
    # nucleo_l4r5zi: 8 bytes per flash read of 1 + 5 wait states at 120 MHz.
    configured = 8 / 6 * 120e6 / 1e9
    assert float(summary["configured_memory_bandwidth_gbps"]) == pytest.approx(configured)
    assert float(summary["bandwidth_utilization"]) == pytest.approx(
        total_bytes / seconds / 1e9 / configured)
    assert float(summary["achieved_gmacs"]) == pytest.approx(60_000 / seconds / 1e9)
    tradeoff = read(tmp_path, "precision_tradeoffs")[0]
    assert (tradeoff["precision"], tradeoff["accuracy_mean"]) == ("int8", "")
    assert tradeoff["accepted_ratio"] == ""  # no limit was asked for
    assert float(tradeoff["memory_mb_mean"]) == pytest.approx(8192 / 1024**2)
    assert float(tradeoff["energy_proxy_j_mean"]) == pytest.approx(prediction.energy_uj * 1e-6)


def test_acceptance_and_accuracy_are_those_told(tmp_path):
    for accepted, told in ((True, "1.0"), (False, "0.0")):
        write_csv_files(make_prediction(1), tmp_path, accepted=accepted, accuracy=0.914)
        row, = read(tmp_path, "precision_tradeoffs")
        assert (row["accepted_ratio"], row["accuracy_mean"]) == (told, "0.914")


def test_intervals_stand_beside_and_set_up_is_in_no_sum(tmp_path):
    prediction = predict_calibrated(deploy("ad", "nucleo_l4r5zi"))
    write_csv_files(prediction, tmp_path)
    invoke, setup = read(tmp_path, "totals")
    assert (invoke["phase"], setup["phase"]) == ("invoke", "setup")
    sure = prediction.certainty.time_us
    assert (float(invoke["time_low_us"]), float(invoke["time_high_us"])) == (sure.low, sure.high)
    layers = read(tmp_path, "layers")
    assert sum(float(row["time_us"]) for row in layers) == pytest.approx(
        float(invoke["time_us"])) == pytest.approx(prediction.time_us)
    assert all(float(row["time_low_us"]) <= float(row["time_us"]) <= float(row["time_high_us"])
               for row in layers)
    assert float(setup["time_us"]) > 0 and setup["time_low_us"] == ""


def test_energy_of_boards_compares_with_the_idle_draw_and_is_named(tmp_path):
    for board, idle_mw in (("stm32n6570_dk", 565), ("nucleo_l4r5zi", 0)):
        prediction = predict(deploy("ad", board))
        write_csv_files(prediction, tmp_path)
        invoke, setup = read(tmp_path, "totals")
        whole_uj = prediction.energy_uj + idle_mw * prediction.time_us * 1e-3
        assert float(invoke["energy_uj"]) == prediction.energy_uj
        assert float(invoke["energy_with_idle_uj"]) == pytest.approx(whole_uj)
        assert float(read(tmp_path, "precision_tradeoffs")[0]["energy_proxy_j_mean"]
                     ) == pytest.approx(whole_uj * 1e-6)
        assert setup["energy_with_idle_uj"] == setup["energy_with_idle_low_uj"] == ""
        sure = predict_calibrated(deploy("ad", board))
        write_csv_files(sure, tmp_path)
        invoke, _ = read(tmp_path, "totals")
        low, middle, high = (float(invoke[f"energy_with_idle_{name}uj"])
                             for name in ("low_", "", "high_"))
        idle_uj = [idle_mw * us * 1e-3 for us in (sure.certainty.time_us.low,
                                                  sure.certainty.time_us.high)]
        assert low == pytest.approx(sure.certainty.energy_uj.low + idle_uj[0])
        assert low < middle < high == pytest.approx(sure.certainty.energy_uj.high + idle_uj[1])


def test_our_bill_sums_to_our_layers(tmp_path):
    write_csv_files(make_prediction(), tmp_path)
    bill = read(tmp_path, "bill")
    for layer in read(tmp_path, "layers"):
        assert int(layer["cycles"]) == sum(int(row["cycles"]) for row in bill
                                           if row["layer"] == layer["index"])
    assert {row["phase"] for row in bill} == {"invoke", "setup"}


def test_energy_that_is_not_known_stays_empty(tmp_path):
    write_csv_files(make_prediction(energy=False), tmp_path)
    assert read(tmp_path, "precision_tradeoffs")[0]["energy_proxy_j_mean"] == ""
    assert {row["energy_uj"] for row in read(tmp_path, "layers")} == {""}


def test_a_place_that_cannot_be_written_is_refused_and_nothing_is_left(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(UsageError, match="cannot be written"):
        write_csv_files(make_prediction(1), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError):
        write_file(tmp_path / "folder", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_same_prediction_gives_the_same_bytes(tmp_path):
    first = [path.read_bytes() for path in write_csv_files(make_prediction(), tmp_path / "a")]
    second = [path.read_bytes() for path in write_csv_files(make_prediction(), tmp_path / "b")]
    assert first == second


def test_utilisation_of_the_flash_is_not_told_where_an_accelerator_moves_bytes_elsewhere():
    prediction = predict(deploy("kws", "stm32n6570_dk", runtime="neural-art"))
    (row,) = hardware_summary(prediction)
    assert row["bandwidth_utilization"] is None and row["achieved_bandwidth_gbps"] > 0
    assert row["configured_memory_bandwidth_gbps"] is None  # most bytes move in other memories


@pytest.mark.parametrize("folder", [False, True])
def test_folders_that_are_not_there_are_made_below_where_one_is(tmp_path, monkeypatch,
                                                               folder) -> None:
    from twin.reports.export import check_place

    monkeypatch.chdir(tmp_path)
    check_place("out/new/x", folder=folder)
    check_place(str(tmp_path / "out/new/x"), folder=folder)
    assert not (tmp_path / "out").exists()
