"""Pages of what verbs found, and of several deployments: they say what the results say."""

import html
import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from made_measurements import measure
from made_predictions import make_prediction
from made_studies import make_row, make_table
from typer.testing import CliRunner

import twin
from calibration.measurement.measurement import write_measurement
from calibration.power_trace.excerpt import Excerpt, dump_excerpt
from hwmodels.quantities import format_energy, format_time
from twin.api.commands.report import describe, read_recording
from twin.api.commands.variants import chain_stages, find_stages, predict_variants
from twin.api.requests.reporting import Report as Asked
from twin.attribution.accounts import compare_sides
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.attribution.views import View
from twin.cli import app
from twin.errors import UsageError
from twin.pricing.inference import say_above_idle
from twin.reports.page.axes import log_axis
from twin.reports.page.beside import list_faults
from twin.reports.page.changes import describe_changes, tell_best
from twin.reports.page.deployment import Report, describe_report
from twin.reports.page.deployment import judge as judge_report
from twin.reports.page.differences import describe_difference, describe_view
from twin.reports.page.page import render_page
from twin.reports.page.parts import Plot, Table
from twin.reports.page.results import describe_result
from twin.reports.page.rival_plots import draw_dashboard, draw_front, draw_radar, short_label
from twin.reports.page.rivals import list_answers, list_least, say_lead
from twin.reports.page.variant_plots import draw_bills
from twin.reports.page.variants import Made, Variant, describe_variants
from twin.reports.rivals import chart_front, chart_quantity, name_rivals
from twin.studies.change import make_change
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.results import Table as Rows
from twin.studies.rows import judge

HOSTILE = "</script><img src=x onerror=alert(2)>"


def find(page, name):
    return next(item for section in page.sections for item in section.items
                if isinstance(item, Table | Plot) and item.name == name)


def texts(table):
    return [[cell.text for cell in row.cells] for row in table.rows]


def test_a_sweep_says_what_meets_and_marks_the_least() -> None:
    page = describe_result(make_table(limits=Limits(max_time_us=60e3)), "twin sweep")
    assert page.verdict == "2 of 4 meet 60 ms; 1 does not; 1 infeasible" and page.tone == "good"
    assert page.sentence.startswith("b is the fastest with 20 ms")
    rows = texts(find(page, "row-table"))
    assert ["20 ms ★" in row for row in rows].count(True) == 1
    assert any("80 ms over" in row for row in rows)
    assert texts(find(page, "failed-table")) == [["1", "does not fit", "too small"]]
    assert {answer.name: answer.value for answer in page.answers}["fastest"] == "20 ms"


def test_what_an_idle_board_draws_is_in_all_of_a_table_or_in_none() -> None:
    deployer, kit = Deployer(), twin.deploy("kws", "stm32n6570_dk")
    variants = predict_variants({"kit": kit, "core": twin.deploy("kws", "nucleo_l4r5zi")}, deployer)
    row, alone = variants[0].row, variants[0].prediction
    assert alone.energy_uj < 0.5 * row.energy_uj
    faster = make_change((("a", "b"),), "setting", "", replace(
        row, time_us=0.9 * row.time_us, energy_uj=0.9 * row.energy_uj), row)
    section = describe_changes([faster], alone)
    table, = section.items
    energy = [column.header for column in table.columns].index("energy with idle")
    assert table.total[energy].text == format_energy(row.energy_uj)
    assert "holds the 565 mW" in section.lead and "-10.0 % energy with" in tell_best([faster])
    page = describe_variants(variants)
    bars = find(page, "bills-energy").traces
    assert sum(bar["x"][0] for bar in bars) == pytest.approx(row.energy_uj / 1e3)
    lacking = say_above_idle(alone.deployment.board.idle())
    assert lacking in alone.warnings and lacking not in render_page(page)


def test_a_sweep_answers_for_each_width_rather_than_let_the_narrowest_win() -> None:
    rows = [make_row(board, time_us=time_us * float(width), energy_uj=9.0, **{
        "network.width": width}) for board, time_us in (("a", 4e4), ("b", 2e4))
        for width in ("0.5", "1")]
    page = describe_result(Rows(rows=tuple(rows), axes=("board", "network.width")))
    assert [(one.name, one.value) for one in page.answers] == [
        ("made width 0.5: fastest", "10 ms"), ("made width 1: fastest", "20 ms")]
    assert page.sentence == ""  # The cards say it.
    assert texts(find(page, "network-table"))[1][:2] == ["made width 1", "20 ms: b · width 1"]
    assert "b · width 1, 20 ms" in find(page, "bars-time-1").caption
    assert sum("★" in row[1] for row in texts(find(page, "row-table"))) == 2


def test_where_no_width_meets_the_limits_the_nearest_of_each_is_named() -> None:
    rows = [make_row(board, time_us=time_us * float(width), energy_uj=9.0, **{
        "network.width": width}) for board, time_us in (("a", 4e4), ("b", 2e4))
        for width in ("0.5", "1")]
    limits = Limits(max_time_us=1e3)
    page = describe_result(Rows(rows=tuple(judge(one, limits) for one in rows), limits=limits,
                                axes=("board", "network.width")))
    assert texts(find(page, "network-table"))[1] == ["made width 1", "b · width 1 with 20 ms"]
    assert find(page, "network-table").caption == "None meets the limits"
    assert find(page, "row-table").caption.endswith("; none meets the limits")
    marks = [one["marker"]["symbol"] for one in find(page, "front-time-energy").traces
             if one["mode"] == "markers"]
    assert {*marks} == {"x-thin"} and "crosses miss" in find(page, "front-time-energy").caption
    assert "made width 1: none meets the limits, nearest is b · width 1 with 20 ms" in page.sentence
    cells = find(page, "heat").traces[0]["text"]
    assert {text[-2:] for line in cells for text in line} == {" ✗"}
    alone = describe_result(Rows(rows=tuple(judge(one, limits) for one in rows[:1]), limits=limits,
                                 axes=("board", "network.width")))
    assert alone.sentence.startswith("None meets the limits, nearest is")


def test_a_faster_one_that_may_meet_is_named_and_drawn_as_that() -> None:
    """Its mean power is not known; another lacks energy and is in no picture of it."""
    limits = Limits(max_mean_mw=1.0)
    rows = [judge(replace(make_row(board, time_us=time_us, energy_uj=uj), mean_mw=mw), limits)
            for board, time_us, uj, mw in (("slow", 4e4, 9.0, 0.5), ("over", 5e4, 9.0, 2.0),
                                           ("may", 1e4, 1.0, None), ("lacks", 6e4, None, 0.5))]
    rivals = name_rivals(rows)
    lead = say_lead(rivals)
    assert lead.startswith("slow is the fastest of those that meet the limits with 40 ms (may has "
                           "10 ms and may meet them: mean power is not known)")
    assert list_answers(rivals)[0].name == "fastest of those that meet the limits"
    chart = chart_front(rivals, ("time_us", "energy_uj"), limits)
    marks = {curve.name: curve.mark for curve in chart.curves}
    assert (marks["over"], marks["may"]) == ("x", "+")
    assert "plus signs may meet: a figure is not known. 1 without energy not drawn." \
        in chart.caption
    assert [one.name for one in draw_dashboard(rivals, limits)].count("bars-mean") == 1


def test_a_limit_far_beyond_the_bars_is_written_instead() -> None:
    rivals = name_rivals([make_row(board, time_us=time_us) for board, time_us in (
        ("a", 1e4), ("b", 2e4))])
    near, far = (chart_quantity(rivals, "time_us", limit) for limit in (3e4, 1e6))
    assert near.limit == 3e4 and far.limit is None and "The limit, 1 s, lies" in far.caption


def test_a_last_one_is_of_so_many_that_meet_or_may() -> None:
    rows = [make_row(name, time_us=time_us, energy_uj=9.0)
            for name, time_us in (("a", 4e4), ("b", 2e4), ("c", 9e4))]
    assert "the last of 3 takes 4.5 times" in say_lead(name_rivals(rows))


def test_a_star_is_of_those_that_meet_the_limits_and_the_front_of_all() -> None:
    rows = name_rivals(make_table(limits=Limits(max_time_us=60e3)).predicted)
    least = [replace(one, row=replace(one.row, time_us=1e3, violations=("time_us",)))
             if not place else one for place, one in enumerate(rows)]
    told = draw_dashboard(least)[0].caption
    assert "least of those that meet the limits" in told and least[0].label + "," not in told
    front = draw_front(least, ("time_us", "energy_uj"))
    line = next(trace for trace in front.traces if trace.get("name") == "front")
    assert "nothing is better in both" in front.caption and line["x"][0] == 1.0
    assert "crosses miss a limit" in front.caption
    bars = name_rivals([replace(make_row(board, ram_bytes=size), violations=missed)
                        for board, size, missed in (("a", 9 << 10, ()), ("b", 1 << 10, ("time_us",))
                                                    )])
    assert draw_dashboard(bars)[2].caption == (
        "★ hatched: a, 9 KiB, least of those that meet the limits; the others have no more.")


def test_a_star_is_of_those_that_surely_meet_the_limits_where_some_do() -> None:
    rivals = name_rivals([
        replace(make_row(board, time_us=time_us), probability=probability)
        for board, time_us, probability in (("a", 2e4, 0.99), ("b", 1e4, 0.6), ("c", 3e4, 0.95),
                                            ("d", 2e4, 0.6))])
    assert list_least(rivals)["time_us"] == 2e4
    bars = draw_dashboard(rivals)[0]
    assert "of those that meet the limits with 90% or more" in bars.caption
    assert [len(trace["x"]) for trace in bars.traces] == [1, 3]  # as quick, and not sure: no star


def test_a_whole_board_that_takes_less_than_the_best_chip_is_named() -> None:
    rivals = name_rivals([replace(make_row(board, energy_uj=energy_uj), boundary=boundary)
                          for board, energy_uj, boundary in (
                              ("a", 500.0, "chip"), ("c", 600.0, "chip"), ("b", 20.0, "board"))])
    assert "(chip at its rail): 500 uJ (b takes less at its board's input)" in say_lead(rivals)


def test_equals_share_the_mark_and_all_alike_have_none() -> None:
    rivals = name_rivals([make_row("a", time_us=1e4), make_row("b", time_us=1e4),
                          make_row("c", time_us=2e4)])
    assert list_least(rivals)["time_us"] == 1e4 and "ram_bytes" not in list_least(rivals)
    bars = draw_dashboard(rivals)[0]
    assert [len(trace["x"]) for trace in bars.traces] == [2, 1]
    assert "All have" in draw_dashboard(rivals)[2].caption


def test_the_front_is_of_each_network_and_has_intervals() -> None:
    rows = [make_row("a", time_us=1e4, energy_uj=400.0),
            make_row("b", time_us=2e4, energy_uj=200.0),
            make_row("c", time_us=3e4, energy_uj=300.0)]
    plot = draw_front(name_rivals(rows), ("time_us", "energy_uj"))
    line = next(trace for trace in plot.traces if trace["name"] == "front")
    assert line["x"] == [10.0, 20.0] and line["y"] == [0.4, 0.2]
    marks = {trace["name"]: trace for trace in plot.traces if trace["mode"] == "markers"}
    assert marks["a"]["error_x"]["arrayminus"][0] == pytest.approx(1.0)
    assert "2 of 3 are on the front" in plot.caption


def test_of_many_boards_those_that_may_be_best_have_a_look_of_their_own() -> None:
    rows = [make_row(f"b{place}", time_us=1e4 * place, energy_uj=100.0 * abs(place - 2) + 100)
            for place in range(1, 13)]
    traces = draw_front(name_rivals(rows), ("time_us", "energy_uj")).traces
    marks = {trace["name"]: len(trace["x"]) for trace in traces if trace["mode"] == "markers"}
    best = [name for name in marks if name != "others"]
    assert {"b1", "b2"} <= {*best} and 12 - len(best) == marks["others"] > 4


def test_a_radar_has_the_best_on_its_rim() -> None:
    plot = draw_radar(name_rivals([make_row("a", time_us=1e4), make_row("b", time_us=1e5)]))
    first, second = plot.traces
    assert first["theta"][0] == "speed" and first["r"][0] == 1.0
    assert second["r"][0] == pytest.approx(0.1)  # Ten times as much is the most of all.
    assert draw_radar(name_rivals([make_row("a")])) is None


def test_labels_are_cut_in_their_middle_and_escaped() -> None:
    label = short_label(f"board · {'library' * 9} · 80 MHz")
    assert label.startswith("board<br>librarylib") and label.endswith("… · 80 MHz")
    assert "<img" not in short_label(HOSTILE)


@pytest.mark.parametrize("values", [(1.0, 1.1), (0.2, 900.0), (5.0,), (1e-6, 1e9)])
def test_an_axis_has_ticks_however_far_it_reaches(values) -> None:
    axis = log_axis(values, "time")
    assert 2 <= len(axis["tickvals"]) <= 9 and len(set(axis["ticktext"])) == len(axis["ticktext"])
    assert all(axis["range"][0] <= math.log10(tick) <= axis["range"][1]
               for tick in axis["tickvals"])


def test_many_rows_are_cut_and_stay_small() -> None:
    rows = tuple(make_row(f"b{place % 7}", time_us=1e3 + place, x=str(place))
                 for place in range(1500))
    text = render_page(describe_result(Rows(rows=rows, axes=("board", "x"))))
    assert len(text.encode()) < 8e6 and "500 more rows" in text


def variants(*predictions):
    return [Made(label=f"v{place}", prediction=one, row=make_row(
        f"v{place}", time_us=one.time_us, energy_uj=one.energy_uj))
        for place, one in enumerate(predictions)]


def test_variants_stand_beside_each_other_and_say_what_moved() -> None:
    slow, fast = make_prediction(6, seed=1), make_prediction(4, seed=2)
    refused = Variant(label="v9", row=replace(make_row("v9"), failure="does not fit",
                                              reason="short of 5 bytes"))
    page = describe_variants([*variants(slow, fast), refused])
    assert page.verdict.startswith("v1 is fastest")
    table = find(page, "variant-table")
    assert texts(table)[2][1] == "cannot be" and table.rows[2].details == (
        ("why not", "short of 5 bytes"),)
    moves = find(page, "move-table").rows[0]
    gap = compare_sides(side_of_prediction(slow), side_of_prediction(fast),
                        anyway=True).account("time").total
    assert moves.cells[3].text.startswith(gap.moved[0].label)
    bars = [trace for trace in find(page, "moves").traces if trace["type"] == "bar"]
    assert bars[0]["x"][0] + sum(bar["x"][0] for bar in bars[1:-1]) == pytest.approx(
        bars[-1]["x"][0])
    assert {item.name for section in page.sections for item in section.items
            if isinstance(item, Plot)} >= {"bars-time", "bars-energy", "bars-ram", "bars-flash",
                                           "radar", "front-time-energy", "bills-time"}
    assert len(find(page, "layer-table").rows) == 6


def test_stages_are_told_from_the_first_to_the_last() -> None:
    made = variants(make_prediction(6, seed=1), make_prediction(5, seed=1),
                    make_prediction(4, seed=2))
    page = describe_variants(made, chain=True)
    assert re.fullmatch(r"-[\d.]+ % time in 2 stages", page.verdict)
    assert find(page, "timeline").traces[0]["y"][0] == 100
    assert [row.cells[0].text for row in find(page, "move-table").rows] == ["v0", "v1"]
    assert all("before" in answer.range for answer in page.answers if answer.name != "RAM at last")


def test_none_of_them_can_be() -> None:
    page = describe_variants([Variant(label="a", row=replace(
        make_row("a"), failure="does not fit", reason="too small"))])
    assert page.verdict == "None of them can be" and "too small" in page.sentence


def test_stages_build_on_each_other_and_a_refused_one_is_left_out() -> None:
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    chain = chain_stages(deployment, [{"placement.weights": "sram"}, {"placement.arena": "moon"},
                                      {"clocks.cpu.frequency_hz": "80MHz"}])
    first, sram, refused, last = chain.values()
    assert first.weights_named == "flash" and sram.weights_named == last.weights_named == "sram"
    assert isinstance(refused, twin.TwinError)
    found = find_stages(sram, 1, "warm", "auto")
    assert len(found) == 1 and "placement.weights" not in found[0]
    with pytest.raises(UsageError, match="accepted: 1 to 20"):
        find_stages(deployment, 0, "warm", "auto")


@pytest.fixture(scope="module")
def sides():
    """A prediction, and a measurement that takes a tenth more."""
    prediction = twin.predict(twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    told = {"model": "kws", "runtime": "cmsis-nn@6.0"}
    return side_of_prediction(prediction), side_of_measurement(
        measure(prediction, factor=1.1, **told), "made")


def test_a_gap_is_told_first_and_set_ups_stand_below(sides) -> None:
    view = View(difference=compare_sides(*sides))
    page = describe_view(view)
    took = format_time(view.difference.account("time").total.second / 1e3)
    assert page.verdict == f"Measured {took} lies inside the 90 % interval"
    assert page.sentence.startswith("Predicted is 0.91 of measured time")
    assert [answer.kind for answer in page.answers] == ["predicted", "measured"]
    assert ["runtime", "cmsis-nn@6.0", "cmsis-nn@6.0", ""] in texts(find(page, "side-table"))


@pytest.mark.parametrize(("factor", "said", "tone"), [
    (1.1, "inside", "good"), (4.0, "outside", "bad")])
def test_the_banner_of_a_report_without_limits_says_what_was_measured(factor, said, tone) -> None:
    prediction = twin.predict(twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    view = View(difference=compare_sides(
        side_of_prediction(prediction), side_of_measurement(measure(
            prediction, factor=factor, model="kws", runtime="cmsis-nn@6.0"), "made")))
    took = format_time(view.difference.account("time").total.second / 1e3)
    assert judge_report(Report(prediction=prediction, measured=view)) == (
        f"Fits; measured {took} lies {said} the 90 % interval", tone)


def test_the_headline_names_what_no_counter_covers_and_the_layers_that_make_it(sides) -> None:
    """One layer takes twice as long, its instructions are a thousandth more."""
    first, _ = sides
    counted = {part.index: part.amounts["instructions"] for part in first.parts}
    prediction = twin.predict(twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    made = measure(prediction, model="kws", runtime="cmsis-nn@6.0", counters={
        "instructions": lambda layer: round(1.001 * counted[layer.index])})
    slow = next(one for one in made.samples if one.layer == 3 and one.counter == "cpu_cycles")
    made = replace(made, samples=tuple(
        replace(one, value=one.value + slow.value) if one is slow or (
            one.layer is None and one.counter == "cpu_cycles") else one for one in made.samples))
    page = describe_view(View(difference=compare_sides(first, side_of_measurement(made))))
    assert "; most of the gap is unexplained (+" in page.sentence
    assert page.sentence.endswith("; layer 3 makes 100 % of it.")
    assert find(page, "beside-table").total[-2].text.startswith("unexplained +")


def test_a_page_judges_and_advises_by_what_ran(tmp_path) -> None:
    """Depthwise layers take twice as long in an emulator: 50 ms are met by the prediction only."""
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    prediction = twin.predict(deployment)
    made = measure(prediction, model="kws", runtime="cmsis-nn@6.0", kind="simulated")
    more = {one.layer: one.value for one in made.samples
            if one.layer is not None and deployment.graph.layers[one.layer].op.startswith("depth")}
    more[None] = sum(more.values())
    write_measurement(tmp_path / "warm", replace(made, samples=tuple(
        replace(one, value=one.value + more.get(one.layer, 0)) for one in made.samples)))
    limit_ms = prediction.time_us / 1e3 + 1
    page = describe(Asked(deployment, measured=tmp_path, limits={"max_ms": limit_ms, "every": "1s"},
                          changes=False))
    drawn = [one for one in page.answers if one.name in ("energy", "mean power")]
    assert len(drawn) == 2 and all(one.range.endswith("of the predicted time") for one in drawn)
    assert page.verdict.startswith("Fits, but time (simulated ") and page.tone == "bad"
    assert ("time", "simulated") in [(one.name, one.kind) for one in page.answers]
    assert page.advice.startswith("what runs is not what is predicted: depthwise_conv_2d alone")
    row = next(line for line in texts(find(page, "limit-table")) if line[0] == "time, ms")
    assert row[-2:] == ["", "not met, simulated"]


def test_bars_of_layers_have_the_numbers_of_the_table(sides) -> None:
    prediction = twin.predict(twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn"))
    made = side_of_measurement(measure(prediction, model="kws", runtime="cmsis-nn@6.0",
                                       layers=(0, 9, 12)))
    made = replace(made, runtime="firmware")
    page = describe_view(View(difference=compare_sides(sides[0], made, anyway=True)))
    axis = find(page, "beside-plot").layout["xaxis"]
    assert axis["ticktext"] == ["0", "9", "12"] and axis["tickvals"] == [0, 1, 2]


def test_before_and_after_is_told_as_a_change(sides) -> None:
    first, _ = sides
    page = describe_difference(compare_sides(first, first))
    assert page.verdict == "No change" and page.sentence == "Both sides take the same time."
    larger = replace(first, sizes={**first.sizes, "flash_bytes": 2 * first.sizes["flash_bytes"]})
    page = describe_difference(compare_sides(first, larger))
    assert page.verdict == "No change in time, +100.0 % flash" and page.tone == "bad"
    assert [answer.name for answer in page.answers if "flash" in answer.name] == [
        "flash before", "flash after"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Measurements of kws: as predicted, and with its weights in RAM."""
    place = tmp_path_factory.mktemp("measured")
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    for name, one in (("flash", deployment),
                      ("sram", deployment.replace({"placement.weights": "sram"}))):
        told = {"model": "kws", "runtime": "cmsis-nn@6.0", "clocks_hz": (("cpu", 120e6),)}
        write_measurement(place / name / "warm", measure(twin.predict(one), **told))
    return place


@pytest.mark.parametrize(("words", "said"), [
    (("attribute", "kws", "FOLDER/sram"), "Likeliest explanation"),
    (("diagnose", "FOLDER/sram", "--healthy", "FOLDER/flash"), "kws on nucleo_l4r5zi"),
    (("diff", "FOLDER/flash", "FOLDER/sram"), "Before and after"),
    (("whatif", "kws", "-b", "nucleo_l4r5zi", "--set", "placement.weights=sram"),
     "faster with a probability"),
    (("port", "kws", "--from", "nucleo_l4r5zi", "--to", "nucleo_f401re"),
     "Predicted for hardware nobody measured"),
    (("compare", "kws", "-b", "nucleo_l4r5zi", "--published"), "of published"),
    (("select", "kws", "-b", "nucleo_l4r5zi", "-b", "rpi_pico", "--max-ms", "60", "--no-advice"),
     "1 of 2 boards meet 60 ms"),
    (("sweep", "kws", "-b", "nucleo_l4r5zi", "--clock", "80MHz,120MHz"), "on the front")],
    ids=lambda one: one[0])
def test_a_verb_writes_its_page(folder, tmp_path, words, said) -> None:
    target = tmp_path / "page.html"
    ended = CliRunner().invoke(app, [*(word.replace("FOLDER", str(folder)) for word in words),
                                     "--report", str(target)])
    assert ended.exit_code == 0, ended.output
    text = html.unescape(target.read_text())
    assert said in text[:text.index("<footer>")] and "default-src 'none'" in text


def test_a_study_is_told_from_its_folder(tmp_path) -> None:
    (tmp_path / "s.yaml").write_text(
        "schema: 1\nname: clocks\nquestion: Which clock?\nmodels: [kws]\n"
        "boards: [nucleo_l4r5zi]\nclocks: [80MHz, 120MHz]\n"
        "finding: {vary: clock, kind: effect}\n")
    twin.run_study(tmp_path / "s.yaml", tmp_path / "out", command=["twin", "study", "run"])
    target = tmp_path / "page.html"
    assert CliRunner().invoke(app, ["report", str(tmp_path / "out"), "-o",
                                    str(target)]).exit_code == 0
    text = target.read_text()
    assert "Which clock?" in text and "effect-table" in text and "twin study run" in text
    again = CliRunner().invoke(app, ["report", str(tmp_path / "out" / "results.parquet"), "-o",
                                     str(tmp_path / "table.html")])
    assert again.exit_code == 0 and "sweep" in (tmp_path / "table.html").read_text()


@pytest.mark.parametrize(("words", "said"), [
    (("report", "kws"), "-b BOARD"),
    (("report", "kws", "-b", "nucleo_l4r5zi", "-b", "rpi_pico", "--stages", "2"), "one -b"),
    (("report", "kws", "-b", "nucleo_l4r5zi", "-b", "rpi_pico", "--published"), "one board"),
    (("report", "kws", "-b", "nucleo_l4r5zi", "--stage", "nothing"), "PATH=VALUE"),
    (("sweep", "kws", "-b", "nucleo_l4r5zi", "--report", "x.pdf"), "ends in .html")])
def test_wrong_words_for_several_are_refused(words, said) -> None:
    ended = CliRunner().invoke(app, list(words))
    assert ended.exit_code == 2 and said in str(ended.output) + str(ended.exception)


def test_boards_that_cannot_be_stand_beside_those_that_can(tmp_path) -> None:
    target = tmp_path / "page.html"
    ended = CliRunner().invoke(app, [
        "report", "vww", "-b", "nucleo_l4r5zi", "-b", "nucleo_f401re", "--max-ms", "1",
        "--runtime", "tflm", "-o", str(target)])
    assert ended.exit_code == 0, ended.output
    assert "cannot be" in target.read_text() or "over" in target.read_text()


def test_the_power_of_an_inference_stands_on_its_page(tmp_path) -> None:
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="cmsis-nn")
    prediction = twin.predict(deployment)
    layers = tuple(layer.index for layer in prediction.layers if layer.time_us)
    edges = (0.0, *(1000.0 * (place + 1) for place in range(len(layers))))
    told = {"model": "kws", "runtime": "cmsis-nn@6.0"}
    write_measurement(tmp_path, measure(prediction, counters={
        "energy": lambda layer: 2 * layer.energy_uj, "energy_sd": lambda layer: 1.0},
        whole={"energy": 2 * prediction.energy_uj}, **told), dump_excerpt(Excerpt(
        time_us=tuple(float(one) for one in range(-500, 13000, 100)), power_mw=tuple(
            90.0 if one == 2500 else 30.0 for one in range(-500, 13000, 100)),
        edges_us=edges, layers=layers, meter="made", edges_from="marks")))
    recording = read_recording(tmp_path)
    page = describe_report(Report(prediction=prediction, power=recording))
    plot = find(page, "power-trace")
    assert "peak 90 mW in layer 2" in plot.caption
    assert [shape["x0"] for shape in plot.layout["shapes"]] == [edge / 1e3 for edge in edges]
    steps = next(trace for trace in plot.traces if trace["name"].startswith("predicted"))
    first = prediction.layers[0]
    assert steps["y"][0] == pytest.approx(1e3 * first.energy_uj / first.time_us)
    assert {row.cells[5].text for row in find(page, "power-table").rows if float(
        row.cells[3].value)} == {"0.50"}


def test_a_page_is_of_what_was_measured_and_recorded(tmp_path) -> None:
    """Runtime by the header; a recording of another network is refused, runs are the meter's."""
    prediction = twin.predict(twin.deploy("ad", "nucleo_l4r5zi", runtime="cmsis-nn"))
    environment = (("meter", "made"), ("runs_asked", "3"))
    write_measurement(tmp_path / "m", measure(
        prediction, factor=3, model="ad", runtime="cmsis-nn@6.0", environment=environment,
        whole={"energy": prediction.energy_uj, "energy_sd": 1.0}), dump_excerpt(Excerpt(
            time_us=(0.0, 1.0), power_mw=(9.0, 9.0), edges_us=(0.0, 1.0), layers=(0,),
            meter="made", edges_from="marks")))
    page = tmp_path / "page.md"

    def run(model: str, option: str, *more: str):
        return CliRunner().invoke(app, [
            "report", model, "-b", "nucleo_l4r5zi", "--no-changes", option, str(tmp_path / "m"),
            "-o", str(page), *more])

    for option in ("--power", "--measured"):
        ended = run("ad", option)
        assert ended.exit_code == 0 and "missing" not in ended.output, ended.output
        assert "cmsis-nn@6.0" in page.read_text().splitlines()[2]
    assert "other kernels, their" not in page.read_text()
    assert run("ad", "--measured", "--runtime", "x-cube-ai").exit_code == 0
    assert "other kernels, their" in page.read_text() and "overlay does not" not in page.read_text()
    ended = run("kws", "--power")
    assert ended.exit_code == 3 and isinstance(ended.exception, SystemExit)
    assert "other networks" in ended.output


@pytest.mark.parametrize(("chances", "rows", "said"), [
    ([0.9, 0.095, *[0.001] * 5], 2, "5 more make up"), ([0.05] * 20, 10, "10 more make up 50.0 %"),
    ([0.6, 0.4], 2, "")])
def test_a_page_lists_the_faults_that_matter(chances, rows, said) -> None:
    fault = SimpleNamespace(name="made", kind="made", remedy="none")
    findings = tuple(SimpleNamespace(fault=fault, kind=f"{place}", probability=one, evidence=(),
                                     place=place)
                     for place, one in enumerate(chances))
    table = list_faults(SimpleNamespace(
        findings=findings, kinds={one.kind: one.probability for one in findings}))
    assert len(table.rows) == rows and said in table.caption
    assert bool(said) is ("more" in table.caption)


def test_names_from_files_stay_text() -> None:
    table = make_table(boards=(HOSTILE, "b", "c"))
    page = render_page(describe_result(table, HOSTILE))
    assert "<img src=x" not in page
    assert "<img" not in json.dumps(re.search(r'id="plots">(.*?)</script>', page)[1])


def test_what_has_no_page_is_refused() -> None:
    with pytest.raises(twin.TwinError, match=r"no page of .*; accepted: Table"):
        twin.report(3)


def test_the_caption_of_bills_names_the_cause_that_is_largest_over_all_bars() -> None:
    """Not that of the longest part: a board that idles twice outweighs one product."""
    bills = [("one", {"alu": 50.0, "idle": 40.0}), ("two", {"alu": 1.0, "idle": 49.0})]
    assert draw_bills("time", bills).caption.endswith("; idle is the largest cause over all.")
