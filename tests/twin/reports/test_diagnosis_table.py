"""What `twin diagnose` prints: the answer first, and nothing twice."""

import dataclasses
import io

import pytest
from rich.console import Console

from twin.attribution.diagnosis.faults import (
    BINARY,
    DECLARED,
    FACTOR_KINDS,
    ONE_FACTOR,
    Fault,
)
from twin.attribution.diagnosis.finding import (
    ADDED,
    APART,
    GIVE,
    NONE_NEEDED,
    STEADY_FIRST,
    Diagnosis,
    Finding,
    list_likeliest,
    order_findings,
    say_ratio,
)
from twin.reports.page.beside import list_faults
from twin.reports.page.diagnosis import describe_diagnosis
from twin.reports.tables.diagnosis import _answer, diagnosis_report

ALIKE = ("instructions 1.00 x those predicted, 1.00 x expected", "262,207 cache lines filled")
TELLING = ("%s or %s: measure the same image where it is known to be right (--healthy); or time a "
           "run with a host's clock or a logic analyser beside its cycles: the ratio is the "
           "core's clock")


def diagnose(*kinds, telling=TELLING):
    return Diagnosis(
        findings=order_findings([Finding(
            fault=Fault(kind=kind, name=f"{kind} of it", remedy="mend it"), kind=kind, prior=0.1,
            probability=chance, predicted={1: predicted},
            evidence=(f"measured {100 / predicted:.2f} x what it predicts, {APART}1 %", *ALIKE,
                      *(["a header speaks against it"] if kind == "SIMD" else [])))
            for kind, chance, predicted in kinds]),
        quantity="cycles", layers=(1,), errors=BINARY, measured=100.0, repeats=0.001,
        counters=("instructions",), observations=("runs of a layer scatter by 0 %",),
        indistinct=("prefetch of it",), rests_on=("cycles per layer", "instructions"),
        telling=telling and telling % (kinds[0][0], kinds[1][0]))


@pytest.mark.parametrize("kinds,first,remedy", [
    (((DECLARED, 0.86, 96.0), ("clock", 0.1, 110.0), ("SIMD", 0.04, 99.0)),
     "as declared of it, 86 %; measured is 1.042 x what is predicted",
     "the sum of a run's layers repeats within 0.1 %: no listed fault is likelier than prices "
     "or kernels that are off; learn the board's prices (twin calibrate)"),
    ((("clock", 0.45, 110.0), ("SIMD", 0.35, 99.0), (DECLARED, 0.2, 50.0)),
     "clock of it, 45 %, only the likeliest of several; measured is 2.000 x what is predicted",
     "if so: mend it")])
def test_five_lines_say_what_how_sure_and_what_would_tell(kinds, first, remedy):
    found = diagnose(*kinds)
    out = io.StringIO()
    Console(file=out, width=80).print(diagnosis_report(found))
    lines = out.getvalue().splitlines()
    printed = " ".join(" ".join(lines).split())
    assert first in printed and f"remedy {remedy} what explains the pattern" in printed
    declared = kinds[0][0] == DECLARED  # then it says what it cannot see
    assert [line.split()[0] for line in lines if line[:1].strip()][:4 + declared] == [
        "verdict", *["cannot"] * declared, "or", "to", "remedy"]
    assert next(n for n, line in enumerate(lines) if line.startswith("remedy")) <= 6 + 2 * declared
    for once in (*ALIKE, "--healthy", "measured is", "a header speaks", "prefetch of it"):
        assert printed.count(once) == 1, once
    assert GIVE in found.remedy or remedy.startswith("if so")  # a document keeps all of it
    assert max(map(len, lines)) <= 80


def test_evidence_of_the_verdict_stands_once_and_of_a_row_what_differs():
    found = diagnose((DECLARED, 0.9, 96.0), ("load", 0.06, 97.0), ("SIMD", 0.04, 99.0))
    other = dataclasses.replace(found.findings[1], evidence=(
        found.findings[1].evidence[0], ADDED, ALIKE[0], "131,073 cache lines expected"))
    out = io.StringIO()
    Console(file=out, width=80).print(diagnosis_report(dataclasses.replace(
        found, findings=(found.findings[0], other, found.findings[2]))))
    printed = " ".join(out.getvalue().split())
    assert f"of each unless its row says otherwise: {'; '.join(ALIKE)}" in printed
    assert (printed.count(ALIKE[0]), printed.count(f"two at once: {ADDED}")) == (1, 1)


def test_a_settled_verdict_needs_no_rivals():
    out = io.StringIO()
    Console(file=out, width=80).print(diagnosis_report(
        diagnose((DECLARED, 0.99, 100.0), ("clock", 0.01, 50.0), telling="")))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert [line for line in lines if line.startswith(("verdict", "or ", "to ", "remedy"))] == [
        "verdict     as declared of it, 99 %; measured is 1.000 x what is predicted",
        "remedy      none needed"]


def test_rows_are_sorted_by_kind_and_what_is_far_off_is_said():
    """Sizes of one kind together outweigh "as declared"; at 1.5 x nothing listed is sure."""
    split = diagnose((DECLARED, 0.43, 96.0), ("load", 0.3, 97.0), ("load", 0.27, 98.0))
    assert split.verdict.probability == 0.3
    assert [row.cells[2].text for row in list_faults(split).rows] == ["30.0%", "27.0%", "43.0%"]
    out = io.StringIO()
    Console(file=out, width=200).print(diagnosis_report(split))
    rows = [line.split()[:3:2] for line in out.getvalue().splitlines() if " of it " in line]
    assert rows[-3:] == [["57.0", "30.0"], ["57.0", "27.0"], ["43.0", "43.0"]]
    for predicted, far in ((66.7, True), (96.0, False)):
        found = diagnose((DECLARED, 0.6, predicted), ("load", 0.4, 97.0))
        assert found.is_far is far
        out = io.StringIO()
        Console(file=out, width=200).print(diagnosis_report(found))
        assert ("nothing listed surely explains it: as declared" in out.getvalue()) is far
        page = describe_diagnosis(diagnose(("clock at 48 MHz", 0.6, predicted), (DECLARED, 0.4, 9)))
        assert page.verdict == "Clock at 48 MHz of it"


def test_a_kind_of_many_rows_is_stated_beside_its_likeliest_row():
    out = io.StringIO()
    Console(file=out, width=200).print(diagnosis_report(diagnose(
        *(("board", chance, 110.0) for chance in (0.36, 0.34, 0.2)), (DECLARED, 0.1, 50.0))))
    assert "board, 90 %; likeliest board of it 36 %; measured is" in out.getvalue()


def test_the_page_is_headed_by_what_the_terminal_is_sure_of():
    """The page's badge was "all caches off" in red where they had 26 % and their kind 49 %."""
    several = [("cache off", chance, 110.0) for chance in (0.26, 0.23)]
    page = describe_diagnosis(diagnose(*several, (DECLARED, 0.4, 96.0), ("load", 0.11, 97.0)))
    assert page.verdict == "Cache off, only the likeliest of several" and not page.tone
    assert page.sentence.startswith("Cache off explains the cycles")
    sure = describe_diagnosis(diagnose(("cache off", 0.9, 110.0), (DECLARED, 0.1, 96.0)))
    assert (sure.verdict, sure.tone) == ("Cache off of it", "bad")


def test_runs_that_scatter_evenly_need_something():
    """They were "as no listed fault makes them", and what to do was "none needed"."""
    found = diagnose((DECLARED, 0.9, 100.0), ("load", 0.1, 97.0))
    assert found.remedy == NONE_NEEDED
    uneven = dataclasses.replace(found, observations=(
        "runs of a layer scatter by 5.4 % to both sides, as no listed fault makes them",))
    assert uneven.remedy == STEADY_FIRST


def test_the_library_is_stated_before_prices_are_learnt():
    """Where it was inferred from the times, a calibration may learn a fault."""
    found = diagnose((DECLARED, 0.86, 96.0), ("clock", 0.14, 110.0)).of_inferred()
    assert "state the library first" in found.remedy and "calibrate" not in found.remedy
    assert "may hide a fault" in found.telling


def test_the_page_says_what_the_terminal_says_of_doubt():
    """What cannot be seen, what is as likely, and the likeliest faults of each kind."""
    found = diagnose((DECLARED, 0.6, 96.0), *(("wait states", 0.02, 97.0),) * 9,
                     ("interrupts", 0.22, 97.0))
    page = describe_diagnosis(found)
    basis = dict(next(one for one in page.sections if one.name == "evidence").items[0].pairs)
    assert basis["cannot see"].startswith("a fault that slows all layers alike by less than 30 %")
    assert basis["not distinguishable"] == ", ".join(found.not_distinguishable)
    rows = [row.cells[1].text for row in list_faults(found).rows]
    assert rows == [DECLARED, "interrupts", *["wait states"] * 3]


def test_kinds_that_nothing_distinguishes_are_one_kind_on_the_page():
    """Each row's share of its kind is that of the kind named beside it, as in the terminal."""
    found = diagnose(("clock", 0.5, 50.0), ("counter", 0.4, 50.0), (DECLARED, 0.1, 96.0))
    found = dataclasses.replace(found, findings=order_findings([
        dataclasses.replace(one, kind=ONE_FACTOR if one.fault.kind in FACTOR_KINDS else one.kind)
        for one in found.findings]))
    rows = [[cell.text for cell in row.cells[1:4]] for row in list_faults(found).rows]
    assert rows == [[ONE_FACTOR, "50.0%", "90.0%"], [ONE_FACTOR, "40.0%", "90.0%"],
                    [DECLARED, "10.0%", "10.0%"]]


@pytest.mark.parametrize(("ratio", "said"), [
    (991988.103, "992,000"), (991.988, "992"), (1.0424, "1.042"), (9.92e-10, "9.92e-10")])
def test_a_ratio_far_from_one_has_three_digits(ratio, said):
    assert say_ratio(ratio) == said


def test_no_fault_listed_is_less_likely_than_one_left_out():
    """Ten rows of a page, or six of a table, hold the likeliest, at most three of a kind."""
    found = diagnose((DECLARED, 0.4, 96.0), ("load", 0.21, 97.0), ("load", 0.1, 97.5),
                     ("load", 0.01, 98.0), ("clock", 0.2, 50.0), ("SIMD", 0.08, 60.0))
    assert [one.probability for one in list_likeliest(found.findings, 5)] == [
        0.4, 0.21, 0.1, 0.2, 0.08]


def test_rows_of_a_kind_that_is_named_make_its_sum() -> None:
    names = [(DECLARED, 0.8), *[("clock", 0.03)] * 4, *[("flash slower", 0.01)] * 6, ("SIMD", 0.02)]
    found = diagnose(*((kind, chance, 100.0) for kind, chance in names), telling="")
    shown = list_likeliest(found.findings, 5)
    assert {one.kind for one in shown} == {DECLARED, "clock", "flash slower", "SIMD"}
    wide, narrow = io.StringIO(), io.StringIO()
    for out, width in ((wide, 300), (narrow, 80)):
        Console(file=out, width=width).print(diagnosis_report(found))
    assert "of it (5 more of its kind: 5.0 %)" in wide.getvalue()
    assert "of it (1 more of its kind: 3.0 %)" in wide.getvalue()
    assert "not shown at 80 columns: layers apart by" in narrow.getvalue()


def test_a_fault_is_not_told_from_itself_and_a_second_one():
    """What a verdict cannot exclude beside it: the second of each pair as likely to be measured."""
    found = diagnose(
        ("SIMD", 0.5, 100.0), ("SIMD and wait states", 0.2, 100.0), ("clock", 0.16, 99.0),
        ("load and SIMD", 0.1, 100.0), ("clock and load", 0.03, 100.0), (DECLARED, 0.01, 100.0))
    assert found.not_distinguishable == ("with wait states besides",)
    assert dict(_answer(found))["not distinguishable"] == "with wait states besides"
    assert not diagnose(("none of these", 0.6, 100.0), ("clock", 0.4, 99)).not_distinguishable
