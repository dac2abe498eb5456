"""The sentence made from the bill, and the glossary behind `twin explain`."""

import re
from dataclasses import replace

import pytest
from made_predictions import make_prediction

from hwmodels.counts import CAUSE_GROUPS, CAUSES, EVENTS
from hwmodels.quantities import format_time
from twin import deploy, predict
from twin.errors import UsageError
from twin.pricing.ledger import (
    bill_time_us,
    explain_time,
    group_percentages,
    least_mac_us,
    mac_utilisation,
    make_ledger,
    miss_rate,
)
from twin.reports.glossary import find_entry, load_glossary
from twin.reports.tables.header import list_bill_notes


def test_sentence_has_the_promised_form_and_sums_to_a_hundred():
    sentence = explain_time(make_prediction())
    shares = [int(share) for share in re.findall(r"(\d+) % (?:memory-bound|compute|data|other)",
                                                 sentence)]
    assert sum(shares) == 100
    assert re.match(r"[\d.]+ ms because \d+ % ", sentence)
    assert "MAC utilisation" in sentence


def test_every_figure_of_the_sentence_is_on_the_bill():
    prediction = make_prediction()
    bill = prediction.bill
    shares = group_percentages(prediction)
    for group, causes in CAUSE_GROUPS.items():
        cycles = sum(bill.cycles("cpu", cause) for cause in causes)
        assert abs(shares[group] - 100 * cycles / bill.cycles("cpu")) < 1
    compute = sum(bill.cycles("cpu", cause) for cause in CAUSE_GROUPS["compute"])
    slots = sum(line.exposed for line in bill.lines if line.cause == "mac")  # of a cycle each
    assert mac_utilisation(prediction) == pytest.approx(slots / compute)
    # 120 misses of 1000 lines in each made layer.
    assert miss_rate(prediction) == pytest.approx(0.12)
    assert "miss rate 12 %" in explain_time(prediction)


def test_no_share_of_macs_is_stated_where_none_are_counted_apart():
    prediction = predict(deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn@2.3.1-os"))
    assert prediction.bill.cycles("cpu", "mac") == 0 and mac_utilisation(prediction) is None
    assert "compute (mostly " in explain_time(prediction)


def test_macs_of_an_accelerator_are_of_what_its_units_could_do_in_its_cycles():
    """Hidden behind transfers or not: MACs, by 256 a cycle, of all its cycles."""
    made = predict(deploy("kws", "alif_e7_devkit"))
    cycles = sum(one.run.core_npu_cycles for one in made.tasks if not one.run.task.on_host)
    assert mac_utilisation(made) == pytest.approx(made.macs / (256 * cycles), rel=0.02)


def test_cache_is_called_l1_only_where_the_board_calls_it_so():
    assert "(art_d miss rate" in explain_time(make_prediction())
    assert "(L1 miss rate" in explain_time(make_prediction(board="nucleo_h7a3zi_q"))


def test_without_look_ups_the_largest_memory_cause_is_named():
    prediction = make_prediction()
    layers = tuple(replace(layer, accesses=0, misses=0) for layer in prediction.layers)
    prediction = replace(prediction, layers=layers)
    assert miss_rate(prediction) is None
    memory = max(CAUSE_GROUPS["memory"], key=lambda cause: prediction.bill.cycles("cpu", cause))
    assert f"memory-bound (mostly {memory})" in explain_time(prediction)


def test_glossary_explains_every_cause_and_event():
    glossary = load_glossary()
    assert set(CAUSES) <= set(glossary)
    printed = {"placement", "boundary", "days", "mean power", "conformal", "identifiable",
               "fitted as one", "90 % interval", "art_d"}
    assert printed <= set(glossary)
    assert set(EVENTS) <= set(glossary)
    for cause in CAUSES:
        assert glossary[cause].kind == "cause"
        assert glossary[cause].lever


def test_every_reference_of_the_glossary_leads_somewhere():
    for entry in load_glossary().values():
        for term in entry.see:
            assert find_entry(term).text


@pytest.mark.parametrize(("asked", "meant"), [
    ("MAC", "MAC"), ("mac", "mac"), ("write-back", "write_back"), ("Arithmetic_Intensity",
     "arithmetic intensity"), ("dcache_read_refill", "dcache_read_refill"), ("helium", "MVE"),
    ("latency", "latency"), ("trust", "prices"), ("interval", "make-up of an interval"),
])
def test_terms_are_found_whatever_their_spelling(asked, meant):
    assert find_entry(asked).term == meant


def test_unknown_term_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean roofline"):
        find_entry("roflin")
    with pytest.raises(UsageError, match="twin explain"):
        find_entry("zzzzqqqq")


@pytest.mark.parametrize(("term", "truth"), [
    ("PMU", "does not exist on a Cortex-M7"), ("IPC", "cannot happen"),
    ("energy", "wrong dimension"), ("INA226", "281.6 ms"),
])
def test_myths_are_named(term, truth):
    assert truth in find_entry(term).myth


def test_macs_a_learnt_factor_shortens_still_take_the_core_its_issue_slots():
    learnt, stated = (predict(deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0.0-time"),
                              calibration=prices) for prices in ("auto", "none"))
    assert learnt.bill.cycles("cpu", "mac") < 0.7 * stated.bill.cycles("cpu", "mac")
    assert least_mac_us(learnt) == pytest.approx(bill_time_us(stated, stated.bill, "mac"))
    assert mac_utilisation(learnt) > 1.3 * mac_utilisation(stated)
    _, short = list_bill_notes(learnt, make_ledger(learnt))
    least_us, billed_us = least_mac_us(learnt), bill_time_us(learnt, learnt.bill, "mac")
    assert (f"mac: the core needs at least {format_time(least_us)} for these MACs, "
            f"{format_time(billed_us)} are billed") in short
    assert len(list_bill_notes(stated, make_ledger(stated))) == 1
