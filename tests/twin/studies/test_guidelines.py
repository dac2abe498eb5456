"""Guidelines: leaves stand on runs, errors are of held-out networks, every line is counted."""

from __future__ import annotations

import dataclasses

import pytest

from twin.api.commands.guidelines import _list_sections
from twin.errors import StudyError
from twin.reports.guide import chart_decisions, describe_guide
from twin.reports.page.written import render_markdown
from twin.studies.axes import make_space
from twin.studies.decisions import DRAWN, INFEASIBLE, Decision, decide
from twin.studies.guidelines import LEAST, characterise, learn
from twin.studies.results import Table
from twin.studies.rows import Row
from twin.studies.study.definition import Finding, Study
from twin.studies.study.file import load_study


def write_guide(guide, causes, told=None) -> str:
    return render_markdown(describe_guide(guide, causes, told or {}))


MODELS, BOARDS = ("kws", "ic", "ad"), ("nucleo_f401re", "nucleo_h7a3zi_q")


def made_row(model: str, board: str, case: str, copy: int) -> Row:
    fast = board == "nucleo_h7a3zi_q"
    time = (1000.0 if fast else 10_000.0) * (0.5 if case == "better" else 1) * (
        1 + MODELS.index(model))
    return Row(inputs=(("model", model), ("board", board), ("case", case), ("copy", str(copy))),
               model=model, board=board, runtime="tflm-cmsis-nn@2026", clock_hz=84e6 + fast,
               time_us=time, energy_uj=time, flash_bytes=1, ram_bytes=1)


ROWS = tuple(made_row(model, board, case, copy) for model in MODELS for board in BOARDS
             for case in ("as it is", "better") for copy in range(2))
STUDY = Study(name="made", space=make_space(MODELS, BOARDS),
              cases={"as it is": {}, "better": {"placement.weights": "sram"}},
              finding=Finding(vary="case", baseline="as it is"))


def test_a_tree_tells_boards_apart_and_its_runs_add_up() -> None:
    guide = learn([(STUDY, Table(rows=ROWS))])
    assert sum(leaf.runs for leaf in guide.time_tree) == len(ROWS)
    assert all(leaf.runs >= LEAST and leaf.error >= 1 for leaf in guide.time_tree)
    assert any("cortex-m" in rule or "MHz" in rule for rule in guide.time_tree[0].rules)


def test_trees_tell_cycles_per_mac_of_the_network_as_it_was_changed() -> None:
    # Time grows with the work alone: one figure per MAC is right for networks never seen.
    narrow = {"half": {"network.width": "0.5"}, "floats": {"network.precision": "float32"}}
    study = Study(name="made", space=make_space(MODELS, BOARDS), cases={"as it is": {}, **narrow})
    rows = []
    for model in MODELS:
        for case, changes in study.cases.items():
            macs = characterise(model, tuple(changes.items())).macs
            rows += [dataclasses.replace(made_row(model, board, case, 0), clock_hz=1e8,
                                         time_us=macs * 2.5 / 100) for board in BOARDS]
    guide = learn([(study, Table(rows=tuple(rows) * 2))])
    assert sum(leaf.runs for leaf in guide.time_tree) == 2 * 2 * len(MODELS) * len(BOARDS)
    assert all(leaf.per == "MAC" and leaf.typical == pytest.approx(2.5) and
               leaf.error == pytest.approx(1) for leaf in guide.time_tree)
    assert "2.5 per MAC" in write_guide(guide, {})


def test_accelerators_are_told_per_layer_where_that_is_nearer() -> None:
    rows = [Row(inputs=(("model", model), ("board", "stm32n6570_dk"), ("copy", str(copy))),
                model=model, board="stm32n6570_dk", runtime="neural-art@3.0.0", clock_hz=1e8,
                time_us=30.0 * characterise(model).layers) for model in MODELS
            for copy in range(6)]
    guide = learn([(STUDY, Table(rows=tuple(rows)))])
    assert guide.time_tree and not guide.energy_tree
    assert all(leaf.per == "layer" and leaf.typical == pytest.approx(3000) for leaf in
               guide.time_tree)


def test_classes_and_checklist_are_counted_in_rows() -> None:
    guide = learn([(STUDY, Table(rows=ROWS))])
    fast = next(one for one in guide.classes if "m7" in one.core)
    slow = next(one for one in guide.classes if "m4" in one.core)
    assert fast.fastest == MODELS and not slow.fastest and slow.behind == pytest.approx(10)
    text = write_guide(guide, {fast.core: [("mac", 0.4, "6 predictions")]})
    assert "better: time x0.5; less time in 12 of 12 pairs (made)" in text
    assert "time goes to mac | 40% in the median of 6 predictions | better: time x0.5" in text


def test_too_few_rows_teach_nothing() -> None:
    with pytest.raises(StudyError, match="more, from studies"):
        learn([(STUDY, Table(rows=ROWS[:5]))])


def test_a_decision_cites_the_rows_that_meet_its_requirements() -> None:
    rows = tuple(dataclasses.replace(row, price_usd=5.0 if row.board == BOARDS[0] else 9.0)
                 for row in ROWS if row.model == "kws")
    leaves = decide(rows)
    assert sum(leaf.requirements for leaf in leaves) == DRAWN
    assert {leaf.choice for leaf in leaves} == {*BOARDS, INFEASIBLE}
    for leaf in leaves:
        assert 0 < leaf.right <= 1 and (leaf.choice == INFEASIBLE) == (not leaf.rows)
        assert all(rows[number] == row and row.board == leaf.choice for number, row in leaf.rows)
    # 9 USD buy the fast board: nothing cheaper meets a tenth of the slow one's time.
    slow = next(leaf for leaf in leaves if leaf.choice == BOARDS[0])
    assert any(rule.startswith("latency limit above") for rule in slow.rules)


def test_a_tree_is_drawn_with_branches_of_one_answer_joined() -> None:
    def leaf(choice: str, *path: tuple[str, bool], count: int = 100) -> Decision:
        return Decision(rules=(), choice=choice, right=1.0 if count == 100 else 0.5,
                        requirements=count, rows=(), path=path)

    a, b = "energy 3 mJ", "error rate 5 %"
    chart = chart_decisions("kws in made", (
        leaf(INFEASIBLE, (a, False), (b, False)),
        leaf(INFEASIBLE, (a, False), (b, True), count=300),
        leaf("fast", (a, True), (b, False)), leaf("slow", (a, True), (b, True))))
    texts = [text for _, _, text in chart.notes]
    assert texts == ["energy \u2264 3 mJ?", "INFEASIBLE (62%)", "error rate \u2264 5 %?",
                     "fast (100%)", "slow (100%)"]
    assert len([curve for curve in chart.curves if curve.dashes]) == 4  # branches
    depth = {text: x for x, _, text in chart.notes}
    assert depth["energy \u2264 3 mJ?"] < depth["INFEASIBLE (62%)"] < depth["slow (100%)"]


def test_a_guide_has_what_studies_found_under_the_section_of_their_changes() -> None:
    assert _list_sections(load_study("e1_quantisation")) == ["precision"]
    assert _list_sections(load_study("e3_frequency")) == ["clocks"]
    assert _list_sections(load_study("a_libraries")) == ["libraries"]
    assert _list_sections(load_study("impact")) == []
    guide = learn([(STUDY, Table(rows=ROWS))])
    text = write_guide(guide, {}, {"clocks": ["e3: slow is cheap"]})
    assert "## Clocks\n\n- e3: slow is cheap" in text and "## Fusion" not in text
    assert "None: the studies hold no such pair." in write_guide(learn([(
        dataclasses.replace(STUDY, finding=None), Table(rows=ROWS))]), {}, {})
    assert "kws 2e+03 times a second at 500 uJ" in text and "| best for |" in text


def test_a_checklist_compares_no_assumed_row_where_its_study_does_not() -> None:
    rows = tuple(dataclasses.replace(row, cell="assumed") for row in ROWS)
    cells = dataclasses.replace(STUDY, finding=dataclasses.replace(STUDY.finding, cells=True))
    assert learn([(STUDY, Table(rows=rows))]).effects
    assert not learn([(cells, Table(rows=rows))]).effects
